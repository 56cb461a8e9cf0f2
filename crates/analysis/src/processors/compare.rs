//! Traces of processors side by side: the time of each name, whether it changed, and where time moved to.
//!
//! Traces have different lengths, so times are compared as CPU seconds per second. How much a time varies by itself
//! is known from the intervals of its trace: the means of intervals of the first trace and of another are compared
//! by Welch's t-test, p-values of all names together are adjusted by Holm's method.

use std::collections::BTreeMap;

use serde::Serialize;

use super::data::{InterruptGroup, Report};
use crate::stats::effect::holm;
use crate::stats::mean::Mean;
use crate::stats::student;

/// A change is significant below this adjusted p-value.
const SIGNIFICANT: f64 = 0.05;
/// Fewest intervals to judge by.
const INTERVALS_LEAST: usize = 5;
/// Time moved if as much of a decrease appears elsewhere, and at least this many CPU seconds per second.
const MOVED_SHARE: f64 = 0.3;
const MOVED_LEAST: f64 = 0.01;

/// Two or more traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// By kind and name, the largest change first.
    pub groups: Vec<ComparedGroup>,
    /// Each CPU's share of time in interrupts and deferred work, one for each trace.
    pub processors: Vec<ComparedProcessor>,
    /// From the first trace to the last: time that a name lost and another one gained.
    pub moved: Vec<Moved>,
    /// Interrupts and deferred work of all CPUs, CPU seconds per second, one for each trace.
    pub all: Vec<f64>,
}

/// A name in all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedGroup {
    pub kind: String,
    pub name: Option<String>,
    /// One for each trace; null where the name does not occur.
    pub sides: Vec<Option<Side>>,
    /// From the first trace to each other one.
    pub changes: Vec<Change>,
}

/// A name in one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    pub count: u64,
    pub exclusive_ns: i64,
    /// CPU seconds per second.
    pub load: f64,
    /// Runs per second.
    pub rate: f64,
    pub mean_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    pub max_ns: Option<i64>,
    pub over_limit: u64,
}

/// A change of a name's load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// CPU seconds per second more.
    pub load: f64,
    /// Half of its 95 % interval; null with too few intervals.
    pub error: Option<f64>,
    /// Probability that such a change is chance, adjusted for the number of names; null with too few intervals.
    pub p: Option<f64>,
    pub significant: bool,
}

/// A processor in all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedProcessor {
    pub cpu: u64,
    pub node: Option<u64>,
    pub shares: Vec<Option<f64>>,
}

/// Time that one name lost and another one gained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    pub from: String,
    pub to: String,
    /// CPU seconds per second less, and more.
    pub lost: f64,
    pub gained: f64,
}

/// Compares the first trace with each other one.
pub fn compare(reports: &[Report]) -> Comparison {
    let mut by_name: BTreeMap<(&str, Option<&str>), Vec<Option<&InterruptGroup>>> = BTreeMap::new();
    for (place, report) in reports.iter().enumerate() {
        for group in &report.interrupts {
            let key = (group.kind.as_str(), group.name.as_deref());
            let sides = by_name.entry(key).or_insert_with(|| vec![None; reports.len()]);
            if let Some(side) = sides.get_mut(place) {
                *side = Some(group);
            }
        }
    }
    let mut groups: Vec<_> = by_name
        .into_iter()
        .map(|((kind, name), found)| {
            let sides: Vec<_> = found
                .iter()
                .zip(reports)
                .map(|(group, report)| group.map(|group| side(group, report)))
                .collect();
            let first = found.first().copied().flatten().zip(reports.first());
            let changes = found
                .iter()
                .zip(reports)
                .skip(1)
                .map(|(group, report)| change(first, group.map(|group| (group, report))));
            ComparedGroup {
                kind: kind.to_owned(),
                name: name.map(str::to_owned),
                changes: changes.collect(),
                sides,
            }
        })
        .collect();
    for other in 0..reports.len().saturating_sub(1) {
        let p: Vec<_> =
            groups.iter().map(|group| group.changes.get(other).and_then(|it| it.p)).collect();
        for (group, p) in groups.iter_mut().zip(holm(&p)) {
            if let Some(change) = group.changes.get_mut(other) {
                change.p = p;
                change.significant = p.is_some_and(|p| p < SIGNIFICANT);
            }
        }
    }
    let size = |group: &ComparedGroup| {
        let changes = group.changes.iter().map(|change| change.load.abs());
        changes.fold(0.0, f64::max)
    };
    groups.sort_by(|a, b| size(b).total_cmp(&size(a)));
    Comparison {
        moved: moved(&groups),
        processors: processors(reports),
        all: reports.iter().map(whole).collect(),
        groups,
    }
}

fn whole(report: &Report) -> f64 {
    let ns: i64 = report.processors.iter().map(|one| one.interrupt_ns + one.deferred_ns).sum();
    ns as f64 / report.length_ns.max(1) as f64
}

fn side(group: &InterruptGroup, report: &Report) -> Side {
    let seconds = report.length_ns.max(1) as f64 / 1e9;
    Side {
        count: group.count,
        exclusive_ns: group.exclusive_ns,
        load: group.exclusive_ns as f64 / 1e9 / seconds,
        rate: group.count as f64 / seconds,
        mean_ns: group.duration.mean_ns,
        p95_ns: group.duration.p95_ns,
        max_ns: group.duration.max_ns,
        over_limit: group.over_limit,
    }
}

type Of<'a> = Option<(&'a InterruptGroup, &'a Report)>;

fn change(first: Of<'_>, other: Of<'_>) -> Change {
    let load = |of: Of<'_>| of.map_or(0.0, |(group, report)| side(group, report).load);
    let mut change = Change { load: load(other) - load(first), ..Change::default() };
    let (Some(a), Some(b)) = (loads(first, other), loads(other, first)) else { return change };
    let variance = a.error().powi(2) + b.error().powi(2);
    let part = |mean: &Mean| mean.error().powi(4) / (mean.n.max(2) - 1) as f64;
    let degrees = variance * variance / (part(&a) + part(&b)).max(f64::MIN_POSITIVE);
    if variance > 0.0 {
        let error = variance.sqrt();
        change.error = Some(student::quantile(0.05, degrees.max(1.0)) * error);
        change.p = Some(student::two_sided(change.load / error, degrees.max(1.0)));
    } else {
        change.p = Some(f64::from(change.load == 0.0));
    }
    change
}

/// Loads of the intervals of a trace. A name that does not occur has a load of zero in as many intervals as the other
/// trace has.
fn loads(of: Of<'_>, other: Of<'_>) -> Option<Mean> {
    let mut mean = Mean::default();
    match of {
        Some((group, _)) => {
            // The last interval is not full.
            let full = group.intervals.len().saturating_sub(1);
            for time in group.intervals.iter().take(full) {
                mean.add(*time as f64 / group.interval_ns.max(1) as f64);
            }
        }
        None => mean.add_many(0.0, other?.0.intervals.len().saturating_sub(1) as u64),
    }
    (mean.n >= INTERVALS_LEAST as u64).then_some(mean)
}

fn processors(reports: &[Report]) -> Vec<ComparedProcessor> {
    let mut all: BTreeMap<u64, ComparedProcessor> = BTreeMap::new();
    for (place, report) in reports.iter().enumerate() {
        for one in &report.processors {
            let row = all.entry(one.cpu).or_insert_with(|| ComparedProcessor {
                cpu: one.cpu,
                node: one.node,
                shares: vec![None; reports.len()],
            });
            if let Some(share) = row.shares.get_mut(place) {
                *share = one.interrupt_share.zip(one.deferred_share).map(|(a, b)| a + b);
            }
        }
    }
    all.into_values().collect()
}

/// Pairs of names of which one lost about what the other one gained, from the first trace to the last.
fn moved(groups: &[ComparedGroup]) -> Vec<Moved> {
    let last = |group: &&ComparedGroup| group.changes.last().copied().unwrap_or_default();
    let significant = groups.iter().filter(|group| last(group).significant);
    let (mut losing, mut gaining): (Vec<_>, Vec<_>) =
        significant.partition(|group| last(group).load < 0.0);
    losing.sort_by(|a, b| last(a).load.total_cmp(&last(b).load));
    gaining.sort_by(|a, b| last(b).load.total_cmp(&last(a).load));
    let title = |group: &ComparedGroup| {
        format!("{} ({})", group.name.as_deref().unwrap_or("without a name"), group.kind)
    };
    let mut moved = Vec::new();
    for from in losing {
        let lost = -last(&from).load;
        let fits = |to: &&ComparedGroup| {
            let gained = last(to).load;
            gained >= MOVED_LEAST && gained >= MOVED_SHARE * lost && gained <= lost / MOVED_SHARE
        };
        if lost >= MOVED_LEAST
            && let Some(place) = gaining.iter().position(fits)
        {
            let to = gaining.remove(place);
            let gained = last(&to).load;
            moved.push(Moved { from: title(from), to: title(to), lost, gained });
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, intervals: &[i64]) -> InterruptGroup {
        InterruptGroup {
            kind: "dpc".to_owned(),
            name: Some(name.to_owned()),
            count: 100,
            exclusive_ns: intervals.iter().sum(),
            share: None,
            duration: crate::stats::latency::Distribution::default(),
            limit_ns: 100_000,
            over_limit: 0,
            over_limit_ns: 0,
            longest: Vec::new(),
            delay: crate::stats::latency::Distribution::default(),
            work: None,
            cpus: Vec::new(),
            interval_ns: 1_000_000,
            intervals: intervals.to_vec(),
        }
    }

    fn report(groups: Vec<InterruptGroup>) -> Report {
        Report { length_ns: 10_000_000, interrupts: groups, ..Report::default() }
    }

    #[test]
    fn time_that_moves_is_said_and_noise_is_not() {
        let noisy = |mean: i64| -> Vec<i64> {
            (0..11).map(|n| mean + (n * 7919 % 11 - 5) * 1_000).collect()
        };
        let a = report(vec![
            group("ndis.sys", &noisy(900_000)),
            group("storport.sys", &noisy(100_000)),
        ]);
        let b = report(vec![
            group("ndis.sys", &noisy(300_000)),
            group("mlx5.sys", &noisy(500_000)),
            group("storport.sys", &noisy(101_000)),
        ]);
        let found = compare(&[a, b]);
        let of = |name: &str| {
            found.groups.iter().find(|group| group.name.as_deref() == Some(name)).unwrap()
        };
        assert!(of("ndis.sys").changes[0].significant && of("mlx5.sys").changes[0].significant);
        assert!(!of("storport.sys").changes[0].significant, "{:?}", of("storport.sys"));
        assert_eq!(of("mlx5.sys").sides[0], None);
        let [moved] = &found.moved[..] else { panic!("{:?}", found.moved) };
        assert_eq!((moved.from.as_str(), moved.to.as_str()), ("ndis.sys (dpc)", "mlx5.sys (dpc)"));
        // The largest change comes first.
        assert_eq!(found.groups[0].name.as_deref(), Some("ndis.sys"));
    }

    #[test]
    fn short_traces_and_one_trace_are_not_judged() {
        let short = || report(vec![group("ndis.sys", &[5, 5])]);
        let found = compare(&[short(), report(vec![group("ndis.sys", &[900, 900])])]);
        assert_eq!((found.groups[0].changes[0].p, found.moved.len()), (None, 0));
        assert!(compare(&[short()]).groups[0].changes.is_empty());
        assert_eq!(compare(&[]), Comparison::default());
    }
}

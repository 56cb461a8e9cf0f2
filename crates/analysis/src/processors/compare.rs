//! CPU traces side by side: the time of each name, whether it changed, and where time moved to.
//!
//! Traces have different lengths, so times are compared as CPU seconds per second. How much a time varies by itself
//! is known from the intervals of its trace: the means of intervals of the first trace and of another are compared
//! by Welch's t-test, p-values of all names together are adjusted by Holm's method. Sums have no intervals of names, so
//! nothing can be said about how certain their changes are.
//!
//! A tracer records the events that were switched on. What one trace has no event of, of a kind that another one has ([`family`]), is
//! not compared: it does not come or go, it is not known.
//!
//! [`family`]: super::work::family

mod sampled;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::data::Report;
use super::work::{self, Work};
use crate::stats::effect::holm;
use crate::stats::mean::Mean;
use crate::stats::student;
pub use sampled::{ComparedSamples, SampledSide};

/// A change is significant below this adjusted p-value.
const SIGNIFICANT: f64 = 0.05;
/// Fewest intervals to judge by.
const INTERVALS_MIN: usize = 5;
/// Time moved if as much of a decrease appears elsewhere, and at least this many CPU seconds per second.
const MOVED_SHARE: f64 = 0.3;
const MOVED_MIN: f64 = 0.01;

/// Two or more traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// By kind and name, the largest change first.
    pub groups: Vec<ComparedGroup>,
    /// Each CPU's share of time in interrupts and deferred work, one for each trace.
    pub processors: Vec<ComparedProcessor>,
    /// By driver and function, what samples in interrupts and deferred work hit; the largest change first.
    pub sampled: Vec<ComparedSamples>,
    /// From the first trace to the last: time that a name lost and another one gained.
    pub moved: Vec<Moved>,
    /// Interrupts and deferred work of all CPUs, CPU seconds per second, one for each trace: those kinds that all traces
    /// have. Null if they have none in common.
    pub all: Vec<Option<f64>>,
    /// Kinds of events that a trace does not have, while another one does; one list for each trace. They were not recorded
    /// there, or did not occur, and are not compared.
    pub missing: Vec<Vec<String>>,
    /// Whether a trace has sums: how certain changes of their names are, is not known.
    pub has_sums: bool,
}

/// A name in all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedGroup {
    pub kind: String,
    pub name: Option<String>,
    /// One for each trace; null where the name does not occur, or was not recorded.
    pub sides: Vec<Option<Side>>,
    /// From the first trace to each other one.
    pub changes: Vec<Change>,
}

/// A name in one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Null if the trace has sums without it.
    pub count: Option<u64>,
    pub exclusive_ns: i64,
    /// CPU seconds per second.
    pub load: f64,
    /// Runs per second.
    pub rate: Option<f64>,
    pub mean_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    pub max_ns: Option<i64>,
    pub over_limit: Option<u64>,
}

/// A change of a name's load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// CPU seconds per second more; null if one of the traces did not record it.
    pub load: Option<f64>,
    /// Half of its 95 % interval; null with too few intervals.
    pub error: Option<f64>,
    /// Probability that such a change is chance, adjusted for the number of names; null with too few intervals.
    pub p: Option<f64>,
    pub significant: bool,
}

/// A CPU in all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedProcessor {
    pub cpu: u64,
    pub node: Option<u64>,
    /// Of what all traces recorded.
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

/// One trace.
struct Trace<'a> {
    report: &'a Report,
    works: Vec<Work>,
}

impl Trace<'_> {
    fn has(&self, family: &str) -> bool {
        self.report.recorded.families.iter().any(|one| one == family)
    }

    /// Whether only the intervals of the input are in the period: its names are not known.
    fn of_intervals(&self) -> bool {
        self.report.totals.as_ref().is_some_and(|totals| totals.of_intervals)
    }

    /// What time all its works are about.
    fn length_ns(&self) -> i64 {
        self.report.length_ns.max(1)
    }
}

/// Compares the first trace with each other one.
pub fn compare(reports: &[Report]) -> Comparison {
    let has_sums = reports.iter().any(|report| report.totals.is_some());
    let works = if has_sums { work::coarse } else { work::all };
    let traces: Vec<_> =
        reports.iter().map(|report| Trace { report, works: works(report) }).collect();
    let mut by_name: BTreeMap<(&str, Option<&str>), Vec<Option<&Work>>> = BTreeMap::new();
    for (place, trace) in traces.iter().enumerate() {
        for work in &trace.works {
            let key = (work.kind.as_str(), work.name.as_deref());
            let sides = by_name.entry(key).or_insert_with(|| vec![None; reports.len()]);
            if let Some(side) = sides.get_mut(place) {
                *side = Some(work);
            }
        }
    }
    let mut groups: Vec<_> = by_name
        .into_iter()
        .map(|((kind, name), found)| {
            let of = |place: usize| Of {
                work: found.get(place).copied().flatten(),
                is_recorded: traces
                    .get(place)
                    .is_some_and(|it| it.has(work::family(kind, name)) && !it.of_intervals()),
                length_ns: traces.get(place).map_or(1, Trace::length_ns),
            };
            let sides = (0..traces.len()).map(|place| of(place).side());
            ComparedGroup {
                kind: kind.to_owned(),
                name: name.map(str::to_owned),
                changes: (1..traces.len()).map(|place| change(of(0), of(place))).collect(),
                sides: sides.collect(),
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
    // What cannot be compared comes behind what can, by its size.
    let size = |group: &ComparedGroup| {
        let changes = group.changes.iter().filter_map(|change| change.load);
        let change = changes.map(f64::abs).reduce(f64::max);
        let sides = group.sides.iter().flatten().map(|side| side.load);
        (change.is_some(), change.unwrap_or_else(|| sides.fold(0.0, f64::max)))
    };
    groups.sort_by(|a, b| {
        let (a, b) = (size(a), size(b));
        b.0.cmp(&a.0).then_with(|| b.1.total_cmp(&a.1))
    });
    let families: BTreeSet<&String> =
        reports.iter().flat_map(|report| &report.recorded.families).collect();
    let missing = |trace: &Trace<'_>| {
        families.iter().filter(|one| !trace.has(one)).map(|one| (*one).clone()).collect()
    };
    let common: Vec<&String> =
        families.iter().copied().filter(|one| traces.iter().all(|it| it.has(one))).collect();
    Comparison {
        sampled: sampled::sampled(reports),
        moved: moved(&groups),
        processors: processors(&traces, &common),
        all: traces.iter().map(|trace| whole(trace, &common)).collect(),
        missing: traces.iter().map(missing).collect(),
        has_sums,
        groups,
    }
}

fn is_common(work: &Work, common: &[&String]) -> bool {
    common.iter().any(|one| *one == work.family())
}

/// CPU seconds per second of the families that all traces have. Sums of a period have no names, but the time of each CPU.
fn whole(trace: &Trace<'_>, common: &[&String]) -> Option<f64> {
    if common.is_empty() || trace.of_intervals() {
        return None;
    }
    let works = trace.works.iter().filter(|work| is_common(work, common));
    let ns = works.fold(0_i64, |sum, work| sum.saturating_add(work.time_ns));
    Some(ns as f64 / trace.length_ns() as f64)
}

/// A name in one trace.
#[derive(Clone, Copy)]
struct Of<'a> {
    work: Option<&'a Work>,
    /// Whether the trace would have it.
    is_recorded: bool,
    length_ns: i64,
}

impl Of<'_> {
    fn side(&self) -> Option<Side> {
        let work = self.work?;
        let seconds = self.length_ns as f64 / 1e9;
        Some(Side {
            count: work.count,
            exclusive_ns: work.time_ns,
            load: work.time_ns as f64 / 1e9 / seconds,
            rate: work.count.map(|count| count as f64 / seconds),
            mean_ns: work.mean_ns,
            p95_ns: work.p95_ns,
            max_ns: work.max_ns,
            over_limit: work.over_limit,
        })
    }

    /// CPU seconds per second; `None` if it was not recorded.
    fn load(&self) -> Option<f64> {
        match self.work {
            Some(work) => Some(work.time_ns as f64 / self.length_ns as f64),
            None => self.is_recorded.then_some(0.0),
        }
    }
}

fn change(first: Of<'_>, other: Of<'_>) -> Change {
    let (Some(before), Some(after)) = (first.load(), other.load()) else {
        return Change::default();
    };
    let load = after - before;
    let mut change = Change { load: Some(load), ..Change::default() };
    let (Some(a), Some(b)) = (loads(first, other), loads(other, first)) else { return change };
    let variance = a.error().powi(2) + b.error().powi(2);
    let part = |mean: &Mean| mean.error().powi(4) / (mean.n.max(2) - 1) as f64;
    let degrees = variance * variance / (part(&a) + part(&b)).max(f64::MIN_POSITIVE);
    if variance > 0.0 {
        let error = variance.sqrt();
        change.error = Some(student::quantile(0.05, degrees.max(1.0)) * error);
        change.p = Some(student::two_sided(load / error, degrees.max(1.0)));
    } else {
        change.p = Some(f64::from(load == 0.0));
    }
    change
}

/// Loads of the intervals of a trace. A name that does not occur has a load of zero in as many intervals as the other
/// trace has.
fn loads(of: Of<'_>, other: Of<'_>) -> Option<Mean> {
    let mut mean = Mean::default();
    let full = |work: &Work| work.intervals.len().saturating_sub(1);
    match of.work {
        Some(work) => {
            // The last interval is not full.
            for time in work.intervals.iter().take(full(work)) {
                mean.add(*time as f64 / work.interval_ns.max(1) as f64);
            }
        }
        None => mean.add_many(0.0, full(other.work?) as u64),
    }
    (mean.n >= INTERVALS_MIN as u64).then_some(mean)
}

fn processors(traces: &[Trace<'_>], common: &[&String]) -> Vec<ComparedProcessor> {
    let mut all: BTreeMap<u64, ComparedProcessor> = BTreeMap::new();
    for (place, trace) in traces.iter().enumerate() {
        let mut times: BTreeMap<u64, i64> = BTreeMap::new();
        for work in trace.works.iter().filter(|work| is_common(work, common)) {
            for (cpu, ns) in &work.cpus {
                let sum = times.entry(*cpu).or_default();
                *sum = sum.saturating_add(*ns);
            }
        }
        let is_known = !common.is_empty() && !trace.of_intervals();
        for one in &trace.report.processors {
            let row = all.entry(one.cpu).or_insert_with(|| ComparedProcessor {
                cpu: one.cpu,
                node: one.node,
                shares: vec![None; traces.len()],
            });
            let time = times.get(&one.cpu).copied().unwrap_or(0);
            if let Some(share) = row.shares.get_mut(place).filter(|_| is_known) {
                *share = Some(time as f64 / trace.length_ns() as f64);
            }
        }
    }
    all.into_values().collect()
}

/// Pairs of names of which one lost about what the other one gained, from the first trace to the last.
fn moved(groups: &[ComparedGroup]) -> Vec<Moved> {
    let is_sure = |group: &&ComparedGroup| group.changes.last().is_some_and(|it| it.significant);
    let last = |group: &ComparedGroup| -> f64 {
        group.changes.last().and_then(|change| change.load).unwrap_or(0.0)
    };
    let significant = groups.iter().filter(is_sure);
    let (mut losing, mut gaining): (Vec<_>, Vec<_>) =
        significant.partition(|group| last(group) < 0.0);
    losing.sort_by(|a, b| last(a).total_cmp(&last(b)));
    gaining.sort_by(|a, b| last(b).total_cmp(&last(a)));
    let title = |group: &ComparedGroup| {
        format!("{} ({})", group.name.as_deref().unwrap_or("without a name"), group.kind)
    };
    let mut moved = Vec::new();
    for from in losing {
        let lost = -last(from);
        let fits = |to: &&ComparedGroup| {
            let gained = last(to);
            gained >= MOVED_MIN && gained >= MOVED_SHARE * lost && gained <= lost / MOVED_SHARE
        };
        if lost >= MOVED_MIN
            && let Some(place) = gaining.iter().position(fits)
        {
            let to = gaining.remove(place);
            let gained = last(to);
            moved.push(Moved { from: title(from), to: title(to), lost, gained });
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::processors::{InterruptGroup, Recorded, TotalModule, Totals};

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
        let recorded = Recorded { families: vec!["dpc".to_owned()], ..Recorded::default() };
        Report { length_ns: 10_000_000, interrupts: groups, recorded, ..Report::default() }
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

    /// The kinds that a trace did not record neither come nor go.
    #[test]
    fn what_one_trace_did_not_record_is_not_compared() {
        let full = |mean: i64| (0..11).map(|n| mean + n * 1_000).collect::<Vec<_>>();
        let timer =
            InterruptGroup { kind: "irq".to_owned(), ..group("local_timer", &full(500_000)) };
        let mut a = report(vec![group("ndis.sys", &full(900_000)), timer]);
        a.recorded.families.push("local_timer".to_owned());
        let b = report(vec![group("other.sys", &full(900_000))]);
        for (first, last) in [(&a, &b), (&b, &a)] {
            let found = compare(&[first.clone(), last.clone()]);
            let of = |name: &str| {
                found.groups.iter().find(|one| one.name.as_deref() == Some(name)).unwrap()
            };
            assert_eq!(of("local_timer").changes[0], Change::default());
            // The same event, but no run of it: that is known.
            assert!(of("ndis.sys").changes[0].significant);
            let all: Vec<_> = found.all.iter().map(|load| (load.unwrap() * 100.0) as i64).collect();
            assert_eq!(all[0], all[1], "without the timer: {:?}", found.all);
            let missing: Vec<_> = found.missing.iter().map(Vec::len).collect();
            assert_eq!(missing.iter().sum::<usize>(), 1);
            assert_eq!(found.groups.last().unwrap().name.as_deref(), Some("local_timer"));
        }
        // A trace that has samples only.
        let found = compare(&[a, Report { length_ns: 5, ..Report::default() }]);
        assert!(found.groups.iter().all(|group| group.changes[0] == Change::default()));
        assert_eq!(found.all, [None, None]);
    }

    #[test]
    fn sums_are_compared_with_runs_by_module() {
        let runs =
            InterruptGroup { kind: "timer_dpc".to_owned(), ..group("ndis.sys", &[500_000; 11]) };
        let a = report(vec![group("ndis.sys", &[500_000; 11]), runs]);
        let module = TotalModule {
            kind: "dpc".to_owned(),
            name: "ndis.sys".to_owned(),
            duration_ns: 6_000_000,
            count: Some(10),
            cpus: vec![3],
            cpus_ns: vec![6_000_000],
            ..TotalModule::default()
        };
        let totals = Totals { modules: vec![module], covered_ns: 10_000_000, ..Totals::default() };
        let b = Report { totals: Some(totals), ..report(Vec::new()) };
        let found = compare(&[a, b]);
        let [ndis] = &found.groups[..] else { panic!("{:?}", found.groups) };
        assert_eq!((ndis.kind.as_str(), ndis.sides[1].as_ref().unwrap().count), ("dpc", Some(10)));
        let change = ndis.changes[0];
        assert!((change.load.unwrap() + 0.5).abs() < 1e-9, "{change:?}");
        assert_eq!((change.p, change.significant), (None, false));
        assert!((found.all[1].unwrap() - 0.6).abs() < 1e-9);
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

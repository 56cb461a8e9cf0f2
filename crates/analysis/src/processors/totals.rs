//! Sums of interrupts and deferred work from inputs that have no single ones (`xperf -a dpcisr`).
//!
//! Durations are known as numbers of runs between bounds. If the limit is between two bounds, the number of runs above it
//! is known as a range.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use smbscope_tables::tables::InterruptTotal;

use super::{Class, Limits};

/// Most kinds and names.
const GROUPS_MAX: usize = 4096;
/// Most CPUs.
const CPUS_MAX: usize = 8192;

/// What is known of interrupts and deferred work without single ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Time that the sums of CPUs are about.
    pub covered_ns: i64,
    /// Whether they come from the intervals of the input, because a period was selected that its whole sums cannot be
    /// cut to: there are no modules then.
    pub of_intervals: bool,
    pub cpus: Vec<TotalCpu>,
    /// By kind and name, the most time first.
    pub modules: Vec<TotalModule>,
}

/// The time of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TotalCpu {
    pub cpu: u64,
    /// Null if the input does not have them.
    pub deferred_ns: Option<i64>,
    pub interrupt_ns: Option<i64>,
    /// Both as parts of the covered time.
    pub deferred_share: Option<f64>,
    pub interrupt_share: Option<f64>,
    /// The highest share of both in one interval, and when that begins; null without intervals.
    pub highest_share: Option<f64>,
    pub highest_start_ns: Option<i64>,
}

/// Interrupts or deferred work of one module.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TotalModule {
    pub kind: String,
    pub name: String,
    pub duration_ns: i64,
    /// The same as a part of the time of all CPUs.
    pub share: Option<f64>,
    /// Number of runs; null without a histogram.
    pub count: Option<u64>,
    pub mean_ns: Option<i64>,
    pub limit_ns: i64,
    /// The least and the greatest possible number of runs above the limit.
    pub over_limit_least: Option<u64>,
    pub over_limit_most: Option<u64>,
    /// The longest took longer than this.
    pub longest_above_ns: Option<i64>,
    /// The CPUs on which it ran, the most time first.
    pub cpus: Vec<u64>,
    /// Its time on each of these, ns.
    pub cpus_ns: Vec<i64>,
    pub histogram: Vec<TotalBucket>,
}

/// Runs whose duration is between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TotalBucket {
    pub above_ns: i64,
    /// Null for the last one.
    pub up_to_ns: Option<i64>,
    pub count: u64,
}

#[derive(Debug, Default)]
struct Group {
    by_cpu: BTreeMap<u64, i64>,
    histogram: BTreeMap<i64, TotalBucket>,
}

#[derive(Debug, Default)]
struct OfCpu {
    whole: Times,
    /// By recording, begin and end.
    intervals: BTreeMap<(String, i64, i64), Times>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    deferred_ns: i64,
    interrupt_ns: i64,
}

impl Times {
    fn add(&mut self, class: Class, ns: i64) {
        let sum = match class {
            Class::Deferred => &mut self.deferred_ns,
            Class::Interrupt => &mut self.interrupt_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    fn merge(&mut self, other: Times) {
        self.add(Class::Deferred, other.deferred_ns);
        self.add(Class::Interrupt, other.interrupt_ns);
    }

    fn both(self) -> i64 {
        self.deferred_ns.saturating_add(self.interrupt_ns)
    }
}

/// Which classes occur.
#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    deferred: bool,
    interrupt: bool,
}

impl Classes {
    fn add(&mut self, class: Class) {
        match class {
            Class::Deferred => self.deferred = true,
            Class::Interrupt => self.interrupt = true,
        }
    }
}

/// Adds up the rows.
#[derive(Debug, Default)]
pub(super) struct Sums {
    groups: BTreeMap<(String, String), Group>,
    cpus: BTreeMap<u64, OfCpu>,
    of_whole: Classes,
    of_intervals: Classes,
    discarded: u64,
}

impl Sums {
    pub(super) fn add(&mut self, rows: &[InterruptTotal]) {
        for row in rows {
            if self.row(row).is_none() {
                self.discarded += 1;
            }
        }
    }

    /// `None` if there is no room for it.
    fn row(&mut self, row: &InterruptTotal) -> Option<()> {
        if let (Some(cpu), Some(time)) = (row.cpu, row.duration_ns) {
            if self.cpus.len() >= CPUS_MAX && !self.cpus.contains_key(&cpu) {
                return None;
            }
            let of_cpu = self.cpus.entry(cpu).or_default();
            let class = Class::from_kind(&row.kind);
            let (sum, classes) = match &row.name {
                None => {
                    let key = (row.recording.clone(), row.start, row.end);
                    (of_cpu.intervals.entry(key).or_default(), &mut self.of_intervals)
                }
                Some(_) => (&mut of_cpu.whole, &mut self.of_whole),
            };
            sum.add(class, time);
            classes.add(class);
        }
        let Some(name) = &row.name else { return Some(()) };
        let key = (row.kind.clone(), name.clone());
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&key) {
            return None;
        }
        let group = self.groups.entry(key).or_default();
        if let (Some(cpu), Some(time)) = (row.cpu, row.duration_ns) {
            let sum = group.by_cpu.entry(cpu).or_default();
            *sum = sum.saturating_add(time);
        }
        if let (Some(above_ns), Some(count)) = (row.above_ns, row.count) {
            let bucket = TotalBucket { above_ns, up_to_ns: row.up_to_ns, count: 0 };
            let bucket = group.histogram.entry(above_ns).or_insert(bucket);
            bucket.count = bucket.count.saturating_add(count);
        }
        Some(())
    }

    /// The result, `None` if there were no rows, and how many rows were left out.
    pub(super) fn finish(self, length_ns: i64, limits: Limits) -> (Option<Totals>, u64) {
        if self.groups.is_empty() && self.cpus.is_empty() {
            return (None, self.discarded);
        }
        let part = |time: i64, whole: i64| (whole > 0).then(|| time as f64 / whole as f64);
        let of_intervals = !self.of_whole.deferred && !self.of_whole.interrupt;
        let classes = if of_intervals { self.of_intervals } else { self.of_whole };
        let keys: BTreeSet<_> = self.cpus.values().flat_map(|of| of.intervals.keys()).collect();
        let covered_ns = if of_intervals {
            keys.iter()
                .fold(0_i64, |sum, key| sum.saturating_add(key.2.saturating_sub(key.1).max(0)))
        } else {
            length_ns
        };
        let cpus = self.cpus.iter().map(|(&cpu, of)| {
            let shares = of.intervals.iter().filter_map(|((_, start, end), times)| {
                Some((part(times.both(), end.saturating_sub(*start))?, *start))
            });
            let mut times = of.whole;
            if of_intervals {
                of.intervals.values().for_each(|one| times.merge(*one));
            }
            let deferred_ns = Some(times.deferred_ns).filter(|_| classes.deferred);
            let interrupt_ns = Some(times.interrupt_ns).filter(|_| classes.interrupt);
            let highest = shares.max_by(|a, b| a.0.total_cmp(&b.0));
            TotalCpu {
                cpu,
                deferred_ns,
                interrupt_ns,
                deferred_share: deferred_ns.and_then(|ns| part(ns, covered_ns)),
                interrupt_share: interrupt_ns.and_then(|ns| part(ns, covered_ns)),
                highest_share: highest.map(|(share, _)| share),
                highest_start_ns: highest.map(|(_, start)| start),
            }
        });
        let cpus: Vec<TotalCpu> = cpus.collect();
        let whole = length_ns.saturating_mul(i64::try_from(cpus.len()).unwrap_or(i64::MAX));
        let modules = self.groups.into_iter().map(|((kind, name), group)| {
            let limit_ns = match Class::from_kind(&kind) {
                Class::Deferred => limits.deferred_ns,
                Class::Interrupt => limits.interrupt_ns,
            };
            module(kind, name, group, limit_ns, whole)
        });
        let mut modules: Vec<TotalModule> = modules.collect();
        modules.sort_by_key(|module| Reverse(module.duration_ns));
        (Some(Totals { covered_ns, of_intervals, cpus, modules }), self.discarded)
    }
}

fn module(kind: String, name: String, group: Group, limit_ns: i64, whole: i64) -> TotalModule {
    let duration_ns = group.by_cpu.values().fold(0_i64, |sum, time| sum.saturating_add(*time));
    let histogram: Vec<TotalBucket> = group.histogram.into_values().collect();
    let of = |is_counted: &dyn Fn(&TotalBucket) -> bool| {
        let counted = histogram.iter().filter(|bucket| is_counted(bucket));
        counted.fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count))
    };
    let known = |count: u64| (!histogram.is_empty()).then_some(count);
    let count = known(of(&|_| true));
    let least = of(&|bucket| bucket.above_ns >= limit_ns);
    let most = of(&|bucket| bucket.up_to_ns.is_none_or(|up_to| up_to > limit_ns));
    let mut cpus: Vec<(i64, u64)> =
        group.by_cpu.into_iter().map(|(cpu, time)| (time, cpu)).collect();
    cpus.sort_unstable_by_key(|&(time, cpu)| (Reverse(time), cpu));
    TotalModule {
        kind,
        name,
        duration_ns,
        share: (whole > 0).then(|| duration_ns as f64 / whole as f64),
        count,
        mean_ns: count
            .filter(|&count| count > 0)
            .map(|count| duration_ns / i64::try_from(count).unwrap_or(i64::MAX)),
        limit_ns,
        over_limit_least: known(least),
        over_limit_most: known(most),
        longest_above_ns: histogram
            .iter()
            .rev()
            .find(|bucket| bucket.count > 0)
            .map(|bucket| bucket.above_ns),
        cpus: cpus.iter().map(|(_, cpu)| *cpu).collect(),
        cpus_ns: cpus.iter().map(|(time, _)| *time).collect(),
        histogram,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, name: Option<&str>) -> InterruptTotal {
        InterruptTotal {
            kind: kind.into(),
            name: name.map(str::to_owned),
            start: 0,
            end: 2_000_000,
            ..InterruptTotal::default()
        }
    }

    fn time(kind: &str, name: Option<&str>, cpu: u64, duration: i64) -> InterruptTotal {
        InterruptTotal { cpu: Some(cpu), duration_ns: Some(duration), ..row(kind, name) }
    }

    fn bucket(
        kind: &str,
        name: &str,
        above: i64,
        up_to: Option<i64>,
        count: u64,
    ) -> InterruptTotal {
        let (above_ns, count) = (Some(above), Some(count));
        InterruptTotal { above_ns, up_to_ns: up_to, count, ..row(kind, Some(name)) }
    }

    #[test]
    fn sums_have_shares_and_a_limit_within_a_bucket_gives_a_range() {
        let mut sums = Sums::default();
        let interval = |kind, start, duration| InterruptTotal {
            start,
            end: start + 1_000_000,
            ..time(kind, None, 0, duration)
        };
        sums.add(&[
            time("dpc", Some("ndis.sys"), 2, 100_000),
            time("dpc", Some("ndis.sys"), 0, 1_000_000),
            time("isr", Some("nic.sys"), 0, 400_000),
            bucket("dpc", "ndis.sys", 32_000, Some(64_000), 2),
            bucket("dpc", "ndis.sys", 64_000, Some(128_000), 3),
            bucket("dpc", "ndis.sys", 128_000, Some(256_000), 5),
            bucket("dpc", "ndis.sys", 2_048_000, None, 0),
            interval("dpc", 0, 500_000),
            interval("dpc", 1_000_000, 800_000),
            interval("isr", 1_000_000, 100_000),
        ]);
        let (totals, discarded) = sums.finish(2_000_000, Limits::default());
        let Totals { cpus, modules, covered_ns, of_intervals } = totals.unwrap();
        assert_eq!((covered_ns, of_intervals), (2_000_000, false));
        assert_eq!(discarded, 0);
        assert_eq!((cpus[0].deferred_share, cpus[0].interrupt_share), (Some(0.5), Some(0.2)));
        assert_eq!((cpus[0].highest_share, cpus[0].highest_start_ns), (Some(0.9), Some(1_000_000)));
        assert_eq!((cpus[1].cpu, cpus[1].highest_share), (2, None));
        let [ndis, nic] = &modules[..] else { panic!() };
        assert_eq!(
            (ndis.duration_ns, ndis.count, ndis.mean_ns),
            (1_100_000, Some(10), Some(110_000))
        );
        // 100 µs lie between 64 and 128.
        assert_eq!((ndis.over_limit_least, ndis.over_limit_most), (Some(5), Some(8)));
        assert_eq!((ndis.longest_above_ns, &ndis.cpus[..]), (Some(128_000), &[0, 2][..]));
        assert_eq!(ndis.cpus_ns, [1_000_000, 100_000]);
        assert_eq!(ndis.share, Some(1_100_000.0 / 4e6));
        assert_eq!((nic.count, nic.mean_ns, nic.over_limit_most), (None, None, None));
        assert_eq!(Sums::default().finish(1, Limits::default()).0, None);
    }

    #[test]
    fn a_period_has_the_time_of_its_intervals() {
        let mut sums = Sums::default();
        // What the filter of the period leaves: one of two intervals, and none of the whole sums.
        let interval = |cpu, ns| InterruptTotal { start: 1_000_000, ..time("dpc", None, cpu, ns) };
        sums.add(&[interval(0, 210_000), interval(1, 0)]);
        let totals = sums.finish(1_500_000, Limits::default()).0.unwrap();
        assert_eq!((totals.covered_ns, totals.of_intervals), (1_000_000, true));
        assert_eq!(totals.cpus[0].deferred_share, Some(0.21));
        assert_eq!(totals.cpus[1].deferred_ns, Some(0));
        // The input has no intervals of handlers.
        assert_eq!((totals.cpus[0].interrupt_ns, totals.modules.len()), (None, 0));
    }
}

//! Interrupts and deferred work by name, whether a trace has single runs of them or sums.

use std::collections::BTreeMap;

use super::data::{InterruptGroup, Report};
use super::totals::TotalModule;

/// Interrupts of the local APIC, each of which a tracer of Linux can record without the others.
const VECTORS: [&str; 11] = [
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "spurious_apic",
    "error_apic",
    "x86_platform_ipi",
    "thermal_apic",
    "threshold_apic",
    "deferred_error_apic",
];

/// What has to be switched on to record it.
pub(super) fn family<'a>(kind: &'a str, name: Option<&'a str>) -> &'a str {
    match (kind, name) {
        ("irq" | "ipi", Some(name)) if VECTORS.contains(&name) => name,
        ("dpc" | "timer_dpc" | "threaded_dpc", _) => "dpc",
        ("isr" | "isr_msi", _) => "isr",
        _ => kind,
    }
}

/// One name. Sums have no single durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Work {
    pub(super) kind: String,
    pub(super) name: Option<String>,
    pub(super) count: Option<u64>,
    pub(super) time_ns: i64,
    /// The most time first.
    pub(super) cpus: Vec<(u64, i64)>,
    pub(super) mean_ns: Option<i64>,
    pub(super) p95_ns: Option<i64>,
    pub(super) max_ns: Option<i64>,
    pub(super) over_limit: Option<u64>,
    pub(super) interval_ns: i64,
    pub(super) intervals: Vec<i64>,
}

impl Work {
    pub(super) fn family(&self) -> &str {
        family(&self.kind, self.name.as_deref())
    }

    fn of_group(group: &InterruptGroup) -> Work {
        Work {
            kind: group.kind.clone(),
            name: group.name.clone(),
            count: Some(group.count),
            time_ns: group.exclusive_ns,
            cpus: group.cpus.iter().map(|one| (one.cpu, one.exclusive_ns)).collect(),
            mean_ns: group.duration.mean_ns,
            p95_ns: group.duration.p95_ns,
            max_ns: group.duration.max_ns,
            over_limit: Some(group.over_limit),
            interval_ns: group.interval_ns,
            intervals: group.intervals.clone(),
        }
    }

    fn of_module(module: &TotalModule) -> Work {
        Work {
            kind: module.kind.clone(),
            name: Some(module.name.clone()),
            count: module.count,
            time_ns: module.duration_ns,
            cpus: module.cpus.iter().copied().zip(module.cpus_ns.iter().copied()).collect(),
            mean_ns: module.mean_ns,
            over_limit: module
                .over_limit_least
                .filter(|least| Some(*least) == module.over_limit_most),
            ..Work::default()
        }
    }

    /// Adds work of the same name and another kind.
    fn merge(&mut self, other: Work) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let mean = |work: &Work| Some(work.mean_ns? as f64 * work.count? as f64);
        let means = mean(self).zip(mean(&other));
        self.count = sum(self.count, other.count);
        self.over_limit = sum(self.over_limit, other.over_limit);
        self.mean_ns =
            means.zip(self.count).map(|((a, b), count)| ((a + b) / count.max(1) as f64) as i64);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        (self.p95_ns, self.max_ns) = (None, self.max_ns.max(other.max_ns));
        let mut cpus: BTreeMap<u64, i64> = self.cpus.iter().copied().collect();
        for (cpu, ns) in other.cpus {
            let sum = cpus.entry(cpu).or_default();
            *sum = sum.saturating_add(ns);
        }
        self.cpus = cpus.into_iter().collect();
        self.cpus.sort_by_key(|(cpu, ns)| (std::cmp::Reverse(*ns), *cpu));
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), 0);
        }
        for (sum, ns) in self.intervals.iter_mut().zip(other.intervals) {
            *sum = sum.saturating_add(ns);
        }
    }
}

/// Everything that a report has, the most time first.
pub(super) fn all(report: &Report) -> Vec<Work> {
    let modules = report.totals.iter().flat_map(|totals| &totals.modules);
    let mut all: Vec<_> =
        report.interrupts.iter().map(Work::of_group).chain(modules.map(Work::of_module)).collect();
    all.sort_by_key(|work| std::cmp::Reverse(work.time_ns));
    all
}

/// The same with kinds as sums have them: all DPCs are one kind, and so are all ISRs.
pub(super) fn coarse(report: &Report) -> Vec<Work> {
    let mut merged: BTreeMap<(String, Option<String>), Work> = BTreeMap::new();
    for mut work in all(report) {
        work.kind = match work.family() {
            family @ ("dpc" | "isr") => family.to_owned(),
            _ => work.kind,
        };
        match merged.get_mut(&(work.kind.clone(), work.name.clone())) {
            Some(known) => known.merge(work),
            None => drop(merged.insert((work.kind.clone(), work.name.clone()), work)),
        }
    }
    merged.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_by_one_event_is_one_family() {
        assert_eq!(family("softirq", Some("NET_RX")), "softirq");
        assert_eq!(family("irq", Some("local_timer")), "local_timer");
        assert_eq!(family("irq", Some("eth0-rx-0")), "irq");
        assert_eq!(family("ipi", Some("call_function")), "call_function");
        assert_eq!((family("timer_dpc", None), family("isr_msi", None)), ("dpc", "isr"));
    }

    #[test]
    fn work_of_one_name_is_added_up() {
        let work = |count, time_ns, cpus: &[(u64, i64)]| Work {
            count: Some(count),
            time_ns,
            mean_ns: Some(time_ns / count as i64),
            cpus: cpus.to_vec(),
            intervals: vec![time_ns],
            over_limit: Some(1),
            ..Work::default()
        };
        let mut sum = work(2, 20, &[(0, 20)]);
        sum.merge(work(3, 60, &[(1, 50), (0, 10)]));
        assert_eq!((sum.count, sum.time_ns, sum.mean_ns), (Some(5), 80, Some(16)));
        assert_eq!((sum.over_limit, &sum.cpus[..]), (Some(2), &[(1, 50), (0, 30)][..]));
        assert_eq!(sum.intervals, [80]);
    }
}

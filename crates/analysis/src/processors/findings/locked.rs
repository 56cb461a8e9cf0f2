//! Interrupt work that holds CPUs: all the time, for a part of the trace, or by samples.

use smbscope_findings::{Confidence, KindInfo};

use super::words::grouped;
use super::{Finding, ProcessorFindingKind, busy, figure, finding, name, numbers, seconds};
use crate::processors::data::Report;
use crate::processors::held::{Axis, HELD_SHARE};
use crate::processors::work::{self, Work};

pub(super) const KIND: KindInfo = KindInfo::new(
    "locked-processors",
    "Interrupt work holds CPUs",
).with_remedies(&[
        ("Windows", "see which drivers are in the receive path (other findings), and update or remove those that are not needed: Get-NetAdapterBinding -AllBindings"),
        ("Windows", "spread the receive work: Get-NetAdapterRss, then Set-NetAdapterRss -BaseProcessorNumber ... -NumberOfReceiveQueues ..."),
        ("Windows before 2012", "see which drivers are in the receive path (other findings), and update or remove those that are not needed: driverquery /v, the bindings of each connection (ncpa.cpl)"),
        ("Windows before 2012", "spread the receive work: netsh int tcp set global rss=enabled, and base and number of CPUs of each adapter in the Advanced tab of its driver"),
        ("Linux", "spread the receive work over queues and CPUs: ethtool -l DEV, ethtool -L DEV combined N, /proc/irq/N/smp_affinity_list"),
        ("Linux", "see what runs in the softirq: perf record -a -g -e cpu-clock -F 99 -- sleep 10, and read it with smbscope"),
]);

/// CPUs are held at the same time if periods begin and end within this part of the trace.
const SAME_SHARE: f64 = 0.02;
/// Fewest samples of a CPU that say that it is held.
const LOCKED_SAMPLES: u64 = 50;
/// CPUs that are held at the same time.
struct Held {
    since_ns: Option<i64>,
    until_ns: Option<i64>,
    cpus: Vec<u64>,
    /// Length of the period for all of these, and the time of interrupt work in it.
    possible_ns: i64,
    work_ns: i64,
    /// Most periods of one of them.
    periods: usize,
}

/// What holds CPUs all the time, and those that are held for a part of the trace.
pub(super) fn locked(report: &Report) -> Vec<Finding> {
    let found = held(report);
    let found = found.iter().map(|held| locked_by(report, held));
    found.chain(locked_by_samples(report)).collect()
}

fn held(report: &Report) -> Vec<Held> {
    let extent = report.extent_ns();
    let axis = report.timeline.as_ref().zip(extent);
    let axis = axis.map(|(timeline, (start_ns, end_ns))| Axis { timeline, start_ns, end_ns });
    let mut all: Vec<Held> = Vec::new();
    for one in &report.processors {
        let is_held = busy(one) >= HELD_SHARE;
        let lane = axis.as_ref().and_then(|axis| {
            axis.timeline.cpus.iter().find(|lane| lane.cpu == one.cpu).map(|lane| (axis, lane))
        });
        let periods = lane.map_or_else(Vec::new, |(axis, lane)| axis.periods(lane));
        let longest = lane.zip(periods.first()).map(|((axis, lane), period)| {
            (axis.bounds(*period), axis.times(lane, *period), axis.timeline.bin_ns)
        });
        let ((since_ns, until_ns), (possible_ns, work_ns), bin_ns) = match longest {
            Some(((None, None), _, bin_ns)) if is_held => {
                ((None, None), (report.length_ns, one.busy_ns().unwrap_or(0)), bin_ns)
            }
            Some(longest) => longest,
            None if is_held => ((None, None), (report.length_ns, one.busy_ns().unwrap_or(0)), 0),
            None => continue,
        };
        // What begins and ends at about the same time is one thing.
        let slack = bin_ns.saturating_mul(2).max((SAME_SHARE * report.length_ns as f64) as i64);
        let near = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => a.saturating_sub(b).saturating_abs() <= slack,
            (a, b) => a.is_none() && b.is_none(),
        };
        let same = |held: &Held| near(held.since_ns, since_ns) && near(held.until_ns, until_ns);
        let new =
            Held { since_ns, until_ns, cpus: Vec::new(), possible_ns: 0, work_ns: 0, periods: 0 };
        let held = match all.iter().position(same) {
            Some(place) => all.get_mut(place),
            None => {
                all.push(new);
                all.last_mut()
            }
        };
        let Some(held) = held else { continue };
        held.since_ns = held.since_ns.min(since_ns);
        held.until_ns = held.until_ns.max(until_ns);
        held.cpus.push(one.cpu);
        held.possible_ns = held.possible_ns.saturating_add(possible_ns);
        held.work_ns = held.work_ns.saturating_add(work_ns);
        held.periods = held.periods.max(periods.len());
    }
    all
}

/// When it was, in words, and how long.
fn when(report: &Report, held: &Held) -> String {
    let start = report.start_ns.unwrap_or(0);
    let after = |time: i64| format!("{:.1} s", seconds(time.saturating_sub(start)));
    let length = seconds(held.possible_ns / (held.cpus.len().max(1) as i64));
    match (held.since_ns, held.until_ns) {
        (None, None) => String::new(),
        (Some(since), None) => {
            format!(", since {} after the start ({length:.1} s)", after(since))
        }
        (None, Some(until)) => {
            format!(", until {} after the start ({length:.1} s)", after(until))
        }
        (Some(since), Some(until)) => {
            format!(", from {} to {} after the start ({length:.1} s)", after(since), after(until))
        }
    }
}

fn locked_by(report: &Report, held: &Held) -> Finding {
    let cpus = &held.cpus;
    let share = held.work_ns as f64 / held.possible_ns.max(1) as f64;
    let on_held = |work: &Work| -> i64 {
        let on = work.cpus.iter().filter(|(cpu, _)| cpus.contains(cpu));
        on.fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    };
    let works = work::all(report);
    let most = works.iter().max_by_key(|work| on_held(work));
    let is_partly = held.since_ns.is_some() || held.until_ns.is_some();
    let of = match (report.processors.len(), cpus.len()) {
        (all, some) if all > some => format!(" of {all}"),
        _ => String::new(),
    };
    let mut what = format!(
        "CPU {}{of}{}: {:.0} % of {} time goes to interrupts and deferred work",
        numbers(cpus),
        when(report, held),
        100.0 * share,
        if is_partly { "that" } else { "the" },
    );
    let mut figures =
        vec![figure("processors", cpus.len() as f64, ""), figure("held_share", share, "share")];
    let because = match most {
        Some(most) => {
            let most_ns = on_held(most);
            what += &if is_partly {
                format!(
                    " ({:.1} of {:.1} possible CPU seconds); most of the interrupt work on {} in the whole trace is {} ({})",
                    seconds(held.work_ns),
                    seconds(held.possible_ns),
                    if cpus.len() == 1 { "it" } else { "them" },
                    name(most.name.as_deref()),
                    most.kind,
                )
            } else {
                format!(
                    ", most of it to {} ({}): {:.1} of {:.1} possible CPU seconds",
                    name(most.name.as_deref()),
                    most.kind,
                    seconds(most_ns),
                    seconds(held.possible_ns),
                )
            };
            figures.push(figure("most_ns", most_ns as f64, "ns"));
            match (report.totals.is_some(), most.count) {
                (true, _) => "the input has sums of the time on each CPU".to_owned(),
                (false, Some(count)) => format!(
                    "each run was recorded with its beginning and end ({} runs)",
                    grouped(count)
                ),
                (false, None) => "each run was recorded with its beginning and end".to_owned(),
            }
        }
        None => "the input has sums of the time on each CPU in intervals".to_owned(),
    };
    if held.periods > 1 {
        what += &format!("; {} such periods, this is the longest", held.periods);
        figures.push(figure("periods", held.periods as f64, ""));
    }
    let cost = (Some(held.work_ns), held.cpus.clone());
    let kind = ProcessorFindingKind::LockedProcessors;
    finding(kind, what, cost, (Confidence::Measured, because))
        .with_period(held.since_ns, held.until_ns)
        .with_figures(figures)
}

/// The same for a trace that has samples only.
fn locked_by_samples(report: &Report) -> Option<Finding> {
    if report.recorded.any() {
        return None;
    }
    let held: Vec<_> = report
        .processors
        .iter()
        .filter_map(|one| Some((one, one.sampled.filter(|it| it.busy() >= HELD_SHARE)?)))
        .filter(|(one, _)| one.samples.all >= LOCKED_SAMPLES)
        .collect();
    if held.is_empty() {
        return None;
    }
    let of_time = held.iter().all(|(_, shares)| shares.of_time);
    let mean = held.iter().map(|(_, shares)| shares.busy()).sum::<f64>() / held.len() as f64;
    let cpus: Vec<u64> = held.iter().map(|(one, _)| one.cpu).collect();
    let samples: u64 =
        held.iter().map(|(one, _)| one.samples.interrupt + one.samples.deferred).sum();
    let what = format!(
        "CPU {} of {}: {:.0} % of the {} in interrupts and deferred work; how much of the time each name takes was not recorded",
        numbers(&cpus),
        report.processors.len(),
        100.0 * mean,
        if of_time { "time is, by samples," } else { "samples are" },
    );
    let (confidence, but) = if of_time {
        (Confidence::Likely, "")
    } else {
        let but = "; a CPU that is not sampled while it is idle looks busier than it is";
        (Confidence::Possible, but)
    };
    let because = format!("{} samples hit interrupts and deferred work{but}", grouped(samples));
    let figures = [
        figure("processors", cpus.len() as f64, ""),
        figure("held_share", mean, "share"),
        figure("samples", samples as f64, ""),
    ];
    let kind = ProcessorFindingKind::LockedProcessors;
    Some(finding(kind, what, (None, cpus), (confidence, because)).with_figures(figures))
}

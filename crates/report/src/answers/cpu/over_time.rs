//! CPUs over time, and durations as charts.

use std::collections::BTreeMap;

use smbscope_analysis::processors::{InterruptGroup, Processor, Report};

use crate::answers::cpu::ranks::DurationRanks;
use crate::answers::cpu::strip::{CpuStrip, StripRow};
use crate::document::{Block, Histograms};
use crate::value::format;

/// Names that a chart of durations shows.
const NAMES: usize = 5;
/// Bounds of the histograms that durations of interrupts reach, ns.
const SHORTEST_NS: i64 = 1_000;

/// Node and socket.
type Place = (Option<u64>, Option<u64>);

/// A strip for each CPU, grouped by node and socket; hyper-threads of a core are neighbours.
pub(super) fn strip(report: &Report) -> Option<CpuStrip> {
    let timeline = report.timeline.as_ref()?;
    let place = |cpu: u64| report.processors.iter().find(|one| one.cpu == cpu);
    let mut groups: BTreeMap<Place, Vec<(Option<u64>, u64, StripRow)>> = BTreeMap::new();
    // The first bin is partly before the start, and the last one partly behind the end.
    let bins_end = timeline.start_ns.saturating_add(timeline.bin_ns * timeline.bins as i64);
    let (start_ns, end_ns) = report.extent_ns().unwrap_or((timeline.start_ns, bins_end));
    for processor in &report.processors {
        let lane = timeline.cpus.iter().find(|lane| lane.cpu == processor.cpu);
        let shares = (0..timeline.bins as usize).map(|bin| {
            let of = |bins: &[i64]| bins.get(bin).copied().unwrap_or(0);
            let busy = lane.map_or(0, |lane| of(&lane.deferred_ns) + of(&lane.interrupt_ns));
            let begin = timeline.start_ns.saturating_add(timeline.bin_ns * bin as i64);
            let within = begin
                .saturating_add(timeline.bin_ns)
                .min(end_ns)
                .saturating_sub(begin.max(start_ns));
            let whole = within.clamp(timeline.bin_ns / 20, timeline.bin_ns).max(1);
            (busy as f64 / whole as f64).min(1.0)
        });
        let row = StripRow {
            label: label(processor),
            words: processor.busy_share().map_or_else(|| "–".to_owned(), format::share),
            shares: shares.collect(),
        };
        let known = place(processor.cpu);
        let key = known.map_or((None, None), |one| (one.node, one.socket));
        let core = known.and_then(|one| one.core);
        groups.entry(key).or_default().push((core, processor.cpu, row));
    }
    let groups = groups.into_iter().map(|((node, socket), mut rows)| {
        rows.sort_by_key(|(core, cpu, _)| (*core, *cpu));
        let words =
            [node.map(|node| format!("NUMA node {node}")), socket.map(|it| format!("socket {it}"))];
        let name = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
        (name, rows.into_iter().map(|(.., row)| row).collect())
    });
    Some(CpuStrip {
        caption: "Interrupts and deferred work over time".to_owned(),
        help: "Dark where a CPU has no time for threads.".to_owned(),
        bin_ns: timeline.bin_ns,
        before_ns: start_ns.saturating_sub(timeline.start_ns).clamp(0, timeline.bin_ns),
        whole_ns: end_ns.saturating_sub(start_ns),
        groups: groups.collect(),
    })
}

fn label(one: &Processor) -> String {
    match one.thread {
        Some(1..) => format!("CPU {} (HT)", one.cpu),
        _ => format!("CPU {}", one.cpu),
    }
}

/// Durations in order of size with the limits, and as histograms.
pub(super) fn durations(report: &Report) -> Vec<Block> {
    let shown: Vec<&InterruptGroup> =
        report.interrupts.iter().filter(|group| group.duration.n > 0).take(NAMES).collect();
    if shown.is_empty() {
        return Vec::new();
    }
    let name = |group: &InterruptGroup| {
        format!("{} ({})", group.name.as_deref().unwrap_or("without a name"), group.kind)
    };
    let lines = shown.iter().map(|group| {
        let points = group.longest.iter();
        (name(group), points.map(|one| (one.count as f64, one.duration_ns as f64)).collect())
    });
    let limits = [
        ("deferred work", report.limits.deferred_ns),
        ("handlers of interrupts", report.limits.interrupt_ns),
    ];
    let ranks = DurationRanks {
        caption: "Durations in order of size".to_owned(),
        help: "How many runs (to the right) take at least so long (upwards).".to_owned(),
        lines: lines.collect(),
        limits: limits
            .map(|(what, ns)| (format!("limit of {what}, {}", format::duration(ns)), ns as f64))
            .to_vec(),
    };
    vec![
        Block::drawing(ranks),
        Block::fold("Histograms", vec![Block::chart(histograms(&shown, name))]),
    ]
}

fn histograms(shown: &[&InterruptGroup], name: impl Fn(&InterruptGroup) -> String) -> Histograms {
    use smbscope_analysis::summary::BOUNDS_NS;
    let counts = |group: &InterruptGroup| group.duration.histogram.clone().unwrap_or_default();
    let used =
        |place: &usize| shown.iter().any(|group| counts(group).get(*place).is_some_and(|n| *n > 0));
    let last = (0..=BOUNDS_NS.len()).rev().find(used).unwrap_or(0);
    let mut bounds = vec![None];
    bounds.extend(BOUNDS_NS.iter().take(last + 1).map(|bound| Some(*bound)));
    debug_assert!(BOUNDS_NS.first() == Some(&SHORTEST_NS));
    Histograms {
        caption: "Durations".to_owned(),
        unit: "runs by duration",
        help: String::new(),
        bounds,
        rows: shown
            .iter()
            .map(|group| (name(group), counts(group).into_iter().take(last + 1).collect()))
            .collect(),
    }
}

//! What a CPU trace contains, lost and does not show.

use smbscope_analysis::processors::{Report, SampledShares};
use smbscope_tables::tables::Trace;

use super::{cpu_list, symbols, totals};
use crate::answers::cpu::fields::fact;
use crate::document::{Block, Cell, Fact, Facts, Section};
use crate::value::format;

/// What a reader must know before any number.
pub(super) fn notices(report: &Report) -> Vec<Block> {
    let sum = |of: fn(&Trace) -> u64| report.traces.iter().map(of).fold(0, u64::saturating_add);
    let parts = [
        (sum(|trace| trace.events_lost.unwrap_or(0)), "events that the recorder lost"),
        (sum(|trace| trace.buffers_lost.unwrap_or(0)), "buffers that the recorder lost"),
        (sum(|trace| trace.damaged), "lines or records that could not be read"),
        (report.discarded, "rows that did not fit into a list"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> =
        parts.map(|(count, what)| format!("{what}: {}", format::count(*count))).collect();
    let lost = if parts.is_empty() {
        None
    } else {
        Some(Block::Warn(format!(
            "Part of the trace is missing ({}): times are too low. The section Coverage has all counters.",
            parts.join(", ")
        )))
    };
    let sums = report.totals.as_ref().and_then(totals::notice).map(Block::Warn);
    let strangers = strangers(&report.traces).map(Block::Warn);
    lost.into_iter().chain(strangers).chain(sums).chain(symbols::notice(report)).collect()
}

/// Traces that do not continue each other, although their CPUs are added up: they overlap, or days lie between them.
fn strangers(traces: &[Trace]) -> Option<String> {
    /// Pieces of one recording follow each other, and their ends are not exact.
    const OVERLAP_NS: i64 = -100_000_000;
    const GAP_NS: i64 = 86_400_000_000_000;
    let times = |trace: &Trace| trace.started_at.zip(trace.ended_at);
    let mut traces: Vec<_> = traces.iter().filter(|trace| times(trace).is_some()).collect();
    traces.sort_by_key(|trace| trace.started_at);
    let mut last = *traces.first()?;
    for trace in traces.into_iter().skip(1) {
        let ((_, end), (start, next_end)) = times(last).zip(times(trace))?;
        let why = match start.saturating_sub(end) {
            ..OVERLAP_NS => "they overlap".to_owned(),
            gap @ GAP_NS.. => format!("{} lie between them", format::duration(gap)),
            _ => {
                if next_end > end {
                    last = trace;
                }
                continue;
            }
        };
        return Some(format!(
            "{} and {} do not continue each other: {why}. Their CPUs are added up as if they were the same ones; \
             `smbscope compare` shows them side by side.",
            last.recording, trace.recording
        ));
    }
    None
}

pub(super) fn section(report: &Report) -> Section {
    let mut blocks: Vec<_> = report.traces.iter().map(|trace| Block::Facts(facts(trace))).collect();
    blocks.extend(missing(report).into_iter().map(Block::Note));
    blocks.extend(symbols::table(report));
    Section {
        id: "coverage",
        title: "Coverage",
        help: "What the trace contains, what was lost, and how far the numbers above can be trusted.",
        blocks,
    }
}

fn facts(trace: &Trace) -> Facts {
    let of = |name: &str, value: Cell| fact("trace", name, value);
    let lost = |name: &str, value: Option<u64>| match value {
        Some(lost) => of(name, Cell::Count(lost)),
        None => of(name, Cell::Text("not known".to_owned()))
            .noted("the format does not say whether any were lost"),
    };
    let length = trace.ended_at.zip(trace.started_at).map(|(end, start)| end.saturating_sub(start));
    let mut rows = vec![
        of("format", Cell::Text(trace.format.clone()))
            .noted(trace.clock.clone().map_or_else(String::new, |clock| format!("clock {clock}"))),
        Fact {
            title: "Length".to_owned(),
            value: Cell::duration(length),
            note: String::new(),
            help: "From the first event to the last.",
        },
        of("cpus", Cell::Count(trace.cpus)),
        of("events", Cell::Count(trace.events)).noted(match trace.events_other {
            0 => String::new(),
            other => format!("{} of them of kinds that no table has", format::count(other)),
        }),
        of("interrupts", Cell::Count(trace.interrupts)),
        lost("events_lost", trace.events_lost),
    ];
    if trace.buffers_lost.is_some() {
        rows.push(lost("buffers_lost", trace.buffers_lost));
    }
    let counters = [
        ("damaged", trace.damaged),
        ("starts_unmatched", trace.starts_unmatched),
        ("ends_unmatched", trace.ends_unmatched),
        ("samples", trace.samples),
        ("switches", trace.switches),
        ("stacks_discarded", trace.stacks_discarded),
        ("names_discarded", trace.names_discarded),
        ("limited", trace.limited),
        ("symbol_files", trace.symbol_files),
        ("symbol_files_damaged", trace.symbol_files_damaged),
    ];
    for (name, count) in counters.into_iter().filter(|(_, count)| *count > 0) {
        let note = match name {
            "damaged" => trace.first_damaged.as_deref().map(format::sanitized),
            "symbol_files_damaged" => {
                trace.first_symbol_file_damaged.as_deref().map(format::sanitized)
            }
            _ => None,
        };
        rows.push(of(name, Cell::Count(count)).noted(note.unwrap_or_default()));
    }
    if let Some(notes) = &trace.notes {
        rows.push(of("notes", Cell::Text(notes.clone())));
    }
    Facts { caption: trace.recording.clone(), rows }
}

/// Which CPUs are not sampled all the time: what shares by samples are parts of.
pub(super) fn sampled(report: &Report) -> Option<String> {
    let is_part = |shares: SampledShares| !shares.of_time;
    let of_samples = report.processors.iter().filter(|one| one.sampled.is_some_and(is_part));
    let cpus: Vec<u64> = of_samples.map(|one| one.cpu).collect();
    (!cpus.is_empty()).then(|| {
        format!(
            "Shares by samples of CPU {} are parts of the samples, not of the time: a CPU that is not sampled while it is idle looks busier than it is.",
            cpu_list(&cpus)
        )
    })
}

/// What was not recorded, and how to record it next time.
fn missing(report: &Report) -> Vec<String> {
    let has = |of: fn(&Trace) -> u64| report.traces.iter().any(|trace| of(trace) > 0);
    let mut said = Vec::new();
    let is_of_period = report.totals.as_ref().is_some_and(|totals| totals.of_intervals);
    let part = match (report.recorded.deferred, report.recorded.interrupts) {
        _ if report.recorded.families.is_empty() || is_of_period => None,
        (true, false) => Some(("handlers of interrupts", "irq:* and irq_vectors:*", "INTERRUPT")),
        (false, true) => Some(("deferred work", "irq:softirq_*", "DPC")),
        _ => None,
    };
    if let Some((what, linux, windows)) = part {
        said.push(format!(
            "The trace has no events of {what}: their time is not known. On Linux record {linux}, on Windows the kernel flag {windows}."
        ));
    }
    if !has(|trace| trace.switches) {
        said.push(
            "Without context switches the time of threads and idle time are not known. On Linux record sched:sched_switch, on Windows the kernel flag CSWITCH.".to_owned(),
        );
    }
    if !has(|trace| trace.samples) {
        said.push(
            "Without samples the code that ran is not known. On Linux record `perf record -a -g -F 99`, on Windows the kernel flag PROFILE with stacks.".to_owned(),
        );
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_that_are_not_one_recording_are_a_warning() {
        let second = 1_000_000_000;
        let trace = |name: &str, start: i64, end: i64| Trace {
            recording: name.to_owned(),
            started_at: Some(start * second),
            ended_at: Some(end * second),
            ..Trace::default()
        };
        let pieces = [trace("b", 10, 20), trace("a", 0, 10), trace("c", 21, 30)];
        assert_eq!(strangers(&pieces), None);
        assert_eq!(strangers(&[]), None);
        let said = strangers(&[trace("a", 0, 10), trace("b", 5, 15)]).unwrap();
        assert!(said.starts_with("a and b do not continue each other: they overlap."), "{said}");
        let said = strangers(&[trace("a", 0, 10), trace("b", 200_000, 200_001)]).unwrap();
        assert!(said.contains("lie between them"), "{said}");
    }
}

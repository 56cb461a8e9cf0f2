//! What held CPUs did to SMB operations, as text below a diagnosis.

use smbscope_analysis::processors::waiting::{Waiting, WaitingCommand};
use smbscope_analysis::processors::{ProcessorFindingKind, Report};
use smbscope_findings::Kind as _;

use crate::render::text::wrapped;
use crate::value::format;

/// Commands that are named.
const COMMANDS: usize = 3;

/// The CPUs of the same time: what holds them, and which operations waited meanwhile. `waiting` is `None` if the
/// trace and the operations have no time in common.
pub(crate) fn cpu_appendix(report: &Report, waiting: Option<&Waiting>, width: usize) -> String {
    let mut out = String::from("\nCPUs at the same time\n");
    // Writing to a String cannot fail.
    let mut line = |words: &str| {
        let mut text = String::new();
        let _ = wrapped(&mut text, words, width.saturating_sub(2));
        text.lines().for_each(|line| out.push_str(&format!("  {line}\n")));
    };
    let Some(waiting) = waiting else {
        line(
            "The CPU trace and the operations have no time in common, or their clocks differ: traces of Linux count from the start of the machine unless smbscope recorded them. Nothing can be said about operations that waited.",
        );
        return out;
    };
    match report.findings.first() {
        Some(found) if found.kind == ProcessorFindingKind::LockedProcessors => {
            line(&format!("{}.", found.what));
        }
        Some(found) => {
            line(&format!("No CPU is held all the time. {}: {}.", found.kind.title(), found.what))
        }
        None if !report.recorded.any() => {}
        None => line("Interrupts and deferred work hold no CPU."),
    }
    if report.timeline.is_none() {
        line(
            "The trace has no single interrupts and no deferred work, so when a CPU was held is not known, and nothing can be said about operations that waited.",
        );
        return out;
    }
    if waiting.held_ns == 0 {
        line(&format!(
            "In {} that both cover, no CPU was held: CPUs are not the cause.",
            format::duration(waiting.common_ns)
        ));
        return out;
    }
    line(&format!(
        "Of {} that both cover, at least one CPU was held for {}. {} of {} operations were in flight meanwhile, {} in all{}.",
        format::duration(waiting.common_ns),
        format::duration(waiting.held_ns),
        format::count(waiting.waited),
        format::count(waiting.operations),
        format::duration(waiting.waited_ns),
        by_command(&waiting.commands),
    ));
    match (waiting.times, waiting.times_low, waiting.times_high) {
        (Some(times), Some(low), Some(high)) if low > 1.0 => line(&format!(
            "Those that began then took {} times as long as the same commands at other times (95 % interval {} to {}): they waited for a CPU.",
            format::number(times),
            format::number(low),
            format::number(high)
        )),
        (Some(times), Some(low), Some(high)) => line(&format!(
            "Those that began then did not take significantly longer than the same commands at other times ({} times, 95 % interval {} to {}).",
            format::number(times),
            format::number(low),
            format::number(high)
        )),
        _ => line("There are too few operations at other times to say how much longer they took."),
    }
    for one in waiting.examples.iter().take(1) {
        line(&format!(
            "The longest: {}{}, {}, of which a CPU was held for {}.",
            format::sanitized(&one.command),
            match one.path.as_deref() {
                Some(path) if !path.is_empty() => format!(" {}", format::sanitized(path)),
                _ => String::new(),
            },
            format::duration(one.elapsed_ns),
            format::duration(one.waited_ns)
        ));
    }
    out
}

fn by_command(commands: &[WaitingCommand]) -> String {
    let words: Vec<_> = commands
        .iter()
        .filter(|one| one.held > 0)
        .take(COMMANDS)
        .map(|one| {
            let means = match (one.held_mean_ns, one.other_mean_ns) {
                (Some(held), Some(other)) => format!(
                    ", {} on average instead of {}",
                    format::duration(held),
                    format::duration(other)
                ),
                _ => String::new(),
            };
            format!("{} ({}{means})", format::sanitized(&one.command), format::count(one.held))
        })
        .collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}

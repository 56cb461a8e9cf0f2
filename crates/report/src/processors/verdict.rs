//! What a trace of processors says in one sentence, and the numbers next to it.

use smbscope_analysis::processors::{InterruptGroup, Processor, ProcessorTrouble, Report};

use super::{cpu_list, cpus_of};
use crate::format;
use crate::verdict::{Tile, Tone, Verdict};

/// A processor with this share of its time in interrupts and deferred work has hardly time for
/// threads.
const BAD_SHARE: f64 = 0.5;
/// Causes that the verdict names.
const REASONS: usize = 3;
/// A share that is worth a look.
const WATCH_SHARE: f64 = 0.25;

/// `one CPU`, `4 CPUs`.
pub(super) fn cpus(count: u64) -> String {
    match count {
        1 => "one CPU".to_owned(),
        _ => format!("{} CPUs", format::count(count)),
    }
}

fn busy(processor: &Processor) -> f64 {
    processor.interrupt_share.unwrap_or(0.0) + processor.deferred_share.unwrap_or(0.0)
}

pub(super) fn verdict(report: &Report) -> Verdict {
    if report.interrupts.is_empty() {
        let is_windows = report.traces.iter().any(|trace| trace.format.starts_with("Windows"));
        return Verdict {
            tone: Tone::Unknown,
            // A log with packets or events of SMB has another report.
            sentence: match is_windows {
                true => "The trace has no interrupts and no deferred work, no packets and no events of SMB",
                false => "The trace has no interrupts and no deferred work",
            }
            .to_owned(),
            reasons: vec![
                match is_windows {
                    true => "`smbscope record --print-windows-script` prints what records interrupts, and with `--what smb` what records SMB.",
                    false => {
                        "On Linux, record the events irq:*, irq_vectors:*, napi:* and sched:sched_switch."
                    }
                }
                .to_owned(),
            ],
        };
    }
    let shares: Vec<_> = report.processors.iter().map(|one| (one.cpu, busy(one))).collect();
    let (tone, sentence) = held(&shares);
    let mut reasons: Vec<_> = report.interrupts.first().map(most_time).into_iter().collect();
    // Why: what is in the path of received packets, and where the work runs.
    let causes = report.findings.iter().filter(|one| {
        use ProcessorTrouble::{FilterInReceivePath, ReceiveOnFewProcessors, TeamInReceivePath};
        matches!(one.trouble, FilterInReceivePath | TeamInReceivePath | ReceiveOnFewProcessors)
    });
    reasons.extend(causes.take(REASONS).map(|one| format!("{}.", one.what)));
    Verdict { tone, sentence, reasons }
}

/// Which processors interrupts and deferred work hold, by their shares of the time.
pub(super) fn held(shares: &[(u64, f64)]) -> (Tone, String) {
    let most = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let (tone, limit) = match most {
        BAD_SHARE.. => (Tone::Bad, BAD_SHARE),
        WATCH_SHARE.. => (Tone::Watch, WATCH_SHARE),
        _ => {
            let sentence = format!(
                "No CPU spends more than {} of its time in interrupts and deferred work",
                format::share(most)
            );
            return (Tone::Good, sentence);
        }
    };
    let held: Vec<_> = shares.iter().filter(|(_, share)| *share >= limit).collect();
    let numbers: Vec<_> = held.iter().map(|(cpu, _)| *cpu).collect();
    let mean = held.iter().map(|(_, share)| share).sum::<f64>() / held.len().max(1) as f64;
    let (subject, verb, its) = match numbers.len() {
        1 => ("CPU", "spends", "its"),
        _ => ("CPUs", "spend", "their"),
    };
    let sentence = format!(
        "{subject} {} {verb} {} of {its} time in interrupts and deferred work",
        cpu_list(&numbers),
        format::share(mean)
    );
    (tone, sentence)
}

fn most_time(group: &InterruptGroup) -> String {
    let name = group.name.as_deref().unwrap_or("a routine without a name");
    let over = match group.over_limit {
        0 => format!("none above {}", format::duration(group.limit_ns)),
        count => format!("{} above {}", format::count(count), format::duration(group.limit_ns)),
    };
    format!(
        "Most time takes {} ({}): {} in {} runs, {over}, on CPU {}.",
        format::harmless(name),
        group.kind,
        format::duration(group.exclusive_ns),
        format::count(group.count),
        cpus_of(group)
    )
}

pub(super) fn tiles(report: &Report) -> Vec<Tile> {
    let time = |class: fn(&Processor) -> i64| report.processors.iter().map(class).sum::<i64>();
    let of_all = |ns: i64| match report.possible_ns {
        1.. => format!("{} of all CPUs", format::share(ns as f64 / report.possible_ns as f64)),
        _ => String::new(),
    };
    let deferred = time(|one| one.deferred_ns);
    let interrupts = time(|one| one.interrupt_ns);
    let longest = report.interrupts.iter().max_by_key(|group| group.duration.max_ns);
    let over: u64 = report.interrupts.iter().map(|group| group.over_limit).sum();
    let runs: u64 = report.interrupts.iter().map(|group| group.count).sum();
    vec![
        Tile::new("Deferred work", format::duration(deferred), of_all(deferred)),
        Tile::new("Interrupts", format::duration(interrupts), of_all(interrupts)),
        Tile::new(
            "Longest run",
            longest
                .and_then(|group| group.duration.max_ns)
                .map_or_else(|| "–".to_owned(), format::duration),
            longest
                .filter(|group| group.duration.max_ns.is_some())
                .and_then(|group| group.name.clone())
                .unwrap_or_default(),
        ),
        Tile::new(
            "Above the limit",
            format::count(over),
            format!("of {} runs", format::count(runs)),
        ),
    ]
}

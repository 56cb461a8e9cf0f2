//! What a CPU trace says in one sentence, and the numbers next to it.

use smbscope_analysis::processors::{
    Finding, InSamples, InterruptGroup, Processor, ProcessorFindingKind, Report,
};

use super::{causes, cpu_list, cpus_of, totals};
use crate::document::{Tile, Tone, Verdict};
use crate::value::format;

/// A CPU with this share of its time in interrupts and deferred work has hardly time for
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

pub(super) fn verdict(report: &Report) -> Verdict {
    let has_sums = report.totals.is_some();
    if report.interrupts.is_empty() && !has_sums {
        let by_samples = by_samples(report).or_else(|| by_tasks(report));
        return by_samples.unwrap_or_else(|| nothing(report));
    }
    let shares: Vec<_> =
        report.processors.iter().filter_map(|one| Some((one.cpu, one.busy_share()?))).collect();
    let (tone, mut sentence) = if shares.is_empty() {
        (
            Tone::Unknown,
            "The trace does not say how long interrupts and deferred work took".to_owned(),
        )
    } else {
        held(&shares, Of::Time)
    };
    // What holds a CPU for a part of the trace matters more than its mean.
    let locked = report.findings.iter().find(|one| {
        one.kind == ProcessorFindingKind::LockedProcessors
            && (one.first_ns.is_some() || one.last_ns.is_some())
    });
    if let Some(locked) = locked {
        sentence = partly(report, locked);
    }
    let few = report
        .findings
        .iter()
        .find(|one| one.kind == ProcessorFindingKind::ReceiveOnFewProcessors && tone == Tone::Good);
    if let Some(few) = few {
        sentence = receive_on(report, few);
    }
    let tone = match (locked, few) {
        (Some(_), _) => Tone::Bad,
        (None, Some(_)) => Tone::Watch,
        (None, None) => tone,
    };
    let most = report.interrupts.first().map(most_time);
    let sums = report.totals.as_ref().filter(|_| most.is_none());
    let mut reasons: Vec<_> = most.or_else(|| totals::most_time(sums?)).into_iter().collect();
    // Why: what is in the path of received packets, and where the work runs.
    let causes = report.findings.iter().filter(|one| {
        use ProcessorFindingKind::{
            FilterInReceivePath, ReceiveOnFewProcessors, TeamInReceivePath,
        };
        matches!(one.kind, FilterInReceivePath | TeamInReceivePath | ReceiveOnFewProcessors)
    });
    reasons.extend(causes.take(REASONS).map(|one| format!("{}.", one.what)));
    if has_sums {
        reasons.push(
            "The input has sums, not single runs: neither stacks nor exact durations.".to_owned(),
        );
    }
    Verdict { tone, sentence, reasons }
}

/// `CPU 0 does nearly all receive work of the network (19.6 % of its time), the other 15 CPUs hardly any`
fn receive_on(report: &Report, few: &Finding) -> String {
    let cpus = few.details.cpus.as_slice();
    let (subject, verb, its) = match cpus {
        [one] => (format!("CPU {one}"), "does", "its"),
        many => (format!("CPUs {}", cpu_list(many)), "do", "the busiest one's"),
    };
    let share = few.figures.iter().find(|figure| figure.name == "busiest_share");
    let share = share.map_or_else(String::new, |figure| {
        format!(" ({} of {its} time)", format::share(figure.value))
    });
    let others = report.processors.len().saturating_sub(cpus.len());
    format!(
        "{subject} {verb} nearly all receive work of the network{share}, the other {others} CPUs hardly any"
    )
}

/// `Interrupts and deferred work hold CPU 1 since 40.0 s after the start: 94 % of that time`.
fn partly(report: &Report, locked: &Finding) -> String {
    let cpus = match locked.details.cpus.as_slice() {
        [one] => format!("CPU {one}"),
        many => format!("CPUs {}", cpu_list(many)),
    };
    let share = locked.figures.iter().find(|figure| figure.name == "held_share");
    let share = share.map_or_else(String::new, |figure| {
        format!(": {} of that time", format::share(figure.value))
    });
    let when = causes::when(locked, report).unwrap_or_default();
    format!("Interrupts and deferred work hold {cpus} {when}{share}")
}

/// The verdict on a trace that has samples, and none of the events.
fn by_samples(report: &Report) -> Option<Verdict> {
    let samples = report.in_samples.as_ref()?;
    let hits = samples.interrupt + samples.deferred;
    if report.recorded.any() || hits == 0 {
        return None;
    }
    let sampled = report.processors.iter().filter_map(|one| Some((one, one.sampled?)));
    let is_of_time = sampled.clone().all(|(_, shares)| shares.of_time);
    let shares: Vec<_> = sampled.map(|(one, shares)| (one.cpu, shares.busy())).collect();
    let (tone, sentence) = held(&shares, if is_of_time { Of::SampledTime } else { Of::Samples });
    let mut reasons = vec![format!(
        "{} of {} samples hit {}. {}",
        format::count(hits),
        format::count(samples.all),
        match (samples.deferred, samples.interrupt) {
            (_, 0) => "deferred work".to_owned(),
            (0, _) => "handlers of interrupts".to_owned(),
            (deferred, interrupt) => format!(
                "deferred work ({}) and handlers of interrupts ({})",
                format::count(deferred),
                format::count(interrupt)
            ),
        },
        if report.is_windows() {
            "The trace has no events of them: what each name takes, and how long runs last, is not known."
        } else {
            "The trace has no events of them: what each name takes, and how long runs last, is not known. Record irq:*, irq_vectors:*, napi:* and sched:sched_switch."
        }
    )];
    let causes = report.findings.iter().filter(|one| {
        use ProcessorFindingKind::{FilterInReceivePath, TeamInReceivePath};
        matches!(one.kind, FilterInReceivePath | TeamInReceivePath)
    });
    reasons.extend(causes.take(REASONS).map(|one| format!("{}.", one.what)));
    Some(Verdict { tone, sentence, reasons })
}

/// The verdict on a trace that has samples of programs only.
fn by_tasks(report: &Report) -> Option<Verdict> {
    let tasks = report.tasks.as_ref().filter(|_| !report.recorded.any())?;
    let process = tasks.processes.first()?;
    let whose = match (&process.name, process.process) {
        (Some(name), _) => format::sanitized(name),
        (None, Some(process)) => format!("process {process}"),
        (None, None) => "a process without a number".to_owned(),
    };
    let sentence = format!(
        "{} has {} of the {} samples: {} in the kernel, {} in the program",
        format::capitalized(&whose),
        format::share(process.share),
        format::count(tasks.samples),
        format::count(process.kernel),
        format::count(process.user),
    );
    let symbol = tasks.symbols.first().map(|symbol| {
        let names = [symbol.module.as_deref(), symbol.function.as_deref()];
        let names: Vec<_> = names.into_iter().flatten().map(format::sanitized).collect();
        let name =
            if names.is_empty() { "code without a name".to_owned() } else { names.join("!") };
        format!("Most samples hit {name}: {}.", format::share(symbol.share))
    });
    let what_else = if tasks.has_cpus {
        let Verdict { sentence, reasons, .. } = nothing(report);
        format!("{sentence}. {}", reasons.join(" "))
    } else {
        "The samples do not say on which CPU they were taken: perf record -a records that."
            .to_owned()
    };
    let reasons = symbol.into_iter().chain([what_else]).collect();
    Some(Verdict { tone: Tone::Unknown, sentence, reasons })
}

/// Nothing of interrupts and deferred work, in the trace or in the period.
fn nothing(report: &Report) -> Verdict {
    let (sentence, reason) = match (report.recorded.any(), report.is_windows()) {
        (true, _) if report.recorded.runs > 0 => (
            "The period has no interrupts and no deferred work",
            format!("The whole trace has {} runs.", format::count(report.recorded.runs)),
        ),
        (true, _) => (
            "No interrupts and no deferred work ran",
            "They were recorded, but none occurred.".to_owned(),
        ),
        // A log with packets or events of SMB has another report.
        (false, true) => (
            "The trace has no interrupts and no deferred work, no packets and no events of SMB",
            "`smbscope record --print-windows-script --to 'S:\\temp'` prints what records interrupts, and with `--what smb` what records SMB.".to_owned(),
        ),
        (false, false) => (
            "The trace has no interrupts and no deferred work",
            "On Linux, record the events irq:*, irq_vectors:*, napi:* and sched:sched_switch."
                .to_owned(),
        ),
    };
    Verdict { tone: Tone::Unknown, sentence: sentence.to_owned(), reasons: vec![reason] }
}

/// What shares are parts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Time,
    /// Time, as samples show it.
    SampledTime,
    Samples,
}

/// Which CPUs interrupts and deferred work hold, by their shares of the time.
pub(super) fn held(shares: &[(u64, f64)], of: Of) -> (Tone, String) {
    let by = if of == Of::SampledTime { ", by samples" } else { "" };
    let whole = if of == Of::Samples { "samples" } else { "time" };
    let most = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let (tone, limit) = match most {
        BAD_SHARE.. => (Tone::Bad, BAD_SHARE),
        WATCH_SHARE.. => (Tone::Watch, WATCH_SHARE),
        _ => {
            let verb = if of == Of::Samples { "has" } else { "spends" };
            let sentence = format!(
                "No CPU {verb} more than {} of its {whole} in interrupts and deferred work{by}",
                format::share(most)
            );
            return (Tone::Good, sentence);
        }
    };
    let held: Vec<_> = shares.iter().filter(|(_, share)| *share >= limit).collect();
    let numbers: Vec<_> = held.iter().map(|(cpu, _)| *cpu).collect();
    let mean = held.iter().map(|(_, share)| share).sum::<f64>() / held.len().max(1) as f64;
    let (subject, verb, its) = match (numbers.len(), of) {
        (1, Of::Samples) => ("CPU", "has", "its"),
        (1, _) => ("CPU", "spends", "its"),
        (_, Of::Samples) => ("CPUs", "have", "their"),
        _ => ("CPUs", "spend", "their"),
    };
    let sentence = format!(
        "{subject} {} {verb} {} of {its} {whole} in interrupts and deferred work{by}",
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
        format::sanitized(name),
        group.kind,
        format::duration(group.exclusive_ns),
        format::count(group.count),
        cpus_of(group)
    )
}

pub(super) fn tiles(report: &Report) -> Vec<Tile> {
    let unknown = || "–".to_owned();
    let (deferred, interrupts) = if report.recorded.any() {
        {
            let sum = |class: fn(&Processor) -> Option<i64>| {
                let times: Vec<i64> = report.processors.iter().filter_map(class).collect();
                (!times.is_empty())
                    .then(|| times.iter().fold(0_i64, |sum, ns| sum.saturating_add(*ns)))
            };
            let of_all = |ns: i64| match report.possible_ns {
                1.. => {
                    format!("{} of all CPUs", format::share(ns as f64 / report.possible_ns as f64))
                }
                _ => String::new(),
            };
            let tile = |title: &str, ns: Option<i64>| match ns {
                Some(ns) => Tile::new(title, format::duration(ns), of_all(ns)),
                None => Tile::new(title, unknown(), "not recorded".to_owned()),
            };
            (
                tile("Deferred work", sum(|one| one.deferred_ns)),
                tile("Interrupts", sum(|one| one.interrupt_ns)),
            )
        }
    } else {
        {
            let samples = report.in_samples.as_ref();
            let all = samples.map_or(0, |samples| samples.all);
            // No sample of a kind does not say that none ran.
            let hits = |of: fn(&InSamples) -> u64| samples.map(of).filter(|hits| *hits > 0);
            let tile = |title: &str, hits: Option<u64>| match hits {
                Some(hits) => Tile::new(
                    title,
                    format::share(hits as f64 / all.max(1) as f64),
                    "of all samples".to_owned(),
                ),
                None => Tile::new(title, unknown(), "not recorded".to_owned()),
            };
            (
                tile("Deferred work", hits(|it| it.deferred)),
                tile("Interrupts", hits(|it| it.interrupt)),
            )
        }
    };
    let longest = report.interrupts.iter().max_by_key(|group| group.duration.max_ns);
    let over: u64 = report.interrupts.iter().map(|group| group.over_limit).sum();
    let runs: u64 = report.interrupts.iter().map(|group| group.count).sum();
    vec![
        deferred,
        interrupts,
        Tile::new(
            "Longest run",
            longest.and_then(|group| group.duration.max_ns).map_or_else(unknown, format::duration),
            longest
                .filter(|group| group.duration.max_ns.is_some())
                .and_then(|group| group.name.clone())
                .unwrap_or_default(),
        ),
        if report.recorded.any() {
            Tile::new(
                "Above the limit",
                format::count(over),
                format!("of {} runs", format::count(runs)),
            )
        } else {
            Tile::new("Above the limit", unknown(), "not recorded".to_owned())
        },
    ]
}

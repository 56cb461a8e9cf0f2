//! What was run, on what, by which machines; and the warnings that concern whole runs.

use smbscope_analysis::summary::{Load, RunPart, Warning, WarningKind};
use smbscope_tables::description::CLOSED;

use crate::answers::recording::fields::{column, fact};
use crate::document::{Block, Cell, Facts, Section, Table};
use crate::value::format;

/// Runs that get a list of facts of their own.
const LISTED_MAX: usize = 4;
/// Share of the mean time of an operation above which the generator's own delay is worth a sentence.
const REPLY_WAIT_SHARE: f64 = 0.05;

pub(crate) fn run(load: &Load) -> Section {
    let mut blocks = Vec::new();
    if load.runs.is_empty() {
        blocks.push(Block::Note("No manifest describes the run.".to_owned()));
    }
    // Machines that share a run differ in the table below.
    let mut seen: Vec<&str> = Vec::new();
    for part in &load.runs {
        let run = part.description.run.as_str();
        if !seen.contains(&run) && seen.len() < LISTED_MAX {
            seen.push(run);
            let others = load.runs.iter().filter(|other| other.description.run == run).count() - 1;
            blocks.push(Block::Facts(facts(part, others)));
        }
    }
    if load.runs.len() > 1 {
        blocks.push(Block::Table(machines(&load.runs)));
    }
    Section {
        id: "run",
        title: "The load run",
        help: "What simulated users did, against which server, and from which machine.",
        blocks,
    }
}

/// What a reader must know before any number.
fn aloud(part: &RunPart) -> Vec<String> {
    let run = &part.description;
    let mut said = Vec::new();
    if run.scale > 0.0 && run.scale != 1.0 {
        said.push(format!(
            "The file set has {} of the size that the workload defines (scale {}): the server's caches hold a larger part of it than of the full set.",
            format::share(run.scale),
            format::number(run.scale)
        ));
    }
    if let Some(ns) = run.emulated_rtt_ns.filter(|ns| *ns > 0) {
        said.push(format!(
            "A round trip of {} was emulated inside the client. No packets were delayed: handshakes, acknowledgements and windows behave as on a local network.",
            format::duration(ns)
        ));
    }
    if run.pacing == CLOSED {
        said.push("Users ran scenarios back to back (closed loop): without a schedule nothing can be late, and response times are not those of independent users.".to_owned());
    }
    said
}

fn facts(part: &RunPart, others: usize) -> Facts {
    let run = &part.description;
    let of = |name: &str, value: Cell| fact("run", name, value);
    let text = |text: String| Cell::Text(text);
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "not known".to_owned());
    let mut rows = vec![
        of("workload", text(run.workload.clone()))
            .noted(format!("seed {}, digest {:.12}", run.seed, run.workload_digest)),
        of("scale", Cell::Number(run.scale)),
        of("server", text(format!("//{}:{}/{}", run.server, run.server_port, run.share)))
            .titled("Share"),
        of("dialect", text(word(&run.dialect))).noted(format!(
            "signing {}, encryption {}, {} TCP {} for each user",
            word(&run.signing),
            word(&run.encryption),
            run.channels.max(1),
            if run.channels > 1 { "connections" } else { "connection" }
        )),
        of("users_total", Cell::Count(run.users_total)).noted(users(run)),
        of("client_cache", text(run.client_cache.clone())),
        of("line", text(distance(run))).titled("Distance"),
        of("pacing", text(run.pacing.clone())).noted(pacing(run)),
        of("measured_ns", Cell::Duration(run.measured_ns)).noted(format!(
            "at most, in each step; {} of warm-up before, {} of cool-down after",
            format::duration(run.warm_up_ns),
            format::duration(run.cool_down_ns)
        )),
        of("start_ns", Cell::Time(run.start_ns)).noted(match run.end_ns {
            Some(end) => format!("for {}", format::duration(end.saturating_sub(run.start_ns))),
            None => "its end is unknown".to_owned(),
        }),
        of("hostname", text(run.hostname.clone())).noted(machine(run)),
        of("limited_by_client", text(yes(run.limited_by_client)))
            .noted(run.limited_reason.clone().unwrap_or_default()),
        of(
            "clock_synchronised",
            text(run.clock_synchronised.map_or_else(|| "unknown".to_owned(), yes)),
        )
        .noted(clock(run)),
    ];
    rows.extend(run.settings.iter().map(|setting| {
        of("settings", text(setting.value.clone())).titled(&format::sanitized(&setting.name))
    }));
    if !run.counter_sources.is_empty() {
        let missed = match run.counters_missed {
            0 => String::new(),
            n => format!("samples that could not be read: {}", format::count(n)),
        };
        rows.push(of("counter_sources", text(run.counter_sources.join(", "))).noted(missed));
    }
    rows.push(of("smbscope_version", text(run.smbscope_version.clone())));
    if !run.command_line.is_empty() {
        rows.push(of("command_line", text(run.command_line.join(" "))));
    }
    let more = match others {
        0 => String::new(),
        1 => ", as one machine says; another has its part".to_owned(),
        n => format!(", as one machine says; {n} others have their parts"),
    };
    Facts { caption: format!("{}{more}", run.recording), rows }
}

type Run = smbscope_tables::description::RunDescription;

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn users(run: &Run) -> String {
    let here = match run.shards {
        0 | 1 => String::new(),
        _ => format!(
            "this machine: part {} of {}, users {} to {}{}",
            run.shard,
            run.shards,
            run.users_from,
            run.users_to,
            match run.users_every {
                0 | 1 => String::new(),
                n => format!(", one in {n}"),
            }
        ),
    };
    let named = run.user_names.as_ref().map(|names| format!("named {names}")).unwrap_or_default();
    [here, named].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn distance(run: &Run) -> String {
    match (&run.line, run.emulated_rtt_ns.filter(|ns| *ns > 0)) {
        (Some(line), None) => line.clone(),
        (Some(line), Some(ns)) => {
            format!("{line}, and {} inside the client", format::duration(ns))
        }
        (None, Some(ns)) => format!("{} emulated inside the client", format::duration(ns)),
        (None, None) => "none added".to_owned(),
    }
}

fn pacing(run: &Run) -> String {
    let rate = run.scenarios_per_user_hour.filter(|rate| *rate > 0.0).map(|rate| {
        format!(
            "{} scenarios an hour for each user, one every {}",
            format::number(rate),
            format::duration((3.6e12 / rate) as i64)
        )
    });
    let ramp = run
        .ramp_users_per_second
        .map(|users| format!("{} more users per second", format::number(users)));
    rate.into_iter().chain(ramp).collect::<Vec<_>>().join("; ")
}

fn machine(run: &Run) -> String {
    let model = run.cpu_model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    let memory = run.memory_bytes.map(|bytes| format!(", {}", format::bytes(bytes)));
    format!(
        "{} {}{model}{}, {}",
        run.cpus,
        if run.cpus == 1 { "CPU" } else { "CPUs" },
        memory.unwrap_or_default(),
        run.kernel
    )
}

fn clock(run: &Run) -> String {
    let own = run.clock_error_ns.map(|ns| format!("own error at most {}", format::duration(ns)));
    let server = run.server_clock_ahead_ns.map(|ns| {
        let error = run.server_clock_error_ns.map(|ns| format!(" (± {})", format::duration(ns)));
        let (word, ns) = if ns < 0 { ("behind", ns.saturating_neg()) } else { ("ahead", ns) };
        format!("the server's is {} {word}{}", format::duration(ns), error.unwrap_or_default())
    });
    own.into_iter().chain(server).collect::<Vec<_>>().join("; ")
}

fn machines(runs: &[RunPart]) -> Table {
    let of = "run";
    let columns = vec![
        column(of, "recording", 0, |row: &RunPart| Cell::Code(row.description.recording.clone())),
        column(of, "hostname", 1, |row: &RunPart| Cell::Code(row.description.hostname.clone())),
        column(of, "shard", 0, |row: &RunPart| {
            Cell::Text(format!("{}/{}", row.description.shard, row.description.shards))
        }),
        column(of, "users_from", 1, |row: &RunPart| Cell::Count(row.description.users_from)),
        column(of, "users_to", 1, |row: &RunPart| Cell::Count(row.description.users_to)),
        column(of, "scenarios", 0, |row: &RunPart| Cell::Count(row.scenarios)),
        column(of, "cpus", 2, |row: &RunPart| Cell::Count(row.description.cpus)),
        column(of, "start_ns", 2, |row: &RunPart| Cell::Time(row.description.start_ns)),
        column(of, "server_clock_ahead_ns", 2, |row: &RunPart| {
            Cell::duration(row.description.server_clock_ahead_ns)
        }),
        column(of, "limited_by_client", 0, |row: &RunPart| {
            Cell::Text(yes(row.description.limited_by_client))
        }),
        column(of, "complete", 1, |row: &RunPart| Cell::Text(yes(row.complete))),
    ];
    let mut table = Table::new("Machines", "Each machine's part of the run.", runs, columns);
    (table.in_text, table.in_page) = (40, 200);
    table
}

/// What makes the numbers doubtful or special, a sentence each.
pub(crate) fn notices(load: &Load) -> Vec<Block> {
    let doubtful = load.warnings.iter().map(|warning| Block::Warn(sentence(warning)));
    let special = load.runs.iter().take(1).flat_map(aloud).chain(generator(load)).map(Block::Note);
    doubtful.chain(special).collect()
}

/// The part of the response times that is the load generator's, if it matters.
fn generator(load: &Load) -> Option<String> {
    let step = load.answer_step()?;
    let (mean, operation) = (step.reply_wait_mean_ns?, step.operation_mean_ns?);
    (mean as f64 > REPLY_WAIT_SHARE * operation as f64).then(|| {
        format!(
            "Replies waited {} on average (99th percentile {}) in the load generator before it read them. The times of \
             operations do not contain that; the response times of scenarios do.",
            format::duration(mean),
            format::duration(step.reply_wait_p99_ns.unwrap_or(mean))
        )
    })
}

fn sentence(warning: &Warning) -> String {
    let names = warning.recordings.join(", ");
    let values = warning.values.join(", ");
    let each = || {
        let pairs = warning.recordings.iter().zip(&warning.values);
        pairs.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
    };
    let step = warning.step.unwrap_or(0);
    let difference = format::duration(warning.difference_ns.unwrap_or(0).saturating_abs());
    match warning.kind {
        WarningKind::SameRecording => format!(
            "{names} was given twice: its operations and scenarios are counted twice. Give each folder once."
        ),
        WarningKind::SameShard => format!(
            "{names} are the same part {values} of one run: its users are counted twice. Give each part once."
        ),
        WarningKind::MissingShard => format!(
            "Parts of the run are missing: {values}. Throughput, operations and users cover only {names}."
        ),
        WarningKind::SameUsers => {
            format!("{names} simulate the same users ({values}): they were in each other's way.")
        }
        WarningKind::OtherRun => format!(
            "These are different runs, not parts of one: {}. The numbers below mix their operations and scenarios; report each run separately, or query by the column run.",
            each()
        ),
        WarningKind::OtherWorkload => format!("The workloads differ: {}.", each()),
        WarningKind::OtherSeed => format!(
            "The seeds differ, so files and random choices do not belong together: {}.",
            each()
        ),
        WarningKind::OtherScale => format!("The file sets differ in scale: {}.", each()),
        WarningKind::OtherTarget => format!("The runs were against different shares: {}.", each()),
        WarningKind::OtherSettings => format!("The settings differ: {}.", each()),
        WarningKind::StartsDiffer => format!(
            "Step {step} began {difference} apart on {names}: start all parts with the same --start-at, and synchronise their clocks. The window shown is the part that all of them measured."
        ),
        WarningKind::ClocksDiffer => {
            let error = warning.error_ns.map(|ns| format!(" (± {})", format::duration(ns)));
            let (ahead, behind) = match (warning.recordings.as_slice(), warning.difference_ns) {
                ([first, second], Some(ns)) if ns < 0 => (first.clone(), second.clone()),
                ([first, second], _) => (second.clone(), first.clone()),
                _ => (names.clone(), String::new()),
            };
            format!(
                "The clock of {ahead} is {difference}{} ahead of that of {behind}: their times cannot be compared. Synchronise the machines (NTP).",
                error.unwrap_or_default()
            )
        }
        WarningKind::ClocksUnknown => format!(
            "The difference between the clocks of {names} is unknown: charts over time may be shifted."
        ),
        WarningKind::StepMissing => format!(
            "Step {step} is missing in {names}: its users are not in the numbers of that step."
        ),
        WarningKind::AnswersDiffer => format!(
            "The parts found different capacities ({}); the answer shown is derived from the combined steps.",
            each()
        ),
        WarningKind::ServerGone => {
            let since = values.parse().map_or(values, format::time);
            format!(
                "The server stopped answering ({names}): connections failed since {since}, and the run ended. Look at the server's log and at its processes first; what follows was measured before."
            )
        }
        WarningKind::LimitedByClient => {
            let why = if values.is_empty() { values } else { format!(" ({values})") };
            format!(
                "{names} was limited by the load generator{why}, not by the server: the server may carry more. Use a faster machine or several (--shard)."
            )
        }
        WarningKind::Incomplete => {
            format!("{names} was not finished: it holds what was measured until it ended.")
        }
        WarningKind::NotDescribed => format!(
            "No manifest describes {names}: workload and target are unknown, and parts of one run cannot be recognised."
        ),
        WarningKind::CountersMissed => {
            format!("{names} could not read some counters ({values}): charts have gaps.")
        }
    }
}

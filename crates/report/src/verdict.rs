//! What the recording says in one sentence, why in two more, and the six numbers next to it.
//!
//! A search for the capacity is answered by its number of users; another load run by whether the server
//! kept up; a capture by its most costly finding.

use smbscope_analysis::explain::{Diagnosis, LEAST_SHARE, Trouble};
use smbscope_analysis::summary::{Answer, Load, Report, StepRow};

use crate::Meta;
use crate::format;
use crate::pages::findings::headline;

/// Whether the sentence is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Watch,
    Bad,
    Unknown,
}

impl Tone {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Watch => "watch",
            Tone::Bad => "bad",
            Tone::Unknown => "unknown",
        }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) tone: Tone,
    /// One sentence without a full stop.
    pub(crate) sentence: String,
    /// Further sentences.
    pub(crate) reasons: Vec<String>,
}

/// A number that says what it measures.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) title: String,
    pub(crate) value: String,
    pub(crate) note: String,
}

impl Tile {
    pub(crate) fn new(
        title: impl Into<String>,
        value: impl Into<String>,
        note: impl Into<String>,
    ) -> Tile {
        Tile { title: title.into(), value: value.into(), note: note.into() }
    }
}

/// A finding of at least this share of the time is bad news.
const BAD_SHARE: f64 = 0.25;
/// As is this share of failed scenarios.
const BAD_FAILURES: f64 = 0.01;

pub(crate) fn verdict(report: &Report, meta: &Meta) -> Verdict {
    match &report.load {
        Some(load) if !load.steps.is_empty() => of_load(load, meta.diagnosis.as_ref()),
        _ => of_recording(report, meta.diagnosis.as_ref()),
    }
}

fn duration(ns: Option<i64>) -> String {
    ns.map_or_else(|| "–".to_owned(), format::duration)
}

fn of_recording(report: &Report, diagnosis: Option<&Diagnosis>) -> Verdict {
    let tally = &report.totals.tally;
    if tally.operations == 0 {
        return Verdict {
            tone: Tone::Unknown,
            sentence: "There are no SMB operations here".to_owned(),
            reasons: vec!["The section Coverage says what was read.".to_owned()],
        };
    }
    let speed = match tally.elapsed.p95_ns {
        Some(ns) => format!("95 of 100 operations take at most {}", format::duration(ns)),
        None => "no operation has a time".to_owned(),
    };
    let Some(diagnosis) = diagnosis else {
        let sentence = upper(&speed);
        return Verdict { tone: Tone::Unknown, sentence, reasons: Vec::new() };
    };
    let found = diagnosis.findings.first();
    match found {
        Some(found) if found.share >= LEAST_SHARE => {
            // The sentence, and what explains it.
            let what = format::harmless(&found.what);
            let (what, more) = what.split_once(": ").unwrap_or((&what, ""));
            let mut reasons: Vec<_> = Some(more)
                .filter(|more| !more.is_empty())
                .into_iter()
                .map(|more| format!("{}.", upper(more)))
                .collect();
            reasons.push(format!(
                "Without it, clients would save {} ± {} of {}; {speed}.",
                format::duration(found.saved_ns),
                format::duration(found.saved_error_ns),
                format::duration(diagnosis.whole.busy_ns.saturating_add(diagnosis.whole.think_ns)),
            ));
            reasons.extend(
                found
                    .remedies
                    .first()
                    .map(|remedy| format!("To do first ({}): {}.", remedy.at, remedy.action)),
            );
            Verdict {
                tone: if found.share >= BAD_SHARE { Tone::Bad } else { Tone::Watch },
                sentence: format!("{} ({} of the clients' time)", what, format::share(found.share)),
                reasons,
            }
        }
        _ if diagnosis.whole.timed == 0 => Verdict {
            tone: Tone::Unknown,
            sentence: "No operation has a time, so there is no diagnosis".to_owned(),
            reasons: Vec::new(),
        },
        _ => Verdict {
            tone: Tone::Good,
            sentence: format!("Nothing wrong: {speed}"),
            reasons: vec![match found {
                Some(found) => format!(
                    "No cause explains more than 5 % of the time. The largest is {}: {}.",
                    found.trouble.title(),
                    headline(found)
                ),
                None => "No cause costs time.".to_owned(),
            }],
        },
    }
}

/// The step that the answer is read from: the highest load without overload, or the only one.
pub(crate) fn answer_step(load: &Load) -> Option<&StepRow> {
    let of = |row: &&StepRow| {
        load.scenario_steps.iter().any(|it| it.run == row.run && it.step == row.step)
    };
    let steps = || load.steps.iter().filter(of);
    let answer = load.answers.first().and_then(|answer| answer.users);
    steps().find(|row| Some(row.users) == answer).or_else(|| steps().next())
}

fn of_load(load: &Load, diagnosis: Option<&Diagnosis>) -> Verdict {
    let step = answer_step(load);
    let time = |row: &StepRow| {
        format!(
            "95 of 100 scenarios end within {}, half of them within {}",
            duration(row.response.p95_ns),
            duration(row.response.p50_ns)
        )
    };
    let mut reasons: Vec<_> = step
        .map(|row| {
            let users = format::count(row.users);
            format!("With {users} users {}.", time(row))
        })
        .into_iter()
        .collect();
    let failed = step.map_or(0.0, |row| row.failed_share);
    let (mut tone, sentence) = match (load.answers.as_slice(), step) {
        ([answer], _) => of_answer(answer),
        (_, Some(row)) if row.overloaded => (
            Tone::Bad,
            format!(
                "{} users are too many: {} overload",
                format::count(row.users),
                format::share(row.overload_share)
            ),
        ),
        (_, Some(row)) => (
            Tone::Good,
            format!("The server carries these {} users without overload", format::count(row.users)),
        ),
        (_, None) => (Tone::Unknown, "The run has no measured step".to_owned()),
    };
    if let [answer] = load.answers.as_slice() {
        reasons.extend(Some(answer.reason.clone()).filter(|reason| !reason.is_empty()));
    }
    if failed >= BAD_FAILURES {
        tone = Tone::Bad;
        reasons.insert(0, format!("{} of its scenarios failed.", format::share(failed)));
    }
    // Simulated users pause by their schedule.
    let first = diagnosis
        .and_then(|all| all.findings.iter().find(|found| found.trouble != Trouble::SlowClient));
    if let Some(found) = first.filter(|found| found.share >= LEAST_SHARE) {
        reasons.push(format!(
            "Most time of the whole run: {} ({}).",
            found.trouble.title(),
            format::share(found.share)
        ));
    }
    Verdict { tone, sentence, reasons }
}

fn of_answer(answer: &Answer) -> (Tone, String) {
    let Some(users) = answer.users else {
        return (Tone::Bad, "The server carries none of the loads that were tried".to_owned());
    };
    let users = format::count(users);
    match answer.high {
        Some(_) => (Tone::Good, format!("The server carries {users} users without overload")),
        // Nothing was too much.
        None => (Tone::Good, format!("The server carries at least {users} users without overload")),
    }
}

fn upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// At most six numbers.
pub(crate) fn tiles(report: &Report) -> Vec<Tile> {
    if let Some(load) = &report.load
        && let Some(step) = answer_step(load)
    {
        return of_step(load, step);
    }
    let tally = &report.totals.tally;
    let seconds = match (report.start_ns, report.end_ns) {
        (Some(start), Some(end)) => end.saturating_sub(start) as f64 / 1e9,
        _ => 0.0,
    };
    let rate = match seconds > 0.0 {
        true => format!("{}/s", format::number(tally.operations as f64 / seconds)),
        false => String::new(),
    };
    let n = format!("n {}", format::count(tally.elapsed.n));
    let most = format!("at most {}", duration(tally.elapsed.max_ns));
    let bytes = tally.read_bytes.saturating_add(tally.written_bytes);
    let both = format!(
        "{} read, {} written",
        format::bytes(tally.read_bytes),
        format::bytes(tally.written_bytes)
    );
    let unanswered = match tally.unanswered {
        0 => String::new(),
        n => format!("and {} without a reply", format::count(n)),
    };
    vec![
        Tile::new("Operations", format::count(tally.operations), rate),
        Tile::new("Median of operations", duration(tally.elapsed.p50_ns), n),
        Tile::new("p95 of operations", duration(tally.elapsed.p95_ns), most),
        Tile::new(
            "p95 at the server",
            duration(tally.server.p95_ns),
            match tally.server.n {
                0 => "not known".to_owned(),
                n => format!("n {}", format::count(n)),
            },
        ),
        Tile::new("File data", format::bytes(bytes), both),
        Tile::new("Errors", format::count(tally.errors), unanswered),
    ]
}

fn of_step(load: &Load, step: &StepRow) -> Vec<Tile> {
    let at = format!("with {} users", format::count(step.users));
    let users = match load.answers.as_slice() {
        [answer] => {
            let interval = match (answer.low, answer.high, answer.confidence) {
                (Some(low), Some(high), Some(confidence)) => format!(
                    "{} to {}, {} sure",
                    format::count(low),
                    format::count(high),
                    format::share(confidence).replace(".0 ", " ")
                ),
                (Some(low), Some(high), None) => {
                    format!("{} to {}", format::count(low), format::count(high))
                }
                (Some(low), None, _) => format!("at least {}", format::count(low)),
                (None, Some(high), _) => format!("at most {}", format::count(high)),
                (None, None, _) => String::new(),
            };
            let users = answer.users.map_or_else(|| "none".to_owned(), format::count);
            Tile::new("Users without overload", users, interval)
        }
        _ => Tile::new(
            "Users",
            format::count(step.users),
            format!("overload {}", format::share(step.overload_share)),
        ),
    };
    let late = format!("late at most {}", duration(step.late.max_ns));
    vec![
        users,
        Tile::new("p95 of scenarios", duration(step.response.p95_ns), at.clone()),
        Tile::new("Median of scenarios", duration(step.response.p50_ns), at),
        Tile::new(
            "Scenarios per second",
            format::number(step.throughput),
            format!("of {} scheduled", format::number(step.rate)),
        ),
        Tile::new("p95 of lateness", duration(step.late.p95_ns), late),
        Tile::new(
            "Failed scenarios",
            format::count(step.failed),
            format!("{} of {}", format::share(step.failed_share), format::count(step.scheduled)),
        ),
    ]
}

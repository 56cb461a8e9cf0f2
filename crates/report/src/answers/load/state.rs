//! What a load run says in one sentence, after its one state.

use smbscope_analysis::channels::SessionTimeline;
use smbscope_analysis::explain::{Diagnosis, is_reported};
use smbscope_analysis::summary::{Answer, Bottleneck, Load, LoadState, SCENARIOS_MIN, StepRow};
use smbscope_findings::Kind as _;

use crate::answers::load::bottleneck::bottleneck;
use crate::answers::load::capacity::failure_meaning;
use crate::document::{Tone, Verdict};
use crate::value::format;

/// The workload that moves bulk data over the channels of a session.
const MIGRATION: &str = "migrate";
/// Names of users that are listed.
const NAMED_MAX: usize = 5;

/// Whether the run moves bulk data, for which users and their response times say nothing.
pub(crate) fn is_migration(load: &Load) -> bool {
    load.runs.iter().any(|run| run.description.workload == MIGRATION)
}

/// Channels that were bound: a refused one carries nothing.
pub(crate) fn bound(session: &SessionTimeline) -> u64 {
    session.channels.iter().filter(|one| one.bind_status.is_none()).count() as u64
}

/// Median and 95th percentile of the response times of scenarios: of all steps with the answer's users, or
/// of that step where no capacity was searched.
pub(crate) fn response(load: &Load, step: &StepRow) -> (Option<i64>, Option<i64>) {
    match load.answers.as_slice() {
        [answer] if answer.users == Some(step.users) => (answer.p50_ns, answer.p95_ns),
        _ => (step.response.p50_ns, step.response.p95_ns),
    }
}

/// What a run showed, as one sentence with a full stop.
pub fn load_sentence(load: &Load) -> String {
    format!("{}.", sentence(load, None).1)
}

/// What a run showed, and why.
pub(crate) fn load_verdict(
    load: &Load,
    session: Option<&SessionTimeline>,
    diagnosis: Option<&Diagnosis>,
) -> Verdict {
    let (tone, sentence) = sentence(load, session);
    let mut reasons: Vec<_> = reason(load).into_iter().collect();
    reasons
        .extend(load.answer_step().filter(|_| !is_migration(load)).map(|row| numbers(load, row)));
    // The answer of the run itself would contradict a state that rules an answer out.
    if let [answer] = load.answers.as_slice()
        && !matches!(load.state(), LoadState::Failing | LoadState::TooFew | LoadState::Refused)
    {
        reasons.extend(Some(answer.reason.clone()).filter(|reason| !reason.is_empty()));
    }
    let beyond = load.steps.iter().filter(|row| row.overloaded).min_by_key(|row| row.users);
    reasons.extend(beyond.and_then(|row| {
        let bottleneck = bottleneck(row)?;
        Some(format!("Bottleneck with {}: {bottleneck}.", users(row.users)))
    }));
    reasons.extend(others(load));
    let first = diagnosis.and_then(|all| all.findings.first());
    if let Some(found) = first.filter(|found| is_reported(found)) {
        reasons.push(format!(
            "Most time of the measured operations: {} ({}).",
            found.kind.title(),
            format::share(found.share())
        ));
    }
    Verdict { tone, sentence, reasons }
}

fn sentence(load: &Load, session: Option<&SessionTimeline>) -> (Tone, String) {
    let state = load.state();
    let step = load.answer_step();
    let with = step.map_or_else(String::new, |row| format!(" with {}", users(row.users)));
    let is_stopped = load.runs.iter().any(|part| !part.complete);
    match (state, step, load.answers.as_slice()) {
        (LoadState::ServerGone, ..) => {
            let gone = load.steps.iter().find(|row| row.server_gone);
            let with = gone.map_or_else(String::new, |row| format!(" with {}", users(row.users)));
            (Tone::Bad, format!("The server stopped answering{with}"))
        }
        (LoadState::NotMeasured, ..) | (_, None, _) if is_stopped => {
            (Tone::Unknown, "The run was interrupted before its measured window".to_owned())
        }
        (LoadState::NotMeasured, ..) | (_, None, _) => {
            (Tone::Unknown, "The run has no measured step".to_owned())
        }
        (LoadState::Apart, ..) => {
            let apart = format::duration(load.clocks_apart_ns().unwrap_or(0));
            let sentence = format!(
                "The parts of the run were {apart} apart: they did not load the server together"
            );
            (Tone::Unknown, sentence)
        }
        (LoadState::Outage, ..) => {
            let longest = format::duration(load.outages().max().unwrap_or(0));
            let times = match load.outages().count() {
                1 => format!("for {longest}"),
                n => format!("{} times, for at most {longest}", format::count(n as u64)),
            };
            (Tone::Bad, format!("The server did not answer {times}{with}"))
        }
        (LoadState::Failing, ..) => {
            let share = format::share(load.outcomes().failed_share());
            (Tone::Bad, format!("{share} of the scenarios failed{with}"))
        }
        (LoadState::Refused, Some(row), _) => {
            let refused = format::count(load.users_refused().len() as u64);
            (
                Tone::Bad,
                format!("The server refused to log {refused} of {} on", users(row.users_here)),
            )
        }
        (LoadState::Interrupted, _, [_]) => {
            (Tone::Watch, "The search was interrupted before it had an answer".to_owned())
        }
        (LoadState::Interrupted, Some(row), _) => {
            let after = format::duration(row.duration_ns);
            (Tone::Watch, format!("The run was interrupted after {after} of its measured window"))
        }
        (_, Some(row), _) if is_migration(load) => (Tone::Good, moved(session, row)),
        (LoadState::TooFew, Some(row), _) => {
            let ended = format::count(load.outcomes().ended);
            let carried = users(row.users);
            let sentence = format!(
                "Only {ended} scenarios ended: too few to say whether the server carries {carried}"
            );
            (Tone::Watch, sentence)
        }
        (LoadState::ClientLimited, _, [answer]) => (Tone::Watch, capacity(load, answer).1),
        (_, _, [answer]) => capacity(load, answer),
        (LoadState::ClientLimited, ..) => {
            (Tone::Watch, format!("The load generator was the limit{with}, not the server"))
        }
        (LoadState::Overloaded, Some(row), _) => {
            let verb = if row.users == 1 { "is" } else { "are" };
            let overload = format::share(row.overload_share);
            (Tone::Bad, format!("{} {verb} too many: {overload} overload", users(row.users)))
        }
        (LoadState::Closed, Some(row), _) => {
            let rate = format::number(row.throughput);
            let verb = if row.users == 1 { "completes" } else { "complete" };
            let who = users(row.users);
            (Tone::Good, format!("{who} without pauses {verb} {rate} scenarios per second"))
        }
        (LoadState::Carried, Some(row), _) if row.users == 1 => {
            (Tone::Good, "The server carries this user without overload".to_owned())
        }
        (LoadState::Carried, Some(row), _) => {
            let carried = users(row.users);
            (Tone::Good, format!("The server carries these {carried} without overload"))
        }
    }
}

/// What the state rests on.
fn reason(load: &Load) -> Option<String> {
    match load.state() {
        LoadState::Apart => Some(
            "Their clocks differ by that much against the server's, so that --start-at was another moment on each. \
             Synchronise the machines (NTP) and repeat the run."
                .to_owned(),
        ),
        LoadState::Outage => {
            let (lost, again) = load.opens_lost();
            Some(format!(
                "From its last answer to its next one. {} opens were lost with their connections, {} durable ones were \
                 reconnected.",
                format::count(lost),
                format::count(again)
            ))
        }
        LoadState::Failing => {
            let most = load.failures.iter().max_by_key(|row| row.measured)?;
            let meaning = failure_meaning(&most.status);
            Some(format!(
                "Most often {} failed with {}{}.",
                format::sanitized(&most.scenario),
                format::sanitized(&most.status),
                meaning.map_or_else(String::new, |meaning| format!(": {meaning}"))
            ))
        }
        LoadState::Refused => {
            let names = load.users_refused();
            let mut listed: Vec<_> =
                names.iter().take(NAMED_MAX).map(|name| format::sanitized(name)).collect();
            if names.len() > NAMED_MAX {
                listed.push(format!("{} more", format::count((names.len() - NAMED_MAX) as u64)));
            }
            Some(format!("Refused: {}.", listed.join(", ")))
        }
        LoadState::TooFew => {
            let least = SCENARIOS_MIN.max(load.answer_step().map_or(0, |row| row.users_here));
            Some(format!("At least {} are needed: use a longer --duration.", format::count(least)))
        }
        LoadState::ClientLimited => {
            Some("The load generator was the bottleneck, so that the server may carry more.".to_owned())
        }
        LoadState::Closed => Some(
            "Users who do not follow a schedule are never too many: run without --closed to learn whether the server \
             carries them."
                .to_owned(),
        ),
        _ => None,
    }
}

/// Which other programs used up the server's CPUs, where no step says so as its bottleneck.
fn others(load: &Load) -> Option<String> {
    let step = load.answer_step()?;
    let is_shared = step.bottleneck == Some(Bottleneck::OtherProcesses) && !step.overloaded;
    is_shared.then(|| {
        format!(
            "The server's CPUs were {} busy, mostly with other programs{}: without them it may carry more.",
            format::share(step.server_cpu_share.unwrap_or(1.0)),
            match step.server_cpu_others.as_slice() {
                [] => String::new(),
                names => format!(" ({})", format::sanitized(&names.join(", "))),
            }
        )
    })
}

/// Response times, and what share failed and did not start.
fn numbers(load: &Load, row: &StepRow) -> String {
    let (median, p95) = response(load, row);
    let of = load.outcomes();
    let (_, high) = of.failed_interval();
    let failed = format!(
        "{} of {} failed (95 % sure: at most {})",
        format::count(of.failed),
        format::count(of.ended),
        format::share(high)
    );
    let waiting = match of.not_started {
        0 => String::new(),
        n => format!(", {} more were due and did not start", format::count(n)),
    };
    if median.is_none() {
        return format!("With {} {failed}{waiting}.", users(row.users));
    }
    format!(
        "With {} 95 of 100 scenarios end within {}, half of them within {}; {failed}{waiting}.",
        users(row.users),
        format::known_duration(p95),
        format::known_duration(median)
    )
}

/// A migration is one user's: its rate is what counts.
fn moved(session: Option<&SessionTimeline>, row: &StepRow) -> String {
    // What was configured is not what there was.
    let over = session.map(bound).map_or_else(String::new, |channels| {
        let word = if channels == 1 { "channel" } else { "channels" };
        format!(" over {} {word}", format::count(channels))
    });
    match row.bytes_per_second {
        Some(bytes) => format!("Data moved at {}{over}", format::bits(bytes * 8.0)),
        None => format!("Data moved{over}"),
    }
}

fn capacity(load: &Load, answer: &Answer) -> (Tone, String) {
    let Some(carried) = answer.users else {
        return (Tone::Bad, "The server carries none of the loads that were tried".to_owned());
    };
    let carried = users(carried);
    if answer.derived {
        // Read from the steps, without the limits of the run.
        return (Tone::Watch, format!("The highest load without overload was {carried}"));
    }
    let limits = load.runs.first().map_or(&[][..], |run| &run.description.max_response);
    let within = if limits.is_empty() {
        String::new()
    } else {
        format!(" and within {}", format::sanitized(&limits.join(", ")))
    };
    // Where nothing was too much, it may carry more.
    let least = if answer.high.is_none() { "at least " } else { "" };
    (Tone::Good, format!("The server carries {least}{carried} without overload{within}"))
}

fn users(count: u64) -> String {
    if count == 1 { "1 user".to_owned() } else { format!("{} users", format::count(count)) }
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::summary::{Failure, RunPart, StepName};

    use super::*;

    fn run(step: StepRow, answer: Option<Answer>) -> Load {
        let name = StepName { users: step.users, ..StepName::default() };
        let mut part = RunPart { complete: true, ..RunPart::default() };
        part.description.max_response = vec!["p95<2s".to_owned()];
        Load {
            runs: vec![part],
            steps: vec![step],
            scenario_steps: vec![name],
            answers: answer.into_iter().collect(),
            ..Load::default()
        }
    }

    fn said(load: &Load) -> (Tone, String) {
        let verdict = load_verdict(load, None, None);
        (verdict.tone, verdict.sentence)
    }

    #[test]
    fn a_limit_is_said_to_be_kept_only_by_the_run_s_own_answer() {
        let step = StepRow { users: 150, completed: 600, ..StepRow::default() };
        let own = Answer { users: Some(150), high: Some(160), ..Answer::default() };
        let of = |step: StepRow, answer: Answer| said(&run(step, Some(answer)));
        let carried = "The server carries 150 users without overload and within p95<2s".to_owned();
        assert_eq!(of(step.clone(), own.clone()), (Tone::Good, carried));
        let derived = "The highest load without overload was 150 users".to_owned();
        assert_eq!(
            of(step.clone(), Answer { derived: true, ..own.clone() }),
            (Tone::Watch, derived)
        );
        let limited = StepRow { limited_by_client: true, ..step.clone() };
        assert_eq!(of(limited, own.clone()).0, Tone::Watch);
        let gone = "The server stopped answering with 150 users".to_owned();
        let step_gone = StepRow { server_gone: true, ..step.clone() };
        assert_eq!(of(step_gone, own.clone()), (Tone::Bad, gone));
        // The step in which it went had no window yet, and so no row.
        let mut load = run(step, Some(own));
        load.runs[0].description.server_gone_ns = Some(1);
        assert_eq!(said(&load), (Tone::Bad, "The server stopped answering".to_owned()));
    }

    #[test]
    fn nothing_but_a_load_that_was_carried_is_said_to_be_carried() {
        let good = StepRow { users: 10, users_here: 10, completed: 230, ..StepRow::default() };
        let carried = "The server carries these 10 users without overload".to_owned();
        assert_eq!(said(&run(good.clone(), None)), (Tone::Good, carried));
        let mut others = vec![
            run(StepRow { failed: 80, ..good.clone() }, None),
            run(StepRow { server_gone: true, ..good.clone() }, None),
            run(StepRow { overloaded: true, ..good.clone() }, None),
            run(StepRow { limited_by_client: true, ..good.clone() }, None),
            run(StepRow { completed: 5, ..good.clone() }, None),
        ];
        others.extend((0..3).map(|_| run(good.clone(), None)));
        others[5].runs[0].description.pacing = smbscope_tables::description::CLOSED.to_owned();
        others[6].runs[0].complete = false;
        others[6].steps[0].ended_early = true;
        others[7].runs[0].description.users_refused = vec!["eva".to_owned()];
        for load in &others {
            let verdict = load_verdict(load, None, None);
            let text = format!("{}. {}", verdict.sentence, verdict.reasons.join(" "));
            assert!(!text.contains("without overload"), "{text}");
            assert_eq!(load_sentence(load), format!("{}.", verdict.sentence));
        }
        others[0].failures = vec![Failure {
            status: "STATUS_DISK_FULL".into(),
            scenario: "Save".into(),
            measured: 80,
            ..Failure::default()
        }];
        let failing = load_verdict(&others[0], None, None);
        assert_eq!(failing.sentence, "34.8 % of the scenarios failed with 10 users");
        assert!(failing.reasons[0].contains("the share is full"), "{:?}", failing.reasons);
        let refused = load_verdict(&others[7], None, None);
        assert_eq!(refused.sentence, "The server refused to log 1 of 10 users on");
        assert_eq!(refused.reasons[0], "Refused: eva.");
    }
}

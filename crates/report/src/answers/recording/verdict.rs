//! What the recording says in one sentence, why in two more, and the six numbers next to it.
//!
//! A search for the capacity is answered by its number of users; another load run by whether the server
//! kept up; a capture by its most costly finding.

mod tiles;

pub(crate) use tiles::tiles;

use smbscope_analysis::channels::SessionTimeline;
use smbscope_analysis::explain::{Diagnosis, is_reported};
use smbscope_analysis::summary::{Answer, Load, Net, Report, StepRow};
use smbscope_findings::Kind as _;
use smbscope_tables::tables::Coverage;

use crate::answers::diagnosis::state::state_verdict;
use crate::answers::diagnosis::{logged, speed};
use crate::answers::load::bottleneck::bottleneck;
use crate::answers::recording::meta::Meta;
use crate::answers::recording::problem;
use crate::document::{Tone, Verdict};
use crate::value::format;

/// What a capture of name queries and announcements holds.
const NOT_SESSIONS: &str =
    "datagrams of NetBIOS (names, announcements, mailslots): these are not SMB sessions";
const IN_IPX: &str = "packets of SMB or NetBIOS sessions in IPX, which smbscope does not read: it reads SMB over TCP, \
                      NetBEUI, RDMA";
/// This share of failed scenarios is bad news.
const BAD_FAILURES: f64 = 0.01;

pub(crate) fn verdict(report: &Report, meta: &Meta) -> Verdict {
    match &report.load {
        Some(load) if !load.steps.is_empty() => {
            let channels = report.channels.as_ref().and_then(|channels| channels.sessions.first());
            load_verdict(load, channels, meta.diagnosis.as_ref())
        }
        _ => recording_verdict(report, meta.diagnosis.as_ref()),
    }
}

/// What the path carries, without SMB.
fn net_verdict(net: &Net) -> Verdict {
    let mut sentences = net.tests.iter().map(|test| {
        format!(
            "{} from {} to {}, {}",
            format::bits(test.bits_per_second),
            test.sender,
            test.receiver,
            crate::answers::recording::limit(test)
        )
    });
    let first = sentences.next().unwrap_or_else(|| "Only round trips were measured".to_owned());
    let mut reasons: Vec<_> = sentences.take(3).map(|more| format!("{more}.")).collect();
    reasons.extend(net.problems.iter().map(problem));
    let tone = if net.problems.is_empty() { Tone::Good } else { Tone::Watch };
    Verdict { tone, sentence: format!("Without SMB: {first}"), reasons }
}

fn recording_verdict(report: &Report, diagnosis: Option<&Diagnosis>) -> Verdict {
    let tally = &report.totals.tally;
    // Clients that cannot connect leave no operation.
    if let Some(diagnosis) = diagnosis
        && diagnosis.findings.iter().any(|found| found.details.is_noticed)
    {
        return state_verdict(diagnosis, &speed(diagnosis.p95_ns));
    }
    if let (0, Some(row)) = (tally.operations, report.logged.first()) {
        return Verdict {
            tone: Tone::Unknown,
            sentence: logged::times_of(row),
            reasons: vec![format!("{}: {}.", format::capitalized(row.side), row.remedy)],
        };
    }
    if let (0, Some(net)) = (tally.operations, &report.net) {
        return net_verdict(net);
    }
    if tally.operations == 0 {
        return Verdict {
            tone: Tone::Unknown,
            sentence: "There are no SMB operations here".to_owned(),
            reasons: vec![without_operations(report)],
        };
    }
    match diagnosis {
        Some(diagnosis) => state_verdict(diagnosis, &speed(diagnosis.p95_ns)),
        None => {
            let sentence = format::capitalized(&speed(tally.elapsed.p95_ns));
            Verdict { tone: Tone::Unknown, sentence, reasons: Vec::new() }
        }
    }
}

/// What a recording without operations holds, and what to do.
fn without_operations(report: &Report) -> String {
    let sum =
        |of: fn(&Coverage) -> u64| report.coverage.iter().map(of).fold(0, u64::saturating_add);
    let held = [
        (sum(|row| row.frames), "packets"),
        (sum(|row| row.frames_link_unknown), "of them of a link type that is not read"),
        (sum(|row| row.frames_not_tcp), "of them not TCP"),
        (sum(|row| row.frames_not_smb), "of other TCP connections"),
        (sum(|row| row.messages), "messages of SMB without an operation"),
        (sum(|row| row.frames_tunnelled), "in tunnels that stay closed"),
        (sum(|row| row.datagrams_not_sessions), NOT_SESSIONS),
        (sum(|row| row.frames_netbeui), "frames of NetBEUI connections without SMB1 in them"),
        (sum(|row| row.frames_ipx), IN_IPX),
        (sum(|row| row.quic_connections), "connections of SMB over QUIC, which is encrypted"),
        (sum(|row| row.quic_maybe_smb), "QUIC connections that may be SMB"),
    ];
    let words = held.iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> = words
        .map(|(count, what)| match (count, *what) {
            (1, "packets") => "1 packet".to_owned(),
            (count, what) => format!("{} {what}", format::count(*count)),
        })
        .collect();
    let counters = report.load.as_ref().map_or(0, |load| load.counters.len());
    if words.is_empty() && counters > 0 {
        let counters = format::count(counters as u64);
        return format!(
            "The input holds samples of {counters} counters. Give it together with a capture of the same time (smbscope report \
             packets.etl counters.csv), or ask about it: smbscope query INPUT \"select name, instance, avg(value) from counters \
             group by 1, 2\"."
        );
    }
    let is_log = |row: &Coverage| row.format.starts_with("Windows event");
    if words.is_empty() && !report.coverage.is_empty() && report.coverage.iter().all(is_log) {
        if let Some(words) = logged::without_trouble(&report.logged_other) {
            return words;
        }
        let notes: Vec<_> = report.coverage.iter().filter_map(|row| row.notes.as_deref()).collect();
        return format!(
            "The logs hold no events of SMB's server or client ({}). The script of `smbscope record --print-windows-script --what \
             smb --to 'S:\\temp'` records and exports those that smbscope reads.",
            notes.join(" ").trim_end_matches('.')
        );
    }
    if sum(|row| row.frames_link_unknown) > 0 {
        let notes: Vec<_> = report.coverage.iter().filter_map(|row| row.notes.as_deref()).collect();
        let held = format!("The input holds {}. {}", words.join(", "), notes.join(" "));
        return format!("{} Record on a network interface.", held.trim_end());
    }
    if sum(|row| row.quic_connections) > 0 && sum(|row| row.messages) == 0 {
        return format!(
            "The input holds {}. Operations inside QUIC are visible to the server alone: its events show them (smbscope record \
             --print-windows-script --what smb --to 'S:\\temp').",
            words.join(", ")
        );
    }
    let held = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    format!(
        "The input holds {held}. Record the server's port 445 while clients use it: tcpdump -i INTERFACE -s 512 -w \
         share.pcap port 445."
    )
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

/// Median and 95th percentile of the response times of scenarios: of all steps with the answer's users, or
/// of that step where no capacity was searched.
pub(crate) fn response(load: &Load, step: &StepRow) -> (Option<i64>, Option<i64>) {
    match load.answers.as_slice() {
        [answer] if answer.users == Some(step.users) => (answer.p50_ns, answer.p95_ns),
        _ => (step.response.p50_ns, step.response.p95_ns),
    }
}

/// The workload that moves bulk data over the channels of a session.
const MIGRATION: &str = "migrate";

/// Whether the run moves bulk data, for which users and their response times say nothing.
pub(crate) fn is_migration(load: &Load) -> bool {
    load.runs.iter().any(|run| run.description.workload == MIGRATION)
}

/// Channels that were bound: a refused one carries nothing.
pub(crate) fn bound(session: &SessionTimeline) -> u64 {
    session.channels.iter().filter(|one| one.bind_status.is_none()).count() as u64
}

fn load_verdict(
    load: &Load,
    session: Option<&SessionTimeline>,
    diagnosis: Option<&Diagnosis>,
) -> Verdict {
    let step = answer_step(load);
    let time = |row: &StepRow| {
        let (median, p95) = response(load, row);
        format!(
            "95 of 100 scenarios end within {}, half of them within {}",
            format::known_duration(p95),
            format::known_duration(median)
        )
    };
    // One user who moves data has no share of scenarios that end in time.
    let mut reasons: Vec<_> = step
        .filter(|_| !is_migration(load))
        .map(|row| {
            let users = format::count(row.users);
            format!("With {users} users {}.", time(row))
        })
        .into_iter()
        .collect();
    let failed = step.map_or(0.0, |row| row.failed_share);
    let (mut tone, sentence) = match (load.answers.as_slice(), step) {
        ([answer], _) => capacity_verdict(load, answer),
        (_, Some(row)) if row.overloaded => (
            Tone::Bad,
            format!(
                "{} users are too many: {} overload",
                format::count(row.users),
                format::share(row.overload_share)
            ),
        ),
        (_, Some(row)) => (Tone::Good, step_verdict(load, session, row)),
        (_, None) => (Tone::Unknown, "The run has no measured step".to_owned()),
    };
    if let [answer] = load.answers.as_slice() {
        reasons.extend(Some(answer.reason.clone()).filter(|reason| !reason.is_empty()));
    }
    let beyond = load.steps.iter().filter(|row| row.overloaded).min_by_key(|row| row.users);
    reasons.extend(beyond.and_then(|row| {
        let bottleneck = bottleneck(row)?;
        Some(format!("Bottleneck with {} users: {bottleneck}.", format::count(row.users)))
    }));
    // A step that ended before its window has no row: only the run says that its server is gone.
    let gone = load.steps.iter().find(|row| row.server_gone);
    if gone.is_some() || load.runs.iter().any(|run| run.description.server_gone_ns.is_some()) {
        reasons.insert(0, format!("{sentence}."));
        let with = gone
            .map_or_else(String::new, |row| format!(" with {} users", format::count(row.users)));
        return Verdict {
            tone: Tone::Bad,
            sentence: format!("The server stopped answering{with}"),
            reasons,
        };
    }
    if step.is_some_and(|row| row.limited_by_client) {
        tone = Tone::Watch;
        let why = "The load generator was the bottleneck, so that the server may carry more.";
        reasons.insert(0, why.to_owned());
    }
    if failed >= BAD_FAILURES {
        tone = Tone::Bad;
        reasons.insert(0, format!("{} of its scenarios failed.", format::share(failed)));
    }
    let first = diagnosis.and_then(|all| all.findings.first());
    if let Some(found) = first.filter(|found| is_reported(found)) {
        reasons.push(format!(
            "Most time of the whole run: {} ({}).",
            found.kind.title(),
            format::share(found.share())
        ));
    }
    Verdict { tone, sentence, reasons }
}

/// A step without overload. A migration is one user's: its rate is what counts.
fn step_verdict(load: &Load, session: Option<&SessionTimeline>, row: &StepRow) -> String {
    match (row.bytes_per_second.filter(|_| is_migration(load)), row.users) {
        (Some(bytes), _) => {
            // What was configured is not what there was.
            let over = session.map(bound).map_or_else(String::new, |channels| {
                let word = if channels == 1 { "channel" } else { "channels" };
                format!(" over {} {word}", format::count(channels))
            });
            format!("Data moved at {}{over}", format::bits(bytes * 8.0))
        }
        (None, 1) => "The server carries this user without overload".to_owned(),
        (None, users) => {
            format!("The server carries these {} users without overload", format::count(users))
        }
    }
}

fn capacity_verdict(load: &Load, answer: &Answer) -> (Tone, String) {
    let Some(users) = answer.users else {
        return (Tone::Bad, "The server carries none of the loads that were tried".to_owned());
    };
    if answer.derived {
        // Read from the steps, without the limits of the run.
        let users = format::count(users);
        return (Tone::Watch, format!("The highest load without overload was {users} users"));
    }
    let limits = load.runs.first().map_or(&[][..], |run| &run.description.max_response);
    let within = if limits.is_empty() {
        String::new()
    } else {
        format!(" and within {}", format::sanitized(&limits.join(", ")))
    };
    // Where nothing was too much, it may carry more.
    let least = if answer.high.is_none() { "at least " } else { "" };
    let users = format::count(users);
    (Tone::Good, format!("The server carries {least}{users} users without overload{within}"))
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::summary::{RunPart, StepName};

    use super::*;

    #[test]
    fn a_capture_of_datagrams_says_that_these_are_not_sessions() {
        let coverage = Coverage {
            frames: 9,
            frames_not_tcp: 9,
            datagrams_not_sessions: 7,
            ..Coverage::default()
        };
        let report = Report { coverage: vec![coverage], ..Report::default() };
        let Verdict { sentence, reasons, .. } = recording_verdict(&report, None);
        assert_eq!(sentence, "There are no SMB operations here");
        assert!(reasons[0].contains("7 datagrams of NetBIOS"), "{reasons:?}");
        assert!(reasons[0].contains("these are not SMB sessions"), "{reasons:?}");
        let coverage = Coverage { frames: 9, frames_ipx: 13, ..Coverage::default() };
        let report = Report { coverage: vec![coverage], ..Report::default() };
        let reasons = recording_verdict(&report, None).reasons;
        assert!(reasons[0].contains("13 packets of SMB or NetBIOS sessions in IPX"), "{reasons:?}");
        assert!(!reasons[0].contains("these are not SMB sessions"), "{reasons:?}");
        let coverage = Coverage { frames: 9, quic_connections: 2, ..Coverage::default() };
        let report = Report { coverage: vec![coverage], ..Report::default() };
        let reasons = recording_verdict(&report, None).reasons;
        assert!(reasons[0].contains("2 connections of SMB over QUIC"), "{reasons:?}");
    }

    fn load(step: StepRow, answer: Answer) -> Verdict {
        let name = StepName { users: step.users, ..StepName::default() };
        let mut part = RunPart::default();
        part.description.max_response = vec!["p95<2s".to_owned()];
        let load = Load {
            runs: vec![part],
            steps: vec![step],
            scenario_steps: vec![name],
            answers: vec![answer],
            ..Load::default()
        };
        load_verdict(&load, None, None)
    }

    #[test]
    fn a_limit_is_said_to_be_kept_only_by_the_run_s_own_answer() {
        let step = StepRow { users: 150, ..StepRow::default() };
        let own = Answer { users: Some(150), high: Some(160), ..Answer::default() };
        let verdict = load(step.clone(), own.clone());
        let said = "The server carries 150 users without overload and within p95<2s";
        assert_eq!((verdict.tone, verdict.sentence.as_str()), (Tone::Good, said));
        let verdict = load(step.clone(), Answer { derived: true, ..own.clone() });
        let said = "The highest load without overload was 150 users";
        assert_eq!((verdict.tone, verdict.sentence.as_str()), (Tone::Watch, said));
        let verdict = load(StepRow { limited_by_client: true, ..step.clone() }, own.clone());
        assert_eq!(verdict.tone, Tone::Watch);
        let verdict = load(StepRow { server_gone: true, ..step.clone() }, own.clone());
        let said = "The server stopped answering with 150 users";
        assert_eq!((verdict.tone, verdict.sentence.as_str()), (Tone::Bad, said));
        // The step in which it went had no window yet, and so no row.
        let mut part = RunPart::default();
        part.description.server_gone_ns = Some(1);
        let load =
            Load { runs: vec![part], steps: vec![step], answers: vec![own], ..Load::default() };
        let verdict = load_verdict(&load, None, None);
        let said = "The server stopped answering";
        assert_eq!((verdict.tone, verdict.sentence.as_str()), (Tone::Bad, said));
    }
}

//! The state in one sentence, why in a few more: what `report` and `explain` begin with.

use smbscope_analysis::explain::{Account, Diagnosis, Effect, Finding, State};
use smbscope_findings::{Confidence, Kind as _};
use smbscope_tables::status_meaning::explained;

use super::{headline, owner, saved};
use crate::document::{Tone, Verdict};
use crate::value::format;

/// From this share of the waiting on, the distance is worth saying.
const DISTANCE_SHARE: f64 = 0.5;
/// This share of requests that fail is worth saying.
const FAILED_SHARE: f64 = 0.05;
/// Shorter round trips are not called a distance, ns.
const DISTANCE_MIN_NS: i64 = 2_000_000;

/// The verdict of a diagnosis; `speed` says how long operations take, for a healthy recording.
pub(crate) fn state_verdict(diagnosis: &Diagnosis, speed: &str) -> Verdict {
    let mut verdict = match diagnosis.state {
        State::Broken | State::Slow => bad(diagnosis),
        State::Healthy => healthy(diagnosis, speed),
        State::Unknown => unknown(diagnosis),
    };
    verdict.sentence = format!("{}: {}", diagnosis.state.words(), verdict.sentence);
    verdict.reasons.extend(account(&diagnosis.account));
    verdict
}

/// The finding that decides the state: what is broken before what is slow, what is sure before what is possible.
pub(crate) fn deciding(diagnosis: &Diagnosis) -> Option<&Finding> {
    let noticed = || diagnosis.findings.iter().filter(|found| found.details.is_noticed);
    let broken = noticed().find(|found| found.details.effect == Effect::Broken);
    let sure = || noticed().find(|found| found.confidence > Some(Confidence::Possible));
    broken.or_else(sure).or_else(|| noticed().next())
}

fn bad(diagnosis: &Diagnosis) -> Verdict {
    let tone = if diagnosis.state == State::Broken { Tone::Bad } else { Tone::Watch };
    let possible = |found: &&Finding| found.confidence == Some(Confidence::Possible);
    let found = deciding(diagnosis);
    let is_broken = |found: &&Finding| found.details.effect == Effect::Broken;
    match found
        .filter(|found| is_broken(found) || diagnosis.state == State::Slow && !possible(found))
    {
        Some(found) => Verdict { tone, ..of_finding(found, diagnosis) },
        None if diagnosis.state == State::Broken => {
            let reason =
                "The log of the server says why; smbscope report INPUT --all lists all statuses."
                    .to_owned();
            let sentence = failing(&diagnosis.account);
            Verdict { tone, sentence, reasons: vec![reason] }
        }
        None => Verdict { tone, ..without_cause(diagnosis, found) },
    }
}

fn of_finding(found: &Finding, diagnosis: &Diagnosis) -> Verdict {
    let what = format::sanitized(&found.what);
    let (what, more) = what.split_once(": ").unwrap_or((&what, ""));
    let mut reasons: Vec<_> = Some(more)
        .filter(|more| !more.is_empty())
        .map(|more| format!("{}.", format::capitalized(more)))
        .into_iter()
        .collect();
    if found.saved_ns() > 0 {
        reasons.push(format!(
            "Without it, clients would save {} of {} of waiting.",
            saved(found),
            format::duration(diagnosis.whole.waited_ns),
        ));
    }
    reasons.push(format!(
        "Responsible: {} ({}).",
        owner(found),
        found.confidence.map_or("certain", Confidence::word)
    ));
    let remedy = found.remedies.first();
    reasons.extend(remedy.map(|remedy| format!("To do first ({}): {}.", remedy.at, remedy.action)));
    let share = match found.share() {
        share if share > 0.0 => format!(" ({} of the waiting)", format::share(share)),
        _ => String::new(),
    };
    Verdict { tone: Tone::Bad, sentence: format!("{}{share}", format::lowered(what)), reasons }
}

/// People wait, and no finding is sure.
fn without_cause(diagnosis: &Diagnosis, possible: Option<&Finding>) -> Verdict {
    let mut reasons = Vec::new();
    let sentence = match &diagnosis.slowest {
        Some(row) => format!(
            "{} waits {} in a row, {} of it for the server, and no cause is clear",
            format::sanitized(&row.client),
            format::duration(row.waited_ns),
            format::duration(row.server_ns)
        ),
        None => "people wait, and no cause is clear".to_owned(),
    };
    reasons.extend(possible.map(|found| {
        let what = format::sanitized(&found.what);
        format!(
            "Possibly: {}.",
            format::lowered(what.split_once(": ").map_or(&*what, |(what, _)| what))
        )
    }));
    reasons.push(
        "To decide it, record inside the server: Samba smbscope record --out run; Windows smbscope record \
         --print-windows-script --what smb --to 'S:\\temp'."
            .to_owned(),
    );
    Verdict { tone: Tone::Watch, sentence, reasons }
}

fn healthy(diagnosis: &Diagnosis, speed: &str) -> Verdict {
    let account = &diagnosis.account;
    let share = account.distance_ns as f64 / account.waited_ns.max(1) as f64;
    let far =
        diagnosis.round_trip_ns.filter(|ns| *ns >= DISTANCE_MIN_NS && share >= DISTANCE_SHARE);
    let mut reasons = Vec::new();
    let sentence = match far {
        Some(ns) => {
            reasons.push(
                "Only fewer round trips or a shorter distance help: smbscope predict INPUT --change compound=on, \
                 read-block=1M, depth=8 or rtt=5ms says by how much."
                    .to_owned(),
            );
            format!(
                "{speed}; {} of the waiting is the {} to the server and back, and nothing is wrong at the server",
                format::share(share),
                format::duration(ns)
            )
        }
        None => speed.to_owned(),
    };
    let is_failing = account.failed as f64 >= FAILED_SHARE * account.requests.max(1) as f64;
    let (tone, sentence) = if is_failing && account.failed > 0 {
        (Tone::Watch, format!("{sentence}, but {}", failing(account)))
    } else {
        (Tone::Good, sentence)
    };
    reasons.push(match diagnosis.findings.first() {
        Some(found) => format!(
            "Nothing costs as much as a person notices. The largest is {}: {}.",
            found.kind.title(),
            headline(found)
        ),
        None => "No cause of waiting was found.".to_owned(),
    });
    Verdict { tone, sentence, reasons }
}

/// How many requests fail, and with which status.
fn failing(account: &Account) -> String {
    let most = account.failed_most.as_ref();
    let most = most.map_or(String::new(), |most| {
        format!(", most of them with {}", explained(&format::sanitized(most)))
    });
    format!(
        "{} of {} opens, reads, writes, changes and logons fail{most}",
        format::count(account.failed),
        format::count(account.requests)
    )
}

fn unknown(diagnosis: &Diagnosis) -> Verdict {
    let (sentence, reason) = match diagnosis.whole.timed {
        0 => (
            "no operation has a time",
            "Record requests and replies: tcpdump -i INTERFACE -s 512 -w share.pcap port 445.",
        ),
        _ => (
            "one direction of the connections was recorded only",
            "Record both directions: both interfaces of a bond or mirror port, or at an end of the connection.",
        ),
    };
    let sentence = sentence.to_owned();
    Verdict { tone: Tone::Unknown, sentence, reasons: vec![reason.to_owned()] }
}

/// What the time of clients consists of.
fn account(account: &Account) -> Option<String> {
    let Account { clients, active_ns, waited_ns, distance_ns, before_smb_ns, paused_ns, .. } =
        account;
    if *clients == 0 || *active_ns <= 0 {
        return None;
    }
    let who = match (account.first.first(), clients) {
        (Some(one), 1) => format!("Client {} was active for", format::sanitized(&one.client)),
        _ => format!("{} clients were active for", format::count(*clients)),
    };
    let of_it = [
        (*before_smb_ns, "before SMB or for TCP"),
        (*distance_ns, "for the distance to the server"),
    ];
    let of_it: Vec<_> = of_it
        .into_iter()
        .filter(|(ns, _)| *ns > waited_ns / 100 && *ns > 0)
        .map(|(ns, what)| format!("{} of it {what}", format::duration(ns)))
        .collect();
    let of_it = if of_it.is_empty() { String::new() } else { format!(" ({})", of_it.join(", ")) };
    let rest = active_ns - waited_ns - paused_ns;
    let unanswered = match account.unanswered {
        0 => String::new(),
        1 => "; 1 request has no reply".to_owned(),
        many => format!("; {} requests have no reply", format::count(many)),
    };
    Some(format!(
        "{who} {}: something was outstanding for {}{of_it}, pauses below a second took {}, and nothing is known of {}{unanswered}.",
        format::duration(*active_ns),
        format::duration(*waited_ns),
        format::duration(*paused_ns),
        format::duration(rest.max(0)),
    ))
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::explain::{Explained, FindingKind, Row, Whole};
    use smbscope_findings::Weight;

    use super::*;

    const SPEED: &str = "95 of 100 operations take at most 2.00 ms";

    fn finding(kind: FindingKind, confidence: Confidence, effect: Effect) -> Finding {
        let what = format!("The {} costs: a reason", kind.title());
        let details = Explained { operations: 1, effect, is_noticed: true, ..Explained::default() };
        smbscope_findings::Finding::new(kind, what)
            .with_weight(Weight::Saved { saved_ns: 1_000, saved_error_ns: None, share: 0.3 })
            .with_confidence(confidence, "")
            .with_details(details)
    }

    fn diagnosis(state: State, findings: Vec<Finding>) -> Diagnosis {
        let whole = Whole { operations: 100, timed: 100, ..Whole::default() };
        Diagnosis { state, findings, whole, ..Diagnosis::default() }
    }

    #[test]
    fn what_is_broken_comes_before_what_is_slow_and_sure_before_possible() {
        let chance = finding(FindingKind::SlowFilesystem, Confidence::Possible, Effect::Time);
        let sure = finding(FindingKind::SlowLogon, Confidence::Measured, Effect::Time);
        let broken = finding(FindingKind::NoReply, Confidence::Likely, Effect::Broken);
        let all = vec![chance.clone(), sure.clone(), broken];
        let verdict = state_verdict(&diagnosis(State::Broken, all), SPEED);
        assert_eq!(verdict.tone, Tone::Bad);
        let said = "Broken: the requests without a reply costs (30.0 % of the waiting)";
        assert_eq!(verdict.sentence, said);
        assert_eq!(verdict.reasons[0], "A reason.");
        let verdict = state_verdict(&diagnosis(State::Slow, vec![chance.clone(), sure]), SPEED);
        let said = "Slow for users: the slow logons costs (30.0 % of the waiting)";
        assert_eq!((verdict.tone, verdict.sentence.as_str()), (Tone::Watch, said));
        let slowest = Some(Row { client: "10.0.0.9".into(), server_ns: 5, ..Row::default() });
        let unsure = Diagnosis { slowest, ..diagnosis(State::Slow, vec![chance]) };
        let verdict = state_verdict(&unsure, SPEED);
        assert!(verdict.sentence.ends_with("and no cause is clear"), "{}", verdict.sentence);
        assert!(verdict.reasons[0].starts_with("Possibly: the slow"), "{:?}", verdict.reasons);
        assert!(verdict.reasons[1].contains("smbscope record"), "{:?}", verdict.reasons);
    }

    #[test]
    fn healthy_has_its_numbers_and_says_what_is_far_or_fails() {
        let near = diagnosis(State::Healthy, Vec::new());
        let verdict = state_verdict(&near, SPEED);
        assert_eq!((verdict.tone, verdict.sentence), (Tone::Good, format!("Healthy: {SPEED}")));
        let account = Account { waited_ns: 100, distance_ns: 88, ..Account::default() };
        let far = Diagnosis { account, round_trip_ns: Some(40_000_000), ..near.clone() };
        let verdict = state_verdict(&far, SPEED);
        assert!(
            verdict.sentence.contains("88.0 % of the waiting is the 40.0 ms"),
            "{}",
            verdict.sentence
        );
        assert!(verdict.reasons[0].contains("predict"), "{:?}", verdict.reasons);
        let account = Account {
            requests: 100,
            failed: 9,
            failed_most: Some("STATUS_X".into()),
            ..Account::default()
        };
        let verdict = state_verdict(&Diagnosis { account, ..near }, SPEED);
        assert_eq!(verdict.tone, Tone::Watch);
        let said = "but 9 of 100 opens, reads, writes, changes and logons fail, most of them with STATUS_X";
        assert!(verdict.sentence.ends_with(said), "{}", verdict.sentence);
    }

    #[test]
    fn the_account_closes() {
        let account = Account {
            clients: 2,
            active_ns: 10_000_000_000,
            waited_ns: 4_000_000_000,
            paused_ns: 5_000_000_000,
            before_smb_ns: 3_000_000_000,
            unanswered: 2,
            ..Account::default()
        };
        assert_eq!(
            super::account(&account).as_deref(),
            Some(
                "2 clients were active for 10.0 s: something was outstanding for 4.00 s (3.00 s of it before SMB or for TCP), pauses \
                 below a second took 5.00 s, and nothing is known of 1.00 s; 2 requests have no reply."
            )
        );
        assert_eq!(super::account(&Account::default()), None);
    }
}

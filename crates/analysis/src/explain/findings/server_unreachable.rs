//! Clients cannot connect to the file server: attempts have no answer, are refused, or a router says that the
//! server cannot be reached (RFC 9293 section 3.5, RFC 1122 section 4.2.3.9).

use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::{Accounts, NOTICED_NS};
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::waiting::{SMB_PORTS, Until, attribution, most_frequent};

pub(crate) const KIND: KindInfo = KindInfo::new("server-unreachable", "server cannot be reached")
    .with_actor(Actor::Network)
    .with_remedies(&[
    (
        "server",
        "is it running, has it its address, and does it listen: ss -ltn 'sport = :445', Get-NetTCPConnection -LocalPort 445",
    ),
    (
        "network",
        "follow the path: ping, traceroute -T -p 445, Test-NetConnection SERVER -Port 445; look at firewalls, routes and VLANs",
    ),
]);

/// Attempts at equal distances are a timer if they differ by at most this share.
const SAME_SHARE: f64 = 0.02;
/// Fewest attempts for that.
const TIMER_MIN: usize = 4;
/// Single refusals and failures happen while a server restarts: fewest failed attempts.
const FAILED_MIN: usize = 3;

/// What the failed attempts of one client (its rows, in the order of time) show, by server.
pub(crate) fn find(rows: &[(u32, Wait)], accounts: &mut Accounts) -> Vec<Candidate> {
    let is_smb = |row: &Wait| row.kind == "connect" && SMB_PORTS.contains(&row.port);
    let mut servers: Vec<_> =
        rows.iter().filter(|(_, row)| is_smb(row)).map(|(_, row)| row.server.as_str()).collect();
    servers.sort_unstable();
    servers.dedup();
    let mut found = Vec::new();
    for server in servers {
        let attempts: Vec<_> =
            rows.iter().filter(|(_, row)| is_smb(row) && row.server == server).collect();
        // A client that tries both ports at once drops one of them.
        let is_served = |row: &Wait| {
            attempts.iter().any(|(_, other)| {
                other.outcome == "answered" && other.start.abs_diff(row.start) < NOTICED_NS as u64
            })
        };
        let mut waits = Vec::new();
        for (place, (recording, row)) in attempts.iter().enumerate() {
            let is_late = row.outcome == "answered" && row.waited_ns() >= NOTICED_NS;
            if !is_late && (!row.is_unanswered() || is_served(row)) {
                continue;
            }
            // A client without a connection waits until it has one.
            let next = attempts.get(place + 1).map(|(_, next)| next.start);
            let until = row.end.filter(|_| is_late).or(next).unwrap_or(row.end.unwrap_or(row.last_attempt));
            waits.push(Until { row, recording: *recording, until });
        }
        found.extend(candidate(server, &waits, accounts));
    }
    found
}

fn candidate(server: &str, waits: &[Until], accounts: &mut Accounts) -> Option<Candidate> {
    let first = waits.first()?;
    let failed = waits.iter().filter(|wait| wait.row.is_unanswered()).count();
    let waited_ns: i64 = waits.iter().map(Until::ns).sum();
    let repeated = waits.iter().any(|wait| wait.row.attempts > 1);
    if waited_ns < NOTICED_NS || failed < FAILED_MIN && !repeated {
        return None;
    }
    waits.iter().for_each(|wait| accounts.wait(wait.recording, wait.row, wait.until));
    let outcomes = most_frequent(waits.iter().map(|wait| wait.row.outcome.as_str()));
    let routers = most_frequent(waits.iter().filter_map(|wait| wait.row.answered_by.as_deref()));
    let result = waits.iter().find_map(|wait| wait.row.result.clone());
    let (why, actor, names) = match outcomes.first().map(String::as_str) {
        Some("refused") => (
            format!("{server} refuses them: nothing listens on the port"),
            Actor::Server,
            vec![server.to_owned()],
        ),
        Some("unreachable") => (
            format!(
                "{} reports: {}",
                routers.first().map_or("a router", String::as_str),
                result.as_deref().unwrap_or("unreachable")
            ),
            Actor::Network,
            routers.clone(),
        ),
        _ => ("there is no answer".to_owned(), Actor::Network, Vec::new()),
    };
    let client = &first.row.client;
    let number = waits.len();
    let attempts = if number == 1 { "attempt" } else { "attempts" };
    let what = if failed == 0 {
        format!(
            "The server {server} answers late when the client {client} connects: {number} {attempts}, whose answer comes after repetitions"
        )
    } else {
        let verb = if number == 1 { "fails" } else { "fail" };
        format!(
            "The client {client} cannot reach the server {server}: {number} {attempts} to connect {verb}; {why}"
        )
    };
    let timer = interval(waits);
    let because = match timer {
        Some(_) => "each attempt is in the recording; they follow each other at equal distances, which is the client's own timer",
        None => "each attempt is in the recording, with its repetitions",
    };
    let kind = FindingKind::ServerUnreachable;
    let candidate = Candidate::new(kind, what, attribution(waits), Confidence::Measured, because);
    let figures = [
        Some(("attempts", number as f64, "", "attempts to connect: {}")),
        Some(("without_connection", waited_ns as f64, "ns", "{} without a connection")),
        timer.map(|ns| ("interval", ns, "ns", "one attempt every {}")),
    ];
    let candidate = candidate.of_events().beyond_busy(waited_ns).with_owner(actor, names);
    let candidate = candidate.with_figures(figures.into_iter().flatten());
    Some(if failed > 0 { candidate.broken() } else { candidate })
}

/// The time between attempts, ns, if it is always the same.
fn interval(waits: &[Until]) -> Option<f64> {
    let mut gaps: Vec<_> = waits
        .windows(2)
        .filter_map(|two| Some((two.last()?.row.start - two.first()?.row.start) as f64))
        .collect();
    if gaps.len() < TIMER_MIN {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    let at = |share: usize| gaps.get(gaps.len() * share / 10).copied();
    let (low, middle, high) = (at(1)?, at(5)?, at(9)?);
    (high - low <= SAME_SHARE * middle).then_some(middle)
}

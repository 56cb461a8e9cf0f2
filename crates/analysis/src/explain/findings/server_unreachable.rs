//! Clients cannot connect to the file server: attempts have no answer, are refused, or a router says that the
//! server cannot be reached (RFC 9293 section 3.5, RFC 1122 section 4.2.3.9).

use std::collections::{BTreeMap, BTreeSet};

use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::{Accounts, NOTICED_NS};
use super::super::candidate::Candidate;
use super::super::connections::list_names;
use super::super::data::FindingKind;
use super::super::waiting::{SMB_PORTS, Until, attribution, most_frequent, union_ns};

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
/// From more servers on, a client that reaches none of them is one finding.
const SERVERS_MAX: usize = 3;
/// Single refusals and failures happen while a server restarts: fewest failed attempts.
const FAILED_MIN: usize = 3;

/// What the failed attempts of one client (its rows, in the order of time) show, by server.
pub(crate) fn find(rows: &[(u32, Wait)], accounts: &mut Accounts) -> Vec<Candidate> {
    let mut by_server = BTreeMap::<&str, Vec<&(u32, Wait)>>::new();
    for one in rows.iter().filter(|(_, row)| row.kind == "connect" && SMB_PORTS.contains(&row.port)) {
        by_server.entry(&one.1.server).or_default().push(one);
    }
    let mut found = Vec::new();
    for (server, attempts) in by_server {
        let served: Vec<_> = attempts
            .iter()
            .filter(|(_, row)| row.outcome == "answered")
            .map(|(_, row)| row.start)
            .collect();
        // A client that tries both ports at once drops one of them.
        let is_served = |row: &Wait| {
            let next = served.partition_point(|start| *start <= row.start - NOTICED_NS);
            served.get(next).is_some_and(|start| *start < row.start + NOTICED_NS)
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
        if is_noticed(&waits) {
            waits.iter().for_each(|wait| accounts.wait(wait.recording, wait.row, wait.until));
            found.push((server, waits));
        }
    }
    if found.len() > SERVERS_MAX {
        return of_many(found).into_iter().collect();
    }
    found.into_iter().filter_map(|(server, waits)| candidate(server, &waits)).collect()
}

/// Whether attempts are more than a restart of the server.
fn is_noticed(waits: &[Until]) -> bool {
    let failed = waits.iter().filter(|wait| wait.row.is_unanswered()).count();
    let waited_ns = waits.iter().map(Until::ns).fold(0, i64::saturating_add);
    let repeated = waits.iter().any(|wait| wait.row.attempts > 1);
    waited_ns >= NOTICED_NS && (failed >= FAILED_MIN || repeated)
}

/// Many servers at once do not fail by themselves.
fn of_many(found: Vec<(&str, Vec<Until>)>) -> Option<Candidate> {
    let servers: BTreeSet<_> = found.iter().map(|(server, _)| (*server).to_owned()).collect();
    let mut waits: Vec<_> = found.into_iter().flat_map(|(_, waits)| waits).collect();
    waits.sort_by_key(|wait| wait.row.start);
    let client = waits.first()?.row.client.clone();
    let fails = waits.iter().any(|wait| wait.row.is_unanswered());
    let what = match (servers.len(), list_names(&servers)) {
        (n, names) if fails => format!(
            "The client {client} cannot reach all of {n} servers ({names}): it has no way to them, or it scans the network"
        ),
        (n, names) => format!("{n} servers ({names}) answer late when the client {client} connects: its own link loses packets"),
    };
    let because = "each attempt is in the recording; that many servers do not fail together";
    let waited_ns = union_ns(&waits);
    let candidate =
        Candidate::new(FindingKind::ServerUnreachable, what, attribution(&waits), Confidence::Likely, because);
    let figures = [
        ("attempts", waits.len() as f64, "", "attempts to connect: {}"),
        ("servers", servers.len() as f64, "", "servers: {}"),
    ];
    let candidate = candidate.of_events().beyond_busy(waited_ns);
    let candidate = candidate.with_owner(Actor::Network, Vec::new()).with_figures(figures);
    Some(if fails { candidate.broken() } else { candidate })
}

fn candidate(server: &str, waits: &[Until]) -> Option<Candidate> {
    let first = waits.first()?;
    let failed = waits.iter().filter(|wait| wait.row.is_unanswered()).count();
    let waited_ns: i64 = waits.iter().map(Until::ns).sum();
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

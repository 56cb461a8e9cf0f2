//! Requests have no reply although their connection is recorded without gaps: the server, or the path to it, hangs.
//! A client waits until its own timeout (Windows: SessTimeout, 60 s and more; Linux: 60 s and two echoes).

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::{Accounts, NOTICED_NS, REQUEST_HANG_NS, Unanswered};
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::{ConnectionFacts, Connections, list_names};
use super::super::data::FindingKind;
use super::super::operation::Act;

pub(crate) const KIND: KindInfo = KindInfo::new("no-reply", "requests without a reply")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "see what the process that serves this client waits for: Samba smbstatus -p, then cat /proc/PID/stack and gdb -p PID; \
         Windows: record with `smbscope record --print-windows-script --what smb --to 'S:\\temp'`",
    ),
    (
        "measurement",
        "record at the server, too: if the request arrives there and no reply leaves, it is the server; otherwise the path",
    ),
]);

/// One connection on which requests stayed without a reply.
struct Hang<'a> {
    key: (u32, u64),
    facts: &'a ConnectionFacts,
    requests: Vec<&'a Unanswered>,
    from: i64,
    until: i64,
}

/// Connections with requests that had no reply; those of `explained` have another cause.
pub(crate) fn find(
    accounts: &mut Accounts,
    connections: &Connections,
    explained: &BTreeSet<(u32, u64)>,
) -> Option<Candidate> {
    let mut by_connection: HashMap<(u32, u64), Vec<&Unanswered>> = HashMap::new();
    for one in accounts.unanswered.iter().filter(|one| one.act != Act::Lock) {
        by_connection.entry(one.connection).or_default().push(one);
    }
    let mut ends = HashMap::<u32, i64>::new();
    for (key, facts) in connections.all() {
        let end = ends.entry(key.0).or_insert(facts.lasted.1);
        *end = facts.lasted.1.max(*end);
    }
    let mut hangs: Vec<Hang> = Vec::new();
    for (key, requests) in by_connection {
        let Some(facts) = connections.get(key).filter(|_| !explained.contains(&key)) else { continue };
        // A recording with gaps may lack the reply; with one direction it lacks all.
        if facts.gaps > 0 || facts.packets.contains(&0) {
            continue;
        }
        let from = requests.iter().map(|one| one.start).min().unwrap_or(facts.lasted.1);
        // The client of an open connection waits until the recording ends, also if it sends nothing meanwhile.
        let end = ends.get(&key.0).filter(|_| facts.is_open).map_or(facts.lasted.1, |end| *end);
        let until = end.max(from);
        let is_reset = facts.reset_by_client.is_some() && until - from >= NOTICED_NS;
        if until - from >= REQUEST_HANG_NS || is_reset {
            hangs.push(Hang { key, facts, requests, from, until });
        }
    }
    hangs.sort_by_key(|one| (one.from, one.key));
    if hangs.is_empty() {
        return None;
    }
    let mut attribution = Attribution::with_few_names();
    let (mut clients, mut servers) = (BTreeSet::new(), BTreeSet::new());
    let (mut number, mut longest_ns, mut waited_ns) = (0, 0, 0_i64);
    let (mut goes_on, mut is_reset) = (false, false);
    let mut commands = BTreeSet::new();
    for hang in &hangs {
        let Hang { key, facts, requests, from, until } = hang;
        let ns = until - from;
        longest_ns = longest_ns.max(ns);
        waited_ns = waited_ns.saturating_add(ns);
        number += requests.len();
        is_reset |= facts.reset_by_client.is_some();
        goes_on |= accounts.last(*key).is_some_and(|last| last.end > *from);
        clients.insert(facts.client.to_string());
        servers.insert(facts.server.to_string());
        commands.extend(requests.iter().map(|one| match &one.path {
            Some(path) => format!("{} of {path}", one.command),
            None => one.command.clone(),
        }));
        if let Some(first) = requests.iter().min_by_key(|one| one.start) {
            attribution.add_wait(&row(first, facts, *key), key.0, *until, ns, ns);
        }
    }
    let rows: Vec<_> = hangs.iter().map(|hang| (hang.key, hang.from, hang.until, hang.facts.client.to_string())).collect();
    drop(hangs);
    for (key, from, until, client) in rows {
        accounts.hang(key.0, &client, from, until);
    }
    let servers_text = list_names(&servers);
    let rest = match (goes_on, is_reset) {
        (true, _) => "while it continues to answer others on the same connections",
        (false, true) => "until the connection is reset",
        (false, false) => "and nothing more comes on these connections",
    };
    let what = format!(
        "The server {servers_text} does not answer {number} requests of {}, {rest}: {}",
        list_names(&clients),
        list_names(&commands),
    );
    let because = if goes_on {
        "the recording has no gap on these connections, and other replies came after the requests"
    } else {
        "the recording has no gap on these connections; whether the server or the path to it is the cause, a recording at the server \
         would decide"
    };
    let confidence = if goes_on { Confidence::Measured } else { Confidence::Likely };
    Some(
        Candidate::new(FindingKind::NoReply, what, attribution, confidence, because)
            .of_events()
            .broken()
            .beyond_busy(waited_ns)
            .with_owner(Actor::Server, servers.into_iter().take(3).collect())
            .with_figures([
                ("requests", number as f64, "", "requests without a reply: {}"),
                ("longest", longest_ns as f64, "ns", "the longest waited {} and more"),
            ]),
    )
}

/// A request without a reply as a wait.
fn row(one: &Unanswered, facts: &ConnectionFacts, key: (u32, u64)) -> Wait {
    Wait {
        client: facts.client.to_string(),
        server: facts.server.to_string(),
        connection: Some(key.1),
        kind: "operation".to_owned(),
        protocol: one.command.clone(),
        subject: one.path.clone(),
        start: one.start,
        last_attempt: one.start,
        first_frame: one.frame.unwrap_or(0),
        last_frame: one.frame.unwrap_or(0),
        ..Wait::default()
    }
}

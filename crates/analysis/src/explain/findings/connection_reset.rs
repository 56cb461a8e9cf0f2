//! Connections are reset while a client works (RFC 9293 section 3.5.2), and it has to begin again.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::{Accounts, NOTICED_NS, Unanswered};
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::{ConnectionFacts, Connections, list_names};
use super::super::data::FindingKind;

pub(crate) const KIND: KindInfo = KindInfo::new("connection-reset", "connections are reset")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "measurement",
        "give the keys or passwords, so that signatures and encrypted messages can be checked (--keys, --keytab, \
         --password-file), and read the log of the side that resets: Windows Microsoft-Windows-SMBClient/Security and \
         Connectivity, Linux dmesg",
    ),
    (
        "network",
        "a middlebox that resets connections shows by its TTL: compare it with that of the other packets (ip.ttl in Wireshark)",
    ),
]);

/// A connection that is reset within this time after its last reply is reset because of that reply, ns.
const SOON_NS: i64 = 1_000_000_000;
/// The client is back within this time: it did not mean to end its work, ns.
const BACK_NS: i64 = 60_000_000_000;
/// Fewest resets of that kind: one may be the end of work ...
const RESETS_MIN: usize = 3;
/// ... unless a request was in flight, which then has no reply.
const IN_FLIGHT_MIN: usize = 2;

const IN_FLIGHT: [(&str, &str); 2] = [
    (
        "network",
        "compare the TTL of the reset with that of the server's other packets (ip.ttl in Wireshark): if it differs, a firewall in between \
         resets; raise its timeout for idle TCP connections, or send keepalives before it",
    ),
    (
        "server",
        "otherwise read its log of that time: the process that serves the client ends, or it refuses the dialects that the client offers",
    ),
];

/// A connection, its facts, and when the client connected again; when it was reset if the recording ends before.
type Reset<'a> = ((u32, u64), &'a ConnectionFacts, i64);

/// What was reset: by whom, after or during which command, and whether that was signed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    by_client: bool,
    is_in_flight: bool,
    command: String,
    is_signed: bool,
}

impl Moment {
    /// The moment of a reset at `reset_at`, if the client had not ended its work.
    fn of(
        accounts: &Accounts,
        asked: Option<&Unanswered>,
        key: (u32, u64),
        by_client: bool,
        reset_at: i64,
    ) -> Option<Moment> {
        let is_soon = |at: i64| reset_at.saturating_sub(at) < SOON_NS;
        if asked.is_some_and(|asked| is_soon(asked.start)) {
            let command = String::new();
            return Some(Moment { by_client, is_in_flight: true, command, is_signed: false });
        }
        let last = accounts.last(key)?;
        // Logoff and the disconnection of the last tree are the end of work.
        let is_end = matches!(last.command.as_str(), "Logoff" | "TreeDisconnect" | "LogoffAndX");
        let is_signed = last.is_signed;
        (!is_end && is_soon(last.end))
            .then_some(Moment { by_client, is_in_flight: false, command: last.command, is_signed })
    }
}

/// Connections that were reset while a client worked.
pub(crate) fn find(accounts: &Accounts, connections: &Connections) -> Option<Candidate> {
    let all = connections.all();
    let mut asked = HashMap::<(u32, u64), &Unanswered>::new();
    for one in &accounts.unanswered {
        asked.entry(one.connection).and_modify(|last| if one.start > last.start { *last = one }).or_insert(one);
    }
    let mut begun = HashMap::<_, Vec<i64>>::new();
    for (key, facts) in &all {
        begun.entry((key.0, &facts.client, &facts.server)).or_default().push(facts.lasted.0);
    }
    begun.values_mut().for_each(|begins| begins.sort_unstable());
    let mut groups = BTreeMap::<Moment, (Vec<Reset>, BTreeSet<&str>)>::new();
    for (key, facts) in &all {
        let Some(by_client) = facts.reset_by_client else { continue };
        let reset_at = facts.lasted.1;
        let request = asked.get(key).copied();
        let Some(moment) = Moment::of(accounts, request, *key, by_client, reset_at) else { continue };
        let begins = begun.get(&(key.0, &facts.client, &facts.server)).map_or(&[][..], Vec::as_slice);
        let back = begins.get(begins.partition_point(|at| *at < reset_at)).copied();
        let back = back.filter(|at| at - reset_at < BACK_NS);
        let (resets, commands) = groups.entry(moment).or_default();
        resets.push((*key, facts, back.unwrap_or(reset_at)));
        commands.extend(request.map(|request| request.command.as_str()));
    }
    // A client that never comes back meant to end its work.
    groups.retain(|_, (resets, _)| resets.iter().any(|(_, facts, back)| *back > facts.lasted.1));
    let (moment, (resets, commands)) =
        groups.into_iter().max_by_key(|(_, (resets, _))| resets.len())?;
    let Moment { by_client, is_in_flight, command, is_signed } = moment;
    if resets.len() < if is_in_flight { IN_FLIGHT_MIN } else { RESETS_MIN } {
        return None;
    }
    let mut attribution = Attribution::with_few_names();
    let (mut clients, mut servers) = (BTreeSet::new(), BTreeSet::new());
    let mut waited_ns = 0_i64;
    for (key, facts, back) in &resets {
        let request = asked.get(key).filter(|_| is_in_flight);
        let frame = request.and_then(|request| request.frame).unwrap_or(0);
        let at = facts.lasted.1;
        let ns = back - at;
        waited_ns = waited_ns.saturating_add(ns);
        clients.insert(facts.client.to_string());
        servers.insert(facts.server.to_string());
        let row = Wait {
            client: facts.client.to_string(),
            server: facts.server.to_string(),
            connection: Some(key.1),
            kind: "reset".to_owned(),
            protocol: "TCP".to_owned(),
            subject: request.map(|request| format!("reset after {}", request.command)),
            start: at,
            last_attempt: at,
            first_frame: frame,
            last_frame: frame,
            ..Wait::default()
        };
        attribution.add_wait(&row, key.0, *back, ns, ns.max(NOTICED_NS));
    }
    let (clients, servers) = (list_names(&clients), list_names(&servers));
    let (who, actor) = if by_client {
        (format!("The client {clients}"), Actor::Client)
    } else {
        (format!("The server {servers}"), Actor::Server)
    };
    let signed = if is_signed { "signed " } else { "" };
    let what = if is_in_flight {
        let commands: Vec<_> = commands.into_iter().take(3).collect();
        format!(
            "{who} resets {} connections while a request has no reply yet ({}), and the client has to begin again",
            resets.len(),
            commands.join(", ")
        )
    } else {
        format!(
            "{who} resets {} connections right after a {signed}{command} reply, and the client connects again each time",
            resets.len()
        )
    };
    let because = if is_in_flight {
        "every reset follows a request at once, which stays without a reply; a firewall that has forgotten the connection resets in \
         the server's name (compare ip.ttl), and a server without a common dialect resets at Negotiate"
    } else if is_signed && by_client {
        "every reset follows the same kind of reply; a client ends a connection when a signature is wrong (MS-SMB2 section 3.2.5.1.3), but \
         without keys the signatures cannot be checked"
    } else {
        "every reset follows the same kind of reply; why, the log of the side that resets says"
    };
    let candidate =
        Candidate::new(FindingKind::ConnectionReset, what, attribution, Confidence::Likely, because)
            .of_events()
            .broken()
            .beyond_busy(waited_ns)
            .with_owner(actor, Vec::new())
            .with_figures([("resets", resets.len() as f64, "", "resets: {}")]);
    Some(if is_in_flight { candidate.with_remedies(&IN_FLIGHT) } else { candidate })
}

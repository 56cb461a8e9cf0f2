//! Waits outside of operations: names, connections, tickets, data that are retransmitted.
//!
//! One observation for several findings. What a client waits for before it begins a connection to a file
//! server, or its logon there, belongs together: the *preamble* of that step. Before a connection only lookups
//! of the server's own name and attempts to reach the same machine count, because other programs look up names
//! and connect, too; before a logon, what domain controllers are asked.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use smbscope_tables::tables::{Tree, Wait};

use super::account::{Accounts, Logon, NOTICED_NS};
use super::attribution::Attribution;
use super::candidate::Candidate;
use super::connections::Connections;
use super::findings::{
    delayed_acknowledgement, late_lookup, late_ticket, path_mtu, path_outage, providers_first,
    server_unreachable,
};

/// Rows that are kept.
const ROWS_MAX: usize = 65_536;
/// Names of servers that are known.
const NAMES_MAX: usize = 4_096;
/// Between two waits of one preamble passes at most this, ns: the longest time for which TCP waits for the
/// answer to the last of three SYNs (12 s), and the pause after it.
const PREAMBLE_GAP_NS: i64 = 15_000_000_000;
/// An answer that comes later is not what a wait without one lasts, ns.
const UNANSWERED_MAX_NS: i64 = 15_000_000_000;
/// A connection that begins so soon after an answer was waiting for it, ns.
const AT_ONCE_NS: i64 = 100_000_000;
/// The kind of a row that represents a logon, which is not in the table `waits`.
const LOGON: &str = "logon";
/// Ports of Kerberos, changes of passwords, and LDAP with and without TLS.
const DIRECTORY_PORTS: [u64; 6] = [88, 389, 464, 636, 3268, 3269];
/// TCP ports of SMB.
pub(super) const SMB_PORTS: [u64; 2] = [139, 445];

/// Groups of waits that are listed.
const GROUPS_LISTED: usize = 20;

/// Waits of one kind for one server, outside of operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitGroup {
    /// What clients wait for, as in the table `waits`.
    pub kind: String,
    /// The protocol.
    pub protocol: String,
    /// The server.
    pub server: String,
    /// The names or services that are requested, at most three, the most frequent first.
    pub subjects: Vec<String>,
    /// Waits.
    pub n: u64,
    /// Those that ended without success.
    pub unanswered: u64,
    /// Packets with which clients asked.
    pub attempts: u64,
    /// Their sum, up to the answer or the last attempt, ns.
    pub sum_ns: i64,
    /// The longest, ns.
    pub longest_ns: i64,
    /// The clients, at most three, the most frequent first.
    pub clients: Vec<String>,
}

/// The rows of the table `waits`, and the names of servers.
#[derive(Default)]
pub(super) struct Waiting {
    rows: Vec<(u32, Wait)>,
    /// First labels of the names by which shares are used, in lower case.
    names: HashSet<String, foldhash::fast::RandomState>,
}

/// Waits of one kind are the cause of all if they take this share of them.
const MOST_SHARE: f64 = 0.8;

/// A wait, and until when it lasted: up to its answer, or without one up to what the client did next.
#[derive(Clone)]
pub(super) struct Until<'a> {
    pub(super) row: &'a Wait,
    pub(super) recording: u32,
    pub(super) until: i64,
}

impl Until<'_> {
    pub(super) fn ns(&self) -> i64 {
        self.until.saturating_sub(self.row.start).max(0)
    }
}

/// The length of the union of waits that are in the order of their begins, ns.
pub(super) fn union_ns(waits: &[Until]) -> i64 {
    let (mut sum, mut covered) = (0_i64, i64::MIN);
    for wait in waits {
        let begin = wait.row.start.max(covered);
        sum = sum.saturating_add(wait.until.saturating_sub(begin).max(0));
        covered = covered.max(wait.until);
    }
    sum
}

impl Waiting {
    pub(super) fn add(&mut self, recording: u32, rows: &[Wait]) {
        let room = ROWS_MAX.saturating_sub(self.rows.len());
        self.rows.extend(rows.iter().take(room).map(|row| (recording, row.clone())));
    }

    /// Notes the names of servers.
    pub(super) fn trees(&mut self, rows: &[Tree]) {
        for row in rows {
            let host = row.share.as_deref().and_then(|share| share.split('\\').nth(2));
            if let Some(host) = host.filter(|_| self.names.len() < NAMES_MAX) {
                self.names.insert(label(host));
            }
        }
    }

    /// The waits by kind and server, the longest sum first.
    pub(super) fn groups(&self) -> Vec<WaitGroup> {
        let mut groups = BTreeMap::<_, Vec<&Wait>>::new();
        for (_, row) in &self.rows {
            groups.entry((&row.kind, &row.protocol, &row.server)).or_default().push(row);
        }
        let mut groups: Vec<_> = groups
            .into_iter()
            .map(|((kind, protocol, server), rows)| WaitGroup {
                kind: kind.clone(),
                protocol: protocol.clone(),
                server: server.clone(),
                subjects: most_frequent(rows.iter().filter_map(|row| row.subject.as_deref())),
                n: rows.len() as u64,
                unanswered: rows.iter().filter(|row| row.is_unanswered()).count() as u64,
                attempts: rows.iter().map(|row| row.attempts).sum(),
                sum_ns: rows.iter().map(|row| row.waited_ns()).fold(0, i64::saturating_add),
                longest_ns: rows.iter().map(|row| row.waited_ns()).max().unwrap_or(0),
                clients: most_frequent(rows.iter().map(|row| row.client.as_str())),
            })
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.sum_ns));
        groups.truncate(GROUPS_LISTED);
        groups
    }

    /// Connections on which data were retransmitted in vain: that explains requests without a reply.
    pub(super) fn stuck(&self) -> BTreeSet<(u32, u64)> {
        let resent = self.rows.iter().filter(|(_, row)| row.kind == "retransmission");
        let vain = resent.filter(|(_, row)| row.is_unanswered() && row.attempts >= 3);
        vain.filter_map(|(recording, row)| Some((*recording, row.connection?))).collect()
    }

    /// What was found; also adds the waits to the account.
    pub(super) fn finish(
        mut self,
        connections: &Connections,
        accounts: &mut Accounts,
    ) -> Vec<Candidate> {
        let mut found: Vec<_> =
            late_ticket::of_servers(&self.rows, &accounts.logons).into_iter().collect();
        self.rows.extend(accounts.logons.iter().map(step));
        self.rows.sort_by(|one, other| {
            (one.0, &one.1.client, one.1.start).cmp(&(other.0, &other.1.client, other.1.start))
        });
        let mut before = Before::default();
        let of_client =
            self.rows.chunk_by(|one, other| (one.0, &one.1.client) == (other.0, &other.1.client));
        for rows in of_client {
            self.preambles(rows, accounts, &mut before);
            found.extend(server_unreachable::find(rows, accounts));
        }
        found.extend(late_lookup::finish(before.lookups));
        found.extend(late_ticket::finish(before.tickets));
        found.extend(providers_first::finish(before.providers));
        let of_kind =
            |kind: &'static str| self.rows.iter().filter(move |(_, row)| row.kind == kind);
        let resent: Vec<_> = of_kind("retransmission").collect();
        let reports: Vec<_> = of_kind("path_mtu").collect();
        // The request of which they are part has no reply, and no time of its own.
        for (recording, row) in resent.iter().filter(|(_, row)| row.is_unanswered()) {
            accounts.hang(*recording, &row.client, row.start, row.last_attempt);
        }
        let is_mtu = path_mtu::find(&resent, &reports, connections);
        if is_mtu.is_none() {
            found.extend(path_outage::find(&resent, accounts));
        }
        found.extend(is_mtu);
        let late: Vec<_> = of_kind("acknowledgement").collect();
        found.extend(delayed_acknowledgement::before_messages(&late, accounts));
        found
    }

    /// Adds what a client waited for before each connection to a file server, and before each logon.
    fn preambles(&self, rows: &[(u32, Wait)], accounts: &mut Accounts, found: &mut Before) {
        // Where the waits of the next connection, and of the next logon, may begin: a logon of another user in between
        // does not end what a connection waits for.
        let (mut connected, mut logged_on) = (0, 0);
        for (place, (_, connect)) in rows.iter().enumerate() {
            let is_logon = connect.kind == LOGON;
            let is_connect = connect.kind == "connect" && SMB_PORTS.contains(&connect.port);
            if !is_logon && !is_connect {
                continue;
            }
            let begin = if is_logon { logged_on } else { connected };
            let before = rows.get(begin..place).unwrap_or_default();
            // What domain controllers were asked before a logon was for that.
            let taken = logged_on.saturating_sub(begin);
            logged_on = place + 1;
            if is_connect {
                connected = place + 1;
            }
            let mut waits = Vec::new();
            // A connection follows at once on the name that it was looked up by.
            let names: HashSet<_, foldhash::fast::RandomState> = before
                .iter()
                .filter(|(_, row)| row.kind == "name_lookup" && !row.is_unanswered())
                .filter(|(_, row)| {
                    row.end.is_some_and(|end| (0..AT_ONCE_NS).contains(&(connect.start - end)))
                })
                .filter_map(|(_, row)| row.subject.as_deref().map(label))
                .collect();
            // What comes next ends a wait without an answer.
            let mut next = connect.start;
            let waited_for =
                before.iter().enumerate().rev().filter(|(_, (_, row))| row.kind != LOGON);
            for (number, (recording, row)) in waited_for {
                if next.saturating_sub(row.end.unwrap_or(row.last_attempt)) > PREAMBLE_GAP_NS {
                    break;
                }
                if !self.belongs(row, connect, &names) || number < taken && is_of_directory(row) {
                    continue;
                }
                let until = row.end.unwrap_or_else(|| {
                    next.min(row.last_attempt.saturating_add(UNANSWERED_MAX_NS)).max(row.start)
                });
                waits.push(Until { row, recording: *recording, until });
                next = row.start;
            }
            waits.reverse();
            for wait in &waits {
                accounts.wait(wait.recording, wait.row, wait.until);
            }
            if union_ns(&waits) < NOTICED_NS {
                continue;
            }
            if is_logon {
                found.tickets.add(&waits);
                continue;
            }
            // Nearly all of it is one thing: that is the cause, also if no answer was recorded.
            let share = |is: fn(&Wait) -> bool| {
                let part = waits.iter().filter(|wait| is(wait.row)).cloned();
                let part_ns = union_ns(&part.collect::<Vec<_>>());
                (part_ns, part_ns as f64 / union_ns(&waits).max(1) as f64)
            };
            if share(is_of_directory).1 >= MOST_SHARE {
                found.tickets.add(&waits);
                continue;
            }
            let (names_ns, names_share) = share(|row| row.kind == "name_lookup");
            // An answer ends the search by all protocols; queries in parallel with it cause no delay.
            let is_lookup = |wait: &Until| wait.row.kind == "name_lookup";
            let names: Vec<_> = waits.iter().filter(|wait| is_lookup(wait)).collect();
            let asked = names.first().map_or(connect.start, |wait| wait.row.start);
            let answered = names.iter().filter(|wait| !wait.row.is_unanswered());
            let answered = answered.map(|wait| wait.until).min();
            let lookup_ns = answered.map_or(0, |at| at.saturating_sub(asked));
            let is_lookup =
                lookup_ns > 0 && lookup_ns.saturating_mul(2) >= connect.start.saturating_sub(asked);
            if is_lookup || names_share >= MOST_SHARE {
                found.lookups.add(&waits, lookup_ns.max(names_ns));
            } else {
                found.providers.add(&waits, connect);
            }
        }
    }

    /// Whether a wait is about the server of a connection.
    fn belongs(
        &self,
        row: &Wait,
        connect: &Wait,
        names: &HashSet<String, foldhash::fast::RandomState>,
    ) -> bool {
        if connect.kind == LOGON {
            return is_of_directory(row);
        }
        match row.kind.as_str() {
            "name_lookup" => {
                let name = row.subject.as_deref().map(label).unwrap_or_default();
                self.names.is_empty() || self.names.contains(&name) || names.contains(&name)
            }
            "connect" | "web" => row.server == connect.server || row.port == 88 || row.port == 389,
            "ticket" | "directory" => true,
            _ => false,
        }
    }
}

/// What was found before connections and logons.
#[derive(Default)]
struct Before {
    lookups: late_lookup::Lookups,
    tickets: late_ticket::Tickets,
    providers: providers_first::Providers,
}

/// A logon as a row, so that it has its place among the waits.
fn step(logon: &Logon) -> (u32, Wait) {
    let row = Wait {
        client: logon.client.clone(),
        server: logon.server.clone(),
        kind: LOGON.to_owned(),
        start: logon.start,
        ..Wait::default()
    };
    (logon.recording, row)
}

/// Whether a wait is for a domain controller, or for its name (RFC 2782, RFC 4120 section 7.2.3.2).
pub(super) fn is_of_directory(row: &Wait) -> bool {
    match row.kind.as_str() {
        "ticket" | "directory" => true,
        "connect" => DIRECTORY_PORTS.contains(&row.port),
        "name_lookup" => {
            let name = row.subject.as_deref().map(label).unwrap_or_default();
            matches!(name.as_str(), "_kerberos" | "_ldap" | "_gc" | "_kpasswd")
        }
        _ => false,
    }
}

/// The first label of a name, in lower case, without the type of a NetBIOS name.
fn label(name: &str) -> String {
    let name = name.split_once('<').map_or(name, |(name, _)| name);
    let name = if name.parse::<std::net::IpAddr>().is_ok() {
        name
    } else {
        name.split('.').next().unwrap_or(name)
    };
    name.to_lowercase()
}

/// Names and how often each occurs, the most frequent first, at most three of them.
pub(super) fn most_frequent<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut counts = BTreeMap::<&str, u64>::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().take(3).map(|(name, _)| name.to_owned()).collect()
}

/// The attribution of waits that follow each other.
pub(super) fn attribution(waits: &[Until]) -> Attribution {
    let mut sum = Attribution::with_few_names();
    let (mut covered, in_a_row_ns) = (i64::MIN, union_ns(waits));
    for wait in waits {
        let fresh = wait.until.saturating_sub(wait.row.start.max(covered)).max(0);
        covered = covered.max(wait.until);
        sum.add_wait(wait.row, wait.recording, wait.until, fresh, in_a_row_ns);
    }
    sum
}

/// Rows by the ends of their connection.
pub(super) fn by_connection<'a>(
    rows: &[&'a (u32, Wait)],
) -> HashMap<(u32, u64), Vec<&'a Wait>, foldhash::fast::RandomState> {
    let mut groups: HashMap<_, Vec<_>, _> = HashMap::default();
    for (recording, row) in rows.iter().copied() {
        if let Some(connection) = row.connection {
            groups.entry((*recording, connection)).or_default().push(row);
        }
    }
    groups
}

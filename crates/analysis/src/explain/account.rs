//! What the time of each client consists of: waiting, its own pauses, and time of which nothing is known.
//!
//! The shares of findings refer to operations with a reply. The account also has what no operation shows:
//! requests without a reply, and the waits of the table `waits`. It closes: the parts add up to the time
//! from the first to the last thing that a client did.

use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use smbscope_tables::tables::Wait;
use smbscope_wire::status::Status;

use super::in_a_row::{Added, InARow};
use super::operation::{Act, Operation, TextId, text_id};
use super::server_time::quick_ns;
use crate::rows::busy_time::BusyTime;
use crate::rows::status_class::StatusClass;

/// Waiting of this length in a row is noticed by a person, ns (J. Nielsen, Usability Engineering, 1993: after
/// one second the flow of thought is interrupted).
pub const NOTICED_NS: i64 = 1_000_000_000;
/// Something that stands still for this length or longer is a hang, ns.
pub(super) const HANG_NS: i64 = 5_000_000_000;
/// A single request that waits for this length or longer hangs, ns: longer than a disk that spins up.
pub(super) const REQUEST_HANG_NS: i64 = 10_000_000_000;
/// Longer pauses are not part of what a client was doing, ns.
const PAUSE_MAX_NS: i64 = 1_000_000_000;
/// An operation for which the server needs this much longer than for cached data counts by itself, ns.
const LONG_NS: i64 = 50_000_000;
/// A call through a pipe that takes longer waits for an event, ns.
pub(super) const EVENT_NS: i64 = 60_000_000_000;
/// Most clients that are followed.
const CLIENTS_MAX: usize = 65_536;
/// Most requests without a reply that are remembered.
const UNANSWERED_MAX: usize = 4_096;
/// Commands without a reply by protocol (MS-SMB2 section 2.2.30, MS-CIFS sections 2.2.4.25 and 2.2.4.26).
const WITHOUT_REPLY: [&str; 3] = ["Cancel", "WriteRaw", "WriteMpx"];
/// Most logons, and most connections with long losses, that are remembered.
const LOGONS_MAX: usize = 16_384;
const RECOVERED_MAX: usize = 65_536;
/// Most commands that are named; all others are taken for the last one.
const COMMANDS_MAX: usize = 128;
/// Most statuses that are counted.
const STATUSES_MAX: usize = 1_024;
/// Clients that are listed.
const LISTED: usize = 5;

/// What the time of all clients consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// Clients.
    pub clients: u64,
    /// From the first to the last thing that each of them did, summed, ns.
    pub active_ns: i64,
    /// Part of `active_ns`: something was outstanding, ns.
    pub waited_ns: i64,
    /// Part of `waited_ns`: round trips in the network, where they are known, ns.
    pub distance_ns: i64,
    /// Part of `waited_ns`: names, connections and tickets, with no operation in flight, ns.
    pub before_smb_ns: i64,
    /// Part of `active_ns`: pauses of less than a second, ns.
    pub paused_ns: i64,
    /// Requests without a reply.
    pub unanswered: u64,
    /// Opens, reads, writes, changes and logons: all, and those that failed for another reason than a missing name.
    pub requests: u64,
    /// See `requests`.
    pub failed: u64,
    /// The most frequent status of those that failed.
    pub failed_most: Option<String>,
    /// The longest time in which a client waited in a row.
    pub longest: Option<Row>,
    /// The clients that waited longest.
    pub first: Vec<ClientAccount>,
}

/// The same for one client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientAccount {
    /// Its address.
    pub client: String,
    /// From the first to the last thing that it did, ns.
    pub active_ns: i64,
    /// Something was outstanding, ns.
    pub waited_ns: i64,
    /// Pauses of less than a second, ns.
    pub paused_ns: i64,
}

/// Waits of one client with no more pauses between them than they took: one wait for its user.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The client's address.
    pub client: String,
    /// Begin, ns since 1970.
    pub first_ns: i64,
    /// End, ns since 1970.
    pub last_ns: i64,
    /// Waiting in it, ns.
    pub waited_ns: i64,
    /// Part of `waited_ns`: network round trips, ns.
    pub distance_ns: i64,
    /// Part of `waited_ns`: operations for which the server needed far longer than for cached data, ns.
    pub server_ns: i64,
    /// Operations in it.
    pub operations: u64,
}

/// A request without a reply.
#[derive(Clone, Debug)]
pub(super) struct Unanswered {
    pub(super) connection: (u32, u64),
    pub(super) start: i64,
    pub(super) act: Act,
    pub(super) frame: Option<u64>,
    pub(super) command: String,
    pub(super) path: Option<String>,
}

/// A request of a logon.
#[derive(Clone, Debug)]
pub(super) struct Logon {
    pub(super) recording: u32,
    pub(super) client: String,
    pub(super) server: String,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) number: Option<u32>,
}

#[derive(Default)]
struct Client {
    name: String,
    busy: BusyTime,
    span: Option<(i64, i64)>,
    paused_ns: i64,
    distance_ns: i64,
    before_smb_ns: i64,
    row: Row,
    in_a_row: InARow,
    longest: Row,
    /// The row in which the server needed longest.
    slowest: Row,
}

/// The last operation of a connection.
#[derive(Clone, Debug)]
pub(super) struct LastOperation {
    pub(super) end: i64,
    pub(super) command: String,
    pub(super) is_signed: bool,
}

/// The accounts of all clients, while operations pass.
#[derive(Default)]
pub(super) struct Accounts {
    clients: HashMap<(u32, Option<TextId>), Client, foldhash::fast::RandomState>,
    pub(super) unanswered: Vec<Unanswered>,
    unanswered_count: u64,
    pub(super) logons: Vec<Logon>,
    /// Operations in which TCP stood still for a second or longer, by connection.
    recovered: HashMap<(u32, u64), HashSet<u32>, foldhash::fast::RandomState>,
    requests: u64,
    failed: HashMap<u32, u64>,
    /// By connection: when its last reply ended.
    last: HashMap<(u32, u64), (i64, u32, bool), foldhash::fast::RandomState>,
    /// Commands of the last operations, so that each is one text.
    commands: Vec<(Option<TextId>, String)>,
}

impl Accounts {
    pub(super) fn see(&mut self, op: &Operation) {
        if matches!(op.act, Act::Open | Act::Read | Act::Write | Act::Change | Act::Logon) {
            self.requests += 1;
            let status = op.status.filter(|status| *status != 0);
            if let Some(status) = status
                && StatusClass::from_status(status) == StatusClass::Error
                && (self.failed.len() < STATUSES_MAX || self.failed.contains_key(&status))
            {
                *self.failed.entry(status).or_default() += 1;
            }
        }
        let Some(start) = op.start else { return };
        let columns = op.columns;
        if columns.elapsed_ns.get(op.row).is_none() {
            self.without_reply(op, start);
            return;
        }
        // What is behind a pipe answers when it has something to say.
        if !op.is_timed || op.is_pipe && op.elapsed_ns >= EVENT_NS {
            return;
        }
        let end = start.saturating_add(op.elapsed_ns);
        self.note_last(op, end);
        self.note_cause(op, start, end);
        let key = (op.recording, op.client);
        if self.clients.len() >= CLIENTS_MAX && !self.clients.contains_key(&key) {
            return;
        }
        let client = self.clients.entry(key).or_insert_with(|| Client {
            name: op.client_name().unwrap_or_default().to_owned(),
            ..Client::default()
        });
        let (server_ns, network_ns) = op.split().unwrap_or_default();
        let excess_ns = (server_ns.min(op.silent_ns) - quick_ns(op)).max(0);
        let excess_ns = if excess_ns >= LONG_NS { excess_ns } else { 0 };
        client.add(start, end, network_ns, excess_ns);
    }

    fn note_last(&mut self, op: &Operation, end: i64) {
        let key = (op.recording, op.connection);
        if self.last.len() >= CLIENTS_MAX && !self.last.contains_key(&key) {
            return;
        }
        let known = self.commands.iter().position(|(known, _)| *known == op.command);
        // A dataset from another program may name any number of commands.
        let command = known.unwrap_or_else(|| {
            if self.commands.len() < COMMANDS_MAX {
                let name = op.columns.command.get(op.row).unwrap_or_default();
                self.commands.push((op.command, name.to_owned()));
            }
            self.commands.len() - 1
        });
        self.last.insert(key, (end, command as u32, op.columns.signed.is_set(op.row)));
    }

    /// What waits outside of operations may explain.
    fn note_cause(&mut self, op: &Operation, start: i64, end: i64) {
        if op.act == Act::Logon && self.logons.len() < LOGONS_MAX {
            let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
            self.logons.push(Logon {
                recording: op.recording,
                client: name(op.client_name()),
                server: name(op.server_name()),
                start,
                end,
                number: op.number,
            });
        }
        if op.recovery_ns() >= NOTICED_NS && self.recovered.len() < RECOVERED_MAX {
            let key = (op.recording, op.connection);
            self.recovered.entry(key).or_default().extend(op.number);
        }
    }

    /// Operations of a connection in which TCP stood still for a second or longer.
    pub(super) fn recovered(&self, connection: (u32, u64)) -> impl Iterator<Item = u32> {
        self.recovered.get(&connection).into_iter().flatten().copied()
    }

    fn without_reply(&mut self, op: &Operation, start: i64) {
        let columns = op.columns;
        // Those wait by design, have no reply by protocol, or are members whose time is the lead's.
        if columns.waits.is_set(op.row)
            || matches!(op.act, Act::Break)
            || op.status.is_some()
            || columns.response_frame.get(op.row).is_some()
            || columns.command.get(op.row).is_some_and(|name| WITHOUT_REPLY.contains(&name))
            // Cut before its function: it may be a notification that waits by design.
            || columns.command.get(op.row) == Some("NtTransact") && columns.detail.get(op.row).is_none()
            // What is behind a pipe answers when it has something to say.
            || op.is_pipe
        {
            return;
        }
        self.unanswered_count += 1;
        if self.unanswered.len() < UNANSWERED_MAX {
            self.unanswered.push(Unanswered {
                connection: (op.recording, op.connection),
                start,
                act: op.act,
                frame: columns.request_frame.get(op.row),
                command: columns.command.get(op.row).unwrap_or("(unknown)").to_owned(),
                path: op.path_name().map(str::to_owned),
            });
        }
    }

    /// The last operation with a reply on a connection.
    pub(super) fn last(&self, connection: (u32, u64)) -> Option<LastOperation> {
        let &(end, command, is_signed) = self.last.get(&connection)?;
        let (_, command) = self.commands.get(command as usize)?.clone();
        Some(LastOperation { end, command, is_signed })
    }

    /// Adds waits outside of operations.
    pub(super) fn wait(&mut self, recording: u32, row: &Wait, until: i64) {
        let key = (recording, Some(text_id(row.client.as_str())));
        if self.clients.len() >= CLIENTS_MAX && !self.clients.contains_key(&key) {
            return;
        }
        let client = self
            .clients
            .entry(key)
            .or_insert_with(|| Client { name: row.client.clone(), ..Client::default() });
        let before = client.busy.ns();
        client.busy.add(row.start, until);
        client.widen(row.start, until);
        client.before_smb_ns += client.busy.ns().saturating_sub(before);
    }

    /// Adds the time in which a client waited for replies that did not come.
    pub(super) fn hang(&mut self, recording: u32, client: &str, from: i64, until: i64) {
        let key = (recording, Some(text_id(client)));
        if let Some(client) = self.clients.get_mut(&key) {
            client.busy.add(from, until);
            client.widen(from, until);
        }
    }

    pub(super) fn finish(self) -> (Account, Option<Row>) {
        let most = self.failed.iter().max_by_key(|(status, n)| (**n, std::cmp::Reverse(**status)));
        let most = most.map(|(status, _)| match Status(*status).name() {
            Some(name) => name.to_owned(),
            None => format!("0x{status:08x}"),
        });
        let mut account = Account {
            unanswered: self.unanswered_count,
            requests: self.requests,
            failed: self.failed.values().sum(),
            failed_most: most,
            ..Account::default()
        };
        let mut slowest: Option<Row> = None;
        let mut all = Vec::new();
        for mut client in self.clients.into_values() {
            client.end_row();
            let (first, last) = client.span.unwrap_or_default();
            let waited_ns = client.busy.ns();
            account.clients += 1;
            let active_ns = last.saturating_sub(first).max(waited_ns);
            let paused_ns = client.paused_ns.min(active_ns - waited_ns);
            let sums = [
                (&mut account.active_ns, active_ns),
                (&mut account.waited_ns, waited_ns),
                (&mut account.distance_ns, client.distance_ns.min(waited_ns)),
                (&mut account.before_smb_ns, client.before_smb_ns),
                (&mut account.paused_ns, paused_ns),
            ];
            sums.into_iter().for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
            let name = &client.name;
            let take = |best: &mut Option<Row>, row: Row, ns: fn(&Row) -> i64| {
                let is_more = |best: &Row| {
                    (ns(&row), std::cmp::Reverse(name))
                        > (ns(best), std::cmp::Reverse(&best.client))
                };
                if ns(&row) > 0 && best.as_ref().is_none_or(is_more) {
                    *best = Some(Row { client: name.clone(), ..row });
                }
            };
            take(&mut account.longest, std::mem::take(&mut client.longest), |row| row.waited_ns);
            take(&mut slowest, std::mem::take(&mut client.slowest), |row| row.server_ns);
            all.push(ClientAccount { client: client.name, active_ns, waited_ns, paused_ns });
        }
        all.sort_by(|one, other| {
            (other.waited_ns, &one.client).cmp(&(one.waited_ns, &other.client))
        });
        all.truncate(LISTED);
        account.first = all;
        (account, slowest)
    }
}

impl Client {
    fn widen(&mut self, first: i64, last: i64) {
        let (begun, ended) = self.span.unwrap_or((first, last));
        self.span = Some((begun.min(first), ended.max(last)));
    }

    /// Adds an operation; `network_ns` and `excess_ns` are parts of its time.
    fn add(&mut self, start: i64, end: i64, network_ns: i64, excess_ns: i64) {
        self.busy.add(start, end);
        self.widen(start, end);
        let Added { is_new, pause_ns, fresh_ns: fresh } = self.in_a_row.add(start, end);
        if pause_ns < PAUSE_MAX_NS {
            self.paused_ns = self.paused_ns.saturating_add(pause_ns);
        }
        if is_new {
            self.end_row();
        }
        if self.row.operations == 0 {
            self.row.first_ns = start;
        }
        let part =
            |ns: i64| (ns as f64 * fresh as f64 / end.saturating_sub(start).max(1) as f64) as i64;
        self.distance_ns = self.distance_ns.saturating_add(part(network_ns));
        let row = &mut self.row;
        row.operations += 1;
        row.last_ns = row.last_ns.max(end);
        row.waited_ns = row.waited_ns.saturating_add(fresh);
        row.distance_ns = row.distance_ns.saturating_add(part(network_ns));
        row.server_ns = row.server_ns.saturating_add(excess_ns.min(fresh));
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.server_ns > self.slowest.server_ns {
            self.slowest = row.clone();
        }
        if row.waited_ns > self.longest.waited_ns {
            self.longest = row;
        }
    }
}

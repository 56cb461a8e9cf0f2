//! From rows of the operations table to requests: their client, connection and compound members.
//!
//! Owns the columns that are read and the numbers of connections and clients. The lead of a compound is held
//! until its members were read, because their server time is part of the lead's. The parent module replays the
//! requests.

use std::sync::LazyLock;

use arrow::array::RecordBatch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use hashbrown::hash_map::Entry;
use smbscope_tables::operation;
use smbscope_tables::slice::Kind;

use super::client::Client;
use super::lookups::{self, Lookups};
use super::network::TcpConnection;
use super::replicas::{self, ReplicaColumns};
use super::request::{MESSAGE_MAX_BYTES, Request, duration, point};
use super::role::Role;
use super::{Replay, Saving, Turn};
use crate::predict::plan::Plan;
use crate::rows::columns::{Numbers, Resolved, numbers};

crate::rows::columns::columns! {
    recording: text,
    connection: u64,
    session_id: u64,
    tree_id: u32,
    scenario_run: u64,
    compound: u64,
    compound_size: u16,
    client: text,
    command: text,
    encrypted: bool,
    signed: bool,
    handle: u64,
    offset_bytes: u64,
    transferred_bytes: u64,
    request_wire_bytes: u64,
    response_wire_bytes: u64,
    request_transfer_ns: i64,
    response_transfer_ns: i64,
    request_start: i64,
    elapsed_ns: i64,
    server_ns: i64,
    waits: bool,
    write_through: bool,
}

/// The columns of the operations table that a replay reads; others need not be decoded.
pub fn columns(plan: &Plan) -> impl Iterator<Item = &'static str> {
    let lookups = if plan.cache.is_some() { lookups::COLUMNS } else { &[] };
    let replicas = if plan.replication.is_some() { replicas::COLUMNS } else { &[] };
    COLUMNS.iter().chain(SLICES.iter()).chain(lookups).chain(replicas).copied()
}

/// The columns of the disjoint parts of the server's time.
static SLICES: LazyLock<[&str; Kind::PARTS]> = LazyLock::new(|| {
    let specs = operation::specs();
    std::array::from_fn(|place| specs[Kind::ALL[place].column() as usize].name)
});

/// An operation: its row in the batch, the numbers of its names, and how much less time it takes.
struct RowKeys {
    row: usize,
    recording: u32,
    command: u32,
    spared: Saving,
    /// Numbers of its share and application.
    group: (u32, u8),
    /// Whether it is for a pipe, which is not data of a volume.
    is_pipe: bool,
}

impl Replay {
    /// Adds operations in the order in which they ended. Columns are found by name; those that are
    /// absent read as null. Fails only on a column of a type that cannot be cast to the schema's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.operations_less(batch, &[])
    }

    /// Adds operations that take less time each, whatever else changes; operations beyond the end of `spared` take
    /// their full time.
    pub(crate) fn operations_less(
        &mut self,
        batch: &RecordBatch,
        spared: &[Saving],
    ) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        let slices = SLICES.iter().map(|name| numbers::<Int64Type>(batch, name));
        let slices: Vec<_> = slices.collect::<Result<_, _>>()?;
        let slices: Vec<_> =
            slices.into_iter().enumerate().filter(|(_, column)| !column.is_empty()).collect();
        let mut lookups = match &self.caches {
            Some(_) => Some(Lookups::from_batch(batch)?),
            None => None,
        };
        let mut groups = match &self.replicas {
            Some(_) => Some(ReplicaColumns::from_batch(batch)?),
            None => None,
        };
        let mut recordings = Resolved::new(columns.recording.keys());
        let mut commands = Resolved::new(columns.command.keys());
        for row in 0..batch.num_rows() {
            let recording = match columns.recording.key(row) {
                Some(key) => recordings.get(key, || {
                    self.recordings.number(columns.recording.text(key).unwrap_or_default())
                }),
                None => self.recordings.number(""),
            };
            let command = match columns.command.key(row) {
                Some(key) => commands.get(key, || {
                    self.tally.command(columns.command.text(key).unwrap_or("(unknown)"))
                }),
                None if columns.encrypted.is_set(row) => self.tally.command("(encrypted)"),
                None => self.tally.command("(unknown)"),
            };
            let lookups = lookups.as_mut();
            let spared = spared.get(row).copied().unwrap_or_default();
            let group = match (&mut groups, &mut self.replicas) {
                (Some(groups), Some(collector)) => groups.keys(row, collector),
                _ => (0, 0),
            };
            let is_pipe = groups.as_ref().is_some_and(|groups| groups.is_pipe(row));
            let of = RowKeys { row, recording, command, spared, group, is_pipe };
            self.operation(&columns, &slices, lookups, of);
        }
        Ok(())
    }

    fn operation(
        &mut self,
        columns: &Columns,
        slice_columns: &[(usize, Numbers<i64>)],
        lookups: Option<&mut Lookups>,
        of: RowKeys,
    ) {
        let RowKeys { row, recording, command, spared, group, is_pipe } = of;
        let is_load = self.loads.get(recording as usize).copied().unwrap_or(false);
        let connection = columns.connection.get(row).unwrap_or(0);
        let link = self.link(recording, connection, columns, row);
        let client = self.client(link, recording, columns.session_id.get(row));
        let run = columns.scenario_run.get(row);
        let execution = run.filter(|_| is_load).and_then(|run| {
            let known = self.clients.get(client as usize).and_then(|client| client.execution(run));
            known.or_else(|| self.executions.get(&(recording, run)).copied())
        });
        let is_counted =
            if is_load { execution.is_some_and(|execution| execution.is_counted) } else { true };
        if is_counted {
            self.tally.operation(command)
        } else {
            self.tally.left_out += 1
        }
        let role = self.tally.role(command);
        let handle = columns.handle.get(row).filter(|_| !is_pipe);
        let handle = handle.map(|handle| (recording, handle));
        if role == Role::Close
            && let Some(handle) = handle
        {
            let start = point(columns.request_start.get(row).unwrap_or(0));
            let elapsed_ns = duration(columns.elapsed_ns.get(row).unwrap_or(0));
            self.in_turn(start + elapsed_ns, Turn::Closed(handle));
        }
        if self.is_baseline {
            self.learning.add(role, handle);
        }
        let compound = columns.compound.get(row);
        let answered = match lookups {
            Some(lookups) => {
                let start = point(columns.request_start.get(row).unwrap_or(0));
                let ask = lookups.ask(row, recording, client, role, handle, start);
                let answered = self.caches.as_mut().is_some_and(|caches| caches.answer(&ask));
                if is_counted {
                    let scenario = execution.map(|one| one.scenario);
                    self.tally.cached(scenario, command, answered);
                }
                answered
            }
            None => false,
        };
        let mut slices = [0; Kind::PARTS];
        let mut has_slices = false;
        for (kind, slice) in slice_columns {
            if let Some(ns) = slice.get(row) {
                (slices[*kind], has_slices) = (duration(ns), true);
            }
        }
        // A request that waits by design is not predicted; a member of a compound has no time of its own, but the
        // server's time for it is part of the lead's.
        let (Some(start), Some(elapsed_ns), false) = (
            columns.request_start.get(row),
            columns.elapsed_ns.get(row),
            columns.waits.is_set(row),
        ) else {
            if let (Some(compound), true) = (compound, has_slices || answered)
                && let Some(lead) = self.held.get_mut(&link)
                && lead.compound == Some(compound)
            {
                lead.add_member(&slices);
                lead.answered += u64::from(answered);
            }
            if answered && is_counted {
                self.tally.more(command, -1);
            }
            return;
        };
        self.release(link);
        let request = Request {
            recording,
            link,
            client,
            command,
            role,
            compound,
            run,
            execution,
            is_counted,
            start: point(start),
            elapsed_ns: duration(elapsed_ns),
            spared,
            bytes: (
                columns.request_wire_bytes.get(row).unwrap_or(0).min(MESSAGE_MAX_BYTES),
                columns.response_wire_bytes.get(row).unwrap_or(0).min(MESSAGE_MAX_BYTES),
            ),
            sending_ns: duration(columns.request_transfer_ns.get(row).unwrap_or(0))
                + duration(columns.response_transfer_ns.get(row).unwrap_or(0)),
            slices,
            has_slices,
            server_ns: duration(columns.server_ns.get(row).unwrap_or(0)),
            transferred: columns.transferred_bytes.get(row).unwrap_or(0).min(MESSAGE_MAX_BYTES),
            handle,
            offset: columns.offset_bytes.get(row),
            is_through: columns.write_through.is_set(row)
                || self.is_available(columns, row, recording),
            is_signed: columns.signed.is_set(row),
            is_encrypted: columns.encrypted.is_set(row),
            share: group.0,
            application: group.1,
            members: columns.compound_size.get(row).map_or(1, u64::from).max(1),
            answered: u64::from(answered),
            lead_answered: answered,
        };
        if compound.is_some() && (has_slices || self.caches.is_some()) {
            self.held.insert(link, request);
        } else {
            self.request_in_turn(request);
        }
    }

    fn is_available(&self, columns: &Columns, row: usize, recording: u32) -> bool {
        !self.available.is_empty()
            && columns.session_id.get(row).zip(columns.tree_id.get(row)).is_some_and(
                |(session, tree)| self.available.contains(&(recording, session, tree.into())),
            )
    }

    fn link(&mut self, recording: u32, connection: u64, columns: &Columns, row: usize) -> u32 {
        let key = (recording, connection);
        if let Some((last, place)) = self.last_link
            && last == key
        {
            return place;
        }
        if let Some(&place) = self.link_of.get(&key) {
            self.last_link = Some((key, place));
            return place;
        }
        let known = self.known.remove(&(recording, connection)).unwrap_or_default();
        let client = columns.client.get(row).unwrap_or_default();
        let place = self.links.len() as u32;
        self.links.push(TcpConnection::new(&self.plan, known, self.lines.of(client)));
        self.link_of.insert((recording, connection), place);
        place
    }

    /// The client of a connection: that of its session, as soon as the session is known.
    fn client(&mut self, link: u32, recording: u32, session: Option<u64>) -> u32 {
        let session = session.filter(|id| *id != 0);
        let Some(one) = self.links.get_mut(link as usize) else { return 0 };
        if let Some(client) = one.client
            && (one.has_session || session.is_none())
        {
            return client;
        }
        let mut make = || {
            self.clients.push(Client::default());
            self.clients.len() as u32 - 1
        };
        let client = match session {
            None => make(),
            Some(session) => {
                // The client of the connection's logon continues as that of the session.
                let of_link = one.client;
                let entry = self.client_of.entry((recording, session));
                self.tally.further_channels += u64::from(matches!(entry, Entry::Occupied(_)));
                *entry.or_insert_with(|| of_link.unwrap_or_else(make))
            }
        };
        one.client = Some(client);
        one.has_session = session.is_some();
        client
    }
}

//! What spans connections: numbers, sessions with their channels, trees, opens and names.
//!
//! Takes the outputs of the shards in the order of the packets, so that the result does not depend
//! on the number of shards. All state is bounded; what is forgotten is counted.

mod bounded;
mod channels;
mod connections;
mod entities;
mod files;
mod handle_end;
mod interned;
mod pipes;
mod sessions;
mod vantage;
mod waits;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_tables::Part;
use smbscope_tables::builder::{BLOCK, OperationBuilder};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::{Coverage, Interface, Referral, Session, Tree};

use crate::kdc::Tickets;
use crate::limits::Limits;
use crate::options::{Options, Tables};
use crate::outcome::{self, Details, Effect, Endpoints, NetworkSample, OperationEnd, Output};
use bounded::Entities;
use channels::Timeline;
use connections::{ConnectionKey, ConnectionState, Connections};
pub use entities::add_counters;
use entities::{Closed, HandleState, SessionState, TreeState};
use files::Durable;
use handle_end::end_open;
use interned::Interned;
use vantage::Vantages;
use waits::Waiting;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Rows of the small tables that make a part.
const TABLE_ROWS: usize = 4_096;
/// Text of one batch; beyond it the batch ends early.
const TEXT_BYTES: usize = 4 << 20;

/// Adds to rows what spans connections, and makes the parts.
#[derive(Clone)]
pub struct Resolver {
    limits: Limits,
    batch_rows: usize,
    tables: Tables,
    builder: OperationBuilder,
    recording: Interned,
    capture_file: Interned,
    /// The next input begins a recording; otherwise it continues the one before.
    recording_over: bool,
    connections: Connections,
    by_guid: Map<([u8; 16], u64), u32>,
    by_address: Map<(IpAddr, IpAddr, u64), u32>,
    sessions: Entities<SessionState>,
    trees: Entities<TreeState>,
    handles: Entities<HandleState>,
    durable: Durable,
    closed: Closed,
    tickets: Tickets,
    timeline: Timeline,
    connections_seen: u64,
    sessions_seen: u64,
    trees_seen: u64,
    operations: u64,
    handle_numbers: u64,
    rows: Rows,
    /// Counters of the file at hand.
    pub coverage: Box<Coverage>,
    vantages: Vantages,
    waiting: Waiting,
    parts: VecDeque<Part>,
}

/// What TCP did, with the shard, in the order of the packets.
type Samples = std::iter::Peekable<std::vec::IntoIter<(u32, NetworkSample)>>;

fn samples(outputs: &[Output]) -> Vec<(u32, NetworkSample)> {
    let mut samples: Vec<_> = (outputs.iter().zip(0..))
        .flat_map(|(output, shard)| output.network.iter().map(move |&one| (shard, one)))
        .collect();
    samples.sort_by_key(|&(shard, sample)| (sample.order, shard));
    samples
}

#[derive(Clone, Default)]
struct Rows {
    connections: Vec<smbscope_tables::tables::Connection>,
    sessions: Vec<Session>,
    trees: Vec<Tree>,
    referrals: Vec<Referral>,
    interfaces: Vec<Interface>,
}

impl Resolver {
    /// A resolver without any state.
    pub fn new(options: &Options) -> Result<Resolver, ArrowError> {
        let projection: &[usize] = &[];
        let wanted = match &options.projection {
            _ if !options.tables.operations => Some(projection),
            wanted => wanted.as_deref(),
        };
        Ok(Resolver {
            limits: options.limits,
            batch_rows: options.batch_rows.max(1),
            tables: options.tables,
            builder: OperationBuilder::new(wanted)?,
            recording: Interned::default(),
            capture_file: Interned::default(),
            recording_over: true,
            connections: Connections::default(),
            by_guid: Map::default(),
            by_address: Map::default(),
            sessions: Entities::new(options.limits.sessions, options.limits.state_bytes / 4),
            trees: Entities::new(options.limits.sessions, options.limits.state_bytes / 4),
            handles: Entities::new(options.limits.handles, options.limits.state_bytes / 2),
            durable: Durable::default(),
            closed: Closed { is_wanted: options.tables.handles, ..Closed::default() },
            tickets: Tickets::default(),
            timeline: Timeline::new(
                options.tables.channels,
                options.tables.interfaces,
                options.limits.connections,
            ),
            connections_seen: 0,
            sessions_seen: 0,
            trees_seen: 0,
            operations: 0,
            handle_numbers: 0,
            rows: Rows::default(),
            coverage: Box::default(),
            vantages: Vantages::default(),
            waiting: Waiting::new(options.tables.waits, options.limits.connections),
            parts: VecDeque::new(),
        })
    }

    /// The next part that is complete.
    pub fn next_part(&mut self) -> Option<Part> {
        self.parts.pop_front()
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Rows come from this input from now on. Inputs that continue each other are one recording
    /// with the name of the first, so that an operation, its connection and its open have the same
    /// key even if they began and ended in different files.
    pub fn begin_input(&mut self, name: &str) {
        if self.recording_over {
            self.recording = Interned::new(name);
            self.closed.recording = name.into();
        }
        self.capture_file = Interned::new(name);
        *self.coverage = Coverage::default();
        self.vantages = Vantages::default();
    }

    /// Starts another recording in the middle of an input; no rows may wait to be flushed. The
    /// state is kept.
    pub fn begin_recording(&mut self, name: &str) {
        self.recording = Interned::new(name);
        self.capture_file = Interned::new(name);
        self.closed.recording = name.into();
        self.closed.forgotten = 0;
        self.timeline.begin_recording();
        self.waiting.begin_recording();
        *self.coverage = Coverage::default();
    }

    /// Takes what the shards made of one chunk.
    pub fn take(&mut self, outputs: &mut [Output]) -> Result<(), ArrowError> {
        self.connections_started(outputs);
        self.name_by_tickets(outputs);
        let mut samples = samples(outputs).into_iter().peekable();
        match outputs {
            [output] => self.in_order(output, &mut samples)?,
            _ => self.merge(outputs, &mut samples)?,
        }
        self.network_until(u64::MAX, &mut samples);
        for (shard, output) in outputs.iter_mut().enumerate() {
            for mut wait in output.waits.drain(..) {
                let connection =
                    wait.connection.and_then(|one| self.connections.get((shard as u32, one)));
                wait.row.connection = connection.map(|connection| connection.number);
                self.waiting.take(wait.row);
            }
        }
        let mut ended: Vec<(u64, ConnectionKey, &smbscope_tables::tables::Connection)> = Vec::new();
        for (shard, output) in outputs.iter().enumerate() {
            for (connection, order, row) in &output.ended {
                ended.push((*order, (shard as u32, *connection), row));
            }
            add_counters(&mut self.coverage, &output.coverage);
        }
        ended.sort_by_key(|&(order, key, _)| (order, key));
        for (_, key, row) in ended {
            self.connection_ended(key, row);
        }
        self.emit_tables(TABLE_ROWS);
        Ok(())
    }

    /// Makes a batch of the rows that there are.
    pub fn flush(&mut self) -> Result<(), ArrowError> {
        if !self.builder.is_empty() {
            self.parts.push_back(Part::Operations(self.builder.finish()?));
        }
        Ok(())
    }

    /// The ends of a connection of the only shard.
    pub fn ends(&self, connection: u32) -> Option<Endpoints> {
        let connection = self.connections.get((0, connection))?;
        Some(Endpoints {
            client: SocketAddr::new(connection.client, connection.client_port),
            server: SocketAddr::new(connection.server, connection.server_port),
        })
    }

    /// Numbers the connections that began; [`Resolver::take`] does so too.
    pub fn connections_started(&mut self, outputs: &[Output]) {
        let mut started: Vec<(u64, u32, &outcome::ConnectionStart)> = Vec::new();
        for (shard, output) in outputs.iter().enumerate() {
            started.extend(output.started.iter().map(|one| (one.order, shard as u32, one)));
        }
        started.sort_by_key(|&(order, shard, _)| (order, shard));
        for (_, shard, one) in started {
            self.connections_seen += 1;
            let state = ConnectionState::new(self.connections_seen, one);
            self.waiting.uses_smb(one.client.ip());
            self.timeline.connection(&state, one);
            self.connections.insert((shard, one.connection), state);
        }
    }

    /// Names users of Kerberos logons by the tickets that KDCs issued, in this chunk or before.
    fn name_by_tickets(&mut self, outputs: &mut [Output]) {
        let tickets = outputs.iter_mut().flat_map(|output| output.details.tickets.drain(..));
        let mut tickets: Vec<_> = tickets.collect();
        tickets.sort_by_key(|ticket| ticket.order);
        tickets.into_iter().for_each(|ticket| self.tickets.learn(ticket));
        for session in outputs.iter_mut().flat_map(|output| &mut output.details.sessions) {
            if session.user.is_none()
                && let Some(ticket) = &session.ticket
            {
                session.user = self.tickets.account(ticket).map(str::to_owned);
            }
        }
    }

    /// The operations of the only shard.
    fn in_order(&mut self, output: &mut Output, samples: &mut Samples) -> Result<(), ArrowError> {
        let (mut done, mut rows) = (&output.done[..], &mut output.rows[..]);
        while !rows.is_empty() {
            let count = self.room().min(rows.len());
            let (group, later) = rows.split_at_mut(count);
            for (done, row) in done.iter().zip(group.iter_mut()) {
                self.network_until(done.order, samples);
                self.operation(0, done, row, &output.details);
            }
            self.append(group)?;
            (done, rows) = (done.get(count..).unwrap_or_default(), later);
        }
        Ok(())
    }

    /// Operations of several shards in the order of the packets that ended them.
    fn merge(&mut self, outputs: &mut [Output], samples: &mut Samples) -> Result<(), ArrowError> {
        let mut next = vec![0_usize; outputs.len()];
        let mut group = Vec::with_capacity(BLOCK);
        loop {
            group.clear();
            while group.len() < self.room() {
                let earliest = outputs
                    .iter()
                    .zip(&next)
                    .enumerate()
                    .filter_map(|(shard, (output, &at))| Some((output.done.get(at)?.order, shard)))
                    .min();
                let Some((_, shard)) = earliest else { break };
                let (Some(Output { done, rows, details, .. }), Some(at)) =
                    (outputs.get_mut(shard), next.get_mut(shard))
                else {
                    break;
                };
                if let (Some(done), Some(row)) = (done.get(*at), rows.get_mut(*at)) {
                    self.network_until(done.order, samples);
                    self.operation(shard as u32, done, row, details);
                    group.push((shard, *at));
                }
                *at += 1;
            }
            if group.is_empty() {
                return Ok(());
            }
            let rows: Vec<&Operation> = (group.iter())
                .filter_map(|&(shard, at)| outputs.get(shard)?.rows.get(at))
                .collect();
            self.append(&rows)?;
        }
    }

    /// Rows that are resolved before they go to the builder: their names are numbers that hold
    /// until its batch is finished.
    fn room(&self) -> usize {
        BLOCK.min(self.batch_rows - self.builder.len())
    }

    fn append<R: AsRef<Operation>>(&mut self, rows: &[R]) -> Result<(), ArrowError> {
        if self.tables.operations {
            self.builder.append(rows);
        }
        let is_full = self.builder.len() >= self.batch_rows;
        if is_full || self.builder.names.text_bytes() > TEXT_BYTES {
            let batch = self.builder.finish()?;
            // Also if the rows are not wanted: their names must not pile up.
            if self.tables.operations {
                self.parts.push_back(Part::Operations(batch));
            }
        }
        Ok(())
    }

    /// Adds to an operation's row what spans connections.
    #[inline]
    fn operation(
        &mut self,
        shard: u32,
        done: &OperationEnd,
        row: &mut Operation,
        details: &Details,
    ) {
        self.operations += 1;
        self.coverage.operations += 1;
        let key = (shard, done.connection);
        let names = &mut self.builder.names;
        let recording = self.recording.in_pool(names, |names| &mut names.recording);
        let file = self.capture_file.in_pool(names, |names| &mut names.capture_file);
        row.set_operation(self.operations);
        row.set_recording(recording);
        row.set_capture_file(file);
        let Some((place, mut connection)) = self.connections.take(key) else { return };
        let names = &mut self.builder.names;
        let client = connection.client_name.in_pool(names, |names| &mut names.client);
        let server = connection.server_name.in_pool(names, |names| &mut names.server);
        row.set_connection(connection.number);
        // Events of a server do not have all addresses.
        if !connection.client.is_unspecified() {
            row.set_client(client);
            row.set_client_port(connection.client_port);
        }
        if !connection.server.is_unspecified() {
            row.set_server(server);
            row.set_server_port(connection.server_port);
        }
        if done.chain != 0 {
            // Unique in the recording without a table: each connection numbers its own compounds.
            row.set_compound(connection.number << 32 | done.chain & 0xffff_ffff);
        }
        let session = self.session(&mut connection, done, details, row);
        let tree = self.tree(&mut connection, session, done, details, row);
        let tree_state = tree.and_then(|place| self.trees.get_mut(place));
        pipes::mark_waiting(row, tree_state.is_some_and(|tree| tree.is_of_pipes()));
        self.file(&mut connection, session, tree, done, details, row);
        self.timeline.operation(&mut connection, row, done.time);
        self.connections.put(place, connection);
        if let Effect::Referrals(first, count) = done.effect {
            self.referrals(row, details, first, count);
        }
    }

    fn referrals(&mut self, row: &Operation, details: &Details, first: u32, count: u32) {
        let range = first as usize..(first as usize).saturating_add(count as usize);
        for target in details.referrals.get(range).unwrap_or_default() {
            self.rows.referrals.push(Referral {
                recording: self.recording.text().to_owned(),
                operation: row.operation().unwrap_or_default(),
                ..target.clone()
            });
        }
    }

    /// Adds what TCP did up to a packet.
    #[inline]
    fn network_until(&mut self, order: u64, samples: &mut Samples) {
        while let Some((shard, sample)) = samples.next_if(|(_, sample)| sample.order <= order) {
            if let Some(connection) = self.connections.get((shard, sample.connection)) {
                self.timeline.network(connection.number, &sample);
            }
        }
    }

    fn connection_ended(&mut self, key: ConnectionKey, row: &smbscope_tables::tables::Connection) {
        let Some(connection) = self.connections.remove(key) else { return };
        let ended = row.has_ended().then_some(row.end);
        for &(id, place, _) in &connection.sessions {
            if let Some(session) = self.sessions.get_mut(place).filter(|session| session.id == id) {
                session.channels.leave(ended);
            }
        }
        self.timeline.connection_ended(&connection, row);
        self.vantages.add(row);
        if self.tables.connections {
            self.rows.connections.push(smbscope_tables::tables::Connection {
                recording: self.recording.text().to_owned(),
                connection: connection.number,
                ..row.clone()
            });
        }
    }

    /// Makes parts of the small tables that have at least that many rows.
    pub fn emit_tables(&mut self, at_least: usize) {
        fn emit<T>(rows: &mut Vec<T>, at_least: usize, part: fn(Vec<T>) -> Part) -> Option<Part> {
            (rows.len() >= at_least).then(|| part(std::mem::take(rows)))
        }
        let rows = &mut self.rows;
        self.parts.extend(emit(&mut rows.connections, at_least, Part::Connections));
        self.parts.extend(emit(&mut rows.sessions, at_least, Part::Sessions));
        self.parts.extend(emit(&mut rows.trees, at_least, Part::Trees));
        self.parts.extend(emit(&mut self.closed.rows, at_least, Part::Handles));
        self.parts.extend(emit(&mut rows.referrals, at_least, Part::Referrals));
        self.parts.extend(emit(&mut rows.interfaces, at_least, Part::Interfaces));
        if self.timeline.channels.rows_waiting() >= at_least {
            let recording = self.recording.shared().unwrap_or_default();
            let rows = self.timeline.channels.take_rows(&recording);
            self.parts.push_back(Part::Channels(rows));
        }
    }

    /// The input ends; with `last` so does everything that was open.
    pub fn end_input(&mut self, last: bool) -> Result<(), ArrowError> {
        self.recording_over = last;
        if last {
            self.handles.drain(&mut |state| {
                end_open(state, &self.sessions, &self.trees);
                self.closed.keep(state);
                if self.closed.rows.len() >= TABLE_ROWS {
                    self.parts.push_back(Part::Handles(std::mem::take(&mut self.closed.rows)));
                }
            });
            let recording = self.recording.text();
            self.trees.drain(&mut |state| self.rows.trees.push(state.row(recording)));
            self.sessions.drain(&mut |state| self.rows.sessions.extend(state.row(recording)));
            self.rows.interfaces.extend(self.timeline.end(recording));
            let waits = self.waiting.end(recording);
            if !waits.is_empty() {
                self.parts.push_back(Part::Waits(waits));
            }
            self.durable = Durable::default();
            self.by_guid.clear();
            self.by_address.clear();
            self.connections = Connections::default();
        }
        self.flush()?;
        if !self.tables.sessions {
            self.rows.sessions.clear();
        }
        if !self.tables.trees {
            self.rows.trees.clear();
        }
        self.emit_tables(1);
        std::mem::take(&mut self.vantages).judge(&mut self.coverage);
        self.coverage.handles_forgotten += std::mem::take(&mut self.closed.forgotten);
        self.coverage.sessions_forgotten += std::mem::take(&mut self.sessions.forgotten);
        self.coverage.trees_forgotten += std::mem::take(&mut self.trees.forgotten);
        self.coverage.recording = self.recording.text().to_owned();
        self.coverage.capture_file = Some(self.capture_file.text().to_owned());
        self.parts.push_back(Part::Coverage(std::mem::take(&mut self.coverage)));
        Ok(())
    }
}

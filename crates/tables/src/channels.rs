//! Operations and events of connections to rows of the table `channels`.
//!
//! A source reports what it sees, in any order: [`Channels::open`] when a connection
//! begins, [`Channels::bind`] when a session setup succeeds on it, [`Channels::transfer`] for each
//! Read and Write that ended, [`Channels::network`] for what it knows of TCP, [`Channels::lose`] when
//! it is lost, [`Channels::close`] at the end. [`Channels::begin_phase`] separates parts of a run. [`Channels::take_rows`] returns the rows of intervals that are over.
//!
//! The payload of a transfer is spread evenly over the time in which it was on the wire (request of
//! a Write, response of a Read), with rounding that loses no byte: the rows of a channel add up to
//! the payload exactly. Memory is bounded by [`Limits`]; what is beyond is counted.

mod intervals;

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::tables::Channel;
use intervals::Intervals;

/// Length of an interval.
pub const INTERVAL_NS: i64 = 100_000_000;

/// Rows of an interval are made after this time, because operations that end later can still have
/// moved bytes in it. What comes later still makes another row of the interval.
const SETTLE_NS: i64 = 5_000_000_000;

/// Sessions of one connection that are followed.
const SESSIONS_MAX: usize = 64;

/// Limits on memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that are followed at a time.
    pub connections: usize,
    /// Length of an interval, ns; at least 1.
    pub interval_ns: i64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 65_536, interval_ns: INTERVAL_NS }
    }
}

/// A connection that begins to carry SMB.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// First packet; `None` if it was open before.
    pub at: Option<i64>,
    /// The client's address.
    pub client: Arc<str>,
    /// The client's port.
    pub client_port: u16,
    /// The server's address.
    pub server: Arc<str>,
    /// The server's port.
    pub server_port: u16,
    /// The client's interface.
    pub client_interface: Option<Arc<str>>,
    /// Number of the server's interface.
    pub server_interface: Option<u64>,
    /// tcp, quic, roce or iwarp.
    pub transport: Option<Cow<'static, str>>,
}

/// Which way payload went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    Write,
    /// To the client.
    Read,
}

/// A Read or Write that ended.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// Payload, bytes.
    pub bytes: u64,
    /// Begin and end of the request, ns since 1970.
    pub request: (i64, i64),
    /// Begin and end of the response.
    pub response: (i64, i64),
    /// Other operations in flight on the connection when the request began.
    pub outstanding: Option<u32>,
}

/// What is known of TCP at one moment, or since the moment reported before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// Unacknowledged bytes.
    pub bytes_in_flight: Option<u64>,
    /// Round trip, ns.
    pub round_trip_ns: Option<i64>,
    /// Segments retransmitted since the moment before.
    pub retransmissions: Option<u64>,
}

/// One session on one connection.
#[derive(Clone, Debug, Default)]
struct Member {
    session_id: Option<u64>,
    channel: Option<u64>,
    bound_at: Option<i64>,
    bind_status: Option<Cow<'static, str>>,
    first_byte_at: Option<i64>,
    intervals: Intervals,
}

/// How a connection was lost.
#[derive(Clone, Debug)]
struct Loss {
    at: i64,
    reason: Cow<'static, str>,
    repeated: Option<u64>,
}

/// A part of a run: its name, and when it began.
type Phase = (&'static str, i64);

#[derive(Clone, Debug)]
struct Connection {
    opened: Opened,
    lost: Option<Loss>,
    /// At least one.
    members: Vec<Member>,
}

/// Makes the rows.
#[derive(Clone, Debug)]
pub struct Channels {
    limits: Limits,
    connections: HashMap<u64, Connection, foldhash::fast::RandomState>,
    rows: Vec<Channel>,
    settled: i64,
    not_followed: u64,
    phase: Option<Phase>,
}

impl Default for Channels {
    fn default() -> Channels {
        Channels::new(Limits::default())
    }
}

impl Channels {
    /// Without any connection.
    pub fn new(limits: Limits) -> Channels {
        let limits = Limits { interval_ns: limits.interval_ns.max(1), ..limits };
        Channels {
            limits,
            connections: HashMap::default(),
            rows: Vec::new(),
            settled: i64::MIN,
            not_followed: 0,
            phase: None,
        }
    }

    /// A connection begins; `connection` is its number in the recording. `now` is the time of the
    /// event, which is that of opening unless the connection was open before.
    pub fn open(&mut self, connection: u64, now: i64, opened: Opened) {
        if self.connections.len() >= self.limits.connections {
            self.not_followed += 1;
            return;
        }
        let mut member = Member::default();
        member.intervals.touch(self.limits.interval_ns, opened.at.unwrap_or(now));
        let one = Connection { opened, lost: None, members: vec![member] };
        self.connections.insert(connection, one);
    }

    /// A phase of the run begins: what ends from now on belongs to it, and first bytes are its own.
    pub fn begin_phase(&mut self, name: &'static str, at: i64) {
        let interval_ns = self.limits.interval_ns;
        for (&number, one) in &mut self.connections {
            settle(one, (number, self.phase), i64::MAX, interval_ns, &mut self.rows);
            for member in &mut one.members {
                member.first_byte_at = None;
                // A connection that was lost before has no part in it.
                if one.lost.is_none() {
                    member.intervals.touch(interval_ns, at);
                }
            }
        }
        self.phase = Some((name, at));
    }

    /// A connection was lost. `repeated` are its requests that others carried again, if known.
    pub fn lose(
        &mut self,
        connection: u64,
        at: i64,
        reason: impl Into<Cow<'static, str>>,
        repeated: Option<u64>,
    ) {
        let interval_ns = self.limits.interval_ns;
        let Some(one) = self.connections.get_mut(&connection) else { return };
        one.lost = Some(Loss { at, reason: reason.into(), repeated });
        for member in &mut one.members {
            member.intervals.touch(interval_ns, at);
        }
    }

    /// Says on which interfaces a connection is, where that is known later than the connection.
    pub fn locate(&mut self, connection: u64, client: Option<Arc<str>>, server: Option<u64>) {
        if let Some(one) = self.connections.get_mut(&connection) {
            one.opened.client_interface = client.or(one.opened.client_interface.take());
            one.opened.server_interface = server.or(one.opened.server_interface);
        }
    }

    /// A session is used on a connection: as its channel of that number, since the session setup
    /// that succeeded at `at` (`None`: it was not recorded).
    pub fn bind(&mut self, connection: u64, session_id: u64, channel: u64, at: Option<i64>) {
        let interval_ns = self.limits.interval_ns;
        let Some(member) = self.member(connection, session_id) else { return };
        member.channel = Some(channel);
        member.bind_status = None;
        if let Some(at) = at {
            member.bound_at = member.bound_at.or(Some(at));
            member.intervals.touch(interval_ns, at);
        }
    }

    /// The server refused to bind a session to a connection.
    pub fn refuse(
        &mut self,
        connection: u64,
        session_id: u64,
        at: i64,
        status: impl Into<Cow<'static, str>>,
    ) {
        let interval_ns = self.limits.interval_ns;
        let Some(member) = self.member(connection, session_id) else { return };
        if member.channel.is_none() {
            member.bind_status = Some(status.into());
        }
        member.intervals.touch(interval_ns, at);
    }

    /// A Read or Write ended. Without a session it counts for the connection's first one.
    pub fn transfer(&mut self, connection: u64, session_id: Option<u64>, transfer: &Transfer) {
        let interval_ns = self.limits.interval_ns;
        let Some(member) = self.member_or_first(connection, session_id) else { return };
        let on_wire = match transfer.direction {
            Direction::Write => transfer.request,
            Direction::Read => transfer.response,
        };
        if transfer.bytes > 0 {
            let first = member.first_byte_at.get_or_insert(on_wire.0);
            *first = (*first).min(on_wire.0);
        }
        member.intervals.transfer(interval_ns, transfer, on_wire);
    }

    /// TCP's state at `at`.
    pub fn network(&mut self, connection: u64, at: i64, state: &Network) {
        let interval_ns = self.limits.interval_ns;
        let Some(member) = self.member_or_first(connection, None) else { return };
        member.intervals.network(interval_ns, at, state);
    }

    /// A connection ended.
    pub fn close(&mut self, connection: u64) {
        if let Some(mut one) = self.connections.remove(&connection) {
            let key = (connection, self.phase);
            settle(&mut one, key, i64::MAX, self.limits.interval_ns, &mut self.rows);
        }
    }

    /// Makes rows of the intervals that are over at `now`, which are then returned by
    /// [`Channels::take_rows`]. Cheap if called often.
    pub fn advance(&mut self, now: i64) {
        // Each call visits all connections, so not more often than every half second.
        let until = now.saturating_sub(SETTLE_NS);
        if until.saturating_sub(self.settled) < SETTLE_NS / 10 {
            return;
        }
        self.settled = until;
        for (&number, one) in &mut self.connections {
            settle(one, (number, self.phase), until, self.limits.interval_ns, &mut self.rows);
        }
    }

    /// Forgets what happened so far, but not which connections and sessions there are.
    pub fn forget_intervals(&mut self) {
        self.rows.clear();
        for member in self.connections.values_mut().flat_map(|one| &mut one.members) {
            member.intervals = Intervals::default();
        }
    }

    /// All connections end with the recording.
    pub fn finish(&mut self) {
        for (number, mut one) in self.connections.drain() {
            let key = (number, self.phase);
            settle(&mut one, key, i64::MAX, self.limits.interval_ns, &mut self.rows);
        }
        self.settled = i64::MIN;
    }

    /// Rows that wait to be taken.
    pub fn rows_waiting(&self) -> usize {
        self.rows.len()
    }

    /// The rows so far, in the order of time.
    pub fn take_rows(&mut self, recording: &Arc<str>) -> Vec<Channel> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by_key(|row| (row.interval_start, row.connection, row.session_id));
        rows.iter_mut().for_each(|row| row.recording = recording.clone());
        rows
    }

    /// Connections beyond the limit, of which there are no rows.
    pub fn not_followed(&self) -> u64 {
        self.not_followed
    }

    fn member(&mut self, connection: u64, session_id: u64) -> Option<&mut Member> {
        let members = &mut self.connections.get_mut(&connection)?.members;
        let known = members.iter().position(|one| one.session_id == Some(session_id));
        let at = match known {
            Some(at) => at,
            // What happened before there was a session belongs to the first one.
            None if members.first()?.session_id.is_none() => 0,
            None if members.len() >= SESSIONS_MAX => 0,
            None => {
                members.push(Member::default());
                members.len() - 1
            }
        };
        let member = members.get_mut(at)?;
        member.session_id.get_or_insert(session_id);
        Some(member)
    }

    fn member_or_first(&mut self, connection: u64, session: Option<u64>) -> Option<&mut Member> {
        match session {
            Some(session) => self.member(connection, session),
            None => self.connections.get_mut(&connection)?.members.first_mut(),
        }
    }
}

/// Makes rows of a connection's intervals that ended at `until`.
fn settle(
    one: &mut Connection,
    (number, phase): (u64, Option<Phase>),
    until: i64,
    interval_ns: i64,
    rows: &mut Vec<Channel>,
) {
    let Connection { opened, lost, members } = one;
    for member in members {
        while let Some((start, interval)) = member.intervals.pop(interval_ns, until) {
            rows.push(Channel {
                recording: Arc::default(),
                session_id: member.session_id,
                connection: number,
                channel: member.channel,
                client: opened.client.clone(),
                client_port: u64::from(opened.client_port),
                server: opened.server.clone(),
                server_port: u64::from(opened.server_port),
                client_interface: opened.client_interface.clone(),
                server_interface: opened.server_interface,
                transport: opened.transport.clone(),
                opened_at: opened.at,
                bound_at: member.bound_at,
                bind_status: member.bind_status.clone(),
                first_byte_at: member.first_byte_at,
                interval_start: start,
                interval_ns: interval_ns as u64,
                bytes_written: interval.written,
                bytes_read: interval.read,
                operations: interval.operations,
                outstanding_mean: interval.busy_ns as f64 / interval_ns as f64,
                transferring_mean: interval.transferring_ns as f64 / interval_ns as f64,
                outstanding_max: interval.outstanding_max,
                bytes_in_flight_max: interval.in_flight_max,
                round_trip_ns: interval.round_trip_ns,
                retransmissions: interval.retransmissions,
                phase: phase.map(|(name, _)| Cow::Borrowed(name)),
                phase_at: phase.map(|(_, at)| at),
                lost_at: lost.as_ref().map(|lost| lost.at),
                lost_reason: lost.as_ref().map(|lost| lost.reason.clone()),
                repeated: lost.as_ref().and_then(|lost| lost.repeated),
            });
        }
    }
}

#[cfg(test)]
mod tests;

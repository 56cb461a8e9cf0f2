//! One TCP connection: requests out, replies in, credits, signatures and encryption, and a row for
//! every operation.
//!
//! Everything happens in the task that uses the connection: replies are read while the task waits for
//! one of them or while the user thinks ([`Channel::receive`]). It knows neither sessions (`session`)
//! nor the purpose of a request (`scenario`). MS-SMB2 sections 3.2.4.1, 3.2.5.1.

mod admit;
mod inbound;
mod outbound;

use std::collections::VecDeque;
use std::sync::Arc;

use inbound::Partial;
use smbscope_tables::busy::BusyClock;
use smbscope_tables::code::{self, Source, Vantage};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;
use smbscope_wire::crypto::{Decryptor, Encryptor, Signer};
use smbscope_wire::smb2::encode::Frame;
use smbscope_wire::smb2::oplock::OplockBreak;
use smbscope_wire::smb2::{Command, Dialect};

use super::error::ClientError;
use super::reply::{Reply, Want};
use super::transport::{Arrival, Endpoints, RoundTrip, Socket, Transport};
use crate::clock::Clock;
use crate::row::{LinkNames, Row};

/// Larger buffers are freed when the connection is idle, unless [`Channel::keep_bytes`] is larger.
const IDLE_BYTES: usize = 2 << 10;

/// How a session's messages are protected on this connection.
#[derive(Clone, Default)]
pub struct Protection {
    /// Signs requests and checks replies.
    pub signer: Option<Arc<Signer>>,
    /// Whether all requests, and so all replies, are signed, not only those that must be.
    pub sign_all: bool,
    /// Encrypts requests and decrypts replies; shared by all channels of the session.
    pub seal: Option<Seal>,
    /// Requests are not encrypted: the connection is being bound (MS-SMB2 section 3.2.4.1.8).
    pub is_binding: bool,
}

/// How a request was protected on its way. Its reply must be protected likewise, whatever the reply itself claims (MS-SMB2
/// sections 3.2.5.1.1 and 3.2.5.1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Proof {
    #[default]
    None,
    Signature,
    Encryption,
}

/// The ciphers of both directions of a session.
pub type Seal = (Arc<Encryptor>, Arc<Decryptor>);

/// Options of a request in addition to its message.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Bytes that request or reply may carry: what credits are charged for.
    pub payload_bytes: u32,
    /// How much of the reply is kept.
    pub want: Want,
    /// Whether it waits by design (a notification, a lock that may block).
    pub waits: bool,
    /// Whether it must be signed although the session is not.
    pub sign: bool,
    /// Whether it was sent before on a channel that is lost (SMB2_FLAGS_REPLAY_OPERATION).
    pub replay: bool,
    /// For the row: the file.
    pub path: Option<Arc<str>>,
    /// For the row: the open's number.
    pub handle: Option<u64>,
}

/// What rows say about the user's current scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scene {
    /// Number of the scenario's execution.
    pub scenario_run: Option<u64>,
    /// When it was scheduled to begin.
    pub scheduled_at: Option<i64>,
}

/// A request that waits for its reply.
struct Pending {
    message_id: u64,
    command: Command,
    session_id: u64,
    proof: Proof,
    payload_bytes: u32,
    interim_replies: u8,
    want: Want,
    waits: bool,
    /// Whether it is the first request of its frame: its row has the frame's times.
    lead: bool,
    /// When the frame of a later member was sent: begin and end, for a reply of its own.
    sent: Option<(i64, i64)>,
    /// Reading of the busy clock when it was sent, while it counts as in flight.
    busy: Option<i64>,
    async_id: Option<u64>,
    row: Option<Box<Row>>,
}

/// One connection.
pub struct Channel {
    stream: Box<dyn Transport>,
    frame: Frame,
    /// Indices into `pending` of the requests in `frame`.
    unsent: usize,
    sign_next: bool,
    partial: Partial,
    first_byte_at: i64,
    next_message_id: u64,
    credits: u32,
    credits_wanted: u32,
    pending: Vec<Pending>,
    done: Vec<(u64, Reply)>,
    breaks: VecDeque<OplockBreak>,
    /// Breaks since the last reply.
    breaks_in_a_row: usize,
    clock: Clock,
    busy: BusyClock,
    in_flight: u32,
    last_reply: Option<i64>,
    /// Number of the connection's next compound.
    compound: u64,
    /// Rows of completed operations; `None` when no rows are wanted.
    #[expect(clippy::vec_box, reason = "a row is 600 bytes and goes through several lists")]
    rows: Option<Vec<Box<Row>>>,
    in_session: u64,
    in_tree: u64,
    number: u64,
    place: u32,
    ports: (u16, u16),
    names: Arc<LinkNames>,
    round_trip: Arc<RoundTrip>,
    /// What the connection's own row says.
    pub table: Box<Connection>,
    /// Protection of the session.
    pub protection: Protection,
    /// The user's present scenario.
    pub scene: Scene,
    /// The dialect, once negotiated.
    pub dialect: Option<Dialect>,
    /// Whether credits are charged by size.
    pub large_mtu: bool,
    /// ChannelSequence of requests (3.x): how many channels the session has lost.
    pub channel_sequence: u16,
    /// Larger send buffers are freed when nothing is sent.
    pub keep_bytes: usize,
    /// The TCP socket, if its state is sampled.
    socket: Option<Arc<Socket>>,
    arrival: Option<Arc<Arrival>>,
    /// How long the bytes of the last read had waited for it, ns.
    read_late_ns: i64,
}

impl Channel {
    /// A connection before its Negotiate; it holds one credit.
    pub fn new(
        stream: Box<dyn Transport>,
        endpoints: Endpoints,
        clock: Clock,
        credits_wanted: u16,
        record: bool,
    ) -> Channel {
        let start = clock.now();
        let table = Connection {
            connection: endpoints.connection,
            client: endpoints.names.client.clone(),
            client_port: u64::from(endpoints.ports.0),
            server: endpoints.names.server.clone(),
            server_port: u64::from(endpoints.ports.1),
            start,
            handshake_seen: endpoints.connect_ns.is_some(),
            vantage: Some(Vantage::Client.name().to_owned()),
            vantage_reason: "the load generator is the client".into(),
            server_rtt_handshake_ns: endpoints.connect_ns,
            server_rtt_samples: u64::from(endpoints.connect_ns.is_some()),
            client_rtt_ns: Some(0),
            transport: Some("tcp".to_owned()),
            ..Connection::default()
        };
        Channel {
            stream,
            frame: Frame::new(),
            unsent: 0,
            sign_next: false,
            partial: Partial::None,
            first_byte_at: 0,
            next_message_id: 0,
            credits: 1,
            credits_wanted: u32::from(credits_wanted),
            pending: Vec::new(),
            done: Vec::new(),
            breaks: VecDeque::new(),
            breaks_in_a_row: 0,
            clock,
            busy: BusyClock::default(),
            in_flight: 0,
            last_reply: None,
            compound: 0,
            rows: record.then(Vec::new),
            in_session: 0,
            in_tree: 0,
            number: endpoints.connection,
            place: endpoints.channel,
            ports: endpoints.ports,
            names: endpoints.names,
            round_trip: endpoints.round_trip,
            table: Box::new(table),
            protection: Protection::default(),
            scene: Scene::default(),
            dialect: None,
            large_mtu: false,
            channel_sequence: 0,
            keep_bytes: IDLE_BYTES,
            socket: endpoints.socket,
            arrival: endpoints.arrival,
            read_late_ns: 0,
        }
    }

    /// Sets the negotiated dialect, which rows contain.
    pub fn negotiated(&mut self, dialect: Dialect, large_mtu: bool) {
        self.dialect = Some(dialect);
        self.large_mtu = large_mtu;
    }

    /// The texts of the rows that follow.
    pub fn name(&mut self, names: Arc<LinkNames>) {
        self.names = names;
    }

    /// The run's clock.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Credits that sending such a request takes.
    pub fn charge(&self, payload_bytes: u32) -> u32 {
        if self.large_mtu { payload_bytes.saturating_sub(1) / 65_536 + 1 } else { 1 }
    }

    /// Credits that the client holds.
    pub fn credits(&self) -> u32 {
        self.credits
    }

    /// The texts of its rows.
    pub fn names(&self) -> &Arc<LinkNames> {
        &self.names
    }

    /// The endpoints of the connection: addresses in its names, and ports of client and server.
    pub fn ports(&self) -> (u16, u16) {
        self.ports
    }

    /// The TCP socket, if its state is sampled.
    pub fn socket(&self) -> Option<&Arc<Socket>> {
        self.socket.as_ref()
    }

    /// The final replies that have come, with their MessageIds.
    pub fn take_replies(&mut self) -> Vec<(u64, Reply)> {
        std::mem::take(&mut self.done)
    }

    /// Whether requests are encrypted.
    pub fn seals(&self) -> bool {
        self.protection.seal.is_some()
    }

    /// Waits for the final reply to a request.
    pub async fn wait(&mut self, message_id: u64) -> Result<Reply, ClientError> {
        loop {
            if let Some(reply) = self.take(message_id) {
                return Ok(reply);
            }
            self.receive().await?;
        }
    }

    /// The final reply to a request, if it has come.
    pub fn take(&mut self, message_id: u64) -> Option<Reply> {
        let place = self.done.iter().position(|(id, _)| *id == message_id)?;
        Some(self.done.swap_remove(place).1)
    }

    /// Whether a request has received its interim or its final reply.
    pub fn is_pending_at_server(&self, message_id: u64) -> bool {
        let pending = self.pending.iter().find(|pending| pending.message_id == message_id);
        pending.is_none_or(|pending| pending.async_id.is_some())
    }

    /// Requests that wait for their reply, notifications included.
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Breaks that arrived and were not taken yet.
    pub fn take_break(&mut self) -> Option<OplockBreak> {
        self.breaks.pop_front()
    }

    /// Whether there are breaks that were not taken yet.
    pub fn has_breaks(&self) -> bool {
        !self.breaks.is_empty()
    }

    /// A row with the columns that all rows of the connection share. It is built for each row: with a
    /// thousand sessions, a copy stored per connection would not be in the CPU's cache.
    fn blank_row(&self) -> Box<Row> {
        let link = self.names.clone();
        let mut row = Box::new(Row {
            operation: Operation::default(),
            path: None,
            link,
            told: None,
            read_late_ns: None,
        });
        let operation = &mut row.operation;
        operation.set_protocol(2);
        // The client never offers compression.
        operation.set_compressed(false);
        operation.set_source(Source::Load as u64);
        operation.set_vantage(Vantage::Client as u64);
        operation.set_connection(self.number);
        operation.set_channel(self.place);
        operation.set_client_port(self.ports.0);
        operation.set_server_port(self.ports.1);
        if let Some(dialect) = self.dialect {
            operation.set_dialect(code::dialect(dialect));
        }
        row
    }

    /// Stores a completed row.
    fn keep(&mut self, row: Box<Row>) {
        self.in_session += u64::from(row.operation.session_id().is_some());
        self.in_tree += u64::from(row.operation.tree_id().is_some());
        if let Some(rows) = &mut self.rows {
            rows.push(row);
        }
    }

    /// Number of completed operations: in the session, and of those in its tree.
    pub fn counts(&self) -> (u64, u64) {
        (self.in_session, self.in_tree)
    }

    /// When the last reply came, on the run's clock.
    pub fn last_reply(&self) -> Option<i64> {
        self.last_reply
    }

    /// Rows that ended since the last time.
    pub fn take_rows(&mut self) -> Vec<Box<Row>> {
        self.rows.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends the connection: adds rows for requests without a reply, and the connection's own row.
    pub fn end(&mut self, reason: &str) -> (Vec<Box<Row>>, Connection) {
        let now = self.clock.now();
        for pending in std::mem::take(&mut self.pending) {
            self.table.unanswered += 1;
            self.table.operations += 1;
            if let Some(row) = pending.row {
                self.keep(row);
            }
        }
        let mut table = (*self.table).clone();
        table.end = now;
        table.end_reason = reason.to_owned();
        table.server_rtt_ns = self.round_trip.least_ns();
        let state = self.socket.as_ref().and_then(|socket| socket.state());
        if let Some(window) = state.and_then(|state| state.limiting_window_bytes) {
            table.server_window_max = Some(window);
            table.in_flight_max_to_server = window;
        }
        (self.take_rows(), table)
    }
}

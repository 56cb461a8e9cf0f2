//! Events of Microsoft-Windows-SMBServer: requests and responses to messages, with the server's work for each.
//!
//! An event of a request and one of its response have the fields of the message, but not its bytes. `request`
//! and `response` write the message again, so that the decoder of captures reads it: rows then have the same
//! columns as those of a capture. What events do not have is null in the rows ([`ServerEvents::amend`]).
//! The server's work becomes slices. `calibration` knows layout and units.
//!
//! The layouts are those of the manifests of builds 10240 to 18990 and of the list of fields of build 28000.
//! No log of this provider was at hand: tests make such logs.

pub mod calibration;
mod layout;
mod message;
mod names;
mod request;
mod response;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use foldhash::{HashMap, HashMapExt as _};
use smbscope_capture::{Endpoints, PushDecoder};
use smbscope_tables::Part;
use smbscope_tables::code::{Source, Vantage};
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::slice::{Kind, Rows};
use smbscope_wire::smb2::Command;

pub use calibration::{Calibration, Machine};
pub use names::{Names, socket_address};

use super::Rows as RowsOf;
use super::messages::segment;
use super::provider::Guid;
use crate::etl::record::Record;
use layout::{WORK, Work};
use message::Message;

/// Port of SMB, where the events do not say it.
const PORT: u16 = 445;
/// As many as there are ports for clients without an address.
const CONNECTIONS_MAX: usize = 65_535;
/// Responses whose row was not made yet: those of a fraction of a second.
const WORK_MAX: usize = 1 << 20;
/// How the vantage is known.
pub const REASON: &str = "written by the server's own events";
/// In the tables, for an address that events do not say.
const UNKNOWN: &str = "unknown";

/// Whether an event is a request of a client. Event 14 is a lease break, which the server sends.
pub fn is_request(id: u16) -> bool {
    matches!(id, 1..=13 | 15..=21)
}

/// Whether an event is a lease break.
pub fn is_lease_break(id: u16) -> bool {
    id == 14
}

/// Whether an event is a response.
pub fn is_response(id: u16) -> bool {
    matches!(id, 101..=106 | 108..=113 | 115..=122)
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub requests: u64,
    pub responses: u64,
    /// Events with other fields than their layout has.
    pub unknown: u64,
    /// Beyond a limit.
    pub limited: u64,
}

/// One connection: its ends, and where its streams continue.
#[derive(Clone, Debug)]
struct Stream {
    client: SocketAddr,
    server: SocketAddr,
    /// Next sequence numbers of client and server.
    next: [u32; 2],
}

/// Which response a server's work is for: MessageIds are unique on their connection. Packets do not say which GUID
/// their connection has; if its address is not in the log either, the session has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WorkKey {
    Connection(SocketAddr, u64),
    Session(u64, u64),
}

/// Turns events to messages, in the second reading of a log.
#[derive(Debug)]
pub struct ServerEvents {
    calibration: Option<Calibration>,
    names: Names,
    connections: HashMap<Guid, Stream>,
    /// GUIDs of connections by the client's end.
    guids: HashMap<SocketAddr, Guid>,
    /// Work for responses since the last parts.
    work: HashMap<WorkKey, Work>,
    slices: Rows,
    /// Rows so far: operations are numbered from 1.
    rows: u64,
    pub counts: Counts,
}

impl ServerEvents {
    /// Events of a log that was surveyed.
    pub fn new(calibration: Option<Calibration>, names: Names) -> ServerEvents {
        ServerEvents {
            calibration,
            names,
            connections: HashMap::new(),
            guids: HashMap::new(),
            work: HashMap::new(),
            slices: Rows::default(),
            rows: 0,
            counts: Counts::default(),
        }
    }

    /// How times are known.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// Takes an event: its message goes to `feed`, if there is one.
    pub fn event(
        &mut self,
        record: &Record<'_>,
        id: u16,
        time_ns: i64,
        feed: Option<&mut PushDecoder>,
    ) {
        if is_request(id) {
            let user = self.names.token(record.payload, id);
            match request::parse(record.payload, id, user) {
                Some(request) => {
                    self.counts.requests += 1;
                    if let Some(feed) = feed {
                        self.feed(request.ids.connection, true, &request.message, time_ns, feed);
                    }
                }
                None => self.counts.unknown += 1,
            }
        } else if let Some((connection, message)) = request::lease_break(record.payload, id) {
            if let Some(feed) = feed {
                self.feed(connection, false, &message, time_ns, feed);
            }
        } else if is_response(id) {
            let Some(calibration) = &self.calibration else { return };
            match response::parse(record.payload, id, calibration.layout) {
                Some(response) => {
                    self.counts.responses += 1;
                    let (head, connection) = (response.head, response.ids.connection);
                    if let Some(feed) = feed {
                        self.feed(connection, false, &response.message, time_ns, feed);
                    }
                    let stream = self.connections.get(&connection).map(|stream| stream.client);
                    let key = match stream.or_else(|| self.names.address(connection)) {
                        Some(client) => WorkKey::Connection(client, head.message_id),
                        None => WorkKey::Session(head.session_id, head.message_id),
                    };
                    if self.work.len() < WORK_MAX {
                        self.work.insert(key, response.work);
                    } else {
                        self.counts.limited += 1;
                    }
                }
                None => self.counts.unknown += 1,
            }
        }
    }

    fn feed(
        &mut self,
        connection: Guid,
        is_request: bool,
        message: &Message,
        time_ns: i64,
        feed: &mut PushDecoder,
    ) {
        let is_room = self.connections.len() < CONNECTIONS_MAX;
        if !is_room && !self.connections.contains_key(&connection) {
            self.counts.limited += 1;
            return;
        }
        let number = self.connections.len() as u32;
        let stream = self.connections.entry(connection).or_insert_with(|| {
            let client = self.names.address(connection).unwrap_or_else(|| nameless(number));
            let server = match client.ip() {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            };
            let server = SocketAddr::new(server, PORT);
            self.guids.insert(client, connection);
            Stream { client, server, next: [1, 1] }
        });
        stream.message(is_request, message, time_ns, feed);
    }

    /// Adds the server's work to a row, and sets the columns that its messages do not determine.
    pub fn amend(&mut self, row: &mut Operation, ends: &Endpoints, rows: RowsOf) {
        self.rows += 1;
        if rows != RowsOf::Packets {
            without_network(row);
        }
        if rows == RowsOf::Events {
            without_bytes(row);
        }
        self.add_work(row, ends);
    }

    fn add_work(&mut self, row: &mut Operation, ends: &Endpoints) {
        let Some(message_id) = row.message_id() else { return };
        let session_id = row.session_id().unwrap_or(0);
        let work = &mut self.work;
        let found = work
            .remove(&WorkKey::Connection(ends.client, message_id))
            .or_else(|| work.remove(&WorkKey::Session(session_id, message_id)));
        let Some(work) = found else { return };
        let (Some(calibration), Some(turnaround_ns)) = (&self.calibration, row.turnaround_ns())
        else {
            return;
        };
        row.set_server_ns(turnaround_ns);
        row.set_server_error_ns(0);
        if calibration.unit_ns <= 0.0 {
            return;
        }
        // The events do not say when: the kinds of work follow each other from the request on.
        let mut start = row.request_end().unwrap_or_default();
        for kind in IN_ORDER {
            let Some(place) = WORK.iter().position(|one| *one == kind) else { continue };
            let (Some(&hits), Some(&units)) = (work.hits.get(place), work.durations.get(place))
            else {
                continue;
            };
            if hits == 0 && units == 0 {
                continue;
            }
            let duration_ns = (units as f64 * calibration.unit_ns).round() as i64;
            let before = kind.of(row).unwrap_or(0);
            kind.set(row, before.saturating_add(duration_ns));
            let cycles = (calibration.layout == layout::Layout::Cycles).then_some(units);
            self.slices.push_counted(self.rows, kind, start, duration_ns, hits.into(), cycles);
            start = start.saturating_add(duration_ns);
        }
    }

    /// Connections whose beginning the log does not have.
    pub fn begun_before(&self) -> u64 {
        self.guids.keys().filter(|client| is_nameless(**client)).count() as u64
    }

    /// Slices since the last call. Where rows are made of the events, work that no row took belongs to a response
    /// without request.
    pub fn take_slices(
        &mut self,
        recording: &str,
        rows: RowsOf,
    ) -> Result<Part, arrow::error::ArrowError> {
        if rows == RowsOf::Events || self.work.len() >= WORK_MAX / 2 {
            self.work.clear();
        }
        Ok(Part::Slices(self.slices.finish(recording)?))
    }

    /// Adds GUIDs to the rows of tables, and removes what only the synthetic streams say.
    pub fn complete(&self, part: &mut Part, rows_of: RowsOf) {
        if rows_of == RowsOf::Packets {
            return;
        }
        let has_messages = rows_of == RowsOf::Messages;
        match part {
            Part::Connections(rows) => {
                for row in rows {
                    let client =
                        row.client.parse::<IpAddr>().ok().zip(row.client_port.try_into().ok());
                    let client = client.map(|(ip, port)| SocketAddr::new(ip, port));
                    row.guid = client.and_then(|end| self.guids.get(&end)).map(Guid::to_string);
                    row.vantage = Some(Vantage::Inside.name().to_owned());
                    row.vantage_reason = REASON.into();
                    row.server = UNKNOWN.into();
                    if client.is_some_and(is_nameless) {
                        row.client = UNKNOWN.into();
                    }
                    (row.packets_to_server, row.packets_to_client) = (0, 0);
                    (row.out_of_order_to_server, row.out_of_order_to_client) = (0, 0);
                    (row.retransmissions_to_server, row.retransmissions_to_client) = (0, 0);
                    if !has_messages {
                        (row.bytes_to_server, row.bytes_to_client) = (0, 0);
                    }
                }
            }
            Part::Sessions(rows) => {
                for row in rows {
                    row.guid = self.names.session(row.session_id).map(|guid| guid.to_string());
                    row.server = UNKNOWN.into();
                    if row.client.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
                        row.client = UNKNOWN.into();
                    }
                    if !has_messages {
                        // The token that named the user was made from an event.
                        (row.mechanism, row.workstation) = (None, None);
                    }
                }
            }
            Part::Channels(rows) => {
                for row in rows {
                    let is_unknown = |end: &str| {
                        end.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
                    };
                    if is_unknown(&row.server) {
                        row.server = UNKNOWN.into();
                    }
                    if is_unknown(&row.client) {
                        row.client = UNKNOWN.into();
                    }
                }
            }
            Part::Trees(rows) => {
                for row in rows {
                    let tree = self.names.tree(row.session_id, row.tree_id);
                    row.guid = tree.map(|guid| guid.to_string());
                }
            }
            Part::Handles(rows) => {
                for row in rows {
                    let open = self.names.open(row.session_id, &row.file_id);
                    row.guid = open.map(|guid| guid.to_string());
                }
            }
            _ => {}
        }
    }
}

/// Sets the columns that a log without packets cannot have.
fn without_network(row: &mut Operation) {
    row.set_source(Source::Events as u64);
    row.set_vantage(Vantage::Inside as u64);
    for column in
        [Column::request_frame, Column::response_frame, Column::pending_frame, Column::tcp_sequence]
    {
        row.clear(column);
    }
}

/// Clears what the events do not say about the messages.
fn without_bytes(row: &mut Operation) {
    for column in [Column::request_wire_bytes, Column::response_wire_bytes, Column::credit_charge] {
        row.clear(column);
    }
    let command = row.command().map(|code| Command(code as u16));
    let is_unknown =
        matches!(command, Some(Command::QUERY_DIRECTORY | Command::CHANGE_NOTIFY | Command::IOCTL));
    if is_unknown {
        row.clear(Column::transferred_bytes);
    }
    if command == Some(Command::IOCTL) {
        row.clear(Column::requested_bytes);
    }
}

/// In which the server usually does its work.
const IN_ORDER: [Kind; 8] = [
    Kind::Queue,
    Kind::Processing,
    Kind::Filesystem,
    Kind::FilesystemSlow,
    Kind::Security,
    Kind::Transport,
    Kind::TransportSlow,
    Kind::TransportDirect,
];

/// An end for a client whose address the log does not have: no address, and a port that distinguishes its
/// connections.
fn nameless(number: u32) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), (number + 1) as u16)
}

fn is_nameless(end: SocketAddr) -> bool {
    end.ip().is_unspecified()
}

impl Stream {
    /// Gives a message to the decoder, as a segment of the stream in its direction.
    fn message(
        &mut self,
        is_request: bool,
        message: &Message,
        time_ns: i64,
        feed: &mut PushDecoder,
    ) {
        let (source, destination) =
            if is_request { (self.client, self.server) } else { (self.server, self.client) };
        let Stream { next: [client, server], .. } = self;
        let next = if is_request { client } else { server };
        let length = u32::try_from(message.length).unwrap_or(u32::MAX).min(0x00ff_ffff);
        segment((source, destination), next, (&message.bytes, length), time_ns, feed);
    }
}

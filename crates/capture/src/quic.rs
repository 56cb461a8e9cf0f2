//! SMB over QUIC: which connections there are, and what can be seen of them from outside.
//!
//! Owns the table of QUIC connections, bounded, and their rows. Everything behind the handshake is
//! encrypted, so there are no operations. A connection is SMB if its ClientHello offers the protocol
//! `smb` (ALPN; MS-SMB2 section 2.1), on any port; if that cannot be read, one to UDP port 443 may
//! be. Round trips come from the spin bit (RFC 9000 section 17.4, RFC 9312 section 4.2), where both
//! sides use it. A new path of a connection (migration) is not followed.

mod client_hello;
mod spin;

use std::net::SocketAddr;

use hashbrown::HashMap;
use smbscope_tables::tables::Connection as Row;
use smbscope_wire::crypto::quic::{LongHeader, open_client_initial};

use crate::frame::{Direction, FlowKey, UdpDatagram};
use crate::outcome::{ConnectionStart, Output};
use client_hello::{Alpn, ClientHello};
use spin::Spin;

/// The port of SMB over QUIC; another one can be configured.
const PORT: u16 = 443;
/// Connections that are followed; beyond that the longest idle one is forgotten.
const CONNECTIONS_MAX: usize = 4_096;
/// A client's first datagram is not shorter (RFC 9000 section 14.1).
const FIRST_DATAGRAM_BYTES: usize = 1_200;
/// The shortest datagram behind the handshake (RFC 9000 section 10.3).
const SHORT_DATAGRAM_BYTES: usize = 21;
/// Datagrams with parts of the ClientHello.
const HELLO_DATAGRAMS_MAX: u8 = 16;

/// The QUIC connections of a shard.
#[derive(Clone, Default)]
pub struct Quic {
    connections: HashMap<FlowKey, Connection, foldhash::fast::RandomState>,
}

/// What a connection is.
#[derive(Clone)]
enum Kind {
    /// The ClientHello is not complete yet.
    Unknown(Box<ClientHello>),
    /// It carries SMB; with the number that the shard gave it.
    Smb(u32),
    /// It carries something else.
    Other,
}

#[derive(Clone)]
struct Connection {
    kind: Kind,
    client: SocketAddr,
    server: SocketAddr,
    /// Whether the client is the lower end of the key.
    is_client_lower: bool,
    /// The number of the packet with which it began.
    order: u64,
    first_ns: i64,
    last_ns: i64,
    /// From the client, then from the server.
    packets: [u64; 2],
    bytes: [u64; 2],
    /// The client's first choice of an id for the server.
    connection_id: Vec<u8>,
    /// The server answered with a packet of the handshake.
    is_answered: bool,
    hello_datagrams: u8,
    spin: Spin,
}

impl Quic {
    /// Takes a datagram; false if it is not QUIC's.
    pub fn datagram(
        &mut self,
        datagram: &UdpDatagram<'_>,
        time_ns: i64,
        next_index: &mut u32,
        out: &mut Output,
    ) -> bool {
        let direction = Direction::of_datagram(datagram);
        let (key, is_forward) = direction.flow();
        let header = LongHeader::parse(datagram.payload);
        if !self.connections.contains_key(&key) {
            if !may_begin(datagram, header.as_ref()) {
                return false;
            }
            if self.connections.len() >= CONNECTIONS_MAX {
                self.forget_oldest(out);
            }
            let ends = [key.lower(), key.higher()];
            // In the middle of a connection either side may be the first one that is seen.
            let from_client = header.is_some() || datagram.source_port != PORT;
            let is_client_lower = is_forward == from_client;
            let (client, server) =
                if is_client_lower { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
            self.connections.insert(
                key,
                Connection {
                    kind: Kind::Unknown(Box::default()),
                    client,
                    server,
                    is_client_lower,
                    order: out.order,
                    first_ns: time_ns,
                    last_ns: time_ns,
                    packets: [0; 2],
                    bytes: [0; 2],
                    connection_id: header.map_or(Vec::new(), |header| header.destination.to_vec()),
                    is_answered: false,
                    hello_datagrams: 0,
                    spin: Spin::default(),
                },
            );
        }
        let Some(connection) = self.connections.get_mut(&key) else { return false };
        let from_client = is_forward == connection.is_client_lower;
        connection.count(datagram, from_client, time_ns);
        match header {
            Some(_) if !from_client => connection.is_answered = true,
            Some(header) => connection.hello(datagram.payload, &header, next_index, out),
            None => {
                if let Some(first) = datagram.payload.first() {
                    connection.spin.packet(first & 0x20 != 0, from_client, time_ns);
                }
            }
        }
        true
    }

    /// The capture ends: connections in the order in which they began.
    pub fn end(&mut self, out: &mut Output) {
        let mut ended: Vec<Connection> = self.connections.drain().map(|(_, one)| one).collect();
        ended.sort_by_key(|connection| (connection.order, connection.client));
        for connection in ended {
            connection.end("end of the capture", out);
        }
    }

    fn forget_oldest(&mut self, out: &mut Output) {
        let oldest = self.connections.iter().min_by_key(|(_, one)| one.last_ns);
        let Some(key) = oldest.map(|(key, _)| *key) else { return };
        if let Some(connection) = self.connections.remove(&key) {
            out.coverage.connections_evicted += u64::from(matches!(connection.kind, Kind::Smb(_)));
            connection.end("idle", out);
        }
    }
}

/// Whether a datagram begins a connection that can be SMB: a client's first one, of a known version
/// or to the usual port; or one in the middle of a connection with that port.
fn may_begin(datagram: &UdpDatagram<'_>, header: Option<&LongHeader<'_>>) -> bool {
    let is_long = datagram.payload.len() >= FIRST_DATAGRAM_BYTES;
    let is_usual = datagram.destination_port == PORT;
    match header {
        Some(header) if header.is_initial => is_long || is_usual,
        // A later or an unknown version; a negotiation of versions has 0.
        Some(header) => header.version != 0 && is_usual && is_long,
        // The fixed bit of a short header, and enough bytes for what is encrypted.
        None => {
            let is_short = datagram.payload.first().is_some_and(|first| first & 0xc0 == 0x40);
            let has_port = is_usual || datagram.source_port == PORT;
            is_short && has_port && datagram.payload.len() >= SHORT_DATAGRAM_BYTES
        }
    }
}

impl Connection {
    fn count(&mut self, datagram: &UdpDatagram<'_>, from_client: bool, time_ns: i64) {
        let side = usize::from(!from_client);
        self.packets[side] += 1;
        self.bytes[side] += datagram.payload.len() as u64;
        self.last_ns = self.last_ns.max(time_ns);
    }

    /// A client's packet of the handshake: it may show what the connection is for.
    fn hello(
        &mut self,
        packet: &[u8],
        header: &LongHeader<'_>,
        next_index: &mut u32,
        out: &mut Output,
    ) {
        let Kind::Unknown(hello) = &mut self.kind else { return };
        self.hello_datagrams = self.hello_datagrams.saturating_add(1);
        if self.hello_datagrams > HELLO_DATAGRAMS_MAX {
            return;
        }
        // After a Retry the keys come from the new id.
        let frames = open_client_initial(packet, &self.connection_id)
            .or_else(|| open_client_initial(packet, header.destination));
        let Some(frames) = frames else { return };
        hello.frames(&frames);
        match hello.alpn() {
            Alpn::Unknown => {}
            Alpn::Smb => {
                let connection = *next_index;
                *next_index = next_index.wrapping_add(1);
                self.kind = Kind::Smb(connection);
                out.coverage.quic_connections += 1;
                out.started.push(ConnectionStart {
                    connection,
                    order: out.order,
                    client: self.client,
                    server: self.server,
                    time: self.last_ns,
                    opened: Some(self.first_ns),
                    transport: "quic",
                });
            }
            Alpn::Other => self.kind = Kind::Other,
        }
    }

    fn end(self, end_reason: &str, out: &mut Output) {
        let connection = match self.kind {
            Kind::Smb(connection) => connection,
            Kind::Unknown(_) => {
                out.coverage.quic_maybe_smb += u64::from(self.server.port() == PORT);
                return;
            }
            Kind::Other => return,
        };
        let round_trips = self.spin.round_trips();
        let row = Row {
            client: self.client.ip().to_string(),
            client_port: u64::from(self.client.port()),
            server: self.server.ip().to_string(),
            server_port: u64::from(self.server.port()),
            start: self.first_ns,
            end: self.last_ns,
            handshake_seen: self.is_answered,
            end_reason: end_reason.to_owned(),
            vantage_reason: "QUIC: no acknowledgements can be read".to_owned(),
            server_rtt_ns: round_trips.server.least_ns,
            server_rtt_data_ns: round_trips.server.least_ns,
            server_rtt_samples: round_trips.server.samples,
            client_rtt_ns: round_trips.client.least_ns,
            client_rtt_data_ns: round_trips.client.least_ns,
            client_rtt_samples: round_trips.client.samples,
            packets_to_server: self.packets[0],
            packets_to_client: self.packets[1],
            bytes_to_server: self.bytes[0],
            bytes_to_client: self.bytes[1],
            transport: Some("quic".to_owned()),
            ..Row::default()
        };
        out.ended.push((connection, self.order, Box::new(row)));
    }
}

//! Whole messages of SMB in a log: events 40000 (a message) and 2000 (a piece of one) of
//! Microsoft-Windows-SMBServer and Microsoft-Windows-SMBClient.
//!
//! The messages are in plaintext. The event has the address of the peer only: the client's, in events of the
//! server. The direction is that of the message's header. Whether a NetBIOS length precedes the message is not
//! documented: both forms are read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use foldhash::HashMap;
use smbscope_capture::PushDecoder;
use smbscope_capture::frame::{TcpFlags, TcpSegment};

use super::fields::Fields;
use super::fragments::Fragments;
use super::server::socket_address;
use crate::etl::record::Record;

const MESSAGE: u16 = 40_000;
const PIECE: u16 = 2_000;
const CONNECTIONS_MAX: usize = 1 << 18;
const PORT: u16 = 445;
/// Bit of the flags of the header (SMB2) and of its first byte (SMB1) that marks responses.
const SERVER_TO_REDIR: u8 = 1;
const SMB1_REPLY: u8 = 0x80;

/// Whether an event has a message or a piece of one.
pub fn is_message(id: u16) -> bool {
    matches!(id, MESSAGE | PIECE)
}

/// Puts the pieces of messages together.
#[derive(Debug)]
pub struct Messages {
    pieces: Fragments<bool>,
    damaged: u64,
}

impl Messages {
    /// Without messages yet.
    pub fn new() -> Messages {
        Messages { pieces: Fragments::new(), damaged: 0 }
    }

    /// Takes an event of the server, or of the client. Calls `whole` with the fields of a whole message.
    pub fn event(
        &mut self,
        record: &Record<'_>,
        id: u16,
        is_server: bool,
        whole: impl FnOnce(&[u8]),
    ) {
        if id == MESSAGE {
            whole(record.payload);
            return;
        }
        let mut fields = Fields::new(record.payload);
        let piece = fields.u16().zip(fields.u32());
        let Some((MESSAGE, length)) = piece else { return };
        let Some(piece) = fields.bytes(length as usize) else {
            self.damaged += 1;
            return;
        };
        self.pieces.piece(record.thread, is_server, record.keyword, piece, whole);
    }

    /// Messages that were damaged or not complete.
    pub fn end(&mut self) -> u64 {
        self.pieces.end();
        self.damaged + self.pieces.discarded
    }
}

/// Next sequence numbers of client and server.
type Next = [u32; 2];

/// The streams of the connections whose messages a log has.
#[derive(Debug, Default)]
pub struct Connections {
    streams: HashMap<(bool, SocketAddr), Next>,
    /// Messages that are not SMB, or damaged.
    pub discarded: u64,
}

impl Connections {
    /// Gives a message to the decoder; `payload` are the fields of the event.
    pub fn message(
        &mut self,
        payload: &[u8],
        is_server: bool,
        time_ns: i64,
        feed: &mut PushDecoder,
    ) {
        if message(payload, is_server, time_ns, &mut self.streams, feed).is_none() {
            self.discarded += 1;
        }
    }
}

fn message(
    payload: &[u8],
    is_server: bool,
    time_ns: i64,
    connections: &mut HashMap<(bool, SocketAddr), Next>,
    feed: &mut PushDecoder,
) -> Option<()> {
    let mut fields = Fields::new(payload);
    // The kind of the connection.
    fields.u32()?;
    let length = fields.u32()? as usize;
    let peer = socket_address(fields.bytes(length)?);
    let length = fields.u32()? as usize;
    let bytes = fields.bytes(length)?;
    let bytes = match bytes {
        [0, _, _, _, 0xfc..=0xff, b'S', b'M', b'B', ..] => bytes.get(4..)?,
        [0xfc..=0xff, b'S', b'M', b'B', ..] => bytes,
        _ => return None,
    };
    let is_response = match bytes.first() {
        Some(0xff) => bytes.get(9)? & SMB1_REPLY != 0,
        _ => bytes.get(16)? & SERVER_TO_REDIR != 0,
    };
    let peer = peer.unwrap_or_else(|| SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 1));
    let own_ip = match peer.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let (client, server) = if is_server {
        (peer, SocketAddr::new(own_ip, PORT))
    } else {
        // Connections of a client to one server cannot be distinguished.
        (SocketAddr::new(own_ip, 1), peer)
    };
    if connections.len() >= CONNECTIONS_MAX && !connections.contains_key(&(is_server, peer)) {
        return None;
    }
    let next = connections.entry((is_server, peer)).or_insert([1, 1]);
    let [from_client, from_server] = next;
    let (source, destination, next) =
        if is_response { (server, client, from_server) } else { (client, server, from_client) };
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= 0x00ff_ffff)?;
    segment((source, destination), next, (bytes, length), time_ns, feed);
    Some(())
}

/// Gives a message of `length` bytes, of which `bytes` are known, to the decoder as a segment of a stream that is at `next`.
pub(super) fn segment(
    (source, destination): (SocketAddr, SocketAddr),
    next: &mut u32,
    (bytes, length): (&[u8], u32),
    time_ns: i64,
    feed: &mut PushDecoder,
) {
    let mut payload = Vec::with_capacity(4 + bytes.len());
    payload.extend_from_slice(&length.to_be_bytes());
    payload.extend_from_slice(bytes);
    let segment = TcpSegment {
        source: source.ip().into(),
        destination: destination.ip().into(),
        source_port: source.port(),
        destination_port: destination.port(),
        sequence: *next,
        acknowledgement: 0,
        flags: TcpFlags::PSH,
        window: u16::MAX,
        ttl: 64,
        options: &[],
        payload: &payload,
        payload_len: length.saturating_add(4),
    };
    *next = next.wrapping_add(segment.payload_len);
    feed.segment(&segment, time_ns);
}

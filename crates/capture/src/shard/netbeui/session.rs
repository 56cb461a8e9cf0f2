//! One NetBIOS session between two stations: parts of messages to messages, and what was measured.
//!
//! Owns when a session is known to carry SMB and who is its client. Does not own the order of its
//! frames (the link's), nor the messages (`tcp::Connection`).

use std::net::SocketAddr;

use crate::frame::Address;
use crate::netbeui::SessionFrame;
use crate::shard::Env;
use crate::stream::Piece;
use crate::tcp::{Carrier, CarrierBegin, CarrierHalf, Connection, EndReason, is_reply};

/// Bytes of a message; clients of SMB1 send less than 64 KiB, in raw mode too.
const MESSAGE_BYTES_MAX: u32 = 1 << 17;

/// A part of a message.
#[derive(Clone, Copy, Debug)]
pub struct Part<B> {
    /// As captured.
    pub bytes: B,
    /// Bytes on the wire.
    pub length: u32,
    pub time: i64,
    pub frame: u64,
}

/// The parts of a message whose last one is still to come.
#[derive(Clone, Debug, Default)]
struct Parts {
    held: Vec<Part<Vec<u8>>>,
    /// Bytes on the wire.
    length: u32,
    /// What was sent before is lost, so that the next part may be the middle of a message.
    is_broken: bool,
}

/// A session; ends are those of the link.
#[derive(Clone, Debug)]
pub struct Session {
    /// Each end's number of the session.
    pub numbers: [u8; 2],
    pub measured: [CarrierHalf; 2],
    pub last: i64,
    first: i64,
    client: Option<usize>,
    begin_seen: bool,
    parts: [Parts; 2],
    connection: Option<Box<Connection>>,
}

impl Session {
    /// A session of which the first frame was seen, with its client if that shows.
    pub fn new(numbers: [u8; 2], client: Option<usize>, time: i64) -> Session {
        Session {
            numbers,
            measured: [CarrierHalf::default(); 2],
            last: time,
            first: time,
            client,
            begin_seen: client.is_some(),
            parts: [Parts::default(), Parts::default()],
            connection: None,
        }
    }

    /// Number of the packet with which SMB began.
    pub fn began(&self) -> Option<u64> {
        self.connection.as_ref().map(|connection| connection.began)
    }

    /// Bytes of parts that are held.
    pub fn held_bytes(&self) -> usize {
        self.parts.iter().flat_map(|parts| &parts.held).map(|part| part.bytes.len()).sum()
    }

    /// Takes data that end `from` sends: the last part of a message, or one before it.
    pub fn data(
        &mut self,
        part: &Part<&[u8]>,
        is_last: bool,
        stations: [Address; 2],
        from: usize,
        env: &mut Env<'_>,
    ) {
        self.measured[from].bytes += u64::from(part.length);
        let parts = &mut self.parts[from];
        if parts.held.is_empty() && is_last {
            self.hand_over(&[*part], stations, from, env);
            return;
        }
        let Part { bytes, length, time, frame } = *part;
        parts.length = parts.length.saturating_add(length);
        if parts.length > MESSAGE_BYTES_MAX {
            self.lose(from, env);
            return;
        }
        parts.held.push(Part { bytes: bytes.to_vec(), length, time, frame });
        if is_last {
            let held = std::mem::take(&mut parts.held);
            parts.length = 0;
            let views = held.iter().map(|part| Part {
                bytes: &part.bytes[..],
                length: part.length,
                time: part.time,
                frame: part.frame,
            });
            self.hand_over(&views.collect::<Vec<_>>(), stations, from, env);
        }
    }

    /// Frames of end `from` were lost, or there is no room for them.
    pub fn lose(&mut self, from: usize, env: &mut Env<'_>) {
        self.parts[from] = Parts { is_broken: true, ..Parts::default() };
        if let Some(connection) = &mut self.connection {
            let hole = Piece::lost(0, 0, self.last, 0);
            connection.deliver(hole, from, env.context, env.out);
        }
    }

    /// What end `from` sent was acknowledged after that time.
    pub fn add_round_trip(&mut self, from: usize, sample_ns: i64) {
        if let Some(connection) = &mut self.connection {
            connection.add_round_trip(from, sample_ns);
        }
    }

    /// End `from` ends the session, or its link.
    pub fn disconnect(&mut self, from: usize) {
        if let Some(connection) = &mut self.connection {
            connection.disconnect(from);
        }
    }

    /// The session ends, and with it its connection. Returns whether it carried SMB.
    pub fn end(&mut self, reason: EndReason, env: &mut Env<'_>) -> bool {
        let Some(mut connection) = self.connection.take() else { return false };
        let carrier = Carrier {
            transport: TRANSPORT,
            queue_pairs: [None; 2],
            connect_seen: self.begin_seen,
            moved: None,
        };
        connection.end_without_tcp(carrier, self.measured, self.last, reason, env.context, env.out);
        true
    }

    /// Hands over a message that end `from` sends.
    fn hand_over(
        &mut self,
        parts: &[Part<&[u8]>],
        stations: [Address; 2],
        from: usize,
        env: &mut Env<'_>,
    ) {
        let Some(first) = parts.first() else { return };
        let is_smb = first.bytes.starts_with(b"\xffSMB");
        let is_broken = std::mem::take(&mut self.parts[from].is_broken);
        if !is_smb && (is_broken || self.connection.is_none()) {
            return;
        }
        let Env { context, next_index, out } = env;
        let client = match (self.client, is_reply(first.bytes)) {
            (Some(client), _) => client,
            (None, Some(true)) => 1 - from,
            (None, _) => from,
        };
        let connection = self.connection.get_or_insert_with(|| {
            let index = **next_index;
            **next_index = index.wrapping_add(1);
            let ends =
                [0, 1].map(|end| SocketAddr::new(stations[end].ip(), u16::from(self.numbers[end])));
            let begin = CarrierBegin {
                first: self.first,
                transport: TRANSPORT,
                connect_seen: self.begin_seen,
            };
            Box::new(Connection::without_tcp(index, ends, client, begin, context, out))
        });
        // As in TCP, the length of the message is in front of it.
        let length = parts.iter().fold(0, |sum: u32, part| sum.saturating_add(part.length));
        let header = length.min(MESSAGE_BYTES_MAX).to_be_bytes();
        let begin = Part { bytes: &header[..], length: header.len() as u32, ..*first };
        for Part { bytes, length, time, frame } in [&begin].into_iter().chain(parts).copied() {
            let piece = Piece { bytes, length, time, frame, sequence: 0, lost: false };
            connection.deliver(piece, from, context, out);
        }
    }
}

/// The carrier, as the table of connections names it.
const TRANSPORT: &str = "netbeui";

impl<'a> Part<&'a [u8]> {
    /// The data of a session's frame.
    pub fn from_frame(frame: &SessionFrame<'a>, time: i64, number: u64) -> Part<&'a [u8]> {
        Part { bytes: frame.data, length: frame.length, time, frame: number }
    }
}

//! Replies: pieces to messages in plaintext, and the last slices of an operation.

use smbscope_wire::smb2::header::members;

use super::{Assembler, Connection, ENCRYPTION_BYTES, StreamMessage};
use crate::operation::RequestKey;
use crate::ring_event::{Head, Pieces};
use crate::slices::Kind;

/// Longest message that is put together: enough for all members of a compound.
const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Most replies of a connection that wait in the kernel; the kernel's side reports fewer at a time.
const LEAVING_MAX: usize = 64;
/// Length of an error or interim reply (MS-SMB2 2.2.2).
const ERROR_BYTES: usize = 64 + 9;

/// A reply of which only a part went to the kernel.
#[derive(Clone)]
pub(super) struct Sending {
    pub message: StreamMessage,
    /// Key of its lead, while no byte of it went to the network device: the part waits for the rest
    /// (MSG_MORE, before a sendfile).
    pub waits: Option<RequestKey>,
}

/// The fields of [`crate::ring_event::Event::Sent`].
#[derive(Clone, Copy)]
pub(super) struct SentReply<'a> {
    pub socket: u64,
    pub total: u32,
    pub left: u32,
    pub times: Times,
    pub crypto_out: u64,
    pub arrived_at: u64,
    pub pieces: Pieces<'a>,
}

impl Assembler {
    /// A reply, or its first part, went to the kernel.
    pub(super) fn sent(
        &mut self,
        head: Head,
        reply: SentReply<'_>,
        deliver: &mut dyn FnMut(StreamMessage),
    ) {
        let SentReply { socket, left, times, .. } = reply;
        if !self.connections.contains_key(&socket) {
            self.losses.without_connection += 1;
            return;
        }
        let (bytes, length) = self.plaintext(head.thread, &reply);
        if self.by_reply {
            self.answered(Head { time: times.first, ..head }, socket, &bytes);
        }
        let lead = self.end_operations(&reply, &bytes);
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let sequence = connection.server_next;
        connection.server_next = sequence.wrapping_add(4 + length);
        let message = StreamMessage {
            client: connection.ends.client,
            server: connection.ends.server,
            from_client: false,
            sequence,
            length,
            first: times.first,
            last: times.last,
            bytes,
            begins: false,
            ends: false,
        };
        if left == 0 {
            connection.deliver(message, times.waits, deliver);
        } else {
            let waits = lead.filter(|_| !times.departed);
            connection.sending = Some(Sending { message, waits });
        }
    }

    /// A reply's plaintext, as far as it was copied, and its length.
    fn plaintext(&mut self, thread: u32, reply: &SentReply<'_>) -> (Vec<u8>, u32) {
        let pieces = reply.pieces;
        let mut length = reply.total.saturating_sub(4);
        let is_encrypted =
            pieces.iter().nth(1).is_some_and(|(bytes, _)| bytes.starts_with(b"\xfdSMB"));
        let mut bytes = if is_encrypted {
            length = length.saturating_sub(ENCRYPTION_BYTES);
            match self.take_clear(thread, pieces) {
                Some(clear) => {
                    let pieces = clear.pieces.iter();
                    joined(pieces.map(|(bytes, length)| (bytes.as_slice(), *length)), length)
                }
                None => {
                    self.losses.without_clear += 1;
                    Vec::new()
                }
            }
        } else {
            // The NetBIOS header is a separate piece or the beginning of the first one.
            let mut header = 4;
            let rest = pieces.iter().map(|(bytes, length)| {
                let header = std::mem::take(&mut header);
                let bytes = bytes.get(header..).unwrap_or_default();
                (bytes, length.saturating_sub(header as u32))
            });
            joined(rest, length)
        };
        if (bytes.len(), length) == (ERROR_BYTES - 1, ERROR_BYTES as u32) {
            // The byte of error data is not copied, like all data; it carries no information.
            bytes.push(0);
        }
        (bytes, length)
    }

    /// Adds the slices after `done` to the operations that the reply answers; returns the lead's key.
    fn end_operations(&mut self, reply: &SentReply<'_>, bytes: &[u8]) -> Option<RequestKey> {
        let connection = self.connections.get_mut(&reply.socket)?;
        let mut lead_key = None;
        for (index, member) in members(bytes).enumerate() {
            if member.header.is_interim() {
                continue;
            }
            let Some((key, done)) = connection.unsent.remove(&member.header.message_id) else {
                continue;
            };
            // A compound's times are stored on its lead.
            if index != 0 {
                continue;
            }
            let Some(server_side) = self.server_sides.get_mut(&key) else { continue };
            lead_key = Some(key);
            if reply.arrived_at != 0 && server_side.without_arrival {
                // Work before the arrival overlapped with the arrival.
                server_side.arrived = reply.arrived_at.max(server_side.arrived);
                server_side.slices.begin_at(server_side.arrived);
            }
            let took = reply.times.first.saturating_sub(done);
            let crypto = reply.crypto_out.min(took);
            if crypto > 0 {
                server_side.slices.add(Kind::CryptoOut, done, crypto);
            }
            server_side.slices.add(Kind::Send, done + crypto, took - crypto);
        }
        lead_key
    }

    pub(super) fn sent_more(
        &mut self,
        socket: u64,
        times: Times,
        left: u32,
        deliver: &mut dyn FnMut(StreamMessage),
    ) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let Some(mut sending) = connection.sending.take() else { return };
        if let Some(key) = sending.waits.take_if(|_| times.departed || left == 0) {
            let later = times.first.saturating_sub(sending.message.first);
            sending.message.first += later;
            if let Some(server_side) = self.server_sides.get_mut(&key) {
                server_side.slices.add(Kind::Send, times.first - later, later);
            }
        }
        if left > 0 {
            connection.sending = Some(sending);
            return;
        }
        let last = times.last.max(sending.message.first);
        connection.deliver(StreamMessage { last, ..sending.message }, times.waits, deliver);
    }

    /// Everything before a sequence number went to the network device.
    pub(super) fn left(
        &mut self,
        socket: u64,
        until: u32,
        time: u64,
        deliver: &mut dyn FnMut(StreamMessage),
    ) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        while let Some((_, behind)) = connection.leaving.front()
            && (until.wrapping_sub(*behind) as i32) >= 0
            && let Some((message, _)) = connection.leaving.pop_front()
        {
            deliver(StreamMessage { last: time.max(message.first), ..message });
        }
    }
}

impl Connection {
    /// Delivers a reply that the kernel has completely: at once, or when its part in the kernel
    /// (`waits`) has left. Replies of a connection are delivered in order.
    fn deliver(
        &mut self,
        message: StreamMessage,
        waits: Option<u32>,
        deliver: &mut dyn FnMut(StreamMessage),
    ) {
        let behind = waits.or(self.leaving.back().map(|(_, behind)| *behind));
        match behind {
            Some(behind) => self.leaving.push_back((message, behind)),
            None => deliver(message),
        }
        // The event that the first one has left was lost.
        if self.leaving.len() > LEAVING_MAX
            && let Some((message, _)) = self.leaving.pop_front()
        {
            deliver(message);
        }
    }
}

/// When a message left.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub first: u64,
    pub last: u64,
    /// Whether any part of it left.
    pub departed: bool,
    /// Sequence number after it, if some of it waits in the kernel.
    pub waits: Option<u32>,
}

impl Times {
    /// 0 means unknown: then it is the end of the system call.
    pub fn new(head: Head, first: u64, last: u64) -> Times {
        let departed = last != 0;
        let last = if last == 0 { head.time } else { last.min(head.time) };
        let first = if first == 0 { last } else { first.min(last) };
        Times { first, last, departed, waits: None }
    }
}

/// The message made of these pieces, up to the end of its last header; bytes that were not copied in
/// between are zeros.
pub(super) fn joined<'a>(pieces: impl Iterator<Item = (&'a [u8], u32)>, length: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut end = 0;
    for (piece, real) in pieces {
        if piece.starts_with(b"\xfdSMB") {
            continue;
        }
        if !piece.is_empty() {
            if end > MESSAGE_BYTES_MAX {
                break;
            }
            bytes.resize(end, 0);
            bytes.extend_from_slice(piece);
        }
        end += real as usize;
    }
    bytes.truncate(length as usize);
    bytes
}

//! Replies: to messages in clear, and the end of an operation's slices.

use smbscope_wire::smb2::header::members;

use super::{Assembler, Connection, Place, Told};
use crate::ring_event::{Head, Pieces};
use crate::slices::Kind;

/// Longest message that is put together: all members of a compound lie in it.
const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Replies of a connection that wait in the kernel, of which its side tells of fewer at a time.
const LEAVING_MAX: usize = 64;
/// A reply that says that something failed, or waits (MS-SMB2 2.2.2).
const ERROR_BYTES: usize = 64 + 9;

/// A reply of which a part went to the kernel.
#[derive(Clone)]
pub(super) struct Sending {
    pub told: Told,
    /// Where its lead stands, while none of it went to the network device: the part waits for what
    /// follows it (MSG_MORE, before a sendfile).
    pub waits: Option<Place>,
}

impl Assembler {
    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    pub(super) fn sent(
        &mut self,
        head: Head,
        socket: u64,
        total: u32,
        left: u32,
        times: Times,
        (crypto_out, arrived_at): (u64, u64),
        pieces: Pieces<'_>,
        tell: &mut dyn FnMut(Told),
    ) {
        if !self.connections.contains_key(&socket) {
            self.losses.without_connection += 1;
            return;
        }
        let mut length = total.saturating_sub(4);
        let is_encrypted =
            pieces.iter().nth(1).is_some_and(|(bytes, _)| bytes.starts_with(b"\xfdSMB"));
        let mut bytes = if is_encrypted {
            length = length.saturating_sub(52);
            match self.take_clear(head.thread, pieces) {
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
            // The NetBIOS header is by itself or at the front of everything.
            let mut header = 4;
            let rest = pieces.iter().map(|(bytes, length)| {
                let header = std::mem::take(&mut header);
                let bytes = bytes.get(header..).unwrap_or_default();
                (bytes, length.saturating_sub(header as u32))
            });
            joined(rest, length)
        };
        if (bytes.len(), length) == (ERROR_BYTES - 1, ERROR_BYTES as u32) {
            // Its byte of data is left out like all data, and says nothing.
            bytes.push(0);
        }
        if self.by_reply {
            self.answered(Head { time: times.first, ..head }, socket, &bytes);
        }
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let mut lead_place = None;
        for (index, member) in members(&bytes).enumerate() {
            if member.header.is_interim() {
                continue;
            }
            let Some((place, done)) = connection.unsent.remove(&member.header.message_id) else {
                continue;
            };
            // The times of a compound stand on its lead.
            let (inside, lead) = (self.inside.get_mut(&place), index == 0);
            if let (Some(inside), true) = (inside, lead) {
                lead_place = Some(place);
                if arrived_at != 0 && inside.without_arrival {
                    // What was done before was done while the rest came.
                    inside.arrived = arrived_at.max(inside.arrived);
                    inside.slices.begin_at(inside.arrived);
                }
                let took = times.first.saturating_sub(done);
                let crypto = crypto_out.min(took);
                if crypto > 0 {
                    inside.slices.add(Kind::CryptoOut, done, crypto);
                }
                inside.slices.add(Kind::Send, done + crypto, took - crypto);
            }
        }
        let sequence = connection.server_next;
        connection.server_next = sequence.wrapping_add(4 + length);
        let told = Told {
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
            connection.tell(told, times.waits, tell);
        } else {
            connection.sending =
                Some(Sending { told, waits: lead_place.filter(|_| !times.departed) });
        }
    }

    pub(super) fn sent_more(
        &mut self,
        socket: u64,
        times: Times,
        left: u32,
        tell: &mut dyn FnMut(Told),
    ) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let Some(mut sending) = connection.sending.take() else { return };
        if let Some(place) = sending.waits.take_if(|_| times.departed || left == 0) {
            let later = times.first.saturating_sub(sending.told.first);
            sending.told.first += later;
            if let Some(inside) = self.inside.get_mut(&place) {
                inside.slices.add(Kind::Send, times.first - later, later);
            }
        }
        if left > 0 {
            connection.sending = Some(sending);
            return;
        }
        let last = times.last.max(sending.told.first);
        connection.tell(Told { last, ..sending.told }, times.waits, tell);
    }

    /// Everything up to a sequence number went to the network device.
    pub(super) fn left(&mut self, socket: u64, until: u32, time: u64, tell: &mut dyn FnMut(Told)) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        while let Some((_, behind)) = connection.leaving.front()
            && (until.wrapping_sub(*behind) as i32) >= 0
            && let Some((told, _)) = connection.leaving.pop_front()
        {
            tell(Told { last: time.max(told.first), ..told });
        }
    }
}

impl Connection {
    /// Tells a reply of which the kernel has everything: at once, or when nothing of it `waits` there. Those
    /// of a connection are told in their order.
    fn tell(&mut self, told: Told, waits: Option<u32>, tell: &mut dyn FnMut(Told)) {
        let behind = waits.or(self.leaving.back().map(|(_, behind)| *behind));
        match behind {
            Some(behind) => self.leaving.push_back((told, behind)),
            None => tell(told),
        }
        // Nobody told that the first one is gone.
        if self.leaving.len() > LEAVING_MAX
            && let Some((told, _)) = self.leaving.pop_front()
        {
            tell(told);
        }
    }
}

/// When a message left.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub first: u64,
    pub last: u64,
    /// Whether any of it did.
    pub departed: bool,
    /// Sequence number behind it, if some of it waits in the kernel.
    pub waits: Option<u32>,
}

impl Times {
    /// 0 stands for not known: then it is the end of the system call.
    pub fn new(head: Head, first: u64, last: u64) -> Times {
        let departed = last != 0;
        let last = if last == 0 { head.time } else { last.min(head.time) };
        let first = if first == 0 { last } else { first.min(last) };
        Times { first, last, departed, waits: None }
    }
}

/// The message of which these are the pieces, as far as its last header needs; zeros stand for what
/// was not copied in between.
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

//! Raw mode: messages without any SMB header (MS-CIFS sections 2.2.4.22 and 2.2.4.25).
//!
//! The next message of the server answers a ReadRaw, whatever it begins with; an empty one means
//! the end of the file or an error. A WriteRaw is answered by an interim reply, after which the
//! client sends the rest; a WriteComplete follows if the client requested write-through.

use smbscope_wire::smb1::{self, Command, Header};

use super::early_replies::EARLY_NS;
use super::stage::Stage;
use super::{Smb1, key_of};
use crate::smb::context::SmbContext;
use crate::smb::pending::ReplyTimes;
use crate::stream::Message;

impl Smb1 {
    /// Whether a message that begins as SMB1 does is data of raw mode after all.
    pub(super) fn is_raw(
        &self,
        message: &Message<'_>,
        header: Option<Header>,
        to_server: bool,
    ) -> bool {
        if to_server {
            let exchange = self.raw_write.and_then(|key| self.find(key));
            return exchange.is_some_and(|exchange| {
                matches!(exchange.stage, Stage::WriteRaw(raw) if raw.rest == message.length)
            });
        }
        self.raw_read.is_some_and(|key| self.may_be_data(key, message))
            && !header.is_some_and(|header| {
                header.mid == smb1::OPLOCK_BREAK_MID && header.command == Command::LOCKING_AND_X
                    || header.is_reply() && self.answers(key_of(&header), header.command)
            })
    }

    /// Whether a message may answer a ReadRaw: one from long before it was held up behind a hole.
    fn may_be_data(&self, key: u32, message: &Message<'_>) -> bool {
        let start = self.find(key).and_then(|exchange| exchange.start());
        start.is_none_or(|start| start <= message.start.saturating_add(EARLY_NS))
    }

    pub(super) fn raw_to_server(&mut self, message: &Message<'_>, cx: &mut SmbContext<'_>) {
        let key = self.raw_write.take();
        let slot = key.and_then(|key| self.waiting.get(&key)).copied();
        let exchange = slot.and_then(|slot| self.slab.get_mut(slot as usize));
        let (Some(key), Some(exchange)) = (key, exchange) else {
            cx.pairing.unbegin(message.start, message.begun);
            return;
        };
        exchange.resume_request(message, cx.pairing);
        let Stage::WriteRaw(raw) = exchange.stage else { return };
        if raw.through {
            return;
        }
        // It is not confirmed: what was sent was transferred, and no other reply comes than the one
        // that asked for the rest (MS-CIFS section 2.2.4.25).
        for member in exchange.members() {
            if let Some(frame) = raw.asked {
                member.pending.row.set_response_frame(frame);
            }
            let sent = member.pending.row.requested_bytes().unwrap_or(0);
            let sent = sent.saturating_sub(u64::from(raw.rest));
            member.pending.row.set_transferred_bytes(sent + u64::from(message.length));
        }
        let time = message.end.unwrap_or(message.start);
        let Some(slot) = self.take(key, time, cx) else { return };
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            exchange.give_up(time, cx);
        }
        self.free.push(slot);
    }

    pub(super) fn raw_to_client(&mut self, message: &Message<'_>, cx: &mut SmbContext<'_>) {
        let Some(key) = self.raw_read.filter(|&key| self.may_be_data(key, message)) else {
            return;
        };
        self.raw_read = None;
        let Some(slot) = self.take(key, message.start, cx) else { return };
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            for member in exchange.members() {
                member.pending.row.set_transferred_bytes(u64::from(message.length));
                // An empty message means the end of the file or an error; it is unknown which.
                if message.length > 0 {
                    member.pending.row.set_status(0);
                }
            }
            exchange.finish_with(&ReplyTimes::from_message(message), cx);
        }
        self.free.push(slot);
    }
}

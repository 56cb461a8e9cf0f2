//! Replies to ends of operations (MS-SMB2 section 3.2.5.1): final and interim replies, compound
//! replies, replies to requests that were not captured, and notifications.

use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::{Header, Member, members};

use super::cut_compounds::{self, Rest};
use super::early_replies::EarlyReply;
use super::reply::{self, Reply};
use super::{Smb2, Wrapping};
use crate::smb::context::SmbContext;
use crate::smb::pairing::Pairing;
use crate::smb::pending::ReplyTimes;
use crate::stream::Message;

/// When and how a reply came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub times: ReplyTimes,
    pub wrapping: Wrapping,
    /// It is the first of its message.
    pub lead: bool,
    /// What of the compound's reply was not captured.
    pub rest: Option<Rest>,
}

impl Smb2 {
    pub(super) fn compound_reply(
        &mut self,
        message: &Message<'_>,
        wrapping: Wrapping,
        cx: &mut SmbContext<'_>,
    ) {
        let times = ReplyTimes::from_message(message);
        let mut chain_file = None;
        for (index, member) in members(message.bytes).enumerate() {
            if !member.header.is_response() {
                cx.out.coverage.messages_malformed += 1;
                break;
            }
            let rest = cut_compounds::after(&member, message);
            let goes_on = rest
                .and_then(|_| self.waiting.get(member.header.message_id))
                .and_then(|slot| self.slab.get(slot as usize))
                .map(|asked| (asked.chain, asked.row.credit_charge().unwrap_or(1).max(1)));
            let arrival = Arrival { times, wrapping, lead: index == 0, rest };
            self.reply(&member, &arrival, &mut chain_file, cx);
            if let Some((chain, charge)) = goes_on {
                let next = member.header.message_id.wrapping_add(u64::from(charge));
                self.note_cut_replies(chain, next, &times, cx);
            }
        }
    }

    /// Takes one reply. `chain_file` is the file that an earlier reply of the compound opened.
    #[inline(always)]
    pub(super) fn reply(
        &mut self,
        member: &Member<'_>,
        arrival: &Arrival,
        chain_file: &mut Option<[u8; 16]>,
        cx: &mut SmbContext<'_>,
    ) {
        let header = &member.header;
        self.grant(i64::from(header.credits), cx.pairing);
        if header.message_id == u64::MAX && header.command == Command::OPLOCK_BREAK {
            self.notification(member, arrival, cx);
            return;
        }
        if header.is_interim()
            && let Some(slot) = self.waiting.get(header.message_id)
        {
            self.interim(slot, header, arrival, cx.pairing);
            self.begin_apart(slot, header, arrival, cx.pairing);
            return;
        }
        let mut reply = Reply::default();
        reply::decode(member, &mut reply, cx.pairing);
        if header.command == Command::CREATE {
            *chain_file = reply.file_id;
        } else if reply.file_id.is_none() {
            reply.file_id = *chain_file;
        }
        let early_is_full = !cx.pairing.requests_seen && self.early.len() >= cx.limits.early;
        if let Some(slot) = self.waiting.remove(header.message_id) {
            self.answer(slot, header, arrival, &mut reply, cx);
        } else {
            let (header, arrival, order) = (*header, *arrival, cx.out.order);
            let early = EarlyReply { header, arrival, reply, order };
            if early_is_full && !header.is_interim() {
                self.unmatched(early, cx);
            } else {
                self.early.push_back(early);
            }
        }
    }

    /// Endpoints a request, which no longer waits, with its final reply.
    #[inline(always)]
    pub(super) fn answer(
        &mut self,
        slot: u32,
        header: &Header,
        arrival: &Arrival,
        reply: &mut Reply,
        cx: &mut SmbContext<'_>,
    ) {
        let Some(pending) = self.slab.get_mut(slot as usize) else { return };
        let file_in_request = pending.row.file_id().is_some();
        if pending.chain != 0 {
            let chain = pending.chain;
            if header.command == Command::CREATE {
                if let Some(file) = reply.file_id {
                    self.chain_files.push_back((chain, file));
                    if self.chain_files.len() > 16 {
                        self.chain_files.pop_front();
                    }
                }
            } else if !file_in_request && reply.file_id.is_none() {
                reply.file_id = self
                    .chain_files
                    .iter()
                    .find(|(other, _)| *other == chain)
                    .map(|&(_, file)| file);
            }
        }
        if file_in_request {
            reply.file_id = None;
        }
        if header.session_id != 0 && pending.row.session_id().is_none() {
            pending.row.set_session_id(header.session_id);
        }
        // A member that is related to a TreeConnect works in the tree that it makes (MS-SMB2 section
        // 3.3.5.2.7.2); only the reply has its number.
        let is_new = header.command == Command::TREE_CONNECT
            || pending.row.tree_id() == Some(0) && pending.row.related() == Some(true);
        if let Some(tree) = header.tree_id().filter(|&tree| is_new && tree != u32::MAX) {
            pending.row.set_tree_id(tree);
        }
        if arrival.wrapping.compressed {
            pending.row.set_compressed(true);
        }
        if pending.row.command().is_none() {
            learn(&mut pending.row, header.command);
        }
        set_reply(&mut pending.row, header, reply);
        let effect = reply.effect(Some(pending), cx.out);
        cx.pairing.finish(cx.out, pending, &arrival.times, arrival.lead, effect);
        if pending.chain != 0 {
            self.begin_apart(slot, header, arrival, cx.pairing);
        }
        self.free.push(slot);
    }

    /// A reply to a member of a compound was the last one of its message: it, if that was an interim
    /// reply, and the member behind it are answered apart.
    #[cold]
    fn begin_apart(
        &mut self,
        slot: u32,
        header: &Header,
        arrival: &Arrival,
        pairing: &mut Pairing,
    ) {
        let Some(pending) = self.slab.get_mut(slot as usize) else { return };
        if pending.chain == 0 {
            return;
        }
        let time = arrival.times.end_or_start();
        if header.is_interim() {
            pairing.begin_apart(pending, time);
        }
        let chain = pending.chain;
        let charge = u64::from(pending.row.credit_charge().unwrap_or(1).max(1));
        if header.next_command == 0
            && arrival.rest.is_none()
            && let Some(next) = self.waiting.get(header.message_id.wrapping_add(charge))
            && let Some(next) = self.slab.get_mut(next as usize).filter(|next| next.chain == chain)
        {
            pairing.begin_apart(next, time);
        }
    }

    /// STATUS_PENDING: the operation continues, and its final reply carries the same AsyncId.
    pub(super) fn interim(
        &mut self,
        slot: u32,
        header: &Header,
        arrival: &Arrival,
        pairing: &mut Pairing,
    ) {
        let Some(pending) = self.slab.get_mut(slot as usize) else { return };
        let time = arrival.times.end_or_start();
        if pending.row.command().is_none() {
            learn(&mut pending.row, header.command);
            if pending.row.waits() == Some(true) {
                pairing.remove_in_flight(pending, time);
            }
        }
        let row = &mut pending.row;
        row.set_pending_at(time);
        row.set_pending_frame(arrival.times.frame);
        if let Some(id) = header.async_id() {
            row.set_async_id(id);
        }
        row.set_credits_granted(row.credits_granted().unwrap_or(0).saturating_add(header.credits));
        if arrival.lead && pending.lead {
            let bytes = row.response_wire_bytes().unwrap_or(0) + arrival.times.wire_bytes;
            row.set_response_wire_bytes(bytes);
        }
        if header.command == Command::LOCK {
            // Blocked: it waits for another client, not for the server.
            row.set_waits(true);
            pairing.remove_in_flight(pending, time);
            pending.row.clear(smbscope_tables::operation::Column::busy_ns);
        }
    }

    /// A break that the server sends without a request: a row of its own.
    pub(super) fn notification(
        &mut self,
        member: &Member<'_>,
        arrival: &Arrival,
        cx: &mut SmbContext<'_>,
    ) {
        cx.pairing.table.breaks += 1;
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_command(code::command(2, member.header.command.0));
        row.set_message_id(member.header.message_id);
        if member.header.session_id != 0 {
            row.set_session_id(member.header.session_id);
        }
        row.set_signed(member.header.flags.is_signed());
        row.set_encrypted(arrival.wrapping.encrypted);
        row.set_compressed(arrival.wrapping.compressed);
        row.set_status(member.header.status_or_channel_sequence);
        smbscope_tables::message::set_break(&mut row, member.bytes, true);
        cx.pairing.notification(cx.out, row, &arrival.times);
    }
}

/// The reply names the command of a request that was not captured.
#[cold]
fn learn(row: &mut Operation, command: Command) {
    row.set_command(code::command(2, command.0));
    if command == Command::CHANGE_NOTIFY {
        row.set_waits(true);
    }
}

#[inline(always)]
pub(super) fn set_reply(row: &mut Operation, header: &Header, reply: &Reply) {
    row.set_status(header.status_or_channel_sequence);
    if let Some(id) = header.async_id() {
        row.set_async_id(id);
    }
    row.set_credits_granted(row.credits_granted().unwrap_or(0).saturating_add(header.credits));
    if let Some(file) = reply.file_id {
        row.set_file_id(file);
    }
    let whole = if reply.did_all { row.requested_bytes() } else { None };
    if let Some(bytes) = whole.or(reply.transferred) {
        row.set_transferred_bytes(bytes);
    }
    if let Some(level) = reply.oplock {
        row.set_oplock_granted(code::oplock(level));
    }
    if let Some(lease) = &reply.lease {
        row.set_lease_granted(code::lease(lease.state.0));
        row.set_lease_key(lease.key);
    }
    if let Some(fsctl) = reply.fsctl.filter(|_| row.detail().is_none()) {
        row.set_detail(code::detail(code::Detail::Fsctl, fsctl));
    }
}

//! From replies to ends of operations (MS-SMB2 section 3.2.5.1): final and interim ones, of compounds, of requests
//! that were not captured, and what the server says unasked.

use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::{Header, Member, members};

use super::cut_compounds::{self, Rest};
use super::early_replies::Early;
use super::reply::{self, Reply};
use super::{Smb2, Wrapping};
use crate::limits::Limits;
use crate::outcome::Output;
use crate::smb::pairing::Link;
use crate::smb::pending::Seen;
use crate::stream::Message;

impl Smb2 {
    pub(super) fn compound_reply(
        &mut self,
        message: &Message<'_>,
        wrapping: Wrapping,
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
    ) {
        let seen = Seen::of(message);
        let mut chain_file = None;
        for (index, member) in members(message.bytes).enumerate() {
            if !member.header.is_response() {
                out.coverage.messages_malformed += 1;
                break;
            }
            let rest = cut_compounds::after(&member, message);
            let goes_on = rest
                .and_then(|_| self.waiting.get(member.header.message_id))
                .and_then(|slot| self.slab.get(slot as usize))
                .map(|asked| (asked.chain, asked.row.credit_charge().unwrap_or(1).max(1)));
            self.reply(&member, index, &mut chain_file, &seen, rest, wrapping, link, out, limits);
            if let Some((chain, charge)) = goes_on {
                let next = member.header.message_id.wrapping_add(u64::from(charge));
                self.answered_behind(chain, next, &seen, link, out);
            }
        }
    }

    /// Takes one reply. `chain_file` is what the compound's replies before it opened.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn reply(
        &mut self,
        member: &Member<'_>,
        index: usize,
        chain_file: &mut Option<[u8; 16]>,
        seen: &Seen,
        rest: Option<Rest>,
        wrapping: Wrapping,
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
    ) {
        let (header, lead) = (&member.header, index == 0);
        self.grant(i64::from(header.credits), link);
        if header.message_id == u64::MAX && header.command == Command::OPLOCK_BREAK {
            self.notification(member, seen, wrapping, link, out);
            return;
        }
        if header.is_interim()
            && let Some(slot) = self.waiting.get(header.message_id)
        {
            self.interim(slot, header, seen, lead, link);
            return;
        }
        let mut reply = Reply::default();
        reply::decode(member, &mut reply, link);
        if header.command == Command::CREATE {
            *chain_file = reply.file_id;
        } else if reply.file_id.is_none() {
            reply.file_id = *chain_file;
        }
        let early_is_full = !link.requests_seen && self.early.len() >= limits.early;
        if let Some(slot) = self.waiting.remove(header.message_id) {
            self.answer(slot, header, seen, wrapping, &mut reply, lead, link, out);
        } else {
            let (header, seen, order) = (*header, *seen, out.order);
            let early = Early { header, seen, wrapping, reply, lead, rest, order };
            if early_is_full && !header.is_interim() {
                self.unmatched(early, link, out);
            } else {
                self.early.push_back(early);
            }
        }
    }

    /// Ends the request at a place, which does not wait any more, with its final reply.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn answer(
        &mut self,
        slot: u32,
        header: &Header,
        seen: &Seen,
        wrapping: Wrapping,
        reply: &mut Reply,
        lead: bool,
        link: &mut Link,
        out: &mut Output,
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
        if let Some(tree) = header.tree_id().filter(|_| header.command == Command::TREE_CONNECT) {
            pending.row.set_tree_id(tree);
        }
        if wrapping.compressed {
            pending.row.set_compressed(true);
        }
        if pending.row.command().is_none() {
            learn(&mut pending.row, header.command);
        }
        set_reply(&mut pending.row, header, reply);
        let effect = reply.effect(Some(pending), out);
        link.finish(out, pending, seen, lead, effect);
        self.free.push(slot);
    }

    /// STATUS_PENDING: the operation goes on, its final reply carries the same AsyncId.
    pub(super) fn interim(
        &mut self,
        slot: u32,
        header: &Header,
        seen: &Seen,
        lead: bool,
        link: &mut Link,
    ) {
        let Some(pending) = self.slab.get_mut(slot as usize) else { return };
        let time = seen.end_or_start();
        if pending.row.command().is_none() {
            learn(&mut pending.row, header.command);
            if pending.row.waits() == Some(true) {
                link.arrive(pending, time);
            }
        }
        let row = &mut pending.row;
        row.set_pending_at(time);
        if let Some(id) = header.async_id() {
            row.set_async_id(id);
        }
        row.set_credits_granted(row.credits_granted().unwrap_or(0).saturating_add(header.credits));
        if lead && pending.lead {
            let bytes = row.response_wire_bytes().unwrap_or(0) + seen.wire_bytes;
            row.set_response_wire_bytes(bytes);
        }
        if header.command == Command::LOCK {
            // Blocked: it waits for another client, not for the server.
            row.set_waits(true);
            link.arrive(pending, time);
            pending.row.clear(smbscope_tables::operation::Column::busy_ns);
        }
    }

    /// A break that the server sends unasked: a row of its own, without a request.
    pub(super) fn notification(
        &mut self,
        member: &Member<'_>,
        seen: &Seen,
        wrapping: Wrapping,
        link: &mut Link,
        out: &mut Output,
    ) {
        link.table.breaks += 1;
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_command(code::command(2, member.header.command.0));
        row.set_message_id(member.header.message_id);
        if member.header.session_id != 0 {
            row.set_session_id(member.header.session_id);
        }
        row.set_signed(member.header.flags.is_signed());
        row.set_encrypted(wrapping.encrypted);
        row.set_compressed(wrapping.compressed);
        row.set_status(member.header.status_or_channel_sequence);
        smbscope_tables::message::set_break(&mut row, member.bytes, true);
        link.notification(out, row, seen);
    }
}

/// The reply tells the command of a request that was not captured.
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
    if let Some(bytes) = reply.transferred {
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

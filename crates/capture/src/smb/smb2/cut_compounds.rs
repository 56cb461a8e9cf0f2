//! Later members of compounds that were not captured.
//!
//! NextCommand says that a member follows (MS-SMB2 section 2.2.1), whether it was captured or not.
//! The client's next request shows how many follow, because a client numbers its requests
//! consecutively, including those of a compound (section 3.2.4.1.4). So a capture cut to headers
//! counts every operation; the command is unknown if neither the header of the request nor that of
//! the reply was captured.
//!
//! Owns what is inferred about these members and their rows; pairing with replies is done in
//! `smb2`.

use smbscope_tables::operation::Column;
use smbscope_wire::smb2::header::{Header, Member};
use smbscope_wire::smb2::{Command, HEADER_BYTES};

use super::{Chain, MEMBERS_MAX, Smb2};
use crate::outcome::Effect;
use crate::smb::context::SmbContext;
use crate::smb::pairing::Pairing;
use crate::smb::pending::{Pending, ReplyTimes};
use crate::stream::Message;

/// Bytes of the least member before another one: a header and four bytes, padded to eight.
pub const MEMBER_BYTES: usize = 72;

/// The bytes of members of which not even a header was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest(u32);

impl Rest {
    /// The number of members that fit into it; at least the one that must be there.
    pub fn members(self) -> u64 {
        // The last one is not padded.
        ((self.0 as usize + 4) / MEMBER_BYTES).clamp(1, MEMBERS_MAX) as u64
    }

    /// Size in bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// The bytes of the next member and of all behind it, if not even its header was captured; none if
/// no member follows, or if its header is there.
#[inline]
pub fn after(member: &Member<'_>, message: &Message<'_>) -> Option<Rest> {
    let next = member.header.next_command as usize;
    if next < HEADER_BYTES {
        return None;
    }
    let at = member.offset.checked_add(next)?;
    let rest = (message.length as usize).checked_sub(at)?;
    let is_cut = message.bytes.len() < at.checked_add(HEADER_BYTES)?;
    (rest > HEADER_BYTES && is_cut).then_some(Rest(rest as u32))
}

/// The MessageId behind those that a request takes.
pub fn next_id(header: &Header) -> u64 {
    header.message_id.wrapping_add(u64::from(header.credit_charge.max(1)))
}

/// The end of a compound of which one member at least was not captured.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The compound's number on the connection.
    pub chain: u64,
    /// MessageId of the first member that was not captured.
    pub first_id: u64,
    /// Its place in the compound.
    index: u16,
    /// Frame of the message's first byte.
    frame: u64,
    /// TCP sequence number of that.
    sequence: u32,
    /// The reply to the end of the compound, if that was not captured either.
    answered: Option<ReplyTimes>,
    /// First and last byte of the message.
    asked: (i64, Option<i64>),
    /// TCP sequence number behind the message.
    behind: u32,
    /// The members that are not there.
    pub rest: Rest,
}

impl Tail {
    /// The tail of a message, `rest` bytes of which hold the members that are not there.
    pub fn new(chain: u64, first_id: u64, index: u16, rest: Rest, message: &Message<'_>) -> Tail {
        Tail {
            chain,
            first_id,
            index,
            frame: message.frame,
            sequence: message.sequence,
            answered: None,
            asked: (message.start, message.end),
            behind: end(message),
            rest,
        }
    }

    /// Fills in what is known of the member that comes `more` behind the first.
    fn begin(&self, more: u64, pending: &mut Pending, pairing: &mut Pairing) {
        pending.chain = self.chain;
        pending.asked = Some(self.asked);
        let row = &mut pending.row;
        row.set_protocol(2);
        row.set_message_id(self.first_id.wrapping_add(more));
        row.set_compound(self.chain);
        row.set_compound_index(self.index.saturating_add(more as u16));
        pairing.start_member(pending, self.frame, self.sequence);
    }

    /// When the message was sent.
    fn time(&self) -> i64 {
        let (start, end) = self.asked;
        end.unwrap_or(start)
    }

    /// Whether a message comes right behind, with no other between them.
    pub fn is_followed_by(&self, message: &Message<'_>) -> bool {
        self.behind == message.sequence
    }

    /// Skips a message without a number of its own.
    pub fn pass(&mut self, message: &Message<'_>) {
        self.behind = end(message);
    }

    /// The number of members that were not captured, if the next request has this number; 1 if the
    /// numbers are ambiguous, because one member can use several.
    pub fn members(&self, next_id: u64) -> u64 {
        let used = next_id.wrapping_sub(self.first_id);
        if used > self.rest.members() { 1 } else { used.max(1) }
    }
}

/// A request whose reply is in the part of a compound reply that was not captured.
#[derive(Clone, Copy, Debug)]
pub struct CutReply {
    slot: u32,
    id: u64,
    times: ReplyTimes,
    /// Global number of the packet.
    order: u64,
}

impl Smb2 {
    /// Adds the other members of the previous request, now that the number of the next one shows
    /// how many there are.
    #[cold]
    pub(super) fn add_cut_members(
        &mut self,
        next: &Header,
        message: &Message<'_>,
        cx: &mut SmbContext<'_>,
    ) {
        let Some(mut tail) = self.tail.take() else { return };
        if !tail.is_followed_by(message) {
            return;
        }
        if next.command == Command::CANCEL {
            // It has the number of what it cancels.
            tail.pass(message);
            self.tail = Some(tail);
            return;
        }
        for more in 1..tail.members(next.message_id) {
            self.add_cut_member(&tail, more, cx);
        }
    }

    /// Adds a member that was not captured.
    #[cold]
    pub(super) fn add_cut_member(&mut self, tail: &Tail, more: u64, cx: &mut SmbContext<'_>) {
        let id = tail.first_id.wrapping_add(more);
        if self.waiting.get(id).is_some() {
            return;
        }
        let slot = self.allocate();
        let Some(pending) = self.slab.get_mut(slot as usize) else { return };
        pending.reset();
        tail.begin(more, pending, cx.pairing);
        let (number, session_id) = (tail.chain, 0);
        let chain =
            Chain { number, members: 0, session_id, tree_id: None, file: None, is_cut: true };
        self.depart(slot, &chain, tail.time(), cx);
        if let Some(times) = tail.answered.filter(|_| self.waiting.get(id) == Some(slot)) {
            self.note_cut_reply(slot, id, times, cx);
        }
    }

    /// Emits the row of a member that was not captured, after its reply, if there was one.
    pub(super) fn emit_cut_member(&mut self, tail: &Tail, more: u64, cx: &mut SmbContext<'_>) {
        let mut pending = Pending::default();
        tail.begin(more, &mut pending, cx.pairing);
        pending.row.clear(Column::outstanding);
        cx.out.coverage.members_not_captured += 1;
        if let Some(times) = &tail.answered {
            cx.pairing.finish(cx.out, &mut pending, times, false, Effect::None);
        } else {
            cx.out.coverage.operations_unanswered += 1;
            cx.pairing.table.unanswered += 1;
            cx.pairing.give_up(cx.out, &mut pending, tail.time());
        }
    }

    /// A compound reply continues in bytes that were not captured: the members of the compound from
    /// a number on that still wait are answered there.
    #[cold]
    pub(super) fn note_cut_replies(
        &mut self,
        chain: u64,
        from: u64,
        times: &ReplyTimes,
        cx: &mut SmbContext<'_>,
    ) {
        let mut id = from;
        while let Some(slot) = self.waiting.get(id)
            && let Some(pending) = self.slab.get(slot as usize).filter(|one| one.chain == chain)
        {
            let charge = pending.row.credit_charge().unwrap_or(1).max(1);
            self.note_cut_reply(slot, id, *times, cx);
            id = id.wrapping_add(u64::from(charge));
        }
        let in_gaps = self.gaps.iter_mut().rev().filter_map(|gap| gap.tail.as_mut());
        if let Some(tail) = self.tail.iter_mut().chain(in_gaps).find(|tail| tail.chain == chain) {
            tail.answered = Some(*times);
        }
    }

    fn note_cut_reply(&mut self, slot: u32, id: u64, times: ReplyTimes, cx: &mut SmbContext<'_>) {
        if let Some(pending) = self.slab.get_mut(slot as usize) {
            cx.pairing.remove_in_flight(pending, times.end_or_start());
            self.cut_replies.push_back(CutReply { slot, id, times, order: cx.out.order });
        }
    }

    /// Endpoints requests that were answered in bytes that were not captured, if no other reply came
    /// meanwhile.
    #[cold]
    pub(super) fn settle_cut_replies(&mut self, keep: usize, before: u64, cx: &mut SmbContext<'_>) {
        while self.cut_replies.len() > keep
            || self.cut_replies.front().is_some_and(|reply| reply.order < before)
        {
            let Some(CutReply { slot, id, times, .. }) = self.cut_replies.pop_front() else {
                break;
            };
            if self.waiting.get(id) != Some(slot) {
                continue;
            }
            let Some(pending) = self.slab.get_mut(slot as usize) else { continue };
            if pending.row.waits() == Some(true) || pending.row.pending_at().is_some() {
                // That reply was an interim one.
                continue;
            }
            self.waiting.remove(id);
            cx.out.coverage.members_not_captured += u64::from(pending.row.command().is_none());
            cx.pairing.finish(cx.out, pending, &times, false, Effect::None);
            self.free.push(slot);
        }
    }
}

/// TCP sequence number behind a message.
pub fn end(message: &Message<'_>) -> u32 {
    message.sequence.wrapping_add(4).wrapping_add(message.length)
}

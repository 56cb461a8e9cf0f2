//! Later members of compounds that lie behind what was captured.
//!
//! NextCommand says that a member follows (MS-SMB2 section 2.2.1), whether it was captured or not.
//! How many do, the client's next request tells: it numbers its requests one after the other, those
//! of a compound too (section 3.2.4.1.4). So a capture cut to headers counts every operation; of
//! those whose header it lacks on both ways the command stays unknown.
//!
//! Owns what is concluded of them and their rows; pairing with replies is `super`'s.

use smbscope_tables::operation::Column;
use smbscope_wire::smb2::header::{Header, Member};
use smbscope_wire::smb2::{Command, HEADER_BYTES};

use super::{Chain, MEMBERS_MAX, Smb2};
use crate::limits::Limits;
use crate::outcome::{Effect, Output};
use crate::smb::pairing::Link;
use crate::smb::pending::{Pending, Seen};
use crate::stream::Message;

/// Bytes of the least member before another one: a header and four bytes, padded to eight.
pub const MEMBER_BYTES: usize = 72;

/// The bytes of members of which not even a header was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest(u32);

impl Rest {
    /// How many members they have room for; at least the one that is known to be there.
    pub fn members(self) -> u64 {
        // The last one is not padded.
        ((self.0 as usize + 4) / MEMBER_BYTES).clamp(1, MEMBERS_MAX) as u64
    }

    /// In bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// The bytes of a member and of all behind it, of which not even a header was captured; none where no
/// member follows, or where its header is there.
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
    /// MessageId of the first member that is not there, which is known to be.
    pub first_id: u64,
    /// Its place in the compound.
    index: u16,
    /// Frame of the message's first byte.
    frame: u64,
    /// TCP sequence number of that.
    sequence: u32,
    /// The reply that answers the compound's end, where that is not captured either.
    answered: Option<Seen>,
    /// When the message was sent.
    time: i64,
    /// TCP sequence number behind the message.
    behind: u32,
    /// The members that are not there.
    pub rest: Rest,
}

impl Tail {
    /// Of a message, `rest` bytes of which hold the members that are not there.
    pub fn new(chain: u64, first_id: u64, index: u16, rest: Rest, message: &Message<'_>) -> Tail {
        Tail {
            chain,
            first_id,
            index,
            frame: message.frame,
            sequence: message.sequence,
            answered: None,
            time: message.end.unwrap_or(message.start),
            behind: end(message),
            rest,
        }
    }

    /// Fills in what is known of the member that comes `more` behind the first.
    fn begin(&self, more: u64, pending: &mut Pending, link: &mut Link) {
        pending.chain = self.chain;
        let row = &mut pending.row;
        row.set_protocol(2);
        row.set_message_id(self.first_id.wrapping_add(more));
        row.set_compound(self.chain);
        row.set_compound_index(self.index.saturating_add(more as u16));
        link.start_member(pending, self.frame, self.sequence);
    }

    /// Whether a message comes right behind, with no other between them.
    pub fn is_followed_by(&self, message: &Message<'_>) -> bool {
        self.behind == message.sequence
    }

    /// Passes over a message that has no number of its own.
    pub fn pass(&mut self, message: &Message<'_>) {
        self.behind = end(message);
    }

    /// How many members there are that were not captured, when the next request has this number; 1
    /// where numbers do not tell: one member can take several.
    pub fn members(&self, next_id: u64) -> u64 {
        let used = next_id.wrapping_sub(self.first_id);
        if used > self.rest.members() { 1 } else { used.max(1) }
    }
}

/// A request whose reply lies behind what was captured of a compound's.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Its place.
    slot: u32,
    /// Its MessageId.
    id: u64,
    /// The compound's reply.
    seen: Seen,
    /// Global number of the packet.
    order: u64,
}

impl Smb2 {
    /// Makes rows of the further members that the request before had, now that the next one's number
    /// tells how many.
    #[cold]
    pub(super) fn count_behind(
        &mut self,
        next: &Header,
        message: &Message<'_>,
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
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
            self.behind(&tail, more, link, out, limits);
        }
    }

    /// Makes the row of a member that was not captured.
    #[cold]
    pub(super) fn behind(
        &mut self,
        tail: &Tail,
        more: u64,
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
    ) {
        let id = tail.first_id.wrapping_add(more);
        if self.waiting.get(id).is_some() {
            return;
        }
        let slot = self.allocate();
        let Some(pending) = self.slab.get_mut(slot as usize) else { return };
        pending.reset();
        tail.begin(more, pending, link);
        let (number, session_id) = (tail.chain, 0);
        let chain =
            Chain { number, members: 0, session_id, tree_id: None, file: None, is_cut: true };
        self.depart(slot, &chain, tail.time, link, out, limits);
        if let Some(seen) = tail.answered.filter(|_| self.waiting.get(id) == Some(slot)) {
            self.tell(slot, id, seen, link, out);
        }
    }

    /// Makes the row of a member that was not captured, long after its reply came if one did.
    pub(super) fn behind_long_ago(
        &mut self,
        tail: &Tail,
        more: u64,
        link: &mut Link,
        out: &mut Output,
    ) {
        let mut pending = Pending::default();
        tail.begin(more, &mut pending, link);
        pending.row.clear(Column::outstanding);
        out.coverage.members_not_captured += 1;
        if let Some(seen) = &tail.answered {
            link.finish(out, &mut pending, seen, false, Effect::None);
        } else {
            out.coverage.operations_unanswered += 1;
            link.table.unanswered += 1;
            link.give_up(out, &mut pending, tail.time);
        }
    }

    /// A compound's replies go on behind what was captured: what waits of the compound from a number on
    /// is answered there.
    #[cold]
    pub(super) fn answered_behind(
        &mut self,
        chain: u64,
        from: u64,
        seen: &Seen,
        link: &mut Link,
        out: &Output,
    ) {
        let mut id = from;
        while let Some(slot) = self.waiting.get(id)
            && let Some(pending) = self.slab.get(slot as usize).filter(|one| one.chain == chain)
        {
            let charge = pending.row.credit_charge().unwrap_or(1).max(1);
            self.tell(slot, id, *seen, link, out);
            id = id.wrapping_add(u64::from(charge));
        }
        let in_gaps = self.gaps.iter_mut().rev().filter_map(|gap| gap.tail.as_mut());
        if let Some(tail) = self.tail.iter_mut().chain(in_gaps).find(|tail| tail.chain == chain) {
            tail.answered = Some(*seen);
        }
    }

    fn tell(&mut self, slot: u32, id: u64, seen: Seen, link: &mut Link, out: &Output) {
        if let Some(pending) = self.slab.get_mut(slot as usize) {
            link.arrive(pending, seen.end_or_start());
            self.told.push_back(Told { slot, id, seen, order: out.order });
        }
    }

    /// Ends what was answered behind the captured bytes, if no other reply came meanwhile.
    #[cold]
    pub(super) fn settle(&mut self, keep: usize, before: u64, link: &mut Link, out: &mut Output) {
        while self.told.len() > keep || self.told.front().is_some_and(|told| told.order < before) {
            let Some(Told { slot, id, seen, .. }) = self.told.pop_front() else { break };
            if self.waiting.get(id) != Some(slot) {
                continue;
            }
            let Some(pending) = self.slab.get_mut(slot as usize) else { continue };
            if pending.row.waits() == Some(true) || pending.row.pending_at().is_some() {
                // It said there that it waits.
                continue;
            }
            self.waiting.remove(id);
            out.coverage.members_not_captured += u64::from(pending.row.command().is_none());
            link.finish(out, pending, &seen, false, Effect::None);
            self.free.push(slot);
        }
    }
}

/// TCP sequence number behind a message.
pub fn end(message: &Message<'_>) -> u32 {
    message.sequence.wrapping_add(4).wrapping_add(message.length)
}

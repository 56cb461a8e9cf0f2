//! SMB2 and SMB3 on one connection: requests and replies to operations.
//!
//! Owns pairing (MS-SMB2 section 3.2.5.1: by MessageId, which is unique on its connection only;
//! an interim reply carries the AsyncId of the final one), compounds (section 3.2.4.1.4) and the
//! credits of the connection. It does not own what spans connections (`resolve`).

mod cut_compounds;
mod early_replies;
mod missing_ids;
mod replies;
mod reply;
mod request;
mod waiting;

use std::collections::VecDeque;

use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::{Header, Member, members};

use crate::outcome::Effect;
use crate::smb::context::SmbContext;
use crate::smb::pairing::Pairing;
use crate::smb::pending::{Pending, ReplyTimes};
use crate::stream::Message;
use cut_compounds::{CutReply, Rest, Tail, next_id};
use early_replies::EarlyReply;
use missing_ids::Gap;
use replies::Arrival;
pub use reply::negotiate as negotiated;
use waiting::Waiting;

/// How a message was wrapped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wrapping {
    pub encrypted: bool,
    pub compressed: bool,
}

/// A compound's requests, or the one of a message.
struct Chain {
    /// Number on the connection; 0 for a message of one.
    number: u64,
    members: u16,
    session_id: u64,
    tree_id: Option<u32>,
    /// A related member works on the file of the one before it.
    file: Option<[u8; 16]>,
    /// The number of members is unknown because the end was not captured.
    is_cut: bool,
}

impl Chain {
    fn from_first(first: &Header, number: u64) -> Chain {
        let (session_id, tree_id) = (first.session_id, first.tree_id());
        Chain { number, members: 0, session_id, tree_id, file: None, is_cut: false }
    }
}

/// Members of a compound that are followed: more than any client sends.
const MEMBERS_MAX: usize = 64;
/// Replies wait this many packets for their request.
const EARLY_PACKETS: u64 = 4_096;

/// Pairing on one connection.
#[derive(Clone, Debug, Default)]
pub struct Smb2 {
    waiting: Waiting,
    slab: Vec<Pending>,
    free: Vec<u32>,
    early: VecDeque<EarlyReply>,
    chains: u64,
    /// Files that the compounds whose members were answered in several messages opened.
    chain_files: VecDeque<(u64, [u8; 16])>,
    /// Encrypted requests, which cannot be paired by number.
    sealed: VecDeque<u32>,
    /// The cut end of the last request; the next request shows how many members it has.
    tail: Option<Tail>,
    /// Requests answered in bytes that were not captured, perhaps with STATUS_PENDING, so that the
    /// final reply is still to come.
    cut_replies: VecDeque<CutReply>,
    /// Number of the next request and its TCP sequence number, if nothing is missing.
    next: Option<(u64, u32)>,
    /// Numbers that no captured request has.
    gaps: VecDeque<Gap>,
    credits: Option<i64>,
}

impl Smb2 {
    /// Takes a plaintext message, from its header as far as captured.
    pub fn message(&mut self, message: &Message<'_>, wrapping: Wrapping, cx: &mut SmbContext<'_>) {
        let Some(first) = Header::parse(message.bytes) else {
            cx.out.coverage.messages_malformed += u64::from(!message.cut);
            cx.pairing.unbegin(message.start, message.begun);
            return;
        };
        if first.is_response() {
            cx.pairing.unbegin(message.start, message.begun);
            if first.next_command == 0 {
                let member = Member { offset: 0, header: first, bytes: message.bytes };
                let times = ReplyTimes::from_message(message);
                let arrival = Arrival { times, wrapping, lead: true, rest: None };
                self.reply(&member, &arrival, &mut None, cx);
            } else {
                self.compound_reply(message, wrapping, cx);
            }
            if !self.early.is_empty() {
                self.expire(cx.limits.early, cx.out.order.saturating_sub(EARLY_PACKETS), cx);
            }
            if !self.cut_replies.is_empty() {
                self.settle_cut_replies(
                    cx.limits.early,
                    cx.out.order.saturating_sub(EARLY_PACKETS),
                    cx,
                );
            }
            if !self.gaps.is_empty() {
                self.settle_gaps(cx.out.order, cx);
            }
            if cx.pairing.should_look_for_lost(self.waiting.len()) {
                self.remove_if_lost(u64::MAX, message.end.unwrap_or(message.start), cx.pairing);
            }
            return;
        }
        if let Some((id, sequence)) = self.next
            && id != first.message_id
            && sequence != message.sequence
        {
            self.note_missing_ids(id, sequence, &first, message, cx.out.order);
            // Also if replies, which settle them in time, are not captured at all.
            self.settle_gaps(cx.out.order, cx);
        }
        if self.tail.is_some() {
            self.add_cut_members(&first, message, cx);
        }
        if first.next_command == 0 {
            self.note_next_id(&first, None, message);
            let member = Member { offset: 0, header: first, bytes: message.bytes };
            let mut chain = Chain::from_first(&first, 0);
            if let Some(slot) = self.request(&member, &mut chain, message, wrapping, cx) {
                let time = message.end.unwrap_or(message.start);
                self.depart(slot, &chain, time, cx);
            }
        } else {
            self.compound_request(message, &first, wrapping, cx);
        }
    }

    /// Notes the number of the next request, and its place in the stream, if none is missing.
    /// `rest` of the current request was not captured and may contain numbers too.
    #[inline]
    fn note_next_id(&mut self, last: &Header, rest: Option<Rest>, message: &Message<'_>) {
        let end = cut_compounds::end(message).wrapping_sub(rest.map_or(0, Rest::bytes));
        let id = match self.next {
            // A Cancel has the number of the request it cancels.
            Some((next, _)) if last.command == Command::CANCEL => next,
            _ => next_id(last),
        };
        self.next = Some((id, end));
    }

    fn compound_request(
        &mut self,
        message: &Message<'_>,
        first: &Header,
        wrapping: Wrapping,
        cx: &mut SmbContext<'_>,
    ) {
        self.chains += 1;
        cx.pairing.table.compounds += 1;
        let mut chain = Chain::from_first(first, self.chains);
        let mut slots = [0_u32; MEMBERS_MAX];
        let mut count = 0_usize;
        let mut tail = None;
        let mut last = *first;
        for member in members(message.bytes) {
            if member.header.is_response() {
                cx.out.coverage.messages_malformed += 1;
                break;
            }
            last = member.header;
            let index = chain.members.saturating_add(1);
            tail = cut_compounds::after(&member, message)
                .map(|rest| Tail::new(chain.number, next_id(&member.header), index, rest, message));
            let slot = self.request(&member, &mut chain, message, wrapping, cx);
            let Some(slot) = slot else { break };
            if let Some(place) = slots.get_mut(count) {
                *place = slot;
                count += 1;
            } else if let Some(pending) = self.slab.get_mut(slot as usize) {
                // More members than any client sends: counted, not followed.
                cx.pairing.give_up(cx.out, pending, message.start);
                self.free.push(slot);
            }
        }
        chain.is_cut = tail.is_some();
        self.note_next_id(&last, tail.as_ref().map(|tail| tail.rest), message);
        let time = message.end.unwrap_or(message.start);
        for &slot in slots.iter().take(count) {
            self.depart(slot, &chain, time, cx);
        }
        if let Some(tail) = tail {
            self.add_cut_member(&tail, 0, cx);
            self.tail = Some(tail);
        }
    }

    /// Makes a request's row; its place.
    #[inline(always)]
    fn request(
        &mut self,
        member: &Member<'_>,
        chain: &mut Chain,
        message: &Message<'_>,
        wrapping: Wrapping,
        cx: &mut SmbContext<'_>,
    ) -> Option<u32> {
        let header = &member.header;
        let index = chain.members;
        chain.members = index.saturating_add(1);
        let slot = self.allocate();
        let pending = self.slab.get_mut(slot as usize)?;
        pending.reset();
        pending.chain = chain.number;
        let is_related = header.flags.is_related();
        if is_related {
            if header.session_id != u64::MAX {
                chain.session_id = header.session_id;
            }
            if let Some(tree) = header.tree_id().filter(|&tree| tree != u32::MAX) {
                chain.tree_id = Some(tree);
            }
        } else {
            (chain.session_id, chain.tree_id) = (header.session_id, header.tree_id());
        }
        let row = &mut pending.row;
        row.set_protocol(2);
        row.set_command(code::command(2, header.command.0));
        row.set_message_id(header.message_id);
        row.set_credit_charge(header.credit_charge);
        row.set_credits_requested(header.credits);
        row.set_signed(header.flags.is_signed());
        row.set_encrypted(wrapping.encrypted);
        row.set_compressed(wrapping.compressed);
        cx.pairing.start(pending, message, index == 0);
        let row = &mut pending.row;
        if chain.session_id != 0 {
            row.set_session_id(chain.session_id);
        }
        // An acknowledgement of a break belongs to a tree, if it names one.
        let is_in_tree =
            |tree| has_tree(header.command) || header.command == Command::OPLOCK_BREAK && tree != 0;
        if let Some(tree) = chain.tree_id.filter(|&tree| is_in_tree(tree)) {
            row.set_tree_id(tree);
        }
        if chain.number != 0 {
            row.set_compound(chain.number);
            row.set_compound_index(index);
            row.set_related(is_related);
        }
        request::decode(member, pending, cx.pairing);
        if chain.number != 0 {
            match pending.row.file_id() {
                None if is_related => {
                    if let Some(file) = chain.file {
                        pending.row.set_file_id(file);
                    }
                }
                named => chain.file = named,
            }
        }
        cx.out.coverage.commands_unknown += u64::from(header.command.name().is_none());
        if !cx.pairing.keeps(pending, member.bytes.len(), cx.limits) {
            // The names that wait on all connections take too much: this one does not.
            cx.out.coverage.operations_discarded += 1;
            self.give_up(slot, message.end.unwrap_or(message.start), cx);
            return None;
        }
        Some(slot)
    }

    /// Puts a request among those that wait for a reply.
    #[inline(always)]
    fn depart(&mut self, slot: u32, chain: &Chain, time: i64, cx: &mut SmbContext<'_>) {
        let Some(pending) = self.slab.get_mut(slot as usize) else { return };
        if chain.number != 0 && !chain.is_cut {
            pending.row.set_compound_size(chain.members);
        }
        let command = Command(pending.row.command().unwrap_or(0) as u16);
        let id = pending.row.message_id().unwrap_or(u64::MAX);
        self.credits = self.credits.map(|held| {
            let charge = i64::from(pending.row.credit_charge().unwrap_or(1).max(1));
            held - if command == Command::CANCEL { 0 } else { charge }
        });
        if command == Command::CANCEL {
            // It has no reply; the request it cancels is answered with STATUS_CANCELLED.
            cx.pairing.give_up(cx.out, pending, time);
            self.free.push(slot);
            return;
        }
        if let Some(held) = self.credits.filter(|&held| held >= 0) {
            let least = cx.pairing.table.credits_min.get_or_insert(held as u64);
            *least = (*least).min(held as u64);
        }
        if pending.row.waits() == Some(true) {
            cx.pairing.remove_in_flight(pending, time);
            pending.row.clear(smbscope_tables::operation::Column::busy_ns);
        } else {
            cx.pairing.add_in_flight(pending);
        }
        if !self.early.is_empty() && self.take_early_reply(id, slot, cx) {
            return;
        }
        if self.waiting.len() >= cx.limits.pending {
            self.discard_oldest(time, cx);
        }
        if let Some(lost) = self.waiting.insert(id, slot) {
            self.displaced(lost, time, cx);
        }
    }

    /// Removes requests from those in flight whose reply seems lost: see
    /// [`Pairing::remove_if_lost`].
    pub fn remove_if_lost(&mut self, at: u64, time: i64, pairing: &mut Pairing) {
        for slot in self.waiting.places() {
            if let Some(pending) = self.slab.get_mut(slot as usize) {
                pairing.remove_if_lost(at, pending, time);
            }
        }
    }

    /// Makes room: the oldest eighth by number, since clients number upwards. Many at once, so that
    /// a capture without replies does not search them all for each request.
    #[cold]
    fn discard_oldest(&mut self, time: i64, cx: &mut SmbContext<'_>) {
        let oldest = self.waiting.sorted();
        for &(id, slot) in oldest.iter().take(oldest.len() / 8 + 1) {
            self.waiting.remove(id);
            cx.out.coverage.operations_discarded += 1;
            self.give_up(slot, time, cx);
        }
    }

    /// The number is used again: the first one's reply was lost.
    #[cold]
    fn displaced(&mut self, slot: u32, time: i64, cx: &mut SmbContext<'_>) {
        match self.slab.get_mut(slot as usize) {
            // It was inferred from numbers; this is the request that really has this one.
            Some(pending) if pending.row.command().is_none() => {
                cx.pairing.remove_in_flight(pending, time);
                self.free.push(slot);
            }
            _ => self.give_up(slot, time, cx),
        }
    }

    fn give_up(&mut self, slot: u32, time: i64, cx: &mut SmbContext<'_>) {
        if let Some(pending) = self.slab.get_mut(slot as usize) {
            cx.out.coverage.operations_unanswered += 1;
            cx.pairing.table.unanswered += 1;
            let is_behind = pending.chain != 0 && pending.row.command().is_none();
            cx.out.coverage.members_not_captured += u64::from(is_behind);
            cx.pairing.give_up(cx.out, pending, time);
            self.free.push(slot);
        }
    }

    /// An encrypted message that cannot be decrypted. Its number is inside; within a burst replies
    /// are assumed to come in the order of the requests.
    pub fn sealed(
        &mut self,
        message: &Message<'_>,
        session_id: Option<u64>,
        to_server: bool,
        cx: &mut SmbContext<'_>,
    ) {
        if to_server {
            let slot = self.allocate();
            let Some(pending) = self.slab.get_mut(slot as usize) else { return };
            pending.reset();
            let row = &mut pending.row;
            row.set_protocol(2);
            row.set_encrypted(true);
            if let Some(id) = session_id {
                row.set_session_id(id);
            }
            cx.pairing.start(pending, message, true);
            cx.pairing.add_in_flight(pending);
            self.sealed.push_back(slot);
            if self.sealed.len() > cx.limits.pending
                && let Some(lost) = self.sealed.pop_front()
            {
                cx.out.coverage.operations_discarded += 1;
                self.give_up(lost, message.start, cx);
            }
            return;
        }
        let times = ReplyTimes::from_message(message);
        let Some((slot, pending)) = self
            .sealed
            .pop_front()
            .and_then(|slot| Some((slot, self.slab.get_mut(slot as usize)?)))
        else {
            cx.out.coverage.replies_unmatched += 1;
            if !cx.pairing.requests_seen {
                let mut row = Operation::default();
                row.set_protocol(2);
                row.set_encrypted(true);
                if let Some(id) = session_id {
                    row.set_session_id(id);
                }
                cx.pairing.reply_alone(cx.out, row, &times, true, Effect::None);
            }
            return;
        };
        cx.pairing.finish(cx.out, pending, &times, true, Effect::None);
        self.free.push(slot);
    }

    /// Credits that a reply grants outside of pairing.
    pub fn grant(&mut self, credits: i64, pairing: &mut Pairing) {
        self.credits = self.credits.map(|held| held + credits);
        if let Some(held) = self.credits {
            let most = &mut pairing.table.credits_max;
            *most = (*most).max(held.max(0) as u64);
        }
    }

    /// The connection begins with its first byte: the client holds one credit.
    pub fn begin_credits(&mut self) {
        self.credits = Some(1);
    }

    /// The connection ends: everything that waits becomes a row.
    pub fn end(&mut self, time: i64, cx: &mut SmbContext<'_>) {
        self.expire(0, u64::MAX, cx);
        self.settle_cut_replies(0, u64::MAX, cx);
        self.settle_gaps(u64::MAX, cx);
        let mut slots = self.waiting.drain();
        slots.extend(self.sealed.drain(..).map(|slot| (0, slot)));
        for (_, slot) in slots {
            self.give_up(slot, time, cx);
        }
    }

    fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slab.push(Pending::default());
            self.slab.len() as u32 - 1
        })
    }
}

/// Commands whose TreeId means something (MS-SMB2 section 2.2.1.2).
fn has_tree(command: Command) -> bool {
    !matches!(
        command,
        Command::NEGOTIATE
            | Command::SESSION_SETUP
            | Command::LOGOFF
            | Command::TREE_CONNECT
            | Command::ECHO
            | Command::CANCEL
            | Command::OPLOCK_BREAK
    )
}

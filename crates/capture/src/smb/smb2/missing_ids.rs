//! Operations of which a capture cut to headers has neither request nor reply.
//!
//! Requests that begin late in a long segment are beyond the snap length, and so are the later
//! members of their compound replies. Only the head of the reply is left: its NextCommand says that
//! a member follows (MS-SMB2 section 2.2.1). The numbers that the client's requests skip there show
//! how many members follow, because each number belongs to an operation.
//!
//! Owns what is inferred about these operations and their rows. `cut_compounds` handles what
//! follows a request that was captured.

use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::Header;

use super::cut_compounds::{MEMBER_BYTES, Rest, Tail};
use super::{EARLY_PACKETS, Smb2, Wrapping};
use crate::outcome::Effect;
use crate::smb::context::SmbContext;
use crate::smb::pending::ReplyTimes;
use crate::stream::Message;

/// Gaps that are kept at once; beyond that the oldest are settled early.
const GAPS_MAX: usize = 256;

/// Numbers that the requests of a connection skipped.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The first of them.
    first: u64,
    /// The one behind them.
    end: u64,
    /// Whether that number of requests fits into the missing bytes, so that each used one number;
    /// otherwise some used several.
    is_one_each: bool,
    /// Global number of the packet behind it.
    order: u64,
    /// The cut compound before them, to which the first of the numbers belong.
    pub tail: Option<Tail>,
    /// Replies to some of them, and the cut end of a compound reply.
    answered: Vec<(u64, Option<CutEnding>)>,
}

/// The end of a compound's reply of which neither the headers nor the requests were captured.
#[derive(Clone, Copy, Debug)]
pub struct CutEnding {
    pub rest: Rest,
    pub times: ReplyTimes,
    /// Session id of the last captured member.
    pub session_id: u64,
    /// How it was wrapped.
    pub wrapping: Wrapping,
}

impl Smb2 {
    /// The numbers from `id` on and the bytes from `sequence` on are missing before a request.
    #[cold]
    pub(super) fn note_missing_ids(
        &mut self,
        id: u64,
        sequence: u32,
        next: &Header,
        message: &Message<'_>,
        order: u64,
    ) {
        let numbers = next.message_id.wrapping_sub(id);
        let bytes = message.sequence.wrapping_sub(sequence);
        // Lower numbers belong to requests that were sent out of order, or that cancel others.
        let is_ahead = numbers <= u64::from(u32::MAX) && bytes <= i32::MAX as u32;
        let is_followed = self.tail.as_ref().is_some_and(|tail| tail.is_followed_by(message));
        if !is_ahead || is_followed || next.command == Command::CANCEL {
            return;
        }
        self.gaps.push_back(Gap {
            first: id,
            end: next.message_id,
            is_one_each: numbers <= u64::from(bytes) / MEMBER_BYTES as u64,
            order,
            tail: self.tail.take(),
            answered: Vec::new(),
        });
    }

    /// A reply whose request was not captured; `ending` is what follows it behind the cut.
    #[cold]
    pub(super) fn note_reply_in_gap(
        &mut self,
        id: u64,
        ending: Option<CutEnding>,
        cx: &mut SmbContext<'_>,
    ) {
        let gap = self.gaps.iter_mut().rev().find(|gap| (gap.first..gap.end).contains(&id));
        match (gap, ending) {
            (Some(gap), _) => gap.answered.push((id, ending)),
            // The numbers show nothing, but there is one member.
            (None, Some(ending)) => self.emit_uncaptured(id.wrapping_add(1), &ending, cx),
            (None, None) => {}
        }
    }

    /// Emits the rows of gaps that are so old that all replies have come, or that exceed the limit.
    #[cold]
    pub(super) fn settle_gaps(&mut self, order: u64, cx: &mut SmbContext<'_>) {
        // A reply without a request is held back for a while before it counts as one.
        while self.gaps.len() > GAPS_MAX
            || self
                .gaps
                .front()
                .is_some_and(|gap| gap.order.saturating_add(2 * EARLY_PACKETS) < order)
        {
            let Some(mut gap) = self.gaps.pop_front() else { return };
            gap.answered.sort_unstable_by_key(|&(id, _)| id);
            if let Some(tail) = gap.tail.take() {
                self.emit_tail(&gap, &tail, cx);
            }
            let next = gap.answered.iter().skip(1).map(|&(id, _)| id).chain([gap.end]);
            for ((id, ending), next) in gap.answered.iter().zip(next) {
                let Some(ending) = ending else { continue };
                let left = next.saturating_sub(id.saturating_add(1));
                let members = if gap.is_one_each { ending.rest.members() } else { 1 };
                for more in 1..=members.min(left) {
                    self.emit_uncaptured(id.wrapping_add(more), ending, cx);
                }
            }
        }
    }

    /// Emits the rows of the members of a compound up to the first number that is known to belong
    /// to another request; its first missing member has its row already.
    fn emit_tail(&mut self, gap: &Gap, tail: &Tail, cx: &mut SmbContext<'_>) {
        if !gap.is_one_each {
            return;
        }
        let is_later = |&&(id, _): &&(u64, Option<CutEnding>)| id > tail.first_id;
        let next = gap.answered.iter().find(is_later).map_or(gap.end, |&(id, _)| id);
        for more in 1..tail.members(next) {
            self.emit_cut_member(tail, more, cx);
        }
    }

    /// Emits the row of an operation of which nothing was captured.
    fn emit_uncaptured(&mut self, id: u64, ending: &CutEnding, cx: &mut SmbContext<'_>) {
        if self.waiting.get(id).is_some() {
            return;
        }
        cx.out.coverage.members_not_captured += 1;
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_message_id(id);
        if ending.session_id != 0 {
            row.set_session_id(ending.session_id);
        }
        row.set_encrypted(ending.wrapping.encrypted);
        row.set_compressed(ending.wrapping.compressed);
        cx.pairing.reply_alone(cx.out, row, &ending.times, false, Effect::None);
    }
}

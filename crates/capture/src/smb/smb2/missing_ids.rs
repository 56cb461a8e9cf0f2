//! Operations of which a capture cut to headers has neither request nor reply.
//!
//! Requests that begin late in a long segment lie behind the cut, and so do the later members of
//! their compounds' replies. What is left of those is the head of the reply: NextCommand says that
//! a member follows it (MS-SMB2 section 2.2.1). How many do, the numbers tell that the client's
//! requests left out there, each of which is an operation's.
//!
//! Owns what is concluded of them and their rows. What follows a request that was captured is
//! `behind`'s.

use smbscope_tables::operation::Operation;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::Header;

use super::cut_compounds::{MEMBER_BYTES, Rest, Tail};
use super::{EARLY_PACKETS, Smb2, Wrapping};
use crate::outcome::{Effect, Output};
use crate::smb::pairing::Link;
use crate::smb::pending::Seen;
use crate::stream::Message;

/// Gaps that are looked at together; of more the oldest are settled before their time.
const GAPS: usize = 256;

/// Numbers that the requests of a connection left out.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The first of them.
    first: u64,
    /// The one behind them.
    end: u64,
    /// Whether so many requests have room where they are missing, so that each number is one's; else
    /// some took several.
    is_one_each: bool,
    /// Global number of the packet behind it.
    order: u64,
    /// The end of the compound before them, whose first numbers they are.
    pub tail: Option<Tail>,
    /// Replies to some of them, and what of the reply's compound lies behind the cut.
    answered: Vec<(u64, Option<Ending>)>,
}

/// The end of a compound's reply of which neither the headers nor the requests were captured.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// Its bytes.
    pub rest: Rest,
    /// The reply.
    pub seen: Seen,
    /// The last member that was captured told the session.
    pub session_id: u64,
    /// How it was wrapped.
    pub wrapping: Wrapping,
}

impl Smb2 {
    /// Before a request the numbers from `id` on were left out, and bytes from `sequence` on.
    #[cold]
    pub(super) fn leave_out(
        &mut self,
        id: u64,
        sequence: u32,
        next: &Header,
        message: &Message<'_>,
        order: u64,
    ) {
        let numbers = next.message_id.wrapping_sub(id);
        let bytes = message.sequence.wrapping_sub(sequence);
        // Lower ones are of requests that were sent out of order, or that cancel others.
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
    pub(super) fn answered_in_gap(
        &mut self,
        id: u64,
        ending: Option<Ending>,
        link: &mut Link,
        out: &mut Output,
    ) {
        let gap = self.gaps.iter_mut().rev().find(|gap| (gap.first..gap.end).contains(&id));
        match (gap, ending) {
            (Some(gap), _) => gap.answered.push((id, ending)),
            // The numbers tell nothing, but one member there is.
            (None, Some(ending)) => self.not_captured(id.wrapping_add(1), &ending, link, out),
            (None, None) => {}
        }
    }

    /// Makes the rows of gaps that are so old that all replies came, or that are too many.
    #[cold]
    pub(super) fn settle_gaps(&mut self, order: u64, link: &mut Link, out: &mut Output) {
        // A reply without a request is held back for a while before it counts as one.
        while self.gaps.len() > GAPS
            || self
                .gaps
                .front()
                .is_some_and(|gap| gap.order.saturating_add(2 * EARLY_PACKETS) < order)
        {
            let Some(mut gap) = self.gaps.pop_front() else { return };
            gap.answered.sort_unstable_by_key(|&(id, _)| id);
            if let Some(tail) = gap.tail.take() {
                self.end_of_tail(&gap, &tail, link, out);
            }
            let next = gap.answered.iter().skip(1).map(|&(id, _)| id).chain([gap.end]);
            for ((id, ending), next) in gap.answered.iter().zip(next) {
                let Some(ending) = ending else { continue };
                let left = next.saturating_sub(id.saturating_add(1));
                let members = if gap.is_one_each { ending.rest.members() } else { 1 };
                for more in 1..=members.min(left) {
                    self.not_captured(id.wrapping_add(more), ending, link, out);
                }
            }
        }
    }

    /// Makes the rows of the members of a compound up to the first number that is known to be another's;
    /// its first member behind the cut has its row.
    fn end_of_tail(&mut self, gap: &Gap, tail: &Tail, link: &mut Link, out: &mut Output) {
        if !gap.is_one_each {
            return;
        }
        let is_later = |&&(id, _): &&(u64, Option<Ending>)| id > tail.first_id;
        let next = gap.answered.iter().find(is_later).map_or(gap.end, |&(id, _)| id);
        for more in 1..tail.members(next) {
            self.behind_long_ago(tail, more, link, out);
        }
    }

    /// Makes the row of an operation of which nothing was captured.
    fn not_captured(&mut self, id: u64, ending: &Ending, link: &mut Link, out: &mut Output) {
        if self.waiting.get(id).is_some() {
            return;
        }
        out.coverage.members_not_captured += 1;
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_message_id(id);
        if ending.session_id != 0 {
            row.set_session_id(ending.session_id);
        }
        row.set_encrypted(ending.wrapping.encrypted);
        row.set_compressed(ending.wrapping.compressed);
        link.reply_alone(out, row, &ending.seen, false, Effect::None);
    }
}

//! Which request a reply answers, and what becomes of requests that are answered or never will be.

use smbscope_wire::smb1::{self, Command, Header};

use super::early_replies::{self, EarlyReply, may_answer};
use super::exchange::Progress;
use super::member::Answer;
use super::{SEARCHES_MAX, Smb1, key_of};
use crate::smb::context::SmbContext;
use crate::smb::pending::ReplyTimes;
use crate::stream::Message;

/// Where the request of a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It was not seen.
    Nowhere,
    /// The latest of its number.
    Latest,
    /// One whose number is used again.
    Older(usize),
}

impl Smb1 {
    pub(super) fn reply(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        message: &Message<'_>,
        cx: &mut SmbContext<'_>,
    ) {
        let times = ReplyTimes::from_message(message);
        let key = key_of(header);
        if self.answers(key, header.command) {
            self.answer(view, header, &times, cx);
        } else if !self.refuses_acknowledgement(key, header) {
            self.keep(view, key, times, cx.out.order);
        }
        if cx.pairing.should_look_for_lost(self.waiting.len()) {
            self.remove_if_lost(u64::MAX, times.end_or_start(), cx.pairing);
        }
        if !self.early.is_empty() {
            self.expire(
                cx.limits.early,
                cx.out.order.saturating_sub(early_replies::EARLY_PACKETS),
                cx,
            );
        }
    }

    pub(super) fn answer(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        times: &ReplyTimes,
        cx: &mut SmbContext<'_>,
    ) {
        let key = key_of(header);
        let (slot, place) = match self.request_of(key, header.command, times) {
            Some(found) => found,
            None => (self.orphan(view, header, key, cx.out), Place::Nowhere),
        };
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        match exchange.reply(view, header, times, cx.pairing) {
            Progress::Done => {
                match place {
                    Place::Latest => self.take(key, times.start, cx),
                    Place::Older(at) => self.take_older(key, at, times.start, cx),
                    Place::Nowhere => None,
                };
                self.complete(slot, times.end_or_start(), cx);
            }
            Progress::RawBlock => self.raw_write = Some(key),
            // The rest of a reply without request.
            Progress::More if place == Place::Nowhere => {
                if let Some(lost) = self.waiting.insert(key, slot) {
                    self.close(lost, times.start, cx);
                }
            }
            Progress::More => {}
        }
    }

    /// The request that a reply answers.
    fn request_of(&self, key: u32, command: Command, times: &ReplyTimes) -> Option<(u32, Place)> {
        let &slot = self.waiting.get(&key)?;
        let exchange = self.slab.get(slot as usize)?;
        if may_answer(exchange, command, times) {
            return Some((slot, Place::Latest));
        }
        let at = self.older(exchange, |older| may_answer(older, command, times))?;
        Some((*exchange.older.get(at)?, Place::Older(at)))
    }

    /// Takes the latest request of a number out of those that wait. Those that were sent before
    /// it have no reply.
    pub(super) fn take(&mut self, key: u32, time: i64, cx: &mut SmbContext<'_>) -> Option<u32> {
        let slot = self.waiting.remove(&key)?;
        if self.negotiate == Some(key) {
            self.negotiate = None;
        }
        let exchange = self.slab.get_mut(slot as usize)?;
        for lost in std::mem::take(&mut exchange.older) {
            self.close(lost, time, cx);
        }
        Some(slot)
    }

    /// The same for a request whose number is used again.
    pub(super) fn take_older(
        &mut self,
        key: u32,
        at: usize,
        time: i64,
        cx: &mut SmbContext<'_>,
    ) -> Option<u32> {
        let latest = *self.waiting.get(&key)?;
        let exchange = self.slab.get_mut(latest as usize)?;
        let mut lost: Vec<u32> = exchange.older.drain(..=at).collect();
        let slot = lost.pop();
        for lost in lost {
            self.close(lost, time, cx);
        }
        slot
    }

    /// Emits an exchange that is answered; locks sent before it that are not must be waiting.
    pub(super) fn complete(&mut self, slot: u32, time: i64, cx: &mut SmbContext<'_>) {
        if !self.locks.is_empty() {
            self.locks.retain(|&lock| lock != slot);
            let sequence = self.sequence_of(slot);
            let is_alone = self.slab.get(slot as usize).is_none_or(|exchange| exchange.alone);
            let slab = &mut self.slab;
            self.locks.retain(|&lock| {
                let Some(exchange) = slab.get_mut(lock as usize) else { return false };
                let overtaken = !is_alone && exchange.sequence < sequence;
                if overtaken {
                    exchange.mark_waiting(time, cx.pairing);
                }
                !overtaken
            });
        }
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            for member in exchange.members() {
                if let Answer::Search(number) = member.answer
                    && let Some(tree) = member.pending.row.tree_id()
                {
                    if self.searches.len() >= SEARCHES_MAX {
                        self.searches.clear();
                    }
                    self.searches.insert((tree, number), member.pending.name.clone());
                }
                match (member.opened(), &member.answer) {
                    (Some((fid, uid)), Answer::Open(_)) => drop(self.owners.insert(fid, uid)),
                    (Some((fid, _)), Answer::Close) => drop(self.owners.remove(&fid)),
                    _ => {}
                }
            }
            exchange.finish(cx);
        }
        self.free.push(slot);
    }

    /// Endpoints an exchange that is not answered, or only in part. It is no longer in `waiting`.
    pub(super) fn close(&mut self, slot: u32, time: i64, cx: &mut SmbContext<'_>) {
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        let key = exchange.key;
        for lost in std::mem::take(&mut exchange.older) {
            self.close_one(lost, time, cx);
        }
        for expected in [&mut self.negotiate, &mut self.raw_read, &mut self.raw_write] {
            if *expected == Some(key) {
                *expected = None;
            }
        }
        self.close_one(slot, time, cx);
    }

    pub(super) fn close_one(&mut self, slot: u32, time: i64, cx: &mut SmbContext<'_>) {
        let early = self.take_early(slot);
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        if let Some((view, header, times)) = early.as_ref().and_then(EarlyReply::parts) {
            // Its reply came before it.
            exchange.reply(view, &header, &times, cx.pairing);
        }
        if exchange.is_begun() {
            self.complete(slot, time, cx);
            return;
        }
        if exchange.headless {
            cx.out.coverage.messages_malformed += 1;
            exchange.discard(time, cx.pairing);
        } else if !exchange.alone {
            let count = exchange.members().len() as u64;
            cx.out.coverage.operations_unanswered += count;
            cx.pairing.table.unanswered += count;
            exchange.give_up(time, cx);
        }
        self.locks.retain(|&lock| lock != slot);
        self.free.push(slot);
    }
}

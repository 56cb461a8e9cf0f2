//! Which request a reply answers, and what becomes of requests that are answered or never will be.

use smbscope_wire::smb1::{self, Command, Header};

use super::early_replies::{self, Early, may_answer};
use super::exchange::Progress;
use super::member::Answer;
use super::{Smb1, key_of};
use crate::limits::Limits;
use crate::outcome::Output;
use crate::smb::pairing::Link;
use crate::smb::pending::Seen;
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
        link: &mut Link,
        out: &mut Output,
        limits: &Limits,
    ) {
        let seen = Seen::of(message);
        let key = key_of(header);
        if self.answers(key, header.command) {
            self.answer(view, header, &seen, link, out);
        } else if !self.refuses_acknowledgement(key, header) {
            self.keep(view, key, seen, out.order);
        }
        if link.looks_for_lost(self.waiting.len()) {
            self.arrive_lost(u64::MAX, seen.end_or_start(), link);
        }
        if !self.early.is_empty() {
            self.expire(
                limits.early,
                out.order.saturating_sub(early_replies::EARLY_PACKETS),
                link,
                out,
            );
        }
    }

    pub(super) fn answer(
        &mut self,
        view: smb1::Message<'_>,
        header: &Header,
        seen: &Seen,
        link: &mut Link,
        out: &mut Output,
    ) {
        let key = key_of(header);
        let (slot, place) = match self.request_of(key, header.command, seen) {
            Some(found) => found,
            None => (self.orphan(view, header, key, out), Place::Nowhere),
        };
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        match exchange.reply(view, header, seen, link) {
            Progress::Done => {
                match place {
                    Place::Latest => self.take(key, seen.start, link, out),
                    Place::Older(at) => self.take_older(key, at, seen.start, link, out),
                    Place::Nowhere => None,
                };
                self.complete(slot, seen.end_or_start(), link, out);
            }
            Progress::RawBlock => self.raw_write = Some(key),
            // The rest of a reply without request.
            Progress::More if place == Place::Nowhere => {
                if let Some(lost) = self.waiting.insert(key, slot) {
                    self.close(lost, seen.start, link, out);
                }
            }
            Progress::More => {}
        }
    }

    /// The request that a reply answers.
    fn request_of(&self, key: u32, command: Command, seen: &Seen) -> Option<(u32, Place)> {
        let &slot = self.waiting.get(&key)?;
        let exchange = self.slab.get(slot as usize)?;
        if may_answer(exchange, command, seen) {
            return Some((slot, Place::Latest));
        }
        let at = self.older(exchange, |older| may_answer(older, command, seen))?;
        Some((*exchange.older.get(at)?, Place::Older(at)))
    }

    /// Takes the latest request of a number out of those that wait. Those that were sent before
    /// it have no reply.
    pub(super) fn take(
        &mut self,
        key: u32,
        time: i64,
        link: &mut Link,
        out: &mut Output,
    ) -> Option<u32> {
        let slot = self.waiting.remove(&key)?;
        if self.negotiate == Some(key) {
            self.negotiate = None;
        }
        let exchange = self.slab.get_mut(slot as usize)?;
        for lost in std::mem::take(&mut exchange.older) {
            self.close(lost, time, link, out);
        }
        Some(slot)
    }

    /// The same for a request whose number is used again.
    pub(super) fn take_older(
        &mut self,
        key: u32,
        at: usize,
        time: i64,
        link: &mut Link,
        out: &mut Output,
    ) -> Option<u32> {
        let latest = *self.waiting.get(&key)?;
        let exchange = self.slab.get_mut(latest as usize)?;
        let mut lost: Vec<u32> = exchange.older.drain(..=at).collect();
        let slot = lost.pop();
        for lost in lost {
            self.close(lost, time, link, out);
        }
        slot
    }

    /// Emits an exchange that is answered; locks sent before it that are not must be waiting.
    pub(super) fn complete(&mut self, slot: u32, time: i64, link: &mut Link, out: &mut Output) {
        if !self.locks.is_empty() {
            self.locks.retain(|&lock| lock != slot);
            let sequence = self.sequence_of(slot);
            let is_alone = self.slab.get(slot as usize).is_none_or(|exchange| exchange.alone);
            let slab = &mut self.slab;
            self.locks.retain(|&lock| {
                let Some(exchange) = slab.get_mut(lock as usize) else { return false };
                let overtaken = !is_alone && exchange.sequence < sequence;
                if overtaken {
                    exchange.wait(time, link);
                }
                !overtaken
            });
        }
        if let Some(exchange) = self.slab.get_mut(slot as usize) {
            for member in exchange.members() {
                match (member.opened(), &member.answer) {
                    (Some((fid, uid)), Answer::Open(_)) => drop(self.owners.insert(fid, uid)),
                    (Some((fid, _)), Answer::Close) => drop(self.owners.remove(&fid)),
                    _ => {}
                }
            }
            exchange.finish(link, out);
        }
        self.free.push(slot);
    }

    /// Ends an exchange that is not answered, or only in part. It is no longer in `waiting`.
    pub(super) fn close(&mut self, slot: u32, time: i64, link: &mut Link, out: &mut Output) {
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        let key = exchange.key;
        for lost in std::mem::take(&mut exchange.older) {
            self.close_one(lost, time, link, out);
        }
        for expected in [&mut self.negotiate, &mut self.raw_read, &mut self.raw_write] {
            if *expected == Some(key) {
                *expected = None;
            }
        }
        self.close_one(slot, time, link, out);
    }

    pub(super) fn close_one(&mut self, slot: u32, time: i64, link: &mut Link, out: &mut Output) {
        let early = self.take_early(slot);
        let Some(exchange) = self.slab.get_mut(slot as usize) else { return };
        if let Some((view, header, seen)) = early.as_ref().and_then(Early::parts) {
            // Its reply came before it.
            exchange.reply(view, &header, &seen, link);
        }
        if exchange.is_begun() {
            self.complete(slot, time, link, out);
            return;
        }
        if exchange.headless {
            out.coverage.messages_malformed += 1;
            exchange.drop(time, link);
        } else if !exchange.alone {
            let count = exchange.members().len() as u64;
            out.coverage.operations_unanswered += count;
            link.table.unanswered += count;
            exchange.give_up(time, link, out);
        }
        self.locks.retain(|&lock| lock != slot);
        self.free.push(slot);
    }
}

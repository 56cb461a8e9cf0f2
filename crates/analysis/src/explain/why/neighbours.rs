//! Other requests on the connection of the explained operation: which were in flight with it, and
//! whether it waited for them or they for it.
//!
//! A server may answer in any order (MS-SMB2 section 3.3.5.2), so a request that is answered just after
//! those sent before it, while none sent after it is answered, waited in a line with them. A reply that
//! comes just after the next request ended a long silence was released by that request. The server may
//! be a proxy: then the same request is on a connection from its address to another server.

use super::data::{Blocking, Brief, Neighbours};
use super::row::{Columns, Row};
use crate::summary::slowest::Slowest;

/// Neighbours that are shown.
const SHOWN_MAX: usize = 8;
/// Shorter silences do not show that a request released a reply, ns.
const SILENCE_MIN_NS: i64 = 100_000_000;
/// How long a request without a reply is followed, ns.
const UNANSWERED_NS: i64 = 10_000_000_000;

/// Neighbours while the rows stream by.
pub(super) struct NeighbourRows {
    /// The times of the target: request sent, last byte of it, first byte of the reply, end.
    times: Option<Times>,
    found: Neighbours,
    earlier: Slowest<Brief>,
    during: Slowest<Brief>,
    /// The last answer to the requests that were sent before it and answered while it waited, and the
    /// one of these requests that took longest.
    last_answer: Option<(i64, Option<u64>)>,
    longest: Option<(i64, Brief)>,
    /// The first answer to a request that was sent after it.
    first_overtaking: Option<i64>,
    /// Requests in the first nine tenths of its wait, and of these, those after the first tenth.
    sent_early: u64,
    sent_in_silence: u64,
    /// The last request before its reply, in the last hundredth of its wait.
    last_sent: Option<(i64, Brief)>,
    forwarded: Option<(i64, Brief)>,
    /// How long replies to other requests were on the wire while it waited.
    replies_ns: i64,
}

#[derive(Clone, Copy)]
struct Times {
    start: i64,
    sent: i64,
    reply: i64,
    end: i64,
}

/// The wait for other requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    /// Whether replies to any requests occupied the connection. Otherwise requests before it were
    /// answered first, and the time is that from the last byte of the request to the last of these
    /// answers.
    pub(super) is_replies: bool,
    pub(super) ns: i64,
    /// The frame of the last answer.
    pub(super) frame: Option<u64>,
}

impl NeighbourRows {
    pub(super) fn new(target: &Row) -> NeighbourRows {
        let times = target.request_start.map(|start| {
            let sent = target.request_end.unwrap_or(start).max(start);
            let unanswered = start.saturating_add(UNANSWERED_NS);
            let reply = target.response_start.unwrap_or(unanswered).max(sent);
            Times { start, sent, reply, end: target.end().unwrap_or(unanswered).max(reply) }
        });
        NeighbourRows {
            times,
            found: Neighbours::default(),
            earlier: Slowest::new(SHOWN_MAX),
            during: Slowest::new(SHOWN_MAX),
            last_answer: None,
            longest: None,
            first_overtaking: None,
            sent_early: 0,
            sent_in_silence: 0,
            last_sent: None,
            forwarded: None,
            replies_ns: 0,
        }
    }

    pub(super) fn see(&mut self, columns: &Columns, row: usize, target: &Row) {
        let Some(times) = self.times else { return };
        if columns.connection.get(row) != target.brief.connection {
            self.forwarded(columns, row, target, times);
            return;
        }
        if target.brief.connection.is_none() || target.is(columns, row) {
            return;
        }
        // Members of a compound have no time of their own.
        let Some(start) = columns.start(row) else { return };
        let end = columns.end(row).filter(|end| *end >= start);
        if start >= times.end || end.is_some_and(|end| end <= times.start) {
            return;
        }
        let found = &mut self.found;
        if columns.waits.is_set(row) {
            found.waiting += 1;
            return;
        }
        // A request without a reply may be one that gets none, such as Cancel.
        let Some(end) = end else { return };
        if let Some(reply) = columns.response_start.get(row) {
            // A reply on one connection follows another one, so they add up.
            self.replies_ns += (end.min(times.reply) - reply.max(times.sent)).max(0);
        }
        let overlap = end.min(times.end) - start.max(times.start);
        let brief = || columns.brief(row, times.start);
        let is_answered = end > times.sent && end <= times.reply;
        if start < times.start {
            found.in_flight += 1;
            self.earlier.offer(overlap, brief);
            if is_answered {
                found.in_flight_answered += 1;
                if self.last_answer.is_none_or(|(last, _)| end > last) {
                    self.last_answer = Some((end, columns.response_frame.get(row)));
                }
                if self.longest.as_ref().is_none_or(|(longest, _)| end - start > *longest) {
                    self.longest = Some((end - start, brief()));
                }
            }
        } else {
            found.sent += 1;
            let wait = times.reply - times.sent;
            let before_reply = times.reply - start;
            self.sent_early += u64::from(before_reply >= wait / 10);
            self.sent_in_silence +=
                u64::from(start > times.sent + wait / 10 && before_reply > wait / 100);
            if (0..=wait / 100).contains(&before_reply)
                && self.last_sent.as_ref().is_none_or(|(last, _)| start > *last)
            {
                self.last_sent = Some((start, brief()));
            }
            self.during.offer(overlap, brief);
            if is_answered {
                found.sent_answered += 1;
                if self.first_overtaking.is_none_or(|first| end < first) {
                    self.first_overtaking = Some(end);
                }
            }
        }
    }

    /// The same request, from the address of the target's server.
    fn forwarded(&mut self, columns: &Columns, row: usize, target: &Row, times: Times) {
        let Some(start) = columns.start(row) else { return };
        let brief = &target.brief;
        if start < times.start
            || start >= times.end
            || columns.client.get(row) != target.server.as_deref()
            || target.server.is_none()
            || (columns.server.get(row) == target.server.as_deref()
                && columns.server_port.get(row) == target.server_port)
            || columns.command.get(row) != brief.command.as_deref()
            || columns.detail.get(row) != brief.detail.as_deref()
            || columns.path.get(row) != brief.path.as_deref()
            || columns.elapsed_ns.get(row).is_none()
        {
            return;
        }
        if self.forwarded.as_ref().is_none_or(|(first, _)| start < *first) {
            self.forwarded = Some((start, columns.brief(row, times.start)));
        }
    }

    pub(super) fn finish(self, is_answered: bool) -> (Neighbours, Option<Behind>) {
        let mut found = self.found;
        let (mut earlier, mut during) = (self.earlier.finish(), self.during.finish());
        // Half of the room is for each kind; what one does not need is for the other one.
        let half = SHOWN_MAX / 2;
        earlier.truncate(half.max(SHOWN_MAX.saturating_sub(during.len())));
        during.truncate(SHOWN_MAX - earlier.len());
        found.shown = earlier.into_iter().chain(during).collect();
        found.shown.sort_by_key(|brief| (brief.at_ns, brief.operation));
        found.left_out = found.in_flight + found.sent - found.shown.len() as u64;
        let is_silent = is_answered
            && self.sent_in_silence == 0
            && self.times.is_some_and(|times| times.reply - times.sent >= SILENCE_MIN_NS);
        found.released_by = self.last_sent.map(|(_, brief)| brief).filter(|_| is_silent);
        let wait = self.times.map_or(0, |times| times.reply - times.sent);
        let replies = Behind { is_replies: true, ns: self.replies_ns, frame: None };
        let behind = match (self.times, self.last_answer) {
            _ if is_answered && wait > 0 && self.replies_ns >= wait / 2 => Some(replies),
            (Some(times), Some((last, frame))) if is_answered && found.released_by.is_none() => {
                let ns = last - times.sent;
                let is_in_order = self.first_overtaking.is_none_or(|first| first > last);
                // Most of the wait, and an answer soon after.
                let is_soon = ns >= wait / 2 && wait - ns <= wait / 5;
                let one = Behind { is_replies: false, ns, frame };
                (is_in_order && is_soon).then_some(one)
            }
            _ => None,
        };
        found.blocking = match () {
            () if behind.is_some_and(|behind| behind.is_replies) => Blocking::Replies,
            () if behind.is_some() => Blocking::Behind,
            () if found.sent_answered > 0 => Blocking::OnlyThis,
            () if found.in_flight + found.sent == 0 => Blocking::Alone,
            () if self.sent_early > 0 && is_answered => Blocking::OthersWaited,
            () => Blocking::Unknown,
        };
        found.forwarded = self.forwarded.map(|(_, brief)| brief);
        found.blocker =
            self.longest.map(|(_, brief)| brief).filter(|_| found.blocking == Blocking::Behind);
        (found, behind)
    }
}

//! One client: what it does next follows from what it has received.

use std::collections::VecDeque;

use super::CHAIN_MAX_NS;
use super::request::{Call, point};
use super::role::Role;
use crate::rows::busy_time::BusyTime as Union;

/// Replies that are remembered. A client rarely has more requests under way; of one that has, the
/// oldest that is left stands for those before.
const RECENT_MAX: usize = 64;

/// One execution of a scenario, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) scenario: u32,
    pub(crate) is_counted: bool,
    /// Whether it is due at its time, and not as soon as the one before has ended.
    pub(crate) is_paced: bool,
    pub(crate) scheduled_at: i64,
    pub(crate) started_at: i64,
    pub(crate) ended_at: i64,
}

/// One execution that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) is_counted: bool,
    /// From the time it was scheduled to its end, ns.
    pub(crate) response_ns: (i64, i64),
    /// How much later than scheduled it began, ns.
    pub(crate) late_ns: (i64, i64),
}

/// A client.
#[derive(Default)]
pub(crate) struct Client {
    /// Ends of operations: when they were, when they would be, and how much longer the client then takes.
    recent: VecDeque<(i64, i64, i64)>,
    /// The scenario under way, and when it would have begun.
    run: Option<u64>,
    execution: Option<(Execution, i64)>,
    /// End of the last reply: when it was, when it would be.
    last: Option<(i64, i64)>,
    waiting: (Union, Union),
    /// Time in which its connections were busy, ns.
    busy_ns: i64,
    /// The last request's open, whether another may go along with it, and when it was answered.
    chain: Option<(Option<(u32, u64)>, i64)>,
}

impl Client {
    /// Goes on to an operation of this scenario; gives the one that this ends.
    pub(crate) fn turn(
        &mut self,
        run: Option<u64>,
        execution: Option<&Execution>,
    ) -> Option<(Ended, u32)> {
        if run == self.run {
            return None;
        }
        self.run = run;
        let ended = self.execution.take().map(|(execution, began)| {
            let (was, then) = self.last.unwrap_or((execution.started_at, began));
            // What the client did after the last reply takes as long as it did.
            let end = point(then + (execution.ended_at - was).max(0));
            self.last = Some((execution.ended_at.max(was), end));
            let scheduled = execution.scheduled_at;
            let due = match execution.is_paced {
                true => scheduled,
                false => point(began - (execution.started_at - scheduled)),
            };
            let ended = Ended {
                is_counted: execution.is_counted,
                response_ns: (execution.ended_at - scheduled, end - due),
                late_ns: (execution.started_at - scheduled, began - due),
            };
            (ended, execution.scenario)
        });
        if let Some(execution) = execution {
            let began = match self.last {
                Some((was, then)) if !execution.is_paced => {
                    point(then + (execution.started_at - was))
                }
                // The scenario before held it up, and may not then.
                Some((was, then)) if was > execution.scheduled_at && was != then => {
                    execution.scheduled_at.max(then)
                }
                // It was as late as it was for other reasons: the generator's.
                Some((was, then)) if was != then => execution.started_at.max(then),
                _ => execution.started_at,
            };
            self.execution = Some((*execution, began));
            self.recent.clear();
            self.recent.push_back((execution.started_at, began, 0));
        }
        ended
    }

    /// The scenario of that run, if it is the one under way.
    #[inline]
    pub(crate) fn execution(&self, run: u64) -> Option<Execution> {
        let (execution, _) = self.execution.as_ref().filter(|_| self.run == Some(run))?;
        Some(*execution)
    }

    /// When an operation that was sent at `start` would be sent, where the client takes so much longer before it,
    /// ns. What it takes less is no more than it took.
    pub(crate) fn then(&mut self, start: i64, more_ns: i64) -> i64 {
        if self.recent.is_empty() {
            // The first one goes when it went; others that were sent with it, too.
            self.recent.push_back((start, start, 0));
        }
        let before = self.recent.iter().rev().find(|one| one.0 <= start);
        match before.or(self.recent.front()) {
            Some((was, then, owed_ns)) => {
                let gap_ns = start - was;
                let more_ns = (more_ns + owed_ns).max(-gap_ns.max(0));
                point(then.saturating_add(gap_ns).saturating_add(more_ns))
            }
            None => start,
        }
    }

    /// End of the last reply, as it would be.
    pub(crate) fn last_then(&self) -> Option<i64> {
        self.last.map(|(_, then)| then)
    }

    /// An operation ended, after which the client takes so much longer, ns.
    pub(crate) fn ended(&mut self, was: i64, then: i64, more_ns: i64) {
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        // In the order of their ends as the client sees them; captures of both sides mix them.
        if self.recent.back().is_none_or(|last| last.0 <= was) {
            self.recent.push_back((was, then, more_ns));
        } else {
            let place = self.recent.iter().rposition(|other| other.0 <= was);
            self.recent.insert(place.map_or(0, |place| place + 1), (was, then, more_ns));
        }
        self.last = match self.last {
            Some((last, last_then)) => Some((last.max(was), last_then.max(then))),
            None => Some((was, then)),
        };
    }

    /// Whether a request could have gone along with the one before: on the same open, at once, and none
    /// of them moves data or ends on its own terms.
    pub(crate) fn follows(&self, call: &Call, start: i64) -> bool {
        let is_next = matches!(call.role, Role::Close | Role::List | Role::Set | Role::Other);
        is_next
            && self.chain.is_some_and(|(handle, ended)| {
                handle.is_some()
                    && handle == call.handle
                    && (0..CHAIN_MAX_NS).contains(&(start - ended))
            })
    }

    /// It made a request that was answered at `end`, or would not make it: then nothing goes along with it.
    pub(crate) fn did(&mut self, call: &Call, end: i64, is_sent: bool) {
        let is_chain =
            is_sent && matches!(call.role, Role::Create | Role::List | Role::Set | Role::Other);
        self.chain = Some((call.handle.filter(|_| is_chain), end));
    }

    /// It waited for an operation: begin and duration, as it was and as it would be, and how long the operation's
    /// connection was busy with it.
    pub(crate) fn waited(&mut self, today: (i64, i64), then: (i64, i64), busy_ns: i64) {
        self.busy_ns = self.busy_ns.saturating_add(busy_ns);
        self.waiting.0.add(today.0, today.0 + today.1);
        self.waiting.1.add(then.0, then.0 + then.1);
    }

    /// How much less its connections would be busy, ns: in proportion to what it waits.
    pub(crate) fn spared_busy_ns(&self) -> f64 {
        let (before, after) = self.waiting();
        self.busy_ns as f64 * (1.0 - after as f64 / before.max(1) as f64)
    }

    /// Time in which something was under way, ns.
    pub(crate) fn waiting(&self) -> (i64, i64) {
        (self.waiting.0.ns(), self.waiting.1.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_follows_the_last_reply_before_it() {
        let mut client = Client::default();
        assert_eq!(client.then(50, 0), 50);
        client.ended(100, 200, 0);
        client.ended(150, 260, 0);
        assert_eq!(client.then(120, 0), 220);
        assert_eq!(client.then(155, 0), 265);
        // The client takes longer, or less: no less than nothing.
        assert_eq!((client.then(155, 7), client.then(155, -9)), (272, 260));
        // Sent before either reply: side by side with the first.
        assert_eq!(client.then(90, 0), 90);
    }

    #[test]
    fn a_scenario_begins_on_time_or_when_the_one_before_has_ended() {
        let of = |at: i64, is_paced| Execution {
            scenario: 0,
            is_counted: true,
            is_paced,
            scheduled_at: at,
            started_at: at,
            ended_at: at + 50,
        };
        let execution = |at| of(at, true);
        let mut client = Client::default();
        assert_eq!(client.turn(Some(1), Some(&execution(1_000))), None);
        client.ended(1_050, 3_000, 0);
        let (ended, _) = client.turn(Some(2), Some(&execution(2_000))).unwrap();
        assert_eq!(ended.response_ns, (50, 2_000));
        client.ended(2_040, 3_040, 0);
        let (ended, _) = client.turn(None, None).unwrap();
        assert_eq!(ended.late_ns, (0, 1_000));
        assert_eq!(ended.response_ns, (50, 1_050));

        // Without a schedule each begins so long after the one before as it did, and is due then.
        let execution = |at| of(at, false);
        let mut client = Client::default();
        client.turn(Some(1), Some(&execution(1_000)));
        client.ended(1_050, 3_000, 0);
        client.turn(Some(2), Some(&execution(1_060)));
        client.ended(1_110, 5_010, 0);
        let (ended, _) = client.turn(None, None).unwrap();
        assert_eq!((ended.late_ns, ended.response_ns), ((0, 0), (50, 2_000)));
    }
}

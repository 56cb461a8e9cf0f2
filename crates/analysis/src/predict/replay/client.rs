//! One client: its next request follows from the replies that it has received.

use std::collections::VecDeque;

use super::CHAIN_MAX_NS;
use super::request::{Request, point};
use super::role::Role;
use crate::rows::busy_time::BusyTime as Union;

/// Replies that are remembered. A client rarely has more requests in flight; if it has, the oldest remembered one
/// represents the earlier ones.
const RECENT_MAX: usize = 64;

/// One execution of a scenario, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) scenario: u32,
    pub(crate) is_counted: bool,
    /// Whether it is due at its scheduled time, and not when the previous one has ended.
    pub(crate) is_paced: bool,
    pub(crate) scheduled_at: i64,
    pub(crate) started_at: i64,
    pub(crate) ended_at: i64,
}

/// The times of one finished execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScenarioTimes {
    pub(crate) is_counted: bool,
    /// From the scheduled start to the end, before and after, ns.
    pub(crate) response_ns: (i64, i64),
    /// How much later than scheduled it began, before and after, ns.
    pub(crate) late_ns: (i64, i64),
}

/// A client.
#[derive(Default)]
pub(crate) struct Client {
    /// Ends of operations: recorded, predicted, and how much longer the client takes afterwards, ns.
    recent: VecDeque<(i64, i64, i64)>,
    /// The current scenario, and its predicted start.
    run: Option<u64>,
    execution: Option<(Execution, i64)>,
    /// End of the last reply: recorded, predicted.
    last: Option<(i64, i64)>,
    /// The last request that was sent: recorded, predicted.
    sent: Option<(i64, i64)>,
    waiting: (Union, Union),
    /// Busy time of its connections, ns.
    busy_ns: i64,
    /// The open of the last request, if another request can join it in a compound, and when it was answered.
    chain: Option<(Option<(u32, u64)>, i64)>,
}

impl Client {
    /// Continues with an operation of this scenario; returns the scenario that ends because of it.
    pub(crate) fn begin_scenario(
        &mut self,
        run: Option<u64>,
        execution: Option<&Execution>,
    ) -> Option<(ScenarioTimes, u32)> {
        if run == self.run {
            return None;
        }
        self.run = run;
        let ended = self.execution.take().map(|(execution, began)| {
            let (was, then) = self.last.unwrap_or((execution.started_at, began));
            // The client takes as long after the last reply as in the recording.
            let end = point(then + (execution.ended_at - was).max(0));
            self.last = Some((execution.ended_at.max(was), end));
            let scheduled = execution.scheduled_at;
            let due = if execution.is_paced {
                scheduled
            } else {
                point(began - (execution.started_at - scheduled))
            };
            let ended = ScenarioTimes {
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
                // The previous scenario delayed it, and may no longer do so.
                Some((was, then)) if was > execution.scheduled_at && was != then => {
                    execution.scheduled_at.max(then)
                }
                // It was late for other reasons, those of the load generator.
                Some((was, then)) if was != then => execution.started_at.max(then),
                _ => execution.started_at,
            };
            self.execution = Some((*execution, began));
            self.recent.clear();
            self.recent.push_back((execution.started_at, began, 0));
        }
        ended
    }

    /// The execution with this number, if it is the current one.
    #[inline]
    pub(crate) fn execution(&self, run: u64) -> Option<Execution> {
        let (execution, _) = self.execution.as_ref().filter(|_| self.run == Some(run))?;
        Some(*execution)
    }

    /// Predicted time at which an operation that was sent at `start` is sent, if the client takes `more_ns` longer before
    /// it. It cannot take less than no time. Requests that follow the same reply are signed one after the other.
    pub(crate) fn send_time(&mut self, start: i64, more_ns: i64) -> i64 {
        if self.recent.is_empty() {
            // The first operation is sent as recorded, and so are those sent together with it.
            self.recent.push_back((start, start, 0));
        }
        let before = self.recent.iter().rev().find(|one| one.0 <= start);
        let Some((was, then, owed_ns)) = before.or(self.recent.front()).copied() else {
            return start;
        };
        let previous = self.sent.filter(|sent| more_ns != 0 && (was..=start).contains(&sent.0));
        let (was, then, more_ns) = match previous {
            Some((sent, sent_then)) => (sent, sent_then, more_ns),
            None => (was, then, more_ns + owed_ns),
        };
        let gap_ns = start - was;
        let more_ns = more_ns.max(-gap_ns.max(0));
        let at = point(then.saturating_add(gap_ns).saturating_add(more_ns));
        self.sent = Some((start, at));
        at
    }

    /// Predicted end of the last reply.
    pub(crate) fn last_then(&self) -> Option<i64> {
        self.last.map(|(_, then)| then)
    }

    /// Adds a reply, after which the client takes `more_ns` longer.
    pub(crate) fn add_reply(&mut self, was: i64, then: i64, more_ns: i64) {
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        // In the order of their ends as seen by the client; captures of both sides mix them.
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

    /// Whether a request could have joined the previous one in a compound: on the same open, immediately after it, and
    /// neither of them moves data or waits for an event.
    pub(crate) fn follows(&self, request: &Request, start: i64) -> bool {
        let is_next = matches!(request.role, Role::Close | Role::List | Role::Set | Role::Other);
        is_next
            && self.chain.is_some_and(|(handle, ended)| {
                handle.is_some()
                    && handle == request.handle
                    && (0..CHAIN_MAX_NS).contains(&(start - ended))
            })
    }

    /// Remembers a request that was answered at `end`. A request that is no longer sent is joined by none.
    pub(crate) fn set_previous(&mut self, request: &Request, end: i64, is_sent: bool) {
        let is_chain =
            is_sent && matches!(request.role, Role::Create | Role::List | Role::Set | Role::Other);
        self.chain = Some((request.handle.filter(|_| is_chain), end));
    }

    /// Adds the wait for an operation: begin and duration, recorded and predicted, and how long the operation's
    /// connection was busy with it.
    pub(crate) fn add_wait(&mut self, today: (i64, i64), then: (i64, i64), busy_ns: i64) {
        self.busy_ns = self.busy_ns.saturating_add(busy_ns);
        self.waiting.0.add(today.0, today.0 + today.1);
        self.waiting.1.add(then.0, then.0 + then.1);
    }

    /// How much less its connections are busy, ns, in proportion to its waits.
    pub(crate) fn spared_busy_ns(&self) -> f64 {
        let (before, after) = self.waiting();
        self.busy_ns as f64 * (1.0 - after as f64 / before.max(1) as f64)
    }

    /// Time during which a request was in flight, recorded and predicted, ns.
    pub(crate) fn waiting(&self) -> (i64, i64) {
        (self.waiting.0.ns(), self.waiting.1.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_follows_the_last_reply_before_it() {
        let answered = || {
            let mut client = Client::default();
            assert_eq!(client.send_time(50, 0), 50);
            client.add_reply(100, 200, 0);
            client.add_reply(150, 260, 0);
            client
        };
        let mut client = answered();
        assert_eq!(client.send_time(120, 0), 220);
        assert_eq!(client.send_time(155, 0), 265);
        // The client takes longer, or less: no less than nothing.
        assert_eq!([7, -9].map(|more| answered().send_time(155, more)), [272, 260]);
        // Sent before either reply: side by side with the first.
        assert_eq!(client.send_time(90, 0), 90);
    }

    #[test]
    fn requests_after_one_reply_are_signed_one_after_the_other() {
        let mut client = Client::default();
        client.add_reply(100, 200, 0);
        // Signed in 40 each, and in 30 more or less.
        let starts = [140, 180, 220];
        assert_eq!(starts.map(|start| client.send_time(start, 30)), [270, 340, 410]);
        client.add_reply(300, 500, 0);
        assert_eq!(starts.map(|start| client.send_time(start + 200, -30)), [510, 520, 530]);
        // A reply in between, after which it is sent as before.
        client.add_reply(425, 600, 0);
        assert_eq!(client.send_time(430, 30), 635);
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
        assert_eq!(client.begin_scenario(Some(1), Some(&execution(1_000))), None);
        client.add_reply(1_050, 3_000, 0);
        let (ended, _) = client.begin_scenario(Some(2), Some(&execution(2_000))).unwrap();
        assert_eq!(ended.response_ns, (50, 2_000));
        client.add_reply(2_040, 3_040, 0);
        let (ended, _) = client.begin_scenario(None, None).unwrap();
        assert_eq!(ended.late_ns, (0, 1_000));
        assert_eq!(ended.response_ns, (50, 1_050));

        // Without a schedule each begins so long after the one before as it did, and is due then.
        let execution = |at| of(at, false);
        let mut client = Client::default();
        client.begin_scenario(Some(1), Some(&execution(1_000)));
        client.add_reply(1_050, 3_000, 0);
        client.begin_scenario(Some(2), Some(&execution(1_060)));
        client.add_reply(1_110, 5_010, 0);
        let (ended, _) = client.begin_scenario(None, None).unwrap();
        assert_eq!((ended.late_ns, ended.response_ns), ((0, 0), (50, 2_000)));
    }
}

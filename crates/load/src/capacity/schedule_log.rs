//! The log of every user's schedule: what was due, begun and ended, at any moment.
//!
//! Owns the count, not the schedule (the workload plans it) nor the users. Every user writes down
//! when its next scenario is due; a snapshot shows the state of the step.
//! Scenarios that are due while their user is still busy are counted by asking the schedule, so
//! that no scenario that was due is forgotten because it never began.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::overload::Snapshot;

/// Due scenarios that are counted ahead for a user that cannot keep up; more do not change the
/// verdict.
const AHEAD_MAX: u64 = 10_000;

/// One user's line.
#[derive(Clone, Copy, Debug)]
struct Line {
    begun: u64,
    on_time: u64,
    ended: u64,
    /// When the first scenario that has not begun is due; none when the user has no more.
    next_due_ns: Option<i64>,
}

/// The log of some users, which any thread may write.
#[derive(Debug)]
pub struct ScheduleLog {
    interval_ns: i64,
    // One lock a user: users never wait for each other, and a line is never seen half written.
    lines: Box<[Mutex<Line>]>,
}

impl ScheduleLog {
    /// For users whose first scenarios are due then (by place in the log), with the schedule's
    /// mean interval.
    pub fn new(interval_ns: i64, first_due_ns: impl IntoIterator<Item = i64>) -> ScheduleLog {
        let line =
            |due_ns| Mutex::new(Line { begun: 0, on_time: 0, ended: 0, next_due_ns: Some(due_ns) });
        ScheduleLog { interval_ns, lines: first_due_ns.into_iter().map(line).collect() }
    }

    /// A user begins the scenario that is due; the one after it is due at `next_due_ns`.
    pub fn begin(&self, user: usize, now_ns: i64, next_due_ns: Option<i64>) {
        if let Some(mut line) = self.line(user) {
            line.begun += 1;
            line.on_time += u64::from(next_due_ns.is_none_or(|due_ns| now_ns < due_ns));
            line.next_due_ns = next_due_ns;
        }
    }

    /// A user ended the scenario that it began, well or not.
    pub fn end(&self, user: usize) {
        if let Some(mut line) = self.line(user) {
            line.ended += 1;
        }
    }

    /// A user has nothing more to do.
    pub fn leave(&self, user: usize) {
        if let Some(mut line) = self.line(user) {
            line.next_due_ns = None;
        }
    }

    /// The state of all users at `time_ns`, which must not lie before what was written last by more
    /// than a timer's error. `following(user, number, due_ns)` returns when the scenario after the
    /// user's scenario `number` (from 0), due at `due_ns`, is due; `None` if there is no other one.
    pub fn snapshot(
        &self,
        time_ns: i64,
        following: impl Fn(usize, u64, i64) -> Option<i64>,
    ) -> Snapshot {
        let mut snapshot =
            Snapshot { time_ns, users: self.lines.len() as u64, ..Snapshot::default() };
        for (user, line) in self.lines.iter().enumerate() {
            let line = *line.lock().unwrap_or_else(PoisonError::into_inner);
            snapshot.begun += line.begun;
            snapshot.on_time += line.on_time;
            snapshot.ended += line.ended;
            snapshot.due += line.begun;
            let Some(first_ns) = line.next_due_ns else { continue };
            if first_ns.saturating_add(self.interval_ns) < time_ns {
                snapshot.users_behind += 1;
            }
            let (mut next, mut number) = (Some(first_ns), line.begun);
            while let Some(due_ns) = next
                && due_ns <= time_ns
                && number - line.begun < AHEAD_MAX
            {
                snapshot.due += 1;
                next = following(user, number, due_ns);
                number += 1;
            }
        }
        snapshot
    }

    /// How many scenarios a user has begun.
    pub fn begun(&self, user: usize) -> u64 {
        self.line(user).map_or(0, |line| line.begun)
    }

    fn line(&self, user: usize) -> Option<MutexGuard<'_, Line>> {
        Some(self.lines.get(user)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_began_is_due_all_the_same() {
        // Three users with a scenario every 10: one keeps up, one is busy since 0, one is gone.
        let log = ScheduleLog::new(10, [0, 0, 5]);
        let every = |_, _, due: i64| Some(due + 10);
        log.begin(0, 0, Some(10));
        log.begin(1, 0, Some(10));
        log.end(0);
        let at = |time_ns| log.snapshot(time_ns, every);
        assert_eq!(
            at(4),
            Snapshot {
                time_ns: 4,
                users: 3,
                due: 2,
                begun: 2,
                on_time: 2,
                ended: 1,
                users_behind: 0
            }
        );
        assert_eq!(at(5).due, 3);
        log.leave(2);
        log.begin(0, 12, Some(20));
        log.end(0);
        // At 20 the second user has not begun what was due at 10: exactly one interval.
        assert_eq!((at(19).users_behind, at(20).users_behind, at(21).users_behind), (0, 0, 1));
        assert_eq!((at(20).due, at(20).open()), (3 + 3, 3 + 1));
        // The second user begins at 25 what was due at 10 when the next was due at 20: too late.
        log.end(1);
        log.begin(1, 25, Some(20));
        assert_eq!((at(25).begun, at(25).on_time), (4, 3));
        // Users that the log does not have change nothing.
        log.begin(3, 0, None);
        log.end(3);
        assert_eq!(at(25).begun, 4);
    }

    #[test]
    fn counting_ahead_ends() {
        let log = ScheduleLog::new(1, [0]);
        assert_eq!(log.snapshot(i64::MAX, |_, _, due| Some(due)).due, AHEAD_MAX);
        assert_eq!(log.snapshot(5, |_, number, due| (number < 2).then_some(due)).due, 3);
    }
}

//! Which times of records can be: records of one CPU or buffer are in the order of their times.
//!
//! One damaged byte moves a time by minutes or years, and without a check the trace becomes as long. A record is
//! damaged if it is later than the next one or earlier than the one before, and these two are in order.

/// How far a record may be before the one before it. Nested writers of a buffer differ by microseconds.
pub const TOLERANCE_NS: i64 = 10_000_000;
/// The longest time between two records of which the later one is believed at once.
pub const JUMP_MAX_NS: i64 = 24 * 3_600 * 1_000_000_000;
/// That many damaged records in a row are not: the one before them was.
const REJECTED_MAX: u32 = 8;

/// The order of the records of one CPU or buffer, in any unit of time.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    tolerance: i64,
    jump_max: i64,
    last: Option<i64>,
    /// Damaged records since the last one that was not, and the time of the latest.
    rejected: u32,
    suspect: Option<i64>,
}

impl Order {
    /// The order of records with times in nanoseconds.
    pub fn of_nanoseconds() -> Order {
        Order::new(TOLERANCE_NS, JUMP_MAX_NS)
    }

    /// The order of records that may be `tolerance` before the one before, and not more than `jump_max` after it
    /// unless the next one is so, too.
    pub fn new(tolerance: i64, jump_max: i64) -> Order {
        Order { tolerance, jump_max, last: None, rejected: 0, suspect: None }
    }

    /// Whether a record of this time is far enough after the one before that the next one should be looked at.
    pub fn is_suspect(&self, time: i64, far: i64) -> bool {
        self.last.is_some_and(|last| time.saturating_sub(last) > far)
    }

    /// Whether a record can have this time. `next` is the time of the record after it, if that is known.
    #[inline]
    pub fn check(&mut self, time: i64, next: Option<i64>) -> bool {
        let is_before = |one: i64, other: i64| one < other.saturating_sub(self.tolerance);
        let is_early = self.last.is_some_and(|last| is_before(time, last));
        let is_late = next.is_some_and(|next| {
            is_before(next, time) && self.last.is_none_or(|last| !is_before(next, last))
        });
        let is_far = |from: i64| time.saturating_sub(from).saturating_abs() > self.jump_max;
        // The next record confirms the jump, or the one that was left out.
        let is_confirmed = next.is_some_and(|next| !is_far(next)) && !is_late
            || self.suspect.is_some_and(|suspect| !is_far(suspect) && time >= suspect);
        let is_jump = self.last.is_some_and(is_far) && !is_confirmed;
        if (is_early || is_late || is_jump) && self.rejected < REJECTED_MAX {
            self.rejected += 1;
            self.suspect = Some(time);
            return false;
        }
        self.last = Some(time);
        (self.rejected, self.suspect) = (0, None);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_record_before_or_after_both_neighbours_is_damaged() {
        let times = [1, 2, 900, 3, 0, 4, 4, 5].map(|time| time * SECOND);
        let mut order = Order::of_nanoseconds();
        let kept: Vec<_> = (0..times.len())
            .filter(|&at| order.check(times[at], times.get(at + 1).copied()))
            .map(|at| times[at] / SECOND)
            .collect();
        assert_eq!(kept, [1, 2, 3, 4, 4, 5]);
    }

    #[test]
    fn if_the_one_before_was_damaged_the_others_are_not_given_up() {
        let mut order = Order::of_nanoseconds();
        assert!(order.check(900 * SECOND, None));
        let kept = (1..20).filter(|time| order.check(time * SECOND, None)).count();
        assert_eq!(kept, 19 - REJECTED_MAX as usize);
    }

    #[test]
    fn a_jump_of_days_needs_a_second_record() {
        let day = 86_400;
        let times = [1, 2, 400 * day, 3, 4, 5 * day, 5 * day + 1, 5 * day + 2];
        let kept = |has_next: bool| {
            let mut order = Order::of_nanoseconds();
            let next = |at: usize| times.get(at + 1).filter(|_| has_next).map(|at| at * SECOND);
            let kept = (0..times.len()).filter(|&at| order.check(times[at] * SECOND, next(at)));
            kept.map(|at| times[at]).collect::<Vec<_>>()
        };
        assert_eq!(kept(true), [1, 2, 3, 4, 5 * day, 5 * day + 1, 5 * day + 2]);
        assert_eq!(kept(false), [1, 2, 3, 4, 5 * day + 1, 5 * day + 2]);
    }
}

//! The exclusive duration of an interrupt: its duration without what interrupted it.
//!
//! Interrupts of one CPU arrive in the order of their ends, and they nest. So what ran within
//! one has arrived before it, and began later than it did.

use std::collections::VecDeque;

/// Most ended interrupts that are kept; the two oldest become one when there are more.
const ENDED_MAX: usize = 4096;

/// Ended interrupts of one CPU that are not within another one, as beginning and duration.
#[derive(Debug, Default)]
pub struct Exclusive {
    ended: VecDeque<(i64, i64)>,
}

impl Exclusive {
    /// Takes the interrupt that ended next; returns its exclusive duration.
    pub fn end(&mut self, start_ns: i64, end_ns: i64) -> i64 {
        let duration = end_ns.saturating_sub(start_ns);
        let mut nested = 0_i64;
        while let Some(&(inner_start, inner)) = self.ended.back() {
            if inner_start < start_ns {
                break;
            }
            nested = nested.saturating_add(inner);
            self.ended.pop_back();
        }
        self.ended.push_back((start_ns, duration));
        if self.ended.len() > ENDED_MAX
            && let (Some(oldest), Some(next)) = (self.ended.pop_front(), self.ended.pop_front())
        {
            self.ended.push_front((oldest.0, oldest.1.saturating_add(next.1)));
        }
        // Records that overlap without nesting are damaged: never negative.
        duration.saturating_sub(nested).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_within_is_subtracted_once() {
        let mut cpu = Exclusive::default();
        assert_eq!(cpu.end(0, 5), 5);
        // An irq of 10 with one of 4 within it, both within a softirq of 100.
        assert_eq!(cpu.end(22, 26), 4);
        assert_eq!(cpu.end(20, 30), 6);
        assert_eq!(cpu.end(40, 45), 5);
        assert_eq!(cpu.end(10, 110), 85);
        // The next one contains nothing.
        assert_eq!(cpu.end(110, 120), 10);
    }

    #[test]
    fn memory_is_limited_without_losing_time() {
        let mut cpu = Exclusive::default();
        let many = 3 * ENDED_MAX as i64;
        for number in 1..=many {
            cpu.end(number * 10, number * 10 + 1);
        }
        assert_eq!(cpu.ended.len(), ENDED_MAX);
        assert_eq!(cpu.end(0, many * 100), many * 99);
    }
}

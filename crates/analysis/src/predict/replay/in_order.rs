//! What rows say, in the order of time. The threads of a load run write their operations down a second's at once, so rows
//! come up to about a second late.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row comes at most this long after one of a later time.
const LATE_NS: i64 = 2_000_000_000;
/// Most items that wait.
const WAITING_MAX: usize = 1 << 18;

/// Items that wait for earlier ones.
pub(super) struct InOrder<T> {
    waiting: BinaryHeap<Item<T>>,
    number: u64,
    newest: Option<i64>,
}

/// Items of one time stay in the order in which they came.
struct Item<T> {
    at: i64,
    number: u64,
    what: T,
}

impl<T> Item<T> {
    fn key(&self) -> (i64, u64) {
        (self.at, self.number)
    }
}

impl<T> PartialEq for Item<T> {
    fn eq(&self, other: &Item<T>) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Item<T> {}

impl<T> PartialOrd for Item<T> {
    fn partial_cmp(&self, other: &Item<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Item<T> {
    /// The earliest is the greatest, which the heap gives first.
    fn cmp(&self, other: &Item<T>) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> Default for InOrder<T> {
    fn default() -> InOrder<T> {
        InOrder { waiting: BinaryHeap::new(), number: 0, newest: None }
    }
}

impl<T> InOrder<T> {
    pub(super) fn add(&mut self, at: i64, what: T) {
        self.number += 1;
        self.waiting.push(Item { at, number: self.number, what });
        self.newest = Some(self.newest.map_or(at, |newest| newest.max(at)));
    }

    /// The next item and its time, if no earlier one can come, or if none comes.
    pub(super) fn next(&mut self, is_end: bool) -> Option<(i64, T)> {
        let first = self.waiting.peek()?;
        let is_old = self.newest.is_some_and(|newest| newest.saturating_sub(first.at) > LATE_NS);
        let is_due = is_end || is_old || self.waiting.len() > WAITING_MAX;
        let Item { at, what, .. } = is_due.then(|| self.waiting.pop()).flatten()?;
        Some((at, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_in_its_place() {
        let mut writes = InOrder::default();
        for (at, bytes) in [(LATE_NS, 1), (10, 2), (20, 3), (20, 5)] {
            writes.add(at, bytes);
        }
        assert_eq!(writes.next(false), None);
        writes.add(LATE_NS + 15, 4);
        assert_eq!(writes.next(false), Some((10, 2)));
        assert_eq!(writes.next(false), None);
        let rest: Vec<_> = std::iter::from_fn(|| writes.next(true)).collect();
        assert_eq!(rest, [(20, 3), (20, 5), (LATE_NS, 1), (LATE_NS + 15, 4)]);
    }
}

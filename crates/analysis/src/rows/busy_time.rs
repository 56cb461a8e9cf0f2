//! Time with at least one operation in flight.

use std::collections::VecDeque;

/// Default number of intervals that a later one may still be merged with. An interval that arrives
/// late is compared with those after it.
const OPEN_MAX: usize = 64;

/// The length of the union of intervals that arrive roughly in the order of their ends.
pub(crate) struct BusyTime {
    /// Disjoint, in rising order.
    open: VecDeque<(i64, i64)>,
    most: usize,
    /// The time before all of them: its begin, its end, and how much of it is in the union.
    closed: Option<(i64, i64)>,
    closed_ns: i64,
}

impl Default for BusyTime {
    fn default() -> BusyTime {
        BusyTime::from_limit(OPEN_MAX)
    }
}

impl BusyTime {
    /// Merges with up to `most` intervals. If an interval arrives late and begins before them all, its
    /// earlier part counts by the share of that time that was free.
    pub(crate) fn from_limit(most: usize) -> BusyTime {
        BusyTime { open: VecDeque::new(), most, closed: None, closed_ns: 0 }
    }

    /// Adds an interval.
    pub(crate) fn add(&mut self, mut begin: i64, mut end: i64) {
        if let Some((from, until)) = self.closed
            && begin < until
        {
            let within = end.min(until).saturating_sub(begin.max(from)).max(0) as f64;
            let free = 1.0 - self.closed_ns as f64 / until.saturating_sub(from).max(1) as f64;
            self.closed_ns = self.closed_ns.saturating_add((within * free.max(0.0)) as i64);
            if end <= until {
                return;
            }
            begin = until;
        }
        // Most intervals come after all others, or extend the last one only.
        let last = self.open.len();
        let before = last.checked_sub(2).and_then(|place| self.open.get(place)).copied();
        if self.open.back().is_none_or(|(_, last)| *last < begin) {
            self.open.push_back((begin, end));
        } else if let Some((first, until)) = self.open.back_mut()
            && end >= *first
            && before.is_none_or(|(_, before)| before < begin)
        {
            (*first, *until) = (begin.min(*first), end.max(*until));
        } else {
            let mut later = VecDeque::new();
            self.join(&mut begin, &mut end, &mut later);
            self.open.push_back((begin, end));
            self.open.append(&mut later);
        }
        if self.open.len() > self.most
            && let Some((begin, end)) = self.open.pop_front()
        {
            self.closed_ns = self.closed_ns.saturating_add(end.saturating_sub(begin));
            self.closed = Some((self.closed.map_or(begin, |closed| closed.0), end));
        }
    }

    /// Removes the intervals that overlap and merges them; moves later ones to `later`.
    fn join(&mut self, begin: &mut i64, end: &mut i64, later: &mut VecDeque<(i64, i64)>) {
        while let Some((other_begin, other_end)) = self.open.pop_back() {
            if other_begin > *end {
                later.push_front((other_begin, other_end));
            } else if other_end < *begin {
                self.open.push_back((other_begin, other_end));
                break;
            } else {
                (*begin, *end) = ((*begin).min(other_begin), (*end).max(other_end));
            }
        }
    }

    /// The length, ns.
    pub(crate) fn ns(&self) -> i64 {
        let open = self.open.iter().map(|(begin, end)| end.saturating_sub(*begin));
        open.fold(self.closed_ns, i64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_two_operations_share_counts_once() {
        let mut busy = BusyTime::default();
        for (begin, end) in [(0, 10), (5, 12), (20, 30), (11, 31), (40, 41)] {
            busy.add(begin, end);
        }
        assert_eq!(busy.ns(), 32);
        // A long one that arrives after those within it were closed.
        let mut busy = BusyTime::from_limit(4);
        (0..10).for_each(|n| busy.add(10 * n, 10 * n + 4));
        busy.add(0, 100);
        assert_eq!(busy.ns(), 100);
        // It covers the first half, and with it half of the gaps.
        let mut busy = BusyTime::from_limit(4);
        (0..10).for_each(|n| busy.add(10 * n, 10 * n + 4));
        busy.add(0, 27);
        assert_eq!(busy.ns(), 40 + 15);
        let mut busy = BusyTime::from_limit(16);
        (0..10).for_each(|n| busy.add(10 * n, 10 * n + 4));
        busy.add(0, 100);
        assert_eq!(busy.ns(), 100);
    }
}

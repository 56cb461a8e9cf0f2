//! How long anything was under way.

use std::collections::VecDeque;

/// Intervals that may still be joined by a later one, unless told otherwise: each that comes late walks through
/// those after it.
const OPEN_MAX: usize = 64;

/// The length of a busy of intervals that come roughly in the order of their ends.
pub(crate) struct BusyTime {
    /// Disjoint, in rising order.
    open: VecDeque<(i64, i64)>,
    most: usize,
    /// What lies before all of them: from when on, until when, and how much of that is in the busy.
    closed: Option<(i64, i64)>,
    closed_ns: i64,
}

impl Default for BusyTime {
    fn default() -> BusyTime {
        BusyTime::of(OPEN_MAX)
    }
}

impl BusyTime {
    /// One that joins up to so many intervals. Of a longer one that comes late, what lies before them all counts by
    /// how much of that time was free.
    pub(crate) fn of(most: usize) -> BusyTime {
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
        // Most come after all others.
        if self.open.back().is_none_or(|(_, last)| *last < begin) {
            self.open.push_back((begin, end));
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

    /// Takes out what it meets, and puts aside what comes after.
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

    /// Its length, ns.
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
        // A long one that comes when those within it are forgotten.
        let mut busy = BusyTime::of(4);
        (0..10).for_each(|n| busy.add(10 * n, 10 * n + 4));
        busy.add(0, 100);
        assert_eq!(busy.ns(), 100);
        // Of the first half of them, half of the gaps.
        let mut busy = BusyTime::of(4);
        (0..10).for_each(|n| busy.add(10 * n, 10 * n + 4));
        busy.add(0, 27);
        assert_eq!(busy.ns(), 40 + 15);
        let mut busy = BusyTime::of(16);
        (0..10).for_each(|n| busy.add(10 * n, 10 * n + 4));
        busy.add(0, 100);
        assert_eq!(busy.ns(), 100);
    }
}

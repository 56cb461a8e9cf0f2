//! How long anything was under way.

use std::collections::VecDeque;

/// Intervals of waiting that may still be joined by a later one.
const OPEN_MAX: usize = 16;

/// The length of a union of intervals that come roughly in the order of their ends.
#[derive(Default)]
pub(crate) struct Union {
    /// Disjoint, in rising order.
    open: VecDeque<(i64, i64)>,
    closed_ns: i64,
}

impl Union {
    /// Adds an interval.
    pub(crate) fn add(&mut self, mut begin: i64, mut end: i64) {
        // Most come after all others.
        if self.open.back().is_none_or(|(_, last)| *last < begin) {
            self.open.push_back((begin, end));
        } else {
            let mut later = VecDeque::new();
            self.join(&mut begin, &mut end, &mut later);
            self.open.push_back((begin, end));
            self.open.append(&mut later);
        }
        if self.open.len() > OPEN_MAX
            && let Some((begin, end)) = self.open.pop_front()
        {
            self.closed_ns = self.closed_ns.saturating_add(end.saturating_sub(begin));
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
        let mut union = Union::default();
        for (begin, end) in [(0, 10), (5, 12), (20, 30), (11, 31), (40, 41)] {
            union.add(begin, end);
        }
        assert_eq!(union.ns(), 32);
    }
}

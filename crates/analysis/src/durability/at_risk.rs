//! How many acknowledged bytes are not stable at a moment, from changes that come roughly in the order of time.
//!
//! Memory is bounded: changes of the last seconds and those that are known to come are kept in slots, all before that
//! is one number and a series of bins that widen.

use std::collections::BTreeMap;

/// Width of a slot: changes within it happen at once, ns.
const SLOT_NS: i64 = 1_000_000;
/// Operations are written down this much out of order at most, in slots. Each thread of a load run flushes once a second.
const KEPT: i64 = 10_000;
/// Most bins of the series.
const BINS_MAX: usize = 600;
/// Width of a bin at first, in slots.
const BIN_SLOTS: i64 = 1_000;

/// A level over time.
#[derive(Debug, Default)]
pub(super) struct AtRisk {
    changes: BTreeMap<i64, i64>,
    level: i64,
    newest: Option<i64>,
    /// The largest level, and since when.
    most: (i64, i64),
    /// Up to where the level was settled.
    settled: i64,
    bins: Option<Bins>,
}

impl AtRisk {
    /// A level whose course is kept, too.
    pub(super) fn in_bins() -> AtRisk {
        AtRisk { bins: Some(Bins { width: BIN_SLOTS, ..Bins::default() }), ..AtRisk::default() }
    }

    /// Changes the level at a time, which may be later than `now_ns`, up to where the recording is.
    pub(super) fn change(&mut self, now_ns: i64, at_ns: i64, bytes: i64) {
        if bytes == 0 {
            return;
        }
        let slot = at_ns.div_euclid(SLOT_NS);
        let sum = self.changes.entry(slot).or_default();
        *sum = sum.saturating_add(bytes);
        // What comes only later says nothing of how far the recording is.
        let now = now_ns.div_euclid(SLOT_NS);
        let newest = self.newest.map_or(now, |newest| newest.max(now));
        self.newest = Some(newest);
        while let Some(first) = self.changes.first_entry()
            && *first.key() < newest.saturating_sub(KEPT)
        {
            let (slot, change) = first.remove_entry();
            self.settle(slot, change);
        }
    }

    /// Adds the rest.
    pub(super) fn finish(&mut self) {
        for (slot, change) in std::mem::take(&mut self.changes) {
            self.settle(slot, change);
        }
    }

    fn settle(&mut self, slot: i64, change: i64) {
        if let Some(bins) = &mut self.bins {
            bins.add(self.settled, slot, self.level);
        }
        self.settled = self.settled.max(slot);
        self.level = self.level.saturating_add(change);
        if self.level > self.most.0 {
            self.most = (self.level, slot);
        }
        if let Some(bins) = &mut self.bins {
            bins.add(slot, slot, self.level);
        }
    }

    /// The largest level in bytes, and when it was reached, ns.
    pub(super) fn most(&self) -> (u64, Option<i64>) {
        let bytes = self.most.0.max(0).cast_unsigned();
        (bytes, (bytes > 0).then(|| self.most.1.saturating_mul(SLOT_NS)))
    }

    /// Begin and width of the bins, ns, and the largest level in each.
    pub(super) fn series(&self) -> (i64, i64, Vec<u64>) {
        let Some(bins) = &self.bins else { return (0, 0, Vec::new()) };
        let levels = bins.levels.iter().map(|level| (*level).max(0).cast_unsigned());
        let ns = |slots: i64| slots.saturating_mul(SLOT_NS);
        (ns(bins.first), ns(bins.width), levels.collect())
    }
}

/// The largest level in bins of equal width.
#[derive(Debug, Default)]
struct Bins {
    first: i64,
    width: i64,
    levels: Vec<i64>,
}

impl Bins {
    /// The level from one slot to another one.
    fn add(&mut self, from: i64, to: i64, level: i64) {
        if self.levels.is_empty() {
            if level <= 0 {
                return;
            }
            self.first = to.div_euclid(self.width) * self.width;
        }
        let from = from.max(self.first);
        // A moment before the first bin, of a recording that was given later.
        if to < from {
            return;
        }
        while (to - self.first) / self.width >= BINS_MAX as i64 {
            self.width = self.width.saturating_mul(2);
            let pairs = self.levels.chunks(2);
            self.levels = pairs.map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
        }
        let place = |slot: i64| ((slot - self.first) / self.width) as usize;
        let (begin, end) = (place(from), place(to));
        if self.levels.len() <= end {
            self.levels.resize(end + 1, 0);
        }
        for bin in self.levels.iter_mut().take(end + 1).skip(begin) {
            *bin = (*bin).max(level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn the_most_is_independent_of_the_order_within_seconds() {
        let changes = [(0, 10), (S, 20), (2 * S, -10), (3 * S, -20), (4 * S, 5)];
        let most = |order: &[usize]| {
            let mut level = AtRisk::default();
            order
                .iter()
                .for_each(|one| level.change(changes[*one].0, changes[*one].0, changes[*one].1));
            level.finish();
            level.most()
        };
        assert_eq!(most(&[0, 1, 2, 3, 4]), (30, Some(S)));
        assert_eq!(most(&[4, 2, 0, 3, 1]), (30, Some(S)));
        assert_eq!(most(&[]), (0, None));
    }

    #[test]
    fn the_course_takes_a_bounded_number_of_bins() {
        let mut level = AtRisk::in_bins();
        for hour in 0..100 {
            let now = hour * 3_600 * S;
            level.change(now, now, 100);
            level.change(now, now + 30 * S, -100);
        }
        level.change(i64::MAX / 2, i64::MAX / 2, 7);
        level.finish();
        let (_, width_ns, levels) = level.series();
        assert!(levels.len() <= BINS_MAX && width_ns > 3_600 * S, "{} {width_ns}", levels.len());
        assert_eq!(levels.iter().max(), Some(&100));
        assert!(level.changes.is_empty());
    }

    #[test]
    fn a_change_that_comes_later_settles_nothing_before_it() {
        let mut level = AtRisk::default();
        for second in 0..13 {
            level.change(second * S, second * S, 10);
            level.change(second * S, (second + 35) * S, -10);
        }
        // A Flush takes back one that would have ended after 35 s.
        level.change(13 * S, 13 * S, -10);
        level.change(13 * S, 47 * S, 10);
        for second in 14..20 {
            level.change(second * S, second * S, 10);
            level.change(second * S, (second + 35) * S, -10);
        }
        level.finish();
        assert_eq!(level.most(), (180, Some(19 * S)));
    }

    #[test]
    fn between_changes_the_level_stays() {
        let mut level = AtRisk::in_bins();
        level.change(0, 0, 50);
        level.change(0, 5 * S, -50);
        level.finish();
        assert_eq!(level.series(), (0, S, vec![50; 6]));
    }
}

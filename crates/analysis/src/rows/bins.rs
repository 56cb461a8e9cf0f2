//! Values in bins of equal width that merge pairwise when they become too many.
//!
//! Bins are aligned to the epoch and their width is [`FIRST_BIN_NS`] times a power of two, as those
//! of the operations (`summary::series`) are, so that all charts can have one time axis.

use std::collections::VecDeque;

/// Width of the first bins.
pub(crate) const FIRST_BIN_NS: i64 = 1_000_000;

/// The content of a bin.
pub(crate) trait Bin: Clone {
    /// Of no values.
    fn empty() -> Self;
    /// Adds all values of `other`.
    fn absorb(&mut self, other: &Self);
}

/// The bins so far.
#[derive(Clone, Debug)]
pub(crate) struct Bins<B> {
    bins: VecDeque<B>,
    first: i64,
    width: i64,
    limit: usize,
}

impl<B: Bin> Bins<B> {
    pub(crate) fn new(limit: usize) -> Bins<B> {
        Bins { bins: VecDeque::new(), first: 0, width: FIRST_BIN_NS, limit: limit.max(2) }
    }

    /// The bin that holds a moment.
    pub(crate) fn at(&mut self, at: i64) -> &mut B {
        let mut number = at.div_euclid(self.width);
        if self.bins.is_empty() {
            self.first = number;
            self.bins.push_back(B::empty());
        }
        // Wide i128: times from outside can be as far apart as an i64 allows.
        let span = |first: i64, last: i64| i128::from(last) - i128::from(first) + 1;
        while span(number.min(self.first), number.max(self.last())) > self.limit as i128 {
            self.halve();
            number = at.div_euclid(self.width);
        }
        while number < self.first {
            self.bins.push_front(B::empty());
            self.first -= 1;
        }
        while number > self.last() {
            self.bins.push_back(B::empty());
        }
        let place = usize::try_from(number - self.first).unwrap_or(0);
        let last = self.bins.len().saturating_sub(1);
        &mut self.bins[place.min(last)]
    }

    fn last(&self) -> i64 {
        self.first + self.bins.len().max(1) as i64 - 1
    }

    fn halve(&mut self) {
        let mut merged: VecDeque<B> = VecDeque::with_capacity(self.bins.len() / 2 + 1);
        for (number, bin) in (self.first..).zip(self.bins.drain(..)) {
            match merged.back_mut() {
                Some(last) if number.rem_euclid(2) == 1 => last.absorb(&bin),
                _ => merged.push_back(bin),
            }
        }
        self.bins = merged;
        self.first = self.first.div_euclid(2);
        self.width = self.width.saturating_mul(2);
    }

    /// The width and all bins, the first at its own boundary.
    pub(crate) fn into_bins(self) -> (i64, Vec<B>) {
        (self.width, self.bins.into())
    }

    /// The values in `count` bins of `width` from `start` on. Values outside count in none.
    pub(crate) fn onto(mut self, start: i64, width: i64, count: usize) -> Vec<B> {
        while self.width < width {
            self.halve();
        }
        let mut out = vec![B::empty(); count];
        for (number, bin) in (self.first..).zip(&self.bins) {
            let at = i128::from(number) * i128::from(self.width);
            let place = (at - i128::from(start)).div_euclid(i128::from(width.max(1)));
            let place = usize::try_from(place).ok();
            if let Some(to) = place.and_then(|place| out.get_mut(place)) {
                to.absorb(bin);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Bin for u64 {
        fn empty() -> u64 {
            0
        }
        fn absorb(&mut self, other: &u64) {
            *self += other;
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_on_another_grid_that_covers_it(
            times in prop::collection::vec(-5_000_000_000i64..90_000_000_000, 1..60)
        ) {
            let mut bins = Bins::<u64>::new(50);
            times.iter().for_each(|&at| *bins.at(at) += 1);
            prop_assert!(bins.bins.len() <= 50);
            let width = FIRST_BIN_NS << 12;
            let least = *times.iter().min().unwrap_or(&0);
            let start = least.div_euclid(width) * width;
            let found = bins.onto(start, width, 50);
            prop_assert_eq!(found.iter().sum::<u64>(), times.len() as u64);
            let first = times.iter().filter(|&&at| at < start + width).count();
            prop_assert_eq!(found[0], first as u64);
        }
    }

    #[test]
    fn the_widest_span_is_bounded() {
        let mut bins = Bins::<u64>::new(8);
        for at in [i64::MAX, i64::MIN, 0, -1] {
            *bins.at(at) += 1;
        }
        assert!(bins.bins.len() <= 8);
        assert_eq!(bins.bins.iter().sum::<u64>(), 4);
    }
}

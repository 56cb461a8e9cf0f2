//! Sizes of reads and writes: by power of two, and the most common exact ones.

use hashbrown::HashMap;

use super::data::{SizeClass, SizeCount, Sizes};

/// Most exact sizes.
const SIZES_MAX: usize = 4096;
/// Exact sizes that are reported.
const SIZES_SHOWN: usize = 20;

/// The sizes so far.
pub(crate) struct SizeTally {
    operations: u64,
    unknown: u64,
    requested: u64,
    transferred: u64,
    powers: [u64; 65],
    exact: HashMap<u64, u64, foldhash::fast::RandomState>,
    last: Option<(u64, u64)>,
    others: u64,
}

impl SizeTally {
    pub(crate) fn new() -> SizeTally {
        SizeTally {
            operations: 0,
            unknown: 0,
            requested: 0,
            transferred: 0,
            powers: [0; 65],
            exact: HashMap::default(),
            last: None,
            others: 0,
        }
    }

    /// Counts a read or write by the requested bytes, or by the transferred ones if those are not known.
    pub(crate) fn record(&mut self, requested: Option<u64>, transferred: Option<u64>) {
        self.operations += 1;
        self.transferred = self.transferred.saturating_add(transferred.unwrap_or(0));
        let Some(size) = requested.or(transferred) else {
            self.unknown += 1;
            return;
        };
        self.requested = self.requested.saturating_add(size);
        if let Some(power) = self.powers.get_mut((64 - size.leading_zeros()) as usize) {
            *power += 1;
        }
        match &mut self.last {
            Some((last, times)) if *last == size => *times += 1,
            _ => {
                self.flush();
                self.last = Some((size, 1));
            }
        }
    }

    fn flush(&mut self) {
        let Some((size, times)) = self.last.take() else {
            return;
        };
        let room = self.exact.len() < SIZES_MAX;
        match self.exact.get_mut(&size) {
            Some(count) => *count += times,
            None if room => {
                self.exact.insert(size, times);
            }
            None => self.others += times,
        }
    }

    pub(crate) fn finish(mut self) -> Sizes {
        self.flush();
        let used = |&(_, &operations): &(usize, &u64)| operations > 0;
        let powers = self.powers.iter().enumerate().filter(used);
        let powers = powers.map(|(power, &operations)| SizeClass {
            from_bytes: if power == 0 { 0 } else { 1 << (power - 1) },
            below_bytes: 1u64.checked_shl(power as u32),
            operations,
        });
        let exact = self.exact.iter();
        let mut sizes: Vec<_> =
            exact.map(|(&size_bytes, &operations)| SizeCount { size_bytes, operations }).collect();
        sizes.sort_by_key(|size| (std::cmp::Reverse(size.operations), size.size_bytes));
        sizes.truncate(SIZES_SHOWN);
        Sizes {
            operations: self.operations,
            size_unknown: self.unknown,
            requested_bytes: self.requested,
            transferred_bytes: self.transferred,
            powers: powers.collect(),
            distinct_sizes: self.exact.len() as u64,
            sizes,
            others: self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_between_powers_of_two() {
        let mut tally = SizeTally::new();
        for size in [0, 1, 4095, 4096, 4096, 65_536, u64::MAX] {
            tally.record(Some(size), Some(1));
        }
        tally.record(None, Some(4096));
        tally.record(None, None);
        let found = tally.finish();
        assert_eq!((found.operations, found.size_unknown, found.transferred_bytes), (9, 1, 4103));
        let class = |from, below, operations| SizeClass {
            from_bytes: from,
            below_bytes: below,
            operations,
        };
        assert_eq!(
            found.powers,
            [
                class(0, Some(1), 1),
                class(1, Some(2), 1),
                class(2048, Some(4096), 1),
                class(4096, Some(8192), 3),
                class(65_536, Some(131_072), 1),
                class(1 << 63, None, 1),
            ]
        );
        assert_eq!((found.sizes[0].size_bytes, found.sizes[0].operations), (4096, 3));
    }

    #[test]
    fn exact_sizes_are_bounded() {
        let mut tally = SizeTally::new();
        (0..10_000).for_each(|size| tally.record(Some(size), None));
        let found = tally.finish();
        assert_eq!((found.distinct_sizes, found.others), (4096, 10_000 - 4096));
        assert_eq!(found.sizes.len(), SIZES_SHOWN);
    }
}

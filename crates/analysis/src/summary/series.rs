//! Operations over time, in bins that merge pairwise when the recording outgrows them.
//!
//! Bins are aligned to the epoch, so that their final width follows from the first and the last
//! time alone and not from the order of the rows. An operation counts where its request began
//! (where its reply ended when the request was not seen).

use std::collections::VecDeque;

use super::data::{self, Series};
use super::tally::Facts;
use crate::rows::bins::FIRST_BIN_NS;
use crate::stats::latency::{Grain, Latency};

#[derive(Clone, Debug)]
struct Bin {
    operations: u64,
    errors: u64,
    read_bytes: u64,
    written_bytes: u64,
    wire_bytes: u64,
    busy_ns: i64,
    elapsed: Latency,
    outstanding_max: u32,
    outstanding_sum: u64,
    outstanding_n: u64,
    opened: u64,
    closed: u64,
}

/// The bins so far.
pub(crate) struct SeriesTally {
    bins: VecDeque<Bin>,
    first: i64,
    width: i64,
    limit: usize,
    grain: Grain,
    open_from_the_start: u64,
    without_time: u64,
}

impl SeriesTally {
    pub(crate) fn new(limit: usize, grain: Grain) -> SeriesTally {
        SeriesTally {
            bins: VecDeque::new(),
            first: 0,
            width: FIRST_BIN_NS,
            limit: limit.max(2),
            grain,
            open_from_the_start: 0,
            without_time: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, at: Option<i64>, facts: &Facts, outstanding: Option<u32>) {
        let Some(at) = at else {
            self.without_time += 1;
            return;
        };
        let bin = self.bin(at);
        bin.operations += 1;
        bin.errors += u64::from(facts.error);
        bin.read_bytes = bin.read_bytes.saturating_add(facts.read_bytes);
        bin.written_bytes = bin.written_bytes.saturating_add(facts.written_bytes);
        bin.wire_bytes = bin.wire_bytes.saturating_add(facts.wire_bytes);
        bin.busy_ns = bin.busy_ns.saturating_add(facts.busy_ns);
        if let Some(elapsed) = &facts.elapsed {
            bin.elapsed.record(elapsed);
        }
        if let Some(outstanding) = outstanding.filter(|_| !facts.waits) {
            bin.outstanding_max = bin.outstanding_max.max(outstanding);
            bin.outstanding_sum += u64::from(outstanding);
            bin.outstanding_n += 1;
        }
    }

    /// Makes the bins reach a moment that others have something to say about.
    pub(crate) fn reach(&mut self, at: i64) {
        self.bin(at);
    }

    /// Counts an open; without a time it was open before the recording began, or stayed open.
    pub(crate) fn handle(&mut self, opened_at: Option<i64>, closed_at: Option<i64>) {
        match opened_at {
            Some(at) => self.bin(at).opened += 1,
            None => self.open_from_the_start += 1,
        }
        if let Some(at) = closed_at {
            self.bin(at).closed += 1;
        }
    }

    fn bin(&mut self, at: i64) -> &mut Bin {
        let mut number = at.div_euclid(self.width);
        if self.bins.is_empty() {
            self.first = number;
        }
        // Wide i128: times from outside can be as far apart as an i64 allows.
        while span(number.min(self.first), number.max(self.last())) > self.limit as i128 {
            self.halve();
            number = at.div_euclid(self.width);
        }
        while number < self.first {
            let empty = self.empty();
            self.bins.push_front(empty);
            self.first -= 1;
        }
        while number > self.last() || self.bins.is_empty() {
            let empty = self.empty();
            self.bins.push_back(empty);
        }
        let place = usize::try_from(number - self.first).unwrap_or(0);
        let last = self.bins.len().saturating_sub(1);
        &mut self.bins[place.min(last)]
    }

    fn last(&self) -> i64 {
        self.first + self.bins.len().max(1) as i64 - 1
    }

    fn halve(&mut self) {
        let mut merged: VecDeque<Bin> = VecDeque::with_capacity(self.bins.len() / 2 + 1);
        let first = self.first.div_euclid(2);
        for (number, bin) in (self.first..).zip(self.bins.drain(..)) {
            match merged.back_mut() {
                Some(last) if number.rem_euclid(2) == 1 => last.absorb(&bin),
                _ => merged.push_back(bin),
            }
        }
        self.bins = merged;
        self.first = first;
        self.width = self.width.saturating_mul(2);
    }

    fn empty(&self) -> Bin {
        Bin {
            operations: 0,
            errors: 0,
            read_bytes: 0,
            written_bytes: 0,
            wire_bytes: 0,
            busy_ns: 0,
            elapsed: Latency::new(self.grain),
            outstanding_max: 0,
            outstanding_sum: 0,
            outstanding_n: 0,
            opened: 0,
            closed: 0,
        }
    }

    pub(crate) fn finish(&self) -> Series {
        let mut open = i128::from(self.open_from_the_start);
        let bins = self.bins.iter().enumerate().map(|(place, bin)| {
            open += i128::from(bin.opened) - i128::from(bin.closed);
            let known = bin.outstanding_n > 0;
            data::Bin {
                start_ns: (self.first.saturating_add(place as i64)).saturating_mul(self.width),
                operations: bin.operations,
                errors: bin.errors,
                read_bytes: bin.read_bytes,
                written_bytes: bin.written_bytes,
                wire_bytes: bin.wire_bytes,
                busy_ns: bin.busy_ns,
                elapsed: bin.elapsed.distribution(false),
                outstanding_max: known.then_some(bin.outstanding_max),
                outstanding_mean: known
                    .then(|| super::rounded(bin.outstanding_sum as f64 / bin.outstanding_n as f64)),
                open_handles: u64::try_from(open).unwrap_or(0),
            }
        });
        Series { bins: bins.collect(), bin_ns: self.width, without_time: self.without_time }
    }
}

impl Bin {
    fn absorb(&mut self, other: &Bin) {
        self.operations += other.operations;
        self.errors += other.errors;
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.wire_bytes = self.wire_bytes.saturating_add(other.wire_bytes);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.elapsed.absorb(&other.elapsed);
        self.outstanding_max = self.outstanding_max.max(other.outstanding_max);
        self.outstanding_sum += other.outstanding_sum;
        self.outstanding_n += other.outstanding_n;
        self.opened += other.opened;
        self.closed += other.closed;
    }
}

fn span(first: i64, last: i64) -> i128 {
    i128::from(last) - i128::from(first) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(series: &mut SeriesTally, times: &[i64]) -> Series {
        for &at in times {
            series.record(
                Some(at),
                &Facts {
                    elapsed: Some(crate::stats::latency::Sample::new(at)),
                    ..Facts::default()
                },
                Some(3),
            );
        }
        series.finish()
    }

    #[test]
    fn bins_merge_and_lose_nothing() {
        let second = 1_000_000_000;
        let found = times(
            &mut SeriesTally::new(600, Grain::Coarse),
            &[0, second, 2 * second, 600 * second],
        );
        assert_eq!(found.bin_ns, 1_024_000_000);
        assert_eq!(found.bins.len(), 586);
        assert_eq!(found.bins.iter().map(|bin| bin.operations).sum::<u64>(), 4);
        assert_eq!((found.bins[0].operations, found.bins[1].operations), (2, 1));
        assert_eq!(found.bins[1].outstanding_mean, Some(3.0));
        assert_eq!(found.bins[1].start_ns, 1_024_000_000);
    }

    #[test]
    fn open_handles_add_up_over_the_bins() {
        let mut series = SeriesTally::new(10, Grain::Coarse);
        let ms = 1_000_000;
        series.handle(None, Some(2 * ms));
        series.handle(Some(ms), None);
        series.handle(Some(ms), Some(3 * ms));
        series.record(Some(0), &Facts::default(), None);
        let open: Vec<_> = series.finish().bins.iter().map(|bin| bin.open_handles).collect();
        assert_eq!(open, [1, 3, 2, 1]);
    }

    #[test]
    fn the_widest_span_is_bounded() {
        let found = times(&mut SeriesTally::new(8, Grain::Coarse), &[i64::MAX, i64::MIN, 0, -1]);
        assert!(found.bins.len() <= 8);
        assert_eq!(found.bins.iter().map(|bin| bin.operations).sum::<u64>(), 4);
    }

    proptest! {
        #[test]
        fn the_order_of_rows_does_not_matter(
            mut at in prop::collection::vec(-5_000_000_000i64..90_000_000_000, 1..60)
        ) {
            let forward = times(&mut SeriesTally::new(50, Grain::Coarse), &at);
            at.reverse();
            let backward = times(&mut SeriesTally::new(50, Grain::Coarse), &at);
            prop_assert_eq!(&forward, &backward);
            prop_assert!(forward.bins.len() <= 50);
        }
    }
}

//! The distribution of a duration: exact while there are few values, then a histogram.
//!
//! The first [`FEW`] values are kept as they are, so that short recordings and small groups show
//! exact percentiles; beyond that they are counted in buckets of equal width within each power of
//! two, as in HdrHistogram. Its crate is not used here: one duration enters up to eight groups, and
//! a [`Sample`] knows its bucket for all of them, which made the summary twice as fast; and buckets
//! are only kept for the powers of two that occur, which a thousand groups need.
//! Negative durations are real (`server_ns` is never clamped) and sort below zero.

use serde::Serialize;

/// How many values are kept exactly before a histogram is made.
pub const FEW: usize = 64;

/// Bounds of the small histograms: 1, 2, 5 of every decade from a microsecond to 100 seconds.
pub const BOUNDS_NS: [i64; 25] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    20_000_000_000,
    50_000_000_000,
    100_000_000_000,
];

/// One duration's distribution. Percentiles are nearest-rank: exact if `exact`, otherwise
/// within 0.1 % (commands, totals) or 1 % (everything else).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Distribution {
    pub n: u64,
    pub negative: u64,
    pub sum_ns: i64,
    pub mean_ns: Option<i64>,
    pub min_ns: Option<i64>,
    pub p50_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    pub p99_ns: Option<i64>,
    pub max_ns: Option<i64>,
    pub exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Vec<u64>>,
}

/// How finely a distribution counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// Buckets of a thousandth of their value.
    Fine,
    /// Buckets of less than a hundredth of their value.
    Coarse,
}

impl Grain {
    /// A power of two has 2 to the power of this many buckets.
    const fn bits(self) -> u32 {
        match self {
            Grain::Fine => 10,
            Grain::Coarse => 7,
        }
    }
}

/// A duration and its buckets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) value: i64,
    fine: u32,
    coarse: u32,
}

impl Sample {
    #[inline(always)]
    pub(crate) fn new(value: i64) -> Sample {
        let size = value.unsigned_abs();
        Sample {
            value,
            fine: bucket(size, Grain::Fine.bits()),
            coarse: bucket(size, Grain::Coarse.bits()),
        }
    }
}

/// Durations of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    n: u64,
    sum: i128,
    min: i64,
    max: i64,
    few: Vec<i64>,
    spilled: bool,
    grain: Grain,
    positive: Counts,
    /// Magnitudes of the negative values.
    below: Counts,
}

/// Counts of neighbouring buckets.
#[derive(Clone, Debug, Default)]
struct Counts {
    first: u32,
    counts: Vec<u32>,
}

impl Latency {
    /// An empty distribution.
    pub(crate) fn new(grain: Grain) -> Latency {
        Latency {
            n: 0,
            sum: 0,
            min: i64::MAX,
            max: i64::MIN,
            few: Vec::new(),
            spilled: false,
            grain,
            positive: Counts::default(),
            below: Counts::default(),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, sample: &Sample) {
        let value = sample.value;
        self.n += 1;
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if !self.spilled {
            self.record_few(value);
        } else {
            self.count(sample, 1);
        }
    }

    #[inline(always)]
    fn count(&mut self, sample: &Sample, n: u32) {
        let bucket = match self.grain {
            Grain::Fine => sample.fine,
            Grain::Coarse => sample.coarse,
        };
        if sample.value >= 0 {
            self.positive.add(bucket, n, self.grain);
        } else {
            self.below.add(bucket, n, self.grain);
        }
    }

    #[cold]
    fn record_few(&mut self, value: i64) {
        self.few.push(value);
        if self.few.len() > FEW {
            self.spill();
        }
    }

    fn spill(&mut self) {
        self.spilled = true;
        for value in std::mem::take(&mut self.few) {
            self.count(&Sample::new(value), 1);
        }
    }

    /// Adds all values of `other`.
    pub(crate) fn absorb(&mut self, other: &Latency) {
        self.n += other.n;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        if !self.spilled && !other.spilled && self.few.len() + other.few.len() <= FEW {
            self.few.extend_from_slice(&other.few);
            return;
        }
        self.spill();
        if !other.spilled {
            for &value in &other.few {
                self.count(&Sample::new(value), 1);
            }
        } else if self.grain == other.grain {
            self.positive.absorb(&other.positive, self.grain);
            self.below.absorb(&other.below, self.grain);
        } else {
            for (value, n) in other.values() {
                self.count(&Sample::new(value), n);
            }
        }
    }

    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    pub(crate) fn sum(&self) -> i64 {
        self.sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Whether every value is kept as it is.
    pub(crate) fn is_exact(&self) -> bool {
        !self.spilled
    }

    /// The same as buckets, as they are beyond a few values.
    pub(crate) fn buckets(&self) -> Vec<(i64, u32)> {
        let mut counted = self.clone();
        counted.spill();
        counted.values()
    }

    /// Values in rising order with how often each occurs.
    pub(crate) fn values(&self) -> Vec<(i64, u32)> {
        self.values_as(middle)
    }

    /// The same, with one value for each bucket.
    fn values_as(&self, of: fn(u32, u32) -> i64) -> Vec<(i64, u32)> {
        if !self.spilled {
            let mut values: Vec<_> = self.few.iter().map(|&value| (value, 1)).collect();
            values.sort_unstable();
            return values;
        }
        let below = self.below.values(self.grain, middle);
        let below = below.into_iter().rev().map(|(value, n)| (-value, n));
        below.chain(self.positive.values(self.grain, of)).collect()
    }

    /// Number, mean, extremes and percentiles; with `histogram` also counts between
    /// [`BOUNDS_NS`].
    pub(crate) fn distribution(&self, histogram: bool) -> Distribution {
        if self.n == 0 {
            return Distribution::default();
        }
        let values = self.values();
        let [p50, p95, p99] = self.ranks(&values, [50, 95, 99]);
        let negative = values.iter().filter(|(value, _)| *value < 0);
        Distribution {
            n: self.n,
            negative: negative.map(|&(_, n)| u64::from(n)).sum(),
            sum_ns: self.sum(),
            mean_ns: Some((self.sum / i128::from(self.n)) as i64),
            min_ns: Some(self.min),
            p50_ns: Some(p50),
            p95_ns: Some(p95),
            p99_ns: Some(p99),
            max_ns: Some(self.max),
            exact: !self.spilled,
            histogram: histogram.then(|| small_histogram(&self.values_as(last))),
        }
    }

    /// The nearest-rank percentiles: the smallest value that the given percentage of all values does not exceed.
    fn ranks<const N: usize>(&self, values: &[(i64, u32)], per_cent: [u64; N]) -> [i64; N] {
        per_cent.map(|per_cent| {
            let rank = (u128::from(self.n) * u128::from(per_cent)).div_ceil(100) as u64;
            let mut seen = 0u64;
            for &(value, n) in values {
                seen += u64::from(n);
                if seen >= rank {
                    return value.clamp(self.min, self.max);
                }
            }
            self.max
        })
    }
}

impl Counts {
    #[inline(always)]
    fn add(&mut self, bucket: u32, n: u32, grain: Grain) {
        match self.counts.get_mut(bucket.wrapping_sub(self.first) as usize) {
            Some(count) => *count = count.saturating_add(n),
            None => self.grow(bucket, n, grain),
        }
    }

    /// Makes room for a bucket, whole powers of two at a time.
    #[cold]
    fn grow(&mut self, bucket: u32, n: u32, grain: Grain) {
        let block = 1u32 << grain.bits();
        let start = bucket / block * block;
        let end = self.first + self.counts.len() as u32;
        if self.counts.is_empty() {
            self.first = start;
            self.counts = vec![0; block as usize];
        } else if bucket < self.first {
            let mut counts = vec![0; (self.first - start) as usize];
            counts.append(&mut self.counts);
            (self.first, self.counts) = (start, counts);
        } else if bucket >= end {
            self.counts.resize((start + block - self.first) as usize, 0);
        }
        if let Some(count) = self.counts.get_mut((bucket - self.first) as usize) {
            *count = count.saturating_add(n);
        }
    }

    fn absorb(&mut self, other: &Counts, grain: Grain) {
        for (bucket, &n) in (other.first..).zip(&other.counts).filter(|(_, n)| **n > 0) {
            self.add(bucket, n, grain);
        }
    }

    /// The representative values of the buckets that are not empty, rising.
    fn values(&self, grain: Grain, of: fn(u32, u32) -> i64) -> Vec<(i64, u32)> {
        let used = (self.first..).zip(&self.counts).filter(|(_, n)| **n > 0);
        used.map(|(bucket, &n)| (of(bucket, grain.bits()), n)).collect()
    }
}

/// The bucket of a size: every value below two to the power of `bits + 1` has its own.
#[inline(always)]
fn bucket(size: u64, bits: u32) -> u32 {
    let power = 63 - (size | 1).leading_zeros();
    let shift = power.saturating_sub(bits);
    (shift << bits) + (size >> shift) as u32
}

/// The middle of a bucket.
fn middle(bucket: u32, bits: u32) -> i64 {
    let (least, wide) = extent(bucket, bits);
    i64::try_from(least + wide / 2).unwrap_or(i64::MAX)
}

/// The greatest value of a bucket. Round bounds lie within buckets, and clocks tick in round times: a value
/// exactly on a bound counts above it.
fn last(bucket: u32, bits: u32) -> i64 {
    let (least, wide) = extent(bucket, bits);
    i64::try_from(least + wide).unwrap_or(i64::MAX)
}

/// The least value of a bucket, and how far above it the greatest is.
fn extent(bucket: u32, bits: u32) -> (u64, u64) {
    let shift = (bucket >> bits).saturating_sub(1);
    (u64::from(bucket - (shift << bits)) << shift, (1u64 << shift) - 1)
}

/// Counts of values below the first bound, between each two, and from the last bound on.
fn small_histogram(values: &[(i64, u32)]) -> Vec<u64> {
    let mut counts = vec![0u64; BOUNDS_NS.len() + 1];
    for &(value, n) in values {
        let place = BOUNDS_NS.partition_point(|&bound| bound <= value);
        if let Some(count) = counts.get_mut(place) {
            *count += u64::from(n);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[i64], grain: Grain) -> Latency {
        let mut latency = Latency::new(grain);
        values.iter().for_each(|&value| latency.record(&Sample::new(value)));
        latency
    }

    #[test]
    fn few_values_are_exact() {
        let d = of(&[30, -10, 20, 40], Grain::Coarse).distribution(true);
        assert_eq!((d.n, d.negative, d.sum_ns, d.mean_ns), (4, 1, 80, Some(20)));
        assert_eq!(
            (d.min_ns, d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns),
            (Some(-10), Some(20), Some(40), Some(40), Some(40))
        );
        assert!(d.exact);
        assert_eq!(d.histogram.unwrap()[0], 4);
    }

    #[test]
    fn nothing_recorded_has_no_percentiles() {
        let d = Latency::new(Grain::Fine).distribution(false);
        assert_eq!((d.n, d.p50_ns, d.max_ns, d.mean_ns), (0, None, None, None));
    }

    #[test]
    fn the_longest_duration_does_not_fail_and_its_maximum_is_exact() {
        let mut values = vec![i64::MAX; 70];
        values.push(i64::MIN);
        let d = of(&values, Grain::Fine).distribution(true);
        assert_eq!((d.max_ns, d.min_ns), (Some(i64::MAX), Some(i64::MIN)));
        assert_eq!(d.histogram.unwrap()[BOUNDS_NS.len()], 70);
    }

    #[test]
    fn what_is_exactly_a_bound_counts_above_it() {
        for grain in [Grain::Fine, Grain::Coarse] {
            for (place, &bound) in BOUNDS_NS.iter().enumerate() {
                let histogram = of(&[bound; 100], grain).distribution(true).histogram.unwrap();
                assert_eq!(histogram[place + 1], 100, "{bound}");
            }
        }
    }

    #[test]
    fn every_bucket_is_as_narrow_as_its_grain() {
        for grain in [Grain::Fine, Grain::Coarse] {
            let bits = grain.bits();
            let mut last = 0;
            for power in 0..64 {
                for size in [1u64 << power, (1 << power) + (1u64 << power) / 3, (1 << power) - 1] {
                    let middle = middle(bucket(size, bits), bits).unsigned_abs();
                    assert!(middle.abs_diff(size.min(i64::MAX as u64)) <= size >> bits, "{size}");
                }
                let next = bucket(1 << power, bits);
                assert!(next > last || power == 0, "{power}");
                last = next;
            }
        }
    }

    proptest! {
        #[test]
        fn percentiles_are_within_the_digits_of_the_exact_ones(
            mut values in prop::collection::vec(-200_000_000i64..5_000_000_000, 1..500),
            split in 0usize..500,
        ) {
            let whole = of(&values, Grain::Fine).distribution(true);
            let (a, b) = values.split_at(split.min(values.len()));
            let mut merged = of(a, Grain::Fine);
            merged.absorb(&of(b, Grain::Fine));
            let merged = merged.distribution(true);
            values.sort_unstable();
            let n = values.len();
            prop_assert_eq!((whole.n, merged.n), (n as u64, n as u64));
            for (per_cent, found, other) in [
                (50, whole.p50_ns, merged.p50_ns),
                (95, whole.p95_ns, merged.p95_ns),
                (99, whole.p99_ns, merged.p99_ns),
            ] {
                let exact = values[(n * per_cent).div_ceil(100) - 1];
                let slack = exact.abs() / 500 + 1;
                prop_assert!((found.unwrap() - exact).abs() <= slack);
                prop_assert!((other.unwrap() - exact).abs() <= slack);
            }
            prop_assert_eq!(whole.histogram.unwrap().iter().sum::<u64>(), n as u64);
        }
    }
}

//! The distribution of a duration: exact while there are few values, then a histogram.
//!
//! The first [`FEW`] values are kept as they are, so that short recordings and small groups show
//! exact percentiles; beyond that hdrhistogram counts them with two or three significant digits.
//! Negative durations are real (`server_ns` is never clamped) and sort below zero.

use hdrhistogram::Histogram;

use super::data::Distribution;

/// How many values are kept exactly before a histogram is made.
pub const FEW: usize = 64;

/// Longer durations are counted as this in percentiles (39 hours); the maximum stays exact.
const LONGEST_NS: u64 = 1 << 47;

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

/// Durations of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    n: u64,
    negative: u64,
    sum: i128,
    min: i64,
    max: i64,
    few: Vec<i64>,
    counts: Option<Box<Counts>>,
    digits: u8,
}

#[derive(Clone, Debug)]
struct Counts {
    positive: Histogram<u32>,
    /// Magnitudes of the negative values.
    below: Option<Histogram<u32>>,
}

impl Latency {
    /// An empty distribution with so many significant digits once it holds many values.
    pub(crate) fn new(digits: u8) -> Latency {
        Latency {
            n: 0,
            negative: 0,
            sum: 0,
            min: i64::MAX,
            max: i64::MIN,
            few: Vec::new(),
            counts: None,
            digits,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, value: i64) {
        self.n += 1;
        self.negative += u64::from(value < 0);
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        match &mut self.counts {
            Some(counts) => counts.record(value, 1, self.digits),
            None => self.record_few(value),
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
        let digits = self.digits;
        if self.counts.is_none() {
            self.counts =
                histogram(digits).map(|positive| Box::new(Counts { positive, below: None }));
        }
        if let Some(counts) = &mut self.counts {
            for value in self.few.drain(..) {
                counts.record(value, 1, digits);
            }
        }
    }

    /// Adds all values of `other`.
    pub(crate) fn absorb(&mut self, other: &Latency) {
        self.n += other.n;
        self.negative += other.negative;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        if self.counts.is_none()
            && other.counts.is_none()
            && self.few.len() + other.few.len() <= FEW
        {
            self.few.extend_from_slice(&other.few);
            return;
        }
        self.spill();
        let digits = self.digits;
        if let Some(counts) = &mut self.counts {
            for (value, n) in other.values() {
                counts.record(value, n, digits);
            }
        }
    }

    pub(crate) fn sum(&self) -> i64 {
        self.sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Values in rising order with how often each occurs.
    fn values(&self) -> Vec<(i64, u32)> {
        let Some(counts) = &self.counts else {
            let mut values: Vec<_> = self.few.iter().map(|&value| (value, 1)).collect();
            values.sort_unstable();
            return values;
        };
        let recorded = |histogram: &Histogram<u32>| -> Vec<(i64, u32)> {
            histogram
                .iter_recorded()
                .map(|step| {
                    let value = step.value_iterated_to();
                    (value as i64, step.count_at_value())
                })
                .collect()
        };
        let mut values: Vec<_> = match &counts.below {
            Some(below) => {
                recorded(below).into_iter().rev().map(|(value, n)| (-value, n)).collect()
            }
            None => Vec::new(),
        };
        values.extend(recorded(&counts.positive));
        values
    }

    /// Number, mean, extremes and percentiles; with `histogram` also counts between
    /// [`BOUNDS_NS`].
    pub(crate) fn distribution(&self, histogram: bool) -> Distribution {
        if self.n == 0 {
            return Distribution::default();
        }
        let values = self.values();
        let [p50, p95, p99] = self.ranks(&values, [50, 95, 99]);
        Distribution {
            n: self.n,
            negative: self.negative,
            sum_ns: self.sum(),
            mean_ns: Some((self.sum / i128::from(self.n)) as i64),
            min_ns: Some(self.min),
            p50_ns: Some(p50),
            p95_ns: Some(p95),
            p99_ns: Some(p99),
            max_ns: Some(self.max),
            exact: self.counts.is_none(),
            histogram: histogram.then(|| small_histogram(&values)),
        }
    }

    /// The nearest-rank percentiles: the least value that so many per cent of all do not exceed.
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
    #[inline]
    fn record(&mut self, value: i64, n: u32, digits: u8) {
        if value >= 0 {
            let value = (value as u64).min(LONGEST_NS);
            // Resizing cannot fail below LONGEST_NS.
            let _ = self.positive.record_n(value, n);
        } else {
            self.record_below(value, n, digits);
        }
    }

    #[cold]
    fn record_below(&mut self, value: i64, n: u32, digits: u8) {
        if self.below.is_none() {
            self.below = histogram(digits);
        }
        if let Some(below) = &mut self.below {
            let _ = below.record_n(value.unsigned_abs().min(LONGEST_NS), n);
        }
    }
}

fn histogram(digits: u8) -> Option<Histogram<u32>> {
    Histogram::new(digits).ok()
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

    fn of(values: &[i64], digits: u8) -> Latency {
        let mut latency = Latency::new(digits);
        values.iter().for_each(|&value| latency.record(value));
        latency
    }

    #[test]
    fn few_values_are_exact() {
        let d = of(&[30, -10, 20, 40], 2).distribution(true);
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
        let d = Latency::new(3).distribution(false);
        assert_eq!((d.n, d.p50_ns, d.max_ns, d.mean_ns), (0, None, None, None));
    }

    #[test]
    fn the_longest_duration_does_not_fail_and_its_maximum_is_exact() {
        let mut values = vec![i64::MAX; 70];
        values.push(i64::MIN);
        let d = of(&values, 3).distribution(true);
        assert_eq!((d.max_ns, d.min_ns), (Some(i64::MAX), Some(i64::MIN)));
        assert_eq!(d.histogram.unwrap()[BOUNDS_NS.len()], 70);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_the_digits_of_the_exact_ones(
            mut values in prop::collection::vec(-200_000_000i64..5_000_000_000, 1..500),
            split in 0usize..500,
        ) {
            let whole = of(&values, 3).distribution(true);
            let (a, b) = values.split_at(split.min(values.len()));
            let mut merged = of(a, 3);
            merged.absorb(&of(b, 3));
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

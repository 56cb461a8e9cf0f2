//! A distribution of durations as an HdrHistogram (three significant digits, G. Tene).

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Durations below this are one bucket, in nanoseconds (the histogram rounds it down to 512).
const UNIT_NS: u64 = 1_000;
/// Longer durations count as this one: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Initial size of a histogram: most durations are shorter, and it takes 28 kB.
const USUAL_NS: u64 = 64_000_000;

/// A distribution of durations, in nanoseconds, within 0.1 % of each value and half a microsecond.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u32>);

impl Latencies {
    /// An empty one.
    pub fn new() -> Latencies {
        #[expect(clippy::unwrap_used, reason = "the bounds are constants, a test makes one")]
        let mut histogram = Histogram::new_with_bounds(UNIT_NS, USUAL_NS, 3).unwrap();
        histogram.auto(true);
        Latencies(histogram)
    }

    /// Counts one duration. A negative one (a timer that fired early) counts as zero, more than an hour
    /// as an hour.
    #[inline]
    pub fn record(&mut self, duration_ns: i64) {
        let value = u64::try_from(duration_ns).unwrap_or(0).min(LONGEST_NS);
        // It fails only if there is no memory for the buckets up to an hour.
        let _ = self.0.record(value);
    }

    /// Adds another distribution to this one.
    pub fn merge(&mut self, other: &Latencies) {
        if !other.0.is_empty() {
            let _ = self.0.add(&other.0);
        }
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The duration that this share (0 to 1) of all durations does not exceed; `None` if it is empty.
    pub fn quantile_ns(&self, share: f64) -> Option<i64> {
        // The histogram returns the upper end of a bucket, which may exceed the maximum.
        (!self.0.is_empty())
            .then(|| self.0.value_at_quantile(share).min(self.0.max()).min(LONGEST_NS) as i64)
    }

    /// Mean in nanoseconds; `None` if it is empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean())
    }

    /// Number of durations longer than this.
    pub fn count_above(&self, duration_ns: i64) -> u64 {
        let bound = u64::try_from(duration_ns).unwrap_or(0);
        self.0.len().saturating_sub(self.0.count_between(0, bound))
    }

    /// The figures that tables show.
    pub fn summary(&self) -> Option<Summary> {
        Some(Summary {
            count: self.count(),
            mean_ns: self.mean_ns()?.round() as i64,
            p50_ns: self.quantile_ns(0.50)?,
            p95_ns: self.quantile_ns(0.95)?,
            p99_ns: self.quantile_ns(0.99)?,
            max_ns: self.quantile_ns(1.0)?,
        })
    }

    /// Clears it, but keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

/// A distribution of durations in a few figures, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of durations.
    pub count: u64,
    /// Their mean.
    pub mean_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// 95th percentile.
    pub p95_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let mut latencies = Latencies::new();
        (1..=100_000).for_each(|i| latencies.record(i * 50_000));
        for (share, exact_ns) in [(0.5, 2.5e9), (0.95, 4.75e9), (0.99, 4.95e9), (1.0, 5e9)] {
            let found = latencies.quantile_ns(share).unwrap() as f64;
            assert!((found / exact_ns - 1.0).abs() < 0.001, "{share}: {found}");
        }
        assert!(latencies.count_above(4_000_000_000).abs_diff(20_000) < 100);
    }

    #[test]
    fn values_out_of_range_count_at_its_end() {
        let mut latencies = Latencies::new();
        latencies.record(-5);
        latencies.record(i64::MAX);
        assert_eq!(latencies.count(), 2);
        assert!(latencies.quantile_ns(0.1).unwrap() < UNIT_NS as i64);
        assert_eq!(latencies.quantile_ns(1.0), Some(LONGEST_NS as i64));
        assert_eq!(Latencies::new().summary(), None);
    }
}

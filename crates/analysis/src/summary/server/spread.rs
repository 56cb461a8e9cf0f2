//! A duration's distribution with its standard deviation.

use super::data::Spread;
use crate::stats::latency::{Grain, Latency, Sample};

/// Durations of one kind.
#[derive(Clone, Debug)]
pub(super) struct SpreadTally {
    latency: Latency,
    n: f64,
    mean: f64,
    /// Sum of the squares of the distances from the mean (Welford, Technometrics 4, 1962): the
    /// difference of two large sums of squares would lose precision.
    squares: f64,
}

impl SpreadTally {
    pub(super) fn new() -> SpreadTally {
        SpreadTally { latency: Latency::new(Grain::Coarse), n: 0.0, mean: 0.0, squares: 0.0 }
    }

    pub(super) fn record(&mut self, value: i64) {
        self.latency.record(&Sample::new(value));
        self.n += 1.0;
        let before = value as f64 - self.mean;
        self.mean += before / self.n;
        self.squares += before * (value as f64 - self.mean);
    }

    pub(super) fn sum(&self) -> i64 {
        self.latency.sum()
    }

    /// The sample's standard deviation; none for a single value.
    pub(super) fn finish(&self) -> Spread {
        let stddev = (self.n > 1.0).then(|| (self.squares / (self.n - 1.0)).sqrt() as i64);
        Spread { distribution: self.latency.distribution(false), stddev_ns: stddev }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_deviation_is_the_sample_s() {
        let of = |values: &[i64]| {
            let mut spread = SpreadTally::new();
            values.iter().for_each(|&value| spread.record(value));
            spread.finish()
        };
        // python3: statistics.stdev([2000, 4000, 4000, 4000, 5000, 5000, 7000, 9000]) = 2138.09
        let values = [2000, 4000, 4000, 4000, 5000, 5000, 7000, 9000];
        assert_eq!(of(&values).stddev_ns, Some(2138));
        let far = values.map(|value| value + 1_000_000_000_000);
        assert_eq!(of(&far).stddev_ns, Some(2138));
        assert_eq!((of(&[]).stddev_ns, of(&[5]).stddev_ns), (None, None));
        assert_eq!(of(&[5]).distribution.mean_ns, Some(5));
    }
}

//! How long a quantity had which value: percentiles over time, not over events. Values are kept to within 1 %.

use std::collections::BTreeMap;

/// Every power of two has 2 to the power of this many buckets.
const BITS: u32 = 7;

/// Values with the time that they lasted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weighted {
    buckets: BTreeMap<u32, u128>,
    total: u128,
    most: u64,
}

impl Weighted {
    /// Adds a value that lasted this long.
    pub(crate) fn add(&mut self, value: u64, weight: u64) {
        if weight > 0 {
            *self.buckets.entry(bucket(value)).or_default() += u128::from(weight);
            self.total += u128::from(weight);
            self.most = self.most.max(value);
        }
    }

    /// The value that is not exceeded during this share of the time; 0 without any.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.total as f64).ceil() as u128;
        let mut sum = 0;
        for (&bucket, &weight) in &self.buckets {
            sum += weight;
            if sum >= rank {
                return middle(bucket).min(self.most);
            }
        }
        self.most
    }
}

fn bucket(value: u64) -> u32 {
    let magnitude = 63 - value.max(1).leading_zeros();
    match magnitude.checked_sub(BITS) {
        None => value as u32,
        Some(shift) => ((shift + 1) << BITS) + ((value >> shift) as u32 - (1 << BITS)),
    }
}

fn middle(bucket: u32) -> u64 {
    match (bucket >> BITS).checked_sub(1) {
        None => u64::from(bucket),
        Some(shift) => {
            let least = u64::from((bucket & ((1 << BITS) - 1)) + (1 << BITS)) << shift;
            least + ((1u64 << shift) >> 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_over_time_and_within_one_per_cent() {
        let mut level = Weighted::default();
        assert_eq!(level.quantile(0.5), 0);
        level.add(0, 60);
        level.add(1_000_000, 39);
        level.add(5_000_000_000, 1);
        level.add(77, 0);
        assert_eq!(level.quantile(0.5), 0);
        assert!(level.quantile(0.99).abs_diff(1_000_000) < 10_000);
        assert!(level.quantile(1.0).abs_diff(5_000_000_000) < 50_000_000);
        for value in [0, 1, 127, 128, 129, 1 << 40, u64::MAX] {
            assert!(middle(bucket(value)).abs_diff(value) <= value / 100, "{value}");
        }
    }
}

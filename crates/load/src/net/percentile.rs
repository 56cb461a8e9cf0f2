//! Percentiles of few exact values, by the nearest rank.

/// The value at `percent` of sorted values; 0 of none.
pub(super) fn percentile(sorted: &[i64], percent: u32) -> i64 {
    let rank = (sorted.len() as u64 * u64::from(percent)).div_ceil(100).max(1);
    let place = usize::try_from(rank - 1).unwrap_or(usize::MAX).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let values: Vec<i64> = (1..=200).collect();
        let [least, median, high, most] = [0, 50, 99, 100].map(|p| percentile(&values, p));
        assert_eq!([least, median, high, most], [1, 100, 198, 200]);
        assert_eq!(percentile(&[7], 99), 7);
        assert_eq!(percentile(&[], 50), 0);
    }
}

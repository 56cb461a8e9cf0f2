//! The interval of a share of broken promises: Clopper and Pearson, "The use of confidence or fiducial limits",
//! Biometrika 26 (1934). For none of n it is one-sided, at most 1 - 0.05^(1/n): the rule of three.

/// An interval at 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The interval of the probability of which `found` of `n` were found; `None` for n = 0.
pub fn interval(found: u64, n: u64) -> Option<Interval> {
    if n == 0 || found > n {
        return None;
    }
    if found == 0 {
        return Some(Interval { low: 0.0, high: 1.0 - 0.05_f64.powf(1.0 / n as f64) });
    }
    if found == n {
        return Some(Interval { low: 0.05_f64.powf(1.0 / n as f64), high: 1.0 });
    }
    let low = solve(|p| 1.0 - at_most(found - 1, n, p) < 0.025);
    let high = solve(|p| at_most(found, n, p) > 0.025);
    Some(Interval { low, high })
}

/// The largest probability for which a condition holds that holds below it.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The probability of at most `k` of `n`.
fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if k > n / 2 {
        return 1.0 - if k == n { 0.0 } else { at_most(n - k - 1, n, 1.0 - p) };
    }
    if p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    // Terms from the largest down, so that none of them underflows before the sum is complete.
    let odds = p / (1.0 - p);
    let n = n as f64;
    let mut log_term = n * (1.0 - p).ln();
    let mut logs = Vec::with_capacity(usize::try_from(k).unwrap_or(0).min(1 << 20) + 1);
    logs.push(log_term);
    for i in 0..k {
        let i = i as f64;
        log_term += ((n - i) / (i + 1.0) * odds).ln();
        logs.push(log_term);
    }
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - largest).exp()).sum();
    (largest + sum.ln()).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(found: u64, n: u64) -> (f64, f64) {
        let Interval { low, high } = interval(found, n).unwrap();
        let round = |p: f64| (p * 1e5).round() / 1e5;
        (round(low), round(high))
    }

    #[test]
    fn intervals_are_those_of_tables() {
        assert_eq!(interval(0, 0), None);
        assert_eq!(ends(0, 10_000), (0.0, 0.0003));
        assert_eq!(ends(0, 1), (0.0, 0.95));
        // scipy.stats.binomtest(1, 10).proportion_ci(method="exact"), and so on.
        assert_eq!(ends(1, 10), (0.00253, 0.44502));
        assert_eq!(ends(5, 10), (0.18709, 0.81291));
        assert_eq!(ends(9, 10), (0.55498, 0.99747));
        assert_eq!(ends(3, 1000), (0.00062, 0.00874));
        assert_eq!(ends(10, 10).1, 1.0);
    }
}

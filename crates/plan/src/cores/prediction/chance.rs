//! The busiest core when hashes are unknown.
//!
//! Owns the distribution of the largest share: exact for equal connections, from random draws for recorded ones. Does
//! not own how shares of a table come about.
//!
//! The number of connections on each core is multinomial. The probability that no core has more than m is computed
//! core by core: given how many connections are left, a core's number is binomial (Levin, "A representation for
//! multinomial cumulative distribution functions", Annals of Statistics 9, 1981, has the same quantity).

use serde::Serialize;

/// The most connections of [`busiest`].
pub const CONNECTIONS_MAX: u32 = 64;

/// The most cores of [`busiest`].
pub const CORES_MAX: usize = 256;

/// Draws of [`busiest_at_random`].
pub const DRAWS: u32 = 2_000;

/// The largest connections that [`busiest_at_random`] draws; the packets of all others are spread by the shares.
pub const RECORDED_MAX: usize = 10_000;

/// The busiest core's share of the work, with the 5 % and 95 % quantiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub percent_mean: f64,
    pub percent_p5: f64,
    pub percent_p95: f64,
    /// Random draws; `None` if the distribution is exact.
    pub draws: Option<u32>,
}

/// What equal connections bring.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Busiest {
    pub connections: u32,
    pub busiest: Interval,
    /// The expected number of cores with at least one connection.
    pub cores_mean: f64,
    /// The probability that the busiest core has 1, 2, ... of the connections.
    pub probabilities: Vec<f64>,
}

/// The busiest core of `connections` with equal load, each on a core with the probability of its share (their sum is
/// 1). `None` without connections or cores, or above a limit.
pub fn busiest(connections: u32, shares: &[f64]) -> Option<Busiest> {
    let shares: Vec<f64> = shares.iter().copied().filter(|&share| share > 0.0).collect();
    if connections == 0
        || connections > CONNECTIONS_MAX
        || shares.is_empty()
        || shares.len() > CORES_MAX
    {
        return None;
    }
    let binomials = binomials(connections as usize, &shares);
    let mut probabilities = Vec::new();
    let mut below = 0.0;
    for most in 1..=connections as usize {
        let up_to = at_most(connections as usize, most, &binomials);
        probabilities.push((up_to - below).max(0.0));
        below = up_to;
    }
    let percent = |most: usize| 100.0 * most as f64 / f64::from(connections);
    let quantile = |probability: f64| {
        let mut sum = 0.0;
        let most = probabilities.iter().position(|p| {
            sum += p;
            sum >= probability
        });
        percent(most.map_or(connections as usize, |index| index + 1))
    };
    let percent_mean = (1..).zip(&probabilities).map(|(most, p)| percent(most) * p).sum();
    let busiest = Interval {
        percent_mean,
        percent_p5: quantile(0.05),
        percent_p95: quantile(0.95),
        draws: None,
    };
    let cores_mean =
        shares.iter().map(|share| 1.0 - (1.0 - share).max(0.0).powf(f64::from(connections))).sum();
    Some(Busiest { connections, busiest, cores_mean, probabilities })
}

/// The busiest core's share of recorded packets if each connection falls on a core at random, from [`DRAWS`] draws
/// with a fixed seed. `None` without packets or cores.
pub fn busiest_at_random(packets: &[u64], shares: &[f64]) -> Option<Interval> {
    let total: f64 = packets.iter().map(|&packets| packets as f64).sum();
    if shares.is_empty() || total <= 0.0 {
        return None;
    }
    let mut largest = packets.to_vec();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    let rest: f64 = largest.iter().skip(RECORDED_MAX).map(|&packets| packets as f64).sum();
    let ends: Vec<f64> = shares
        .iter()
        .scan(0.0, |end, share| {
            *end += share;
            Some(*end)
        })
        .collect();
    let mut random = Random(0x5eed);
    let mut percents: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let mut sums: Vec<f64> = shares.iter().map(|share| share * rest).collect();
            for &packets in largest.iter().take(RECORDED_MAX) {
                if let Some(sum) = sums.get_mut(random.choose(&ends)) {
                    *sum += packets as f64;
                }
            }
            100.0 * sums.iter().copied().fold(0.0, f64::max) / total
        })
        .collect();
    percents.sort_by(f64::total_cmp);
    let quantile = |part: f64| percents.get((part * f64::from(DRAWS)) as usize).copied();
    Some(Interval {
        percent_mean: percents.iter().sum::<f64>() / f64::from(DRAWS),
        percent_p5: quantile(0.05)?,
        percent_p95: quantile(0.95)?,
        draws: Some(DRAWS),
    })
}

/// For each core, and each number of connections that are left for it and the cores after it, the probabilities that
/// it has 0, 1, 2 ... of them.
fn binomials(connections: usize, shares: &[f64]) -> Vec<Vec<Vec<f64>>> {
    let mut rest: f64 = shares.iter().sum();
    let mut cores = Vec::new();
    for (index, share) in shares.iter().enumerate() {
        let is_last = index + 1 == shares.len();
        let probability = if is_last { 1.0 } else { (share / rest).clamp(0.0, 1.0) };
        cores.push((0..=connections).map(|left| binomial(left, probability)).collect());
        rest -= share;
    }
    cores
}

/// The probabilities of 0 to `trials` successes, one trial after the other.
fn binomial(trials: usize, probability: f64) -> Vec<f64> {
    let mut row = vec![1.0];
    for _ in 0..trials {
        let mut next = vec![0.0; row.len() + 1];
        for (successes, p) in row.iter().enumerate() {
            for (added, factor) in [(0, 1.0 - probability), (1, probability)] {
                if let Some(sum) = next.get_mut(successes + added) {
                    *sum += p * factor;
                }
            }
        }
        row = next;
    }
    row
}

/// The probability that no core has more than `most` of the connections.
fn at_most(connections: usize, most: usize, binomials: &[Vec<Vec<f64>>]) -> f64 {
    // After the last core no connection may be left.
    let mut after: Vec<f64> =
        (0..=connections).map(|left| if left == 0 { 1.0 } else { 0.0 }).collect();
    for core in binomials.iter().rev() {
        after = core
            .iter()
            .enumerate()
            .map(|(left, row)| {
                row.iter()
                    .take(most + 1)
                    .enumerate()
                    .filter_map(|(n, p)| Some(p * after.get(left.checked_sub(n)?)?))
                    .sum()
            })
            .collect();
    }
    after.last().copied().unwrap_or(0.0)
}

/// A generator that gives the same numbers in each run (Steele and others, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
struct Random(u64);

impl Random {
    /// The index of a share, drawn with its probability, from the sums of the shares up to each.
    fn choose(&mut self, ends: &[f64]) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = ((bits ^ bits >> 31) >> 11) as f64 / (1_u64 << 53) as f64;
        ends.partition_point(|&end| end <= part).min(ends.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways to put connections on cores, one by one.
    fn brute_force(connections: u32, shares: &[f64]) -> Vec<f64> {
        let mut probabilities = vec![0.0; connections as usize];
        for mut code in 0..shares.len().pow(connections) {
            let mut counts = vec![0; shares.len()];
            let mut probability = 1.0;
            for _ in 0..connections {
                counts[code % shares.len()] += 1;
                probability *= shares[code % shares.len()];
                code /= shares.len();
            }
            probabilities[counts.iter().max().unwrap() - 1] += probability;
        }
        probabilities
    }

    #[test]
    fn the_distribution_is_exact() {
        for (connections, shares) in [
            (1, vec![1.0]),
            (4, vec![0.25; 4]),
            (5, vec![0.5, 0.3, 0.2]),
            (6, vec![0.1, 0.2, 0.3, 0.4]),
        ] {
            let found = busiest(connections, &shares).unwrap();
            for (a, b) in found.probabilities.iter().zip(brute_force(connections, &shares)) {
                assert!((a - b).abs() < 1e-12, "{connections} on {shares:?}: {a} for {b}");
            }
        }
    }

    #[test]
    fn four_connections_on_four_cores_seldom_use_all() {
        let found = busiest(4, &[0.25; 4]).unwrap();
        // 4! of 4^4 ways use each core once; the mean of cores in use is 4 (1 - (3/4)^4).
        assert!((found.probabilities[0] - 24.0 / 256.0).abs() < 1e-12);
        assert!((found.cores_mean - 4.0 * (1.0 - 0.75_f64.powi(4))).abs() < 1e-12);
        assert_eq!((found.busiest.percent_p5, found.busiest.percent_p95), (25.0, 75.0));
        assert!((found.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn draws_agree_with_the_exact_distribution() {
        let shares = [0.4, 0.3, 0.2, 0.1];
        let exact = busiest(8, &shares).unwrap().busiest;
        let drawn = busiest_at_random(&[7; 8], &shares).unwrap();
        // The mean's standard error is about 0.3 percentage points with 2,000 draws.
        assert!((exact.percent_mean - drawn.percent_mean).abs() < 1.5, "{exact:?} {drawn:?}");
        assert_eq!((exact.percent_p5, exact.percent_p95), (drawn.percent_p5, drawn.percent_p95));
        assert_eq!(busiest_at_random(&[7; 8], &shares), Some(drawn));
    }

    #[test]
    fn limits_give_nothing() {
        assert_eq!(busiest(0, &[1.0]), None);
        assert_eq!(busiest(CONNECTIONS_MAX + 1, &[1.0]), None);
        assert_eq!(busiest(2, &[]), None);
        assert_eq!(busiest_at_random(&[], &[1.0]), None);
        // With more connections than are drawn the shares of the table remain.
        let many = busiest_at_random(&[1; 3 * RECORDED_MAX], &[0.75, 0.25]).unwrap();
        assert!((many.percent_mean - 75.0).abs() < 0.5 && many.percent_p95 < 76.0, "{many:?}");
        let largest = busiest(CONNECTIONS_MAX, &[1.0 / CORES_MAX as f64; CORES_MAX]).unwrap();
        assert!((largest.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

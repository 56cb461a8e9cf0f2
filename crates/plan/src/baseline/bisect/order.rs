//! The order in which suspects are put in force, and where it is split.
//!
//! Weights are the predicted costs; a share of them is spread evenly, because a prediction can be wrong. A split halves the
//! weight as well as it can while each side can still be bisected in the tries that its size needs: the number of
//! tries stays at most log2 of the suspects, whatever the weights are.

use super::Candidate;

/// Share of the weight that is spread evenly over all suspects.
const EVEN_SHARE: f64 = 0.1;

/// Numbers of candidates, the heaviest first.
pub(super) fn by_weight(candidates: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<_> = candidates.iter().map(own).enumerate().collect();
    order.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    order.into_iter().map(|(number, _)| number).collect()
}

fn own(candidate: &Candidate) -> f64 {
    if candidate.weight.is_finite() { candidate.weight.max(0.0) } else { 0.0 }
}

/// The share of each in the weight of all; they sum to 1.
pub(super) fn shares(candidates: &[Candidate]) -> Vec<f64> {
    let all: f64 = candidates.iter().map(own).sum();
    let even = if all > 0.0 { EVEN_SHARE } else { 1.0 } / candidates.len() as f64;
    let own = |one| if all > 0.0 { (1.0 - EVEN_SHARE) * own(one) / all } else { 0.0 };
    candidates.iter().map(|one| own(one) + even).collect()
}

/// How many of these, from the first, to try now: at least one, and not all.
pub(super) fn split(shares: &[f64]) -> usize {
    let count = shares.len();
    // The most that can be bisected with one try less than all of them need.
    let side = count.next_power_of_two() / 2;
    let half: f64 = shares.iter().sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let sums = shares.iter().map(|share| {
        sum += share;
        (sum - half).abs()
    });
    let allowed = sums.enumerate().map(|(place, off)| (place + 1, off));
    let allowed = allowed.filter(|(taken, _)| *taken <= side && count - taken <= side);
    let best = allowed.min_by(|one, other| one.1.total_cmp(&other.1));
    best.map_or(1, |(taken, _)| taken)
}

/// The most tries that bisect these, and their mean by weight.
pub(super) fn effort(shares: &[f64]) -> (usize, f64) {
    let (mut most, mut mean) = (0, 0.0);
    let mut open = vec![(shares, 0)];
    while let Some((part, depth)) = open.pop() {
        if part.len() < 2 {
            most = most.max(depth);
            mean += part.iter().sum::<f64>() * depth as f64;
            continue;
        }
        let (first, rest) = part.split_at(split(part).clamp(1, part.len() - 1));
        open.extend([(first, depth + 1), (rest, depth + 1)]);
    }
    (most, mean / shares.iter().sum::<f64>().max(f64::MIN_POSITIVE))
}

//! How large a difference is, in addition to how certain: Cliff's delta with its labels, and Holm's
//! correction for testing many groups at once.
//!
//! Cliff, Dominance statistics, Psychological Bulletin 114 (1993); the thresholds of the words are
//! those of Romano, Kromrey, Coraggio and Skowronek, Appropriate statistics for ordinal level data,
//! Florida Association of Institutional Research (2006). Holm, A simple sequentially rejective
//! multiple test procedure, Scandinavian Journal of Statistics 6 (1979).

use serde::Serialize;

use crate::stats::latency::Latency;

/// The label of Cliff's delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// |delta| under 0.147.
    Negligible,
    /// Under 0.33.
    Small,
    /// Under 0.474.
    Medium,
    /// From 0.474.
    Large,
}

impl Effect {
    /// The label for a delta.
    pub fn from_delta(delta: f64) -> Effect {
        match delta.abs() {
            size if size < 0.147 => Effect::Negligible,
            size if size < 0.33 => Effect::Small,
            size if size < 0.474 => Effect::Medium,
            _ => Effect::Large,
        }
    }

    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Negligible => "negligible",
            Effect::Small => "small",
            Effect::Medium => "medium",
            Effect::Large => "large",
        }
    }
}

/// The probability that a value of `b` is larger than one of `a`, minus the reverse: from -1 to 1.
/// None if one of them is empty.
pub(crate) fn cliffs_delta(a: &Latency, b: &Latency) -> Option<f64> {
    // If only one side is exact, its values must not win or lose against their own bucket.
    let exact = a.is_exact() && b.is_exact();
    let [a, b] = [a, b].map(|side| if exact { side.values() } else { side.buckets() });
    let total = |side: &[(i64, u32)]| side.iter().map(|&(_, n)| u128::from(n)).sum::<u128>();
    let (total_a, total_b) = (total(&a), total(&b));
    if total_a == 0 || total_b == 0 {
        return None;
    }
    let (mut larger, mut smaller) = (0u128, 0u128);
    let mut rest = a.iter().peekable();
    let mut below = 0u128;
    for &(value, n) in &b {
        while let Some(&&(_, n)) = rest.peek().filter(|(other, _)| *other < value) {
            below += u128::from(n);
            rest.next();
        }
        // Equal values can come several times while they are exact.
        let equal = rest.clone().take_while(|(other, _)| *other == value);
        let equal: u128 = equal.map(|&(_, n)| u128::from(n)).sum();
        larger += u128::from(n) * below;
        smaller += u128::from(n) * (total_a - below - equal);
    }
    let pairs = total_a as f64 * total_b as f64;
    Some((larger as f64 - smaller as f64) / pairs)
}

/// Holm's adjusted p-values, each for its place; null stays null.
pub(crate) fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut known: Vec<(usize, f64)> =
        p.iter().enumerate().filter_map(|(place, p)| Some((place, (*p)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut adjusted = vec![None; p.len()];
    let mut least = 0.0f64;
    for (rank, &(place, p)) in known.iter().enumerate() {
        least = least.max((p * (known.len() - rank) as f64).min(1.0));
        if let Some(slot) = adjusted.get_mut(place) {
            *slot = Some(least);
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::latency::{Grain, Sample};
    use proptest::prelude::*;

    fn of(values: &[i64]) -> Latency {
        let mut latency = Latency::new(Grain::Fine);
        values.iter().for_each(|&value| latency.record(&Sample::new(value)));
        latency
    }

    #[test]
    fn delta_of_what_lies_apart_is_one_and_of_nothing_none() {
        assert_eq!(cliffs_delta(&of(&[1, 2]), &of(&[3, 4, 5])), Some(1.0));
        assert_eq!(cliffs_delta(&of(&[3, 4, 5]), &of(&[1, 2])), Some(-1.0));
        assert_eq!(cliffs_delta(&of(&[7, 7]), &of(&[7])), Some(0.0));
        assert_eq!(cliffs_delta(&of(&[]), &of(&[7])), None);
    }

    #[test]
    fn the_words_are_those_of_romano() {
        let word = |delta| Effect::from_delta(delta).name();
        assert_eq!([0.0, 0.146, -0.147].map(word), ["negligible", "negligible", "small"]);
        assert_eq!([0.329, 0.33, -0.473].map(word), ["small", "medium", "medium"]);
        assert_eq!([0.474, -1.0].map(word), ["large", "large"]);
    }

    #[test]
    fn holm_multiplies_the_least_by_all_the_next_by_one_less() {
        let adjusted = holm(&[Some(0.03), None, Some(0.01), Some(0.04)]);
        let wanted = [Some(0.06), None, Some(0.03), Some(0.06)];
        for (found, wanted) in adjusted.iter().zip(wanted) {
            assert_eq!(found.is_some(), wanted.is_some());
            assert!((found.unwrap_or(0.0) - wanted.unwrap_or(0.0)).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[Some(0.9), Some(0.8)]), [Some(1.0), Some(1.0)]);
    }

    proptest! {
        #[test]
        fn delta_is_what_counting_pairs_gives(
            a in prop::collection::vec(-20i64..60, 1..60),
            b in prop::collection::vec(-20i64..60, 1..120),
        ) {
            // Values this small have a bucket each, so that a histogram loses nothing either.
            let (mut larger, mut smaller) = (0i64, 0i64);
            for x in &a {
                larger += b.iter().filter(|y| *y > x).count() as i64;
                smaller += b.iter().filter(|y| *y < x).count() as i64;
            }
            let wanted = (larger - smaller) as f64 / (a.len() * b.len()) as f64;
            let found = cliffs_delta(&of(&a), &of(&b)).unwrap();
            prop_assert!((found - wanted).abs() < 1e-12, "{} {}", found, wanted);
            prop_assert_eq!(cliffs_delta(&of(&b), &of(&a)).unwrap(), -found);
        }
    }
}

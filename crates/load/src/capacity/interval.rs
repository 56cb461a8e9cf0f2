//! The interval in which the capacity lies, from all steps of a search.
//!
//! Whether a step is overloaded is a matter of chance near the limit, and a search has few steps
//! there, some of which may contradict each other. That is the problem of psychometrics: find the
//! threshold of a yes-no answer from few trials at adaptively chosen strengths. Its solution is
//! used here: the posterior of the threshold of a logistic function over the logarithm of the
//! users (Watson and Pelli 1983, QUEST; Kontsevich and Tyler 1999), with its width unknown (from
//! a third of a percent to a tenth) and one verdict in fifty wrong for reasons that have nothing
//! to do with the load. Flat priors over the logarithms; the interval holds 95 % of the posterior.

use serde::{Deserialize, Serialize};

/// Share of the posterior that the interval holds.
pub const CONFIDENCE: f64 = 0.95;
/// Verdicts that are wrong whatever the load.
const LAPSE: f64 = 0.02;
/// Widths of the logistic function, in logarithms of users.
const WIDTHS: [f64; 6] = [0.003, 0.006, 0.0125, 0.025, 0.05, 0.1];
/// Points of the grid over the threshold.
const POINTS: usize = 1_200;

/// Between which numbers of users overload begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound; `None` if every step was overloaded.
    pub low: Option<f64>,
    /// At most; none when no step was overloaded.
    pub high: Option<f64>,
}

impl Interval {
    /// From the steps' users and whether they were overloaded.
    pub fn from_steps(steps: &[(u64, bool)]) -> Interval {
        let any = |overloaded| steps.iter().any(|step| step.1 == overloaded);
        let (kept, over) = (any(false), any(true));
        let users = || steps.iter().map(|step| step.0.max(1) as f64);
        let (Some(least), Some(most)) = (users().reduce(f64::min), users().reduce(f64::max)) else {
            return Interval { low: None, high: None };
        };
        let from = (least / 4.0).ln();
        let by = ((most * 4.0).ln() - from) / (POINTS - 1) as f64;
        let mut posterior = vec![0.0; POINTS];
        for (point, weight) in posterior.iter_mut().enumerate() {
            let threshold = from + by * point as f64;
            *weight = WIDTHS
                .iter()
                .map(|width| {
                    steps.iter().fold(1.0, |likelihood, &(users, overloaded)| {
                        let z = ((users.max(1) as f64).ln() - threshold) / width;
                        let p = LAPSE + (1.0 - 2.0 * LAPSE) / (1.0 + (-z).exp());
                        likelihood * if overloaded { p } else { 1.0 - p }
                    })
                })
                .sum();
        }
        let all: f64 = posterior.iter().sum();
        let quantile = |share: f64| {
            let mut sum = 0.0;
            let point = posterior.iter().position(|weight| {
                sum += weight / all;
                sum >= share
            });
            (from + by * point.unwrap_or(POINTS - 1) as f64).exp()
        };
        let tail = (1.0 - CONFIDENCE) / 2.0;
        Interval {
            // One-sided where only one side was seen.
            low: kept.then(|| quantile(if over { tail } else { 2.0 * tail })),
            high: over.then(|| quantile(if kept { 1.0 - tail } else { 1.0 - 2.0 * tail })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_edge_gives_the_bracket() {
        let steps = [(100, false), (200, true), (150, false), (175, true), (162, false)];
        let confirmed = [(168, true), (168, true), (162, false), (162, false)];
        let Interval { low: Some(low), high: Some(high) } =
            Interval::from_steps(&[&steps[..], &confirmed[..]].concat())
        else {
            panic!("both sides were seen")
        };
        assert!((150.0..163.0).contains(&low), "{low}");
        assert!((167.0..180.0).contains(&high), "{high}");
    }

    #[test]
    fn more_contradiction_means_a_wider_interval() {
        let width = |steps: &[(u64, bool)]| {
            let interval = Interval::from_steps(steps);
            interval.high.unwrap() - interval.low.unwrap()
        };
        let clear = [(100, false), (100, false), (110, true), (110, true)];
        let unclear = [(100, false), (100, true), (110, true), (110, false)];
        assert!(width(&unclear) > 1.5 * width(&clear));
    }

    #[test]
    fn a_side_that_was_not_seen_is_open() {
        assert_eq!(Interval::from_steps(&[]), Interval { low: None, high: None });
        let kept = Interval::from_steps(&[(100, false), (200, false), (200, false)]);
        assert!(kept.high.is_none() && kept.low.unwrap() > 100.0, "{kept:?}");
        let over = Interval::from_steps(&[(100, true), (50, true)]);
        assert!(over.low.is_none() && over.high.unwrap() < 100.0, "{over:?}");
        assert!(Interval::from_steps(&[(0, true), (u64::MAX, false)]).low.is_some());
    }
}

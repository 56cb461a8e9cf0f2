//! Durations that agree: a timer that expired, and not work, takes the same time again and again.

/// Most durations that are kept.
const KEPT_MAX: usize = 65_536;
/// Durations of a timer differ by at most this share ...
const SPREAD_SHARE: f64 = 0.002;
/// ... or by a tick of a clock and the way through the machine, ns, but no more than this share.
const TICK_NS: f64 = 16e6;
const TICK_SHARE: f64 = 0.04;
/// Durations within this factor are what a timer must stand out from.
pub(super) const AROUND: f64 = 1.5;
/// A timer has this many times as many durations as chance would bring together.
const TIMES_CHANCE: f64 = 4.0;
/// A timer has this share of the durations around it.
pub(super) const SHARE_MIN: f64 = 0.3;

/// Durations, as far as there is room.
#[derive(Default)]
pub(super) struct Durations(Vec<i64>);

/// Durations that agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Constant {
    /// Their number.
    pub(super) n: u64,
    /// The shortest and the longest, ns.
    pub(super) range_ns: (i64, i64),
    /// Their mean, ns.
    pub(super) mean_ns: f64,
}

impl Constant {
    /// One duration that is known to be that of a timer.
    pub(super) fn single(ns: i64) -> Constant {
        Constant { n: 1, range_ns: (ns, ns), mean_ns: ns as f64 }
    }

    pub(super) fn contains(&self, ns: i64) -> bool {
        (self.range_ns.0..=self.range_ns.1).contains(&ns)
    }
}

impl Durations {
    pub(super) fn add(&mut self, ns: i64) {
        if ns > 0 && self.0.len() < KEPT_MAX {
            self.0.push(ns);
        }
    }

    /// The longest one, ns.
    pub(super) fn longest(&self) -> Option<i64> {
        self.0.iter().copied().max()
    }

    /// The constants at which at least `least` durations of that length agree,
    /// the one with most time first.
    pub(super) fn constants(self, least: impl Fn(i64) -> u64) -> Vec<Constant> {
        self.constants_among(least).0
    }

    /// The same, and all durations in order.
    pub(super) fn constants_among(
        mut self,
        least: impl Fn(i64) -> u64,
    ) -> (Vec<Constant>, Vec<i64>) {
        self.0.sort_unstable();
        let mut rest = self.0.clone();
        let mut found = Vec::new();
        while let Some(constant) = most(&rest, &least) {
            rest.retain(|ns| !constant.contains(*ns));
            found.push(constant);
            if found.len() >= 4 {
                break;
            }
        }
        (found, self.0)
    }
}

/// The constant with most time among sorted durations.
fn most(sorted: &[i64], least: impl Fn(i64) -> u64) -> Option<Constant> {
    let mut best: Option<Constant> = None;
    let mut end = 0;
    for (begin, &first) in sorted.iter().enumerate() {
        let spread = spread_ns(first);
        while sorted.get(end).is_some_and(|ns| ns.saturating_sub(first) <= spread) {
            end += 1;
        }
        let within = sorted.get(begin..end).unwrap_or_default();
        let n = within.len() as u64;
        let sum: f64 = within.iter().map(|ns| *ns as f64).sum();
        let is_more = best.is_none_or(|best| sum > best.mean_ns * best.n as f64);
        if n < least(first) || !is_more {
            continue;
        }
        let (low, high) = ((first as f64 / AROUND) as i64, (first as f64 * AROUND) as i64);
        let around = sorted.partition_point(|ns| *ns <= high)
            - sorted.partition_point(|ns| *ns < low)
            - within.len();
        let chance = around as f64 * spread as f64 / (high - low).max(1) as f64;
        let share = n as f64 / (n as f64 + around as f64);
        if n as f64 >= TIMES_CHANCE * chance && share >= SHARE_MIN {
            let last = within.last().copied().unwrap_or(first);
            best = Some(Constant { n, range_ns: (first, last), mean_ns: sum / n as f64 });
        }
    }
    best
}

pub(super) fn spread_ns(ns: i64) -> i64 {
    let ns = ns as f64;
    (SPREAD_SHARE * ns).max(TICK_NS.min(TICK_SHARE * ns)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn constants(all: impl IntoIterator<Item = i64>) -> Vec<(u64, i64)> {
        let mut durations = Durations::default();
        all.into_iter().for_each(|ns| durations.add(ns));
        let found = durations.constants(|_| 3).into_iter();
        found.map(|one| (one.n, (one.mean_ns / MS as f64).round() as i64)).collect()
    }

    #[test]
    fn a_timer_stands_out_and_scattered_durations_do_not() {
        let timer = (0..8).map(|n| 10_001 * MS + n * MS / 2);
        let others = [1_600 * MS, 6_279 * MS, 2_900 * MS];
        assert_eq!(constants(timer.chain(others)), [(8, 10_003)]);
        // Evenly spread between 100 and 300 ms.
        assert_eq!(constants((0..400).map(|n| 100 * MS + n * MS / 2)), []);
        assert_eq!(constants([10_000 * MS, 10_001 * MS]), []);
    }

    #[test]
    fn two_timers_are_two_constants() {
        let both = (0..5).map(|n| 200 * MS + n * MS).chain((0..5).map(|n| 1_000 * MS + n * MS));
        assert_eq!(constants(both), [(5, 1_002), (5, 202)]);
    }
}

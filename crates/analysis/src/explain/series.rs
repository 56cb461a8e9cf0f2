//! Timers that belong together. Something waits for a timer, tries again, and gives up after one, two or more tries: its
//! operations take a time, or a multiple of it. With back-off each wait is twice as long as the one before (RFC 6298
//! section 5.5, RFC 1035 section 4.2.1), so that operations take 1, 2, 4 or 8 s if only the last wait counts, and 1, 3, 7
//! or 15 s if all do.

use super::durations::{AROUND, Constant, SHARE_MIN, spread_ns};

/// Shorter timers have ticks, not tries, ns.
const BASE_MIN_NS: f64 = 100e6;
/// Most tries.
const STEPS_MAX: u32 = 8;
/// What a time may be of the base of its series: the second, third and fourth of each law.
const DIVISORS: [f64; 5] = [2.0, 3.0, 4.0, 7.0, 8.0];
/// A series without a time that recurs has at least this many different times, and operations.
const MEMBERS_MIN: usize = 3;
const OPERATIONS_MIN: u64 = 4;
/// Most times that are tried as the base of such a series.
const BASES_MAX: usize = 1_024;

/// How the times of a series follow from the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Law {
    /// 1, 2, 3, 4: the same wait again.
    Multiples,
    /// 1, 2, 4, 8: the last of waits that double.
    Doubling,
    /// 1, 3, 7, 15: waits that double, together.
    Sums,
}

impl Law {
    const ALL: [Law; 3] = [Law::Multiples, Law::Doubling, Law::Sums];

    /// The time after this many tries, as a multiple of the first.
    pub(super) fn times(self, tries: u32) -> f64 {
        match self {
            Law::Multiples => f64::from(tries),
            Law::Doubling => f64::from(1_u32 << (tries - 1)),
            Law::Sums => f64::from((1_u32 << tries) - 1),
        }
    }
}

/// Times of one timer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) law: Law,
    /// The shortest first.
    pub(super) members: Vec<Constant>,
}

impl Series {
    /// A single time.
    pub(super) fn single(constant: Constant) -> Series {
        Series { law: Law::Multiples, members: vec![constant] }
    }

    pub(super) fn n(&self) -> u64 {
        self.members.iter().map(|one| one.n).sum()
    }

    fn has(&self, ns: i64) -> bool {
        self.members.iter().any(|one| one.contains(ns))
    }
}

/// The series that constants are part of, each constant in one of them; `sorted` has all durations.
pub(super) fn series(constants: Vec<Constant>, sorted: &[i64]) -> Vec<Series> {
    let mut found: Vec<Series> = Vec::new();
    for constant in constants {
        if found.iter().any(|one| one.has(constant.range_ns.0)) {
            continue;
        }
        let bases = DIVISORS.iter().filter_map(|times| around(sorted, constant.mean_ns / times));
        let all = bases.chain([constant]).filter_map(|base| longest(base, sorted));
        let all = all.filter(|one| one.has(constant.range_ns.0));
        found.push(all.max_by_key(rank).unwrap_or_else(|| Series::single(constant)));
    }
    if found.is_empty() {
        // Each of the times may occur once only.
        let mut bases: Vec<_> = sorted.iter().filter(|ns| **ns as f64 >= BASE_MIN_NS).collect();
        bases.truncate(BASES_MAX);
        let bases = bases.into_iter().filter_map(|ns| around(sorted, *ns as f64));
        let all = bases.filter_map(|base| longest(base, sorted));
        let all = all.filter(|one| one.members.len() >= MEMBERS_MIN && one.n() >= OPERATIONS_MIN);
        found.extend(all.max_by_key(rank));
    }
    found
}

/// Which of two series explains more: operations, then times, then the simplest law.
fn rank(one: &Series) -> (u64, usize, bool) {
    (one.n(), one.members.len(), one.law == Law::Multiples)
}

/// The longest series that begins with a time; none if no other time is part of it.
fn longest(base: Constant, sorted: &[i64]) -> Option<Series> {
    if base.mean_ns < BASE_MIN_NS {
        return None;
    }
    let all = Law::ALL.into_iter().map(|law| {
        let later =
            (2..=STEPS_MAX).map_while(|tries| around(sorted, base.mean_ns * law.times(tries)));
        Series { law, members: std::iter::once(base).chain(later).collect() }
    });
    all.filter(|one| one.members.len() > 1).max_by_key(rank)
}

/// The durations of about that length, if most of those around it are.
fn around(sorted: &[i64], ns: f64) -> Option<Constant> {
    let spread = spread_ns(ns as i64);
    let within = slice(sorted, ns as i64 - spread, ns as i64 + spread);
    let nearby = slice(sorted, (ns / AROUND) as i64, (ns * AROUND) as i64).len();
    let (first, last) = (*within.first()?, *within.last()?);
    let sum: f64 = within.iter().map(|ns| *ns as f64).sum();
    let n = within.len();
    (n as f64 >= SHARE_MIN * nearby as f64).then(|| Constant {
        n: n as u64,
        range_ns: (first, last),
        mean_ns: sum / n as f64,
    })
}

/// The durations from `low` to `high`.
fn slice(sorted: &[i64], low: i64, high: i64) -> &[i64] {
    let begin = sorted.partition_point(|ns| *ns < low);
    let end = sorted.partition_point(|ns| *ns <= high);
    sorted.get(begin..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::durations::Durations;
    use super::*;

    const MS: i64 = 1_000_000;

    /// The laws, and the times in ms, of the series of durations that are written in ms.
    fn laws(all: &[i64]) -> Vec<(Law, Vec<i64>)> {
        let mut durations = Durations::default();
        // Nothing takes exactly its time.
        let exact = all.iter().enumerate().map(|(place, ms)| ms * MS + place as i64 * 300_000);
        exact.for_each(|ns| durations.add(ns));
        let (constants, sorted) = durations.constants_among(|_| 3);
        let found = series(constants, &sorted).into_iter();
        let ms = |one: &Constant| (one.mean_ns / 1e8).round() as i64 * 100;
        found.map(|one| (one.law, one.members.iter().map(ms).collect())).collect()
    }

    #[test]
    fn names_the_law_of_a_series() {
        let doubling = laws(&[1_000, 2_000, 4_000, 8_000, 1_000, 2_000, 4_000, 1_000]);
        assert_eq!(doubling, [(Law::Doubling, vec![1_000, 2_000, 4_000, 8_000])]);
        let short = laws(&[500, 500, 500, 1_000, 1_000, 2_000]);
        assert_eq!(short, [(Law::Doubling, vec![500, 1_000, 2_000])]);
        let multiples = laws(&[3_000, 6_000, 9_000, 9_000, 9_000, 9_000]);
        assert_eq!(multiples, [(Law::Multiples, vec![3_000, 6_000, 9_000])]);
        let syn = laws(&[1_000, 3_000, 7_000, 1_000, 3_000, 1_000]);
        assert_eq!(syn, [(Law::Sums, vec![1_000, 3_000, 7_000])]);
        let resolver = laws(&[5_000, 10_000, 5_000, 10_000, 5_000, 10_000]);
        assert_eq!(resolver, [(Law::Multiples, vec![5_000, 10_000])]);
    }

    #[test]
    fn each_time_of_a_series_may_occur_once_if_there_are_several() {
        assert_eq!(
            laws(&[1_000, 2_000, 4_000, 8_000]),
            [(Law::Doubling, vec![1_000, 2_000, 4_000, 8_000])]
        );
        assert_eq!(laws(&[1_000, 2_000, 4_000]), []);
        assert_eq!(laws(&[1_000, 1_000, 2_000, 2_000]), []);
    }

    #[test]
    fn times_without_a_law_stay_apart() {
        let two = laws(&[1_000, 1_000, 1_000, 3_700, 3_700, 3_700]);
        assert_eq!(two, [(Law::Multiples, vec![3_700]), (Law::Multiples, vec![1_000])]);
        // What lies around twice the time is spread evenly.
        let spread: Vec<_> = (0..40).map(|n| 1_400 + 40 * n).chain([700; 5]).collect();
        assert_eq!(laws(&spread), [(Law::Multiples, vec![700])]);
    }
}

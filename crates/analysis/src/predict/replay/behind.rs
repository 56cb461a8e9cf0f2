//! What an asynchronous second server lacks, over time: bytes, and how old the oldest missing write is (the recovery
//! point). Times are exact; memory is bounded: a minute, and at most 262,144 different times of it.
//!
//! Operations come in the order in which they were written down, by each of a run's threads a second's at once.

use std::collections::BTreeMap;

use crate::stats::weighted::Weighted;

const KEPT_NS: i64 = 60_000_000_000;
const TIMES_MAX: usize = 1 << 18;
/// Pieces of the time while one write is missing, in which its age grows: a piece's middle is within 1 % of its end.
const PIECES: i64 = 64;

/// How many bytes are missing, and for how long they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    /// By how much the number of missing bytes changes.
    changes: BTreeMap<i64, i64>,
    bytes: i64,
    most: i64,
    settled: Option<i64>,
    levels: Weighted,
    /// Arrival of what was sent at a time, ns.
    sends: BTreeMap<i64, i64>,
    /// Arrival of all that was sent before, ns.
    arrived: Option<i64>,
    ages: Weighted,
}

/// Percentiles over the time from the first write to the last arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BehindShares {
    pub(super) most: u64,
    pub(super) bytes: [u64; 2],
    pub(super) age_ns: [i64; 2],
}

impl Behind {
    pub(super) fn add(&mut self, sent: i64, arrives: i64, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        for (at, change) in [(sent, bytes), (arrives, -bytes)] {
            let sum = self.changes.entry(at).or_default();
            *sum = sum.saturating_add(change);
        }
        let latest = self.sends.entry(sent).or_insert(arrives);
        *latest = (*latest).max(arrives);
        let old = sent.saturating_sub(KEPT_NS);
        while let Some(first) = self.changes.first_entry()
            && *first.key() < old
        {
            let (at, change) = first.remove_entry();
            self.settle(at, change);
        }
        while self.changes.len() > TIMES_MAX
            && let Some((at, change)) = self.changes.pop_first()
        {
            self.settle(at, change);
        }
        while let Some(first) = self.sends.first_entry()
            && *first.key() < old
        {
            let (at, arrives) = first.remove_entry();
            self.arrive(at, arrives);
        }
        while self.sends.len() > TIMES_MAX
            && let Some((at, arrives)) = self.sends.pop_first()
        {
            self.arrive(at, arrives);
        }
    }

    fn settle(&mut self, at: i64, change: i64) {
        if let Some(before) = self.settled {
            let lasted = at.saturating_sub(before).max(0).cast_unsigned();
            self.levels.add(self.bytes.max(0).cast_unsigned(), lasted);
        }
        self.settled = Some(self.settled.map_or(at, |before| before.max(at)));
        self.bytes = self.bytes.saturating_add(change);
        self.most = self.most.max(self.bytes);
    }

    /// The oldest missing write is this one, from the arrival of those before it to its own.
    fn arrive(&mut self, sent: i64, arrives: i64) {
        let from = match self.arrived {
            Some(arrived) => {
                self.ages.add(0, sent.saturating_sub(arrived).max(0).cast_unsigned());
                arrived.max(sent)
            }
            None => sent,
        };
        let piece = arrives.saturating_sub(from).max(0) / PIECES;
        for number in 0..PIECES {
            let age = from.saturating_sub(sent).saturating_add(piece * number + piece / 2);
            self.ages.add(age.max(0).cast_unsigned(), piece.cast_unsigned());
        }
        self.arrived = Some(self.arrived.map_or(arrives, |before| before.max(arrives)));
    }

    /// The result.
    pub(super) fn finish(&self) -> BehindShares {
        let mut all = self.clone();
        for (at, change) in std::mem::take(&mut all.changes) {
            all.settle(at, change);
        }
        for (sent, arrives) in std::mem::take(&mut all.sends) {
            all.arrive(sent, arrives);
        }
        let ns = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let most = all.most.max(0).cast_unsigned();
        BehindShares {
            most,
            // A histogram gives the upper end of a bin.
            bytes: [0.5, 0.99].map(|share| all.levels.quantile(share).min(most)),
            age_ns: [0.5, 0.99].map(|share| ns(all.ages.quantile(share))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A thread's writes of one second are flushed together; one flush also covers the writes of the other threads.
    #[test]
    fn what_is_under_way_does_not_hang_on_the_order_of_the_rows() {
        // Two threads, each with 8 kB in transit for 5 ms of every 10.
        let of = |thread: i64| (0..100).map(move |turn| (10 * turn + 2 * thread) * MS);
        let most = |rows: Vec<i64>| {
            let mut behind = Behind::default();
            rows.into_iter().for_each(|sent| behind.add(sent, sent + 5 * MS, 8_000));
            behind.finish().most
        };
        let one_after_the_other: Vec<i64> = of(0).chain(of(1)).collect();
        let mut in_time = one_after_the_other.clone();
        in_time.sort_unstable();
        assert_eq!(most(in_time), 16_000);
        assert_eq!(most(one_after_the_other), 16_000);
        assert_eq!(most(of(1).chain(of(0)).collect()), 16_000);
        // Long ago, and a line that never brings it.
        assert_eq!(most(vec![i64::MIN / 2, 0, i64::MAX - 5 * MS]), 8_000);
    }

    #[test]
    fn percentiles_are_those_of_moments() {
        // 1,000 bytes on the way for 20 ms of every 100.
        let mut behind = Behind::default();
        (0..1_000).for_each(|turn| behind.add(turn * 100 * MS, (turn * 100 + 20) * MS, 1_000));
        let found = behind.finish();
        assert_eq!((found.most, found.bytes[0]), (1_000, 0));
        assert!(found.bytes[1].abs_diff(1_000) <= 10, "{found:?}");
        // Their age is up to 20 ms in a fifth of the time: the oldest in a hundredth.
        assert_eq!(found.age_ns[0], 0);
        assert!((18 * MS..=20 * MS).contains(&found.age_ns[1]), "{found:?}");
    }

    /// Writes far apart that arrive after much less than a millisecond: percentiles are within 1 % of what they are.
    #[test]
    fn short_times_are_exact() {
        for (every, takes) in [(10 * MS, 155_000), (1_000_000, 66_500), (200_000, 100_100)] {
            let mut behind = Behind::default();
            (0..5_000)
                .for_each(|turn| behind.add(turn * every + 777, turn * every + 777 + takes, 100));
            let found = behind.finish();
            // Their age grows to `takes` in this share of the time.
            let share = takes as f64 / every as f64;
            let exact = takes as f64 * (1.0 - 0.01 / share).max(0.0);
            let error = (found.age_ns[1] as f64 - exact).abs();
            assert!(error <= 0.01 * takes as f64, "{every} {takes}: {found:?}, {exact}");
            assert!(found.age_ns[1] <= takes && found.bytes[1] <= found.most);
        }
    }

    #[test]
    fn what_waits_for_what_was_sent_before_is_older() {
        // A line that falls behind by 1 ms with every write of 1 ms.
        let mut behind = Behind::default();
        (0..1_000).for_each(|turn| behind.add(turn * MS, 2 * (turn + 1) * MS, 100));
        let found = behind.finish();
        // Over 2 s the age grows to 1 s.
        assert!(found.age_ns[0].abs_diff(500 * MS) < 20 * MS as u64, "{found:?}");
        assert!(found.age_ns[1].abs_diff(990 * MS) < 20 * MS as u64, "{found:?}");
    }
}

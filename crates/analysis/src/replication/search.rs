//! The longest round trip that a goal allows: several replays in each pass over the recording, between the longest round
//! trip that keeps the goal and the shortest one that does not.

/// Replays in one pass.
const AT_ONCE: usize = 8;
/// Round trips that are looked at first, ns: from a room to the other side of the world.
const FIRST_NS: [i64; AT_ONCE] =
    [100_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 100_000_000];
/// A longer round trip is not looked for, ns.
const MAX_NS: i64 = 1_000_000_000;
/// Exact enough: a fiftieth, or a microsecond.
const SHARE: i64 = 50;
const MIN_NS: i64 = 1_000;

/// A search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Longest round trip that keeps the goal, ns.
    kept_ns: Option<i64>,
    /// Shortest one that does not, ns.
    missed_ns: Option<i64>,
    passes: u32,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The goal is kept up to this round trip, ns.
    UpTo(i64),
    /// It is kept at any round trip up to this one, ns.
    Always(i64),
    /// It is not kept even without a distance.
    Never,
}

impl Search {
    /// Whether a round trip keeps the goal.
    pub fn add(&mut self, rtt_ns: i64, is_kept: bool) {
        if is_kept {
            self.kept_ns = Some(self.kept_ns.map_or(rtt_ns, |known| known.max(rtt_ns)))
        } else {
            self.missed_ns = Some(self.missed_ns.map_or(rtt_ns, |known| known.min(rtt_ns)))
        }
        // Percentiles can jump back by a bucket: the shortest one that misses the goal decides.
        if let (Some(kept), Some(missed)) = (self.kept_ns, self.missed_ns)
            && kept >= missed
        {
            self.kept_ns = None;
        }
    }

    /// Round trips for the next pass, ns; none if the answer is known.
    pub fn next_round_trips(&mut self) -> Vec<i64> {
        self.passes += 1;
        if self.passes == 1 {
            return FIRST_NS.to_vec();
        }
        let low = self.kept_ns.unwrap_or(0);
        let high = self.missed_ns.unwrap_or(MAX_NS);
        let is_exact = high - low <= (high / SHARE).max(MIN_NS);
        if is_exact || self.passes > 6 || low >= MAX_NS {
            return Vec::new();
        }
        let step = (high - low) / (AT_ONCE as i64 + 1);
        let is_open = self.missed_ns.is_none();
        let inner = (1..=AT_ONCE as i64).map(|number| low + step * number);
        let mut all: Vec<_> = inner.chain(is_open.then_some(MAX_NS)).collect();
        all.dedup();
        all
    }

    /// The answer.
    pub fn found(&self) -> Found {
        match (self.kept_ns, self.missed_ns) {
            (Some(kept), None) => Found::Always(kept),
            (Some(kept), Some(_)) => Found::UpTo(kept),
            (None, _) => Found::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit_ns: i64) -> (Found, u32) {
        let mut search = Search::default();
        loop {
            let next = search.next_round_trips();
            if next.is_empty() {
                return (search.found(), search.passes);
            }
            next.iter().for_each(|&rtt_ns| search.add(rtt_ns, rtt_ns <= limit_ns));
        }
    }

    #[test]
    fn the_limit_is_found_in_few_passes() {
        for limit_ns in [30_000, 700_000, 3_333_333, 9_999_999, 150_000_000, 999_000_000] {
            let (found, passes) = search(limit_ns);
            let Found::UpTo(ns) = found else { panic!("{limit_ns}: {found:?}") };
            assert!(ns <= limit_ns && limit_ns - ns <= limit_ns / 40 + 2_000, "{limit_ns}: {ns}");
            assert!(passes <= 7, "{limit_ns}: {passes}");
        }
        assert_eq!(search(-1).0, Found::Never);
        assert_eq!(search(i64::MAX).0, Found::Always(MAX_NS));
    }
}

//! When interrupt work holds a CPU: periods in which it takes half of the time or more.
//!
//! A period is a run of bins whose time above half of their length is as large as possible: the maximal scoring
//! subsequences of W. L. Ruzzo and M. Tompa ("A linear time algorithm for finding all maximal scoring subsequences",
//! ISMB 1999). So a short pause does not divide a period, and a long one does.

use super::data::{Timeline, TimelineCpu};

/// A CPU with this share of its time in interrupts and deferred work has hardly time for threads.
pub(super) const HELD_SHARE: f64 = 0.5;
/// A period counts if it has at least this part of the trace, this duration, and this many bins.
const MIN_SHARE: f64 = 0.05;
const MIN_NS: i64 = 100_000_000;
const MIN_BINS: usize = 4;

/// A period, in bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    /// The first bin, and the one behind the last.
    pub(super) first: usize,
    pub(super) end: usize,
}

/// The bins of a timeline within the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis<'a> {
    pub(super) timeline: &'a Timeline,
    /// The trace.
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
}

impl Axis<'_> {
    /// How much of a bin is within the trace, ns.
    fn length(&self, bin: usize) -> i64 {
        let begin = self.time(bin).max(self.start_ns);
        self.time(bin + 1).min(self.end_ns).saturating_sub(begin).max(0)
    }

    /// When a bin begins.
    pub(super) fn time(&self, bin: usize) -> i64 {
        self.timeline.start_ns.saturating_add(self.timeline.bin_ns.saturating_mul(bin as i64))
    }

    /// When a period begins and ends; `None` where that is the beginning or the end of the trace.
    pub(super) fn bounds(&self, period: Period) -> (Option<i64>, Option<i64>) {
        let (since, until) = (self.time(period.first), self.time(period.end));
        // A bin more or less is not known better.
        let near = |apart: i64| apart <= self.timeline.bin_ns;
        (
            Some(since).filter(|since| !near(since.saturating_sub(self.start_ns))),
            Some(until).filter(|until| !near(self.end_ns.saturating_sub(*until))),
        )
    }

    /// Length of a period within the trace, and the time of interrupt work in it, ns.
    pub(super) fn times(&self, lane: &TimelineCpu, period: Period) -> (i64, i64) {
        (period.first..period.end)
            .fold((0, 0), |(length, work), bin| (length + self.length(bin), work + busy(lane, bin)))
    }

    /// The periods in which a CPU is held, the longest first.
    pub(super) fn periods(&self, lane: &TimelineCpu) -> Vec<Period> {
        let bins = self.timeline.bins as usize;
        let above = |bin| busy(lane, bin) as f64 - HELD_SHARE * self.length(bin) as f64;
        let least = MIN_NS.max((MIN_SHARE * (self.end_ns - self.start_ns) as f64) as i64);
        let mut found: Vec<_> = maximal((0..bins).map(above))
            .into_iter()
            .filter(|period| period.end - period.first >= MIN_BINS)
            .map(|period| (self.times(lane, period).0, period))
            .filter(|(length, _)| *length >= least)
            .collect();
        found.sort_by_key(|(length, period)| (std::cmp::Reverse(*length), period.first));
        found.into_iter().map(|(_, period)| period).collect()
    }
}

fn busy(lane: &TimelineCpu, bin: usize) -> i64 {
    let at = |bins: &[i64]| bins.get(bin).copied().unwrap_or(0);
    at(&lane.deferred_ns).saturating_add(at(&lane.interrupt_ns))
}

/// All maximal scoring subsequences, in their order.
fn maximal(scores: impl Iterator<Item = f64>) -> Vec<Period> {
    struct Candidate {
        period: Period,
        /// Sums of all scores before it and up to its end.
        left: f64,
        right: f64,
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut sum = 0.0;
    for (place, score) in scores.enumerate() {
        let left = sum;
        sum += score;
        if score <= 0.0 {
            continue;
        }
        let mut new =
            Candidate { period: Period { first: place, end: place + 1 }, left, right: sum };
        // The last one that begins lower, if it also ends lower, becomes part of the new one.
        while let Some(known) = candidates.iter().rposition(|one| one.left < new.left) {
            if candidates.get(known).is_none_or(|one| one.right >= new.right) {
                break;
            }
            if let Some(begin) = candidates.drain(known..).next() {
                new.period.first = begin.period.first;
                new.left = begin.left;
            }
        }
        candidates.push(new);
    }
    candidates.into_iter().map(|one| one.period).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn periods(busy: &[f64]) -> Vec<(usize, usize)> {
        let lane = TimelineCpu {
            cpu: 0,
            deferred_ns: busy.iter().map(|share| (share * SECOND as f64) as i64).collect(),
            interrupt_ns: vec![0; busy.len()],
        };
        let bins = busy.len() as u64;
        let timeline = Timeline { start_ns: 0, bin_ns: SECOND, bins, cpus: Vec::new() };
        let axis = Axis { timeline: &timeline, start_ns: 0, end_ns: SECOND * bins as i64 };
        axis.periods(&lane).iter().map(|period| (period.first, period.end)).collect()
    }

    #[test]
    fn periods_survive_short_pauses_and_end_in_long_ones() {
        let mut busy = [0.1; 60];
        busy[20..40].fill(0.94);
        assert_eq!(periods(&busy), [(20, 40)]);
        busy[30] = 0.0;
        assert_eq!(periods(&busy), [(20, 40)]);
        // A second one, shorter, after a long pause; a third one is too short.
        busy[50..56].fill(0.6);
        busy[2..4].fill(1.0);
        assert_eq!(periods(&busy), [(20, 40), (50, 56)]);
        assert_eq!(periods(&[0.49; 60]), []);
        assert_eq!(periods(&[0.7; 60]), [(0, 60)]);
        // Half of the time on average, up and down.
        let alternating: Vec<_> = (0..60).map(|bin| if bin % 2 == 0 { 1.0 } else { 0.2 }).collect();
        assert_eq!(periods(&alternating), [(0, 59)]);
    }

    #[test]
    fn the_maximal_subsequences_are_those_of_the_paper() {
        let scores = [4.0, -5.0, 3.0, -3.0, 1.0, 2.0, -2.0, 2.0, -2.0, 1.0, 5.0];
        let found: Vec<_> =
            maximal(scores.into_iter()).iter().map(|one| (one.first, one.end)).collect();
        assert_eq!(found, [(0, 1), (2, 3), (4, 11)]);
    }
}

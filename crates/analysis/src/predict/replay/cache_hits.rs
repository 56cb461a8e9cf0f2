//! Reads that the server answers from memory, and reads from storage.
//!
//! They are distinguished by the time in the server's file system: where these times form two kinds, far
//! from each other, the short ones came from memory. The threshold between them is the one that leaves the
//! least scatter of the logarithms on both sides (Otsu 1979). With another share of hits, evenly spread reads
//! change sides and take the median of their new kind.

use smbscope_tables::slice::Kind;

/// Slices in which a read is served.
const SERVED: [Kind; 3] = [Kind::Filesystem, Kind::FilesystemSlow, Kind::Io];
/// Steps of the histogram for each doubling.
const STEPS: f64 = 4.0;
const BINS: usize = 50 * STEPS as usize;
/// How many times as long a miss must take on average.
const APART: f64 = 4.0;
/// Reads of each kind below which the kinds are not known.
const MIN: u64 = 10;

/// The two kinds of reads of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hits {
    /// Share of reads that were in memory.
    pub share: f64,
    /// Time from which a read counts as a miss, ns.
    pub miss_from_ns: f64,
    /// Medians of both kinds, ns.
    pub medians_ns: (f64, f64),
}

/// Learns the kinds from the times of reads.
pub(super) struct HitLearning([u64; BINS]);

impl Default for HitLearning {
    fn default() -> HitLearning {
        HitLearning([0; BINS])
    }
}

/// How long the file system took of these slices, ns.
fn served_ns(slices: &[i64; Kind::PARTS]) -> i64 {
    SERVED.iter().map(|kind| slices[*kind as usize]).sum()
}

fn middle_ns(bin: usize) -> f64 {
    ((bin as f64 + 0.5) / STEPS).exp2()
}

impl HitLearning {
    /// A read.
    pub(super) fn add(&mut self, slices: &[i64; Kind::PARTS]) {
        let ns = served_ns(slices);
        if ns > 0 {
            let bin = ((ns as f64).log2() * STEPS) as usize;
            if let Some(count) = self.0.get_mut(bin.min(BINS - 1)) {
                *count += 1;
            }
        }
    }

    /// The two kinds, if there are two.
    pub(super) fn finish(&self) -> Option<Hits> {
        let bins = self.0.iter().enumerate();
        let all = bins.fold((0u64, 0.0), |(n, sum), (bin, count)| {
            (n + count, sum + bin as f64 * *count as f64)
        });
        let (mut best, mut low) = (None::<(f64, usize)>, (0u64, 0.0));
        for (bin, &count) in self.0.iter().enumerate() {
            low = (low.0 + count, low.1 + bin as f64 * count as f64);
            let high = (all.0 - low.0, all.1 - low.1);
            if low.0 < MIN || high.0 < MIN {
                continue;
            }
            let apart = high.1 / high.0 as f64 - low.1 / low.0 as f64;
            let between = low.0 as f64 * high.0 as f64 * apart * apart;
            if apart >= APART.log2() * STEPS && best.is_none_or(|(most, _)| between > most) {
                best = Some((between, bin + 1));
            }
        }
        let (_, first_miss) = best?;
        let (hits, misses) = self.0.split_at(first_miss);
        let n: u64 = hits.iter().sum();
        Some(Hits {
            share: n as f64 / all.0 as f64,
            miss_from_ns: (first_miss as f64 / STEPS).exp2(),
            medians_ns: (median(hits, 0), median(misses, first_miss)),
        })
    }
}

/// Median of the times in consecutive bins, the first of which has this number.
fn median(bins: &[u64], first: usize) -> f64 {
    let half = bins.iter().sum::<u64>() / 2;
    let mut seen = 0;
    let bin = bins.iter().position(|count| {
        seen += count;
        seen > half
    });
    middle_ns(first + bin.unwrap_or(0))
}

/// Moves reads from one kind to the other.
#[derive(Default)]
pub(super) struct HitShift {
    due: f64,
}

impl HitShift {
    /// How many times as long the file system takes for a read when this share is in memory.
    pub(super) fn factor(&mut self, hits: &Hits, share: f64, slices: &[i64; Kind::PARTS]) -> f64 {
        let ns = served_ns(slices) as f64;
        if ns <= 0.0 {
            return 1.0;
        }
        let is_hit = ns < hits.miss_from_ns;
        let (moves, to_ns) = if is_hit {
            ((hits.share - share) / hits.share, hits.medians_ns.1)
        } else {
            ((share - hits.share) / (1.0 - hits.share), hits.medians_ns.0)
        };
        if moves <= 0.0 {
            return 1.0;
        }
        self.due += moves;
        if self.due < 1.0 {
            return 1.0;
        }
        self.due -= 1.0;
        to_ns / ns
    }

    /// Whether a slice is one in which reads are served.
    pub(super) fn is_served(kind: usize) -> bool {
        SERVED.iter().any(|served| *served as usize == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ns: i64) -> [i64; Kind::PARTS] {
        let mut slices = [0; Kind::PARTS];
        slices[Kind::Io as usize] = ns;
        slices
    }

    #[test]
    fn two_kinds_are_told_apart_and_one_is_not() {
        let mut learning = HitLearning::default();
        (0..300).for_each(|place| learning.add(&read(20_000 + 100 * place)));
        assert_eq!(learning.finish(), None);
        (0..100).for_each(|place| learning.add(&read(4_000_000 + 10_000 * place)));
        let hits = learning.finish().unwrap();
        assert!((hits.share - 0.75).abs() < 1e-9);
        assert!((50_000.0..4_000_000.0).contains(&hits.miss_from_ns), "{hits:?}");
        let (hit, miss) = hits.medians_ns;
        assert!((hit / 35_000.0 - 1.0).abs() < 0.15 && (miss / 4_500_000.0 - 1.0).abs() < 0.15);
    }

    #[test]
    fn so_many_change_sides_as_the_new_share_needs() {
        let hits = Hits { share: 0.5, miss_from_ns: 1e5, medians_ns: (1e4, 1e6) };
        for (share, ns) in [(0.9, 1_000_000), (0.1, 10_000)] {
            let mut moving = HitShift::default();
            let moved = (0..100).filter(|_| moving.factor(&hits, share, &read(ns)) != 1.0);
            assert_eq!(moved.count(), 80);
            let other = if ns > 100_000 { 10_000 } else { 1_000_000 };
            assert_eq!(moving.factor(&hits, share, &read(other)), 1.0);
        }
    }
}

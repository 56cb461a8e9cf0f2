//! Bytes written in bins of a millisecond, which widen as the recording gets longer: 17 minutes have bins of 1 ms, a day
//! has bins of 128 ms. Memory is bounded: 8 MiB.

/// Width at first, ns.
const WIDTH_NS: i64 = 1_000_000;
/// Most bins.
const BINS_MAX: usize = 1 << 20;
const SECOND_NS: i64 = 1_000_000_000;

/// Bins of equal width.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    width_ns: i64,
    /// Number of the first bin: its begin divided by the width.
    first: i64,
    bytes: Vec<u64>,
}

impl Default for Bins {
    fn default() -> Bins {
        Bins { width_ns: WIDTH_NS, first: 0, bytes: Vec::new() }
    }
}

impl Bins {
    /// Adds bytes; times are at most some months from each other.
    pub(super) fn add(&mut self, at_ns: i64, bytes: u64) {
        let mut bin = at_ns.div_euclid(self.width_ns);
        if self.bytes.is_empty() {
            self.first = bin;
        }
        loop {
            let end = (self.first + self.bytes.len() as i64).max(bin.saturating_add(1));
            if end.saturating_sub(self.first.min(bin)) <= BINS_MAX as i64 {
                break;
            }
            self.widen();
            bin = at_ns.div_euclid(self.width_ns);
        }
        if bin < self.first {
            let more = (self.first - bin) as usize;
            self.bytes.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bin;
        }
        let place = (bin - self.first) as usize;
        if self.bytes.len() <= place {
            self.bytes.resize(place + 1, 0);
        }
        if let Some(sum) = self.bytes.get_mut(place) {
            *sum = sum.saturating_add(bytes);
        }
    }

    /// Makes the bins twice as wide.
    fn widen(&mut self) {
        let first = self.first.div_euclid(2);
        let is_second = self.first.rem_euclid(2) == 1;
        if is_second {
            self.bytes.splice(0..0, [0]);
        }
        let pairs = self.bytes.chunks(2);
        self.bytes = pairs.map(|pair| pair.iter().fold(0, |a, b| b.saturating_add(a))).collect();
        (self.width_ns, self.first) = (self.width_ns.saturating_mul(2), first);
    }

    /// Bins of a second, starting at this one.
    pub(super) fn of_seconds(first: i64, bytes: Vec<u64>) -> Bins {
        Bins { width_ns: SECOND_NS, first, bytes }
    }

    /// The same bins, with empty ones up to the ends of these seconds.
    pub(super) fn spread(&self, first_second: i64, seconds: usize) -> Bins {
        let bin = |second: i64| second.saturating_mul(SECOND_NS);
        let first = bin(first_second).div_euclid(self.width_ns).min(self.first);
        let end = bin(first_second.saturating_add(seconds as i64));
        let end = end.saturating_add(self.width_ns - 1).div_euclid(self.width_ns);
        let mut bytes = vec![0; (self.first - first).max(0) as usize];
        bytes.extend_from_slice(&self.bytes);
        bytes.resize(bytes.len().max((end - first).max(0) as usize), 0);
        Bins { width_ns: self.width_ns, first, bytes }
    }

    /// Their width, ns.
    pub(super) fn width_ns(&self) -> i64 {
        self.width_ns
    }

    /// The bytes of each.
    pub(super) fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// Begin of a bin, ns since 1970.
    pub(super) fn at_ns(&self, place: usize) -> i64 {
        self.first.saturating_add(place as i64).saturating_mul(self.width_ns)
    }

    /// How many bins a time takes, at least one.
    pub(super) fn count(&self, ns: i64) -> usize {
        (ns.max(1).cast_unsigned()).div_ceil(self.width_ns.max(1).cast_unsigned()) as usize
    }
}

/// Bytes from each bin on, for this many; of a shorter recording, as if it repeated.
pub(super) fn windows(bytes: &[u64], length: usize) -> Vec<u64> {
    let n = bytes.len();
    if n == 0 {
        return Vec::new();
    }
    let all = bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let is_repeated = length > n;
    let part = if is_repeated { length % n } else { length };
    let whole = if is_repeated { all.saturating_mul((length / n) as u64) } else { 0 };
    let at = |place: usize| bytes.get(place % n).copied().unwrap_or(0);
    let mut sum = (0..part).map(at).fold(0u64, u64::saturating_add);
    let starts = if is_repeated { n } else { n - length + 1 };
    (0..starts)
        .map(|start| {
            let found = whole.saturating_add(sum);
            sum = sum.saturating_add(at(start + part)).saturating_sub(at(start));
            found
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_widen_and_keep_the_sum() {
        let mut bins = Bins::default();
        for second in [5, 3, 4] {
            bins.add(second * SECOND_NS + 7, 10);
        }
        assert_eq!(
            (bins.width_ns, bins.bytes.len(), bins.at_ns(0)),
            (WIDTH_NS, 2_001, 3 * SECOND_NS)
        );
        bins.add(90 * 86_400 * SECOND_NS, 1);
        bins.add(-SECOND_NS, 1);
        assert!(bins.bytes.len() <= BINS_MAX && bins.width_ns > SECOND_NS);
        assert_eq!(bins.bytes.iter().sum::<u64>(), 32);
        assert!(bins.at_ns(0) <= -SECOND_NS && bins.at_ns(1) > -SECOND_NS);
    }

    #[test]
    fn seconds_around_the_bins_are_empty() {
        let mut bins = Bins::default();
        bins.add(3 * SECOND_NS + SECOND_NS / 2, 10);
        let bins = bins.spread(3, 2);
        assert_eq!((bins.at_ns(0), bins.bytes.len()), (3 * SECOND_NS, 2_000));
        assert_eq!((bins.bytes[500], bins.count(SECOND_NS + 1)), (10, 1_001));
    }

    #[test]
    fn a_window_that_is_longer_than_the_recording_repeats_it() {
        assert_eq!(windows(&[1, 9, 2], 2), [10, 11]);
        assert_eq!(windows(&[1, 9, 2], 4), [13, 21, 14]);
        assert!(windows(&[], 4).is_empty());
    }
}

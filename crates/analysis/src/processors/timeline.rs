//! What each CPU, and each name, did over time: exclusive time in bins of equal width.
//!
//! How long a trace is, is known at its end only. So bins begin narrow, and two become one whenever there are more
//! than [`BINS_MAX`].

use std::collections::BTreeMap;

use super::data::{Timeline, TimelineCpu};
use super::{Class, Row};

/// Most bins of the result, and of the result of a machine with many CPUs.
pub(super) const BINS_MAX: usize = 240;
const BINS_OF_MANY: usize = 60;
const MANY_CPUS: usize = 256;
/// Width of the first bins, ns.
const NARROWEST_NS: i64 = 100_000;
/// Most lanes: 16,384 CPUs, or names.
const LANES_MAX: usize = 1 << 15;

/// Bins of several lanes on one axis, while rows arrive.
#[derive(Clone, Debug)]
pub(super) struct Bins<K> {
    start_ns: Option<i64>,
    /// Bins reach to here, whatever is in them.
    end_ns: Option<i64>,
    bin_ns: i64,
    lanes: BTreeMap<K, Vec<i64>>,
}

impl<K> Default for Bins<K> {
    fn default() -> Bins<K> {
        Bins { start_ns: None, end_ns: None, bin_ns: NARROWEST_NS, lanes: BTreeMap::new() }
    }
}

impl<K: Ord> Bins<K> {
    /// Adds the exclusive time of an interrupt to a lane, spread evenly from its beginning to its end.
    pub(super) fn add(&mut self, lane: K, row: &Row<'_>) {
        let (Some(duration), Some(exclusive)) = (row.duration_ns, row.exclusive_ns) else { return };
        if exclusive <= 0 || self.lanes.len() >= LANES_MAX && !self.lanes.contains_key(&lane) {
            return;
        }
        let start = *self.start_ns.get_or_insert(row.start_ns);
        if row.start_ns < start {
            // Rows come in the order of their ends, so few begin before the first.
            self.begin_earlier(row.start_ns);
        }
        let start = self.start_ns.unwrap_or(start);
        let from = row.start_ns.saturating_sub(start);
        let to = from.saturating_add(duration.max(1));
        self.widen(to);
        let bin_ns = self.bin_ns;
        let bins = self.lanes.entry(lane).or_default();
        let (first, last) = ((from / bin_ns) as usize, ((to - 1) / bin_ns) as usize);
        if bins.len() <= last {
            bins.resize(last + 1, 0);
        }
        let mut left = exclusive;
        for number in first..=last {
            let begin = from.max(bin_ns.saturating_mul(number as i64));
            let end = to.min(bin_ns.saturating_mul(number as i64 + 1));
            let part = if number == last {
                left
            } else {
                (exclusive as f64 * (end - begin) as f64 / (to - from) as f64) as i64
            };
            left -= part;
            if let Some(bin) = bins.get_mut(number) {
                *bin = bin.saturating_add(part);
            }
        }
    }

    /// Makes bins so wide that none beyond [`BINS_MAX`] is needed for this end.
    fn widen(&mut self, end: i64) {
        while end > self.bin_ns.saturating_mul(BINS_MAX as i64) {
            self.double();
        }
    }

    fn double(&mut self) {
        self.bin_ns = self.bin_ns.saturating_mul(2);
        for bins in self.lanes.values_mut() {
            *bins = bins.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    /// Number of bins.
    fn longest(&self) -> usize {
        let to_end = self.start_ns.zip(self.end_ns).map_or(0, |(start, end)| {
            end.saturating_sub(start).saturating_add(self.bin_ns - 1).div_euclid(self.bin_ns)
        });
        self.lanes.values().map(Vec::len).max().unwrap_or(0).max(to_end.max(0) as usize)
    }

    /// Makes bins reach from one time to another. The first bin can begin earlier, by less than its width.
    pub(super) fn cover(&mut self, from: i64, to: i64) {
        if to <= from {
            return;
        }
        let start = *self.start_ns.get_or_insert(from);
        self.end_ns = Some(to);
        if from < start {
            self.begin_earlier(from);
        }
        self.widen(to.saturating_sub(self.start_ns.unwrap_or(from)));
    }

    fn begin_earlier(&mut self, start: i64) {
        let Some(old) = self.start_ns else { return };
        loop {
            let apart = old.saturating_sub(start);
            let shift = apart.saturating_sub(1).div_euclid(self.bin_ns) + 1;
            let fits = shift.saturating_add(self.longest() as i64) <= BINS_MAX as i64;
            if fits || self.bin_ns > i64::MAX / 4 {
                for bins in self.lanes.values_mut() {
                    bins.splice(0..0, std::iter::repeat_n(0, shift.min(BINS_MAX as i64) as usize));
                }
                self.start_ns = Some(old.saturating_sub(shift.saturating_mul(self.bin_ns)));
                return;
            }
            self.double();
        }
    }

    /// At most this many bins for each lane, all with the same number; `None` without a time.
    pub(super) fn finish(mut self, most: usize) -> Option<Filled<K>> {
        while self.longest() > most.max(1) {
            self.double();
        }
        let bins = self.longest();
        self.lanes.values_mut().for_each(|lane| lane.resize(bins, 0));
        let (start_ns, bin_ns, lanes) = (self.start_ns?, self.bin_ns, self.lanes);
        Some(Filled { start_ns, bin_ns, bins, lanes })
    }
}

/// Bins that are complete.
#[derive(Debug)]
pub(super) struct Filled<K> {
    pub(super) start_ns: i64,
    pub(super) bin_ns: i64,
    pub(super) bins: usize,
    pub(super) lanes: BTreeMap<K, Vec<i64>>,
}

/// Bins of CPUs: a lane for each, and for each class of work.
pub(super) type OfCpus = Bins<(u64, bool)>;

impl OfCpus {
    /// Adds an interrupt.
    pub(super) fn interrupt(&mut self, row: &Row<'_>) {
        self.add((row.cpu, row.class == Class::Interrupt), row);
    }

    /// The result; `None` without an interrupt that has a duration, unless a time is covered.
    pub(super) fn timeline(self) -> Option<Timeline> {
        let most = if self.lanes.len() > MANY_CPUS { BINS_OF_MANY } else { BINS_MAX };
        let Filled { start_ns, bin_ns, bins, lanes } = self.finish(most)?;
        let mut cpus: BTreeMap<u64, TimelineCpu> = BTreeMap::new();
        for ((cpu, is_interrupt), lane) in lanes {
            let of = cpus.entry(cpu).or_insert_with(|| TimelineCpu {
                cpu,
                deferred_ns: vec![0; bins],
                interrupt_ns: vec![0; bins],
            });
            if is_interrupt { of.interrupt_ns = lane } else { of.deferred_ns = lane }
        }
        Some(Timeline { start_ns, bin_ns, bins: bins as u64, cpus: cpus.into_values().collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpu: u64, start_ns: i64, duration: i64) -> Row<'static> {
        Row {
            cpu,
            kind: "dpc",
            class: Class::Deferred,
            name: None,
            device: None,
            queue: None,
            thread: None,
            start_ns,
            duration_ns: Some(duration),
            exclusive_ns: Some(duration),
            delay_ns: None,
            work: None,
        }
    }

    #[test]
    fn time_is_kept_whatever_the_width() {
        let mut bins = OfCpus::default();
        let second = 1_000_000_000;
        for number in 0..1_000 {
            bins.interrupt(&row(number % 2, 5 * second + number as i64 * second / 100, 3_000_000));
        }
        // One that began before the first.
        bins.interrupt(&row(0, 5 * second - 7_000_000, 1_000_000));
        let timeline = bins.timeline().unwrap();
        assert!(timeline.bins as usize <= BINS_MAX);
        let sum: i64 = timeline.cpus.iter().flat_map(|cpu| &cpu.deferred_ns).sum();
        assert_eq!(sum, 1_000 * 3_000_000 + 1_000_000);
        assert!(timeline.start_ns <= 5 * second - 7_000_000);
        let covered = timeline.bin_ns * timeline.bins as i64;
        assert!((10 * second..=21 * second).contains(&covered), "{covered}");
        let most = timeline.cpus.iter().flat_map(|cpu| &cpu.deferred_ns).max().unwrap();
        assert!(*most <= timeline.bin_ns);
    }

    #[test]
    fn bins_reach_over_the_whole_trace() {
        let second = 1_000_000_000;
        for (first, begin, end) in [(40, 0, 60), (0, 0, 60), (59, 0, 60), (5, 3, 7)] {
            let mut bins = OfCpus::default();
            for number in 0..20 {
                bins.interrupt(&row(0, first * second + number * second / 20, 1_000_000));
            }
            bins.cover(begin * second, end * second);
            let timeline = bins.timeline().unwrap();
            let last = timeline.start_ns + timeline.bin_ns * timeline.bins as i64;
            let begin = begin * second;
            assert!(timeline.bins as usize <= BINS_MAX && timeline.bins > 60);
            assert!(timeline.start_ns <= begin && timeline.start_ns > begin - timeline.bin_ns);
            assert!(last >= end * second && last < end * second + timeline.bin_ns, "{timeline:?}");
            let sum: i64 = timeline.cpus.iter().flat_map(|cpu| &cpu.deferred_ns).sum();
            assert_eq!(sum, 20_000_000);
        }
        // Nothing happened.
        let mut bins = OfCpus::default();
        bins.cover(0, second);
        assert!(bins.timeline().unwrap().bins > 60);
    }

    #[test]
    fn times_at_the_ends_of_the_range_do_not_fail() {
        let mut bins = OfCpus::default();
        bins.interrupt(&row(0, 0, i64::MAX));
        bins.interrupt(&row(0, i64::MIN, 5));
        bins.interrupt(&row(0, i64::MAX, i64::MAX));
        bins.cover(i64::MIN, i64::MAX);
        assert!(bins.timeline().is_some());
        assert!(OfCpus::default().timeline().is_none());
    }
}

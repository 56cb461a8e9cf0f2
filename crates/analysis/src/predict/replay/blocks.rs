//! Contiguous reads and writes with other block sizes.
//!
//! With a larger block, the first piece is sent as recorded and the others go with it: they cost the
//! time of their bytes, but no round trip and no request. A smaller block becomes several requests, one
//! after the other: each costs a round trip, and the time of a request without bytes. The client's work
//! between two pieces is for their bytes, and does not change. The cost of a byte and of a request is a
//! straight line through the medians of the recorded operations of many sizes ([`Fit`]), each without its
//! time on the network. Medians, because means would contain the delay of the first request after a pause,
//! which the following requests do not have. Smaller pieces cost no more than other small requests on an open:
//! storage is read once for contiguous pieces, and a small request among large ones waits for the work
//! that those leave behind.

use std::collections::BTreeMap;

use super::Map;
use crate::predict::plan::Direction;
use crate::stats::latency::{Grain, Latency, Sample};

/// Most opens that are followed at the same time.
pub(super) const STREAMS_MAX: usize = 1 << 16;
/// Pause between two requests from which the later one does not continue the earlier one, ns.
pub(super) const PAUSE_MAX_NS: i64 = 10_000_000;

/// Small requests below which their cost is not known.
const SMALL_MIN: u64 = 20;

/// The position in an open after the last read or write.
#[derive(Clone, Copy, Debug)]
struct Stream {
    kind: Direction,
    next_offset: u64,
    /// Bytes of the block so far.
    block_bytes: u64,
    ended_at: i64,
}

/// One read or write, as recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) kind: Direction,
    pub(crate) handle: (u32, u64),
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) start: i64,
    pub(crate) end: i64,
}

/// What becomes of a read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resize {
    /// It is sent as it was.
    Unchanged,
    /// It is a part of the request before.
    Merged,
    /// It becomes this many requests.
    Split(u64),
}

/// All opens.
#[derive(Default)]
pub(crate) struct Blocks {
    streams: Map<(u32, u64), Stream>,
    fits: [Fit; 2],
    small: Option<Latency>,
    continued: [u64; 2],
    concurrent: [u64; 2],
}

impl Blocks {
    /// What becomes of a read or write with blocks of `block` bytes.
    pub(crate) fn resize(&mut self, access: &Access, block: Option<u64>) -> Resize {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&access.handle) {
            self.streams.clear();
        }
        let before = self.streams.get(&access.handle).filter(|before| {
            before.kind == access.kind
                && before.next_offset == access.offset
                && access.start - before.ended_at < PAUSE_MAX_NS
        });
        self.continued[access.kind as usize] += u64::from(before.is_some());
        let is_concurrent = before.is_some_and(|before| access.start < before.ended_at);
        self.concurrent[access.kind as usize] += u64::from(is_concurrent);
        let (cut, block_bytes) = match (block, before) {
            (Some(block), _) if access.bytes > block => {
                (Resize::Split(access.bytes.div_ceil(block)), block)
            }
            (Some(block), Some(before))
                if before.block_bytes.saturating_add(access.bytes) <= block =>
            {
                (Resize::Merged, before.block_bytes + access.bytes)
            }
            _ => (Resize::Unchanged, access.bytes),
        };
        let stream = Stream {
            kind: access.kind,
            next_offset: access.offset.saturating_add(access.bytes),
            block_bytes,
            ended_at: access.end,
        };
        self.streams.insert(access.handle, stream);
        cut
    }

    /// An open is closed.
    pub(crate) fn closed(&mut self, handle: (u32, u64)) {
        self.streams.remove(&handle);
    }

    /// Learns the cost of a read or write without the network.
    pub(crate) fn learn(&mut self, kind: Direction, bytes: u64, ns: i64) {
        self.fits[kind as usize].add(bytes, ns);
    }

    /// Learns the cost of another request on an open without the network.
    pub(crate) fn learn_small(&mut self, ns: i64) {
        self.small.get_or_insert_with(|| Latency::new(Grain::Fine)).record(&Sample::new(ns));
    }

    /// The costs of reads and of writes.
    pub(crate) fn learnt(&self) -> [SizeCosts; 2] {
        let small = self.small.as_ref().filter(|small| small.n() >= SMALL_MIN);
        let small_ns = small.and_then(|small| small.distribution(false).p50_ns);
        [Direction::Read, Direction::Write].map(|kind| {
            let fit = &self.fits[kind as usize];
            let continued = self.continued[kind as usize];
            let (least_bytes, most_bytes) = (fit.least_bytes.unwrap_or(0), fit.most_bytes);
            let cost = fit.line();
            let piece_ns =
                cost.map(|(once, _)| small_ns.map_or(once, |small| once.min(small as f64)));
            let concurrent = self.concurrent[kind as usize];
            SizeCosts { continued, concurrent, least_bytes, most_bytes, cost, piece_ns }
        })
    }
}

/// What a recording shows about reads or writes of other sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SizeCosts {
    /// How many continue the previous one.
    pub continued: u64,
    /// How many of those were in flight together with it.
    pub concurrent: u64,
    /// Bytes of the smallest.
    pub least_bytes: u64,
    /// Bytes of the largest.
    pub most_bytes: u64,
    /// Cost of a request without bytes, and of a byte, ns; none where the sizes were too similar.
    pub cost: Option<(f64, f64)>,
    /// Cost of each additional request when one becomes several smaller ones, ns.
    pub piece_ns: Option<f64>,
}

/// A straight line by weighted least squares through the medians of sizes between powers of two.
#[derive(Clone, Debug, Default)]
pub(super) struct Fit {
    bins: BTreeMap<u32, (u64, Latency)>,
    least_bytes: Option<u64>,
    most_bytes: u64,
}

impl Fit {
    pub(super) fn add(&mut self, bytes: u64, ns: i64) {
        self.least_bytes = Some(self.least_bytes.map_or(bytes, |least| least.min(bytes)));
        self.most_bytes = self.most_bytes.max(bytes);
        let bin = self.bins.entry(bytes.checked_ilog2().unwrap_or(0));
        let (sum, times) = bin.or_insert_with(|| (0, Latency::new(Grain::Fine)));
        *sum = sum.saturating_add(bytes);
        times.record(&Sample::new(ns));
    }

    /// Its value at 0 and its slope, neither negative; none where the sizes scatter by less than a tenth of their
    /// mean, because the slope would be a guess.
    pub(super) fn line(&self) -> Option<(f64, f64)> {
        let points: Vec<_> = self
            .bins
            .values()
            .filter_map(|(bytes, times)| {
                let distribution = times.distribution(false);
                let n = distribution.n as f64;
                Some((n, *bytes as f64 / n, distribution.p50_ns? as f64))
            })
            .collect();
        let n: f64 = points.iter().map(|point| point.0).sum();
        let mean = |of: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|point| point.0 * of(point)).sum::<f64>() / n
        };
        let (x, y) = (mean(|point| point.1), mean(|point| point.2));
        let variance = mean(|point| point.1 * point.1) - x * x;
        if n < 10.0 || x <= 0.0 || variance.max(0.0).sqrt() < 0.1 * x {
            return None;
        }
        let slope = (mean(|point| point.1 * point.2) - x * y) / variance;
        let slope = slope.clamp(0.0, (y / x).max(0.0));
        Some(((y - slope * x).max(0.0), slope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(offset: u64, bytes: u64) -> Access {
        let start = offset as i64;
        Access { kind: Direction::Read, handle: (0, 1), offset, bytes, start, end: start + 1 }
    }

    #[test]
    fn blocks_are_joined_up_to_the_new_size_and_cut_above_it() {
        let mut blocks = Blocks::default();
        let cuts: Vec<_> =
            (0..6).map(|place| blocks.resize(&access(place * 10, 10), Some(30))).collect();
        use Resize::{Merged, Unchanged};
        assert_eq!(cuts, [Unchanged, Merged, Merged, Unchanged, Merged, Merged]);
        assert_eq!(blocks.resize(&access(60, 10), Some(4)), Resize::Split(3));
        // Elsewhere in the file.
        assert_eq!(blocks.resize(&access(900, 10), Some(100)), Unchanged);
    }

    #[test]
    fn a_line_is_found_where_there_is_one_and_not_guessed() {
        let mut blocks = Blocks::default();
        for place in 0..30 {
            let bytes = [4_096, 16_384, 65_536][place % 3];
            blocks.learn(Direction::Read, bytes, 500 + 2 * bytes as i64);
            blocks.learn(Direction::Write, 65_536, 1000);
        }
        // One after a pause.
        blocks.learn(Direction::Read, 4_096, 1_000_000_000);
        let [read, write] = blocks.learnt();
        let (request, byte) = read.cost.unwrap();
        assert!((request - 500.0).abs() < 1e-3 && (byte - 2.0).abs() < 1e-6);
        assert_eq!(write.cost, None);
        // Additional requests cost as much, or as little as other small ones.
        assert_eq!(read.piece_ns, Some(request));
        (0..30).for_each(|_| blocks.learn_small(80));
        let [read, write] = blocks.learnt();
        assert_eq!((read.piece_ns, write.piece_ns), (Some(80.0), None));
        assert!((read.cost.unwrap().0 - 500.0).abs() < 1e-3);
    }
}

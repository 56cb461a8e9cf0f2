//! Reads and writes that continue each other, made in other blocks.
//!
//! Of a larger block the first piece is sent when it was, and the others go with it: they cost what
//! their bytes cost, but no round trip and nothing for the request. A smaller block is several
//! requests, one after the other: each costs a round trip, and what a request without bytes costs.
//! What a byte and what a request cost is a straight line through the recorded operations of many
//! sizes ([`Fit`]), each less its time on the line.

use super::Map;

/// Opens that are followed at once.
const STREAMS_MAX: usize = 1 << 16;
/// Pauses between two requests beyond which the later one is no continuation, ns.
const PAUSE_MAX_NS: i64 = 10_000_000;

/// What moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read = 0,
    Write = 1,
}

/// Where an open was read or written last.
#[derive(Clone, Copy, Debug)]
struct Stream {
    kind: Direction,
    next_offset: u64,
    /// Bytes of the block so far.
    block_bytes: u64,
    ended_at: i64,
}

/// One read or write, as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) kind: Direction,
    pub(crate) handle: (u32, u64),
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) start: i64,
    pub(crate) end: i64,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It stays.
    Same,
    /// It is a part of the request before.
    Joined,
    /// It becomes so many requests.
    Split(u64),
}

/// All opens.
#[derive(Default)]
pub(crate) struct Blocks {
    streams: Map<(u32, u64), Stream>,
    fits: [Fit; 2],
    pauses: [(u64, i64); 2],
    continued: [u64; 2],
}

impl Blocks {
    /// What becomes of a read or write; `block` is the new one.
    pub(crate) fn cut(&mut self, access: &Access, block: Option<u64>) -> Cut {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&access.handle) {
            self.streams.clear();
        }
        let before = self.streams.get(&access.handle).filter(|before| {
            before.kind == access.kind
                && before.next_offset == access.offset
                && access.start - before.ended_at < PAUSE_MAX_NS
        });
        self.continued[access.kind as usize] += u64::from(before.is_some());
        if let Some(before) = before.filter(|before| access.start >= before.ended_at) {
            let pauses = &mut self.pauses[access.kind as usize];
            *pauses = (pauses.0 + 1, pauses.1 + access.start - before.ended_at);
        }
        let (cut, block_bytes) = match (block, before) {
            (Some(block), _) if access.bytes > block => {
                (Cut::Split(access.bytes.div_ceil(block)), block)
            }
            (Some(block), Some(before)) if before.block_bytes + access.bytes <= block => {
                (Cut::Joined, before.block_bytes + access.bytes)
            }
            _ => (Cut::Same, access.bytes),
        };
        let stream = Stream {
            kind: access.kind,
            next_offset: access.offset + access.bytes,
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

    /// Learns what an access costs beside the line.
    pub(crate) fn learn(&mut self, kind: Direction, bytes: u64, ns: i64) {
        self.fits[kind as usize].add(bytes as f64, ns as f64);
    }

    /// What was learnt of requests, and the mean pause between two of them, ns.
    pub(crate) fn learnt(&self) -> [Learnt; 2] {
        [Direction::Read, Direction::Write].map(|kind| {
            let (n, sum) = self.pauses[kind as usize];
            let pause_ns = if n > 0 { sum / n as i64 } else { 0 };
            let fit = &self.fits[kind as usize];
            let most_bytes = fit.most as u64;
            Learnt {
                continued: self.continued[kind as usize],
                most_bytes,
                line: fit.line(),
                pause_ns,
            }
        })
    }
}

/// What a recording says of reads or writes of other sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learnt {
    /// How many continue the one before.
    pub continued: u64,
    /// Bytes of the largest.
    pub most_bytes: u64,
    /// A request's cost without bytes, ns, and a byte's; none where sizes were too much alike.
    pub line: Option<(f64, f64)>,
    /// Mean pause of the client between two that continue each other, ns.
    pub pause_ns: i64,
}

/// A straight line by least squares.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    most: f64,
}

impl Fit {
    fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.most = self.most.max(x);
    }

    /// Where it meets 0, and its slope, neither below 0; none where sizes scatter less than a tenth of
    /// their mean, because the slope would be a guess.
    fn line(&self) -> Option<(f64, f64)> {
        let mean = self.x / self.n;
        let variance = self.xx / self.n - mean * mean;
        if self.n < 10.0 || variance.sqrt() < 0.1 * mean || mean <= 0.0 {
            return None;
        }
        let mean_y = self.y / self.n;
        let slope = ((self.xy / self.n - mean * mean_y) / variance).max(0.0);
        let slope = slope.min((mean_y / mean).max(0.0));
        Some(((mean_y - slope * mean).max(0.0), slope))
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
            (0..6).map(|place| blocks.cut(&access(place * 10, 10), Some(30))).collect();
        use Cut::{Joined, Same};
        assert_eq!(cuts, [Same, Joined, Joined, Same, Joined, Joined]);
        assert_eq!(blocks.cut(&access(60, 10), Some(4)), Cut::Split(3));
        // Elsewhere in the file.
        assert_eq!(blocks.cut(&access(900, 10), Some(100)), Same);
    }

    #[test]
    fn a_line_is_found_where_there_is_one_and_not_guessed() {
        let mut blocks = Blocks::default();
        for place in 1..20 {
            blocks.learn(Direction::Read, place * 1000, 500 + place as i64 * 2000);
            blocks.learn(Direction::Write, 65_536, 1000);
        }
        let [read, write] = blocks.learnt();
        let (request, byte) = read.line.unwrap();
        assert!((request - 500.0).abs() < 1e-6 && (byte - 2.0).abs() < 1e-9);
        assert_eq!(write.line, None);
    }
}

//! Reads and writes that go one at a time in small blocks: throughput is then one block in a round, whatever
//! the line could carry (J. Nagle's stop and wait; MS-SMB2 section 3.2.4.6 lets clients pipeline).
//!
//! Small is what is below what the connection negotiated, up to 1 MiB (SMB1: 60 KiB, which raw transfers
//! move). Saved is the distance's part of the rounds that larger blocks would not need.

use hashbrown::HashMap;

use super::attribution::Gathered;
use super::connections::Connections;
use super::data::{Confidence, Figure, Trouble};
use super::operation::{Act, Seen};
use super::{Found, finding, rate};
use crate::predict::Z_95;
use crate::stats::mean::Mean;

/// Opens that are followed at once; beyond that all are forgotten.
const PLACES_MAX: usize = 65_536;
/// Connections that are followed.
const STREAMS_MAX: usize = 4096;
/// Blocks beyond this gain little.
const BLOCK_MAX: u64 = 1 << 20;
/// SMB1's raw transfers move up to 65,535 bytes; clients use 60 KiB.
pub(super) const BLOCK_SMB1: u64 = 60 << 10;
/// What goes without large MTU, which dialect 2.0.2 has not.
const BLOCK_SMALL: u64 = 64 << 10;
/// Blocks of which nothing is said.
const LEAST: u64 = 10;

/// Blocks of one connection and direction.
struct Part {
    gathered: Gathered,
    busy_ns: i64,
    round: Mean,
    block: Mean,
    /// Of them, those whose distance is not told from the server's time.
    unsplit: u64,
}

impl Default for Part {
    fn default() -> Part {
        Part {
            gathered: Gathered::few(),
            busy_ns: 0,
            round: Mean::default(),
            block: Mean::default(),
            unsplit: 0,
        }
    }
}

/// Those of a connection: in each direction below what any dialect takes, and above.
struct Stream {
    parts: [[Part; 2]; 2],
    /// What is known of its limits without what was negotiated.
    is_smb1: bool,
    is_202: bool,
}

/// One direction.
#[derive(Default)]
struct Way {
    gathered: Gathered,
    busy_ns: i64,
    round: Mean,
    block: Mean,
    target: Mean,
    unsplit: u64,
    /// Messages that show the line: bytes and time.
    line: (u64, i64),
    /// Those one at a time of any size: number, bytes, time.
    all: (u64, u64, i64),
}

/// Both.
#[derive(Default)]
pub(super) struct Blocks {
    /// Where the last read and write on each open ended.
    places: HashMap<(u32, u64, usize), u64, foldhash::fast::RandomState>,
    streams: HashMap<(u32, u64), Box<Stream>, foldhash::fast::RandomState>,
    ways: [Way; 2],
    /// The least time between two different points in time: the clock ticks no finer.
    tick_ns: Option<i64>,
    last: Option<(i64, i64)>,
}

impl Blocks {
    pub(super) fn see(&mut self, seen: &Seen) {
        self.tick(seen);
        self.line(seen);
        let way = match seen.act {
            Act::Read => 0,
            Act::Write => 1,
            _ => return,
        };
        let (Some((recording, handle)), Some(offset)) =
            (seen.handle, seen.columns.offset.get(seen.row))
        else {
            return;
        };
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        let end = offset.saturating_add(seen.bytes);
        let before = self.places.insert((recording, handle, way), end);
        let is_alone = seen.columns.outstanding.get(seen.row) == Some(0);
        if before != Some(offset) || !is_alone || !seen.is_timed || seen.bytes == 0 {
            return;
        }
        let all = &mut self.ways[way].all;
        *all = (all.0 + 1, all.1.saturating_add(seen.bytes), all.2.saturating_add(seen.busy_ns));
        if seen.bytes >= BLOCK_MAX {
            return;
        }
        let Some(turnaround) = seen.turnaround_ns() else { return };
        let key = (recording, seen.connection);
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&key) {
            return;
        }
        let stream = self.streams.entry(key).or_insert_with(|| {
            Box::new(Stream {
                parts: Default::default(),
                is_smb1: seen.columns.protocol.get(seen.row) == Some(1),
                is_202: seen.columns.dialect.get(seen.row) == Some("2.0.2"),
            })
        });
        let is_large = seen.bytes >= stream.least_target();
        let part = &mut stream.parts[way][usize::from(is_large)];
        let round_ns = match seen.split() {
            Some((_, distance)) => distance,
            None => {
                part.unsplit += 1;
                turnaround
            }
        };
        // What remains of a round in larger blocks is known when the connection is.
        part.gathered.add(seen, seen.of_busy(round_ns));
        part.busy_ns = part.busy_ns.saturating_add(seen.busy_ns);
        part.round.add(round_ns as f64);
        part.block.add(seen.bytes as f64);
    }

    /// How fine the clock is.
    fn tick(&mut self, seen: &Seen) {
        let (Some(start), true) = (seen.start, seen.is_timed) else { return };
        if let Some((last, elapsed)) = self.last {
            let apart = [start.saturating_sub(last), seen.elapsed_ns, seen.elapsed_ns - elapsed];
            let least = apart.into_iter().filter(|ns| *ns != 0).map(i64::abs).min();
            self.tick_ns = match (self.tick_ns, least) {
                (Some(tick), Some(least)) => Some(tick.min(least)),
                (tick, least) => tick.or(least),
            };
        }
        self.last = Some((start, seen.elapsed_ns));
    }

    /// What long messages show of the line. Sums, because a coarse clock is right on average only.
    fn line(&mut self, seen: &Seen) {
        for (way, message) in self.ways.iter_mut().zip(seen.long_messages()) {
            if let Some((bytes, ns)) = message {
                way.line.0 = way.line.0.saturating_add(bytes);
                way.line.1 = way.line.1.saturating_add(ns);
            }
        }
    }

    pub(super) fn finish(mut self, connections: &Connections) -> Vec<Found> {
        let mut streams: Vec<_> = self.streams.into_iter().collect();
        streams.sort_unstable_by_key(|one| one.0);
        for (key, stream) in streams {
            let known = connections.get(key);
            let targets = [0, 1].map(|place| stream.target(known.and_then(|one| one.most[place])));
            for ((way, parts), target) in self.ways.iter_mut().zip(stream.parts).zip(targets) {
                parts.into_iter().for_each(|part| way.take(part, target as f64));
            }
        }
        let tick = self.tick_ns.unwrap_or(0) as f64;
        // Both ways of a line carry the same, unless each has shown something else.
        let lines = self.ways.each_ref().map(|way| rate(way.line.0, way.line.1));
        let other = [lines[1], lines[0]];
        let all = self.ways.each_ref().map(|way| way.all);
        let back = [all[1], all[0]];
        let ways = self.ways.into_iter().zip([Trouble::SmallReads, Trouble::SmallWrites]);
        let ways = ways.zip(lines.into_iter().zip(other)).zip(back);
        ways.filter(|(((way, _), _), _)| way.gathered.operations >= LEAST)
            .map(|(((way, trouble), (line, other)), back)| {
                way.finish(trouble, line.or(other), back, tick)
            })
            .collect()
    }
}

impl Stream {
    /// What is small for every connection of its dialect.
    fn least_target(&self) -> u64 {
        if self.is_smb1 { BLOCK_SMB1 } else { BLOCK_SMALL }
    }

    /// The block that the connection would allow, up to what still gains something.
    fn target(&self, most: Option<u64>) -> u64 {
        match most {
            _ if self.is_smb1 => BLOCK_SMB1,
            Some(most) => most.clamp(BLOCK_SMALL, BLOCK_MAX),
            None if self.is_202 => BLOCK_SMALL,
            None => BLOCK_MAX,
        }
    }
}

impl Way {
    /// Takes blocks of a connection that allows larger ones.
    fn take(&mut self, mut part: Part, target: f64) {
        let kept = part.block.mean() / target;
        if part.gathered.operations == 0 || kept >= 1.0 {
            return;
        }
        part.gathered.scale(1.0 - kept);
        self.busy_ns = self.busy_ns.saturating_add(part.busy_ns);
        self.unsplit += part.unsplit;
        self.target.add_many(target, part.gathered.operations);
        self.round.merge(&part.round);
        self.block.merge(&part.block);
        self.gathered.merge(part.gathered);
    }

    /// `back` is what goes one at a time the other way.
    fn finish(
        self,
        trouble: Trouble,
        line: Option<f64>,
        back: (u64, u64, i64),
        tick: f64,
    ) -> Found {
        let block = self.block.mean();
        let target = self.target.mean();
        let round = self.round.mean();
        // Where the clock and the rounds are in step, more of them tell no more.
        let scatter = Z_95 * self.round.error();
        let round_error = if self.round.deviation() < tick / 4.0 { tick } else { scatter };
        let each_ns = self.busy_ns as f64 / self.gathered.operations as f64;
        let today = 8e9 * block / each_ns.max(1.0);
        let sending_ns = |bytes: f64| line.map_or(0.0, |bits| 8e9 * bytes / bits);
        let rest_ns = (each_ns - round - sending_ns(block)).max(0.0);
        // What a request costs beside the round stays, its bytes take longer.
        let then_ns = round + rest_ns + sending_ns(target);
        let then = 8e9 * target / then_ns.max(1.0);
        let what = format!(
            "{} go one at a time, in small blocks: each is sent when the one before was answered, so that a round \
             moves one block, however fast the line is",
            if trouble == Trouble::SmallReads { "Reads" } else { "Writes" }
        );
        let (confidence, because) = if self.unsplit > 0 {
            let because = "the distance is not told from the server's time: no round trip was seen";
            (Confidence::Medium, because)
        } else if line.is_none() {
            (
                Confidence::Medium,
                "what the line carries was not seen: no long message took any time",
            )
        } else {
            (Confidence::High, "blocks, rounds and the line were measured")
        };
        let figure =
            |name, value: f64, error: Option<f64>, unit| Figure { name, value, error, unit };
        let mut figures = vec![
            figure("block", block, Some(Z_95 * self.block.error()), "bytes"),
            figure("round", round, Some(round_error), "ns"),
            // Of all rounds together the clock is wrong by a tick.
            figure("throughput", today, Some(today * tick / self.busy_ns.max(1) as f64), "bits/s"),
            figure("larger_block", target, None, "bytes"),
            figure("throughput_then", then, Some(then * round_error / then_ns.max(1.0)), "bits/s"),
            figure("times_as_much", then / today.max(1e-9), None, ""),
        ];
        if let Some(line) = line {
            figures.insert(3, figure("line", line, None, "bits/s"));
        }
        // Why one direction is fast and the other is not.
        let (n, bytes, ns) = back;
        if let (LEAST.., Some(bits)) = (n, rate(bytes, ns)) {
            figures.push(figure("block_the_other_way", bytes as f64 / n as f64, None, "bytes"));
            figures.push(figure("throughput_the_other_way", bits, None, "bits/s"));
        }
        if tick > 1e6 {
            figures.push(figure("clock_tick", tick, None, "ns"));
        }
        let mut found = finding(trouble, what, self.gathered, confidence, because);
        found.finding.figures = figures;
        found
    }
}

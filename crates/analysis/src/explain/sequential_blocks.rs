//! Reads and writes that go one at a time in small blocks: throughput is then one block per round
//! trip, whatever the network could carry (stop and wait; MS-SMB2 section 3.2.4.6 lets clients
//! pipeline).
//!
//! A block is small if it is below what the connection negotiated, up to 1 MiB (SMB1: 60 KiB, which
//! raw transfers move). What would be saved is the network's part of the round trips that larger
//! blocks would not need.

use hashbrown::HashMap;
use smbscope_findings::{Confidence, Figure};

use super::attribution::Attribution;
use super::candidate::Candidate;
use super::data::FindingKind;
use super::detector::{Context, Detector};
use super::findings::one_at_a_time::OneAtATime;
use super::findings::{small_reads, small_writes};
use super::operation::{Act, Operation};
use super::rate;
use super::smb1_offer::Smb1Offers;
use crate::predict::Z_95;
use crate::predict::changes::Change;
use crate::stats::mean::Mean;

/// Most opens that are followed; when there are more, all are forgotten.
const OPENS_MAX: usize = 65_536;
/// Most connections that are followed.
const CONNECTIONS_MAX: usize = 4096;
/// Larger blocks than this gain little.
const BLOCK_MAX: u64 = 1 << 20;
/// SMB1's raw transfers move up to 65,535 bytes; clients use 60 KiB of it.
const BLOCK_SMB1: u64 = 60 << 10;
/// The limit without large MTU, which dialect 2.0.2 does not have.
const BLOCK_SMALL: u64 = 64 << 10;
/// Fewest blocks to judge a direction by.
const BLOCKS_MIN: u64 = 10;

/// Blocks of one connection, direction and size class.
struct BlockTally {
    attribution: Attribution,
    busy_ns: i64,
    round: Mean,
    block: Mean,
    /// Blocks for which network and server time could not be distinguished.
    unsplit: u64,
}

impl Default for BlockTally {
    fn default() -> BlockTally {
        BlockTally {
            attribution: Attribution::with_few_names(),
            busy_ns: 0,
            round: Mean::default(),
            block: Mean::default(),
            unsplit: 0,
        }
    }
}

/// The blocks of a connection: in each direction, those below and above what every dialect allows.
struct ConnectionBlocks {
    tallies: [[BlockTally; 2]; 2],
    /// What limits its blocks if the negotiation is not in the recording.
    is_smb1: bool,
    is_202: bool,
    is_signed: bool,
}

/// One direction of all connections.
#[derive(Default)]
struct DirectionTally {
    attribution: Attribution,
    busy_ns: i64,
    round: Mean,
    block: Mean,
    target: Mean,
    unsplit: u64,
    /// Long messages, which show the rate of the network: bytes and time.
    link: (u64, i64),
    /// What SMB1's servers allow.
    smb1: Smb1Offers,
    /// Blocks of any size that go one at a time: number, bytes, time.
    all: (u64, u64, i64),
}

/// Blocks that go one at a time, in both directions: reads, and writes.
#[derive(Default)]
pub(super) struct SequentialBlocks {
    /// Where the last read and the last write on each open ended.
    positions: HashMap<(u32, u64, usize), u64, foldhash::fast::RandomState>,
    connections: HashMap<(u32, u64), Box<ConnectionBlocks>, foldhash::fast::RandomState>,
    directions: [DirectionTally; 2],
    one_at_a_time: OneAtATime,
    /// The shortest time between two different times of the recording: its clock's resolution.
    tick_ns: Option<i64>,
    last: Option<(i64, i64)>,
}

impl Detector for SequentialBlocks {
    fn see(&mut self, op: &Operation) {
        self.tick(op);
        self.see_link(op);
        let direction = match op.act {
            Act::Read => 0,
            Act::Write => 1,
            _ => return,
        };
        let (Some((recording, handle)), Some(offset)) =
            (op.handle, op.columns.offset_bytes.get(op.row))
        else {
            return;
        };
        if self.positions.len() >= OPENS_MAX {
            self.positions.clear();
        }
        let end = offset.saturating_add(op.bytes);
        let before = self.positions.insert((recording, handle, direction), end);
        let is_alone = op.columns.outstanding.get(op.row) == Some(0);
        if before != Some(offset) || !is_alone || !op.is_timed || op.bytes == 0 || op.has_paused() {
            return;
        }
        self.one_at_a_time.add(op);
        let all = &mut self.directions[direction].all;
        *all = (all.0 + 1, all.1.saturating_add(op.bytes), all.2.saturating_add(op.busy_ns));
        if op.bytes >= BLOCK_MAX {
            return;
        }
        let Some(turnaround) = op.turnaround_ns() else { return };
        let key = (recording, op.connection);
        if self.connections.len() >= CONNECTIONS_MAX && !self.connections.contains_key(&key) {
            return;
        }
        let connection = self.connections.entry(key).or_insert_with(|| {
            Box::new(ConnectionBlocks {
                tallies: Default::default(),
                is_smb1: op.columns.protocol.get(op.row) == Some(1),
                is_202: op.columns.dialect.get(op.row) == Some("2.0.2"),
                is_signed: op.columns.signed.is_set(op.row),
            })
        });
        let is_large = op.bytes >= connection.least_target();
        let tally = &mut connection.tallies[direction][usize::from(is_large)];
        let round_ns = match op.split() {
            Some((_, network_ns)) => network_ns,
            None => {
                tally.unsplit += 1;
                turnaround
            }
        };
        // How much of it larger blocks would save is known when the connection is.
        tally.attribution.add(op, op.of_busy(round_ns));
        tally.busy_ns = tally.busy_ns.saturating_add(op.busy_ns);
        tally.round.add(round_ns as f64);
        tally.block.add(op.bytes as f64);
    }

    fn finish(mut self, context: &mut Context) -> Vec<Candidate> {
        let mut all: Vec<_> = self.connections.into_iter().collect();
        all.sort_unstable_by_key(|one| one.0);
        for (key, blocks) in all {
            let known = context.connections.get(key);
            let targets =
                [0, 1].map(|place| blocks.target(known.and_then(|one| one.blocks_max[place])));
            let tallies = self.directions.iter_mut().zip(blocks.tallies).zip(targets);
            for (place, ((direction, tallies), target)) in tallies.enumerate() {
                if let Some(facts) = known.filter(|_| blocks.is_smb1) {
                    let [small, _] = &tallies;
                    let (block, n) = (small.block.mean(), small.attribution.operations);
                    direction.smb1.add(place, (block, n), blocks.is_signed, facts);
                }
                tallies.into_iter().for_each(|tally| direction.take(tally, target as f64));
            }
        }
        let tick = self.tick_ns.unwrap_or(0) as f64;
        // Both directions of the network have one rate, unless each has shown its own.
        let links = self.directions.each_ref().map(|one| rate(one.link.0, one.link.1));
        let link = [links[0].or(links[1]), links[1].or(links[0])];
        let all = self.directions.each_ref().map(|one| one.all);
        let back = [all[1], all[0]];
        let directions =
            self.directions.into_iter().zip([FindingKind::SmallReads, FindingKind::SmallWrites]);
        directions
            .zip(link.into_iter().zip(back))
            .filter(|((direction, _), _)| direction.attribution.operations >= BLOCKS_MIN)
            .map(|((direction, kind), (link, back))| direction.finish(kind, link, back, tick))
            .chain(self.one_at_a_time.finish())
            .collect()
    }
}

impl SequentialBlocks {
    /// Learns the resolution of the clock.
    fn tick(&mut self, op: &Operation) {
        let (Some(start), true) = (op.start, op.is_timed) else { return };
        if let Some((last, elapsed)) = self.last {
            let differences = [start.saturating_sub(last), op.elapsed_ns, op.elapsed_ns - elapsed];
            let least = differences.into_iter().filter(|ns| *ns != 0).map(i64::abs).min();
            self.tick_ns = match (self.tick_ns, least) {
                (Some(tick), Some(least)) => Some(tick.min(least)),
                (tick, least) => tick.or(least),
            };
        }
        self.last = Some((start, op.elapsed_ns));
    }

    /// Learns the rate of the network from long messages. Sums, because a coarse clock is right on average only.
    fn see_link(&mut self, op: &Operation) {
        for (direction, message) in self.directions.iter_mut().zip(op.long_messages()) {
            if let Some((bytes, ns)) = message {
                direction.link.0 = direction.link.0.saturating_add(bytes);
                direction.link.1 = direction.link.1.saturating_add(ns);
            }
        }
    }
}

impl ConnectionBlocks {
    /// Blocks below this are small for every connection of its dialect.
    fn least_target(&self) -> u64 {
        if self.is_smb1 { BLOCK_SMB1 } else { BLOCK_SMALL }
    }

    /// The block that the connection would allow, up to the size that still gains something.
    fn target(&self, most: Option<u64>) -> u64 {
        match most {
            _ if self.is_smb1 => BLOCK_SMB1,
            Some(most) => most.clamp(BLOCK_SMALL, BLOCK_MAX),
            None if self.is_202 => BLOCK_SMALL,
            None => BLOCK_MAX,
        }
    }
}

impl DirectionTally {
    /// Adds the blocks of a connection that allows larger ones.
    fn take(&mut self, mut tally: BlockTally, target: f64) {
        let kept = tally.block.mean() / target;
        if tally.attribution.operations == 0 || kept >= 1.0 {
            return;
        }
        tally.attribution.scale(1.0 - kept);
        self.busy_ns = self.busy_ns.saturating_add(tally.busy_ns);
        self.unsplit += tally.unsplit;
        self.target.add_many(target, tally.attribution.operations);
        self.round.merge(&tally.round);
        self.block.merge(&tally.block);
        self.attribution.merge(tally.attribution);
    }

    /// `link` is the rate of the network, `back` the blocks that go one at a time in the other direction, and
    /// `tick` the resolution of the clock, ns.
    fn finish(
        self,
        kind: FindingKind,
        link: Option<f64>,
        back: (u64, u64, i64),
        tick: f64,
    ) -> Candidate {
        let block = self.block.mean();
        let target = self.target.mean();
        let round = self.round.mean();
        // If clock and round trips are in step, more of them do not add precision.
        let scatter = Z_95 * self.round.error();
        let round_error = if self.round.deviation() < tick / 4.0 { tick } else { scatter };
        let each_ns = self.busy_ns as f64 / self.attribution.operations as f64;
        let today = 8e9 * block / each_ns.max(1.0);
        let sending_ns = |bytes: f64| link.map_or(0.0, |bits| 8e9 * bytes / bits);
        let rest_ns = (each_ns - round - sending_ns(block)).max(0.0);
        // The other costs of a request stay the same, its bytes take longer.
        let then_ns = round + rest_ns + sending_ns(target);
        let then = 8e9 * target / then_ns.max(1.0);
        let (confidence, because) = if self.unsplit > 0 {
            let because =
                "network and server time could not be distinguished: no round trip was observed";
            (Confidence::Likely, because)
        } else if link.is_none() {
            let because = "the rate of the network was not observed: no long message took any time";
            (Confidence::Likely, because)
        } else {
            (
                Confidence::Measured,
                "block size, round-trip time and the rate of the network were measured",
            )
        };
        let what = match kind {
            FindingKind::SmallReads => small_reads::WHAT,
            _ => small_writes::WHAT,
        };
        let mut figures = vec![
            Figure::new("block", block, "bytes", "blocks of {}")
                .with_error(Some(Z_95 * self.block.error())),
            Figure::new("round", round, "ns", "{} in the network for each")
                .with_error(Some(round_error)),
            // The clock is wrong by one tick in the sum of all round trips.
            Figure::new("throughput", today, "bits/s", "{} today")
                .with_error(Some(today * tick / self.busy_ns.max(1) as f64)),
        ];
        figures
            .extend(link.map(|link| Figure::new("line", link, "bits/s", "the network carries {}")));
        // What keeps the network busy: bandwidth-delay product (RFC 7323 section 1.1).
        let in_flight = link.unwrap_or(then) / 8e9 * (round + rest_ns);
        let depth = (in_flight / block.max(1.0)).ceil().max(1.0);
        figures.extend([
            Figure::new("larger_block", target, "bytes", "larger blocks of {}"),
            Figure::new("throughput_then", then, "bits/s", "{} with them")
                .with_error(Some(then * round_error / then_ns.max(1.0))),
            Figure::new("times_as_much", then / today.max(1e-9), "", "{} times as much"),
            Figure::new("in_flight_needed", in_flight, "bytes", "{} in flight needed"),
            Figure::new("depth_needed", depth, "", "requests at once needed: {}"),
        ]);
        // Shows why one direction is fast and the other is not.
        let (n, bytes, ns) = back;
        if let (BLOCKS_MIN.., Some(bits)) = (n, rate(bytes, ns)) {
            let block = bytes as f64 / n as f64;
            figures.extend([
                Figure::new("block_the_other_way", block, "bytes", "the other way, blocks of {}"),
                Figure::new("throughput_the_other_way", bits, "bits/s", "{} the other way"),
            ]);
        }
        if tick > 1e6 {
            figures.push(Figure::new("clock_tick", tick, "ns", "the clock ticks every {}"));
        }
        let is_write = kind == FindingKind::SmallWrites;
        let change = if is_write { Change::WriteBlock } else { Change::ReadBlock };
        // SMB1's raw transfers go one at a time.
        let depth = (target as u64 != BLOCK_SMB1).then_some(Change::Depth(8));
        let mut candidate = Candidate::new(kind, what, self.attribution, confidence, because)
            .with_changes(std::iter::once(change(target as u64)).chain(depth));
        candidate.finding.figures = figures;
        self.smb1.describe(usize::from(is_write), &mut candidate.finding);
        candidate
    }
}

//! Large blocks go one at a time although the path is idle between them: each waits for the server's answer to the one
//! before (MS-SMB2 section 3.2.4.6 lets clients pipeline). Whether the server answers several at once as quickly is not in
//! the recording: what several in flight would gain lies between that of a server that works on one after the other (the
//! round trips) and that of one that works on all at once. The observation is [`super::super::sequential_blocks`].

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::operation::{Act, Operation};
use crate::predict::changes::Change;

pub(crate) const KIND: KindInfo = KindInfo::new("one-at-a-time", "blocks go one at a time")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "application",
        "keep several reads or writes in flight: asynchronous I/O, several copy threads (robocopy /MT:8), a larger queue (fio \
         iodepth=8, NDMP and backup programs: number of streams)",
    ),
    (
        "client",
        "let the cache write behind and read ahead: no direct or unbuffered I/O (Linux: cache=strict instead of none, rasize=), Windows: \
         no robocopy /J for small files",
    ),
    ("measurement", "compare one with eight in flight: smbscope load with the workload's depth, or fio --iodepth=1 and 8"),
]);

/// Smaller blocks are a matter of their size.
const BLOCK_MIN: u64 = 64 << 10;
/// Fewest blocks of a direction of a connection.
const BLOCKS_MIN: u64 = 40;
/// The path is idle for at least this share of the time.
const IDLE_MIN: f64 = 0.5;
/// A server that takes this share of the time, and this long for a block, is slow itself, ns: a disk that has to seek
/// for each block needs a tenth of it.
const SERVER_SHARE: f64 = 0.8;
const SLOW_NS: i64 = 100_000_000;
/// The usual number in flight: the idle time that remains is divided by it.
const DEPTH: f64 = 8.0;
/// Most connections that are followed.
const CONNECTIONS_MAX: usize = 4_096;

#[derive(Default)]
struct Blocks {
    n: u64,
    bytes: u64,
    elapsed: i128,
    transfer: i128,
    network: i128,
    attribution: Attribution,
    numbers: HashSet<u32>,
}

/// Blocks that go one at a time, by connection and direction.
#[derive(Default)]
pub(crate) struct OneAtATime(HashMap<(u32, u64, Act), Blocks, foldhash::fast::RandomState>);

impl OneAtATime {
    /// Takes a block that continues the last one of its open, with nothing else in flight.
    pub(crate) fn add(&mut self, op: &Operation) {
        let Some((_, network_ns)) = op.split() else { return };
        let key = (op.recording, op.connection, op.act);
        let has_room = self.0.len() < CONNECTIONS_MAX || self.0.contains_key(&key);
        if op.bytes < BLOCK_MIN || op.explained.is_some() || !has_room {
            return;
        }
        let blocks = self.0.entry(key).or_insert_with(|| Blocks {
            attribution: Attribution::with_few_names(),
            ..Blocks::default()
        });
        let idle_ns = op.elapsed_ns.saturating_sub(op.transfer_ns());
        blocks.n += 1;
        blocks.bytes = blocks.bytes.saturating_add(op.bytes);
        blocks.elapsed += i128::from(op.elapsed_ns);
        blocks.transfer += i128::from(op.transfer_ns());
        blocks.network += i128::from(network_ns);
        let saved = (idle_ns as f64 * (1.0 - 1.0 / DEPTH)) as i64;
        blocks.attribution.add(op, op.of_busy(saved));
        blocks.numbers.extend(op.number);
    }

    /// A finding for each direction.
    pub(crate) fn finish(self) -> Vec<Candidate> {
        let mut sums = [Blocks::default(), Blocks::default()];
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_unstable_by_key(|((recording, connection, act), _)| (*recording, *connection, *act as u8));
        for ((_, _, act), blocks) in all {
            let idle = 1.0 - blocks.transfer as f64 / blocks.elapsed.max(1) as f64;
            let of_server = 1.0 - (blocks.transfer + blocks.network) as f64 / blocks.elapsed.max(1) as f64;
            let mean_ns = blocks.elapsed / i128::from(blocks.n.max(1));
            let is_slow = of_server > SERVER_SHARE && mean_ns >= i128::from(SLOW_NS);
            if blocks.n < BLOCKS_MIN || idle < IDLE_MIN || is_slow {
                continue;
            }
            let sum = &mut sums[usize::from(act == Act::Read)];
            sum.n += blocks.n;
            sum.bytes = sum.bytes.saturating_add(blocks.bytes);
            sum.elapsed += blocks.elapsed;
            sum.transfer += blocks.transfer;
            sum.network += blocks.network;
            sum.attribution.merge(blocks.attribution);
            sum.numbers.extend(blocks.numbers);
        }
        let words = ["Writes", "Reads"];
        sums.into_iter()
            .zip(words)
            .filter(|(blocks, _)| blocks.n > 0)
            .map(|(blocks, word)| candidate(blocks, word))
            .collect()
    }
}

fn candidate(blocks: Blocks, word: &str) -> Candidate {
    let n = blocks.n as f64;
    let elapsed = blocks.elapsed as f64;
    let idle = 1.0 - blocks.transfer as f64 / elapsed.max(1.0);
    let rate = 8e9 * blocks.bytes as f64 / elapsed.max(1.0);
    // One after the other at the server: only the round trips are saved.
    let serial = rate * elapsed / (elapsed - blocks.network as f64).max(elapsed / DEPTH);
    let parallel = rate * DEPTH.min(elapsed / (blocks.transfer as f64).max(1.0));
    let what = format!(
        "{word} of large blocks go one at a time: each waits for the answer to the one before, and the path is idle meanwhile"
    );
    let mut candidate = Candidate::new(
        FindingKind::OneAtATime,
        what,
        blocks.attribution,
        Confidence::Likely,
        "the blocks continue each other and nothing else is in flight; how many the server works on at once is not in the recording, so \
         that the gain is a range",
    )
    .with_changes([Change::Depth(DEPTH as usize)])
    .with_figures([
        ("block", blocks.bytes as f64 / n.max(1.0), "bytes", "blocks of {} on average"),
        ("rate", rate, "bits/s", "{} now"),
        ("idle", idle, "share", "the path is idle for {} of the time"),
        ("rate_serial", serial, "bits/s", "eight in flight: {} if the server works on one after the other"),
        ("rate_parallel", parallel, "bits/s", "up to {} if it works on all at once"),
    ]);
    candidate.explains = (&SERVER, blocks.numbers);
    candidate
}

/// Findings that blame a server of which no client requests more.
const SERVER: [FindingKind; 3] =
    [FindingKind::SlowFilesystem, FindingKind::ServerQueueing, FindingKind::SmallWrites];

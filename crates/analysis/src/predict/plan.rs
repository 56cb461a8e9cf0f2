//! What changes mean for a recorded sequence of operations.

use smbscope_tables::profile::CacheOption;
use smbscope_tables::protection::Protection;
use smbscope_tables::slice::Kind;

use super::crypto::Calibration;
use super::queueing::Wait;
use super::replay::Direction;

/// Changes, as a replay of recorded operations takes them: today unless said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The round trip is this instead, s.
    pub rtt_s: Option<f64>,
    /// This is added to the round trip, s.
    pub farther_s: f64,
    /// Each client's line carries so many bits in a second, each way.
    pub bandwidth_bits: Option<f64>,
    /// Receivers announce a window of so many bytes.
    pub window_bytes: Option<f64>,
    /// Share of packets that are lost.
    pub loss: f64,
    /// Reads that continue each other are made in blocks of so many bytes.
    pub read_block: Option<u64>,
    /// The same of writes.
    pub write_block: Option<u64>,
    /// What clients keep of directories.
    pub cache: Option<CacheOption>,
    /// Reads and writes that continue each other are under way so many at once.
    pub depth: Option<usize>,
    /// Whether requests that follow each other on one open go as one compound.
    pub compound: Option<bool>,
    /// Connections of each session over which requests are spread, in the place of each one.
    pub channels: usize,
    /// Whether all writes are to be stable when they are answered, or none.
    pub write_through: Option<bool>,
    /// How all messages are signed.
    pub signing: Option<Protection>,
    /// How all messages are encrypted.
    pub encryption: Option<Protection>,
    /// What both cost.
    pub calibration: Option<Calibration>,
    /// Share of reads that the server has in memory.
    pub cache_hit: Option<f64>,
    /// A second server that has what is stable.
    pub replication: Option<Replication>,
    /// So many users ([`super::capacity::Capacity::loads`]).
    pub users: Option<f64>,
    /// Only executions that were due then count, ns since 1970.
    pub window: Option<(i64, i64)>,
    /// What requests wait more then.
    pub waits: Vec<Wait>,
    /// Share of today's time that each slice takes, in the order of [`Kind::ALL`].
    pub slices: [f64; Kind::ALL.len()],
    /// Share of today's time that the server's processors take.
    pub processors: f64,
}

/// A second server that keeps the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replication {
    /// Whether an answer waits until it has what must be stable.
    pub is_sync: bool,
    /// Round trip between the servers, ns.
    pub rtt_ns: i64,
    /// Rate of the line between them, bit/s; none without a limit.
    pub bandwidth_bits: Option<f64>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            rtt_s: None,
            farther_s: 0.0,
            bandwidth_bits: None,
            window_bytes: None,
            loss: 0.0,
            read_block: None,
            write_block: None,
            cache: None,
            depth: None,
            compound: None,
            channels: 1,
            write_through: None,
            signing: None,
            encryption: None,
            calibration: None,
            cache_hit: None,
            replication: None,
            users: None,
            window: None,
            waits: Vec::new(),
            slices: [1.0; Kind::ALL.len()],
            processors: 1.0,
        }
    }
}

impl Plan {
    /// The round trip, where it is this today, ns.
    pub fn rtt_ns(&self, today_ns: i64) -> i64 {
        match self.rtt_s {
            None => today_ns.saturating_add((self.farther_s * 1e9) as i64),
            Some(rtt_s) => ((rtt_s + self.farther_s) * 1e9) as i64,
        }
    }

    /// Whether messages are protected in another way.
    pub fn is_other_protection(&self) -> bool {
        self.signing.is_some() || self.encryption.is_some()
    }

    /// Whether the way between clients and server is another one.
    pub fn is_other_line(&self) -> bool {
        self.rtt_s.is_some()
            || self.farther_s != 0.0
            || self.bandwidth_bits.is_some()
            || self.window_bytes.is_some()
            || self.loss > 0.0
    }

    /// The new block of reads or writes.
    pub(crate) fn block(&self, kind: Direction) -> Option<u64> {
        match kind {
            Direction::Read => self.read_block,
            Direction::Write => self.write_block,
        }
    }

    /// Whether reads or writes have another size.
    pub fn is_other_blocks(&self) -> bool {
        self.read_block.is_some() || self.write_block.is_some()
    }

    /// Whether requests go at other times on the same connections.
    pub(crate) fn moves_requests(&self) -> bool {
        self.channels > 1
            || self.depth.is_some()
            || self.compound.is_some()
            || self.is_other_blocks()
    }

    /// Whether it needs what a first replay, without changes, has learnt.
    pub fn learns(&self) -> bool {
        self.is_other_blocks()
            || self.cache.is_some()
            || self.write_through.is_some()
            || self.replication.is_some()
            || self.cache_hit.is_some()
    }

    /// Whether what is stable when, or where, is another one.
    pub(crate) fn is_other_durability(&self) -> bool {
        self.write_through.is_some() || self.replication.is_some()
    }
}

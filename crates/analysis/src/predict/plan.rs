//! What all changes together mean for a replay of recorded operations.

use smbscope_tables::profile::CacheOption;
use smbscope_tables::protection::Protection;
use smbscope_tables::slice::Kind;

use super::crypto::Calibration;
use super::queueing::Wait;

/// Which way a request moves the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read = 0,
    Write = 1,
}

/// All changes, as a replay of recorded operations needs them. A field that is not set keeps what was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The new round trip, s.
    pub rtt_s: Option<f64>,
    /// This is added to the round trip, s.
    pub farther_s: f64,
    /// Rate of each client's link in each direction, bit/s.
    pub bandwidth_bits: Option<f64>,
    /// Receive window of TCP, bytes.
    pub window_bytes: Option<f64>,
    /// Share of packets that are lost.
    pub loss: f64,
    /// Block size of contiguous reads, bytes.
    pub read_block: Option<u64>,
    /// Block size of contiguous writes, bytes.
    pub write_block: Option<u64>,
    /// The clients' caches of directories.
    pub cache: Option<CacheOption>,
    /// Number of contiguous reads or writes of one open in flight.
    pub depth: Option<usize>,
    /// Whether requests that follow each other on one open are sent as one compound, or none is.
    pub compound: Option<bool>,
    /// Connections that replace each connection of a session.
    pub channels: usize,
    /// Whether all writes are stable before their reply, or none is because of its own flag.
    pub write_through: Option<bool>,
    /// How all messages are signed.
    pub signing: Option<Protection>,
    /// How all messages are encrypted.
    pub encryption: Option<Protection>,
    /// The costs of signing and encryption.
    pub calibration: Option<Calibration>,
    /// Share of reads that the server answers from memory.
    pub cache_hit: Option<f64>,
    /// A second server that holds the same data.
    pub replication: Option<Replication>,
    /// Number of users ([`super::capacity::Capacity::loads`]).
    pub users: Option<f64>,
    /// Only executions that were due in this window count, ns since 1970.
    pub window: Option<(i64, i64)>,
    /// Additional waits of requests.
    pub waits: Vec<Wait>,
    /// Share of the recorded time that each slice takes, in the order of [`Kind::ALL`].
    pub slices: [f64; Kind::ALL.len()],
    /// Share of the recorded time that the server's CPUs need.
    pub processors: f64,
}

/// A second server that holds the same data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replication {
    /// Whether a reply waits until this server has the data that must be stable.
    pub is_sync: bool,
    /// Whether the second server answers when it has the data in memory, before its log has it (DRBD's protocol B).
    pub is_on_arrival: bool,
    /// Round trip between the servers, ns.
    pub rtt_ns: i64,
    /// Rate of the link between them, bit/s; none without a limit.
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
    /// The new round trip of a connection with this recorded one, ns.
    pub fn rtt_ns(&self, today_ns: i64) -> i64 {
        match self.rtt_s {
            None => today_ns.saturating_add((self.farther_s * 1e9) as i64),
            Some(rtt_s) => ((rtt_s + self.farther_s) * 1e9) as i64,
        }
    }

    /// Whether messages are protected differently.
    pub fn is_other_protection(&self) -> bool {
        self.signing.is_some() || self.encryption.is_some()
    }

    /// Whether the network between clients and server changes.
    pub fn is_other_network(&self) -> bool {
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

    /// Whether requests are sent at other times on the same connections.
    pub(crate) fn moves_requests(&self) -> bool {
        self.channels > 1
            || self.depth.is_some()
            || self.compound.is_some()
            || self.is_other_blocks()
    }

    /// Whether it needs the baseline that a first replay, without changes, learns.
    pub fn needs_baseline(&self) -> bool {
        self.is_other_blocks()
            || self.cache.is_some()
            || self.write_through.is_some()
            || self.replication.is_some()
            || self.cache_hit.is_some()
    }

    /// Whether other data is stable, or stable elsewhere.
    pub(crate) fn is_other_durability(&self) -> bool {
        self.write_through.is_some() || self.replication.is_some()
    }
}

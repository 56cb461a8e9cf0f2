//! What clients and servers have already, as far as the recording shows it: dialect, sizes, leases, compounds, channels,
//! protection, window scales. A remedy that asks for one of these is of no use; see [`remedies`](super::remedies).

use hashbrown::{HashMap, HashSet};
use smbscope_tables::tables::{Connection, Tree};

use super::connections::{ConnectionFacts, Connections};
use super::operation::{Act, Operation};

/// Most connections whose opens are counted.
const CONNECTIONS_MAX: usize = 65_536;
/// The credits that Samba and Windows grant at most by default.
const CREDITS_DEFAULT: u64 = 8_192;
/// Larger blocks than this gain little, bytes.
const LARGE_BLOCK: u64 = 1 << 20;

/// A dialect, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dialect(u16);

impl Dialect {
    /// The first with large MTU.
    pub(super) const SMB21: Dialect = Dialect(0x0210);
    const SMB202: Dialect = Dialect(0x0202);
    const SMB311: Dialect = Dialect(0x0311);

    pub(super) fn from_name(name: &str) -> Dialect {
        match name {
            "2.0.2" => Dialect::SMB202,
            "2.1" => Dialect::SMB21,
            "3.0" => Dialect(0x0300),
            "3.0.2" => Dialect(0x0302),
            "3.1.1" => Dialect::SMB311,
            // The others are those of SMB1.
            _ => Dialect(0),
        }
    }
}

/// What client and server agreed on for a connection, and what they used of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Negotiated {
    pub(super) dialect: Option<Dialect>,
    has_window_scales: bool,
    has_compounds: bool,
    is_compressed: bool,
    /// Whether whatever protects its messages is the quickest there is.
    has_quick_protection: bool,
    credits_max: u64,
}

impl Negotiated {
    pub(super) fn from_row(row: &Connection) -> Negotiated {
        let is_scaled = |scale: Option<u64>| scale.is_some_and(|scale| scale > 0);
        let is_signing_quick =
            row.signed == 0 || row.signing_algorithm.as_deref() == Some("AES-GMAC");
        let is_cipher_quick = row.encrypted == 0 || row.cipher.as_deref() == Some("AES-128-GCM");
        Negotiated {
            dialect: row.dialect.as_deref().map(Dialect::from_name),
            has_window_scales: is_scaled(row.client_window_scale)
                && is_scaled(row.server_window_scale),
            has_compounds: row.compounds > 0,
            is_compressed: row.compressed > 0,
            has_quick_protection: row.signed + row.encrypted > 0
                && is_signing_quick
                && is_cipher_quick,
            credits_max: row.credits_max,
        }
    }
}

/// Opens with success, and those of them to which a lease was granted.
#[derive(Clone, Copy, Debug, Default)]
struct Leases {
    opens: u64,
    granted: u64,
}

impl Leases {
    fn add(&mut self, other: Leases) {
        self.opens += other.opens;
        self.granted += other.granted;
    }

    /// Whether they are granted as a rule.
    fn is_usual(self) -> bool {
        self.granted > 0 && self.granted * 2 > self.opens
    }
}

/// What is not in the rows of connections.
#[derive(Default)]
pub(super) struct ProtocolStates {
    /// By connection: opens of files, and of directories.
    leases: HashMap<(u32, u64), [Leases; 2], foldhash::fast::RandomState>,
    /// Connections with trees of which it is known whether they are continuously available, and those that have one.
    trees: HashSet<(u32, u64), foldhash::fast::RandomState>,
    continuous: HashSet<(u32, u64), foldhash::fast::RandomState>,
}

impl ProtocolStates {
    pub(super) fn see(&mut self, op: &Operation) {
        if op.act != Act::Open || op.status != Some(0) {
            return;
        }
        let key = (op.recording, op.connection);
        if self.leases.len() >= CONNECTIONS_MAX && !self.leases.contains_key(&key) {
            return;
        }
        let is_granted = op.columns.oplock_granted.get(op.row) == Some("Lease");
        let leases = self.leases.entry(key).or_default();
        leases[usize::from(op.intent.is_of_directory())]
            .add(Leases { opens: 1, granted: u64::from(is_granted) });
    }

    pub(super) fn tree(&mut self, recording: u32, row: &Tree) {
        let Some(is_continuous) = row.continuous_availability else { return };
        let key = (recording, row.connection);
        if self.trees.len() < CONNECTIONS_MAX {
            self.trees.insert(key);
            if is_continuous {
                self.continuous.insert(key);
            }
        }
    }

    /// The state of these connections together; `channels` has the number of channels of each.
    pub(super) fn of(
        &self,
        keys: &[(u32, u64)],
        connections: &Connections,
        channels: impl Fn((u32, u64)) -> usize,
    ) -> ProtocolState {
        let mut leases = [Leases::default(); 2];
        for of_connection in keys.iter().filter_map(|key| self.leases.get(key)) {
            leases.iter_mut().zip(of_connection).for_each(|(sum, one)| sum.add(*one));
        }
        let is_known =
            |key: &(u32, u64)| self.trees.contains(key) && !self.continuous.contains(key);
        ProtocolState {
            facts: keys.iter().filter_map(|key| connections.get(*key)).cloned().collect(),
            leases,
            channels: keys.iter().map(|key| channels(*key)).min().unwrap_or(0),
            is_not_continuous: !keys.is_empty() && keys.iter().all(is_known),
            asked_again_ns: None,
        }
    }
}

/// What the connections of one finding have. A fact holds if it is known to hold on all of them.
#[derive(Default)]
pub(super) struct ProtocolState {
    facts: Vec<ConnectionFacts>,
    leases: [Leases; 2],
    channels: usize,
    is_not_continuous: bool,
    /// After which time the client asks again at the earliest: its own cache keeps answers for that long.
    pub(super) asked_again_ns: Option<f64>,
}

impl ProtocolState {
    fn all(&self, holds: impl Fn(&ConnectionFacts) -> bool) -> bool {
        !self.facts.is_empty() && self.facts.iter().all(holds)
    }

    fn is_at_least(&self, dialect: Dialect) -> bool {
        self.all(|facts| facts.negotiated.dialect >= Some(dialect))
    }

    pub(super) fn is_smb2(&self) -> bool {
        self.is_at_least(Dialect::SMB202)
    }

    pub(super) fn is_smb311(&self) -> bool {
        self.is_at_least(Dialect::SMB311)
    }

    /// Whether reads and writes may be as large as is useful.
    pub(super) fn has_large_blocks(&self) -> bool {
        self.is_smb2()
            && self.all(|facts| facts.blocks_max.iter().all(|most| *most >= Some(LARGE_BLOCK)))
    }

    pub(super) fn has_file_leases(&self) -> bool {
        self.leases[0].is_usual()
    }

    pub(super) fn has_directory_leases(&self) -> bool {
        self.leases[1].is_usual()
    }

    pub(super) fn has_compounds(&self) -> bool {
        self.all(|facts| facts.negotiated.has_compounds)
    }

    pub(super) fn has_channels(&self) -> bool {
        self.channels > 1
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.all(|facts| facts.negotiated.is_compressed)
    }

    pub(super) fn has_quick_protection(&self) -> bool {
        self.all(|facts| facts.negotiated.has_quick_protection)
    }

    pub(super) fn has_window_scales(&self) -> bool {
        self.all(|facts| facts.negotiated.has_window_scales)
    }

    pub(super) fn has_default_credits(&self) -> bool {
        self.all(|facts| facts.negotiated.credits_max >= CREDITS_DEFAULT)
    }

    /// Whether a client of SMB1 may have more requests outstanding than servers allow by default.
    pub(super) fn has_many_outstanding(&self) -> bool {
        self.all(|facts| facts.max_outstanding >= Some(100))
    }

    pub(super) fn is_not_continuous(&self) -> bool {
        self.is_not_continuous
    }

    /// Whether the client keeps what it asked for at least this long, ns.
    pub(super) fn keeps_for(&self, ns: f64) -> bool {
        self.asked_again_ns.is_some_and(|again| again >= ns)
    }
}

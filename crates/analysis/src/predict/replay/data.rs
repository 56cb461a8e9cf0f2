//! The results of a replay.

use smbscope_tables::slice::Kind;

use super::blocks::SizeCosts;
use super::cache_hits::Hits;
use super::detail::Detail;
use super::durability::{AtRisk, StableCosts};
use super::network::TcpConnection;
use super::opens::Opens;
use super::protection::ProtectionEffect;
use super::replicas::Replicas;
use crate::predict::Z_95;
use crate::stats::latency::Distribution;

/// A part of an operation's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    /// One round trip.
    Network = 0,
    /// Additional round trips of TCP, and sending at the link's rate.
    Windows = 1,
    /// The server's time that is in no slice.
    Server = 2,
    /// The rest: the client, and sending the bytes.
    Rest = 3,
    /// A second server that must have the data too.
    Replica = 4,
    Queue = 5,
    CryptoIn,
    Parse,
    Processing,
    Filesystem,
    IoWait,
    Io,
    Flush,
    LockWait,
    CryptoOut,
    Send,
    FilesystemSlow,
    Security,
    Transport,
    TransportSlow,
    TransportDirect,
}

impl Part {
    /// All, in the order in which they are kept.
    pub const ALL: [Part; Part::FIRST_SLICE + Kind::PARTS] = [
        Part::Network,
        Part::Windows,
        Part::Server,
        Part::Rest,
        Part::Replica,
        Part::Queue,
        Part::CryptoIn,
        Part::Parse,
        Part::Processing,
        Part::Filesystem,
        Part::IoWait,
        Part::Io,
        Part::Flush,
        Part::LockWait,
        Part::CryptoOut,
        Part::Send,
        Part::FilesystemSlow,
        Part::Security,
        Part::Transport,
        Part::TransportSlow,
        Part::TransportDirect,
    ];

    /// Slices follow in the order of [`Kind::ALL`].
    pub(crate) const FIRST_SLICE: usize = 5;

    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Part::Network => "network",
            Part::Windows => "windows",
            Part::Server => "server",
            Part::Rest => "rest",
            Part::Replica => "replica",
            slice => Kind::ALL[slice as usize - Part::FIRST_SLICE].name(),
        }
    }
}

/// A prediction from recorded operations. Times are ns, as the client sees them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// By command, most time first.
    pub commands: Vec<Row>,
    /// Response times by scenario of a load run, in the order of names: from the time at which an
    /// execution was scheduled to its end.
    pub scenarios: Vec<Row>,
    /// All scenarios together; none without a load run.
    pub all_scenarios: Option<Row>,
    /// All operations together.
    pub operations: Row,
    /// Time during which a client's operation was in flight, all clients together.
    pub waiting_ns: (i64, i64),
    /// How much less connections are busy, ns, in proportion to the waits of their clients; from operations that
    /// take less ([`super::Saving`]).
    pub(crate) spared_busy_ns: f64,
    /// Executions of scenarios that begin more than a second late, of [`Prediction::all_scenarios`].
    pub late: (u64, u64),
    /// Least, median and largest round trip of the connections.
    pub rtt_ns: Option<[(i64, i64); 3]>,
    /// Operations with a time of their own.
    pub timed: u64,
    /// How many of those are on connections without a known round trip: a change of the network is not in them.
    pub without_rtt: u64,
    /// Operations of load runs that do not count because their scenario was not measured.
    pub left_out: u64,
    /// Reads, and writes, with a known open, offset and size.
    pub moves: [u64; 2],
    /// How many of those continue another one, and are scheduled by a depth.
    pub contiguous: u64,
    /// Connections of sessions in addition to the first.
    pub further_channels: u64,
    /// Number of operations with each slice, in the order of [`Kind::ALL`].
    pub slices: Vec<(&'static str, u64)>,
    /// Executions of scenarios that were not followed because there are too many.
    pub executions_left_out: u64,
    /// Executions that were followed, measured or not.
    pub executions: u64,
    /// Recorded requests of those.
    pub requests: u64,
    /// What another replay may need.
    pub baseline: Baseline,
    /// With a change of caches: recorded and sent operations by scenario and command; the scenario is empty outside of
    /// any.
    pub sent: Vec<Sent>,
    /// What the caches did.
    pub cached: Cached,
    /// Stable operations: Flushes and write-through writes.
    pub stable: u64,
    /// Members of compounds that become requests of their own, or requests that become members.
    pub chained: u64,
    /// Operations that are signed or encrypted differently.
    pub protected: ProtectionEffect,
    /// Data that an asynchronous second server does not have yet.
    pub at_risk: Option<AtRisk>,
    /// How much longer writes and Flushes take with a second server.
    pub replicas: Option<Replicas>,
    /// The parts of operations, if requested.
    pub detail: Option<Detail>,
}

/// What a replay without changes has learnt, for one with changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// The costs of reads, and of writes, of other sizes.
    pub sizes: [SizeCosts; 2],
    /// What opens are used for.
    pub opens: Opens,
    /// What making bytes stable costs.
    pub stable: StableCosts,
    /// Which reads came from the server's memory; none where they are all of one kind.
    pub hits: Option<Hits>,
}

/// Operations of a command in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Sent {
    pub scenario: String,
    pub command: String,
    pub before: u64,
    pub after: u64,
}

/// What the caches did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// Operations answered from a cache.
    pub answered: u64,
    /// Leases that a change by another client broke.
    pub breaks: u64,
    /// Creates with a path.
    pub creates: u64,
}

/// One group of operations or executions, before and after.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Command or scenario.
    pub name: String,
    /// Number of all, with or without a time of their own.
    pub count: u64,
    /// Number with the changes.
    pub count_after: u64,
    /// Today.
    pub before: Times,
    /// With the changes.
    pub after: Times,
    /// Half of the 95 % interval of the mean change, ns, from the scatter of the single changes.
    pub change_error_ns: Option<f64>,
    /// Means of the parts that are not 0, before and after, ns; for a scenario, `between` is the time between its
    /// operations.
    pub parts: Vec<PartRow>,
}

/// A part's mean before and after, ns.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct PartRow {
    pub part: &'static str,
    pub before_ns: f64,
    pub after_ns: f64,
}

/// The times of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Number, mean, percentiles.
    pub distribution: Distribution,
    /// Half of the 95 % interval of the mean, ns; none for a single value.
    pub error_ns: Option<f64>,
}

impl Prediction {
    /// For one execution of a scenario: its requests, and the additional time for signing and encryption at the server
    /// and at the client, s. None without executions or requests.
    pub fn of_execution(&self) -> Option<(f64, (f64, f64))> {
        let of = |sum: f64| sum / self.executions as f64;
        let (server_ns, client_ns) = self.protected.more_ns;
        (self.requests > 0 && self.executions > 0).then(|| {
            (of(self.requests as f64), (of(server_ns as f64) / 1e9, of(client_ns as f64) / 1e9))
        })
    }

    /// How long a recorded scenario takes, s: its response time, or all of its operations one after the other if that is
    /// longer. Nothing in it waited longer than that. None without scenarios.
    pub fn scenario_s(&self) -> Option<f64> {
        let all = self.all_scenarios.as_ref()?;
        let operations = self.operations.before.distribution.sum_ns as f64 / all.count as f64;
        Some(all.before.mean_ns()?.max(operations) / 1e9)
    }
}

impl Row {
    /// Change of the mean, in per cent of today's.
    pub fn percent(&self) -> Option<f64> {
        let (before, after) = (self.before.mean_ns()?, self.after.mean_ns()?);
        (before != 0.0).then(|| 100.0 * (after / before - 1.0))
    }

    /// Half of the 95 % interval of [`Row::percent`].
    pub fn percent_error(&self) -> Option<f64> {
        let before = self.before.mean_ns().filter(|ns| *ns != 0.0)?;
        Some(100.0 * self.change_error_ns? / before)
    }
}

impl Times {
    /// The mean, ns.
    pub fn mean_ns(&self) -> Option<f64> {
        let n = self.distribution.n;
        (n > 0).then(|| self.distribution.sum_ns as f64 / n as f64)
    }

    /// The standard deviation, ns.
    pub fn stddev_ns(&self) -> Option<f64> {
        Some(self.error_ns? / Z_95 * (self.distribution.n as f64).sqrt())
    }
}

/// Least, median and largest of the known round trips, recorded and predicted.
pub(super) fn round_trips(links: &[TcpConnection]) -> Option<[(i64, i64); 3]> {
    let mut known: Vec<_> =
        links.iter().filter(|link| link.is_known).map(|link| link.rtt_ns).collect();
    known.sort_unstable();
    let (first, last) = (known.first()?, known.last()?);
    Some([*first, *known.get(known.len() / 2)?, *last])
}

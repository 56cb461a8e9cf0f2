//! What a replay gives.

use smbscope_tables::slice::Kind;

use super::blocks::Learnt;
use super::cache_hits::Hits;
use super::detail::Detail;
use super::durability::{AtRisk, Stable};
use super::network::Link;
use super::opens::Opens;
use super::protection::Protected;
use crate::predict::Z_95;
use crate::stats::latency::Distribution;

/// What an operation's time is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    /// One round trip.
    Network = 0,
    /// Further round trips of TCP, and sending at the line's rate.
    Windows = 1,
    /// The server, as far as it is in no slice.
    Server = 2,
    /// What is left: the client, and sending the bytes.
    Rest = 3,
    /// A second server that must have it too.
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
    /// Time in which a client's operation was under way, all clients together.
    pub waiting_ns: (i64, i64),
    /// How much less connections would be busy, ns, in proportion to what their clients wait; of operations that
    /// take less ([`super::Spare`]).
    pub(crate) spared_busy_ns: f64,
    /// Executions of scenarios that begin more than a second late, of [`Prediction::all_scenarios`].
    pub late: (u64, u64),
    /// Least, median and largest round trip of the connections.
    pub rtt_ns: Option<[(i64, i64); 3]>,
    /// Operations with a time.
    pub timed: u64,
    /// Of them those of connections without a known round trip: the line's change is not in them.
    pub without_rtt: u64,
    /// Operations of load runs that do not count, because their scenario was not measured.
    pub left_out: u64,
    /// Reads, and writes, of which open, offset and bytes are known.
    pub moves: [u64; 2],
    /// Of them those that continue another, of which a depth says when they are sent.
    pub turned: u64,
    /// Connections that sessions have beside their first.
    pub further_channels: u64,
    /// Slices that the recording has, in the order of [`Kind::ALL`]: operations with each.
    pub slices: Vec<(&'static str, u64)>,
    /// Executions of scenarios that were not followed for their number.
    pub executions_left_out: u64,
    /// Executions that were, measured or not.
    pub executions: u64,
    /// Requests of these today.
    pub requests: u64,
    /// What another replay may need.
    pub lessons: Lessons,
    /// Of a change of caches: by scenario and command what is sent, today and then; the scenario is
    /// empty outside of any.
    pub sent: Vec<Sent>,
    /// What caches did.
    pub cached: Cached,
    /// Stable operations: Flushes, and writes that are write-through.
    pub stable: u64,
    /// Members of compounds that would be requests of their own, or requests that would be members.
    pub chained: u64,
    /// Operations that are signed or encrypted in another way.
    pub protected: Protected,
    /// What an asynchronous second server has not yet.
    pub at_risk: Option<AtRisk>,
    /// What operations are made of, where that was asked for.
    pub detail: Option<Detail>,
}

/// What a replay without changes has learnt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lessons {
    /// What reads and writes of other sizes would cost.
    pub sizes: [Learnt; 2],
    /// What opens are used for.
    pub opens: Opens,
    /// What making bytes stable costs.
    pub stable: Stable,
    /// Which reads were in the server's memory; none where they are of one kind.
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

/// What caches did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// Operations that they answered.
    pub answered: u64,
    /// Leases that a change by another client took away.
    pub breaks: u64,
    /// Creates with a path.
    pub creates: u64,
}

/// One group before and after.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Command or scenario.
    pub name: String,
    /// All of them, timed or not.
    pub count: u64,
    /// How many there would be.
    pub count_after: u64,
    /// Today.
    pub before: Times,
    /// With the changes.
    pub after: Times,
    /// Half of the 95 % interval of the mean change, ns: of the scatter of what each one changes.
    pub change_error_ns: Option<f64>,
    /// Mean of each part before and after, ns, of those that are not 0; of a scenario `between` is
    /// what lies between its operations.
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

/// How long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Number, mean, percentiles.
    pub distribution: Distribution,
    /// Half of the 95 % interval of the mean that their scatter allows, ns; none of a single one.
    pub error_ns: Option<f64>,
}

impl Prediction {
    /// Of one execution of a scenario: its requests, and how much longer its signing and encryption then take the
    /// server and the client, s. None without one that has any.
    pub fn of_execution(&self) -> Option<(f64, (f64, f64))> {
        let of = |sum: f64| sum / self.executions as f64;
        let (server_ns, client_ns) = self.protected.more_ns;
        (self.requests > 0 && self.executions > 0).then(|| {
            (of(self.requests as f64), (of(server_ns as f64) / 1e9, of(client_ns as f64) / 1e9))
        })
    }

    /// How long a scenario takes today, s: its response time, or all of its operations one after the other where
    /// that is longer. It waited for nothing longer than that. None without one.
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

/// Least, median and largest of the known round trips, today and then.
pub(super) fn round_trips(links: &[Link]) -> Option<[(i64, i64); 3]> {
    let mut known: Vec<_> =
        links.iter().filter(|link| link.is_known).map(|link| link.rtt_ns).collect();
    known.sort_unstable();
    let (first, last) = (known.first()?, known.last()?);
    Some([*first, *known.get(known.len() / 2)?, *last])
}

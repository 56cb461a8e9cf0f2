//! What a comparison gives: names, units and what null means. All times are in seconds.

use serde::Serialize;
use smbscope_tables::description::RunDescription;

use crate::stats::clusters::Unit;
use crate::stats::effect::Effect;

/// Two recordings side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The first.
    pub a: About,
    /// The second.
    pub b: About,
    /// What else is different between them, so that a difference may have another cause; the most severe first.
    pub warnings: Vec<Warning>,
    /// Whether both are load runs of the same users with the same schedule, so that users are paired.
    pub paired: bool,
    /// The total first, then groups, those with the most time first.
    pub rows: Vec<Row>,
}

/// One recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct About {
    /// Operations that count.
    pub operations: u64,
    /// Operations among these whose time is known and that do not wait by design.
    pub timed: u64,
    /// Operations of load runs that were not measured, and therefore do not count.
    pub left_out: u64,
    /// First request, nanoseconds since 1970.
    pub start_ns: Option<i64>,
    /// Last reply, nanoseconds since 1970.
    pub end_ns: Option<i64>,
    /// TCP connections.
    pub connections: u64,
    /// Simulated users with a scenario that counts.
    pub users: Option<u64>,
    /// Where it was taken: client, server, between, inside ...
    pub vantages: Vec<String>,
    /// Dialects, those with most operations first.
    pub dialects: Vec<String>,
    /// Share of the operations that were signed, 0 to 1.
    pub signed: f64,
    /// Share of the operations that were encrypted, 0 to 1.
    pub encrypted: f64,
    /// Descriptions of load runs.
    pub runs: Vec<RunDescription>,
    /// Whether a run is still in progress, or ended before it was complete.
    pub incomplete: bool,
    /// Executions of scenarios beyond the limit; their operations do not count.
    pub executions_forgotten: u64,
    /// Operations of groups beyond the limit on their number; they are combined.
    pub operations_of_others: u64,
}

impl About {
    /// From the first request to the last reply.
    pub fn seconds(&self) -> Option<f64> {
        let ns = self.end_ns?.checked_sub(self.start_ns?)?;
        (ns > 0).then_some(ns as f64 / 1e9)
    }
}

/// One difference between the recordings that is not the one to measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Warning {
    /// The kind.
    pub kind: WarningKind,
    /// What A has.
    pub a: String,
    /// What B has.
    pub b: String,
}

/// In what way recordings are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Where they were taken: elapsed times differ by the network between.
    Vantage,
    /// One is a load run, the other not.
    LoadRun,
    /// The workload.
    Workload,
    /// The size of the file set.
    Scale,
    /// The number of users.
    Users,
    /// The seed of files and random choices.
    Seed,
    /// The pacing of users.
    Pacing,
    /// The dialect.
    Dialect,
    /// Signing, as a share of the operations or by its algorithm.
    Signing,
    /// Encryption.
    Encryption,
    /// How often each command occurs: the total differs by that alone.
    Mix,
    /// A run is still in progress, or ended early.
    Incomplete,
    /// A load generator was the limit.
    LimitedByClient,
    /// There were more executions of scenarios than the limit.
    Forgotten,
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// All operations.
    Total,
    /// All operations of commands that both have, weighted as in A.
    TotalAtMixOfA,
    /// Operations of a command.
    Command,
    /// Operations on a share.
    Share,
    /// Operations of a client.
    Client,
    /// Operations of a user.
    User,
    /// Response times of all scenarios.
    Scenarios,
    /// Response times of a scenario: from when it was scheduled to its end.
    Scenario,
}

impl RowKind {
    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RowKind::Total => "total",
            RowKind::TotalAtMixOfA => "total-at-mix-of-a",
            RowKind::Command => "command",
            RowKind::Share => "share",
            RowKind::Client => "client",
            RowKind::User => "user",
            RowKind::Scenarios => "scenarios",
            RowKind::Scenario => "scenario",
        }
    }
}

/// One group in both recordings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub kind: RowKind,
    /// The group's name; none for operations without that property.
    pub name: Option<String>,
    /// In A.
    pub a: Measured,
    /// In B.
    pub b: Measured,
    /// From A to B; none if one of them has no mean above zero.
    pub change: Option<Change>,
}

/// One group in one recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Operations, or executions of a scenario.
    pub operations: u64,
    /// Operations or executions among these that have a time.
    pub timed: u64,
    /// Arithmetic mean.
    pub mean_s: Option<f64>,
    /// Median.
    pub p50_s: Option<f64>,
    /// 95th percentile.
    pub p95_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// Mean of the server's time, over operations for which it is known.
    pub server_mean_s: Option<f64>,
    /// Bytes of file data read and written.
    pub bytes_per_operation: Option<f64>,
    /// Share that ended with an error, 0 to 1; for scenarios, that failed or never began.
    pub errors_per_operation: Option<f64>,
    /// Over the time from the recording's first request to its last reply.
    pub operations_per_second: Option<f64>,
    /// The unit that was assumed to be independent.
    pub unit: Option<Unit>,
    /// The number of these units.
    pub clusters: Option<u64>,
}

/// From A to B.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// B's mean over A's, minus one.
    pub percent: f64,
    /// Lower end of the 95 % interval; null if there are too few clusters.
    pub low_percent: Option<f64>,
    /// Upper end.
    pub high_percent: Option<f64>,
    /// Probability that an operation of B takes longer than one of A, minus the reverse.
    pub cliffs_delta: Option<f64>,
    /// Its label.
    pub effect: Option<Effect>,
    /// Probability of a difference at least this large if there were none; null if there are
    /// too few clusters.
    pub p: Option<f64>,
    /// The same, corrected for the number of groups (Holm); rows of totals are not.
    pub p_holm: Option<f64>,
    /// Whether that is under 0.05.
    pub significant: bool,
    /// Degrees of freedom of the t that gave interval and p.
    pub degrees_of_freedom: Option<f64>,
}

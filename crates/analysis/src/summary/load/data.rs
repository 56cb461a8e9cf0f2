//! What a summary says of load runs, as plain data: the part `load` of the report's JSON. Titles
//! and explanations of all fields are in the `report` crate's catalogue.

#![allow(missing_docs)]

use serde::Serialize;
use smbscope_tables::description::RunDescription;

use crate::summary::data::{Distribution, Statuses};

/// Everything that a report shows of load runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// One for each machine's part of a run.
    pub runs: Vec<RunPart>,
    pub warnings: Vec<Warning>,
    /// One for each whole run that looked for its capacity.
    pub answers: Vec<Answer>,
    /// Steps, those of machines that share a run joined, by run and number.
    pub steps: Vec<StepRow>,
    /// Steps that `scenarios` is about, as numbers of their runs.
    pub scenario_steps: Vec<StepName>,
    /// Scenarios of those steps, of the measured window.
    pub scenarios: Vec<ScenarioRow>,
    /// The same for every step.
    pub scenarios_by_step: Vec<ScenarioRow>,
    /// Scenarios whose step and name came after the limit was reached.
    pub scenarios_others: u64,
    pub phases: Vec<PhaseRow>,
    pub failures: Vec<Failure>,
    /// Failed scenarios whose status and name came after the limit was reached.
    pub failures_others: u64,
    pub window: Window,
    /// Bins of the report's `series`.
    pub bins: Vec<LoadBin>,
    pub counters: Vec<CounterRow>,
    /// Samples of counters that came after the limit was reached.
    pub counters_others: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunPart {
    #[serde(flatten)]
    pub description: RunDescription,
    /// Whether the folder says that it is complete.
    pub complete: bool,
    pub scenarios: u64,
}

/// What makes the numbers of several folders, or of one, doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// The same rows twice: a folder was given twice, or two runs have one name.
    SameRecording,
    /// Two folders are the same part of one run.
    SameShard,
    /// Parts of a run that no folder holds.
    MissingShard,
    /// Two parts simulate the same users.
    SameUsers,
    /// Runs that have no part in common: their numbers are mixed.
    OtherRun,
    /// Parts ran other workloads.
    OtherWorkload,
    /// Parts drew from other seeds.
    OtherSeed,
    /// Parts ran at other scales.
    OtherScale,
    /// Parts ran against other shares.
    OtherTarget,
    /// Parts ran with other settings: dialect, signing, encryption, pacing ...
    OtherSettings,
    /// A step began at other times.
    StartsDiffer,
    /// The clocks of two machines differ.
    ClocksDiffer,
    /// Nothing is known of how the clocks of several machines differ.
    ClocksUnknown,
    /// A machine has no such step.
    StepMissing,
    /// Parts of one run found different capacities.
    AnswersDiffer,
    /// The server stopped answering.
    ServerGone,
    /// The generator was the limit.
    LimitedByClient,
    /// The run was not finished.
    Incomplete,
    /// Rows of a run that no manifest describes.
    NotDescribed,
    /// Counters that could not be read.
    CountersMissed,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Warning {
    pub kind: WarningKind,
    pub recordings: Vec<String>,
    /// What differs or is missing, one for each recording where there are as many.
    pub values: Vec<String>,
    pub step: Option<u64>,
    pub difference_ns: Option<i64>,
    pub error_ns: Option<i64>,
}

/// How many users the server carries.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    pub run: String,
    pub users: Option<u64>,
    pub low: Option<u64>,
    pub high: Option<u64>,
    pub confidence: Option<f64>,
    pub reason: String,
    /// Percentiles of the response times of all scenarios with that many users.
    pub p50_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    /// Overall response time of operations, as SPECstorage defines it.
    pub overall_response_ns: Option<i64>,
    /// Read from the steps, because the run itself gives no answer or its parts give several.
    pub derived: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepName {
    pub run: String,
    pub step: u64,
    pub users: u64,
}

/// The resource that limits a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// The load generator itself.
    LoadGenerator,
    /// All CPUs of the server.
    Processors,
    /// All CPUs of the server, mostly used by other processes than those that serve.
    OtherProcesses,
    /// One disk of the server.
    Disk,
    /// One CPU of the server, while others are idle.
    OneProcessor,
    /// The step was overloaded, but neither CPUs nor disks of the server were busy.
    None,
}

impl Bottleneck {
    /// All bottlenecks.
    pub const ALL: [Bottleneck; 6] = [
        Bottleneck::LoadGenerator,
        Bottleneck::Processors,
        Bottleneck::OtherProcesses,
        Bottleneck::Disk,
        Bottleneck::OneProcessor,
        Bottleneck::None,
    ];
}

/// One step of a run, all machines together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepRow {
    pub run: String,
    pub step: u64,
    pub users: u64,
    /// Users of the machines whose folders were read.
    pub users_here: u64,
    pub parts: u64,
    /// The window that all machines measured.
    pub start_ns: i64,
    pub end_ns: i64,
    pub duration_ns: i64,
    pub rate: f64,
    pub scheduled: u64,
    pub started: u64,
    pub on_time: u64,
    pub completed: u64,
    pub throughput: f64,
    pub failed: u64,
    pub failed_share: f64,
    pub users_overloaded: u64,
    pub overload_share: f64,
    pub overloaded: bool,
    pub response: Distribution,
    pub late: Distribution,
    pub operations_per_second: Option<f64>,
    pub bytes_per_second: Option<f64>,
    pub operation_mean_ns: Option<i64>,
    /// How long replies waited in the load generators before they were read: mean, and the highest 99th percentile.
    pub reply_wait_mean_ns: Option<i64>,
    pub reply_wait_p99_ns: Option<i64>,
    /// Busy share of all CPUs of the server, and of its busiest disk.
    pub server_cpu_share: Option<f64>,
    pub server_disk_share: Option<f64>,
    /// Programs other than the server that used its CPUs, those that used most first.
    pub server_cpu_others: Vec<String>,
    pub bottleneck: Option<Bottleneck>,
    /// Which disk or CPU it is, or which other programs.
    pub bottleneck_instance: Option<String>,
    pub server_gone: bool,
    pub client_cpu_share: Option<f64>,
    pub client_late_ns: Option<i64>,
    pub limited_by_client: bool,
    pub ended_early: bool,
}

/// One scenario, of the measured window of one step or of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScenarioRow {
    pub run: Option<String>,
    pub step: Option<u64>,
    pub users: Option<u64>,
    pub scenario: String,
    pub scheduled: u64,
    pub done: u64,
    pub failed: u64,
    pub not_started: u64,
    /// Operations, and those that the client's cache saved, of one execution on average.
    pub operations_mean: f64,
    pub saved_mean: f64,
    pub response: Distribution,
    pub late: Distribution,
}

/// Scenarios and operations of one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhaseRow {
    pub phase: String,
    pub scenarios: u64,
    pub done: u64,
    pub failed: u64,
    pub not_started: u64,
    pub operations: u64,
    pub errors: u64,
    /// Whether the report's operations are these.
    pub counted: bool,
}

/// Scenarios that failed, by scenario and status.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Failure {
    pub status: String,
    pub scenario: String,
    pub count: u64,
    pub measured: u64,
    pub users_min: Option<u64>,
    pub users_max: Option<u64>,
    pub first_ns: i64,
}

/// Which operations all sections but those over the whole recording count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Whether only operations of measured scenarios count.
    pub measured: bool,
    /// Only this step's.
    pub step: Option<u64>,
    pub operations: u64,
    pub left_out: u64,
    pub left_out_errors: u64,
    /// Replies of operations that do not count.
    pub statuses: Statuses,
}

/// Scenarios of one bin of the report's series.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadBin {
    pub start_ns: i64,
    /// Users of the step whose window the bin's middle is in.
    pub users: Option<u64>,
    pub scheduled: u64,
    pub completed: u64,
    pub failed: u64,
    /// Response times of scenarios scheduled in the bin.
    pub response: Distribution,
    pub late_max_ns: Option<i64>,
}

/// One counter of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CounterRow {
    pub recording: String,
    pub source: String,
    pub name: String,
    pub instance: Option<String>,
    pub unit: String,
    pub n: u64,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    /// Number of samples in measured windows.
    pub measured_n: u64,
    pub measured_mean: Option<f64>,
    /// Means of the bins of the report's series; null without a sample.
    pub values: Vec<Option<f64>>,
}

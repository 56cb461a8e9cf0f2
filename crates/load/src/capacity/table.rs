//! The steps of a run as data: FSCT's table of a capacity search, with response times.
//!
//! Owns the values and their JSON (`serde`). The columns are those of FSCT's report (users, overload,
//! throughput, errors, errors %, duration), then operations and response times. It does not own their
//! text (`smbscope_report`).

use serde::{Deserialize, Serialize};

use smbscope_wire::smb2::Command;

use crate::stats::{Summary, Tally};

use super::answer::Answer;
use super::limit::Exceeded;

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Number of the step.
    pub step: u64,
    /// Users.
    pub users: u64,
    /// Overload, in percent.
    pub overload_percent: f64,
    /// Whether that is overload.
    pub overloaded: bool,
    /// Scenarios that ended in the window without failing, per second.
    pub scenarios_per_second: f64,
    /// Scenarios that the schedule asked for, per second.
    pub scheduled_per_second: f64,
    /// Scenarios that failed.
    pub errors: u64,
    /// The same in percent of those that ended.
    pub errors_percent: f64,
    /// Length of the measured window, in nanoseconds.
    pub duration_ns: i64,
    /// Whether the window was cut short because the answer was certain.
    pub ended_early: bool,
    /// Operations that ended in the window, per second.
    pub operations_per_second: f64,
    /// File data that they read and wrote, per second.
    pub bytes_per_second: f64,
    /// The limits on response times that the step did not keep.
    pub exceeded: Vec<Exceeded>,
    /// Whether the server stopped answering.
    pub server_gone: bool,
    /// Whether the generator was the limit.
    pub limited_by_client: bool,
    /// How that is known, and what to do about it.
    pub limited_reason: Option<String>,
    /// Response times of all scenarios; none when none ended well.
    pub response: Option<Summary>,
    /// Response times of each scenario that ended well.
    pub scenarios: Vec<ScenarioRow>,
    /// Latencies of each SMB command.
    pub commands: Vec<CommandRow>,
    /// Failed scenarios by why they failed, most frequent first.
    pub failures: Vec<(String, u64)>,
}

/// Response times of one scenario in a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRow {
    /// Its name in the workload.
    pub scenario: String,
    /// Response times.
    pub response: Summary,
}

/// Latencies of one SMB command in a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRow {
    /// Its name.
    pub command: String,
    /// From the first byte of the request to the last of the reply.
    pub latency: Summary,
}

impl Row {
    /// Fills in the results of a step's window from its tally: throughput, errors, response times.
    /// `names` are the workload's scenarios in its order.
    pub fn with_tally(mut self, tally: &Tally, names: &[&str]) -> Row {
        let seconds = self.duration_ns as f64 / 1e9;
        let (ended, failed) = (tally.ended(), tally.failed());
        self.scenarios_per_second =
            if seconds > 0.0 { (ended - failed) as f64 / seconds } else { 0.0 };
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        self.operations_per_second = per_second(tally.operations());
        self.bytes_per_second = per_second(tally.bytes());
        self.commands = tally
            .commands()
            .filter_map(|(command, tally)| {
                let command = Command(command).name()?.to_owned();
                Some(CommandRow { command, latency: tally.latency.summary()? })
            })
            .collect();
        self.errors = failed;
        self.errors_percent = if ended > 0 { 100.0 * failed as f64 / ended as f64 } else { 0.0 };
        self.response = tally.response().summary();
        self.scenarios = tally
            .scenarios()
            .iter()
            .zip(names)
            .filter_map(|(tally, name)| {
                let response = tally.response.summary()?;
                Some(ScenarioRow { scenario: (*name).to_owned(), response })
            })
            .collect();
        let failures = &tally.scenario_failures;
        self.failures =
            failures.ranked().into_iter().map(|(failure, n)| (failure.name(), n)).collect();
        if failures.other() > 0 {
            self.failures.push(("others".to_owned(), failures.other()));
        }
        self
    }
}

/// A search in rows, with its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The steps, in the order in which they were run.
    pub rows: Vec<Row>,
    /// The answer; `None` while the search continues.
    pub answer: Option<Answer>,
}

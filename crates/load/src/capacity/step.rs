//! The steps of a capacity search: the request, the run, and its result.

use serde::{Deserialize, Serialize};

use super::overload::Assessment;
use super::table::Row;

/// What is searched and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Users of the first step.
    pub start: u64,
    /// Fewest users to try.
    pub least: u64,
    /// Most users to try.
    pub most: u64,
    /// Bisection ends when the gap is at most this share of the lower side, in percent.
    pub resolution_percent: f64,
    /// Runs of each side of the edge, of which the majority decides; 1: none is repeated.
    pub repeats: u32,
    /// Length of the measured window, in nanoseconds.
    pub duration_ns: i64,
    /// A step with a larger share of failed scenarios counts as overloaded, in percent.
    pub errors_limit_percent: f64,
}

impl Settings {
    /// Five percent, two runs out of three, one percent of errors.
    pub fn new(start: u64, most: u64, duration_ns: i64) -> Settings {
        Settings {
            start,
            least: 1,
            most,
            resolution_percent: 5.0,
            repeats: 3,
            duration_ns,
            errors_limit_percent: 1.0,
        }
    }

    /// With what contradicts itself put right.
    pub(super) fn sound(mut self) -> Settings {
        self.least = self.least.max(1);
        self.most = self.most.max(self.least);
        self.start = self.start.clamp(self.least, self.most);
        self.repeats = self.repeats.max(1);
        // Also NaN.
        self.resolution_percent = self.resolution_percent.max(0.0);
        self
    }
}

/// Why a step is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To find a number of users that is too much.
    Double,
    /// To find one that is not.
    Halve,
    /// To narrow the gap.
    Bisect,
    /// To be sure of one side of the edge.
    Confirm,
}

/// A step to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub step: u64,
    /// Its users.
    pub users: u64,
    /// Which run with that many users it is, from 1.
    pub repeat: u32,
    /// Why.
    pub purpose: Purpose,
    /// Length of its measured window, in nanoseconds.
    pub duration_ns: i64,
    /// Whether it may end early because it is certainly not overloaded (that it is overloaded may
    /// always end it): not near the answer, where what builds up slowly must have its time.
    pub may_end_early: bool,
}

/// What a step showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The step.
    pub step: Step,
    /// Its overload.
    pub judgement: Assessment,
    /// Scenarios that ended in the window, failed ones included.
    pub ended: u64,
    /// Ended scenarios that failed.
    pub failed: u64,
    /// Whether the generator was the limit.
    pub limited_by_client: bool,
    /// Since when the server did not answer, ns since 1970; none while it answers. After it no step makes
    /// sense any more.
    pub gone_since: Option<i64>,
    /// Whether it ended before its time.
    pub ended_early: bool,
    /// Its line of the table, with the limits on response times that it did not keep.
    pub row: Row,
}

impl StepResult {
    /// The result of a step of which only the verdict is known.
    pub fn judged(step: Step, overloaded: bool) -> StepResult {
        StepResult {
            step,
            judgement: Assessment { overloaded, ..Assessment::default() },
            ended: 0,
            failed: 0,
            limited_by_client: false,
            gone_since: None,
            ended_early: false,
            row: Row::default(),
        }
    }

    /// Whether the server stopped answering.
    pub fn server_gone(&self) -> bool {
        self.gone_since.is_some()
    }

    /// Failed scenarios, in percent of those that ended.
    pub fn errors_percent(&self) -> f64 {
        if self.ended == 0 { 0.0 } else { 100.0 * self.failed as f64 / self.ended as f64 }
    }
}

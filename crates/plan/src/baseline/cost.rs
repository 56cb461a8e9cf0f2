//! What a change of settings costs on a recording: the questions for `smbscope predict`, and what their answers mean.
//!
//! Owns which change of `predict` a setting is ([`questions`]), the numbers with their intervals ([`predicted`]), and the
//! experiment where nothing can be predicted ([`reasons`]). The replay itself is `smbscope_analysis::predict`: a dependency
//! on it would make the tests of the other planners link Arrow, so the caller asks the [`Question`]s and hands back
//! [`Numbers`].

use serde::{Deserialize, Serialize};

use super::terms::SettingKey;

pub mod predicted;
pub mod questions;
pub mod reasons;

#[cfg(test)]
pub(crate) mod tests;

use predicted::Predicted;

/// What must be known of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Operations with a reply.
    pub operations: u64,
    /// How many of these were signed, and encrypted.
    pub signed: u64,
    pub encrypted: u64,
    /// Of most operations: the dialect, the algorithm that signs or would sign, the cipher (names of `predict`).
    pub dialect: Option<u16>,
    pub signing_algorithm: Option<String>,
    pub cipher: Option<String>,
    /// Shares as UNC paths.
    pub shares: Vec<ShareFacts>,
    /// Sessions that were set up with NTLM, and the median round trip.
    pub ntlm_logons: Option<u64>,
    pub rtt_ns: Option<i64>,
    /// Most credits in use on a connection, or requests in flight where credits are not known.
    pub outstanding_most: Option<u64>,
    /// Largest read and write.
    pub read_most_bytes: Option<u64>,
    pub write_most_bytes: Option<u64>,
    /// Whether sessions used several connections.
    pub has_channels: bool,
}

impl Facts {
    /// Bytes that the operations of a question read and wrote.
    pub fn moved_bytes(&self, question: &Question) -> u64 {
        let is_of = |share: &&ShareFacts| {
            question.shares.is_empty() || question.shares.contains(&share.unc)
        };
        self.shares.iter().filter(is_of).map(|share| share.moved_bytes).sum()
    }
}

/// A share of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareFacts {
    /// `\\server\share`.
    pub unc: String,
    pub operations: u64,
    /// Read and written.
    pub moved_bytes: u64,
}

/// A prediction that is needed: `smbscope predict RUN --change CHANGE`, of these shares only if any are given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Question {
    /// As on the command line: `signing=hmac-sha256`.
    pub changes: Vec<String>,
    /// UNC paths; empty for all operations.
    pub shares: Vec<String>,
}

/// The answer to a question: numbers, or why it cannot be predicted.
pub type Answer = Result<Numbers, String>;

/// What a prediction yields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    pub commands: Vec<CommandNumbers>,
    /// All scenarios of a load run together: their response times, with the client's work; none of other recordings.
    pub scenarios: Option<CommandNumbers>,
    /// Bytes that the operations read and wrote.
    pub moved_bytes: u64,
    /// Additional CPU time of the server for all operations, ns; none where the prediction has none.
    pub server_cpu_ns: Option<f64>,
    /// Users that the server carries, each with half of its 95 % interval.
    pub users_before: Option<(f64, f64)>,
    pub users_after: Option<(f64, f64)>,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

/// Operations of one command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandNumbers {
    pub name: String,
    pub n: u64,
    /// Mean time, ns.
    pub before_ns: f64,
    pub after_ns: f64,
    /// Half of the 95 % interval of the mean change, ns.
    pub change_error_ns: Option<f64>,
}

/// What settings cost together, because together they are one change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub settings: Vec<SettingKey>,
    /// What changes, in words.
    pub what: String,
    pub outcome: CostOutcome,
}

/// What is known of a cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostOutcome {
    /// Boxed: it is large.
    Predicted(Box<Predicted>),
    /// Nothing, and why.
    Nothing { because: String },
    /// Not predicted: why, and how to measure it.
    Unknown { because: String, experiment: String },
}

impl Cost {
    /// The time that is added to all recorded operations, ns.
    pub fn added_ns(&self) -> Option<f64> {
        match &self.outcome {
            CostOutcome::Predicted(predicted) => Some(predicted.added_ns.value),
            CostOutcome::Nothing { .. } => Some(0.0),
            CostOutcome::Unknown { .. } => None,
        }
    }

    /// Whether it is predicted to cost time, beyond what may be chance.
    pub fn costs(&self) -> bool {
        matches!(&self.outcome, CostOutcome::Predicted(one) if one.added_ns.low > 0.0)
    }

    /// For the order: predicted costs first, the largest first, then what is not known, then nothing.
    fn rank(&self) -> (u8, f64) {
        match &self.outcome {
            CostOutcome::Predicted(one) if one.added_ns.value > 0.0 => (0, -one.added_ns.value),
            CostOutcome::Unknown { .. } => (1, 0.0),
            CostOutcome::Predicted(one) => (2, -one.added_ns.value),
            CostOutcome::Nothing { .. } => (3, 0.0),
        }
    }
}

/// Sorts costs: the largest predicted one first, then those that are not known.
pub fn rank(costs: &mut [Cost]) {
    costs.sort_by(|one, other| {
        let ((one, more), (other, less)) = (one.rank(), other.rank());
        one.cmp(&other).then(more.total_cmp(&less))
    });
}

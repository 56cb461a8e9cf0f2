//! The state of a recording in absolute terms, before any cause: the first words that a reader sees.

use serde::Serialize;
use smbscope_findings::Confidence;

use super::account::{Account, NOTICED_NS, Row};
use super::data::{Finding, Whole, is_reported};
use super::worth::noticed_ns;

/// How users fare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No client waits for long.
    Healthy,
    /// The recording does not decide it.
    #[default]
    Unknown,
    /// People notice that they wait.
    Slow,
    /// Requests hang, are refused or fail, or data are at risk.
    Broken,
}

impl State {
    /// All states.
    pub const ALL: [State; 4] = [State::Healthy, State::Unknown, State::Slow, State::Broken];

    /// The words with which a verdict begins.
    pub const fn words(self) -> &'static str {
        match self {
            State::Healthy => "Healthy",
            State::Unknown => "Cannot tell",
            State::Slow => "Slow for users",
            State::Broken => "Broken",
        }
    }
}

/// What a finding means for the people who use the share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// What it costs decides: see [`NOTICED_NS`].
    #[default]
    Time,
    /// Something hangs, fails, or is at risk.
    Broken,
}

/// If more of the opens, reads, writes, changes and logons fail, users cannot work, whatever the statuses are.
const FAILED_SHARE: f64 = 0.3;

/// A delay of this length is felt, ns, and a sum of them of this length is noticed, ns (J. Nielsen, Usability Engineering,
/// 1993: 0.1 s is at once, one second interrupts, ten seconds end attention).
const FELT_NS: i64 = 400_000_000;
const REPEATED_NS: i64 = 10_000_000_000;

/// Fewest of them: a few operations may be chance.
const FAILED_MIN: u64 = 5;

/// What is known of a recording in addition to its findings.
pub(super) struct Known<'a> {
    pub(super) whole: &'a Whole,
    pub(super) account: &'a Account,
    /// The row of waits in which the server needed longest.
    pub(super) slowest: Option<&'a Row>,
    /// From which time in a row on users notice that they wait, ns.
    pub(super) noticed_ns: i64,
    /// Connections, and those of which one direction was recorded only.
    pub(super) connections: u64,
    pub(super) one_direction: u64,
}

/// Whether users notice what a finding costs, if they notice waits of `from_ns` in a row.
pub(super) fn is_noticed(finding: &Finding, from_ns: i64) -> bool {
    let scale = from_ns as f64 / NOTICED_NS as f64;
    let least_ns = noticed_ns(finding.kind) as f64 * scale;
    // Delays that a person feels, again and again.
    let operations = finding.details.operations.max(1) as f64;
    let saved_ns = finding.saved_ns() as f64;
    let is_repeated =
        saved_ns / operations >= FELT_NS as f64 * scale && saved_ns >= REPEATED_NS as f64 * scale;
    is_reported(finding)
        && (finding.details.effect == Effect::Broken
            || finding.details.burst_ns as f64 >= least_ns
            || is_repeated)
}

/// The state that findings and the account show together.
pub(super) fn state(findings: &[Finding], known: &Known) -> State {
    let noticed = || findings.iter().filter(|found| found.details.is_noticed);
    if noticed().any(|found| found.details.effect == Effect::Broken) {
        return State::Broken;
    }
    let is_unseen = known.one_direction > 0 && known.one_direction * 2 > known.connections;
    if known.whole.timed == 0 || is_unseen {
        return State::Unknown;
    }
    let is_slow = noticed().any(|found| found.confidence > Some(Confidence::Possible))
        || known.slowest.is_some_and(|row| row.server_ns >= known.noticed_ns);
    let account = known.account;
    if account.failed >= FAILED_MIN
        && account.failed as f64 > FAILED_SHARE * account.requests as f64
    {
        return State::Broken;
    }
    if is_slow { State::Slow } else { State::Healthy }
}

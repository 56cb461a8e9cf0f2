//! `--fail-on`: the exit code says what was found.

use clap::ValueEnum;
use smbscope_analysis::explain::{Diagnosis, State, is_reported};
use smbscope_findings::{Confidence, Finding, Kind};

use crate::exit::{Code, Failure};

/// What makes a command exit with code 7: a finding of a confidence, or a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A finding: there may be another cause.
    #[value(alias = "low")]
    Possible,
    /// A finding: the figures agree, but some of them are estimates.
    #[value(alias = "medium")]
    Likely,
    /// A finding: the cause was measured.
    #[value(alias = "high")]
    Measured,
    /// Users notice that they wait, or it is broken.
    Slow,
    /// Requests hang, are refused or fail, or data are at risk.
    Broken,
    /// The recording does not decide it, or it is slow or broken.
    Unknown,
}

impl FailOn {
    /// Fails if one of these findings is as sure as required.
    pub fn findings<'a, K: Kind, D: 'a>(
        self,
        findings: impl IntoIterator<Item = &'a Finding<K, D>>,
    ) -> anyhow::Result<()> {
        let least = match self {
            FailOn::Possible => Confidence::Possible,
            FailOn::Likely => Confidence::Likely,
            FailOn::Measured => Confidence::Measured,
            FailOn::Slow | FailOn::Broken | FailOn::Unknown => return Ok(()),
        };
        let found = findings.into_iter().find(|found| found.confidence >= Some(least));
        found.map_or(Ok(()), |found| Err(failure(found.kind.title())))
    }

    /// Fails if a diagnosis has such a finding or state.
    pub fn diagnosis(self, diagnosis: &Diagnosis) -> anyhow::Result<()> {
        let least = match self {
            FailOn::Unknown => State::Unknown,
            FailOn::Slow => State::Slow,
            FailOn::Broken => State::Broken,
            _ => {
                let reported = diagnosis.findings.iter().filter(|found| is_reported(found));
                return self.findings(reported);
            }
        };
        if diagnosis.state >= least { Err(failure(diagnosis.state.words())) } else { Ok(()) }
    }
}

fn failure(what: &str) -> anyhow::Error {
    Failure::new(Code::Found, format!("found: {what}")).into()
}

//! `--fail-on` and `--noticed`: which state decides the exit code, and from which time on users wait.

use std::str::FromStr;

use clap::ValueEnum;
use smbscope_analysis::explain::{Diagnosis, State, is_reported};
use smbscope_findings::{Confidence, Finding, Kind};
use smbscope_tables::quantity::parse_duration;

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

/// The value of `--noticed`, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noticed(pub i64);

impl FromStr for Noticed {
    type Err = String;

    fn from_str(text: &str) -> Result<Noticed, String> {
        let ns = parse_duration(text).map_err(|error| error.to_string())?;
        let ns = i64::try_from(ns).ok().filter(|ns| *ns > 0);
        ns.map(Noticed)
            .ok_or_else(|| format!("{text}: expected a duration above zero, such as 1s or 300ms"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_users_notice_is_above_zero() {
        assert_eq!("300ms".parse(), Ok(Noticed(300_000_000)));
        for wrong in ["0s", "-1s", "soon"] {
            assert!(wrong.parse::<Noticed>().is_err(), "{wrong}");
        }
    }
}

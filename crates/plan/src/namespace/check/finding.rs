//! A finding with its evidence, and findings while they are collected.

use std::collections::BTreeMap;

use serde::Serialize;

use super::trouble::{Severity, Trouble};

/// Evidence of one finding that is kept; the rest is counted.
const EVIDENCE_MAX: usize = 100;

/// One place where something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Path of the link below the root; none for the root.
    pub link: Option<String>,
    /// `\\server\share`.
    pub target: Option<String>,
    /// `FILE:LINE`.
    pub place: Option<String>,
    pub detail: String,
    /// The command that repairs this one.
    pub repair: Option<String>,
}

/// One kind of trouble with all places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub trouble: Trouble,
    pub severity: Severity,
    pub sentence: String,
    /// How many places there are.
    pub count: u64,
    /// The first 100.
    pub evidence: Vec<Evidence>,
    /// What to do in general.
    pub repair: String,
}

#[derive(Default)]
pub(super) struct Findings(BTreeMap<Trouble, (Severity, u64, Vec<Evidence>)>);

impl Findings {
    /// Adds a place with the usual severity. The evidence is made only if it is kept.
    pub(super) fn add(&mut self, trouble: Trouble, evidence: impl FnOnce() -> Evidence) {
        self.add_as(trouble, trouble.severity(), evidence);
    }

    /// Adds a place whose severity depends on more than the trouble; the highest counts.
    pub(super) fn add_as(
        &mut self,
        trouble: Trouble,
        severity: Severity,
        evidence: impl FnOnce() -> Evidence,
    ) {
        let (most, count, all) = self.0.entry(trouble).or_insert((severity, 0, Vec::new()));
        *most = severity.min(*most);
        *count += 1;
        if all.len() < EVIDENCE_MAX {
            all.push(evidence());
        }
    }

    /// All findings, the most severe first.
    pub(super) fn finish(self) -> Vec<Finding> {
        let mut all: Vec<Finding> = self
            .0
            .into_iter()
            .map(|(trouble, (severity, count, evidence))| Finding {
                trouble,
                severity,
                sentence: trouble.sentence(count),
                count,
                evidence,
                repair: trouble.repair().to_owned(),
            })
            .collect();
        all.sort_by_key(|finding| finding.severity);
        all
    }
}

//! What is wrong with the CPUs, with evidence and remedies.

use smbscope_analysis::processors::{Finding, Report};

use super::cpu_list;
use crate::answers::diagnosis;
use crate::document::{Block, FindingCard, Section};
use crate::value::format;

pub(super) fn section(report: &Report) -> Section {
    let causes = report.findings.iter().enumerate();
    Section {
        id: "findings",
        title: "What holds the CPUs",
        help: "Causes with their evidence, the most costly first. They can overlap.",
        blocks: causes
            .map(|(place, found)| Block::Finding(cause(found, report, place == 0)))
            .collect(),
    }
}

/// When a finding began and ended; `None` if it was there all the time, or is not known.
pub(super) fn when(found: &Finding, report: &Report) -> Option<String> {
    let start = report.start_ns?;
    let after = |time: i64| format::duration(time.saturating_sub(start));
    match (found.first_ns, found.last_ns) {
        (None, None) => None,
        (Some(since), None) => Some(format!("since {} after the start", after(since))),
        (None, Some(until)) => Some(format!("until {} after the start", after(until))),
        (Some(since), Some(until)) => {
            Some(format!("from {} to {} after the start", after(since), after(until)))
        }
    }
}

/// A finding in words.
pub(super) fn cause(found: &Finding, report: &Report, is_open: bool) -> FindingCard {
    let cpus = match found.details.cpus.as_slice() {
        [] => Vec::new(),
        cpus => vec![cpu_list(cpus)],
    };
    let cost = found.cost_ns().map(|cost| format!("{} of CPU time", format::duration(cost)));
    let when = when(found, report).into_iter().collect();
    let before = vec![("CPUs", cpus), ("When", when)];
    diagnosis::cause(found, &cost.unwrap_or_default(), before, Vec::new(), is_open)
}

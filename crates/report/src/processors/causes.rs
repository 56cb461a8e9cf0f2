//! What is wrong with the processors, with evidence and remedies.

use smbscope_analysis::processors::{Finding, Report};

use super::cpu_list;
use crate::document::{Block, Cause, Section};
use crate::format;
use crate::pages::findings::figure;

pub(super) fn section(report: &Report) -> Section {
    let causes = report.findings.iter().enumerate();
    Section {
        id: "findings",
        title: "What holds the processors",
        help: "Causes with their evidence, the most costly first. They can overlap.",
        blocks: causes
            .map(|(place, found)| Block::Cause(cause(found, report, place == 0)))
            .collect(),
    }
}

/// A finding in words.
pub(super) fn cause(found: &Finding, report: &Report, is_open: bool) -> Cause {
    let since = found.since_ns.zip(report.start_ns).map(|(since, start)| {
        format!("since {} after the start", format::duration(since.saturating_sub(start)))
    });
    let cpus = match found.cpus.as_slice() {
        [] => Vec::new(),
        cpus => vec![cpu_list(cpus)],
    };
    let remedies = found.remedies.iter().map(|one| format!("{}: {}", one.at, one.action));
    let confidence = match found.confidence {
        smbscope_analysis::explain::Confidence::Low => "low",
        smbscope_analysis::explain::Confidence::Medium => "medium",
        smbscope_analysis::explain::Confidence::High => "high",
    };
    Cause {
        title: found.trouble.title(),
        cost: found
            .cost_ns
            .map_or_else(String::new, |cost| format!("{} of CPU time", format::duration(cost))),
        what: found.what.clone(),
        rows: vec![
            ("CPUs", cpus),
            ("When", since.into_iter().collect()),
            ("Do", remedies.collect()),
            ("Figures", found.figures.iter().map(figure).collect()),
            ("Because", vec![format!("{} (confidence: {confidence})", found.because)]),
        ],
        is_open,
    }
}

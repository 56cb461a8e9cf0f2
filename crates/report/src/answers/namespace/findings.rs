//! What is wrong with a namespace, with its places.

use smbscope_findings::Severity;
use smbscope_plan::namespace::check::{Evidence, Finding};

use super::NamespacePlan;
use crate::document::{Block, FindingLine, Section};
use crate::value::format;

/// Findings that are not folded.
const FINDINGS_SHOWN: usize = 100;
/// Places that are shown of a finding.
const PLACES: usize = 3;

/// A finding, or one of its places, in words.
pub(super) struct Row {
    pub(super) severity: Severity,
    /// The link, server or file that it is about.
    pub(super) about: String,
    pub(super) sentence: String,
    pub(super) repair: Option<String>,
}

/// All findings, and the tests that files cannot answer.
pub(super) fn rows(plan: &NamespacePlan) -> Vec<Row> {
    let mut found = Vec::new();
    for one in &plan.checked.namespaces {
        let of = |finding| rows_of(finding, &one.path, plan.all_places);
        found.extend(one.findings.iter().flat_map(of));
        found.extend(one.unchecked.iter().map(|unchecked| Row {
            severity: Severity::Low,
            about: one.path.clone(),
            sentence: format!("Not visible in the files: {}", unchecked.what),
            repair: Some(unchecked.command.clone()),
        }));
    }
    let general = |finding| rows_of(finding, "", plan.all_places);
    found.extend(plan.checked.findings.iter().flat_map(general));
    found
}

/// The section, if there is a finding.
pub(super) fn section(plan: &NamespacePlan) -> Option<Section> {
    let judged = rows(plan).into_iter().map(|one| FindingLine {
        severity: one.severity,
        about: one.about,
        sentence: match &one.repair {
            Some(repair) => format!("{}. Repair: {repair}.", one.sentence),
            None => format!("{}.", one.sentence),
        },
    });
    let mut judged: Vec<_> = judged.collect();
    if judged.is_empty() {
        return None;
    }
    judged.sort_by_key(|one| one.severity);
    Some(Section {
        id: "findings",
        title: "What is wrong",
        help: "High: clients fail, or the move loses it. Medium: it will be in the way. Low: worth knowing.",
        blocks: Block::findings(judged, FINDINGS_SHOWN, |others| {
            format::counted(others, "more finding")
        }),
    })
}

fn rows_of(finding: &Finding, namespace: &str, all: bool) -> Vec<Row> {
    let severity = finding.severity().unwrap_or(Severity::Medium);
    let evidence = &finding.details.evidence;
    let place = |one: &Evidence| {
        let parts = [one.link.as_deref(), one.target.as_deref(), one.place.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let mut sentence = finding.what.clone();
    if !all && !evidence.is_empty() {
        let places = evidence.iter().take(PLACES);
        let places = places.map(|one| format!("{} ({})", place(one), one.detail));
        let more = match finding.details.count.saturating_sub(evidence.len().min(PLACES) as u64) {
            0 => String::new(),
            left => format!("; and {left} more"),
        };
        sentence.push_str(&format!(". At {}{more}", places.collect::<Vec<_>>().join("; ")));
    }
    let repair = finding.remedies.first().map(|remedy| remedy.action.clone().into_owned());
    let mut rows = vec![Row { severity, about: namespace.to_owned(), sentence, repair }];
    if all {
        rows.extend(evidence.iter().map(|one| Row {
            severity,
            about: place(one),
            sentence: one.detail.clone(),
            repair: one.repair.clone(),
        }));
    }
    rows
}

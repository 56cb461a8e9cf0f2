//! The plan of a namespace's move, where it is, and what its gates say, as text, as JSON and as a page, from one
//! document.

mod checklist;
pub(crate) mod fields;
mod gates;
mod map;
mod stages;
mod verdict;
mod words;

use serde_json::{Value, json};
use smbscope_findings::Severity;
use smbscope_plan::namespace::gate::Verdict as GateVerdict;
use smbscope_plan::namespace::model::{Kind, Namespace, State};
use smbscope_plan::namespace::progress::Progress;
use smbscope_plan::namespace::stages::{ADMIN, MovePlan};

use crate::answers::namespace::fields::column;
use crate::document::{Block, Cell, Document, FindingLine, Heading, Section, Table, TextOptions};
use crate::render::Answer;
use crate::render::text::document_text;
use crate::value::clock::Clock;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingSeverity {
    High,
    Medium,
    Low,
}

impl FindingSeverity {
    fn name(self) -> &'static str {
        match self {
            FindingSeverity::High => "high",
            FindingSeverity::Medium => "medium",
            FindingSeverity::Low => "low",
        }
    }
}

/// A finding about a namespace, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFinding {
    pub severity: FindingSeverity,
    /// The link, server or file that it is about.
    pub about: String,
    pub sentence: String,
    pub repair: Option<String>,
}

/// A namespace with what is known of it and of its move.
#[derive(Clone, Debug, Default)]
pub struct NamespacePlan {
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Version of smbscope.
    pub version: String,
    pub namespace: Option<Namespace>,
    pub findings: Vec<NamespaceFinding>,
    pub plan: Option<MovePlan>,
    /// Where the move is. Its plan is used if `plan` is missing.
    pub progress: Option<Progress>,
    /// What gates say now, the latest last.
    pub verdicts: Vec<GateVerdict>,
    /// How times of day are shown.
    pub clock: Clock,
}

impl NamespacePlan {
    fn plan(&self) -> Option<&MovePlan> {
        self.plan.as_ref().or_else(|| self.progress.as_ref().map(|progress| &progress.plan))
    }
}

/// Findings that are not folded.
const FINDINGS_SHOWN: usize = 100;
/// Servers of targets that JSON lists.
const TARGETS_LISTED: usize = 1_000;

impl Answer for NamespacePlan {
    fn document(&self) -> Option<Document> {
        Some(document(self))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let findings = self.findings.iter().map(|one| {
            json!({
                "severity": one.severity.name(),
                "about": one.about,
                "sentence": one.sentence,
                "repair": one.repair,
            })
        });
        let progress = self.progress.as_ref().map_or(&[][..], |progress| &progress.stages);
        let verdict = verdict::verdict(self);
        Ok(json!({
            "version": self.version,
            "inputs": self.inputs,
            "verdict": verdict.sentence,
            "reasons": verdict.reasons,
            "namespace": self.namespace.as_ref().map(summary),
            "findings": findings.collect::<Vec<_>>(),
            "plan": serde_json::to_value(self.plan())?,
            "progress": serde_json::to_value(progress)?,
            "gates": serde_json::to_value(&self.verdicts)?,
        }))
    }

    fn text(&self, options: &TextOptions) -> String {
        document_text(&document(self), &TextOptions { all: true, ..*options })
    }
}

/// The namespace without its links, which the writers of namespaces give.
fn summary(namespace: &Namespace) -> Value {
    let servers = namespace.targets.iter().map(|target| {
        json!({ "server": target.server, "share": target.share, "state": state(target.state) })
    });
    let targets = map::build::target_servers(namespace).into_iter().take(TARGETS_LISTED);
    let targets = targets.map(|(name, targets)| json!({ "server": name, "targets": targets }));
    json!({
        "host": namespace.host,
        "name": namespace.name,
        "kind": namespace.kind,
        "state": state(namespace.state),
        "ttl_s": namespace.ttl_s,
        "links": namespace.links.len(),
        "targets": namespace.links.iter().map(|link| link.targets.len()).sum::<usize>(),
        "servers": servers.collect::<Vec<_>>(),
        "target_servers": targets.collect::<Vec<_>>(),
    })
}

fn state(state: State) -> String {
    match state {
        State::Online => "online".to_owned(),
        State::Offline => "offline".to_owned(),
        State::Other(value) => value.to_string(),
    }
}

fn heading(title: &str, numeric: bool, rank: u8) -> Heading {
    Heading { title: title.to_owned(), group: None, help: "", numeric, rank }
}

fn document(plan: &NamespacePlan) -> Document {
    let mut sections = Vec::new();
    sections.extend(plan.verdicts.iter().rev().take(1).map(|one| gates::section(one, plan)));
    sections.extend(plan.progress.as_ref().map(stages::progress));
    sections.extend(plan.namespace.as_ref().map(|namespace| namespace_section(namespace, plan)));
    if !plan.findings.is_empty() {
        sections.push(findings(plan));
    }
    if let Some(moved) = plan.plan() {
        sections.push(stages::section(moved, plan.progress.as_ref()));
        sections.push(stages::waits(moved));
        sections.extend((!moved.lost.is_empty()).then(|| stages::lost(moved)));
    }
    let shown = sections
        .into_iter()
        .map(|section| Section { blocks: Block::worth_showing(section.blocks), ..section });
    let name = plan.namespace.as_ref().map(|one| format!(r"\\{}\{}", one.host, one.name));
    let root = plan.plan().map(|moved| moved.root.clone()).or(name).unwrap_or_default();
    Document {
        brand: "smbscope plan namespace",
        title: if plan.inputs.is_empty() { root.clone() } else { plan.inputs.join(", ") },
        span: root,
        verdict: verdict::verdict(plan),
        tiles: verdict::tiles(plan),
        notices: Vec::new(),
        sections: shown.filter(|section| !section.blocks.is_empty()).collect(),
        clock: plan.clock.clone(),
        inputs: plan.inputs.clone(),
        version: plan.version.clone(),
        schema: smbscope_tables::SCHEMA_VERSION,
    }
}

/// The drawing, and the servers of targets.
fn namespace_section(namespace: &Namespace, plan: &NamespacePlan) -> Section {
    let servers = map::build::target_servers(namespace);
    let mut table = Table::new(
        "Servers that links lead to",
        "",
        &servers,
        vec![
            column("namespace_target", "server", 0, |row: &(String, u64)| {
                Cell::Text(row.0.clone())
            }),
            column("namespace_target", "targets", 0, |row: &(String, u64)| Cell::Count(row.1)),
        ],
    );
    table.in_text = 20;
    Section {
        id: "namespace",
        title: "The namespace",
        help: "Namespace servers, which answer where a link leads; links; and the servers that they lead to.",
        blocks: vec![Block::drawing(map::build::map(namespace, plan.plan())), Block::Table(table)],
    }
}

fn findings(plan: &NamespacePlan) -> Section {
    let judged = plan.findings.iter().map(|one| FindingLine {
        severity: match one.severity {
            FindingSeverity::High => Severity::High,
            FindingSeverity::Medium => Severity::Medium,
            FindingSeverity::Low => Severity::Low,
        },
        about: one.about.clone(),
        sentence: match &one.repair {
            Some(repair) => format!("{}. Repair: {repair}.", one.sentence),
            None => format!("{}.", one.sentence),
        },
    });
    let mut judged: Vec<_> = judged.collect();
    judged.sort_by_key(|one| one.severity);
    let others = judged.split_off(judged.len().min(FINDINGS_SHOWN));
    let mut blocks = vec![Block::Findings(judged)];
    if !others.is_empty() {
        let title = words::counted(others.len() as u64, "more finding");
        blocks.push(Block::fold(title, vec![Block::Findings(others)]));
    }
    Section {
        id: "findings",
        title: "What is wrong",
        help: "High: clients fail, or the move loses it. Medium: it will be in the way. Low: worth knowing.",
        blocks,
    }
}

/// The mode of a namespace in words.
fn mode(kind: Kind) -> &'static str {
    match kind {
        Kind::Standalone => "stand-alone",
        Kind::DomainV1 => "Windows 2000 Server mode",
        Kind::DomainV2 => "Windows Server 2008 mode",
        Kind::Samba => "Samba",
    }
}

/// The place of most steps, once.
fn admin_note() -> Block {
    Block::Note(format!("Where no other place is named, commands run on {ADMIN}."))
}

//! The plan of a namespace's move, where it is, and what its gates say, as text, as JSON and as a page, from one
//! document.

mod brief;
mod checklist;
pub(crate) mod fields;
mod findings;
mod gates;
mod map;
mod stages;
mod verdict;
mod words;

use serde_json::{Value, json};
use smbscope_plan::namespace::check::Checked;
use smbscope_plan::namespace::gate::Verdict as GateVerdict;
use smbscope_plan::namespace::model::{Kind, Namespace, State};
use smbscope_plan::namespace::progress::Progress;
use smbscope_plan::namespace::stages::{ADMIN, MovePlan};

use crate::answers::namespace::fields::column;
use crate::document::{Block, Cell, Document, Section, Table, TextOptions};
use crate::render::{Answer, text::document_text};
use crate::value::Clock;

/// A namespace with what is known of it and of its move.
#[derive(Clone, Debug, Default)]
pub struct NamespacePlan {
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Version of smbscope.
    pub version: String,
    pub namespace: Option<Namespace>,
    pub checked: Checked,
    /// Whether each place of a finding is shown, not only the first ones.
    pub all_places: bool,
    pub plan: Option<MovePlan>,
    /// Where the move is. Its plan is used if `plan` is missing.
    pub progress: Option<Progress>,
    /// What gates say now, the latest last.
    pub verdicts: Vec<GateVerdict>,
    /// Whether text is the answer and the next stage only. A page and JSON have everything.
    pub is_brief: bool,
    /// How times of day are shown.
    pub clock: Clock,
}

impl NamespacePlan {
    fn plan(&self) -> Option<&MovePlan> {
        self.plan.as_ref().or_else(|| self.progress.as_ref().map(|progress| &progress.plan))
    }
}

/// Servers of targets that JSON lists.
const TARGETS_LISTED: usize = 1_000;

impl Answer for NamespacePlan {
    fn document(&self) -> Option<Document> {
        Some(document(self))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let findings = findings::rows(self);
        let findings = findings.iter().map(|one| {
            json!({
                "severity": one.severity,
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
        if self.is_brief {
            return brief::text(self);
        }
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

fn document(plan: &NamespacePlan) -> Document {
    let mut sections = Vec::new();
    sections.extend(plan.verdicts.iter().rev().take(1).map(|one| gates::section(one, plan)));
    sections.extend(plan.progress.as_ref().map(stages::progress));
    sections.extend(plan.namespace.as_ref().map(|namespace| namespace_section(namespace, plan)));
    sections.extend(findings::section(plan));
    if let Some(moved) = plan.plan() {
        sections.push(stages::section(moved, plan.progress.as_ref()));
        sections.push(stages::waits(moved));
        sections.extend((!moved.lost.is_empty()).then(|| stages::lost(moved)));
    }
    let name = plan.namespace.as_ref().map(|one| format!(r"\\{}\{}", one.host, one.name));
    let root = plan.plan().map(|moved| moved.root.clone()).or(name).unwrap_or_default();
    Document {
        brand: "smbscope plan namespace",
        title: if plan.inputs.is_empty() { root.clone() } else { plan.inputs.join(", ") },
        span: root,
        verdict: verdict::verdict(plan),
        tiles: verdict::tiles(plan),
        sections: Section::worth_showing(sections),
        clock: plan.clock.clone(),
        inputs: plan.inputs.clone(),
        version: plan.version.clone(),
        ..Document::default()
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

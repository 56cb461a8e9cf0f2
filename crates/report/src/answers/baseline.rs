//! The judgement of a security baseline as text, as JSON and as a page, from one document.

mod costs;
mod facts;
pub(crate) mod fields;
mod json;
mod numbers;
mod verdict;
mod words;

use serde_json::Value;
use smbscope_plan::baseline::judgement::Judgement;
use smbscope_plan::script::Step;

use crate::answers::baseline::fields::column;
use crate::document::{
    Block, Cell, ChecklistItem, Column, Document, Heading, Section, Table, TextOptions,
};
use crate::render::{Answer, text::document_text};
use crate::value::{Clock, format};

pub use facts::baseline_facts;
pub use numbers::baseline_numbers;

use costs::{alternatives, costs, unknown};
use smbscope_plan::baseline::judgement::findings::FindingKind;
use verdict::{tiles, verdict};

/// Changes of a table in text.
const CHANGES_IN_TEXT: usize = 12;
/// Rows of the table of other settings.
const OTHERS_SHOWN: usize = 1_000;

/// Where the search for the setting to blame is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchPlan {
    /// What to do now, a sentence each.
    pub sentences: Vec<String>,
    /// The settings to apply for it, and their undo.
    pub commands: Vec<Step>,
    /// Tries that are still needed at most, and expected.
    pub tries_most: u64,
    pub tries_expected: f64,
    /// The culprits, once they are known.
    pub found: Vec<String>,
    pub is_done: bool,
}

/// A judgement with everything that it is based on.
#[derive(Clone, Debug, Default)]
pub struct BaselinePlan {
    /// Version of smbscope.
    pub version: String,
    /// The proposed baseline, and what it is compared with.
    pub inputs: Vec<String>,
    pub against: Vec<String>,
    pub recording: Option<String>,
    pub calibration: Option<String>,
    pub judgement: Judgement,
    /// Parts of the inputs that are not settings, a sentence each.
    pub unread: Vec<String>,
    /// The commands of the cheaper ways, or of the whole difference.
    pub commands: Vec<Step>,
    pub search: Option<SearchPlan>,
    /// How times of day are shown.
    pub clock: Clock,
}

impl Answer for BaselinePlan {
    fn document(&self) -> Option<Document> {
        Some(document(self, true))
    }

    fn json(&self) -> serde_json::Result<Value> {
        json::json(self)
    }

    fn text(&self, options: &TextOptions) -> String {
        text(self, options)
    }
}

/// The judgement as text: what fits on a screen, or all of it. Commands are always complete.
fn text(plan: &BaselinePlan, options: &TextOptions) -> String {
    // What to do now comes before everything else.
    let mut text = String::new();
    if let Some(search) = &plan.search {
        for sentence in &search.sentences {
            text.push_str(&format!("{}\n", format::sanitized(sentence)));
        }
        if !search.is_done {
            text.push_str(&format!("{}\n", words::tries(search)));
        }
        text.push('\n');
    }
    text.push_str(&document_text(&document(plan, false), options));
    let blocks = plan.search.iter().flat_map(|search| &search.commands).chain(&plan.commands);
    let mut blocks = blocks.peekable();
    if blocks.peek().is_some() {
        text.push_str("\nCOMMANDS (nothing was executed)\n");
    }
    for block in blocks {
        text.push_str(&format!("\n  # {}\n", format::sanitized(&block.does)));
        for line in &block.apply {
            text.push_str(&format!("  {}\n", format::sanitized(line)));
        }
        for line in &block.undo {
            text.push_str(&format!("  undo: {}\n", format::sanitized(line)));
        }
    }
    text
}

fn document(plan: &BaselinePlan, is_page: bool) -> Document {
    let judgement = &plan.judgement;
    let searches = plan.search.iter().filter(|_| is_page);
    let mut sections: Vec<_> = searches.map(search).collect();
    sections.push(costs(judgement));
    sections.push(alternatives(judgement));
    if is_page {
        sections.push(commands(&plan.commands));
    }
    sections.push(findings(judgement));
    sections.push(changes(judgement));
    sections.push(unknown(judgement));
    sections.push(unread(plan));
    let title = if plan.against.is_empty() {
        plan.inputs.join(", ")
    } else {
        format!("{} against {}", plan.inputs.join(", "), plan.against.join(", "))
    };
    Document {
        brand: "smbscope plan baseline",
        title,
        span: words::span(plan),
        verdict: verdict(judgement),
        tiles: tiles(judgement),
        sections: Section::worth_showing(sections),
        clock: plan.clock.clone(),
        inputs: plan.inputs.clone(),
        version: plan.version.clone(),
        ..Document::default()
    }
}

fn tasks(blocks: &[Step]) -> Block {
    let task = |block: &Step| ChecklistItem {
        about: String::new(),
        does: block.does.clone(),
        interrupts: "nothing was executed".to_owned(),
        is_noticed: false,
        apply: block.apply.clone(),
        checks: Vec::new(),
        undo: block.undo.clone(),
    };
    Block::Steps(blocks.iter().map(task).collect())
}

fn commands(blocks: &[Step]) -> Section {
    Section {
        id: "commands",
        title: "Commands",
        help: "As they are typed, or the lines of a file, each with its undo. Nothing was executed.",
        blocks: if blocks.is_empty() { Vec::new() } else { vec![tasks(blocks)] },
    }
}

fn search(search: &SearchPlan) -> Section {
    let mut blocks: Vec<_> = search.sentences.iter().cloned().map(Block::Note).collect();
    if !search.is_done {
        blocks.push(Block::Note(words::tries(search)));
    }
    if !search.commands.is_empty() {
        blocks.push(tasks(&search.commands));
    }
    Section {
        id: "search",
        title: "The search for the setting to blame",
        help: "Which settings to take back now. The order is that of the fewest tries by predicted cost.",
        blocks,
    }
}

fn findings(judgement: &Judgement) -> Section {
    let mut blocks = Vec::new();
    let of = |kind| judgement.findings.iter().filter(move |one| one.kind == kind);
    for kind in
        [FindingKind::SwitchedOff, FindingKind::Weaker, FindingKind::NotOn, FindingKind::Conflict]
    {
        blocks.extend(of(kind).map(|one| Block::Warn(words::finding(one))));
    }
    blocks.extend(
        words::in_short(&of(FindingKind::Hidden).collect::<Vec<_>>(), "Hidden").map(Block::Warn),
    );
    let none: Vec<_> = of(FindingKind::NoEffect).collect();
    blocks.extend(words::in_short(&none, "No effect").map(Block::Warn));
    for kind in [FindingKind::Hidden, FindingKind::NoEffect] {
        blocks.extend(of(kind).map(|one| Block::Note(words::finding(one))));
    }
    Section {
        id: "findings",
        title: "What is wrong with it",
        help: "Settings that protect less than today, that are not in force, that contradict each other, that force signing or encryption of some paths unnoticed, and that have no effect.",
        blocks,
    }
}

fn changes(judgement: &Judgement) -> Section {
    let difference = &judgement.difference;
    let of = "baseline_change";
    let columns = vec![
        column(of, "id", 0, |row: &words::ChangeRow| Cell::Text(row.id.clone())).titled("Setting"),
        column(of, "setting", 2, |row: &words::ChangeRow| Cell::Text(row.setting.clone()))
            .titled("Meaning"),
        column(of, "from", 0, |row: &words::ChangeRow| Cell::Text(row.from.clone())),
        column(of, "to", 0, |row: &words::ChangeRow| Cell::Text(row.to.clone())),
        column(of, "security", 1, |row: &words::ChangeRow| Cell::Text(row.security.to_owned())),
        Column::new(Heading::new("Place", false, 3), |row: &words::ChangeRow| {
            Cell::text(&row.place)
        }),
        column(of, "origin", 3, |row: &words::ChangeRow| Cell::text(&row.origin)),
    ];
    let rows: Vec<_> = difference.changes.iter().map(words::change).collect();
    let mut table = Table::new("What changes for file serving", "", &rows, columns);
    (table.in_text, table.in_page) = (CHANGES_IN_TEXT, 300);
    Section {
        id: "changes",
        title: "What changes",
        help: "Settings of the catalogue, by meaning: places of Windows and of Samba that mean the same are one. Everything else is counted.",
        blocks: [Block::Table(table), Block::Note(words::others(judgement))]
            .into_iter()
            .chain(other_changes(judgement))
            .collect(),
    }
}

/// The settings that the catalogue does not have, with the texts of templates.
fn other_changes(judgement: &Judgement) -> Option<Block> {
    let rows: Vec<_> = judgement.difference.other_changes.iter().map(words::other_change).collect();
    let count = rows.len() as u64;
    let of = "baseline_other_change";
    let columns = vec![
        column(of, "place", 0, |row: &words::OtherRow| Cell::Text(row.place.clone())),
        column(of, "from", 0, |row: &words::OtherRow| Cell::Text(row.from.clone())),
        column(of, "to", 0, |row: &words::OtherRow| Cell::Text(row.to.clone())),
        column(of, "policy", 1, |row: &words::OtherRow| Cell::text(&row.policy)),
        column(of, "explain", 3, |row: &words::OtherRow| Cell::text(&row.explain)),
        column(of, "origin", 2, |row: &words::OtherRow| Cell::Text(row.origin.clone())),
    ];
    let mut table = Table::new("Other settings that change", "", &rows, columns);
    (table.in_text, table.in_page) = (OTHERS_SHOWN, OTHERS_SHOWN);
    (count > 0).then(|| {
        let what = if count == 1 { "setting that is" } else { "settings that are" };
        let title = format!("{} {what} not about file serving", format::count(count));
        Block::fold(title, vec![Block::Table(table)])
    })
}

fn unread(plan: &BaselinePlan) -> Section {
    let notes = plan.unread.iter().cloned().map(Block::Note).collect();
    let parts = if plan.unread.len() == 1 { "part" } else { "parts" };
    let title = format!("{} {parts} of the inputs", format::count(plan.unread.len() as u64));
    Section {
        id: "unread",
        title: "Not settings",
        help: "Parts of the inputs that were not read as settings.",
        blocks: if plan.unread.is_empty() { Vec::new() } else { vec![Block::fold(title, notes)] },
    }
}

//! The plan of cores as a page: the verdict, the machine before and after, findings, commands, what they bring, the
//! input.

use std::collections::BTreeMap;

use smbscope_findings::Severity;
use smbscope_plan::cores::commands::{Commands, Step};
use smbscope_plan::cores::prediction::Prediction;
use smbscope_plan::cores::topology::{Machine, System};

use super::before_after::BeforeAfter;
use super::topology::{TopologyDrawing, text as drawing};
use super::{CoresPlan, added, load, verdict, words};
use crate::document::{Block, Cell, ChecklistItem, Document, Fact, Facts, FindingLine, Section};
use crate::value::format;

/// Findings that are not folded.
const FINDINGS_SHOWN: usize = 40;
/// Cores of one chart.
const CORES_IN_CHART: usize = 64;

/// The plan as a document.
pub(super) fn document(plan: &CoresPlan) -> Document {
    let mut notices = Vec::new();
    if plan.unknown_lines > 0 {
        notices.push(Block::Warn(words::unread(plan.unknown_lines)));
    }
    let mut sections = vec![machine(plan), findings(plan), commands(plan)];
    sections.extend(plan.prediction.as_ref().map(predicted));
    sections.extend(plan.load.as_ref().map(load::section));
    sections.extend(plan.added.as_ref().map(|added| added::section(added, plan.machine.system)));
    sections.push(input(plan));
    Document {
        brand: "smbscope plan cores",
        title: match &plan.inputs[..] {
            [] => "this machine".to_owned(),
            names => names.join(", "),
        },
        span: words::machine(&plan.machine),
        verdict: verdict::verdict(plan),
        tiles: verdict::tiles(plan),
        notices,
        sections,
        inputs: plan.inputs.clone(),
        version: plan.version.clone(),
        ..Document::default()
    }
}

/// The drawing, and each adapter's place.
fn machine(plan: &CoresPlan) -> Section {
    let board = super::drawn(plan);
    let mut blocks = Vec::new();
    if plan.layout.cards.is_empty() && plan.commands.refused.is_empty() {
        blocks.push(Block::Warn(words::no_layout(&plan.machine)));
    }
    let adapters = adapters(plan, &board);
    if !board.sockets.is_empty() {
        blocks.push(Block::drawing(board));
    }
    blocks.extend(adapters);
    Section {
        id: "machine",
        title: "CPUs and adapters",
        help: "Which CPUs receive for which network adapter, today and as planned. Each box is a core, with a cell for each hardware thread; point at a cell for its queues.",
        blocks,
    }
}

/// Each adapter's place today and as planned.
fn adapters(plan: &CoresPlan, board: &TopologyDrawing) -> Vec<Block> {
    let fact = |title: &str, value: String| Fact {
        title: title.to_owned(),
        value: Cell::Text(value),
        note: String::new(),
        help: "",
    };
    let facts = board.cards.iter().map(|card| {
        let mut rows = vec![fact("Today", drawing::queues(&card.queues[0]))];
        if let Some(planned) = plan.layout.cards.iter().find(|one| one.card == card.index) {
            let queues = drawing::queues(&card.queues[1]);
            rows.push(fact(
                "Planned",
                format!("{queues}{}", words::besides(&plan.machine, planned)),
            ));
            let notes = planned.notes.iter().map(words::note);
            rows.extend(notes.map(|note| fact("Note", note)));
        }
        Block::Facts(Facts { caption: drawing::card(card), rows })
    });
    facts.collect()
}

fn findings(plan: &CoresPlan) -> Section {
    let judged = plan.findings.iter().map(|finding| FindingLine {
        severity: finding.severity().unwrap_or(Severity::Medium),
        about: finding.details.card.clone().unwrap_or_else(|| "The machine".to_owned()),
        sentence: finding.what.clone(),
    });
    let title = |others| format!("{} more", format::counted(others, "finding"));
    let mut blocks = Block::findings(judged.collect(), FINDINGS_SHOWN, title);
    if blocks.is_empty() {
        blocks.push(Block::Note("Nothing that the input shows.".to_owned()));
    }
    Section {
        id: "findings",
        title: "What is wrong",
        help: "High: receive work is limited by it. Medium: it costs CPU time, or limits at higher load. Low: worth knowing.",
        blocks,
    }
}

fn commands(plan: &CoresPlan) -> Section {
    let Commands { system, steps, refused, .. } = &plan.commands;
    let task = |step: &Step| ChecklistItem {
        about: step.details.card.clone().unwrap_or_default(),
        does: step.does.clone(),
        interrupts: words::interrupts(step.details.interrupts).to_owned(),
        is_noticed: verdict::is_noticed(step.details.interrupts),
        apply: step.apply.clone(),
        checks: step
            .checks
            .iter()
            .map(|check| (check.command.clone(), check.expected.clone()))
            .collect(),
        undo: step.undo.clone(),
    };
    let mut blocks = Vec::new();
    if steps.is_empty() {
        blocks.push(Block::Note(words::no_commands(plan).to_owned()));
    } else {
        let name = match system {
            System::Linux => "apply.sh",
            System::Windows => "apply.ps1",
        };
        blocks.push(Block::Note(format!(
                "smbscope executed nothing. --script {name} writes these commands as a script that waits for each adapter's link, and their undo next to it."
            )));
        blocks.push(Block::Steps(steps.iter().map(task).collect()));
    }
    let left = refused.iter().map(|one| {
        Block::Note(format!("Left as it is: {}: {}", one.card, words::refused(one.reason)))
    });
    blocks.extend(left);
    Section {
        id: "commands",
        title: "Commands",
        help: "In this order; the adapter by which the machine is reached comes last if --management names it. Undo restores the settings that were found.",
        blocks,
    }
}

fn predicted(prediction: &Prediction) -> Section {
    let mut blocks = Vec::new();
    if prediction.cards.is_empty() {
        let none = "The recording has no connection to an adapter of the layout.";
        blocks.push(Block::Note(none.to_owned()));
    }
    for card in &prediction.cards {
        blocks.push(Block::Note(format!("{}: {}", card.name, words::connections(card))));
        blocks.extend(words::about(card).into_iter().map(Block::Note));
        if let Some(busiest) = &card.after.busiest {
            blocks.push(Block::Note(format!(
                "With random keys the busiest core of {} has {:.0} % of its packets (5th to 95th percentile {:.0} to {:.0} %).",
                card.name, busiest.percent_mean, busiest.percent_p5, busiest.percent_p95
            )));
        }
    }
    if !prediction.cards.is_empty() {
        blocks.extend(pairs(prediction));
    }
    if prediction.ignored > 0 {
        blocks.push(Block::Note(words::ignored(prediction.ignored)));
    }
    Section {
        id: "prediction",
        title: "Expected effect",
        help: "The recorded connections, placed by the adapter's hash and its table.",
        blocks,
    }
}

/// Each core's share of the packets before and after.
fn pairs(prediction: &Prediction) -> Vec<Block> {
    let mut cores: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    for core in &prediction.before {
        cores.entry((core.cpu, core.queue)).or_default().0 = core.packets_percent / 100.0;
    }
    for core in &prediction.after {
        cores.entry((core.cpu, core.queue)).or_default().1 = core.packets_percent / 100.0;
    }
    let mut rows: Vec<_> = cores
        .into_iter()
        .map(|((cpu, queue), (now, planned))| match (cpu, queue) {
            (None, None) => ("not known".to_owned(), now, planned),
            _ => (words::place(cpu, queue), now, planned),
        })
        .collect();
    let left_out = rows.len().saturating_sub(CORES_IN_CHART);
    if left_out > 0 {
        // The busiest stay, in the order of their sizes.
        rows.sort_by(|a, b| b.1.max(b.2).total_cmp(&a.1.max(a.2)));
        rows.truncate(CORES_IN_CHART);
    }
    let chart = BeforeAfter {
        caption: "Share of each core".to_owned(),
        help: "Share of the received packets of all adapters.".to_owned(),
        rows,
    };
    let mut blocks = vec![Block::drawing(chart)];
    if left_out > 0 {
        blocks.push(Block::Note(format!("{left_out} less busy cores are not drawn.")));
    }
    blocks
}

/// What was assumed, and what was not read.
fn input(plan: &CoresPlan) -> Section {
    let Machine { assumptions, failures, .. } = &plan.machine;
    let mut blocks: Vec<_> =
        assumptions.iter().map(|one| Block::Note(format!("Assumed: {one}."))).collect();
    blocks.extend(words::processes(&plan.machine).into_iter().map(Block::Note));
    blocks.extend(failures.iter().map(|one| Block::Note(format!("Not read: {one}"))));
    blocks.push(Block::Note(match plan.unknown_lines {
        0 => "All lines of the input were understood.".to_owned(),
        count => words::unread(count),
    }));
    Section {
        id: "input",
        title: "Input",
        help: "What was assumed because the input does not say it, and what could not be read.",
        blocks,
    }
}

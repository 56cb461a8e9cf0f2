//! The stages of a move: the checklist, where it is, its waits, and what an export loses.

use smbscope_plan::namespace::progress::{Progress, StageProgress, Status};
use smbscope_plan::namespace::stages::{ADMIN, Impact, Lost, MovePlan, Stage, Step, Tool};

use super::admin_note;
use super::words::{self, nanoseconds, seconds};
use crate::answers::namespace::checklist::{Choice, StageCard, StageChecklist, StepCard};
use crate::answers::namespace::fields::column;
use crate::document::{Block, Cell, Fact, Facts, Section, Table};

/// The checklist.
pub(super) fn section(plan: &MovePlan, progress: Option<&Progress>) -> Section {
    let mut blocks = vec![
        Block::Note("smbscope executed nothing. Each step has its commands, in two dialects where they differ: run one of them.".to_owned()),
        admin_note(),
    ];
    blocks.extend(plan.notes.iter().map(|note| Block::Note(note.clone())));
    let usual = plan.stages.first().map_or("", |stage| stage.who.as_str());
    blocks.push(Block::Note(format!(
        "Unless a stage names another account, commands run as {usual}."
    )));
    let cards = plan.stages.iter().enumerate().map(|(place, stage)| {
        let progress = progress.and_then(|progress| progress.stage(stage.id));
        card(place + 1, stage, stage.who == usual, progress)
    });
    blocks.push(Block::drawing(StageChecklist(cards.collect())));
    Section {
        id: "plan",
        title: "The plan",
        help: "Stage by stage, in this order. A gate is asked before the next stage begins.",
        blocks,
    }
}

fn card(
    number: usize,
    stage: &Stage,
    is_usual: bool,
    progress: Option<&StageProgress>,
) -> StageCard {
    let takes = &stage.takes;
    let mut facts = Vec::new();
    if !is_usual {
        facts.push(("Who", stage.who.clone()));
    }
    facts.extend([
        (
            "Takes",
            format!("{} to {}: {}", seconds(takes.least_s), seconds(takes.most_s), takes.because),
        ),
        ("Users", stage.users.clone()),
    ]);
    if let Some(wait) = &stage.wait {
        let since = stage.since.map_or("", |since| since.name());
        facts.push((
            "Wait",
            format!(
                "at most {} from the end of stage {since}; the gate can say go earlier",
                seconds(wait.total_s)
            ),
        ));
    }
    if let Some(rule) = stage.gate {
        facts.push(("Gate", format!("{}.", words::rule(rule))));
    }
    let status = progress.map(|progress| {
        let status = words::status(progress.status).to_owned();
        match &progress.forced {
            Some(why) => format!("{status}, forced: {why}"),
            None => status,
        }
    });
    StageCard {
        number,
        name: stage.id.name().to_owned(),
        title: stage.title.clone(),
        why: stage.why.clone(),
        status,
        is_done: progress.is_some_and(|progress| progress.status == Status::Done),
        is_noticed: stage.impact != Impact::Nothing,
        facts,
        requires: stage.requires.clone(),
        steps: stage.steps.iter().map(step).collect(),
        undo: stage.undo.iter().map(step).collect(),
        undo_note: stage.undo_note.clone(),
    }
}

fn step(step: &Step) -> StepCard {
    let choices = step.commands.iter().map(|command| Choice {
        tool: match command.tool {
            Tool::Any => "Run",
            Tool::Dfsutil if command.lines.iter().any(|line| line.starts_with("dfsutil")) => {
                "dfsutil"
            }
            Tool::Dfsutil => "Programs",
            Tool::PowerShell => "PowerShell",
        },
        lines: command.lines.clone(),
        note: command.note.clone(),
    });
    StepCard {
        does: step.does.clone(),
        place: Some(&step.place).filter(|place| place.as_str() != ADMIN).cloned(),
        choices: choices.collect(),
        shows: step.shows.clone(),
    }
}

/// Where the move is.
pub(super) fn progress(progress: &Progress) -> Section {
    let time = |at: Option<i64>| at.map_or(Cell::Empty, |at| Cell::Time(nanoseconds(at)));
    let of = "stage_progress";
    let columns = vec![
        column(of, "id", 0, |row: &StageProgress| Cell::Code(row.id.name().to_owned())),
        column(of, "status", 0, |row: &StageProgress| {
            Cell::Text(words::status(row.status).to_owned())
        }),
        column(of, "started_at_s", 2, move |row: &StageProgress| time(row.started_at_s)),
        column(of, "done_at_s", 1, move |row: &StageProgress| time(row.done_at_s)),
        column(of, "gates", 0, |row: &StageProgress| {
            row.gates.last().map_or(Cell::Empty, |gate| {
                let word = if gate.is_go { "go" } else { "no-go" };
                Cell::Text(if gate.because.is_empty() {
                    word.to_owned()
                } else {
                    format!("{word}: {}", gate.because.join("; "))
                })
            })
        }),
        column(of, "forced", 0, |row: &StageProgress| Cell::text(&row.forced)),
    ];
    let mut table = Table::new("Stages", "", &progress.stages, columns);
    (table.in_text, table.in_page) = (20, 20);
    Section {
        id: "progress",
        title: "Where the move is",
        help: "From the state file. A stage against its gate has the reason for which it was forced.",
        blocks: vec![Block::Table(table)],
    }
}

/// What the waits are made of.
pub(super) fn waits(plan: &MovePlan) -> Section {
    let mut blocks = Vec::new();
    let waiting = plan.stages.iter().filter_map(|stage| Some((stage, stage.wait.as_ref()?)));
    for (stage, wait) in waiting {
        let fact = |time: u64, because: &str| Fact {
            title: seconds(time),
            value: Cell::Text(because.to_owned()),
            note: String::new(),
            help: "",
        };
        let parts = wait.parts.iter().map(|part| fact(part.seconds, &part.because));
        let rows = parts.chain([fact(wait.total_s, "total, at most")]).collect();
        let caption = format!("Stage {}", stage.id.name());
        blocks.push(Block::Facts(Facts { caption, rows }));
    }
    blocks.push(Block::Note(
        "A client that has files open for longer, sleeps, or is switched off is not covered by these times. The gate names it: its list must have been read after the change."
            .to_owned(),
    ));
    Section {
        id: "waits",
        title: "Why to wait, and how long",
        help: "The times are upper bounds for clients that meet the assumptions; the gate can say go earlier, and says no-go as long as a client needs more.",
        blocks,
    }
}

/// What an import does not bring back.
pub(super) fn lost(plan: &MovePlan) -> Section {
    let fact = |one: &Lost| Fact {
        title: one.what.clone(),
        value: Cell::Text(match &one.restore {
            Some(step) => format!("{}; later: {}", one.save.does, step.does),
            None => format!("{}; the new mode does not have it", one.save.does),
        }),
        note: one.why.clone(),
        help: "",
    };
    let rows = plan.lost.iter().map(fact).collect();
    Section {
        id: "lost",
        title: "What is not imported",
        help: "An export has links, targets and some settings. The first stage saves the rest, stage restore brings it back; their commands are in the plan.",
        blocks: vec![Block::Facts(Facts { caption: "Not imported".to_owned(), rows })],
    }
}

//! The plan of cores as text and JSON: what the machine is, what is wrong, the layout, its commands, its effect.

mod added;
mod before_after;
pub(crate) mod fields;
mod load;
mod page;
pub(crate) mod topology;
mod verdict;
mod words;

use serde_json::{Value, json};
use smbscope_findings::Severity;
use smbscope_plan::cores::added::Added;
use smbscope_plan::cores::commands::{Commands, Step};
use smbscope_plan::cores::current::current;
use smbscope_plan::cores::findings::Finding;
use smbscope_plan::cores::layout::Layout;
use smbscope_plan::cores::load::Load;
use smbscope_plan::cores::prediction::Prediction;
use smbscope_plan::cores::topology::Machine;

use crate::answers::cores::topology::{TopologyDrawing, build, text as drawing};
use crate::document::{Document, TextOptions};
use crate::render::Answer;
use crate::value::format;

/// A plan with everything that it is based on.
#[derive(Debug)]
pub struct CoresPlan {
    /// Version of smbscope.
    pub version: String,
    /// Names of the inputs; without any it is this machine.
    pub inputs: Vec<String>,
    pub machine: Machine,
    pub findings: Vec<Finding>,
    pub layout: Layout,
    pub commands: Commands,
    /// Prediction for recorded connections.
    pub prediction: Option<Prediction>,
    /// The load of each CPU, from a trace.
    pub load: Option<Load>,
    /// What if adapters were added.
    pub added: Option<Added>,
    /// Lines of the input that were not understood.
    pub unknown_lines: u64,
}

impl Answer for CoresPlan {
    fn document(&self) -> Option<Document> {
        Some(page::document(self))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let verdict = verdict::verdict(self);
        Ok(json!({
            "verdict": verdict.sentence,
            "reasons": verdict.reasons,
            "machine": serde_json::to_value(&self.machine)?,
            "current": serde_json::to_value(current(&self.machine))?,
            "findings": serde_json::to_value(&self.findings)?,
            "layout": serde_json::to_value(&self.layout)?,
            "commands": serde_json::to_value(&self.commands)?,
            "prediction": serde_json::to_value(&self.prediction)?,
            "load": serde_json::to_value(&self.load)?,
            "added": serde_json::to_value(&self.added)?,
            "unknown_lines": self.unknown_lines,
        }))
    }

    fn text(&self, options: &TextOptions) -> String {
        text(self, options)
    }
}

/// The plan as text.
fn text(plan: &CoresPlan, options: &TextOptions) -> String {
    let mut text = Lines { text: String::new(), options: *options };
    text.line(0, &words::machine(&plan.machine));
    let Machine { assumptions, failures, .. } = &plan.machine;
    for assumption in assumptions {
        text.line(2, &format!("Assumed: {assumption}"));
    }
    for failure in failures {
        text.line(2, &format!("Not read: {failure}"));
    }
    if plan.unknown_lines > 0 {
        text.line(2, &words::unread(plan.unknown_lines));
    }
    for line in words::processes(&plan.machine) {
        text.line(2, &line);
    }
    let verdict = verdict::verdict(plan);
    text.text.push('\n');
    text.line(0, &format!("{}.", verdict.sentence));
    for reason in &verdict.reasons {
        text.line(0, reason);
    }
    findings(&mut text, &plan.findings);
    layout(&mut text, plan);
    if let Some(prediction) = &plan.prediction {
        predicted(&mut text, prediction);
    }
    if let Some(load) = &plan.load {
        load::text(&mut text, load);
    }
    commands(&mut text, plan);
    if let Some(added) = &plan.added {
        text.heading(&added::title(added));
        for line in added::lines(added, plan.machine.system) {
            text.line(2, &line);
        }
    }
    text.text
}

fn findings(text: &mut Lines, findings: &[Finding]) {
    text.heading("What is wrong");
    if findings.is_empty() {
        text.line(2, "Nothing that the input shows.");
    }
    for finding in findings {
        let severity = finding.severity().map_or("", Severity::word);
        let card =
            finding.details.card.as_deref().map_or(String::new(), |card| format!("{card}: "));
        text.line(2, &format!("[{severity}] {card}{}", finding.what));
    }
}

/// The drawing of a plan, with how busy CPUs are if a trace says it.
fn drawn(plan: &CoresPlan) -> TopologyDrawing {
    let busy = load::busy(plan);
    let busy = busy.as_ref().map_or([None, None], |[before, after]| [Some(before), Some(after)]);
    build::topology(&plan.machine, &plan.layout, busy)
}

/// The machine with the adapters' letters on CPUs that receive, and each adapter's place.
fn layout(text: &mut Lines, plan: &CoresPlan) {
    let CoresPlan { machine, layout, .. } = plan;
    text.heading("Layout");
    let board = drawn(plan);
    if !machine.cpus.is_empty() {
        drawing::machine(text, &board);
    }
    if layout.cards.is_empty() && plan.commands.refused.is_empty() {
        text.line(2, &words::no_layout(machine));
    }
    let shared = words::shared_notes(layout);
    for card in &board.cards {
        text.line(2, &drawing::card(card));
        text.line(6, &format!("today: {}", drawing::queues(&card.queues[0])));
        let planned = layout.cards.iter().find(|one| one.card == card.index);
        let Some(planned) = planned else { continue };
        let queues = drawing::queues(&card.queues[1]);
        text.line(6, &format!("planned: {queues}{}", words::besides(machine, planned)));
        for note in planned.notes.iter().filter(|note| !shared.contains(note)) {
            text.line(6, &words::note(note));
        }
    }
    for note in shared {
        text.line(2, &format!("Each adapter: {}", words::note(&note)));
    }
}

fn predicted(text: &mut Lines, prediction: &Prediction) {
    text.heading("Expected effect on the recorded connections");
    if prediction.cards.is_empty() {
        text.line(2, "The recording has no connection to an adapter of the layout.");
    }
    for card in &prediction.cards {
        text.line(2, &format!("{}: {}", card.name, words::connections(card)));
        text.line(4, &format!("before: {}", words::spread(&card.before)));
        let is_same = card.before.cores == card.after.cores;
        let after = words::spread(&card.after);
        text.line(
            4,
            &if is_same { format!("after: the same; {after}") } else { format!("after: {after}") },
        );
        for line in words::about(card) {
            text.line(4, &line);
        }
    }
    if prediction.ignored > 0 {
        text.line(2, &words::ignored(prediction.ignored));
    }
}

fn commands(text: &mut Lines, plan: &CoresPlan) {
    let commands = &plan.commands;
    text.heading("Commands (nothing was executed)");
    if commands.steps.is_empty() {
        text.line(2, words::no_commands(plan));
    }
    for (number, step) in commands.steps.iter().enumerate() {
        self::step(text, number + 1, step);
    }
    for refusal in &commands.refused {
        let sentence = words::refused(refusal.reason);
        text.line(2, &format!("Left as it is: {}: {sentence}", refusal.card));
    }
}

fn step(text: &mut Lines, number: usize, step: &Step) {
    let card = step.details.card.as_deref().map_or(String::new(), |card| format!("{card}: "));
    let interrupts = words::interrupts(step.details.interrupts);
    text.line(2, &format!("{number}. {card}{} ({interrupts})", step.does));
    for line in &step.apply {
        text.code(5, line);
    }
    for line in &step.undo {
        text.code(5, &format!("undo:  {line}"));
    }
    for check in &step.checks {
        text.code(5, &format!("check: {}  -> {}", check.command, check.expected));
    }
}

pub(crate) struct Lines {
    text: String,
    options: TextOptions,
}

impl Lines {
    fn heading(&mut self, words: &str) {
        self.text.push('\n');
        self.text.push_str(&self.options.heading(words));
    }

    /// Words, folded.
    fn line(&mut self, indent: usize, words: &str) {
        crate::render::text::folded(
            &mut self.text,
            indent,
            &format::sanitized(words),
            self.options.columns(),
        );
    }

    /// A command, never folded.
    fn code(&mut self, indent: usize, line: &str) {
        self.text.push_str(&format!("{:indent$}{}\n", "", format::sanitized(line)));
    }

    /// A line of a drawing, which has no text from outside.
    fn drawn(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

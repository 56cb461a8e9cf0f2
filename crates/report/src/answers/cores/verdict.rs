//! What a plan of cores says first: the worst finding, and what the plan does about it.

use std::collections::BTreeSet;

use smbscope_findings::Severity;
use smbscope_plan::cores::commands::Interruption;
use smbscope_plan::cores::prediction;

use super::CoresPlan;
use super::words::{self};
use crate::document::{Tile, Tone, Verdict};
use crate::value::format;

/// The sentence, and what the plan does.
pub(super) fn verdict(plan: &CoresPlan) -> Verdict {
    let mut reasons = Vec::new();
    // A connection that cannot be spread limits whatever follows.
    let cards = plan.prediction.iter().flat_map(|prediction| &prediction.cards);
    let limited = cards.filter(|card| card.verdict != prediction::Verdict::Spreads);
    reasons.extend(limited.map(|card| format!("{}: {}", card.name, words::connections(card))));
    reasons.push(if plan.layout.cards.is_empty() && plan.commands.refused.is_empty() {
        words::no_layout(&plan.machine)
    } else {
        does(plan)
    });
    let others = plan.findings.len().saturating_sub(1);
    let (tone, sentence) = match plan.findings.first() {
        Some(worst) => {
            let about =
                worst.details.card.as_ref().map_or(String::new(), |card| format!("{card}: "));
            let sentence = format!("{about}{}", worst.what.trim_end_matches('.'));
            if others > 0 {
                reasons.push(format!("There {}.", more(plan, others)));
            }
            let tone = match worst.severity() {
                Some(Severity::High) => Tone::Bad,
                Some(Severity::Medium) => Tone::Watch,
                _ => Tone::Good,
            };
            (tone, sentence)
        }
        None if plan.layout.cards.is_empty() => (
            Tone::Unknown,
            "The input does not show which CPUs receive for which adapter".to_owned(),
        ),
        None => (Tone::Good, "The input shows nothing wrong with the receive work".to_owned()),
    };
    Verdict { tone, sentence, reasons }
}

fn more(plan: &CoresPlan, others: usize) -> String {
    let high =
        plan.findings.iter().skip(1).filter(|one| one.severity() == Some(Severity::High)).count();
    let are = if others == 1 { "is one more finding" } else { "are more findings" };
    match (others, high) {
        (1, 0) => are.to_owned(),
        (1, _) => format!("{are}, of high severity"),
        (_, 0) => format!("{are}: {others}, none of high severity"),
        _ => format!("{are}: {others}, {high} of high severity"),
    }
}

/// What the plan does, and what that interrupts.
fn does(plan: &CoresPlan) -> String {
    let layout = &plan.layout;
    let steps = &plan.commands.steps;
    if steps.is_empty() {
        return match plan.commands.refused.len() {
            0 => {
                "The settings found are those of the layout: there is nothing to change.".to_owned()
            }
            count => format!(
                "There is no command: {} {} as it is, for the reason named below.",
                format::counted(count, "adapter"),
                if count == 1 { "stays" } else { "stay" }
            ),
        };
    }
    let undo = if steps.len() == 1 { "with its undo" } else { "each with its undo" };
    let counted = format::counted(steps.len(), "command step");
    let receive = match &layout.cards[..] {
        [] => {
            return format!(
                "The adapters stay as they are. The server's processes go to their node: that takes {counted}, {undo}; no traffic is interrupted."
            );
        }
        [only] => format!("{} receives", only.name),
        cards => format!("{} receive", format::counted(cards.len(), "adapter")),
    };
    let restarts = restarts(plan);
    let interrupts = match restarts.len() {
        0 => "no traffic is interrupted".to_owned(),
        1 => format!("{} restarts for some seconds", restarts.iter().next().copied().unwrap_or("")),
        count => format!("{count} adapters restart for some seconds, one after the other"),
    };
    format!(
        "As planned, {receive} on {} of {}. That takes {counted}, {undo}; {interrupts}.",
        layout.cores_used,
        format::counted(layout.cores, "core"),
    )
}

/// Adapters whose link or queues restart.
fn restarts(plan: &CoresPlan) -> BTreeSet<&str> {
    let noticed = plan.commands.steps.iter().filter(|step| is_noticed(step.details.interrupts));
    noticed.filter_map(|step| step.details.card.as_deref()).collect()
}

/// Whether users notice it.
pub(super) fn is_noticed(interruption: Interruption) -> bool {
    matches!(interruption, Interruption::AdapterRestart | Interruption::QueueRestart)
}

/// At most six numbers.
pub(super) fn tiles(plan: &CoresPlan) -> Vec<Tile> {
    let machine = &plan.machine;
    let mut tiles = Vec::new();
    if !machine.cpus.is_empty() {
        let offline = machine.cpus.iter().filter(|cpu| !cpu.is_online).count();
        let sockets = format::counted(words::different(machine, |cpu| cpu.socket), "socket");
        let nodes = format::counted(words::different(machine, |cpu| cpu.node), "node");
        let cores = format::counted(words::different(machine, |cpu| cpu.core), "core");
        let offline = if offline > 0 { format!(", {offline} offline") } else { String::new() };
        let note = format!("{sockets}, {nodes}, {cores}{offline}");
        tiles.push(Tile::new("CPUs", machine.cpus.len().to_string(), note));
    }
    if !machine.cards.is_empty() {
        tiles.push(Tile::new("Network adapters", machine.cards.len().to_string(), ""));
    }
    if !plan.layout.cards.is_empty() {
        let layout = &plan.layout;
        let now = smbscope_plan::cores::current::current(machine);
        let now: BTreeSet<_> =
            now.iter().flat_map(|card| &card.queues).filter_map(|queue| queue.cpu).collect();
        tiles.push(Tile::new(
            "Cores that receive, planned",
            layout.cores_used.to_string(),
            match now.len() {
                0 => format!("of {}", layout.cores),
                _ => format!("of {}; today {}", layout.cores, format::counted(now.len(), "CPU")),
            },
        ));
    }
    let high = plan.findings.iter().filter(|one| one.severity() == Some(Severity::High)).count();
    let note = format!("{high} of high severity");
    tiles.push(Tile::new("Findings", plan.findings.len().to_string(), note));
    let steps = plan.commands.steps.len();
    let restarts = format::counted(restarts(plan).len(), "adapter");
    tiles.push(Tile::new("Command steps", steps.to_string(), format!("restart {restarts}")));
    if let Some(prediction) = &plan.prediction {
        let busiest = |loads: &[prediction::CoreLoad]| {
            loads.iter().map(|core| core.packets_percent).fold(0.0, f64::max)
        };
        tiles.push(Tile::new(
            "Busiest core, predicted",
            format!("{:.0} %", busiest(&prediction.after)),
            format!("of the packets; today {:.0} %", busiest(&prediction.before)),
        ));
    }
    tiles
}

//! What a plan of a namespace says first: the gate, else where the move is, else what the move needs.

use smbscope_findings::Severity;
use smbscope_plan::namespace::gate::Verdict as GateVerdict;
use smbscope_plan::namespace::stages::{Impact, MovePlan, StageId};

use super::words::{nanoseconds, seconds};
use super::{NamespacePlan, findings, mode};
use crate::document::{Tile, Tone, Verdict};
use crate::value::format;

/// Clients in a sentence.
const NAMED: usize = 3;

pub(super) fn verdict(plan: &NamespacePlan) -> Verdict {
    if let Some(gate) = plan.verdicts.last() {
        return gate_verdict(gate, plan);
    }
    match (plan.plan(), &plan.namespace) {
        (Some(moved), _) => move_verdict(moved, plan),
        (None, Some(namespace)) => {
            let found = findings::rows(plan);
            let high = found.iter().filter(|one| one.severity == Severity::High);
            let high = high.count() as u64;
            let links = format::counted(namespace.links.len() as u64, "link");
            Verdict {
                tone: if high > 0 { Tone::Bad } else { Tone::Good },
                sentence: match high {
                    0 => format!("The namespace has {links}, and nothing serious is wrong"),
                    _ => format!(
                        "The namespace has {links}, and {}",
                        format::counted(high, "serious finding")
                    ),
                },
                reasons: Vec::new(),
            }
        }
        (None, None) => Verdict {
            tone: Tone::Unknown,
            sentence: "There is no namespace and no plan".to_owned(),
            reasons: Vec::new(),
        },
    }
}

fn gate_verdict(gate: &GateVerdict, plan: &NamespacePlan) -> Verdict {
    let stage = gate.stage.name();
    let names = |names: Vec<&str>| {
        let more = names.len().saturating_sub(NAMED);
        let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if more == 0 { shown } else { format!("{shown} and {more} more") }
    };
    let mut reasons = Vec::new();
    if !gate.held.is_empty() {
        let held = gate.held.iter().map(|one| one.client.as_str()).collect();
        reasons.push(format!("Held up by {}.", names(held)));
    }
    if !gate.missing.is_empty() {
        let missing = gate.missing.iter().map(String::as_str).collect();
        reasons.push(format!("Not collected: {}.", names(missing)));
    }
    if let Some(until) = gate.until_s {
        let until = plan.clock.second(nanoseconds(until));
        reasons.push(format!("The last list expires at {until}: collect the caches again then."));
    }
    reasons.extend(gate.because.iter().filter(|_| gate.is_go).map(|why| format!("But {why}.")));
    Verdict {
        tone: if gate.is_go { Tone::Good } else { Tone::Bad },
        sentence: if gate.is_go {
            format!(
                "Go for stage {stage}: {} of {} are ready",
                gate.ready,
                format::counted(gate.judged, "client")
            )
        } else {
            format!(
                "No-go for stage {stage}: {}",
                gate.because.first().cloned().unwrap_or_default()
            )
        },
        reasons,
    }
}

fn move_verdict(moved: &MovePlan, plan: &NamespacePlan) -> Verdict {
    let progress = plan.progress.as_ref();
    let mut reasons = Vec::new();
    let failing = moved.stages.iter().filter(|stage| stage.impact == Impact::Failures);
    let failing: Vec<_> = failing.map(|stage| stage.id).collect();
    let sentence = match progress.and_then(|progress| progress.current()) {
        Some(stage) => {
            let title = moved.stage(stage.id).map_or("", |stage| stage.title.as_str());
            format!("Next is stage {}: {title}", stage.id.name())
        }
        None if progress.is_some() => "All stages of the move are done".to_owned(),
        None => format!(
            "{} moves in {} stages, {}",
            moved.root,
            moved.stages.len(),
            if failing.is_empty() {
                "in none of which accesses fail".to_owned()
            } else {
                format!(
                    "in {} of which new accesses fail: {}",
                    failing.len(),
                    failing.iter().map(|id| id.name()).collect::<Vec<_>>().join(", ")
                )
            }
        ),
    };
    let from = moved.from.map_or("a mode that is not known", mode);
    if moved.from != Some(moved.to) {
        reasons.push(format!("From {from} to {}.", mode(moved.to)));
    }
    let left = moved.new_servers.len() + moved.kept_servers.len();
    if left < 2 && moved.old_servers.len() + moved.kept_servers.len() > 1 {
        reasons
            .push("The namespace loses its redundancy: one namespace server remains.".to_owned());
    }
    reasons.push(format!(
        "{} join, {} leave, {} stay.",
        format::counted(moved.new_servers.len() as u64, "server"),
        moved.old_servers.len(),
        moved.kept_servers.len()
    ));
    Verdict { tone: Tone::Watch, sentence, reasons }
}

/// At most six numbers.
pub(super) fn tiles(plan: &NamespacePlan) -> Vec<Tile> {
    let mut tiles = Vec::new();
    if let Some(gate) = plan.verdicts.last() {
        tiles.push(Tile::new(
            "Clients ready",
            format!("{} of {}", format::count(gate.ready), format::count(gate.judged)),
            "",
        ));
        tiles.push(Tile::new("Missing", format::count(gate.missing.len() as u64), ""));
    }
    if let Some(moved) = plan.plan() {
        tiles.push(Tile::new(
            "Links",
            format::count(moved.links),
            format!("{} targets", format::count(moved.targets)),
        ));
        tiles.push(Tile::new(
            "Waits at most",
            seconds(moved.waits_s()),
            "gates can say go earlier",
        ));
        if let Some(stage) = moved.stage(StageId::CutOver) {
            let (least, most) = (seconds(stage.takes.least_s), seconds(stage.takes.most_s));
            tiles.push(Tile::new("Cut-over", most, format!("at least {least}; an estimate")));
        }
        tiles.push(Tile::new(
            "TTL of the root",
            seconds(u64::from(moved.root_ttl_s)),
            format!("links up to {}", seconds(u64::from(moved.link_ttl_s))),
        ));
    } else if let Some(namespace) = &plan.namespace {
        tiles.push(Tile::new("Links", format::count(namespace.links.len() as u64), ""));
        tiles.push(Tile::new(
            "Namespace servers",
            format::count(namespace.targets.len() as u64),
            "",
        ));
        tiles.push(Tile::new("Findings", format::count(findings::rows(plan).len() as u64), ""));
    }
    tiles
}

//! The answer of a gate or a status in ten lines: what it is, who holds it up, what comes next.

use smbscope_plan::namespace::gate::{ClientVerdict, ReasonKind};
use smbscope_plan::namespace::progress::Status;

use super::words::{self, nanoseconds};
use super::{NamespacePlan, verdict};
use crate::value::format;

/// Clients that hold a gate up and are shown with their reasons.
const HELD_SHOWN: usize = 4;
/// Reasons of one of them.
const REASONS: usize = 2;
/// Sentences below the verdict.
const SENTENCES: usize = 4;

/// One line each: the verdict, its reasons, the first clients, the next stage.
pub(super) fn text(plan: &NamespacePlan) -> String {
    let verdict = verdict::verdict(plan);
    let held = plan.verdicts.last().map_or(&[][..], |gate| &gate.held);
    let mut lines = vec![format!("{}.", verdict.sentence)];
    lines.extend(verdict.reasons.into_iter().take(SENTENCES));
    lines.extend(held.iter().take(HELD_SHOWN).map(|client| held_line(client, plan)));
    lines.extend(next(plan));
    let lines = lines.iter().map(|line| format::sanitized(line) + "\n");
    lines.collect()
}

/// A client that holds the gate up, why and until when.
fn held_line(client: &ClientVerdict, plan: &NamespacePlan) -> String {
    let reasons: Vec<_> = client.reasons.iter().take(REASONS).map(words::reason).collect();
    let is_over = client.reasons.iter().any(|one| one.kind == ReasonKind::ReadTooLongAgo);
    let until = client.ready_at_s.filter(|_| !is_over);
    let until = until.map(|at| plan.clock.second(nanoseconds(at)));
    let until = until.map_or_else(String::new, |at| format!("; until {at} at most"));
    format!("  {}: {}{until}", client.client, reasons.join("; "))
}

/// What to do next.
fn next(plan: &NamespacePlan) -> Option<String> {
    let progress = plan.progress.as_ref()?;
    let done = progress.stages.iter().filter(|stage| stage.status == Status::Done).count();
    let all = progress.stages.len();
    let current = progress.current()?;
    let stage = progress.plan.stage(current.id)?;
    let requires = match stage.requires.len() {
        0 => String::new(),
        count => format!(" and {}", format::counted(count as u64, "precondition")),
    };
    let how = match (plan.verdicts.is_empty(), stage.gate) {
        (true, Some(_)) => format!("; its gate: smbscope plan namespace gate {}", stage.id.name()),
        _ => String::new(),
    };
    Some(format!(
        "{done} of {all} stages are done. Stage {} ({}) has {}{requires}{how}. --all shows the commands.",
        stage.id.name(),
        words::status(current.status),
        format::counted(stage.steps.len() as u64, "step")
    ))
}

//! Where the time of the explained operation went, step by step.
//!
//! `elapsed_ns` = request on the wire + turnaround + reply on the wire. The turnaround is divided into
//! the wait for requests before it, the server and the round trip; the recovery of lost segments is taken
//! from the transfers first, then from the server, as in the findings. The steps that are not parts of
//! another step add up to `elapsed_ns`.

use smbscope_tables::slice::{Kind, Slice};

use super::data::{Break, Step, StepKind};
use super::neighbours::Behind;
use super::row::Row;

/// Slices of one operation that are kept.
const SLICES_MAX: usize = 1024;

/// When the slices of each kind began, and how long they took together.
#[derive(Default)]
pub(super) struct SliceTimes {
    kinds: Vec<(Kind, i64, i64)>,
    count: usize,
}

impl SliceTimes {
    pub(super) fn see(&mut self, slice: &Slice) {
        let Some(kind) = Kind::ALL.iter().find(|kind| kind.name() == slice.kind) else { return };
        if self.count >= SLICES_MAX {
            return;
        }
        self.count += 1;
        match self.kinds.iter_mut().find(|(known, ..)| known == kind) {
            Some((_, start, sum)) => {
                *start = slice.start.min(*start);
                *sum = sum.saturating_add(slice.duration_ns.max(0));
            }
            None => self.kinds.push((*kind, slice.start, slice.duration_ns.max(0))),
        }
    }

    /// Kind, start after `zero`, and duration, in the order of time.
    fn of(&self, target: &Row) -> Vec<(Kind, Option<i64>, i64)> {
        if self.kinds.is_empty() {
            return target.slices.iter().map(|(kind, sum)| (*kind, None, *sum)).collect();
        }
        let zero = target.zero.unwrap_or(0);
        let mut slices: Vec<_> = self
            .kinds
            .iter()
            .map(|(kind, start, sum)| (*kind, Some(start.saturating_sub(zero)), *sum))
            .collect();
        slices.sort_by_key(|(_, start, sum)| (*start, std::cmp::Reverse(*sum)));
        slices
    }
}

/// The steps of an operation.
pub(super) fn steps(
    target: &Row,
    behind: Option<Behind>,
    slices: &SliceTimes,
    breaks: &[Break],
) -> Vec<Step> {
    let brief = &target.brief;
    let zero = target.zero.unwrap_or(0);
    let at = |time: Option<i64>| time.map(|time| time.saturating_sub(zero));
    let mut steps = Vec::new();
    if target.request_start.is_some() {
        steps.push(Step { frame: brief.request_frame, ..step(StepKind::RequestTransfer, Some(0)) });
    }
    if let Some(pending) = at(target.pending_at) {
        let more = step(StepKind::Interim, Some(pending));
        steps.push(Step { frame: target.pending_frame, ..more });
    }
    let Some(elapsed) = brief.elapsed_ns else {
        if let Some(first) = steps.first_mut() {
            first.duration_ns = target.request_transfer_ns;
        }
        return steps;
    };
    let parts = Parts::from_target(target, elapsed, behind);
    if let Some(first) = steps.first_mut() {
        first.duration_ns = Some(parts.request);
    }
    let sent = at(target.request_end);
    if let Some(behind) = behind.filter(|_| parts.behind > 0) {
        let more = if behind.is_replies {
            step(StepKind::OtherReplies, None)
        } else {
            step(StepKind::EarlierRequests, sent)
        };
        steps.push(Step { duration_ns: Some(parts.behind), frame: behind.frame, ..more });
    }
    let is_spread = behind.is_some_and(|behind| behind.is_replies);
    let worked = sent.map(|sent| sent + parts.behind).filter(|_| !is_spread);
    match parts.network {
        Some(network) => {
            let more = step(StepKind::Server, worked.filter(|_| network == 0));
            let error_ns = target.server_error_ns;
            steps.push(Step { duration_ns: Some(parts.server), error_ns, ..more });
            push_breaks(&mut steps, breaks);
            push_slices(&mut steps, target, slices, parts.server);
            if network > 0 {
                let more = step(StepKind::Network, None);
                steps.push(Step { duration_ns: Some(network), error_ns, ..more });
            }
        }
        None => {
            let more = step(StepKind::ServerOrNetwork, worked);
            steps.push(Step { duration_ns: Some(parts.server), ..more });
            push_breaks(&mut steps, breaks);
            push_slices(&mut steps, target, slices, parts.server);
        }
    }
    if parts.recovery > 0 {
        steps.push(Step { duration_ns: Some(parts.recovery), ..step(StepKind::Loss, None) });
    }
    let more = step(StepKind::ResponseTransfer, at(target.response_start));
    steps.push(Step { duration_ns: Some(parts.response), frame: brief.response_frame, ..more });
    steps
}

fn push_breaks(steps: &mut Vec<Step>, breaks: &[Break]) {
    for one in breaks.iter().filter(|one| one.waited_ns > 0) {
        let more = step(StepKind::Break, Some(one.at_ns));
        let duration_ns = Some(one.waited_ns);
        steps.push(Step { is_part: true, duration_ns, frame: one.frame, ..more });
    }
}

fn push_slices(steps: &mut Vec<Step>, target: &Row, times: &SliceTimes, server: i64) {
    let slices = times.of(target);
    let mut explained = 0;
    for (kind, at_ns, sum) in &slices {
        if kind.group().is_some() {
            explained += sum;
        }
        steps.push(Step {
            slice: Some(kind.name()),
            is_part: true,
            duration_ns: Some(*sum),
            ..step(StepKind::Slice, *at_ns)
        });
    }
    if explained > 0 && explained < server {
        let rest = step(StepKind::Unexplained, None);
        steps.push(Step { is_part: true, duration_ns: Some(server - explained), ..rest });
    }
}

fn step(kind: StepKind, at_ns: Option<i64>) -> Step {
    Step {
        kind,
        slice: None,
        is_part: false,
        at_ns,
        duration_ns: None,
        error_ns: None,
        frame: None,
    }
}

/// Parts of the elapsed time, ns, which add up to it.
struct Parts {
    request: i64,
    behind: i64,
    /// Without a round trip, server and network.
    server: i64,
    network: Option<i64>,
    recovery: i64,
    response: i64,
}

impl Parts {
    fn from_target(target: &Row, elapsed: i64, behind: Option<Behind>) -> Parts {
        let mut request = target.request_transfer_ns.unwrap_or(0).min(elapsed);
        let mut response = target.response_transfer_ns.unwrap_or(0).min(elapsed - request);
        let turnaround = elapsed - request - response;
        let behind = behind.map_or(0, |behind| behind.ns.clamp(0, turnaround));
        let rest = turnaround - behind;
        let mut network = target.server_ns.map(|server| {
            // The round trip is part of the whole turnaround.
            (turnaround - server.clamp(0, turnaround)).min(rest)
        });
        let mut server = rest - network.unwrap_or(0);
        let recovery = target.recovery_ns.unwrap_or(0).min(elapsed);
        let mut left = recovery;
        let mut take = |from: &mut i64| {
            let part = left.min(*from);
            *from -= part;
            left -= part;
        };
        take(&mut response);
        take(&mut request);
        take(&mut server);
        if let Some(network) = &mut network {
            take(network);
        }
        let recovery = recovery - left;
        Parts { request, behind, server, network, recovery, response }
    }
}

//! Why one operation took as long as it did: what it waited for, its neighbours, its open, and how
//! unusual it is.
//!
//! Two passes over the operations: [`Search`] finds the one that the user named ([`Which`]), and
//! [`Why`] collects what happened around it. Rows arrive in the order in which operations ended, so
//! those that were in flight with it may come before or after it. Memory is bounded: each part keeps
//! the few rows that are shown, and counts the others.

mod breaks;
mod data;
mod history;
mod holders;
mod likes;
mod neighbours;
mod row;
mod search;
mod steps;
mod which;

use std::net::IpAddr;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use smbscope_tables::tables::Slice;

pub use data::*;
pub use row::columns;
pub use search::{Found, Miss, Search};
pub use which::{Number, Which};

use breaks::{Breaks, BreaksOfFile};
use history::Uses;
use holders::Holds;
use likes::LikeRows;
use neighbours::NeighbourRows;
use row::{Columns, Row};
use steps::SliceTimes;

/// The second pass: what happened around an operation.
pub struct Why {
    target: Found,
    breaks: Breaks,
    uses: Uses,
    holds: Holds,
    likes: LikeRows,
    neighbours: NeighbourRows,
    slices: SliceTimes,
}

impl Why {
    /// Explains the operation that a [`Search`] found.
    pub fn new(target: Found) -> Why {
        Why {
            breaks: Breaks::default(),
            uses: Uses::default(),
            holds: Holds::new(&target.row),
            likes: LikeRows::new(&target.row),
            neighbours: NeighbourRows::new(&target.row),
            slices: SliceTimes::default(),
            target,
        }
    }

    /// Adds a batch of operations.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        let target = &self.target.row;
        for row in 0..batch.num_rows() {
            self.likes.see(&columns, row);
            // Another recording has another clock and other numbers.
            if columns.is_of(row, target.brief.recording.as_deref()) {
                self.neighbours.see(&columns, row, target);
                self.uses.see(&columns, row, target);
                self.breaks.see(&columns, row, target);
                self.holds.see(&columns, row, target);
            }
        }
        Ok(())
    }

    /// Adds slices of the server's time; those of other operations are ignored.
    pub fn slices<'a>(&mut self, slices: impl IntoIterator<Item = &'a Slice>) {
        let brief = &self.target.row.brief;
        for slice in slices {
            if Some(slice.operation) == brief.operation
                && Some(&*slice.recording) == brief.recording.as_deref()
            {
                self.slices.see(slice);
            }
        }
    }

    /// The explanation.
    pub fn finish(self) -> Explanation {
        let Found { row: target, found_by, member } = self.target;
        let is_answered = target.response_start.is_some();
        let (neighbours, behind) = self.neighbours.finish(is_answered);
        let breaks = self.breaks.finish(&target);
        let holders = self.holds.finish(&target);
        let steps = steps::steps(&target, behind, &self.slices, &breaks.breaks);
        let likes = self.likes.finish();
        let (reason, reason_ns) = reason(&target, &steps, &breaks, holders.held_ns);
        let reason_share = match (reason_ns, target.brief.elapsed_ns) {
            (Some(ns), Some(elapsed)) if elapsed > 0 => Some(ns as f64 / elapsed as f64),
            _ => None,
        };
        let timer = likes::timer(&target, (reason, reason_ns), &likes, &steps);
        let open = self.uses.finish(&target);
        let filter = filter(&target, &neighbours.shown, &breaks.breaks);
        Explanation {
            found_by,
            reason,
            reason_share,
            operation: subject(target, member, breaks.path),
            steps,
            breaks: breaks.breaks,
            breaks_count: breaks.count,
            breaks_waited_ns: breaks.waited_ns,
            waiters: breaks.waiters,
            holders: holders.holders,
            holders_count: holders.count,
            neighbours,
            open,
            likes,
            timer,
            filter,
            left_out: breaks.left_out + holders.left_out,
        }
    }
}

fn subject(target: Row, member: Option<u16>, path: Option<String>) -> Subject {
    let zero = target.zero.unwrap_or(0);
    let pending_at_ns = target.pending_at.map(|at| at.saturating_sub(zero));
    let mut brief = target.brief;
    brief.path = brief.path.or(path);
    Subject {
        brief,
        start_ns: target.zero,
        client_port: target.client_port,
        server: target.server,
        server_port: target.server_port,
        user: target.user,
        share: target.share,
        encrypted: target.encrypted,
        pending_at_ns,
        compound_size: target.compound_size.filter(|size| *size > 1),
        compound_member: member,
    }
}

/// What took most of the operation's time, and how long that was.
fn reason(
    target: &Row,
    steps: &[Step],
    breaks: &BreaksOfFile,
    held_ns: i64,
) -> (Reason, Option<i64>) {
    let Some(elapsed) = target.brief.elapsed_ns else {
        return match () {
            () if target.is_break() => (Reason::Break, None),
            () if target.request_start.is_none() || target.response_start.is_some() => {
                (Reason::NoTime, None)
            }
            () => (Reason::NoReply, None),
        };
    };
    if breaks.waited_ns > elapsed / 2
        && let Some(one) = breaks.breaks.iter().max_by_key(|one| one.waited_ns)
    {
        let reason = match &one.answer {
            Some(answer) if answer.at_ns <= elapsed => Reason::BreakAcknowledged,
            _ => Reason::BreakNotAcknowledged,
        };
        return (reason, Some(breaks.waited_ns));
    }
    if held_ns > elapsed / 2 {
        return (Reason::Holder, Some(held_ns));
    }
    if target.brief.waits {
        return (Reason::WaitsByDesign, Some(elapsed));
    }
    let whole = steps.iter().filter(|step| !step.is_part);
    let longest = whole.filter_map(|step| Some((step.duration_ns?, step.kind)));
    // The first among equals.
    let longest = longest.rev().max_by_key(|(ns, _)| *ns);
    let Some((ns, kind)) = longest else { return (Reason::NoTime, None) };
    // An estimate that is as uncertain as the whole does not separate server and network.
    let is_certain = target.server_error_ns.is_none_or(|error| error <= elapsed / 2);
    if matches!(kind, StepKind::Server | StepKind::Network) && !is_certain {
        let both =
            steps.iter().filter(|step| matches!(step.kind, StepKind::Server | StepKind::Network));
        return (Reason::ServerOrNetwork, Some(both.filter_map(|step| step.duration_ns).sum()));
    }
    let reason = match kind {
        StepKind::RequestTransfer => Reason::RequestTransfer,
        StepKind::EarlierRequests => Reason::EarlierRequests,
        StepKind::OtherReplies => Reason::OtherReplies,
        StepKind::Network => Reason::Network,
        StepKind::Loss => Reason::Loss,
        StepKind::ResponseTransfer => Reason::ResponseTransfer,
        StepKind::ServerOrNetwork => Reason::ServerOrNetwork,
        StepKind::Server
        | StepKind::Break
        | StepKind::Slice
        | StepKind::Unexplained
        | StepKind::Interim => Reason::Server,
    };
    (reason, Some(ns))
}

/// A Wireshark display filter for the frames of the operation and its neighbours on their connection,
/// and for the breaks wherever they are. Tokens instead of addresses are left out.
fn filter(target: &Row, neighbours: &[Brief], breaks: &[Break]) -> Option<String> {
    let brief = &target.brief;
    let of_file = |other: &&Brief| other.capture_file == brief.capture_file;
    let near = neighbours.iter().filter(of_file).chain([brief]);
    let frames = near.flat_map(|brief| [brief.request_frame, brief.response_frame]).flatten();
    let own_breaks = breaks.iter().filter(|one| one.is_same_connection);
    let answers = |one: &Break| {
        [one.frame, one.answer.as_ref().and_then(|answer| answer.frame)].into_iter().flatten()
    };
    let frames: Vec<u64> = frames.chain(own_breaks.flat_map(answers)).collect();
    let (first, last) = (frames.iter().min()?, frames.iter().max()?);
    let mut ends = Vec::new();
    match brief.client.as_deref().map(str::parse) {
        Some(Ok(IpAddr::V4(client))) => ends.push(format!("ip.addr == {client}")),
        Some(Ok(IpAddr::V6(client))) => ends.push(format!("ipv6.addr == {client}")),
        _ => {}
    }
    ends.extend(target.client_port.map(|port| format!("tcp.port == {port}")));
    ends.push(format!("frame.number >= {first} && frame.number <= {last}"));
    let mut filter = ends.join(" && ");
    let mut others: Vec<u64> =
        breaks.iter().filter(|one| !one.is_same_connection).flat_map(answers).collect();
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(u64::to_string).collect();
        filter = format!("({filter}) || frame.number in {{{}}}", others.join(", "));
    }
    Some(filter)
}

//! How unusual the explained operation is among operations of its kind, and whether its duration is a
//! constant that others have, too.
//!
//! Constants: delayed acknowledgements of 40 ms (Linux) and 200 ms (Windows), RFC 1122 section 4.2.3.2;
//! retransmissions after 200 ms, 1 s and 3 s, RFC 6298 section 2; five retries of 200 ms after a sharing
//! violation (Windows: SharingViolationRetries, SharingViolationDelay); oplock breaks of 30 s (Samba) and
//! 35 s (MS-SMB2 section 3.3.2.1); name services that do not answer: 5 s for each try (resolv.conf(5)).

use smbscope_tables::command_class::CommandClass;
use smbscope_wire::status::Status;

use super::data::{Likes, Reason, Step, StepKind, Timer};
use super::row::{Columns, Row, duration};
use crate::stats::latency::{Grain, Latency, Sample};

/// Fewer operations have no percentiles.
const PERCENTILES_MIN: u64 = 10;
/// Shorter durations are not those of timers.
const TIMER_MIN_NS: i64 = 30_000_000;
/// From here on, a timer is suspected even if the round trip is unknown.
const TIMER_SURE_NS: i64 = 1_000_000_000;
/// As many other operations as have to agree.
const TIMER_OTHERS: u64 = 2;
/// Longer messages are more than two segments for another reason.
const SMALL_BYTES: u64 = 16 << 10;
const MS: i64 = 1_000_000;

/// Operations of the target's kind.
pub(super) struct LikeRows {
    command: Option<String>,
    detail: Option<String>,
    size: Option<u32>,
    elapsed_ns: Option<i64>,
    waits: bool,
    latency: Latency,
    slower: u64,
    same: u64,
    same_any: u64,
}

impl LikeRows {
    pub(super) fn new(target: &Row) -> LikeRows {
        let brief = &target.brief;
        LikeRows {
            command: brief.command.clone(),
            detail: brief.detail.clone(),
            size: size_class(target.class, target.requested_bytes.or(brief.bytes)),
            elapsed_ns: brief.elapsed_ns,
            waits: brief.waits,
            latency: Latency::new(Grain::Fine),
            slower: 0,
            same: 0,
            same_any: 0,
        }
    }

    pub(super) fn see(&mut self, columns: &Columns, row: usize) {
        let Some(elapsed_ns) = columns.elapsed_ns.get(row).map(duration) else { return };
        if columns.waits.is_set(row) != self.waits {
            return;
        }
        let is_same = self.elapsed_ns.is_some_and(|own| (elapsed_ns - own).abs() <= own / 100);
        self.same_any += u64::from(is_same);
        if columns.command.get(row) != self.command.as_deref()
            || columns.detail.get(row) != self.detail.as_deref()
        {
            return;
        }
        let bytes = columns.requested_bytes.get(row).or_else(|| columns.transferred_bytes.get(row));
        if self.size.is_some() && size_class(Some(columns.class(row)), bytes) != self.size {
            return;
        }
        self.latency.record(&Sample::new(elapsed_ns));
        self.same += u64::from(is_same);
        self.slower += u64::from(self.elapsed_ns.is_some_and(|own| elapsed_ns > own));
    }

    pub(super) fn finish(self) -> Likes {
        let distribution = self.latency.distribution(false);
        let has_percentiles = distribution.n >= PERCENTILES_MIN;
        let p50_ns = distribution.p50_ns.filter(|_| has_percentiles);
        let times_median = match (self.elapsed_ns, p50_ns) {
            (Some(own), Some(median)) if median > 0 => Some(own as f64 / median as f64),
            _ => None,
        };
        let own = u64::from(self.elapsed_ns.is_some());
        Likes {
            command: self.command,
            detail: self.detail,
            from_bytes: self.size.map(|class| 1 << class),
            below_bytes: self.size.map(|class| 2 << class.min(62)),
            operations: distribution.n,
            p50_ns,
            p95_ns: distribution.p95_ns.filter(|_| has_percentiles),
            max_ns: distribution.max_ns,
            slower: self.slower,
            times_median,
            same_duration: self.same.saturating_sub(own),
            same_duration_any: self.same_any.saturating_sub(own),
        }
    }
}

/// The power of two of the size of a read or write.
fn size_class(class: Option<CommandClass>, bytes: Option<u64>) -> Option<u32> {
    match class {
        Some(CommandClass::Read | CommandClass::Write) => bytes?.checked_ilog2().or(Some(0)),
        _ => None,
    }
}

/// The timer that explains a duration: if others have the same one and neither distance nor bytes explain
/// it, or if a known constant fits what took its time.
pub(super) fn timer(
    target: &Row,
    (reason, reason_ns): (Reason, Option<i64>),
    likes: &Likes,
    steps: &[Step],
) -> Option<Timer> {
    let elapsed_ns = target.brief.elapsed_ns.filter(|ns| *ns >= TIMER_MIN_NS)?;
    if target.brief.waits {
        return None;
    }
    if let Some((constant_ns, name)) = known(target, reason, reason_ns.unwrap_or(elapsed_ns)) {
        let operations = likes.same_duration_any;
        return Some(Timer { constant_ns, name: Some(name), operations });
    }
    let explained: i64 = steps
        .iter()
        .filter(|step| !step.is_part && is_network(step.kind))
        .filter_map(|step| step.duration_ns)
        .sum();
    let is_constant = likes.same_duration_any >= TIMER_OTHERS
        && explained < elapsed_ns / 10
        && (target.server_ns.is_some() || elapsed_ns >= TIMER_SURE_NS);
    let operations = likes.same_duration_any;
    is_constant.then_some(Timer { constant_ns: elapsed_ns, name: None, operations })
}

/// Whether distance, bytes or other requests determine the duration of a step.
fn is_network(kind: StepKind) -> bool {
    matches!(
        kind,
        StepKind::Network
            | StepKind::RequestTransfer
            | StepKind::ResponseTransfer
            | StepKind::EarlierRequests
            | StepKind::OtherReplies
    )
}

/// A known constant that `ns`, what took most of the time, is just above, if what else was seen fits.
fn known(target: &Row, reason: Reason, ns: i64) -> Option<(i64, &'static str)> {
    let is_setup = matches!(target.class, Some(CommandClass::Session));
    let is_break = matches!(reason, Reason::BreakNotAcknowledged);
    let is_server = matches!(reason, Reason::Server | Reason::ServerOrNetwork);
    let is_violation = is_server && target.status_code == Some(Status::SHARING_VIOLATION.0);
    let is_name = is_server && is_setup;
    // Two segments, the second sent after the acknowledgement of the first.
    let is_small = target.brief.bytes.is_none_or(|bytes| bytes <= SMALL_BYTES);
    let is_parts = is_small && matches!(reason, Reason::RequestTransfer | Reason::ResponseTransfer);
    let is_loss = matches!(reason, Reason::Loss);
    let constants = [
        (is_break, 30_000, "the server's timeout of oplock breaks (30 s in Samba)"),
        (is_break, 35_000, "the server's timeout of oplock and lease breaks (35 s in Windows)"),
        (
            is_violation,
            1_000,
            "the server's retries after a sharing violation (5 x 200 ms in Windows)",
        ),
        (is_loss, 200, "a retransmission timeout"),
        (is_loss, 1_000, "a retransmission timeout"),
        (is_loss, 3_000, "a retransmission timeout"),
        (is_parts, 40, "a delayed acknowledgement between two segments (Linux)"),
        (is_parts, 200, "a delayed acknowledgement between two segments (Windows)"),
        (is_name, 5_000, "one try of a name service that does not answer"),
        (is_name, 10_000, "two tries of 5 s of a name service that does not answer"),
        (is_name, 15_000, "three tries of 5 s of a name service that does not answer"),
    ];
    let fits = constants.into_iter().find(|(fits, ms, _)| {
        let constant = ms * MS;
        let most = constant + constant / 50 + 2 * MS;
        *fits && (constant - constant / 200..=most).contains(&ns)
    })?;
    Some((fits.1 * MS, fits.2))
}

//! Data that is stable before the reply, and what that costs.
//!
//! A Flush makes data stable, and so does a write-through write: by its own flag or by that of its open
//! (MS-SMB2 section 2.2.21, 2.2.13), or on a continuously available share. The cost is learnt from the
//! recording: the server's flush slices, or otherwise how much longer a Flush takes than requests that make nothing
//! stable: the quicker of queries and plain writes, of which there must be several.
//! With a second server, the reply to a stable operation waits until that server has the data too: longer
//! by the round trip and the transfer than for the local log alone, if both logs are equally fast.

use smbscope_tables::slice::Kind;

use super::Map;
use super::behind::Behind;
use super::blocks::{Fit, STREAMS_MAX};
use super::in_order::InOrder;
use super::network::{Calendar, SEGMENT_BYTES};
use super::request::{Request, duration, times};
use super::role::Role;
use super::tcp::HEADERS_BYTES;
use crate::predict::plan::{Direction, Plan, Replication};
use crate::stats::latency::{Grain, Latency, Sample};

/// Fewest requests of a kind that show how long a request takes that makes nothing stable.
const SMALL_MIN: u64 = 10;

/// What making bytes stable costs the server, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StableCosts {
    /// Number of recorded operations that had this cost.
    pub n: u64,
    /// Median.
    pub median_ns: f64,
    /// A straight line over the number of bytes, where these differ: the cost at none, and of each byte.
    pub line: Option<(f64, f64)>,
    /// Median of how long a write waits for a thread. A write-through write waits twice: for the write and for the
    /// flush.
    pub hand_over_ns: f64,
    /// Cost of a Flush that has nothing to do: the median of the recorded ones, or otherwise that of a thread for the
    /// smallest write.
    pub nothing_ns: f64,
}

impl StableCosts {
    /// The cost for these bytes and requests; 0 requests for the pieces of a larger one.
    fn cost(&self, bytes: u64, requests: u64) -> i64 {
        let ns = match self.line {
            Some((once, byte)) => once * requests as f64 + byte * bytes as f64,
            None => self.median_ns * requests as f64,
        };
        duration(ns as i64)
    }
}

/// Data that an asynchronous second server does not have yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtRisk {
    /// Bytes written.
    pub written: u64,
    /// From the first write to the last one, ns.
    pub writing_ns: i64,
    /// From the first write to the last one's arrival, ns.
    pub lasted_ns: i64,
    /// Largest amount in flight, bytes.
    pub most: u64,
    /// Mean amount in flight over that time, bytes.
    pub mean: f64,
    /// Longest time that data was in flight, ns: the worst recovery point.
    pub longest_ns: i64,
    /// Amount in flight that is not exceeded during half of that time, and during 99 % of it, bytes.
    pub bytes_p50: u64,
    /// See [`AtRisk::bytes_p50`].
    pub bytes_p99: u64,
    /// How old the oldest data in flight is during half of that time at most, and during 99 % of it, ns.
    pub recovery_ns_p50: i64,
    /// See [`AtRisk::recovery_ns_p50`].
    pub recovery_ns_p99: i64,
}

/// One open.
#[derive(Clone, Copy, Default)]
struct Open {
    is_through: bool,
    /// Bytes that are not stable yet: recorded, predicted.
    dirty: (u64, u64),
}

/// How the cost of stability changes for an operation, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DurabilityChange {
    /// The server's own log: what is removed, and what is added.
    pub(super) flush: (i64, i64),
    /// Likewise for waiting for the thread that writes it.
    pub(super) hand_over: (i64, i64),
    /// Wait for the second server.
    pub(super) replica_ns: i64,
}

fn record(into: &mut Option<Latency>, ns: i64) {
    into.get_or_insert_with(|| Latency::new(Grain::Fine)).record(&Sample::new(ns));
}

/// How long the link carries these bytes.
fn transfer_ns(to: &Replication, bytes: u64) -> i64 {
    let headers = (bytes as f64 / SEGMENT_BYTES).ceil() * HEADERS_BYTES;
    to.bandwidth_bits.map_or(0, |bits| ((bytes as f64 + headers) * 8e9 / bits) as i64)
}

/// All opens.
#[derive(Default)]
pub(super) struct Durability {
    opens: Map<(u32, u64), Open>,
    costs: Fit,
    all: Option<Latency>,
    /// Requests that make nothing stable: queries and FSCTLs, and plain writes.
    small: [Option<Latency>; 2],
    hand_overs: Option<Latency>,
    /// System calls of writes, by the bytes that they moved.
    calls: Fit,
    /// Flushes with nothing to do.
    nothing: Option<Latency>,
    has_slices: bool,
    /// The link between the servers.
    line: Calendar,
    /// Writes on their way to an asynchronous second server, and when the link is free after them.
    sent: InOrder<u64>,
    free_at: Option<i64>,
    behind: Behind,
    byte_ns: f64,
    first: Option<i64>,
    last: i64,
    at_risk: AtRisk,
    /// Number of stable operations.
    pub(super) asked: u64,
}

impl Durability {
    /// Adds an operation that is sent at `then` as this many requests (none for a piece of the one before); `local_ns` is
    /// its time without the network. Returns what changes at the server.
    pub(super) fn change(
        &mut self,
        plan: &Plan,
        stable: &StableCosts,
        request: &Request,
        local_ns: i64,
        (then, requests): (i64, u64),
    ) -> DurabilityChange {
        let Some(handle) = request.handle else { return DurabilityChange::default() };
        if self.opens.len() >= STREAMS_MAX && !self.opens.contains_key(&handle) {
            self.opens.clear();
        }
        let slice_ns = request.slices[Kind::Flush as usize];
        self.has_slices |= slice_ns > 0;
        let (is_write, is_stable_before) = match request.role {
            Role::Create => {
                if request.is_through {
                    self.opens.insert(handle, Open { is_through: true, dirty: (0, 0) });
                }
                return DurabilityChange::default();
            }
            Role::Close => {
                self.opens.remove(&handle);
                return DurabilityChange::default();
            }
            Role::Flush => (false, true),
            Role::Move(Direction::Write) => {
                let is_through = self.opens.get(&handle).is_some_and(|open| open.is_through);
                (true, request.is_through || is_through)
            }
            Role::Other => {
                record(&mut self.small[0], local_ns);
                return DurabilityChange::default();
            }
            _ => return DurabilityChange::default(),
        };
        let open = self.opens.entry(handle).or_default();
        let bytes = if is_write { request.transferred } else { 0 };
        let dirty = (open.dirty.0.saturating_add(bytes), open.dirty.1.saturating_add(bytes));
        let is_stable_after = match plan.write_through {
            Some(is_through) if is_write => is_through,
            _ => is_stable_before,
        };
        open.dirty =
            (if is_stable_before { 0 } else { dirty.0 }, if is_stable_after { 0 } else { dirty.1 });
        let mut extra = DurabilityChange::default();
        let waited_ns = request.slices[Kind::IoWait as usize];
        // A write-through write waits for a thread twice.
        let hand_over_ns = if is_write && is_stable_before { waited_ns / 2 } else { waited_ns };
        if is_write && waited_ns > 0 {
            record(&mut self.hand_overs, hand_over_ns);
            self.calls.add(bytes, request.slices[Kind::Io as usize]);
        }
        self.asked += u64::from(is_stable_before);
        if bytes > 0 && !is_stable_before {
            record(&mut self.small[1], local_ns);
        }
        if is_stable_before {
            // Without slices, a write's own time and that of making it stable are not separable, and a Flush with
            // nothing to do shows nothing.
            if dirty.0 > 0 && (slice_ns > 0 || !(is_write || self.has_slices)) {
                let ns = if slice_ns > 0 { slice_ns } else { local_ns };
                self.costs.add(dirty.0, ns);
                record(&mut self.all, ns);
            } else if slice_ns > 0 {
                record(&mut self.nothing, slice_ns);
            }
        }
        if plan.write_through.is_some() && (is_stable_before, dirty.0) != (is_stable_after, dirty.1)
        {
            let today = match (is_stable_before, slice_ns) {
                (false, _) => 0,
                (true, ns @ 1..) => ns,
                (true, _) => stable.cost(dirty.0, 1),
            };
            let after = match is_stable_after {
                false => 0,
                true if is_write || dirty.1 > 0 => stable.cost(dirty.1, requests),
                true => duration(stable.nothing_ns as i64),
            };
            // Faster storage leaves a share of the slice.
            let share = plan.slices[Kind::Flush as usize];
            extra.flush = (times(today, share), times(after, share));
            if is_write {
                let after_ns = stable.hand_over_ns * requests as f64;
                let after = if is_stable_after { duration(after_ns as i64) } else { 0 };
                extra.hand_over = (if is_stable_before { hand_over_ns } else { 0 }, after);
            }
        }
        if let Some(replication) = plan.replication {
            let replica_ns =
                self.replicate(&replication, (then, requests), bytes, is_stable_after, dirty.1);
            // An answer that does not wait for the second log can come while the first one is still written.
            let own_ns = match (is_write, slice_ns) {
                (_, ns @ 1..) => ns,
                (true, _) => 0,
                (false, _) => local_ns,
            };
            extra.replica_ns =
                if replication.is_on_arrival { (replica_ns - own_ns).max(0) } else { replica_ns };
        }
        extra
    }

    /// Sends written data to the second server; returns how long the reply waits for it.
    fn replicate(
        &mut self,
        to: &Replication,
        (then, requests): (i64, u64),
        bytes: u64,
        is_stable: bool,
        dirty: u64,
    ) -> i64 {
        let ns = |bytes: u64| transfer_ns(to, bytes);
        if to.is_sync {
            // Data that need not be stable is sent too, and occupies the link.
            let waited = self.line.take(then, ns(bytes));
            // A Flush waits for the data that is on the link before it.
            let transfer = match bytes {
                0 if dirty > 0 => self.line.take(then, 1),
                0 => return 0,
                bytes => waited + ns(bytes),
            };
            let distance = to.rtt_ns.saturating_mul(requests as i64);
            return if is_stable { duration(distance.saturating_add(transfer)) } else { 0 };
        }
        if bytes == 0 {
            return 0;
        }
        self.sent.add(then, bytes);
        self.arrive(to, false);
        0
    }

    /// Brings what was sent to the second server, one write after the other, as far as no earlier one can come.
    fn arrive(&mut self, to: &Replication, is_end: bool) {
        while let Some((then, bytes)) = self.sent.next(is_end) {
            let begin = self.free_at.map_or(then, |free| free.max(then));
            let end = begin.saturating_add(transfer_ns(to, bytes));
            self.free_at = Some(end);
            self.arrived(then, end.saturating_add(to.rtt_ns / 2), bytes);
        }
    }

    fn arrived(&mut self, then: i64, arrives: i64, bytes: u64) {
        let took = arrives.saturating_sub(then);
        self.behind.add(then, arrives, bytes);
        let risk = &mut self.at_risk;
        risk.written = risk.written.saturating_add(bytes);
        risk.longest_ns = risk.longest_ns.max(took);
        self.byte_ns += bytes as f64 * took as f64;
        let first = self.first.map_or(then, |first| first.min(then));
        self.first = Some(first);
        risk.writing_ns = risk.writing_ns.max(then.saturating_sub(first));
        self.last = self.last.max(arrives);
    }

    /// The learnt costs.
    pub(super) fn learnt(&self) -> StableCosts {
        let median = |of: &Option<Latency>| {
            of.as_ref().and_then(|all| all.distribution(false).p50_ns).unwrap_or(0) as f64
        };
        let n = self.all.as_ref().map_or(0, |all| all.distribution(false).n);
        // A Flush is a small request plus the work of making data stable. A few queries may be slow ones, and a recording
        // without queries still has writes: what is subtracted is the quicker of both, so that the cost does not vanish.
        let small = self.small.iter().filter_map(|all| {
            let of = all.as_ref()?.distribution(false);
            (of.n >= SMALL_MIN).then_some(of.p50_ns? as f64)
        });
        let small_ns = if self.has_slices { None } else { small.reduce(f64::min) };
        let small_ns = small_ns.unwrap_or(0.0);
        let line = self.costs.line().map(|(once, byte)| ((once - small_ns).max(0.0), byte));
        let median_ns = (median(&self.all) - small_ns).max(0.0);
        let hand_over_ns = median(&self.hand_overs);
        let call_ns = self.calls.line().map_or(0.0, |(once, _)| once);
        let nothing_ns = match &self.nothing {
            Some(_) => median(&self.nothing),
            None => hand_over_ns + call_ns,
        };
        StableCosts { n, median_ns, line, hand_over_ns, nothing_ns: nothing_ns.min(median_ns) }
    }

    /// What was in transit to an asynchronous second server, after the last operation.
    pub(super) fn at_risk(&mut self, to: Option<&Replication>) -> Option<AtRisk> {
        self.arrive(to?, true);
        let first = self.first?;
        let lasted_ns = self.last.saturating_sub(first);
        let mean = if lasted_ns > 0 { self.byte_ns / lasted_ns as f64 } else { 0.0 };
        let found = self.behind.finish();
        Some(AtRisk {
            lasted_ns,
            mean,
            most: found.most,
            bytes_p50: found.bytes[0],
            bytes_p99: found.bytes[1],
            recovery_ns_p50: found.age_ns[0].min(self.at_risk.longest_ns),
            recovery_ns_p99: found.age_ns[1].min(self.at_risk.longest_ns),
            ..self.at_risk
        })
    }
}

//! Time at the server: its queue, its file system, stable storage, crypto, locks, logons.
//!
//! With slices (`smbscope record`) each part is measured. From outside, the time of a Flush or a
//! write-through write is that of stable storage; of other operations, time that grows with the
//! requests in flight is waiting, and the rest is the file system or the CPU (J. D. C. Little
//! 1961: a longer queue at the same rate means a longer time).
//!
//! One observation for six troubles, because the same row decides between them.

use smbscope_tables::slice::Kind;

use super::attribution::Attribution;
use super::candidate::Candidate;
use super::dependence::Dependence;
use super::detector::{Context, Detector};
use super::findings::{
    lock_contention, protection, server_queueing, slow_filesystem, slow_flush, slow_logon,
};
use super::operation::{Act, Operation};
use crate::stats::mean::Mean;

/// What slices are based on.
pub(super) const MEASURED: &str = "measured inside the server";

/// What a server needs for an operation on cached data, ns: Samba takes 0.07 to 0.19 ms.
const QUICK_NS: i64 = 500_000;
/// The same for the calls of a file system, ns.
const QUICK_CALLS_NS: i64 = 100_000;
/// What a log in non-volatile memory takes, ns.
const QUICK_FLUSH_NS: i64 = 200_000;
/// What a logon takes, ns: Samba does 310 per second.
const QUICK_LOGON_NS: i64 = 5_000_000;
/// From this round trip on, sending a write takes longer than the server needs for it, ns.
const FAR_NS: i64 = 1_000_000;
/// Time for each byte, ns: a server moves at least a gigabyte per second.
const BYTE_NS: i64 = 1;
/// Levels of requests in flight: 0, 1, 2 to 3, 4 to 7 ...
const LEVELS: usize = 8;
/// Most operations for which the requests in flight are counted.
const SERVED_MAX: usize = 50_000;
/// Fewest operations of a level to judge it by.
const OPERATIONS_MIN: u64 = 20;

/// What a server needs for an operation of that many bytes on cached data, ns.
pub(super) fn quick_ns(op: &Operation) -> i64 {
    QUICK_NS + BYTE_NS * op.bytes as i64
}

/// Time at the server by its part.
#[derive(Default)]
pub(super) struct ServerTime {
    queue: Attribution,
    filesystem: Attribution,
    flush: Attribution,
    crypto: Attribution,
    locks: Attribution,
    logons: Attribution,
    /// Whether any of them was recorded inside the server.
    logons_inside: bool,
    logon_longest_ns: i64,
    /// Operations without slices.
    flushes_from_outside: Attribution,
    slow_from_outside: Attribution,
    dependence: Dependence,
    /// The first operations, which show whether time grows with the requests in flight.
    served: Vec<Served>,
}

/// An operation that the server worked on.
struct Served {
    /// Recording and server.
    server: (u32, u32),
    start: i64,
    end: i64,
    /// What it did and how long the server took, unless flushes, locks or logons explain that.
    judged: Option<(Act, i64)>,
}

/// Logarithms of the time at the server by act and level, so that a few long operations do not
/// dominate.
type Levels = [[Mean; LEVELS]; Act::ALL.len()];

/// The levels of operations: how many requests of all connections the server had when each arrived.
fn levels(served: &[Served]) -> Levels {
    let mut begun: Vec<_> = served.iter().map(|one| (one.server, one.start)).collect();
    let mut ended: Vec<_> = served.iter().map(|one| (one.server, one.end)).collect();
    begun.sort_unstable();
    ended.sort_unstable();
    let mut levels = Levels::default();
    for one in served {
        let Some((act, server_ns)) = one.judged else { continue };
        let at = (one.server, one.start);
        let begun_before = begun.partition_point(|begin| *begin < at);
        let ended_before = ended.partition_point(|end| *end <= at);
        // Both include the operations of servers with a lower number.
        let in_flight = begun_before.saturating_sub(ended_before) as u32;
        let level = (u32::BITS - in_flight.leading_zeros()) as usize;
        let level = &mut levels[act as usize][level.min(LEVELS - 1)];
        level.add((server_ns as f64).ln());
    }
    levels
}

/// How the server's time grows with the requests in flight.
struct Growth {
    /// Share of the server's time that is only there with several requests in flight.
    share: f64,
    /// The longest usual time over that of requests alone.
    times_max: f64,
}

impl Detector for ServerTime {
    fn see(&mut self, op: &Operation) {
        let has_slices = op.has_slices
            && [
                (&mut self.queue, [Kind::Queue].as_slice(), 0),
                (
                    &mut self.filesystem,
                    &[Kind::Filesystem, Kind::IoWait, Kind::Io],
                    QUICK_CALLS_NS + BYTE_NS * op.bytes as i64,
                ),
                (&mut self.flush, &[Kind::Flush], QUICK_FLUSH_NS),
                (&mut self.crypto, &[Kind::CryptoIn, Kind::CryptoOut], 0),
                (&mut self.locks, &[Kind::LockWait], 0),
            ]
            .into_iter()
            .fold(false, |any, (sums, kinds, quick_ns)| {
                add_slices(sums, op, kinds, quick_ns) || any
            });
        if !op.is_timed {
            return;
        }
        let Some((server_ns, network_ns)) = op.split() else { return };
        // A pipe leads to a program, not to a file system.
        let is_pipe = op.is_pipe;
        let is_through = op.columns.write_through.is_set(op.row);
        let is_flush = op.act == Act::Flush || op.act == Act::Write && is_through;
        let waits = op.waits_for_others();
        // A client that records itself does not see when the last byte of a write has left.
        let is_sending = op.act == Act::Write
            && op.columns.scenario_run.get(op.row).is_some()
            && network_ns >= FAR_NS;
        let is_judged = !is_pipe
            && !is_sending
            && !is_flush
            && !waits
            && op.act != Act::Logon
            && op.explained.is_none();
        if let Some(start) = op.start
            && self.served.len() < SERVED_MAX
        {
            let end = start.saturating_add(op.elapsed_ns);
            let judged = is_judged.then_some((op.act, server_ns.max(1)));
            self.served.push(Served { server: (op.recording, op.server), start, end, judged });
        }
        // Users of a load run log on before its window and off after it.
        if op.act == Act::Logon && op.explained.is_none() {
            self.logons.add(op, op.of_busy(server_ns - QUICK_LOGON_NS));
            self.logon_longest_ns = self.logon_longest_ns.max(server_ns);
            self.logons_inside |= has_slices;
        }
        if has_slices {
            return;
        }
        if is_flush && !is_pipe {
            self.flushes_from_outside.add(op, op.of_busy(server_ns - QUICK_FLUSH_NS));
        }
        if !is_judged {
            return;
        }
        let quick_ns = quick_ns(op);
        // While other replies arrive on the connection, the client does not wait for the server.
        let alone_ns = server_ns.min(op.silent_ns);
        self.dependence.add(op, alone_ns, alone_ns - quick_ns);
        if alone_ns > quick_ns {
            let time = (alone_ns, alone_ns - quick_ns);
            self.slow_from_outside.add_stall(op, 0, op.silent_from(alone_ns), time);
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let slow = match (self.growth(), self.slow_from_outside) {
            (None, slow) => self.dependence.judge(slow_filesystem::undecided(slow)),
            (Some(growth), slow) => {
                let candidate = if growth.share > 0.5 {
                    server_queueing::from_outside(slow)
                } else {
                    self.dependence.judge(slow_filesystem::from_outside(slow))
                };
                candidate.with_figures([
                    (
                        "share_that_grows_with_requests_in_flight",
                        growth.share,
                        "share",
                        "{} of the time grows with the requests in flight",
                    ),
                    (
                        "times_as_long_with_most_in_flight",
                        growth.times_max,
                        "",
                        "{} times as long with most in flight",
                    ),
                ])
            }
        };
        vec![
            server_queueing::measured(self.queue),
            slow_filesystem::measured(self.filesystem),
            slow_flush::measured(self.flush),
            protection::measured(self.crypto),
            lock_contention::measured(self.locks),
            slow_logon::finish(self.logons, self.logons_inside, self.logon_longest_ns),
            slow_flush::from_outside(self.flushes_from_outside),
            slow,
        ]
    }
}

impl ServerTime {
    /// None if too few requests were alone, or too few in parallel.
    fn growth(&self) -> Option<Growth> {
        let usual = |level: &Mean| level.mean().exp();
        let (mut more, mut all, mut times_max) = (0.0, 0.0, 1.0_f64);
        let mut is_known = false;
        for levels in &levels(&self.served) {
            let (alone, parallel) = levels.split_at(1);
            let Some(base) = alone.first().filter(|base| base.n >= OPERATIONS_MIN) else {
                continue;
            };
            for level in parallel.iter().filter(|level| level.n >= OPERATIONS_MIN) {
                is_known = true;
                more += (usual(level) - usual(base)).max(0.0) * level.n as f64;
                times_max = times_max.max(usual(level) / usual(base));
            }
            all += levels.iter().map(|level| usual(level) * level.n as f64).sum::<f64>();
        }
        (is_known && all > 0.0).then_some(Growth { share: more / all, times_max })
    }
}

/// Adds an operation's slices of these kinds; whether it has any.
fn add_slices(sums: &mut Attribution, op: &Operation, kinds: &[Kind], quick_ns: i64) -> bool {
    let known = kinds.iter().filter_map(|kind| op.slice(*kind));
    let Some(ns) = known.reduce(i64::saturating_add) else { return false };
    let ns = ns - quick_ns;
    if ns > 0 {
        sums.add(op, op.of_busy(ns));
    }
    true
}

//! Time at the server: waiting for it, its file system, making bytes stable, crypto, locks.
//!
//! With slices (`smbscope record`) each is measured. From outside, what a Flush or a write-through write takes
//! is that; of other operations, time that grows with the requests in flight is waiting, and what does not is
//! the file system or the processor (J. D. C. Little 1961: a longer queue at the same rate is a longer time).

use smbscope_tables::slice::Kind;

use super::attribution::Gathered;
use super::data::{Confidence, Figure, Trouble};
use super::operation::{Act, Seen};
use super::{Found, finding};
use crate::stats::mean::Mean;

/// What a server that has it in memory takes for an operation, ns: Samba takes 0.07 to 0.19 ms.
const QUICK_NS: i64 = 500_000;
/// The same of the calls of a file system, ns.
const QUICK_CALLS_NS: i64 = 100_000;
/// What a log in non-volatile memory takes, ns.
const QUICK_FLUSH_NS: i64 = 200_000;
/// What a logon takes, ns: Samba does 310 in a second.
const QUICK_LOGON_NS: i64 = 5_000_000;
/// A server moves a gigabyte in a second at least, ns for a byte.
const BYTE_NS: i64 = 1;
/// Levels of requests in flight: 0, 1, 2 to 3, 4 to 7 ...
const LEVELS: usize = 8;
/// Operations of which the requests in flight are counted.
const SERVED_MAX: usize = 200_000;
/// Operations of a level without which nothing is said of it.
const LEAST: u64 = 20;

/// All of it.
#[derive(Default)]
pub(super) struct Server {
    queue: Gathered,
    filesystem: Gathered,
    flush: Gathered,
    crypto: Gathered,
    locks: Gathered,
    logons: Gathered,
    /// Whether any of them was seen from inside the server.
    logons_inside: bool,
    /// Without slices.
    flushes: Gathered,
    slow: Gathered,
    /// The first ones that show whether time grows with what is in flight.
    served: Vec<Served>,
}

/// An operation that the server worked on.
struct Served {
    /// Recording and server.
    of: (u32, u32),
    start: i64,
    end: i64,
    /// What it did, and how long the server took, where that is its file system's or the queue's.
    judged: Option<(Act, i64)>,
}

/// By act and level: logarithms of the time at the server, so that a few long ones say nothing of all.
type Levels = [[Mean; LEVELS]; Act::ALL.len()];

/// The levels of operations, by the requests of all connections that the server had when each came.
fn levels(served: &[Served]) -> Levels {
    let mut begun: Vec<_> = served.iter().map(|one| (one.of, one.start)).collect();
    let mut ended: Vec<_> = served.iter().map(|one| (one.of, one.end)).collect();
    begun.sort_unstable();
    ended.sort_unstable();
    let mut levels = Levels::default();
    for one in served {
        let Some((act, server_ns)) = one.judged else { continue };
        let at = (one.of, one.start);
        let before = begun.partition_point(|begin| *begin < at);
        let over = ended.partition_point(|end| *end <= at);
        // Other servers' are in both.
        let in_flight = before.saturating_sub(over) as u32;
        let level = (u32::BITS - in_flight.leading_zeros()) as usize;
        let level = &mut levels[act as usize][level.min(LEVELS - 1)];
        level.add((server_ns as f64).ln());
    }
    levels
}

impl Server {
    pub(super) fn see(&mut self, seen: &Seen) {
        let has_slices = [
            (&mut self.queue, [Kind::Queue].as_slice(), 0),
            (
                &mut self.filesystem,
                &[Kind::Filesystem, Kind::IoWait, Kind::Io],
                QUICK_CALLS_NS + BYTE_NS * seen.bytes as i64,
            ),
            (&mut self.flush, &[Kind::Flush], QUICK_FLUSH_NS),
            (&mut self.crypto, &[Kind::CryptoIn, Kind::CryptoOut], 0),
            (&mut self.locks, &[Kind::LockWait], 0),
        ]
        .into_iter()
        .fold(false, |any, (sums, kinds, quick_ns)| slices(sums, seen, kinds, quick_ns) || any);
        if !seen.is_timed {
            return;
        }
        let Some((server, _)) = seen.split() else { return };
        // What stands behind a pipe is a program, not a file system.
        let is_pipe = seen.share_name().is_some_and(|share| share.ends_with("IPC$"));
        let is_through = seen.columns.write_through.is_set(seen.row);
        let is_flush = seen.act == Act::Flush || seen.act == Act::Write && is_through;
        // An open that is answered later waits for others (conflicts.rs), a lock too.
        let waits = seen.columns.pending_at.get(seen.row).is_some() || seen.act == Act::Lock;
        let is_files = !is_pipe && !is_flush && !waits && seen.act != Act::Logon;
        if let Some(start) = seen.start
            && self.served.len() < SERVED_MAX
        {
            let end = start.saturating_add(seen.elapsed_ns);
            let judged = is_files.then_some((seen.act, server.max(1)));
            self.served.push(Served { of: (seen.recording, seen.server), start, end, judged });
        }
        if seen.act == Act::Logon {
            self.logons.add(seen, seen.of_busy(server - QUICK_LOGON_NS));
            self.logons_inside |= has_slices;
        }
        if has_slices {
            return;
        }
        if is_flush && !is_pipe {
            self.flushes.add(seen, seen.of_busy(server - QUICK_FLUSH_NS));
        }
        if !is_files {
            return;
        }
        let quick = QUICK_NS + BYTE_NS * seen.bytes as i64;
        // While replies of others arrive, nobody waits for the server.
        let alone = server.min(seen.silent_ns);
        if alone > quick {
            self.slow.add_stop(seen, 0, seen.silent_from(alone), (alone, alone - quick));
        }
    }

    /// What share of the server's time is there only where requests are in flight together; and how many
    /// times as long it is at most. None where too few were alone.
    fn growth(&self) -> Option<(f64, f64)> {
        let usual = |level: &Mean| level.mean().exp();
        let (mut more, mut all, mut most) = (0.0, 0.0, 1.0_f64);
        let mut is_known = false;
        for levels in &levels(&self.served) {
            let (alone, together) = levels.split_at(1);
            let Some(base) = alone.first().filter(|base| base.n >= LEAST) else { continue };
            for level in together.iter().filter(|level| level.n >= LEAST) {
                is_known = true;
                more += (usual(level) - usual(base)).max(0.0) * level.n as f64;
                most = most.max(usual(level) / usual(base));
            }
            all += levels.iter().map(|level| usual(level) * level.n as f64).sum::<f64>();
        }
        (is_known && all > 0.0).then_some((more / all, most))
    }

    pub(super) fn finish(self) -> Vec<Found> {
        let growth = self.growth();
        let Server { queue, filesystem, flush, crypto, locks, logons, flushes, slow, .. } = self;
        let waits = match self.logons_inside {
            true => {
                "the recorder inside the server measured it; it may itself wait for a domain controller"
            }
            false => "the server's time from outside; it may itself wait for a domain controller",
        };
        let measured = "the recorder inside the server measured it";
        let queueing = "Requests wait at the server before it begins to work on them";
        let storage = "The server's file system takes long";
        let stable = "Making written bytes stable takes long";
        let high = Confidence::High;
        let mut found = vec![
            finding(Trouble::ServerQueueing, queueing.to_owned(), queue, high, measured),
            finding(Trouble::SlowFilesystem, storage.to_owned(), filesystem, high, measured),
            finding(Trouble::SlowFlush, stable.to_owned(), flush, high, measured),
            finding(
                Trouble::Protection,
                "Signing and encryption take the server's time".to_owned(),
                crypto,
                high,
                measured,
            ),
            finding(
                Trouble::LockContention,
                "Operations wait at the server for locks or for other clients".to_owned(),
                locks,
                high,
                measured,
            ),
            finding(
                Trouble::SlowLogon,
                "Logging on, and connecting to shares, takes long".to_owned(),
                logons,
                Confidence::Medium,
                waits,
            ),
            finding(
                Trouble::SlowFlush,
                stable.to_owned(),
                flushes,
                Confidence::Medium,
                "the server's time of Flushes and of writes that ask for stable storage, from outside",
            ),
        ];
        let (trouble, what, confidence, because) = match growth {
            Some((share, _)) if share > 0.5 => (
                Trouble::ServerQueueing,
                "Requests wait at the server for each other",
                Confidence::Medium,
                "its time grows with the requests in flight",
            ),
            Some(_) => (
                Trouble::SlowFilesystem,
                "The server takes long, most likely its file system",
                Confidence::Medium,
                "its time does not grow with the requests in flight; from outside a slow processor looks alike",
            ),
            None => (
                Trouble::SlowFilesystem,
                "The server takes long: its file system, its processor, or requests of others before these",
                Confidence::Low,
                "requests never were both alone and together, so that waiting is not told from working: record \
                 inside the server (smbscope record)",
            ),
        };
        let mut outside = finding(trouble, what.to_owned(), slow, confidence, because);
        if let Some((share, most)) = growth {
            let figure = |name, value, unit| Figure { name, value, error: None, unit };
            outside.finding.figures.push(figure(
                "share_that_grows_with_requests_in_flight",
                share,
                "share",
            ));
            outside.finding.figures.push(figure("times_as_long_with_most_in_flight", most, ""));
        }
        found.push(outside);
        found
    }
}

/// Adds an operation's slices of these kinds; whether it has any.
fn slices(sums: &mut Gathered, seen: &Seen, kinds: &[Kind], quick_ns: i64) -> bool {
    let known = kinds.iter().filter_map(|kind| seen.slice(*kind));
    let Some(ns) = known.reduce(i64::saturating_add) else { return false };
    let ns = ns - quick_ns;
    if ns > 0 {
        sums.add(seen, seen.of_busy(ns));
    }
    true
}

//! Time at the server: waiting for it, its file system, making bytes stable, crypto, locks.
//!
//! With slices (`smbscope record`) each is measured. From outside, what a Flush or a write-through write takes
//! is that; of other operations, time that grows with the requests in flight is waiting, and what does not is
//! the file system or the processor (J. D. C. Little 1961: a longer queue at the same rate is a longer time).

use hashbrown::HashMap;
use smbscope_event::slice::Kind;

use super::culprits::Gathered;
use super::data::{Confidence, Figure, Finding, Trouble};
use super::operation::{Act, Seen};
use super::{Mean, finding};

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
/// Connections that are followed at once; beyond that all are forgotten.
const CONNECTIONS_MAX: usize = 65_536;
/// Operations of a level without which nothing is said of it.
const LEAST: u64 = 20;

/// One kind of slice.
#[derive(Default)]
struct Slices {
    gathered: Gathered,
    seen: u64,
}

/// All of it.
#[derive(Default)]
pub(super) struct Server {
    queue: Slices,
    filesystem: Slices,
    flush: Slices,
    crypto: Slices,
    locks: Slices,
    logons: Gathered,
    /// Without slices.
    flushes: Gathered,
    slow: Gathered,
    /// By connection: the end of the last reply.
    ends: HashMap<(u32, u64), i64, foldhash::fast::RandomState>,
    /// By act and level: logarithms of the time at the server, so that a few long ones say nothing of all.
    levels: [[Mean; LEVELS]; Act::ALL.len()],
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
        .fold(false, |any, (slices, kinds, quick_ns)| slices.see(seen, kinds, quick_ns) || any);
        if !seen.is_timed {
            return;
        }
        let silent = self.silent_ns(seen);
        let Some((server, _)) = seen.split() else { return };
        if seen.act == Act::Logon {
            self.logons.add(seen, seen.of_busy(server - QUICK_LOGON_NS));
        }
        // What stands behind a pipe is a program, not a file system.
        let is_pipe = seen.share().is_some_and(|share| share.ends_with("IPC$"));
        if has_slices || is_pipe || seen.act == Act::Logon {
            return;
        }
        let is_through = seen.columns.write_through.is_set(seen.row);
        if seen.act == Act::Flush || seen.act == Act::Write && is_through {
            self.flushes.add(seen, seen.of_busy(server - QUICK_FLUSH_NS));
            return;
        }
        // An open that is answered later waits for others (breaks.rs), a lock too.
        if seen.columns.pending_at.get(seen.row).is_some() || seen.act == Act::Lock {
            return;
        }
        if let Some(outstanding) = seen.columns.outstanding.get(seen.row) {
            let level = (u32::BITS - outstanding.leading_zeros()) as usize;
            let level = &mut self.levels[seen.act as usize][level.min(LEVELS - 1)];
            level.add((server.max(1) as f64).ln());
        }
        let quick = QUICK_NS + BYTE_NS * seen.bytes as i64;
        // While replies of others arrive, nobody waits for the server.
        let alone = server.min(silent);
        if alone > quick {
            self.slow.add(seen, alone - quick);
        }
    }

    /// How long its connection was silent before its reply, ns: with many requests in flight, the time of one
    /// is that of the replies before it.
    fn silent_ns(&mut self, seen: &Seen) -> i64 {
        if self.ends.len() >= CONNECTIONS_MAX {
            self.ends.clear();
        }
        let (Some(start), Some(turnaround)) = (seen.start, seen.turnaround_ns()) else { return 0 };
        let end = start.saturating_add(seen.elapsed_ns);
        let replied = end.saturating_sub(seen.reply_ns());
        let before = self.ends.insert((seen.recording, seen.connection), end);
        match before {
            Some(before) => replied.saturating_sub(before).clamp(0, turnaround),
            None => turnaround,
        }
    }

    /// What share of the server's time is there only where requests are in flight together; and how many
    /// times as long it is at most. None where too few were alone.
    fn growth(&self) -> Option<(f64, f64)> {
        let usual = |level: &Mean| level.mean().exp();
        let (mut more, mut all, mut most) = (0.0, 0.0, 1.0_f64);
        let mut is_known = false;
        for levels in &self.levels {
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

    pub(super) fn finish(self) -> Vec<Finding> {
        let growth = self.growth();
        let Server { queue, filesystem, flush, crypto, locks, logons, flushes, slow, .. } = self;
        let measured = "the recorder inside the server measured it";
        let queueing = "Requests wait at the server before it begins to work on them";
        let storage = "The server's file system takes long";
        let stable = "Making written bytes stable takes long";
        let high = Confidence::High;
        let mut found = vec![
            finding(Trouble::ServerQueueing, queueing.to_owned(), queue.gathered, high, measured),
            finding(
                Trouble::SlowFilesystem,
                storage.to_owned(),
                filesystem.gathered,
                high,
                measured,
            ),
            finding(Trouble::SlowFlush, stable.to_owned(), flush.gathered, high, measured),
            finding(
                Trouble::Protection,
                "Signing and encryption take the server's time".to_owned(),
                crypto.gathered,
                high,
                measured,
            ),
            finding(
                Trouble::LockContention,
                "Operations wait at the server for locks or for other clients".to_owned(),
                locks.gathered,
                high,
                measured,
            ),
            finding(
                Trouble::SlowLogon,
                "Logging on, and connecting to shares, takes long".to_owned(),
                logons,
                Confidence::Medium,
                "the server's time from outside; it may itself wait for a domain controller",
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
            let figure = |name, value| Figure { name, value, error: None, unit: "" };
            outside.figures.push(figure("share_that_grows_with_requests_in_flight", share));
            outside.figures.push(figure("times_as_long_with_most_in_flight", most));
        }
        found.push(outside);
        found
    }
}

impl Slices {
    /// Whether the operation has one of them.
    fn see(&mut self, seen: &Seen, kinds: &[Kind], quick_ns: i64) -> bool {
        let known: Vec<i64> = kinds.iter().filter_map(|kind| seen.slice(*kind)).collect();
        if known.is_empty() {
            return false;
        }
        self.seen += 1;
        let ns = known.iter().fold(0_i64, |sum, ns| sum.saturating_add(*ns)) - quick_ns;
        if ns > 0 {
            self.gathered.add(seen, seen.of_busy(ns));
        }
        true
    }
}

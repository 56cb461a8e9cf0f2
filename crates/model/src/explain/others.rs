//! What others and the client itself cost: files that somebody else has open or has locked, opens that wait
//! for another client's cache (MS-SMB2 section 3.3.4.6, 3.3.4.7), requests one by one that could go together
//! (section 3.2.4.1.4), and the client's own pauses.

use hashbrown::HashMap;

use super::culprits::Gathered;
use super::data::{Confidence, Figure, Trouble};
use super::operation::{Act, Seen};
use super::{Found, finding};

/// STATUS_SHARING_VIOLATION, and STATUS_FILE_LOCK_CONFLICT and STATUS_LOCK_NOT_GRANTED (MS-ERREF section 2.3).
const SHARING_VIOLATION: u32 = 0xc000_0043;
const LOCKED: [u32; 2] = [0xc000_0054, 0xc000_0055];
/// Who looks at the reply before the next request on the open takes longer, ns.
const AT_ONCE_NS: i64 = 1_000_000;
/// An open without anybody to wait for takes about that, ns.
const QUICK_OPEN_NS: i64 = 1_000_000;
/// Connections that are followed at once; beyond that all are forgotten.
const CONNECTIONS_MAX: usize = 65_536;

/// The last request of a connection.
struct Last {
    handle: (u32, u64),
    ended_at: i64,
    may_lead: bool,
}

/// All of it.
#[derive(Default)]
pub(super) struct Others {
    conflicts: Gathered,
    locks: Gathered,
    /// Locks that waited until they were granted, ns.
    pub(super) blocked_ns: i64,
    opens: Gathered,
    breaks: u64,
    pauses: Gathered,
    last: HashMap<(u32, u64), Last, foldhash::fast::RandomState>,
    apart: Gathered,
}

impl Others {
    pub(super) fn see(&mut self, seen: &Seen) {
        match (seen.act, seen.status) {
            (Act::Open, Some(SHARING_VIOLATION)) => self.conflicts.add(seen, seen.busy_ns),
            (_, Some(status)) if LOCKED.contains(&status) => self.locks.add(seen, seen.busy_ns),
            (Act::Lock, _) if seen.columns.waits.is_set(seen.row) => {
                self.blocked_ns = self.blocked_ns.saturating_add(seen.elapsed_ns);
                self.locks.add(seen, seen.elapsed_ns);
            }
            (Act::Open, Some(0)) if seen.columns.pending_at.get(seen.row).is_some() => {
                self.opens.add(seen, seen.of_busy(seen.elapsed_ns - QUICK_OPEN_NS));
            }
            (Act::Break, _) => self.breaks += 1,
            _ => {}
        }
        if seen.pause_ns > 0 {
            self.pauses.add_pause(seen, seen.pause_ns);
        }
        self.chain(seen);
    }

    /// A request that could have gone with the one before.
    fn chain(&mut self, seen: &Seen) {
        let key = (seen.recording, seen.connection);
        let (Some(handle), Some(start), true) = (seen.handle, seen.start, seen.is_timed) else {
            self.last.remove(&key);
            return;
        };
        if self.last.len() >= CONNECTIONS_MAX {
            self.last.clear();
        }
        let is_asking = matches!(seen.act, Act::Query | Act::List | Act::Change);
        let last = Last {
            handle,
            ended_at: start.saturating_add(seen.elapsed_ns),
            may_lead: is_asking || seen.act == Act::Open,
        };
        let before = self.last.insert(key, last);
        let could = before.is_some_and(|before| {
            before.may_lead
                && before.handle == handle
                && (0..AT_ONCE_NS).contains(&start.saturating_sub(before.ended_at))
        });
        let is_single = seen.columns.compound.get(seen.row).is_none();
        let is_smb2 = seen.columns.protocol.get(seen.row) == Some(2);
        if could
            && is_single
            && is_smb2
            && (is_asking || seen.act == Act::Close)
            && let Some((_, distance)) = seen.split()
        {
            self.apart.add(seen, seen.of_busy(distance));
        }
    }

    pub(super) fn finish(self) -> Vec<Found> {
        let breaks = self.breaks;
        let mut opens = finding(
            Trouble::BreakWaits,
            "Opens wait until other clients have given back what they keep of the file".to_owned(),
            self.opens,
            if breaks > 0 { Confidence::Medium } else { Confidence::Low },
            match breaks {
                0 => {
                    "the server answered them later; no oplock or lease break was seen, so that the other \
                      client is not in the recording, or the file is slow to open"
                }
                _ => "the server answered them later, and broke oplocks or leases in the recording",
            },
        );
        opens.finding.figures.push(Figure {
            name: "breaks",
            value: breaks as f64,
            error: None,
            unit: "",
        });
        vec![
            finding(
                Trouble::ShareConflicts,
                "Opens fail because somebody else has the file open".to_owned(),
                self.conflicts,
                Confidence::High,
                "the server said STATUS_SHARING_VIOLATION; how long the users then waited to try again is not in it",
            ),
            finding(
                Trouble::LockContention,
                "Ranges of files are locked by somebody else".to_owned(),
                self.locks,
                Confidence::High,
                "the server refused them, or answered when the range was free",
            ),
            opens,
            finding(
                Trouble::NoCompounding,
                "Requests on one open go one by one, each a round trip, though they do not depend on each \
                 other's replies"
                    .to_owned(),
                self.apart,
                Confidence::Medium,
                "each came within a millisecond after the reply before it, on the same open",
            ),
            finding(
                Trouble::SlowClient,
                "The client takes its time between an answer and the next request: the server waits for it"
                    .to_owned(),
                self.pauses,
                Confidence::Medium,
                "pauses of less than a second with nothing under way; the application, its disk or its processor",
            ),
        ]
    }
}

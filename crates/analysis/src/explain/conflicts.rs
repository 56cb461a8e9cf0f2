//! What others cost: files that somebody else has open or has locked, and opens that wait for another client's
//! cache (MS-SMB2 sections 3.3.4.6, 3.3.4.7 and 3.3.5.14).

use smbscope_wire::status::Status;

use super::attribution::Gathered;
use super::data::{Confidence, Figure, Trouble};
use super::operation::{Act, Seen};
use super::{Found, finding};

const SHARING_VIOLATION: u32 = Status::SHARING_VIOLATION.0;
const LOCKED: [u32; 2] = [Status::FILE_LOCK_CONFLICT.0, Status::LOCK_NOT_GRANTED.0];
/// An open without anybody to wait for takes about that, ns.
const QUICK_OPEN_NS: i64 = 1_000_000;

/// All of it.
#[derive(Default)]
pub(super) struct Conflicts {
    opens: Gathered,
    locks: Gathered,
    /// Locks that waited until they were granted, ns.
    pub(super) blocked_ns: i64,
    late: Gathered,
    breaks: u64,
}

impl Conflicts {
    pub(super) fn see(&mut self, seen: &Seen) {
        match (seen.act, seen.status) {
            (Act::Open, Some(SHARING_VIOLATION)) => self.opens.add(seen, seen.busy_ns),
            (_, Some(status)) if LOCKED.contains(&status) => self.locks.add(seen, seen.busy_ns),
            (Act::Lock, _) if seen.columns.waits.is_set(seen.row) => {
                self.blocked_ns = self.blocked_ns.saturating_add(seen.elapsed_ns);
                self.locks.add(seen, seen.elapsed_ns);
            }
            (Act::Open, Some(0)) if seen.columns.pending_at.get(seen.row).is_some() => {
                self.late.add(seen, seen.of_busy(seen.elapsed_ns - QUICK_OPEN_NS));
            }
            (Act::Break, _) => self.breaks += 1,
            _ => {}
        }
    }

    pub(super) fn finish(self) -> Vec<Found> {
        let breaks = self.breaks;
        let mut late = finding(
            Trouble::BreakWaits,
            "Opens wait until other clients have given back what they keep of the file".to_owned(),
            self.late,
            if breaks > 0 { Confidence::Medium } else { Confidence::Low },
            match breaks {
                0 => {
                    "the server answered them later; no oplock or lease break was seen, so that the other \
                      client is not in the recording, or the file is slow to open"
                }
                _ => "the server answered them later, and broke oplocks or leases in the recording",
            },
        );
        late.finding.figures.push(Figure {
            name: "breaks",
            value: breaks as f64,
            error: None,
            unit: "",
        });
        vec![
            finding(
                Trouble::ShareConflicts,
                "Opens fail because somebody else has the file open".to_owned(),
                self.opens,
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
            late,
        ]
    }
}

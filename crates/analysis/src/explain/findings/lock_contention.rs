//! Byte ranges are locked by another client (MS-SMB2 section 3.3.5.14): requests that the server
//! refuses, locks that wait, and time that the server waits for locks.

use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_wire::status::Status;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};
use super::super::server_time::MEASURED;

pub(crate) const KIND: KindInfo = KindInfo::new("lock-contention", "lock contention")
    .with_actor(Actor::Application)
    .with_remedies(&[
        (
            "application",
            "lock smaller ranges for a shorter time; databases belong on block storage",
        ),
        ("server", "find out which client holds the locks: smbstatus --byterange, Get-SmbOpenFile"),
    ]);

const REFUSED: [u32; 2] = [Status::FILE_LOCK_CONFLICT.0, Status::LOCK_NOT_GRANTED.0];

/// Requests that met another client's lock.
#[derive(Default)]
pub(crate) struct LockContention {
    attribution: Attribution,
    /// Time in which locks waited until they were granted, ns.
    blocked_ns: i64,
}

impl Detector for LockContention {
    fn see(&mut self, op: &Operation) {
        if op.status.is_some_and(|status| REFUSED.contains(&status)) {
            self.attribution.add(op, op.busy_ns);
        } else if op.act == Act::Lock && op.columns.waits.is_set(op.row) {
            self.blocked_ns = self.blocked_ns.saturating_add(op.elapsed_ns);
            self.attribution.add(op, op.elapsed_ns);
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let candidate = Candidate::new(
            FindingKind::LockContention,
            "Byte ranges of files are locked by other clients",
            self.attribution,
            Confidence::Measured,
            "the server refused the requests, or answered when the range was free",
        );
        vec![candidate.beyond_busy(self.blocked_ns)]
    }
}

/// Time that the server waited, measured inside the server.
pub(crate) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::LockContention,
        "Operations wait at the server for locks or for other clients",
        attribution,
        Confidence::Measured,
        MEASURED,
    )
}

//! Byte ranges are locked by another client (MS-SMB2 section 3.3.5.14): requests that the server
//! refuses, locks that wait, and time that the server waits for locks.

use smbscope_wire::status::Status;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::super::operation::{Act, Operation};
use super::super::server_time::MEASURED;
use super::remedy;

pub(in super::super) const TITLE: &str = "lock contention";

pub(in super::super) const ACTOR: Actor = Actor::Application;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "application",
        "lock smaller ranges for a shorter time; databases belong on block storage",
    ),
    remedy(
        "server",
        "find out which client holds the locks: smbstatus --byterange, Get-SmbOpenFile",
    ),
];

const REFUSED: [u32; 2] = [Status::FILE_LOCK_CONFLICT.0, Status::LOCK_NOT_GRANTED.0];

/// Requests that met another client's lock.
#[derive(Default)]
pub(in super::super) struct LockContention {
    attribution: Attribution,
    /// Time in which locks waited until they were granted, ns.
    pub(in super::super) blocked_ns: i64,
}

impl LockContention {
    pub(in super::super) fn see(&mut self, op: &Operation) {
        if op.status.is_some_and(|status| REFUSED.contains(&status)) {
            self.attribution.add(op, op.busy_ns);
        } else if op.act == Act::Lock && op.columns.waits.is_set(op.row) {
            self.blocked_ns = self.blocked_ns.saturating_add(op.elapsed_ns);
            self.attribution.add(op, op.elapsed_ns);
        }
    }

    pub(in super::super) fn finish(self) -> Candidate {
        Candidate::new(
            Trouble::LockContention,
            "Byte ranges of files are locked by other clients",
            self.attribution,
            Confidence::High,
            "the server refused the requests, or answered when the range was free",
        )
    }
}

/// Time that the server waited, measured inside the server.
pub(in super::super) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::LockContention,
        "Operations wait at the server for locks or for other clients",
        attribution,
        Confidence::High,
        MEASURED,
    )
}

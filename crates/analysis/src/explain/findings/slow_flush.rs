//! Writing to stable storage is slow: Flush, and writes with write-through (MS-SMB2 sections 2.2.17
//! and 2.2.21). The observation is [`super::super::server_time`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::server_time::MEASURED;
use crate::predict::changes::Change;

pub(crate) const WINDOWS: (&str, &str) = (
    "Windows",
    "do not make shares continuously available unless something needs it: it makes every write stable",
);

pub(crate) const KIND: KindInfo = KindInfo::new("slow-flush", "slow flushes")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "put the log on non-volatile memory, or use a controller with a protected cache; if writes are replicated, \
         check the distance to the second site",
    ),
    (
        "Samba",
        "strict sync = no and sync always = no, but only where losing the last writes is acceptable",
    ),
    WINDOWS,
]);

const CHANGES: [Change; 1] = [Change::WriteThrough(false)];

const WHAT: &str = "Writing data to stable storage is slow";

/// Time of the server's flush calls, measured inside the server.
pub(crate) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(FindingKind::SlowFlush, WHAT, attribution, Confidence::Measured, MEASURED)
        .with_changes(CHANGES)
}

/// Server time of requests that ask for stable storage.
pub(crate) fn from_outside(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::SlowFlush,
        WHAT,
        attribution,
        Confidence::Likely,
        "the server's time, from outside, for flushes and for writes that request stable storage",
    )
    .with_changes(CHANGES)
}

//! Requests wait at the server before it works on them. The observation is
//! [`super::super::server_time`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::server_time::MEASURED;
use crate::predict::changes::Change;

pub(crate) const KIND: KindInfo = KindInfo::new("server-queueing", "requests queue at the server")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "check the load of its CPUs and disks; add or upgrade them, or move users to another server",
    ),
    (
        "Samba",
        "aio read size = 1, aio write size = 1 (the default since 4.11), so that requests of one connection do not \
         wait for each other",
    ),
    (
        "Windows",
        "watch \\SMB Server Shares(*)\\Current Data Queue Length and the disk's queue",
    ),
]);

const CHANGES: [Change; 2] = [Change::Queue(0.0), Change::Cpu(2.0)];

/// Time in the server's queue, measured inside the server.
pub(crate) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::ServerQueueing,
        "Requests wait at the server before it begins to work on them",
        attribution,
        Confidence::Measured,
        MEASURED,
    )
    .with_changes(CHANGES)
}

/// Server time that grows with the load.
pub(crate) fn from_outside(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::ServerQueueing,
        "Requests wait for each other at the server",
        attribution,
        Confidence::Likely,
        "the server's time grows with the number of requests in flight",
    )
    .with_changes(CHANGES)
}

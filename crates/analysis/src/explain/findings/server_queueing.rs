//! Requests wait at the server before it works on them. The observation is
//! [`super::super::server_time`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::super::server_time::MEASURED;
use super::remedy;

pub(in super::super) const TITLE: &str = "requests queue at the server";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "server",
        "check the load of its processors and disks; add or upgrade them, or move users to another server",
    ),
    remedy(
        "Samba",
        "aio read size = 1, aio write size = 1 (the default since 4.11), so that requests of one connection do not \
         wait for each other",
    ),
    remedy(
        "Windows",
        "watch \\SMB Server Shares(*)\\Current Data Queue Length and the disk's queue",
    ),
];

/// Time in the server's queue, measured inside the server.
pub(in super::super) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::ServerQueueing,
        "Requests wait at the server before it begins to work on them",
        attribution,
        Confidence::High,
        MEASURED,
    )
}

/// Server time that grows with the load.
pub(in super::super) fn from_outside(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::ServerQueueing,
        "Requests wait for each other at the server",
        attribution,
        Confidence::Medium,
        "the server's time grows with the number of requests in flight",
    )
}

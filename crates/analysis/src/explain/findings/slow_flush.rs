//! Writing to stable storage is slow: Flush, and writes with write-through (MS-SMB2 sections 2.2.17
//! and 2.2.21). The observation is [`super::super::server_time`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::super::server_time::MEASURED;
use super::remedy;

pub(in super::super) const TITLE: &str = "slow flushes";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "server",
        "put the log on non-volatile memory, or use a controller with a protected cache; if writes are replicated, \
         check the distance to the second site",
    ),
    remedy(
        "Samba",
        "strict sync = no and sync always = no, but only where losing the last writes is acceptable",
    ),
    remedy(
        "Windows",
        "do not make shares continuously available unless something needs it: it makes every write stable",
    ),
];

const WHAT: &str = "Writing data to stable storage is slow";

/// Time of the server's flush calls, measured inside the server.
pub(in super::super) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(Trouble::SlowFlush, WHAT, attribution, Confidence::High, MEASURED)
}

/// Server time of requests that ask for stable storage.
pub(in super::super) fn from_outside(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::SlowFlush,
        WHAT,
        attribution,
        Confidence::Medium,
        "the server's time, from outside, for flushes and for writes that request stable storage",
    )
}

//! Clients look up again what they looked up shortly before, although nothing changed. A directory
//! lease would let them keep it (MS-SMB2 section 3.2.4.3.8). The observation is
//! [`super::super::lookups`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use crate::predict::changes::Change;

pub(crate) const GRANT: (&str, &str) =
    ("server", "grant leases on directories: Samba from 4.22, Windows from 2012");
pub(crate) const SAMBA_LEASES: (&str, &str) =
    ("Samba", "smb3 directory leases = yes (from 4.22), smb2 leases = yes, kernel oplocks = no");
/// Where leases on directories are granted.
pub(crate) const LEASES_UNUSED: (&str, &str) = (
    "client",
    "the server grants it leases on directories, and it asks again all the same: find out whether it gives them up (Linux: mount \
     option nohandlecache, max_cached_dirs; breaks by its own programs), and update it",
);

pub(crate) const KIND: KindInfo = KindInfo::new("repeated-lookups", "repeated lookups")
    .with_actor(Actor::Server)
    .with_remedies(&[
        GRANT,
        SAMBA_LEASES,
        (
            "Windows client",
            "Set-SmbClientConfiguration -DirectoryCacheLifetime 10 -FileInfoCacheLifetime 10 \
         -FileNotFoundCacheLifetime 5",
        ),
    ]);

pub(crate) const ATTRIBUTE_CACHE: (&str, &str) = (
    "Linux client",
    "mount option actimeo=30 (or acregmax= and acdirmax=) keeps attributes for 30 s instead of 1 s: changes of other clients are \
     seen that much later",
);
/// The client keeps what it learned for longer than by default.
pub(crate) const LONGER_CACHE: (&str, &str) = (
    "Linux client",
    "it keeps attributes for some seconds already (actimeo=, acregmax=, acdirmax=): a longer time shows changes of other clients that \
     much later",
);
pub(crate) const LEASES: (&str, &str) =
    ("server", "leases on directories let clients keep what they know: Samba from 4.22, Windows from 2012");
/// The name of the figure with the shortest time after which a client asks again.
pub(crate) const ASKED_AGAIN: &str = "asked_again_after";

/// Where the client's own cache is short.
const OF_CACHE: [(&str, &str); 3] = [
    ATTRIBUTE_CACHE,
    (
        "Windows client",
        "Set-SmbClientConfiguration -DirectoryCacheLifetime 10 -FileInfoCacheLifetime 10 -FileNotFoundCacheLifetime 5",
    ),
    LEASES,
];
/// A client that requests a lease for fewer of its opens than this cannot keep what it knows.
const REQUESTED_MIN: f64 = 0.1;

/// Repeated opens that requested a lease, and all of them; `again_ns` is the shortest time between two.
pub(crate) fn finish(
    attribution: Attribution,
    (requested, all): (u64, u64),
    again_ns: Option<i64>,
) -> Candidate {
    let again = asked_again(again_ns);
    let kind = FindingKind::RepeatedLookups;
    if all > 0 && (requested as f64) < REQUESTED_MIN * all as f64 {
        return Candidate::new(
            kind,
            "The client opens the same files and folders again only to query what it queried before: it requests no leases, so that it keeps \
             attributes for a short time only",
            attribution,
            Confidence::Measured,
            "the same client opened each less than ten seconds before, without requesting a lease, and only queried it; no other client \
             changed it in between",
        )
        .with_owner(Actor::Client, Vec::new())
        .with_remedies(&OF_CACHE)
        .with_figures([("opens_again", all as f64, "", "opened again {} times")])
        .with_figures(again);
    }
    Candidate::new(
        kind,
        "The same files and folders are opened again only to query what was queried before",
        attribution,
        Confidence::Measured,
        "the same client opened each less than ten seconds before and only queried it, and no other client changed \
         it in between",
    )
    .with_changes([Change::DirLease(())])
    .with_figures(again)
}

/// The shortest time after which a client asks again: its own cache keeps answers for no longer.
pub(crate) fn asked_again(
    again_ns: Option<i64>,
) -> Option<(&'static str, f64, &'static str, &'static str)> {
    again_ns.map(|ns| (ASKED_AGAIN, ns as f64, "ns", "asked again after {} at the earliest"))
}

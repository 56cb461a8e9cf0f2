//! Clients look up again what they looked up shortly before, although nothing changed. A directory
//! lease would let them keep it (MS-SMB2 section 3.2.4.3.8). The observation is
//! [`super::super::lookups`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use crate::predict::changes::Change;

pub(crate) const KIND: KindInfo = KindInfo::new("repeated-lookups", "repeated lookups")
    .with_actor(Actor::Server)
    .with_remedies(&[
        ("server", "grant leases on directories: Samba from 4.22, Windows from 2012"),
        (
            "Samba",
            "smb3 directory leases = yes (from 4.22), smb2 leases = yes, kernel oplocks = no",
        ),
        (
            "Windows client",
            "Set-SmbClientConfiguration -DirectoryCacheLifetime 10 -FileInfoCacheLifetime 10 \
         -FileNotFoundCacheLifetime 5",
        ),
    ]);

/// Where the client's own cache is short.
const OF_CACHE: [(&str, &str); 3] = [
    (
        "Linux client",
        "mount option actimeo=30 (or acregmax= and acdirmax=) keeps attributes for 30 s instead of 1 s: changes of other clients are \
         seen that much later",
    ),
    (
        "Windows client",
        "Set-SmbClientConfiguration -DirectoryCacheLifetime 10 -FileInfoCacheLifetime 10 -FileNotFoundCacheLifetime 5",
    ),
    ("server", "leases on directories let clients keep what they know: Samba from 4.22, Windows from 2012"),
];
/// A client that requests a lease for fewer of its opens than this cannot keep what it knows.
const REQUESTED_MIN: f64 = 0.1;

/// Repeated opens that requested a lease, and all of them.
pub(crate) fn finish(attribution: Attribution, (requested, all): (u64, u64)) -> Candidate {
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
        .with_figures([("opens_again", all as f64, "", "opened again {} times")]);
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
}

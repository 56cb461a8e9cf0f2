//! Clients look up again what they looked up shortly before, although nothing changed. A directory
//! lease would let them keep it (MS-SMB2 section 3.2.4.3.8). The observation is
//! [`super::super::lookups`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::remedy;

pub(in super::super) const TITLE: &str = "repeated lookups";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy("server", "grant leases on directories: Samba from 4.22, Windows from 2012"),
    remedy(
        "Samba",
        "smb3 directory leases = yes (from 4.22), smb2 leases = yes, kernel oplocks = no",
    ),
    remedy(
        "Windows client",
        "Set-SmbClientConfiguration -DirectoryCacheLifetime 10 -FileInfoCacheLifetime 10 \
         -FileNotFoundCacheLifetime 5",
    ),
];

pub(in super::super) fn finish(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::RepeatedLookups,
        "The same files and folders are opened again only to query what was queried before",
        attribution,
        Confidence::High,
        "the same client opened each less than ten seconds before and only queried it, and no other client changed \
         it in between",
    )
}

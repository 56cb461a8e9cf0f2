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

pub(crate) fn finish(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::RepeatedLookups,
        "The same files and folders are opened again only to query what was queried before",
        attribution,
        Confidence::Measured,
        "the same client opened each less than ten seconds before and only queried it, and no other client changed \
         it in between",
    )
    .with_changes([Change::DirLease(())])
}

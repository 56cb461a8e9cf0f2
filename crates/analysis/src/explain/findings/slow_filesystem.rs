//! The server, most likely its file system, is slow. The observation is
//! [`super::super::server_time`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::server_time::MEASURED;
use crate::predict::changes::Change;

pub(crate) const KIND: KindInfo = KindInfo::new("slow-filesystem", "slow server or file system")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "faster storage, or more memory for its cache; a recording inside the server shows which calls are slow (Samba: \
         smbscope record; Windows: `smbscope record --print-windows-script --what smb --to 'S:\\temp'`)",
    ),
    (
        "Samba",
        "check vfs objects (each adds calls), case sensitive = yes for large folders, store dos attributes = no",
    ),
    ("Windows", "look for file-system filters (fltmc) such as virus scanners"),
]);

const CHANGES: [Change; 2] = [Change::Filesystem(4.0), Change::CacheHit(1.0)];

/// Time of file-system calls, measured inside the server.
pub(crate) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::SlowFilesystem,
        "The server's file system is slow",
        attribution,
        Confidence::Measured,
        MEASURED,
    )
    .with_changes(CHANGES)
}

/// Server time that does not grow with the load.
pub(crate) fn from_outside(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::SlowFilesystem,
        "The server is slow, most likely its file system",
        attribution,
        Confidence::Likely,
        "the server's time does not grow with the number of requests in flight; from outside, a slow CPU \
         looks the same",
    )
    .with_changes(CHANGES)
}

/// Server time for which nothing shows whether it grows with the load.
pub(crate) fn undecided(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::SlowFilesystem,
        "The server is slow: its file system, its CPU, or other requests that come first",
        attribution,
        Confidence::Possible,
        "the recording has too few requests both alone and in parallel to distinguish waiting from working: record \
         inside the server (smbscope record)",
    )
    .with_changes(CHANGES)
}

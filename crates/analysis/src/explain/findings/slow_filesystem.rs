//! The server, most likely its file system, is slow. The observation is
//! [`super::super::server_time`].

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::super::server_time::MEASURED;
use super::remedy;

pub(in super::super) const TITLE: &str = "slow server or file system";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy(
        "server",
        "faster storage, or more memory for its cache; a recording inside the server shows which calls are slow (Samba: \
         smbscope record; Windows: smbscope record --print-windows-script --what smb)",
    ),
    remedy(
        "Samba",
        "check vfs objects (each adds calls), case sensitive = yes for large folders, store dos attributes = no",
    ),
    remedy("Windows", "look for file-system filters (fltmc) such as virus scanners"),
];

/// Time of file-system calls, measured inside the server.
pub(in super::super) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::SlowFilesystem,
        "The server's file system is slow",
        attribution,
        Confidence::High,
        MEASURED,
    )
}

/// Server time that does not grow with the load.
pub(in super::super) fn from_outside(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::SlowFilesystem,
        "The server is slow, most likely its file system",
        attribution,
        Confidence::Medium,
        "the server's time does not grow with the number of requests in flight; from outside, a slow processor \
         looks the same",
    )
}

/// Server time for which nothing shows whether it grows with the load.
pub(in super::super) fn undecided(attribution: Attribution) -> Candidate {
    Candidate::new(
        Trouble::SlowFilesystem,
        "The server is slow: its file system, its processor, or other requests that come first",
        attribution,
        Confidence::Low,
        "the recording has too few requests both alone and in parallel to distinguish waiting from working: record \
         inside the server (smbscope record)",
    )
}

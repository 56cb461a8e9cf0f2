//! Helpers for tests of all crates. Development dependency only.
//!
//! Owns how a test that cannot run here reports that: [`skip!`]. With the feature `samba` it also owns a private Samba
//! for one test (`samba`), and a run of simulated users on it whose rows can be compared with those of another
//! source (`run`). [`etl`] makes event trace logs, [`flooded_server`] those of a case study, [`windows_log`] those of packets and of
//! the SMB server from a capture. With the feature `channels`, `channel_runs` has rows of bulk transfers. Without these
//! features it has no dependencies, so that the tests of small crates build quickly.

// Only tests call it, and a test may panic.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "channels")]
pub mod channel_runs;
pub mod etl;
pub mod flooded_server;
#[cfg(all(feature = "samba", target_os = "linux"))]
pub mod run;
#[cfg(all(feature = "samba", target_os = "linux"))]
pub mod samba;
pub mod windows_log;

use std::io::Write as _;
use std::panic::Location;

/// Reports that a test (or a part of it) does not run here, and why. The caller then returns.
///
/// Prints `skipped: REASON`, and appends `FILE:LINE: REASON` to the file that the environment
/// variable `SMBSCOPE_SKIPPED` names, so that a run of the whole suite can list what it left out.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {
        $crate::skipped(&format!($($reason)*))
    };
}

/// See [`skip!`].
#[track_caller]
pub fn skipped(reason: &str) {
    println!("skipped: {reason}");
    let Some(path) = std::env::var_os("SMBSCOPE_SKIPPED") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let place = Location::caller();
    // One write: tests of several processes append to the file at the same time.
    let line = format!("{}:{}: {}\n", place.file(), place.line(), reason.trim());
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("SMBSCOPE_SKIPPED: {error}");
    }
}

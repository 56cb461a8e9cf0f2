//! Helpers for tests of all crates. Development dependency only.
//!
//! Owns what the tests of several crates share: how a test that cannot run reports that, inputs that no machine here can
//! record, and a private Samba. It owns no oracle (`tests/` at the top has them) and no test. A crate uses it under
//! `[dev-dependencies]`; the architecture test asserts that no program links it.
//!
//! | what | module | feature |
//! |---|---|---|
//! | skip a test, with the reason | [`skip!`] | - |
//! | a browser for tests of pages | [`chromium`] | - |
//! | a file or folder of the real data of other people | [`shared`] | - |
//! | event trace logs of Windows (`.etl`), record by record | [`etl`] | - |
//! | logs of a published case: a server whose CPUs are flooded by receive work | [`flooded_server`] | - |
//! | logs of packets and of the SMB server, made of a capture | [`windows_log`] | - |
//! | rows of bulk transfers over several channels | `channel_runs` | `channels` |
//! | a private Samba for one test, removed with it | `samba` | `samba` |
//! | simulated users on it, whose rows can be compared with those of another source | `run` | `samba` |
//!
//! Without features it has no dependencies, so that the tests of small crates build quickly.
//!
//! # Skipped tests
//!
//! A test that needs root, a kernel, a program or a capture that is not there returns early and says why:
//!
//! ```
//! fn root_records_the_interface() {
//!     if std::env::var_os("SMBSCOPE_EXAMPLE").is_none() {
//!         smbscope_testing::skip!("no SMBSCOPE_EXAMPLE to record");
//!         return;
//!     }
//! }
//! root_records_the_interface();
//! ```
//!
//! `make test` counts and lists them.
//!
//! # Made-up logs
//!
//! The builders write from descriptions of the formats, apart from the readers, so that a mistake of a reader cannot
//! hide in its own test:
//!
//! ```
//! use smbscope_testing::etl::Builder;
//!
//! let mut log = Builder::default();
//! let mut buffer = log.buffer(2);
//! // A DPC on CPU 2: number of the event, begin and end in ticks of 100 ns, its routine.
//! buffer.run(66, 10_000, 10_250, 0xffff_f800_1000_0000, &[]);
//! log.add(buffer);
//! assert!(!log.build().is_empty());
//! ```

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
use std::path::{Path, PathBuf};

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

/// A file or folder below the folder that `SMBSCOPE_SHARED` names, otherwise below `../shared` next to the repository. If it is
/// not there, the test is skipped ([`skip!`]).
#[track_caller]
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("SMBSCOPE_SHARED").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        skipped(&format!("{} is not there (set SMBSCOPE_SHARED)", path.display()));
        return None;
    }
    Some(path)
}

/// The browser: `SMBSCOPE_CHROMIUM`, or one of the usual names. Without one, the test is skipped ([`skip!`]).
#[track_caller]
pub fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("SMBSCOPE_CHROMIUM").map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders = std::env::split_paths(&paths);
    let mut files = folders.flat_map(|folder| names.map(|name| folder.join(name)));
    let found = named.or_else(|| files.find(|file| file.exists()));
    if found.is_none() {
        skipped("the browser test needs Chromium (SMBSCOPE_CHROMIUM, or in PATH)");
    }
    found
}

//! Logs of Windows with packets and with events of the SMB server: their rows equal those of the capture from
//! which the logs were made. The logs are synthetic (`smbscope_testing::windows_log`).

#![allow(clippy::unwrap_used, missing_docs)]

mod client;
mod events;
mod packets;
mod rows;

use std::path::{Path, PathBuf};

/// Captures of this project, and of other people where they are there.
fn captures(names: &[&str]) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    if !shared.is_dir() {
        smbscope_testing::skip!("{} is absent", shared.display());
    }
    let paths = names.iter().map(|name| match name.strip_prefix("shared/") {
        Some(name) => shared.join(name),
        None => own.join(name),
    });
    paths.filter(|path| path.is_file()).collect()
}

//! The decoder compared with tshark: runs `tests/tshark/compare.py` over the captures and the fixtures,
//! and fails if a difference has no explanation there.
//!
//! Needs tshark, editcap and Python 3; reports if one is missing, and passes. The captures are in
//! `SMBSCOPE_SHARED` or in `../shared` next to the workspace.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn agrees_with_tshark() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for tool in ["tshark", "editcap", "python3"] {
        if Command::new(tool).arg("--version").output().is_err() {
            smbscope_testing::skip!("{tool} is not installed");
            return;
        }
    }
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or(root.join("../shared"), PathBuf::from);
    let captures = shared.join("captures");
    if !captures.is_dir() {
        println!("no captures in {}: comparing the fixtures only", captures.display());
    }
    let done = Command::new("python3")
        .arg(root.join("tests/tshark/compare.py"))
        .arg("--smbscope")
        .arg(env!("CARGO_BIN_EXE_smbscope"))
        .arg("--captures")
        .arg(&captures)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}\n{out}{err}", done.status);
}

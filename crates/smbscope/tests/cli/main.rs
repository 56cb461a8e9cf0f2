//! The program as its users see it: help, output, exit codes, pipes. Each test runs the binary on the
//! repository's fixtures.

// A test may panic.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "plan")]
mod baseline;
#[cfg(feature = "plan")]
mod browser;
mod compare;
#[cfg(target_os = "linux")]
mod durability;
mod errors;
mod explain;
mod export;
mod filters;
mod findings;
#[cfg(feature = "plan")]
mod help;
mod import;
#[cfg(target_os = "linux")]
mod lab;
mod left_out;
#[cfg(target_os = "linux")]
mod load;
mod load_capacity;
mod load_run;
#[cfg(target_os = "linux")]
mod load_trouble;
#[cfg(feature = "plan")]
mod namespace;
#[cfg(target_os = "linux")]
mod net;
mod ops;
mod other;
#[cfg(feature = "plan")]
mod plan;
mod predict;
mod processors;
#[cfg(feature = "sql")]
mod query;
#[cfg(target_os = "linux")]
mod record;
mod record_cpu;
mod report;
mod secrets;
mod settings;
mod terminal;
#[cfg(target_os = "linux")]
mod top;
mod tour;
#[cfg(target_os = "linux")]
mod users;
mod verdicts;
mod why;
#[cfg(all(feature = "sql", target_os = "linux"))]
mod windows_client;

use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// 121 operations of one client (tests/fixtures/README.md counts them with tshark).
const CAPTURE: &str = "smb302.pcap";
/// Operations of [`CAPTURE`] by command.
const COMMANDS: [(&str, u64); 14] = [
    ("Close", 35),
    ("Create", 35),
    ("Echo", 1),
    ("Ioctl", 7),
    ("Logoff", 1),
    ("Negotiate", 1),
    ("QueryDirectory", 12),
    ("QueryInfo", 12),
    ("Read", 1),
    ("SessionSetup", 2),
    ("SetInfo", 7),
    ("TreeConnect", 3),
    ("TreeDisconnect", 2),
    ("Write", 2),
];
const OPERATIONS: u64 = 121;

/// The program without environment variables that would change its behaviour.
fn smbscope<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("smbscope"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "SMBSCOPE_KEYS"] {
        command.env_remove(name);
    }
    // No settings of the person who runs the tests.
    command.env("TZ", "UTC").env("SMBSCOPE_CONFIG", "").args(arguments);
    command
}

/// Runs the program, expects success, and returns standard output.
fn answer<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    stdout(&smbscope(arguments).assert().success())
}

/// Runs the program, expects the exit code, and returns standard error.
fn complaint<S: AsRef<std::ffi::OsStr>>(
    code: i32,
    arguments: impl IntoIterator<Item = S>,
) -> String {
    let assert = smbscope(arguments).assert().code(code);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn stdout(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// A file with this text.
#[cfg(feature = "plan")]
fn written(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A path as an argument.
#[cfg(feature = "plan")]
fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The path of a file in tests/fixtures.
fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

fn capture() -> String {
    fixture(CAPTURE)
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    (dir, path)
}

/// Parses one JSON object per line.
fn objects(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

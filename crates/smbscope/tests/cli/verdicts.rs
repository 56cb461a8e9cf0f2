//! State, owner and cause of captures whose truth is known: tests/diagnoses.

use std::path::Path;
use std::process::Command;

/// Kinds of problems, near misses and healthy work; and, where they are, captures after public reports.
#[test]
fn verdicts_are_right() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/diagnoses/check.py");
    if Command::new("python3").arg("--version").output().is_err() {
        smbscope_testing::skip!("python3 is not there");
        return;
    }
    let run = Command::new("python3")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_smbscope"))
        .output()
        .expect("check.py runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
}

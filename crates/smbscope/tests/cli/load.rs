//! `smbscope load` with a lab, as a user runs it.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

use super::users::Users;

fn smbscope() -> Command {
    let mut command = Command::cargo_bin("smbscope").unwrap();
    command.arg("--no-progress");
    command
}

/// The standard output of a command, which must succeed.
fn answer(arguments: &[&str]) -> String {
    let output = smbscope().args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and message of a command that must fail.
fn failure(arguments: &[&str]) -> (i32, String) {
    let output = smbscope().args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn workloads_are_listed_shown_and_checked() {
    let list = answer(&["load", "workloads"]);
    for name in ["homefolder", "bulk-copy", "metadata"] {
        assert!(list.contains(name), "{list}");
    }
    let shown = answer(&["load", "workloads", "show", "homefolder"]);
    assert!(shown.contains("WordEditAndSave") && shown.contains("331"), "{shown}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let toml = answer(&["load", "workloads", "show", "metadata", "--toml"]);
    std::fs::write(&file, &toml).unwrap();
    let path = file.to_str().unwrap();
    assert!(answer(&["load", "workloads", "show", path]).starts_with("mine: "));
    std::fs::write(&file, toml.replacen("runs_per_hour = ", "runs_per_our = ", 1)).unwrap();
    let (code, message) = failure(&["load", "workloads", "show", path]);
    assert_eq!(code, 4);
    assert!(message.contains("mine.toml:") && message.contains("runs_per_hour"), "{message}");
    let (code, message) = failure(&["load", "//host", "--users", "1"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("names no share"), "{message}");
    // Counting them took longer than anyone waits, and Ctrl-C was ignored.
    let (code, message) = failure(&["load", "//host/home", "--users", "18446744073709551615"]);
    assert_eq!(code, 2, "{message}");
}

/// `docs/method/workloads.md` has the steps of the published workload; `INSTA_UPDATE=always` writes them again.
#[test]
fn the_documented_steps_are_those_that_are_shown() {
    const BEGIN: &str = "<!-- steps -->\n```text";
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/method/workloads.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let shown = answer(&["load", "workloads", "show", "homefolder"]);
    let steps = &shown[shown.find("\nCmdLineFileDelete").unwrap()..];
    let begin = document.find(BEGIN).unwrap() + BEGIN.len();
    let end = begin + document[begin..].find("```\n<!-- end -->").unwrap();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        let fresh = [&document[..begin], steps, &document[end..]].concat();
        return std::fs::write(&path, fresh).unwrap();
    }
    assert!(
        document[begin..end] == *steps,
        "docs/method/workloads.md is out of date: INSTA_UPDATE=always"
    );
}

#[test]
fn contradicting_logon_options_are_rejected() {
    for (options, code, word) in [
        (["--realm", "LAB.TEST"].as_slice(), 2, "--auth kerberos"),
        (&["--auth", "ntlm", "--keytab", "x"], 2, "--auth kerberos"),
        (&["--keytab", "x", "--password-file", "y"], 2, "--password-file"),
        (&["--auth", "kerberos", "--kdc", "a:b"], 2, "HOST[:PORT]"),
        (&["--auth", "kerberos", "--spn", "fs"], 2, "SERVICE/HOST"),
        #[cfg(feature = "kerberos")]
        (&["--keytab", "/nowhere/users.keytab"], 4, "/nowhere/users.keytab"),
    ] {
        for command in [["load"].as_slice(), &["load", "prepare"], &["load", "clean"]] {
            let (found, message) = failure(&[command, &["//127.0.0.1:1/home"], options].concat());
            assert_eq!(found, code, "{options:?}: {message}");
            assert!(message.contains(word), "{options:?}: {message}");
        }
    }
}

#[test]
fn prepare_run_report_and_clean_work_together() {
    let Some(users) = Users::up() else { return };
    let lab = users.lab.as_str();
    let (code, message) = failure(&["load", "--lab", lab, "--users", "3", "--scale", "0.1"]);
    assert_eq!(code, 4, "{message}");
    assert!(message.contains("smbscope load prepare"), "{message}");
    users.prepare();
    let run = users.path("run");
    let run = run.as_str();
    let table: Value = serde_json::from_str(&answer(
        &[&users.busy("3s", run), ["--format", "json"].as_slice()].concat(),
    ))
    .unwrap();
    let row = &table["rows"][0];
    assert_eq!(row["users"].as_u64(), Some(3), "{row}");
    // On a busy machine Samba reports a change so late that a notification is answered before it is
    // cancelled.
    assert!(row["errors"].as_u64().is_some_and(|errors| errors <= 2), "{row}");
    assert!(row["scenarios_per_second"].as_f64().unwrap() > 1.0, "{row}");

    let report: Value =
        serde_json::from_str(&answer(&["report", run, "--format", "json"])).unwrap();
    assert!(report["totals"]["operations"].as_u64().unwrap() > 50, "{}", report["totals"]);
    let sql = "select count(*) n, sum(operations) o from scenarios where outcome = 'done'";
    let rows = answer(&["query", run, sql, "--format", "csv"]);
    let counts: Vec<u64> =
        rows.lines().nth(1).unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
    assert!(counts[0] > 3 && counts[1] > 10 * counts[0], "{rows}");
    // The password is nowhere in the run.
    let password = std::fs::read_to_string(Path::new(lab).join("password")).unwrap();
    let manifest = std::fs::read_to_string(Path::new(run).join("manifest.json")).unwrap();
    assert!(!manifest.contains(password.trim()));

    // Files from other sources stay.
    let foreign = Path::new(lab).join("share/user00001/mine.txt");
    std::fs::write(&foreign, "mine").unwrap();
    answer(&["load", "clean", "--lab", lab, "--users", "3", "--scale", "0.1"]);
    let left = |user: &str| Path::new(lab).join("share").join(user).exists();
    assert!(foreign.exists() && !left("user00002") && !left("user00003"));
}

//! Pipes and terminals. Terminals come from util-linux's `script`; without it those tests report that
//! and end.

use std::process::{Command, Stdio};

use super::{answer, capture, folder};

fn shell(script: &str) -> std::process::Output {
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(Stdio::null());
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(name);
    }
    let program = assert_cmd::cargo::cargo_bin!("smbscope");
    command
        .env("SMBSCOPE", program)
        .env("CAPTURE", capture())
        .env("TERM", "xterm")
        .output()
        .unwrap()
}

/// The output on a terminal, or `None` without `script`.
fn on_terminal(command: &str) -> Option<String> {
    if !Command::new("script").arg("--version").output().is_ok_and(|out| out.status.success()) {
        smbscope_testing::skip!("no script(1) here");
        return None;
    }
    let output = shell(&format!("script -qec '{command}' /dev/null"));
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_closed_pipe_is_success() {
    // Too many rows to fit into the pipe.
    let dir = tempfile::tempdir().unwrap();
    for copy in 0..40 {
        std::fs::copy(capture(), dir.path().join(format!("{copy}.pcapng"))).unwrap();
    }
    let inputs = dir.path().display();
    for format in ["text", "json", "csv", "arrow", "parquet"] {
        let script = format!(
            "$SMBSCOPE ops {inputs}/*.pcapng --format {format} | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}"
        );
        let output = shell(&script);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{format}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
    let output = shell("$SMBSCOPE report $CAPTURE >&-; echo $? >&2");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n");
}

#[test]
fn colour_is_used_on_terminals_only() {
    assert!(!answer(["ops", &capture()]).contains('\x1b'));
    assert!(answer(["ops", &capture(), "--color", "always"]).contains("\x1b["));
    let Some(shown) = on_terminal("$SMBSCOPE ops $CAPTURE") else { return };
    assert!(shown.contains("\x1b["));
    for without in [
        "NO_COLOR=1 $SMBSCOPE ops $CAPTURE",
        "CLICOLOR=0 $SMBSCOPE ops $CAPTURE",
        "$SMBSCOPE ops $CAPTURE --color never",
    ] {
        assert!(!on_terminal(without).unwrap().contains('\x1b'), "{without}");
    }
}

#[test]
fn tables_fit_the_terminal() {
    let sql = "select path, share, request_start, client from operations";
    let command =
        format!("COLUMNS=60 $SMBSCOPE query $CAPTURE \"{sql}\" --color never --no-progress");
    let Some(shown) = on_terminal(&command) else { return };
    for line in shown.lines() {
        assert!(line.trim_end().chars().count() <= 60, "{line:?}");
    }
}

#[test]
fn binary_formats_are_not_written_to_terminals() {
    let command = "$SMBSCOPE ops $CAPTURE --format parquet; test $? = 2";
    let Some(shown) = on_terminal(command) else { return };
    assert!(shown.contains("--out FILE"), "{shown}");
}

#[test]
fn progress_is_shown_on_terminals_only() {
    let (_guard, dir) = folder();
    let out = dir.join("dataset").to_str().unwrap().to_owned();
    let quiet = shell(&format!("$SMBSCOPE import $CAPTURE --out {out} --quiet"));
    assert_eq!(quiet.stderr, b"");
    let Some(shown) = on_terminal(&format!("$SMBSCOPE import $CAPTURE --out {out} --force")) else {
        return;
    };
    assert!(shown.contains("121 operations"), "{shown}");
}

#[test]
fn the_prompt_answers_and_keeps_a_history() {
    let (_guard, dir) = folder();
    let state = dir.to_str().unwrap();
    if on_terminal("true").is_none() {
        return;
    }
    // Input typed before the prompt appears is lost, as on any terminal: type slower and slower.
    let lines = [r"\d", "select count(*) as n", "from operations;", "select nonsense;", r"\q"];
    let mut shown = String::new();
    for pause in [1, 3, 10] {
        let typed: String =
            lines.iter().map(|line| format!("sleep {pause}; printf '%s\\n' '{line}'; ")).collect();
        let command = format!(
            "{{ {typed} }} | XDG_STATE_HOME={state} script -qec \"$SMBSCOPE query $CAPTURE\" /dev/null"
        );
        shown = String::from_utf8_lossy(&shell(&command).stdout).into_owned();
        if shown.contains("121") && shown.contains("nonsense") {
            break;
        }
    }
    assert!(shown.contains("connections") && shown.contains("121"), "{shown}");
    assert!(shown.contains("nonsense"), "{shown}");
    let history = std::fs::read_to_string(dir.join("smbscope/history")).unwrap();
    assert!(history.contains("count(*)"), "{history}");
}

#[test]
fn columns_count_in_a_pipe_and_no_table_has_one_word_on_each_line() {
    for width in [80, 100] {
        let output = shell(&format!("COLUMNS={width} $SMBSCOPE predict --list"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        let words = text.split_whitespace().count();
        assert!(words > 3 * text.lines().count(), "{text}");
    }
    let natural = shell("$SMBSCOPE predict --list");
    let natural = String::from_utf8_lossy(&natural.stdout).into_owned();
    assert!(natural.lines().any(|line| line.chars().count() > 100), "{natural}");
}

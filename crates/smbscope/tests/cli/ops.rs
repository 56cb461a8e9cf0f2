//! `smbscope ops`.

use super::{COMMANDS, OPERATIONS, answer, capture, complaint, fixture, folder, objects, smbscope};

#[test]
fn every_operation_is_a_line() {
    let text = answer(["ops", &capture()]);
    assert_eq!(text.lines().count() as u64, OPERATIONS);
    for (command, n) in COMMANDS {
        let name = format!("  {command} ");
        let lines = text.lines().filter(|line| line.contains(&name)).count() as u64;
        assert_eq!(lines, n, "{command}");
    }
    insta::assert_snapshot!(
        "ops_first_lines",
        text.lines().take(12).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn operations_appear_while_a_pipe_is_written() {
    use std::io::{BufRead, Write};
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
        .args(["ops", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = std::fs::read(capture()).unwrap();
    stdin.write_all(&bytes[..bytes.len() / 2]).unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let first = lines.next();
        send.send(first).unwrap();
        lines.count()
    });
    // The pipe is still open: output for the data so far must be there nevertheless.
    let first = receive.recv_timeout(std::time::Duration::from_secs(60));
    assert!(first.unwrap().unwrap().unwrap().contains("Negotiate"));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn times_can_be_relative_or_epoch() {
    let relative = answer(["ops", &capture(), "--time", "relative", "--limit", "1"]);
    assert!(relative.trim_start().starts_with("0.000000  "), "{relative}");
    let epoch = answer(["ops", &capture(), "--time", "epoch", "--limit", "1"]);
    let seconds: f64 = epoch.split_whitespace().next().unwrap().parse().unwrap();
    assert!(seconds > 1e9, "{epoch}");
}

#[test]
fn where_columns_and_limit_select_rows() {
    let capture = capture();
    let arguments = ["ops", &capture, "--where", "command = 'Read'", "--format", "json"];
    let rows = objects(&answer(arguments));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["command"], "Read");
    assert!(rows[0]["request_start"].is_i64() && rows[0].get("queue_ns").is_none());
    let csv = answer(["ops", &capture, "--columns", "message_id,command", "--format", "csv"]);
    assert_eq!(csv.lines().next(), Some("message_id,command"));
    assert_eq!(csv.lines().count() as u64, OPERATIONS + 1);
    let table = answer(["ops", &capture, "--columns", "command,path", "--limit", "3"]);
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.starts_with("command "));
    // The end of a comment does not swallow what surrounds the condition.
    let some = answer(["ops", &capture, "--where", "command = 'Read' -- only", "--limit", "5"]);
    assert_eq!(some.lines().count(), 1);
    assert!(complaint(2, ["ops", &capture, "--columns", "nonsense"]).contains("nonsense"));
    assert!(complaint(6, ["ops", &capture, "--where", "nonsense = 1"]).contains("--where"));
}

#[test]
fn where_keeps_the_order() {
    let capture = capture();
    let all = answer(["ops", &capture, "--columns", "operation", "--format", "csv"]);
    let same =
        answer(["ops", &capture, "--columns", "operation", "--format", "csv", "--where", "true"]);
    assert_eq!(all, same);
}

#[test]
fn several_inputs_are_read_as_one() {
    let (one, other) = (capture(), fixture("errors.pcapng"));
    let lines = |inputs: &[&str]| {
        let arguments = ["ops"].into_iter().chain(inputs.iter().copied());
        answer(arguments).lines().count()
    };
    assert_eq!(lines(&[&one, &other]), lines(&[&one]) + lines(&[&other]));
}

#[test]
fn all_formats_hold_the_same_rows() {
    let (_guard, dir) = folder();
    let (capture, parquet) = (capture(), dir.join("ops.parquet"));
    let file = parquet.to_str().unwrap();
    answer(["ops", &capture, "--format", "parquet", "--out", file]);
    let bytes = std::fs::read(&parquet).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let assert = smbscope(["ops", &capture, "--format", "arrow"]).assert().success();
    assert!(assert.get_output().stdout.starts_with(&[0xff; 4]));
}

#[test]
fn anonymize_replaces_names() {
    let capture = capture();
    let plain = answer(["ops", &capture, "--format", "json"]);
    assert!(
        plain.contains("127.0.0.1") && plain.contains("alice") && plain.contains("small.txt")
            || plain.contains("one.txt")
    );
    for format in ["json", "csv", "text"] {
        let tokens = answer(["ops", &capture, "--format", format, "--anonymize"]);
        for name in ["127.0.0.1", "alice", "one.txt", "renamed", "smb302.pcap"] {
            assert!(!tokens.contains(name), "{name} in {format}");
        }
    }
    let (_guard, dir) = folder();
    let key = dir.join("key");
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    let keyed =
        || answer(["ops", &capture, "--anonymize", "--anonymize-key", key.to_str().unwrap()]);
    assert_eq!(keyed(), keyed());
    std::fs::write(&key, "short").unwrap();
    complaint(2, ["ops", &capture, "--anonymize", "--anonymize-key", key.to_str().unwrap()]);
}

#[test]
fn keys_decrypt_encrypted_sessions() {
    let capture = fixture("encrypted-aes-128-gcm-311.pcapng");
    let keys = fixture("encrypted-aes-128-gcm-311.keys");
    let count = |command: &mut assert_cmd::Command| {
        let text = super::stdout(&command.assert().success());
        text.lines().filter(|line| line.contains("(encrypted)")).count()
    };
    let without = count(&mut smbscope(["ops", &capture]));
    assert!(without > 10, "{without}");
    assert_eq!(count(&mut smbscope(["ops", &capture, "--keys", &keys])), 0);
    assert_eq!(count(smbscope(["ops", &capture]).env("SMBSCOPE_KEYS", &keys)), 0);
    let list = std::fs::read_to_string(&keys).unwrap();
    let line = list.lines().find(|line| !line.starts_with('#')).unwrap();
    assert_eq!(count(&mut smbscope(["ops", &capture, "--key", line])), 0);
}

//! `smbscope durability` on a private Samba whose processes are killed, which loses nothing: what is on the disk of this
//! machine survives. Losses are tested on a file system that has them (`crates/load/tests/durability.rs`).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::users::Users;
use super::{folder, smbscope, stdout};

/// Runs the command with the given exit code; standard output and standard error.
fn run(code: i32, arguments: &[&str]) -> (String, String) {
    let assert = smbscope([&["durability"], arguments].concat())
        .env("SMBSCOPE_PASSWORD", "secret")
        .assert()
        .code(code);
    let message = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    (stdout(&assert), message)
}

const QUICK: [&str; 6] = ["--block", "4KiB,64KiB", "--file-size", "256KiB", "--timeout", "60s"];

#[test]
fn a_server_that_loses_nothing_keeps_its_promises() {
    let Some(users) = Users::up() else { return };
    let journal = users.path("a.journal");
    let pull = format!("pkill -9 -P $(cat {}/pid/smbd*.pid)", users.lab);
    let plug = ["--pull", &pull, "--after", "2s", "--rounds", "2", "--format", "json"];
    let place = ["--lab", &users.lab, "--journal", &journal];
    let (answer, message) = run(0, &[&place, QUICK.as_slice(), &plug].concat());
    let found: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&found["broken"], &found["rounds"]), (&0.into(), &2.into()), "{found}");
    for way in found["ways"].as_array().unwrap() {
        assert!(way["writes"].as_u64() > Some(0) && way["lost"] == 0, "{way}");
    }
    assert!(message.contains("pulling the plug") && message.contains("answers again"), "{message}");
    assert!(found["notes"].to_string().contains("persistent: not offered"), "{found}");
    assert!(found["notes"].to_string().contains("does not say when it was started"), "{found}");
    // A journal is never overwritten, and the files of rounds without a fault are removed.
    let (_, message) = run(5, &[&place, QUICK.as_slice(), &plug].concat());
    assert!(message.contains("exists already"), "{message}");
    let left = Path::new(&users.lab).join("share/smbscope-durability");
    assert!(!left.exists());
    // What was verified and removed is not reported as lost.
    let (_, message) = run(9, &["--verify", "--lab", &users.lab, "--journal", &journal]);
    assert!(message.contains("nothing to verify"), "{message}");
    // A command that fails pulls nothing, whether the server is gone or not.
    let journal = users.path("b.journal");
    let place = ["--lab", &users.lab, "--journal", &journal];
    let failing = ["--pull", "exit 3", "--after", "1s"];
    let (_, message) = run(1, &[&place, QUICK.as_slice(), &failing].concat());
    assert!(message.contains("--pull") && message.contains("failed"), "{message}");
    // The files that are left are named, with a command that can be executed as it is printed.
    assert!(message.contains("the files of the run are left: smbscope-durability"), "{message}");
    let command = message.split("verify them with `").nth(1).unwrap();
    let command = command.split('`').next().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(&words[..3], ["smbscope", "durability", "--verify"], "{message}");
    run(0, &words[2..]);
}

#[test]
fn a_killed_client_leaves_a_journal_that_can_be_verified() {
    let Some(users) = Users::up() else { return };
    let journal = users.path("a.journal");
    let place = ["durability", "--lab", &users.lab, "--journal", &journal];
    let mut client = Command::new(assert_cmd::cargo::cargo_bin!("smbscope"))
        .args([&place, QUICK.as_slice()].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while std::fs::metadata(&journal).map_or(0, |file| file.len()) < 100_000 {
        assert!(begin.elapsed() < Duration::from_secs(120), "no journal");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.kill().unwrap();
    client.wait().unwrap();
    let verify = ["--verify", "--lab", &users.lab, "--journal", &journal, "--format", "json"];
    let (answer, _) = run(0, &verify);
    let found: Value = serde_json::from_str(&answer).unwrap();
    let checked: u64 =
        found["ways"].as_array().unwrap().iter().filter_map(|way| way["checked"].as_u64()).sum();
    assert!(checked > 50 && found["broken"] == 0, "{found}");
    // Cut in a record, as a kill of the machine would leave it.
    let bytes = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &bytes[..bytes.len() - 20]).unwrap();
    let (answer, _) = run(0, &verify);
    assert!(answer.contains("incomplete record"), "{answer}");
    // A block that the server lost is a fault with a code of its own.
    let share = Path::new(&users.lab).join("share/smbscope-durability");
    let round = std::fs::read_dir(share).unwrap().next().unwrap().unwrap().path().join("r0");
    for file in std::fs::read_dir(&round).unwrap() {
        let path = file.unwrap().path();
        let length = std::fs::metadata(&path).unwrap().len();
        std::fs::write(&path, vec![0; length as usize]).unwrap();
    }
    let (answer, message) = run(10, &verify);
    let found: Value = serde_json::from_str(&answer).unwrap();
    assert!(found["broken"].as_u64() > Some(50), "{found}");
    assert!(found["losses"][0]["how"] == "hole", "{}", found["losses"][0]);
    assert!(message.contains("missing or damaged"), "{message}");
    let (text, _) = run(10, &verify[..5]);
    assert!(text.contains("BROKEN") && text.contains("Broken promises"), "{text}");
}

#[test]
fn a_wrong_journal_is_refused_with_its_place() {
    let (_keep, dir) = folder();
    let path = dir.join("journal");
    let shown = path.to_str().unwrap();
    let verify = ["--verify", "//127.0.0.1:1/x", "--journal", shown];
    let (_, message) = run(4, &verify);
    assert!(message.contains("journal"), "{message}");
    std::fs::write(&path, "SQLite format 3").unwrap();
    let (_, message) = run(3, &verify);
    assert!(message.contains("not a journal of `smbscope durability`"), "{message}");
    std::fs::write(&path, b"SMBSJRN1\x10\0\0\0abc").unwrap();
    let (_, message) = run(3, &verify);
    assert!(message.contains("inside its header, at byte 15"), "{message}");
    run(2, &["--verify", "//127.0.0.1:1/x"]);
    run(2, &["//127.0.0.1:1/x", "--way", "fast"]);
    let (_, message) = run(2, &["//127.0.0.1:1/x", "--block", "1000B"]);
    assert!(message.contains("multiple of 512"), "{message}");
}

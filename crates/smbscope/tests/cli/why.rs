//! `smbscope explain --why`: one operation is found by its frame or number and explained; on captures from
//! other people, the numbers are those of tshark.

use std::path::PathBuf;

use serde_json::Value;

use super::{answer, complaint, fixture, folder, smbscope};

/// Clients open one file in turn; each opens it with an oplock and closes it when it is broken.
const BREAKS: &str = "findings/break-waits.pcap.gz";
/// Clients lock the same range.
const LOCKS: &str = "findings/lock-contention.pcap.gz";

fn why(input: &str, which: &str) -> Value {
    let text = answer(["explain", input, "--why", which, "--format", "json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    if let Some(elapsed) = value["operation"]["elapsed_ns"].as_i64() {
        let steps = value["steps"].as_array().unwrap().iter();
        let whole = steps.filter(|step| step["is_part"] == false);
        let sum: i64 = whole.filter_map(|step| step["duration_ns"].as_i64()).sum();
        assert_eq!(sum, elapsed, "{input}:{which}");
    }
    value
}

/// The output for a fixture, with a short name of the file, so that lines always break at the same place.
fn text(name: &str, which: &str) -> String {
    let (dir, file) = name.rsplit_once('/').unwrap();
    let mut command = smbscope(["explain", file, "--why", which]);
    let output = command.current_dir(fixture(dir)).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_text_fits_on_a_screen_and_begins_with_the_verdict() {
    for (name, which, snapshot) in [
        (BREAKS, "151", "why_breaks"),
        (LOCKS, "60", "why_lock"),
        ("findings/window-limited.pcap.gz", "16", "why_replies"),
        ("findings/share-conflicts.pcap.gz", "30", "why_violation"),
    ] {
        let text = text(name, which);
        assert!(text.lines().count() <= 45, "{text}");
        let long = text.lines().filter(|line| !line.starts_with("In Wireshark"));
        assert!(long.map(|line| line.chars().count()).max().unwrap() <= 100, "{text}");
        insta::assert_snapshot!(snapshot, text);
    }
}

#[test]
fn a_break_and_a_lock_are_the_reasons_of_their_waits() {
    let value = why(&fixture(BREAKS), "151");
    assert_eq!(value["reason"], "break-acknowledged");
    assert_eq!(value["breaks"][0]["answer"]["is_close"], true);
    assert!(value["verdict"].as_str().unwrap().contains("oplock break"));
    let value = why(&fixture(LOCKS), "60");
    assert_eq!(value["reason"], "holder");
    assert!(value["holders_count"].as_u64().unwrap() > 1);
    // The reply's frame, and the number, name the same operation.
    let other = why(&fixture(LOCKS), "138");
    assert_eq!(other["operation"], value["operation"]);
    let number = format!("op:{}", value["operation"]["operation"]);
    assert_eq!(why(&fixture(LOCKS), &number)["steps"], value["steps"]);
}

#[test]
fn frames_without_an_operation_and_ambiguous_ones_are_errors() {
    let locks = fixture(LOCKS);
    let said = complaint(9, ["explain", &locks, "--why", "1000000"]);
    assert!(said.contains("belongs to no operation; the nearest are frame"), "{said}");
    let said = complaint(9, ["explain", &locks, "--why", "op:1000000"]);
    assert!(said.contains("operation number 1000000 belongs to no operation"), "{said}");
    let said = complaint(2, ["explain", &locks, "--why", "x"]);
    assert!(said.contains("expected a frame number, op:NUMBER or FILE:FRAME"), "{said}");
    complaint(2, ["explain", &locks, "--why", "60", "--all"]);
    // Both files have a frame 60 with a request.
    let other = fixture("findings/lock-contention-not.pcap.gz");
    let which = answer(["ops", &other, "--columns", "request_frame", "--format", "json"]);
    let which: Vec<Value> = which.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let frames: Vec<u64> = which.iter().filter_map(|row| row["request_frame"].as_u64()).collect();
    let ours = answer(["ops", &locks, "--columns", "request_frame", "--format", "json"]);
    let ours: Vec<Value> = ours.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ours = ours.iter().filter_map(|row| row["request_frame"].as_u64());
    let both = ours.find(|frame| frames.contains(frame)).unwrap().to_string();
    let said = complaint(2, ["explain", &locks, &other, "--why", &both]);
    assert!(said.contains(&format!("lock-contention.pcap.gz:{both}")), "{said}");
    let which = format!("lock-contention-not.pcap.gz:{both}");
    let text = answer(["explain", &locks, &other, "--why", &which, "--format", "json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["operation"]["capture_file"], "lock-contention-not.pcap.gz");
}

#[test]
fn datasets_streams_and_filters_give_the_same_answer() {
    let locks = fixture(LOCKS);
    let (_keep, dir) = folder();
    let dataset = dir.join("run").to_str().unwrap().to_owned();
    answer(["import", &locks, "--out", &dataset]);
    let direct = why(&locks, "60");
    assert_eq!(why(&dataset, "60"), direct);
    let bytes = std::fs::read(&locks).unwrap();
    let mut command = smbscope(["explain", "-", "--why", "60", "--format", "json"]);
    let streamed = command.write_stdin(bytes).output().unwrap();
    let streamed: Value = serde_json::from_slice(&streamed.stdout).unwrap();
    assert_eq!(streamed["steps"], direct["steps"]);
    // A filter applies to the operation and to all that is counted.
    let locks_only = ["explain", &locks, "--why", "60", "--command", "lock", "--format", "json"];
    let value: Value = serde_json::from_str(&answer(locks_only)).unwrap();
    assert_eq!(value["steps"], direct["steps"]);
    assert!(
        value["selection"]["operations"].as_u64() < value["selection"]["operations_all"].as_u64()
    );
    let said = complaint(9, ["explain", &locks, "--why", "60", "--command", "write"]);
    assert!(said.contains("the filter options may leave it out"), "{said}");
}

#[test]
fn anonymize_hides_names_and_keeps_the_answer() {
    let words = ["explain", &fixture(LOCKS), "--why", "60", "--anonymize"].map(str::to_owned);
    let text = String::from_utf8(smbscope(words).output().unwrap().stdout).unwrap();
    assert!(text.contains("took 252 ms"), "{text}");
    for name in ["127.0.0.1", "data.mdb", "server", "stranger", "lock-contention"] {
        let words = text.replace("at the server", "").replace("server and network", "");
        assert!(!words.contains(name), "{name}: {text}");
    }
    // A file is named as the user knows it.
    let which = "lock-contention.pcap.gz:60";
    let words = ["explain", &fixture(LOCKS), "--why", which, "--anonymize"].map(str::to_owned);
    assert!(smbscope(words).output().unwrap().status.success());
}

/// A capture from other people, if this machine has it.
fn shared(name: &str) -> Option<String> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or(beside, PathBuf::from);
    let path = shared.join("captures").join(name);
    if !path.exists() {
        smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", path.display());
        return None;
    }
    Some(path.to_str().unwrap().to_owned())
}

#[test]
fn real_waits_are_explained_with_the_times_that_tshark_shows() {
    if let Some(capture) = shared("smb311-unacknowledged-break.pcap") {
        let value = why(&capture, "7");
        assert_eq!(value["reason"], "break-not-acknowledged");
        // tshark: frame.time_relative of frames 7, 8, 10 and 12.
        assert_eq!(value["breaks"][0]["at_ns"], 918_000);
        assert_eq!(value["operation"]["pending_at_ns"], 2_623_000);
        assert_eq!(value["operation"]["elapsed_ns"], 30_003_763_000_i64);
        assert_eq!(value["breaks"][0]["frame"], 8);
        let steps = value["steps"].as_array().unwrap();
        let interim = steps.iter().find(|step| step["kind"] == "interim").unwrap();
        assert_eq!(interim["frame"], 10);
        assert_eq!(value["breaks"][0]["opened_frame"], 4);
        assert!(value["timer"]["name"].as_str().unwrap().contains("oplock breaks"));
        assert_eq!(why(&capture, "8")["waiters"][0]["request_frame"], 7);
        // After the break was over.
        assert_eq!(why(&capture, "20")["breaks_count"], 0);
    }
    if let Some(capture) = shared("smb311-lease-break-healthy.pcapng") {
        let value = why(&capture, "160");
        assert_eq!((&value["reason"], &value["timer"]), (&"server".into(), &Value::Null));
        assert_eq!(value["breaks"][0]["answer"]["frame"], 167);
        assert_eq!(value["breaks"][0]["answer"]["took_ns"], 456_000);
    }
    if let Some(capture) = shared("smb302-signed-leases-compounds.pcap") {
        let value = why(&capture, "420");
        let neighbours = &value["neighbours"];
        // A proxy that passes a reply on when the next request comes.
        assert_eq!(neighbours["forwarded"]["request_frame"], 422);
        assert_eq!(neighbours["forwarded"]["elapsed_ns"], 1_372_000);
        assert_eq!(neighbours["released_by"]["request_frame"], 428);
        assert_eq!(value["timer"]["operations"], 50);
        let value = why(&capture, "1373");
        // All replies came with it, so those before it are not the reason.
        assert_eq!(
            (&value["reason"], &value["neighbours"]["blocking"]),
            (&"server".into(), &"unknown".into())
        );
        assert_eq!(value["neighbours"]["released_by"]["request_frame"], 1383);
    }
    if let Some(capture) = shared("smb202-64k-writes.pcap") {
        let value = why(&capture, "374");
        assert_eq!(value["reason"], "earlier-requests");
        assert_eq!(value["neighbours"]["blocker"]["request_frame"], 326);
        assert_eq!(value["neighbours"]["in_flight"], 7);
    }
    if let Some(capture) = shared("smb202-copy.pcap") {
        // The server looks for a name server meanwhile (ARP in frames 15 to 28).
        let value = why(&capture, "12");
        assert!(value["timer"]["name"].as_str().unwrap().contains("name service"));
    }
}

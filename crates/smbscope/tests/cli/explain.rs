//! `smbscope explain`: the classic case is solved, a healthy recording has no finding, and scripts can
//! query the result.

use std::fs;

use serde_json::Value;

use super::{answer, complaint, fixture, folder, smbscope};

/// 4,292 bytes each 62.5 ms at 45 Mbit/s, and 60 KiB the other way (tests/samba/made.py).
const CLASSIC: &str = "made/stop-and-wait.pcap.gz";

/// Packets are lost, and the server is slow for a moment (tests/findings/lab.py).
const LOSSY: &str = "findings/loss.pcap.gz";

fn diagnosis(input: &str) -> Value {
    serde_json::from_str(&answer(["explain", input, "--format", "json"])).unwrap()
}

fn figure<'a>(finding: &'a Value, name: &str) -> &'a Value {
    let figures = finding["figures"].as_array().unwrap();
    figures.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {finding}"))
}

#[test]
fn small_writes_over_distance_are_found() {
    let diagnosis = diagnosis(&fixture(CLASSIC));
    let first = &diagnosis["findings"][0];
    assert_eq!(
        (&first["trouble"], &first["confidence"]),
        (&"small-writes".into(), &"measured".into())
    );
    let value = |name| figure(first, name)["value"].as_f64().unwrap();
    assert_eq!((value("block"), value("larger_block")), (4292.0, 61_440.0));
    assert_eq!(value("round"), 62.5e6);
    assert!((value("throughput") / 0.55e6 - 1.0).abs() < 0.01);
    // Headers also count as bytes on the link.
    assert!((value("line") / 45e6 - 1.0).abs() < 0.05);
    assert!((value("times_as_much") - 12.2).abs() < 0.2);
    assert!((value("throughput_then") / 6.7e6 - 1.0).abs() < 0.02);
    // The reason why one direction is fast: reads have used large blocks.
    assert_eq!(value("block_the_other_way"), 61_440.0);
    assert!((value("throughput_the_other_way") / value("throughput_then") - 1.0).abs() < 0.02);
    // The clock ticks at 15.6 ms; the rounds are in step with it.
    assert_eq!(value("clock_tick"), 15.625e6);
    assert_eq!(figure(first, "round")["error"], 15.625e6);
    assert!(diagnosis["notes"].as_array().unwrap().iter().any(|note| note["about"] == "smb1"));
    // Frame numbers are those of the capture: a request, and its reply.
    let example = &first["examples"][0];
    let frames = ["request_frame", "response_frame"].map(|name| example[name].as_u64().unwrap());
    assert!(frames[0] > 5 && frames[1] > frames[0], "{example}");
    // With a short name, so that lines always break at the same place.
    let dir = fixture("made");
    let output = smbscope(["explain", "stop-and-wait.pcap.gz"]).current_dir(dir).output().unwrap();
    insta::assert_snapshot!("explain_classic", String::from_utf8(output.stdout).unwrap());
}

#[test]
fn small_blocks_of_smb1_are_attributed_to_the_side_that_chooses_them() {
    for (name, sentence, side) in [
        ("smb1-large-offered", "the client 10.0.0.1 does not use what the server", "client"),
        ("smb1-small-buffer", "the server 10.0.0.2 did not offer CAP_LARGE_WRITEX", "Samba"),
    ] {
        let diagnosis = diagnosis(&fixture(&format!("made/{name}.pcap.gz")));
        let first = &diagnosis["findings"][0];
        assert_eq!(first["trouble"], "small-writes", "{name}");
        assert!(first["what"].as_str().unwrap().contains(sentence), "{first}");
        assert_eq!(first["remedies"][0]["at"], side, "{name}");
    }
}

#[test]
fn findings_are_sorted_by_cost() {
    let diagnosis = diagnosis(&fixture(LOSSY));
    let saved: Vec<_> = diagnosis["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["saved_ns"].as_i64().unwrap())
        .collect();
    assert!(saved.is_sorted_by(|one, other| one >= other) && saved.len() > 1, "{saved:?}");
    assert_eq!(diagnosis["whole"]["operations"], 184);
    let few = answer(["explain", &fixture(LOSSY)]);
    let all = answer(["explain", &fixture(LOSSY), "--all"]);
    assert!(all.len() > few.len());
    // The first three findings fit on one screen.
    assert!(few.lines().count() <= 50, "{few}");
    let narrow = few.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(narrow <= 100, "{few}");
}

#[test]
fn empty_and_healthy_recordings_are_reported_as_such() {
    let (_keep, dir) = folder();
    let file = dir.join("empty.pcap");
    let capture: &[u8] =
        &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    fs::write(&file, capture).unwrap();
    let text = answer(["explain", file.to_str().unwrap()]);
    assert!(text.contains("Cannot tell: no operation has a time"), "{text}");
    answer(["explain", file.to_str().unwrap(), "--fail-on", "low"]);
}

#[test]
fn fail_on_sets_the_exit_code() {
    let classic = fixture(CLASSIC);
    let said = complaint(7, ["explain", &classic, "--fail-on", "measured"]);
    assert!(said.contains("small writes"), "{said}");
    let (_keep, dir) = folder();
    let out = dir.join("why.txt");
    let out = out.to_str().unwrap();
    answer(["explain", &classic, "--out", out]);
    assert!(fs::read_to_string(out).unwrap().contains("small writes"));
    complaint(4, ["explain", "/nowhere.pcap"]);
    complaint(2, ["explain", &classic, "--fail-on", "perhaps"]);
}

#[test]
fn anonymize_hides_names() {
    let words = ["explain", &fixture(LOSSY), "--all", "--anonymize"].map(str::to_owned);
    let text = String::from_utf8(smbscope(words).output().unwrap().stdout).unwrap();
    assert!(text.contains("Where:") && !text.contains("127.0.0.1"), "{text}");
}

#[test]
fn a_finding_says_when_it_occurred() {
    let input = fixture(CLASSIC);
    let whole = diagnosis(&input);
    let report: Value =
        serde_json::from_str(&answer(["report", &input, "--format", "json"])).unwrap();
    let (start, end) = (report["start_ns"].as_i64().unwrap(), report["end_ns"].as_i64().unwrap());
    let findings = whole["findings"].as_array().unwrap();
    for finding in findings {
        let (first, last) = (finding["first_ns"].as_i64(), finding["last_ns"].as_i64());
        let (first, last) = (first.unwrap(), last.unwrap());
        assert!(start <= first && first <= last && last <= end, "{finding}");
    }
    let first = findings[0]["first_ns"].as_i64().unwrap();
    // The finding of a later part is later.
    let options = ["explain", &input, "--format", "json", "--from", "last 12s"];
    let later: Value = serde_json::from_str(&answer(options)).unwrap();
    assert!(later["findings"][0]["first_ns"].as_i64().unwrap() > first);
    let is_long = whole["whole"]["lasted_ns"].as_i64().unwrap() >= 5_000_000_000;
    assert_eq!(answer(["explain", &input]).contains(" (UTC)."), is_long);
}

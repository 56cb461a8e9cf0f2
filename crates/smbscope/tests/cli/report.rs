//! `smbscope report`: that it is produced, in each form; its contents are tested in its crate.

use super::{
    OPERATIONS, answer, capture, complaint, fixture, folder, load_run, objects, smbscope, stdout,
};

#[test]
fn a_report_can_be_text_json_or_html() {
    let capture = capture();
    let text = answer(["report", &capture]);
    assert!(text.contains("Create") && text.contains("smb302.pcap"), "{text}");
    assert!(!text.contains('\x1b'));
    let json: serde_json::Value =
        serde_json::from_str(&answer(["report", &capture, "--format", "json"])).unwrap();
    assert_eq!(json["totals"]["operations"], OPERATIONS);
    let (_guard, dir) = folder();
    let page = dir.join("report.html");
    let said = answer(["report", &capture, "--html", page.to_str().unwrap()]);
    assert_eq!(said, "");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!") && page.contains("Create"));
}

#[test]
fn a_text_begins_with_the_verdict_and_fits_on_sixty_lines() {
    let input = fixture("findings/small-reads.pcap.gz");
    let text = answer(["report", &input]);
    let third = text.lines().nth(2).unwrap();
    let said = "Slow for users: reads go one at a time, in small blocks (";
    assert!(third.starts_with(said), "{text}");
    assert!(text.lines().count() <= 60, "{text}");
    assert!(text.contains("\n1. stop-and-wait small reads: "), "the finding has room: {text}");
    let all = answer(["report", &input, "--all"]);
    assert!(all.lines().count() > 100 && all.contains("── COVERAGE"), "{all}");
    // A hint names the file that was given.
    let hint = if cfg!(feature = "sql") {
        format!("smbscope query {input} \"select")
    } else {
        format!("smbscope import {input} --out dataset")
    };
    assert!(all.contains(&hint), "{all}");
}

/// Both read the verdict from one place.
#[test]
fn report_and_explain_begin_with_the_same_sentence() {
    for name in ["small-reads", "healthy", "break-not-acknowledged", "share-conflicts-not"] {
        let input = fixture(&format!("findings/{name}.pcap.gz"));
        let words = |command: &str| {
            let text = answer([command, &input]);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (report, explain) = (words("report"), words("explain"));
        let sentence = explain.split(" Client ").next().unwrap();
        let sentence = sentence.split(" clients were ").next().unwrap();
        assert!(sentence.contains(": "), "{explain}");
        assert!(
            report.contains(sentence.trim_end_matches(char::is_numeric).trim_end()),
            "{name}: {sentence}\n{report}"
        );
    }
}

#[test]
fn a_state_decides_the_exit_code_only_if_it_is_wanted() {
    let broken = fixture("findings/break-not-acknowledged.pcap.gz");
    let healthy = fixture("findings/healthy.pcap.gz");
    for command in ["report", "explain"] {
        answer([command, &broken]);
        for state in ["slow", "broken", "unknown"] {
            complaint(7, [command, &broken, "--fail-on", state]);
            answer([command, &healthy, "--fail-on", state]);
        }
        // A site that notices a tenth of a second.
        let far = fixture("findings/slow-filesystem.pcap.gz");
        complaint(7, [command, &far, "--fail-on", "slow", "--noticed", "10ms"]);
        answer([command, &far, "--fail-on", "slow", "--noticed", "1h"]);
    }
}

/// A capture of something else showed all sections, empty.
#[test]
fn a_capture_without_smb_says_what_it_holds_and_what_to_do() {
    let (_guard, dir) = folder();
    let path = dir.join("arp.pcap");
    // Little-endian pcap of one ARP frame.
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    bytes.extend([0; 8]);
    bytes.extend([255, 255, 0, 0, 1, 0, 0, 0]);
    bytes.extend([1, 0, 0, 0, 1, 0, 0, 0, 14, 0, 0, 0, 14, 0, 0, 0]);
    bytes.extend([0; 12]);
    bytes.extend([8, 6]);
    std::fs::write(&path, bytes).unwrap();
    let text = answer(["report", path.to_str().unwrap()]);
    assert!(text.contains("There are no SMB operations here."), "{text}");
    assert!(text.contains("The input holds 1 packet, 1 of them not TCP."), "{text}");
    assert!(text.contains("port 445") && !text.contains("── COMMANDS"), "{text}");
    assert_eq!(text.matches("\n── ").count(), 1, "{text}");
}

#[test]
fn times_are_local_or_utc() {
    let capture = capture();
    let head = |zone: &str, more: &[&str]| {
        let mut command = smbscope([&["report", capture.as_str()], more].concat());
        let text = stdout(&command.env("TZ", zone).assert().success());
        text.lines().next().unwrap().to_owned()
    };
    let utc = head("<+02>-2", &["--utc"]);
    let local = head("<+02>-2", &[]);
    assert!(utc.contains(" UTC, for "), "{utc}");
    assert!(local.contains(" +02:00, for "), "{local}");
    assert_eq!(head("UTC", &[]), utc);
}

#[test]
fn a_dataset_reports_like_its_capture() {
    let (_guard, dir) = folder();
    let dataset = dir.join("dataset");
    let out = dataset.to_str().unwrap();
    answer(["import", &capture(), "--out", out]);
    let of = |input: &str| -> serde_json::Value {
        let text = answer(["report", input, "--format", "json"]);
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value.as_object_mut().unwrap().remove("inputs");
        value
    };
    assert_eq!(of(out), of(&capture()));
}

#[test]
fn anonymize_replaces_names() {
    for format in ["text", "json"] {
        let text = answer(["report", &capture(), "--format", format, "--anonymize"]);
        for name in ["127.0.0.1", "alice", "one.txt", "smb302.pcap"] {
            assert!(!text.contains(name), "{name} in {format}");
        }
    }
    let (_guard, dir) = folder();
    let page = dir.join("report.html");
    answer(["report", &capture(), "--html", page.to_str().unwrap(), "--anonymize"]);
    let page = std::fs::read_to_string(page).unwrap();
    for name in ["127.0.0.1", "alice", "one.txt", "smb302.pcap"] {
        assert!(!page.contains(name), "{name}");
    }
}

#[test]
fn change_shows_the_numbers_of_predict() {
    let (_guard, dir) = folder();
    let run = load_run::run(&dir, 1, |_| {});
    for (input, changes) in
        [(capture(), ["bandwidth=8mbit", "window=8000"]), (run, ["compound=on", "channels=2"])]
    {
        let change = changes.map(|change| format!("--change={change}"));
        let change = change.each_ref().map(String::as_str);
        let json = |command: &str| {
            let words = [command, &input, "--format", "json"];
            answer([words.as_slice(), &change].concat())
        };
        let report: serde_json::Value = serde_json::from_str(&json("report")).unwrap();
        let forecast = &report["forecast"];
        let predicted = objects(&json("predict"));
        let mut found = 0;
        for (of, rows) in [
            ("command", forecast["commands"].as_array().unwrap().as_slice()),
            ("scenario", forecast["scenarios"].as_array().unwrap().as_slice()),
            ("operations", std::slice::from_ref(&forecast["operations"])),
            ("scenarios", std::slice::from_ref(&forecast["all_scenarios"])),
        ] {
            for wanted in predicted.iter().filter(|record| record["of"] == of) {
                let row = rows.iter().find(|row| rows.len() == 1 || row["name"] == wanted["name"]);
                let row = row.unwrap();
                assert_eq!(row["count"], wanted["count"]);
                for side in ["before", "after"] {
                    let ns = row[format!("{side}_ns")].as_i64().map(|ns| ns as f64 / 1e9);
                    let seconds = wanted[format!("{side}_seconds")].as_f64();
                    let difference = ns.unwrap_or(0.0) - seconds.unwrap_or(0.0);
                    assert!(difference.abs() < 1e-9, "{side} of {row}: {wanted}");
                }
                found += 1;
            }
        }
        for (of, list) in [("assumption", "assumptions"), ("warning", "warnings")] {
            let said = predicted.iter().filter(|record| record["of"] == of);
            let names: Vec<_> = said.map(|record| record["name"].clone()).collect();
            assert_eq!(&names, forecast[list].as_array().unwrap(), "{of}");
            found += names.len();
        }
        let others = ["capacity", "note"].map(serde_json::Value::from);
        let n = predicted.iter().filter(|record| !others.contains(&record["of"])).count();
        assert_eq!(found, n);
        assert_eq!(forecast["changes"].as_array().unwrap().len(), 2);
    }
    let input = capture();
    let page = dir.join("report.html");
    let changed = ["report", &input, "--change", "rtt=20ms"];
    answer([&changed[..], &["--html", page.to_str().unwrap()]].concat());
    assert!(std::fs::read_to_string(page).unwrap().contains("id=\"forecast\""));
    let text = answer([&changed[..], &["--all"]].concat());
    assert!(text.contains("WHAT A CHANGE WOULD BRING") && text.contains("Predicted"), "{text}");
    assert!(!answer(["report", &input, "--all"]).contains("WHAT A CHANGE"));
}

#[test]
fn change_refuses_what_predict_refuses() {
    let (_guard, dir) = folder();
    let page = dir.join("report.html");
    // Nothing is known about its connections, so there is no round trip to change.
    let unknown = load_run::run(&dir, 1, |_| {});
    for (input, change) in [
        (capture(), "filesystem=4x"),
        (capture(), "users=100"),
        (capture(), "write-through=on"),
        (capture(), "speed=2x"),
        (unknown, "rtt=20ms"),
    ] {
        let predict = complaint(2, ["predict", &input, "--change", change]);
        let words = ["report", &input, "--change", change, "--html", page.to_str().unwrap()];
        let report = complaint(2, words);
        let first = |said: &str| said.lines().next().unwrap_or_default().to_owned();
        assert_eq!(first(&report), first(&predict), "{change}");
        assert!(!page.exists(), "{change}");
    }
    let said = complaint(2, ["report", &capture(), "--change", "rtt=1ms", "--step", "1"]);
    assert!(said.contains("--step"), "{said}");
}

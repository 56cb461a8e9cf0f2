//! `smbscope predict`: the published tables, replays of recordings, and errors.

use std::fs;

use serde_json::Value;

use super::{answer, capture, complaint, fixture, folder, load_run, objects};

/// Totals of the published table: SMB 2.1, collapsed opens, directory leases; s.
const TOTALS: [(&str, f64); 3] = [("smb21", 117.045), ("dircache", 107.565), ("dirlease", 74.609)];

#[test]
fn the_published_table_is_reproduced() {
    for (profile, within) in [("published", 0.001), ("published-means", 0.05)] {
        let records = objects(&answer(["predict", "--profile", profile, "--format", "json"]));
        assert_eq!(records.len(), 13 * 3);
        let number = |record: &serde_json::Value, name: &str| record[name].as_f64().unwrap();
        for record in &records {
            let parts = ["network_seconds", "server_seconds", "constant_seconds"];
            let sum: f64 = parts.map(|part| number(record, part)).iter().sum();
            assert!((sum - number(record, "seconds")).abs() < 1e-9, "{record}");
            assert!(record.get("before_seconds").is_none(), "{record}");
        }
        for (option, wanted) in TOTALS {
            let total =
                records.iter().find(|one| one["scenario"] == "Total" && one["option"] == option);
            let found = number(total.unwrap(), "seconds");
            assert!((found / wanted - 1.0).abs() < within, "{profile} {option}: {found}");
        }
    }
    let far = ["predict", "--profile", "published", "--change"];
    let full = |change| answer([&far[..], &[change]].concat()).contains("An hour has no more");
    assert!(full("rtt=500ms") && !full("rtt=20ms"));
    let text = answer(["predict", "--profile", "published"]);
    assert!(text.contains("WordFileOpen") && text.contains("round trip 4 ms"), "{text}");
}

#[test]
fn a_change_shows_times_before_and_after() {
    let changes = ["--change", "rtt=2ms", "--change", "distance=200km"];
    let same = [&["predict", "--profile", "published"], changes.as_slice()].concat();
    // 2 ms and 200 km of fibre, both ways, are today's 4 ms.
    for record in objects(&answer([same.as_slice(), &["--format", "json"]].concat())) {
        assert!(record["change_percent"].as_f64().unwrap().abs() < 1e-9, "{record}");
    }
    let leases = ["predict", "--profile", "published", "--change", "dirlease"];
    let records = objects(&answer([leases.as_slice(), &["--format", "json"]].concat()));
    let total = records.last().unwrap();
    assert_eq!(total["option"], "dirlease");
    let percent = total["change_percent"].as_f64().unwrap();
    assert!((percent - 100.0 * (74.609 / 117.045 - 1.0)).abs() < 0.1, "{total}");
    let text = answer(leases);
    assert!(text.contains("before") && text.contains("Assumptions"), "{text}");
    let csv = answer([leases.as_slice(), &["--format", "csv"]].concat());
    assert!(csv.starts_with("scenario,option,seconds,network_seconds"), "{csv}");
}

#[test]
fn list_describes_every_change() {
    // A profile has no sizes, users or requests that could be changed.
    const OF_A_PROFILE: [&str; 7] =
        ["rtt", "distance", "filesystem", "cpu", "queue", "dircache", "dirlease"];
    let text = answer(["predict", "--list"]);
    for record in objects(&answer(["predict", "--list", "--format", "json"])) {
        let example = record["example"].as_str().unwrap();
        assert!(text.contains(example));
        let words = ["predict", "--profile", "published", "--change", example];
        if !OF_A_PROFILE.contains(&record["change"].as_str().unwrap()) {
            let said = complaint(2, words);
            assert!(said.contains(record["needs"].as_str().unwrap()), "{said}");
        } else {
            answer(words);
        }
    }
}

fn seconds(record: &Value, name: &str) -> f64 {
    record[name].as_f64().unwrap_or_else(|| panic!("{name} of {record}"))
}

#[test]
fn a_capture_is_replayed_over_another_link() {
    let input = capture();
    let records = objects(&answer(["predict", &input, "--change", "rtt=20ms", "--format", "json"]));
    let all = records.iter().find(|record| record["of"] == "operations").unwrap();
    // Each operation takes the new round trip longer, minus today's on a loopback device.
    let longer = seconds(all, "after_seconds") - seconds(all, "before_seconds");
    assert!((0.0199..0.02).contains(&longer), "{longer}");
    for (of, part) in [("assumption", "because of the last reply"), ("warning", "far outside")] {
        let said = records.iter().find(|record| record["of"] == of).expect(of);
        assert!(said["name"].as_str().unwrap().contains(part), "{said}");
    }
    for record in records.iter().filter(|record| record["before_seconds"].is_number()) {
        for side in ["before", "after"] {
            let parts = record.as_object().unwrap().iter().filter(|(name, _)| {
                let part = name.strip_prefix(side).and_then(|name| name.strip_prefix('_'));
                part.is_some_and(|part| {
                    !["", "error_", "p50_", "p95_", "p99_"]
                        .contains(&part.trim_end_matches("seconds"))
                })
            });
            let sum: f64 = parts.filter_map(|(_, value)| value.as_f64()).sum();
            let whole = seconds(record, &format!("{side}_seconds"));
            assert!((sum - whole).abs() < 2e-9, "{side} of {record}: {sum}");
        }
    }
    let text = answer(["predict", &input, "--change", "rtt=20ms"]);
    assert!(text.contains("predicted 20.0 ms") && text.contains("Warnings"), "{text}");
    let text = answer(["predict", &input]);
    assert!(text.contains("What times consist of") && !text.contains("after ms"), "{text}");
}

#[test]
fn detail_shows_parts_by_command_and_size() {
    let input = fixture("mtu-1500.pcap");
    let words = ["predict", &input, "--detail"];
    let text = answer(words);
    assert!(text.contains("to the clients") && text.contains("Total"), "{text}");
    let records = objects(&answer([words.as_slice(), &["--format", "json"]].concat()));
    let is_all = |record: &&Value| record["part"] == "all";
    for whole in records.iter().filter(is_all) {
        let key = |record: &Value| (record["command"].clone(), record["least_bytes"].clone());
        let parts = records.iter().filter(|one| key(one) == key(whole) && !is_all(one));
        let sum: f64 = parts.map(|part| seconds(part, "mean_seconds")).sum();
        assert!((sum - seconds(whole, "mean_seconds")).abs() < 2e-9, "{whole}: {sum}");
    }
    let reads: Vec<_> = records
        .iter()
        .filter(|one| one["command"] == "Read" && is_all(one))
        .map(|one| (one["most_bytes"].as_u64(), one["operations"].as_u64().unwrap()))
        .collect();
    let (all, sized) = reads.split_first().unwrap();
    assert_eq!(all.0, None);
    assert!(sized.is_empty() || all.1 == sized.iter().map(|one| one.1).sum::<u64>(), "{reads:?}");
    complaint(2, ["predict", &input, "--detail", "--change", "rtt=20ms"]);
}

#[test]
fn a_saved_profile_can_be_used() {
    let (_keep, dir) = folder();
    let run = load_run::run(&dir, 1, |_| {});
    let file = dir.join("profile.json");
    let file = file.to_str().unwrap();
    let words = ["predict", "--profile", file, "--change", "rtt=20ms"];
    // The round trips of its connections are unknown: they would count twice in the prediction.
    answer(["predict", &run, "--save-profile", file]);
    let said = complaint(2, words);
    assert!(said.contains("the recorded round trip"), "{said}");
    let text = answer(["predict", "--profile", file]);
    assert!(text.contains("round trip of 2 of them is not known"), "{text}");
    // A profile is saved of a recording, not of a prediction.
    complaint(2, ["predict", &run, "--save-profile", file, "--change", "rtt=20ms"]);
    answer(["predict", &capture(), "--save-profile", file, "--force"]);
    let records = objects(&answer([words.as_slice(), &["--format", "json"]].concat()));
    let total = records.iter().find(|record| record["scenario"] == "Total").unwrap();
    assert_eq!(total["option"], "recorded");
    assert!(seconds(total, "seconds") > seconds(total, "before_seconds"), "{total}");
    let text = answer(words);
    assert!(text.contains("as recorded") && text.contains("predicted 20 ms"), "{text}");
    let said = complaint(2, ["predict", "--profile", file, "--change", "dirlease"]);
    assert!(said.contains("--change dirlease"), "{said}");
    for (text, wanted) in [("{}", "is not a valid profile"), ("nonsense", "is not a valid profile")]
    {
        fs::write(file, text).unwrap();
        let said = complaint(4, ["predict", "--profile", file]);
        assert!(said.contains(wanted) && said.contains("published-means"), "{said}");
    }
    let said = complaint(4, ["predict", "--profile", "nonsense"]);
    assert!(said.contains("published-means") && said.contains("--save-profile"), "{said}");
    complaint(5, ["predict", &run, "--save-profile", "/nowhere/profile.json"]);
}

#[test]
fn a_load_run_without_capacity_says_why() {
    let (_keep, dir) = folder();
    let run = load_run::run(&dir, 1, |run| run.pacing = "closed".into());
    let text = answer(["predict", &run]);
    assert!(text.contains("Scenarios") && text.contains("Capacity"), "{text}");
    let said = complaint(2, ["predict", &run, "--change", "users=2300"]);
    assert!(said.contains("--change users") && said.contains("follow no schedule"), "{said}");
}

#[test]
fn missing_data_is_reported_with_a_remedy() {
    let input = capture();
    for (change, wanted) in [
        ("filesystem=4x", "smbscope record"),
        ("cpu=2x", "smbscope record"),
        ("queue=0%", "smbscope record"),
        ("users=100", "smbscope load"),
        ("cache-hit=90%", "smbscope record"),
        ("signing=aes-gmac", "smbscope predict calibrate"),
        ("encryption=aes-128-gcm", "smbscope predict calibrate"),
        ("write-through=on", "Flush requests"),
        ("replication=sync,rtt=5ms", "Flush requests"),
    ] {
        let said = complaint(2, ["predict", &input, "--change", change]);
        assert!(said.contains(wanted), "{change}: {said}");
    }
    let (_keep, dir) = folder();
    let run = load_run::run(&dir, 1, |_| {});
    for change in ["block=1MiB", "depth=8"] {
        let said = complaint(2, ["predict", &run, "--change", change]);
        assert!(said.contains("reads and writes"), "{change}: {said}");
    }
    let blocks = fixture("mtu-1500.pcap");
    let said = complaint(2, ["predict", &blocks, "--change", "block=4KiB"]);
    assert!(said.contains("a second block size"), "{said}");
    complaint(2, ["predict", &input, "--profile", "published"]);
}

#[test]
fn conflicting_changes_are_reported() {
    let input = capture();
    let said = complaint(2, ["predict", &input, "--change", "depth=8", "--change", "block=1MiB"]);
    assert!(said.contains("cannot be predicted together"), "{said}");
    let changes = ["--change", "distance=100km", "--change", "rtt=20ms"];
    let text = answer([["predict", &input].as_slice(), &changes].concat());
    assert!(text.contains("--change distance=100km has no effect"), "{text}");
    let text = answer(["predict", &input, "--change", "dirlease"]);
    assert!(text.contains("Times are per recorded operation"), "{text}");
}

#[test]
fn caches_answer_repeated_lookups() {
    let input = capture();
    let words = ["predict", &input, "--change", "dirlease", "--format", "json"];
    let records = objects(&answer(words));
    let sent: Vec<_> = records.iter().filter(|record| record["of"] == "sent").collect();
    let sum = |name: &str| sent.iter().map(|one| one[name].as_u64().unwrap()).sum::<u64>();
    let all = records.iter().find(|record| record["of"] == "operations").unwrap();
    assert_eq!(all["count"].as_u64(), Some(sum("count")));
    assert_eq!(all["count_after"].as_u64(), Some(sum("count_after")));
    assert!(sent.iter().all(|one| one["command"].is_string()));
    let text = answer(["predict", &input, "--change", "dirlease"]);
    assert!(text.contains("The clients' caches answer"), "{text}");
}

#[test]
fn replication_shows_the_possible_loss() {
    let input = capture();
    let change = ["--change", "replication=async,rtt=5ms,bandwidth=1mbit"];
    let text = answer([["predict", &input].as_slice(), &change].concat());
    assert!(text.contains("is lost if the first server is lost"), "{text}");
    let records =
        objects(&answer([["predict", &input, "--format", "json"].as_slice(), &change].concat()));
    let all = records.iter().find(|record| record["of"] == "operations").unwrap();
    assert!(seconds(all, "at_risk_most_bytes") >= seconds(all, "at_risk_bytes"));
    assert!(seconds(all, "at_risk_most_seconds") >= 0.0025);
}

#[test]
fn signing_and_encryption_reduce_the_capacity() {
    let (_keep, dir) = folder();
    let (run, file) = (load_run::paced(&dir), dir.join("crypto.json"));
    // Cost at the server per message, ms.
    let costing = |ms: f64| {
        let cost = format!("{{\"message_ns\": {}, \"byte_ns\": 0.0}}", 1e6 * ms);
        let side = |cost: &str| format!("{{\"inbound\": {cost}, \"outbound\": {cost}}}");
        let none = side("{\"message_ns\": 0.0, \"byte_ns\": 0.0}");
        let costs = format!(
            "{{\"protection\": \"aes-128-gcm\", \"server\": {}, \"client\": {none}}}",
            side(&cost)
        );
        let text = format!(
            "{{\"machine\": \"\", \"server\": \"\", \"client\": \"\", \"costs\": [{costs}]}}"
        );
        std::fs::write(&file, text).unwrap();
    };
    let change = ["--change", "encryption=aes-128-gcm", "--calibration", file.to_str().unwrap()];
    let words = [["predict", &run].as_slice(), &change].concat();
    costing(2.5);
    let records = objects(&answer([words.as_slice(), &["--format", "json"]].concat()));
    let of = |kind: &str| records.iter().find(|record| record["of"] == kind).unwrap();
    let [today, then] = ["capacity", "capacity_then"].map(|kind| seconds(of(kind), "users"));
    assert!((today - 200.0).abs() < 0.1 && (then - 400.0 / 3.0).abs() < 0.1, "{today} {then}");
    let more = |name: &str| {
        seconds(of("operations"), &format!("after_{name}"))
            - seconds(of("operations"), &format!("before_{name}"))
    };
    assert!((more("crypto_in_seconds") - 0.0025).abs() < 1e-6);
    // Two CPUs that are 75 % busy instead of 50 %, as a queue: 15 ms x 9/7 instead of 10 ms x 1/3.
    let waits = 0.015 * 9.0 / 7.0 - 0.010 / 3.0;
    assert!((more("server_seconds") / waits - 1.0).abs() < 0.5, "{}", more("server_seconds"));
    let text = answer(words.clone());
    for part in ["5.00 ms more of the server's CPUs", "Capacity with the changes", "at 133 users"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    costing(6.0);
    let text = answer(words.clone());
    for part in ["waits for the server are not included", "then carries about 91", "without end"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let arguments = [words.as_slice(), &["--change", "users=100"]].concat();
    assert!(complaint(2, arguments).contains("then carries about 91"));
    // With fewer users there is an answer.
    let text = answer([words.as_slice(), &["--change", "users=50"]].concat());
    assert!(text.contains("at 91 users") && text.contains("55.0 % with the changes"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_calibration_is_measured_and_used() {
    let (_keep, dir) = folder();
    let file = dir.join("crypto.json");
    let file = file.to_str().unwrap();
    if std::process::Command::new("/usr/sbin/smbd").arg("--version").output().is_err() {
        return smbscope_testing::skip!("no Samba here (apt-get install samba)");
    }
    let text = answer(["predict", "calibrate", "--seconds", "1", "--out", file]);
    for part in ["aes-cmac", "Samba", "GB/s", "One operation of 64 KiB", file] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let measured: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(measured["measured_at"].as_str().unwrap().ends_with('Z'), "{measured}");
    let costs = measured["costs"].as_array().unwrap();
    assert_eq!(costs.len(), 7, "{measured}");
    // CMAC processes one block after the other, on any CPU.
    let cmac = costs.iter().find(|one| one["protection"] == "aes-cmac").unwrap();
    for side in ["server", "client"] {
        for way in ["inbound", "outbound"] {
            assert!(cmac[side][way]["byte_ns"].as_f64().unwrap() > 0.0, "{side} {way}: {measured}");
        }
    }
    let input = capture();
    let words = ["predict", &input, "--change", "encryption=aes-128-ccm", "--calibration", file];
    let records = objects(&answer([words.as_slice(), &["--format", "json"]].concat()));
    let all = records.iter().find(|record| record["of"] == "operations").unwrap();
    assert!(seconds(all, "after_seconds") > seconds(all, "before_seconds"), "{all}");
    std::fs::write(file, "{}").unwrap();
    let said = complaint(4, words);
    assert!(said.contains("is not a valid calibration"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn failed_calibrations_are_reported() {
    let said = complaint(1, ["predict", "calibrate", "--samba", "/nowhere"]);
    assert!(said.contains("smbd was not found at /nowhere"), "{said}");
    complaint(2, ["predict", "calibrate", "--seconds", "0"]);
    let said = complaint(5, ["predict", "calibrate", "--out", "/nowhere/crypto.json"]);
    assert!(said.contains("/nowhere/crypto.json"), "{said}");
}

#[test]
fn wrong_options_are_reported() {
    complaint(2, ["predict"]);
    let said = complaint(2, ["predict", "--profile", "published", "--change", "speed=2x"]);
    assert!(said.contains("known changes: rtt, distance"), "{said}");
    // With leases there are no collapsed opens left to predict.
    let both = ["--change", "dirlease", "--change", "dircache=collapse"];
    let said = complaint(2, [["predict", "--profile", "published"].as_slice(), &both].concat());
    assert!(said.contains("--change dircache"), "{said}");
}

#[test]
fn a_prediction_can_be_a_page() {
    let (_guard, dir) = folder();
    let page = |words: &[&str]| {
        let path = dir.join("prediction.html");
        let said = answer([words, &["--force", "--html", path.to_str().unwrap()]].concat());
        assert_eq!(said, "");
        std::fs::read_to_string(path).unwrap()
    };
    let recorded = page(&["predict", &capture(), "--change", "rtt=20ms"]);
    for words in ["times as long.</h1>", "id=\"forecast\"", "Network: one round trip"] {
        assert!(recorded.contains(words), "{words}");
    }
    let profile = page(&["predict", "--profile", "published", "--change", "rtt=20ms"]);
    assert!(
        profile.contains("All scenarios of a user would be") && profile.contains("WordFileOpen")
    );
}

//! `smbscope predict`: the published tables come out, and what a change is.

use super::{answer, complaint, objects};

/// Totals of the published table: SMB 2.1, collapsed opens, directory leases; s.
const TOTALS: [(&str, f64); 3] = [("smb21", 117.045), ("dircache", 107.565), ("dirlease", 74.609)];

#[test]
fn the_published_table_comes_out() {
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
    let text = answer(["predict", "--profile", "published"]);
    assert!(text.contains("WordFileOpen") && text.contains("round trip 4 ms"), "{text}");
}

#[test]
fn a_change_has_a_before_and_an_after() {
    let changes = ["--change", "rtt=2ms", "--change", "distance=200km"];
    let same = [&["predict", "--profile", "published"], changes.as_slice()].concat();
    // 2 ms and 200 km of fibre, both ways, are the 4 ms of today.
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
    assert!(text.contains("before") && text.contains("Taken for granted"), "{text}");
    let csv = answer([leases.as_slice(), &["--format", "csv"]].concat());
    assert!(csv.starts_with("scenario,option,seconds,network_seconds"), "{csv}");
}

#[test]
fn the_list_explains_every_change() {
    let text = answer(["predict", "--list"]);
    for record in objects(&answer(["predict", "--list", "--format", "json"])) {
        let example = record["example"].as_str().unwrap();
        assert!(text.contains(example));
        answer(["predict", "--profile", "published", "--change", example]);
    }
}

#[test]
fn what_is_wrong_is_told() {
    complaint(2, ["predict"]);
    complaint(2, ["predict", "--profile", "nonsense"]);
    let said = complaint(2, ["predict", "--profile", "published", "--change", "speed=2x"]);
    assert!(said.contains("there are rtt, distance"), "{said}");
    // With leases there are no collapsed opens left to be predicted.
    let both = ["--change", "dirlease", "--change", "dircache=collapse"];
    let said = complaint(2, [["predict", "--profile", "published"].as_slice(), &both].concat());
    assert!(said.contains("--change dircache"), "{said}");
}

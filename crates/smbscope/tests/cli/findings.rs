//! `smbscope explain` on recorded problems (tests/findings/lab.py --record-fixtures): the problem
//! of a recording is the first finding, and near misses have no such finding.

use std::fs;

use serde_json::Value;

use super::{answer, fixture};

/// Causes that explain less are not findings.
const MIN_SHARE: f64 = 0.05;
/// Fixtures of notes, which have no cost in time.
const NOTES: [&str; 4] = ["channels", "not-stable", "one-connection", "signing"];

/// The findings for a capture, the most costly first; for the fixture of a note, the notes.
fn found(name: &str, capture: &str) -> Vec<String> {
    let diagnosis: Value =
        serde_json::from_str(&answer(["explain", capture, "--format", "json"])).unwrap();
    let texts = |list: &str, field: &str, least: f64| -> Vec<String> {
        let list = diagnosis[list].as_array().unwrap().iter();
        list.filter(|one| one["share"].as_f64().is_none_or(|share| share >= least))
            .map(|one| one[field].as_str().unwrap().to_owned())
            .collect()
    };
    if NOTES.contains(&name.trim_end_matches("-not")) {
        texts("notes", "about", 0.0)
    } else {
        texts("findings", "trouble", MIN_SHARE)
    }
}

/// What is wrong with the findings for the fixture of that name.
fn wrong(name: &str, found: &[String]) -> Option<String> {
    let is_wrong = match name.strip_suffix("-not") {
        _ if name == "healthy" => !found.is_empty(),
        Some(trouble) => found.iter().any(|one| one == trouble),
        None if NOTES.contains(&name) => !found.iter().any(|one| one == name),
        None => found.first().is_none_or(|first| first != name),
    };
    is_wrong.then(|| format!("{name}: found {found:?}"))
}

#[test]
fn recorded_problems_are_found_and_near_misses_are_not() {
    let dir = fixture("findings");
    let mut names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let is_dataset = entry.path().is_dir();
            (is_dataset || name.ends_with(".pcap.gz")).then_some(name)
        })
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{dir}");
    let failed: Vec<_> = names
        .iter()
        .filter_map(|file| {
            let name = file.trim_end_matches(".pcap.gz");
            wrong(name, &found(name, &format!("{dir}/{file}")))
        })
        .collect();
    assert!(failed.is_empty(), "of {} fixtures:\n{}", names.len(), failed.join("\n"));
}

#[test]
fn findings_without_a_time_are_notes() {
    // Each in a recording that shows it, and not in one that nearly does.
    for (about, shows, not) in [
        ("smb1", "nt1-write.pcap.gz", "smb1-to-smb2-negotiate.pcapng"),
        ("small-maximum", "smb202.pcapng.gz", "smb210.pcap"),
        ("unseen", "encrypted-aes-128-gcm-311.pcapng", "smb311.pcapng"),
        ("loss", "findings/loss.pcap.gz", "findings/loss-not.pcap.gz"),
    ] {
        let notes = |name: &str| {
            let diagnosis = answer(["explain", &fixture(name), "--format", "json"]);
            let diagnosis: Value = serde_json::from_str(&diagnosis).unwrap();
            diagnosis["notes"].as_array().unwrap().iter().any(|note| note["about"] == about)
        };
        assert_eq!((notes(shows), notes(not)), (true, false), "{about}");
    }
}

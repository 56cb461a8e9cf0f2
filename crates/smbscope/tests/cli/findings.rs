//! `smbscope explain` on recorded troubles (tests/findings/lab.py --record-fixtures): what shows a trouble is told
//! so first, and what nearly does is not.

use std::fs;

use serde_json::Value;

use super::{answer, fixture};

/// What explains less is no finding.
const LEAST_SHARE: f64 = 0.05;
/// Fixtures of notes, which have no time.
const NOTES: [&str; 3] = ["multichannel-unused", "not-stable", "one-connection"];

/// What is told of a capture, most costly first; of one of a note, the notes.
fn told(name: &str, capture: &str) -> Vec<String> {
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
        texts("findings", "trouble", LEAST_SHARE)
    }
}

/// What is wrong with what is told of a fixture of that name.
fn wrong(name: &str, told: &[String]) -> Option<String> {
    let is_wrong = match name.strip_suffix("-not") {
        _ if name == "healthy" => !told.is_empty(),
        Some(trouble) => told.iter().any(|one| one == trouble),
        None if NOTES.contains(&name) => !told.iter().any(|one| one == name),
        None => told.first().is_none_or(|first| first != name),
    };
    is_wrong.then(|| format!("{name}: told {told:?}"))
}

#[test]
fn recorded_troubles_are_told_and_near_misses_are_not() {
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
            wrong(name, &told(name, &format!("{dir}/{file}")))
        })
        .collect();
    assert!(failed.is_empty(), "of {} fixtures:\n{}", names.len(), failed.join("\n"));
}

#[test]
fn what_has_no_time_is_noted() {
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

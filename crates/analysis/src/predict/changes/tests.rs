//! The list of changes: each is parsed, printed, and named in its own file only.

use std::path::{Path, PathBuf};

use super::*;
use crate::predict::plan::Replication;

fn parse(text: &str) -> Result<Change, String> {
    text.parse()
}

#[test]
fn every_example_is_parsed_and_printed() {
    for entry in REGISTRY {
        let change = parse(entry.spec.example).unwrap();
        assert_eq!(change.name(), entry.spec.name);
        assert!(!change.assumption().is_empty());
        assert!(!change.sentence().is_empty());
        assert_eq!(parse(&change.to_string()), Ok(change), "{change}");
        let mut plan = Plan::default();
        change.plan(&mut plan);
        assert_ne!(plan, Plan::default(), "{change}");
    }
}

#[test]
fn quantities_mean_what_they_say() {
    assert_eq!(parse("rtt=20ms"), Ok(Change::Rtt(0.02)));
    assert_eq!(parse("distance=2795km"), Ok(Change::Distance(2795.0)));
    assert_eq!(parse("queue=0"), Ok(Change::Queue(0.0)));
    assert_eq!(parse("filesystem = 0.5x"), Ok(Change::Filesystem(0.5)));
    assert_eq!(parse("cpu=2x"), Ok(Change::Cpu(2.0)));
}

#[test]
fn an_error_says_what_is_wrong_and_gives_an_example() {
    for (text, wanted) in [
        ("speed=2x", "known changes: rtt, distance"),
        ("rtt", "rtt=20ms"),
        ("rtt=soon", "soon"),
        ("cpu=2", "cpu=2x"),
        ("cpu=-1x", "cpu=2x"),
        ("cpu=0x", "cpu=2x"),
        ("filesystem=infx", "filesystem=4x"),
        ("dirlease=on", "takes no value"),
        ("dircache=on", "dircache=collapse"),
        ("queue=200%", "more than 100%"),
        ("loss=50%", "below 50 %"),
        ("block=1B", "block=1MiB"),
        ("window=0", "closed window"),
        ("signing=aes-128-gcm", "neither a signing algorithm"),
        ("encryption=aes-gmac", "neither a cipher"),
        ("depth=0", "not a number"),
        ("channels=99", "from 1 to 32"),
        ("compound=maybe", "neither on nor off"),
        ("replication=rtt=5ms", "none of sync, received and async"),
        ("replication=sync", "round trip"),
        ("replication=sync,rtt=5ms,color=red", "color=red"),
    ] {
        let said = parse(text).unwrap_err();
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

#[test]
fn sentences_contain_the_value() {
    let replication = Replication {
        is_sync: true,
        is_on_arrival: false,
        rtt_ns: 5_000_000,
        bandwidth_bits: Some(1e9),
    };
    for (change, wanted) in [
        (Change::Rtt(0.02), "is 20.0 ms"),
        (Change::Distance(2795.0), "2,795 km"),
        (Change::Bandwidth(4.5e7), "45 Mbit/s"),
        (Change::Bandwidth(128e3), "0.128 Mbit/s"),
        (Change::Window(64_240.0), "64,240 bytes"),
        (Change::Loss(0.001), "0.1 %"),
        (Change::Block(4096), "contiguous reads and writes use blocks of 4.00 KiB"),
        (Change::Filesystem(0.5), "0.5 times as fast"),
        (Change::Cpu(1e-6), "0.000001 times as fast"),
        (Change::Queue(0.0), "0 % of the recorded"),
        (Change::Users(2300.0), "2,300 users"),
        (
            Change::Replication(replication),
            "round trip of 5.00 ms and 1,000 Mbit/s, holds the same data: replies wait",
        ),
    ] {
        assert!(change.sentence().contains(wanted), "{}", change.sentence());
    }
}

/// Files with a word, below the folder, other than tests.
fn files_with(folder: &Path, is_searched: &dyn Fn(&str) -> bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(&*name, "tests" | "examples" | "benches") {
            files_with(&path, is_searched, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            if is_searched(code) {
                found.push(path);
            }
        }
    }
}

/// A change is its own file and a line of the registry. Other code asks a change, or reads the plan; only
/// `explain` names changes, to make them of its remedies.
#[test]
fn a_change_is_one_file_and_one_line_of_the_registry() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let changes = std::fs::read_to_string(here.join("src/predict/changes.rs")).unwrap();
    let (_, list) = changes.split_once("\nregistry! {").unwrap();
    let listed: Vec<_> = list
        .lines()
        .filter_map(|line| line.trim().split_once("::"))
        .map(|(file, rest)| (file, rest.split('(').next().unwrap_or_default()))
        .collect();
    assert_eq!(listed.len(), REGISTRY.len());
    for (place, (file, variant)) in listed.iter().enumerate() {
        let again = listed.iter().skip(place + 1);
        assert!(again.clone().all(|other| other.0 != *file && other.1 != *variant), "{file}");
        assert!(here.join(format!("src/predict/changes/{file}.rs")).is_file(), "{file}");
    }
    let names_a_change = |code: &str| {
        listed.iter().any(|(_, variant)| code.contains(&format!("Change::{variant}(")))
    };
    let mut files = Vec::new();
    files_with(here.parent().unwrap(), &names_a_change, &mut files);
    files.retain(|path| !path.starts_with(here.join("src/explain")));
    assert!(files.is_empty(), "{files:?}");
}

//! `trace.dat` of both versions: from other people, and damaged. The counts of the fixtures are
//! compared in `truth.rs`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use smbscope_trace::event::{Coverage, Event, EventReader as _, Kind};
use smbscope_trace::{Format, recognise, trace_dat};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixture(version: u32) -> Vec<u8> {
    std::fs::read(workspace().join(format!("tests/traces/loopback.v{version}.dat"))).unwrap()
}

fn read(bytes: Vec<u8>) -> (Vec<Event>, Coverage) {
    let mut reader = trace_dat::Reader::new(Cursor::new(bytes)).unwrap();
    let mut events = Vec::new();
    while reader.step(&mut |event| events.push(event)).unwrap() {}
    (events, reader.coverage())
}

#[test]
fn both_versions_give_the_same_events() {
    let (first, coverage) = read(fixture(6));
    assert_eq!(coverage.format, "trace.dat version 6");
    let (second, coverage) = read(fixture(7));
    assert_eq!((coverage.format.as_str(), coverage.damaged), ("trace.dat version 7", 0));
    assert_eq!(coverage.clock.as_deref(), Some("local"));
    assert_eq!(first, second);
    let polls = first.iter().filter_map(|event| match event {
        Event::Interrupt(one) if one.kind == Kind::NapiPoll => one.budget,
        _ => None,
    });
    assert!(polls.clone().count() > 10 && polls.into_iter().all(|budget| budget == 64));
    for version in [6, 7] {
        assert_eq!(recognise(&fixture(version)[..1024]), Some(Format::TraceDat));
    }
}

/// The kernel marks a page before which it lost events.
#[test]
fn lost_events_are_counted() {
    let file = fixture(6);
    let (_, before) = read(file.clone());
    // The page of each CPU that begins last is behind the others in the file.
    let page = file.len() - 4096;
    let mut lost = file;
    lost[page + 11] |= 0x80;
    let (_, coverage) = read(lost);
    assert_eq!((before.events_lost, coverage.events_lost), (Some(0), Some(1)));
}

#[test]
fn damaged_pages_do_not_hide_the_others() {
    for version in [6, 7] {
        let file = fixture(version);
        let (_, whole) = read(file.clone());
        let mut seen = BTreeMap::new();
        for length in (20..file.len()).step_by(331) {
            let (_, coverage) = read(file[..length].to_vec());
            // Some bytes at the end are not needed.
            let is_whole = coverage.events == whole.events;
            assert!(is_whole || coverage.damaged > 0 && coverage.events < whole.events);
            seen.insert(coverage.events, length);
        }
        // Options of version 7 are at the end: without them there is no event.
        assert_eq!(seen.len() > 2, version == 6, "{seen:?}");
        for at in (10..file.len()).step_by(127).chain(10..200) {
            for value in [0, 0x7f, 0xff] {
                let mut changed = file.clone();
                changed[at] = value;
                let (_, coverage) = read(changed);
                assert!(coverage.events <= 5_000, "{at}");
            }
        }
        // One page of eight.
        if version == 6 {
            let mut changed = file.clone();
            let page = changed.len() - 4096;
            changed[page + 8..page + 16].fill(0xff);
            let (_, coverage) = read(changed);
            assert!(coverage.events > whole.events / 2 && coverage.damaged == 1);
            assert!(coverage.first_damaged.unwrap().starts_with("a page of CPU "));
        }
    }
    let newer = b"\x17\x08\x44tracing9\0\0\x08\0\0\x10\0".to_vec();
    assert_eq!(read(newer).1.damaged, 1);
}

fn shared(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SMBSCOPE_SHARED").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| workspace().join("../shared"));
    let path = folder.join("traces/linux").join(name);
    if path.is_file() {
        return Some(path);
    }
    smbscope_testing::skip!("{} is absent", path.display());
    None
}

/// Counted in the text of `trace-cmd report` (3.1.6).
#[test]
fn recordings_from_elsewhere_have_the_events_of_trace_cmd() {
    let truth = [
        ("trappy_trace.dat.xz", [525, 0, 8], [7_615_709_442_088, 7_621_207_149_005]),
        ("trappy_trace_idle.dat.xz", [43, 23, 5], [162_534_215_741_800, 162_534_221_019_580]),
        ("lisa_sched_load.dat.xz", [3_724, 399, 6], [2_084_021_442_860, 2_084_449_525_380]),
    ];
    for (name, counts, times) in truth {
        let Some(path) = shared(name) else { return };
        let Ok(output) = Command::new("xz").arg("-dc").arg(&path).output() else {
            smbscope_testing::skip!("xz is absent");
            return;
        };
        let (events, coverage) = read(output.stdout);
        let switches = events.iter().filter(|event| matches!(event, Event::Switch(_))).count();
        let cpus = events.iter().filter(|event| matches!(event, Event::Cpu(_))).count();
        assert_eq!([coverage.events, switches as u64, cpus as u64], counts, "{name}");
        assert_eq!([coverage.start_ns, coverage.end_ns], times.map(Some), "{name}");
        assert_eq!((coverage.damaged, coverage.events_lost), (0, Some(0)), "{name}");
    }
}

/// Places in the file that it does not have, times that cannot be, and zeros.
#[test]
fn what_cannot_be_is_damaged_and_not_an_error() {
    for version in [6, 7] {
        let file = fixture(version);
        // The eight pages of version 6 are at its end.
        let pages_at = if version == 6 { file.len() - 8 * 4096 } else { file.len() };
        for at in (10..file.len() - 8).step_by(61) {
            let mut changed = file.clone();
            changed[at + 7] = 0xff;
            let (_, coverage) = read(changed);
            if at >= pages_at {
                let length = coverage.end_ns.unwrap() - coverage.start_ns.unwrap();
                assert!(length < 2 * 86_400 * 1_000_000_000, "{at}: {coverage:?}");
            }
        }
        let mut zeros = file.clone();
        let tail = zeros.len() - 4096;
        zeros[tail..].fill(0);
        let (_, coverage) = read(zeros);
        assert!(coverage.damaged > 0, "{version}");
    }
}

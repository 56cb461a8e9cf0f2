//! Traces of LTTng: in a folder and in memory, from other people, and damaged. The counts of the
//! fixture are compared in `truth.rs`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use smbscope_trace::ctf::{Folder, Memory, Reader};
use smbscope_trace::event::{Coverage, Event, EventReader, Kind};
use smbscope_trace::ftrace::Text;
use smbscope_trace::{Format, recognise_folder};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn events(mut reader: impl EventReader) -> (Vec<Event>, Coverage) {
    let mut events = Vec::new();
    while reader.step(&mut |event| events.push(event)).unwrap() {}
    (events, reader.coverage())
}

fn read(files: &Memory) -> (Vec<Event>, Coverage) {
    events(Reader::new(files.clone()).unwrap())
}

fn fixture() -> Memory {
    let file = |name: &str| {
        std::fs::read(workspace().join("tests/traces/loopback.ctf").join(name)).unwrap()
    };
    Memory { metadata: file("metadata"), streams: vec![file("channel0_0"), file("channel0_1")] }
}

#[test]
fn a_folder_has_the_switches_of_the_text_it_was_made_from() {
    let folder = workspace().join("tests/traces/loopback.ctf");
    assert_eq!(recognise_folder(&folder), Some((Format::Ctf, 16_384)));
    assert_eq!(recognise_folder(&workspace()), None);
    let (found, coverage) = events(Reader::new(Folder::open(&folder).unwrap()).unwrap());
    assert_eq!(coverage.clock.as_deref(), Some("monotonic"));
    assert_eq!((coverage.damaged, coverage.buffers_lost), (0, Some(0)));
    assert_eq!(found, read(&fixture()).0);
    let text = std::fs::read(workspace().join("tests/traces/loopback.ftrace.txt")).unwrap();
    let (text, _) = events(Text::new(&text[..]));
    let switches = |events: Vec<Event>, offset_ns: i64| {
        let found = events.into_iter().filter_map(|event| match event {
            Event::Switch(mut switch) => {
                switch.time_ns -= offset_ns;
                Some(switch)
            }
            _ => None,
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(switches(found, 1_700_000_000_000_000_000), switches(text, 0));
}

/// The same streams with the metadata of CTF 2.
fn fixture_2() -> Memory {
    let metadata = std::fs::read(workspace().join("tests/traces/loopback.ctf2.metadata")).unwrap();
    Memory { metadata, ..fixture() }
}

#[test]
fn metadata_in_json_gives_the_events_of_metadata_in_tsdl() {
    let (expected, of_tsdl) = read(&fixture());
    let (found, coverage) = read(&fixture_2());
    assert_eq!(found, expected);
    assert_eq!(coverage, Coverage { format: "CTF 2".to_owned(), ..of_tsdl });
    let folder = tempfile::tempdir().unwrap();
    let files = fixture_2();
    std::fs::write(folder.path().join("metadata"), &files.metadata).unwrap();
    for (number, stream) in files.streams.iter().enumerate() {
        std::fs::write(folder.path().join(format!("channel0_{number}")), stream).unwrap();
    }
    assert_eq!(recognise_folder(folder.path()), Some((Format::Ctf, 16_384)));
    let files = Folder::open(folder.path()).unwrap();
    assert_eq!(events(Reader::new(files).unwrap()).0, expected);
}

#[test]
fn damaged_metadata_in_json_is_counted() {
    let files = fixture_2();
    for length in (0..files.metadata.len()).step_by(101) {
        let mut cut = files.clone();
        cut.metadata.truncate(length);
        let (_, coverage) = read(&cut);
        assert!(coverage.damaged > 0, "{length}");
    }
    for at in (0..files.metadata.len()).step_by(47) {
        for value in [b'{', b'"', b'9', 0x1e, 0xff] {
            let mut changed = files.clone();
            changed.metadata[at] = value;
            read(&changed);
        }
    }
}

/// The place of a counter in a packet's context, behind magic number and stream.
fn counter(packet: usize, number: usize) -> std::ops::Range<usize> {
    let at = 4096 * packet + 8 + 8 * number;
    at..at + 8
}

#[test]
fn discarded_events_and_packets_are_counted() {
    let mut files = fixture();
    let first = &mut files.streams[0];
    first[counter(0, 5)].copy_from_slice(&3_u64.to_le_bytes());
    first[counter(1, 5)].copy_from_slice(&10_u64.to_le_bytes());
    first[counter(1, 4)].copy_from_slice(&4_u64.to_le_bytes());
    let (_, coverage) = read(&files);
    assert_eq!((coverage.events_lost, coverage.buffers_lost), (Some(10), Some(3)));
    // A snapshot begins later: what was discarded before it is not missing from it.
    files.streams[0][counter(0, 4)].copy_from_slice(&2_u64.to_le_bytes());
    let (_, coverage) = read(&files);
    assert_eq!((coverage.events_lost, coverage.buffers_lost), (Some(7), Some(1)));
}

#[test]
fn damaged_packets_do_not_hide_the_others() {
    let files = fixture();
    let (_, whole) = read(&files);
    for length in (0..files.streams[0].len()).step_by(61) {
        let mut cut = files.clone();
        cut.streams[0].truncate(length);
        let (_, coverage) = read(&cut);
        assert!(coverage.events <= whole.events && coverage.events > whole.events / 4);
        assert!(coverage.damaged > 0 || length % 4096 == 0, "{length}");
    }
    for length in (0..files.metadata.len()).step_by(101) {
        let mut cut = files.clone();
        cut.metadata.truncate(length);
        read(&cut);
    }
    for (stream, step) in [(0, 61), (1, 97)] {
        for at in (0..files.streams[stream].len()).step_by(step) {
            for value in [0, 0x1f, 0x7f, 0xff] {
                let mut changed = files.clone();
                changed.streams[stream][at] = value;
                let (_, coverage) = read(&changed);
                assert!(coverage.events <= whole.events + 1_000);
            }
        }
    }
    // An event of a number that the metadata does not have ends its packet, not the stream.
    let mut changed = files.clone();
    changed.streams[0][60] = 0x1e;
    let (_, coverage) = read(&changed);
    assert!(coverage.events > whole.events / 2 && coverage.damaged == 1);
    let place = coverage.first_damaged.unwrap();
    assert_eq!(place, "stream 0: an event at byte 60");
    for at in (0..files.metadata.len()).step_by(47) {
        for value in [b'{', b';', b'9', 0xff] {
            let mut changed = files.clone();
            changed.metadata[at] = value;
            read(&changed);
        }
    }
}

/// Files of a trace that is packed with tar.
fn unpacked(name: &str) -> Option<Memory> {
    let folder = std::env::var_os("SMBSCOPE_SHARED").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| workspace().join("../shared"));
    let path = folder.join("traces/linux").join(name);
    if !path.is_file() {
        smbscope_testing::skip!("{} is absent", path.display());
        return None;
    }
    let run = |arguments: &[&str]| {
        let output = Command::new("tar").args(arguments).arg("-f").arg(&path).output();
        output.ok().filter(|output| output.status.success()).map(|output| output.stdout)
    };
    let Some(names) = run(&["-tJ"]) else {
        smbscope_testing::skip!("tar or xz is absent");
        return None;
    };
    let mut files = Memory::default();
    for name in String::from_utf8(names).unwrap().lines() {
        let output = Command::new("tar").arg("-xJOf").arg(&path).arg(name).output().unwrap();
        match name.rsplit('/').next().unwrap() {
            "metadata" => files.metadata = output.stdout,
            stream if stream.starts_with("channel") && !name.contains("index") => {
                files.streams.push(output.stdout);
            }
            _ => {}
        }
    }
    Some(files)
}

/// Counted by a script in the text of babeltrace2 (2.0.4).
#[test]
fn recordings_from_elsewhere_have_the_events_of_babeltrace() {
    type Truth = (&'static str, [u64; 4], [i64; 2], &'static [(&'static str, i64, i64)]);
    let truth: [Truth; 2] = [
        (
            "ctf-bug446190.tar.xz",
            [31_556, 1_052, 317, 1_357],
            [1_412_670_961_211_260_539, 1_412_670_967_217_750_839],
            &[
                ("NET_RX", 317, 6_580_700),
                ("NET_TX", 17, 79_100),
                ("RCU", 94, 1_242_100),
                ("SCHED", 192, 754_700),
                ("TIMER", 273, 2_644_000),
            ],
        ),
        (
            "ctf-many-threads.tar.xz",
            [240_644, 28_325, 0, 153],
            [1_457_113_582_794_565_804, 1_457_113_583_227_228_162],
            &[
                ("BLOCK", 141, 745_399),
                ("NET_RX", 8, 84_875),
                ("RCU", 4_096, 11_726_510),
                ("SCHED", 778, 1_963_055),
                ("TIMER", 1_019, 630_904),
            ],
        ),
    ];
    for (name, counts, times, softirqs) in truth {
        let Some(files) = unpacked(name) else { return };
        let (events, coverage) = read(&files);
        let (mut switches, mut polls, mut irqs) = (0, 0, 0);
        let mut by_name = BTreeMap::<String, (i64, i64)>::new();
        for event in events {
            match event {
                Event::Switch(_) => switches += 1,
                Event::Interrupt(one) => match one.kind {
                    Kind::NapiPoll => polls += 1,
                    Kind::Irq => irqs += 1,
                    _ => {
                        let sum = by_name.entry(one.name.unwrap().to_string()).or_default();
                        *sum = (sum.0 + 1, sum.1 + one.end_ns - one.start_ns.unwrap());
                    }
                },
                _ => {}
            }
        }
        assert_eq!([coverage.events, switches, polls, irqs], counts, "{name}");
        assert_eq!([coverage.start_ns, coverage.end_ns], times.map(Some), "{name}");
        let found: Vec<_> = by_name.iter().map(|(name, sum)| (&**name, sum.0, sum.1)).collect();
        assert_eq!(found, softirqs, "{name}");
        assert_eq!((coverage.damaged, coverage.events_lost), (0, Some(0)), "{name}");
    }
}

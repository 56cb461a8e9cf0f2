//! `perf.data` in its forms: plain, compressed, from a pipe, with losses, and damaged. The counts of the
//! fixture are compared in `truth.rs`.

#![allow(clippy::unwrap_used)]

use std::io::Cursor;
use std::path::Path;

use smbscope_trace::event::{Coverage, Event, EventReader as _};
use smbscope_trace::{Format, perf, recognise};

const HEADER_BYTES: usize = 104;

fn fixture() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    std::fs::read(folder.join("loopback.perf.data")).unwrap()
}

fn read(bytes: Vec<u8>) -> (Vec<Event>, Coverage) {
    let mut reader = perf::Reader::new(Cursor::new(bytes)).unwrap();
    let mut events = Vec::new();
    while reader.step(&mut |event| events.push(event)).unwrap() {}
    (events, reader.coverage())
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Attributes with their numbers, records, and feature sections.
struct Parts {
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    records: Vec<Vec<u8>>,
    features: Vec<(u64, Vec<u8>)>,
}

fn parts(file: &[u8]) -> Parts {
    let size = u64_at(file, 16);
    let (attributes_at, attributes_bytes) = (u64_at(file, 24), u64_at(file, 32));
    let attributes = file[attributes_at..attributes_at + attributes_bytes].chunks(size);
    let attributes = attributes.map(|bytes| {
        let (at, length) = (u64_at(bytes, size - 16), u64_at(bytes, size - 8));
        (bytes[..size - 16].to_vec(), file[at..at + length].to_vec())
    });
    let (mut at, end) = (u64_at(file, 40), u64_at(file, 40) + u64_at(file, 48));
    let mut records = Vec::new();
    while at < end {
        let length = usize::from(u16::from_le_bytes([file[at + 6], file[at + 7]]));
        records.push(file[at..at + length].to_vec());
        at += length;
    }
    let bits = u64_at(file, 72);
    let features = (0..64).filter(|feature| bits >> feature & 1 == 1).enumerate();
    let features = features.map(|(place, feature)| {
        let (at, length) = (u64_at(file, end + 16 * place), u64_at(file, end + 16 * place + 8));
        (feature, file[at..at + length].to_vec())
    });
    Parts { attributes: attributes.collect(), records, features: features.collect() }
}

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), body].concat()
}

/// As `perf record -o -` writes it.
fn pipe(parts: &Parts) -> Vec<u8> {
    let mut bytes = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    for (attribute, ids) in &parts.attributes {
        bytes.extend(record(64, &[&attribute[..], ids].concat()));
    }
    for (feature, section) in &parts.features {
        match feature {
            1 => {
                bytes.extend(record(66, &(section.len() as u32).to_le_bytes()));
                bytes.extend_from_slice(section);
            }
            2 => bytes.extend([&[67, 0, 0, 0], &section[4..]].concat()),
            _ => bytes.extend(record(80, &[&feature.to_le_bytes()[..], section].concat())),
        }
    }
    bytes.extend(parts.records.concat());
    bytes
}

#[test]
fn processors_and_the_kernel_are_known() {
    assert_eq!(recognise(&fixture()[..1024]), Some(Format::Perf));
    let (events, coverage) = read(fixture());
    let images: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Image(image) => Some(image),
            _ => None,
        })
        .collect();
    assert_eq!((images.len(), &*images[0].name, images[0].process), (1, "[kernel.kallsyms]", 0));
    assert_eq!(images[0].symbols.as_ref().unwrap().len(), 40);
    let is_placed = |event: &&Event| match event {
        Event::Cpu(cpu) => cpu.node == Some(0) && cpu.core.is_some() && cpu.thread.is_some(),
        _ => false,
    };
    assert_eq!(events.iter().filter(is_placed).count(), 2);
    assert_eq!((coverage.damaged, coverage.events_lost), (0, Some(0)));
    assert_eq!(coverage.clock.as_deref(), Some("perf"));
}

#[test]
fn a_pipe_and_compression_give_the_same_events() {
    let (expected, _) = read(fixture());
    let mut parts = parts(&fixture());
    let (events, coverage) = read(pipe(&parts));
    assert_eq!((events.len(), coverage.damaged), (expected.len(), 0));
    assert_eq!(events, expected);
    let packed = zstd::encode_all(&parts.records.concat()[..], 3).unwrap();
    parts.records = packed.chunks(5_000).map(|piece| record(81, piece)).collect();
    let (events, coverage) = read(pipe(&parts));
    assert_eq!((events, coverage.damaged), (expected, 0));
}

#[test]
fn lost_events_end_what_is_open() {
    let mut parts = parts(&fixture());
    // One of the numbers of each event names the attribute.
    let id = u64_at(&parts.attributes[0].1, 0) as u64;
    let all = read(pipe(&parts)).0.len();
    let middle = parts.records[parts.records.len() / 2].clone();
    let time = u64_at(&middle, 8 + 24) as u64;
    // Number and count; process and thread, time, number, CPU.
    let lost = |cpu: u64| [id, 7, 0, time, id, cpu, id].map(u64::to_le_bytes).concat();
    for cpu in [0, 1] {
        parts.records.push(record(2, &lost(cpu)));
    }
    let (events, coverage) = read(pipe(&parts));
    assert_eq!(coverage.events_lost, Some(14));
    assert!(events.len() <= all);
}

#[test]
fn a_file_that_is_cut_keeps_its_samples() {
    let file = fixture();
    let data_at = u64_at(&file, 40);
    let (mut most, mut damaged) = (0, 0);
    for length in (HEADER_BYTES..file.len()).step_by(97) {
        let (_, coverage) = read(file[..length].to_vec());
        assert!(coverage.read_bytes <= length.max(data_at) as u64, "{coverage:?}");
        assert!(coverage.first_damaged.is_some(), "{length}");
        (most, damaged) = (most.max(coverage.events), damaged + 1);
    }
    assert!(most > 400 && damaged > 400, "{most}, {damaged}");
    // `perf record` that was killed leaves no length.
    let mut killed = file[..file.len() / 2].to_vec();
    killed[48..56].fill(0);
    let (_, coverage) = read(killed);
    assert!(coverage.events > 100);
    assert!(coverage.first_damaged.unwrap().contains("did not end"));
}

#[test]
fn any_byte_changed_ends_with_coverage() {
    let file = fixture();
    let piped = pipe(&parts(&file));
    for (bytes, step) in [(file, 199), (piped, 211)] {
        for at in (16..bytes.len()).step_by(step).chain(16..HEADER_BYTES) {
            for value in [0, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let length = changed.len() as u64;
                let (_, coverage) = read(changed);
                assert!(coverage.events <= length / 8);
            }
        }
    }
    assert!(perf::Reader::new(Cursor::new(b"PERFILE2".to_vec())).is_err());
    // Version 1 has the same header in the byte order of its size.
    assert!(perf::is_perf(b"PERFFILE\x68\0\0\0\0\0\0\0"));
    assert!(perf::is_perf(b"PERFFILE\0\0\0\0\0\0\0\x68"));
    assert!(!perf::is_perf(b"PERFFILE\x69\0\0\0\0\0\0\0"));
}

#[test]
fn frames_of_a_program_have_its_file() {
    let mut attribute = vec![0; 112];
    // Software clock, every millisecond; address, thread, time, CPU and chain.
    attribute[0] = 1;
    attribute[4] = 112;
    attribute[16..24].copy_from_slice(&1_000_000_u64.to_le_bytes());
    attribute[24..32].copy_from_slice(&0xa7_u64.to_le_bytes());
    attribute[40..48].copy_from_slice(&(1_u64 << 18).to_le_bytes());
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let task = |task: u64| task << 32 | task;
    let trailer = |time: u64| words(&[task(7), time, 0]);
    let mapping =
        [words(&[task(7), 0x40_0000, 0x1000, 0]), b"/usr/sbin/smbd\0\0".to_vec(), trailer(1)];
    // Process 8, parent 7, and its thread; the time.
    let fork = [words(&[7 << 32 | 8, 7 << 32 | 8, 2]), trailer(2)];
    let user = -512_i64 as u64;
    let sample = |time| words(&[0x40_0010, task(8), time, 0, 3, user, 0x40_0010, 0x50_0000]);
    let exit = [words(&[7 << 32 | 8, 7 << 32 | 8, 4]), trailer(4)];
    let file = [
        b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec(),
        record(64, &attribute),
        record(1, &mapping.concat()),
        record(7, &fork.concat()),
        record(9, &sample(3)),
        record(4, &exit.concat()),
        record(9, &sample(5)),
    ];
    let (events, coverage) = read(file.concat());
    assert_eq!((coverage.events, coverage.damaged), (2, 0), "{coverage:?}");
    let mut modules = Vec::new();
    for event in &events {
        match event {
            Event::Stack { frames, .. } => {
                modules
                    .push(frames.iter().map(|frame| frame.module.as_deref()).collect::<Vec<_>>());
            }
            Event::Sample(sample) => {
                assert_eq!((sample.process, sample.weight_ns), (Some(8), Some(1_000_000)));
            }
            Event::Image(image) => assert_eq!((image.process, image.size_bytes), (7, 0x1000)),
            _ => {}
        }
    }
    assert_eq!(modules, [[Some("/usr/sbin/smbd"), Some("[unknown]")], [Some("[unknown]"); 2]]);
}

/// A recording through a pipe of an event with these contents.
fn piped(attributes: &[(u32, u64, u64, u64)], records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    for (number, (kind, config, contents, read_format)) in (1_u64..).zip(attributes) {
        let mut attribute = vec![0; 112];
        attribute[..4].copy_from_slice(&kind.to_le_bytes());
        attribute[4] = 112;
        attribute[8..16].copy_from_slice(&config.to_le_bytes());
        attribute[24..32].copy_from_slice(&contents.to_le_bytes());
        attribute[32..40].copy_from_slice(&read_format.to_le_bytes());
        attribute[40..48].copy_from_slice(&(1_u64 << 18).to_le_bytes());
        file.extend(record(64, &[attribute, number.to_le_bytes().to_vec()].concat()));
    }
    file.extend(records.concat());
    file
}

fn with_misc(misc: u8, mut record: Vec<u8>) -> Vec<u8> {
    record[4] = misc;
    record
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn samples(events: &[Event]) -> Vec<&smbscope_trace::event::Sample> {
    let samples = events.iter().filter_map(|event| match event {
        Event::Sample(sample) => Some(sample),
        _ => None,
    });
    samples.collect()
}

/// Old kernels map themselves at address 0, over the addresses of all programs.
#[test]
fn the_record_says_whether_a_sample_is_of_the_kernel() {
    const CONTENTS: u64 = 0x87;
    let (task, time) = (5 << 32 | 5_u64, 1_000);
    let kernel = [
        words(&[u64::MAX, 0, 0xffff_ffff_9fff_ffff, 0]),
        b"[kernel.kallsyms]_text\0\0".to_vec(),
        words(&[0, 0, 0]),
    ];
    let sample = |address: u64| words(&[address, task, time, 0]);
    let records = [
        with_misc(1, record(1, &kernel.concat())),
        with_misc(2, record(9, &sample(0x40_1000))),
        with_misc(1, record(9, &sample(0xffff_ffff_8100_0000))),
        record(9, &sample(0xffff_ffff_8100_0000)),
    ];
    let (events, coverage) = read(piped(&[(0, 0, CONTENTS, 0)], &records));
    assert_eq!(coverage.damaged, 0, "{coverage:?}");
    use smbscope_trace::event::Mode;
    let found: Vec<_> =
        samples(&events).iter().map(|one| (one.mode, one.module.as_deref())).collect();
    let user = (Some(Mode::User), Some("[unknown]"));
    assert_eq!(found, [user, (Some(Mode::Kernel), None), (None, None)]);
}

/// `perf record PROGRAM` records no CPUs.
#[test]
fn samples_without_a_cpu_have_their_thread() {
    const CONTENTS: u64 = 0x7;
    let task = |process: u64, thread: u64| thread << 32 | process;
    let comm = |thread, name: &[u8; 8], time| {
        [words(&[task(5, thread)]), name.to_vec(), words(&[0, time])].concat()
    };
    // Thread 6 of process 5, begun by thread 5.
    let fork = words(&[task(5, 5), task(6, 5), 1, task(5, 5), 1]);
    let records = [
        record(3, &comm(5, b"smbd\0\0\0\0", 0)),
        record(7, &fork),
        with_misc(2, record(9, &words(&[0x40_1000, task(5, 6), 10]))),
        record(3, &comm(6, b"worker\0\0", 15)),
        with_misc(2, record(9, &words(&[0x40_1000, task(5, 6), 20]))),
    ];
    let (events, coverage) = read(piped(&[(1, 0, CONTENTS, 0)], &records));
    assert_eq!((coverage.damaged, coverage.events, coverage.start_ns), (0, 2, Some(10)));
    let found: Vec<_> =
        samples(&events).iter().map(|one| (one.cpu, one.thread, one.task.as_deref())).collect();
    assert_eq!(found, [(None, Some(6), Some("smbd")), (None, Some(6), Some("worker"))]);
}

/// With PERF_FORMAT_LOST the same losses are in records of the kernel, and in one of `perf` at the end.
#[test]
fn losses_are_counted_once() {
    const CONTENTS: u64 = 0x87;
    const READ_LOST: u64 = 1 << 4;
    let lost = record(2, &words(&[1, 7, 0, 5, 0]));
    let at_the_end = record(13, &words(&[9, 0, 6, 0]));
    let of_filter = [&at_the_end[..5], &[0x80], &at_the_end[6..]].concat();
    let records = [lost, at_the_end, of_filter];
    let count = |read_format| read(piped(&[(1, 0, CONTENTS, read_format)], &records)).1.events_lost;
    // Nine, seven of which the kernel had counted.
    assert_eq!(count(READ_LOST), Some(9));
    // Without it, the hardware lost the nine.
    assert_eq!(count(0), Some(16));
}

/// A clock and cycles are two views of the same time.
#[test]
fn a_clock_and_cycles_are_not_added_up() {
    const CONTENTS: u64 = 0x10087;
    let sample = |number: u64| {
        with_misc(
            1,
            record(9, &words(&[number, 0xffff_ffff_8100_0000, 5 << 32 | 5, 10 + number, 0])),
        )
    };
    let records: Vec<_> = [1, 2, 2, 2].map(sample).to_vec();
    let (events, coverage) = read(piped(&[(1, 0, CONTENTS, 0), (0, 0, CONTENTS, 0)], &records));
    assert_eq!((samples(&events).len(), coverage.events, coverage.events_other), (1, 4, 3));
    assert!(coverage.notes.unwrap().contains(" 3 of cycles are not"));
    let (events, coverage) = read(piped(&[(0, 1, CONTENTS, 0), (0, 0, CONTENTS, 0)], &records));
    assert_eq!((samples(&events).len(), coverage.notes), (3, None));
}

/// Each byte of the time of a sample in the middle: the trace has the same length.
#[test]
fn a_damaged_time_leaves_out_its_sample_only() {
    let file = fixture();
    let data_at = u64_at(&file, 40);
    let (_, whole) = read(file.clone());
    let mut at = data_at;
    let mut samples = Vec::new();
    while at + 8 < data_at + u64_at(&file, 48) {
        let size = usize::from(u16::from_le_bytes([file[at + 6], file[at + 7]]));
        if file[at..at + 4] == [9, 0, 0, 0] {
            samples.push(at);
        }
        at += size;
    }
    // Number, address, process and thread, time.
    let time_at = samples[samples.len() / 2] + 8 + 24;
    for byte in 4..8 {
        for bit in 0..8 {
            let mut changed = file.clone();
            changed[time_at + byte] ^= 1 << bit;
            let (_, coverage) = read(changed);
            assert_eq!(
                (coverage.start_ns, coverage.end_ns, coverage.damaged),
                (whole.start_ns, whole.end_ns, 1),
                "{byte} {bit}"
            );
        }
    }
}

//! Logs of the builder: every layout, clock and compression gives the same events.

use super::{duration_ns, interrupts, read, samples};
use smbscope_testing::etl::{
    Buffer, Builder, Compression, Manifest, START_FILETIME, START_NS, wide,
};
use smbscope_trace::etl::{Origin, Reader, is_etl};
use smbscope_trace::event::{Event, EventReader as _, Image, Kind, PowerKind};
use smbscope_trace::windows::Provider;
use std::io::Cursor;

const ISR_FIELDS: [u8; 4] = [1, 97, 0, 0];
/// Ticks of the default clock since its start, 100 ns each.
const T: i64 = 1_000_000;

/// Addresses in the kernel's half of both sizes of pointers.
fn kernel(pointer_bytes: usize, offset: u64) -> u64 {
    if pointer_bytes == 8 { 0xffff_f800_0000_0000 + offset } else { 0x8000_0000 + offset }
}

/// A log with each kind of event; its times are `start_ticks` and multiples of `step` later.
fn everything(builder: &mut Builder, step: i64) -> Vec<u8> {
    let at = |n: i64| builder.start_ticks + n * step;
    let k = |offset| kernel(builder.pointer_bytes, offset);
    let (mut zero, mut one) = (builder.clone().buffer(0), builder.clone().buffer(1));
    one.process(3, at(1), 700, &[1, 2, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0, 1, 0, 0, 0], "smb.exe");
    one.process(1, at(1), 4, &[], "System");
    one.thread(3, at(1), 700, 4_242);
    one.perfinfo(15, 73, at(1), &[[0; 4], 10_000_u32.to_le_bytes(), [0; 4]].concat());
    zero.run(67, at(2), at(3), k(0x100), &ISR_FIELDS);
    one.run(50, at(2), at(4), k(0x200), &[ISR_FIELDS, [3, 0, 0, 0]].concat());
    zero.run(68, at(3), at(6), k(0x300), &[]);
    one.run(69, at(4), at(7), k(0x400), &[]);
    zero.run(66, at(7), at(8), k(0x500), &[]);
    one.sample(at(9), k(0x600), 4_242, 0);
    one.stack(32, at(10), at(9), 4_242, &[k(0x600), k(0x650)]);
    zero.sample(at(10), k(0x700), 0, 1);
    zero.sample(at(11), k(0x750), 0, 3);
    zero.stack(32, at(12), at(9), 4_242, &[0x10, 0x20]);
    one.switch(at(13), 4_242, 0, 5);
    one.compact(5, 36, 2, at(14), &[[0; 4], [0; 4]].concat());
    builder.add(one);
    builder.add(zero);
    builder.build()
}

#[test]
fn every_clock_pointer_size_and_compression_gives_the_same_events() {
    let mut first = None;
    for (clock, ticks_per_second, mhz) in [(1, 10_000_000, 0), (2, 1, 0), (3, 1, 2_000)] {
        for pointer_bytes in [4, 8] {
            for compression in [
                Compression::None,
                Compression::Xpress,
                Compression::XpressHuffman,
                Compression::Lznt1,
            ] {
                let mut builder = Builder {
                    pointer_bytes,
                    clock,
                    ticks_per_second,
                    mhz,
                    compression,
                    start_ticks: if clock == 2 { START_FILETIME } else { 7_000_000 },
                    ..Builder::default()
                };
                let step = if clock == 3 { 200 } else { 1 };
                let bytes = everything(&mut builder, step);
                assert!(is_etl(&bytes[..512]));
                let (events, log) = read(&bytes).unwrap();
                assert_eq!(log.coverage.damaged, 1, "the switch without its last fields");
                assert_eq!(log.buffers_compressed > 0, compression != Compression::None);
                assert_eq!(log.buffers_damaged, 0);
                let found = (
                    interrupts(&events)
                        .map(|it| (it.kind, it.cpu, it.vector, it.start_ns, it.end_ns))
                        .collect::<Vec<_>>(),
                    samples(&events)
                        .map(|it| (it.time_ns, it.cpu, it.process, it.during, it.stack))
                        .collect::<Vec<_>>(),
                );
                let expected = first.get_or_insert_with(|| found.clone());
                assert_eq!(&found, expected, "{clock} {pointer_bytes} {compression:?}");
            }
        }
    }
    let (runs, samples) = first.unwrap();
    let at = |n: i64| START_NS + 100 * n;
    let run = |kind, cpu, vector, start, end| (kind, cpu, vector, Some(at(start)), at(end));
    assert_eq!(
        runs,
        [
            run(Kind::Isr, 0, Some(97), 2, 3),
            run(Kind::IsrMsi, 1, Some(97), 2, 4),
            run(Kind::Dpc, 0, None, 3, 6),
            run(Kind::TimerDpc, 1, None, 4, 7),
            run(Kind::ThreadedDpc, 0, None, 7, 8),
        ]
    );
    assert_eq!(
        samples,
        [
            (at(9), Some(1), Some(700), None, Some(0)),
            (at(10), Some(0), Some(0), Some(Kind::Dpc), None),
            (at(11), Some(0), Some(0), Some(Kind::Isr), None),
        ]
    );
}

#[test]
fn names_stacks_and_switches_are_resolved() {
    for pointer_bytes in [4, 8] {
        let mut builder = Builder { pointer_bytes, ..Builder::default() };
        let (events, log) = read(&everything(&mut builder, 1)).unwrap();
        let k = |offset| kernel(pointer_bytes, offset);
        // Kernel first, then the program, whichever CPU wrote it.
        let stacks: Vec<Vec<u64>> = events
            .iter()
            .filter_map(|event| match event {
                Event::Stack { frames, .. } => {
                    Some(frames.iter().map(|frame| frame.address).collect())
                }
                _ => None,
            })
            .collect();
        assert_eq!(stacks, [[k(0x600), k(0x650), 0x10, 0x20]]);
        let switch = events.iter().find_map(|event| match event {
            Event::Switch(switch) => Some(switch),
            _ => None,
        });
        let switch = switch.unwrap();
        assert_eq!(switch.old_name.as_deref(), Some("smb.exe"));
        assert_eq!(switch.old_state.as_deref(), Some("waiting"));
        assert_eq!((switch.old_thread, switch.new_thread), (4_242, 0));
        assert!(interrupts(&events).all(|it| it.thread.is_none()), "before the first switch");
        assert_eq!(log.sample_interval_ns, Some(1_000_000));
        assert!(samples(&events).all(|sample| sample.weight_ns == Some(1_000_000)));
    }
}

#[test]
fn losses_and_skipped_events_are_counted() {
    let mut builder = Builder { events_lost: 41, buffers_lost: 3, ..Builder::default() };
    let mut buffer = builder.buffer(2);
    buffer.message(b"text");
    buffer.provider([7; 16], true, 5, T + 1, b"classic");
    buffer.provider([8; 16], false, 6, T + 2, b"manifest");
    buffer.provider([8; 16], false, 6, T + 2, b"");
    buffer.system(1, 10, 3, T + 3, &[0; 40]);
    buffer.run(68, T + 4, T + 9, 1, &[]);
    builder.add(buffer);
    let (events, log) = read(&builder.build()).unwrap();
    let coverage = &log.coverage;
    assert_eq!((coverage.events_lost, coverage.buffers_lost), (Some(41), Some(3)));
    assert_eq!((coverage.events, coverage.events_other), (7, 5));
    let count = |origin| log.counts.get(&origin).copied();
    assert_eq!(count(Origin::Classic { guid: [7; 16], opcode: 5 }), Some(1));
    assert_eq!(count(Origin::Manifest { guid: [8; 16], id: 6 }), Some(2));
    assert_eq!(count(Origin::Kernel { group: 1, opcode: 10 }), Some(1));
    assert_eq!(count(Origin::Other { kind: 15 }), Some(1));
    assert_eq!(interrupts(&events).map(|it| it.cpu).collect::<Vec<_>>(), [2]);
    assert_eq!(coverage.start_ns, Some(START_NS + 100));
    assert_eq!(coverage.end_ns, Some(START_NS + 900));
    assert_eq!(coverage.damaged, 0);
}

#[test]
fn buffers_are_merged_by_time_whatever_their_order_in_the_file() {
    // A circular log: the newest buffers come first, one was never filled.
    let mut builder = Builder::default();
    for first in [40, 60, 0, 20] {
        for cpu in [1, 0] {
            let mut buffer = builder.buffer(cpu);
            for step in 0..10 {
                let end = T + 10 * (first + 2 * step + i64::from(cpu));
                buffer.run(68, end - 5, end, 1, &[]);
            }
            builder.add(buffer);
        }
    }
    let mut bytes = builder.build();
    bytes.extend([0; 4_096]);
    let (events, log) = read(&bytes).unwrap();
    let ends: Vec<i64> = interrupts(&events).map(|it| it.end_ns).collect();
    assert_eq!(ends.len(), 80);
    assert!(ends.is_sorted());
    assert_eq!((log.out_of_order, log.coverage.damaged), (0, 0));
    assert!(interrupts(&events).all(|it| duration_ns(it) == 500));
}

#[test]
fn stacks_by_key_use_what_the_key_meant_at_the_time() {
    let mut builder = Builder::default();
    let k = |offset| kernel(8, offset);
    let mut buffer = builder.buffer(0);
    buffer.sample(T + 1, k(1), 9, 1);
    buffer.stack(37, T + 2, T + 1, 9, &[0xaaaa]);
    buffer.stack_entry(35, T + 3, 0xaaaa, &[k(1), k(2)]);
    buffer.sample(T + 4, k(3), 9, 0);
    // The program's part comes first here.
    buffer.stack(38, T + 5, T + 4, 9, &[0xbbbb]);
    buffer.stack(37, T + 5, T + 4, 9, &[0xaaaa]);
    // The stack of a key without an entry, and of an event that is not a sample.
    buffer.sample(T + 6, k(4), 9, 0);
    buffer.stack(37, T + 7, T + 6, 9, &[0xcccc]);
    buffer.stack(37, T + 7, T + 5, 9, &[0xaaaa]);
    builder.add(buffer);
    // The dictionary is written when the recording stops.
    let mut end = builder.buffer(1);
    end.stack_entry(36, T + 90, 0xaaaa, &[k(3), k(5)]);
    end.stack_entry(36, T + 91, 0xbbbb, &[0x10]);
    builder.add(end);
    let (events, log) = read(&builder.build()).unwrap();
    let stack_of = |sample: &smbscope_trace::event::Sample| {
        events.iter().find_map(|event| match event {
            Event::Stack { id, frames } if Some(*id) == sample.stack => {
                Some(frames.iter().map(|frame| frame.address).collect::<Vec<_>>())
            }
            _ => None,
        })
    };
    let stacks: Vec<_> = samples(&events).map(stack_of).collect();
    assert_eq!(stacks, [Some(vec![k(1), k(2)]), Some(vec![k(3), k(5), 0x10]), None]);
    assert_eq!(log.stacks_of_others, 1);
}

#[test]
fn idle_threads_of_different_processors_are_distinguished() {
    let mut builder = Builder::default();
    for cpu in 0..4 {
        let mut buffer = builder.buffer(cpu);
        buffer.sample(T + 1, kernel(8, 0), 0, 1);
        buffer.stack(32, T + 2, T + 1, 0, &[kernel(8, u64::from(cpu))]);
        builder.add(buffer);
    }
    let (events, _) = read(&builder.build()).unwrap();
    let mut frames = std::collections::BTreeMap::new();
    for event in &events {
        match event {
            Event::Stack { id, frames: of } => {
                frames.insert(*id, of[0].address);
            }
            Event::Sample(sample) => {
                let address = frames[&sample.stack.unwrap()];
                assert_eq!(address, kernel(8, u64::from(sample.cpu.unwrap())));
            }
            _ => {}
        }
    }
    assert_eq!(frames.len(), 4);
}

#[test]
fn images_come_before_the_events_once_and_with_their_pdb_files() {
    let mut builder = Builder::default();
    let mut early = builder.buffer(0);
    early.run(68, T + 1, T + 2, kernel(8, 0x10), &[]);
    early.image((3, 10), T + 50, 0x7000, 700, r"\Device\HarddiskVolume2\app.dll");
    early.image((3, 10), T + 60, 0x7000, 700, r"\Device\HarddiskVolume2\other.dll");
    early.run(68, T + 60, T + 70, kernel(8, 0x10), &[]);
    builder.add(early);
    // The rundown at the end names what was there.
    let mut end = builder.buffer(1);
    end.symbols(T + 90, kernel(8, 0), 0, r"d:\build\ndis.pdb");
    end.image((20, 4), T + 90, kernel(8, 0), 4, r"\SystemRoot\system32\drivers\ndis.sys");
    end.image((20, 3), T + 1, kernel(8, 0), 4, r"\SystemRoot\system32\drivers\ndis.sys");
    end.image((20, 4), T + 91, 0x7000, 700, r"\Device\HarddiskVolume2\other.dll");
    builder.add(end);
    let (events, _) = read(&builder.build()).unwrap();
    let images: Vec<&Image> = events
        .iter()
        .filter_map(|event| match event {
            Event::Image(image) => Some(image),
            _ => None,
        })
        .collect();
    // What was there comes first; what is loaded comes before the events after it.
    let order = events.iter().filter(|event| !matches!(event, Event::Cpu(_)));
    let order: Vec<bool> = order.map(|event| matches!(event, Event::Image(_))).collect();
    assert_eq!(order, [true, false, true, true, false]);
    let found: Vec<_> =
        images.iter().map(|it| (&*it.name, it.process, it.base, it.time_ns)).collect();
    assert_eq!(
        found,
        [
            ("ndis.sys", 0, kernel(8, 0), None),
            ("app.dll", 700, 0x7000, Some(START_NS + 5_000)),
            ("other.dll", 700, 0x7000, Some(START_NS + 6_000)),
        ]
    );
    let pdb = "ndis.pdb/030201000504070608090A0B0C0D0E0F2";
    assert_eq!(images[0].symbols.as_deref(), Some(pdb));
    assert_eq!(images[0].size_bytes, 0x9000);
}

#[test]
fn a_thread_number_belongs_to_one_process_after_the_other() {
    let mut builder = Builder::default();
    let mut buffer = builder.buffer(0);
    buffer.thread(3, T, 700, 9);
    buffer.sample(T + 1, 1, 9, 0);
    buffer.thread(2, T + 2, 700, 9);
    buffer.thread(1, T + 3, 800, 9);
    buffer.sample(T + 4, 1, 9, 0);
    builder.add(buffer);
    let (events, _) = read(&builder.build()).unwrap();
    let processes: Vec<_> = samples(&events).map(|sample| sample.process).collect();
    assert_eq!(processes, [Some(700), Some(800)]);
}

#[test]
fn an_interrupt_has_the_thread_of_its_processor() {
    let mut builder = Builder::default();
    for cpu in [0, 1] {
        let mut buffer = builder.buffer(cpu);
        buffer.switch(T + 1, 0, 9, 2);
        buffer.run(68, T + 2, T + 3, 1, &[]);
        if cpu == 0 {
            buffer.switch(T + 4, 9, 0, 5);
        }
        buffer.run(68, T + 5, T + 6, 1, &[]);
        builder.add(buffer);
    }
    let (events, _) = read(&builder.build()).unwrap();
    let mut found: Vec<_> = interrupts(&events).map(|it| (it.cpu, it.thread)).collect();
    found.sort();
    assert_eq!(found, [(0, Some(0)), (0, Some(9)), (1, Some(9)), (1, Some(9))]);
}

#[test]
fn fields_behind_a_header_with_counters_are_found() {
    let mut builder = Builder::default();
    let mut buffer = builder.buffer(0);
    let fields = [&[0xaa; 24][..], &(T + 1).to_le_bytes(), &5_u64.to_le_bytes()].concat();
    // Two counters of the CPU and one item more.
    buffer.perfinfo_of_version(15, 68, 0x8202, T + 3, &fields);
    builder.add(buffer);
    let (events, _) = read(&builder.build()).unwrap();
    let found: Vec<_> = interrupts(&events).map(|it| (it.routine, duration_ns(it))).collect();
    assert_eq!(found, [(Some(5), 200)]);
}

#[test]
fn the_configuration_of_the_system_is_read() {
    let mut builder = Builder::default();
    let mut buffer = builder.buffer(0);
    let adapter = [&[1, 2, 3, 4, 5, 6, 0, 0][..], &[0; 12], &wide("Port 1"), &wide("::1")].concat();
    buffer.system(11, 13, 2, T, &adapter);
    let line = [&[0; 12][..], &(-6_i32).to_le_bytes(), &[8, 0, 0, 0], &wide(r"PCI\VEN_1")].concat();
    buffer.system(11, 21, 3, T, &line);
    buffer.system(11, 10, 3, T, &3_494_u32.to_le_bytes());
    // The last CPU is slower.
    buffer.system(11, 35, 2, T, &[3_u32, 0, 2_600].map(u32::to_le_bytes).concat());
    // Two groups with two CPUs each, and a node for each.
    let numbers = [[4, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 1, 0]].concat();
    buffer.perfinfo(11, 27, T, &numbers);
    let node = |group: u8| [&3_u64.to_le_bytes()[..], &[group, 0, 0, 0, 0, 0, 0, 0]].concat();
    buffer.perfinfo(11, 24, T, &[vec![2, 0, 0, 0], node(0), node(1)].concat());
    builder.add(buffer);
    let (events, log) = read(&builder.build()).unwrap();
    let nodes: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Cpu(cpu) => Some((cpu.cpu, cpu.node, cpu.mhz)),
            _ => None,
        })
        .collect();
    let mhz = Some(3_494);
    let last = (3, Some(1), Some(2_600));
    let expected = [(0, Some(0), mhz), (1, Some(0), mhz), (2, Some(1), mhz), last];
    assert_eq!(nodes, expected);
    assert_eq!(log.adapters[0].description, "Port 1");
    assert_eq!(log.adapters[0].address, [1, 2, 3, 4, 5, 6]);
    assert_eq!((log.interrupt_lines[0].irq, &*log.interrupt_lines[0].device), (-6, r"PCI\VEN_1"));
}

/// GUID of the class of network adapters, and of no known class.
const NET: [u8; 16] = [
    0x72, 0xe9, 0x36, 0x4d, 0x25, 0xe3, 0xce, 0x11, 0xbf, 0xc1, 0x08, 0x00, 0x2b, 0xe1, 0x03, 0x18,
];
const OTHER: [u8; 16] = [7; 16];

#[test]
fn devices_have_their_driver_and_interrupt() {
    let mut builder = Builder::default();
    let mut buffer = builder.buffer(0);
    let device = |class: [u8; 16], filters: [u8; 2], texts: &[&str]| {
        let mut fields = class.to_vec();
        fields.extend([filters[0], 0, 0, 0, filters[1], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        fields.extend(texts.iter().flat_map(|text| wide(text)));
        fields
    };
    let port = [r"PCI\VEN_10ec\1", "Controller", "Port 1", r"\Device\1", "rt640", "up", "down"];
    buffer.system(11, 22, 5, T, &device(NET, [1, 1], &port));
    let disk = [r"PCI\VEN_144D\2", "NVMe", "", r"\Device\2", "stornvme"];
    buffer.system(11, 22, 5, T, &device(OTHER, [0, 0], &disk));
    // A device with neither an interrupt nor the class of adapters, and an older layout.
    buffer.system(11, 22, 5, T, &device(OTHER, [0, 0], &[r"ROOT\3", "Quiet", "", "", "quiet"]));
    let mut old = device(NET, [0, 0], &[r"ROOT\4", "Virtual adapter", "", "", "vms"]);
    old.drain(24..32);
    buffer.system(11, 22, 4, T, &old);
    let line = |affinity: u64, irq: i32, id: &str| {
        let irq = irq.to_le_bytes();
        [&affinity.to_le_bytes()[..], &[0; 4], &irq, &[8, 0, 0, 0], &wide(id)].concat()
    };
    buffer.system(11, 21, 3, T, &line(0, -6, r"PCI\VEN_10EC\1"));
    buffer.system(11, 21, 3, T, &line(3, 17, r"PCI\VEN_144D\2"));
    buffer.system(11, 21, 3, T, &line(0, 4, r"ACPI\PNP0501\0"));
    builder.add(buffer);
    let (events, log) = read(&builder.build()).unwrap();
    assert_eq!(log.coverage.damaged, 0);
    let found: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Device(device) => Some(device),
            _ => None,
        })
        .collect();
    let names: Vec<_> = found.iter().map(|it| it.name.as_deref().unwrap_or("-")).collect();
    assert_eq!(names, ["Port 1", "NVMe", "Virtual adapter", "-"]);
    let [port, nvme, adapter, serial] = found[..] else { panic!() };
    assert_eq!((port.class.as_deref(), port.irq, port.affinity), (Some("net"), Some(-6), None));
    assert_eq!(
        (port.driver.as_deref(), port.filters.as_deref()),
        (Some("rt640"), Some("up, down"))
    );
    assert_eq!((nvme.irq, nvme.affinity), (Some(17), Some(3)));
    assert_eq!(nvme.class.as_deref(), Some("07070707-0707-0707-0707-070707070707"));
    assert_eq!((adapter.irq, &*serial.instance), (None, r"ACPI\PNP0501\0"));
}

#[test]
fn the_time_in_the_idle_thread_has_its_last_idle_state() {
    let mut builder = Builder::default();
    let mut buffer = builder.buffer(1);
    buffer.switch_from_idle(T + 1, 9, 1);
    buffer.switch(T + 2, 9, 0, 5);
    buffer.switch_from_idle(T + 7, 9, 2);
    // The state in a switch between threads has no meaning.
    buffer.switch(T + 8, 9, 10, 5);
    buffer.switch(T + 9, 10, 0, 5);
    builder.add(buffer);
    let (events, _) = read(&builder.build()).unwrap();
    let found: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Power(power) => Some((power.cpu, power.time_ns, power.value, power.duration_ns)),
            _ => None,
        })
        .collect();
    assert_eq!(found, [(1, START_NS + 200, 2, Some(500))]);
}

/// Events of Microsoft-Windows-Kernel-Processor-Power, with and without the events of SMB among what is wanted.
#[test]
fn frequencies_are_those_of_the_processor_power_provider() {
    let provider = Manifest { guid: Provider::ProcessorPower.guid().0, ..Manifest::default() };
    let change = |mhz: u32, number: u8| {
        [&[1, 0, 0, 0], &mhz.to_le_bytes()[..], &[0, 0, number], &[0; 12]].concat()
    };
    let mut builder = Builder::default();
    let mut buffer = builder.buffer(0);
    buffer.manifest(&Manifest { id: 10, version: 3, ..provider }, T + 1, &change(1_200, 3));
    // In another unit, and too short.
    buffer.manifest(&Manifest { id: 18, version: 1, ..provider }, T + 2, &change(45, 1));
    buffer.manifest(&Manifest { id: 10, version: 0, ..provider }, T + 3, &[0; 6]);
    let delivered =
        [&[0, 0, 2], &[0; 4][..], &2_u64.to_le_bytes(), &1_800_u32.to_le_bytes()].concat();
    buffer.manifest(&Manifest { id: 111, version: 2, ..provider }, T + 50, &delivered);
    buffer.manifest(&Manifest { id: 111, version: 1, ..provider }, T + 60, &delivered);
    builder.add(buffer);
    let log = builder.build();
    let (events, coverage) = read(&log).unwrap();
    let power = |events: &[Event]| -> Vec<_> {
        let of = |event: &Event| match event {
            Event::Power(it) => Some((it.cpu, it.time_ns, it.kind, it.value, it.duration_ns)),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    };
    let expected = [
        (3, START_NS + 100, PowerKind::Frequency, 1_200_000, None),
        (2, START_NS + 3_000, PowerKind::Frequency, 1_800_000, Some(2_000)),
    ];
    assert_eq!(power(&events), expected);
    let coverage = coverage.coverage;
    assert_eq!((coverage.events_other, coverage.damaged), (2, 1));
    let reader = Reader::new(Cursor::new(&log)).unwrap();
    let mut reader = reader.with_operations("r", smbscope_capture::Options::default());
    let mut events = Vec::new();
    while reader.step(&mut |event| events.push(event)).unwrap() {}
    assert_eq!(power(&events), expected);
}

/// The record of microsoft/perfview#234, in its bytes.
#[test]
fn the_published_isr_record_lasts_27_ticks() {
    let start = 1_996_631_531_759_i64;
    let mut builder = Builder { start_ticks: start - 1, ..Builder::default() };
    let mut buffer: Buffer = builder.buffer(0);
    let fields = [
        0xef, 0x60, 0x83, 0xe0, 0xd0, 0x01, 0x00, 0x00, 0x10, 0xf3, 0xa8, 0x9e, 0x06, 0xf8, 0xff,
        0xff, 0x01, 0x61, 0x00, 0x00,
    ];
    buffer.perfinfo(15, 67, 1_996_631_531_786, &fields);
    builder.add(buffer);
    let (events, _) = read(&builder.build()).unwrap();
    let isr = interrupts(&events).next().unwrap();
    assert_eq!(duration_ns(isr), 27 * 100);
    assert_eq!((isr.routine, isr.vector), (Some(0xffff_f806_9ea8_f310), Some(97)));
    assert_eq!(isr.start_ns, Some(START_NS + 100));
}

//! Rows of events as a reader of Windows traces and one of Linux traces yield them.

use super::*;

fn dpc(cpu: u32, kind: Kind, routine: u64, start: i64, end: i64) -> Event {
    Event::Interrupt(Interrupt {
        cpu,
        kind,
        vector: None,
        routine: Some(routine),
        name: None,
        device: None,
        queue: None,
        thread: None,
        start_ns: Some(start),
        end_ns: end,
        raised_ns: None,
        work: None,
        budget: None,
    })
}

#[test]
fn a_routine_works_for_the_only_device_of_its_driver() {
    let device = |name: &str, driver: &str| {
        Event::Device(Device {
            name: Some(name.into()),
            instance: name.into(),
            driver: Some(driver.into()),
            ..Device::default()
        })
    };
    let mut rows = Rows::new("flood", 100);
    for (name, driver) in [("Disk", "StorNvme"), ("Port 1", "nic"), ("Port 2", "nic")] {
        rows.event(device(name, driver));
    }
    for (number, name) in ["stornvme.sys", "nic.sys", "nt.exe"].iter().enumerate() {
        rows.event(Event::Image(Image {
            time_ns: None,
            base: number as u64 * 0x1000,
            size_bytes: 0x1000,
            name: (*name).into(),
            process: 0,
            symbols: None,
        }));
        rows.event(dpc(0, Kind::Dpc, number as u64 * 0x1000, 1, 2));
    }
    let parts = rows.finish(Coverage::default()).unwrap();
    let found = interrupts(&parts);
    let devices: Vec<_> = found.iter().map(|row| row.device.as_deref()).collect();
    assert_eq!(devices, [Some("Disk"), None, None]);
    assert!(parts.iter().any(|part| matches!(part, Part::Devices(rows) if rows.len() == 3)));
}

fn interrupts(parts: &[Part]) -> Vec<tables::Interrupt> {
    let batches = parts.iter().filter_map(|part| match part {
        Part::Interrupts(batch) => Some(tables::Interrupt::from_batch(batch)),
        _ => None,
    });
    batches.flatten().collect()
}

#[test]
fn routines_get_modules_and_what_is_nested_is_exclusive() {
    let mut rows = Rows::new("flood", 100);
    let image = |process, name: &str| Image {
        time_ns: None,
        base: 0xfff0_0000,
        size_bytes: 0x1000,
        name: name.into(),
        process,
        symbols: None,
    };
    rows.event(Event::Image(image(0, r"\Windows\ndis.sys")));
    // A program at the same address in its own memory.
    rows.event(Event::Image(image(7, r"\Windows\a.exe")));
    rows.event(dpc(0, Kind::Isr, 0xfff0_0010, 110, 120));
    rows.event(dpc(1, Kind::Isr, 0xfff0_0010, 110, 120));
    rows.event(dpc(0, Kind::Dpc, 0xffff_0000, 100, 200));
    let parts = rows.finish(Coverage { events: 5, ..Coverage::default() }).unwrap();
    let found = interrupts(&parts);
    let names: Vec<_> = found.iter().map(|row| row.name.as_deref()).collect();
    assert_eq!(names, [Some("ndis.sys"), Some("ndis.sys"), None]);
    assert_eq!((found[0].routine_offset, found[2].routine), (Some(0x10), Some(0xffff_0000)));
    let durations: Vec<_> = found.iter().map(|row| (row.duration_ns, row.exclusive_ns)).collect();
    assert_eq!(durations, [(Some(10), Some(10)), (Some(10), Some(10)), (Some(100), Some(90))]);
    let Some(Part::Traces(traces)) = parts.last() else { panic!("no trace") };
    assert_eq!((traces[0].interrupts, traces[0].cpus, traces[0].events), (3, 2, 5));
    // Nothing is claimed about losses that the format does not know.
    assert_eq!(traces[0].events_lost, None);
}

#[test]
fn rows_come_in_batches_and_samples_know_their_function() {
    let mut rows = Rows::new("a", 2);
    let frame = Frame { address: 9, function: Some("f".into()), module: Some("m".into()) };
    rows.event(Event::Stack { id: 4, frames: vec![frame, Frame::default()] });
    assert!(rows.is_full());
    let sample = Sample {
        time_ns: 1,
        cpu: Some(0),
        thread: Some(0),
        address: Some(9),
        stack: Some(4),
        during: Some(Kind::Softirq),
        ..Sample::default()
    };
    rows.event(Event::Sample(sample));
    let parts = rows.take().unwrap();
    assert!(!rows.is_full());
    let Some(Part::Samples(batch)) = parts.last() else { panic!("no samples") };
    let found = tables::Sample::from_batch(batch);
    assert_eq!(found[0].function.as_deref(), Some("f"));
    assert_eq!(found[0].during.as_deref(), Some("softirq"));
}

#[test]
fn a_poll_without_a_beginning_has_no_duration() {
    let mut rows = Rows::new("a", 2);
    rows.event(Event::Interrupt(Interrupt {
        cpu: 0,
        kind: Kind::NapiPoll,
        vector: None,
        routine: None,
        name: Some("eth0".into()),
        device: Some("eth0".into()),
        queue: None,
        thread: None,
        start_ns: None,
        end_ns: 70,
        raised_ns: None,
        work: Some(3),
        budget: Some(64),
    }));
    let found = interrupts(&rows.finish(Coverage::default()).unwrap());
    assert_eq!((found[0].start, found[0].duration_ns, found[0].work), (70, None, Some(3)));
}

#[test]
fn every_kind_is_in_the_description_of_its_column() {
    let specs = tables::Interrupt::specs();
    let kind = specs.iter().find(|spec| spec.name == "kind").unwrap();
    for one in Kind::ALL {
        assert!(kind.doc.contains(one.name()), "{}", one.name());
    }
}

#[test]
fn a_sample_without_an_open_interrupt_has_what_its_functions_say() {
    let mut rows = Rows::new("samples", 100);
    for (id, functions) in [(0, ["tcp_v4_rcv", "__do_softirq"]), (1, ["read", "do_softirq_own"])] {
        let frames = functions.map(|function| Frame {
            address: 1,
            function: Some(function.into()),
            module: None,
        });
        rows.event(Event::Stack { id, frames: frames.to_vec() });
        rows.event(Event::Sample(Sample {
            time_ns: 1,
            cpu: Some(0),
            address: Some(1),
            stack: Some(id),
            ..Sample::default()
        }));
    }
    let parts = rows.finish(Coverage::default()).unwrap();
    let batches = parts.iter().filter_map(|part| match part {
        Part::Samples(batch) => Some(tables::Sample::from_batch(batch)),
        _ => None,
    });
    let during: Vec<_> = batches.flatten().map(|sample| sample.during).collect();
    assert_eq!(during, [Some(Cow::Borrowed("softirq")), None]);
}

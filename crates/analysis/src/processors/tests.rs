//! CPUs with interrupts, switches and samples that are made here.

use std::borrow::Cow;

use smbscope_tables::tables::{Image, Interrupt, Sample, StackFrame, Switch};

use super::*;

fn interrupt(cpu: u64, kind: &'static str, name: &str, duration: i64, exclusive: i64) -> Interrupt {
    Interrupt {
        recording: "a".into(),
        cpu,
        kind: Cow::Borrowed(kind),
        name: Some(name.into()),
        duration_ns: Some(duration),
        exclusive_ns: Some(exclusive),
        ..Interrupt::default()
    }
}

fn switch(cpu: u64, time: i64, old: u64, new: u64) -> Switch {
    let recording = "a".into();
    Switch { recording, time, cpu, old_thread: old, new_thread: new, ..Switch::default() }
}

fn trace() -> Trace {
    Trace {
        recording: "a".into(),
        started_at: Some(1_000),
        ended_at: Some(1_001_000),
        ..Trace::default()
    }
}

fn report(interrupts: &[Interrupt], switches: &[Switch], samples: &[Sample]) -> Report {
    let mut processors = Processors::new(Limits::default());
    processors.interrupts(&Interrupt::to_batch(interrupts).unwrap());
    processors.samples(&Sample::to_batch(samples).unwrap());
    processors.switches(&Switch::to_batch(switches).unwrap());
    processors.traces(&[trace()]);
    processors.finish()
}

#[test]
fn durations_are_added_up_by_kind_and_name() {
    let rows = [
        interrupt(0, "dpc", "ndis.sys", 100_000, 90_000),
        interrupt(2, "dpc", "ndis.sys", 100_001, 100_001),
        interrupt(0, "isr", "ndis.sys", 25_001, 25_001),
        interrupt(0, "isr", "ndis.sys", 25_000, 25_000),
        interrupt(0, "dpc", "storport.sys", 8_000, 8_000),
    ];
    let report = report(&rows, &[], &[]);
    let found: Vec<_> = report
        .interrupts
        .iter()
        .map(|group| (group.kind.as_str(), group.name.as_deref().unwrap(), group.count))
        .collect();
    assert_eq!(found, [("dpc", "ndis.sys", 2), ("isr", "ndis.sys", 2), ("dpc", "storport.sys", 1)]);
    let [dpc, isr, storport] = &report.interrupts[..] else { panic!() };
    // At the limit is not over it.
    assert_eq!((dpc.over_limit, dpc.over_limit_ns, dpc.limit_ns), (1, 100_001, 100_000));
    assert_eq!((isr.over_limit, isr.over_limit_ns, isr.limit_ns), (1, 25_001, 25_000));
    assert_eq!((storport.over_limit, storport.duration.max_ns), (0, Some(8_000)));
    assert_eq!((dpc.exclusive_ns, dpc.duration.sum_ns), (190_001, 200_001));
    assert_eq!(dpc.cpus.iter().map(|one| one.cpu).collect::<Vec<_>>(), [2, 0]);
    // Two CPUs, one millisecond each.
    assert_eq!((report.length_ns, report.possible_ns), (1_000_000, 2_000_000));
    assert_eq!(dpc.share, Some(190_001.0 / 2e6));
    assert_eq!(report.processors[0].deferred_ns, Some(98_000));
    assert_eq!(report.processors[0].interrupt_ns, Some(50_001));
    // What else the CPU did is not known.
    assert_eq!((report.processors[0].idle_ns, report.processors[0].thread_ns), (None, None));
}

#[test]
fn idle_time_is_without_the_interrupts_in_it() {
    let mut within_idle = interrupt(0, "softirq", "NET_RX", 50_000, 50_000);
    within_idle.thread = Some(0);
    let mut within_thread = interrupt(0, "irq", "eth0", 10_000, 10_000);
    within_thread.thread = Some(7);
    // Idle until 301 µs, thread 7 until 501 µs, idle to the end. CPU 1 is never idle.
    let switches = [switch(0, 301_000, 0, 7), switch(0, 501_000, 7, 0), switch(1, 401_000, 8, 9)];
    let report = report(&[within_idle, within_thread], &switches, &[]);
    let [zero, one] = &report.processors[..] else { panic!() };
    assert_eq!((zero.idle_ns, zero.thread_ns), (Some(750_000), Some(190_000)));
    let all = zero.idle_ns.unwrap() + zero.thread_ns.unwrap();
    assert_eq!(all + zero.busy_ns().unwrap(), report.length_ns);
    assert_eq!((one.idle_ns, one.thread_ns), (Some(0), Some(1_000_000)));
}

#[test]
fn samples_are_divided_by_what_they_hit() {
    let sample = |thread, address, module: Option<&str>, during: Option<&'static str>| Sample {
        cpu: Some(0),
        thread: Some(thread),
        address,
        module: module.map(Into::into),
        during: during.map(Cow::Borrowed),
        ..Sample::default()
    };
    let rows = [
        sample(5, Some(0x7f00_0000_0000), Some("/usr/lib/libc.so"), None),
        sample(5, Some(0xffff_ffff_8100_0000), None, None),
        sample(5, Some(0x59fef5), Some("/lib/modules/4.3/build/vmlinux"), None),
        sample(0, Some(0xffff_ffff_8100_0000), None, None),
        sample(0, Some(0xffff_ffff_8100_0000), None, Some("softirq")),
        sample(5, Some(1), None, Some("irq")),
        sample(5, None, None, None),
    ];
    let counts = report(&[], &[], &rows).processors[0].samples;
    let expected = SampleCounts { all: 7, interrupt: 1, deferred: 1, kernel: 2, user: 1, idle: 1 };
    assert_eq!(counts, expected);
}

#[test]
fn devices_show_on_how_many_processors_their_work_ran() {
    let poll = |cpu, work| Interrupt {
        duration_ns: None,
        exclusive_ns: None,
        device: Some("eth0".into()),
        work: Some(work),
        ..interrupt(cpu, "napi_poll", "eth0", 0, 0)
    };
    let mut irq = interrupt(3, "irq", "eth0-rx-1", 5, 5);
    (irq.device, irq.queue) = (Some("eth0".into()), Some(1));
    let report = report(&[poll(3, 64), poll(3, 1), poll(1, 5), irq], &[], &[]);
    let [eth0] = &report.devices[..] else { panic!() };
    assert_eq!((eth0.count, eth0.work, eth0.queues), (4, Some(70), 1));
    assert_eq!(eth0.busiest_share, 0.75);
    assert_eq!(eth0.cpus[0], DeviceCpu { cpu: 3, count: 3, exclusive_ns: 5 });
    let polls = report.interrupts.iter().find(|group| group.kind == "napi_poll").unwrap();
    assert_eq!((polls.count, polls.work, polls.duration.n), (3, Some(70), 0));
}

#[test]
fn an_empty_trace_has_no_shares() {
    let mut processors = Processors::new(Limits::default());
    processors.interrupts(&Interrupt::to_batch(&[interrupt(0, "dpc", "a", 1, 1)]).unwrap());
    let report = processors.finish();
    assert_eq!((report.length_ns, report.start_ns), (0, Some(0)));
    assert_eq!((report.interrupts[0].share, report.processors[0].deferred_share), (None, None));
}

#[test]
fn the_mode_of_a_sample_says_more_than_its_address() {
    let sample = |mode: Option<&'static str>, address| Sample {
        cpu: Some(0),
        thread: Some(7),
        mode: mode.map(Cow::Borrowed),
        address: Some(address),
        module: Some("[kernel.kallsyms]".into()),
        ..Sample::default()
    };
    let kernel = 0xffff_ffff_8100_0000;
    let samples = [
        sample(Some("user"), kernel),
        sample(Some("guest_user"), kernel),
        sample(Some("kernel"), 0x40_0000),
        sample(None, 0x40_0000),
    ];
    let report = report(&[], &[], &samples);
    let counts = report.processors[0].samples;
    assert_eq!((counts.user, counts.kernel), (2, 2));
}

#[test]
fn samples_without_a_cpu_belong_to_processes_only() {
    let sample =
        Sample { thread: Some(7), process: Some(7), task: Some("dd".into()), ..Sample::default() };
    let report = report(&[], &[], &[sample.clone(), sample]);
    assert!(report.processors.is_empty());
    let tasks = report.tasks.unwrap();
    assert_eq!((tasks.samples, tasks.has_cpus), (2, false));
    assert_eq!(tasks.processes[0].name.as_deref(), Some("dd"));
}

/// A second of four CPUs with deferred work of ndis.sys on the first, and samples with these stacks, each of
/// which is a list of modules from the innermost frame outwards.
fn flooded(share: f64, stacks: &[(u64, &[&str])]) -> Report {
    let mut processors = Processors::new(Limits::default());
    let duration = 250_000;
    let runs = (share * 1e9 / duration as f64) as i64;
    let rows: Vec<_> = (0..runs)
        .map(|run| Interrupt {
            start: run * 1_000_000_000 / runs.max(1),
            ..interrupt(0, "dpc", "ndis.sys", duration, duration)
        })
        .collect();
    processors.interrupts(&Interrupt::to_batch(&rows).unwrap());
    let cpus = (0..4).map(|cpu| Cpu { cpu, node: Some(cpu / 2), ..Cpu::default() });
    processors.cpus(&cpus.collect::<Vec<_>>());
    let mut samples = Vec::new();
    let mut frames = Vec::new();
    for (stack, (count, modules)) in (1..).zip(stacks) {
        for (depth, module) in (0..).zip(*modules) {
            frames.push(smbscope_tables::tables::StackFrame {
                recording: "a".into(),
                stack,
                depth,
                module: Some((*module).into()),
                ..smbscope_tables::tables::StackFrame::default()
            });
        }
        samples.extend((0..*count).map(|_| Sample {
            recording: "a".into(),
            during: Some(Cow::Borrowed("dpc")),
            module: modules.first().map(|module| (*module).into()),
            stack: Some(stack),
            ..Sample::default()
        }));
    }
    processors.stacks(&smbscope_tables::tables::StackFrame::to_batch(&frames).unwrap());
    processors.samples(&Sample::to_batch(&samples).unwrap());
    let ended_at = Some(1_000_000_000);
    processors.traces(&[Trace {
        started_at: Some(0),
        ended_at,
        format: "Windows".into(),
        ..trace()
    }]);
    processors.finish()
}

fn troubles(report: &Report) -> Vec<ProcessorFindingKind> {
    report.findings.iter().map(|found| found.kind).collect()
}

const PLAIN: &[&str] = &["tcpip.sys", "ndis.sys", "nic.sys", "ndis.sys", "ntoskrnl.exe"];
const FILTERED: &[&str] = &["inspect.sys", "ndis.sys", "nic.sys", "ndis.sys", "ntoskrnl.exe"];
const TEAMED: &[&str] = &["NdisImPlatform.sys", "ndis.sys", "nic.sys", "ndis.sys", "ntoskrnl.exe"];

#[test]
fn drivers_between_the_adapter_and_tcp_are_found_and_others_are_not() {
    let report = flooded(0.9, &[(60, PLAIN), (70, FILTERED), (60, TEAMED), (5, &["storport.sys"])]);
    let expected = [
        ProcessorFindingKind::LockedProcessors,
        ProcessorFindingKind::ReceiveOnFewProcessors,
        ProcessorFindingKind::FilterInReceivePath,
        ProcessorFindingKind::TeamInReceivePath,
        ProcessorFindingKind::LongRuns,
    ];
    assert_eq!(troubles(&report), expected);
    assert!(report.findings[2].what.starts_with("inspect.sys"), "{}", report.findings[2].what);
    let samples = report.in_samples.unwrap();
    let roles: Vec<_> =
        samples.receive.iter().map(|part| (part.name.as_str(), part.role)).collect();
    assert!(roles.contains(&("nic.sys", Role::Adapter)), "{roles:?}");
    assert!(!roles.iter().any(|(name, _)| *name == "storport.sys" || *name == "ntoskrnl.exe"));
    assert_eq!((samples.deferred, samples.tracing_share), (195, None));
    // The tree begins with the kernel: all calls but those of storage.
    assert_eq!((samples.calls[0].name.as_str(), samples.calls[0].samples), ("ntoskrnl.exe", 190));
    assert_eq!(samples.calls[0].calls[0].calls[0].name, "nic.sys");
}

#[test]
fn few_samples_a_cheap_driver_and_a_quiet_server_are_no_findings() {
    // Ten samples are too few; a driver that is only passed costs nothing.
    let passed: &[&str] =
        &["tcpip.sys", "ndis.sys", "inspect.sys", "ndis.sys", "nic.sys", "ndis.sys"];
    let report = flooded(0.9, &[(10, FILTERED), (400, passed)]);
    let has = |trouble| troubles(&report).contains(&trouble);
    assert!(!has(ProcessorFindingKind::FilterInReceivePath), "{:?}", report.findings);
    assert!(has(ProcessorFindingKind::LockedProcessors));
    let quiet = flooded(0.03, &[(400, PLAIN)]);
    assert_eq!(troubles(&quiet), [ProcessorFindingKind::LongRuns]);
    // One CPU does all of it, although it is not full.
    let alone = flooded(0.2, &[(400, PLAIN)]);
    let expected = [ProcessorFindingKind::ReceiveOnFewProcessors, ProcessorFindingKind::LongRuns];
    assert_eq!(troubles(&alone), expected);
}

#[test]
fn work_on_another_node_than_the_adapter_is_found() {
    let found = |own_node: Option<u64>, remote: i64| {
        let mut processors = Processors::new(Limits::default());
        let cpu = |cpu, node| Cpu { cpu, node: Some(node), ..Cpu::default() };
        processors.cpus(&[cpu(0, 0), cpu(1, 0), cpu(2, 1)]);
        let name = Some("eth0".to_owned());
        processors.devices(&[tables::Device { name, node: own_node, ..tables::Device::default() }]);
        let rows: Vec<_> = (0..1_000)
            .map(|run| Interrupt {
                start: run * 10_000_000,
                device: Some("eth0".into()),
                ..interrupt(if run < remote { 2 } else { 0 }, "irq", "eth0-rx-0", 200_000, 200_000)
            })
            .collect();
        processors.interrupts(&Interrupt::to_batch(&rows).unwrap());
        let ended_at = Some(10_000_000_000);
        processors.traces(&[Trace { started_at: Some(0), ended_at, ..trace() }]);
        let report = processors.finish();
        let device = report.devices[0].clone();
        let is_remote = |one: &&Finding| one.kind == ProcessorFindingKind::RemoteNode;
        (device.remote_ns, report.findings.iter().find(is_remote).map(|one| one.what.clone()))
    };
    let (remote_ns, what) = found(Some(0), 700);
    assert_eq!(remote_ns, 140_000_000);
    assert_eq!(
        what.as_deref(),
        Some(
            "eth0 is on NUMA node 0, but 70 % of its interrupts and polls (0.14 of 0.20 CPU seconds) run on CPU 2 of other nodes"
        )
    );
    // Few of them, on its own node, or on a node that is not known.
    assert_eq!(found(Some(0), 100), (20_000_000, None));
    assert_eq!(found(Some(0), 0), (0, None));
    assert_eq!(found(None, 700), (0, None));
}

#[test]
fn the_beginning_of_a_flood_is_found() {
    let mut processors = Processors::new(Limits::default());
    // Nine tenths of the time between 4 s and the end.
    let rows: Vec<_> = (0..6_000)
        .map(|run| Interrupt {
            start: 4_000_000_000 + run * 1_000_000,
            ..interrupt(0, "softirq", "NET_RX", 900_000, 900_000)
        })
        .collect();
    processors.interrupts(&Interrupt::to_batch(&[interrupt(0, "softirq", "TIMER", 5, 5)]).unwrap());
    processors.interrupts(&Interrupt::to_batch(&rows).unwrap());
    let ended_at = Some(10_000_000_000);
    processors.traces(&[Trace { started_at: Some(0), ended_at, ..trace() }]);
    let report = processors.finish();
    let since = report.findings[0].first_ns.unwrap();
    assert!((3_900_000_000..=4_200_000_000).contains(&since), "{since}");
    assert!(report.findings[0].remedies.iter().all(|one| one.at == "Linux"));
}

#[test]
fn missing_pdb_files_are_those_of_modules_without_any_function() {
    let mut processors = Processors::new(Limits::default());
    let image = |process, name: &str, symbols: &str| Image {
        process,
        name: name.into(),
        symbols: Some(symbols.into()),
        ..Image::default()
    };
    processors.images(&[
        image(0, "ndis.sys", "ndis.pdb/AA1"),
        image(0, "nic.sys", "nic.pdb/BB2"),
        image(0, "tcpip.sys", "tcpip.pdb/CC1"),
        image(0, "nt.exe", "nt.pdb/DD1"),
        image(0, "quiet.sys", "quiet.pdb/EE1"),
        image(7, "program.exe", "program.pdb/FF1"),
        image(0, "vmlinux", "0123456789abcdef"),
    ]);
    let run = |name: &str, function: Option<&str>, time| Interrupt {
        routine_offset: Some(16),
        function: function.map(Into::into),
        ..interrupt(0, "dpc", name, time, time)
    };
    let rows = [
        run("nic.sys", None, 5),
        run("ndis.sys", None, 9_000),
        run("tcpip.sys", None, 50_000),
        run("tcpip.sys", Some("Receive"), 1),
        // A softirq can have the name of a module.
        interrupt(0, "softirq", "quiet.sys", 1, 1),
    ];
    processors.interrupts(&Interrupt::to_batch(&rows).unwrap());
    let sample = |module: &str| Sample {
        module: Some(module.into()),
        weight_ns: Some(1_000),
        ..Sample::default()
    };
    let rows = [sample("nic.sys"), sample("vmlinux"), sample("program.exe")];
    processors.samples(&Sample::to_batch(&rows).unwrap());
    let frame = StackFrame { module: Some("nt.exe".into()), ..StackFrame::default() };
    processors.stacks(&StackFrame::to_batch(&[frame]).unwrap());
    let missing = processors.finish().symbols_missing;
    let files: Vec<_> = missing.iter().map(|one| one.file.as_str()).collect();
    assert_eq!(files, ["ndis.pdb/AA1/ndis.pdb", "nic.pdb/BB2/nic.pdb", "nt.pdb/DD1/nt.pdb"]);
    assert_eq!((missing[1].exclusive_ns, missing[1].sampled_ns, missing[2].frames), (5, 1_000, 1));
}

#[test]
fn a_recording_that_was_killed_has_the_length_of_its_rows() {
    let at = |start, duration| Interrupt {
        start,
        ..interrupt(0, "softirq", "NET_RX", duration, duration)
    };
    let rows = Interrupt::to_batch(&[at(5_000, 100), at(1_005_000, 100)]).unwrap();
    let sample = Sample { recording: "a".into(), time: 2_005_000, ..Sample::default() };
    let mut processors = Processors::new(Limits::default());
    processors.interrupts(&rows);
    processors.samples(&Sample::to_batch(&[sample]).unwrap());
    let report = processors.finish();
    assert_eq!((report.start_ns, report.length_ns), (Some(5_000), 2_000_000));
    assert!(report.traces[0].notes.as_deref().unwrap().contains("killed"));
    // What a trace says itself counts.
    let mut processors = Processors::new(Limits::default());
    processors.interrupts(&rows);
    processors.traces(&[trace()]);
    let report = processors.finish();
    assert_eq!((report.length_ns, report.traces.len()), (1_000_000, 1));
    assert_eq!(report.traces[0].notes, None);
    assert_eq!(Processors::new(Limits::default()).finish().traces, []);
}

#[test]
fn late_work_on_idle_processors_is_power_saving_if_they_sleep_deeply() {
    use smbscope_tables::tables::Power;
    let with = |state: u64, idle_delay: i64, busy_delay: i64| {
        let mut processors = Processors::new(Limits::default());
        let run = |thread, delay| Interrupt {
            thread: Some(thread),
            delay_ns: Some(delay),
            ..interrupt(0, "softirq", "NET_RX", 5_000, 5_000)
        };
        let rows: Vec<_> =
            (0..200).flat_map(|_| [run(0, idle_delay), run(7, busy_delay)]).collect();
        processors.interrupts(&Interrupt::to_batch(&rows).unwrap());
        let sleep = Power {
            recording: "a".into(),
            kind: Cow::Borrowed("c_state"),
            value: state,
            duration_ns: Some(1_000_000),
            ..Power::default()
        };
        processors.power(&Power::to_batch(&[sleep]).unwrap());
        processors.traces(&[trace()]);
        troubles(&processors.finish()).contains(&ProcessorFindingKind::PowerSaving)
    };
    assert!(with(3, 120_000, 4_000));
    // Light states, work that is late everywhere, and work that is not late.
    assert!(!with(1, 120_000, 4_000) && !with(3, 120_000, 90_000) && !with(3, 20_000, 4_000));
}

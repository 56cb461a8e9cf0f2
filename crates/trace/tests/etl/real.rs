//! Real logs of other people, and synthetic ones with a published truth: `traces/windows` in the
//! folder that `SMBSCOPE_SHARED` names, otherwise `../shared` next to the repository.

use super::{Log, duration_ns, interrupts, read, samples};
use smbscope_trace::etl::Origin;
use smbscope_trace::event::{Event, Interrupt, Kind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    shared.join("traces/windows")
}

/// The log in a file, which may be packed; `member` is its name in an archive.
fn unpacked(file: &str, member: &str) -> Option<Vec<u8>> {
    let path = folder().join(file);
    if !path.exists() {
        smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", path.display());
        return None;
    }
    let (tool, before): (&str, &[&str]) = match path.extension().and_then(|it| it.to_str()) {
        Some("zip") => ("unzip", &["-p"]),
        Some("xz") => ("xz", &["-dc"]),
        Some("7z") => ("7z", &["x", "-so"]),
        _ => return std::fs::read(&path).ok(),
    };
    let mut command = Command::new(tool);
    command.args(before).arg(&path);
    if !member.is_empty() {
        command.arg(member);
    }
    match command.output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        _ => {
            smbscope_testing::skip!("{tool} is needed to unpack {file}");
            None
        }
    }
}

/// What holds for every undamaged log.
fn check(name: &str, bytes: &[u8]) -> (Vec<Event>, Log) {
    let (events, log) = read(bytes).unwrap();
    let coverage = &log.coverage;
    assert_eq!((coverage.damaged, coverage.limited, log.out_of_order), (0, 0, 0), "{name}");
    assert_eq!(coverage.read_bytes, bytes.len() as u64, "{name} is read to its end");
    let mut known = BTreeSet::new();
    for event in &events {
        match event {
            Event::Stack { id, .. } => assert!(known.insert(*id), "{name}: a stack comes once"),
            Event::Sample(sample) => assert!(sample.stack.is_none_or(|id| known.contains(&id))),
            _ => {}
        }
    }
    assert!(interrupts(&events).map(|it| it.end_ns).is_sorted(), "{name}: in the order of ends");
    (events, log)
}

#[test]
fn every_log_is_read_to_its_end_without_a_bad_record() {
    let diagnosis = "diaghub-dotnetcore3.1-win-x64-diagsession.zip";
    let inner = "diaghub-dotnetcore3.1-win-x64-diagsession/";
    // Name, member of the archive, number of events.
    for (file, member, events) in [
        ("net.4.5.2.x86.etl.zip", "net.4.5.2.x86.etl", 168_298),
        (diagnosis, &*format!("{inner}diaghub.etl"), 62_379),
        (diagnosis, &*format!("{inner}diaghub.kernel.1.etl"), 16_335),
        (diagnosis, &*format!("{inner}diaghub.user_injected.1.etl"), 4),
        (diagnosis, &*format!("{inner}diaghub.user_paged.1.etl"), 22_035),
        ("ShutdownPerfDiagLogger.etl.xz", "", 17_078),
        ("TraceLoggingTester.7z", "", 172_714),
        ("SelfDescribingSingleEvent.etl", "", 22),
        ("WindowsUpdate.20251008.140245.443.8.etl", "", 82),
        ("one-event.etl", "", 3),
        ("waasmedic.20251005_113019_195.etl", "", 19),
        ("win-etl-rs_example.etl", "", 11),
    ] {
        let Some(bytes) = unpacked(file, member) else { continue };
        let (_, log) = check(file, &bytes);
        assert_eq!(log.coverage.events, events, "{file} {member}");
        assert_eq!(log.coverage.events, log.counts.values().sum::<u64>(), "{file} {member}");
        let lost = if file.starts_with("WindowsUpdate") { 41 } else { 0 };
        assert_eq!(log.coverage.events_lost, Some(lost), "{file}");
    }
}

/// Counts of TraceEvent's own dump of the log.
#[test]
fn counts_equal_those_of_trace_event() {
    let Some(bytes) = unpacked("net.4.5.2.x64.etl.zip", "net.4.5.2.x64.etl") else { return };
    let (events, log) = check("net.4.5.2.x64", &bytes);
    let dump = std::fs::read_to_string(folder().join("net.4.5.2.x64.baseline.txt")).unwrap();
    let baseline = |name: &str| -> u64 {
        let prefix = format!("COUNT {name}:");
        let line = dump.lines().find_map(|line| line.strip_prefix(&prefix));
        line.unwrap_or_else(|| panic!("{name} is in the dump")).trim().parse().unwrap()
    };
    for (name, group, opcode) in [
        ("DiskIO/Read", 1, 10),
        ("Image/DCStart", 20, 3),
        ("Image/DCStop", 20, 4),
        ("Image/Load", 3, 10),
        ("Image/Unload", 20, 2),
        ("Process/DCStart", 3, 3),
        ("Thread/Start", 5, 1),
        ("Thread/Stop", 5, 2),
        ("DiskIO/ReadInit", 1, 12),
        ("DiskIO/Write", 1, 11),
        ("DiskIO/WriteInit", 1, 13),
        ("DiskIO/FlushBuffers", 1, 14),
        ("Memory/HardFault", 2, 32),
        ("PerfInfo/CollectionStart", 15, 73),
        ("PerfInfo/CollectionEnd", 15, 74),
        ("Process/DCStop", 3, 4),
        ("Process/Start", 3, 1),
        ("Process/Stop", 3, 2),
        ("Process/Defunct", 3, 39),
        ("SystemConfig/CPU", 11, 10),
        ("SystemConfig/NIC", 11, 13),
        ("SystemConfig/Services", 11, 15),
        ("SystemConfig/PnP", 11, 22),
        ("TcpIp/RecvIPV6", 6, 27),
        ("TcpIp/SendIPV6", 6, 26),
        ("UdpIp/Recv", 8, 11),
    ] {
        let found = log.counts.get(&Origin::Kernel { group, opcode }).copied();
        assert_eq!(found, Some(baseline(&format!("Windows Kernel/{name}"))), "{name}");
    }
    let control = *log
        .counts
        .keys()
        .find_map(|origin| match origin {
            Origin::Classic { guid, opcode: 36 } => Some(guid),
            _ => None,
        })
        .unwrap();
    let pdb = log.counts.get(&Origin::Classic { guid: control, opcode: 36 }).copied();
    assert_eq!(pdb, Some(baseline("KernelTraceControl/ImageID/DbgID_RSDS")));

    // It leaves out samples of idle CPUs.
    let all: Vec<_> = samples(&events).collect();
    assert_eq!(all.len(), 79_528);
    let busy = all.iter().filter(|it| it.thread != Some(0) || it.during.is_some());
    let busy: Vec<_> = busy.collect();
    assert_eq!(busy.len() as u64, baseline("Windows Kernel/PerfInfo/Sample"));
    assert_eq!(all.iter().filter(|it| it.during == Some(Kind::Isr)).count(), 28);
    let in_dpc = all.iter().filter(|it| it.during == Some(Kind::Dpc)).count();
    assert_eq!(in_dpc, 107);

    // The samples that it prints in full: milliseconds since the start of the log.
    let mut compared = 0;
    for line in dump.lines().filter(|line| line.contains(": Windows Kernel/PerfInfo/Sample ")) {
        let time_ms: f64 = line["EVENT ".len()..].split(':').next().unwrap().parse().unwrap();
        let address = field(line, "InstructionPointer=0x");
        let found = busy.iter().find(|it| {
            let since_ms = (it.time_ns - LOG_START_NS) as f64 / 1e6;
            (since_ms - time_ms).abs() < 0.000_6
                && it.address == u64::from_str_radix(address, 16).ok()
                && it.cpu.unwrap().to_string() == field(line, "ProcessorNumber=")
                && it.thread.unwrap().to_string() == field(line, " TID=")
        });
        let process = found.unwrap_or_else(|| panic!("{line}")).process;
        assert_eq!(process.map(|it| it.to_string()).as_deref(), Some(field(line, " PID=")));
        compared += 1;
    }
    assert!(compared >= 3, "samples in the dump: {compared}");
}

/// Start of the log by its header, in nanoseconds since 1970: 2020-07-29 00:07:00.6236167.
const LOG_START_NS: i64 = 1_595_981_220_623_616_700;

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let rest = &line[line.find(name).unwrap() + name.len()..];
    rest.split([';', ' ']).next().unwrap()
}

/// Windows 11 with 20 CPUs and one node: what its records of the configuration say.
#[test]
fn the_configuration_of_a_real_machine_is_read() {
    let Some(bytes) = unpacked("TraceLoggingTester.7z", "") else { return };
    let (events, _) = check("TraceLoggingTester", &bytes);
    let cpus = events.iter().filter_map(|event| match event {
        Event::Cpu(cpu) => Some((cpu.node, cpu.mhz)),
        _ => None,
    });
    assert_eq!(cpus.collect::<Vec<_>>(), [(Some(0), Some(3_494)); 20]);
    let devices = events.iter().filter_map(|event| match event {
        Event::Device(device) => Some(device),
        _ => None,
    });
    let devices: Vec<_> = devices.collect();
    assert_eq!(devices.iter().filter(|it| it.irq.is_some()).count(), 23, "one for each IRQ record");
    let of = |driver: &str| {
        let mut found = devices.iter().filter(|it| it.driver.as_deref() == Some(driver));
        found.next().unwrap()
    };
    let disk = of("stornvme");
    let name = Some("Standard NVM Express Controller");
    assert_eq!((disk.name.as_deref(), disk.irq), (name, Some(-27)));
    let net = devices.iter().filter(|it| it.class.as_deref() == Some("net"));
    let ports: Vec<_> = net.filter(|it| it.irq.is_some()).collect();
    let names: Vec<_> = ports.iter().filter_map(|it| it.name.as_deref()).collect();
    let port = "Realtek Gaming 2.5GbE Family Controller";
    assert!(names.contains(&port), "{names:?}");
}

#[test]
fn the_32_bit_program_on_windows_8_has_its_published_samples() {
    let Some(bytes) = unpacked("net.4.5.2.x86.etl.zip", "net.4.5.2.x86.etl") else { return };
    let (events, _) = check("net.4.5.2.x86", &bytes);
    let count = |kind| samples(&events).filter(|it| it.during == kind).count();
    assert_eq!(samples(&events).count(), 88_809);
    assert_eq!((count(Some(Kind::Dpc)), count(Some(Kind::Isr))), (106, 43));
}

#[test]
fn synthetic_floods_have_their_published_durations() {
    let mut plain = None;
    for (file, total_us, mean_us, longest_us, over, cpus) in [
        ("synthetic_before_cpu0_flood.etl.xz", 371_670, 30.97, 306.2, 260, vec![0]),
        ("synthetic_before_cpu0_flood_xpress.etl.xz", 371_670, 30.97, 306.2, 260, vec![0]),
        (
            "synthetic_after_rss_8cores.etl.xz",
            149_570,
            12.46,
            72.8,
            0,
            vec![0, 2, 4, 6, 8, 10, 12, 14],
        ),
    ] {
        let Some(bytes) = unpacked(file, "") else { continue };
        let (events, log) = check(file, &bytes);
        let of = |kind| interrupts(&events).filter(move |it: &&Interrupt| it.kind == kind);
        assert_eq!(of(Kind::Dpc).count(), 12_000, "{file}");
        assert_eq!(of(Kind::Isr).count() + of(Kind::IsrMsi).count(), 12_000, "{file}");
        assert_eq!(of(Kind::TimerDpc).count(), 2_048, "{file}");
        assert_eq!(samples(&events).count(), 32_000, "{file}");
        let total: i64 = of(Kind::Dpc).map(duration_ns).sum();
        assert_eq!((total as f64 / 1e4).round() as i64 * 10, total_us, "{file}");
        assert!((total as f64 / 12e6 - mean_us).abs() < 0.01, "{file}");
        let longest = of(Kind::Dpc).map(duration_ns).max();
        assert_eq!(longest, Some((longest_us * 1e3) as i64), "{file}");
        assert_eq!(of(Kind::Dpc).filter(|it| duration_ns(it) > 100_000).count(), over, "{file}");
        let found: BTreeSet<u32> = of(Kind::Dpc).map(|it| it.cpu).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), cpus, "{file}");
        let span_ns = log.coverage.end_ns.unwrap() - log.coverage.start_ns.unwrap();
        assert_eq!(span_ns, 2_000_000_000, "{file}");
        // Compression changes nothing.
        if file.starts_with("synthetic_before") {
            let expected = plain.get_or_insert_with(|| events.clone());
            assert!(*expected == events, "{file} has the events of the plain one");
        }
    }
}

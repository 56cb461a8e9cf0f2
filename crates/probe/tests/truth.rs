//! What a recording of a running Samba has is what the load that ran against it knows, and what a
//! capture shows; and the slices of a row are the server's time on the wire.
//!
//! Needs root, a kernel with BTF and a Samba; says so where one is missing.

#![cfg(all(feature = "bpf", target_os = "linux"))]
// A test may panic.
#![allow(clippy::unwrap_used)]

#[path = "../../load/tests/support/run.rs"]
#[allow(dead_code)]
mod run;
#[path = "../../load/tests/support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow::array::{Array as _, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use run::{agree, operations, prepare, same_entities, tcpdump, workload};
use smbscope_capture::{Decoder, Input, Options, Part, live};
use smbscope_event::slice::Kind;
use smbscope_load::client::{Config, Encryption, Signing};
use smbscope_load::fileset::Scale;
use smbscope_load::lab;
use smbscope_load::workload::Planner;
use smbscope_probe::check::facts;
use smbscope_probe::find::Choice;
use smbscope_probe::loader::LoadOptions;
use smbscope_probe::recording::{Progress, Recording};
use support::{Samba, samba, samba_4_22};

/// One recording at a time: probes of several see each other's smbd and cost twice.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Recorded {
    parts: Vec<Part>,
    progress: Progress,
}

/// Records the lab until it is told to stop; none, and a line, where the kernel does not let it.
struct Recorder {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Recorded>,
}

impl Recorder {
    fn begin(lab: &Samba) -> Option<Recorder> {
        Recorder::begin_with(lab, LoadOptions::default(), None)
    }

    /// Hears the loopback interface too.
    fn begin_joined(lab: &Samba) -> Option<Recorder> {
        let interface = live::Options {
            interface: "lo".to_owned(),
            ports: Vec::new(),
            ..live::Options::default()
        };
        Recorder::begin_with(lab, LoadOptions::default(), Some(interface))
    }

    fn begin_with(
        lab: &Samba,
        load: LoadOptions,
        interface: Option<live::Options>,
    ) -> Option<Recorder> {
        let port = lab.target.split([':', '/']).nth(3).unwrap().parse().unwrap();
        let choice = Choice { ports: vec![port], ..Choice::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let (asked, ready) = (stop.clone(), std::sync::mpsc::channel());
        let (begun, ready) = ready;
        let thread = std::thread::spawn(move || {
            let mut recording =
                match Recording::begin("probe", &choice, load, &Options::default(), interface) {
                    Ok(recording) => recording,
                    Err(error) => {
                        begun.send(Some(error)).unwrap();
                        return Recorded { parts: Vec::new(), progress: Progress::default() };
                    }
                };
            begun.send(None).unwrap();
            let mut parts = Vec::new();
            while !asked.load(Ordering::Relaxed) {
                let (some, idle) = recording.poll().unwrap();
                parts.extend(some);
                if idle {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            let (last, progress) = recording.end().unwrap();
            parts.extend(last);
            Recorded { parts, progress }
        });
        match ready.recv().unwrap() {
            None => Some(Recorder { stop, thread }),
            // Where the machine could, that it does not is a defect.
            Some(error) if facts().iter().any(|fact| fact.blocks) => {
                eprintln!("skipped: {error}");
                None
            }
            Some(error) => panic!("{error}"),
        }
    }

    /// Ends it once the connections are closed.
    fn end(self) -> Recorded {
        std::thread::sleep(Duration::from_millis(500));
        self.stop.store(true, Ordering::Relaxed);
        let recorded = self.thread.join().unwrap();
        assert_eq!(recorded.progress.counted, Default::default());
        assert_eq!(recorded.progress.losses.given_up, 0);
        recorded
    }
}

/// Batches that hold one column as integers, by the operation's number.
fn column(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    let values = cast(&batch[name], &DataType::Int64).unwrap();
    values.as_primitive::<Int64Type>().iter().collect()
}

fn text(batch: &RecordBatch, name: &str) -> Vec<String> {
    let values = cast(&batch[name], &DataType::Utf8).unwrap();
    let values = values.as_string::<i32>();
    (0..values.len()).map(|row| values.value(row).to_owned()).collect()
}

/// That every answered operation has slices, that they are its turnaround (a compound's stands on
/// its lead), and that the table of slices says the same.
fn slices_add_up(parts: &[Part]) {
    let mut of_table: HashMap<i64, i64> = HashMap::new();
    for part in parts {
        if let Part::Slices(rows) = part {
            for row in rows {
                *of_table.entry(row.operation as i64).or_default() += row.duration_ns;
            }
        }
    }
    let mut without = Vec::new();
    let mut off = Vec::new();
    let mut rows = 0;
    for batch in operations(parts.to_vec()) {
        let commands = text(&batch, "command");
        let numbers = column(&batch, "operation");
        let turnarounds = column(&batch, "turnaround_ns");
        let in_compound = column(&batch, "compound");
        let parts: Vec<_> = Kind::ALL[..Kind::PARTS]
            .iter()
            .map(|kind| column(&batch, &format!("{}_ns", kind.name())))
            .collect();
        for row in 0..batch.num_rows() {
            rows += 1;
            let values: Vec<i64> = parts.iter().filter_map(|part| part[row]).collect();
            let sum: i64 = values.iter().sum();
            assert_eq!(of_table.get(&numbers[row].unwrap()).copied().unwrap_or(0), sum);
            if values.is_empty() {
                without.push(commands[row].clone());
            }
            if let (Some(turnaround), None) = (turnarounds[row], in_compound[row])
                && !values.is_empty()
                && (turnaround - sum).abs() > 1_000
            {
                off.push(format!("{}: {turnaround} ns, slices {sum}", commands[row]));
            }
        }
    }
    assert!(rows > 100, "{rows} rows");
    assert!(without.is_empty(), "without slices: {without:?}");
    assert!(off.is_empty(), "{} of {rows}: {:?}", off.len(), &off[..off.len().min(5)]);
}

/// Runs users while it is recorded.
fn recorded_run(lab: &Samba, config: Config) -> Option<(Vec<Part>, Recorded)> {
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(lab, &planner);
    let recorder = Recorder::begin(lab)?;
    let (result, parts) = run::run_with(lab, &planner, config, 6, |_| ());
    assert!(result.ended > 5, "{result:?}");
    Some((parts, recorder.end()))
}

fn same_as_the_load(lab: &Samba, config: Config) {
    let Some((parts, recorded)) = recorded_run(lab, config) else { return };
    assert_eq!(recorded.progress.without_slices, 0);
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    slices_add_up(&recorded.parts);
}

#[test]
fn a_recording_has_the_runs_operations() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    same_as_the_load(&lab, Config::default());
}

#[test]
fn also_signed() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    same_as_the_load(&lab, Config { signing: Signing::Required, ..Config::default() });
}

#[test]
fn also_encrypted() {
    let _alone = alone();
    let Some(lab) = samba(|options| options.encryption = lab::Encryption::Desired) else {
        return;
    };
    same_as_the_load(&lab, Config { encryption: Encryption::Required, ..Config::default() });
}

#[test]
fn also_on_samba_4_22() {
    let _alone = alone();
    let Some(dir) = samba_4_22() else { return };
    let Some(lab) = samba(|options| options.samba = Some(dir)) else { return };
    same_as_the_load(&lab, Config::default());
}

/// Three connections in a session, which smbd hands from process to process.
#[test]
fn also_over_several_channels() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some((parts, recorded)) = recorded_run(&lab, Config { channels: 3, ..Config::default() })
    else {
        return;
    };
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    // Of a Negotiate that another process ends, who worked on it when is not known.
    let without = recorded.progress.without_slices;
    assert!(without <= 3 * run::USERS, "{without} rows without slices");
}

/// Connection, sequence number of the request's first byte, member of the compound.
fn keys(batch: &RecordBatch) -> Vec<(Option<i64>, Option<i64>, i64)> {
    let (ports, sequences) = (column(batch, "client_port"), column(batch, "tcp_sequence"));
    let members = column(batch, "compound_index");
    let rows = 0..batch.num_rows();
    rows.map(|row| (ports[row], sequences[row], members[row].unwrap_or(0))).collect()
}

/// When each request was there, and its reply left.
fn times(batch: &RecordBatch) -> Vec<Option<(i64, i64)>> {
    let (begins, ends) = (column(batch, "request_end"), column(batch, "response_start"));
    begins.into_iter().zip(ends).map(|(begin, end)| begin.zip(end)).collect()
}

/// Joined with a capture taken at the same time: the server's time on the wire is the sum of the
/// slices.
#[test]
fn slices_are_the_time_on_the_wire() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcap");
    let Some(mut capturing) = tcpdump(&lab, &file) else { return };
    let Some(recorder) = Recorder::begin(&lab) else { return };
    run::run(&lab, &planner, 6, |_| ());
    let recorded = recorder.end();
    std::thread::sleep(Duration::from_secs(2));
    let pid = nix::unistd::Pid::from_raw(capturing.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    capturing.wait().unwrap();
    let decoder = Decoder::open(vec![Input::Path(file)], Options::default()).unwrap();
    let captured: Vec<Part> = decoder.map(|part| part.unwrap()).collect();
    // By the connection and the TCP sequence number of the request's first byte.
    let mut on_wire = HashMap::new();
    for batch in operations(captured) {
        for (key, times) in keys(&batch).into_iter().zip(times(&batch)) {
            on_wire.insert(key, times);
        }
    }
    let (mut joined, mut rows, mut residuals, mut begins) = (0, 0, Vec::new(), Vec::new());
    for batch in operations(recorded.parts) {
        rows += batch.num_rows();
        for (key, inside) in keys(&batch).into_iter().zip(times(&batch)) {
            let Some(wire) = on_wire.get(&key) else { continue };
            joined += 1;
            if let (Some(wire), Some(inside)) = (wire, inside) {
                residuals.push((wire.1 - wire.0) - (inside.1 - inside.0));
                begins.push(inside.0 - wire.0);
            }
        }
    }
    begins.sort_unstable();
    eprintln!("arrival: {} ns after the wire's in the median", begins[begins.len() / 2]);
    residuals.sort_unstable();
    let at = |share: f64| residuals[((residuals.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{joined} of {rows} joined; wire - slices: p1 {} p50 {} p99 {} ns",
        at(0.01),
        at(0.5),
        at(0.99)
    );
    assert!(joined as f64 >= 0.999 * rows as f64, "{joined} of {rows}");
    // On a busy machine the capture's own work, which lies in between, takes its time: what is reached
    // in quiet stands in docs/probe.md.
    assert!(at(0.5).abs() < 15_000, "median {}", at(0.5));
}

/// Wire and probe recorded together: one row has both.
fn joined_run(lab: &Samba, config: Config) {
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(lab, &planner);
    let Some(recorder) = Recorder::begin_joined(lab) else { return };
    let (_, parts) = run::run_with(lab, &planner, config, 6, |_| ());
    let recorded = recorder.end();
    same_entities(&parts, &recorded.parts);
    let heard = recorded.progress.wire.unwrap();
    assert_eq!(heard.dropped, 0);
    assert!(heard.packets > 1_000, "{heard:?}");
    let (mut rows, mut on_wire, mut residuals) = (0, 0, Vec::new());
    for batch in operations(recorded.parts.clone()) {
        let (starts, members) = (column(&batch, "request_start"), column(&batch, "compound_index"));
        let (outside, inside) = (column(&batch, "turnaround_ns"), column(&batch, "server_ns"));
        for row in 0..batch.num_rows() {
            rows += 1;
            on_wire += usize::from(starts[row].is_some() || members[row].is_some());
            if let (Some(outside), Some(inside)) = (outside[row], inside[row]) {
                residuals.push(outside - inside);
            }
        }
    }
    residuals.sort_unstable();
    let coverages: Vec<_> = (recorded.parts.iter())
        .filter_map(|part| match part {
            Part::Coverage(coverage) => Some(coverage),
            _ => None,
        })
        .collect();
    let [inside, wire] = coverages[..] else { panic!("{} coverages", coverages.len()) };
    let at = |share: f64| residuals[((residuals.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{rows} rows, not joined {} and {}; {} residuals: p1 {} p50 {} p99 {} ns",
        inside.operations_unjoined,
        wire.operations_unjoined,
        residuals.len(),
        at(0.01),
        at(0.5),
        at(0.99)
    );
    assert_eq!(on_wire, rows);
    assert!(inside.operations_unjoined as f64 <= 0.001 * rows as f64);
    assert!(wire.operations_unjoined as f64 <= 0.001 * rows as f64);
    assert!(residuals.len() > 300);
    assert!(at(0.5).abs() < 15_000, "median {}", at(0.5));
    assert_eq!(wire.capture_file.as_deref(), Some("lo"));
    // What TCP did is of the wire, the numbers are those of the rows.
    for part in &recorded.parts {
        let Part::Connections(connections) = part else { continue };
        for connection in connections {
            assert!(connection.handshake_seen, "{connection:?}");
            assert!(connection.server_rtt_ns.is_some() || connection.client_rtt_ns.is_some());
            assert!(connection.operations > 0 && connection.packets_to_client > 0);
        }
    }
}

#[test]
fn wire_and_probe_are_one_row() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    joined_run(&lab, Config::default());
}

#[test]
fn also_of_encrypted_sessions_over_several_channels() {
    let _alone = alone();
    let Some(lab) = samba(|options| options.encryption = lab::Encryption::Desired) else {
        return;
    };
    let config = Config { encryption: Encryption::Required, channels: 3, ..Config::default() };
    joined_run(&lab, config);
}

/// System calls alone: the same operations, and the slices of each are its turnaround; compounds have
/// theirs on the lead.
#[test]
fn without_sambas_functions_rows_are_the_same() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let load = LoadOptions { functions: false, ..LoadOptions::default() };
    let Some(recorder) = Recorder::begin_with(&lab, load, None) else { return };
    let (_, parts) = run::run_with(&lab, &planner, Config::default(), 6, |_| ());
    let recorded = recorder.end();
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    let (mut rows, mut members, mut filesystem) = (0, 0, 0);
    for batch in operations(recorded.parts) {
        let in_compound = column(&batch, "compound_index");
        let turnarounds = column(&batch, "turnaround_ns");
        let commands = text(&batch, "command");
        filesystem += column(&batch, "filesystem_ns").into_iter().flatten().sum::<i64>();
        let slices: Vec<_> = Kind::ALL[..Kind::PARTS]
            .iter()
            .map(|kind| column(&batch, &format!("{}_ns", kind.name())))
            .collect();
        for row in 0..batch.num_rows() {
            rows += 1;
            if in_compound[row].is_some_and(|index| index > 0) {
                members += 1;
                continue;
            }
            let values: Vec<i64> = slices.iter().filter_map(|slice| slice[row]).collect();
            assert!(!values.is_empty(), "{} has no slices", commands[row]);
            if let Some(turnaround) = turnarounds[row] {
                let sum: i64 = values.iter().sum();
                assert!(
                    (turnaround - sum).abs() <= 1_000,
                    "{}: {turnaround}, slices {sum}",
                    commands[row]
                );
            }
        }
    }
    assert!(filesystem > 0);
    assert_eq!(recorded.progress.without_slices, members);
    assert!(rows > 100, "{rows}");
}

/// Disk and time off the processor lie within the slices; cold files are read from the disk.
#[test]
fn disk_and_time_off_the_processor_lie_within() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let load = LoadOptions { off_cpu: true, disk: true, ..LoadOptions::default() };
    let Some(recorder) = Recorder::begin_with(&lab, load, None) else { return };
    assert!(std::process::Command::new("sync").status().unwrap().success());
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    run::run(&lab, &planner, 6, |_| ());
    let recorded = recorder.end();
    let mut sums = [0_i64; 2];
    for batch in operations(recorded.parts) {
        let within = [column(&batch, "disk_ns"), column(&batch, "offcpu_ns")];
        let commands = text(&batch, "command");
        let slices: Vec<_> = Kind::ALL[..Kind::PARTS]
            .iter()
            .map(|kind| column(&batch, &format!("{}_ns", kind.name())))
            .collect();
        for row in 0..batch.num_rows() {
            let sum: i64 = slices.iter().filter_map(|slice| slice[row]).sum();
            for (values, total) in within.iter().zip(&mut sums) {
                let value = values[row].unwrap();
                assert!(
                    value <= sum + 1_000,
                    "{}: {value} of {sum} ns: {:?}",
                    commands[row],
                    within.each_ref().map(|values| values[row])
                );
                *total += value;
            }
        }
    }
    eprintln!("disk {} us, off the processor {} us", sums[0] / 1_000, sums[1] / 1_000);
    assert!(sums[1] > 0);
    assert!(sums[0] > 0, "nothing was read from a disk");
}

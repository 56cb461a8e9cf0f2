//! Counts and totals of traces equal those of independent programs: `tests/traces/record.py` for
//! the fixtures, lines counted here for the traces of other people (`SMBSCOPE_SHARED`, else
//! `../shared`; skipped where they are absent).

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use smbscope_tables::Part;
use smbscope_tables::tables::{Interrupt, Sample, StackFrame, Switch, Trace};
use smbscope_trace::{Reader, Symbols, recognise, recognise_folder};

#[derive(Default)]
struct Rows {
    interrupts: Vec<Interrupt>,
    samples: Vec<Sample>,
    frames: Vec<StackFrame>,
    switches: Vec<Switch>,
    trace: Trace,
}

fn read(path: &Path) -> Rows {
    let format = if path.is_dir() {
        recognise_folder(path).unwrap().0
    } else {
        let head = std::fs::read(path).unwrap();
        recognise(&head[..head.len().min(smbscope_trace::HEAD_BYTES)]).unwrap()
    };
    let mut reader = Reader::open(path, format, &Symbols::default(), 50).unwrap();
    let mut rows = Rows::default();
    while let Some(part) = reader.next_part().unwrap() {
        match part {
            Part::Interrupts(batch) => rows.interrupts.extend(Interrupt::from_batch(&batch)),
            Part::Samples(batch) => rows.samples.extend(Sample::from_batch(&batch)),
            Part::Stacks(batch) => rows.frames.extend(StackFrame::from_batch(&batch)),
            Part::Switches(batch) => rows.switches.extend(Switch::from_batch(&batch)),
            Part::Traces(mut traces) => rows.trace = traces.remove(0),
            _ => {}
        }
    }
    rows
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Frames of all samples: a stack counts as often as it was sampled.
fn sampled_frames(rows: &Rows, function: Option<&str>) -> u64 {
    let mut of_stack = BTreeMap::<u64, u64>::new();
    for frame in &rows.frames {
        if function.is_none() || frame.function.as_deref() == function {
            *of_stack.entry(frame.stack).or_default() += 1;
        }
    }
    let stacks = rows.samples.iter().filter_map(|sample| sample.stack);
    stacks.map(|stack| of_stack.get(&stack).copied().unwrap_or(0)).sum()
}

/// `flood.etl` is made by `tests/etl/fixture.rs`: 40 DPCs of ndis.sys on CPU 0.
#[test]
fn a_log_of_windows_has_its_drivers_in_the_rows() {
    let rows = read(&workspace().join("tests/traces/flood.etl"));
    let of = |kind: &str, name: &str| {
        let is_one = |row: &&Interrupt| row.kind == kind && row.name.as_deref() == Some(name);
        let found = rows.interrupts.iter().filter(is_one);
        found.map(|row| row.duration_ns.unwrap()).fold((0, 0), |(n, sum), it| (n + 1, sum + it))
    };
    assert_eq!(of("dpc", "ndis.sys"), (40, 8_250_000));
    assert_eq!(of("isr_msi", "nic.sys"), (40, 80_000));
    assert_eq!(of("timer_dpc", "ntoskrnl.exe"), (10, 20_000));
    assert_eq!(rows.interrupts.len(), 90);
    assert!(rows.interrupts.iter().all(|row| row.exclusive_ns == row.duration_ns));
    let modules: Vec<_> = rows.frames.iter().map(|frame| frame.module.as_deref()).collect();
    assert_eq!(modules, [Some("ndis.sys"), Some("nic.sys"), Some("ntoskrnl.exe")]);
    assert_eq!(rows.samples.iter().filter(|sample| sample.stack.is_some()).count(), 10);
    assert_eq!((rows.trace.cpus, rows.trace.damaged, rows.switches.len()), (2, 0, 2));
}

#[test]
fn fixtures_have_the_counts_and_totals_of_the_script() {
    let folder = workspace().join("tests/traces");
    let truth = std::fs::read_to_string(folder.join("truth.json")).unwrap();
    let truth: BTreeMap<String, Value> = serde_json::from_str(&truth).unwrap();
    for (file, truth) in truth {
        let rows = read(&folder.join(&file));
        let mut by_name = BTreeMap::<String, [i64; 3]>::new();
        for row in &rows.interrupts {
            let Some(duration) = row.duration_ns else { continue };
            let sum = by_name.entry(row.name.clone().unwrap().to_string()).or_default();
            *sum = [sum[0] + 1, sum[1] + duration, sum[2].max(duration)];
            assert!(row.exclusive_ns.unwrap() <= duration);
        }
        let polls: Vec<_> = rows.interrupts.iter().filter_map(|row| row.work).collect();
        let found = serde_json::json!({
            "by_name": by_name,
            "polls": polls.len(),
            "work": polls.iter().sum::<u64>(),
            "samples": rows.samples.len(),
            "frames": sampled_frames(&rows, None),
            "switches": rows.switches.len(),
        });
        assert_eq!(found, truth, "{file}");
        assert_eq!(rows.trace.damaged, 0, "{:?}", rows.trace.first_damaged);
        assert_eq!(rows.trace.events_other, 0);
        assert_eq!(rows.trace.interrupts, rows.interrupts.len() as u64);
    }
}

#[test]
fn delays_are_from_the_request_to_the_beginning() {
    let rows = read(&workspace().join("tests/traces/loopback.ftrace.txt"));
    let softirqs = rows.interrupts.iter().filter(|row| row.kind == "softirq");
    let delays: Vec<_> = softirqs.map(|row| row.delay_ns).collect();
    let known = delays.iter().flatten().count();
    // The first ones were requested before the trace.
    assert!(known + 4 >= delays.len(), "{known} of {}", delays.len());
    assert!(delays.iter().flatten().all(|delay| (0..1_000_000_000).contains(delay)));
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

#[test]
fn a_report_of_trace_cmd_from_elsewhere_is_read_whole() {
    let Some(path) = shared("lisa_trace.txt") else { return };
    let rows = read(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = |word: &str| text.lines().filter(|line| line.contains(word)).count();
    assert_eq!(rows.switches.len(), lines(": sched_switch: "));
    // Two lines of a head, then one for each event.
    assert_eq!(rows.trace.events as usize, text.lines().count() - 2);
    assert_eq!((rows.trace.cpus, rows.trace.damaged), (6, 0), "{:?}", rows.trace.first_damaged);
}

#[test]
fn samples_of_perf_script_from_elsewhere_have_all_frames() {
    let Some(path) = shared("perf-iperf-stacks-pidtid-01.txt") else { return };
    let rows = read(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = |word: &str| text.lines().filter(|line| line.contains(word)).count();
    assert_eq!(rows.samples.len(), lines(": cpu-clock: "));
    let frames = text.lines().filter(|line| line.starts_with('\t')).count();
    assert_eq!(sampled_frames(&rows, None), frames as u64);
    let receive = lines(" net_rx_action ") as u64;
    assert_eq!(sampled_frames(&rows, Some("net_rx_action")), receive);
    let softirqs = rows.samples.iter().filter(|row| row.during.as_deref() == Some("softirq"));
    assert!(softirqs.count() as u64 >= receive);
    assert_eq!((rows.trace.damaged, rows.trace.events_lost), (0, None));
}

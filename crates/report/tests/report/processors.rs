//! The report of a trace of processors: a flooded server, its verdict, and names that try to escape.

use std::borrow::Cow;

use smbscope_analysis::processors::{Limits, Processors, Report};
use smbscope_report::{processors_html, processors_text};
use smbscope_tables::tables::{Cpu, Interrupt, Sample, Switch, Trace};

use super::{TextLook, is_well_formed, meta, sample};

/// Four CPUs for a second; DPCs of ndis.sys hold CPUs 0 and 2.
pub fn report() -> Report {
    let mut processors = Processors::new(Limits::default());
    let cpus = (0..4).map(|cpu| Cpu { cpu, node: Some(cpu / 2), ..Cpu::default() });
    processors.cpus(&cpus.collect::<Vec<_>>());
    let interrupt =
        |cpu, kind: &'static str, name: &str, duration, device: Option<&str>| Interrupt {
            recording: "flood".into(),
            cpu,
            kind: Cow::Borrowed(kind),
            name: Some(name.into()),
            device: device.map(Into::into),
            duration_ns: Some(duration),
            exclusive_ns: Some(duration),
            delay_ns: device.map(|_| 3_000),
            work: device.map(|_| 64),
            ..Interrupt::default()
        };
    let mut rows = Vec::new();
    for run in 0..4_000 {
        let duration = 200_000 + run * 12;
        rows.push(interrupt(run as u64 % 2 * 2, "dpc", "ndis.sys", duration, Some("eth0")));
    }
    for run in 0..100 {
        rows.push(interrupt(run % 4, "isr", sample::HOSTILE, 5_000, None));
    }
    processors.interrupts(&Interrupt::to_batch(&rows).unwrap());
    let switch = |cpu, time| Switch { recording: "flood".into(), cpu, time, ..Switch::default() };
    processors.switches(&Switch::to_batch(&[switch(1, 5), switch(3, 5)]).unwrap());
    let hit = Sample { cpu: 0, during: Some(Cow::Borrowed("dpc")), ..Sample::default() };
    processors.samples(&Sample::to_batch(&[hit]).unwrap());
    processors.traces(&[Trace {
        recording: "flood".into(),
        format: "etl".into(),
        started_at: Some(0),
        ended_at: Some(1_000_000_000),
        cpus: 4,
        events: 4_103,
        events_lost: Some(7),
        damaged: 2,
        first_damaged: Some(sample::HOSTILE.into()),
        interrupts: 4_100,
        ..Trace::default()
    }]);
    processors.finish()
}

#[test]
fn the_verdict_names_the_processors_and_the_driver() {
    let look = TextLook { width: 100, all: true };
    let text = processors_text(&report(), &meta(), look);
    let line = text.lines().find(|line| line.starts_with("CPUs 0, 2 spend")).unwrap();
    assert!(line.contains("44.8 % of their time"), "{line}");
    for words in [
        "Most time takes ndis.sys (dpc): 896 ms in 4,000 runs, 4,000 above 100 µs, on CPU 0, 2.",
        "events that the recorder lost: 7",
        "From the request to the beginning",
        "1.00 s of 4 CPUs",
        "eth0",
        "Length",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    // What a quiet trace lacks is said; nothing is held.
    let quiet = processors_text(&Report::default(), &meta(), look);
    assert!(quiet.contains("The trace has no interrupts and no deferred work."), "{quiet}");
    assert!(quiet.contains("sched:sched_switch") && quiet.contains("perf record"), "{quiet}");
}

#[test]
fn a_page_is_well_formed_whatever_names_are() {
    let page = processors_html(&report(), &meta());
    is_well_formed(&page);
    assert!(page.contains("&lt;script&gt;") && page.contains("CPUs 0, 2 spend"));
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
}

//! The report of a CPU trace: a flooded server, its verdict, and names that try to escape.

use std::borrow::Cow;

use smbscope_analysis::processors::compare::compare;
use smbscope_analysis::processors::{Limits, Processors, Report};
use smbscope_report::cpu::{CpuAnswer, CpuComparison, CpuExplanation};
use smbscope_report::{TextOptions, html, json};
use smbscope_tables::tables::{Cpu, Interrupt, InterruptTotal, Sample, Switch, Trace};

use super::{is_well_formed, meta, sample};

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
    let hit = Sample { cpu: Some(0), during: Some(Cow::Borrowed("dpc")), ..Sample::default() };
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

const SECOND: i64 = 1_000_000_000;

fn of_a_minute(rows: &[Interrupt], samples: &[Sample], totals: &[InterruptTotal]) -> Report {
    let format = match totals {
        [] => "perf.data",
        _ => "xperf -a dpcisr",
    };
    let mut processors = Processors::new(Limits::default());
    let cpus = (0..4).map(|cpu| Cpu { cpu, ..Cpu::default() });
    processors.cpus(&cpus.collect::<Vec<_>>());
    processors.interrupts(&Interrupt::to_batch(rows).unwrap());
    processors.samples(&Sample::to_batch(samples).unwrap());
    processors.totals(totals);
    processors.traces(&[Trace {
        recording: "minute".into(),
        format: format.into(),
        started_at: Some(100 * SECOND),
        ended_at: Some(160 * SECOND),
        interrupts: rows.len() as u64,
        samples: samples.len() as u64,
        ..Trace::default()
    }]);
    processors.finish()
}

/// NET_RX holds CPU 1 from one second of the minute to another one.
fn held(from: i64, to: i64) -> Report {
    let run = |number: i64| Interrupt {
        recording: "minute".into(),
        cpu: 1,
        kind: Cow::Borrowed("softirq"),
        name: Some("NET_RX".into()),
        start: (100 + from) * SECOND + number * 10_000_000,
        duration_ns: Some(9_400_000),
        exclusive_ns: Some(9_400_000),
        ..Interrupt::default()
    };
    let rows: Vec<_> = (0..(to - from) * 100).map(run).collect();
    of_a_minute(&rows, &[], &[])
}

/// 200 samples of CPU 0, of which some hit a softirq.
fn sampled(hits: usize) -> Report {
    let sample = |number: usize| Sample {
        cpu: Some(0),
        recording: "minute".into(),
        time: 100 * SECOND + number as i64 * 10_000_000,
        thread: Some(5),
        address: Some(1),
        during: (number < hits).then_some(Cow::Borrowed("softirq")),
        weight_ns: Some(10_000_000),
        ..Sample::default()
    };
    of_a_minute(&[], &(0..200).map(sample).collect::<Vec<_>>(), &[])
}

/// Sums of two seconds in intervals of one.
fn sums() -> Report {
    let sum = |kind: &str, name: Option<&str>, (start, end), cpu, ns| InterruptTotal {
        kind: kind.into(),
        name: name.map(str::to_owned),
        start,
        end,
        cpu: Some(cpu),
        duration_ns: Some(ns),
        ..InterruptTotal::default()
    };
    let whole = (100 * SECOND, 160 * SECOND);
    let bucket = |count| InterruptTotal {
        cpu: None,
        duration_ns: None,
        above_ns: Some(128_000),
        count: Some(count),
        ..sum("dpc", Some("ndis.sys"), whole, 0, 0)
    };
    of_a_minute(
        &[],
        &[],
        &[
            sum("dpc", Some("ndis.sys"), whole, 0, 40 * SECOND),
            sum("dpc", Some("ndis.sys"), whole, 1, SECOND),
            bucket(200_000),
        ],
    )
}

/// A report of each kind.
pub fn reports() -> Vec<Report> {
    vec![report(), Report::default(), held(40, 60), held(20, 40), sampled(60), sums()]
}

#[test]
fn a_cpu_that_is_held_for_a_part_of_the_trace_is_a_finding_with_its_time() {
    let options = TextOptions::new(100, false);
    // Times are known to a bin: a quarter of a second.
    for (report, when, more) in [
        (held(40, 60), "hold CPU 1 since 40.", "CPU 1 of 4, since 40."),
        (held(20, 40), "hold CPU 1 from 20.0 s to 40.", "CPU 1 of 4, from 20.0 s to 40."),
        (held(0, 20), "hold CPU 1 until 20.", "CPU 1 of 4, until 20."),
    ] {
        let text = smbscope_report::text(&CpuAnswer { report: &report, meta: &meta() }, &options);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("Interrupt work holds CPUs (18.8 s of CPU time; measured)"),
            "{text}"
        );
        assert!(
            flat.contains(" that time goes to interrupts and deferred work (18.8 of 20."),
            "{flat}"
        );
        assert!(flat.contains(when) && flat.contains(more), "{flat}");
        // The strip is as long as the trace.
        assert!(text.contains("Interrupts and deferred work over time, 60.0 s"), "{text}");
    }
    let none = smbscope_report::text(&CpuAnswer { report: &held(20, 22), meta: &meta() }, &options);
    assert!(!none.contains("holds processors"), "{none}");
    assert!(none.contains("No CPU spends more than 3.1 %"), "{none}");
    let page = html(&CpuAnswer { report: &held(40, 60), meta: &meta() });
    assert!(page.contains(">60 s</i>") || page.contains(">60.0 s</i>") || page.contains("1 min"));
}

#[test]
fn a_trace_with_samples_only_shows_what_they_say_and_what_is_not_known() {
    let options = TextOptions::new(120, false);
    let text = smbscope_report::text(&CpuAnswer { report: &sampled(60), meta: &meta() }, &options);
    assert!(text.contains("CPU 0 has 30.0 % of its samples in interrupts and deferred"), "{text}");
    assert!(
        text.contains("60 of 200 samples hit deferred work. The trace has no events"),
        "{text}"
    );
    assert!(!text.contains("no interrupts and no deferred work"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Interrupts: – (not recorded)"), "{flat}");
    let json = json(&CpuAnswer { report: &sampled(60), meta: &meta() }).unwrap();
    let cpu = &json["processors"][0];
    for name in ["deferred_ns", "interrupt_ns", "deferred_share", "interrupts"] {
        assert!(cpu[name].is_null(), "{name}: {cpu}");
    }
    assert!(cpu["sampled"]["interrupt"].is_null(), "clocks may not tick in handlers: {cpu}");
    assert_eq!(
        (&cpu["sampled"]["deferred"], &cpu["sampled"]["of_time"]),
        (&0.3.into(), &false.into())
    );
    // None of them says that it is one.
    let text = smbscope_report::text(&CpuAnswer { report: &sampled(0), meta: &meta() }, &options);
    assert!(text.contains("The trace has no interrupts and no deferred work"), "{text}");
    assert!(!text.contains("0 % of its samples"), "{text}");
    let all =
        smbscope_report::text(&CpuExplanation { report: &sampled(200), meta: &meta() }, &options);
    assert!(all.contains("Interrupt work holds CPUs"), "{all}");
}

#[test]
fn sums_count_wherever_single_interrupts_do() {
    let options = TextOptions::new(100, false);
    let text = smbscope_report::text(&CpuExplanation { report: &sums(), meta: &meta() }, &options);
    for words in [
        "CPU 0 spends 66.7 % of its time in interrupts and deferred work",
        "Interrupt work holds CPUs",
        "Deferred work or handlers run too long",
        "Most time takes ndis.sys (dpc): 41.0 s in 200,000 runs",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("at least 200,000 of 200,000 runs take longer than 100 µs"), "{flat}");
}

#[test]
fn a_comparison_says_what_one_trace_did_not_record() {
    let options = TextOptions::new(120, false);
    let compared = |reports: &[Report]| {
        let found = compare(reports);
        let names = ["a".to_owned(), "b".to_owned()];
        let meta = smbscope_report::Meta { inputs: names.to_vec(), ..meta() };
        is_well_formed(&html(&CpuComparison { found: &found, reports, meta: &meta }));
        smbscope_report::text(&CpuComparison { found: &found, reports, meta: &meta }, &options)
    };
    for reports in [[held(0, 60), sampled(60)], [sampled(60), held(0, 60)]] {
        let text = compared(&reports);
        assert!(text.contains("There is nothing to compare"), "{text}");
        assert!(text.contains("has no events of interrupts and deferred work"), "{text}");
        assert!(!text.contains("gone") && !text.contains("new") && !text.contains('*'), "{text}");
    }
    let text = compared(&[held(0, 60), sums()]);
    assert!(text.contains("B has no event of these kinds: softirq"), "{text}");
    let text = compared(&[sums(), sums()]);
    assert!(text.contains("whether that is chance is not known"), "{text}");
    let text = compared(&[held(0, 60), held(0, 6)]);
    assert!(text.contains("NET_RX (softirq): −0.85 CPUs"), "{text}");
}

#[test]
fn the_verdict_names_the_processors_and_the_driver() {
    let options = TextOptions::new(100, true);
    let text = smbscope_report::text(&CpuAnswer { report: &report(), meta: &meta() }, &options);
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
    let quiet =
        smbscope_report::text(&CpuAnswer { report: &Report::default(), meta: &meta() }, &options);
    assert!(quiet.contains("The trace has no interrupts and no deferred work."), "{quiet}");
    assert!(quiet.contains("sched:sched_switch") && quiet.contains("perf record"), "{quiet}");
}

#[test]
fn a_page_is_well_formed_whatever_names_are() {
    let page = html(&CpuAnswer { report: &report(), meta: &meta() });
    is_well_formed(&page);
    assert!(page.contains("&lt;script&gt;") && page.contains("CPUs 0, 2 spend"));
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
}

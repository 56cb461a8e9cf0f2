//! The evidence of a finding as charts: how long its operations took, with the constants that it is
//! about as marks; the operations that it cost most; throughput against block size or window.
//!
//! Everything drawn is in the finding: its time classes, figures and examples.

use smbscope_analysis::explain::{Contributor, Example, Finding, FindingKind};

use crate::document::{Chart, Curve, Piece, Stacked, Timeline, TimelineRow, Times};
use crate::value::{Format, format};

/// What one operation consists of.
const PENDING: usize = 0;
const WORKING: usize = 1;
/// Operations in a timeline.
const EXAMPLES: usize = 5;
/// Characters of a name.
const NAME: usize = 34;
/// Points of a computed curve.
const POINTS: usize = 40;

/// All charts of a finding.
pub(crate) fn charts(found: &Finding) -> Vec<Chart> {
    let charts = [
        throughput(found).map(Chart::Curve),
        times(found).map(Chart::Times),
        timeline(found).map(Chart::Timeline),
        places(found).map(Chart::Stacked),
    ];
    charts.into_iter().flatten().collect()
}

/// How long the operations took.
fn times(found: &Finding) -> Option<Times> {
    if found.details.times.len() < 2 {
        return None;
    }
    let caption = match found.kind {
        FindingKind::SlowClient => "Pauses before a request",
        _ => "Elapsed time of the affected operations",
    };
    let marks = found.figures.iter().filter(|figure| figure.unit == "ns" && figure.value > 0.0);
    let marks = marks.filter_map(|figure| {
        let words = match &*figure.name {
            "round" => "mean network round",
            "round_trip" => "round trip",
            "mean_pause" => "mean pause",
            "timer" => "timer",
            "time_of_retries" => "retries of the server",
            "mean_time_between_the_parts" => "mean wait for an acknowledgement",
            // A sum is not the time of one operation.
            _ => return None,
        };
        let ns = figure.value as i64;
        Some((ns, format!("{words} {}", format::duration(ns))))
    });
    let mut marks: Vec<_> = marks.collect();
    if found.kind == FindingKind::BreakWaits {
        marks.push((1_000_000, "an open without a break, about 1 ms".to_owned()));
    }
    Some(Times { caption, classes: found.details.times.clone(), marks })
}

/// Where the time is lost: the paths, or the clients, of which there are several.
fn places(found: &Finding) -> Option<Stacked> {
    let all = &found.details;
    let lists = [("path", &all.paths), ("client", &all.clients), ("share", &all.shares)];
    let (kind, list) = lists.into_iter().find(|(_, list)| list.len() > 1)?;
    let row = |one: &Contributor| {
        let name = if one.name.is_empty() { "(none)" } else { one.name.as_str() };
        (format::sanitized(&format::shortened(name, NAME)), vec![one.saved_ns.max(0) as f64])
    };
    Some(Stacked {
        caption: format!("Time that would be saved, by {kind}"),
        help: String::new(),
        format: Format::Duration,
        unit: "",
        parts: vec![(1, "Time")],
        rows: list.iter().map(row).collect(),
        beside: None,
    })
}

/// The operations that it cost most, each on its own scale: until the server answered that they are
/// pending, and after it.
fn timeline(found: &Finding) -> Option<Timeline> {
    let rows = found.details.examples.iter().take(EXAMPLES).filter_map(|example| {
        let (whole_ns, pending_ns) = (example.elapsed_ns?, example.pending_ns?);
        let piece = |part, start_ns, end_ns: i64| Piece {
            part,
            start_ns,
            duration_ns: end_ns.saturating_sub(start_ns),
            depth: 0,
        };
        Some(TimelineRow {
            label: format!("{} {}", format::duration(whole_ns), example.command),
            note: name(example),
            whole_ns,
            pieces: vec![
                piece(WORKING, 0, pending_ns.min(whole_ns)),
                piece(PENDING, pending_ns.min(whole_ns), whole_ns),
            ],
        })
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| Timeline {
        caption: "The longest waits".to_owned(),
        help: "From the request to the reply; the server's interim response divides them."
            .to_owned(),
        parts: vec![
            (
                2,
                match found.kind {
                    FindingKind::BreakWaits => "until other clients answered",
                    FindingKind::LockContention => "until the lock was free",
                    _ => "after the interim response",
                },
            ),
            (1, "until the interim response"),
        ],
        rows,
    })
}

fn name(example: &Example) -> String {
    let frame = example.request_frame.map(|frame| format!("frame {frame}"));
    let words = [example.path.clone(), frame];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Throughput of requests that go one at a time, against their size: one block for each round trip,
/// plus the time that its bytes take on the line.
fn throughput(found: &Finding) -> Option<Curve> {
    let figure = |name| found.figure(name);
    let (block, round_ns) = (figure("block")?, figure("round")?);
    let (larger, then) = (figure("larger_block")?, figure("throughput_then")?);
    if !(block > 0.0 && round_ns > 0.0 && larger > block) {
        return None;
    }
    // The time of the bytes follows from what larger blocks would reach.
    let line_ns = (8e9 * larger / then.max(1.0) - round_ns).max(0.0) / larger;
    let rate = |bytes: f64| bytes / (round_ns + bytes * line_ns) * 1e9;
    let curve = (1..=POINTS).map(|number| {
        let kib = larger * 1.1 * number as f64 / POINTS as f64 / 1024.0;
        (kib, rate(kib * 1024.0), false)
    });
    Some(Curve {
        caption: "Bytes per second by block size".to_owned(),
        help: format!(
            "One block at a time, with a round trip of {}; the points are today's blocks of {} and blocks of {}.",
            format::duration(round_ns as i64),
            format::bytes(block as u64),
            format::bytes(larger as u64)
        ),
        over: "KiB",
        format: Format::Bytes,
        limit: None,
        mark: None,
        in_text: false,
        lines: vec![
            ("Computed", curve.collect()),
            ("Today", vec![(block / 1024.0, rate(block), true)]),
            ("Larger blocks", vec![(larger / 1024.0, rate(larger), true)]),
        ],
    })
}

#[cfg(test)]
mod tests {
    use smbscope_analysis::explain::{Explained, TimeClass};
    use smbscope_findings::Figure;

    use super::*;

    fn finding(figures: Vec<Figure>) -> Finding {
        let class = |from_ns, below_ns, operations| TimeClass {
            from_ns,
            below_ns: Some(below_ns),
            operations,
        };
        let example = Example {
            command: "Create".into(),
            elapsed_ns: Some(5_000_000),
            pending_ns: Some(1_000_000),
            ..Example::default()
        };
        smbscope_findings::Finding::new(FindingKind::SmallReads, "")
            .with_figures(figures)
            .with_details(Explained {
                times: vec![class(1_000_000, 2_000_000, 2), class(20_000_000, 50_000_000, 1)],
                examples: vec![example],
                ..Explained::default()
            })
    }

    fn figure(name: &'static str, value: f64, unit: &'static str) -> Figure {
        Figure::new(name, value, unit, "")
    }

    #[test]
    fn constants_are_marks_of_the_histogram() {
        let found = finding(vec![figure("round", 20e6, "ns"), figure("standstill", 1e9, "ns")]);
        let chart = times(&found).unwrap();
        assert_eq!(chart.marks, [(20_000_000, "mean network round 20.0 ms".to_owned())]);
        let timeline = timeline(&found).unwrap();
        assert_eq!(timeline.rows[0].pieces[1].duration_ns, 4_000_000);
    }

    #[test]
    fn the_curve_goes_through_today_and_then() {
        // 4 KiB each 1 ms, and 1 MiB in 2 ms.
        let then = 8e9 * 1_048_576.0 / 2e6;
        let found = finding(vec![
            figure("block", 4096.0, "bytes"),
            figure("round", 1e6, "ns"),
            figure("larger_block", 1_048_576.0, "bytes"),
            figure("throughput_then", then, "bits/s"),
        ]);
        let curve = throughput(&found).unwrap();
        let value = |line: usize| curve.lines[line].1[0].1;
        assert!((value(2) - 1_048_576.0 / 2e-3).abs() < 1.0);
        assert!((value(1) - 4096.0 / 1.00390625e-3).abs() < 1.0);
        assert!(throughput(&finding(vec![])).is_none());
    }
}

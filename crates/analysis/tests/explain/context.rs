//! Context of findings: moments of change, counters of the server, blocks in flight.

use smbscope_analysis::explain::{Explain, FindingKind};
use smbscope_tables::run::Counter;

use crate::support::*;

#[test]
fn a_sharp_change_is_found_and_a_slow_or_short_one_is_not() {
    let rows = |of: fn(i64) -> i64| {
        let one = |number: i64| Act {
            server_ns: of(number) * MS / 10,
            gap_ns: 100 * MS,
            rtt_ns: 0,
            ..act(QUERY_INFO, 1, "a")
        };
        explain(&(0..600).map(one).collect::<Vec<_>>()).change
    };
    let change = rows(|number| (10 + number * 7 % 5) * if number < 400 { 1 } else { 4 }).unwrap();
    assert!((change.times - 4.0).abs() < 0.1, "{change:?}");
    // The first one begins 0.1 s after this time.
    let at = 1_000_000_000_000 + 401 * 100 * MS;
    let apart = (change.at_ns - at).abs();
    assert!(apart < 2_000 * MS && change.operations_before > 380, "{change:?} {apart}");
    let better = rows(|number| (10 + number * 7 % 5) * if number < 200 { 4 } else { 1 }).unwrap();
    assert!((better.times - 0.25).abs() < 0.02, "{better:?}");
    assert_eq!(rows(|number| 10 + number * 7 % 5), None);
    assert_eq!(rows(|number| 10 + number / 10), None, "it grows slowly");
    assert_eq!(rows(|number| if number % 100 < 50 { 10 } else { 40 }), None, "it comes and goes");
    assert_eq!(rows(|number| if number < 590 { 10 } else { 40 }), None, "only a few");
}

fn with_counters(cpu: f64, disk: f64) -> smbscope_analysis::explain::Finding {
    let rows = vec![Act { server_ns: 90 * MS, ..act(QUERY_INFO, 1, "a") }; 100];
    let mut explain = Explain::new();
    for second in 0..12 {
        for (name, value) in [("cpu_percent", cpu), ("disk_busy_percent", disk)] {
            explain.counters(&[Counter {
                time: 1_000_000_000_000 + second * 1_000 * MS,
                source: "server".into(),
                name: name.into(),
                unit: "percent".into(),
                value,
                ..Counter::default()
            }]);
        }
    }
    let diagnosis = explain_with(explain, &rows, Vec::new());
    found(&diagnosis, FindingKind::SlowFilesystem).unwrap().clone()
}

#[test]
fn counters_say_which_resource_of_a_slow_server_is_full() {
    let full = with_counters(99.8, 3.0);
    assert!(full.because.starts_with("its CPUs were 100 % busy"), "{}", full.because);
    assert!(full.remedies[0].action.contains("CPUs are full"));
    assert_eq!(figure(&full, "processors_busy"), 0.998);
    let disk = with_counters(20.0, 97.0);
    assert!(disk.remedies[0].action.contains("disk is busy"), "{:?}", disk.remedies);
    let idle = with_counters(4.0, 2.0);
    assert!(idle.remedies[0].action.contains("what it waits for"), "{:?}", idle.remedies);
}

#[test]
fn blocks_one_at_a_time_say_what_would_fill_the_network() {
    let set = |row: &mut smbscope_tables::operation::Operation| set_sequential(row, 64 << 10);
    let diagnosis = explain_on(&far_reads(set), far_connection(20, 1 << 22));
    let small = found(&diagnosis, FindingKind::SmallReads).unwrap();
    let (bytes, depth) = (figure(small, "in_flight_needed"), figure(small, "depth_needed"));
    assert_eq!(depth, (bytes / 65_536.0).ceil());
    // As much as a block of the largest size.
    assert!((bytes / (1 << 20) as f64 - 1.0).abs() < 0.05, "{bytes}");
}

//! What the time of a slow server depends on.

use smbscope_analysis::explain::{Finding, FindingKind};
use smbscope_tables::operation::Operation;

use crate::support::*;

/// Times that scatter around this one, ns.
fn around(ns: i64, number: i64) -> i64 {
    ns * (80 + number * 37 % 41) / 100
}

fn slow_server(acts: &[Act]) -> Finding {
    let acts: Vec<_> = acts.iter().map(|act| Act { rtt_ns: MS / 5, ..act.clone() }).collect();
    let diagnosis = explain(&acts);
    let found = found(&diagnosis, FindingKind::SlowFilesystem);
    found.unwrap_or_else(|| panic!("{:?}", diagnosis.findings)).clone()
}

#[test]
fn opens_for_data_that_take_far_longer_than_others_point_to_a_scanner() {
    let open = |number: i64| {
        let is_data = number % 2 == 0;
        let set: fn(&mut Operation) = if is_data {
            |row| row.set_desired_access(1)
        } else {
            |row| row.set_desired_access(0x80)
        };
        let server_ns = around(if is_data { 60 * MS } else { MS }, number);
        Act { server_ns, set, ..act(CREATE, number as u64, "folder\\file") }
    };
    let finding = slow_server(&(0..200).map(open).collect::<Vec<_>>());
    assert!(finding.what.contains("for data or changes"), "{}", finding.what);
    assert!(finding.what.contains("virus scanner"), "{}", finding.what);
    assert!(finding.remedies[0].action.contains("exclude the folder"), "{:?}", finding.remedies);
}

#[test]
fn the_first_use_of_each_file_that_is_slow_points_to_storage_that_fetches_it() {
    const PATHS: [&str; 20] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t",
    ];
    let read = |number: i64| {
        let path = PATHS[number as usize / 10];
        let server_ns = around(if number % 10 == 0 { 300 * MS } else { 2 * MS }, number);
        Act { server_ns, ..act(READ, number as u64 / 10, path) }
    };
    let finding = slow_server(&(0..200).map(read).collect::<Vec<_>>());
    assert!(finding.what.contains("used for the first time"), "{}", finding.what);
    assert!(finding.what.contains("tiered"), "{}", finding.what);
}

#[test]
fn reads_elsewhere_that_are_slow_point_to_disks() {
    let read = |number: i64| {
        let is_next = number % 2 == 1;
        let set: fn(&mut Operation) = |row| {
            let number = row.operation().unwrap();
            row.set_offset_bytes(number / 2 * 1_000_003 / 4_096 * 4_096 * 8 + number % 2 * 65_536);
            row.set_transferred_bytes(65_536);
        };
        let server_ns = around(if is_next { MS } else { 12 * MS }, number);
        Act { server_ns, set, ..act(READ, 1, "disk.vhdx") }
    };
    let finding = slow_server(&(0..400).map(read).collect::<Vec<_>>());
    assert!(finding.what.contains("at offsets elsewhere"), "{}", finding.what);
    assert!(finding.what.contains("rotating disks"), "{}", finding.what);
}

#[test]
fn times_that_depend_on_nothing_are_said_to() {
    // Slow at random, whatever the open is for.
    let open = |number: i64| {
        let set: fn(&mut Operation) = |row| {
            let is_data = row.operation().unwrap() % 2 == 0;
            row.set_desired_access(if is_data { 1 } else { 0x80 });
        };
        let server_ns = if number * 7919 % 97 < 40 { 60 * MS } else { 3 * MS };
        Act { server_ns: around(server_ns, number), set, ..act(CREATE, number as u64, "file") }
    };
    let finding = slow_server(&(0..300).map(open).collect::<Vec<_>>());
    assert!(!finding.what.contains("takes"), "{}", finding.what);
    assert!(
        finding.because.contains("does not clearly depend on what the open is for"),
        "{}",
        finding.because
    );
}

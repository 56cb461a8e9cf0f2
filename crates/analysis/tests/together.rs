//! Replays with several changes at once, and of several recordings: nothing is counted twice or left out.

// A test may panic.
#![allow(clippy::unwrap_used)]

use arrow::array::RecordBatch;
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::crypto::{Calibration, Cost, Costs, Side};
use smbscope_analysis::predict::plan::{Plan, Replication};
use smbscope_analysis::predict::reduce;
use smbscope_analysis::predict::replay::{Baseline, Prediction, Replay, Row};
use smbscope_analysis::predict::requirements::unanswered;
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::protection::Protection;
use smbscope_tables::run::{MEASURED, Scenario};
use smbscope_tables::tables::Connection;

const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const FLUSH: u16 = 7;
const READ: u16 = 8;
const WRITE: u16 = 9;
const QUERY_INFO: u16 = 16;
const MS: i64 = 1_000_000;
const RTT_NS: i64 = MS / 5;
const BLOCK: u64 = 65_536;

/// Operations one after the other on one open, a tenth of a millisecond between them, each with the
/// given server time, from the client's view on a link of [`RTT_NS`].
fn chain(acts: &[(u16, i64)]) -> Vec<Operation> {
    let mut at = 1_000_000_000;
    let rows = acts.iter().enumerate().map(|(number, &(command, server_ns))| {
        let mut row = Operation::default();
        row.set_operation(number as u64);
        row.set_connection(1);
        row.set_session_id(7);
        row.set_protocol(2);
        row.set_command(code::command(2, command));
        row.set_handle(1);
        row.set_request_wire_bytes(120);
        row.set_response_wire_bytes(120);
        row.set_request_start(at);
        row.set_request_end(at);
        at += RTT_NS + server_ns;
        row.set_response_start(at);
        row.set_response_end(at);
        row.derive_durations();
        row.set_server_ns(server_ns);
        at += MS / 10;
        row
    });
    rows.collect()
}

/// Consecutive blocks of 64 KiB.
fn blocks(rows: &mut [Operation]) {
    for (place, row) in rows.iter_mut().enumerate() {
        row.set_offset_bytes(place as u64 * BLOCK);
        row.set_transferred_bytes(BLOCK);
    }
}

fn batch(rows: &[Operation], recording: &str, path: Option<&str>) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for row in rows {
        let mut row = *row;
        row.set_recording(builder.names.recording.intern(recording));
        row.set_client(builder.names.client.intern("10.0.0.1"));
        if let Some(path) = path {
            row.set_path(builder.names.path.intern(path));
        }
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn connection(number: u64) -> Connection {
    Connection {
        recording: "run".into(),
        connection: number,
        vantage: Some("client".into()),
        server_rtt_ns: Some(RTT_NS),
        ..Connection::default()
    }
}

fn replay(batch: &RecordBatch, plan: Plan, baseline: Baseline) -> Prediction {
    let mut replay = Replay::new(plan, baseline).in_detail();
    replay.connections(&[connection(1), connection(2)]);
    replay.operations(batch).unwrap();
    replay.finish()
}

/// With the lessons of a first replay, as the program does.
fn predict_with(
    batch: &RecordBatch,
    changes: &[Change],
    calibration: Option<Calibration>,
) -> Prediction {
    let baseline = replay(batch, Plan::default(), Baseline::default()).baseline;
    let mut plan = Plan { calibration, ..Plan::default() };
    changes.iter().for_each(|change| change.plan(&mut plan));
    replay(batch, plan, baseline)
}

fn predict(rows: &[Operation], changes: &[Change]) -> Prediction {
    predict_with(&batch(rows, "run", None), changes, None)
}

/// How much longer all operations together take.
fn longer(prediction: &Prediction) -> i64 {
    let sum = |row: &Row| row.after.distribution.sum_ns - row.before.distribution.sum_ns;
    sum(&prediction.operations)
}

fn after(prediction: &Prediction, part: &str) -> f64 {
    let found = prediction.operations.parts.iter().find(|one| one.part == part);
    found.map_or(0.0, |one| one.after_ns)
}

fn is_sound(prediction: &Prediction) {
    for part in &prediction.operations.parts {
        assert!(part.after_ns >= -1.0, "{part:?}");
    }
}

#[test]
fn signing_left_by_faster_processors_is_removed_once() {
    let mut rows = chain(&[(READ, 100_000); 10]);
    for row in &mut rows {
        row.set_signed(true);
        row.set_crypto_out_ns(20_000);
        row.set_processing_ns(80_000);
    }
    let faster = Change::Cpu(2.0);
    assert_eq!(longer(&predict(&rows, &[faster])), -10 * 50_000);
    for changes in
        [[faster, Change::Signing(Protection::None)], [Change::Signing(Protection::None), faster]]
    {
        let off = predict(&rows, &changes);
        assert_eq!(longer(&off), -10 * (20_000 + 40_000));
        is_sound(&off);
    }
    // Signing that remains also uses those CPUs.
    for row in &mut rows {
        row.set_signed(false);
        row.set_crypto_out_ns(0);
    }
    let cost = Cost { message_ns: 8_000.0, ..Cost::default() };
    let server = Side { inbound: cost.clone(), outbound: cost };
    let protection = Protection::AesCmac.name().to_owned();
    let costs = vec![Costs { protection, server, client: Side::default() }];
    let calibration = Some(Calibration { costs, ..Calibration::default() });
    let signed = Change::Signing(Protection::AesCmac);
    let signed = predict_with(&batch(&rows, "run", None), &[faster, signed], calibration);
    assert_eq!(longer(&signed), 10 * (8_000 - 40_000));
}

#[test]
fn a_flush_left_by_faster_storage_is_removed_once() {
    let mut rows = chain(&[(WRITE, 5 * MS); 12]);
    for row in &mut rows {
        row.set_transferred_bytes(4096);
        row.set_write_through(true);
        row.set_filesystem_ns(MS);
        row.set_flush_ns(4 * MS);
    }
    let faster = Change::Filesystem(4.0);
    assert_eq!(longer(&predict(&rows, &[faster])), -12 * 15 * MS / 4);
    let off = predict(&rows, &[faster, Change::WriteThrough(false)]);
    assert_eq!(longer(&off), -12 * (4 * MS + 3 * MS / 4));
    is_sound(&off);
    // And stable writes use faster storage.
    for row in rows.iter_mut().take(2) {
        row.set_write_through(false);
        row.set_flush_ns(0);
        row.set_filesystem_ns(5 * MS);
    }
    rows[11].set_command(code::command(2, FLUSH));
    let on = |changes: &[Change]| longer(&predict(&rows, changes));
    let alone = on(&[Change::WriteThrough(true)]);
    assert!(alone > 0);
    assert_eq!(on(&[faster, Change::WriteThrough(true)]) - on(&[faster]), alone / 4);
}

#[test]
fn nothing_goes_along_with_what_is_not_sent() {
    // A directory that is opened, queried and closed twice; under a lease its second open is not sent.
    let ask = [(CREATE, MS / 10), (QUERY_INFO, MS / 10), (CLOSE, MS / 10)].repeat(2);
    let mut rows = chain(&ask);
    for (place, row) in rows.iter_mut().enumerate() {
        row.set_handle(place as u64 / 3);
        row.set_desired_access(0x81);
        row.set_create_options(1);
        row.set_detail(code::detail(code::Detail::Disposition, 1));
    }
    let batch = batch(&rows, "run", Some("Folder"));
    let rounds = |changes: &[Change]| {
        let prediction = predict_with(&batch, changes, None);
        (after(&prediction, "network") * rows.len() as f64 / RTT_NS as f64).round() as i64
    };
    let lease = Change::DirLease(());
    assert_eq!(rounds(&[lease]), 3);
    // The first query is compounded with its open; the second one has no open to be compounded with.
    assert_eq!(rounds(&[Change::Compound(true)]), 2);
    assert_eq!(rounds(&[lease, Change::Compound(true)]), 2);
}

#[test]
fn a_larger_block_is_made_stable_once_and_a_smaller_one_piece_by_piece() {
    // Writes of two sizes, each made stable by a Flush of 3 ms.
    let mut acts = vec![(WRITE, MS / 5); 16];
    acts.extend([(WRITE, MS / 20), (FLUSH, 3 * MS)].repeat(12));
    let mut rows = chain(&acts);
    blocks(&mut rows[..16]);
    for (place, row) in rows[16..].iter_mut().enumerate() {
        row.set_handle(2 + place as u64 / 2);
        row.set_offset_bytes(0);
        if place % 2 == 0 {
            row.set_transferred_bytes(4096);
        } else {
            row.set_flush_ns(3 * MS);
        }
    }
    let through = Change::WriteThrough(true);
    let more = |blocks: Change| {
        let with = longer(&predict(&rows, &[blocks, through]));
        with - longer(&predict(&rows, &[blocks]))
    };
    // The sixteen become one: twelve short ones and that one are stable instead of twelve Flushes.
    let one = more(Change::WriteBlock(1 << 20));
    assert_eq!(one, 3 * MS);
    let alone = longer(&predict(&rows, &[through]));
    assert_eq!(alone, 16 * 3 * MS);
    assert_eq!(more(Change::WriteBlock(BLOCK / 2)), 2 * alone);
    // They wait for a second server equally often.
    let replication =
        Replication { is_sync: true, is_on_arrival: false, rtt_ns: 5 * MS, bandwidth_bits: None };
    let both = [Change::WriteBlock(1 << 20), through];
    let replicated = predict(&rows, &[&both[..], &[Change::Replication(replication)]].concat());
    assert_eq!(longer(&replicated) - longer(&predict(&rows, &both)), 13 * 5 * MS);
}

#[test]
fn additional_requests_cost_server_time_too() {
    // 0.1 ms for a request, 0.1 for 64 KiB.
    let mut acts = vec![(READ, MS / 5); 16];
    acts.extend([(READ, MS / 10 + MS / 160); 12]);
    let mut rows = chain(&acts);
    blocks(&mut rows[..16]);
    for (place, row) in rows[16..].iter_mut().enumerate() {
        row.set_handle(2 + place as u64);
        row.set_offset_bytes(0);
        row.set_transferred_bytes(4096);
    }
    let smaller = predict(&rows, &[Change::Block(4096)]);
    assert!(longer(&smaller) > 16 * 15 * MS / 10, "{smaller:?}");
    is_sound(&smaller);
    assert!(after(&smaller, "rest") < 0.01 * after(&smaller, "server"), "{:?}", smaller.operations);
    let larger = predict(&rows, &[Change::Block(1 << 20)]);
    assert!(longer(&larger) < -4 * MS, "{larger:?}");
    is_sound(&larger);
    // The slower part is slower for each of them.
    rows.iter_mut().for_each(|row| row.set_filesystem_ns(row.server_ns().unwrap()));
    for block in [Change::Block(4096), Change::Block(1 << 20)] {
        let [one, slower] = [&[block][..], &[block, Change::Filesystem(0.1)]];
        let [one, slower] =
            [one, slower].map(|changes| after(&predict(&rows, changes), "filesystem"));
        assert!((slower / one / 10.0 - 1.0).abs() < 1e-3, "{block}: {one} {slower}");
    }
}

#[test]
fn storage_counts_among_reads_side_by_side() {
    // Eight at once, served one after the other, each 1 ms by the file system.
    let mut rows = chain(&[(READ, MS); 8]);
    blocks(&mut rows);
    for (place, row) in rows.iter_mut().enumerate() {
        row.set_request_start(1_000_000_000);
        row.set_request_end(1_000_000_000);
        row.set_response_start(1_000_000_000 + RTT_NS + (1 + place as i64) * MS);
        row.set_response_end(row.response_start().unwrap());
        row.derive_durations();
        row.set_filesystem_ns(MS);
        row.set_server_ns((1 + place as i64) * MS);
    }
    let waited = |changes: &[Change]| predict(&rows, changes).waiting_ns.1;
    assert_eq!(waited(&[Change::Depth(8)]), RTT_NS + 8 * MS);
    let slower = waited(&[Change::Depth(8), Change::Filesystem(0.5)]);
    assert_eq!(slower, RTT_NS + 16 * MS);
    is_sound(&predict(&rows, &[Change::Depth(1)]));
    // Waiting is not part of the server's own time if requests come one by one.
    rows.iter_mut().for_each(|row| row.set_filesystem_ns(0));
    is_sound(&predict(&rows, &[Change::Depth(1)]));
    let [reads, _] = predict(&rows, &[]).baseline.sizes;
    assert_eq!((reads.continued, reads.concurrent), (7, 7));
    let [all, single] = [8, 1].map(|depth| predict(&rows, &[Change::Depth(depth)]).contiguous);
    assert_eq!((all, single), (7, 7));
}

#[test]
fn a_change_without_effect_is_reported() {
    let rows = chain(&[(QUERY_INFO, MS); 20]);
    let prediction = predict(&rows, &[]);
    for change in
        [Change::Depth(8), Change::Block(4096), Change::ReadBlock(4096), Change::WriteBlock(4096)]
    {
        assert!(unanswered(&[change], &prediction).is_some(), "{change}");
    }
    let mut reads = chain(&[(READ, MS); 2]);
    blocks(&mut reads);
    let prediction = predict(&reads, &[]);
    assert!(unanswered(&[Change::Depth(8), Change::ReadBlock(4096)], &prediction).is_none());
    assert!(unanswered(&[Change::WriteBlock(4096)], &prediction).is_some());
}

#[test]
fn further_connections_of_a_session_are_counted() {
    let mut rows = chain(&[(READ, MS); 4]);
    assert_eq!(predict(&rows, &[]).further_channels, 0);
    rows[1].set_connection(2);
    rows[3].set_connection(2);
    assert_eq!(predict(&rows, &[]).further_channels, 1);
}

#[test]
fn unmeasured_operations_are_counted() {
    let mut rows = chain(&[(READ, MS); 4]);
    rows.iter_mut().for_each(|row| row.set_scenario_run(1));
    let mut replay = Replay::new(Plan::default(), Baseline::default());
    replay.scenarios(&[Scenario {
        recording: "run".into(),
        scenario_run: 1,
        phase: "warm-up".into(),
        started_at: Some(0),
        ended_at: Some(1),
        ..Scenario::default()
    }]);
    replay.operations(&batch(&rows, "run", None)).unwrap();
    let prediction = replay.finish();
    assert_eq!((prediction.timed, prediction.left_out), (0, 4));
}

/// No client waits longer for the server than it takes: neither one by one nor side by side.
#[test]
fn a_scenario_takes_no_less_than_its_operations() {
    let mut rows = chain(&[(READ, MS); 4]);
    rows.iter_mut().for_each(|row| row.set_scenario_run(1));
    let of = |ended_at: i64| {
        let mut replay = Replay::new(Plan::default(), Baseline::default());
        replay.scenarios(&[Scenario {
            recording: "run".into(),
            scenario_run: 1,
            phase: MEASURED.into(),
            scheduled_at: 1_000_000_000,
            started_at: Some(1_000_000_000),
            ended_at: Some(ended_at),
            ..Scenario::default()
        }]);
        replay.operations(&batch(&rows, "run", None)).unwrap();
        replay.finish().scenario_s().unwrap()
    };
    assert!((of(1_000_000_000 + 100 * MS) - 0.1).abs() < 1e-9);
    assert!((of(1_000_000_000 + 2 * MS) - 0.0048).abs() < 1e-9);
    assert_eq!(predict(&rows, &[]).scenario_s(), None);
}

/// Two recordings of one client each, a year apart, in either order.
#[test]
fn gaps_between_recordings_are_ignored() {
    const YEAR_NS: i64 = 365 * 86_400_000 * MS;
    let old = chain(&[(READ, 400 * MS); 20]);
    let mut new = old.clone();
    for row in &mut new {
        row.set_request_start(row.request_start().unwrap() + YEAR_NS);
        row.set_request_end(row.request_end().unwrap() + YEAR_NS);
        row.set_response_start(row.response_start().unwrap() + YEAR_NS);
        row.set_response_end(row.response_end().unwrap() + YEAR_NS);
    }
    let of = |recordings: &[(&str, &[Operation])]| {
        let mut replay = Replay::new(Plan::default(), Baseline::default()).in_detail();
        for (name, rows) in recordings {
            replay.operations(&batch(rows, name, None)).unwrap();
        }
        let prediction = replay.finish();
        let profile = reduce::profile(&prediction, None, "", "").unwrap();
        let detail = prediction.detail.unwrap();
        (detail.lasted_ns, detail.rates[0].most, profile.scenarios[0].variants[0].operations[0])
    };
    let one = of(&[("old", &old)]);
    for both in [of(&[("old", &old), ("new", &new)]), of(&[("new", &new), ("old", &old)])] {
        assert_eq!((both.0, both.1), (2 * one.0, one.1));
        // For one client and hour.
        assert!((both.2 / one.2 - 1.0).abs() < 1e-9, "{both:?} {one:?}");
    }
}

//! Distance and rate of the link, for operations one after the other, in flight together, and in compounds.

use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::Replay;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::{
    CLOSE, CREATE, MS, READ, RTT_NS, WRITE, act, batch, chain, connection, execution, mean,
    operations, predict,
};

#[test]
fn operations_that_wait_for_each_other_each_take_the_longer_round_trip() {
    let rows = operations(&vec![act(MS, 200); 10], None);
    let prediction = predict(&rows, &[], &[Change::Rtt(0.02)]);
    let longer = (20 * MS - RTT_NS) as f64;
    let operations = &prediction.operations;
    assert_eq!(mean(operations) - operations.before.mean_ns().unwrap(), longer);
    let (before, after) = prediction.waiting_ns;
    assert_eq!((after - before) as f64, 10.0 * longer);
}

#[test]
fn operations_side_by_side_share_the_longer_round_trip() {
    let mut acts = vec![act(10_000, 200); 10];
    acts.iter_mut().skip(1).for_each(|act| act.waits = false);
    let prediction = predict(&operations(&acts, None), &[], &[Change::Rtt(0.02)]);
    let (before, after) = prediction.waiting_ns;
    assert_eq!(after - before, 20 * MS - RTT_NS);
}

#[test]
fn a_scenario_takes_as_much_longer_as_its_operations_one_after_the_other() {
    let rows = operations(&vec![act(MS, 200); 10], Some(5));
    let mut scenario = execution(&rows, 5);
    // It was due before the first pause.
    scenario.scheduled_at -= MS;
    scenario.started_at = Some(scenario.scheduled_at);
    let prediction = predict(&rows, &[scenario], &[Change::Rtt(0.02)]);
    let all = prediction.all_scenarios.unwrap();
    assert_eq!(all.count, 1);
    assert_eq!(mean(&all) - all.before.mean_ns().unwrap(), 10.0 * (20 * MS - RTT_NS) as f64);
    // Its parts are those of its operations and the ten pauses of a millisecond.
    let between = all.parts.iter().find(|part| part.part == "between").unwrap();
    assert_eq!((between.before_ns, between.after_ns), (10e6, 10e6));
    assert_eq!(prediction.scenarios[0].name, "Open");
}

#[test]
fn a_capture_at_the_server_and_one_at_the_client_predict_the_same() {
    let at_client = operations(&vec![act(MS, 200); 10], None);
    let at_server: Vec<_> = at_client
        .iter()
        .map(|row| {
            let mut row = *row;
            row.set_request_start(row.request_start().unwrap() + RTT_NS / 2);
            row.set_request_end(row.request_end().unwrap() + RTT_NS / 2);
            row.set_response_start(row.response_start().unwrap() - RTT_NS / 2);
            row.set_response_end(row.response_end().unwrap() - RTT_NS / 2);
            row.derive_durations();
            row
        })
        .collect();
    let mut plan = Plan::default();
    Change::Rtt(0.02).plan(&mut plan);
    let mut replay = Replay::new(plan, Default::default());
    replay.connections(&[Connection {
        vantage: Some("server".into()),
        server_rtt_ns: None,
        client_rtt_ns: Some(RTT_NS),
        ..connection()
    }]);
    replay.operations(&batch(&at_server)).unwrap();
    let replayed = replay.finish();
    let wanted = predict(&at_client, &[], &[Change::Rtt(0.02)]);
    assert_eq!(replayed.waiting_ns, wanted.waiting_ns);
    assert_eq!(mean(&replayed.operations), mean(&wanted.operations));
}

/// Reads of 8 KiB one after the other.
fn stream(reads: usize) -> Vec<Operation> {
    let mut rows = chain(&vec![READ; reads]);
    for (place, row) in rows.iter_mut().enumerate() {
        row.set_offset_bytes(place as u64 * 8192);
        row.set_transferred_bytes(8192);
    }
    rows
}

#[test]
fn reads_under_way_together_share_the_distance_and_not_the_server() {
    let rows = stream(10);
    let waiting = |depth| {
        let changes = [Change::Rtt(0.02), Change::Depth(depth)];
        predict(&rows, &[], &changes).waiting_ns.1
    };
    let one_by_one = predict(&rows, &[], &[Change::Rtt(0.02)]).waiting_ns.1;
    assert_eq!(waiting(1), one_by_one);
    let saved = one_by_one - waiting(2);
    assert!((4 * 20 * MS..6 * 20 * MS).contains(&saved), "{saved}");
    // All in parallel: one round trip, and ten times the server's time.
    let all = waiting(100);
    assert!((20 * MS..20 * MS + 10 * MS).contains(&all), "{all}");
}

#[test]
fn requests_of_a_compound_share_one_round_trip() {
    let rows = chain(&[CREATE, 16, CLOSE, CREATE, READ, CLOSE]);
    let waiting = |change| predict(&rows, &[], &[Change::Rtt(0.02), change]).waiting_ns.1;
    let single = predict(&rows, &[], &[Change::Rtt(0.02)]).waiting_ns.1;
    // The query and its Close; what follows a read may depend on it.
    assert_eq!(single - waiting(Change::Compound(true)), 2 * 20 * MS);
    let mut lead = rows[0];
    lead.set_compound(1);
    lead.set_compound_size(3);
    let apart = predict(&[lead], &[], &[Change::Rtt(0.02), Change::Compound(false)]);
    let whole = predict(&[lead], &[], &[Change::Rtt(0.02)]);
    assert_eq!(apart.waiting_ns.1 - whole.waiting_ns.1, 2 * 20 * MS);
    assert_eq!(apart.chained, 2);
}

#[test]
fn transfer_time_follows_the_rate_of_the_link() {
    const BYTES: i64 = 256 << 10;
    // Alternate reads and writes over a link that takes the given time per byte, from the client's
    // view: its kernel accepts written data at once.
    let moved = |byte_ns: i64| {
        let mut at = 1_000_000_000;
        let rows = (0..40).map(|number| {
            let mut row = operations(&[act(0, 100)], None)[0];
            row.set_command(code::command(2, if number % 2 == 0 { READ } else { WRITE }));
            row.set_handle(1);
            let sent = if number % 2 == 0 { 0 } else { BYTES };
            row.set_request_wire_bytes(120 + sent as u64);
            row.set_response_wire_bytes(120 + (BYTES - sent) as u64);
            row.set_request_start(at);
            row.set_request_end(at + 1_000);
            // Segments of 1,448 bytes have 66 bytes of headers.
            let line_ns = BYTES * byte_ns * 1514 / 1448;
            let answered = at + RTT_NS + MS + if sent > 0 { line_ns } else { 0 };
            row.set_response_start(answered);
            row.set_response_end(answered + if sent > 0 { 0 } else { line_ns });
            row.derive_durations();
            row.set_filesystem_ns(0);
            row.set_processing_ns(0);
            at = row.response_end().unwrap() + MS;
            row
        });
        rows.collect::<Vec<_>>()
    };
    let slow = moved(400);
    let fast = moved(80);
    let waiting = |rows: &[Operation], change| {
        let (before, after) = predict(rows, &[], &[change]).waiting_ns;
        (before as f64, after as f64)
    };
    let (slow_ns, faster_ns) = waiting(&slow, Change::Bandwidth(100e6));
    let (fast_ns, slower_ns) = waiting(&fast, Change::Bandwidth(20e6));
    assert!((slower_ns / slow_ns - 1.0).abs() < 0.05, "{slow_ns} {slower_ns}");
    assert!((faster_ns / fast_ns - 1.0).abs() < 0.05, "{fast_ns} {faster_ns}");
}

//! Replays of recorded operations: properties that every prediction must have, for any recording.

// A test may panic.
#![allow(clippy::unwrap_used)]

use arrow::array::RecordBatch;
use proptest::prelude::*;
use smbscope_analysis::predict::capacity::Wait;
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::crypto::{self, Calibration, Costs, Side};
use smbscope_analysis::predict::plan::{Plan, Replication};
use smbscope_analysis::predict::replay::{Baseline, Cached, Prediction, Replay, Row};
use smbscope_analysis::predict::requirements::unanswered;
use smbscope_analysis::predict::{averages, reduce};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::profile::{Cost, Profile};
use smbscope_tables::protection::Protection;
use smbscope_tables::run::{MEASURED, Scenario};
use smbscope_tables::slice::Kind;
use smbscope_tables::tables::{Connection, Tree};

const READ: u16 = 8;
const WRITE: u16 = 9;
const FLUSH: u16 = 7;
const NEGOTIATE: u16 = 0;
const TREE_CONNECT: u16 = 3;
const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const IOCTL: u16 = 11;
const QUERY_DIRECTORY: u16 = 14;
const MS: i64 = 1_000_000;
const RTT_NS: i64 = MS / 5;

/// One operation of a test: the pause before it, its time at the server, its number of bytes.
#[derive(Clone, Debug)]
struct Act {
    gap_ns: i64,
    filesystem_ns: i64,
    processing_ns: i64,
    reply_bytes: u64,
    /// Whether it waits for the previous one.
    waits: bool,
}

fn act(gap_ns: i64, reply_bytes: u64) -> Act {
    Act { gap_ns, filesystem_ns: 60_000, processing_ns: 40_000, reply_bytes, waits: true }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let one = (0..5 * MS, 0..2 * MS, 0..MS, 77..200_000u64, any::<bool>()).prop_map(
        |(gap_ns, filesystem_ns, processing_ns, reply_bytes, waits)| Act {
            gap_ns,
            filesystem_ns,
            processing_ns,
            reply_bytes,
            waits,
        },
    );
    prop::collection::vec(one, 1..60)
}

/// The operations of one client at the near end of a link of [`RTT_NS`], in the order of their ends.
fn operations(acts: &[Act], run: Option<u64>) -> Vec<Operation> {
    let mut at = 1_000_000_000;
    let (mut sent, mut answered) = (at, at);
    let mut rows: Vec<_> = acts
        .iter()
        .enumerate()
        .map(|(number, act)| {
            at = act.gap_ns + if act.waits { answered } else { sent };
            let mut row = Operation::default();
            row.set_operation(number as u64);
            row.set_connection(1);
            row.set_session_id(7);
            row.set_protocol(2);
            row.set_command(code::command(2, if number % 3 == 0 { CLOSE } else { READ }));
            row.set_request_wire_bytes(120);
            row.set_response_wire_bytes(act.reply_bytes);
            row.set_request_start(at);
            row.set_request_end(at + 1_000);
            let server = act.filesystem_ns + act.processing_ns;
            row.set_response_start(at + 1_000 + RTT_NS + server);
            row.set_response_end(at + 1_000 + RTT_NS + server + act.reply_bytes as i64);
            row.derive_durations();
            row.set_server_ns(server);
            row.set_filesystem_ns(act.filesystem_ns);
            row.set_processing_ns(act.processing_ns);
            run.into_iter().for_each(|run| row.set_scenario_run(run));
            sent = at;
            answered = answered.max(row.response_end().unwrap());
            row
        })
        .collect();
    rows.sort_by_key(|row| row.response_end());
    rows
}

fn batch(rows: &[Operation]) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for row in rows {
        let mut row = *row;
        row.set_recording(builder.names.recording.intern("run"));
        row.set_client(builder.names.client.intern("10.0.0.1"));
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn connection() -> Connection {
    Connection {
        recording: "run".into(),
        connection: 1,
        vantage: Some("client".into()),
        server_rtt_ns: Some(RTT_NS),
        ..Connection::default()
    }
}

fn replication(is_sync: bool) -> Replication {
    Replication { is_sync, rtt_ns: 5 * MS, bandwidth_bits: Some(8e6) }
}

/// Commands one after the other on one open, a tenth of a millisecond between them.
fn chain(commands: &[u16]) -> Vec<Operation> {
    let mut rows = operations(&vec![act(MS / 10, 200); commands.len()], None);
    for (row, command) in rows.iter_mut().zip(commands) {
        row.set_command(code::command(2, *command));
        row.set_handle(1);
    }
    rows
}

/// Predicts with the lessons of a first replay, as the program does.
fn learnt(rows: &[Operation], change: Change) -> Prediction {
    let baseline = predict(rows, &[], &[]).baseline;
    let mut plan = Plan::default();
    change.plan(&mut plan);
    let mut replay = Replay::new(plan, baseline);
    replay.connections(&[connection()]);
    replay.operations(&batch(rows)).unwrap();
    replay.finish()
}

fn predict(rows: &[Operation], scenarios: &[Scenario], changes: &[Change]) -> Prediction {
    let mut plan = Plan::default();
    changes.iter().for_each(|change| change.plan(&mut plan));
    let mut replay = Replay::new(plan, Default::default()).in_detail();
    replay.connections(&[connection()]);
    replay.scenarios(scenarios);
    replay.operations(&batch(rows)).unwrap();
    replay.finish()
}

fn mean(row: &Row) -> f64 {
    row.after.mean_ns().unwrap()
}

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

/// An execution of all these operations, due when the first is sent.
fn execution(rows: &[Operation], run: u64) -> Scenario {
    let begin = rows.iter().filter_map(Operation::request_start).min();
    Scenario {
        recording: "run".into(),
        scenario_run: run,
        scenario: "Open".into(),
        phase: MEASURED.into(),
        scheduled_at: begin.unwrap(),
        started_at: begin,
        ended_at: rows.last().unwrap().response_end(),
        ..Scenario::default()
    }
}

#[test]
fn more_users_make_each_request_wait_for_the_others() {
    let rows = operations(&vec![act(MS, 200); 1000], Some(5));
    let scenario = execution(&rows, 5);
    let today = predict(&rows, std::slice::from_ref(&scenario), &[]);
    assert_eq!(today.of_execution(), Some((1000.0, (0.0, 0.0))));
    let with = |plan: Plan| {
        let mut replay = Replay::new(plan, Default::default());
        replay.connections(&[connection()]);
        replay.scenarios(std::slice::from_ref(&scenario));
        replay.operations(&batch(&rows)).unwrap();
        replay.finish()
    };
    let waits =
        |share, mean_s| with(Plan { waits: vec![Wait { share, mean_s }], ..Plan::default() });
    let (before, more) = (waits(0.5, 0.0), waits(0.5, 0.004));
    let [today, then] = [&before, &more].map(|one| mean(&one.operations));
    assert_eq!(Some(today), before.operations.before.mean_ns());
    // Half of them 4 ms; a thousand draws are within a tenth of that.
    assert!(((then - today) / 2e6 - 1.0).abs() < 0.1, "{today} {then}");
    let scenarios = more.all_scenarios.unwrap();
    let longer = mean(&scenarios) - scenarios.before.mean_ns().unwrap();
    assert!((longer / (1000.0 * (then - today)) - 1.0).abs() < 1e-9, "{longer}");
    let queue = more.operations.parts.iter().find(|part| part.part == "queue").unwrap();
    assert!((queue.after_ns - queue.before_ns - (then - today)).abs() < 1.0);
    // With fewer users a request waits less, as far as it waited.
    assert_eq!(mean(&waits(1.0, -0.004).operations), today);

    // Of several steps, the one that the users are compared with counts.
    let due = scenario.scheduled_at;
    let counted = |window| with(Plan { window: Some(window), ..Plan::default() }).operations.count;
    assert_eq!((counted((due, due + 1)), counted((due - MS, due))), (1000, 0));
}

#[test]
fn a_profile_has_costs_by_size_and_the_needs_of_scenarios() {
    // Ten operations one after the other, a millisecond between them; a second later the same ten again.
    let mut acts = vec![act(MS, 200); 20];
    acts[10].gap_ns += 1_000 * MS;
    let mut rows = operations(&acts, Some(1));
    let ends: Vec<_> = rows.iter().map(|row| row.response_end().unwrap()).collect();
    for (number, row) in rows.iter_mut().enumerate() {
        row.set_scenario_run(number as u64 / 10);
        row.set_transferred_bytes(if number % 2 == 0 { 4_096 } else { 65_536 });
        // One of the larger reads waits for a flush as well.
        if number == 19 {
            row.set_filesystem_ns(30_000);
            row.set_flush_ns(30_000);
        }
    }
    let scenario = |run: u64, begin: i64, end: i64| Scenario {
        recording: "run".into(),
        scenario_run: run,
        scenario: "Open".into(),
        phase: MEASURED.into(),
        scheduled_at: begin,
        started_at: Some(begin),
        ended_at: Some(end),
        ..Scenario::default()
    };
    let begin = 1_000_000_000;
    let scenarios = [scenario(0, begin, ends[9]), scenario(1, ends[9] + 1_000 * MS, ends[19])];
    let prediction = predict(&rows, &scenarios, &[]);
    // Half an hour of one user.
    let profile = reduce::profile(&prediction, Some(1800.0), "test", "a test").unwrap();
    assert_eq!(profile.wrong(), None);
    assert!((profile.rtt_s - RTT_NS as f64 / 1e9).abs() < 1e-12);
    let read = profile.commands.iter().find(|command| command.command == "Read").unwrap();
    let sizes: Vec<_> = read.sizes.iter().map(|one| (one.least_bytes, one.cost.count)).collect();
    assert_eq!(sizes, [(4_096, 6), (65_536, 7)]);
    let flush = |cost: &Cost| {
        let part = cost.parts.iter().find(|part| part.part == Some(Kind::Flush));
        part.map(|part| part.mean_s)
    };
    assert_eq!(flush(&read.sizes[0].cost), None);
    assert!((flush(&read.sizes[1].cost).unwrap() - 3e-5 / 7.0).abs() < 1e-12, "{read:?}");
    let open = &profile.scenarios[0];
    assert_eq!((&*open.scenario, open.runs_per_hour), ("Open", 4.0));
    let needs = &open.variants[0];
    assert_eq!(needs.round_trips, 10.0);
    assert!((needs.between_s - 0.01).abs() < 1e-9, "{needs:?}");
    // The sum is the measured time, and on a longer link the time of the replay.
    let seconds = |profile: &Profile| averages::table(profile)[0].seconds();
    let measured = prediction.scenarios[0].before.mean_ns().unwrap() / 1e9;
    assert!((seconds(&profile) / 4.0 - measured).abs() < 1e-9);
    let mut farther = profile.clone();
    Change::Rtt(0.02).apply(&mut farther).unwrap();
    let replayed = predict(&rows, &scenarios, &[Change::Rtt(0.02)]);
    assert!((seconds(&farther) / 4.0 - mean(&replayed.scenarios[0]) / 1e9).abs() < 1e-9);
    // A profile read from a file equals the original.
    let text = serde_json::to_string(&profile).unwrap();
    let read: Profile = serde_json::from_str(&text).unwrap();
    assert_eq!((read.wrong(), read.commands.len()), (None, profile.commands.len()));
    assert!((seconds(&read) / seconds(&profile) - 1.0).abs() < 1e-12);
    assert!(serde_json::from_str::<Profile>(&text.replace("filesystem", "magic")).is_err());
    let mut broken = profile.clone();
    broken.scenarios[0].variants[0].operations.pop();
    assert!(broken.wrong().unwrap().contains("commands whose cost"));
    broken = profile;
    broken.commands[0].cost.parts[0].mean_s = -1.0;
    assert!(broken.wrong().unwrap().contains("impossible time"));
}

#[test]
fn a_profile_of_a_capture_has_the_clients_waits_per_hour() {
    let mut acts = vec![act(10_000, 200); 10];
    acts.iter_mut().skip(1).for_each(|act| act.waits = false);
    let prediction = predict(&operations(&acts, None), &[], &[]);
    let profile = reduce::profile(&prediction, None, "test", "a test").unwrap();
    let (waited, lasted) =
        (prediction.waiting_ns.0 as f64, prediction.detail.unwrap().lasted_ns as f64);
    let cell = &averages::table(&profile)[0];
    assert_eq!(cell.scenario, reduce::ALL);
    assert!((cell.seconds() - 3600.0 * waited / lasted).abs() < 1e-3, "{cell:?}");
    // They were parallel: one round trip in total.
    let round_trips = profile.scenarios[0].variants[0].round_trips;
    assert!((round_trips * lasted / 3600e9 - 1.0).abs() < 1e-9, "{round_trips}");
    assert_eq!(reduce::profile(&predict(&[], &[], &[]), None, "", ""), None);
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

#[test]
fn missing_data_is_counted() {
    let rows = operations(&vec![act(MS, 200); 3], None);
    let mut plan = Plan::default();
    Change::Rtt(0.02).plan(&mut plan);
    let mut replay = Replay::new(plan, Default::default());
    replay.operations(&batch(&rows)).unwrap();
    let prediction = replay.finish();
    assert_eq!((prediction.timed, prediction.without_rtt), (3, 3));
    assert_eq!(mean(&prediction.operations), prediction.operations.before.mean_ns().unwrap());
    let slices: u64 = prediction.slices.iter().map(|(_, n)| n).sum();
    assert_eq!(slices, 6, "{:?}", prediction.slices);
    assert!(prediction.slices.contains(&(Kind::Filesystem.name(), 3)));
}

#[test]
fn server_time_of_a_later_member_is_in_the_compounds_time() {
    let mut lead = operations(&[act(MS, 200)], None)[0];
    lead.set_compound(1);
    lead.set_compound_index(0);
    lead.set_compound_size(2);
    // The reply waited for the member: 3 ms of its file system, and 0.1 of its own sending.
    let longer = 3 * MS + 100_000;
    lead.set_response_start(lead.response_start().unwrap() + longer);
    lead.set_response_end(lead.response_end().unwrap() + longer);
    lead.derive_durations();
    lead.set_send_ns(longer);
    let mut member = Operation::default();
    member.set_operation(1);
    member.set_connection(1);
    member.set_session_id(7);
    member.set_compound(1);
    member.set_compound_index(1);
    member.set_filesystem_ns(3 * MS);
    let prediction = predict(&[lead, member], &[], &[Change::Filesystem(0.5)]);
    let operations = &prediction.operations;
    let wanted = (3 * MS + 60_000) as f64;
    assert_eq!(mean(operations) - operations.before.mean_ns().unwrap(), wanted);
    let send = operations.parts.iter().find(|part| part.part == "send").unwrap();
    assert_eq!(send.before_ns, 100_000.0);
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
fn a_stable_write_takes_as_long_as_a_flush() {
    let mut rows = chain(&[CREATE, WRITE, WRITE, FLUSH, CLOSE]);
    for row in &mut rows {
        row.set_transferred_bytes(4096);
    }
    // Everything after the Flush is later by the same time.
    for row in &mut rows[3..] {
        row.set_response_end(row.response_end().unwrap() + 3 * MS);
    }
    rows[3].set_flush_ns(3 * MS);
    rows[3].derive_durations();
    let later = rows[4].request_start().unwrap() + 3 * MS;
    rows[4].set_request_start(later);
    rows[4].derive_durations();
    let difference = |prediction: &Prediction| {
        let [before, after] = [prediction.waiting_ns.0, prediction.waiting_ns.1];
        after - before
    };
    let through = learnt(&rows, Change::WriteThrough(true));
    // Two writes are stable, and the Flush has nothing to do.
    assert_eq!(difference(&through), 2 * 3 * MS - 3 * MS);
    assert_eq!(difference(&learnt(&rows, Change::WriteThrough(false))), 0);
    // A thread also does the flush: each write waits for it again; a Flush without work waits only for it.
    const WAIT_NS: i64 = MS / 20;
    let mut threads = rows.clone();
    for row in &mut threads[1..3] {
        row.set_io_wait_ns(WAIT_NS);
    }
    let through = learnt(&threads, Change::WriteThrough(true));
    assert_eq!(difference(&through), 2 * (3 * MS + WAIT_NS) - (3 * MS - WAIT_NS));
    let mut slow = threads.clone();
    let both = 3 * MS + WAIT_NS;
    for (place, row) in slow.iter_mut().enumerate() {
        let writes = place.clamp(1, 3) as i64 - 1;
        let is_write = (1..3).contains(&place);
        let flush_ns = if place == 3 { 3 * MS - WAIT_NS } else { 0 };
        row.set_request_start(row.request_start().unwrap() + writes * both);
        let ends = (writes + i64::from(is_write)) * both - flush_ns;
        row.set_response_end(row.response_end().unwrap() + ends);
        if is_write {
            row.set_write_through(true);
            row.set_flush_ns(3 * MS);
            row.set_io_wait_ns(2 * WAIT_NS);
        }
        if place == 3 {
            row.set_flush_ns(WAIT_NS);
        }
        row.derive_durations();
    }
    // What was added is removed again; then the Flush has to make both writes stable.
    let buffered = learnt(&slow, Change::WriteThrough(false));
    assert_eq!(difference(&buffered), -2 * both + 3 * MS - WAIT_NS);
    // The Flush waits for the second server: 5 ms, and for the rest of 8 KiB at 1 MB/s.
    let sync = learnt(&rows, Change::Replication(replication(true)));
    let waits = difference(&sync);
    assert!((5 * MS..14 * MS).contains(&waits), "{waits}");
    let replica = sync.operations.parts.iter().find(|part| part.part == "replica").unwrap();
    assert_eq!((replica.after_ns * 5.0) as i64, waits);
    let later = learnt(&rows, Change::Replication(replication(false)));
    assert_eq!(difference(&later), 0);
    let risk = later.at_risk.unwrap();
    assert_eq!((risk.written, risk.most), (8192, 8192));
    // The link's 8 ms do not belong to the writes.
    assert!((0..MS).contains(&risk.writing_ns) && risk.lasted_ns > 8 * MS, "{risk:?}");
    // Half a round trip, and both at the link's rate.
    assert!((6 * MS..11 * MS).contains(&risk.longest_ns), "{risk:?}");
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

#[test]
fn writes_to_a_continuously_available_share_wait_for_the_second_server() {
    let mut rows = chain(&[CREATE, WRITE, WRITE, CLOSE]);
    for row in &mut rows {
        row.set_transferred_bytes(4096);
        row.set_tree_id(5);
    }
    let replay = |trees: &[Tree]| {
        let mut plan = Plan::default();
        Change::Replication(replication(true)).plan(&mut plan);
        let mut replay = Replay::new(plan, Default::default());
        replay.connections(&[connection()]);
        replay.trees(trees);
        replay.operations(&batch(&rows)).unwrap();
        replay.finish()
    };
    let tree = |tree_id: u64, is_available: bool| Tree {
        recording: "run".into(),
        session_id: 7,
        tree_id,
        continuous_availability: Some(is_available),
        ..Tree::default()
    };
    let others = replay(&[tree(5, false), tree(6, true)]);
    assert_eq!((others.stable, others.waiting_ns.1 - others.waiting_ns.0), (0, 0));
    let waits = replay(&[tree(5, true)]);
    assert_eq!(waits.stable, 2);
    assert!(waits.waiting_ns.1 - waits.waiting_ns.0 >= 2 * 5 * MS, "{:?}", waits.waiting_ns);
}

#[test]
fn a_directory_lease_answers_repeated_lookups() {
    const FILE_OPEN: u32 = 1;
    const NO_MORE_FILES: u32 = 0x8000_0006;
    let rows = chain(&[CREATE, QUERY_DIRECTORY, CLOSE].repeat(3));
    let mut builder = OperationBuilder::new(None).unwrap();
    for (place, row) in rows.iter().enumerate() {
        let mut row = *row;
        row.set_recording(builder.names.recording.intern("run"));
        row.set_path(builder.names.path.intern("Folder"));
        row.set_handle(place as u64 / 3);
        row.set_status(if place % 3 == 1 { NO_MORE_FILES } else { 0 });
        row.set_desired_access(0x81);
        row.set_create_options(1);
        row.set_detail(code::detail(code::Detail::Disposition, FILE_OPEN));
        builder.append(&[row]);
    }
    let batch = builder.finish().unwrap();
    let replay = |plan: Plan, baseline| {
        let mut replay = Replay::new(plan, baseline);
        replay.connections(&[connection()]);
        replay.operations(&batch).unwrap();
        replay.finish()
    };
    let baseline = replay(Plan::default(), Baseline::default()).baseline;
    let mut plan = Plan::default();
    Change::DirLease(()).plan(&mut plan);
    let prediction = replay(plan, baseline);
    // The first open, which is still sent, and the first listing.
    assert_eq!((prediction.operations.count, prediction.operations.count_after), (9, 2));
    assert_eq!(prediction.cached, Cached { answered: 7, breaks: 0, creates: 3 });
    let close = prediction.sent.iter().find(|one| one.command == "Close").unwrap();
    assert_eq!((close.before, close.after), (3, 0));
    let (before, after) = prediction.waiting_ns;
    assert!(after < before / 4, "{before} {after}");
}

fn calibration(costs: &[(Protection, f64)]) -> Calibration {
    let side = |message_ns: f64| {
        let cost = crypto::Cost { message_ns, byte_ns: 0.5, longer: Vec::new() };
        Side { inbound: cost.clone(), outbound: cost }
    };
    let costs = costs.iter().map(|(way, ns)| Costs {
        protection: way.name().to_owned(),
        server: side(*ns),
        client: side(2.0 * ns),
    });
    Calibration { costs: costs.collect(), ..Calibration::default() }
}

#[test]
fn signing_costs_both_sides_each_message_and_its_bytes() {
    let mut rows = operations(&vec![act(MS, 4_000); 10], None);
    let protected = |rows: &[Operation], change: Change, calibration: Option<Calibration>| {
        let mut plan = Plan { calibration, ..Plan::default() };
        change.plan(&mut plan);
        let mut replay = Replay::new(plan, Baseline::default());
        replay.connections(&[connection()]);
        replay.operations(&batch(rows)).unwrap();
        replay.finish()
    };
    let known =
        || Some(calibration(&[(Protection::AesGmac, 1_000.0), (Protection::AesCmac, 9_000.0)]));
    let difference =
        |one: &Prediction| mean(&one.operations) - one.operations.before.mean_ns().unwrap();
    // Request and reply at the server, half a nanosecond per byte; twice as much for each at the
    // client, outside the operation.
    let bytes = 0.5 * (120.0 + 4_000.0);
    let signed = protected(&rows, Change::Signing(Protection::AesGmac), known());
    assert_eq!(difference(&signed), 2_000.0 + bytes);
    assert_eq!((signed.protected.changed, signed.protected.unknown), (10, 0));
    let out = signed.operations.parts.iter().find(|part| part.part == "crypto_out").unwrap();
    assert_eq!((out.before_ns, out.after_ns), (0.0, 1_000.0 + 2_000.0));
    // From one algorithm to the other, and no cost if it is the same.
    rows.iter_mut().for_each(|row| row.set_signed(true));
    let same = protected(&rows, Change::Signing(Protection::HmacSha256), known());
    assert_eq!((difference(&same), same.protected.changed), (0.0, 0));
    let unknown = protected(&rows, Change::Signing(Protection::AesGmac), None);
    assert_eq!((difference(&unknown), unknown.protected.unknown), (0.0, 10));
    // The costs in the server's slices are removed without any calibration.
    rows.iter_mut().for_each(|row| row.set_crypto_out_ns(7_000));
    let off = protected(&rows, Change::Signing(Protection::None), None);
    assert_eq!(difference(&off), -7_000.0);
}

/// Without signing, the TreeConnects are signed nevertheless; with signing, the Negotiates are not.
#[test]
fn protection_that_is_there_already_changes_nothing() {
    let commands = [NEGOTIATE, IOCTL, TREE_CONNECT, CREATE, READ, CLOSE];
    for signed in [&[IOCTL, TREE_CONNECT][..], &[IOCTL, TREE_CONNECT, CREATE, READ, CLOSE]] {
        let mut rows = operations(&vec![act(MS / 10, 200); commands.len()], None);
        for (row, command) in rows.iter_mut().zip(commands) {
            row.set_command(code::command(2, command));
            row.set_signed(signed.contains(&command));
            // The Ioctl that validates the Negotiate belongs to no open.
            if matches!(command, CREATE | READ | CLOSE) {
                row.set_handle(1);
            }
        }
        let way = if signed.contains(&READ) { Protection::HmacSha256 } else { Protection::None };
        let requested = [Change::Signing(way), Change::Encryption(Protection::None)];
        let prediction = learnt(&rows, requested[0]);
        assert_eq!(prediction.protected.unknown, 0, "{way:?}");
        assert_eq!((prediction.protected.changed, unanswered(&requested, &prediction)), (0, None));
        assert_eq!(Some(mean(&prediction.operations)), prediction.operations.before.mean_ns());
        // Another algorithm is still predicted.
        let other = learnt(&rows, Change::Signing(Protection::AesGmac));
        assert_eq!(other.protected.unknown, 3, "{way:?}");
    }
}

/// Any number, with frequent extremes.
fn wild() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), Just(0), -5..5i64]
}

proptest! {
    // Nonsense is slow: a link that is saturated for minutes.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_nonsense_in_a_file_stops_it(
        numbers in prop::collection::vec((wild(), wild(), wild(), wild(), wild()), 1..6),
        rtt_s in 0.0..1e12,
    ) {
        let rows: Vec<_> = numbers
            .iter()
            .enumerate()
            .map(|(place, &(start, elapsed, server, slice, bytes))| {
                let mut row = operations(&[act(0, 77)], Some(place as u64 % 3))[0];
                row.set_command(code::command(2, [READ, WRITE, FLUSH, CREATE][place % 4]));
                row.set_request_start(start);
                row.set_elapsed_ns(elapsed);
                row.set_server_ns(server);
                row.set_filesystem_ns(slice);
                row.set_handle(1);
                row.set_offset_bytes(bytes as u64);
                row.set_transferred_bytes(bytes as u64);
                row.set_response_wire_bytes(bytes as u64);
                row.set_compound(place as u64 / 2);
                row
            })
            .collect();
        let scenarios: Vec<_> = numbers
            .iter()
            .enumerate()
            .map(|(place, &(at, began, ended, ..))| Scenario {
                recording: "run".into(),
                scenario_run: place as u64,
                phase: MEASURED.into(),
                scheduled_at: at,
                started_at: Some(began),
                ended_at: Some(ended),
                ..Scenario::default()
            })
            .collect();
        let changes = [
            Change::Rtt(rtt_s),
            Change::Bandwidth(1e6),
            Change::Window(1.0),
            Change::Loss(0.4),
            Change::Filesystem(1e-6),
            Change::Depth(3),
            Change::Compound(false),
            Change::Compound(true),
            Change::Channels(2),
            Change::DirLease(()),
            Change::WriteThrough(true),
            Change::Replication(replication(true)),
            Change::Replication(replication(false)),
            Change::Block(512),
        ];
        for count in 0..=changes.len() {
            predict(&rows, &scenarios, &changes[..count]);
        }
    }
}

proptest! {
    #[test]
    fn no_change_gives_the_measured_times(acts in acts()) {
        let rows = operations(&acts, None);
        for changes in [vec![], vec![Change::Rtt(RTT_NS as f64 / 1e9)], vec![Change::Filesystem(1.0)]] {
            let prediction = predict(&rows, &[], &changes);
            prop_assert_eq!(&prediction.operations.after, &prediction.operations.before);
            prop_assert_eq!(prediction.waiting_ns.0, prediction.waiting_ns.1);
            for command in &prediction.commands {
                prop_assert_eq!(&command.after, &command.before);
                prop_assert!(command.change_error_ns.is_none_or(|ns| ns == 0.0));
            }
        }
    }

    #[test]
    fn parts_sum_to_the_whole(acts in acts(), rtt_s in 0.0..0.3, times in 0.1..10.0) {
        let changes = [Change::Rtt(rtt_s), Change::Filesystem(times), Change::Bandwidth(1e7)];
        let prediction = predict(&operations(&acts, None), &[], &changes);
        let detail = prediction.detail.as_ref().unwrap();
        for row in &detail.sizes {
            let sum: f64 = row.parts.iter().map(|(_, part)| row.share(part).mean_ns).sum();
            prop_assert!((sum - row.whole.mean_ns().unwrap()).abs() < 1.0);
        }
        for row in prediction.commands.iter().chain([&prediction.operations]) {
            let sums = row.parts.iter().fold((0.0, 0.0), |sum, part| {
                (sum.0 + part.before_ns, sum.1 + part.after_ns)
            });
            prop_assert!((sums.0 - row.before.mean_ns().unwrap()).abs() < 1.0);
            prop_assert!((sums.1 - mean(row)).abs() < 1.0);
        }
    }

    #[test]
    fn nothing_gets_faster_by_a_worse_line_or_server(
        acts in acts(),
        rtt_s in 0.0..0.3,
        worse in 1.0..3.0,
        bits in 1e6..1e9,
        one_by_one in any::<bool>(),
    ) {
        let mut acts = acts;
        for act in &mut acts {
            // Large parallel messages open TCP's window for each other, and it closes again with time,
            // so that a small shift can cost or save a round trip: on a real link too.
            match one_by_one {
                true => act.waits = true,
                false => act.reply_bytes %= 14_000,
            }
        }
        let rows = operations(&acts, None);
        let at = |rtt_s: f64, times: f64, bits: f64| {
            let changes = [Change::Rtt(rtt_s), Change::Filesystem(times), Change::Bandwidth(bits)];
            predict(&rows, &[], &changes)
        };
        let one = at(rtt_s, 1.0, bits);
        let worse = [
            ("distance", at(rtt_s * worse, 1.0, bits)),
            ("storage", at(rtt_s, 1.0 / worse, bits)),
            ("rate", at(rtt_s, 1.0, bits / worse)),
        ];
        // Messages within a millisecond are not distinguished: a later one may find a free link.
        let unsure_ns = if one_by_one { 0 } else { MS };
        for (what, other) in worse {
            let (less, more) = (one.waiting_ns.1, other.waiting_ns.1);
            let unsure_of_all_ns = unsure_ns * acts.len() as i64;
            prop_assert!(more >= less * 999 / 1000 - unsure_of_all_ns, "{what}: {less} {more}");
            let least = 0.999 * mean(&one.operations) - unsure_ns as f64;
            prop_assert!(mean(&other.operations) >= least);
        }
    }
}

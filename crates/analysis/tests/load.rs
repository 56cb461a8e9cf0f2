//! The summary of load runs: which operations count, joined shards, counters on the same time axis.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use smbscope_analysis::summary::{Counted, Load, Options, Report, Summary, WarningKind};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::description::{Capacity, RunDescription};
use smbscope_tables::operation::Operation;
use smbscope_tables::run::{
    COOL_DOWN, Counter, DONE, FAILED, MEASURED, NOT_STARTED, Scenario, Step, WARM_UP,
};
use smbscope_tables::tables::Connection;

const SECOND: i64 = 1_000_000_000;

fn description(shard: u64) -> RunDescription {
    let mut run = RunDescription {
        recording: format!("load-{shard}of2"),
        hostname: format!("client{shard}"),
        workload: "homefolder".into(),
        shard,
        shards: 2,
        users_from: shard * 10 - 9,
        users_to: shard * 10,
        users_total: 20,
        start_at_ns: Some(0),
        overload_limit_percent: Some(2.0),
        server_clock_ahead_ns: Some(0),
        ..RunDescription::default()
    };
    run.identify();
    run
}

fn step(recording: &str, step: u64, users: u64, behind: u64) -> Step {
    let start = step as i64 * 100 * SECOND;
    Step {
        recording: recording.into(),
        step,
        users,
        users_here: users / 2,
        rate: 1.0,
        start,
        end: start + 60 * SECOND,
        scheduled: 60,
        started: 60,
        on_time: 60 - behind,
        completed: 60,
        users_overloaded: behind,
        overload_percent: behind as f64 * 10.0,
        overloaded: behind > 0,
        ..Step::default()
    }
}

fn scenario(recording: &str, number: u64, step: u64, at: i64, phase: &str) -> Scenario {
    Scenario {
        recording: recording.into(),
        scenario_run: number,
        step,
        user_number: number % 10 + 1,
        scenario: if number.is_multiple_of(2) { "WordFileOpen" } else { "ExplorerSelect" }.into(),
        phase: phase.into(),
        scheduled_at: at,
        started_at: Some(at),
        ended_at: Some(at + SECOND),
        late_ns: Some(0),
        response_ns: Some(SECOND * step as i64),
        operations: 3,
        outcome: DONE.into(),
        ..Scenario::default()
    }
}

fn operations(recording: &str, rows: &[(Option<u64>, i64, u32)]) -> arrow::array::RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for &(scenario_run, at, status) in rows {
        let mut row = Operation::default();
        row.set_recording(builder.names.recording.intern(recording));
        row.set_protocol(2);
        row.set_command(code::command(2, 5));
        row.set_status(status);
        row.set_status_name(code::status_name(status));
        row.set_request_start(at);
        row.set_request_end(at);
        row.set_response_start(at + 1_000_000);
        row.set_response_end(at + 1_000_000);
        row.derive_durations();
        if let Some(number) = scenario_run {
            row.set_scenario_run(number);
        }
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

/// One machine: a warm-up, two steps, a cool-down, with one operation for each scenario and a refused logon.
fn one(counted: Counted) -> Report {
    let mut summary = Summary::new(Options { counted, ..Options::default() });
    let name = "load-1of2";
    summary.run(&description(1), true);
    summary.steps(&[step(name, 1, 10, 0), step(name, 2, 20, 5)]);
    let rows = [
        scenario(name, 1, 1, 90 * SECOND, WARM_UP),
        scenario(name, 2, 1, 101 * SECOND, MEASURED),
        scenario(name, 3, 1, 102 * SECOND, MEASURED),
        scenario(name, 4, 2, 201 * SECOND, MEASURED),
        scenario(name, 5, 2, 270 * SECOND, COOL_DOWN),
    ];
    summary.scenarios(&rows);
    let logon = (None, 80 * SECOND, 0xc000_006d);
    let of = rows.iter().map(|row| (Some(row.scenario_run), row.scheduled_at, 0));
    let all: Vec<_> = [logon].into_iter().chain(of).collect();
    summary.operations(&operations(name, &all)).unwrap();
    summary.finish()
}

#[test]
fn connections_belong_to_the_whole_run() {
    let mut summary = Summary::new(Options::default());
    let name = "load-1of2";
    summary.run(&description(1), true);
    summary.steps(&[step(name, 1, 10, 0)]);
    summary.scenarios(&[
        scenario(name, 1, 1, 90 * SECOND, WARM_UP),
        scenario(name, 2, 1, 101 * SECOND, MEASURED),
    ]);
    let rows = [(None, 80 * SECOND, 0), (Some(1), 90 * SECOND, 0), (Some(2), 101 * SECOND, 0)];
    let mut batch = operations(name, &rows);
    // On one connection, a millisecond each.
    for (name, column) in [
        ("connection", Arc::new(UInt64Array::from(vec![7; 3])) as ArrayRef),
        ("busy_ns", Arc::new(Int64Array::from(vec![1_000_000; 3]))),
    ] {
        let place = batch.schema().index_of(name).unwrap();
        let mut columns = batch.columns().to_vec();
        columns[place] = column;
        batch = RecordBatch::try_new(batch.schema(), columns).unwrap();
    }
    summary.operations(&batch).unwrap();
    summary.connections(&[Connection {
        recording: name.into(),
        connection: 7,
        operations: 3,
        ..Connection::default()
    }]);
    let found = summary.finish();
    assert_eq!(found.totals.tally.operations, 1);
    let row = &found.connections.rows[0];
    assert_eq!((row.connection.operations, row.elapsed.n), (3, 3));
    assert_eq!((row.busy_ns, row.busy_share), (3_000_000, 1.0));
}

fn load(report: Report) -> Load {
    report.load.unwrap()
}

#[test]
fn operations_of_measured_scenarios_count_and_the_others_are_said() {
    for (counted, expected) in [(Counted::Measured, 3), (Counted::Step(2), 1), (Counted::All, 6)] {
        let report = one(counted);
        assert_eq!(report.totals.tally.operations, expected, "{counted:?}");
        assert_eq!(report.commands[0].tally.operations, expected);
        // Over time everything is shown.
        let over_time: u64 = report.series.bins.iter().map(|bin| bin.operations).sum();
        assert_eq!(over_time, 6);
        let window = &load(report).window;
        assert_eq!((window.operations, window.left_out), (expected, 6 - expected));
        let all = counted == Counted::All;
        assert_eq!((window.measured, window.left_out_errors), (!all, u64::from(!all)));
        assert_eq!(window.statuses.rows.len(), usize::from(!all));
    }
    let load = load(one(Counted::Step(2)));
    let phases: Vec<_> = load
        .phases
        .iter()
        .map(|row| (row.phase.as_str(), row.scenarios, row.operations, row.counted))
        .collect();
    assert_eq!(
        phases,
        [
            ("measured", 1, 1, true),
            ("measured, other steps", 2, 2, false),
            ("warm-up", 1, 1, false),
            ("cool-down", 1, 1, false),
            ("no scenario", 0, 1, false),
        ]
    );
}

#[test]
fn a_run_without_a_measured_scenario_shows_all() {
    let mut summary = Summary::new(Options::default());
    summary.scenarios(&[scenario("killed", 1, 1, 0, WARM_UP)]);
    summary.operations(&operations("killed", &[(Some(1), 0, 0), (None, 0, 0)])).unwrap();
    let report = summary.finish();
    assert_eq!(report.totals.tally.operations, 2);
    let load = load(report);
    assert!(!load.window.measured);
    assert_eq!(load.warnings[0].kind, WarningKind::NotDescribed);
}

#[test]
fn another_recording_next_to_a_load_run_counts_whole() {
    let mut summary = Summary::new(Options::default());
    summary.scenarios(&[scenario("load", 1, 1, 0, MEASURED)]);
    summary.operations(&operations("load", &[(Some(1), 0, 0), (None, 0, 0)])).unwrap();
    summary.operations(&operations("capture.pcap", &[(None, 0, 0)])).unwrap();
    assert_eq!(summary.finish().totals.tally.operations, 2);
}

#[test]
fn a_capture_has_no_load() {
    let mut summary = Summary::new(Options::default());
    summary.operations(&operations("capture.pcap", &[(None, 0, 0)])).unwrap();
    assert_eq!(summary.finish().load, None);
}

#[test]
fn response_times_are_of_the_highest_load_that_was_carried() {
    let load = load(one(Counted::Measured));
    assert_eq!(load.scenario_steps.iter().map(|it| it.users).collect::<Vec<_>>(), [10]);
    let names: Vec<_> = load.scenarios.iter().map(|row| row.scenario.as_str()).collect();
    assert_eq!(names, ["ExplorerSelect", "WordFileOpen"]);
    assert!(load.scenarios.iter().all(|row| row.response.p50_ns == Some(SECOND)));
    assert_eq!(load.scenarios_by_step.len(), 3);
    assert_eq!(load.steps[1].response.max_ns, Some(2 * SECOND));
    let answer = &load.answers[0];
    assert_eq!((answer.users, answer.high, answer.derived), (Some(10), Some(20), true));
    // The second machine's folder is missing.
    assert_eq!(
        load.warnings.iter().map(|it| it.kind).collect::<Vec<_>>(),
        [WarningKind::MissingShard]
    );
}

#[test]
fn two_machines_are_one_run() {
    let mut summary = Summary::new(Options::default());
    for shard in [1, 2] {
        let mut run = description(shard);
        run.capacity = Some(Capacity { users: Some(15), low: Some(10), ..Capacity::default() });
        summary.run(&run, true);
    }
    for shard in [1, 2] {
        let name = format!("load-{shard}of2");
        // The first machine's users are behind, the second's are not.
        summary.steps(&[step(&name, 1, 20, if shard == 1 { 1 } else { 0 })]);
        summary.scenarios(&[
            scenario(&name, 1, 1, 101 * SECOND, MEASURED),
            Scenario {
                outcome: FAILED.into(),
                status_name: Some("STATUS_DISK_FULL".into()),
                ..scenario(&name, 2, 1, 102 * SECOND, MEASURED)
            },
            Scenario {
                outcome: NOT_STARTED.into(),
                started_at: None,
                ended_at: None,
                response_ns: None,
                ..scenario(&name, 3, 1, 103 * SECOND, MEASURED)
            },
        ]);
        summary.operations(&operations(&name, &[(Some(1), 101 * SECOND, 0)])).unwrap();
    }
    let report = summary.finish();
    assert_eq!(report.totals.tally.operations, 2);
    let load = load(report);
    assert_eq!(load.warnings, []);
    let [step] = load.steps.as_slice() else { panic!("{:?}", load.steps) };
    assert_eq!((step.users, step.users_here, step.parts, step.completed), (20, 20, 2, 120));
    assert_eq!((step.users_overloaded, step.overloaded), (1, true));
    assert!((step.overload_share - 0.05).abs() < 1e-9);
    assert!((step.throughput - 2.0).abs() < 1e-9);
    // Those that failed have no response time.
    assert_eq!(step.response.n, 2);
    let failure = &load.failures[0];
    assert_eq!((failure.status.as_str(), failure.count), ("STATUS_DISK_FULL", 2));
    assert_eq!((failure.users_min, failure.measured), (Some(20), 2));
    assert_eq!(load.scenarios.iter().map(|row| row.not_started).sum::<u64>(), 2);
    assert_eq!(load.answers[0].users, Some(15));
    assert!(!load.answers[0].derived);
}

#[test]
fn the_same_folder_twice_is_said_and_its_users_count_once() {
    let mut summary = Summary::new(Options::default());
    for _ in 0..2 {
        summary.run(&description(1), false);
        summary.steps(&[step("load-1of2", 1, 20, 0)]);
    }
    let load = load(summary.finish());
    assert_eq!(load.steps[0].users_here, 10);
    let kinds: Vec<_> = load.warnings.iter().map(|it| it.kind).collect();
    use WarningKind::*;
    assert_eq!(kinds, [SameRecording, MissingShard, Incomplete]);
}

#[test]
fn counters_stand_on_the_axis_of_the_operations() {
    let mut summary = Summary::new(Options { bins_max: 40, ..Options::default() });
    summary.steps(&[step("load", 1, 10, 0)]);
    let counter = |time: i64, value| Counter {
        recording: "load".into(),
        time,
        source: "server".into(),
        name: "cpu_percent".into(),
        unit: "%".into(),
        value,
        ..Counter::default()
    };
    let rows: Vec<_> = (90..170)
        .map(|second| counter(second * SECOND, if second < 100 { 10.0 } else { 50.0 }))
        .collect();
    summary.counters(&rows);
    summary.counters(&[counter(95 * SECOND, f64::NAN)]);
    summary.operations(&operations("load", &[(None, 101 * SECOND, 0)])).unwrap();
    let report = summary.finish();
    let load = report.load.unwrap();
    let cpu = &load.counters[0];
    assert_eq!((cpu.n, cpu.measured_n, cpu.measured_mean), (80, 60, Some(50.0)));
    assert_eq!((cpu.min, cpu.max), (10.0, 50.0));
    assert_eq!(cpu.values.len(), report.series.bins.len());
    assert_eq!(load.bins.len(), report.series.bins.len());
    assert!(report.series.bins.len() > 10);
    let with_load: Vec<_> = load.bins.iter().filter(|bin| bin.users == Some(10)).collect();
    assert!(with_load.iter().all(|bin| (98 * SECOND..160 * SECOND).contains(&bin.start_ns)));
    assert!(cpu.values.iter().flatten().all(|value| (10.0..=50.0).contains(value)));
}

//! A synthetic load run: three steps of 20, 40 and 80 users against a server that sustains 40, with one
//! part per machine.

use std::path::Path;

use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::description::{Capacity, RunDescription};
use smbscope_tables::manifest::{Kind, Manifest};
use smbscope_tables::operation::Operation;
use smbscope_tables::run::{
    Counter, DONE, FAILED, LOAD_FORMAT, MEASURED, NOT_STARTED, Scenario, Step, WARM_UP,
};
use smbscope_tables::tables::Coverage;

use crate::Part;
use crate::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use crate::synthetic::START;

const SECOND: i64 = 1_000_000_000;
const STEPS: [(u64, u64); 3] = [(1, 20), (2, 40), (3, 80)];
const NAMES: [&str; 3] = ["ExplorerNavigate", "WordFileOpen", "CmdLineFileUpload"];

/// The description of one machine's part.
pub fn description(shard: u64, shards: u64) -> RunDescription {
    let mut run = RunDescription {
        recording: format!("load-{shard}of{shards}"),
        workload: "homefolder".into(),
        workload_digest: "ab".repeat(32),
        seed: 7,
        scale: 0.01,
        users_from: shard,
        users_to: 80,
        users_total: 80,
        user_names: Some("user{:05}".into()),
        shard,
        shards,
        server: "fs1.example.com".into(),
        server_port: 445,
        share: "home".into(),
        hostname: format!("client{shard}"),
        start_at_ns: Some(START),
        start_ns: START,
        capacity: Some(Capacity {
            users: Some(40),
            low: Some(40),
            high: Some(80),
            ..Capacity::default()
        }),
        ..RunDescription::default()
    };
    run.identify();
    run
}

/// A finished run folder of one machine's part.
pub fn load(dir: &Path, shard: u64, shards: u64, tokenizer: Option<Tokenizer>) -> Manifest {
    let run = description(shard, shards);
    let seed = ManifestSeed { created_at: 1, ..ManifestSeed::now(Kind::Load, Vec::new()) };
    let options = WriteOptions {
        interval: std::time::Duration::from_secs(3600),
        tokenizer,
        ..WriteOptions::default()
    };
    let mut writer = DatasetWriter::create(dir, seed, options).unwrap();
    writer.describe(RunDescription { capacity: None, ..run.clone() }).unwrap();
    let mut scenario_run = 0;
    let mut operations = OperationBuilder::new(None).unwrap();
    for (step, users) in STEPS {
        let mut scenarios = Vec::new();
        for user in (1..=users).filter(|user| user % shards == shard % shards) {
            for turn in 0..6 {
                scenario_run += 1;
                let row = scenario(&run.recording, scenario_run, step, user, turn);
                add_operations(&mut operations, &row);
                scenarios.push(row);
            }
        }
        writer.part(Part::Steps(vec![a_step(&run, step, users, &scenarios)])).unwrap();
        writer.part(Part::Scenarios(scenarios)).unwrap();
        writer.part(Part::Counters(counters(&run.recording, step, users))).unwrap();
    }
    writer.part(Part::Operations(operations.finish().unwrap())).unwrap();
    let coverage = Coverage {
        recording: run.recording.clone(),
        format: LOAD_FORMAT.into(),
        start: Some(START),
        operations: scenario_run * 3,
        ..Coverage::default()
    };
    writer.part(Part::Coverage(Box::new(coverage))).unwrap();
    writer.describe(run).unwrap();
    writer.finish(true).unwrap()
}

/// Where a step's measured window begins; it is 60 s long, and 6 s of warm-up are before it.
fn window(step: u64) -> i64 {
    START + step as i64 * 70 * SECOND
}

fn scenario(recording: &str, scenario_run: u64, step: u64, user: u64, turn: u64) -> Scenario {
    let overloaded = step == 3;
    // Fixed values, so that the answers of questions can be checked by hand.
    let at = window(step) - 6 * SECOND + turn as i64 * 11 * SECOND + user as i64 * 50_000_000;
    let late = if overloaded { turn as i64 * 2 * SECOND } else { 0 };
    let spent = (100 + 10 * (user % 10) as i64) * 1_000_000 * step as i64;
    let failed = overloaded && user.is_multiple_of(10);
    let dropped = overloaded && user == 79 && turn == 5;
    let started = (!dropped).then_some(at + late);
    Scenario {
        recording: recording.into(),
        scenario_run,
        step,
        user_number: user,
        user: Some(format!("user{user:05}")),
        connection: Some(user),
        scenario: NAMES[((user + turn) % 3) as usize].into(),
        phase: if at < window(step) { WARM_UP } else { MEASURED }.into(),
        scheduled_at: at,
        started_at: started,
        ended_at: started.map(|at| at + spent),
        late_ns: started.map(|_| late),
        response_ns: started.map(|_| late + spent),
        operations: if dropped { 0 } else { 3 },
        saved: 1,
        errors: failed.into(),
        outcome: match (dropped, failed) {
            (true, _) => NOT_STARTED,
            (_, true) => FAILED,
            _ => DONE,
        }
        .into(),
        status_name: (failed && !dropped).then(|| "STATUS_SHARING_VIOLATION".into()),
    }
}

/// Create, Read and Close; the Create takes the remaining time.
fn add_operations(builder: &mut OperationBuilder, scenario: &Scenario) {
    let (Some(started), Some(ended)) = (scenario.started_at, scenario.ended_at) else { return };
    let bounds = [started, ended - 2_000_000, ended - 1_000_000, ended];
    for (place, command) in [5, 8, 6].into_iter().enumerate() {
        let mut row = Operation::default();
        row.set_recording(builder.names.recording.intern(&scenario.recording));
        row.set_client(builder.names.client.intern("10.0.0.9"));
        row.set_server(builder.names.server.intern("10.0.1.1"));
        row.set_operation(scenario.scenario_run * 3 + place as u64);
        row.set_scenario_run(scenario.scenario_run);
        row.set_connection(scenario.user_number);
        row.set_protocol(2);
        row.set_command(code::command(2, command));
        let status = if place == 0 && scenario.errors > 0 { 0xc000_0043 } else { 0 };
        row.set_status(status);
        row.set_status_name(code::status_name(status));
        row.set_request_start(bounds[place]);
        row.set_request_end(bounds[place]);
        row.set_response_start(bounds[place + 1]);
        row.set_response_end(bounds[place + 1]);
        row.derive_durations();
        row.set_busy_ns(bounds[place + 1] - bounds[place]);
        row.set_waits(false);
        builder.append(&[row]);
    }
}

fn a_step(run: &RunDescription, step: u64, users: u64, scenarios: &[Scenario]) -> Step {
    let measured: Vec<_> = scenarios.iter().filter(|row| row.phase == MEASURED).collect();
    let count =
        |of: &dyn Fn(&Scenario) -> bool| measured.iter().filter(|row| of(row)).count() as u64;
    let users_here = scenarios.len() as u64 / 6;
    let behind = if step == 3 { users_here / 2 } else { 0 };
    Step {
        recording: run.recording.clone(),
        run: run.run.clone(),
        step,
        users,
        users_here,
        rate: users_here as f64 / 11.0,
        start: window(step),
        end: window(step) + 60 * SECOND,
        scheduled: measured.len() as u64,
        started: count(&|row| row.started_at.is_some()),
        on_time: count(&|row| row.late_ns.is_some_and(|late| late < 11 * SECOND)),
        completed: count(&|row| row.ended_at.is_some()),
        failed: count(&|row| row.outcome == FAILED),
        users_overloaded: behind,
        overload_percent: 100.0 * behind as f64 / users_here as f64,
        client_cpu_percent: Some(10.0 * step as f64),
        client_late_ns: Some(200_000),
        overloaded: behind > 0,
        ..Step::default()
    }
}

fn counters(recording: &str, step: u64, users: u64) -> Vec<Counter> {
    let of = |second: i64, source: &str, name: &str, instance: Option<&str>, unit: &str, value| {
        Counter {
            recording: recording.into(),
            time: window(step) + second * SECOND,
            source: source.into(),
            name: name.into(),
            instance: instance.map(String::from),
            unit: unit.into(),
            value,
        }
    };
    (-5..60)
        .flat_map(|second| {
            [
                of(second, "server", "cpu_percent", None, "%", users as f64),
                of(second, "server", "disk_busy_percent", Some("sda"), "%", second.abs() as f64),
                of(second, "client", "cpu_percent", None, "%", users as f64 / 10.0),
            ]
        })
        .collect()
}

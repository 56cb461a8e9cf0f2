//! Commands that read a load run: report, query and import over folders as `smbscope load` writes them.

use std::path::Path;

use serde_json::Value;
use smbscope_store::Part;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::description::{Capacity, RunDescription};
use smbscope_tables::manifest::Kind;
use smbscope_tables::operation::Operation;
use smbscope_tables::run::{Counter, DONE, LOAD_FORMAT, MEASURED, Scenario, Step, WARM_UP};
use smbscope_tables::tables::Coverage;

use super::{answer, complaint, folder, objects};

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_767_603_600 * SECOND;

/// Two machines with two steps each: in each step one scenario is measured, one is warm-up, with one
/// operation for each, and a logon.
pub(super) fn run(dir: &Path, shard: u64, change: impl FnOnce(&mut RunDescription)) -> String {
    let mut description = RunDescription {
        recording: format!("load-{shard}of2"),
        workload: "homefolder".into(),
        scale: 0.5,
        users_from: shard,
        users_to: 18 + shard,
        users_every: 2,
        users_total: 20,
        shard,
        shards: 2,
        server: "fs1.example.com".into(),
        server_port: 445,
        share: "homes".into(),
        hostname: "client".into(),
        start_at_ns: Some(START),
        start_ns: START,
        capacity: Some(Capacity { users: Some(10), reason: "found".into(), ..Capacity::default() }),
        ..RunDescription::default()
    };
    change(&mut description);
    description.identify();
    let path = dir.join(&description.recording);
    let seed = ManifestSeed::now(Kind::Load, Vec::new());
    let mut writer = DatasetWriter::create(&path, seed, WriteOptions::default()).unwrap();
    let name = &description.recording;
    let mut operations = OperationBuilder::new(None).unwrap();
    for step in [1u64, 2] {
        let window = START + step as i64 * 100 * SECOND;
        writer.part(Part::Steps(vec![a_step(&description, step, window)])).unwrap();
        let mut rows = Vec::new();
        for (place, phase) in [WARM_UP, MEASURED].into_iter().enumerate() {
            let row = scenario(name, step, place as u64, phase, window + place as i64 * SECOND);
            operation(&mut operations, name, Some(row.scenario_run), row.scheduled_at);
            rows.push(row);
        }
        writer.part(Part::Scenarios(rows)).unwrap();
        writer
            .part(Part::Counters(vec![Counter {
                recording: name.clone(),
                time: window,
                source: "server".into(),
                name: "cpu_percent".into(),
                unit: "%".into(),
                value: 40.0,
                ..Counter::default()
            }]))
            .unwrap();
    }
    operation(&mut operations, name, None, START);
    writer.part(Part::Operations(operations.finish().unwrap())).unwrap();
    let coverage = Coverage {
        recording: name.clone(),
        format: LOAD_FORMAT.into(),
        operations: 5,
        ..Coverage::default()
    };
    writer.part(Part::Coverage(Box::new(coverage))).unwrap();
    writer.describe(description).unwrap();
    writer.finish(true).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A hundred users who request a hundred scenarios per second, of one operation each, and keep two
/// CPUs 50 % busy: 10 ms per scenario.
pub(super) fn paced(dir: &Path) -> String {
    let description = RunDescription { recording: "paced".into(), ..RunDescription::default() };
    let (path, name) = (dir.join("paced"), &description.recording);
    let seed = ManifestSeed::now(Kind::Load, Vec::new());
    let mut writer = DatasetWriter::create(&path, seed, WriteOptions::default()).unwrap();
    let step = Step {
        users: 100,
        users_here: 100,
        rate: 100.0,
        completed: 6000,
        ..a_step(&description, 1, START)
    };
    let mut operations = OperationBuilder::new(None).unwrap();
    let mut executions = Vec::new();
    for place in 0..50 {
        let row = scenario(name, 1, place, MEASURED, START + place as i64 * SECOND);
        operation(&mut operations, name, Some(row.scenario_run), row.scheduled_at);
        executions.push(row);
    }
    let busy = |place: u64| Counter {
        recording: name.clone(),
        time: START + (place / 3) as i64 * SECOND,
        source: "server".into(),
        name: "cpu_percent".into(),
        // In total, and for each.
        instance: [None, Some("0".into()), Some("1".into())][place as usize % 3].clone(),
        unit: "%".into(),
        value: 50.0,
    };
    let counters = (0..150).map(busy).collect();
    let operations = Part::Operations(operations.finish().unwrap());
    for part in
        [Part::Steps(vec![step]), Part::Scenarios(executions), Part::Counters(counters), operations]
    {
        writer.part(part).unwrap();
    }
    writer.describe(description).unwrap();
    writer.finish(true).unwrap();
    path.to_str().unwrap().to_owned()
}

fn a_step(run: &RunDescription, step: u64, window: i64) -> Step {
    Step {
        recording: run.recording.clone(),
        run: run.run.clone(),
        step,
        users: 10 * step,
        users_here: 5 * step,
        start: window,
        end: window + 60 * SECOND,
        scheduled: 30,
        started: 30,
        completed: 30,
        ..Step::default()
    }
}

fn scenario(name: &str, step: u64, place: u64, phase: &str, at: i64) -> Scenario {
    Scenario {
        recording: name.into(),
        scenario_run: step * 2 + place,
        step,
        user_number: 1,
        user: Some("alice".into()),
        scenario: "WordFileOpen".into(),
        phase: phase.into(),
        scheduled_at: at,
        started_at: Some(at),
        ended_at: Some(at + SECOND),
        late_ns: Some(0),
        response_ns: Some(SECOND),
        operations: 1,
        outcome: DONE.into(),
        ..Scenario::default()
    }
}

fn operation(builder: &mut OperationBuilder, name: &str, scenario_run: Option<u64>, at: i64) {
    let mut row = Operation::default();
    row.set_recording(builder.names.recording.intern(name));
    row.set_protocol(2);
    row.set_command(code::command(2, if scenario_run.is_some() { 5 } else { 1 }));
    row.set_status(0);
    row.set_status_name(code::status_name(0));
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

fn json<const N: usize>(arguments: [&str; N]) -> Value {
    serde_json::from_str(&answer(arguments)).unwrap()
}

fn kinds(report: &Value) -> Vec<&str> {
    let warnings = report["load"]["warnings"].as_array().unwrap();
    warnings.iter().map(|warning| warning["kind"].as_str().unwrap()).collect()
}

#[test]
fn folders_of_two_machines_are_one_run() {
    let (_guard, dir) = folder();
    let [one, two] = [1, 2].map(|shard| run(&dir, shard, |_| {}));
    let report = json(["report", &one, &two, "--format", "json"]);
    assert_eq!(kinds(&report), [""; 0]);
    let steps = report["load"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!((&steps[1]["users"], &steps[1]["users_here"]), (&20.into(), &20.into()));
    assert_eq!((&steps[1]["parts"], &steps[1]["response"]["n"]), (&2.into(), &2.into()));
    assert_eq!(report["load"]["answers"][0]["users"], 10);
    // Measured scenarios of two steps on two machines.
    assert_eq!(report["totals"]["operations"], 4);
    assert_eq!(report["load"]["window"]["left_out"], 6);
    let text = answer(["report", &one, &two, "--all"]);
    for said in ["Users without overload", "homefolder", "scale 0.5", "Counters", "WordFileOpen"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let (again, other) = (run(&dir.join("again"), 1, |_| {}), dir.join("other"));
    let doubled = json(["report", &one, &again, "--format", "json"]);
    assert_eq!(kinds(&doubled), ["same_recording", "missing_shard"]);
    let other = run(&other, 2, |run| run.seed = 9);
    let mixed = json(["report", &one, &other, "--format", "json"]);
    assert_eq!(kinds(&mixed), ["missing_shard", "missing_shard", "other_run", "other_seed"]);
}

#[test]
fn phase_and_step_select_operations() {
    let (_guard, dir) = folder();
    let one = run(&dir, 1, |_| {});
    let operations = |more: &[&str]| {
        let first = ["report", &one, "--format", "json"];
        let arguments = first.iter().chain(more).copied();
        let report: Value = serde_json::from_str(&answer(arguments)).unwrap();
        report["totals"]["operations"].as_u64().unwrap()
    };
    assert_eq!(operations(&[]), 2);
    assert_eq!(operations(&["--phase", "measured"]), 2);
    assert_eq!(operations(&["--phase", "all"]), 5);
    assert_eq!(operations(&["--step", "2"]), 1);
    let said = complaint(2, ["report", &one, "--step", "7"]);
    assert!(said.contains("steps 1 to 2"), "{said}");
    let said = complaint(2, ["report", &super::capture(), "--step", "1"]);
    assert!(said.contains("no steps of a load run"), "{said}");
}

#[test]
fn queries_join_the_parts_of_a_run() {
    let (_guard, dir) = folder();
    let [one, two] = [1, 2].map(|shard| run(&dir, shard, |_| {}));
    let curve = answer(["query", &one, &two, "--question", "capacity-curve", "--format", "json"]);
    let curve = objects(&curve);
    assert_eq!(curve.len(), 2);
    assert_eq!((&curve[0]["users"], &curve[0]["machines"]), (&10.into(), &2.into()));
    assert_eq!(curve[0]["scenarios_per_second"], 1.0);
    let sql = "select count(*) as n from operations o join scenarios s \
               on o.recording = s.recording and o.scenario_run = s.scenario_run";
    assert_eq!(objects(&answer(["query", &one, &two, sql, "--format", "json"]))[0]["n"], 8);
    // A capture has the tables, and they are empty.
    let sql = "select count(*) as n from scenarios, steps, counters";
    assert_eq!(objects(&answer(["query", &super::capture(), sql, "--format", "json"]))[0]["n"], 0);
}

#[test]
fn an_import_keeps_the_run_and_can_hide_names() {
    let (_guard, dir) = folder();
    let [one, two] = [1, 2].map(|shard| run(&dir, shard, |_| {}));
    let whole = dir.join("whole");
    let whole = whole.to_str().unwrap();
    answer(["import", &one, &two, "--out", whole]);
    let without_inputs = |mut report: Value| {
        report.as_object_mut().unwrap().remove("inputs");
        report
    };
    assert_eq!(
        without_inputs(json(["report", whole, "--format", "json"])),
        without_inputs(json(["report", &one, &two, "--format", "json"]))
    );
    let text = answer(["report", &one, &two, "--format", "json", "--anonymize"]);
    for name in ["fs1.example.com", "alice", "load-1of2", "homes"] {
        assert!(!text.contains(name), "{name}");
    }
    // Still one run of two parts.
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kinds(&report), [""; 0]);
    assert_eq!(report["load"]["steps"][0]["parts"], 2);
}

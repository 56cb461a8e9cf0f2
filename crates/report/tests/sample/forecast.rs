//! A synthetic run of one user on a server with known slices, and again with changes, for tests and for
//! viewing: some steps up, some down, some too small to be drawn separately.

use smbscope_analysis::predict::capacity::NoCapacity;
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::forecast::RecordedForecast;
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::{Baseline, Replay};
use smbscope_report::prediction::Forecast;
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::run::{DONE, MEASURED, Scenario};
use smbscope_tables::tables::Connection;

use super::{HOSTILE, Random, START};

const RECORDING: &str = "load-1of1";
const NAMES: [&str; 3] = ["ExplorerNavigate", "WordFileOpen", HOSTILE];
const COMMANDS: [u16; 5] = [5, 16, 8, 9, 6];
const MS: i64 = 1_000_000;

/// The effect of the changes; always the same.
pub fn forecast(changes: &[Change]) -> Forecast {
    let mut plan = Plan::default();
    changes.iter().for_each(|change| change.plan(&mut plan));
    let mut replay = Replay::new(plan, Baseline::default());
    replay.connections(&[Connection {
        recording: RECORDING.into(),
        connection: 1,
        vantage: Some("client".into()),
        server_rtt_ns: Some(250_000),
        ..Connection::default()
    }]);
    let mut random = Random(3);
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut rows = Vec::new();
    for number in 0..12u64 {
        let scheduled = START + number as i64 * 2_000 * MS;
        let mut at = scheduled + random.below(900_000) as i64;
        let started = at;
        for command in COMMANDS {
            let (row, end) = operation(&mut random, &mut builder, number, command, at);
            builder.append(&[row]);
            at = end + random.below(300_000) as i64;
        }
        rows.push(Scenario {
            recording: RECORDING.into(),
            scenario_run: number,
            scenario: NAMES[number as usize % NAMES.len()].into(),
            phase: MEASURED.into(),
            scheduled_at: scheduled,
            started_at: Some(started),
            ended_at: Some(at),
            outcome: DONE.into(),
            ..Scenario::default()
        });
    }
    replay.scenarios(&rows);
    replay.operations(&builder.finish().unwrap()).unwrap();
    let warnings = vec!["What was measured lies elsewhere.".to_owned()];
    Forecast::new(&RecordedForecast {
        changes: changes.to_vec(),
        prediction: replay.finish(),
        users_s: None,
        capacity: Err(NoCapacity::NoSteps),
        changed_capacity: None,
        notes: Vec::new(),
        warnings,
    })
}

/// An operation and the time of its end.
fn operation(
    random: &mut Random,
    builder: &mut OperationBuilder,
    scenario_run: u64,
    command: u16,
    at: i64,
) -> (Operation, i64) {
    let mut row = Operation::default();
    let (queue, processing) = (random.below(40_000) as i64, random.below(200_000) as i64);
    let filesystem = if command == 5 { 4 * MS + random.below(9_000_000) as i64 } else { 0 };
    let io = if command == 8 { random.below(8_000_000) as i64 } else { 0 };
    let server = queue + processing + filesystem + io + 30_000;
    let bytes = if matches!(command, 8 | 9) { 65_536 } else { 300 };
    row.set_recording(builder.names.recording.intern(RECORDING));
    row.set_connection(1);
    row.set_scenario_run(scenario_run);
    row.set_protocol(2);
    row.set_command(code::command(2, command));
    row.set_request_wire_bytes(if command == 9 { bytes } else { 200 });
    row.set_response_wire_bytes(if command == 8 { bytes } else { 200 });
    row.set_queue_ns(queue);
    row.set_processing_ns(processing);
    row.set_filesystem_ns(filesystem);
    row.set_io_ns(io);
    row.set_server_ns(server);
    let end = at + server + 270_000 + bytes as i64;
    row.set_request_start(at);
    row.set_request_end(at + 1_000);
    row.set_response_start(end - 1_000);
    row.set_response_end(end);
    row.derive_durations();
    (row, end)
}

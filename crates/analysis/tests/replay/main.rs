//! Replays of recorded operations: what each change costs or saves, and properties that every prediction must
//! have, for any recording.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod any_recording;
mod distance;
mod identity;
mod profiles;
mod protection;
mod server;

use arrow::array::RecordBatch;
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::plan::{Plan, Replication};
use smbscope_analysis::predict::replay::{Prediction, Replay, Row};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::run::{MEASURED, Scenario};
use smbscope_tables::tables::Connection;

const READ: u16 = 8;
const WRITE: u16 = 9;
const FLUSH: u16 = 7;
const NEGOTIATE: u16 = 0;
const TREE_CONNECT: u16 = 3;
const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const IOCTL: u16 = 11;
const QUERY_DIRECTORY: u16 = 14;
const QUERY_INFO: u16 = 16;
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
    Replication { is_sync, is_on_arrival: false, rtt_ns: 5 * MS, bandwidth_bits: Some(8e6) }
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

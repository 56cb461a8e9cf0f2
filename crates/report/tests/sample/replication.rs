//! A plan of a second server from made writes, some of which are flushed.

use smbscope_analysis::durability::{Durability, DurabilityTally};
use smbscope_analysis::predict::plan::{Plan, Replication};
use smbscope_analysis::predict::replay::{Baseline, Prediction, Replay};
use smbscope_analysis::replication::Link;
use smbscope_analysis::replication::forecast::{
    GoalForecast, GoalPoint, LinkForecast, Questions, ReplicationForecast,
};
use smbscope_analysis::replication::load::WriteLoad;
use smbscope_analysis::replication::search::Found;
use smbscope_plan::replication::checks::{Facts, checks};
use smbscope_plan::replication::html::tables;
use smbscope_report::replication::ReplicationPlan;
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use super::{HOSTILE, START};

const MS: i64 = 1_000_000;
const LINES: [Link; 3] = [
    Link { rtt_ns: MS, bandwidth_bits: Some(1e9) },
    Link { rtt_ns: 20 * MS, bandwidth_bits: Some(1e6) },
    Link { rtt_ns: 20 * MS, bandwidth_bits: Some(1e9) },
];

/// Each fourth request flushes what the three before have written.
fn batch() -> arrow::array::RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for number in 0..400u64 {
        let names = &mut builder.names;
        let at = START + number as i64 * 50 * MS;
        let mut row = Operation::default();
        row.set_recording(names.recording.intern("run"));
        row.set_operation(number);
        row.set_connection(1);
        row.set_session_id(7);
        row.set_protocol(2);
        row.set_status(0);
        let is_flush = number % 4 == 3;
        row.set_command(code::command(2, if is_flush { 7 } else { 9 }));
        row.set_handle(number / 40);
        row.set_share(names.share.intern(if number < 200 { "\\\\server\\sql" } else { HOSTILE }));
        row.set_path(names.path.intern(HOSTILE));
        row.set_extension(names.extension.intern(if number < 200 { "mdf" } else { "docx" }));
        if !is_flush {
            row.set_transferred_bytes(64 << 10);
        }
        row.set_request_start(at);
        row.set_request_end(at);
        row.set_response_start(at + 2 * MS);
        row.set_response_end(at + 2 * MS);
        row.derive_durations();
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn replay(line: Link, is_sync: bool, is_on_arrival: bool) -> Prediction {
    let Link { rtt_ns, bandwidth_bits } = line;
    let replication = Replication { is_sync, is_on_arrival, rtt_ns, bandwidth_bits };
    let plan = Plan { replication: Some(replication), ..Plan::default() };
    let mut replay = Replay::new(plan, Baseline::default());
    replay.connections(&[Connection {
        recording: "run".into(),
        connection: 1,
        vantage: Some("client".into()),
        server_rtt_ns: Some(MS / 5),
        ..Connection::default()
    }]);
    replay.operations(&batch()).unwrap();
    replay.finish()
}

/// Which of these writes were stable.
pub fn durability() -> Durability {
    let mut tally = DurabilityTally::default();
    // Without the last Flush.
    tally.operations(&batch().slice(0, 399)).unwrap();
    tally.finish().unwrap()
}

/// The plan; always the same.
pub fn plan() -> ReplicationPlan {
    let questions = Questions {
        outage_ns: Some(60_000 * MS),
        log_bytes: Some(10 << 20),
        data_bytes: Some(1 << 30),
        interval_ns: Some(5_000 * MS),
    };
    let mut load = WriteLoad::default();
    load.operations(&batch()).unwrap();
    let mut forecast = ReplicationForecast::of_load(&load, &questions);
    for line in LINES {
        let [sync, received, later] =
            [(true, false), (true, true), (false, false)].map(|(a, b)| replay(line, a, b));
        forecast.stable_operations = sync.stable;
        let line = LinkForecast::new(line, &load, &questions, [&sync, &received, &later]);
        forecast.lines.push(line);
    }
    let goal = |bandwidth_bits| GoalForecast {
        bandwidth_bits,
        goal: "Flush p99 < 10ms".into(),
        today_ns: 2 * MS,
        limit_ns: 10 * MS,
        tried: vec![GoalPoint { rtt_ns: MS, time_ns: 3 * MS }],
        ..GoalForecast::default()
    };
    forecast.goals =
        vec![goal(Some(1e9)).answer(Found::UpTo(7 * MS)), goal(Some(1e6)).answer(Found::Never)];
    let facts = |line: &LinkForecast| Facts {
        rtt_ns: line.rtt_ns,
        bandwidth_bits: line.bandwidth_bits,
        mean_bits: line.load.mean_bits,
        busiest_bits: line.load.max_bits,
        is_minute: false,
        is_measured: false,
        log_bytes: Some(10 << 20),
        needed_log_bytes: line.outage.map(|outage| outage.log_bytes),
        data_bytes: None,
    };
    let report = "<h1>Tests</h1><table><tr><td>Log volume<td>Failed &lt;script&gt;</table>";
    ReplicationPlan {
        inputs: vec!["run".into()],
        version: "0.0.0".into(),
        checks: forecast.lines.iter().map(|line| checks(&facts(line), None)).collect(),
        forecast,
        test_report: Some(tables(report.as_bytes())),
        ..ReplicationPlan::default()
    }
}

//! A run of homefolder with a private Samba, and the data that its rows are compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use smbscope_client::Config;
use smbscope_load::capacity::{Purpose, Step, StepResult};
use smbscope_load::fileset::Scale;
use smbscope_load::prepare::{self, PrepareError};
use smbscope_load::recorder::Recorder;
use smbscope_load::run::users::{Credentials, Shard, home};
use smbscope_load::run::{Engine, Pace, Parts, Progress};
use smbscope_load::workload::{ClientCache, Planner, Workload};
use smbscope_tables::Part;
use tokio::sync::watch;

use crate::samba::{Samba, host};

/// Commands whose headers name no tree.
const TREELESS: [&str; 4] = ["Cancel", "Logoff", "Negotiate", "SessionSetup"];
/// Simulated users of a test.
pub const USERS: u64 = 4;

/// The runtime of a test.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A workload with a second between executions, so that a test is short.
pub fn workload() -> Arc<Workload> {
    let mut workload = Workload::built_in("homefolder").unwrap();
    for scenario in &mut workload.scenarios {
        scenario.runs_per_hour *= 10.0;
    }
    Arc::new(workload)
}

/// Plans of a workload that is written in a test.
pub fn planner(toml: &str, seed: u64) -> Planner {
    let workload = Workload::parse("test.toml", "test", toml).unwrap();
    Planner::new(Arc::new(workload), seed, Scale::FULL)
}

/// Writes the files of all users.
pub fn prepare(lab: &Samba, planner: &Planner) {
    (1..=USERS).for_each(|user| prepare_user(lab, planner, user).unwrap());
}

/// Writes the files of one user.
pub fn prepare_user(lab: &Samba, planner: &Planner, user: u64) -> Result<(), PrepareError> {
    runtime().block_on(async {
        let connected = lab.try_to_connect(Config::default(), &lab.users().of_user(user)).await;
        let mut session = connected.map_err(|failed| failed.error)?;
        let files = planner.files();
        prepare::prepare(&mut session, files, user, &home("", user), |_| ()).await?;
        session.close().await;
        Ok(())
    })
}

/// All users, a step of the given number of seconds, and the sender that would interrupt it.
pub async fn engine(
    lab: &Samba,
    planner: &Planner,
    config: Config,
    seconds: i64,
    parts: SyncSender<Part>,
) -> (Engine, Step, watch::Sender<bool>) {
    let host = host(&lab.target, config).await;
    let (interrupt, interrupted) = watch::channel(false);
    let engine = Engine::new(Parts {
        run: "run".into(),
        host: Arc::new(host),
        planner: planner.clone(),
        recorder: Arc::new(Recorder::new("run", 2, parts)),
        credentials: Credentials::pattern("user{:05}", &lab.password).unwrap(),
        cache: ClientCache::Published,
        shard: Shard::ALL,
        pace: Pace {
            ramp_per_second: 20.0,
            warm_up: Duration::from_secs(1),
            cool_down: Duration::ZERO,
            grace: Pace::GRACE,
            closed: false,
            outage: Pace::OUTAGE,
        },
        timeout: Duration::from_secs(30),
        threads: 2,
        interrupted,
        logons: None,
    });
    let step = Step {
        step: 1,
        users: USERS,
        repeat: 1,
        purpose: Purpose::Confirm,
        duration_ns: seconds * 1_000_000_000,
        may_end_early: false,
    };
    (engine, step, interrupt)
}

/// Runs the users for some seconds; returns the recorded parts.
pub fn run(
    lab: &Samba,
    planner: &Planner,
    seconds: i64,
    progress: impl FnMut(&Progress),
) -> (StepResult, Vec<Part>) {
    run_with(lab, planner, Config::default(), seconds, progress)
}

/// Likewise with connections as configured.
pub fn run_with(
    lab: &Samba,
    planner: &Planner,
    config: Config,
    seconds: i64,
    progress: impl FnMut(&Progress),
) -> (StepResult, Vec<Part>) {
    let runtime = runtime();
    let (sender, parts) = sync_channel(10_000);
    let result = runtime.block_on(async {
        let (mut engine, step, _interrupt) = engine(lab, planner, config, seconds, sender).await;
        let result = engine.step(step, false, progress).await;
        assert_eq!(engine.unexpected(), Vec::<(String, u64)>::new());
        engine.recorder().finish();
        result
    });
    (result, parts.into_iter().collect())
}

/// The columns that both sources must agree on, by connection and message.
fn keyed(batches: &[RecordBatch]) -> BTreeMap<(i64, i64, String), BTreeMap<&'static str, String>> {
    const COLUMNS: [&str; 16] = [
        "detail",
        "status_name",
        "path",
        "offset_bytes",
        "requested_bytes",
        "transferred_bytes",
        "request_wire_bytes",
        "response_wire_bytes",
        "credit_charge",
        "compound_index",
        "credits_granted",
        "share",
        "related",
        "waits",
        "compressed",
        "encrypted",
    ];
    let mut rows = BTreeMap::new();
    for batch in batches {
        let number = |name: &str, row: usize| {
            let column = cast(&batch[name], &DataType::Int64).unwrap();
            let column = column.as_primitive::<Int64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        let texts: Vec<_> = COLUMNS
            .iter()
            .map(|name| (*name, cast(&batch[*name], &DataType::Utf8).unwrap()))
            .collect();
        let commands = cast(&batch["command"], &DataType::Utf8).unwrap();
        for row in 0..batch.num_rows() {
            let command = commands.as_string::<i32>().value(row).to_owned();
            let mut values = BTreeMap::new();
            for (name, column) in &texts {
                let column = column.as_string::<i32>();
                if column.is_valid(row) {
                    values.insert(*name, column.value(row).to_owned());
                }
            }
            let file = batch["file_id"].as_fixed_size_binary();
            if file.is_valid(row) {
                values.insert("file_id", format!("{:x?}", file.value(row)));
            }
            // In a compound, a reply may have arrived that the client has not read.
            if number("compound_index", row).is_some_and(|index| index > 0) {
                values.extend(number("outstanding", row).map(|n| ("outstanding", n.to_string())));
            }
            for name in ["request_start", "response_end"] {
                if let Some(time) = number(name, row) {
                    values.insert(name, time.to_string());
                }
            }
            let key =
                (number("client_port", row).unwrap(), number("message_id", row).unwrap(), command);
            rows.insert(key, values);
        }
    }
    rows
}

/// The batches of operations among the parts.
pub fn operations(parts: Vec<Part>) -> Vec<RecordBatch> {
    let batches = parts.into_iter().filter_map(|part| match part {
        Part::Operations(batch) => Some(batch),
        _ => None,
    });
    batches.collect()
}

/// Sessions, trees and opens, each as a line with the values that must agree in both sources.
fn entities(parts: &[Part]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for part in parts {
        match part {
            Part::Sessions(rows) => lines.extend(rows.iter().map(|row| {
                let of = (row.session_id, &row.user, &row.mechanism, row.guest, row.encrypt_data);
                format!("session {of:?} {} {}", row.channels, row.operations)
            })),
            Part::Trees(rows) => lines.extend(rows.iter().map(|row| {
                let of = (row.session_id, row.tree_id, &row.share, &row.share_type);
                let properties = (row.share_flags, row.capabilities, row.continuous_availability);
                format!("tree {of:?} {properties:?} {:?} {}", row.encrypt_data, row.operations)
            })),
            Part::Handles(rows) => lines.extend(rows.iter().map(|row| {
                let of = (row.session_id, row.tree_id, &row.path, &row.user, row.file_id);
                let create = (row.desired_access, row.share_access, row.create_options);
                let granted = (&row.oplock, &row.lease, row.durable, row.persistent);
                let moved = (row.reads, row.read_bytes, row.writes, row.written_bytes);
                let closed = (row.directory, row.closed_at.is_some(), row.size_bytes);
                let operations = row.operations;
                format!("open {of:?} {create:?} {granted:?} {closed:?} {moved:?} {operations}")
            })),
            _ => {}
        }
    }
    lines
}

/// A capture of the server's port into the file, once it runs; `None`, with a message, if it cannot.
pub fn tcpdump(lab: &Samba, file: &Path) -> Option<Child> {
    let port = lab.target.split(':').nth(1)?.split('/').next()?.to_owned();
    let child = Command::new("tcpdump")
        .args(["-i", "lo", "-s", "0", "-B", "65536", "-U", "-w"])
        .arg(file)
        .args(["tcp", "port", &port])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        crate::skip!("no tcpdump");
        return None;
    };
    let begin = Instant::now();
    while !file.exists() || file.metadata().unwrap().len() < 24 {
        if child.try_wait().unwrap().is_some() || begin.elapsed() > Duration::from_secs(10) {
            crate::skip!("tcpdump may not capture here (needs root)");
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(child)
}

/// Asserts that both have the same sessions, trees and opens.
pub fn same_entities(parts: &[Part], captured: &[Part]) {
    let (of_run, of_capture) = (entities(parts), entities(captured));
    assert!(of_run.iter().filter(|line| line.starts_with("open ")).count() > 20);
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).take(5).cloned().collect()
    };
    let differences = (only(&of_run, &of_capture), only(&of_capture, &of_run));
    assert_eq!(differences, (Vec::new(), Vec::new()), "the run alone, the capture alone");
}

/// Asserts that the operations of both agree in the columns that both know. Returns the differences of
/// their times in nanoseconds, ascending.
pub fn agree(recorded: &[RecordBatch], other: &[RecordBatch]) -> Vec<i64> {
    let (recorded, captured) = (keyed(recorded), keyed(other));
    let mut wrong = Vec::new();
    let mut late: Vec<i64> = Vec::new();
    for (key, mine) in &recorded {
        let Some(theirs) = captured.get(key) else {
            wrong.push(format!("{key:?} is not in the other"));
            continue;
        };
        for (name, value) in mine {
            let other = theirs.get(name);
            if let "request_start" | "response_end" = *name {
                let other: i64 = other.map_or(0, |time| time.parse().unwrap());
                late.push((value.parse::<i64>().unwrap() - other).abs());
            } else if *name == "share" && TREELESS.contains(&key.2.as_str()) {
                // Their headers name no tree; the client knows it nevertheless.
            } else if other != Some(value) {
                wrong.push(format!("{key:?} {name}: {value}, other {other:?}"));
            }
        }
    }
    for (key, theirs) in &captured {
        let Some(mine) = recorded.get(key) else { continue };
        for name in theirs.keys().filter(|name| !mine.contains_key(*name)) {
            wrong.push(format!("{key:?} {name}: not recorded, other {:?}", theirs.get(name)));
        }
    }
    for key in captured.keys().filter(|key| !recorded.contains_key(*key)) {
        wrong.push(format!("{key:?} was not recorded"));
    }
    let count = wrong.len();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{count} of {}:\n{}", recorded.len(), wrong.join("\n"));
    late.sort_unstable();
    late
}

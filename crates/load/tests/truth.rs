//! What a run records is what a capture of it shows; a server that stalls shows in the times; a
//! server that goes away is counted and come back to.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use smbscope_capture::{Decoder, Input, Options, Part};
use smbscope_load::capacity::{Purpose, Step, StepResult};
use smbscope_load::client::{Config, Host, Session, Target};
use smbscope_load::clock::Clock;
use smbscope_load::fileset::Scale;
use smbscope_load::prepare;
use smbscope_load::recorder::Recorder;
use smbscope_load::run::who::{Credentials, Shard, home};
use smbscope_load::run::{Engine, Pace, Parts, Progress};
use smbscope_load::workload::{ClientCache, Planner, Workload};
use support::{LOGON, Samba, samba};
use tokio::sync::watch;

const USERS: u64 = 4;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A workload of a second between executions, so that a test is short.
fn workload() -> Arc<Workload> {
    let mut workload = Workload::built_in("homefolder").unwrap();
    for scenario in &mut workload.scenarios {
        scenario.runs_per_hour *= 10.0;
    }
    Arc::new(workload)
}

fn prepare(lab: &Samba, planner: &Planner) {
    runtime().block_on(async {
        for user in 1..=USERS {
            let target = Target::parse(&lab.target).unwrap();
            let host = Host::find(target, Config::default(), Clock::start(), false).await.unwrap();
            let credential = Credentials::pattern("user{:05}", &lab.password).unwrap().of(user);
            let connected = Session::connect(LOGON, Arc::new(host), &credential, 0, None).await;
            let mut session = connected.map_err(|failed| failed.error).unwrap();
            let files = planner.files();
            prepare::prepare(&mut session, files, user, &home("", user), |_| ()).await.unwrap();
            session.close().await;
        }
    });
}

/// All users, a step of so many seconds for them, and what would interrupt it.
async fn engine(
    lab: &Samba,
    planner: &Planner,
    seconds: i64,
    parts: SyncSender<Part>,
) -> (Engine, Step, watch::Sender<bool>) {
    let target = Target::parse(&lab.target).unwrap();
    let host = Host::find(target, Config::default(), Clock::start(), true).await.unwrap();
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
            closed: false,
        },
        timeout: Duration::from_secs(30),
        threads: 2,
        interrupted,
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

/// Runs the users for some seconds; what they recorded.
fn run(
    lab: &Samba,
    planner: &Planner,
    seconds: i64,
    tell: impl FnMut(&Progress),
) -> (StepResult, Vec<Part>) {
    let runtime = runtime();
    let (sender, parts) = sync_channel(10_000);
    let result = runtime.block_on(async {
        let (mut engine, step, _interrupt) = engine(lab, planner, seconds, sender).await;
        let result = engine.step(step, false, tell).await;
        assert_eq!(engine.unexpected(), Vec::<(String, u64)>::new());
        engine.recorder().finish();
        result
    });
    (result, parts.into_iter().collect())
}

/// The columns that both sources must agree on, by connection and message.
fn keyed(batches: &[RecordBatch]) -> BTreeMap<(i64, i64, String), BTreeMap<&'static str, String>> {
    const COLUMNS: [&str; 12] = [
        "detail",
        "status_name",
        "path",
        "offset",
        "requested_bytes",
        "transferred_bytes",
        "request_wire_bytes",
        "response_wire_bytes",
        "credit_charge",
        "compound_index",
        "credits_granted",
        "share",
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

fn operations(parts: Vec<Part>) -> Vec<RecordBatch> {
    let batches = parts.into_iter().filter_map(|part| match part {
        Part::Operations(batch) => Some(batch),
        _ => None,
    });
    batches.collect()
}

/// Sessions, trees and opens, each as a line of what both sources must agree on.
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
                let told = (row.share_flags, row.capabilities, row.continuous_availability);
                format!("tree {of:?} {told:?} {:?} {}", row.encrypt_data, row.operations)
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

fn tcpdump(lab: &Samba, file: &Path) -> Option<Child> {
    let port = lab.target.split(':').nth(1)?.split('/').next()?.to_owned();
    let child = Command::new("tcpdump")
        .args(["-i", "lo", "-s", "0", "-B", "65536", "-U", "--immediate-mode", "-w"])
        .arg(file)
        .args(["tcp", "port", &port])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: no tcpdump");
        return None;
    };
    let begin = Instant::now();
    while !file.exists() || file.metadata().unwrap().len() < 24 {
        if child.try_wait().unwrap().is_some() || begin.elapsed() > Duration::from_secs(10) {
            eprintln!("skipped: tcpdump may not capture here (needs root)");
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(child)
}

#[test]
fn a_run_records_what_a_capture_shows() {
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcap");
    let Some(mut recorder) = tcpdump(&lab, &file) else { return };
    let (result, parts) = run(&lab, &planner, 8, |_| ());
    // The kernel hands the last packets over with some delay.
    std::thread::sleep(Duration::from_secs(2));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(recorder.id() as i32),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    recorder.wait().unwrap();
    assert!(result.ended > 5, "{result:?}");
    let decoder = Decoder::open(vec![Input::Path(file)], Options::default()).unwrap();
    let captured: Vec<Part> = decoder.map(|part| part.unwrap()).collect();
    let (of_run, of_capture) = (entities(&parts), entities(&captured));
    assert!(of_run.iter().filter(|line| line.starts_with("open ")).count() > 20);
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).take(5).cloned().collect()
    };
    let differences = (only(&of_run, &of_capture), only(&of_capture, &of_run));
    assert_eq!(differences, (Vec::new(), Vec::new()), "the run alone, the capture alone");
    let (recorded, captured) = (operations(parts), operations(captured));
    let (recorded, captured) = (keyed(&recorded), keyed(&captured));
    let mut wrong = Vec::new();
    let mut late: Vec<i64> = Vec::new();
    for (key, mine) in &recorded {
        let Some(theirs) = captured.get(key) else {
            wrong.push(format!("{key:?} is not in the capture"));
            continue;
        };
        for (name, value) in mine {
            let other = theirs.get(name);
            if let "request_start" | "response_end" = *name {
                let other: i64 = other.map_or(0, |time| time.parse().unwrap());
                late.push((value.parse::<i64>().unwrap() - other).abs());
            } else if *name == "share" && matches!(key.2.as_str(), "Cancel" | "Logoff") {
                // Their headers name no tree; the client knows it all the same.
            } else if other != Some(value) {
                wrong.push(format!("{key:?} {name}: {value}, captured {other:?}"));
            }
        }
    }
    for key in captured.keys().filter(|key| !recorded.contains_key(*key)) {
        wrong.push(format!("{key:?} was not recorded"));
    }
    let count = wrong.len();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{count} of {}:\n{}", recorded.len(), wrong.join("\n"));
    // The machine may be busy: most times agree to a scheduler's quantum.
    late.sort_unstable();
    let median = late[late.len() / 2];
    assert!(median < 5_000_000, "median difference {median} ns of {}", late.len());
}

/// A server that stands still for two seconds shows in the times of what was due meanwhile.
#[test]
fn a_stalled_server_shows_in_the_response_times() {
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let pids = lab.processes();
    assert!(!pids.is_empty());
    let mut stalled = false;
    let (result, _) = run(&lab, &planner, 10, |progress| {
        if progress.phase == "measured" && progress.elapsed.as_secs() >= 3 && !stalled {
            stalled = true;
            let all = lab.processes();
            let signal = |signal| {
                for &pid in &all {
                    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
                }
            };
            signal(nix::sys::signal::Signal::SIGSTOP);
            let resume = all.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(2));
                for pid in resume {
                    let _ = nix::sys::signal::kill(
                        nix::unistd::Pid::from_raw(pid),
                        nix::sys::signal::Signal::SIGCONT,
                    );
                }
            });
        }
    });
    assert!(stalled);
    let response = result.row.response.unwrap();
    assert!(response.p99_ns > 1_000_000_000, "{response:?}");
    assert!(response.p50_ns < response.p99_ns / 2, "{response:?}");
}

/// Connections that are killed become counted errors, users come back, and the run goes on.
#[test]
fn a_server_that_drops_connections_is_come_back_to() {
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let runtime = runtime();
    let (sender, parts) = sync_channel(10_000);
    let mut killed = false;
    runtime.block_on(async {
        let (mut engine, step, _interrupt) = engine(&lab, &planner, 8, sender).await;
        let broken = engine
            .step(step, false, |progress| {
                if progress.phase == "measured" && progress.elapsed.as_secs() >= 2 && !killed {
                    killed = true;
                    let children = lab.children();
                    let all = move |signal| {
                        for &pid in &children {
                            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
                        }
                    };
                    // Every user has begun a scenario, and none has ended, when they die.
                    all(nix::sys::signal::Signal::SIGSTOP);
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(1500));
                        all(nix::sys::signal::Signal::SIGKILL);
                    });
                }
            })
            .await;
        let told = engine.unexpected();
        assert!(broken.failed > 0 && !told.is_empty(), "{broken:?}");
        // What was broken off is restored: the next step finds its files.
        let whole = engine.step(Step { step: 2, ..step }, false, |_| ()).await;
        assert!(whole.ended > 0 && whole.failed == 0, "{whole:?}");
        assert_eq!(engine.unexpected(), told);
    });
    assert!(killed);
    let (mut connections, mut after) = (0, 0);
    let mut reset_at = i64::MAX;
    let parts: Vec<_> = parts.into_iter().collect();
    for part in &parts {
        if let Part::Connections(rows) = part {
            connections += rows.len();
            let resets = rows.iter().filter(|row| row.end_reason == "reset").map(|row| row.end);
            reset_at = reset_at.min(resets.min().unwrap_or(i64::MAX));
        }
    }
    for part in &parts {
        if let Part::Scenarios(rows) = part {
            let done = |row: &&smbscope_event::run::Scenario| {
                row.outcome == "done" && row.started_at.is_some_and(|start| start > reset_at)
            };
            after += rows.iter().filter(done).count();
        }
    }
    assert!(connections >= 2 * USERS as usize, "{connections} connections");
    assert!(after > 0, "nothing was done after the connections were lost");
}

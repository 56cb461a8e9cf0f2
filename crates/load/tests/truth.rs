//! A run's rows match a capture of it; a stall of the server shows in the times; users return to a
//! server that went away, and the failures are counted.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_capture::{Decoder, Input, Options, Part};
use smbscope_client::Config;
use smbscope_load::capacity::Step;
use smbscope_load::fileset::Scale;
use smbscope_load::workload::Planner;
use smbscope_testing::run::{
    USERS, agree, engine, operations, prepare, run, runtime, same_entities, tcpdump, workload,
};
use smbscope_testing::samba::samba;

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
    same_entities(&parts, &captured);
    let late = agree(&operations(parts), &operations(captured));
    // The machine may be busy: most times agree to a scheduler's quantum.
    let median = late[late.len() / 2];
    assert!(median < 5_000_000, "median difference {median} ns of {}", late.len());
}

/// A server that stops for two seconds shows in the times of the executions due meanwhile.
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

/// Connections that are killed become counted errors, users reconnect, and the run continues.
#[test]
fn a_server_that_drops_connections_is_come_back_to() {
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let runtime = runtime();
    let (sender, parts) = sync_channel(10_000);
    let mut killed = false;
    runtime.block_on(async {
        let (mut engine, step, _interrupt) =
            engine(&lab, &planner, Config::default(), 8, sender).await;
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
                    // Every user has begun a scenario, and none has ended, when the connections die.
                    all(nix::sys::signal::Signal::SIGSTOP);
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(1500));
                        all(nix::sys::signal::Signal::SIGKILL);
                    });
                }
            })
            .await;
        let unexpected = engine.unexpected();
        assert!(broken.failed > 0 && !unexpected.is_empty(), "{broken:?}");
        // The files of interrupted executions are restored: the next step finds them.
        let whole = engine.step(Step { step: 2, ..step }, false, |_| ()).await;
        assert!(whole.ended > 0 && whole.failed == 0, "{whole:?}");
        assert_eq!(engine.unexpected(), unexpected);
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
            let done = |row: &&smbscope_tables::run::Scenario| {
                row.outcome == "done" && row.started_at.is_some_and(|start| start > reset_at)
            };
            after += rows.iter().filter(done).count();
        }
    }
    assert!(connections >= 2 * USERS as usize, "{connections} connections");
    assert!(after > 0, "nothing was done after the connections were lost");
}

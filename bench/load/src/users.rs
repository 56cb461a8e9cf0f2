//! Users as `smbscope load` has them, logged on and waiting for their first scenario.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_client::Credential;
use smbscope_load::fileset::Scale;
use smbscope_load::recorder::Recorder;
use smbscope_load::run::user::{Files, User};
use smbscope_load::run::users::{Credentials, Shard};
use smbscope_load::run::{Engine, Pace, Parts};
use smbscope_load::workload::{ClientCache, Planner, Workload};
use tokio::time::Instant;

use crate::measure::{Figures, resident_kb};
use crate::{Case, ours};

/// An hour: no user begins while this runs.
const LATER: Duration = Duration::from_secs(3600);

/// Measures one case.
pub async fn run(case: Arc<Case>) -> Figures {
    let (sender, parts) = sync_channel(4);
    std::thread::spawn(move || parts.iter().for_each(drop));
    let (_interrupt, interrupted) = tokio::sync::watch::channel(false);
    let workload = Workload::built_in("homefolder").unwrap();
    let planner = Planner::new(Arc::new(workload), 1, Scale::FULL);
    let engine = Engine::new(Parts {
        run: "bench".to_owned(),
        host: ours::host(&case, true).await,
        planner: planner.clone(),
        recorder: Arc::new(Recorder::new("bench", 2, sender)),
        credentials: Credentials::List(vec![Credential::new("user", "x")]),
        cache: ClientCache::default(),
        shard: Shard::ALL,
        pace: Pace {
            ramp_per_second: 1000.0,
            warm_up: Duration::ZERO,
            cool_down: Duration::ZERO,
            grace: Pace::GRACE,
            closed: false,
        },
        timeout: Duration::from_secs(60),
        threads: 2,
        interrupted,
    });
    let (_stop, stopped) = tokio::sync::watch::channel(None);
    let mut before = 0.0;
    for number in 1..=case.sessions as u64 {
        let now = Instant::now();
        let user = User {
            shared: engine.shared().clone(),
            number,
            place: 0,
            plans: planner.user(number, ""),
            begin: now + LATER,
            log_on: now,
            stop: stopped.clone(),
            lost: None,
            files: Files::AsPlanned,
            restores: 0,
        };
        tokio::spawn(user.run());
        if number == 1 {
            connected(1).await;
            before = resident_kb();
        } else if number % 64 == 0 {
            connected(number as usize - 32).await;
        }
    }
    connected(case.sessions).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = resident_kb();
    let session_kb = (after - before) / (case.sessions - 1).max(1) as f64;
    Figures { session_kb, total_mb: after / 1024.0, ..Figures::default() }
}

/// Waits until the given number of sockets is open and what is sent over them then has arrived.
async fn connected(count: usize) {
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        if files >= count + 8 {
            return;
        }
    }
}

//! One cell of a table of throughput: a scenario with one user, at a round trip and a block size.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_client::clock::Clock;
use smbscope_client::{Config, Host, Target};
use smbscope_load::capacity::{Purpose, Step};
use smbscope_load::recorder::Recorder;
use smbscope_load::run::users::{Credentials, Shard};
use smbscope_load::run::{Engine, Pace, Parts};
use smbscope_load::workload::{ClientCache, Planner};
use smbscope_tables::readable;
use tokio::sync::watch;

/// Round trips of a cell before its first block.
const BEFORE_THE_COPY: u32 = 20;

/// What a cell measures.
pub struct CellPlan {
    /// The share.
    pub target: Target,
    /// How the user logs on.
    pub credentials: Credentials,
    /// Properties of the client, with the cell's round trip.
    pub config: Config,
    /// The scenario alone, with the cell's block size.
    pub planner: Planner,
    /// What the client does with its knowledge of directories.
    pub cache: ClientCache,
    /// A scenario that takes longer has failed.
    pub timeout: Duration,
    /// How long blocks are transferred.
    pub time: Duration,
    /// Threads of the runtime.
    pub threads: usize,
}

/// What a cell showed.
pub struct CellOutcome {
    /// Bytes of answered requests, divided by the time with at least one request in flight.
    pub bytes_per_s: f64,
    /// Reads and writes.
    pub n: u64,
    /// Why nothing could be measured.
    pub error: Option<String>,
}

/// Measures a cell.
pub async fn cell(plan: CellPlan) -> anyhow::Result<CellOutcome> {
    let (sender, parts) = sync_channel(64);
    // The rows are discarded.
    std::thread::spawn(move || parts.into_iter().for_each(drop));
    // Logon and open take about BEFORE_THE_COPY round trips before the copy starts.
    let time = plan.time + plan.config.delay * BEFORE_THE_COPY;
    let host = Host::find(plan.target, plan.config, Clock::precise(), true).await?;
    let (_interrupt, interrupted) = watch::channel(false);
    let mut engine = Engine::new(Parts {
        run: "matrix".to_owned(),
        host: Arc::new(host),
        planner: plan.planner,
        recorder: Arc::new(Recorder::new("matrix", plan.threads, sender)),
        credentials: plan.credentials,
        cache: plan.cache,
        shard: Shard::ALL,
        pace: Pace {
            ramp_per_second: 1000.0,
            warm_up: Duration::ZERO,
            cool_down: Duration::ZERO,
            closed: true,
            // Blocks are measured, not files: a file may take longer than the cell.
            grace: Duration::ZERO,
            outage: Pace::OUTAGE,
        },
        timeout: plan.timeout.max(time * 4),
        threads: plan.threads,
        interrupted,
        logons: None,
    });
    let duration_ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let step = Step {
        step: 1,
        users: 1,
        repeat: 1,
        purpose: Purpose::Confirm,
        duration_ns,
        may_end_early: false,
    };
    engine.step(step, false, |_| ()).await;
    let moved = engine.moved();
    let mut error = engine.unexpected().into_iter().next().map(|(what, _)| what);
    if moved.bytes == 0 && error.is_none() {
        let time = readable::duration(duration_ns);
        error = Some(format!("no block was transferred in {time}: use a longer --matrix-time"));
    }
    let took = moved.busy.as_secs_f64();
    Ok(CellOutcome {
        bytes_per_s: if took > 0.0 { moved.bytes as f64 / took } else { 0.0 },
        n: moved.operations,
        error,
    })
}

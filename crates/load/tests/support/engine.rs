//! A run of one step, and all that it recorded.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use smbscope_client::Host;
use smbscope_load::capacity::{Purpose, Step, StepResult};
use smbscope_load::recorder::Recorder;
use smbscope_load::run::users::{Credentials, Shard};
use smbscope_load::run::{Engine, Pace, Parts, Progress};
use smbscope_load::workload::{ClientCache, Planner};
use smbscope_tables::Part;
use smbscope_tables::run::{Scenario, Step as StepRow};
use smbscope_tables::tables::Connection;
use tokio::sync::watch;

/// What is to be run.
pub struct Asked {
    pub host: Host,
    pub planner: Planner,
    pub credentials: Credentials,
    /// On all machines.
    pub users: u64,
    pub shard: Shard,
    /// All users log on in this time.
    pub ramp: Duration,
    pub warm_up: Duration,
    pub window: Duration,
    pub closed: bool,
    /// For what is in flight at the end.
    pub grace: Duration,
    pub timeout: Duration,
}

/// What it showed.
pub struct Shown {
    pub result: StepResult,
    /// The most frequent first.
    pub unexpected: Vec<(String, u64)>,
    /// Its row of the table of steps.
    #[allow(dead_code)]
    pub steps: Vec<StepRow>,
    pub scenarios: Vec<Scenario>,
    pub connections: Vec<Connection>,
    pub operations: Vec<RecordBatch>,
}

/// Runs it in the caller's runtime.
#[allow(dead_code)]
pub async fn run(asked: Asked, tell: impl FnMut(&Progress)) -> Shown {
    run_until(asked, None, tell).await
}

/// The same, interrupted after some time.
pub async fn run_until(asked: Asked, end: Option<Duration>, tell: impl FnMut(&Progress)) -> Shown {
    let (sender, parts) = sync_channel(100_000);
    let (interrupt, interrupted) = watch::channel(false);
    let mut engine = Engine::new(Parts {
        run: "run".into(),
        host: Arc::new(asked.host),
        planner: asked.planner,
        recorder: Arc::new(Recorder::new("run", 1, sender)),
        credentials: asked.credentials,
        cache: ClientCache::Published,
        shard: asked.shard,
        pace: Pace {
            ramp_per_second: asked.users as f64 / asked.ramp.as_secs_f64(),
            warm_up: asked.warm_up,
            cool_down: Duration::ZERO,
            grace: asked.grace,
            closed: asked.closed,
        },
        timeout: asked.timeout,
        threads: 1,
        interrupted,
    });
    let step = Step {
        step: 1,
        users: asked.users,
        repeat: 1,
        purpose: Purpose::Confirm,
        duration_ns: asked.window.as_nanos() as i64,
        may_end_early: false,
    };
    // Without an end, the sender must stay alive.
    let interrupting = tokio::spawn(async move {
        tokio::time::sleep(end.unwrap_or(Duration::MAX)).await;
        interrupt.send_replace(true);
    });
    let result = engine.step(step, false, tell).await;
    interrupting.abort();
    let unexpected = engine.unexpected();
    drop(engine);
    let (steps, scenarios, connections, operations) = Default::default();
    let mut shown = Shown { result, unexpected, steps, scenarios, connections, operations };
    for part in parts {
        match part {
            Part::Steps(rows) => shown.steps.extend(rows),
            Part::Scenarios(rows) => shown.scenarios.extend(rows),
            Part::Connections(rows) => shown.connections.extend(rows),
            Part::Operations(batch) => shown.operations.push(batch),
            _ => {}
        }
    }
    shown
}

impl Shown {
    /// How many operations were recorded.
    #[allow(dead_code)]
    pub fn operations(&self) -> usize {
        self.operations.iter().map(RecordBatch::num_rows).sum()
    }

    /// How many operations were answered with this status.
    #[allow(dead_code)]
    pub fn answers(&self, status: &str) -> usize {
        let count = |batch: &RecordBatch| {
            let names = cast(&batch["status_name"], &DataType::Utf8).unwrap();
            names.as_string::<i32>().iter().filter(|name| *name == Some(status)).count()
        };
        self.operations.iter().map(count).sum()
    }

    /// How often something unexpected happened that says so.
    #[allow(dead_code)]
    pub fn told(&self, what: &str) -> u64 {
        let told = self.unexpected.iter().filter(|(text, _)| text.contains(what));
        told.map(|(_, count)| count).sum()
    }
}

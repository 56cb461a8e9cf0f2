//! A run of one step, and everything that it recorded.

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
use smbscope_tables::description::Outage;
use smbscope_tables::run::{Scenario, Step as StepRow};
use smbscope_tables::tables::Connection;
use tokio::sync::watch;

/// The settings of a run.
pub struct Asked {
    pub host: Host,
    pub planner: Planner,
    pub credentials: Credentials,
    /// Users on all machines.
    pub users: u64,
    pub shard: Shard,
    /// All users log on during this time.
    pub ramp: Duration,
    pub warm_up: Duration,
    pub window: Duration,
    pub closed: bool,
    /// Time for operations in flight at the end.
    pub grace: Duration,
    pub timeout: Duration,
    /// The step ends when the server does not answer for this long.
    pub outage: Duration,
}

impl Asked {
    /// Users who all run on this machine, in an open loop, after a second of warm-up.
    pub fn new(
        host: Host,
        planner: Planner,
        credentials: Credentials,
        users: u64,
        window: Duration,
    ) -> Asked {
        Asked {
            host,
            planner,
            credentials,
            users,
            shard: Shard::ALL,
            ramp: Duration::from_millis(200),
            warm_up: Duration::from_secs(1),
            window,
            closed: false,
            grace: Pace::GRACE,
            timeout: Duration::from_secs(10),
            outage: Pace::OUTAGE,
        }
    }
}

/// The result of a run.
pub struct Shown {
    pub result: StepResult,
    /// The most frequent first.
    pub unexpected: Vec<(String, u64)>,
    /// Times without an answer that ended.
    #[allow(dead_code)]
    pub outages: Vec<Outage>,
    /// Users whom the server refused to log on.
    #[allow(dead_code)]
    pub refused: Vec<String>,
    /// Its row of the table of steps.
    #[allow(dead_code)]
    pub steps: Vec<StepRow>,
    pub scenarios: Vec<Scenario>,
    pub connections: Vec<Connection>,
    pub operations: Vec<RecordBatch>,
}

/// Runs it in the caller's runtime.
#[allow(dead_code)]
pub async fn run(settings: Asked, progress: impl FnMut(&Progress)) -> Shown {
    run_until(settings, None, progress).await
}

/// Likewise, interrupted after some time.
pub async fn run_until(
    settings: Asked,
    end: Option<Duration>,
    progress: impl FnMut(&Progress),
) -> Shown {
    let (sender, parts) = sync_channel(100_000);
    let (interrupt, interrupted) = watch::channel(false);
    let mut engine = Engine::new(Parts {
        run: "run".into(),
        host: Arc::new(settings.host),
        planner: settings.planner,
        recorder: Arc::new(Recorder::new("run", 1, sender)),
        credentials: settings.credentials,
        cache: ClientCache::Published,
        shard: settings.shard,
        pace: Pace {
            ramp_per_second: settings.users as f64 / settings.ramp.as_secs_f64(),
            warm_up: settings.warm_up,
            cool_down: Duration::ZERO,
            grace: settings.grace,
            closed: settings.closed,
            outage: settings.outage,
        },
        timeout: settings.timeout,
        threads: 1,
        interrupted,
        logons: None,
    });
    let step = Step {
        step: 1,
        users: settings.users,
        repeat: 1,
        purpose: Purpose::Confirm,
        duration_ns: settings.window.as_nanos() as i64,
        may_end_early: false,
    };
    // Without an end, the sender must stay alive.
    let interrupting = tokio::spawn(async move {
        tokio::time::sleep(end.unwrap_or(Duration::MAX)).await;
        interrupt.send_replace(true);
    });
    let result = engine.step(step, false, progress).await;
    interrupting.abort();
    let unexpected = engine.unexpected();
    let outages = engine.shared().answers().outages.clone();
    let refused = engine.shared().refused_users().values().map(|(name, _)| name.clone()).collect();
    drop(engine);
    let (steps, scenarios, connections, operations) = Default::default();
    let mut shown =
        Shown { result, unexpected, outages, refused, steps, scenarios, connections, operations };
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
    /// Number of recorded operations.
    #[allow(dead_code)]
    pub fn operations(&self) -> usize {
        self.operations.iter().map(RecordBatch::num_rows).sum()
    }

    /// Number of operations with this status.
    #[allow(dead_code)]
    pub fn answers(&self, status: &str) -> usize {
        let count = |batch: &RecordBatch| {
            let names = cast(&batch["status_name"], &DataType::Utf8).unwrap();
            names.as_string::<i32>().iter().filter(|name| *name == Some(status)).count()
        };
        self.operations.iter().map(count).sum()
    }

    /// How often something unexpected happened whose description contains `what`.
    #[allow(dead_code)]
    pub fn told(&self, what: &str) -> u64 {
        let matching = self.unexpected.iter().filter(|(text, _)| text.contains(what));
        matching.map(|(_, count)| count).sum()
    }
}

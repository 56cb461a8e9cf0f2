//! A run that moves bulk data: from a plan to recorded rows and its outcome.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_client::clock::Clock;
use smbscope_client::multichannel::Choice;
use smbscope_client::{ClientError, Config, Credential, Host, Target};
use smbscope_counters::Sampler;
use smbscope_load::migrate::{self, MigrationObserver, MigrationOutcome, MigrationPlan, Paths};
use smbscope_load::recorder::Recorder;
use smbscope_load::workload::{MIGRATIONS, Migration};
use smbscope_tables::Part;
use smbscope_tables::description::{CLOSED, RunDescription, Setting};
use smbscope_wire::smb2::Command;
use smbscope_wire::status::Status;
use tokio::sync::watch;

use super::counters;
use super::describe::{digest, machine};
use super::progress::RunSoFar;
use super::writer::{Writer, coverage};
use super::{runtime, unless_interrupted};
use crate::interrupt;

/// Most parts that wait for the disk.
const PARTS_WAITING: usize = 64;

/// Everything that a run needs to know.
pub struct BulkPlan {
    /// The share.
    pub target: Target,
    /// The account that logs on.
    pub credential: Credential,
    /// Properties of the client.
    pub config: Config,
    /// The workload, and its text.
    pub migration: Migration,
    /// See `migration`.
    pub workload_text: String,
    /// Seed of the contents.
    pub seed: u64,
    /// The channels.
    pub paths: Paths,
    /// How requests are distributed.
    pub choice: Choice,
    /// Whether all data is compared.
    pub verify: bool,
    /// Whether the files stay.
    pub keep: bool,
    /// A request without an answer for this time has failed.
    pub timeout: Duration,
    /// Threads; 0: one per CPU.
    pub threads: usize,
    /// The emulated link of a lab.
    pub line: Option<String>,
    /// The process of the server if it is a lab.
    pub smbd: Option<u32>,
    /// Endpoints of the server's counters.
    pub metrics: Vec<String>,
    /// The run folder.
    pub out: Option<PathBuf>,
    /// Whether a dataset in it is replaced.
    pub force: bool,
}

/// Runs the plan to its end, or until it is interrupted; also returns whether writing the folder failed.
pub fn run(
    plan: BulkPlan,
    observer: &mut dyn MigrationObserver,
) -> anyhow::Result<(MigrationOutcome, anyhow::Result<()>)> {
    let (runtime, threads) = runtime(plan.threads)?;
    let clock = runtime.block_on(async { Clock::precise() });
    let finding = async {
        Ok(Host::find(plan.target.clone(), plan.config.clone(), clock.clone(), true).await?)
    };
    let mut host = runtime.block_on(unless_interrupted(finding))?;
    if let Paths::Listed(list) = &plan.paths
        && let Some(&(first, _)) = list.first()
    {
        host = host.at_address(first);
    }
    let mut description = describe(&plan, &host);
    description.start_ns = clock.now();
    description.identify();
    description.recording = description.run.clone();
    let sources = counters::sources(&plan.metrics, &host, plan.smbd, &mut description)?;
    let user = plan.credential.name();
    let (sender, parts) = sync_channel(PARTS_WAITING);
    let so_far = RunSoFar::new(&description);
    let writer = Writer::begin(plan.out.clone(), plan.force, &description, parts, so_far)?;
    let recorder = Arc::new(Recorder::new(&description.recording, threads, sender));
    let sampler = counters::sample(sources, clock.clone(), &recorder)?;
    let (interrupt, interrupted) = watch::channel(false);
    let cannot_write = writer.failed.clone();
    let migration = MigrationPlan {
        host: Arc::new(host),
        credential: plan.credential,
        migration: plan.migration,
        seed: plan.seed,
        paths: plan.paths,
        choice: plan.choice,
        verify: plan.verify,
        keep: plan.keep,
        timeout: plan.timeout,
        interrupted,
        recorder: recorder.clone(),
    };
    let outcome = runtime.block_on(async {
        tokio::spawn(async move {
            while !interrupt::asked() && !cannot_write.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            interrupt.send_replace(true);
        });
        migrate::run(migration, observer).await
    });
    description.end_ns = Some(clock.now());
    for report in sampler.map(Sampler::stop).unwrap_or_default() {
        description.counters_missed += report.failures;
        if let Some(warning) = report.warning() {
            observer.say(&warning);
        }
    }
    recorder.finish();
    recorder.part(Part::Coverage(Box::new(coverage(&description, &recorder))));
    drop(recorder);
    let written = writer.end(description, !interrupt::asked());
    Ok((outcome.map_err(|error| logon_problem(error, &user))?, written))
}

/// Says which user the server does not accept.
fn logon_problem(error: ClientError, user: &str) -> anyhow::Error {
    match error {
        ClientError::Refused { command: Command::SESSION_SETUP, status: Status::LOGON_FAILURE } => {
            anyhow::anyhow!(
                "the server does not accept user {user} with this password ({error}): check --user (of a domain: DOMAIN\\NAME) and the password"
            )
        }
        error => error.into(),
    }
}

/// What the manifest says.
fn describe(plan: &BulkPlan, host: &Host) -> RunDescription {
    let built_in = MIGRATIONS.iter().any(|(name, _)| *name == plan.migration.name);
    let setting = |name: &str, value: String| Setting { name: name.to_owned(), value };
    let migration = &plan.migration;
    let mut settings = vec![
        setting("direction", migration.direction.name().to_owned()),
        setting("size", format!("{} bytes", migration.bytes)),
        setting("block", format!("{} bytes", migration.block_bytes)),
        setting("depth", migration.depth.to_string()),
        setting("streams", migration.streams.to_string()),
    ];
    if plan.choice == Choice::RoundRobin {
        settings.push(setting("channel choice", "round-robin".to_owned()));
    }
    let channels = match &plan.paths {
        Paths::Count(count) => u64::from(*count),
        Paths::Listed(list) => list.iter().map(|(_, count)| u64::from(*count)).sum(),
        Paths::Offered(_) => {
            settings.push(setting("channels", "by the server's list of interfaces".to_owned()));
            1
        }
    };
    let mut description = RunDescription {
        workload: migration.name.clone(),
        workload_digest: digest(&plan.workload_text),
        workload_text: (!built_in).then(|| plan.workload_text.clone()),
        seed: plan.seed,
        scale: 1.0,
        user_names: Some(plan.credential.name()),
        line: plan.line.clone(),
        shard: 1,
        shards: 1,
        users_from: 1,
        users_to: 1,
        users_every: 1,
        users_total: 1,
        server: host.target.host.clone(),
        server_port: u64::from(host.target.port),
        share: host.target.share.clone(),
        channels,
        settings,
        pacing: CLOSED.to_owned(),
        emulated_rtt_ns: (!host.config.delay.is_zero())
            .then(|| i64::try_from(host.config.delay.as_nanos()).unwrap_or(i64::MAX)),
        smbscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: std::env::args().map(|word| counters::without_logon(&word)).collect(),
        ..RunDescription::default()
    };
    machine(&mut description);
    description
}

//! A run of simulated users: its steps with a fixed number of users, or a search for the capacity.
//!
//! Connects the engine, the counters, the writer and the numbers of each step. It neither knows the command
//! line nor prints: an [`Observer`] receives what happens.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_analysis::summary::{Failure as FailedScenarios, Load, ScenarioRow, StepRow};
use smbscope_client::clock::Clock;
use smbscope_client::{Compounds, Config, Host, Target};
use smbscope_counters::Sampler;
use smbscope_load::capacity::interval::CONFIDENCE;
use smbscope_load::capacity::table::{Row, ScenarioRow as ScenarioTimes};
use smbscope_load::capacity::{
    Exceeded, Limit, Purpose, Search, Settings, Step, StepResult, Table,
};
use smbscope_load::recorder::Recorder;
use smbscope_load::run::users::{Credentials, Shard};
use smbscope_load::run::{Engine, Pace, Parts, Progress};
use smbscope_load::stats::Summary;
use smbscope_load::workload::{ClientCache, Planner};
use smbscope_tables::Part;
use smbscope_tables::code::command_names;
use smbscope_tables::description::{Capacity, RunDescription};
use smbscope_tables::readable;
use tokio::sync::watch;

use super::counters;
use super::describe::{About, describe};
use super::preflight::{Needed, check_users, find_compounds};
use super::progress::RunSoFar;
use super::writer::{Writer, coverage};
use super::{runtime, unless_interrupted};
use crate::exit::{Code, Failure};
use crate::interrupt;

/// Users that the server refused who are named.
const REFUSED_MAX: usize = 1_000;
/// Most parts that wait for the disk.
const PARTS_WAITING: usize = 64;

/// How the largest number of users is searched.
#[derive(Clone, Debug)]
pub struct SearchPlan {
    /// Numbers of users to try instead of a search; none to search.
    pub points: Vec<u64>,
    /// Users of the first step.
    pub start_users: u64,
    /// Most users; as many as have files on the share if not given.
    pub max_users: Option<u64>,
    /// Accuracy, percent.
    pub resolution_percent: f64,
    /// Runs of the steps on both sides of the limit.
    pub repeats: u32,
    /// Whether steps have their full length even if their result is certain earlier.
    pub full_steps: bool,
}

/// Everything that a run needs to know.
pub struct RunPlan {
    /// The share.
    pub target: Target,
    /// How users log on.
    pub credentials: Credentials,
    /// Properties of the client.
    pub config: Config,
    /// Which related requests are sent as compounds; found out if not given.
    pub compounds: Option<Compounds>,
    /// What users do.
    pub planner: Planner,
    /// What the manifest says of the request.
    pub about: About,
    /// What the client does with its knowledge of directories.
    pub cache: ClientCache,
    /// A scenario that takes longer has failed.
    pub timeout: Duration,
    /// Users, if no capacity is searched.
    pub users: u64,
    /// The search for the capacity.
    pub search: Option<SearchPlan>,
    /// Limits on response times.
    pub limits: Vec<Limit>,
    /// This machine's share of the users.
    pub shard: Shard,
    /// Ramp, warm-up and cool-down.
    pub pace: Pace,
    /// Length of a measured window.
    pub duration: Duration,
    /// The agreed start, ns since 1970.
    pub start_at: Option<i64>,
    /// Threads of the users; 0: one per CPU.
    pub threads: usize,
    /// The process of the server if it is a lab.
    pub smbd: Option<u32>,
    /// The file of a lab's logons.
    pub logons: Option<File>,
    /// Endpoints of the server's counters.
    pub metrics: Vec<String>,
    /// The run folder.
    pub out: Option<PathBuf>,
    /// Whether a dataset in it is replaced.
    pub force: bool,
}

/// A step that ended.
pub struct StepDone<'a> {
    /// Its numbers.
    pub row: &'a StepRow,
    /// Limits on response times that it did not keep, in words.
    pub limits: Vec<String>,
}

/// Receives what happens during a run.
pub trait Observer {
    /// Something to know now, such as a warning.
    fn say(&mut self, text: &str);
    /// The first step is about to begin.
    fn begin(&mut self, scenarios_per_user_second: f64);
    /// About once a second; `steps_left`: steps that the search probably still needs, the running one included.
    fn progress(&mut self, progress: &Progress, steps_left: Option<u64>);
    /// A step ended.
    fn step(&mut self, step: &StepDone<'_>);
}

/// What a run showed.
pub struct RunOutcome {
    /// The steps and the answer, for JSON.
    pub table: Table,
    /// Response times of the scenarios with the answer's users, or of the only step.
    pub scenarios: Vec<ScenarioRow>,
    /// The users of `scenarios`.
    pub users: Option<u64>,
    /// Scenarios that failed.
    pub failures: Vec<FailedScenarios>,
    /// Overall response time of operations as SPECstorage defines it, ns.
    pub overall_response_ns: Option<i64>,
    /// Unexpected replies and their number, the most frequent first.
    pub unexpected: Vec<(String, u64)>,
    /// Since when the server does not answer, ns since 1970.
    pub server_gone_ns: Option<i64>,
    /// Users whom the server refused to log on: name and reason.
    pub refused: Vec<(String, String)>,
    /// All numbers of the run, as its report has them.
    pub load: Load,
    /// Whether writing the folder failed.
    pub written: anyhow::Result<()>,
}

/// Runs the plan to its end, or until it is interrupted.
pub fn run(plan: RunPlan, observer: &mut dyn Observer) -> anyhow::Result<RunOutcome> {
    check_limits(&plan.limits, &plan.planner)?;
    let (runtime, threads) = runtime(plan.threads)?;
    let clock = runtime.block_on(async { Clock::precise() });
    let finding = async {
        Ok(Host::find(plan.target.clone(), plan.config.clone(), clock.clone(), true).await?)
    };
    let mut host: Host = runtime.block_on(unless_interrupted(finding))?;
    let choosing = choose_compounds(&plan, &mut host, observer);
    runtime.block_on(unless_interrupted(choosing))?;
    let host = Arc::new(host);
    let mut description = describe(&plan, &host);
    let needed = match &plan.search {
        None => Needed::Users(plan.users),
        Some(SearchPlan { max_users: Some(most), .. }) => Needed::Users(*most),
        Some(_) => Needed::AllPrepared,
    };
    let needed = (plan.timeout, plan.shard, needed);
    let checking =
        check_users(needed, plan.cache, &host, &plan.credentials, &plan.planner, &mut description);
    let most = runtime.block_on(unless_interrupted(checking))?;
    number_users(&mut description, plan.shard, most);
    // A run starts at the agreed time, not when its machines are started.
    description.start_ns = clock.now().max(plan.start_at.unwrap_or(i64::MIN));
    description.identify();
    description.recording = match description.shards {
        0 | 1 => description.run.clone(),
        _ => format!("{}-{}", description.run, description.shard),
    };
    let sources = counters::sources(&plan.metrics, &host, plan.smbd, &mut description)?;
    let (sender, parts) = sync_channel(PARTS_WAITING);
    let so_far = RunSoFar::new(&description);
    let writer = Writer::begin(plan.out.clone(), plan.force, &description, parts, so_far.clone())?;
    let recorder = Arc::new(Recorder::new(&description.recording, threads, sender));

    if let Some(start_at) = plan.start_at {
        wait_until(start_at, &clock, observer)?;
    }
    let sampler = counters::sample(sources, clock.clone(), &recorder)?;
    let (interrupt, interrupted) = watch::channel(false);
    let engine = Engine::new(Parts {
        run: description.run.clone(),
        host: host.clone(),
        planner: plan.planner.clone(),
        recorder: recorder.clone(),
        credentials: plan.credentials.clone(),
        cache: plan.cache,
        shard: plan.shard,
        pace: plan.pace,
        timeout: plan.timeout,
        threads,
        interrupted,
        logons: plan.logons.as_ref().and_then(|file| file.try_clone().ok()),
    });
    observer.begin(1.0 / plan.planner.workload().mean_interval().as_secs_f64());
    let cannot_write = writer.failed.clone();
    let mut steps = Steps { plan: &plan, so_far: &so_far, table: Table::default(), gone: None };
    let engine = runtime.block_on(async {
        tokio::spawn(async move {
            // If the recording cannot be written any more, the run ends with what was measured.
            while !interrupt::asked() && !cannot_write.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            interrupt.send_replace(true);
        });
        steps.course(most, engine, observer).await
    });
    let Steps { mut table, gone, .. } = steps;
    let mut load = complete(&mut description, &mut table, &so_far, gone);
    description.end_ns = Some(clock.now());
    let shared = engine.shared();
    let refused: Vec<_> = shared.refused_users().values().take(REFUSED_MAX).cloned().collect();
    description.users_refused = refused.iter().map(|(name, _)| name.clone()).collect();
    description.outages.clone_from(&shared.answers().outages);
    description.opens_reconnected = shared.opens_resumed();
    for report in sampler.map(Sampler::stop).unwrap_or_default() {
        description.counters_missed += report.failures;
        if let Some(warning) = report.warning() {
            observer.say(&warning);
        }
    }
    let saved = load.scenarios_by_step.iter().map(|row| row.saved_mean).sum::<f64>();
    if plan.cache == ClientCache::DirLease && !table.rows.is_empty() && saved == 0.0 {
        observer.say(
            "warning: no operation was saved by directory leases: the server offers them but granted none",
        );
    }
    let unexpected = engine.unexpected();
    recorder.finish();
    description.opens_lost = recorder.opens_lost();
    recorder.part(Part::Coverage(Box::new(coverage(&description, &recorder))));
    // The engine's users have ended, so these are the last owners of the other end of the channel.
    drop(engine);
    drop(recorder);
    let written = writer.end(description.clone(), !interrupt::asked());
    let server_gone_ns = description.server_gone_ns;
    for part in &mut load.runs {
        part.description = description.clone();
        part.complete = !interrupt::asked();
    }
    let users = match &table.answer {
        Some(answer) => Some(answer.users),
        None => table.rows.last().map(|row| row.users),
    };
    let answer = load.answers.first();
    Ok(RunOutcome {
        scenarios: load.scenarios.clone(),
        users,
        overall_response_ns: answer.and_then(|answer| answer.overall_response_ns),
        failures: load.failures.clone(),
        unexpected,
        server_gone_ns,
        refused,
        table,
        load,
        written,
    })
}

/// Which compounds users send: as the plan says, or those that the server answers.
async fn choose_compounds(
    plan: &RunPlan,
    host: &mut Host,
    observer: &mut dyn Observer,
) -> anyhow::Result<()> {
    host.config.compounds = match plan.compounds {
        Some(compounds) => compounds,
        None => {
            let quiet =
                Host::find(host.target.clone(), host.config.clone(), host.clock.clone(), false)
                    .await?;
            let finding =
                find_compounds(plan.timeout, Arc::new(quiet), &plan.credentials, plan.shard.index);
            let (compounds, problem) = finding.await?;
            let problem = problem.unwrap_or_default();
            match compounds {
                Compounds::All => {}
                Compounds::Opening => observer.say(&format!(
                    "the server answers only related compounds that begin with a Create (others: {problem}): other requests are sent one by one, as with --compounds create; some steps of a scenario then need more round trips"
                )),
                Compounds::Off => observer.say(&format!(
                    "the server does not answer related compounds ({problem}): requests are sent one by one, as with --compounds off; each step of a scenario then needs more round trips"
                )),
            }
            compounds
        }
    };
    Ok(())
}

/// Which of all users this machine simulates.
fn number_users(description: &mut RunDescription, shard: Shard, most: u64) {
    let here: Vec<u64> = shard.users(most).collect();
    description.users_from = here.first().copied().unwrap_or(0);
    description.users_to = here.last().copied().unwrap_or(0);
    description.users_every = shard.count;
    description.users_total = most;
}

/// Limits are on scenarios of the workload or on commands.
fn check_limits(limits: &[Limit], planner: &Planner) -> anyhow::Result<()> {
    let scenarios: Vec<&str> =
        planner.workload().scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    for limit in limits {
        let Some(name) = &limit.name else { continue };
        if !scenarios.contains(&name.as_str()) && !command_names().contains(&name.as_str()) {
            return Err(Failure::usage(format!(
                "--max-response {limit}: {name} is neither a scenario of the workload ({}) nor a command such as Read",
                scenarios.join(", ")
            )));
        }
    }
    Ok(())
}

/// Completes the answer, and the description with the result; all numbers of the run.
fn complete(
    description: &mut RunDescription,
    table: &mut Table,
    so_far: &RunSoFar,
    gone: Option<i64>,
) -> Load {
    let limited = table.rows.iter().find(|row| row.limited_by_client);
    description.limited_by_client = limited.is_some();
    description.limited_reason = limited.and_then(|row| row.limited_reason.clone());
    description.server_gone_ns = gone;
    let Some(answer) = &mut table.answer else { return so_far.after(0) };
    let mut capacity = Capacity {
        users: (answer.users > 0).then_some(answer.users),
        low: answer.interval.low.map(|low| low.floor() as u64),
        high: answer.interval.high.map(|high| high.ceil() as u64),
        confidence: Some(CONFIDENCE),
        reason: String::new(),
    };
    so_far.answer(capacity.clone());
    let load = so_far.after(0);
    answer.p95_ns = load.answers.first().and_then(|answer| answer.p95_ns);
    capacity.reason = answer.sentence();
    description.capacity = Some(capacity);
    load
}

/// The steps of a run, one after another.
struct Steps<'a> {
    plan: &'a RunPlan,
    so_far: &'a RunSoFar,
    table: Table,
    /// Since when the server does not answer.
    gone: Option<i64>,
}

impl Steps<'_> {
    async fn course(
        &mut self,
        most: u64,
        mut engine: Engine,
        observer: &mut dyn Observer,
    ) -> Engine {
        let duration_ns = i64::try_from(self.plan.duration.as_nanos()).unwrap_or(i64::MAX);
        let Some(plan) = &self.plan.search else {
            let step = Step {
                step: 1,
                users: self.plan.users,
                repeat: 1,
                purpose: Purpose::Confirm,
                duration_ns,
                may_end_early: false,
            };
            let show = |progress: &Progress| observer.progress(progress, None);
            let result = engine.step(step, false, show).await;
            self.ended(result, observer);
            return engine;
        };
        let mut search = match plan.points.as_slice() {
            [] => Search::new(Settings {
                resolution_percent: plan.resolution_percent,
                repeats: plan.repeats,
                ..Settings::new(plan.start_users, most, duration_ns)
            }),
            points => Search::of_points(points.to_vec(), duration_ns),
        };
        while let Some(step) = search.next() {
            let left = Some(search.steps_left());
            let show = |progress: &Progress| observer.progress(progress, left);
            let result = engine.step(step, !plan.full_steps, show).await;
            let is_interrupted = engine.interrupted();
            let result = self.ended(result, observer);
            // An interrupted step is shown, but does not influence the search.
            if is_interrupted {
                search.interrupt();
                break;
            }
            search.report(&result);
        }
        let mut answer = search.answer();
        answer.limits = self.plan.limits.clone();
        self.table.answer = Some(answer);
        engine
    }

    /// Completes the result of a step with the response times of its report, which count scenarios that were
    /// scheduled in the window, compares them with the limits, and shows it.
    fn ended(&mut self, mut result: StepResult, observer: &mut dyn Observer) -> StepResult {
        self.gone = result.gone_since.or(self.gone);
        if result.row.duration_ns == 0 {
            return result;
        }
        let load = self.so_far.after(result.step.step);
        let Some(row) = load.steps.iter().rev().find(|row| row.step == result.step.step) else {
            return result;
        };
        result.row.response = summary(&row.response);
        let scenarios: Vec<_> = load
            .scenarios_by_step
            .iter()
            .filter(|it| it.step == Some(result.step.step))
            .filter_map(|it| {
                let response = summary(&it.response)?;
                Some(ScenarioTimes { scenario: it.scenario.clone(), response })
            })
            .collect();
        result.row.scenarios = scenarios;
        if !result.server_gone() {
            let limits = self.plan.limits.iter();
            result.row.exceeded = limits.filter_map(|limit| exceeded(limit, &result.row)).collect();
        }
        let limits = result.row.exceeded.iter().map(in_words).collect();
        observer.step(&StepDone { row, limits });
        self.table.rows.push(result.row.clone());
        result
    }
}

/// Whether a step did not keep a limit. A scenario or command that did not occur in it keeps every limit.
fn exceeded(limit: &Limit, row: &Row) -> Option<Exceeded> {
    let Some(name) = &limit.name else { return limit.check(row.response.as_ref()) };
    let scenario = row.scenarios.iter().find(|it| it.scenario == *name).map(|it| &it.response);
    let command = || row.commands.iter().find(|it| it.command == *name).map(|it| &it.latency);
    limit.check(Some(scenario.or_else(command)?))
}

/// `p95 2.31 s, limit 2s`.
fn in_words(exceeded: &Exceeded) -> String {
    let Exceeded { limit, measured_ns } = exceeded;
    let name = limit.name.as_ref().map_or(String::new(), |name| format!("{name} "));
    let measured = measured_ns.map_or_else(|| "unknown".to_owned(), readable::duration);
    let statistic = limit.statistic.name();
    format!("{name}{statistic} {measured}, limit {}", readable::duration(limit.below_ns))
}

fn summary(response: &smbscope_analysis::summary::Distribution) -> Option<Summary> {
    Some(Summary {
        count: response.n,
        mean_ns: response.mean_ns?,
        p50_ns: response.p50_ns?,
        p95_ns: response.p95_ns?,
        p99_ns: response.p99_ns?,
        max_ns: response.max_ns?,
    })
}

fn wait_until(start_at: i64, clock: &Clock, observer: &mut dyn Observer) -> anyhow::Result<()> {
    let mut left = start_at - clock.now();
    if left < 0 {
        return Err(Failure::usage(format!(
            "--start-at is {} s in the past: all machines of a run must start together",
            -left / 1_000_000_000
        )));
    }
    observer.say(&format!("starting in {} s", left / 1_000_000_000));
    while left > 0 {
        interrupt::check()?;
        std::thread::sleep(Duration::from_nanos(left.min(50_000_000) as u64));
        left = start_at - clock.now();
    }
    Ok(())
}

/// The error of a run whose server stopped answering.
pub fn server_gone() -> Failure {
    Failure::new(
        Code::ServerGone,
        "the server stopped answering during the run: connections to it, or all requests to the share, failed; look at its processes and its log",
    )
}

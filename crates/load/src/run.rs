//! Runs simulated users: steps with a number of users each, one after another, and their results.
//!
//! Owns the users' tasks, the ramp, warm-up, measured window and cool-down of a step, and the progress
//! reports. `capacity` defines overload and decides which step comes next.

pub mod outage;
mod shared;
pub mod user;
pub mod users;
mod window;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use smbscope_tables::Part;
use smbscope_tables::run::Step as StepRow;
use smbscope_wire::status::Status;
use tokio::sync::watch as signal;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::capacity::table::Row as TableRow;
use crate::capacity::{Assessment, Rule, ScheduleLog, Snapshot, Step, StepResult};
use crate::recorder::Recorder;
use crate::self_check::{ClientLoad, SelfCheck};
use crate::stats::{Failure, Tally};
use crate::workload::{ClientCache, Planner, UserPlans};
pub use outage::Silence;
pub use shared::{Moved, Running, Shared, operation_end};
use smbscope_client::Host;
use smbscope_client::clock::nanoseconds;
use user::{Files, User};
use users::{Credentials, Shard, home};
use window::{Timeline, Window, WindowOutcome};

/// Time for users to log off after their last execution has ended.
const LOGOFF_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the parts of a step last, and how fast users log on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Users that log on per second, on all machines together.
    pub ramp_per_second: f64,
    /// Time before the measured window.
    pub warm_up: Duration,
    /// Time after it.
    pub cool_down: Duration,
    /// Back to back instead of by schedule.
    pub closed: bool,
    /// Time for an execution in flight when the step ends. Zero aborts it, which does not count as a
    /// failure: such a run measures operations, not executions.
    pub grace: Duration,
    /// A step ends when the server does not answer for this long.
    pub outage: Duration,
}

impl Pace {
    /// Time after which a server that does not answer is given up, where nothing else is asked.
    pub const OUTAGE: Duration = Duration::from_secs(5);
    /// Usual grace for executions in flight.
    pub const GRACE: Duration = Duration::from_secs(20);
    /// Limit on the grace after an interruption, because the user waits for the run to end.
    const INTERRUPTED_GRACE: Duration = Duration::from_secs(2);
}

/// The progress report while a step runs, about once a second.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The step.
    pub step: Step,
    /// warm-up, measured, cool-down or ending.
    pub phase: &'static str,
    /// Time in the phase, and its length.
    pub elapsed: Duration,
    /// See `elapsed`.
    pub length: Duration,
    /// Users that have started.
    pub users: u64,
    /// How far users are behind their schedules.
    pub now: Snapshot,
    /// Measurements in the window so far (during warm-up, since its begin).
    pub tally: Tally,
    /// The generator itself.
    pub client: ClientLoad,
}

/// Runs steps, one after another, and remembers what each user has done.
pub struct Engine {
    shared: Arc<Shared>,
    planner: Planner,
    shard: Shard,
    folder: String,
    run: String,
    pace: Pace,
    rule: Rule,
    self_check: Arc<SelfCheck>,
    plans: BTreeMap<u64, UserPlans>,
    /// What is known about the files of users who have run.
    files: BTreeMap<u64, Files>,
    interrupted: signal::Receiver<bool>,
}

/// The parts of an engine.
pub struct Parts {
    /// Name of the whole run, equal on all machines that share it.
    pub run: String,
    /// Where the server is.
    pub host: Arc<Host>,
    /// The workload.
    pub planner: Planner,
    /// Receives the rows.
    pub recorder: Arc<Recorder>,
    /// How users log on.
    pub credentials: Credentials,
    /// How the client caches directories.
    pub cache: ClientCache,
    /// This machine's part of the users.
    pub shard: Shard,
    /// Times and pace of the steps.
    pub pace: Pace,
    /// An execution that takes longer has failed.
    pub timeout: Duration,
    /// Number of worker threads of the runtime.
    pub threads: usize,
    /// Signals that the run is to end.
    pub interrupted: signal::Receiver<bool>,
    /// Gets a line for each logon, with the session id (hexadecimal) and the user's name: a lab's server knows all
    /// of them as one user.
    pub logons: Option<File>,
}

impl Engine {
    /// An engine that has not run anything.
    pub fn new(parts: Parts) -> Engine {
        let workload = parts.planner.workload();
        let interval_ns = nanoseconds(workload.mean_interval());
        let scenarios = workload.scenarios.len();
        let rule = Rule::new(interval_ns);
        let idle = Running::new(0, ScheduleLog::new(interval_ns, []), (0, 0));
        let folder = parts.host.target.folder.clone();
        let shared = Shared {
            clock: parts.host.clock.clone(),
            host: parts.host,
            recorder: parts.recorder,
            credentials: parts.credentials,
            cache: parts.cache,
            closed: parts.pace.closed,
            timeout: parts.timeout,
            sessions: AtomicU64::new(0),
            step: RwLock::new(Arc::new(idle)),
            tallies: (0..parts.threads.max(1)).map(|_| Mutex::new(Tally::new(scenarios))).collect(),
            trouble: Mutex::default(),
            unexpected: Mutex::default(),
            moved: Mutex::default(),
            opens_resumed: AtomicU64::new(0),
            answers: Mutex::default(),
            refused: Mutex::default(),
            logons: parts.logons.map(Mutex::new),
        };
        Engine {
            shared: Arc::new(shared),
            planner: parts.planner,
            shard: parts.shard,
            folder,
            run: parts.run,
            pace: parts.pace,
            rule,
            self_check: Arc::new(SelfCheck::new(parts.threads)),
            plans: BTreeMap::new(),
            files: BTreeMap::new(),
            interrupted: parts.interrupted,
        }
    }

    /// What users share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Unexpected answers and trouble, the most frequent first.
    pub fn unexpected(&self) -> Vec<(String, u64)> {
        let known = self.shared.unexpected.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<_> = known.iter().map(|(what, count)| (what.clone(), *count)).collect();
        list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        list
    }

    /// Receives the rows.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// File data that was transferred in all steps.
    pub fn moved(&self) -> Moved {
        *self.shared.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the run was interrupted.
    pub fn interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }

    /// How much longer an execution in flight at the end of a step may take.
    fn grace(&self) -> Duration {
        if self.interrupted() {
            self.pace.grace.min(Pace::INTERRUPTED_GRACE)
        } else {
            self.pace.grace
        }
    }

    /// Runs one step and reports progress once a second. An interruption ends it early; what was
    /// measured until then counts.
    pub async fn step(
        &mut self,
        step: Step,
        cut_short: bool,
        mut report: impl FnMut(&Progress),
    ) -> StepResult {
        let timeline = Timeline::new(&self.pace, &step, Instant::now());
        let (stop, stopped) = signal::channel(None);
        let mut users = self.start_users(&step, &timeline, &stopped);
        let self_check = tokio::spawn({
            let (self_check, clock) = (self.self_check.clone(), self.shared.clock.clone());
            async move { self_check.probe(&clock).await }
        });
        let window = Window::new(self, &users, step, timeline, cut_short).run(&mut report).await;
        self_check.abort();
        let stopped_at = Instant::now();
        let now = self.shared.clock.ns_at(stopped_at);
        users.running.end_window(now);
        users.running.stop(now);
        self.close(&mut users, &stop, stopped_at).await;
        self.shared.recorder.flush();
        self.step_result(&users, window, stopped_at)
    }

    /// Starts the users' tasks. Each user continues its schedule where it stopped.
    fn start_users(
        &mut self,
        step: &Step,
        timeline: &Timeline,
        stopped: &signal::Receiver<Option<Duration>>,
    ) -> Users {
        let numbers: Vec<u64> = self.shard.users(step.users).collect();
        let users: Vec<User> = numbers
            .iter()
            .enumerate()
            .map(|(place, &number)| self.user(place, number, step.users, timeline, stopped.clone()))
            .collect();
        let clock = &self.shared.clock;
        let dues = users.iter().map(|user| clock.ns_at(user.begin + user.plans.due()));
        let log = ScheduleLog::new(self.rule.interval_ns, dues.collect::<Vec<i64>>());
        let measured = (clock.ns_at(timeline.window), clock.ns_at(timeline.window_end()));
        let running = Arc::new(Running::new(step.step, log, measured));
        *self.shared.step.write().unwrap_or_else(PoisonError::into_inner) = running.clone();
        self.shared.take_tally();
        let begins = users.iter().map(|user| user.begin).collect();
        let runs = users.iter().map(|user| user.plans.run()).collect();
        let mut tasks = JoinSet::new();
        for user in users {
            let number = user.number;
            tasks.spawn(async move { (number, user.run().await) });
        }
        Users { numbers, begins, runs, running, tasks }
    }

    /// A user at the begin of the step.
    fn user(
        &mut self,
        place: usize,
        number: u64,
        all: u64,
        timeline: &Timeline,
        stop: signal::Receiver<Option<Duration>>,
    ) -> User {
        let plans = self
            .plans
            .remove(&number)
            .unwrap_or_else(|| self.planner.user(number, &home(&self.folder, number)));
        // The ramp covers the users of all machines in the order of their numbers.
        let log_on =
            timeline.start + timeline.ramp.mul_f64((number - 1) as f64 / all.max(1) as f64);
        let first = self.planner.schedule(number, plans.run());
        let passed = match plans.run() {
            0 => Duration::ZERO,
            run => self.planner.schedule(number, run - 1).min(first),
        };
        // An `Instant` cannot be negative: a long schedule may reach back before the clock's zero.
        let begin = log_on.checked_sub(passed).unwrap_or(log_on);
        let files = self.files.remove(&number).unwrap_or(Files::Unknown);
        User {
            shared: self.shared.clone(),
            number,
            place,
            plans,
            begin,
            log_on,
            stop,
            lost: None,
            files,
            restores: files.restores(),
        }
    }

    /// Stops the users and keeps their plans and files for the next step. Executions in flight get
    /// [`Engine::grace`] to end.
    async fn close(
        &mut self,
        users: &mut Users,
        stop: &signal::Sender<Option<Duration>>,
        stopped_at: Instant,
    ) {
        stop.send_replace(Some(self.grace()));
        let mut interrupted = self.interrupted.clone();
        let mut give_up_at = stopped_at + self.grace() + LOGOFF_TIMEOUT;
        let mut is_patient = !self.interrupted();
        loop {
            tokio::select! {
                ended = users.tasks.join_next() => match ended {
                    Some(Ok((number, (plans, files)))) => {
                        self.plans.insert(number, plans);
                        self.files.insert(number, files);
                    }
                    Some(Err(_)) => {}
                    None => break,
                },
                Ok(_) = interrupted.wait_for(|stop| *stop), if is_patient => {
                    is_patient = false;
                    stop.send_replace(Some(self.grace()));
                    give_up_at = Instant::now() + self.grace() + LOGOFF_TIMEOUT;
                }
                () = sleep_until(give_up_at) => {
                    users.tasks.abort_all();
                    break;
                }
            }
        }
        // Users that were aborted begin the next step at the schedule's position, and their files
        // are prepared again.
        for (place, &number) in users.numbers.iter().enumerate() {
            if !self.plans.contains_key(&number) {
                let mut plans = self.planner.user(number, &home(&self.folder, number));
                let run = users.runs.get(place).unwrap_or(&0);
                plans.skip_to(run + users.running.log.begun(place));
                self.plans.insert(number, plans);
                self.files.insert(number, Files::Dirty);
            }
        }
    }

    /// Evaluates the window, writes the step's row, and returns its result.
    fn step_result(
        &self,
        users: &Users,
        outcome: WindowOutcome,
        stopped_at: Instant,
    ) -> StepResult {
        let WindowOutcome { step, timeline, begun, last, troubles, end, cut_short, gone } = outcome;
        // Interrupted before the window: nothing was measured, whatever the warm-up has shown.
        let is_measured = end.is_some();
        let (tally, client, end, end_at) = end.unwrap_or_else(|| {
            let warm_up = self.shared.take_tally();
            (Tally::new(0), self.self_check.load(&warm_up), last, stopped_at)
        });
        let ended_early = cut_short || end_at < timeline.window_end();
        let begun = if is_measured { begun } else { end };
        let start = if is_measured { timeline.window } else { stopped_at };
        // While all connection attempts fail, nothing ends, not even as failed.
        // A server that refuses everything else answers.
        let without_service = |(failure, _): &(Failure, u64)| match failure {
            Failure::Other(_) => true,
            Failure::Status(status) => matches!(
                Status(*status),
                Status::NETWORK_NAME_DELETED
                    | Status::BAD_NETWORK_NAME
                    | Status::USER_SESSION_DELETED
                    | Status::NETWORK_SESSION_EXPIRED
            ),
        };
        let server_gone = gone.is_some()
            || tally.failed() == tally.ended()
                && tally.scenario_failures.ranked().iter().all(without_service)
                && (tally.ended() > 0 || self.shared.troubles() > troubles);
        let mut judgement =
            if self.pace.closed { Assessment::default() } else { self.rule.judge(&begun, &end) };
        // Users fall behind on a server that is gone, but it is not overloaded.
        judgement.overloaded &= gone.is_none();
        let workload = self.planner.workload();
        let names: Vec<&str> =
            workload.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        // A closed loop has no scheduled rate.
        let rate = if self.pace.closed {
            0.0
        } else {
            users.numbers.len() as f64 * 1e9 / self.rule.interval_ns as f64
        };
        let row = TableRow {
            step: step.step,
            users: step.users,
            overload_percent: judgement.overload_percent,
            overloaded: judgement.overloaded,
            scheduled_per_second: rate,
            duration_ns: nanoseconds(end_at.saturating_duration_since(start)),
            ended_early,
            server_gone,
            limited_by_client: client.limited(),
            limited_reason: client.reason(),
            ..TableRow::default()
        }
        .with_tally(&tally, &names);
        if is_measured {
            let clock = &self.shared.clock;
            let step_row = StepRow {
                recording: self.shared.recorder.recording().to_owned(),
                run: self.run.clone(),
                step: step.step,
                users: step.users,
                users_here: users.numbers.len() as u64,
                rate,
                start: clock.ns_at(start),
                end: clock.ns_at(end_at),
                scheduled: users.running.measured(),
                started: end.begun - begun.begun.min(end.begun),
                on_time: end.on_time - begun.on_time.min(end.on_time),
                completed: tally.ended(),
                failed: tally.failed(),
                users_overloaded: judgement.users_behind,
                overload_percent: judgement.overload_percent,
                client_cpu_percent: client.cpu_percent,
                client_late_ns: client.late_ns,
                limited_by_client: client.limited(),
                overloaded: judgement.overloaded,
                operations: Some(tally.operations()),
                transferred_bytes: Some(tally.bytes()),
                operation_mean_ns: tally.latency().mean_ns().map(|ns| ns.round() as i64),
                reply_wait_mean_ns: tally.reply_waits.mean_ns().map(|ns| ns.round() as i64),
                reply_wait_p99_ns: tally.reply_waits.quantile_ns(0.99),
                server_gone: Some(server_gone),
                ended_early,
            };
            self.shared.recorder.part(Part::Steps(vec![step_row]));
        }
        StepResult {
            step,
            judgement,
            ended: tally.ended(),
            failed: tally.failed(),
            limited_by_client: client.limited(),
            gone_since: server_gone
                .then(|| gone.map_or(self.shared.clock.ns_at(start), |silence| silence.since)),
            ended_early,
            row,
        }
    }
}

/// The users of the step that runs.
struct Users {
    numbers: Vec<u64>,
    /// When each user begins, and the number of its first execution in the step.
    begins: Vec<Instant>,
    runs: Vec<u64>,
    running: Arc<Running>,
    tasks: JoinSet<(u64, (UserPlans, Files))>,
}

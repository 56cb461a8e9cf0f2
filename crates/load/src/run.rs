//! Running simulated users: a step with so many of them, one after another, and what they showed.
//!
//! Owns the users' tasks, the ramp, warm-up, measured window and cool-down of a step, and what is
//! told while it goes on. What overload is and which step comes next says `capacity`.

mod shared;
pub mod user;
pub mod users;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use smbscope_tables::part::Part;
use smbscope_tables::run::{COOL_DOWN, MEASURED, Step as StepRow, WARM_UP};
use tokio::sync::watch as signal;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::capacity::table::Row as TableRow;
use crate::capacity::{Book, Early, Rule, Snapshot, Step, StepResult};
use crate::recorder::Recorder;
use crate::self_check::{ClientLoad, Watch};
use crate::stats::Tally;
use crate::workload::{ClientCache, Planner, UserPlans};
pub use shared::{Moved, Running, Shared, operation_end};
use smbscope_client::Host;
use smbscope_client::clock::nanoseconds;
use user::{Files, User};
use users::{Credentials, Shard, home};

/// Time for users to leave when a step is over and what they were doing has ended.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long the parts of a step last, and how users come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Users that log on in a second, on all machines together.
    pub ramp_per_second: f64,
    /// Before the measured window.
    pub warm_up: Duration,
    /// After it.
    pub cool_down: Duration,
    /// Back to back instead of by schedule.
    pub closed: bool,
    /// For an execution that is under way when the step ends. Without any it is broken off, which is
    /// then no trouble: who asks so is after operations, not executions.
    pub patience: Duration,
}

impl Pace {
    /// How long an execution is waited for whose answers may still come.
    pub const PATIENCE: Duration = Duration::from_secs(20);
    /// The same when somebody waits for the run to end.
    const HURRIED: Duration = Duration::from_secs(2);
}

/// What is told while a step runs, about once a second.
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
    /// Users that have begun.
    pub users: u64,
    /// How the users' schedules stand.
    pub now: Snapshot,
    /// What was measured in the window so far (in the warm-up since its begin).
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
    watch: Arc<Watch>,
    plans: BTreeMap<u64, UserPlans>,
    /// What is known of the files of users who were there; nothing of others'.
    files: BTreeMap<u64, Files>,
    interrupted: signal::Receiver<bool>,
}

/// What an engine is made of.
pub struct Parts {
    /// Name of the whole run, equal on all machines that share it.
    pub run: String,
    /// Where the server is.
    pub host: Arc<Host>,
    /// What users do.
    pub planner: Planner,
    /// Who takes the rows.
    pub recorder: Arc<Recorder>,
    /// How users log on.
    pub credentials: Credentials,
    /// What the client does with its knowledge of directories.
    pub cache: ClientCache,
    /// This machine's part of the users.
    pub shard: Shard,
    /// How steps go.
    pub pace: Pace,
    /// An execution that takes longer has failed.
    pub timeout: Duration,
    /// Worker threads of the runtime.
    pub threads: usize,
    /// Says that the run is to end.
    pub interrupted: signal::Receiver<bool>,
}

impl Engine {
    /// An engine that has not run anything.
    pub fn new(parts: Parts) -> Engine {
        let workload = parts.planner.workload();
        let interval_ns = nanoseconds(workload.mean_interval());
        let scenarios = workload.scenarios.len();
        let rule = Rule::new(interval_ns);
        let idle = Running::new(0, Book::new(interval_ns, []), (0, 0));
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
        };
        Engine {
            shared: Arc::new(shared),
            planner: parts.planner,
            shard: parts.shard,
            folder,
            run: parts.run,
            pace: parts.pace,
            rule,
            watch: Arc::new(Watch::new(parts.threads)),
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

    /// Who takes the rows.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// File data that was moved, in all steps.
    pub fn moved(&self) -> Moved {
        *self.shared.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the run was asked to end.
    pub fn interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }

    /// How long what is under way at the end of a step may still take.
    fn patience(&self) -> Duration {
        match self.interrupted() {
            true => self.pace.patience.min(Pace::HURRIED),
            false => self.pace.patience,
        }
    }

    /// Runs one step and tells about it once a second. An interruption ends it early; what was
    /// measured until then counts.
    pub async fn step(
        &mut self,
        step: Step,
        cut_short: bool,
        mut tell: impl FnMut(&Progress),
    ) -> StepResult {
        let clock = self.shared.clock.clone();
        let start = Instant::now();
        let numbers: Vec<u64> = self.shard.users(step.users).collect();
        let ramp = Duration::from_secs_f64(step.users as f64 / self.pace.ramp_per_second.max(0.01));
        let window = start + ramp + self.pace.warm_up;
        let window_ns = step.duration_ns.max(1);
        let length = Duration::from_nanos(window_ns as u64);
        let (stop, stopped) = signal::channel(None);

        // The users' begins, such that each goes on with its schedule where it was.
        let mut users = Vec::with_capacity(numbers.len());
        for (place, &number) in numbers.iter().enumerate() {
            let plans = self
                .plans
                .remove(&number)
                .unwrap_or_else(|| self.planner.user(number, &home(&self.folder, number)));
            // The ramp goes over all machines' users in the order of their numbers.
            let log_on = start + ramp.mul_f64((number - 1) as f64 / step.users.max(1) as f64);
            let first = self.planner.schedule(number, plans.run());
            let passed = match plans.run() {
                0 => Duration::ZERO,
                run => self.planner.schedule(number, run - 1).min(first),
            };
            // An instant is not less than zero: what a user did long ago lies before the begin.
            let begin = log_on.checked_sub(passed).unwrap_or(log_on);
            let files = self.files.remove(&number).unwrap_or(Files::Unseen);
            users.push(User {
                shared: self.shared.clone(),
                number,
                place,
                plans,
                begin,
                log_on,
                stop: stopped.clone(),
                lost: None,
                files,
                restores: files.restores(),
            });
        }
        let dues: Vec<i64> =
            users.iter().map(|user| clock.at(user.begin + user.plans.due())).collect();
        let begins: Vec<Instant> = users.iter().map(|user| user.begin).collect();
        let runs: Vec<u64> = users.iter().map(|user| user.plans.run()).collect();
        let book = Book::new(self.rule.interval_ns, dues);
        let measured = (clock.at(window), clock.at(window + length));
        let running = Arc::new(Running::new(step.step, book, measured));
        *self.shared.step.write().unwrap_or_else(PoisonError::into_inner) = running.clone();
        self.shared.take_tally();
        let mut tasks = JoinSet::new();
        for user in users {
            let number = user.number;
            tasks.spawn(async move { (number, user.live().await) });
        }
        let probe = tokio::spawn({
            let (watch, clock) = (self.watch.clone(), clock.clone());
            async move { watch.probe(&clock).await }
        });

        let planner = &self.planner;
        let snapshot = |time: Instant| {
            running.book.snapshot(clock.at(time), |user, number, _| {
                let begin = *begins.get(user)?;
                let run = runs.get(user)? + number + 1;
                Some(clock.at(begin + planner.schedule(*numbers.get(user)?, run)))
            })
        };
        let mut phase = Phase::WarmUp;
        let mut before = snapshot(start);
        let mut begun = before;
        let mut troubles = self.shared.troubles();
        let mut early = None;
        let mut end: Option<(Snapshot, Instant)> = None;
        let mut ended_early = false;
        let mut result_tally = None;
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.watch.begin();
        let window_end = window + length;
        let stop_at = window_end + self.pace.cool_down;
        loop {
            let wake = match phase {
                Phase::WarmUp => window,
                Phase::Measured => window_end,
                Phase::CoolDown => stop_at,
            };
            let mut interrupted = self.interrupted.clone();
            tokio::select! {
                _ = ticks.tick() => {}
                () = sleep_until(wake) => {}
                _ = interrupted.wait_for(|asked| *asked) => {}
            }
            let now_at = Instant::now();
            let now = snapshot(now_at);
            let interrupted = self.interrupted();
            if phase == Phase::WarmUp && now_at >= window {
                phase = Phase::Measured;
                begun = now;
                troubles = self.shared.troubles();
                self.shared.take_tally();
                self.watch.begin();
                early = Some(Early::new(self.rule, now, window_ns, step.may_end_early));
            } else if phase == Phase::Measured {
                let certain = early.as_mut().and_then(|early| early.look(&now));
                ended_early = cut_short && !self.pace.closed && certain.is_some();
                if now_at >= window_end || ended_early || interrupted {
                    let tally = self.shared.take_tally();
                    let client = self.watch.load(&tally);
                    result_tally = Some((tally, client));
                    end = Some((now, now_at));
                    running.end_window(clock.at(now_at));
                    phase = Phase::CoolDown;
                }
            }
            self.shared.recorder.flush();
            let tally = self.shared.peek_tally();
            let client = self.watch.load(&tally);
            let (elapsed, whole) = match phase {
                Phase::WarmUp => (now_at - start, ramp + self.pace.warm_up),
                Phase::Measured => (now_at - window, length),
                Phase::CoolDown => {
                    (now_at.saturating_duration_since(window_end), self.pace.cool_down)
                }
            };
            let begun_users = numbers.len() as f64 * (now_at - start).as_secs_f64()
                / ramp.as_secs_f64().max(1e-9);
            tell(&Progress {
                step,
                phase: phase.name(),
                elapsed,
                length: whole,
                users: (begun_users as u64).min(numbers.len() as u64),
                now,
                tally,
                client,
            });
            before = now;
            if interrupted || phase == Phase::CoolDown && (now_at >= stop_at || ended_early) {
                break;
            }
        }
        probe.abort();
        let stopped_at = Instant::now();
        running.end_window(clock.at(stopped_at));
        running.stop(clock.at(stopped_at));
        stop.send_replace(Some(self.patience()));
        let mut interrupted = self.interrupted.clone();
        let mut give_up_at = stopped_at + self.patience() + FAREWELL;
        let mut is_patient = !self.interrupted();
        loop {
            tokio::select! {
                ended = tasks.join_next() => match ended {
                    Some(Ok((number, (plans, files)))) => {
                        self.plans.insert(number, plans);
                        self.files.insert(number, files);
                    }
                    Some(Err(_)) => {}
                    None => break,
                },
                Ok(_) = interrupted.wait_for(|asked| *asked), if is_patient => {
                    is_patient = false;
                    stop.send_replace(Some(self.patience()));
                    give_up_at = Instant::now() + self.patience() + FAREWELL;
                }
                () = sleep_until(give_up_at) => {
                    tasks.abort_all();
                    break;
                }
            }
        }
        // Who was not done even then begins the next step where the schedule is, with files as
        // prepare makes them.
        for (place, &number) in numbers.iter().enumerate() {
            if !self.plans.contains_key(&number) {
                let mut plans = self.planner.user(number, &home(&self.folder, number));
                plans.skip_to(runs.get(place).unwrap_or(&0) + running.book.begun(place));
                self.plans.insert(number, plans);
                self.files.insert(number, Files::Astray);
            }
        }
        self.shared.recorder.flush();

        // Interrupted before the window: nothing was measured, whatever the warm-up has shown.
        let is_measured = end.is_some();
        let (end, end_at) = end.unwrap_or((before, stopped_at));
        ended_early |= end_at < window_end;
        let begun = if is_measured { begun } else { end };
        let window = if is_measured { window } else { stopped_at };
        let (tally, client) = result_tally.unwrap_or_else(|| {
            let warm_up = self.shared.take_tally();
            (Tally::new(0), self.watch.load(&warm_up))
        });
        let judgement =
            if self.pace.closed { Default::default() } else { self.rule.judge(&begun, &end) };
        let measured_ns = nanoseconds(end_at.saturating_duration_since(window));
        let workload = self.planner.workload();
        let names: Vec<&str> =
            workload.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        // Back to back nobody asks for so and so many.
        let rate = match self.pace.closed {
            true => 0.0,
            false => numbers.len() as f64 * 1e9 / self.rule.interval_ns as f64,
        };
        let row = TableRow {
            step: step.step,
            users: step.users,
            overload_percent: judgement.overload_percent,
            overloaded: judgement.overloaded,
            scheduled_per_second: rate,
            duration_ns: measured_ns,
            ended_early,
            limited_by_client: client.limited(),
            limited_reason: client.reason(),
            ..TableRow::default()
        }
        .with_tally(&tally, &names);
        let step_row = StepRow {
            recording: self.shared.recorder.recording().to_owned(),
            run: self.run.clone(),
            step: step.step,
            users: step.users,
            users_here: numbers.len() as u64,
            rate,
            start: clock.at(window),
            end: clock.at(end_at),
            scheduled: running.measured(),
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
            ended_early,
        };
        if is_measured {
            self.shared.recorder.part(Part::Steps(vec![step_row]));
        }
        StepResult {
            step,
            judgement,
            ended: tally.ended(),
            failed: tally.failed(),
            limited_by_client: client.limited(),
            // While nobody gets a connection nothing ends, not even as failed.
            server_gone: tally.failed() == tally.ended()
                && (tally.ended() > 0 || self.shared.troubles() > troubles),
            ended_early,
            row,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Measured,
    CoolDown,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::WarmUp => WARM_UP,
            Phase::Measured => MEASURED,
            Phase::CoolDown => COOL_DOWN,
        }
    }
}

//! One simulated user: follows a schedule, runs each execution, and survives lost connections.
//!
//! Open loop: an execution begins when it is due, or immediately after the previous one if that took
//! too long. None is skipped; response times count from the due time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use smbscope_tables::run::{DONE, FAILED, NOT_STARTED, Scenario};
use smbscope_wire::status::Status;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::Shared;
use crate::execute::{self, Outcome, Performer};
use crate::prepare::{PrepareError, prepare, restore};
use crate::stats::{Failure, FailureKind, ScenarioEnd};
use crate::workload::{Plan, UserPlans};
use smbscope_client::clock::nanoseconds;
use smbscope_client::{ClientError, Previous, Scene, Session};

/// Pauses between attempts to connect.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Connections over which a user's files may be restored.
const RESTORES_MAX: u32 = 3;
/// More sessions over which one execution may continue.
const RESUMES_MAX: u32 = 3;
/// Time to restore a user's files; the reply timeout when that is longer.
const RESTORE_LIMIT: Duration = Duration::from_secs(60);
/// Executions recorded as not started, per user and step: the schedule of a day.
const NOT_STARTED_MAX: u32 = 100_000;
/// Executions of a user are numbered below this, so that numbers are unique in a run.
const RUNS_MAX: u64 = 1 << 24;

/// One user in one step of the run.
pub struct User {
    /// What all users share.
    pub shared: Arc<Shared>,
    /// The user's number, from 1.
    pub number: u64,
    /// The user's index in the log of the step.
    pub place: usize,
    /// The executions; continued from step to step.
    pub plans: UserPlans,
    /// Origin of the schedule: an execution is due at `begin` + its plan's time.
    pub begin: Instant,
    /// When the user logs on.
    pub log_on: Instant,
    /// Set when the step is over: how much longer an execution in flight may take.
    pub stop: watch::Receiver<Option<Duration>>,
    /// The last lost session, until a new one replaces it.
    pub lost: Option<Previous>,
    /// What is known of the user's files.
    pub files: Files,
    /// Attempts left to restore them in this step.
    pub restores: u32,
}

/// What is known of a user's files when a step begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// They are in the state that the plans expect.
    AsPlanned,
    /// Another run may have deleted or created some.
    Unknown,
    /// An execution was aborted: any file may be missing or misplaced.
    Dirty,
}

impl Files {
    /// How often they may be restored in a step.
    pub fn restores(self) -> u32 {
        if self == Files::AsPlanned { 0 } else { RESTORES_MAX }
    }
}

/// The outcome of an execution.
enum Attempt {
    Done(Outcome),
    /// Broken off, with the outcome until then.
    Failed(ClientError, Outcome),
}

impl User {
    /// Runs until the step is over; returns the plans for the next step, and what is known about the
    /// user's files.
    pub async fn run(mut self) -> (UserPlans, Files) {
        let mut session = None;
        let mut performer = Performer::new(self.shared.cache);
        let mut plan = self.plans.buffer();
        tokio::select! {
            () = self.shared.clock.wait(self.log_on) => {}
            _ = self.stop.changed() => return (self.plans, self.files),
        }
        session = self.prepared_session(session).await;
        while self.stop.borrow().is_none() {
            let due = self.begin + self.plans.due();
            if !self.shared.closed && !self.wait_until_due(&mut session, &mut performer, due).await
            {
                break;
            }
            let wanted = Instant::now();
            let due = if self.shared.closed { wanted } else { due };
            // A user without a connection begins nothing, and falls behind if that lasts.
            session = self.prepared_session(session).await;
            if session.is_none() {
                // The step ended while the server did not answer.
                if self.shared.closed {
                    self.plans.pass_into(&mut plan);
                    self.record(&plan, due, None, None);
                }
                break;
            }
            self.plans.next_into(&mut plan);
            let begin = Instant::now();
            let begun_ns = self.shared.clock.ns_at(begin);
            self.shared.step().log.begin(self.place, begun_ns, self.next_due());
            let tried = self.attempt(&mut session, &mut performer, &plan, due).await;
            let (dirty, lost) = match &tried {
                Attempt::Done(Outcome { failed, .. }) => {
                    (failed.is_some(), failed.as_ref().is_some_and(ends_session))
                }
                Attempt::Failed(..) => (true, true),
            };
            if dirty {
                self.files = Files::Dirty;
            }
            self.record(&plan, due, Some((begin, tried)), session.as_mut());
            if lost {
                performer.forget();
                self.record_lost(&mut session, false);
            }
        }
        self.shared.step().log.leave(self.place);
        self.record_not_started(&mut plan);
        if let Some(session) = session.take() {
            self.shared.recorder.ended(self.number, session.close().await, false);
        }
        (self.plans, self.files)
    }

    /// Records executions that were due in the step but did not start.
    fn record_not_started(&mut self, plan: &mut Plan) {
        if self.shared.closed {
            return;
        }
        let stopped = self.shared.step().stopped();
        for _ in 0..NOT_STARTED_MAX {
            let due = self.begin + self.plans.due();
            if self.shared.clock.ns_at(due) >= stopped {
                break;
            }
            self.plans.pass_into(plan);
            self.record(plan, due, None, None);
        }
    }

    /// A session with the user's files restored; `None` if the step is over.
    async fn prepared_session(&mut self, mut session: Option<Session>) -> Option<Session> {
        loop {
            session = self.session_or_connect(session).await;
            if session.is_none() || self.restores == 0 {
                return session;
            }
            self.restores -= 1;
            self.restore(&mut session).await;
        }
    }

    /// Restores the user's files before the first execution of a step: files that an earlier run
    /// deleted or an aborted execution left behind would count as failures of this step. The
    /// operations belong to no scenario.
    async fn restore(&mut self, session: &mut Option<Session>) {
        let Some(connected) = session.as_mut() else { return };
        let limit = RESTORE_LIMIT.max(self.shared.timeout);
        let (files, home) = (self.plans.files(), self.plans.home());
        let whole = self.files == Files::Dirty;
        let restoring = Box::pin(async {
            if whole {
                prepare(connected, files, self.number, home, |_| ()).await
            } else {
                restore(connected, files, self.number, home).await
            }
        });
        let restored = tokio::select! {
            restored = timeout(limit, restoring) => Some(restored),
            _ = self.stop.changed() => None,
        };
        self.shared.recorder.rows(self.number, connected.take_rows());
        match restored {
            Some(Ok(Ok(_))) => {
                self.plans.restored();
                self.files = Files::AsPlanned;
                self.restores = 0;
                return;
            }
            Some(Ok(Err(PrepareError::Client(error)))) => self.shared.trouble(&error),
            Some(Ok(Err(error))) => {
                // A retry would be refused too; the scenarios run as far as possible.
                self.shared.remember(format!("files cannot be restored: {error}"));
                self.restores = 0;
                return;
            }
            Some(Err(_)) => self.shared.trouble(&ClientError::Timeout(limit)),
            None => {}
        }
        self.record_lost(session, false);
    }

    /// Runs an execution. If its session is lost but durable opens survive, it continues in a new
    /// session.
    async fn attempt(
        &mut self,
        session: &mut Option<Session>,
        performer: &mut Performer,
        plan: &Plan,
        due: Instant,
    ) -> Attempt {
        let limit = self.shared.timeout;
        let scene = Scene {
            scenario_run: Some(self.scenario_run(plan)),
            scheduled_at: Some(self.shared.clock.ns_at(due)),
        };
        for attempt in 0.. {
            let Some(connected) = session.as_mut() else { break };
            connected.channel().scene = scene;
            let grace_over = grace_over(self.stop.clone());
            let performing = Box::pin(async {
                match attempt {
                    0 => performer.perform(connected, plan).await,
                    _ => performer.resume(connected, plan).await,
                }
            });
            let tried = tokio::select! {
                biased;
                tried = timeout(limit, performing) => tried.map_err(|_| limit),
                grace = grace_over => Err(grace),
            };
            if let Some(connected) = session.as_mut() {
                connected.channel().scene = Scene::default();
            }
            let error = match tried {
                Ok(Ok(outcome)) => {
                    self.shared.resumed(outcome.resumed);
                    return Attempt::Done(outcome);
                }
                Ok(Err(error)) => error,
                Err(limit) => ClientError::Timeout(limit),
            };
            if attempt == RESUMES_MAX || self.is_aborted() || !performer.may_resume() {
                return Attempt::Failed(error, performer.broken_off());
            }
            self.shared.trouble(&error);
            self.record_lost(session, true);
            *session = self.session_or_connect(None).await;
        }
        Attempt::Failed(ClientError::Timeout(limit), performer.broken_off())
    }

    /// Whether the step is over without grace for executions in flight.
    fn is_aborted(&self) -> bool {
        *self.stop.borrow() == Some(Duration::ZERO)
    }

    /// When the next execution is due, on the run's clock.
    fn next_due(&self) -> Option<i64> {
        (!self.shared.closed).then(|| self.shared.clock.ns_at(self.begin + self.plans.due()))
    }

    /// Waits until an execution is due and acknowledges breaks meanwhile; false when the step is over.
    async fn wait_until_due(
        &mut self,
        session: &mut Option<Session>,
        performer: &mut Performer,
        due: Instant,
    ) -> bool {
        let shared = self.shared.clone();
        let mut is_due = pin!(shared.clock.wait(due));
        loop {
            let Some(connected) = session.as_mut() else {
                return tokio::select! {
                    () = &mut is_due => true,
                    _ = self.stop.changed() => false,
                };
            };
            let received = tokio::select! {
                biased;
                () = &mut is_due => return true,
                _ = self.stop.changed() => return false,
                received = connected.receive() => received,
            };
            let answered = match received {
                Ok(()) => performer.maintain(connected).await,
                Err(error) => Err(error),
            };
            if let Err(error) = answered {
                self.shared.trouble(&error);
                performer.forget();
                self.record_lost(session, false);
            }
        }
    }

    /// The given session, or a new one; retries until connected or the step is over.
    async fn session_or_connect(&mut self, session: Option<Session>) -> Option<Session> {
        if session.is_some() {
            return session;
        }
        let mut pause = BACKOFF_MIN;
        loop {
            if self.stop.borrow().is_some() {
                return None;
            }
            let credential = self.shared.credentials.of_user(self.number);
            let host = self.shared.host.clone();
            // Handle numbers are unique in a run.
            let handles = self.shared.next_session() << 24;
            let limit = self.shared.timeout;
            let began = self.shared.clock.ns_at(Instant::now());
            let attempt = Session::connect(limit, host, &credential, handles, self.lost);
            let connected = tokio::select! {
                biased;
                connected = attempt => connected,
                _ = self.stop.changed() => return None,
            };
            let error = match connected {
                Ok(mut session) => {
                    self.shared.answers().answered(self.shared.clock.ns_at(Instant::now()));
                    self.shared.recorder.rows(self.number, session.take_rows());
                    self.shared.logged_on(self.number, session.id());
                    self.lost = None;
                    return Some(session);
                }
                Err(failed) => {
                    self.shared.recorder.ended(self.number, failed.left, false);
                    failed.error
                }
            };
            self.shared.not_connected(self.number, began, &error);
            self.shared.trouble(&error);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.stop.changed() => return None,
            }
            pause = (pause * 2).min(BACKOFF_MAX);
        }
    }

    /// Records a lost session. `opens_live_on`: durable opens continue in the next one.
    fn record_lost(&mut self, session: &mut Option<Session>, opens_live_on: bool) {
        let Some(session) = session.take() else { return };
        self.lost = Some(session.previous());
        let left = session.end("reset");
        self.shared.count(self.number, &left.rows);
        self.shared.recorder.ended(self.number, left, opens_live_on);
    }

    fn scenario_run(&self, plan: &Plan) -> u64 {
        self.number * RUNS_MAX + plan.run() % RUNS_MAX
    }

    /// Records an execution.
    fn record(
        &self,
        plan: &Plan,
        due: Instant,
        tried: Option<(Instant, Attempt)>,
        session: Option<&mut Session>,
    ) {
        let shared = &self.shared;
        let step = shared.step();
        let clock = &shared.clock;
        let scheduled_at = clock.ns_at(due);
        let mut row = Scenario {
            scenario_run: self.scenario_run(plan),
            step: step.number,
            user_number: self.number,
            user: Some(shared.credentials.of_user(self.number).name()),
            scenario: plan.scenario().name.clone(),
            phase: step.phase(scheduled_at).to_owned(),
            scheduled_at,
            outcome: NOT_STARTED.into(),
            ..Scenario::default()
        };
        step.recorded(&row.phase);
        let Some((begin, tried)) = tried else {
            shared.recorder.scenario(row, Vec::new());
            return;
        };
        let end = Instant::now();
        let (started_at, ended_at) = (clock.ns_at(begin), clock.ns_at(end));
        row.started_at = Some(started_at);
        row.ended_at = Some(ended_at);
        row.late_ns = Some(started_at - scheduled_at);
        row.response_ns = Some(ended_at - scheduled_at);
        let mut failure = None;
        match &tried {
            Attempt::Done(outcome) => {
                row.operations = outcome.operations;
                row.saved = outcome.saved;
                row.errors = outcome.errors;
                row.outcome = DONE.into();
                for ignored in &outcome.ignored {
                    shared.ignored(plan.scenario().name.as_str(), ignored);
                }
                if let Some(failed) = &outcome.failed {
                    row.outcome = FAILED.into();
                    row.status_name = Some(failed.failure.name());
                    failure = Some(failed.failure);
                    shared.unexpected(plan.scenario().name.as_str(), failed);
                }
            }
            Attempt::Failed(error, outcome) => {
                row.operations = outcome.operations;
                row.saved = outcome.saved;
                row.errors = outcome.errors + 1;
                row.outcome = FAILED.into();
                row.status_name = Some(error.status_name());
                failure = Some(failure_of(error));
                if !self.is_aborted() {
                    shared.trouble(error);
                }
            }
        }
        let scenario_end = ScenarioEnd {
            scenario: plan.scenario_index(),
            late_ns: nanoseconds(begin.saturating_duration_since(due)),
            response_ns: nanoseconds(end.saturating_duration_since(due)),
            operations: row.operations,
            saved: row.saved,
            failure,
        };
        let rows = match session {
            Some(session) => {
                row.connection = Some(session.channel().table.connection);
                session.take_rows()
            }
            None => Vec::new(),
        };
        step.log.end(self.place);
        shared.tally(self.number, |tally| tally.scenario(&scenario_end));
        shared.count(self.number, &rows);
        shared.recorder.scenario(row, rows);
    }
}

/// Whether a status says that the server no longer knows the session or the share: all other
/// requests would fail the same way (MS-SMB2 sections 3.3.5.2.9 and 3.3.5.2.11). Only a new session
/// can work again.
fn ends_session(failed: &execute::FailedRequest) -> bool {
    let Failure::Status(status) = failed.failure else { return false };
    matches!(
        Status(status),
        Status::NETWORK_NAME_DELETED
            | Status::USER_SESSION_DELETED
            | Status::NETWORK_SESSION_EXPIRED
    )
}

/// The failure that the tally counts for an error of the client.
pub fn failure_of(error: &ClientError) -> Failure {
    use std::io::ErrorKind;
    let io = |error: &std::io::Error| match error.kind() {
        ErrorKind::ConnectionRefused => FailureKind::Refused,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => FailureKind::Reset,
        ErrorKind::UnexpectedEof => FailureKind::Closed,
        ErrorKind::TimedOut => FailureKind::Timeout,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => FailureKind::Unreachable,
        _ => FailureKind::Client,
    };
    match error {
        ClientError::Connect { error, .. } | ClientError::Lost(error) => Failure::Other(io(error)),
        ClientError::Refused { status, .. }
        | ClientError::BindRefused { status, .. }
        | ClientError::Share { status, .. } => Failure::Status(status.0),
        ClientError::Logon(_) | ClientError::Kdc(_) => Failure::Other(FailureKind::Client),
        ClientError::Protocol(_) | ClientError::NoMultichannel(_) | ClientError::Unverified(_) => {
            Failure::Other(FailureKind::Protocol)
        }
        ClientError::AllLost(_) => Failure::Other(FailureKind::Closed),
        ClientError::Timeout(_) => Failure::Other(FailureKind::Timeout),
    }
}

/// Waits until the step is over and the grace has passed; returns the grace.
async fn grace_over(mut stop: watch::Receiver<Option<Duration>>) -> Duration {
    let requested = stop.wait_for(Option::is_some).await.ok().and_then(|requested| *requested);
    // The engine is gone: the step is over.
    let Some(mut grace) = requested else { return Duration::ZERO };
    loop {
        tokio::select! {
            () = tokio::time::sleep(grace) => return grace,
            Ok(()) = stop.changed() => grace = stop.borrow().unwrap_or_default(),
        }
    }
}

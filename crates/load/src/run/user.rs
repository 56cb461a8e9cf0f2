//! One simulated user: keeps a schedule, does what is due, survives trouble.
//!
//! Open loop: an execution begins when it is due or, when the one before takes too long, right
//! after that; none is skipped, and its time counts from when it was due.

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
use crate::stats::{Failure, ScenarioEnd, Trouble};
use crate::workload::{Plan, UserPlans};
use smbscope_client::clock::nanoseconds;
use smbscope_client::{ClientError, Previous, Scene, Session};

/// Pauses between attempts to connect.
const BACKOFF_LEAST: Duration = Duration::from_millis(100);
const BACKOFF_MOST: Duration = Duration::from_secs(5);
/// Connections over which a user's files are brought into shape.
const RESTORES_MAX: u32 = 3;
/// Sessions over which one execution may go on.
const RESUMES_MAX: u32 = 3;
/// Time to restore a user's files; the reply timeout when that is longer.
const RESTORE_LIMIT: Duration = Duration::from_secs(60);
/// Executions written down as not started, of one user in one step: the schedule of a day.
const UNDONE_MAX: u32 = 100_000;
/// Executions of a user are numbered within this, so that their numbers are unique in a run.
const RUNS_MAX: u64 = 1 << 24;

/// One user in one step of the run.
pub struct User {
    /// What all users share.
    pub shared: Arc<Shared>,
    /// The user's number, from 1.
    pub number: u64,
    /// The user's place in the step's book.
    pub place: usize,
    /// What is done, from step to step.
    pub plans: UserPlans,
    /// When the user begins, so that an execution is due at `begin` + its plan's time.
    pub begin: Instant,
    /// When the user logs on.
    pub log_on: Instant,
    /// Says that the step is over, and how long what is under way may still take.
    pub stop: watch::Receiver<Option<Duration>>,
    /// The session that was lost last, until another one takes its place.
    pub lost: Option<Previous>,
    /// What is known of the user's files.
    pub files: Files,
    /// Attempts to bring them into shape that are left in this step.
    pub restores: u32,
}

/// What is known of a user's files when a step begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// They are as the plans say.
    AsPlanned,
    /// Another run may have deleted and made some.
    Unseen,
    /// An execution was broken off: anything may lie anywhere.
    Astray,
}

impl Files {
    /// How often they may be brought into shape in a step.
    pub fn restores(self) -> u32 {
        if self == Files::AsPlanned { 0 } else { RESTORES_MAX }
    }
}

/// What became of an execution.
enum Trying {
    Done(Outcome),
    /// Broken off, and what was done until then.
    Failed(ClientError, Outcome),
}

impl User {
    /// Lives until the step is over; gives back the plans for the next step, and what is known of
    /// the user's files.
    pub async fn live(mut self) -> (UserPlans, Files) {
        let mut session = None;
        let mut performer = Performer::new(self.shared.cache);
        let mut plan = self.plans.buffer();
        tokio::select! {
            () = self.shared.clock.wait(self.log_on) => {}
            _ = self.stop.changed() => return (self.plans, self.files),
        }
        session = self.ready(session).await;
        while self.stop.borrow().is_none() {
            let due = self.begin + self.plans.due();
            if !self.shared.closed && !self.wait(&mut session, &mut performer, due).await {
                break;
            }
            let wanted = Instant::now();
            let due = if self.shared.closed { wanted } else { due };
            // Who has no connection has begun nothing, and is behind when that lasts.
            session = self.ready(session).await;
            if session.is_none() {
                // The step ended while the server did not answer.
                if self.shared.closed {
                    self.plans.pass_into(&mut plan);
                    self.ended(&plan, due, None, None);
                }
                break;
            }
            self.plans.next_into(&mut plan);
            let begin = Instant::now();
            let begun_ns = self.shared.clock.at(begin);
            self.shared.step().book.begin(self.place, begun_ns, self.next_due());
            let tried = self.tried(&mut session, &mut performer, &plan, due).await;
            let (astray, lost) = match &tried {
                Trying::Done(Outcome { trouble, .. }) => {
                    (trouble.is_some(), trouble.as_ref().is_some_and(ends_session))
                }
                Trying::Failed(..) => (true, true),
            };
            if astray {
                self.files = Files::Astray;
            }
            self.ended(&plan, due, Some((begin, tried)), session.as_mut());
            if lost {
                performer.forget();
                self.bury(&mut session, false);
            }
        }
        self.shared.step().book.leave(self.place);
        self.leave_undone(&mut plan);
        if let Some(session) = session.take() {
            self.shared.recorder.ended(self.number, session.close().await, false);
        }
        (self.plans, self.files)
    }

    /// Writes down what was due in the step and has not begun.
    fn leave_undone(&mut self, plan: &mut Plan) {
        if self.shared.closed {
            return;
        }
        let stopped = self.shared.step().stopped();
        for _ in 0..UNDONE_MAX {
            let due = self.begin + self.plans.due();
            if self.shared.clock.at(due) >= stopped {
                break;
            }
            self.plans.pass_into(plan);
            self.ended(plan, due, None, None);
        }
    }

    /// A session of a user whose files are as the plans say; none when the step is over.
    async fn ready(&mut self, mut session: Option<Session>) -> Option<Session> {
        loop {
            session = self.connected(session).await;
            if session.is_none() || self.restores == 0 {
                return session;
            }
            self.restores -= 1;
            self.restore(&mut session).await;
        }
    }

    /// Makes the user's files again what the next execution needs, before the first one of a step:
    /// what was deleted by a run before, or broken off in the step before, would count as this
    /// step's failure. Its operations belong to no scenario.
    async fn restore(&mut self, session: &mut Option<Session>) {
        let Some(connected) = session.as_mut() else { return };
        let limit = RESTORE_LIMIT.max(self.shared.timeout);
        let (files, home) = (self.plans.files(), self.plans.home());
        let whole = self.files == Files::Astray;
        let restoring = Box::pin(async {
            match whole {
                true => prepare(connected, files, self.number, home, |_| ()).await,
                false => restore(connected, files, self.number, home).await,
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
                // It would be refused again; what the scenarios can do they do.
                self.shared.remember(format!("files cannot be restored: {error}"));
                self.restores = 0;
                return;
            }
            Some(Err(_)) => self.shared.trouble(&ClientError::Timeout(limit)),
            None => {}
        }
        self.bury(session, false);
    }

    /// Does an execution, over further sessions when its durable opens outlive the one that it
    /// began in.
    async fn tried(
        &mut self,
        session: &mut Option<Session>,
        performer: &mut Performer,
        plan: &Plan,
        due: Instant,
    ) -> Trying {
        let limit = self.shared.timeout;
        let scene = Scene {
            scenario_run: Some(self.scenario_run(plan)),
            scheduled_at: Some(self.shared.clock.at(due)),
        };
        for attempt in 0.. {
            let Some(connected) = session.as_mut() else { break };
            connected.channel().scene = scene;
            let given_up = given_up(self.stop.clone());
            let performing = Box::pin(async {
                match attempt {
                    0 => performer.perform(connected, plan).await,
                    _ => performer.resume(connected, plan).await,
                }
            });
            let tried = tokio::select! {
                biased;
                tried = timeout(limit, performing) => tried.map_err(|_| limit),
                patience = given_up => Err(patience),
            };
            if let Some(connected) = session.as_mut() {
                connected.channel().scene = Scene::default();
            }
            let error = match tried {
                Ok(Ok(outcome)) => {
                    self.shared.resumed(outcome.resumed);
                    return Trying::Done(outcome);
                }
                Ok(Err(error)) => error,
                Err(limit) => ClientError::Timeout(limit),
            };
            if attempt == RESUMES_MAX || self.is_broken_off() || !performer.may_resume() {
                return Trying::Failed(error, performer.broken_off());
            }
            self.shared.trouble(&error);
            self.bury(session, true);
            *session = self.connected(None).await;
        }
        Trying::Failed(ClientError::Timeout(limit), performer.broken_off())
    }

    /// Whether nobody waits for what is under way, because the step is over.
    fn is_broken_off(&self) -> bool {
        *self.stop.borrow() == Some(Duration::ZERO)
    }

    /// When the execution after the present one is due, on the run's clock.
    fn next_due(&self) -> Option<i64> {
        (!self.shared.closed).then(|| self.shared.clock.at(self.begin + self.plans.due()))
    }

    /// Waits until an execution is due, answering breaks meanwhile; false when the step is over.
    async fn wait(
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
                self.bury(session, false);
            }
        }
    }

    /// The session, or a new one; attempts go on until there is one or the step is over.
    async fn connected(&mut self, session: Option<Session>) -> Option<Session> {
        if session.is_some() {
            return session;
        }
        let mut pause = BACKOFF_LEAST;
        loop {
            if self.stop.borrow().is_some() {
                return None;
            }
            let credential = self.shared.credentials.of(self.number);
            let host = self.shared.host.clone();
            // Numbers of opens are unique in a run.
            let handles = self.shared.next_session() << 24;
            let limit = self.shared.timeout;
            let attempt = Session::connect(limit, host, &credential, handles, self.lost);
            let connected = tokio::select! {
                biased;
                connected = attempt => connected,
                _ = self.stop.changed() => return None,
            };
            let error = match connected {
                Ok(mut session) => {
                    self.shared.recorder.rows(self.number, session.take_rows());
                    self.lost = None;
                    return Some(session);
                }
                Err(failed) => {
                    self.shared.recorder.ended(self.number, failed.left, false);
                    failed.error
                }
            };
            self.shared.trouble(&error);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.stop.changed() => return None,
            }
            pause = (pause * 2).min(BACKOFF_MOST);
        }
    }

    /// Writes a lost session down; its opens may live on in the next one.
    fn bury(&mut self, session: &mut Option<Session>, opens_live_on: bool) {
        let Some(session) = session.take() else { return };
        self.lost = Some(session.previous());
        let left = session.end("reset");
        self.shared.count(self.number, &left.rows);
        self.shared.recorder.ended(self.number, left, opens_live_on);
    }

    fn scenario_run(&self, plan: &Plan) -> u64 {
        self.number * RUNS_MAX + plan.run() % RUNS_MAX
    }

    /// Writes an execution down.
    fn ended(
        &self,
        plan: &Plan,
        due: Instant,
        tried: Option<(Instant, Trying)>,
        session: Option<&mut Session>,
    ) {
        let shared = &self.shared;
        let step = shared.step();
        let clock = &shared.clock;
        let scheduled_at = clock.at(due);
        let mut row = Scenario {
            scenario_run: self.scenario_run(plan),
            step: step.number,
            user_number: self.number,
            user: Some(shared.credentials.of(self.number).name()),
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
        let (started_at, ended_at) = (clock.at(begin), clock.at(end));
        row.started_at = Some(started_at);
        row.ended_at = Some(ended_at);
        row.late_ns = Some(started_at - scheduled_at);
        row.response_ns = Some(ended_at - scheduled_at);
        let mut failure = None;
        match &tried {
            Trying::Done(outcome) => {
                row.operations = outcome.operations;
                row.saved = outcome.saved;
                row.errors = outcome.errors;
                row.outcome = DONE.into();
                if let Some(trouble) = &outcome.trouble {
                    row.outcome = FAILED.into();
                    row.status_name = Some(trouble.failure.name());
                    failure = Some(trouble.failure);
                    shared.unexpected(plan.scenario().name.as_str(), trouble);
                }
            }
            Trying::Failed(error, outcome) => {
                row.operations = outcome.operations;
                row.saved = outcome.saved;
                row.errors = outcome.errors + 1;
                row.outcome = FAILED.into();
                row.status_name = Some(error.status_name());
                failure = Some(failure_of(error));
                if !self.is_broken_off() {
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
        step.book.end(self.place);
        shared.tally(self.number, |tally| tally.scenario(&scenario_end));
        shared.count(self.number, &rows);
        shared.recorder.scenario(row, rows);
    }
}

/// Whether an answer says that the server has forgotten the session or its share: all that follows
/// would get the same (MS-SMB2 sections 3.3.5.2.9 and 3.3.5.2.11). Only a new session finds out
/// whether they are back.
fn ends_session(trouble: &execute::Trouble) -> bool {
    let Failure::Status(status) = trouble.failure else { return false };
    matches!(
        Status(status),
        Status::NETWORK_NAME_DELETED
            | Status::USER_SESSION_DELETED
            | Status::NETWORK_SESSION_EXPIRED
    )
}

/// An error of the client as what tallies count.
pub fn failure_of(error: &ClientError) -> Failure {
    use std::io::ErrorKind;
    let io = |error: &std::io::Error| match error.kind() {
        ErrorKind::ConnectionRefused => Trouble::Refused,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Trouble::Reset,
        ErrorKind::UnexpectedEof => Trouble::Closed,
        ErrorKind::TimedOut => Trouble::Timeout,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Trouble::Unreachable,
        _ => Trouble::Client,
    };
    match error {
        ClientError::Connect { error, .. } | ClientError::Lost(error) => {
            Failure::Trouble(io(error))
        }
        ClientError::Refused { status, .. } | ClientError::Share { status, .. } => {
            Failure::Status(status.0)
        }
        ClientError::Logon(_) | ClientError::Kdc(_) => Failure::Trouble(Trouble::Client),
        ClientError::Protocol(_) | ClientError::Unverified(_) => {
            Failure::Trouble(Trouble::Protocol)
        }
        ClientError::Timeout(_) => Failure::Trouble(Trouble::Timeout),
    }
}

/// Until the step is over and its patience is at an end, which it gives.
async fn given_up(mut stop: watch::Receiver<Option<Duration>>) -> Duration {
    let asked = stop.wait_for(Option::is_some).await.ok().and_then(|asked| *asked);
    // A step without an engine is over as well.
    let Some(mut patience) = asked else { return Duration::ZERO };
    loop {
        tokio::select! {
            () = tokio::time::sleep(patience) => return patience,
            Ok(()) = stop.changed() => patience = stop.borrow().unwrap_or_default(),
        }
    }
}

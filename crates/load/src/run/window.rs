//! The measured part of a step: warm-up, window and cool-down, with progress once a second.
//!
//! Owns the phases and the measurements at their borders. The engine owns the users' tasks and the
//! step's row.

use std::time::Duration;

use smbscope_client::clock::nanoseconds;
use smbscope_tables::run::{COOL_DOWN, MEASURED, WARM_UP};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{Engine, Pace, Progress, Silence, Users};
use crate::capacity::{Early, Snapshot, Step};
use crate::self_check::ClientLoad;
use crate::stats::Tally;

/// When the phases of a step begin and end.
#[derive(Clone, Copy)]
pub(super) struct Timeline {
    pub start: Instant,
    /// Users log on during this time.
    pub ramp: Duration,
    /// Begin of the measured window.
    pub window: Instant,
    /// Its length.
    pub length: Duration,
    warm_up: Duration,
    cool_down: Duration,
}

impl Timeline {
    pub fn new(pace: &Pace, step: &Step, start: Instant) -> Timeline {
        let ramp = Duration::from_secs_f64(step.users as f64 / pace.ramp_per_second.max(0.01));
        let window = start + ramp + pace.warm_up;
        let length = Duration::from_nanos(step.duration_ns.max(1) as u64);
        let (warm_up, cool_down) = (pace.warm_up, pace.cool_down);
        Timeline { start, ramp, window, length, warm_up, cool_down }
    }

    pub fn window_end(&self) -> Instant {
        self.window + self.length
    }

    fn phase_end(&self, phase: Phase) -> Instant {
        match phase {
            Phase::WarmUp => self.window,
            Phase::Measured => self.window_end(),
            Phase::CoolDown => self.window_end() + self.cool_down,
        }
    }

    /// Time in a phase, and its length.
    fn elapsed(&self, phase: Phase, now: Instant) -> (Duration, Duration) {
        match phase {
            Phase::WarmUp => (now - self.start, self.ramp + self.warm_up),
            Phase::Measured => (now - self.window, self.length),
            Phase::CoolDown => (now.saturating_duration_since(self.window_end()), self.cool_down),
        }
    }

    /// How many of `users` have started.
    fn users_begun(&self, users: u64, now: Instant) -> u64 {
        let begun =
            users as f64 * (now - self.start).as_secs_f64() / self.ramp.as_secs_f64().max(1e-9);
        (begun as u64).min(users)
    }
}

/// Results of the window.
pub(super) struct WindowOutcome {
    pub step: Step,
    pub timeline: Timeline,
    /// The schedules when the window began, and at the last check.
    pub begun: Snapshot,
    pub last: Snapshot,
    /// Connection trouble before the window.
    pub troubles: u64,
    /// Measurements until the window's end; `None` if the step ended before the window.
    pub end: Option<(Tally, ClientLoad, Snapshot, Instant)>,
    /// The result was certain before the window's end.
    pub cut_short: bool,
    /// The server did not answer when the step ended.
    pub gone: Option<Silence>,
}

/// A step that is being measured.
pub(super) struct Window<'a> {
    engine: &'a Engine,
    users: &'a Users,
    phase: Phase,
    may_cut_short: bool,
    early: Option<Early>,
    outcome: WindowOutcome,
}

impl<'a> Window<'a> {
    /// A step whose users were just started.
    pub fn new(
        engine: &'a Engine,
        users: &'a Users,
        step: Step,
        timeline: Timeline,
        may_cut_short: bool,
    ) -> Window<'a> {
        let begun = snapshot(engine, users, timeline.start);
        let outcome = WindowOutcome {
            step,
            timeline,
            begun,
            last: begun,
            troubles: engine.shared.troubles(),
            end: None,
            cut_short: false,
            gone: None,
        };
        Window { engine, users, phase: Phase::WarmUp, may_cut_short, early: None, outcome }
    }

    /// Runs all phases, or until the result is certain or the run is interrupted.
    pub async fn run(mut self, report: &mut impl FnMut(&Progress)) -> WindowOutcome {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.engine.self_check.begin();
        loop {
            let mut interrupted = self.engine.interrupted.clone();
            tokio::select! {
                _ = ticks.tick() => {}
                () = sleep_until(self.outcome.timeline.phase_end(self.phase)) => {}
                _ = interrupted.wait_for(|stop| *stop) => {}
            }
            let now_at = Instant::now();
            let now = snapshot(self.engine, self.users, now_at);
            let now_ns = self.engine.shared.clock.ns_at(now_at);
            let gone = self.engine.shared.answers().gone(now_ns);
            self.outcome.gone = gone;
            let outage_ns = nanoseconds(self.engine.pace.outage);
            let given_up =
                gone.is_some_and(|silence| now_ns.saturating_sub(silence.since) >= outage_ns);
            let interrupted = self.engine.interrupted() || given_up;
            self.advance(now_at, now, interrupted);
            report(&self.progress(now_at, now));
            self.outcome.last = now;
            let cooled_down = self.phase == Phase::CoolDown
                && (now_at >= self.outcome.timeline.phase_end(self.phase)
                    || self.outcome.cut_short);
            if interrupted || cooled_down {
                return self.outcome;
            }
        }
    }

    /// Goes to the next phase if it is time.
    fn advance(&mut self, now_at: Instant, now: Snapshot, interrupted: bool) {
        let engine = self.engine;
        if self.phase == Phase::WarmUp && now_at >= self.outcome.timeline.window {
            self.phase = Phase::Measured;
            self.outcome.begun = now;
            self.outcome.troubles = engine.shared.troubles();
            engine.shared.take_tally();
            engine.self_check.begin();
            let step = &self.outcome.step;
            let window_ns = step.duration_ns.max(1);
            self.early = Some(Early::new(engine.rule, now, window_ns, step.may_end_early));
        } else if self.phase == Phase::Measured {
            let certain = self.early.as_mut().and_then(|early| early.look(&now));
            self.outcome.cut_short = self.may_cut_short && !engine.pace.closed && certain.is_some();
            let is_over = now_at >= self.outcome.timeline.window_end();
            if is_over || self.outcome.cut_short || interrupted {
                let tally = engine.shared.take_tally();
                let client = engine.self_check.load(&tally);
                self.outcome.end = Some((tally, client, now, now_at));
                self.users.running.end_window(engine.shared.clock.ns_at(now_at));
                self.phase = Phase::CoolDown;
            }
        }
    }

    fn progress(&self, now_at: Instant, now: Snapshot) -> Progress {
        self.engine.shared.recorder.flush();
        let tally = self.engine.shared.peek_tally();
        let client = self.engine.self_check.load(&tally);
        let timeline = &self.outcome.timeline;
        let (elapsed, length) = timeline.elapsed(self.phase, now_at);
        Progress {
            step: self.outcome.step,
            phase: self.phase.name(),
            elapsed,
            length,
            users: timeline.users_begun(self.users.numbers.len() as u64, now_at),
            now,
            tally,
            client,
        }
    }
}

/// How far users are behind their schedules.
fn snapshot(engine: &Engine, users: &Users, time: Instant) -> Snapshot {
    let clock = &engine.shared.clock;
    users.running.log.snapshot(clock.ns_at(time), |user, number, _| {
        let begin = *users.begins.get(user)?;
        let run = users.runs.get(user)? + number + 1;
        Some(clock.ns_at(begin + engine.planner.schedule(*users.numbers.get(user)?, run)))
    })
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

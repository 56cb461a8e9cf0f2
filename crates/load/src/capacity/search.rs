//! The search for the highest number of users without overload.
//!
//! A state machine without clock or network: [`Search::next`] says which step to run,
//! [`Search::report`] takes what it showed. Users are doubled from a start until a step is
//! overloaded (or halved until one is not), the gap is bisected down to the resolution, then both
//! sides of the edge are repeated until the majority of their runs agrees, because near the limit
//! a single run is a throw of dice. A step counts against its number of users also when the
//! generator was the limit, or too many scenarios failed: the answer then says so.

use std::collections::BTreeMap;

use super::answer::{Answer, Cause, StopReason};
use super::interval::Interval;
use super::limit::Exceeded;
use super::step::{Purpose, Settings, Step, StepResult};

/// Steps that a search never exceeds, whatever the server does.
const STEPS_MAX: u32 = 100;
/// With half of the scenarios failing at the least load nothing can be measured.
const HOPELESS_PERCENT: f64 = 50.0;

/// What is known of one number of users.
#[derive(Clone, Debug, Default)]
struct Level {
    kept: u32,
    /// Of `kept`, runs of full length.
    full: u32,
    too_many: u32,
    client: u32,
    errors: u32,
    slow: u32,
    /// The limit that the last slow run did not keep.
    exceeded: Option<Exceeded>,
}

impl Level {
    fn runs(&self) -> u32 {
        self.kept + self.too_many
    }

    fn cause(&self) -> Cause {
        let overloaded = self.too_many - self.client - self.errors - self.slow;
        let causes = [
            (overloaded, Cause::Overload),
            (self.slow, Cause::Response),
            (self.errors, Cause::Errors),
            (self.client, Cause::Client),
        ];
        // The first of equal ones.
        let most = causes.into_iter().rev().max_by_key(|(runs, _)| *runs);
        most.map_or(Cause::Overload, |(_, cause)| cause)
    }
}

/// The search.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// The numbers of users to try instead of a search.
    points: Option<Vec<u64>>,
    levels: BTreeMap<u64, Level>,
    verdicts: Vec<(u64, bool)>,
    steps: u64,
    stopped: Option<StopReason>,
}

impl Search {
    /// A new one. Settings that contradict each other are put right: a start outside of the
    /// bounds becomes the nearer bound.
    pub fn new(settings: Settings) -> Search {
        Search {
            settings: settings.sound(),
            points: None,
            levels: BTreeMap::new(),
            verdicts: Vec::new(),
            steps: 0,
            stopped: None,
        }
    }

    /// These numbers of users, one after another, and an answer from them.
    pub fn of_points(points: Vec<u64>, duration_ns: i64) -> Search {
        let most = points.iter().copied().max().unwrap_or(1);
        let settings = Settings { repeats: 1, ..Settings::new(most, most, duration_ns) };
        Search { points: Some(points), ..Search::new(settings) }
    }

    /// The step to run next; none when the search is done. Asking twice gives the same step.
    pub fn next(&self) -> Option<Step> {
        match self.decide() {
            Ok((users, purpose)) => Some(self.step(users, purpose)),
            Err(_) => None,
        }
    }

    /// Takes what a step showed.
    pub fn report(&mut self, result: &StepResult) {
        self.steps += 1;
        if result.server_gone() {
            self.stopped = Some(StopReason::ServerGone);
            return;
        }
        let errors_percent = result.errors_percent();
        let errors = errors_percent > self.settings.errors_limit_percent;
        let overloaded = result.judgement.overloaded;
        // A generator at its limit spoils only what it makes look overloaded.
        let exceeded = result.row.exceeded.first();
        let client = (overloaded || exceeded.is_some()) && result.limited_by_client;
        let level = self.levels.entry(result.step.users).or_default();
        if overloaded || errors || exceeded.is_some() {
            level.too_many += 1;
            level.client += u32::from(client);
            level.errors += u32::from(errors && !client);
            let slow = exceeded.filter(|_| !overloaded && !errors && !client);
            level.slow += u32::from(slow.is_some());
            level.exceeded = slow.cloned().or(level.exceeded.take());
        } else {
            level.kept += 1;
            level.full += u32::from(!result.ended_early);
        }
        if !client && !errors {
            self.verdicts.push((result.step.users, overloaded || exceeded.is_some()));
        }
        let nothing_kept = self.levels.values().all(|level| level.kept == 0);
        if errors_percent > HOPELESS_PERCENT && nothing_kept {
            self.stopped = Some(StopReason::TooManyErrors);
        }
    }

    /// How many more steps the search probably needs, the next one included: as many as it would need if
    /// the limit lay in the middle of what is still possible, or at twice the load that is carried.
    pub fn steps_left(&self) -> u64 {
        if let Some(points) = &self.points {
            return (points.len() as u64).saturating_sub(self.steps);
        }
        let mut expected = self.clone();
        let limit = match self.bracket() {
            (Some(low), Some(high)) => low + (high - low) / 2,
            (Some(low), None) => low.saturating_mul(2),
            (None, Some(high)) => high / 2,
            (None, None) => self.settings.start.saturating_mul(4),
        };
        let before = self.steps;
        while let Some(step) = expected.next() {
            expected.report(&StepResult::judged(step, step.users > limit));
        }
        expected.steps - before
    }

    /// Ends the search from outside (Ctrl-C); the answer is what is known.
    pub fn interrupt(&mut self) {
        self.stopped.get_or_insert(StopReason::Interrupted);
    }

    /// What is known so far.
    pub fn answer(&self) -> Answer {
        let reason = match self.decide() {
            Err(reason) => reason,
            Ok(_) => StopReason::Interrupted,
        };
        let (low, high) = self.bracket();
        let too_many = high.and_then(|users| self.levels.get(&users));
        Answer {
            cause: too_many.map(Level::cause),
            exceeded: too_many.and_then(|level| level.exceeded.clone()),
            limits: Vec::new(),
            p95_ns: None,
            users: low.unwrap_or(0),
            interval: Interval::from_steps(&self.verdicts),
            too_many: high,
            reason,
            steps: self.steps,
        }
    }

    /// Lowest number of users that is too much, and the highest below it that is carried.
    fn bracket(&self) -> (Option<u64>, Option<u64>) {
        let too_many = |level: &Level| level.too_many >= level.kept;
        let high = self.levels.iter().find(|(_, level)| too_many(level)).map(|(&users, _)| users);
        let low = self
            .levels
            .range(..high.unwrap_or(u64::MAX))
            .rev()
            .find(|(_, level)| level.kept > level.too_many)
            .map(|(&users, _)| users);
        (low, high)
    }

    fn decide(&self) -> Result<(u64, Purpose), StopReason> {
        if let Some(reason) = self.stopped {
            return Err(reason);
        }
        if let Some(points) = &self.points {
            let point = usize::try_from(self.steps).ok().and_then(|place| points.get(place));
            let step = point.map(|users| (*users, Purpose::Confirm));
            return step.ok_or(StopReason::PointsTried);
        }
        if self.steps >= u64::from(STEPS_MAX) {
            return Err(StopReason::Undecided);
        }
        let Settings { start, least, most, .. } = self.settings;
        // A draw is decided at once.
        let draw = |level: &Level| level.kept == level.too_many && level.kept > 0;
        if let Some((&users, level)) = self.levels.iter().find(|(_, level)| draw(level))
            && level.runs() <= 2 * self.settings.repeats
        {
            return Ok((users, Purpose::Confirm));
        }
        match self.bracket() {
            (None, None) => Ok((start, Purpose::Double)),
            (Some(low), None) if low < most => {
                Ok((low.saturating_mul(2).min(most), Purpose::Double))
            }
            (Some(low), None) => self.confirm(low).ok_or(StopReason::MostUsers),
            (None, Some(high)) if high > least => Ok(((high / 2).max(least), Purpose::Halve)),
            (None, Some(high)) => {
                self.confirm(high).ok_or_else(|| self.why(high, StopReason::LeastUsers))
            }
            (Some(low), Some(high)) => {
                let gap = low as f64 * self.settings.resolution_percent / 100.0;
                if (high - low) as f64 > gap.max(1.0) {
                    return Ok((low + (high - low) / 2, Purpose::Bisect));
                }
                self.confirm(low)
                    .or_else(|| self.confirm(high))
                    .ok_or_else(|| self.why(high, StopReason::Resolved))
            }
        }
    }

    /// Another run of one side of the edge, unless its majority is certain. What was only seen
    /// to be kept in short steps needs a full one.
    fn confirm(&self, users: u64) -> Option<(u64, Purpose)> {
        let level = self.levels.get(&users)?;
        let majority = self.settings.repeats / 2 + 1;
        let certain = level.kept.max(level.too_many) >= majority;
        let full = level.too_many > level.kept || level.full > 0;
        (!(certain && full)).then_some((users, Purpose::Confirm))
    }

    fn why(&self, users: u64, otherwise: StopReason) -> StopReason {
        match self.levels.get(&users).map(Level::cause) {
            Some(Cause::Client) => StopReason::LimitedByClient,
            Some(Cause::Errors) => StopReason::TooManyErrors,
            _ => otherwise,
        }
    }

    fn step(&self, users: u64, purpose: Purpose) -> Step {
        let runs = self.levels.get(&users).map_or(0, Level::runs);
        let near = match self.bracket() {
            (_, Some(high)) => {
                let gap = self.settings.resolution_percent / 100.0 * users as f64;
                (high.saturating_sub(users)) as f64 <= 4.0 * gap.max(1.0)
            }
            _ => false,
        };
        Step {
            step: self.steps + 1,
            users,
            repeat: runs + 1,
            purpose,
            duration_ns: self.settings.duration_ns,
            may_end_early: purpose != Purpose::Confirm && !near,
        }
    }
}

#[cfg(test)]
mod tests;

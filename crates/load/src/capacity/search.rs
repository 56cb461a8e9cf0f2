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
mod tests {
    use super::super::limit::Limit;
    use super::super::simulation::{Random, Server, World};
    use super::super::table::Row;
    use super::*;
    use crate::stats::Summary;

    const SECOND: i64 = 1_000_000_000;

    fn result(step: Step, overloaded: bool) -> StepResult {
        StepResult { ended: 1_000, ..StepResult::judged(step, overloaded) }
    }

    /// Searches a server; gives the answer and the users of the steps.
    fn search(
        settings: Settings,
        mut server: impl FnMut(Step) -> StepResult,
    ) -> (Answer, Vec<u64>) {
        let mut search = Search::new(settings);
        let mut users = Vec::new();
        while let Some(step) = search.next() {
            assert_eq!(search.next(), Some(step));
            users.push(step.users);
            search.report(&server(step));
            assert!(users.len() <= STEPS_MAX as usize);
        }
        (search.answer(), users)
    }

    fn knee(capacity: u64) -> impl Fn(Step) -> StepResult {
        move |step| result(step, step.users > capacity)
    }

    #[test]
    fn doubles_bisects_and_repeats() {
        let (answer, users) = search(Settings::new(10, 10_000, 60 * SECOND), knee(437));
        assert_eq!(
            users,
            [10, 20, 40, 80, 160, 320, 640, 480, 400, 440, 420, 420, 440],
            "{answer:?}"
        );
        assert_eq!((answer.users, answer.too_many), (420, Some(440)));
        assert_eq!(answer.reason, StopReason::Resolved);
        let Interval { low: Some(low), high: Some(high) } = answer.interval else { panic!() };
        assert!(low < 437.0 && 437.0 < high && high / low < 1.2, "{low} {high}");
        assert!(answer.sentence().starts_with("The server carries 420 users without overload;"));
    }

    #[test]
    fn given_points_are_tried_in_their_order() {
        let run = |points: &[u64], capacity| {
            let mut search = Search::of_points(points.to_vec(), SECOND);
            let mut users = Vec::new();
            while let Some(step) = search.next() {
                assert_eq!(search.steps_left(), (points.len() - users.len()) as u64);
                assert!(!step.may_end_early);
                users.push(step.users);
                search.report(&result(step, step.users > capacity));
            }
            assert_eq!(users, points);
            search.answer()
        };
        let answer = run(&[100, 400, 200, 200], 250);
        assert_eq!((answer.users, answer.too_many), (200, Some(400)));
        assert_eq!(answer.reason, StopReason::PointsTried);
        let sentence = answer.sentence();
        assert!(
            sentence.starts_with(
                "The server carries 200 users without overload; 400 users are too many"
            ),
            "{sentence}"
        );
        assert!(run(&[10, 20], 99).sentence().contains("more users were not tried (--steps)"));
        assert!(run(&[10, 20], 1).sentence().starts_with("None of the given numbers"));
    }

    #[test]
    fn every_knee_is_found_to_the_resolution() {
        for capacity in (1..200).chain([1_000, 2_299, 9_999]) {
            let settings =
                Settings { resolution_percent: 1.0, ..Settings::new(50, 10_000, SECOND) };
            let (answer, _) = search(settings, knee(capacity));
            let least = capacity.min(capacity - capacity / 100).max(1);
            assert!((least..=capacity).contains(&answer.users), "{capacity}: {answer:?}");
            assert_eq!(answer.reason, StopReason::Resolved);
        }
    }

    #[test]
    fn never_and_always_overloaded() {
        let (answer, users) = search(Settings::new(100, 1_000, SECOND), knee(u64::MAX));
        assert_eq!(users, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!((answer.users, answer.reason), (1_000, StopReason::MostUsers));
        assert_eq!(answer.interval.high, None);
        let (answer, users) = search(Settings::new(8, 1_000, SECOND), knee(0));
        assert_eq!(users, [8, 4, 2, 1, 1]);
        assert_eq!((answer.users, answer.reason), (0, StopReason::LeastUsers));
        assert_eq!(answer.interval.low, None);
    }

    #[test]
    fn trouble_is_told_from_overload() {
        // The generator gives out at 300 users, the server would at 1,000.
        let (answer, _) = search(Settings::new(50, 10_000, SECOND), |step| StepResult {
            limited_by_client: step.users > 250,
            ..result(step, step.users > 300)
        });
        assert_eq!(answer.reason, StopReason::LimitedByClient);
        assert!((280..=300).contains(&answer.users), "{answer:?}");
        assert_eq!(answer.interval.high, None);
        // Logons are refused beyond 64 users.
        let (answer, _) = search(Settings::new(10, 10_000, SECOND), |step| StepResult {
            failed: if step.users > 64 { 200 } else { 5 },
            ..result(step, false)
        });
        assert_eq!((answer.users, answer.reason), (62, StopReason::TooManyErrors));
        // Nothing works at all: one step is enough.
        let (answer, users) = search(Settings::new(10, 10_000, SECOND), |step| StepResult {
            failed: 900,
            ..result(step, false)
        });
        assert_eq!((answer.users, answer.reason), (0, StopReason::TooManyErrors));
        assert_eq!(users, [10]);
        // The server dies at 100 users.
        let (answer, users) = search(Settings::new(10, 10_000, SECOND), |step| StepResult {
            gone_since: (step.users > 100).then_some(7),
            ..result(step, false)
        });
        assert_eq!((answer.users, answer.reason), (80, StopReason::ServerGone));
        assert_eq!(users.last(), Some(&160));
    }

    #[test]
    fn a_limit_on_response_times_decides_before_overload_does() {
        // Overload begins at 400 users; responses take 10 ms for each user.
        let limit: Limit = "p95<2s".parse().unwrap();
        let (answer, _) = search(Settings::new(10, 10_000, SECOND), |step| {
            let p95_ns = step.users as i64 * 10_000_000;
            let summary = Summary { count: 1, mean_ns: 0, p50_ns: 0, p95_ns, p99_ns: 0, max_ns: 0 };
            let exceeded = limit.check(Some(&summary)).into_iter().collect();
            let row = Row { exceeded, ..Row::default() };
            StepResult { row, ..result(step, step.users > 400) }
        });
        assert_eq!((answer.reason, answer.cause), (StopReason::Resolved, Some(Cause::Response)));
        assert!((190..200).contains(&answer.users), "{answer:?}");
        let exceeded = answer.exceeded.clone().unwrap();
        assert_eq!(exceeded.measured_ns, answer.too_many.map(|users| users as i64 * 10_000_000));
        let answer = Answer { limits: vec![limit], p95_ns: Some(1_950_000_000), ..answer };
        let sentence = answer.sentence();
        let begin = format!(
            "The server carries {} users without overload and within p95<2s, p95 1.95 s; {} users are too many: p95 ",
            answer.users,
            answer.too_many.unwrap()
        );
        assert!(sentence.starts_with(&begin), "{sentence}");
    }

    #[test]
    fn the_steps_that_are_left_are_estimated() {
        for capacity in [30, 437, 5_000] {
            let mut search = Search::new(Settings::new(10, 10_000, SECOND));
            let mut estimates = Vec::new();
            while let Some(step) = search.next() {
                estimates.push(search.steps_left());
                search.report(&knee(capacity)(step));
            }
            assert_eq!(search.steps_left(), 0);
            // When the limit is enclosed the estimate is off by two steps at most.
            let steps = estimates.len() as u64;
            for (done, left) in estimates.iter().enumerate().skip(estimates.len() - 5) {
                assert!((done as u64 + left).abs_diff(steps) <= 2, "{capacity}: {estimates:?}");
            }
        }
    }

    #[test]
    fn one_wrong_verdict_does_not_mislead() {
        for wrong in 1..=12 {
            let mut steps = 0;
            let (answer, _) = search(Settings::new(10, 10_000, SECOND), |step| {
                steps += 1;
                result(step, (step.users > 437) != (steps == wrong))
            });
            // A wrong "overloaded" in mid-search is only found at the edge it makes; it is found.
            assert!((400..=460).contains(&answer.users), "step {wrong}: {answer:?}");
        }
    }

    #[test]
    fn what_was_short_is_run_in_full() {
        let (answer, _) =
            search(Settings { repeats: 1, ..Settings::new(10, 1_000, SECOND) }, |step| {
                StepResult { ended_early: step.may_end_early, ..result(step, step.users > 100) }
            });
        assert!((95..=100).contains(&answer.users));
        let mut search = Search::new(Settings { most: 20, ..Settings::new(10, 20, SECOND) });
        for _ in 0..2 {
            let step = search.next().unwrap();
            assert!(step.may_end_early);
            search.report(&StepResult { ended_early: true, ..result(step, false) });
        }
        let step = search.next().unwrap();
        assert_eq!((step.users, step.repeat, step.may_end_early), (20, 2, false));
        search.interrupt();
        assert_eq!(search.next(), None);
        assert_eq!((search.answer().users, search.answer().reason), (20, StopReason::Interrupted));
    }

    #[test]
    fn odd_settings_end_all_the_same() {
        for (start, least, most, resolution) in
            [(0, 0, 0, f64::NAN), (5, 9, 2, -1.0), (u64::MAX, 1, u64::MAX, 0.0), (7, 7, 7, 1e9)]
        {
            let settings = Settings {
                least,
                resolution_percent: resolution,
                repeats: 0,
                errors_limit_percent: f64::NAN,
                ..Settings::new(start, most, 0)
            };
            search(settings, knee(6));
            search(settings, knee(u64::MAX));
        }
    }

    #[test]
    fn the_interval_holds_the_truth() {
        // Verdicts by a logistic function, as wide as steps of a minute are.
        let mut random = Random(4);
        let (mut inside, runs) = (0, 300);
        for run in 0..runs {
            let capacity = 200.0 * (1.0 + f64::from(run) / 100.0);
            let settings =
                Settings { resolution_percent: 5.0, ..Settings::new(50, 10_000, SECOND) };
            let (answer, _) = search(settings, |step| {
                let z = (step.users as f64 / capacity).ln() / 0.03;
                result(step, random.uniform() < 1.0 / (1.0 + (-z).exp()))
            });
            let low = answer.interval.low.unwrap_or(0.0);
            let high = answer.interval.high.unwrap_or(f64::MAX);
            inside += i32::from(low <= capacity && capacity <= high);
        }
        assert!(inside >= runs * 90 / 100, "{inside} of {runs}");
    }

    #[test]
    fn a_simulated_server_gives_its_capacity() {
        // Two cores that are busy all the time with 150 users; steps of five minutes.
        let server = Server::for_users(150, 2);
        let (answer, _) = search(Settings::new(20, 2_000, 300 * SECOND), |step| {
            let mut world = World::new(&server, step.users, step.step * 1_000 + step.users);
            let judgement = world.judge(30 * SECOND, step.duration_ns);
            StepResult { judgement, ..result(step, false) }
        });
        assert_eq!(answer.reason, StopReason::Resolved);
        assert!((138..=158).contains(&answer.users), "{answer:?}");
    }
}

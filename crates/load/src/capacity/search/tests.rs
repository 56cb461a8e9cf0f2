//! The search against servers with a known capacity.

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
fn search(settings: Settings, mut server: impl FnMut(Step) -> StepResult) -> (Answer, Vec<u64>) {
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
    assert_eq!(users, [10, 20, 40, 80, 160, 320, 640, 480, 400, 440, 420, 420, 440], "{answer:?}");
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
        sentence
            .starts_with("The server carries 200 users without overload; 400 users are too many"),
        "{sentence}"
    );
    assert!(run(&[10, 20], 99).sentence().contains("more users were not tried (--steps)"));
    assert!(run(&[10, 20], 1).sentence().starts_with("None of the given numbers"));
}

#[test]
fn every_knee_is_found_to_the_resolution() {
    for capacity in (1..200).chain([1_000, 2_299, 9_999]) {
        let settings = Settings { resolution_percent: 1.0, ..Settings::new(50, 10_000, SECOND) };
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
    let (answer, _) = search(Settings { repeats: 1, ..Settings::new(10, 1_000, SECOND) }, |step| {
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
        let settings = Settings { resolution_percent: 5.0, ..Settings::new(50, 10_000, SECOND) };
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

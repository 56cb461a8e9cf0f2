//! Steps: those of machines that share a run joined, and what they say about the capacity.

use std::collections::BTreeMap;

use smbscope_tables::description::RunDescription;
use smbscope_tables::run::Step;

use super::data::{Answer, StepName, StepRow};
use super::scenarios::StepKey;
use crate::summary::rounded;

/// The parts of one step as one. `limit` is the overload in per cent above which a step counts as
/// overloaded; overload is that of `docs/method/overload.md`: the larger of the share of users behind their
/// schedule and of the scenarios that remained undone beyond what chance explains.
pub(super) fn joined(parts: &[&Step], run: &str, limit: Option<f64>) -> StepRow {
    let sum = |of: fn(&Step) -> u64| parts.iter().map(|part| of(part)).fold(0, u64::saturating_add);
    let most = |of: fn(&Step) -> Option<f64>| {
        parts.iter().filter_map(|part| of(part)).reduce(f64::max).map(rounded)
    };
    // The time that all machines measured; if their windows do not overlap, that of the first.
    let start = parts.iter().map(|part| part.start).max().unwrap_or(0);
    let end = parts.iter().map(|part| part.end).min().unwrap_or(0).max(start);
    let seconds = |part: &Step| part.end.saturating_sub(part.start) as f64 / 1e9;
    let throughput = parts
        .iter()
        .filter(|part| seconds(part) > 0.0)
        .map(|part| part.completed.saturating_sub(part.failed) as f64 / seconds(part))
        .sum::<f64>();
    let (users_here, users_overloaded) = (sum(|it| it.users_here), sum(|it| it.users_overloaded));
    let (scheduled, completed) = (sum(|it| it.scheduled), sum(|it| it.completed));
    let most_overload = most(|it| Some(it.overload_percent / 100.0)).unwrap_or(0.0);
    let (overload, overloaded) = match (parts, limit) {
        ([only], _) => (most_overload, only.overloaded),
        (_, Some(limit)) => {
            let growth = scheduled.saturating_sub(completed) as f64;
            let by_chance = (scheduled as f64 * limit / 100.0).max((scheduled as f64).sqrt());
            let undone = if growth > by_chance { growth / scheduled as f64 } else { 0.0 };
            let overload = share(users_overloaded, users_here).max(undone);
            (overload, overload * 100.0 > limit)
        }
        _ => (most_overload, parts.iter().any(|part| part.overloaded)),
    };
    let failed = sum(|it| it.failed);
    StepRow {
        run: run.to_owned(),
        step: parts.first().map_or(0, |part| part.step),
        users: parts.iter().map(|part| part.users).max().unwrap_or(0),
        users_here,
        parts: parts.len() as u64,
        start_ns: start,
        end_ns: end,
        duration_ns: end.saturating_sub(start),
        rate: rounded(parts.iter().map(|part| part.rate).sum()),
        scheduled,
        started: sum(|it| it.started),
        on_time: sum(|it| it.on_time),
        completed,
        throughput: rounded(throughput),
        failed,
        failed_share: rounded(share(failed, completed)),
        users_overloaded,
        overload_share: rounded(overload),
        overloaded,
        operations_per_second: per_second(parts, |part| part.operations),
        bytes_per_second: per_second(parts, |part| part.transferred_bytes),
        operation_mean_ns: mean_over_operations(parts, |part| part.operation_mean_ns),
        reply_wait_mean_ns: mean_over_operations(parts, |part| part.reply_wait_mean_ns),
        reply_wait_p99_ns: parts.iter().filter_map(|part| part.reply_wait_p99_ns).max(),
        server_gone: parts.iter().any(|part| part.server_gone == Some(true)),
        client_cpu_share: most(|it| it.client_cpu_percent.map(|percent| percent / 100.0)),
        client_late_ns: parts.iter().filter_map(|part| part.client_late_ns).max(),
        limited_by_client: parts.iter().any(|part| part.limited_by_client),
        ended_early: parts.iter().any(|part| part.ended_early),
        ..StepRow::default()
    }
}

/// The sum over the machines of what each counted in a second of its own window; none where one did not count.
fn per_second(parts: &[&Step], of: fn(&Step) -> Option<u64>) -> Option<f64> {
    let rates = parts.iter().map(|part| {
        let seconds = part.end.saturating_sub(part.start) as f64 / 1e9;
        of(part).filter(|_| seconds > 0.0).map(|count| count as f64 / seconds)
    });
    rates.sum::<Option<f64>>().map(rounded)
}

/// The mean over the operations of all machines, from each machine's own.
fn mean_over_operations(parts: &[&Step], of: fn(&Step) -> Option<i64>) -> Option<i64> {
    let known = parts.iter().filter_map(|part| Some((part.operations?, of(part)?)));
    let (n, sum) = known.fold((0.0, 0.0), |(n, sum), (operations, mean)| {
        (n + operations as f64, sum + operations as f64 * mean as f64)
    });
    (n > 0.0).then(|| (sum / n).round() as i64)
}

/// Overall response time of operations, as SPECstorage (and SPECsfs before it) defines it: the area under
/// the curve of mean latency over achieved operations per second, divided by the highest of these. Steps
/// with equal numbers of users count as one, overloaded ones do not count, and from zero to the
/// least load the latency is that of the least load. None for a single load.
pub(super) fn overall_response(steps: &[StepRow], answer: &Answer) -> Option<i64> {
    let mut loads: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    let carried = |step: &&StepRow| {
        let within = answer.users.is_some_and(|users| step.users <= users);
        step.run == answer.run && within && !step.overloaded && !step.server_gone
    };
    for step in steps.iter().filter(carried) {
        if let (Some(rate), Some(mean)) = (step.operations_per_second, step.operation_mean_ns) {
            loads.entry(step.users).or_default().push((rate, mean as f64));
        }
    }
    let mean = |points: &Vec<(f64, f64)>| {
        let n = points.len().max(1) as f64;
        let sum = points.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        (sum.0 / n, sum.1 / n)
    };
    let mut points: Vec<(f64, f64)> = loads.values().map(mean).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < 2 || last.0 <= 0.0 {
        return None;
    }
    let below_first = first.0 * first.1;
    let areas = points.windows(2).map(|pair| match pair {
        [a, b] => (b.0 - a.0) * (a.1 + b.1) / 2.0,
        _ => 0.0,
    });
    Some(((below_first + areas.sum::<f64>()) / last.0).round() as i64)
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

/// Steps by run and number.
pub(super) fn grouped(steps: &[(String, Step)]) -> BTreeMap<StepKey, Vec<&Step>> {
    let mut groups: BTreeMap<StepKey, Vec<&Step>> = BTreeMap::new();
    for (run, step) in steps {
        groups.entry((run.clone(), step.step)).or_default().push(step);
    }
    groups
}

/// The steps whose scenarios are worth reading first: of each run those with as many users as its
/// answer says; without one those with the most users that are not overloaded; where all are, those
/// with the fewest.
pub(super) fn best(steps: &[StepRow], answers: &[(Answer, bool)]) -> Vec<StepName> {
    let mut names = Vec::new();
    for run in runs(steps) {
        let of_run = || steps.iter().filter(|step| step.run == run);
        let kept = |users: u64| of_run().any(|step| step.users == users && !step.overloaded);
        let answer = answers.iter().find(|(answer, _)| answer.run == run);
        let answer = answer.and_then(|(answer, _)| answer.users).filter(|&users| kept(users));
        let most = of_run().filter(|step| !step.overloaded).map(|step| step.users).max();
        let carried = answer.or(most);
        let users = carried.or_else(|| of_run().map(|step| step.users).min());
        let wanted = of_run()
            .filter(|step| Some(step.users) == users && step.overloaded == carried.is_none());
        names.extend(wanted.map(|step| StepName {
            run: run.to_owned(),
            step: step.step,
            users: step.users,
        }));
    }
    names
}

fn runs(steps: &[StepRow]) -> Vec<&str> {
    let mut runs: Vec<_> = steps.iter().map(|step| step.run.as_str()).collect();
    runs.dedup();
    runs
}

/// How many users each run says that the server carries; false where its parts do not agree.
pub(super) fn answers(steps: &[StepRow], parts: &[&RunDescription]) -> Vec<(Answer, bool)> {
    let mut answers = Vec::new();
    for run in runs(steps) {
        let said: Vec<_> = parts.iter().filter(|part| part.run == run).collect();
        let first = said.first().and_then(|part| part.capacity.as_ref());
        let agree = said.iter().all(|part| part.capacity.as_ref() == first);
        match first.filter(|_| agree) {
            Some(capacity) => answers.push((
                Answer {
                    run: run.to_owned(),
                    users: capacity.users,
                    low: capacity.low,
                    high: capacity.high,
                    confidence: capacity.confidence,
                    reason: capacity.reason.clone(),
                    ..Answer::default()
                },
                true,
            )),
            None => answers.extend(derived(steps, run).map(|answer| (answer, agree))),
        }
    }
    answers
}

/// The answer that follows from the steps; none for a single load that the server carried, which
/// says nothing of a limit.
fn derived(steps: &[StepRow], run: &str) -> Option<Answer> {
    let of_run: Vec<_> = steps.iter().filter(|step| step.run == run).collect();
    let mut loads: Vec<_> = of_run.iter().map(|step| step.users).collect();
    loads.sort_unstable();
    loads.dedup();
    if loads.len() < 2 {
        return None;
    }
    // A load was too much when at least half of its steps were.
    let too_much = |users: u64| {
        let same: Vec<_> = of_run.iter().filter(|step| step.users == users).collect();
        same.iter().filter(|step| step.overloaded).count() * 2 >= same.len()
    };
    let high = loads.iter().copied().find(|&users| too_much(users));
    let carried = loads.iter().copied().filter(|&users| high.is_none_or(|high| users < high)).max();
    Some(Answer {
        run: run.to_owned(),
        users: carried,
        low: carried,
        high,
        confidence: None,
        derived: true,
        ..Answer::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(users: u64, overloaded: bool) -> StepRow {
        StepRow { run: "r".into(), users, overloaded, ..StepRow::default() }
    }

    fn part(here: u64, behind: u64, from: i64) -> Step {
        Step {
            step: 1,
            users: 30,
            users_here: here,
            users_overloaded: behind,
            start: from,
            end: from + 10_000_000_000,
            scheduled: 50,
            completed: 50,
            started: 50,
            overload_percent: 100.0 * behind as f64 / here as f64,
            overloaded: behind > 0,
            ..Step::default()
        }
    }

    #[test]
    fn parts_add_up_over_what_all_of_them_measured() {
        let (a, b) = (part(10, 1, 0), part(20, 0, 2_000_000_000));
        let row = joined(&[&a, &b], "r", Some(5.0));
        assert_eq!((row.users, row.users_here, row.parts), (30, 30, 2));
        assert_eq!((row.start_ns, row.duration_ns), (2_000_000_000, 8_000_000_000));
        assert_eq!((row.completed, row.throughput), (100, 10.0));
        // One of thirty is below the limit, though one of ten was above it.
        assert!(!row.overloaded && (row.overload_share - 1.0 / 30.0).abs() < 1e-6);
        assert!(joined(&[&a, &b], "r", None).overloaded);
        // What remains undone is overload too, when it is more than chance.
        let undone = |n: u64| {
            let late = Step { completed: 50 - n, ..b.clone() };
            joined(&[&late, &b], "r", Some(2.0)).overload_share
        };
        assert_eq!((undone(10), undone(11)), (0.0, 0.11));
    }

    #[test]
    fn the_overall_response_time_is_the_area_under_the_curve() {
        let load = |users, rate, mean_ms: i64| StepRow {
            operations_per_second: Some(rate),
            operation_mean_ns: Some(mean_ms * 1_000_000),
            ..step(users, users > 300)
        };
        let answer = Answer { run: "r".into(), users: Some(300), ..Answer::default() };
        let steps = [
            load(100, 1_000.0, 1),
            load(200, 2_000.0, 2),
            // Twice: the mean of both.
            load(300, 3_000.0, 4),
            load(300, 3_000.0, 6),
            load(400, 3_100.0, 50),
        ];
        // 1,000 x 1 + 1,000 x 1.5 + 1,000 x 3.5 = 6,000, by 3,000.
        assert_eq!(overall_response(&steps, &answer), Some(2_000_000));
        assert_eq!(overall_response(&steps[..1], &answer), None);
        assert_eq!(overall_response(&steps[4..], &answer), None);
    }

    #[test]
    fn steps_without_an_answer_give_one_with_its_interval() {
        let steps = [step(100, false), step(200, true), step(150, false), step(150, true)];
        let answer = derived(&steps, "r").unwrap();
        assert_eq!((answer.users, answer.high, answer.derived), (Some(100), Some(150), true));
        assert!(derived(&steps[..1], "r").is_none());
        let all = [step(100, true), step(50, true)];
        assert_eq!(derived(&all, "r").map(|it| (it.users, it.high)), Some((None, Some(50))));
        let users = |answers: &[(Answer, bool)], steps| -> Vec<u64> {
            best(steps, answers).iter().map(|it| it.users).collect()
        };
        assert_eq!((users(&[], &all), users(&[], &steps)), (vec![50], vec![150]));
        // With more users there was no overload, but too many errors.
        assert_eq!(users(&[(answer, true)], &steps), [100]);
    }
}

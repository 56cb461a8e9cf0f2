//! What makes the numbers of load runs doubtful, above all when several folders are read as one.

use std::collections::BTreeMap;

use smbscope_tables::description::RunDescription;
use smbscope_tables::readable;
use smbscope_tables::run::Step;

use super::data::{RunPart, Warning, WarningKind};
use super::scenarios::StepKey;

/// Starts of a step and clocks that differ by more than this are said.
const CLOCK_MAX_NS: i64 = 1_000_000_000;
/// Warnings of one kind that are listed.
const LISTED_MAX: usize = 16;
/// Missing parts that are named.
const NAMED_MAX: u64 = 64;

/// All warnings, the gravest kinds first.
pub(super) fn warnings(
    parts: &[RunPart],
    again: &[String],
    steps: &BTreeMap<StepKey, Vec<&Step>>,
    unknown: &[String],
    disagreeing: &[String],
) -> Vec<Warning> {
    let mut found = Vec::new();
    for recording in again {
        found.push(of(WarningKind::SameRecording, [recording.clone()], [String::new()]));
    }
    let mut runs: BTreeMap<&str, Vec<&RunDescription>> = BTreeMap::new();
    for part in parts {
        runs.entry(&part.description.run).or_default().push(&part.description);
    }
    for of_run in runs.values() {
        shards(of_run, &mut found);
        clocks(of_run, &mut found);
        differences(of_run, true, &mut found);
    }
    if runs.len() > 1 {
        let firsts: Vec<_> = runs.values().filter_map(|of_run| of_run.first().copied()).collect();
        let names = firsts.iter().map(|run| run.recording.clone());
        found.push(of(WarningKind::OtherRun, names, identities(&firsts)));
        differences(&firsts, false, &mut found);
    }
    starts(parts, steps, &mut found);
    for run in disagreeing {
        let of_run = runs.get(run.as_str()).into_iter().flatten();
        let (names, values) = of_run
            .map(|part| {
                let users = part.capacity.as_ref().and_then(|capacity| capacity.users);
                let users = users.map_or_else(|| "none".to_owned(), |users| users.to_string());
                (part.recording.clone(), users)
            })
            .unzip::<_, _, Vec<_>, Vec<_>>();
        found.push(of(WarningKind::AnswersDiffer, names, values));
    }
    for part in parts {
        let run = &part.description;
        let one = |kind, value: String| of(kind, [run.recording.clone()], [value]);
        if let Some(since) = run.server_gone_ns {
            found.push(one(WarningKind::ServerGone, since.to_string()));
        }
        if run.limited_by_client {
            let reason = run.limited_reason.clone().unwrap_or_default();
            found.push(one(WarningKind::LimitedByClient, reason));
        }
        if !part.complete {
            found.push(one(WarningKind::Incomplete, String::new()));
        }
        if run.counters_missed > 0 {
            found.push(one(WarningKind::CountersMissed, run.counters_missed.to_string()));
        }
    }
    for recording in unknown {
        found.push(of(WarningKind::NotDescribed, [recording.clone()], [String::new()]));
    }
    found.sort_by_key(|warning| warning.kind);
    let mut listed: BTreeMap<WarningKind, usize> = BTreeMap::new();
    found.retain(|warning| {
        let n = listed.entry(warning.kind).or_default();
        *n += 1;
        *n <= LISTED_MAX
    });
    found
}

fn of(
    kind: WarningKind,
    recordings: impl IntoIterator<Item = String>,
    values: impl IntoIterator<Item = String>,
) -> Warning {
    let mut values: Vec<_> = values.into_iter().collect();
    values.retain(|value| !value.is_empty());
    Warning {
        kind,
        recordings: recordings.into_iter().collect(),
        values,
        step: None,
        difference_ns: None,
        error_ns: None,
    }
}

/// Parts that are there twice or not at all, and users whom two parts simulate.
fn shards(of_run: &[&RunDescription], found: &mut Vec<Warning>) {
    let mut by_number: BTreeMap<u64, Vec<&RunDescription>> = BTreeMap::new();
    for part in of_run {
        by_number.entry(part.shard).or_default().push(part);
    }
    let shards = of_run.iter().map(|part| part.shards).max().unwrap_or(1);
    for (number, same) in by_number.iter().filter(|(_, same)| same.len() > 1) {
        let names = same.iter().map(|part| part.recording.clone());
        found.push(of(WarningKind::SameShard, names, [format!("{number}/{shards}")]));
    }
    if shards > 1 {
        let missing: Vec<_> = (1..=shards.min(NAMED_MAX))
            .filter(|number| !by_number.contains_key(number))
            .map(|number| format!("{number}/{shards}"))
            .collect();
        let known = by_number.keys().filter(|number| (1..=shards).contains(number)).count() as u64;
        if known < shards {
            let names = of_run.iter().map(|part| part.recording.clone());
            found.push(of(WarningKind::MissingShard, names, missing));
        }
    }
    for (place, one) in of_run.iter().enumerate() {
        for other in of_run.iter().skip(place + 1) {
            if one.shard != other.shard && share_users(one, other) {
                found.push(of(
                    WarningKind::SameUsers,
                    [one.recording.clone(), other.recording.clone()],
                    [one, other].map(|part| format!("{} to {}", part.users_from, part.users_to)),
                ));
            }
        }
    }
}

/// Whether two parts can have a user in common: their ranges overlap, and their numbers meet.
fn share_users(one: &RunDescription, other: &RunDescription) -> bool {
    if one.users_to == 0 || other.users_to == 0 {
        return false;
    }
    let overlap = one.users_from.max(other.users_from) <= one.users_to.min(other.users_to);
    let (mut every, mut rest) = (one.users_every.max(1), other.users_every.max(1));
    while rest > 0 {
        (every, rest) = (rest, every % rest);
    }
    overlap && one.users_from.abs_diff(other.users_from).is_multiple_of(every)
}

/// The names of runs, with what makes them different runs.
fn identities(runs: &[&RunDescription]) -> Vec<String> {
    let server = |run: &RunDescription| match &run.server_guid {
        Some(guid) => guid.clone(),
        None => format!("{}:{}", run.server, run.server_port),
    };
    let start = |run: &RunDescription| {
        run.start_at_ns.map_or("none".to_owned(), |ns| readable::zoned(ns, 0))
    };
    let of = |run: &RunDescription| {
        [
            ("--start-at", start(run)),
            ("--users", run.users_total.to_string()),
            ("parts", run.shards.to_string()),
            ("server", server(run)),
        ]
    };
    let all: Vec<_> = runs.iter().map(|run| of(run)).collect();
    let differs = |place: usize| {
        all.iter().any(|one| one.get(place) != all.first().and_then(|first| first.get(place)))
    };
    let words = |(run, facts): (&&RunDescription, &[(&str, String); 4])| {
        let unlike = facts.iter().enumerate().filter(|(place, _)| differs(*place));
        let words: Vec<_> = unlike.map(|(_, (name, value))| format!("{name} {value}")).collect();
        if words.is_empty() {
            run.run.clone()
        } else {
            format!("{} ({})", run.run, words.join(", "))
        }
    };
    runs.iter().zip(&all).map(words).collect()
}

type Property = (WarningKind, bool, fn(&RunDescription) -> String);

/// What the parts should have in common; of some, parts of one run have it by their run's name.
const COMMON: [Property; 5] = [
    (WarningKind::OtherWorkload, false, |run| {
        format!("{} {:.12}", run.workload, run.workload_digest)
    }),
    (WarningKind::OtherSeed, false, |run| run.seed.to_string()),
    (WarningKind::OtherScale, false, |run| run.scale.to_string()),
    (WarningKind::OtherTarget, false, |run| {
        format!("//{}:{}/{}", run.server, run.server_port, run.share)
    }),
    (WarningKind::OtherSettings, true, settings),
];

fn settings(run: &RunDescription) -> String {
    // What is not configured is not a difference.
    let word = |name: &str, word: &Option<String>| {
        word.as_ref().map(|word| format!("{name} {word}, ")).unwrap_or_default()
    };
    let more = run.settings.iter().map(|it| format!(", {} {}", it.name, it.value));
    let rtt = run.emulated_rtt_ns.map(|ns| format!(", round trip + {ns} ns"));
    format!(
        "{}{}{}{} channels, cache {}, {}{}{}{}",
        word("dialect", &run.dialect),
        word("signing", &run.signing),
        word("encryption", &run.encryption),
        run.channels,
        run.client_cache,
        run.pacing,
        more.collect::<String>(),
        rtt.unwrap_or_default(),
        run.line.as_ref().map(|line| format!(", {line}")).unwrap_or_default()
    )
}

fn differences(parts: &[&RunDescription], same_run: bool, found: &mut Vec<Warning>) {
    for (kind, within, value) in COMMON {
        let values: Vec<_> = parts.iter().map(|part| value(part)).collect();
        let differ = values.iter().any(|value| Some(value) != values.first());
        if differ && (within || !same_run) {
            found.push(of(kind, parts.iter().map(|part| part.recording.clone()), values));
        }
    }
}

/// How the machines' clocks stand to each other, as far as each knows how its own stands to the
/// server's.
fn clocks(of_run: &[&RunDescription], found: &mut Vec<Warning>) {
    let Some((first, others)) = of_run.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return;
    };
    let mut unknown = Vec::new();
    for other in others {
        // Containers of one machine may have other names or clocks; what was measured counts.
        let same_machine = !first.hostname.is_empty() && first.hostname == other.hostname;
        match (first.server_clock_ahead_ns, other.server_clock_ahead_ns) {
            (Some(a), Some(b)) => {
                // If the server is ahead by more, this machine is behind by more.
                let difference = a.saturating_sub(b);
                let error = [first, other].map(|part| part.server_clock_error_ns);
                let error = error.into_iter().flatten().fold(0, i64::saturating_add);
                if difference.saturating_abs() > CLOCK_MAX_NS {
                    found.push(Warning {
                        difference_ns: Some(difference),
                        error_ns: Some(error),
                        ..of(
                            WarningKind::ClocksDiffer,
                            [first.recording.clone(), other.recording.clone()],
                            [],
                        )
                    });
                }
            }
            _ if same_machine => {}
            _ => unknown.push(other.recording.clone()),
        }
    }
    if !unknown.is_empty() {
        unknown.insert(0, first.recording.clone());
        found.push(of(WarningKind::ClocksUnknown, unknown, []));
    }
}

/// Steps that did not begin at the same time on all machines, or that a machine does not have.
fn starts(parts: &[RunPart], steps: &BTreeMap<StepKey, Vec<&Step>>, found: &mut Vec<Warning>) {
    for ((run, number), of_step) in steps {
        let (first, last) = (
            of_step.iter().min_by_key(|step| step.start),
            of_step.iter().max_by_key(|step| step.start),
        );
        if let (Some(first), Some(last)) = (first, last) {
            let difference = last.start.saturating_sub(first.start);
            if difference > CLOCK_MAX_NS {
                found.push(Warning {
                    step: Some(*number),
                    difference_ns: Some(difference),
                    ..of(
                        WarningKind::StartsDiffer,
                        [first.recording.clone(), last.recording.clone()],
                        [],
                    )
                });
            }
        }
        let lacks = |part: &&RunPart| {
            let name = &part.description.recording;
            part.description.run == *run && !of_step.iter().any(|step| &step.recording == name)
        };
        let without = parts.iter().filter(lacks).map(|part| part.description.recording.clone());
        let without: Vec<_> = without.collect();
        if !without.is_empty() {
            found
                .push(Warning { step: Some(*number), ..of(WarningKind::StepMissing, without, []) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(shard: u64) -> RunPart {
        let mut description = RunDescription {
            recording: format!("load-{shard}of2"),
            hostname: format!("client{shard}"),
            shard,
            shards: 2,
            users_from: shard * 10,
            users_to: shard * 10 + 9,
            server_clock_ahead_ns: Some(shard as i64 * 1000),
            ..RunDescription::default()
        };
        description.identify();
        RunPart { description, complete: true, scenarios: 0 }
    }

    fn kinds(parts: &[RunPart]) -> Vec<WarningKind> {
        let found = warnings(parts, &[], &BTreeMap::new(), &[], &[]);
        found.iter().map(|warning| warning.kind).collect()
    }

    #[test]
    fn two_parts_of_one_run_need_no_warning() {
        assert_eq!(kinds(&[part(1), part(2)]), []);
    }

    #[test]
    fn what_does_not_belong_together_is_said() {
        use WarningKind::*;
        assert_eq!(kinds(&[part(1)]), [MissingShard]);
        assert_eq!(kinds(&[part(1), part(2), part(2)]), [SameShard]);
        let changed = |change: &dyn Fn(&mut RunDescription)| {
            let mut parts = [part(1), part(2)];
            change(&mut parts[1].description);
            parts[1].description.identify();
            kinds(&parts)
        };
        assert_eq!(changed(&|run| run.users_from = 19), [SameUsers]);
        let mut dealt_out = [part(1), part(2)];
        for part in &mut dealt_out {
            let run = &mut part.description;
            (run.users_from, run.users_to, run.users_every) = (run.shard, 18 + run.shard, 2);
        }
        assert_eq!(kinds(&dealt_out), []);
        dealt_out[1].description.users_from = 3;
        assert_eq!(kinds(&dealt_out), [SameUsers]);
        assert_eq!(changed(&|run| run.dialect = Some("2.1".into())), [OtherSettings]);
        assert_eq!(changed(&|run| run.seed = 5), [MissingShard, MissingShard, OtherRun, OtherSeed]);
        assert_eq!(changed(&|run| run.server_clock_ahead_ns = None), [ClocksUnknown]);
        assert_eq!(changed(&|run| run.server_clock_ahead_ns = Some(3_000_000_000)), [ClocksDiffer]);
        assert_eq!(changed(&|run| run.limited_by_client = true), [LimitedByClient]);
        // Containers of one machine have its name, and may have other clocks.
        let same_name = |run: &mut RunDescription| {
            run.hostname = "client1".into();
            run.server_clock_ahead_ns = Some(3_000_000_000);
        };
        assert_eq!(changed(&same_name), [ClocksDiffer]);
    }

    #[test]
    fn a_server_is_the_same_by_all_its_addresses() {
        let reached = |shard: u64, server: &str, guid: Option<&str>| {
            let mut part = part(shard);
            part.description.server = server.into();
            part.description.server_guid = guid.map(str::to_owned);
            part.description.identify();
            part
        };
        let by = |guid: [Option<&str>; 2]| {
            [reached(1, "10.0.0.2", guid[0]), reached(2, "10.1.0.2", guid[1])]
        };
        assert_eq!(kinds(&by([Some("a1"), Some("a1")])), []);
        for parts in [by([None, None]), by([Some("a1"), Some("a2")])] {
            let found = warnings(&parts, &[], &BTreeMap::new(), &[], &[]);
            let other = found.iter().find(|it| it.kind == WarningKind::OtherRun).unwrap();
            assert!(other.values.iter().all(|value| value.contains("(server ")), "{other:?}");
        }
    }

    #[test]
    fn a_machine_whose_server_is_further_ahead_is_behind() {
        let mut parts = [part(1), part(2)];
        parts[1].description.server_clock_ahead_ns = Some(-4_000_000_000);
        parts[1].description.server_clock_error_ns = Some(7);
        let found = warnings(&parts, &[], &BTreeMap::new(), &[], &[]);
        // The second machine's clock is 4 s ahead of the first's.
        assert_eq!(found[0].difference_ns, Some(4_000_001_000));
        assert_eq!(found[0].error_ns, Some(7));
    }

    #[test]
    fn a_step_that_begins_elsewhere_at_another_time_is_said() {
        let step = |shard: u64, start| Step {
            recording: format!("load-{shard}of2"),
            step: 1,
            start,
            ..Step::default()
        };
        let parts = [part(1), part(2)];
        let run = parts[0].description.run.clone();
        let (a, b) = (step(1, 0), step(2, 1_500_000_000));
        let steps = BTreeMap::from([((run.clone(), 1), vec![&a, &b]), ((run, 2), vec![&a])]);
        let found = warnings(&parts, &[], &steps, &[], &[]);
        let said: Vec<_> = found.iter().map(|it| (it.kind, it.step, it.difference_ns)).collect();
        assert_eq!(
            said,
            [
                (WarningKind::StartsDiffer, Some(1), Some(1_500_000_000)),
                (WarningKind::StepMissing, Some(2), None)
            ]
        );
    }
}

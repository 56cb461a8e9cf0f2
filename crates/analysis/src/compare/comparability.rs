//! Whether two recordings are comparable: what else is different between them, so that a difference of
//! times may have another cause than the change to measure.

use std::collections::BTreeMap;

use smbscope_tables::description::{CLOSED, RunDescription};

use super::data::{About, Warning, WarningKind};
use super::side::Side;

/// Shares of operations that differ by more than this give a warning.
const PART: f64 = 0.05;

/// The warnings, the most severe kinds first.
pub(super) fn warnings(a: &Side, b: &Side) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut unlike = |kind, a: String, b: String| {
        if a != b {
            found.push(Warning { kind, a, b });
        }
    };
    let (one, other) = (&a.about, &b.about);
    if !one.vantages.is_empty() && !other.vantages.is_empty() {
        unlike(WarningKind::Vantage, words(&one.vantages), words(&other.vantages));
    }
    unlike(WarningKind::LoadRun, is_load(one), is_load(other));
    unlike(WarningKind::Dialect, words(&one.dialects), words(&other.dialects));
    if !one.runs.is_empty() && !other.runs.is_empty() {
        for (kind, value) in PROPERTIES {
            unlike(kind, of_runs(one, value), of_runs(other, value));
        }
        let users = |about: &About| about.users.map_or_else(String::new, |n| n.to_string());
        unlike(WarningKind::Users, users(one), users(other));
    }
    for (kind, a, b) in [
        (WarningKind::Signing, one.signed, other.signed),
        (WarningKind::Encryption, one.encrypted, other.encrypted),
    ] {
        if (a - b).abs() > PART {
            unlike(kind, percent(a), percent(b));
        }
    }
    if let Some(warning) = mix(a, b) {
        found.push(warning);
    }
    for (kind, of) in [
        (WarningKind::Incomplete, (|about| about.incomplete) as fn(&About) -> bool),
        (WarningKind::LimitedByClient, limited),
        (WarningKind::Forgotten, |about| about.executions_forgotten > 0),
    ] {
        if of(one) || of(other) {
            let word = |about| if of(about) { "yes" } else { "no" }.to_owned();
            found.push(Warning { kind, a: word(one), b: word(other) });
        }
    }
    found.sort_by_key(|warning| warning.kind);
    found.dedup_by_key(|warning| warning.kind);
    found
}

/// Whether the same users do the same work at the same times: the schedule follows from workload, seed
/// and scale, and from the pace unless the server sets that.
pub(super) fn same_schedule(a: &Side, b: &Side) -> bool {
    let key = |run: &RunDescription| {
        let rate = run.scenarios_per_user_hour.map(f64::to_bits);
        (run.workload_digest.clone(), run.seed, run.scale.to_bits(), run.pacing.clone(), rate)
    };
    let mut keys = a.about.runs.iter().chain(&b.about.runs).map(key);
    let Some(first) = keys.next() else { return false };
    let is_run = |side: &Side| side.has_users() && !side.about.runs.is_empty();
    is_run(a) && is_run(b) && first.3 != CLOSED && keys.all(|key| key == first)
}

type Property = (WarningKind, fn(&RunDescription) -> String);

const PROPERTIES: [Property; 6] = [
    (WarningKind::Workload, |run| format!("{} {:.12}", run.workload, run.workload_digest)),
    (WarningKind::Scale, |run| run.scale.to_string()),
    (WarningKind::Seed, |run| run.seed.to_string()),
    (WarningKind::Pacing, |run| match run.scenarios_per_user_hour {
        Some(rate) => format!("{}, {rate} scenarios per user and hour", run.pacing),
        None => run.pacing.clone(),
    }),
    (WarningKind::Signing, |run| word(&run.signing)),
    (WarningKind::Encryption, |run| word(&run.encryption)),
];

fn of_runs(about: &About, value: fn(&RunDescription) -> String) -> String {
    let mut values: Vec<_> = about.runs.iter().map(value).collect();
    values.sort_unstable();
    values.dedup();
    values.join(", ")
}

fn word(word: &Option<String>) -> String {
    word.clone().unwrap_or_else(|| "not known".to_owned())
}

fn words(words: &[String]) -> String {
    let mut words = words.to_vec();
    words.sort_unstable();
    if words.is_empty() { "not known".to_owned() } else { words.join(", ") }
}

fn is_load(about: &About) -> String {
    if about.users.is_some() { "a load run" } else { "not a load run" }.to_owned()
}

fn limited(about: &About) -> bool {
    about.runs.iter().any(|run| run.limited_by_client)
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// The share of operations that would have to be of another command for the mixes to be equal, with
/// the command whose share differs most.
fn mix(a: &Side, b: &Side) -> Option<Warning> {
    let mut parts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (name, group) in &a.commands.groups {
        parts.entry(name).or_default().0 += group.timed() as f64 / a.about.timed.max(1) as f64;
    }
    for (name, group) in &b.commands.groups {
        parts.entry(name).or_default().1 += group.timed() as f64 / b.about.timed.max(1) as f64;
    }
    let distance = |(a, b): &(f64, f64)| (a - b).abs();
    let moved = parts.values().map(distance).sum::<f64>() / 2.0;
    let (name, (a, b)) = parts.iter().max_by(|x, y| distance(x.1).total_cmp(&distance(y.1)))?;
    (moved > PART).then(|| Warning {
        kind: WarningKind::Mix,
        a: format!("{name} {}", percent(*a)),
        b: format!("{name} {}", percent(*b)),
    })
}

//! Sentences and words about a baseline.

use smbscope_plan::baseline::catalogue::value::text;
use smbscope_plan::baseline::catalogue::{self, Kind};
use smbscope_plan::baseline::cost::predicted::{Estimate, Predicted};
use smbscope_plan::baseline::difference::{Change, OtherChange, Security, Shown};
use smbscope_plan::baseline::judgement::Judgement;
use smbscope_plan::baseline::judgement::findings::{Finding, FindingKind};
use smbscope_plan::baseline::setting;
use smbscope_plan::baseline::terms::{SettingKey, place_title};

use super::{BaselinePlan, SearchPlan};
use crate::value::format;

/// What it was compared with and measured on.
pub(super) fn span(plan: &BaselinePlan) -> String {
    let after = &plan.judgement.after;
    let mut text = format!("{} settings", format::count(after.settings));
    if let Some(recording) = &plan.recording {
        text.push_str(&format!(", on {}", format::sanitized(recording)));
    }
    text
}

/// `server-signing`, `hardened-path of \\*\sysvol`.
pub(super) fn key(key: &SettingKey) -> String {
    match &key.of {
        Some(of) => format!("{} of {of}", key.id),
        None => key.id.clone(),
    }
}

/// A time with its sign: `+0.90 ms`.
pub(super) fn added(ns: f64) -> String {
    let sign = if ns > 0.0 { "+" } else { "" };
    format!("{sign}{}", format::duration(ns as i64))
}

/// `18.0 % fewer users`.
pub(super) fn users(percent: f64) -> String {
    let more = if percent > 0.0 { "more" } else { "fewer" };
    format!("{} % {more} users", format::fixed(percent.abs(), 0))
}

/// The interval of an estimate: `0.81 to 0.99 ms`, in the words that `one` gives.
pub(super) fn interval(estimate: Estimate, one: impl Fn(f64) -> String) -> String {
    format!("{} to {}", one(estimate.low), one(estimate.high))
}

/// What a change costs, in a few words.
pub(super) fn cost(predicted: &Predicted) -> String {
    let mut parts = Vec::new();
    match &predicted.ns_per_mib {
        Some(mib) => parts.push(format!("{} a MiB", added(mib.value))),
        None => {
            let n: u64 = predicted.commands.iter().map(|one| one.n).sum();
            let each = predicted.added_ns.value / n.max(1) as f64;
            parts.push(format!(
                "{} of the time of requests, {} each",
                format::signed_percent(predicted.percent.value),
                added(each)
            ));
        }
    }
    if let Some(factor) = predicted.scenarios.as_ref().and_then(|one| one.factor()) {
        parts.push(format!("scenarios take {} times as long", format::fixed(factor, 2)));
    }
    if let Some(users) = &predicted.users {
        parts.push(self::users(users.percent.value));
    }
    parts.join(", ")
}

/// A finding with its price and where it was read.
pub(super) fn finding(finding: &Finding) -> String {
    let mut text = match finding.kind {
        FindingKind::Weaker => format!("Less security: {}", finding.what),
        FindingKind::NotOn => format!("Not in force: {}", finding.what),
        FindingKind::Conflict => format!("Conflict: {}", finding.what),
        FindingKind::Hidden => format!("Hidden: {}", finding.what),
        FindingKind::NoEffect => format!("No effect: {}", finding.what),
        FindingKind::SwitchedOff => format!("Switched off: {}", finding.what),
        FindingKind::Costly => finding.what.clone(),
    };
    if let (FindingKind::Weaker | FindingKind::Costly, Some(price)) =
        (finding.kind, &finding.details.price)
    {
        text.push_str(&format!(" Price in security: {price}."));
    }
    let origins: Vec<_> =
        finding.details.origins.iter().filter(|one| !one.is_empty()).cloned().collect();
    if !origins.is_empty() {
        text.push_str(&format!(" Set by {}.", origins.join(", ")));
    }
    text
}

/// Findings of one kind in a line.
pub(super) fn in_short(findings: &[&Finding], kind: &str) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for one in findings {
        if !names.contains(&one.details.name.as_str()) {
            names.push(&one.details.name);
        }
    }
    (!names.is_empty()).then(|| format!("{kind}: {}.", names.join(", ")))
}

/// A row of the table of changes.
pub(super) struct ChangeRow {
    pub(super) id: String,
    pub(super) setting: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) security: &'static str,
    pub(super) place: Option<String>,
    pub(super) origin: Option<String>,
}

pub(super) fn change(change: &Change) -> ChangeRow {
    let row = catalogue::row(&change.key.id);
    let meaning = row.map_or("", |row| row.meaning.as_str());
    let kind = row.map_or(Kind::Text, |row| row.kind);
    let shown = change.to.as_ref().or(change.from.as_ref());
    ChangeRow {
        id: key(&change.key),
        setting: match &change.key.of {
            Some(of) => format!("{meaning}: {of}"),
            None => meaning.to_owned(),
        },
        from: value(kind, &change.from),
        to: value(kind, &change.to),
        security: security(change.security),
        place: shown.and_then(|one| one.place.as_ref()).map(place_title),
        origin: shown.map(|one| one.from.clone()).filter(|one| !one.is_empty()),
    }
}

/// A setting that the catalogue does not have, for a table.
pub(super) struct OtherRow {
    pub(super) place: String,
    pub(super) from: String,
    pub(super) to: String,
    /// Of templates: the policy and what the value means, and the explanation.
    pub(super) policy: Option<String>,
    pub(super) explain: Option<String>,
    pub(super) origin: String,
}

pub(super) fn other_change(change: &OtherChange) -> OtherRow {
    let value = |side: &Option<setting::Value>| match side.as_ref().map(text) {
        None => "not set".to_owned(),
        Some(None) => "removed".to_owned(),
        Some(Some(text)) if text.is_empty() => "empty".to_owned(),
        Some(Some(text)) => text,
    };
    let policy = change.policy.as_ref().map(|policy| match &change.meaning {
        Some(meaning) => format!("{policy}: {meaning}"),
        None => policy.clone(),
    });
    OtherRow {
        place: place_title(&change.place),
        from: value(&change.from),
        to: value(&change.to),
        policy,
        explain: change.explain.clone(),
        origin: change.origin.clone(),
    }
}

fn value(kind: Kind, shown: &Option<Shown>) -> String {
    let Some(shown) = shown else { return "not set".to_owned() };
    let value = match (kind, shown.value.as_str()) {
        (_, "") => "empty",
        (Kind::Flag, "0") => "off",
        (Kind::Flag, "1") => "on",
        (Kind::Dialect, "514") => "2.0.2",
        (Kind::Dialect, "528") => "2.1",
        (Kind::Dialect, "768") => "3.0",
        (Kind::Dialect, "770") => "3.0.2",
        (Kind::Dialect, "785") => "3.1.1",
        (_, value) => value,
    };
    if shown.is_default { format!("{value} (default)") } else { value.to_owned() }
}

pub(super) fn security(security: Security) -> &'static str {
    match security {
        Security::Stricter => "more",
        Security::Weaker => "less",
        Security::Neutral => "",
    }
}

/// What is only counted.
pub(super) fn others(judgement: &Judgement) -> String {
    let difference = &judgement.difference;
    let others = &difference.others;
    format!(
        "{} known settings stay the same. Among the settings that the catalogue does not have, {} are new, {} change, {} are no \
         longer set, {} stay.",
        format::count(difference.same),
        format::count(others.only_after),
        format::count(others.changed),
        format::count(others.only_before),
        format::count(others.same)
    )
}

/// How long the search still takes.
pub(super) fn tries(search: &SearchPlan) -> String {
    format!(
        "At most {} more {}, {} expected. Then: smbscope plan baseline with --result slow or --result fast.",
        format::count(search.tries_most),
        if search.tries_most == 1 { "try" } else { "tries" },
        format::fixed(search.tries_expected, 1)
    )
}

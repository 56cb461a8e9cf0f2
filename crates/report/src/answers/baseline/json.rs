//! The judgement as JSON; its schema is made from the fields' list.

use serde_json::{Value, json};
use smbscope_plan::baseline::catalogue::{self, value::text};
use smbscope_plan::baseline::cost::predicted::{CommandCost, Estimate, Predicted};
use smbscope_plan::baseline::cost::{Cost, CostOutcome, Question};
use smbscope_plan::baseline::difference::{Change, OtherChange, Shown};
use smbscope_plan::baseline::judgement::SideCounts;
use smbscope_plan::baseline::judgement::alternatives::Alternative;
use smbscope_plan::baseline::judgement::findings::Finding;
use smbscope_plan::baseline::setting::Setting;
use smbscope_plan::baseline::terms::{SettingKey, place_title};
use smbscope_plan::script::Step;

use super::{BaselinePlan, SearchPlan, verdict, words};

pub(super) fn json(plan: &BaselinePlan) -> serde_json::Result<Value> {
    let judgement = &plan.judgement;
    let verdict = verdict::verdict(judgement);
    Ok(json!({
        "version": plan.version,
        "inputs": plan.inputs,
        "against": plan.against,
        "recording": plan.recording,
        "calibration": plan.calibration,
        "verdict": verdict.sentence,
        "reasons": verdict.reasons,
        "before": side(&judgement.before),
        "after": side(&judgement.after),
        "changes": judgement.difference.changes.iter().map(change).collect::<Vec<_>>(),
        "same": judgement.difference.same,
        "unknown_before": judgement.difference.unknown_before,
        "others": serde_json::to_value(judgement.difference.others)?,
        "other_changes": judgement.difference.other_changes.iter().map(other_change).collect::<Vec<_>>(),
        "costs": judgement.costs.iter().map(cost).collect::<Vec<_>>(),
        "alternatives": judgement.alternatives.iter().map(alternative).collect::<Vec<_>>(),
        "findings": judgement.findings.iter().map(finding).collect::<serde_json::Result<Vec<_>>>()?,
        "commands": plan.commands.iter().map(commands).collect::<Vec<_>>(),
        "search": plan.search.as_ref().map(search),
        "unread": plan.unread,
    }))
}

fn side(side: &SideCounts) -> Value {
    json!({
        "system": side.system.map(catalogue::System::name),
        "settings": side.settings,
        "known": side.known,
        "touching": side.touching,
        "others": side.others,
    })
}

fn keys(keys: &[SettingKey]) -> Vec<String> {
    keys.iter().map(words::key).collect()
}

fn change(change: &Change) -> Value {
    let row = catalogue::row(&change.key.id);
    let value = |shown: &Option<Shown>| shown.as_ref().map(|one| one.value.clone());
    let place =
        |shown: &Option<Shown>| shown.as_ref().and_then(|one| one.place.as_ref()).map(place_title);
    let is_default = |shown: &Option<Shown>| shown.as_ref().is_some_and(|one| one.is_default);
    let origin = change.to.as_ref().or(change.from.as_ref()).map(|one| one.from.clone());
    json!({
        "id": change.key.id,
        "of": change.key.of,
        "setting": row.map_or("", |row| &row.meaning),
        "from": value(&change.from),
        "from_default": is_default(&change.from),
        "to": value(&change.to),
        "to_default": is_default(&change.to),
        "place": place(&change.to).or(place(&change.from)),
        "origin": origin,
        "security": change.security,
        "cost_key": change.cost,
        "no_effect": change.no_effect,
        "performance": row.map_or("", |row| &row.performance),
        "protection": row.map_or("", |row| &row.security),
        "compatibility": row.map_or("", |row| &row.compatibility),
        "source": row.map_or("", |row| &row.source),
    })
}

fn other_change(change: &OtherChange) -> Value {
    let row = words::other_change(change);
    json!({
        "place": row.place,
        "from": change.from.is_some().then_some(row.from),
        "to": change.to.is_some().then_some(row.to),
        "meaning": change.meaning,
        "policy": change.policy,
        "explain": change.explain,
        "origin": row.origin,
    })
}

fn question(question: &Question) -> Value {
    json!({ "changes": question.changes, "shares": question.shares })
}

fn cost(cost: &Cost) -> Value {
    let (outcome, because, experiment, predicted) = match &cost.outcome {
        CostOutcome::Predicted(one) => ("predicted", None, None, Some(self::predicted(one))),
        CostOutcome::Nothing { because } => ("nothing", Some(because), None, None),
        CostOutcome::Unknown { because, experiment } => {
            ("unknown", Some(because), Some(experiment), None)
        }
    };
    json!({
        "settings": keys(&cost.settings),
        "what": cost.what,
        "outcome": outcome,
        "because": because,
        "experiment": experiment,
        "predicted": predicted,
    })
}

fn estimate(estimate: Estimate) -> Value {
    json!({ "value": estimate.value, "low": estimate.low, "high": estimate.high })
}

fn command(one: &CommandCost) -> Value {
    json!({
        "name": one.name,
        "n": one.n,
        "before_ns": one.before_ns.round() as i64,
        "after_ns": one.after_ns.round() as i64,
        "added": estimate(one.added_ns),
    })
}

fn predicted(one: &Predicted) -> Value {
    json!({
        "question": question(&one.question),
        "commands": one.commands.iter().map(command).collect::<Vec<_>>(),
        "added": estimate(one.added_ns),
        "before_ns": one.before_ns.round() as i64,
        "percent": estimate(one.percent),
        "scenarios": one.scenarios.as_ref().map(command),
        "added_per_mib": one.ns_per_mib.map(estimate),
        "cpu_s_per_gb": one.cpu_s_per_gb.map(estimate),
        "cpu_per_operation": one.cpu_ns_per_operation.map(estimate),
        "users": one.users.map(|users| json!({
            "before": estimate(users.before),
            "after": estimate(users.after),
            "percent": estimate(users.percent),
        })),
        "notes": one.notes,
        "warnings": one.warnings,
    })
}

fn setting(setting: &Setting) -> Value {
    json!({ "place": place_title(&setting.place), "value": text(&setting.value) })
}

fn alternative(way: &Alternative) -> Value {
    json!({
        "instead_of": keys(&way.instead_of),
        "what": way.what,
        "protection": way.protection,
        "price": way.price,
        "needs": way.needs,
        "settings": way.settings.iter().map(setting).collect::<Vec<_>>(),
        "question": way.question.as_ref().map(question),
        "saved": way.saved_ns.map(estimate),
        "saved_per_mib": way.saved_ns_per_mib.map(estimate),
        "users_percent": way.users_percent.map(estimate),
        "unknown": way.unknown,
    })
}

fn finding(finding: &Finding) -> serde_json::Result<Value> {
    Ok(json!({
        "kind": serde_json::to_value(finding.kind)?,
        "setting": words::key(&finding.details.key),
        "name": finding.details.name,
        "sentence": finding.what,
        "price": finding.details.price,
        "origins": finding.details.origins,
    }))
}

fn commands(block: &Step) -> Value {
    json!({ "title": block.does, "apply": block.apply, "undo": block.undo })
}

fn search(search: &SearchPlan) -> Value {
    json!({
        "sentences": search.sentences,
        "commands": search.commands.iter().map(commands).collect::<Vec<_>>(),
        "tries_most": search.tries_most,
        "tries_expected": search.tries_expected,
        "found": search.found,
        "is_done": search.is_done,
    })
}

//! What is wrong with a baseline: settings without effect, settings that hide, inputs that disagree, what is configured and not
//! on, and what weakens security. A closed list, the worst first.

use serde::{Deserialize, Serialize};
use smbscope_findings::{KindInfo, Severity, kinds};

use super::super::catalogue::{self, Kind, System};
use super::super::cost::{Cost, Facts};
use super::super::difference::{Difference, Security, Side};
use super::super::hardened::{Demands, matches};
use super::super::setting::{Origin, Place};
use super::super::terms::{SettingKey, Term, Terms, default_demands, place_title};

const SWITCHED_OFF: KindInfo =
    KindInfo::new("switched-off", "It switches file serving or its client off")
        .with_severity(Severity::High);
const COSTLY: KindInfo = KindInfo::new("costly", "It costs time").with_severity(Severity::High);
const WEAKER: KindInfo =
    KindInfo::new("weaker", "It protects less than today").with_severity(Severity::High);
const NOT_ON: KindInfo = KindInfo::new("not-on", "What is configured is not in force");
const CONFLICT: KindInfo =
    KindInfo::new("conflict", "Places of one meaning, or inputs, say different things");
const HIDDEN: KindInfo = KindInfo::new(
    "hidden",
    "It forces signing or encryption of some paths, whatever the server requires",
)
.with_severity(Severity::Low);
const NO_EFFECT: KindInfo =
    KindInfo::new("no-effect", "It has no effect").with_severity(Severity::Low);

kinds! {
    /// What can be wrong with a baseline, the worst first.
    pub enum FindingKind {
        SwitchedOff = SWITCHED_OFF,
        Costly = COSTLY,
        Weaker = WEAKER,
        NotOn = NOT_ON,
        Conflict = CONFLICT,
        Hidden = HIDDEN,
        NoEffect = NO_EFFECT,
    }
}

/// Settings with the value that switches a service or its drivers off.
const OFF: [(&str, &str); 4] =
    [("smb2-server", "0"), ("smb2-client", "4"), ("server-service", "4"), ("client-service", "4")];

/// A finding about a setting.
pub type Finding = smbscope_findings::Finding<FindingKind, Details>;

/// What these findings have besides their sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    pub key: SettingKey,
    /// As it is called where it is set: the value's name, the parameter, the pattern.
    pub name: String,
    /// What would be lost in security without the setting, or is lost with it; none where that is nothing.
    pub price: Option<String>,
    /// Where it was read.
    pub origins: Vec<String>,
}

/// The findings about the proposed side.
pub(super) fn findings(
    Side { terms: after, system, .. }: Side<'_>,
    difference: &Difference,
    costs: &[Cost],
    facts: Option<&Facts>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for cost in costs.iter().filter(|cost| cost.costs()) {
        found.extend(costly(cost, after));
    }
    for change in &difference.changes {
        let (Security::Weaker, Some(row)) = (change.security, catalogue::row(&change.key.id))
        else {
            continue;
        };
        let value = |shown: &Option<super::super::difference::Shown>| {
            shown.as_ref().map_or("not set".to_owned(), |one| one.value.clone())
        };
        let details = Details {
            key: change.key.clone(),
            name: change
                .to
                .as_ref()
                .and_then(|to| to.place.as_ref())
                .map(short)
                .unwrap_or_default(),
            price: price(&row.security),
            origins: change
                .to
                .iter()
                .map(|to| to.from.clone())
                .filter(|one| !one.is_empty())
                .collect(),
        };
        let sentence = format!(
            "{}: {} instead of {} protects less.",
            row.meaning,
            value(&change.to),
            value(&change.from)
        );
        found.push(finding(FindingKind::Weaker, sentence, details));
    }
    for term in after.known.values() {
        found.extend(of_term(term, system, facts));
    }
    found.sort_by_key(|one| one.kind);
    found
}

fn costly(cost: &Cost, after: &Terms) -> Option<Finding> {
    let key = cost.settings.first()?;
    let row = catalogue::row(&key.id)?;
    let origins = cost.settings.iter().filter_map(|key| after.known.get(key));
    let details = Details {
        key: key.clone(),
        name: after.known.get(key).map(|term| short(&term.place)).unwrap_or_default(),
        price: price(&row.security),
        origins: origins.map(|term| origin(&term.claim.origin)).collect(),
    };
    let sentence = format!("{}: {}.", cost.what, row.performance);
    Some(finding(FindingKind::Costly, sentence, details))
}

fn price(security: &str) -> Option<String> {
    (!security.starts_with("None")).then(|| security.to_owned())
}

fn of_term(term: &Term, system: Option<System>, facts: Option<&Facts>) -> Vec<Finding> {
    let Some(row) = catalogue::row(&term.key.id) else { return Vec::new() };
    let new = |kind, sentence: String, price, origins| {
        let (key, name) = (term.key.clone(), short(&term.place));
        finding(kind, sentence, Details { key, name, price, origins })
    };
    let own = origin(&term.claim.origin);
    let mut found = Vec::new();
    if !row.no_effect.is_empty() {
        let sentence = format!("{} has no effect: {}.", place_title(&term.place), row.no_effect);
        found.push(new(FindingKind::NoEffect, sentence, None, vec![own.clone()]));
    }
    // A start type of a security template has its permissions behind a comma.
    let start = term.value.split(',').next().unwrap_or_default();
    if OFF.contains(&(row.id.as_str(), start)) {
        let sentence = format!("{} = {start}: {}.", place_title(&term.place), row.compatibility);
        found.push(new(FindingKind::SwitchedOff, sentence, None, vec![own.clone()]));
    }
    let is_default =
        default_demands(&term.key, system).is_some_and(|one| one.to_string() == term.value);
    if row.kind == Kind::Hardened && !is_default {
        found.extend(hidden(term, facts));
    }
    for other in &term.others {
        let kind = match (term.is_seen, matches!(other.place, Place::Wire { .. })) {
            (true, false) => FindingKind::NotOn,
            _ => FindingKind::Conflict,
        };
        let sentence = match kind {
            FindingKind::NotOn => format!(
                "{} is configured as {} ({}), and the server shows {}.",
                row.meaning,
                other.value,
                place_title(&other.place),
                term.value
            ),
            _ => format!(
                "{}: {} says {}, and {} says {}, which counts.",
                row.meaning,
                place_title(&other.place),
                other.value,
                place_title(&term.place),
                term.value
            ),
        };
        found.push(new(kind, sentence, None, vec![origin(&other.claim.origin), own.clone()]));
    }
    let disputed: Vec<_> =
        term.replaced.iter().filter(|claim| claim.value != term.claim.value).collect();
    if let Some(last) = disputed.last() {
        let sentence = format!(
            "{}: {} sets {}, after {} other {} set something else.",
            row.meaning,
            name(&term.claim.input, &term.claim.origin),
            if term.value.is_empty() { "an empty list" } else { &term.value },
            disputed.len(),
            if disputed.len() == 1 { "input" } else { "inputs" },
        );
        let origins = vec![origin(&last.origin), own];
        found.push(new(FindingKind::Conflict, sentence, None, origins));
    }
    found
}

/// A hardened path that signs or encrypts.
fn hidden(term: &Term, facts: Option<&Facts>) -> Option<Finding> {
    let demands = Demands::parse(&term.value);
    let forces = match (demands.privacy, demands.integrity) {
        (true, _) => "encryption",
        (false, true) => "signing",
        _ => return None,
    };
    let pattern = term.key.of.clone().unwrap_or_default();
    let shares = facts.into_iter().flat_map(|facts| &facts.shares);
    let matching: Vec<_> = shares.filter(|share| matches(&pattern, &share.unc)).collect();
    let operations: u64 = matching.iter().map(|share| share.operations).sum();
    let names: Vec<_> = matching.iter().map(|share| share.unc.as_str()).collect();
    let here = match (facts, names.is_empty()) {
        (None, _) => String::new(),
        (Some(_), true) => " No share of the recording matches.".to_owned(),
        (Some(facts), false) => format!(
            " In the recording {} match: {operations} of {} operations.",
            names.join(", "),
            facts.operations
        ),
    };
    let sentence = format!(
        "{pattern} forces {forces}, whatever the server requires and Get-SmbServerConfiguration says.{here}"
    );
    let details = Details {
        key: term.key.clone(),
        name: pattern,
        price: catalogue::row(&term.key.id).and_then(|row| price(&row.security)),
        origins: vec![origin(&term.claim.origin)],
    };
    Some(finding(FindingKind::Hidden, sentence, details))
}

fn finding(kind: FindingKind, sentence: String, details: Details) -> Finding {
    smbscope_findings::Finding::new(kind, sentence).with_details(details)
}

fn origin(origin: &Origin) -> String {
    match &origin.policy {
        Some(policy) => format!("{policy} ({})", origin.file),
        None => origin.file.clone(),
    }
}

/// The last part of a place.
fn short(place: &Place) -> String {
    match place {
        Place::Registry { name, .. } | Place::Template { name, .. } => name.clone(),
        other => place_title(other),
    }
}

fn name(input: &str, origin: &Origin) -> String {
    origin.policy.clone().unwrap_or_else(|| input.to_owned())
}

//! What is wrong with a baseline: settings without effect, settings that hide, inputs that disagree, what is configured and not
//! on, and what weakens security. A closed list, the worst first.

use serde::{Deserialize, Serialize};

use super::super::catalogue::{self, Kind};
use super::super::cost::{Cost, Facts};
use super::super::difference::{Difference, Security};
use super::super::hardened::{Demands, matches};
use super::super::setting::{Origin, Place};
use super::super::terms::{Term, TermKey, Terms, place_title};

/// Kinds of findings, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// It costs time.
    Costly,
    /// It protects less than today.
    Weaker,
    /// What is configured is not what a live server shows.
    NotOn,
    /// Places of one meaning, or inputs, say different things.
    Conflict,
    /// It forces signing or encryption of some paths, whatever the server requires.
    Hidden,
    NoEffect,
}

impl FindingKind {
    /// All.
    pub const ALL: [FindingKind; 6] = [
        FindingKind::Costly,
        FindingKind::Weaker,
        FindingKind::NotOn,
        FindingKind::Conflict,
        FindingKind::Hidden,
        FindingKind::NoEffect,
    ];
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    pub key: TermKey,
    /// As it is called where it is set: the value's name, the parameter, the pattern.
    pub name: String,
    pub sentence: String,
    /// What would be lost in security without the setting, or is lost with it; none where that is nothing.
    pub price: Option<String>,
    /// Where it was read.
    pub origins: Vec<String>,
}

/// The findings about the proposed side.
pub(super) fn findings(
    after: &Terms,
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
        found.push(Finding {
            kind: FindingKind::Weaker,
            key: change.key.clone(),
            name: change
                .to
                .as_ref()
                .and_then(|to| to.place.as_ref())
                .map(short)
                .unwrap_or_default(),
            sentence: format!(
                "{}: {} instead of {} protects less.",
                row.meaning,
                value(&change.to),
                value(&change.from)
            ),
            price: price(&row.security),
            origins: change
                .to
                .iter()
                .map(|to| to.from.clone())
                .filter(|one| !one.is_empty())
                .collect(),
        });
    }
    for term in after.known.values() {
        found.extend(of_term(term, facts));
    }
    found.sort_by_key(|one| one.kind);
    found
}

fn costly(cost: &Cost, after: &Terms) -> Option<Finding> {
    let key = cost.settings.first()?;
    let row = catalogue::row(&key.id)?;
    let origins = cost.settings.iter().filter_map(|key| after.known.get(key));
    Some(Finding {
        kind: FindingKind::Costly,
        key: key.clone(),
        name: after.known.get(key).map(|term| short(&term.place)).unwrap_or_default(),
        sentence: format!("{}: {}.", cost.what, row.performance),
        price: price(&row.security),
        origins: origins.map(|term| origin(&term.claim.origin)).collect(),
    })
}

fn price(security: &str) -> Option<String> {
    (!security.starts_with("None")).then(|| security.to_owned())
}

fn of_term(term: &Term, facts: Option<&Facts>) -> Vec<Finding> {
    let Some(row) = catalogue::row(&term.key.id) else { return Vec::new() };
    let new = |kind, sentence: String, price, origins| Finding {
        kind,
        key: term.key.clone(),
        name: short(&term.place),
        sentence,
        price,
        origins,
    };
    let own = origin(&term.claim.origin);
    let mut found = Vec::new();
    if !row.no_effect.is_empty() {
        let sentence = format!("{} has no effect: {}.", place_title(&term.place), row.no_effect);
        found.push(new(FindingKind::NoEffect, sentence, None, vec![own.clone()]));
    }
    if row.kind == Kind::Hardened {
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
            term.value,
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
    Some(Finding {
        kind: FindingKind::Hidden,
        key: term.key.clone(),
        name: pattern.clone(),
        sentence: format!(
            "{pattern} forces {forces}, whatever the server requires and Get-SmbServerConfiguration says.{here}"
        ),
        price: catalogue::row(&term.key.id).and_then(|row| price(&row.security)),
        origins: vec![origin(&term.claim.origin)],
    })
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

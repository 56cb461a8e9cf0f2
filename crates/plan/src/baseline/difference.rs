//! What changes from one baseline to another, in the catalogue's terms; what the catalogue does not know is counted.
//!
//! Owns the comparison. Places of Windows and of Samba that mean the same are compared with each other. Where a side does
//! not set something, its version's default counts if the version is known; a policy that is laid over a machine leaves
//! what it does not set ([`Unset::Kept`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::catalogue::{self, CostKey, Preset, Row, Stricter, System};
use super::effective::{Claim, EffectiveValue};
use super::read::PolicyText;
use super::roles::MachineRole;
use super::setting::{Place, Value};
use super::terms::{SettingKey, Term, Terms, default_demands};

#[cfg(test)]
mod tests;

/// What a side has where it sets nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unset {
    /// The default of its version.
    #[default]
    Default,
    /// What the other side has: it is applied to that.
    Kept,
}

/// One side.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub terms: &'a Terms,
    /// For defaults.
    pub system: Option<System>,
    /// What the machine is.
    pub role: MachineRole,
}

/// A value of a side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub value: String,
    /// Whether no input sets it.
    pub is_default: bool,
    /// Where it was read; none for a default.
    pub place: Option<Place>,
    /// Name of the file and the policy that set it; empty for a default.
    pub from: String,
}

/// What a change means for security.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Security {
    Stricter,
    Weaker,
    /// Not known, or neither.
    Neutral,
}

/// A known setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub key: SettingKey,
    /// None where it is not set, and the default is not known.
    pub from: Option<Shown>,
    pub to: Option<Shown>,
    pub cost: CostKey,
    pub security: Security,
    /// Why it has no effect; none if it has one.
    pub no_effect: Option<String>,
}

/// Settings that the catalogue does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    pub same: u64,
    pub changed: u64,
    pub only_before: u64,
    pub only_after: u64,
}

/// Most settings that the catalogue does not have that are listed; more are only counted.
const OTHERS_LISTED: usize = 10_000;

/// A setting that the catalogue does not have, and that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherChange {
    pub place: Place,
    /// None where a side does not set it.
    pub from: Option<Value>,
    pub to: Option<Value>,
    /// The file, and the policy, that sets it.
    pub origin: String,
    /// The name of its policy, what it is for and what the value means, from a template.
    pub policy: Option<String>,
    pub explain: Option<String>,
    pub meaning: Option<String>,
}

/// What changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// In the order of the catalogue.
    pub changes: Vec<Change>,
    /// Known settings with the same value on both sides.
    pub same: u64,
    /// Known settings of the second side that do not say what the first has: it is not known.
    pub unknown_before: u64,
    pub others: Others,
    /// The first of the others that differ, in the order of their places.
    #[serde(default)]
    pub other_changes: Vec<OtherChange>,
}

impl Difference {
    /// Adds what templates say about the settings that the catalogue does not have.
    pub fn explain(&mut self, text: impl Fn(&Place) -> Option<PolicyText>) {
        for one in &mut self.other_changes {
            let Some(found) = text(&one.place) else { continue };
            let value = one.to.as_ref().or(one.from.as_ref());
            let meaning = found.allowed.iter().find(|(allowed, _)| Some(allowed) == value);
            one.meaning = meaning.map(|(_, text)| text.clone()).or(found.label);
            one.explain = Some(found.explain).filter(|text| !text.is_empty());
            one.policy = Some(found.policy);
        }
    }
}

/// Compares two sides.
pub fn difference(before: Side<'_>, after: Side<'_>, unset: Unset) -> Difference {
    let (others, other_changes) = others(before.terms, after.terms, unset);
    let mut difference = Difference { others, other_changes, ..Difference::default() };
    for row in catalogue::rows() {
        for of in scopes(row, before, after) {
            let key = SettingKey { id: row.id.clone(), of };
            let from = shown(row, &key, before);
            let to = match (shown(row, &key, after), unset) {
                (Some(to), Unset::Kept) if to.is_default && !is_removed(&key, after) => {
                    from.clone().or(Some(to))
                }
                (None, Unset::Kept) => from.clone(),
                (to, _) => to,
            };
            let values = (from.as_ref().map(value), to.as_ref().map(value));
            match values {
                (None, None) => {}
                (Some(one), Some(other)) if one == other => difference.same += 1,
                (from_value, to_value) => {
                    difference.unknown_before += u64::from(from_value.is_none());
                    let security = security(row, from_value, to_value);
                    difference.changes.push(Change {
                        key,
                        cost: row.cost,
                        security,
                        no_effect: Some(row.no_effect.clone()).filter(|why| !why.is_empty()),
                        from,
                        to,
                    });
                }
            }
        }
    }
    difference
}

fn value(shown: &Shown) -> &str {
    &shown.value
}

fn is_removed(key: &SettingKey, side: Side<'_>) -> bool {
    side.terms.removed.contains(key)
}

/// The scope of all, and each share or path that a side names; a default of all only where its side is known.
fn scopes(row: &Row, before: Side<'_>, after: Side<'_>) -> BTreeSet<Option<String>> {
    let named = [before, after].into_iter().flat_map(|side| side.terms.all(&row.id));
    let mut scopes: BTreeSet<_> = named.map(|term| term.key.of.clone()).collect();
    let has_default = |side: Side<'_>| {
        side.system.is_some_and(|system| row.default_of(system) != Preset::Unknown)
    };
    if has_default(before) && has_default(after) {
        scopes.insert(None);
    }
    scopes
}

/// The value of a side. A share without its own value has that of all shares.
fn shown(row: &Row, key: &SettingKey, side: Side<'_>) -> Option<Shown> {
    let of_all = SettingKey { id: key.id.clone(), of: None };
    let known = &side.terms.known;
    if let Some(term) = known.get(key).or_else(|| known.get(&of_all)) {
        return Some(of_term(term));
    }
    let value = match row.default_of(side.system?) {
        Preset::Value(value) => value.to_owned(),
        _ => default_demands(key, side.system)?.to_string(),
    };
    Some(Shown { value, is_default: true, place: None, from: String::new() })
}

fn of_term(term: &Term) -> Shown {
    let from = from(&term.claim);
    Shown { value: term.value.clone(), is_default: false, place: Some(term.place.clone()), from }
}

/// Name of the file and the policy.
fn from(claim: &Claim) -> String {
    match &claim.origin.policy {
        Some(policy) => format!("{policy} ({})", claim.origin.file),
        None => claim.origin.file.clone(),
    }
}

fn security(row: &Row, from: Option<&str>, to: Option<&str>) -> Security {
    let number = |text: Option<&str>| text?.parse::<u64>().ok();
    match &row.stricter {
        Stricter::Unknown => Security::Neutral,
        Stricter::Value(strict) => match (from == Some(strict), to == Some(strict)) {
            (false, true) => Security::Stricter,
            (true, false) => Security::Weaker,
            _ => Security::Neutral,
        },
        Stricter::More => match (number(from), number(to)) {
            (Some(from), Some(to)) if to > from => Security::Stricter,
            (Some(from), Some(to)) if to < from => Security::Weaker,
            _ => Security::Neutral,
        },
    }
}

fn others(before: &Terms, after: &Terms, unset: Unset) -> (Others, Vec<OtherChange>) {
    let mut others = Others::default();
    let mut listed = Vec::new();
    let mut differs = |from: Option<&EffectiveValue>, to: Option<&EffectiveValue>| {
        let Some(shown) = to.or(from).filter(|_| listed.len() < OTHERS_LISTED) else { return };
        let value = |side: Option<&EffectiveValue>| side.map(|one| one.claim.value.clone());
        listed.push(OtherChange {
            place: shown.place.clone(),
            from: value(from),
            to: value(to),
            origin: self::from(&shown.claim),
            policy: None,
            explain: None,
            meaning: None,
        });
    };
    for (place, value) in &after.unknown {
        match before.unknown.get(place) {
            Some(one) if one.claim.value == value.claim.value => others.same += 1,
            one => {
                let count =
                    if one.is_some() { &mut others.changed } else { &mut others.only_after };
                *count += 1;
                differs(one, Some(value));
            }
        }
    }
    for (place, value) in &before.unknown {
        match unset {
            _ if after.unknown.contains_key(place) => {}
            Unset::Kept => others.same += 1,
            Unset::Default => {
                others.only_before += 1;
                differs(Some(value), None);
            }
        }
    }
    listed.sort_by_key(|one| one.place.key());
    (others, listed)
}

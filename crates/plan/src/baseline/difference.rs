//! What changes from one baseline to another, in the catalogue's terms; what the catalogue does not know is counted.
//!
//! Owns the comparison. Places of Windows and of Samba that mean the same are compared with each other. Where a side does
//! not set something, its version's default counts if the version is known; a policy that is laid over a machine leaves
//! what it does not set ([`Unset::Kept`]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::catalogue::{self, CostKey, Preset, Row, Stricter, System};
use super::setting::Place;
use super::terms::{Term, TermKey, Terms};

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
    pub key: TermKey,
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
}

/// Compares two sides.
pub fn difference(before: Side<'_>, after: Side<'_>, unset: Unset) -> Difference {
    let mut difference =
        Difference { others: others(before.terms, after.terms, unset), ..Difference::default() };
    for row in catalogue::rows() {
        for of in scopes(row, before, after) {
            let key = TermKey { id: row.id.clone(), of };
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

fn is_removed(key: &TermKey, side: Side<'_>) -> bool {
    side.terms.removed.contains(key)
}

/// Of all, and each share or path that a side names; a default of all only where its side is known.
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
fn shown(row: &Row, key: &TermKey, side: Side<'_>) -> Option<Shown> {
    let of_all = TermKey { id: key.id.clone(), of: None };
    let known = &side.terms.known;
    if let Some(term) = known.get(key).or_else(|| known.get(&of_all)) {
        return Some(of_term(term));
    }
    match row.default_of(side.system?) {
        Preset::Value(value) => Some(Shown {
            value: value.to_owned(),
            is_default: true,
            place: None,
            from: String::new(),
        }),
        Preset::Unknown | Preset::Absent => None,
    }
}

fn of_term(term: &Term) -> Shown {
    let origin = &term.claim.origin;
    let from = match &origin.policy {
        Some(policy) => format!("{policy} ({})", origin.file),
        None => origin.file.clone(),
    };
    Shown { value: term.value.clone(), is_default: false, place: Some(term.place.clone()), from }
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

fn others(before: &Terms, after: &Terms, unset: Unset) -> Others {
    let mut others = Others::default();
    for (place, value) in &after.unknown {
        match before.unknown.get(place) {
            None => others.only_after += 1,
            Some(one) if one.claim.value == value.claim.value => others.same += 1,
            Some(_) => others.changed += 1,
        }
    }
    let kept = before.unknown.keys().filter(|place| !after.unknown.contains_key(place)).count();
    match unset {
        Unset::Kept => others.same += kept as u64,
        Unset::Default => others.only_before += kept as u64,
    }
    others
}

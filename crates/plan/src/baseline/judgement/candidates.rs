//! What may be to blame, for the search: each changed setting with its values in the baseline and before it.
//!
//! Owns what the search may take back: only what can slow SMB 2 and 3 ([`catalogue::Row::can_slow`], [`reach`]), and only where
//! commands write both values. On a domain controller signing stays, because clients demand it of their domain's shares.

use super::super::bisect::{Candidate, LeftInForce, Suspects};
use super::super::catalogue::parameters::has_parameter;
use super::super::catalogue::place::PlaceKey;
use super::super::catalogue::reach::{Reach, reach};
use super::super::catalogue::{self, CostKey, Preset, Role, Row};
use super::super::cost::Cost;
use super::super::cost::questions::weight;
use super::super::difference::{Change, Difference, Side, Unset};
use super::super::effective::EffectiveValue;
use super::super::read::samba_parameters;
use super::super::roles::MachineRole;
use super::super::setting::{Origin, Place, Setting, SmbObject, Value};
use super::super::terms::{SettingKey, Term, place_title};
use super::super::write::is_written;

/// Weight of a setting that the catalogue does not have, as a share of the smallest known one.
const UNKNOWN: f64 = 0.5;

pub(super) fn suspects(
    before: Side<'_>,
    after: Side<'_>,
    unset: Unset,
    difference: &Difference,
    costs: &[Cost],
) -> Suspects {
    let mut suspects = Suspects::default();
    let most = costs.iter().filter_map(Cost::added_ns).fold(0.0, f64::max);
    for cost in costs {
        let is_of = |change: &&Change| cost.settings.contains(&change.key);
        let mut pairs = Vec::new();
        for change in difference.changes.iter().filter(is_of) {
            match of_change(change, before, after) {
                Ok(pair) => pairs.push((change.key.clone(), pair)),
                Err(Some(left)) => suspects.by_hand.push(left),
                Err(None) => suspects.harmless += 1,
            }
        }
        let (keys, pairs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let (baseline, former): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        if !baseline.is_empty() {
            let id = keys.iter().map(name).collect::<Vec<_>>().join(", ");
            let (title, weight) = (cost.what.clone(), weight(cost, most));
            suspects.candidates.push(Candidate { id, title, weight, baseline, former });
        }
    }
    let least = suspects.candidates.iter().map(|one| one.weight).fold(f64::INFINITY, f64::min);
    let weight = if least.is_finite() { UNKNOWN * least } else { 1.0 };
    for (place, baseline, former) in unknown(before, after, unset) {
        match of_unknown(place, baseline, former, after.role) {
            Ok((baseline, former)) => suspects.candidates.push(Candidate {
                id: place_title(place),
                title: place_title(place),
                weight,
                baseline: vec![baseline],
                former: vec![former],
            }),
            Err(Some(left)) => suspects.by_hand.push(left),
            Err(None) => suspects.harmless += 1,
        }
    }
    suspects
}

fn name(key: &SettingKey) -> String {
    match &key.of {
        Some(of) => format!("{} ({of})", key.id),
        None => key.id.clone(),
    }
}

/// A setting of the baseline and its former value; else why it is left in force, or none if it cannot be to blame.
type Pair = Result<(Setting, Setting), Option<LeftInForce>>;

/// Settings that the catalogue does not have and that change, with the value of the baseline and the one before.
fn unknown<'a>(
    before: Side<'a>,
    after: Side<'a>,
    unset: Unset,
) -> impl Iterator<Item = (&'a Place, Option<&'a Value>, Option<&'a Value>)> {
    let value = |one: &'a EffectiveValue| &one.claim.value;
    let set = after.terms.unknown.iter().filter_map(move |(key, one)| {
        let former = before.terms.unknown.get(key).map(value);
        (former != Some(value(one))).then_some((&one.place, Some(value(one)), former))
    });
    let gone = before.terms.unknown.iter().filter_map(move |(key, one)| {
        let is_gone = unset == Unset::Default && !after.terms.unknown.contains_key(key);
        is_gone.then_some((&one.place, None, Some(value(one))))
    });
    set.chain(gone)
}

fn of_unknown(
    place: &Place,
    baseline: Option<&Value>,
    former: Option<&Value>,
    role: MachineRole,
) -> Pair {
    match reach(place, role.has(Role::Client)) {
        Reach::Nothing => Err(None),
        Reach::ByHand(why) => Err(Some(left(place_title(place), why))),
        Reach::Files => {
            let at = |value: Option<&Value>| value.cloned().unwrap_or_else(|| absent(place));
            written(place, at(baseline), at(former), place_title(place))
        }
    }
}

fn left(title: String, why: &str) -> LeftInForce {
    LeftInForce { title, why: why.to_owned() }
}

/// The value of what is not set. Auditing has no default to go back to: it is off where nothing switches it on. A fragment of
/// smb.conf cannot remove a line: it has the default.
fn absent(place: &Place) -> Value {
    match place {
        Place::Audit { .. } | Place::Template { .. } => Value::Dword(0),
        Place::Samba { parameter, .. } => {
            let name = parameter.to_lowercase();
            let known = samba_parameters::parameters().iter().find(|known| known.name == name);
            let default = known.and_then(|known| known.default_4_22.or(known.default_4_17));
            default
                .filter(|text| *text != "*")
                .map_or(Value::Delete, |text| Value::Text(text.to_owned()))
        }
        _ => Value::Delete,
    }
}

/// Both values, if commands write them.
fn written(place: &Place, baseline: Value, former: Value, title: String) -> Pair {
    let at = |value| Setting { place: place.clone(), value, origin: Origin::default() };
    let (baseline, former) = (at(baseline), at(former));
    match [&baseline, &former].map(is_written) {
        [Ok(()), Ok(())] => Ok((baseline, former)),
        [Err(why), _] | [_, Err(why)] => Err(Some(left(title, why))),
    }
}

/// The change as a setting and its former value.
fn of_change(change: &Change, before: Side<'_>, after: Side<'_>) -> Pair {
    let Some(row) = catalogue::row(&change.key.id) else { return Err(None) };
    if !row.can_slow() || !after.role.has(row.role) {
        return Err(None);
    }
    let title = format!("{} ({})", row.meaning, name(&change.key));
    if after.role == MachineRole::DomainController && row.cost == CostKey::Signing {
        let why = "clients demand signing of SYSVOL and NETLOGON: it stays on a domain controller";
        return Err(Some(left(title, why)));
    }
    let (now, then) = (after.terms.known.get(&change.key), before.terms.known.get(&change.key));
    let is_writable = |place: &&Place| !matches!(place, Place::Wire { .. });
    // Where the baseline sets it, else where it was set.
    let of = |term: Option<&'_ Term>| term.map(|term| term.place.clone());
    let place = of(now).filter(|place| is_writable(&place)).or_else(|| of(then));
    let by_hand = || Some(left(title.clone(), "no command writes it"));
    let place = place.filter(|place| is_writable(&place)).ok_or_else(by_hand)?;
    let (baseline, former) = values(row, change, &place, (now, then), before);
    match cmdlet(row, &place, change, before, after) {
        Some((place, baseline, former)) => written(&place, baseline, former, title),
        None => written(&place, baseline, former, title),
    }
}

/// The values at a place: as they were read there, else in the spelling of the place.
fn values(
    row: &Row,
    change: &Change,
    place: &Place,
    (now, then): (Option<&Term>, Option<&Term>),
    before: Side<'_>,
) -> (Value, Value) {
    let own = |term: Option<&Term>| {
        let term = term.filter(|term| term.place.key() == place.key())?;
        Some(term.claim.value.clone())
    };
    let value = |shown: Option<&str>| {
        let pattern = catalogue::find(place).map(|(_, pattern)| pattern);
        let written = shown.zip(pattern).and_then(|(value, pattern)| pattern.write(row, value));
        written.unwrap_or_else(|| absent(place))
    };
    let to = change.to.as_ref().map(|one| one.value.as_str());
    (
        own(now).unwrap_or_else(|| value(to)),
        own(then).unwrap_or_else(|| value(former(row, change, before))),
    )
}

/// The value before, in the row's spelling.
fn former<'a>(row: &'a Row, change: &'a Change, before: Side<'_>) -> Option<&'a str> {
    let preset = before.system.and_then(|system| match row.default_of(system) {
        Preset::Value(value) => Some(value),
        _ => None,
    });
    change.from.as_ref().map(|one| one.value.as_str()).or(preset)
}

/// A value of the Server service by its cmdlet, which needs no restart; none where both values are not known or the
/// version does not have the parameter.
fn cmdlet(
    row: &Row,
    place: &Place,
    change: &Change,
    before: Side<'_>,
    after: Side<'_>,
) -> Option<(Place, Value, Value)> {
    let Place::Registry { key, .. } = place else { return None };
    if !key.to_lowercase().ends_with(r"\services\lanmanserver\parameters") {
        return None;
    }
    let system = after.system.or(before.system);
    row.places.iter().find_map(|pattern| {
        let PlaceKey::Server(property) = &pattern.key else { return None };
        let has = has_parameter(&SmbObject::Server, property, system);
        let place = pattern.place(None).filter(|_| has)?;
        let baseline = pattern.write(row, &change.to.as_ref()?.value)?;
        Some((place, baseline, pattern.write(row, former(row, change, before)?)?))
    })
}

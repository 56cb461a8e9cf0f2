//! What may be to blame, for the search: each changed setting with its values in the baseline and before it.

use super::super::bisect::Candidate;
use super::super::catalogue::{self, Preset, System};
use super::super::cost::Cost;
use super::super::cost::questions::weight;
use super::super::difference::{Change, Difference, Unset};
use super::super::setting::{Origin, Place, Setting, Value};
use super::super::terms::{Terms, place_title};

/// Weight of a setting that the catalogue does not have, as a share of the smallest known one.
const UNKNOWN: f64 = 0.5;

pub(super) fn candidates(
    (before, after): (&Terms, &Terms),
    system: Option<System>,
    unset: Unset,
    difference: &Difference,
    costs: &[Cost],
) -> Vec<Candidate> {
    let most = costs.iter().filter_map(Cost::added_ns).fold(0.0, f64::max);
    let known = costs.iter().filter_map(|cost| {
        let is_of = |change: &&Change| cost.settings.contains(&change.key);
        let changes = difference.changes.iter().filter(is_of);
        let parts = changes.filter_map(|change| of_change(change, before, after, system));
        let (baseline, former): (Vec<_>, Vec<_>) = parts.unzip();
        let names = cost.settings.iter().map(|key| match &key.of {
            Some(of) => format!("{} ({of})", key.id),
            None => key.id.clone(),
        });
        (!baseline.is_empty()).then(|| Candidate {
            id: names.collect::<Vec<_>>().join(", "),
            title: cost.what.clone(),
            weight: weight(cost, most),
            baseline,
            former,
        })
    });
    let mut candidates: Vec<_> = known.collect();
    let least = candidates.iter().map(|one| one.weight).fold(f64::INFINITY, f64::min);
    let weight = if least.is_finite() { UNKNOWN * least } else { 1.0 };
    let unknown = |place: &Place, baseline: Option<&Value>, former: Option<&Value>| {
        let at = |value: Option<&Value>| {
            let value = value.cloned().unwrap_or(Value::Delete);
            vec![Setting { place: place.clone(), value, origin: Origin::default() }]
        };
        let title = place_title(place);
        Candidate { id: title.clone(), title, weight, baseline: at(baseline), former: at(former) }
    };
    for (place, one) in &after.unknown {
        let former = before.unknown.get(place).map(|one| &one.claim.value);
        if former != Some(&one.claim.value) {
            candidates.push(unknown(&one.place, Some(&one.claim.value), former));
        }
    }
    if unset == Unset::Default {
        for (place, one) in &before.unknown {
            if !after.unknown.contains_key(place) {
                candidates.push(unknown(&one.place, None, Some(&one.claim.value)));
            }
        }
    }
    candidates
}

/// The change as a setting and its former value; none where no place of it can be written.
fn of_change(
    change: &Change,
    before: &Terms,
    after: &Terms,
    system: Option<System>,
) -> Option<(Setting, Setting)> {
    let row = catalogue::row(&change.key.id)?;
    let (now, then) = (after.known.get(&change.key), before.known.get(&change.key));
    let is_writable = |place: &&Place| !matches!(place, Place::Wire { .. });
    // Where the baseline sets it, else where it was set.
    let place = now.map(|term| &term.place).filter(is_writable).or(then.map(|term| &term.place))?;
    let (_, pattern) = catalogue::find(place)?;
    let own = |term: Option<&super::super::terms::Term>| {
        let term = term.filter(|term| term.place.key() == place.key())?;
        Some(term.claim.value.clone())
    };
    let written = |value: Option<&str>| value.and_then(|value| pattern.write(row, value));
    let preset = system.and_then(|system| match row.default_of(system) {
        Preset::Value(value) => Some(value),
        _ => None,
    });
    let value = |shown: Option<&str>| written(shown).unwrap_or(Value::Delete);
    let to = change.to.as_ref().map(|one| one.value.as_str());
    let from = change.from.as_ref().map(|one| one.value.as_str()).or(preset);
    let at = |value| Setting { place: place.clone(), value, origin: Origin::default() };
    let baseline = at(own(now).unwrap_or_else(|| value(to)));
    Some((baseline, at(own(then).unwrap_or_else(|| value(from)))))
}

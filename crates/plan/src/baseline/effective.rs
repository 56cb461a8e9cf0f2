//! What several inputs together set: local settings, group policies in the order of their links, and what a live server
//! shows.
//!
//! Owns precedence and conflicts. Inputs apply one after the other, local ones before policies; within an input its own
//! order counts. A later value replaces an earlier one, `**del.` removes a value, `**delvals.` all values of a key,
//! `**DeleteKeys` keys with all below (registry.pol, [MS-GPREG] 2.2.1). What was seen on the wire is what is really on; it
//! replaces nothing, because it is another place: [`super::terms`] brings the places of one meaning together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::setting::{Origin, Place, Setting, Value};

#[cfg(test)]
mod tests;

/// When the settings of an input apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Settings of the machine itself: exported registry, cmdlets, smb.conf.
    #[default]
    Local,
    /// A group policy, or a baseline that is deployed as one.
    Policy,
}

/// One input.
#[derive(Clone, Debug, Default)]
pub struct Input<'a> {
    pub name: &'a str,
    pub layer: Layer,
    /// In the order in which they apply.
    pub settings: &'a [Setting],
}

/// A value that an input gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub value: Value,
    pub input: String,
    pub origin: Origin,
}

/// A place with the value that it has in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectiveValue {
    /// As the last input spells it.
    pub place: Place,
    pub claim: Claim,
    /// Values that were replaced or removed, in the order in which they applied.
    pub replaced: Vec<Claim>,
}

impl EffectiveValue {
    /// Whether inputs disagree about it.
    pub fn is_disputed(&self) -> bool {
        self.replaced.iter().any(|claim| claim.value != self.claim.value)
    }
}

/// What all inputs together set.
#[derive(Clone, Debug, Default)]
pub struct Effective {
    /// By place.
    pub values: BTreeMap<Place, EffectiveValue>,
    /// Values that an input removed again, and that no later input set.
    pub removed: Vec<EffectiveValue>,
    /// Settings that were read.
    pub settings: u64,
}

/// Applies inputs one after the other: local ones first, then policies, each in the given order.
pub fn effective(inputs: &[Input<'_>]) -> Effective {
    let mut inputs: Vec<_> = inputs.iter().collect();
    // Stable, so that the order of policies stays.
    inputs.sort_by_key(|input| input.layer);
    let mut state = State::default();
    for input in inputs {
        for setting in input.settings {
            state.apply(input.name, setting);
        }
    }
    state.finish()
}

/// The values so far; those that were removed keep their history.
#[derive(Default)]
struct State {
    values: BTreeMap<Place, (Option<EffectiveValue>, Vec<Claim>)>,
    /// Places of the registry by key in lower case.
    keys: BTreeMap<String, Vec<Place>>,
    settings: u64,
}

impl State {
    fn apply(&mut self, input: &str, setting: &Setting) {
        self.settings += 1;
        let claim = Claim {
            value: setting.value.clone(),
            input: input.to_owned(),
            origin: setting.origin.clone(),
        };
        match (&setting.value, setting.place.key()) {
            (Value::DeleteValues, Place::Registry { key, .. }) => {
                for place in self.keys.get(&key).cloned().unwrap_or_default() {
                    self.remove(&place, &claim);
                }
            }
            (Value::DeleteNamed(names), Place::Registry { key, name, .. }) => {
                let is_keys = name.contains("deletekeys");
                let lower = names.iter().map(|name| name.to_lowercase());
                let below: Vec<_> = lower.collect();
                let doomed: Vec<_> = self
                    .keys
                    .range(key.clone()..)
                    .take_while(|(one, _)| one.starts_with(&key))
                    .flat_map(|(one, places)| places.iter().map(move |place| (one, place)))
                    .filter(|(one, place)| is_doomed(&key, &below, is_keys, one, place))
                    .map(|(_, place)| place.clone())
                    .collect();
                doomed.iter().for_each(|place| self.remove(place, &claim));
            }
            (Value::Delete, place) => self.remove(&place, &claim),
            (Value::CreateKey | Value::DeleteValues | Value::DeleteNamed(_), _) => {}
            (_, place) => {
                if let Place::Registry { key, .. } = &place {
                    let places = self.keys.entry(key.clone()).or_default();
                    if !places.contains(&place) {
                        places.push(place.clone());
                    }
                }
                let (value, history) = self.values.entry(place).or_default();
                if let Some(before) = value.take() {
                    history.push(before.claim);
                }
                let place = setting.place.clone();
                *value = Some(EffectiveValue { place, claim, replaced: Vec::new() });
            }
        }
    }

    fn remove(&mut self, place: &Place, by: &Claim) {
        let Some((value, history)) = self.values.get_mut(place) else {
            // Removed before anything set it: the default stays, which is worth knowing.
            if by.value == Value::Delete {
                self.values.insert(place.clone(), (None, vec![by.clone()]));
            }
            return;
        };
        if let Some(before) = value.take() {
            history.push(before.claim);
        }
        history.push(by.clone());
    }

    fn finish(self) -> Effective {
        let mut all = Effective { settings: self.settings, ..Effective::default() };
        for (place, (value, mut history)) in self.values {
            match value {
                Some(value) => {
                    all.values.insert(place, EffectiveValue { replaced: history, ..value });
                }
                None => {
                    let Some(claim) = history.pop() else { continue };
                    all.removed.push(EffectiveValue { place, claim, replaced: history });
                }
            }
        }
        all
    }
}

/// Whether `**DeleteKeys` or `**DeleteValues` of `key` with these names removes a value of the key `one`.
fn is_doomed(key: &str, names: &[String], is_keys: bool, one: &str, place: &Place) -> bool {
    let Place::Registry { name, .. } = place else { return false };
    if !is_keys {
        return one == key && names.contains(name);
    }
    names.iter().any(|name| {
        let doomed = if key.is_empty() { name.clone() } else { format!("{key}\\{name}") };
        let below = one.strip_prefix(&doomed);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
    })
}

//! Several inputs: precedence, removals, conflicts.

use proptest::prelude::*;

use super::*;
use crate::baseline::setting::Scope;

const KEY: &str = r"SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters";

fn set(key: &str, name: &str, value: Value) -> Setting {
    let place =
        Place::Registry { scope: Scope::Computer, key: key.to_owned(), name: name.to_owned() };
    Setting { place, value, origin: Origin::default() }
}

fn dword(name: &str, value: u32) -> Setting {
    set(KEY, name, Value::Dword(value))
}

fn values(inputs: &[(Layer, Vec<Setting>)]) -> Vec<(String, Value)> {
    let inputs: Vec<_> = inputs
        .iter()
        .map(|(layer, settings)| Input { name: "input", layer: *layer, settings })
        .collect();
    let name = |place: &Place| match place {
        Place::Registry { key, name, .. } => format!("{key}\\{name}"),
        other => format!("{other:?}"),
    };
    let all = effective(&inputs).values;
    all.into_values().map(|one| (name(&one.place), one.claim.value)).collect()
}

fn value(inputs: &[(Layer, Vec<Setting>)], name: &str) -> Option<Value> {
    let end = format!("\\{name}");
    values(inputs).into_iter().find(|(place, _)| place.ends_with(&end)).map(|(_, value)| value)
}

#[test]
fn later_policies_win_over_earlier_ones_and_over_the_machine() {
    use Layer::{Local, Policy};
    let name = "RequireSecuritySignature";
    let inputs = [
        (Policy, vec![dword(name, 1)]),
        (Policy, vec![dword("requiresecuritysignature", 0)]),
        // Local, though it was given last.
        (Local, vec![dword(name, 7)]),
    ];
    assert_eq!(values(&inputs).len(), 1);
    assert_eq!(value(&inputs, "requiresecuritysignature"), Some(Value::Dword(0)));
    let settings: Vec<_> = inputs.iter().map(|one| &one.1[..]).collect();
    let all = effective(&[
        Input { name: "first", layer: Policy, settings: settings[0] },
        Input { name: "second", layer: Policy, settings: settings[1] },
    ]);
    let one = all.values.values().next().unwrap();
    assert!(one.is_disputed());
    assert_eq!((one.claim.input.as_str(), one.replaced[0].input.as_str()), ("second", "first"));
}

#[test]
fn removed_values_are_gone_and_are_listed() {
    let all = |settings: Vec<Setting>| {
        effective(&[Input { name: "policy", layer: Layer::Policy, settings: &settings }])
    };
    let removed = all(vec![dword("SMB1", 1), set(KEY, "smb1", Value::Delete)]);
    assert!(removed.values.is_empty());
    assert_eq!((removed.removed.len(), removed.removed[0].replaced.len()), (1, 1));
    // Removing a value that no input has.
    assert_eq!(all(vec![set(KEY, "SMB1", Value::Delete)]).removed.len(), 1);
    // Set again.
    let again = all(vec![dword("SMB1", 1), set(KEY, "SMB1", Value::Delete), dword("SMB1", 0)]);
    assert_eq!((again.values.len(), again.removed.len()), (1, 0));
    // All of the key, and not of keys below it.
    let below = format!("{KEY}\\Below");
    let values = all(vec![
        dword("A", 1),
        dword("B", 1),
        set(&below, "C", Value::Dword(1)),
        set(&KEY.to_lowercase(), "**delvals.", Value::DeleteValues),
        dword("B", 2),
    ]);
    assert_eq!((values.values.len(), values.removed.len()), (2, 1));
}

#[test]
fn keys_and_values_are_removed_by_name() {
    let all = |value: Value, name: &str| {
        let settings = vec![
            set(r"Software\A\B", "x", Value::Dword(1)),
            set(r"Software\A\B\C", "x", Value::Dword(1)),
            set(r"Software\A\Bc", "x", Value::Dword(1)),
            set(r"Software\A", "B", Value::Dword(1)),
            set(r"Software\A", name, value),
        ];
        effective(&[Input { name: "", layer: Layer::Policy, settings: &settings }]).values.len()
    };
    assert_eq!(all(Value::DeleteNamed(vec!["b".to_owned()]), "**DeleteKeys"), 2);
    assert_eq!(all(Value::DeleteNamed(vec!["b".to_owned()]), "**DeleteValues"), 3);
    assert_eq!(all(Value::CreateKey, ""), 4);
}

proptest! {
    /// Against the plainest model: a map that is written in order.
    #[test]
    fn the_last_word_counts(
        policies in prop::collection::vec(
            prop::collection::vec((0usize..5, prop::option::of(0u32..3)), 0..8),
            0..4,
        ),
    ) {
        let names = ["a", "B", "c", "D", "e"];
        let mut model = BTreeMap::new();
        let inputs: Vec<_> = policies
            .iter()
            .map(|policy| {
                let settings = policy.iter().map(|&(place, value)| {
                    model.insert(names[place].to_lowercase(), value);
                    match value {
                        Some(value) => dword(names[place], value),
                        None => set(KEY, names[place], Value::Delete),
                    }
                });
                (Layer::Policy, settings.collect::<Vec<_>>())
            })
            .collect();
        for (name, expected) in model {
            let name = names.iter().find(|one| one.to_lowercase() == name).unwrap();
            prop_assert_eq!(value(&inputs, name), expected.map(Value::Dword));
        }
    }
}

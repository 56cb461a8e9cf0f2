//! Any bytes as a file of a baseline, or as two of them; what was read is written in every form and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_plan::baseline::read::{Baseline, NamedBytes, read};
use smbscope_plan::baseline::setting::{Place, Scope, Setting, Value};
use smbscope_plan::baseline::write::{self, FormerState, Unwritten};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let name = if choice & 1 == 0 { "user/en-US/a" } else { "machine/a" };
    let mut files = vec![NamedBytes { name, bytes: rest }];
    if choice & 2 != 0
        && let Some((length, rest)) = rest.split_first_chunk::<2>()
    {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (first, second) = rest.split_at(length);
        files = vec![NamedBytes { name, bytes: first }, NamedBytes { name: "x", bytes: second }];
    }
    let Ok(baseline) = read(&files) else { return };
    for unknown in &baseline.unknown.list {
        assert!(unknown.text.chars().count() <= 200 && !unknown.text.contains(char::is_control));
    }
    let settings = distinct(&baseline);
    for (scope, name) in [(Scope::Computer, "machine"), (Scope::User, "user")] {
        let (bytes, unwritten) = write::encode_registry_pol(&settings, scope);
        check(name, &bytes, &settings, &unwritten);
    }
    let (text, unwritten) = write::encode_lgpo(&settings);
    if !text.is_empty() {
        check("x", text.as_bytes(), &settings, &unwritten);
    }
    let (bytes, unwritten) = write::encode_security_template(&settings);
    check("x", &bytes, &settings, &unwritten);
    let former = FormerState { settings: baseline.settings.clone(), is_complete: choice & 4 != 0 };
    let script = write::powershell(&settings, &former);
    assert!(script.apply.is_ascii() && script.undo.is_ascii());
    let conf = write::smb_conf(&settings, &former);
    let mut parameters = conf
        .apply
        .lines()
        .chain(conf.undo.lines())
        .filter_map(|line| line.strip_prefix('\t')?.split_once(" = ").map(|(name, _)| name));
    assert!(!parameters.any(|name| name.contains("script") || name.contains("exec")));
});

/// One setting of each place, a limited number of them.
fn distinct(baseline: &Baseline) -> Vec<Setting> {
    let mut seen = std::collections::BTreeSet::new();
    let settings = baseline.settings.iter().filter(|setting| seen.insert(setting.place.clone()));
    settings.take(200).cloned().collect()
}

/// All that was written is read again, and nothing else.
fn check(name: &str, bytes: &[u8], settings: &[Setting], unwritten: &[Unwritten]) {
    let read = read(&[NamedBytes { name, bytes }]).expect("what was written can be read");
    assert_eq!(read.damage, []);
    assert_eq!(read.settings.len() + unwritten.len(), settings.len());
    let refused = |setting: &&Setting| !unwritten.iter().any(|one| one.place == setting.place);
    let mut expected: Vec<(Place, Value)> = settings.iter().filter(refused).map(plain).collect();
    let mut found: Vec<(Place, Value)> = read.settings.iter().map(plain).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

/// Without what a form does not keep: the name next to a key as such, the type of a line of a template.
fn plain(setting: &Setting) -> (Place, Value) {
    let place = setting.place.clone();
    match (place, setting.value.clone()) {
        (Place::Registry { scope, key, .. }, value @ (Value::DeleteValues | Value::CreateKey)) => {
            (Place::Registry { scope, key, name: String::new() }, value)
        }
        (place @ Place::Template { .. }, Value::None) => (place, Value::Text(String::new())),
        (place @ Place::Template { .. }, Value::Dword(number)) => {
            (place, Value::Text(number.to_string()))
        }
        other => other,
    }
}

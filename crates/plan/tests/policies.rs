//! Every file of `policies/` in the folder that `SMBSCOPE_SHARED` names (otherwise `../shared` next to the repository),
//! compared setting by setting with `tests/policies/oracle.py`, which reads the same bytes in another way.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};
use smbscope_plan::baseline::read::{Baseline, Class, ElementKind, Format, NamedBytes, read};
use smbscope_plan::baseline::setting::{Place, Scope, Setting, Value};

#[path = "policies/backup.rs"]
mod backup;
#[path = "policies/identity.rs"]
mod identity;
#[path = "policies/testparm.rs"]
mod testparm;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of the shared data; `None` (and a counted message) if it is not there.
pub fn shared(name: &str) -> Option<PathBuf> {
    let default = || root().join("../shared");
    let folder = std::env::var_os("SMBSCOPE_SHARED").map_or_else(default, PathBuf::from).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", folder.display());
    None
}

/// All files below a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub fn read_one(path: &Path) -> (Vec<u8>, Result<Baseline, String>) {
    let bytes = std::fs::read(path).unwrap();
    let name = path.to_str().unwrap();
    let baseline = read(&[NamedBytes { name, bytes: &bytes }]).map_err(|error| error.to_string());
    (bytes, baseline)
}

/// As the oracle prints a setting.
fn shown(setting: &Setting) -> Json {
    json!([setting.place, setting.value, setting.origin.policy])
}

fn oracle(files: &[PathBuf]) -> Option<Json> {
    let script = root().join("tests/policies/oracle.py");
    let Ok(output) = Command::new("python3").arg(script).args(files).output() else {
        smbscope_testing::skip!("python3 is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn every_file_equals_the_independent_reader() {
    let Some(folder) = shared("policies") else { return };
    let files = files(&folder);
    let Some(oracle) = oracle(&files) else { return };
    let mut compared = 0;
    for path in &files {
        let expected = &oracle[path.to_str().unwrap()];
        let (_, baseline) = read_one(path);
        if expected["format"] == "unrecognised" {
            assert!(baseline.unwrap_err().contains("not a known form"), "{}", path.display());
            continue;
        }
        let baseline = baseline.unwrap();
        assert_eq!(baseline.damage, [], "{}", path.display());
        assert_eq!(baseline.sources.len(), 1);
        assert_eq!(json!(baseline.sources[0].format), expected["format"], "{}", path.display());
        match baseline.sources[0].format {
            Format::TemplateDefinitions => {
                let policies: Vec<Json> =
                    baseline.templates.policies.iter().map(definition).collect();
                assert_eq!(json!(policies), expected["settings"], "{}", path.display());
                continue;
            }
            Format::TemplateTexts => continue,
            _ => {}
        }
        let settings: Vec<Json> = baseline.settings.iter().map(shown).collect();
        let wanted = expected["settings"].as_array().unwrap();
        for (position, (found, wanted)) in settings.iter().zip(wanted).enumerate() {
            assert_eq!(found, wanted, "{}: setting {position}", path.display());
        }
        assert_eq!(settings.len(), wanted.len(), "{}", path.display());
        if let Some(unknown) = expected["unknown"].as_u64() {
            assert_eq!(baseline.unknown.list.len() as u64, unknown, "{}", path.display());
        }
        compared += settings.len();
    }
    println!("{} files, {compared} settings", files.len());
    // What the folder has today; more files mean more.
    assert!(compared >= 5_800, "{compared}");
}

fn definition(policy: &smbscope_plan::baseline::read::Template) -> Json {
    let elements: Vec<Json> = policy
        .elements
        .iter()
        .map(|element| {
            let (kind, items) = match &element.kind {
                ElementKind::Enum(items) => ("enum", items.len()),
                ElementKind::Decimal { .. } => ("decimal", 0),
                ElementKind::Boolean { .. } => ("boolean", 0),
                ElementKind::Text { .. } => ("text", 0),
                ElementKind::MultiText => ("multiText", 0),
                ElementKind::List { .. } => ("list", 0),
            };
            json!([kind, element.id, element.value_name, items])
        })
        .collect();
    json!([policy.name, policy.class, policy.key, policy.value_name, elements])
}

#[test]
fn templates_explain_what_their_policies_set() {
    let Some(folder) = shared("policies/admx") else { return };
    let files: Vec<(String, Vec<u8>)> = files(&folder)
        .into_iter()
        .map(|path| (path.to_str().unwrap().to_owned(), std::fs::read(path).unwrap()))
        .collect();
    let named: Vec<NamedBytes<'_>> =
        files.iter().map(|(name, bytes)| NamedBytes { name, bytes }).collect();
    let templates = read(&named).unwrap().templates;
    let in_scope = |scope: Scope, key: &str, name: &str| Place::Registry {
        scope,
        key: key.to_owned(),
        name: name.to_owned(),
    };
    let place = |key: &str, name: &str| in_scope(Scope::Computer, key, name);
    let hashes = "Software\\Policies\\Microsoft\\Windows\\LanmanServer";
    // No German texts are there: English ones replace them.
    let text = templates.text(&place(hashes, "HashPublicationForPeerCaching"), "de-DE").unwrap();
    assert_eq!(text.policy, "Hash Publication for BranchCache");
    assert!(text.explain.contains("hash generation service"), "{}", text.explain);
    let all = (Value::Dword(2), "Allow hash publication for all shared folders".to_owned());
    assert!(text.allowed.contains(&all), "{:?}", text.allowed);
    let hardened = "software\\policies\\microsoft\\windows\\networkprovider\\hardenedpaths";
    let text = templates.text(&place(hardened, "\\\\*\\SYSVOL"), "en-US").unwrap();
    assert_eq!(text.policy, "Hardened UNC Paths");
    // Each policy of the templates is found by its own place, and has a name and an explanation.
    for policy in &templates.policies {
        let names = policy.value_name.iter().map(|name| (&policy.key, name.as_str()));
        let elements = policy.elements.iter();
        let elements = elements.map(|element| {
            (
                element.key.as_ref().unwrap_or(&policy.key),
                element.value_name.as_deref().unwrap_or("x"),
            )
        });
        let scope = if policy.class == Class::User { Scope::User } else { Scope::Computer };
        for (key, name) in names.chain(elements) {
            let text = templates.text(&in_scope(scope, key, name), "en-US");
            let text = text.unwrap_or_else(|| panic!("{policy:?}"));
            assert!(!text.policy.starts_with("$("), "{text:?}");
            assert!(!text.explain.is_empty(), "{text:?}");
        }
    }
}

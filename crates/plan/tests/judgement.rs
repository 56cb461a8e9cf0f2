//! Real baselines, read, judged and written: what touches file serving is found, the rest is counted, and each step of a
//! search can be written with its undo.

// Tests may panic.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use smbscope_plan::baseline::catalogue::System;
use smbscope_plan::baseline::difference::{Side, Unset};
use smbscope_plan::baseline::effective::{Input, Layer, effective};
use smbscope_plan::baseline::judgement::{Assessment, Judgement};
use smbscope_plan::baseline::read::{Baseline, NamedBytes, read};
use smbscope_plan::baseline::roles::MachineRole;
use smbscope_plan::baseline::setting::{Place, SmbObject};
use smbscope_plan::baseline::terms::Terms;

/// The folder of real policies; none, with a message, where it is missing.
fn policies() -> Option<PathBuf> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(default, PathBuf::from);
    let folder = shared.join("policies");
    if !folder.is_dir() {
        smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", folder.display());
        return None;
    }
    Some(folder)
}

fn baseline(path: &Path) -> Baseline {
    let bytes = std::fs::read(path).unwrap();
    let name = path.to_string_lossy();
    read(&[NamedBytes { name: &name, bytes: &bytes }]).unwrap()
}

fn terms(baseline: &Baseline) -> Terms {
    let name = baseline.name.as_str();
    let settings = &baseline.settings;
    Terms::from_effective(effective(&[Input { name, layer: Layer::Policy, settings }]))
}

fn judge(before: &Terms, after: &Terms, system: Option<System>) -> Judgement {
    let side = |terms| Side { terms, system, role: MachineRole::FileServer };
    Assessment::new(side(before), side(after), Unset::Kept, None).judge(&[])
}

#[test]
fn real_baselines_are_judged() {
    let Some(folder) = policies() else { return };
    let nothing = Terms::default();
    let mut judged = 0;
    for group in ["policyrules", "hardeningkitty"] {
        for file in std::fs::read_dir(folder.join(group)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "tsv") {
                continue;
            }
            let terms = terms(&baseline(&path));
            let judgement = judge(&nothing, &terms, Some(System::Windows2022));
            let others = judgement.difference.others.only_after;
            assert_eq!(others, terms.unknown.len() as u64, "{}", path.display());
            println!(
                "{}: {} settings, {} known, {} touch file serving, {} change, {} findings",
                path.file_name().unwrap().to_string_lossy(),
                judgement.after.settings,
                judgement.after.known,
                judgement.after.touching,
                judgement.difference.changes.len(),
                judgement.findings.len()
            );
            judged += 1;
        }
    }
    assert!(judged > 10, "{judged}");
}

const SIGNING: &str = "server-signing";

/// Microsoft's baseline for Windows Server 2016 makes both sides sign.
#[test]
fn signing_is_among_the_few_that_touch_file_serving() {
    let Some(folder) = policies() else { return };
    let all = baseline(&folder.join("policyrules/MSFT-Win10-v1607-WS2016.PolicyRules"));
    let after = terms(&all);
    let nothing = Terms::default();
    let (system, role) = (Some(System::Windows2016), MachineRole::FileServer);
    let side = |terms| Side { terms, system, role };
    let assessment = Assessment::new(side(&nothing), side(&after), Unset::Kept, None);
    let judgement = assessment.judge(&[]);
    let ids: Vec<_> = judgement.difference.changes.iter().map(|one| one.key.id.as_str()).collect();
    // The hardened paths are those that Windows demands by itself.
    assert!(ids.contains(&"server-signing") && !ids.contains(&"hardened-path"), "{ids:?}");
    assert!(judgement.after.touching < judgement.after.settings / 10);
    let suspects = assessment.suspects(&judgement.costs);
    assert!(suspects.candidates[0].id.starts_with(SIGNING), "{}", suspects.candidates[0].id);
    // Most of it cannot slow file serving.
    let (few, many) = (suspects.candidates.len() as u64, suspects.harmless);
    assert!(many > 5 * few, "{few} {many}");
}

/// What a cmdlet prints is the same setting as the registry's.
#[test]
fn printed_configurations_are_known() {
    let Some(folder) = policies() else { return };
    let outputs = folder.parent().unwrap().join("outputs/windows");
    for (name, object) in [
        ("Get-SmbServerConfiguration.txt", SmbObject::Server),
        ("Get-SmbClientConfiguration.txt", SmbObject::Client),
    ] {
        let all = baseline(&outputs.join(name));
        let terms = terms(&all);
        let unknown: Vec<_> = terms
            .unknown
            .keys()
            .map(|place| match place {
                Place::Smb { property, .. } => property.clone(),
                other => format!("{other:?}"),
            })
            .collect();
        println!("{name} ({object:?}): {} known, unknown {unknown:?}", terms.known.len());
        assert!(terms.known.len() > 2 * unknown.len(), "{unknown:?}");
    }
}

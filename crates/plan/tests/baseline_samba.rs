//! Defaults of Samba in the catalogue are those of the real `testparm`: 4.17 of the system, and 4.22 where
//! `scripts/samba-4.22.sh` unpacked it.

// Tests may panic.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use smbscope_plan::baseline::catalogue::place::PlaceKey;
use smbscope_plan::baseline::catalogue::value::canonical;
use smbscope_plan::baseline::catalogue::{Preset, System, rows};
use smbscope_plan::baseline::setting::Value;

/// Parameters with the values that testparm prints of an empty file, in lower case.
fn defaults(testparm: &Path) -> Option<(String, HashMap<String, String>)> {
    let version = Command::new(testparm).arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let folder = tempfile();
    let file = folder.join("smb.conf");
    std::fs::write(&file, "[global]\n").unwrap();
    let output = Command::new(testparm).arg("-sv").arg(&file).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs = text.lines().filter_map(|line| line.trim().split_once(" ="));
    let pairs = pairs.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()));
    Some((version, pairs.collect()))
}

fn tempfile() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("smbscope-testparm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compares all rows with parameters of smb.conf; returns how many.
fn compare(system: System, known: &HashMap<String, String>) -> usize {
    let mut compared = 0;
    for row in rows() {
        for place in &row.places {
            let PlaceKey::Samba { parameter, .. } = &place.key else { continue };
            let expected = row.default_of(system);
            let Some(printed) = known.get(parameter) else {
                assert_eq!(
                    expected,
                    Preset::Absent,
                    "{parameter} is not known to {}",
                    system.title()
                );
                continue;
            };
            let printed = canonical(row, place, &Value::Text(printed.clone())).unwrap();
            match expected {
                Preset::Value(value) => assert_eq!(printed, value, "{parameter}"),
                // Of shares: the same as of all.
                Preset::Unknown => assert_eq!(row.id, "share-encryption", "{parameter}"),
                Preset::Absent => panic!("{parameter} is known to {}", system.title()),
            }
            compared += 1;
        }
    }
    compared
}

#[test]
fn defaults_are_those_of_testparm() {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let unpacked = home.join(".cache/smbscope/samba-4.22/bin/testparm");
    for (testparm, system, prefix) in [
        (PathBuf::from("testparm"), System::Samba417, "Version 4.17"),
        (unpacked, System::Samba422, "Version 4.22"),
    ] {
        let Some((version, known)) = defaults(&testparm).filter(|one| one.0.starts_with(prefix))
        else {
            smbscope_testing::skip!("{} of {} is not there", testparm.display(), system.title());
            continue;
        };
        let compared = compare(system, &known);
        assert!(compared > 50, "{compared} parameters of {version}");
    }
}

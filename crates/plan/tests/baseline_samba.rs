//! Defaults of Samba in the catalogue are those of the real `testparm`: 4.17 of the system, and 4.22 where
//! `scripts/samba-4.22.sh` unpacked it.

// Tests may panic.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use smbscope_plan::baseline::catalogue::place::PlaceKey;
use smbscope_plan::baseline::catalogue::value::canonical;
use smbscope_plan::baseline::catalogue::{Preset, System, find, rows};
use smbscope_plan::baseline::read::{NamedBytes, read};
use smbscope_plan::baseline::setting::{Place, Value};

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
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("smbscope-testparm-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
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

/// Parameters of global and shares that the catalogue knows, with their values as it writes them.
fn known(name: &str, bytes: &[u8]) -> BTreeMap<Place, String> {
    let baseline = read(&[NamedBytes { name, bytes }]).unwrap();
    let one = |setting: &smbscope_plan::baseline::setting::Setting| {
        let (row, pattern) = find(&setting.place)?;
        Some((setting.place.key(), canonical(row, pattern, &setting.value)?))
    };
    baseline.settings.iter().filter_map(one).collect()
}

/// With synonyms, and values that Samba prints in another way.
const CONFIGURATION: &str = "\
[global]
    server signing = mandatory
    server min protocol = SMB2_10
    max protocol = SMB3
    smb encrypt = desired
    strict sync = no
    server multi channel support = no
    deadtime = 15
[projects]
    path = /srv/projects
    smb encrypt = required
    oplocks = no
[backup]
    path = /srv/backup
    sync always = yes
    kernel share modes = no
";

/// The configuration in Samba's registry, as the real `net conf list` prints it.
#[test]
fn the_registry_of_samba_is_read_as_the_file_that_was_imported() {
    let folder = tempfile();
    let mut main = String::from("[global]\n    include = registry\n");
    for kind in ["lock directory", "state directory", "cache directory", "private dir"] {
        let path = folder.join(kind.replace(' ', "-"));
        std::fs::create_dir_all(&path).unwrap();
        main += &format!("    {kind} = {}\n", path.display());
    }
    let (registry, file) = (folder.join("registry.conf"), folder.join("smb.conf"));
    std::fs::write(&registry, main).unwrap();
    std::fs::write(&file, CONFIGURATION).unwrap();
    let net = |arguments: &[&str]| {
        let mut command = Command::new("net");
        command.arg(format!("--configfile={}", registry.display())).args(arguments);
        command.output().ok().filter(|output| output.status.success())
    };
    let imported = net(&["conf", "import", file.to_str().unwrap()]);
    let listed = imported.and_then(|_| net(&["conf", "list"]));
    let printed = Command::new("testparm").arg("-s").arg(&file).output().ok();
    std::fs::remove_dir_all(&folder).unwrap();
    let (Some(listed), Some(printed)) = (listed, printed) else {
        smbscope_testing::skip!("no `net` or `testparm` of Samba, or not root");
        return;
    };
    let expected = known("smb.conf", CONFIGURATION.as_bytes());
    assert!(expected.len() >= 8, "{expected:#?}");
    assert_eq!(known("net-conf-list.txt", &listed.stdout), expected);
    // testparm leaves out what is the default anyway; the rest is the same.
    let printed = known("testparm.txt", &printed.stdout);
    assert!(printed.len() >= 6, "{printed:#?}");
    for (place, value) in printed.iter().filter(|(place, _)| expected.contains_key(place)) {
        assert_eq!(Some(value), expected.get(place), "{place:?}");
    }
}

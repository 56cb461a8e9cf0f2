//! `smbscope schema`, `doctor`, `completions`, `man`.

#[cfg(feature = "plan")]
use sha2::{Digest as _, Sha256};

use super::{answer, capture, complaint, folder};

#[test]
fn schema_describes_every_column() {
    let text = answer(["schema", "operations"]);
    assert!(text.contains("server_ns") && text.contains("Turnaround minus the round trip"));
    let json: serde_json::Value =
        serde_json::from_str(&answer(["schema", "--format", "json"])).unwrap();
    for table in json["tables"].as_array().unwrap() {
        for column in table["columns"].as_array().unwrap() {
            assert!(!column["meaning"].as_str().unwrap().is_empty(), "{column}");
            assert!(column["sensitivity"].is_string() && column["type"].is_string());
        }
    }
    assert!(complaint(2, ["schema", "nonsense"]).contains("operations"));
}

/// The golden result has the hashes, as `sha256sum` prints them: `smbscope schema NAME` prints the schema itself.
#[cfg(feature = "plan")]
#[test]
fn json_schemas_are_those_of_the_release() {
    let (_guard, dir) = folder();
    answer(["schema", "--dir", dir.to_str().unwrap()]);
    let mut hashes = String::new();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = std::fs::read_to_string(dir.join(&name)).unwrap();
        assert_eq!(text, answer(["schema", name.strip_suffix(".schema.json").unwrap()]));
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(schema["$id"].as_str().unwrap().ends_with(&name));
        let hash =
            Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        hashes += &format!("{hash}  {name}\n");
    }
    let mut hashes: Vec<_> = hashes.lines().collect();
    hashes.sort_by_key(|line| line.split_once("  ").unwrap().1);
    insta::assert_snapshot!("schemas", hashes.join("\n"));
}

#[test]
fn every_table_is_in_the_registry_the_schema_and_the_dataset() {
    let registry = smbscope_tables::Table::ALL.map(smbscope_tables::Table::name);
    let json: serde_json::Value =
        serde_json::from_str(&answer(["schema", "--format", "json"])).unwrap();
    let schema = json["tables"].as_array().unwrap().iter();
    assert!(schema.map(|table| table["name"].as_str().unwrap()).eq(registry));

    let (_guard, dir) = folder();
    let dataset = dir.join("dataset");
    answer(["import", &capture(), "--out", dataset.to_str().unwrap(), "--quiet"]);
    let entries = std::fs::read_dir(dataset).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut folders: Vec<_> =
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut names = registry.to_vec();
    names.sort_unstable();
    assert_eq!(folders, names);
}

#[test]
fn doctor_shows_remedies() {
    let text = answer(["doctor"]);
    assert!(text.lines().any(|line| line.starts_with("ok       version")), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&answer(["doctor", "--format", "json"])).unwrap();
    for check in json["checks"].as_array().unwrap() {
        let ok = check["state"] == "ok";
        assert_eq!(check["remedy"].is_null(), ok, "{check}");
    }
}

#[test]
fn doctor_fails_if_a_requirement_is_missing() {
    let assert = super::smbscope(["doctor"]).env("TMPDIR", "/nowhere").assert().code(1);
    assert!(super::stdout(&assert).contains("TMPDIR"));
}

#[test]
fn completions_and_manual_pages_are_written() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(answer(["completions", shell]).contains("smbscope"));
    }
    let page = answer(["man"]);
    assert!(page.contains(".SH EXIT STATUS") && page.contains("130"));
    let (_guard, dir) = folder();
    answer(["man", "--dir", dir.to_str().unwrap()]);
    let page = std::fs::read_to_string(dir.join("smbscope-ops.1")).unwrap();
    assert!(page.contains(".SH EXAMPLES"), "{page}");
    assert!(dir.join("smbscope.1").exists());
    assert!(dir.join("smbscope-predict-calibrate.1").exists(), "a command of a command");
    assert!(!dir.join("smbscope-decode.1").exists(), "a hidden command");
    let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
    let help: Vec<_> = names.filter(|name| name.to_string_lossy().contains("help")).collect();
    assert!(help.is_empty(), "{help:?}");
}

#[test]
fn an_existing_file_is_replaced_only_by_force() {
    let (_guard, dir) = folder();
    let file = dir.join("answer").display().to_string();
    let capture = capture();
    let commands: [&[&str]; 5] = [
        &["report", &capture, "--html", &file],
        &["ops", &capture, "--out", &file],
        &["explain", &capture, "--out", &file],
        &["export", "--perfetto", &capture, "--out", &file],
        &["predict", &capture, "--change", "rtt=20ms", "--out", &file],
    ];
    for command in commands {
        std::fs::write(&file, "mine").unwrap();
        let error = complaint(5, command);
        assert!(error.contains("exists already") && error.contains("--force"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        answer(command.iter().chain(&["--force"]));
        assert!(std::fs::metadata(&file).unwrap().len() > 100, "{command:?}");
    }
    std::fs::remove_file(&file).unwrap();
    // A file without content does not hinder the next attempt.
    complaint(9, ["report", &capture, "--html", &file, "--user", "absent-user"]);
    answer(["report", &capture, "--html", &file]);
    answer(["ops", &capture, "--out", "/dev/null"]);
}

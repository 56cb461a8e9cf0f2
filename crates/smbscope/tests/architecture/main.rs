//! The crates depend on each other only as designed, and every file says what it owns. A new edge is a
//! separate change that gives its reason, here too.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod floors;
mod imports;
mod rendering;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Normal dependencies between the workspace's crates; tests and benches may reach further.
const EDGES: [(&str, &[&str]); 17] = [
    // For tests only; all of these are optional.
    ("smbscope-testing", &["smbscope-client", "smbscope-lab", "smbscope-load", "smbscope-tables"]),
    ("smbscope-wire", &[]),
    ("smbscope-tables", &["smbscope-wire"]),
    ("smbscope-findings", &[]),
    ("smbscope-capture", &["smbscope-tables", "smbscope-wire"]),
    ("smbscope-samba", &["smbscope-capture", "smbscope-tables", "smbscope-wire"]),
    ("smbscope-trace", &["smbscope-capture", "smbscope-tables", "smbscope-wire"]),
    ("smbscope-counters", &["smbscope-tables"]),
    ("smbscope-client", &["smbscope-tables", "smbscope-wire"]),
    // Quantities with units are in the tables crate.
    ("smbscope-lab", &["smbscope-tables", "smbscope-wire"]),
    ("smbscope-load", &["smbscope-client", "smbscope-lab", "smbscope-tables", "smbscope-wire"]),
    ("smbscope-store", &["smbscope-capture", "smbscope-tables", "smbscope-trace"]),
    ("smbscope-analysis", &["smbscope-findings", "smbscope-tables", "smbscope-wire"]),
    ("smbscope-plan", &["smbscope-findings"]),
    (
        "smbscope-report",
        &["smbscope-analysis", "smbscope-findings", "smbscope-plan", "smbscope-tables"],
    ),
    // All of these are optional: without them it is a small HTTP server.
    (
        "smbscope-serve",
        &[
            "smbscope-analysis",
            "smbscope-findings",
            "smbscope-report",
            "smbscope-store",
            "smbscope-tables",
        ],
    ),
    (
        "smbscope",
        &[
            "smbscope-analysis",
            "smbscope-capture",
            "smbscope-client",
            "smbscope-counters",
            "smbscope-findings",
            "smbscope-lab",
            "smbscope-load",
            "smbscope-plan",
            "smbscope-report",
            "smbscope-samba",
            "smbscope-serve",
            "smbscope-store",
            "smbscope-tables",
            // Recording CPUs.
            "smbscope-trace",
            "smbscope-wire",
        ],
    ),
];

#[test]
fn crates_depend_on_each_other_as_the_design_says() {
    let wanted: BTreeMap<String, BTreeSet<String>> = EDGES
        .iter()
        .map(|(name, edges)| (name.to_string(), edges.iter().map(|to| to.to_string()).collect()))
        .collect();
    assert_eq!(edges(), wanted);
}

#[test]
fn datafusion_stays_behind_the_store() {
    for (name, manifest) in manifests() {
        let uses = manifest.contains("\ndatafusion");
        assert_eq!(uses, name == "store", "crates/{name}/Cargo.toml");
    }
}

#[test]
fn every_file_states_its_purpose() {
    let folders =
        manifests().into_keys().map(|name| workspace().join("crates").join(name).join("src"));
    let without: Vec<_> = folders
        .flat_map(|folder| rust_files(&folder))
        .filter(|path| !std::fs::read_to_string(path).unwrap().starts_with("//!"))
        .collect();
    assert!(without.is_empty(), "files that do not open with //!: {without:?}");
}

/// All Rust files below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Manifests by the crate's folder.
fn manifests() -> BTreeMap<String, String> {
    let crates = std::fs::read_dir(workspace().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    crates
        .map(|path| {
            let text = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), text)
        })
        .collect()
}

/// Cargo's metadata of the workspace's own crates.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            // `kind` is null for normal dependencies, else "dev" or "build".
            let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
            let own = normal.map(|dependency| text(&dependency["name"]));
            let own = own.filter(|name| name.starts_with("smbscope"));
            (text(&package["name"]), own.collect())
        })
        .collect()
}

//! Every module that reads what others wrote has a fuzz target: fuzz/parsers.txt against sources and targets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Modules of the list, with their targets; none with a reason.
fn listed() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(root().join("fuzz/parsers.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let modules = lines.map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (module, targets): (_, Vec<_>) = (words.next().unwrap(), words.collect());
        assert!(!targets.is_empty(), "{module} has neither a target nor a reason");
        (module, if targets[0] == "-" { Vec::new() } else { targets })
    });
    modules.collect()
}

fn targets() -> BTreeSet<String> {
    let folder = std::fs::read_dir(root().join("fuzz/src/bin")).unwrap();
    let names =
        folder.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    names.filter(|name| name != "seeds").collect()
}

/// Whether a line declares a function that parses bytes or a text.
fn declares_parser(line: &str) -> bool {
    let Some((_, rest)) = line.trim_start().split_once("fn ") else { return false };
    let Some((name, parameters)) = rest.split_once('(') else { return false };
    let name = name.split('<').next().unwrap_or(name);
    let verbs = ["parse", "read", "decode"];
    let is_parser = verbs.iter().any(|verb| {
        name.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }) || ["from_json", "from_bytes"].contains(&name);
    let first = parameters.split(')').next().unwrap_or(parameters);
    let is_reading = ["[u8]", "str"].iter().any(|kind| {
        first.split(',').any(|parameter| {
            parameter
                .split_once(':')
                .is_some_and(|(_, of)| of.trim().starts_with('&') && of.ends_with(kind))
        })
    });
    is_parser && is_reading
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|end| end == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn every_parser_has_a_fuzz_target() {
    let listed = listed();
    let mut missing = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let source = entry.unwrap().path().join("src");
        let krate = source.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        // The program's own files are read by the other crates; its options are the user's.
        if ["smbscope", "testing"].contains(&krate.as_str()) {
            continue;
        }
        let mut files = Vec::new();
        sources(&source, &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let first = file.strip_prefix(&source).unwrap().components().next().unwrap();
            let first = first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
            let module = format!("crates/{krate}/src/{first}");
            if text.lines().any(declares_parser) && !listed.contains_key(&module) {
                missing.insert(module);
            }
        }
    }
    assert!(missing.is_empty(), "without a line in fuzz/parsers.txt: {missing:?}");
}

#[test]
fn listed_parsers_and_targets_exist() {
    let targets = targets();
    for (module, own) in listed() {
        let path = root().join(&module);
        assert!(path.is_dir() || path.with_extension("rs").is_file(), "{module}");
        for target in own {
            assert!(targets.contains(&target), "{module}: {target} is not a target");
        }
    }
    let used: BTreeSet<_> = listed().into_values().flatten().collect();
    let unused: Vec<_> = targets.difference(&used).collect();
    assert!(unused.is_empty(), "targets of no parser: {unused:?}");
}

/// What the targets find in debug builds alone: overflows and failed assertions in our code.
#[test]
fn our_crates_are_fuzzed_with_assertions() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let lock = std::fs::read_to_string(root().join("fuzz/Cargo.lock")).unwrap();
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    for name in names.filter(|name| name.starts_with("smbscope-") && *name != "smbscope-fuzz") {
        let section = format!("[profile.release.package.{name}]");
        let (_, rest) =
            manifest.split_once(&section).unwrap_or_else(|| panic!("{section} is missing"));
        let section = rest.split("\n[").next().unwrap();
        for switch in ["debug-assertions = true", "overflow-checks = true"] {
            assert!(section.contains(switch), "{name}: {switch}");
        }
    }
}

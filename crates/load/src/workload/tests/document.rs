//! `docs/method/workloads.md`: its examples parse, and its tables match the code.
//!
//! A table is between `<!-- NAME -->` and `<!-- end -->`; `INSTA_UPDATE=always` writes all of them again. The steps,
//! which are the output of a command, are compared in a test of `smbscope`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use smbscope_wire::smb2::Command;

use super::facts::{facts, number};
use crate::fileset::{FileClass, Scale};
use crate::workload::{BUILT_IN, ClientCache, Counts, Expectation, Migration, Workload};

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/method/workloads.md")
}

fn homefolder() -> Workload {
    Workload::built_in("homefolder").unwrap()
}

/// Two decimals if there are any, empty for 0.
fn shown(number: f64) -> String {
    match number {
        0.0 => String::new(),
        whole if (whole - whole.round()).abs() < 1e-9 => format!("{whole:.0}"),
        other => format!("{other:.2}"),
    }
}

const COLUMNS: [Command; 11] = [
    Command::CREATE,
    Command::CLOSE,
    Command::READ,
    Command::WRITE,
    Command::QUERY_DIRECTORY,
    Command::QUERY_INFO,
    Command::SET_INFO,
    Command::CHANGE_NOTIFY,
    Command::CANCEL,
    Command::IOCTL,
    Command::LOCK,
];

fn counts() -> String {
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let names: Vec<&str> = COLUMNS.iter().map(|command| command.name().unwrap()).collect();
    let mut out = format!("| scenario | an hour | {} | packets |\n", names.join(" | "));
    out += &format!("|---|---:|{}---:|\n", "---:|".repeat(COLUMNS.len()));
    for scenario in &workload.scenarios {
        let counts = Expectation::new(&files).counts(scenario, ClientCache::Published);
        let _ = write!(out, "| {} | {} |", scenario.name, scenario.runs_per_hour);
        for command in COLUMNS {
            let members = counts.members(command);
            let behind = if members > 0.0 { format!(" ({members})") } else { String::new() };
            let _ = write!(out, " {}{behind} |", shown(counts.operations(command)));
        }
        let _ = writeln!(out, " {} |", shown(counts.packets()));
    }
    out
}

fn caches() -> String {
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let expectation = Expectation::new(&files);
    let mut out = String::from("| scenario | collapse: Create | Close | packets |");
    out += " dirlease: Create | Close | QueryDirectory | ChangeNotify | packets |\n";
    out += &format!("|---|{}\n", "---:|".repeat(8));
    for scenario in &workload.scenarios {
        let all = expectation.counts(scenario, ClientCache::Published);
        let collapse = expectation.counts(scenario, ClientCache::Collapse);
        let lease = expectation.counts(scenario, ClientCache::DirLease);
        let saved =
            |left: &Counts, command| shown(all.operations(command) - left.operations(command));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            scenario.name,
            saved(&collapse, Command::CREATE),
            saved(&collapse, Command::CLOSE),
            shown(all.packets() - collapse.packets()),
            saved(&lease, Command::CREATE),
            saved(&lease, Command::CLOSE),
            saved(&lease, Command::QUERY_DIRECTORY),
            saved(&lease, Command::CHANGE_NOTIFY),
            shown(all.packets() - lease.packets()),
        );
    }
    out
}

fn pools() -> String {
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let mut out = String::from(
        "| files | class | number | MB of user 0 | folders |\n|---|---|---:|---:|---|\n",
    );
    for (index, pool) in files.pools().iter().enumerate() {
        let of = files.files(0).filter(|file| usize::from(file.pool) == index);
        let bytes: u64 = of.map(|file| file.bytes).sum();
        let number = match pool.class {
            FileClass::New => format!("up to {}", pool.keep),
            _ => pool.files().to_string(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {number} | {} | {} |",
            pool.name,
            pool.class.name(),
            shown((bytes as f64 / 1e4).round() / 100.0),
            pool.folders.join(", ")
        );
    }
    let _ = writeln!(
        out,
        "| all | | {} | {:.2} | |",
        files.user_files(),
        files.user_bytes(0) as f64 / 1e6
    );
    out
}

fn scales() -> String {
    let workload = homefolder();
    let names: Vec<&str> = workload
        .scenarios
        .iter()
        .filter(|scenario| has_transfers(scenario))
        .map(|scenario| scenario.name.as_str())
        .collect();
    let mut out = format!("| scale | files | MB | {} |\n", names.join(" | "));
    out += &format!("|---:|---:|---:|{}\n", "---:|".repeat(names.len()));
    for scale in [2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.01] {
        let files = workload.file_set(1, Scale::new(scale).unwrap());
        let megabytes = files.user_bytes(0) as f64 / 1e6;
        let _ = write!(out, "| {scale} | {} | {megabytes:.1} |", files.user_files());
        for scenario in workload.scenarios.iter().filter(|scenario| has_transfers(scenario)) {
            let counts = Expectation::new(&files).counts(scenario, ClientCache::Published);
            let _ = write!(
                out,
                " {:.2} |",
                counts.operations(Command::READ) + counts.operations(Command::WRITE)
            );
        }
        out.push('\n');
    }
    out
}

fn has_transfers(scenario: &crate::workload::Scenario) -> bool {
    let transfers = [Command::READ, Command::WRITE];
    scenario.requests().any(|request| transfers.contains(&request.op.command()))
}

/// The mix of an hour compared with the measured run; `None` without the facts.
fn mix() -> Option<String> {
    let measured = facts("command_usage.csv")?;
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let hour = Expectation::new(&files).hour(&workload, ClientCache::Published);
    let theirs = |command: Command| {
        let row = measured.iter().find(|row| Some(row["command"].as_str()) == command.name());
        row.map_or(0.0, |row| number(row, "request_count"))
    };
    let measured_commands = COLUMNS.into_iter().filter(|&command| theirs(command) > 0.0);
    let all_theirs: f64 = measured_commands.clone().map(theirs).sum();
    let all_ours: f64 = measured_commands.map(|command| hour.operations(command)).sum();
    let mut out = String::from(
        "| command | in 331 executions | % | measured | % | per Create | measured |\n",
    );
    out += &format!("|---|{}\n", "---:|".repeat(6));
    for command in COLUMNS {
        let (our, their) = (hour.operations(command), theirs(command));
        if our + their == 0.0 {
            continue;
        }
        let share = |part: f64, all: f64| {
            if their == 0.0 { String::new() } else { format!("{:.1}", 100.0 * part / all) }
        };
        let per_create = |part: f64, creates: f64| format!("{:.3}", part / creates);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            command.name().unwrap(),
            shown((our * 10.0).round() / 10.0),
            share(our, all_ours),
            shown(their),
            share(their, all_theirs),
            per_create(our, hour.operations(Command::CREATE)),
            per_create(their, theirs(Command::CREATE)),
        );
    }
    Some(out)
}

#[test]
fn tables_are_as_computed() {
    let path = document();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut fresh = text.clone();
    for (name, table) in [
        ("counts", Some(counts())),
        ("caches", Some(caches())),
        ("files", Some(pools())),
        ("scales", Some(scales())),
        ("mix", mix()),
    ] {
        let Some(table) = table else { continue };
        let begin = format!("<!-- {name} -->\n");
        let start = fresh.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
        let end = start + fresh[start..].find("<!-- end -->").unwrap();
        fresh.replace_range(start..end, &table);
    }
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        std::fs::write(&path, &fresh).unwrap();
        return;
    }
    assert!(
        text == fresh,
        "docs/method/workloads.md is out of date: INSTA_UPDATE=always rewrites its tables"
    );
}

#[test]
fn examples_parse() {
    let text = std::fs::read_to_string(document()).unwrap();
    let mut examples = 0;
    for example in text.split("```toml\n").skip(1) {
        let (example, _) = example.split_once("```").unwrap();
        let file = "docs/method/workloads.md";
        // A migration is a kind of its own, with other tables.
        match Migration::parse(file, "example", example) {
            Ok(Some(_)) => {}
            Ok(None) => {
                if let Err(error) = Workload::parse(file, "example", example) {
                    panic!("{error}");
                }
            }
            Err(error) => panic!("{error}"),
        }
        examples += 1;
    }
    assert!(examples > 0);
}

/// The example of an error in the document is the real message.
#[test]
fn the_example_of_an_error_is_the_real_message() {
    let text = std::fs::read_to_string(document()).unwrap();
    let (_, example) = text.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let wrong = example.replacen("query_info = \"doc\"", "query_info = \"dok\"", 1);
    let error = Workload::parse("mine.toml", "mine", &wrong).unwrap_err().to_string();
    assert!(text.contains(&error), "docs/method/workloads.md does not contain:\n{error}");
}

#[test]
fn every_built_in_is_described_and_has_a_notation() {
    let text = std::fs::read_to_string(document()).unwrap();
    for (name, _) in BUILT_IN {
        let workload = Workload::built_in(name).unwrap();
        assert!(text.contains(&format!("## {name}")), "{name}");
        assert!(!workload.description.is_empty());
        for scenario in &workload.scenarios {
            assert!(!scenario.description.is_empty());
            for request in scenario.steps.iter().flat_map(|step| &step.requests) {
                let notation = scenario.notation(request);
                let command = request.op.command().name().unwrap();
                assert!(notation.starts_with(command) && !notation.contains('?'), "{notation}");
            }
        }
    }
    let error = Workload::built_in("homefolders").unwrap_err().to_string();
    assert!(error.contains("bulk-copy"), "{error}");
}

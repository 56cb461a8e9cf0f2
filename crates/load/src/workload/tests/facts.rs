//! `homefolder` compared with the published facts: `facts/*.csv` in the folder that `SMBSCOPE_SHARED`
//! names, otherwise `../shared` next to the repository. Skipped, with a message, without it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use smbscope_wire::smb2::Command;

use crate::fileset::{FileSet, Scale};
use crate::workload::{ClientCache, Counts, Expectation, Scenario, Workload};

/// Columns of the scenario table, by command: operations, and members of compounds if given.
const COLUMNS: [(Command, &str, Option<&str>); 12] = [
    (Command::CANCEL, "cancel", None),
    (Command::CHANGE_NOTIFY, "change_notify", Some("compound_change_notify")),
    (Command::CLOSE, "close", None),
    (Command::CREATE, "create", None),
    (Command::IOCTL, "ioctl", Some("compound_ioctl")),
    (Command::LOCK, "lock", None),
    (Command::QUERY_DIRECTORY, "query_directory", Some("compound_query_directory")),
    (Command::QUERY_INFO, "query_info", Some("compound_query_info")),
    (Command::SET_INFO, "set_info", None),
    (Command::READ, "reads_avg", None),
    (Command::WRITE, "writes_avg", None),
    (Command::FLUSH, "", None),
];

pub(super) type Rows = Vec<BTreeMap<String, String>>;

pub(super) fn facts(file: &str) -> Option<Rows> {
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("facts").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", path.display());
        return None;
    };
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows = lines.map(|line| {
        let row = names.iter().zip(line.split(','));
        row.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    });
    Some(rows.collect())
}

pub(super) fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row.get(column).map_or(0.0, |value| value.parse().unwrap())
}

/// How a scenario differs from its row.
fn differences(row: &BTreeMap<String, String>, counts: &Counts) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, ours: f64, theirs: f64| {
        // Averages are published with two decimals.
        if (ours * 100.0).round() != (theirs * 100.0).round() {
            found.push(format!("{}: {what} {ours:.3}, published {theirs}", row["scenario"]));
        }
    };
    for (command, operations, members) in COLUMNS {
        compare(operations, counts.operations(command), number(row, operations));
        let theirs = members.map_or(0.0, |members| number(row, members));
        compare(&format!("{operations} in compounds"), counts.members(command), theirs);
    }
    let all: f64 = COLUMNS.iter().map(|(command, ..)| counts.operations(*command)).sum();
    compare("other operations", counts.total() - all, 0.0);
    found
}

fn homefolder() -> Workload {
    match Workload::built_in("homefolder") {
        Ok(workload) => workload,
        Err(error) => panic!("{error}"),
    }
}

fn published(scenario: &Scenario, files: &FileSet) -> Counts {
    Expectation::new(files).counts(scenario, ClientCache::Published)
}

#[test]
fn every_scenario_is_as_published() {
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let Some(rows) = facts("homefolder_scenarios.csv") else { return };
    assert_eq!(rows.len(), workload.scenarios.len());
    let mut wrong = Vec::new();
    for (row, scenario) in rows.iter().zip(&workload.scenarios) {
        assert_eq!(row["scenario"], scenario.name);
        assert_eq!(number(row, "runs_per_hour"), scenario.runs_per_hour);
        wrong.extend(differences(row, &published(scenario, &files)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(workload.runs_per_hour(), 331.0);
}

#[test]
fn every_step_of_a_scenario_matters() {
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let Some(rows) = facts("homefolder_scenarios.csv") else { return };
    let mut steps = 0;
    for (row, scenario) in rows.iter().zip(&workload.scenarios) {
        for index in 0..scenario.steps.len() {
            let mut less = scenario.clone();
            let removed = less.steps.remove(index);
            let differs = !differences(row, &published(&less, &files)).is_empty();
            assert!(differs, "{} is the same without: {}", scenario.name, removed.action);
            steps += 1;
        }
    }
    assert!(steps > 300, "{steps}");
}

#[test]
fn the_client_caches_save_the_published_operations() {
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let Some(rows) = facts("protocol_options.csv") else { return };
    let mut wrong = Vec::new();
    for (cache, option) in
        [(ClientCache::Collapse, "DirCache"), (ClientCache::DirLease, "DirLease")]
    {
        for scenario in &workload.scenarios {
            let row =
                rows.iter().find(|row| row["scenario"] == scenario.name && row["option"] == option);
            let all = published(scenario, &files);
            let left = Expectation::new(&files).counts(scenario, cache);
            for (command, column, _) in COLUMNS {
                let ours = left.operations(command) - all.operations(command);
                let theirs = row.map_or(0.0, |row| number(row, column));
                if ours != theirs {
                    wrong.push(format!(
                        "{} {option}: {column} {ours}, published {theirs}",
                        scenario.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// "Packets saved per execution" in `facts/README.md`; DirCache removes only first members.
#[test]
fn the_client_caches_save_the_published_packets() {
    const SAVED: [(&str, f64); 12] = [
        ("CmdLineFileDelete", 6.0),
        ("CmdLineFileDownload", 5.0),
        ("CmdLineFileUpload", 3.0),
        ("CmdLineNavigate", 8.0),
        ("ExplorerDragDropFileDownload", 12.0),
        ("ExplorerDragDropFileUpload", 16.0),
        ("ExplorerFileDelete", 32.0),
        ("ExplorerNavigate", 19.0),
        ("ExplorerSelect", 3.0),
        ("WordEditAndSave", 9.0),
        ("WordFileClose", 40.0),
        ("WordFileOpen", 52.0),
    ];
    let workload = homefolder();
    let files = workload.file_set(1, Scale::FULL);
    let expectation = Expectation::new(&files);
    for (scenario, (name, saved)) in workload.scenarios.iter().zip(SAVED) {
        assert_eq!(scenario.name, name);
        let all = published(scenario, &files);
        let lease = expectation.counts(scenario, ClientCache::DirLease);
        assert!(
            (all.packets() - lease.packets() - saved).abs() < 1e-9,
            "{name}: {} {}",
            all.packets(),
            lease.packets()
        );
        let collapse = expectation.counts(scenario, ClientCache::Collapse);
        assert_eq!(all.packets() - collapse.packets(), all.total() - collapse.total(), "{name}");
    }
}

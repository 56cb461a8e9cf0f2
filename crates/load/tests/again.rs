//! One run after another on the same files, each in its own process: files that one run deletes and
//! creates are restored for the next, without another `prepare`.

// A test may panic.
#![allow(clippy::unwrap_used)]

#[path = "support/engine.rs"]
mod engine;

use std::fs;
use std::path::Path;
use std::time::Duration;

use engine::{Asked, Shown};
use smbscope_load::workload::Planner;
use smbscope_tables::run::DONE;
use smbscope_testing::run::{prepare_user, runtime};
use smbscope_testing::samba::{Samba, samba};

const USERS: u64 = 3;
/// Each user deletes two files per second, and creates two.
const WORKLOAD: &str = r#"
description = "Files deleted and made"

[files.old]
class = "volatile"
folders = ["Old"]
name = "old {n}.bin"
bytes = ["4 KiB"]
repeat = 40

[files.made]
class = "new"
folders = ["New"]
name = "made {n}.bin"
bytes = ["4 KiB"]
keep = 64

[scenarios.Delete]
description = "a file deleted"
runs_per_hour = 7200
files = { victim = { take = ["old"] } }
steps = [
  { action = "open", create = "{victim}", handle = "file", access = "remove" },
  { action = "mark", set_info = "file", class = "FileDispositionInformation", delete = true },
  { action = "close", close = "file" },
]

[scenarios.Make]
description = "a file that must not be there made"
runs_per_hour = 7200
files = { target = { make = "made" } }
steps = [
  { action = "make", create = "{target}", handle = "file", access = "read_write", disposition = "create" },
  { action = "write", write = "file", file = "target" },
  { action = "close", close = "file" },
]
"#;

fn planner() -> Planner {
    smbscope_testing::run::planner(WORKLOAD, 5)
}

/// Creates the files of all users except for the last.
fn prepare_most(lab: &Samba) {
    (1..USERS).for_each(|user| prepare_user(lab, &planner(), user).unwrap());
}

/// A new engine, as in another process.
fn run(lab: &Samba, users: u64, seconds: u64) -> Shown {
    runtime().block_on(async {
        let window = Duration::from_secs(seconds);
        let asked = Asked::new(lab.host().await, planner(), lab.users(), users, window);
        engine::run(asked, |_| ()).await
    })
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_finds_the_files_that_the_run_before_deleted() {
    let Some(lab) = samba(|_| {}) else { return };
    prepare_most(&lab);
    let home = lab.share().join("user00001");
    fs::write(home.join("Old/somebody's.txt"), "kept").unwrap();
    assert!(names(&home).contains(&planner().files().marker()), "{:?}", names(&home));
    for turn in 0..2 {
        let shown = run(&lab, USERS - 1, 5);
        assert_eq!((shown.unexpected, shown.result.failed), (vec![], 0), "turn {turn}");
        assert!(
            shown.scenarios.len() > 20 && shown.scenarios.iter().all(|row| row.outcome == DONE)
        );
        assert!(names(&home.join("Old")).len() < 40, "it deleted some");
        assert!(names(&home.join("New")).len() > 2, "it made some");
    }
    // A user who only reads leaves all files, also other people's, where they belong.
    let shown = run(&lab, 1, 0);
    assert_eq!(shown.unexpected, []);
    let gone = shown.scenarios.iter().filter(|row| row.scenario == "Delete").count();
    let made = shown.scenarios.iter().filter(|row| row.scenario == "Make").count();
    assert_eq!(names(&home.join("Old")).len(), 41 - gone);
    assert_eq!(names(&home.join("New")).len(), made);
    assert!(names(&home.join("Old")).contains(&"somebody's.txt".to_owned()));
}

#[test]
fn a_run_makes_no_files_where_nothing_was_prepared() {
    let Some(lab) = samba(|_| {}) else { return };
    prepare_most(&lab);
    let shown = run(&lab, USERS, 2);
    assert!(!lab.share().join("user00003").exists());
    let of_last = shown.scenarios.iter().filter(|row| row.user_number == USERS);
    assert!(of_last.clone().count() > 4 && of_last.clone().all(|row| row.outcome != DONE));
}

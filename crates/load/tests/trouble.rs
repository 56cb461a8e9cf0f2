//! Users on a real Samba in trouble: a full disk, a share that disappears, refused logons, a server
//! that is stopped and restarted. The run continues, counts failures by status, and recovers when the
//! trouble is over.

// A test may panic.
#![allow(clippy::unwrap_used)]

#[path = "support/engine.rs"]
mod engine;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use engine::{Asked, Shown};
use smbscope_load::prepare::PrepareError;
use smbscope_load::run::Progress;
use smbscope_load::run::users::Credentials;
use smbscope_load::workload::Planner;
use smbscope_tables::run::{DONE, FAILED, MEASURED, NOT_STARTED, Scenario};
use smbscope_testing::run::{prepare_user, runtime};
use smbscope_testing::samba::{Samba, samba};

const USERS: u64 = 4;
/// A user begins four executions per second: two of them look at a file, two save one.
const WORKLOAD: &str = r#"
description = "Small files looked at, larger ones saved"

[files.small]
class = "static"
folders = ["Small"]
name = "{word}-{n}.bin"
bytes = ["4 KiB"]
repeat = 8

[files.saved]
class = "new"
folders = ["Saved"]
name = "save {n}.bin"
bytes = ["256 KiB"]
keep = 1000

[scenarios.Look]
description = "a file looked at"
runs_per_hour = 7200
files = { file = "small" }
steps = [
  { action = "open", create = "{file}", handle = "file", access = "read" },
  { action = "read", read = "file", file = "file" },
  { action = "close", close = "file" },
]

[scenarios.Save]
description = "a file saved"
runs_per_hour = 7200
files = { target = { make = "saved" } }
steps = [
  { action = "make", create = "{target}", handle = "target", access = "read_write", disposition = "overwrite_if" },
  { action = "write", write = "target", file = "target" },
  { action = "close", close = "target" },
]
"#;

fn planner() -> Planner {
    smbscope_testing::run::planner(WORKLOAD, 5)
}

/// Creates one user's files.
fn prepare(lab: &Samba, user: u64) -> Result<(), PrepareError> {
    prepare_user(lab, &planner(), user)
}

/// Runs [`USERS`] users, for a second and then the given number of seconds.
fn run(
    lab: &Samba,
    credentials: Credentials,
    seconds: u64,
    progress: impl FnMut(&Progress),
) -> Shown {
    let shown = runtime().block_on(async {
        let window = Duration::from_secs(seconds);
        engine::run(Asked::new(lab.host().await, planner(), credentials, USERS, window), progress)
            .await
    });
    assert_whole(&shown);
    shown
}

/// In any case, the recorded tables are consistent.
fn assert_whole(shown: &Shown) {
    let runs: BTreeSet<_> = shown.scenarios.iter().map(|row| row.scenario_run).collect();
    assert_eq!(runs.len(), shown.scenarios.len(), "an execution has one row");
    let connections: BTreeSet<_> = shown.connections.iter().map(|row| row.connection).collect();
    assert_eq!(connections.len(), shown.connections.len(), "a connection has one row");
    let operations: u64 = shown.connections.iter().map(|row| row.operations).sum();
    assert_eq!(operations, shown.operations() as u64, "all operations have their row");
    for row in &shown.scenarios {
        let started = row.outcome != NOT_STARTED;
        assert_eq!(row.started_at.is_some(), started, "{row:?}");
        assert_eq!(row.status_name.is_some(), row.outcome == FAILED, "{row:?}");
    }
}

fn failed_with<'a>(shown: &'a Shown, status: &'a str) -> impl Iterator<Item = &'a Scenario> {
    shown.scenarios.iter().filter(move |row| row.status_name.as_deref() == Some(status))
}

/// Executions that began after a time of the run's clock and succeeded.
fn done_after(shown: &Shown, time: i64) -> usize {
    let begun = |row: &&Scenario| row.started_at.is_some_and(|start| start > time);
    shown.scenarios.iter().filter(begun).filter(|row| row.outcome == DONE).count()
}

/// Nanoseconds since 1970, as on the run's clock, except for a correction in between.
fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_nanos() as i64
}

/// A small file system of its own over a folder, until it is dropped.
struct Mount(PathBuf);

impl Mount {
    /// `None`, with the reason, where that is not permitted.
    fn small(folder: &Path) -> Option<Mount> {
        let owner = fs::metadata(folder).unwrap();
        let options = format!("size=8m,uid={},gid={},mode=755", owner.uid(), owner.gid());
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            return Some(Mount(folder.to_owned()));
        }
        smbscope_testing::skip!("a file system can be mounted by root only");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // smbd may still have it open.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_counted_and_the_run_goes_on() {
    let Some(lab) = samba(|_| {}) else { return };
    let Some(_mount) = Mount::small(&lab.lab().share_dir()) else { return };
    (1..=USERS).for_each(|user| prepare(&lab, user).unwrap());
    let shown = run(&lab, lab.users(), 9, |_| ());
    let full: Vec<_> = failed_with(&shown, "STATUS_DISK_FULL").collect();
    assert!(full.len() > 4, "{:?}", shown.unexpected);
    assert!(full.iter().all(|row| row.scenario == "Save" && row.errors > 0));
    assert!(shown.told("Save, write: STATUS_DISK_FULL") as usize >= full.len());
    assert!(shown.answers("STATUS_DISK_FULL") >= full.len(), "their operations too");
    assert!(shown.result.failed > 0 && !shown.result.server_gone(), "{:?}", shown.result);
    // No user lost the connection, and operations that need no space are completed.
    assert_eq!(shown.connections.len() as u64, USERS);
    let first = full.iter().filter_map(|row| row.ended_at).min().unwrap();
    let looks = shown.scenarios.iter().filter(|row| row.scenario == "Look");
    let later = looks.filter(|row| row.started_at.is_some_and(|start| start > first));
    assert!(later.clone().count() > 4 && later.clone().all(|row| row.outcome == DONE));
    // The error of `prepare` names the file, the reason, and a remedy.
    let said = prepare(&lab, USERS + 1).unwrap_err().to_string();
    for part in ["user00005\\Small\\", "cannot be written", "STATUS_DISK_FULL", "--scale"] {
        assert!(said.contains(part), "{said}");
    }
}

/// Sends a message to all processes of the lab.
fn control(lab: &Samba, words: &[&str]) {
    let conf = lab.lab().dir.join("smb.conf");
    let mut command = Command::new("smbcontrol");
    command.arg("-s").arg(conf).arg("all").args(words);
    assert!(command.status().unwrap().success(), "{words:?}");
}

/// Removes the share; returns the previous smb.conf.
fn remove_share(lab: &Samba) -> String {
    let path = lab.lab().dir.join("smb.conf");
    let text = fs::read_to_string(&path).unwrap();
    let share = text.find("[home]").unwrap();
    fs::write(&path, &text[..share]).unwrap();
    control(lab, &["reload-config"]);
    control(lab, &["close-share", "home"]);
    text
}

#[test]
fn a_share_that_goes_and_comes_is_come_back_to() {
    let Some(lab) = samba(|_| {}) else { return };
    (1..=USERS).for_each(|user| prepare(&lab, user).unwrap());
    let (mut conf, mut back) = (None, None);
    let shown = run(&lab, lab.users(), 12, |progress| {
        let seconds = progress.elapsed.as_secs();
        match (progress.phase, &conf) {
            ("measured", None) if seconds >= 2 => conf = Some(remove_share(&lab)),
            ("measured", Some(text)) if seconds >= 5 && back.is_none() => {
                fs::write(lab.lab().dir.join("smb.conf"), text).unwrap();
                control(&lab, &["reload-config"]);
                back = Some(now());
            }
            _ => {}
        }
    });
    // Samba answers one or the other, or ends the connection.
    let statuses = ["STATUS_NETWORK_NAME_DELETED", "CONNECTION_LOST"];
    let lost: usize = statuses.iter().map(|status| failed_with(&shown, status).count()).sum();
    let refused = shown.told("TreeConnect: STATUS_BAD_NETWORK_NAME");
    assert!(refused >= USERS, "{:?}", shown.unexpected);
    // Users do not continue on a share that they know to be gone, and wait between attempts.
    assert!(lost as u64 <= 2 * USERS && refused < 20 * USERS, "{:?}", shown.unexpected);
    assert_eq!(shown.answers("STATUS_BAD_NETWORK_NAME") as u64, refused);
    assert!(shown.connections.len() as u64 >= 2 * USERS);
    let after = done_after(&shown, back.unwrap());
    assert!(
        after as u64 > 2 * USERS,
        "{after} of {}: {:?}",
        shown.scenarios.len(),
        shown.unexpected
    );
    assert!(!shown.result.server_gone());
}

#[test]
fn a_share_that_stays_away_is_a_server_that_is_gone() {
    let Some(lab) = samba(|_| {}) else { return };
    (1..=USERS).for_each(|user| prepare(&lab, user).unwrap());
    let mut conf = None;
    let begin = Instant::now();
    let shown = run(&lab, lab.users(), 5, |progress| {
        if progress.elapsed.as_millis() >= 400 && conf.is_none() {
            conf = Some(remove_share(&lab));
        }
    });
    assert!(conf.is_some() && begin.elapsed() < Duration::from_secs(60), "it ends in time");
    assert!(shown.result.server_gone(), "{:?}", shown.result);
    // The number depends on how long each waits, and on the machine.
    assert!(shown.told("STATUS_BAD_NETWORK_NAME") > 0, "{:?}", shown.unexpected);
    // Executions that were due and could not begin are recorded as such.
    let waiting = shown.scenarios.iter().filter(|row| row.outcome == NOT_STARTED).count();
    assert!(waiting as u64 > 10 * USERS, "{:?}", shown.scenarios);
    let measured = shown.scenarios.iter().filter(|row| row.phase == MEASURED).count();
    assert_eq!(shown.steps[0].scheduled, measured as u64);
}

#[test]
fn a_refused_logon_is_counted_and_others_go_on() {
    let Some(lab) = samba(|_| {}) else { return };
    (1..=USERS).for_each(|user| prepare(&lab, user).unwrap());
    let password = &lab.password;
    let list = format!(
        "user00001:{password}\nuser00002:wrong\nLAB\\user00003:{password}\nnobody7:{password}\n"
    );
    let shown = run(&lab, Credentials::list(&list).unwrap(), 6, |_| ());
    let refused = shown.told("SessionSetup: STATUS_LOGON_FAILURE");
    assert!((4..40).contains(&refused), "again and again, but not at once: {refused}");
    assert_eq!(shown.answers("STATUS_LOGON_FAILURE") as u64, refused);
    assert_eq!(shown.unexpected.len(), 1, "{:?}", shown.unexpected);
    let of = |user: u64| shown.scenarios.iter().filter(move |row| row.user_number == user);
    for user in [1, 3] {
        assert!(of(user).count() > 10 && of(user).all(|row| row.outcome == DONE), "user {user}");
    }
    for user in [2, 4] {
        assert!(of(user).all(|row| row.outcome == NOT_STARTED), "user {user}");
    }
    assert_eq!(shown.refused, ["user00002", "nobody7"]);
    let behind = shown.result.judgement.users_behind;
    assert!(!shown.result.server_gone() && behind >= 2, "{:?}", shown.result);
}

#[test]
fn a_server_that_stops_and_starts_again_is_come_back_to() {
    let Some(lab) = samba(|_| {}) else { return };
    (1..=USERS).for_each(|user| prepare(&lab, user).unwrap());
    let (mut stopped, mut back) = (false, None);
    let shown = run(&lab, lab.users(), 12, |progress| {
        let seconds = progress.elapsed.as_secs();
        if progress.phase == "measured" && seconds >= 2 && !stopped {
            stopped = true;
            for pid in lab.processes() {
                let pid = nix::unistd::Pid::from_raw(pid);
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
        }
        if progress.phase == "measured" && seconds >= 5 && back.is_none() {
            start(&lab);
            back = Some(now());
        }
    });
    assert!(shown.told("cannot connect") >= USERS, "{:?}", shown.unexpected);
    let after = done_after(&shown, back.unwrap());
    assert!(
        after as u64 > 2 * USERS,
        "{after} of {}: {:?}",
        shown.scenarios.len(),
        shown.unexpected
    );
    let lost = shown.connections.iter().filter(|row| row.end_reason == "reset").count();
    assert!(lost as u64 >= USERS && !shown.result.server_gone());
    // Per user: the execution in flight failed, the others waited and were late.
    let failed = shown.scenarios.iter().filter(|row| row.outcome == FAILED).count();
    assert!(failed as u64 <= 2 * USERS, "{failed}");
    let waited = |row: &&Scenario| row.response_ns.is_some_and(|ns| ns > 1_000_000_000);
    assert!(shown.scenarios.iter().filter(waited).count() as u64 >= USERS);
}

/// Starts the lab's smbd again, which finds itself by its configuration.
fn start(lab: &Samba) {
    let dir = &lab.lab().dir;
    let status = Command::new(&lab.lab().smbd)
        .arg("-D")
        .arg(format!("--configfile={}", dir.join("smb.conf").display()))
        .arg(format!("--log-basename={}", dir.join("log").display()))
        .env("_NO_WINBINDD", "1")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

//! The lab with the real Samba: up, logon, status, down, and its failures.
//!
//! Needs smbd and smbclient (scripts/setup.sh test); without them each test reports that it is skipped.
//! Samba 4.22 is used from ~/.cache/smbscope/samba-4.22, where setup.sh unpacks it. Each server belongs
//! to one test, on 127.0.0.1 with its own port.

#![cfg(target_os = "linux")]
// A test may panic.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use smbscope_lab::{
    Dialect, Encryption, Guard, Lab, LabError, Line, Options, Signing, State, parse_setting,
};

/// Set in the copy of this program that runs as an ordinary user.
const ORDINARY: &str = "SMBSCOPE_TEST_ORDINARY";

/// A folder for labs that others may enter, as a lab of root needs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("lab").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Whether the tests that need Samba can run; reports if not.
fn samba() -> bool {
    let found = |program: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .chain([PathBuf::from("/usr/sbin")])
            .any(|folder| folder.join(program).is_file())
    };
    let there = found("smbd") && found("smbclient");
    if !there {
        smbscope_testing::skip!(
            "smbd or smbclient is missing (scripts/setup.sh test installs them)"
        );
    }
    there
}

fn samba_422() -> Option<PathBuf> {
    let cache = std::env::var_os("SMBSCOPE_CACHE").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/smbscope"));
    let dir = cache.or(home)?.join("samba-4.22");
    let there = dir.join("bin/smbd").is_file();
    if !there {
        smbscope_testing::skip!("{} is missing (scripts/setup.sh test unpacks it)", dir.display());
    }
    there.then_some(dir)
}

fn options(dir: &Path) -> Options {
    // The kernel chooses: tests run at the same time, also those of other checkouts.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    Options { dir: Some(dir.to_owned()), port: Some(port), users: 3, ..Options::default() }
}

fn up(dir: &Path) -> Guard {
    Lab::up(&options(dir)).unwrap().guard()
}

/// The output of smbclient; it gets the password from a file.
fn smbclient(lab: &Guard, user: &str, password: &str, arguments: &[&str]) -> (bool, String) {
    let file = lab.dir.join(format!("private/{user}"));
    fs::write(&file, format!("username = {user}\npassword = {password}\n")).unwrap();
    let output = Command::new("smbclient")
        .arg("-A")
        .arg(&file)
        // Nothing from the system's configuration.
        .args(["-s", "/dev/null", "-t", "60", "-p", &lab.port.to_string()])
        .args(arguments)
        .env("HOME", lab.share_dir())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Logs on and lists the share with more options of smbclient.
fn logs_on(lab: &Guard, user: &str, more: &[&str]) -> bool {
    let share = format!("//127.0.0.1/{}", lab.share);
    let arguments = [&[&share, "-c", "ls"], more].concat();
    smbclient(lab, user, &lab.password().unwrap(), &arguments).0
}

fn complaint(options: &Options) -> String {
    Lab::up(options).unwrap_err().to_string()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Users log on, write and read; status shows the lab; down leaves nothing.
fn a_whole_life(samba: Option<PathBuf>) {
    let above = folder();
    let dir = above.path().join("lab");
    let lab = Lab::up(&Options { samba, ..options(&dir) }).unwrap().guard();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&lab.password_file()), 0o600);
    assert_eq!(mode(&lab.credentials_file()), 0o600);
    assert!(mode(&dir) & 0o066 == 0, "others can neither list nor change it");

    let password = lab.password().unwrap();
    for user in ["user00001", "user00003"] {
        let script = format!("mkdir {user}; put /etc/passwd {user}\\file; ls {user}\\*");
        let (ok, said) = smbclient(&lab, user, &password, &["//127.0.0.1/home", "-c", &script]);
        assert!(ok && said.contains(" file "), "{said}");
        let there = fs::read(lab.share_dir().join(user).join("file")).unwrap();
        assert_eq!(there, fs::read("/etc/passwd").unwrap());
    }
    let (ok, said) = smbclient(&lab, "user00002", &password, &["-L", "//127.0.0.1"]);
    assert!(ok && said.contains("home") && lab.pipes, "{said}");
    let (ok, said) = smbclient(&lab, "user00004", &password, &["//127.0.0.1/home"]);
    assert!(!ok && said.contains("LOGON_FAILURE"), "one more user than asked for: {said}");
    let (ok, said) = smbclient(&lab, "user00001", "wrong", &["//127.0.0.1/home"]);
    assert!(!ok && said.contains("LOGON_FAILURE"), "{said}");
    let nobody = Command::new("smbclient")
        .args(["-s", "/dev/null", "-N", "-U%", "-p", &lab.port.to_string()])
        .args(["//127.0.0.1/home", "-c", "ls"])
        .output()
        .unwrap();
    assert!(!nobody.status.success(), "the share refuses anonymous access");

    let status = Lab::status(&dir).unwrap();
    assert_eq!((status.state, status.record.port), (State::Running, lab.port));
    assert!(status.processes >= 4, "smbd with two children, and the pipes' helper: {status:?}");
    assert!(status.record.samba.starts_with("4."), "{status:?}");
    let listed = Lab::list(&above.path().join("other"));
    assert!(listed.iter().any(|found| found.record.dir == dir), "{listed:?}");

    let stays = TcpStream::connect(("127.0.0.1", lab.port)).unwrap();
    wait_until("the connection counts", || Lab::status(&dir).unwrap().connections == 1);
    let removed = Lab::down(&dir).unwrap();
    assert!(removed.dir_removed && removed.left.is_empty() && removed.processes >= 5);
    drop(stays);
    assert!(!dir.exists());
    assert!(TcpStream::connect(("127.0.0.1", lab.port)).is_err());
    assert!(!Lab::list(&dir).iter().any(|found| found.record.dir == dir));
    assert!(matches!(Lab::down(&dir), Err(LabError::NotALab { .. })));
}

#[test]
fn up_log_on_status_down() {
    if samba() {
        a_whole_life(None);
    }
}

#[test]
fn the_same_with_samba_4_22_next_to_the_systems() {
    if samba()
        && let Some(dir) = samba_422()
    {
        a_whole_life(Some(dir));
    }
}

#[test]
fn directory_leases_need_4_22() {
    if !samba() {
        return;
    }
    let above = folder();
    let mut options = Options {
        directory_leases: Some(true),
        multichannel: Some(true),
        ..options(&above.path().join("lab"))
    };
    if let Some(dir) = samba_422() {
        options.samba = Some(dir);
        let lab = Lab::up(&options).unwrap().guard();
        let conf = Lab::configuration(&lab.dir).unwrap();
        assert!(conf.contains("smb3 directory leases = yes"));
        assert!(logs_on(&lab, "user00002", &["-m", "SMB3_11"]));
    }
    options.samba = None;
    let version = Command::new("/usr/sbin/smbd").arg("--version").output();
    if version.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains("Version 4.17")) {
        let said = complaint(&options);
        assert!(said.contains("4.22") && said.contains("samba-4.22.sh"), "{said}");
        assert!(!above.path().join("lab").exists());
    }
}

/// The complete life again as an ordinary user: in a copy of this program that `nobody` runs.
#[test]
fn as_an_ordinary_user() {
    if !samba() || fs::metadata("/proc/self").unwrap().uid() != 0 {
        smbscope_testing::skip!("up_log_on_status_down does this already, or there is no Samba");
        return;
    }
    let above = folder();
    let copy = above.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["--exact", "inside_an_ordinary_user", "--include-ignored", "--nocapture"])
        .env(ORDINARY, "1")
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "as_an_ordinary_user runs it"]
fn inside_an_ordinary_user() {
    if std::env::var_os(ORDINARY).is_none() {
        return;
    }
    assert_eq!(fs::metadata("/proc/self").unwrap().uid(), 65534);
    a_whole_life(None);
    let above = folder();
    let options = options(&above.path().join("lab"));
    let line = Line { options: "rtt=1ms".parse().unwrap(), name: "x".into(), forwarder: vec![] };
    let line = complaint(&Options { line: Some(line), ..options.clone() });
    assert!(line.contains("needs root"), "{line}");
    let other = complaint(&Options { owner: Some("root".into()), ..options });
    assert!(other.contains("only root"), "{other}");
}

#[test]
fn a_port_in_use_is_an_error() {
    if !samba() {
        return;
    }
    let above = folder();
    let first = up(&above.path().join("first"));
    let second = above.path().join("second");
    let taken = Options { port: Some(first.port), ..options(&second) };
    let said = complaint(&taken);
    assert!(said.contains(&first.port.to_string()) && said.contains("--port"), "{said}");
    assert!(!second.exists());
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    assert!(complaint(&Options { port: Some(port), ..options(&second) }).contains("--port"));
    // Without a given port there is always a free one.
    let third = Lab::up(&Options { port: None, ..taken }).unwrap().guard();
    assert_ne!(third.port, first.port);
    assert!(logs_on(&first, "user00001", &[]) && logs_on(&third, "user00001", &[]));
}

#[test]
fn a_folder_has_one_lab_and_foreign_files_stay() {
    if !samba() {
        return;
    }
    let above = folder();
    let dir = above.path().join("lab");
    fs::create_dir(&dir).unwrap();
    let lab = up(&dir);
    let said = complaint(&options(&dir));
    assert!(said.contains("runs here already") && said.contains("lab down"), "{said}");
    assert!(logs_on(&lab, "user00001", &[]), "the first one continues");
    let mine = dir.join("mine.txt");
    fs::write(&mine, "not the lab's").unwrap();
    let outside = above.path().join("outside");
    fs::write(&outside, "neither").unwrap();
    std::os::unix::fs::symlink(above.path(), lab.share_dir().join("link")).unwrap();
    let removed = Lab::down(&dir).unwrap();
    assert_eq!(removed.left, std::slice::from_ref(&mine));
    assert!(!removed.dir_removed && outside.exists());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    assert!(complaint(&options(&dir)).contains("not empty"));
    fs::remove_file(mine).unwrap();
    drop(up(&dir));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "a folder that was there stays");
}

#[test]
fn a_lab_whose_smbd_was_killed_can_be_removed() {
    if !samba() {
        return;
    }
    let above = folder();
    let dir = above.path().join("lab");
    let lab = up(&dir);
    let session = TcpStream::connect(("127.0.0.1", lab.port)).unwrap();
    wait_until("a child of smbd", || Lab::status(&dir).unwrap().processes >= 5);
    let smbd = lab.smbd_pid().unwrap().to_string();
    assert!(Command::new("kill").args(["-9", &smbd]).status().unwrap().success());
    wait_until("smbd is gone", || Lab::status(&dir).unwrap().state == State::Dead);
    let said = complaint(&options(&dir));
    assert!(said.contains("smbd is gone") && said.contains("lab down"), "{said}");
    let removed = Lab::down(&dir).unwrap();
    assert!(removed.processes >= 1 && removed.dir_removed, "its children too: {removed:?}");
    drop(session);
}

#[test]
fn another_program_with_the_same_id_is_left_alone() {
    if !samba() {
        return;
    }
    let above = folder();
    let dir = above.path().join("lab");
    let lab = up(&dir);
    let path = dir.join("lab.json");
    let record = fs::read_to_string(&path).unwrap();
    let mut other = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    let old = format!("\"pid\": {}", lab.smbd_pid().unwrap());
    assert!(record.contains(&old));
    fs::write(&path, record.replace(&old, &format!("\"pid\": {}", other.id()))).unwrap();
    assert_eq!(Lab::status(&dir).unwrap().state, State::Dead);
    Lab::down(&dir).unwrap();
    assert!(other.try_wait().unwrap().is_none(), "it still runs");
    assert!(TcpStream::connect(("127.0.0.1", lab.port)).is_err(), "the real smbd was ended");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn settings_reach_samba() {
    if !samba() {
        return;
    }
    let above = folder();
    let lab = Lab::up(&Options {
        signing: Signing::Required,
        encryption: Encryption::Required,
        dialect_min: Dialect::Smb302,
        share: "Work Share".to_owned(),
        password: Some("a pass phrase, ünlike".to_owned()),
        set: vec![parse_setting("hide dot files = no").unwrap()],
        ..options(&above.path().join("with space"))
    })
    .unwrap()
    .guard();
    assert_eq!(lab.password().unwrap(), "a pass phrase, ünlike");
    assert!(logs_on(&lab, "user00001", &["-m", "SMB3_11"]));
    assert!(!logs_on(&lab, "user00001", &["-m", "SMB3_00"]), "older than the oldest");
    assert!(lab.settings.join(", ").contains("encryption required"), "{:?}", lab.settings);

    let dir = above.path().join("wrong");
    let wrong = |text: &str| {
        let set = vec![parse_setting(text).unwrap()];
        complaint(&Options { set, ..options(&dir) })
    };
    let said = wrong("strikt sync = no");
    assert!(said.contains("strikt sync"), "{said}");
    let said = wrong("strict sync = perhaps");
    assert!(said.contains("strict sync") || said.contains("perhaps"), "{said}");
    assert!(!dir.exists());
}

#[test]
fn an_smbd_that_does_not_start_is_quoted() {
    let above = folder();
    let program = above.path().join("smbd");
    let dir = above.path().join("lab");
    let script = |text: &str| {
        let head = "#!/bin/sh\n[ \"$1\" != --version ] || { echo Version 4.17.0; exit; }\n";
        fs::write(&program, format!("{head}{text}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        complaint(&Options { samba: Some(program.clone()), ..options(&dir) })
    };
    let said = script("echo 'no disk, no fun' >&2; exit 1");
    assert!(said.contains("exited immediately") && said.contains("no disk, no fun"), "{said}");
    let said = script("echo 'gone soon'");
    assert!(said.contains("while it was starting") && said.contains("gone soon"), "{said}");
    assert!(!dir.exists());
}

#[test]
fn ten_thousand_users_are_made_at_once() {
    if !samba() {
        return;
    }
    let above = folder();
    let begin = Instant::now();
    let mut options = options(&above.path().join("lab"));
    options.users = 10_000;
    let lab = Lab::up(&options).unwrap().guard();
    eprintln!("10,000 users: up after {:?}", begin.elapsed());
    // pdbedit would take minutes.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(logs_on(&lab, "user10000", &[]) && logs_on(&lab, "user05000", &[]));
    assert!(!logs_on(&lab, "user10001", &[]));
}

#[test]
fn the_systems_samba_is_not_touched() {
    if !samba() {
        return;
    }
    let before = system_files();
    let above = folder();
    let lab = up(&above.path().join("lab"));
    let password = lab.password().unwrap();
    assert!(smbclient(&lab, "user00001", &password, &["-L", "//127.0.0.1"]).0);
    assert!(logs_on(&lab, "user00001", &[]));
    drop(lab);
    assert_eq!(system_files(), before);
}

/// All files in the folders of the system's Samba, with their times of last change.
fn system_files() -> Vec<(PathBuf, Option<SystemTime>)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["/etc/samba", "/var/lib/samba", "/var/cache/samba", "/var/log/samba", "/run/samba"]
            .map(PathBuf::from)
            .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let data = fs::symlink_metadata(entry.path()).unwrap();
            if data.is_dir() {
                folders.push(entry.path());
            }
            found.push((entry.path(), data.modified().ok()));
        }
    }
    found.sort();
    found
}

//! A lab behind a simulated link: a session has the delay, status shows the link, and down leaves
//! nothing, whichever process died before.
//!
//! Needs root and Samba; otherwise it reports that it skips. The forwarder is a copy of this program
//! (`inside_the_line`), as it is a copy of smbscope for `smbscope lab`.

#![cfg(target_os = "linux")]
// A test may panic.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use smbscope_client::clock::Clock;
use smbscope_client::{Ask, Config, Credential, Host, Session, Target};
use smbscope_lab::wan::Forwarder;
use smbscope_lab::wan::netns;
use smbscope_lab::{Guard, Lab, LabError, Line, Options, State};
use smbscope_wire::smb2::encode::Echo;

/// Properties of the link, in the copy of this program that forwards.
const LOGON: Duration = Duration::from_secs(60);
const LINE: &str = "SMBSCOPE_TEST_LINE";
const RTT: Duration = Duration::from_millis(20);

/// The copy of this program that is a link's forwarder, until it is ended.
#[test]
#[ignore = "labs of the other tests run it"]
fn inside_the_line() {
    let Ok(line) = std::env::var(LINE) else { return };
    let [client, server] = netns::ENDS;
    let forwarder = Forwarder::open(client, server, None, &line.parse().unwrap()).unwrap();
    println!("forwarding");
    // Its lab shows its error.
    let ended = forwarder.run(None, || false, |_| ());
    panic!("{}", ended.unwrap_err());
}

/// A folder that others may enter, as a lab of root needs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("lab").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A lab behind a link, not yet started.
fn options(above: &Path, test: &str) -> Options {
    let text = format!("rtt={}ms,rate=45mbit", RTT.as_millis());
    let exe = std::env::current_exe().unwrap().into_os_string();
    let mut forwarder: Vec<OsString> =
        vec!["env".into(), format!("{LINE}={text}").into(), exe, "inside_the_line".into()];
    forwarder.extend(["--exact", "--include-ignored", "--nocapture"].map(Into::into));
    let name = format!("smbl{}-{test}", std::process::id());
    let line = Line { options: text.parse().unwrap(), name, forwarder };
    Options { dir: Some(above.join("lab")), users: 3, line: Some(line), ..Options::default() }
}

/// `None`, with the reason, where there can be no such lab.
fn up(options: &Options) -> Option<Guard> {
    if !geteuid().is_root() {
        smbscope_testing::skip!("only root makes network namespaces");
        return None;
    }
    match Lab::up(options) {
        Ok(running) => Some(running.guard()),
        Err(error @ LabError::NoSmbd { .. }) => {
            smbscope_testing::skip!("{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn line(options: &Options) -> &Line {
    options.line.as_ref().unwrap()
}

/// The existing namespaces of this link.
fn namespaces(options: &Options) -> usize {
    let name = &line(options).name;
    let path = |end: &&str| PathBuf::from(format!("/var/run/netns/{name}-{end}"));
    ["client", "server", "line"].iter().filter(|end| path(end).exists()).count()
}

/// The id and start of the lab's forwarder.
fn forwarder(lab: &Guard) -> (i32, u64) {
    let found = lab.processes.iter().find(|process| process.name == "wan").unwrap();
    (found.pid, found.start_ticks)
}

/// Whether a process runs and is not a zombie.
fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with('Z')
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The shortest of some Echoes from the link's near end.
fn shortest_echo(lab: &Guard) -> Duration {
    let target = Target::parse(&lab.location()).unwrap();
    let credential = Credential::new(&lab.user(1), &lab.password().unwrap());
    netns::inside(&lab.line.as_ref().unwrap().client(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let host = Host::find(target, Config::default(), Clock::start(), true).await.unwrap();
            let connected = Session::connect(LOGON, Arc::new(host), &credential, 0, None).await;
            let mut session = connected.map_err(|failed| failed.error).unwrap();
            let mut shortest = Duration::MAX;
            for _ in 0..20 {
                let begin = Instant::now();
                session.call(&Echo, Ask::default()).await.unwrap();
                shortest = shortest.min(begin.elapsed());
            }
            let connections = session.close().await.connections;
            // The client's own estimate of the round trip, from the handshake.
            assert!(connections[0].server_rtt_ns.unwrap() >= RTT.as_nanos() as i64);
            shortest
        })
    })
    .unwrap()
}

/// The remains of a lab that was ended.
fn assert_gone(options: &Options, forwarder: i32) {
    assert_eq!(namespaces(options), 0);
    assert!(!runs(forwarder), "the forwarder {forwarder}");
    let dir = options.dir.as_ref().unwrap();
    assert!(!dir.exists());
    assert!(matches!(Lab::down(dir), Err(LabError::NotALab { .. })), "twice");
}

#[test]
fn a_session_sees_the_distance_and_down_leaves_nothing() {
    let above = folder();
    let options = options(above.path(), "whole");
    let Some(lab) = up(&options) else { return };
    assert_eq!((lab.location().as_str(), namespaces(&options)), ("//10.45.0.2:445/home", 3));
    let echo = shortest_echo(&lab);
    assert!((RTT..2 * RTT).contains(&echo), "{echo:?}");
    // Frames are packets, as on a wire.
    for end in ["client", "server"] {
        let name = format!("{}-{end}", line(&options).name);
        let shown = Command::new("ip").args(["-d", "-n", &name, "link", "show", "eth0"]).output();
        let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
        assert!(shown.contains("gso_max_segs 1 "), "{shown}");
    }
    let status = Lab::status(&lab.dir).unwrap();
    assert_eq!((status.state, status.line_runs), (State::Running, Some(true)));
    assert!(status.processes >= 5, "smbd's, the pipes' helper and the forwarder: {status:?}");
    let shown = status.record.line.unwrap();
    assert_eq!(shown.options, "rtt=20ms,rate=45mbit");
    let again = Lab::up(&options).unwrap_err().to_string();
    assert!(again.contains("already exist") && again.contains("--netns"), "{again}");
    assert_eq!(namespaces(&options), 3, "the first one's stay");
    // A process inside is reported, and not ended.
    let mut guest = netns::inside(&shown.client(), sleeper).unwrap();
    let forwarder = forwarder(&lab).0;
    let removed = Lab::down(&lab.dir).unwrap();
    assert!(removed.dir_removed && removed.processes >= 5, "{removed:?}");
    assert_eq!(removed.inside, [guest.id()]);
    assert!(guest.try_wait().unwrap().is_none());
    guest.kill().unwrap();
    guest.wait().unwrap();
    assert_gone(&options, forwarder);
}

fn sleeper() -> Child {
    Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
}

#[test]
fn dead_processes_are_shown_and_the_rest_is_removed() {
    let above = folder();
    let options = options(above.path(), "died");
    let Some(lab) = up(&options) else { return };
    let pid = forwarder(&lab).0;
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    wait_until("the forwarder is gone", || !runs(pid));
    let status = Lab::status(&lab.dir).unwrap();
    assert_eq!((status.state, status.line_runs), (State::Running, Some(false)));
    assert!(Lab::down(&lab.dir).unwrap().dir_removed);
    assert_gone(&options, pid);

    let lab = up(&options).unwrap();
    let pid = forwarder(&lab).0;
    kill(Pid::from_raw(lab.smbd_pid().unwrap()), Signal::SIGKILL).unwrap();
    wait_until("smbd is gone", || Lab::status(&lab.dir).unwrap().state == State::Dead);
    assert_eq!(Lab::status(&lab.dir).unwrap().line_runs, Some(true));
    assert!(Lab::down(&lab.dir).unwrap().dir_removed);
    assert_gone(&options, pid);

    // If other programs removed the namespaces, the rest is removed nevertheless.
    let lab = up(&options).unwrap();
    let pid = forwarder(&lab).0;
    netns::remove(&line(&options).name).unwrap();
    assert!(Lab::down(&lab.dir).unwrap().dir_removed);
    assert_gone(&options, pid);
}

#[test]
fn another_program_with_the_forwarders_id_is_left_alone() {
    let above = folder();
    let options = options(above.path(), "other");
    let Some(lab) = up(&options) else { return };
    let path = lab.dir.join("lab.json");
    let record = fs::read_to_string(&path).unwrap();
    let pid = forwarder(&lab).0;
    let mut other = sleeper();
    let old = format!("\"pid\": {pid},");
    assert!(record.contains(&old));
    fs::write(&path, record.replace(&old, &format!("\"pid\": {},", other.id()))).unwrap();
    assert_eq!(Lab::status(&lab.dir).unwrap().line_runs, Some(false));
    assert!(Lab::down(&lab.dir).unwrap().dir_removed);
    assert!(other.try_wait().unwrap().is_none(), "it still runs");
    other.kill().unwrap();
    other.wait().unwrap();
    // The real one ends with its interfaces.
    wait_until("the forwarder ends", || !runs(pid));
    assert_gone(&options, pid);
}

#[test]
fn a_line_that_does_not_come_about_leaves_nothing() {
    let above = folder();
    let mut options = options(above.path(), "none");
    let Some(lab) = up(&options) else { return };
    drop(lab);
    assert_eq!(namespaces(&options), 0);
    let line = options.line.as_mut().unwrap();
    line.forwarder = ["sh", "-c", "echo no line today; exit 3"].map(Into::into).to_vec();
    let said = Lab::up(&options).unwrap_err().to_string();
    assert!(said.contains("forwarder ended") && said.contains("no line today"), "{said}");
    options.line.as_mut().unwrap().forwarder = vec!["/no/such/program".into()];
    let said = Lab::up(&options).unwrap_err().to_string();
    assert!(said.contains("/no/such/program: cannot be run"), "{said}");
    options.line.as_mut().unwrap().name = "no/name".into();
    let said = Lab::up(&options).unwrap_err().to_string();
    assert!(said.contains("no/name"), "{said}");
    assert!(!above.path().join("lab").exists());
}

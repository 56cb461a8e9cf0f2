//! Processes of a lab, from /proc: which they are, whether they are still the same, how they end.
//!
//! A process is identified by its id and its start time, so that another program that got the id later
//! is not taken for smbd. Samba's children share their parent's session, which `smbd -D` creates; their
//! command line does not identify them, because 4.22 overwrites it. Source: proc(5).

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// Time for smbd to end by itself: it closes files and connections.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A process, distinguished from a later one that gets the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its program's name, as in "smbd".
    pub name: String,
    /// Its id.
    pub pid: i32,
    /// When it started, in clock ticks since the machine did (field 22 of /proc/PID/stat).
    pub start_ticks: u64,
}

impl Process {
    /// The running process with this id.
    pub(super) fn find(name: &str, pid: i32) -> Option<Process> {
        let found = Stat::read(pid)?;
        (!found.ended()).then(|| Process { name: name.to_owned(), pid, start_ticks: found.start })
    }

    /// Whether both are the same process: its name in the record does not count.
    pub(super) fn is_same(&self, other: &Process) -> bool {
        self.pid == other.pid && self.start_ticks == other.start_ticks
    }

    /// Whether it is still running.
    pub(super) fn runs(&self) -> bool {
        Stat::read(self.pid).is_some_and(|now| !now.ended() && now.start == self.start_ticks)
    }
}

/// The part of /proc/PID/stat that is used here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    state: char,
    session: i32,
    start: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Stat> {
        parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
    }

    /// Zombies stay if their exit code is not collected, as in many containers.
    fn ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// A program's name may contain spaces and brackets: the last bracket ends it.
fn parse(text: &str) -> Option<Stat> {
    let (front, rest) = text.rsplit_once(')')?;
    let (_, name) = front.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// All processes of the lab that has this smb.conf and was started with these processes (an empty list
/// after a reboot).
pub(super) fn of_lab(conf: &Path, started: &[Process]) -> Vec<Process> {
    let leaders: Vec<(&Process, Leader)> =
        started.iter().map(|it| (it, Leader::find(it))).collect();
    let is_member = |stat: &Stat| {
        leaders.iter().any(|(process, leader)| {
            stat.session == process.pid
                && match leader {
                    Leader::Runs => true,
                    // The kernel does not reuse the number while children are in the session;
                    // if all have ended in the meantime, the names show it.
                    Leader::Gone => is_sambas(&stat.name) && stat.start >= process.start_ticks,
                    Leader::Another => false,
                }
        })
    };
    let mut found = Vec::new();
    for pid in pids() {
        let Some(stat) = Stat::read(pid) else { continue };
        if stat.ended() {
            continue;
        }
        let is_started =
            |process: &Process| process.pid == pid && process.start_ticks == stat.start;
        let known = started.iter().any(is_started) || is_member(&stat);
        if known || configuration(pid).is_some_and(|path| path == conf) {
            found.push(Process { name: stat.name, pid, start_ticks: stat.start });
        }
    }
    found
}

/// The state of a process that leads a session.
enum Leader {
    Runs,
    Gone,
    /// Another process has its id now.
    Another,
}

impl Leader {
    fn find(process: &Process) -> Leader {
        match Stat::read(process.pid) {
            None => Leader::Gone,
            Some(now) if now.start != process.start_ticks => Leader::Another,
            Some(now) if now.ended() => Leader::Gone,
            Some(_) => Leader::Runs,
        }
    }
}

/// Children have their own names in 4.17: "smbd-notifyd", "cleanupd", "smbd[127.0.0.1]".
fn is_sambas(name: &str) -> bool {
    ["smbd", "samba", "rpcd", "notifyd", "cleanupd"].iter().any(|start| name.starts_with(start))
}

/// smb.conf of every smbd that was started with `--configfile`, of all users that this user may see.
pub(super) fn configurations() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = pids().filter_map(configuration).collect();
    found.sort();
    found.dedup();
    found
}

fn configuration(pid: i32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let path = line
        .split(|byte| *byte == 0)
        .find_map(|argument| argument.strip_prefix(b"--configfile="))?;
    // A process that only reads a lab's smb.conf is not part of the lab.
    let name = Stat::read(pid).map(|stat| stat.name)?;
    is_sambas(&name).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Ends all processes that `list` returns, first with SIGTERM; a process that remains is the error.
/// `list` is called repeatedly, because smbd may be starting a child.
pub(super) fn end(list: impl Fn() -> Vec<Process>) -> Result<usize, i32> {
    let mut ended = HashSet::new();
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let begin = Instant::now();
        let mut signalled = HashSet::new();
        loop {
            let left = list();
            if left.is_empty() {
                return Ok(ended.len());
            }
            for process in left {
                let key = (process.pid, process.start_ticks);
                // Children of a signalled process may be gone by now: they count as ended too.
                ended.insert(key);
                if signalled.insert(key) && process.runs() {
                    // It may have ended in the meantime, as intended.
                    let _ = kill(Pid::from_raw(process.pid), signal);
                }
            }
            if begin.elapsed() > STOP_TIMEOUT {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    list().first().map_or(Ok(ended.len()), |process| Err(process.pid))
}

/// The machine's current boot: start times are relative to it.
pub(super) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_the_last_bracket() {
        let text = "77 (smbd[1] (a) ) S 1 77 78 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 991 5 6\n";
        let stat = parse(text).unwrap();
        assert_eq!(stat, Stat { name: "smbd[1] (a) ".into(), state: 'S', session: 78, start: 991 });
        for text in ["", "77 smbd", "77 (smbd", "77 (smbd) S 1", "77 (smbd) S x y z"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_process_with_another_start_is_another() {
        let me = Process::find("test", std::process::id().cast_signed()).unwrap();
        assert!(me.runs());
        let earlier = Process { start_ticks: me.start_ticks - 1, ..me };
        assert!(!earlier.runs());
        assert!(matches!(Leader::find(&earlier), Leader::Another));
        assert_eq!(of_lab(Path::new("/nowhere/smb.conf"), &[earlier]), []);
    }

    #[test]
    fn only_samba_is_of_a_lab() {
        for name in ["smbd", "cleanupd", "smbd[127.0.0.1]", "samba-dcerpcd", "rpcd_classic"] {
            assert!(is_sambas(name));
        }
        assert!(!is_sambas("bash"));
    }
}

//! Starts smbd and its helpers, and waits until it answers.
//!
//! `smbd -D` moves to a session of its own, without a terminal. Its exit code only says that it could
//! fork; its pid file, its socket and its answer show whether it runs.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::error::{AtPath as _, LabError};
use super::options::Options;
use super::paths::Paths;
use super::process::{self, Process};
use super::record::Record;
use super::samba::Samba;
use super::{conf, line, listen};
use crate::wan::netns;

/// Time for smbd's start; a tenth of a second is usual.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which all its processes may be missing before it counts as dead.
const GONE: Duration = Duration::from_secs(2);
/// Its name in the record.
const HELPER: &str = "samba-dcerpcd";
const LOG_LINES: usize = 12;
const LOG_BYTES: i64 = 1 << 16;

/// Starts smbd and its helpers, and writes the processes to the record. After an error, the caller
/// removes the rest.
pub(super) fn start(
    options: &Options,
    samba: &Samba,
    paths: &Paths,
    record: &mut Record,
) -> Result<(), LabError> {
    if let Some(line) = &options.line {
        line::start(line, paths, record)?;
    }
    let smbd = launch(options, paths, &samba.smbd, &[])?;
    if !smbd {
        return Err(died(paths, "smbd exited immediately"));
    }
    let smbd = wait_for_smbd(paths, record)?;
    record.processes.push(smbd);
    if let Some((program, scripts)) = samba.helper(paths)? {
        let scripts: Vec<&OsStr> = scripts.iter().map(AsRef::as_ref).collect();
        launch(options, paths, &program, &scripts)?;
        record.processes.extend(wait_for_helper(paths));
    }
    let helped = record.processes.iter().any(|process| process.name == HELPER);
    record.pipes = helped || !samba.wants_helpers();
    if let Some(line) = conf::refused(&said(paths)) {
        return Err(LabError::Option(format!("Samba rejected a setting: {line}")));
    }
    if let Some(line) = &record.line {
        line::answers(line, paths, record, START_TIMEOUT)?;
    } else if options.enter.is_empty() {
        let address = SocketAddr::new(record.address, record.port);
        listen::answers(address, START_TIMEOUT)
            .map_err(|error| died(paths, &format!("smbd does not answer ({error})")))?;
    }
    Ok(())
}

/// Runs a Samba program as a daemon. False if it reports that it could not start.
fn launch(
    options: &Options,
    paths: &Paths,
    program: &Path,
    arguments: &[&OsStr],
) -> Result<bool, LabError> {
    let out = paths.smbd_out();
    let open = || {
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&out)
            .at_path(&out, "cannot be written")
    };
    let mut words = options.enter.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap_or(program.as_os_str()));
    command
        .args(words)
        .arg("-D")
        .arg(format!("--configfile={}", paths.conf().display()))
        .arg(format!("--log-basename={}", paths.log().display()))
        .args(arguments)
        // Accounts are this Samba's own: it must not query a winbindd of the system (libwbclient).
        .env("_NO_WINBINDD", "1")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(open()?)
        .stderr(open()?);
    let status = match &options.line {
        // A process inherits the namespace of the thread that starts it.
        Some(line) => netns::inside(&line.server(), || command.status())?,
        None => command.status(),
    };
    Ok(status.at_path(program, "cannot be run")?.success())
}

fn wait_for_smbd(paths: &Paths, record: &Record) -> Result<Process, LabError> {
    let begin = Instant::now();
    let mut last_seen = begin;
    loop {
        let smbd = pid(paths, "smbd").and_then(|pid| Process::find("smbd", pid));
        if let Some(smbd) = smbd {
            last_seen = Instant::now();
            match listen::listeners(smbd.pid, record.address, record.port) {
                0 => {}
                1 => return Ok(smbd),
                _ => {
                    return Err(LabError::Port {
                        address: record.address,
                        port: record.port,
                        why: "another smbd took the port at the same time: try again".to_owned(),
                    });
                }
            }
        } else if last_seen.elapsed() > GONE / 10 && !process::of_lab(&paths.conf(), &[]).is_empty()
        {
            last_seen = Instant::now();
        }
        if last_seen.elapsed() > GONE {
            return Err(died(paths, "smbd exited while it was starting"));
        }
        if begin.elapsed() > START_TIMEOUT {
            return Err(died(paths, &format!("smbd does not listen on port {}", record.port)));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the helper is ready for the first pipe. A lab without it lacks only lists of shares.
fn wait_for_helper(paths: &Paths) -> Option<Process> {
    let begin = Instant::now();
    let ready = paths.dir.join("ncalrpc/np/srvsvc");
    while begin.elapsed() < START_TIMEOUT / 3 {
        let found = pid(paths, HELPER);
        if ready.exists()
            && let Some(helper) = found.and_then(|pid| Process::find(HELPER, pid))
        {
            return Some(helper);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

fn pid(paths: &Paths, program: &str) -> Option<i32> {
    fs::read_to_string(paths.pid_file(program)).ok()?.trim().parse().ok().filter(|pid| *pid > 0)
}

/// An error with the last informative lines of the log.
pub(super) fn died(paths: &Paths, what: &str) -> LabError {
    let said = said(paths);
    let lines: Vec<&str> = said.lines().filter(|line| is_informative(line)).collect();
    let last = lines.len().saturating_sub(LOG_LINES);
    LabError::Start { what: what.to_owned(), log: lines[last..].join("\n") }
}

/// Samba puts a line with time and source in front of each message, and its name into each start.
fn is_informative(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('[') && !line.contains("Copyright Andrew Tridgell")
}

/// The last lines of smbd's log, or of its output before it had one.
fn said(paths: &Paths) -> String {
    [paths.smbd_out(), paths.smbd_log()].iter().map(|path| tail(path)).collect()
}

fn tail(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = fs::File::open(path) {
        // A shorter file is read from its start.
        let _ = file.seek(SeekFrom::End(-LOG_BYTES)).or_else(|_| file.rewind().map(|()| 0));
        let _ = file.take(LOG_BYTES.unsigned_abs()).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_last_informative_lines() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::new(folder.path()).unwrap();
        paths.make_folders().unwrap();
        let mut text = String::from("  Copyright Andrew Tridgell and the Samba Team 1992-2025\n");
        for number in 0..40 {
            text += &format!("[2026/11/22 02:44:00, 0] server.c:1\n  message {number}\n");
        }
        fs::write(paths.smbd_log(), text).unwrap();
        let error = died(&paths, "smbd ended").to_string();
        assert!(error.contains("\n  message 39") && error.contains("message 28"), "{error}");
        assert!(!error.contains("message 27") && !error.contains("server.c"), "{error}");
    }

    #[test]
    fn a_long_log_is_read_at_its_end_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "x".repeat(200_000) + "end").unwrap();
        let text = tail(&path);
        assert!(text.ends_with("end") && text.len() == 65_536);
        assert_eq!(tail(Path::new("/nowhere")), "");
    }
}

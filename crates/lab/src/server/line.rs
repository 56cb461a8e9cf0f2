//! A simulated link in front of a lab's server: namespaces and a forwarder in the background, both
//! removed with the lab.
//!
//! The forwarder is a separate process, given by the caller (`smbscope wan`, or a test's own program):
//! it is started inside NAME-line and identified like smbd, by its id and start time. `wan` owns the
//! link model and the namespaces.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use super::error::{AtPath as _, LabError};
use super::listen;
use super::options::{Line, Options};
use super::paths::Paths;
use super::process::{self, Process};
use super::record::{LineRecord, Record};
use crate::wan;
use crate::wan::netns::{self, Netns, Setup, Subnet};

/// Default prefix of the namespaces' names.
pub const NAMESPACES: &str = "smbscope-lab";
/// Port of the server: a separate namespace has its own ports.
pub(super) const PORT: u16 = 445;
/// Its name in the record.
const FORWARDER: &str = "wan";
const MTU: u32 = 1500;
/// Time for one attempt to reach smbd over the link.
const ATTEMPT: Duration = Duration::from_secs(5);

impl LineRecord {
    /// Whether the link's forwarder is among these processes.
    pub(super) fn runs(&self, running: &[Process], record: &Record) -> bool {
        let forwarder = record.processes.iter().find(|process| process.name == FORWARDER);
        forwarder.is_some_and(|it| running.iter().any(|other| it.is_same(other)))
    }
}

/// The options of a lab with a link: the server's address is the link's far end.
pub(super) fn place(options: &Options) -> Result<Options, LabError> {
    let mut options = options.clone();
    let Some(line) = &options.line else { return Ok(options) };
    if !geteuid().is_root() {
        return Err(LabError::Option(
            "a lab behind a WAN link (--wan) needs root to create network namespaces: run the same \
             command with sudo"
                .to_owned(),
        ));
    }
    line.options.check().map_err(wan::Error::from)?;
    if netns::exist(&line.name)? {
        let name = &line.name;
        return Err(LabError::Option(format!(
            "network namespaces {name}-... already exist. If `smbscope lab status` shows a \
             lab that uses them, choose other names with --netns; if a killed lab left them behind, \
             remove them with `smbscope wan --netns {name} --remove`"
        )));
    }
    options.address = Subnet::default().server().into();
    Ok(options)
}

/// Creates the namespaces and starts the forwarder, and writes both to the record before and after.
pub(super) fn start(line: &Line, paths: &Paths, record: &mut Record) -> Result<(), LabError> {
    let name = line.name.clone();
    record.line = Some(LineRecord { options: line.options.to_string(), name: name.clone() });
    record.write(paths)?;
    let made = Netns::up(Setup { name, subnet: Subnet::default(), mtu: MTU });
    let namespaces = made.inspect_err(|_| {
        // It has undone its own work; an existing namespace belongs to another program.
        record.line = None;
    })?;
    let out = paths.wan_out();
    let open = || fs::File::create(&out).at_path(&out, "cannot be written");
    let (stdout, stderr) = (open()?, open()?);
    let mut words = line.forwarder.iter();
    let program = words.next().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(words).current_dir("/").stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    // Ctrl-C on the terminal must not end it: it continues when `lab up` is done.
    command.process_group(0);
    // A process inherits the namespace of the thread that starts it.
    let spawned = netns::inside(&namespaces.line(), || command.spawn())?;
    let child = spawned.at_path(program.as_ref(), "cannot be run")?;
    let found = Process::find(FORWARDER, child.id().cast_signed());
    record.processes.push(found.ok_or_else(|| died(paths))?);
    record.write(paths)?;
    namespaces.keep();
    Ok(())
}

/// Waits until smbd answers over the link.
pub(super) fn answers(
    line: &LineRecord,
    paths: &Paths,
    record: &Record,
    timeout: Duration,
) -> Result<(), LabError> {
    let address = SocketAddr::new(record.address, record.port);
    let begin = Instant::now();
    loop {
        if !line.runs(&record.running(paths), record) {
            return Err(died(paths));
        }
        let answered = netns::inside(&line.client(), || listen::answers(address, ATTEMPT))?;
        let Err(error) = answered else { return Ok(()) };
        if begin.elapsed() > timeout {
            let what = format!("smbd does not answer over the link ({error})");
            return Err(LabError::Start { what, log: said(paths) });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Removes the namespaces after the lab's processes have ended; returns other processes that still run in them.
pub(super) fn remove(record: &Record) -> Result<Vec<u32>, LabError> {
    let Some(line) = &record.line else { return Ok(Vec::new()) };
    // Namespaces do not survive a reboot.
    if record.boot_id != process::boot_id() || !netns::exist(&line.name)? {
        return Ok(Vec::new());
    }
    Ok(netns::remove(&line.name)?)
}

fn died(paths: &Paths) -> LabError {
    LabError::Start { what: "the link's forwarder ended".to_owned(), log: said(paths) }
}

fn said(paths: &Paths) -> String {
    fs::read_to_string(paths.wan_out()).unwrap_or_default().trim().to_owned()
}

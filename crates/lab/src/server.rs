//! A private Samba on a loopback port, for experiments: `smbscope lab`, and the server of the tests.
//!
//! Owns: the lab's folder with configuration, state, accounts and share; smbd's start and end; the link
//! in front of it, if one is requested (`line`, on `wan`). It does not own the clients of the server,
//! nor Samba itself: it uses the system's Samba or one that was unpacked next to it
//! (`scripts/samba-4.22.sh`), and reads, writes and stops nothing of the system's Samba. Works as root
//! (the users then have another system user's rights) and as an ordinary user (they have that user's).
//! Sources: smb.conf(5), smbd(8), and the observed behaviour of Samba 4.17 and 4.22.
//!
//! ```no_run
//! use smbscope_lab::{Lab, Options};
//!
//! let lab = Lab::up(&Options { users: 16, ..Options::default() })?.guard();
//! println!("{} as {} with {}", lab.location(), lab.user(1), lab.password()?);
//! // Dropping the guard removes the lab.
//! # Ok::<(), smbscope_lab::LabError>(())
//! ```

mod accounts;
mod conf;
mod error;
mod line;
mod listen;
mod options;
mod paths;
mod process;
mod record;
mod samba;
mod start;

use std::fs;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};

pub use accounts::{USER_PATTERN, user_name};
pub use conf::parse_setting;
pub use error::LabError;
pub use line::NAMESPACES;
pub use options::{
    Cipher, Dialect, Encryption, Line, Options, Signing, SigningAlgorithm, USERS_MAX,
};
pub use paths::default_dir;
pub use process::Process;
pub use record::{LineRecord, Record};

use conf::Accounts;
use error::AtPath as _;
use paths::Paths;
use samba::Samba;

/// The file of logons, in the folder that smbd keeps its state in.
const LOGONS: &str = "state/smbscope-logons";

/// Candidates for the guest account: the first that exists and is not the owner. Every Linux has these.
const GUESTS: [&str; 3] = ["nobody", "daemon", "bin"];

/// Starts, lists and ends labs.
pub struct Lab;

impl Lab {
    /// Starts a lab and waits until it answers. After an error nothing of it remains.
    pub fn up(options: &Options) -> Result<Running, LabError> {
        let options = &line::place(options)?;
        let dir = options.dir.clone().unwrap_or_else(default_dir);
        let paths = Paths::new(&dir)?;
        let samba = Samba::find(options.samba.as_deref())?;
        options.check(samba.release)?;
        let (accounts, owner) = accounts_of(options)?;
        if owner.uid != geteuid() {
            paths::check_passable(&paths.dir, &owner)?;
        }
        refuse_second(&paths)?;
        let port = match options.port {
            Some(port) if options.enter.is_empty() && options.line.is_none() => {
                listen::check(options.address, port)?;
                port
            }
            Some(port) => port,
            None if options.line.is_some() => line::PORT,
            None => listen::free(options.address)?,
        };
        match attempt(options, &paths, &samba, &accounts, &owner, port) {
            // Another process took the port; the second attempt lets the kernel choose.
            Err(LabError::Port { .. }) if options.port.is_none() && options.line.is_none() => {
                let port = listen::any(options.address)?;
                attempt(options, &paths, &samba, &accounts, &owner, port)
            }
            result => result,
        }
    }

    /// Ends the lab in a folder and removes what it created: its processes, its files, the files in its
    /// share, and the folder if it created that. Other files stay.
    pub fn down(dir: &Path) -> Result<Removed, LabError> {
        let paths = Paths::new(dir)?;
        if fs::symlink_metadata(&paths.dir).is_err() {
            return Err(LabError::NotALab { dir: paths.dir });
        }
        paths.check_ours()?;
        let record = Record::read(&paths)?;
        remove(&paths, &record)
    }

    /// The labs of all users whose folders this user may read: those whose smbd runs, and the one
    /// in `dir` even if it does not.
    pub fn list(dir: &Path) -> Vec<Status> {
        let mut folders: Vec<PathBuf> = process::configurations()
            .into_iter()
            .filter(|conf| conf.file_name().is_some_and(|name| name == "smb.conf"))
            .filter_map(|conf| conf.parent().map(Path::to_owned))
            .collect();
        folders.extend(Paths::new(dir).ok().map(|paths| paths.dir));
        folders.sort();
        folders.dedup();
        folders.iter().filter_map(|folder| Lab::status(folder).ok()).collect()
    }

    /// The lab in one folder.
    pub fn status(dir: &Path) -> Result<Status, LabError> {
        let paths = Paths::new(dir)?;
        let record = Record::read(&paths)?;
        let running = record.running(&paths);
        let smbd = record.processes.iter().find(|started| started.name == "smbd");
        let state = match smbd {
            Some(smbd) if running.iter().any(|it| it.is_same(smbd)) => State::Running,
            None if !running.is_empty() => State::Starting,
            _ => State::Dead,
        };
        let connections = match smbd {
            Some(smbd) if state == State::Running => {
                listen::connections(smbd.pid, record.address, record.port)
            }
            _ => 0,
        };
        let line_runs = record.line.as_ref().map(|line| line.runs(&running, &record));
        Ok(Status { record, state, processes: running.len(), connections, line_runs })
    }

    /// Where load runs note the logons of users, whom the server knows as one: session id and name, a line each.
    pub fn logons(dir: &Path) -> PathBuf {
        dir.join(LOGONS)
    }

    /// The users' password in the lab of a folder.
    pub fn password(dir: &Path) -> Result<String, LabError> {
        let paths = Paths::new(dir)?;
        let record = Record::read(&paths)?;
        Running { record }.password()
    }

    /// smb.conf of the lab in a folder.
    pub fn configuration(dir: &Path) -> Result<String, LabError> {
        let paths = Paths::new(dir)?;
        Record::read(&paths)?;
        fs::read_to_string(paths.conf()).at_path(&paths.conf(), "cannot be read")
    }
}

/// A running lab, which continues when this is dropped ([`Running::guard`] ends it).
#[derive(Clone, Debug)]
pub struct Running {
    record: Record,
}

impl Running {
    /// The users' password.
    pub fn password(&self) -> Result<String, LabError> {
        let path = self.password_file();
        let text = fs::read_to_string(&path).at_path(&path, "cannot be read")?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// The file that holds the password, and nothing else.
    pub fn password_file(&self) -> PathBuf {
        self.paths().password()
    }

    /// The file with the first user's name and the password that `smbclient -A` reads.
    pub fn credentials_file(&self) -> PathBuf {
        self.paths().credentials()
    }

    /// smbd's log.
    pub fn log_file(&self) -> PathBuf {
        self.paths().smbd_log()
    }

    /// The error of a lab that runs and is of no use, with the last lines of its log.
    pub fn useless(&self, what: &str) -> LabError {
        start::died(&self.paths(), what)
    }

    /// The share's folder on this machine.
    pub fn share_dir(&self) -> PathBuf {
        self.paths().share()
    }

    /// Free bytes in the share's file system.
    pub fn free_bytes(&self) -> Result<u64, LabError> {
        let path = self.share_dir();
        let found = nix::sys::statvfs::statvfs(&path).map_err(io::Error::from);
        let found = found.at_path(&path, "cannot be looked at")?;
        Ok(found.blocks_available().saturating_mul(found.fragment_size()))
    }

    /// Ends the lab when the guard is dropped.
    pub fn guard(self) -> Guard {
        Guard(self)
    }

    fn paths(&self) -> Paths {
        Paths { dir: self.record.dir.clone() }
    }
}

impl Deref for Running {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

/// A lab that ends when this is dropped.
#[derive(Debug)]
pub struct Guard(Running);

impl Deref for Guard {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.0
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A test that ended the lab itself leaves nothing to end.
        let _ = Lab::down(&self.0.record.dir);
    }
}

/// Whether a lab is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// smbd runs.
    Running,
    /// It is being started, or the process that started it was killed.
    Starting,
    /// smbd is gone; the files are left, and `down` removes them.
    Dead,
}

/// A lab that was found.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its record.
    pub record: Record,
    /// Whether it is running.
    pub state: State,
    /// Number of its processes.
    pub processes: usize,
    /// TCP connections of clients.
    pub connections: usize,
    /// Whether its link's forwarder is running; `None` for a lab without a link.
    pub line_runs: Option<bool>,
}

/// The result of `down`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The lab's folder.
    pub dir: PathBuf,
    /// Number of processes that were ended.
    pub processes: usize,
    /// Whether the folder is gone too.
    pub dir_removed: bool,
    /// Files from other sources in the folder, because of which it stayed.
    pub left: Vec<PathBuf>,
    /// Other processes that are still running in the link's namespaces, now without network.
    pub inside: Vec<u32>,
}

/// Creates the folder, starts Samba in it, and undoes everything if that fails.
fn attempt(
    options: &Options,
    paths: &Paths,
    samba: &Samba,
    accounts: &Accounts,
    owner: &User,
    port: u16,
) -> Result<Running, LabError> {
    let made_dir = paths.make(owner.uid != geteuid())?;
    let mut record = Record {
        samba: samba.version.clone(),
        smbd: samba.smbd.clone(),
        address: options.address,
        port,
        share: options.share.clone(),
        users: options.users,
        owner: owner.name.clone(),
        settings: conf::summary(options),
        ..Record::new(paths, made_dir)
    };
    let result = record
        .write(paths)
        .and_then(|()| furnish(options, paths, samba, accounts, owner, port))
        .and_then(|()| start::start(options, samba, paths, &mut record))
        .and_then(|()| record.write(paths));
    match result {
        Ok(()) => Ok(Running { record }),
        Err(error) => {
            // The first error is the one that the user needs.
            let _ = remove(paths, &record);
            Err(error)
        }
    }
}

/// Writes all files that smbd needs before it starts.
fn furnish(
    options: &Options,
    paths: &Paths,
    samba: &Samba,
    accounts: &Accounts,
    owner: &User,
    port: u16,
) -> Result<(), LabError> {
    paths.make_folders()?;
    let password = match &options.password {
        Some(password) => password.clone(),
        None => accounts::random_password().at_path(&paths.dir, "no random password")?,
    };
    let conf = conf::text(options, paths, port, accounts, samba.wants_helpers());
    let uid = owner.uid.as_raw();
    let smbpasswd = accounts::smbpasswd(&accounts.owner, uid, &password);
    let tickets = options.set.iter().any(|(name, _)| name.eq_ignore_ascii_case("realm"));
    for (path, text) in [
        (paths.conf(), conf),
        (paths.users_map(), accounts::username_map(&accounts.owner, options.users, tickets)),
        (paths.dir.join("private/smbpasswd"), smbpasswd),
        (paths.credentials(), accounts::credentials(&password)),
        (paths.password(), password + "\n"),
    ] {
        paths.write(&path, &text, false)?;
    }
    let share = paths.share();
    if owner.uid != geteuid() {
        std::os::unix::fs::chown(&share, Some(uid), Some(owner.gid.as_raw()))
            .at_path(&share, "cannot be given to the users' system user")?;
    }
    Ok(())
}

/// Ends the processes, then removes the link and the files; if processes remain, these stay.
fn remove(paths: &Paths, record: &Record) -> Result<Removed, LabError> {
    let processes = process::end(|| record.running(paths))
        .map_err(|pid| LabError::Stuck { dir: paths.dir.clone(), pid })?;
    let inside = line::remove(record)?;
    for name in paths::MADE.into_iter().chain(["lab.json.part"]) {
        let path = paths.dir.join(name);
        // A symbolic link among them is removed, not followed.
        let result = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
            Err(_) => continue,
        };
        match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).at_path(&path, "cannot be removed");
            }
            _ => {}
        }
    }
    let dir_removed = record.made_dir && fs::remove_dir(&paths.dir).is_ok();
    let left = match fs::read_dir(&paths.dir) {
        Ok(entries) if !dir_removed => entries.flatten().map(|entry| entry.path()).collect(),
        _ => Vec::new(),
    };
    Ok(Removed { dir: paths.dir.clone(), processes, dir_removed, left, inside })
}

/// Checks that there is no lab in the folder already.
fn refuse_second(paths: &Paths) -> Result<(), LabError> {
    let Ok(status) = Lab::status(&paths.dir) else { return Ok(()) };
    let dir = paths.dir.display();
    let why = match status.state {
        State::Running => format!(
            "a lab runs here already, at {}: end it with `smbscope lab down --dir {dir}`, or start \
             another with --dir",
            status.record.location()
        ),
        State::Starting => "a lab is just being started here".to_owned(),
        State::Dead => format!(
            "the files of a lab whose smbd is gone are here: remove them with `smbscope lab down \
             --dir {dir}`"
        ),
    };
    Err(LabError::folder(&paths.dir, why))
}

/// The system users of a lab: the one whose rights the users get, and the guest.
fn accounts_of(options: &Options) -> Result<(Accounts, User), LabError> {
    let me = geteuid();
    let wrong = |text: String| LabError::Option(text);
    let by_name = |name: &str| User::from_name(name).ok().flatten();
    let owner = match &options.owner {
        Some(name) => {
            by_name(name).filter(|user| me.is_root() || user.uid == me).ok_or_else(|| {
                wrong(match by_name(name) {
                    Some(_) => format!("only root can give the lab's users the rights of {name}"),
                    None => format!("the system user {name} does not exist"),
                })
            })?
        }
        None if me.is_root() => GUESTS.iter().find_map(|name| by_name(name)).ok_or_else(|| {
            wrong("the system user nobody does not exist: name another with --owner".to_owned())
        })?,
        None => User::from_uid(Uid::effective()).ok().flatten().ok_or_else(|| {
            wrong(format!("user id {me} has no name on this system, but Samba needs one"))
        })?,
    };
    let guest = GUESTS.iter().find(|name| **name != owner.name && by_name(name).is_some());
    let guest = guest.ok_or_else(|| wrong("no system user is available for guests".to_owned()))?;
    Ok((Accounts { owner: owner.name.clone(), guest: (*guest).to_owned() }, owner))
}

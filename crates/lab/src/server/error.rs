//! Errors of a lab, worded so that its user knows what to do next.
//!
//! Owns only the errors; the other files return them.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Why a lab did not start, was not found or did not end. The text names the problem, its place, and a
/// remedy.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no smbd at the expected place.
    #[error(
        "smbd was not found {place}: install Samba (Debian, Ubuntu: apt-get install samba; Fedora: dnf \
         install samba), or name the folder that contains it with --samba"
    )]
    NoSmbd {
        /// "in PATH or in /usr/sbin", or "at /some/path".
        place: String,
    },
    /// The program is not a usable Samba.
    #[error("{}: {why}", path.display())]
    NotSamba {
        /// The program.
        path: PathBuf,
        /// What it did instead of printing its version.
        why: String,
    },
    /// An option is invalid, or not possible here; the text is complete.
    #[error("{0}")]
    Option(String),
    /// The lab's folder cannot be used.
    #[error("{}: {why}", dir.display())]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// The reason, and a remedy.
        why: String,
    },
    /// Another program listens on the port, or this user may not listen on it.
    #[error("port {port} of {address}: {why}")]
    Port {
        /// The address on which smbd was to listen.
        address: IpAddr,
        /// The port.
        port: u16,
        /// The reason, and a remedy.
        why: String,
    },
    /// smbd exited while it was starting, or never answered.
    #[error("{what}; last log lines:{}", indented(log))]
    Start {
        /// What happened.
        what: String,
        /// The last lines of its log.
        log: String,
    },
    /// There is no lab in the folder.
    #[error(
        "{}: no lab is here; `smbscope lab status` lists those that run, --dir names another \
         folder",
        dir.display()
    )]
    NotALab {
        /// The folder.
        dir: PathBuf,
    },
    /// Processes that neither SIGTERM nor SIGKILL ended.
    #[error("{}: process {pid} of this lab does not exit; nothing was removed", dir.display())]
    Stuck {
        /// The folder.
        dir: PathBuf,
        /// The id of one of them.
        pid: i32,
    },
    /// The link in front of the lab cannot be created or removed.
    #[error(transparent)]
    Line(#[from] crate::wan::Error),
    /// The operating system refused something.
    #[error("{}: {what}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The attempt, as in "cannot be written".
        what: &'static str,
        /// The system's answer.
        error: io::Error,
    },
}

impl LabError {
    /// Whether the options are wrong, and not the machine.
    pub fn is_usage(&self) -> bool {
        use crate::wan::Error;
        matches!(self, LabError::Option(_) | LabError::Line(Error::Options(_) | Error::Name(_)))
    }

    /// Whether the lab's folder is the problem.
    pub fn is_folder(&self) -> bool {
        matches!(self, LabError::Folder { .. } | LabError::NotALab { .. })
    }

    pub(super) fn folder(dir: &Path, why: impl Into<String>) -> LabError {
        LabError::Folder { dir: dir.to_owned(), why: why.into() }
    }
}

/// Converts errors of the operating system to [`LabError::Io`].
pub(super) trait AtPath<T> {
    /// Adds the path and the attempt.
    fn at_path(self, path: &Path, what: &'static str) -> Result<T, LabError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at_path(self, path: &Path, what: &'static str) -> Result<T, LabError> {
        self.map_err(|error| LabError::Io { path: path.to_owned(), what, error })
    }
}

fn indented(log: &str) -> String {
    if log.is_empty() {
        return " nothing".to_owned();
    }
    log.lines().map(|line| format!("\n  {}", line.trim())).collect()
}

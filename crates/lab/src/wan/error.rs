//! Errors of a link on a real machine, and their remedies.

use std::io;

use thiserror::Error;

use super::options::OptionsError;

/// Why a link cannot be created or stopped working.
#[derive(Debug, Error)]
pub enum Error {
    /// The description of the link is invalid.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Not permitted.
    #[error("{what} needs {rights}: run the same command as root (with sudo)")]
    Rights {
        /// The attempt.
        what: String,
        /// The capabilities that it needs.
        rights: &'static str,
    },
    /// There is no interface of this name.
    #[error("{name}: no such network interface{place}; there are: {others}")]
    NoInterface {
        /// The given name.
        name: String,
        /// Where it was searched; begins with a space, or is empty.
        place: String,
        /// The interfaces that exist.
        others: String,
    },
    /// Both ends are the same interface.
    #[error("{0}: both ends of the link are the same interface: name two different ones")]
    SameInterface(String),
    /// An interface disappeared while frames were forwarded.
    #[error("{0}: the interface was removed while frames were forwarded")]
    Gone(String),
    /// The system refused something.
    #[error("{what}: {error}")]
    Io {
        /// The attempt and its object.
        what: String,
        /// The system's answer.
        error: io::Error,
    },
    /// A namespace of that name exists already.
    #[error(
        "network namespace {0} exists already; if an earlier run left it behind, remove it with `smbscope wan --netns {1} --remove`, or choose another name"
    )]
    Exists(String, String),
    /// There is no namespace of that name.
    #[error(
        "there are no network namespaces {0}-client, {0}-server, {0}-line; `ip netns list` shows the existing ones"
    )]
    NoNamespace(String),
    /// The name cannot be used.
    #[error(
        "invalid namespace name `{0}`: use up to 48 letters, digits, - and _, beginning with a letter or digit"
    )]
    Name(String),
    /// The subnet cannot be used.
    #[error(
        "invalid subnet `{0}`: expected room for two addresses, for example 10.45.0.0/24 (prefix 8 to 30)"
    )]
    Subnet(String),
    /// A program failed.
    #[error("`{command}` failed: {answer}")]
    Command {
        /// The command line.
        command: String,
        /// Its output.
        answer: String,
    },
    /// A program is missing.
    #[error("the program `ip` was not found; install iproute2")]
    NoIp,
}

impl Error {
    /// An error of the system; for missing rights it lists which ones are missing.
    pub(super) fn io(what: impl Into<String>, error: io::Error, rights: &'static str) -> Error {
        let what = what.into();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Rights { what, rights },
            _ => Error::Io { what, error },
        }
    }
}

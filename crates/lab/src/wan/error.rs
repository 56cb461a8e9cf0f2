//! What can go wrong with a line on a real machine, and what to do about it.

use std::io;

use thiserror::Error;

use super::options::OptionsError;

/// Why a link cannot be created or stopped working.
#[derive(Debug, Error)]
pub enum Error {
    /// The description of the line is wrong.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Not allowed to.
    #[error("{what} needs {rights}: run it as root (sudo smbscope wan ...)")]
    Rights {
        /// What was tried.
        what: String,
        /// The capabilities that it needs.
        rights: &'static str,
    },
    /// There is no interface of this name.
    #[error("{name}: no such network interface{place}; there are: {others}")]
    NoInterface {
        /// The name that was given.
        name: String,
        /// Where it was looked for; begins with a space, or is empty.
        place: String,
        /// The interfaces that exist.
        others: String,
    },
    /// Both ends are one interface.
    #[error("{0}: both ends of the link are the same interface: name two different ones")]
    SameInterface(String),
    /// An interface went away while frames were forwarded.
    #[error("{0}: the interface was removed while frames were forwarded")]
    Gone(String),
    /// The system refused something.
    #[error("{what}: {error}")]
    Io {
        /// What was tried, and on what.
        what: String,
        /// Its answer.
        error: io::Error,
    },
    /// A namespace of that name is there already.
    #[error(
        "network namespace {0} exists already; if an earlier run left it behind, remove it with `smbscope wan --netns {1} --remove`, or choose another name"
    )]
    Exists(String, String),
    /// There is no namespace of that name.
    #[error(
        "there are no network namespaces {0}-client, {0}-server, {0}-line; `ip netns list` shows the existing ones"
    )]
    NoNamespace(String),
    /// A name that cannot be used.
    #[error(
        "invalid namespace name `{0}`: use up to 48 letters, digits, - and _, beginning with a letter or digit"
    )]
    Name(String),
    /// A subnet that cannot be used.
    #[error(
        "invalid subnet `{0}`: expected room for two addresses, for example 10.45.0.0/24 (prefix 8 to 30)"
    )]
    Subnet(String),
    /// A program did not do what was wanted.
    #[error("`{command}` failed: {answer}")]
    Command {
        /// The command line.
        command: String,
        /// What it said.
        answer: String,
    },
    /// A program is missing.
    #[error("the program `ip` was not found; install iproute2")]
    NoIp,
}

impl Error {
    /// An error of the system; refused rights say which ones are missing.
    pub(super) fn io(what: impl Into<String>, error: io::Error, rights: &'static str) -> Error {
        let what = what.into();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Rights { what, rights },
            _ => Error::Io { what, error },
        }
    }
}

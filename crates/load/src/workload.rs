//! Workloads as data: what users do, how often, with which files.
//!
//! Owns the language (TOML, described in `docs/method/workloads.md`), the built-in workloads, and the
//! planning of executions. All of it is pure: no network, no clock, and no file except the one that
//! [`Workload::load`] reads. The client sends what is planned.

mod building;
mod change;
mod check;
mod count;
mod error;
mod migration;
mod model;
mod notation;
mod parse;
mod parse_request;
mod plan;
mod schedule;
mod table;
mod template;
mod words;

use std::io::Read as _;
use std::path::Path;
use std::string::FromUtf8Error;

pub use change::{BadChange, Overrides};
pub use count::{ClientCache, Counts, Expectation, counts};
pub use error::WorkloadError;
pub use migration::{Direction, Migration, MigrationChanges, STREAMS_MAX, Stream};
pub use model::{
    ChangeNotify, Create, Expect, Ioctl, Length, Lock, LockKind, NotifySlot, Op, Pacing, PathId,
    Pick, PickHow, QueryDirectory, QueryInfo, Request, Scenario, SetInfo, Slot, Step, Times,
    Transfer, Workload,
};
pub use plan::{Amount, Plan, Planner, UserPlans};
pub use template::{PickId, Template};
pub use words::{format_bytes, parse_bytes};

/// A longer file is not a workload, but a device, or a capture by mistake.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Name and text of the built-in workloads.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("homefolder", include_str!("../workloads/homefolder.toml")),
    ("bulk-copy", include_str!("../workloads/bulk-copy.toml")),
    ("metadata", include_str!("../workloads/metadata.toml")),
];

/// Likewise of those that move bulk data.
pub const MIGRATIONS: [(&str, &str); 1] = [("migrate", include_str!("../workloads/migrate.toml"))];

/// Why a workload cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no built-in of that name.
    #[error(
        "no built-in workload `{0}`: use homefolder, bulk-copy, metadata, migrate, or the path of a file"
    )]
    Unknown(String),
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The file has an error.
    #[error(transparent)]
    Wrong(#[from] WorkloadError),
}

impl Workload {
    /// Reads a workload from TOML. `file` appears in error messages, `name` becomes its name.
    pub fn parse(file: &str, name: &str, toml: &str) -> Result<Workload, WorkloadError> {
        parse::parse(file, name, toml)
    }

    /// A built-in workload.
    pub fn built_in(name: &str) -> Result<Workload, LoadError> {
        let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) else {
            return Err(LoadError::Unknown(name.into()));
        };
        Ok(Workload::parse(name, name, text)?)
    }

    /// A workload from a file, and the file's text, because a pipe can be read only once.
    pub fn load(path: &Path) -> Result<(Workload, String), LoadError> {
        let shown = path.display().to_string();
        let failed = |source| LoadError::Io { path: shown.clone(), source };
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(failed(std::io::Error::other("a workload is a text of at most 4 MiB")));
        }
        let text = String::from_utf8(bytes).map_err(|error| not_utf8(&shown, error))?;
        let name =
            path.file_stem().map_or(shown.clone(), |stem| stem.to_string_lossy().into_owned());
        let workload = Workload::parse(&shown, &name, &text)?;
        Ok((workload, text))
    }
}

/// Where a file is no longer valid text.
fn not_utf8(file: &str, error: FromUtf8Error) -> WorkloadError {
    let at = error.utf8_error().valid_up_to();
    let byte = error.as_bytes().get(at).copied().unwrap_or_default();
    let text = String::from_utf8_lossy(error.as_bytes());
    let message = format!("byte 0x{byte:02x} is not valid UTF-8");
    error::Source { file, text: &text }
        .error(at..at + 1, message)
        .help("write the file as UTF-8, which TOML is")
}

#[cfg(test)]
mod tests;

//! What a caller chooses: inputs, tables, columns, keys and limits; and what can go wrong.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use smbscope_wire::crypto::KeyEntry;
use smbscope_wire::secrets::Secrets;

use crate::file::FileError;
use crate::limits::Limits;

/// Which tables to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Operations.
    pub operations: bool,
    /// Connections.
    pub connections: bool,
    /// Sessions.
    pub sessions: bool,
    /// Trees.
    pub trees: bool,
    /// Handles.
    pub handles: bool,
    /// DFS referrals.
    pub referrals: bool,
    /// What channels carried in each interval.
    pub channels: bool,
    /// Interfaces that servers offered.
    pub interfaces: bool,
    /// What clients waited for before SMB and apart from it.
    pub waits: bool,
}

impl Tables {
    /// All tables.
    pub const ALL: Tables = Tables {
        operations: true,
        connections: true,
        sessions: true,
        trees: true,
        handles: true,
        referrals: true,
        channels: true,
        interfaces: true,
        waits: true,
    };
    /// No table except the coverage, which is always built.
    pub const NONE: Tables = Tables {
        operations: false,
        connections: false,
        sessions: false,
        trees: false,
        handles: false,
        referrals: false,
        channels: false,
        interfaces: false,
        waits: false,
    };
}

/// How to decode.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decryption keys.
    pub keys: Vec<KeyEntry>,
    /// Secrets of accounts and services, from which the keys of logons are computed.
    pub secrets: Arc<Secrets>,
    /// Threads that follow connections; 0 uses all CPUs.
    pub threads: usize,
    /// Columns of the operations table to fill, as indexes into its schema; none for all.
    pub projection: Option<Vec<usize>>,
    /// Wanted tables.
    pub tables: Tables,
    /// Rows of an operations batch.
    pub batch_rows: usize,
    /// Limits on memory.
    pub limits: Limits,
    /// Addresses of the machine that records, if known. A connection whose server has one of these
    /// addresses was captured at the server.
    pub host: Vec<IpAddr>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            keys: Vec::new(),
            secrets: Arc::default(),
            threads: 0,
            projection: None,
            tables: Tables::ALL,
            batch_rows: 8_192,
            limits: Limits::default(),
            host: Vec::new(),
        }
    }
}

/// Where a capture comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// The name in the `recording` column: the file name without its folder.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "-".to_owned(),
            Input::Path(path) => match path.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => path.display().to_string(),
            },
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Input::Stdin => PathBuf::from("-"),
            Input::Path(path) => path.clone(),
        }
    }
}

/// Why decoding stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A batch could not be built.
    #[error("cannot build a batch of rows: {0}")]
    Batch(#[from] arrow::error::ArrowError),
    /// A decoding thread panicked.
    #[error("a decoding thread stopped unexpectedly; this is a bug in smbscope, please report it")]
    Thread,
}

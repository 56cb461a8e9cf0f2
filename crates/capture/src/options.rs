//! What a caller chooses: inputs, tables, columns, keys and limits; and what can go wrong.

use std::net::IpAddr;
use std::path::PathBuf;

use smbscope_wire::crypto::KeyEntry;

use crate::file::FileError;
use crate::limits::Limits;

/// Which tables are wanted; what is not wanted is not built.
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
    };
    /// None but the coverage, which always comes.
    pub const NONE: Tables = Tables {
        operations: false,
        connections: false,
        sessions: false,
        trees: false,
        handles: false,
        referrals: false,
    };
}

/// How to decode.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decryption keys.
    pub keys: Vec<KeyEntry>,
    /// Threads that follow connections; 0 for what the machine has.
    pub threads: usize,
    /// Wanted columns of the operations table, as places in its schema; none for all.
    pub projection: Option<Vec<usize>>,
    /// Wanted tables.
    pub tables: Tables,
    /// Rows of an operations batch.
    pub batch_rows: usize,
    /// Limits of the state that is kept.
    pub limits: Limits,
    /// Addresses of the machine where the packets are seen, where that is known: a connection of
    /// which one is the server was seen at the server.
    pub host: Vec<IpAddr>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            keys: Vec::new(),
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
    /// The name that the `recording` column has: the file's without its folder.
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

/// Why decoding stops.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A batch could not be built.
    #[error("cannot build a batch of rows: {0}")]
    Batch(#[from] arrow::error::ArrowError),
    /// A decoding thread ended without a word.
    #[error(
        "a decoding thread stopped unexpectedly; this is a defect of smbscope, please report it"
    )]
    Thread,
}

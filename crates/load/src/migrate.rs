//! Moves bulk data over the channels of one session, as a live migration or a backup does.
//!
//! Owns the course (open, move, flush, verify, remove), which channels are wanted, and the rows of what happened. How
//! requests are distributed and repeated is `smbscope_client::multichannel`'s, which interfaces are used its
//! `policy`'s. Content comes from `fileset::content`: from memory, not from a disk.

mod blocks;
mod files;
mod join;
mod request;
mod result;
mod run;
mod timeline;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smbscope_client::error::status_text;
use smbscope_client::multichannel::policy::Rules;
use smbscope_client::multichannel::{ChannelState, Choice};
use smbscope_client::{ClientError, Credential, Host};
use smbscope_tables::run::{MEASURED, PREPARING, VERIFYING};
use smbscope_wire::status::Status;
use tokio::sync::watch;

use crate::recorder::Recorder;
use crate::workload::Migration;
pub use run::run;
pub use timeline::Outcome as InterfaceOutcome;

/// Which channels are wanted in addition to the first connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Total number of connections, spread over the addresses of the server's name.
    Count(u16),
    /// Those that the server's list of interfaces offers, by these rules.
    Offered(Rules),
    /// These addresses, with the number of connections to each.
    Listed(Vec<(SocketAddr, u16)>),
}

/// What is moved, and how.
pub struct MigrationPlan {
    /// The share.
    pub host: Arc<Host>,
    /// The account that logs on.
    pub credential: Credential,
    /// The workload.
    pub migration: Migration,
    /// Seed of the contents.
    pub seed: u64,
    /// The channels.
    pub paths: Paths,
    /// How requests are distributed.
    pub choice: Choice,
    /// Whether all data is read and compared.
    pub verify: bool,
    /// Whether the files stay on the share.
    pub keep: bool,
    /// A request or a binding without an answer for this time has failed.
    pub timeout: Duration,
    /// Signals that the run is to end.
    pub interrupted: watch::Receiver<bool>,
    /// Receives the rows.
    pub recorder: Arc<Recorder>,
}

/// Why data could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The session ended.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server refused something.
    #[error("{path}: {what}: {}", status_text(*.status))]
    Refused {
        /// The file or folder.
        path: String,
        /// What the server refused.
        what: &'static str,
        /// Its answer.
        status: Status,
    },
    /// Less was transferred than was requested.
    #[error(
        "{path}: the server transferred {transferred} of {length} bytes at offset {offset}: the file may have been changed by another program"
    )]
    Short {
        /// The file.
        path: String,
        /// Where.
        offset: u64,
        /// Bytes requested.
        length: u32,
        /// Bytes transferred.
        transferred: u32,
    },
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The files that are read are written to the share first.
    Preparing,
    /// Data is moved: this is what is measured.
    Moving,
    /// What was written is read and compared.
    Verifying,
}

impl Phase {
    /// The word in the table `channels`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Phase::Moving => MEASURED,
            other => other.name(),
        }
    }

    /// The phase in a word.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Preparing => PREPARING,
            Phase::Moving => "moving",
            Phase::Verifying => VERIFYING,
        }
    }
}

/// The progress report, about once a second.
#[derive(Clone, Debug)]
pub struct MigrationProgress {
    /// What is being done.
    pub phase: Phase,
    /// Since when.
    pub elapsed: Duration,
    /// Payload bytes that are done, and of how many.
    pub bytes: u64,
    /// See `bytes`.
    pub total: u64,
    /// The channels.
    pub channels: Vec<ChannelState>,
}

/// Receives what happens.
pub trait MigrationObserver {
    /// Something to know now.
    fn say(&mut self, text: &str);
    /// About once a second.
    fn progress(&mut self, progress: &MigrationProgress);
}

/// What was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Bytes that were read and compared.
    pub bytes: u64,
    /// Blocks that differ: the file and the offset of the first ones.
    pub different: Vec<(String, u64)>,
    /// How many differ.
    pub different_blocks: u64,
    /// SHA-256 of the content that each file should have.
    pub sha256: Vec<(String, String)>,
}

/// What a channel did while data was moved.
#[derive(Clone, Debug)]
pub struct ChannelOutcome {
    /// Its state at the end.
    pub state: ChannelState,
    /// Payload bytes while data was moved.
    pub moved_bytes: u64,
    /// Segments that were retransmitted, as far as known.
    pub retransmissions: Option<u64>,
    /// Smoothed round trip at the end of the transfer, ns.
    pub round_trip_ns: Option<i64>,
    /// Why it was lost.
    pub lost: Option<String>,
}

/// The result.
#[derive(Clone, Debug)]
pub struct MigrationOutcome {
    /// Payload bytes that were moved.
    pub bytes: u64,
    /// From the first block to the last answer.
    pub took: Duration,
    /// From then to the answers of the flushes.
    pub flush: Duration,
    /// Begin and end of the transfer on the run's clock.
    pub window: (i64, i64),
    /// CPU time of this process meanwhile, user and kernel.
    pub cpu: Option<(Duration, Duration)>,
    /// The channels.
    pub channels: Vec<ChannelOutcome>,
    /// The server's interfaces; empty if they were not queried.
    pub interfaces: Vec<InterfaceOutcome>,
    /// Why the server's interfaces are not known, if it did not list them.
    pub not_listed: Option<String>,
    /// Channels that were refused: address and reason.
    pub refused: Vec<(SocketAddr, String)>,
    /// Requests that were repeated because their channel was lost.
    pub repeated: u64,
    /// What verification showed.
    pub verified: Option<Verified>,
    /// Why the run ended early.
    pub trouble: Option<String>,
    /// Dialect, signing algorithm if requests were signed, cipher if they were encrypted.
    pub protection: Protection,
}

/// How the session was protected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// The dialect.
    pub dialect: Option<String>,
    /// Whether and how requests were signed.
    pub signing: Option<String>,
    /// Whether and how requests were encrypted.
    pub cipher: Option<String>,
}

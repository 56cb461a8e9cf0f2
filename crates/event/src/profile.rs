//! What a recording is reduced to before anything is predicted from it: what one operation costs
//! the server, and how many of which one execution of a scenario needs.
//!
//! The same shape holds a published model's tables and what one's own recordings say. Times are
//! seconds, as the model's arithmetic is; what was not measured is not there, never zero.

use crate::slice::Kind;

/// A workload on a server over a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What it is called.
    pub name: String,
    /// Where its figures come from, in a sentence.
    pub source: String,
    /// Round trip between client and server, s.
    pub rtt_s: f64,
    /// What operations cost, by command.
    pub commands: Vec<CommandProfile>,
    /// What users do.
    pub scenarios: Vec<ScenarioProfile>,
}

/// What one operation of a command costs.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandProfile {
    /// As in the table of operations.
    pub command: String,
    /// Operations that were measured.
    pub count: u64,
    /// Parts of the time at the server; what was not measured is left out.
    pub parts: Vec<PartProfile>,
    /// What is neither the server's nor the network's distance: the client, and sending the bytes, s.
    pub constant_s: f64,
}

/// One part of an operation's time at the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartProfile {
    /// Which.
    pub kind: Kind,
    /// Mean, s.
    pub mean_s: f64,
    /// Standard deviation, s.
    pub stddev_s: f64,
    /// 95th percentile, s.
    pub p95_s: f64,
}

/// What one execution of a scenario needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioProfile {
    /// Its name.
    pub scenario: String,
    /// How often a user does it, 1/h.
    pub runs_per_hour: f64,
    /// In each of the ways that are known, today's first.
    pub variants: Vec<Variant>,
}

/// A scenario with one option of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Which.
    pub option: CacheOption,
    /// Round trips that it waits for, one after another.
    pub round_trips: f64,
    /// Operations, in the order of [`Profile::commands`].
    pub operations: Vec<f64>,
}

/// How much a client keeps of directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheOption {
    /// SMB 2.1: opens are not shared among applications.
    Smb21,
    /// Opens that reach the client's own cache of ten seconds are collapsed into one.
    DirCache,
    /// Directory leases: the cache is coherent and lasts.
    DirLease,
}

impl CacheOption {
    /// All, from the least.
    pub const ALL: [CacheOption; 3] =
        [CacheOption::Smb21, CacheOption::DirCache, CacheOption::DirLease];

    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            CacheOption::Smb21 => "smb21",
            CacheOption::DirCache => "dircache",
            CacheOption::DirLease => "dirlease",
        }
    }

    /// The words for people.
    pub fn title(self) -> &'static str {
        match self {
            CacheOption::Smb21 => "SMB 2.1",
            CacheOption::DirCache => "directory cache",
            CacheOption::DirLease => "directory leases",
        }
    }
}

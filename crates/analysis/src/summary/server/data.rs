//! What a summary says of the inside of a server, as plain data (see [`crate::summary::data`] for
//! the conventions).

#![allow(missing_docs)]

use serde::Serialize;

use crate::summary::data::Distribution;

/// What a probe inside the server saw of operations that do not wait by design.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Server {
    pub operations: u64,
    /// Operations with slices that wait by design; they are left out of all else here.
    pub waits: u64,
    /// The kinds of slices that occur, in the order in which an operation comes to them.
    pub kinds: Vec<&'static str>,
    pub split: ServerSplit,
    /// Those with the most server time first.
    pub commands: Vec<ServerCommand>,
    /// By share and command, those with the most time first.
    pub shares: Vec<ServerShare>,
    /// Operations whose share and command came after the limit was reached.
    pub shares_others: u64,
    /// Bins of the report's series.
    pub bins: Vec<ServerBin>,
    pub slowest: Vec<ServerSlow>,
}

/// A distribution with its standard deviation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    #[serde(flatten)]
    pub distribution: Distribution,
    pub stddev_ns: Option<i64>,
}

/// Sums by where the time was spent. All but `request_transfer_ns` and `response_transfer_ns` add
/// up to the turnaround of the operations whose turnaround is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerSplit {
    pub request_transfer_ns: i64,
    pub queue_ns: i64,
    pub processing_ns: i64,
    pub security_ns: i64,
    pub filesystem_ns: i64,
    pub lock_wait_ns: i64,
    pub send_ns: i64,
    pub residual_ns: i64,
    pub response_transfer_ns: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerCommand {
    pub command: String,
    pub operations: u64,
    /// Share of the time in the slices of all commands.
    pub time_share: f64,
    pub turnaround: Spread,
    /// Sum of the operation's slices.
    pub slices_sum: Spread,
    /// Turnaround less that sum.
    pub residual: Spread,
    pub queue: Spread,
    pub processing: Spread,
    pub filesystem: Spread,
    pub split: ServerSplit,
    /// One for each of the server's `kinds` that the command has.
    pub slices: Vec<ServerSlice>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerSlice {
    pub kind: &'static str,
    #[serde(flatten)]
    pub spread: Spread,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerShare {
    /// Null: operations without a share.
    pub share: Option<String>,
    pub command: String,
    pub operations: u64,
    pub time_share: f64,
    pub slices_sum: Distribution,
    pub split: ServerSplit,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerBin {
    pub start_ns: i64,
    pub operations: u64,
    pub split: ServerSplit,
}

/// One of the operations that were longest at the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerSlow {
    pub recording: Option<String>,
    pub operation: Option<u64>,
    pub command: String,
    pub detail: Option<String>,
    pub client: Option<String>,
    pub user: Option<String>,
    pub share: Option<String>,
    pub path: Option<String>,
    pub arrived_ns: Option<i64>,
    /// Turnaround; in a compound, and where it is not known, the sum of the slices.
    pub server_ns: i64,
    pub residual_ns: Option<i64>,
    /// Whether the slices' starts were recorded; else they are laid one behind the other.
    pub placed: bool,
    pub slices: Vec<PlacedSlice>,
    /// Slices past the limit on their number.
    pub slices_others: u64,
}

/// A slice in the time of its operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlacedSlice {
    pub kind: String,
    /// From the operation's arrival on.
    pub offset_ns: i64,
    pub duration_ns: i64,
    /// In how many other slices of the operation it lies.
    pub depth: u32,
}

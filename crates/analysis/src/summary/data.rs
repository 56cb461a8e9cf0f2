//! The summary as plain data. The names are the report's JSON interface: they contain their units
//! (`_ns`, `_bytes`), every distribution has its `n`, and unknown values are null. The `report` crate
//! has titles and explanations of all fields.

#![allow(missing_docs)]

use serde::Serialize;
use smbscope_tables::tables::{Connection, Coverage};

use crate::logged::{Logged, LoggedOther};
use crate::net::bound::PathBound;

pub use crate::rows::status_class::StatusClass;
pub use crate::stats::latency::Distribution;

/// Everything that a report shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    pub schema_version: u32,
    pub start_ns: Option<i64>,
    pub end_ns: Option<i64>,
    pub coverage: Vec<Coverage>,
    pub totals: Totals,
    /// Bounds of every `histogram`: its first count is below the first bound, its last above.
    pub latency_bounds_ns: Vec<i64>,
    pub commands: Vec<Command>,
    pub statuses: Statuses,
    pub shares: Groups,
    pub clients: Groups,
    pub users: Groups,
    pub extensions: Groups,
    pub files: Top,
    pub directories: Top,
    pub series: Series,
    pub reads: Sizes,
    pub writes: Sizes,
    pub compounds: Compounds,
    pub protection: Protection,
    pub sessions: Sessions,
    pub trees: Trees,
    pub handles: Handles,
    pub breaks: Breaks,
    pub connections: Connections,
    pub slowest: Vec<Slow>,
    /// Null without a load run.
    pub load: Option<super::load::data::Load>,
    /// Null if no operation has slices of the server's time.
    pub server: Option<super::server::data::Server>,
    /// Null without sessions over several connections and without offered interfaces.
    pub channels: Option<crate::channels::Channels>,
    /// What servers and clients logged on their own.
    pub logged: Vec<Logged>,
    /// Events of theirs that report no trouble, by number.
    pub logged_other: Vec<LoggedOther>,
    /// Requests of a client and of its server, joined; null without events of a client and rows of its server.
    pub both_sides: Option<crate::both_sides::BothSides>,
    /// The network without SMB; null without such a test.
    pub net: Option<crate::net::Net>,
    /// Which acknowledged writes were stable; null without a write to a file.
    pub durability: Option<crate::durability::Durability>,
}

/// Counters and times of a group of operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    pub operations: u64,
    pub operations_share: f64,
    pub busy_ns: i64,
    pub busy_share: f64,
    pub unanswered: u64,
    pub request_unseen: u64,
    pub errors: u64,
    pub not_found: u64,
    pub waits: u64,
    pub waiting_ns: i64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub wire_bytes: u64,
    pub elapsed: Distribution,
    pub server: Distribution,
}

/// How busy time divides into the operation's parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BusySplit {
    pub request_transfer_ns: i64,
    pub server_ns: i64,
    pub network_ns: i64,
    pub unsplit_ns: i64,
    pub response_transfer_ns: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    #[serde(flatten)]
    pub tally: Tally,
    pub busy_split: BusySplit,
    pub turnaround: Distribution,
    pub request_transfer: Distribution,
    pub response_transfer: Distribution,
    pub client_gap: Distribution,
    pub outstanding_max: Option<u32>,
    pub outstanding_mean: Option<f64>,
    pub outstanding_n: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Command {
    pub command: String,
    pub protocol: Option<u8>,
    #[serde(flatten)]
    pub tally: Tally,
    pub busy_split: BusySplit,
    pub turnaround: Distribution,
    pub request_transfer: Distribution,
    pub response_transfer: Distribution,
}

/// Groups by one property. `distinct` counts groups up to the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Groups {
    pub distinct: u64,
    pub limit: u64,
    pub rows: Vec<Group>,
    /// Operations of groups beyond the limit.
    pub others: Option<Tally>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// Null: operations without the property.
    pub name: Option<String>,
    #[serde(flatten)]
    pub tally: Tally,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statuses {
    pub success: u64,
    pub unknown: u64,
    pub rows: Vec<Status>,
    /// Replies whose status came after the limit was reached.
    pub others: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    pub status: u32,
    pub name: String,
    pub class: StatusClass,
    pub operations: u64,
    pub operations_share: f64,
    pub commands: Vec<Count>,
}

/// A word and how often it occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    pub name: String,
    pub count: u64,
}

/// The files or directories with the most.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Top {
    pub distinct: u64,
    /// Whether paths were forgotten for the limit; numbers can then be too low by the errors.
    pub approximate: bool,
    pub error_busy_ns: i64,
    pub error_bytes: u64,
    pub error_operations: u64,
    pub by_time: Vec<PathRow>,
    pub by_bytes: Vec<PathRow>,
    pub by_operations: Vec<PathRow>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathRow {
    pub share: Option<String>,
    pub path: String,
    pub operations: u64,
    pub busy_ns: i64,
    pub busy_share: f64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub errors: u64,
    pub not_found: u64,
}

/// Bins of equal width, in time's order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    pub bin_ns: i64,
    pub bins: Vec<Bin>,
    /// Operations without any time (members of compounds).
    pub without_time: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bin {
    pub start_ns: i64,
    pub operations: u64,
    pub errors: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub wire_bytes: u64,
    pub busy_ns: i64,
    pub elapsed: Distribution,
    pub outstanding_max: Option<u32>,
    pub outstanding_mean: Option<f64>,
    pub open_handles: u64,
}

/// Sizes of reads or writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sizes {
    pub operations: u64,
    pub size_unknown: u64,
    pub requested_bytes: u64,
    pub transferred_bytes: u64,
    pub powers: Vec<SizeClass>,
    pub sizes: Vec<SizeCount>,
    pub distinct_sizes: u64,
    /// Operations whose exact size came after the limit was reached.
    pub others: u64,
}

/// Sizes of at least `from_bytes` and less than `below_bytes` (null: no upper bound).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    pub from_bytes: u64,
    pub below_bytes: Option<u64>,
    pub operations: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    pub size_bytes: u64,
    pub operations: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compounds {
    pub chains: u64,
    pub members: u64,
    pub related: u64,
    pub largest: u64,
    pub members_share: f64,
    pub patterns: Vec<Count>,
    /// Chains whose pattern came after the limit was reached.
    pub others: u64,
    /// Chains not all of whose members were seen.
    pub incomplete: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Protection {
    pub signed: u64,
    pub encrypted: u64,
    pub encrypted_unread: u64,
    pub compressed: u64,
    pub dialects: Vec<Count>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sessions {
    pub sessions: u64,
    pub guests: u64,
    pub encrypted: u64,
    pub multichannel: u64,
    pub channels_max: u64,
    pub mechanisms: Vec<Count>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trees {
    pub trees: u64,
    pub continuously_available: u64,
    pub encrypted: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Handles {
    pub handles: u64,
    pub opened_before: u64,
    pub still_open: u64,
    pub directories: u64,
    pub durable: u64,
    pub persistent: u64,
    pub write_through: u64,
    pub never_used: u64,
    pub open: Distribution,
    pub oplocks: Vec<Count>,
    pub leases: Vec<Count>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Breaks {
    pub breaks: u64,
    pub acknowledgements: u64,
    pub changes: Vec<Count>,
}

/// TCP connections: sums over all, and those with the most operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Connections {
    pub connections: u64,
    pub packets: u64,
    pub bytes_to_server: u64,
    pub bytes_to_client: u64,
    pub retransmissions: u64,
    pub out_of_order: u64,
    pub gaps: u64,
    pub gap_bytes: u64,
    pub zero_windows: u64,
    pub resets: u64,
    /// Connections that came after the limit was reached: their `elapsed` is empty.
    pub others: u64,
    pub rows: Vec<ConnectionRow>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConnectionRow {
    #[serde(flatten)]
    pub connection: Connection,
    pub busy_ns: i64,
    pub busy_share: f64,
    pub credit_charge: u64,
    pub credits_requested: u64,
    pub credits_granted: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub elapsed: Distribution,
    /// What its path carried at most.
    #[serde(flatten)]
    pub bound: PathBound,
    pub oplocks: Vec<Count>,
    pub leases: Vec<Count>,
}

/// One of the slowest operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slow {
    pub recording: Option<String>,
    pub operation: Option<u64>,
    pub command: String,
    pub detail: Option<String>,
    pub status: Option<String>,
    pub client: Option<String>,
    pub client_port: Option<u16>,
    pub server: Option<String>,
    pub user: Option<String>,
    pub share: Option<String>,
    pub path: Option<String>,
    pub requested_bytes: Option<u64>,
    pub transferred_bytes: Option<u64>,
    pub outstanding: Option<u32>,
    pub request_start_ns: Option<i64>,
    pub elapsed_ns: i64,
    pub request_transfer_ns: Option<i64>,
    pub turnaround_ns: Option<i64>,
    pub server_ns: Option<i64>,
    pub response_transfer_ns: Option<i64>,
    pub request_frame: Option<u64>,
    pub response_frame: Option<u64>,
    pub capture_file: Option<String>,
    /// A Wireshark display filter that shows the operation's messages.
    pub filter: Option<String>,
}

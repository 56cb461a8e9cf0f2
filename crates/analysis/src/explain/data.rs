//! The diagnosis as plain data: the JSON interface of `smbscope explain`. Names contain their units.

use serde::Serialize;

use crate::net::SmbRatio;

pub use super::account::{Account, ClientAccount, NOTICED_NS, Row};
pub use super::findings::FindingKind;
pub use super::state::{Effect, State};
pub use super::waiting::WaitGroup;
pub use crate::channels::ChannelFinding;
pub use crate::logged::{Logged, LoggedOther};

/// Smaller shares of the time are not reported as findings ...
pub const MIN_SHARE: f64 = 0.05;
/// ... unless they are events that cost at least this, ns.
const EVENTS_MIN_NS: i64 = 1_000_000_000;
/// Fewest operations for an interval: from fewer, their scatter is not known.
pub const INTERVAL_MIN: u64 = 10;

/// One thing that costs time.
pub type Finding = smbscope_findings::Finding<FindingKind, Explained>;

/// What only findings of a diagnosis have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explained {
    /// Operations that it concerns.
    pub operations: u64,
    /// How long they took, or how long the client paused before them: the classes that have any.
    pub times: Vec<TimeClass>,
    /// Most time first.
    pub clients: Vec<Contributor>,
    /// Most time first.
    pub connections: Vec<Contributor>,
    /// Most time first.
    pub servers: Vec<Contributor>,
    /// Most time first.
    pub shares: Vec<Contributor>,
    /// Most time first.
    pub paths: Vec<Contributor>,
    /// The operations that it costs most.
    pub examples: Vec<Example>,
    /// What remedies would gain, for those that a replay can compute.
    pub gains: Vec<Gain>,
    /// Operations of it that were replayed without it to compute what is saved. If 0, `saved_ns` is the
    /// sum of what each operation would save.
    pub replayed: u64,
    /// Whether each operation is evidence by itself (a timeout, a refusal): such a finding is worth
    /// reporting however small its share is.
    pub is_of_events: bool,
    /// What it means for users.
    pub effect: Effect,
    /// The most time that would be saved in one burst of a connection, ns: what a person would notice.
    pub burst_ns: i64,
    /// Whether users notice it, so that it decides the state.
    pub is_noticed: bool,
}

/// Whether a finding costs enough to be shown.
pub fn is_reported(finding: &Finding) -> bool {
    finding.share() >= MIN_SHARE
        || finding.details.effect == Effect::Broken
        || finding.details.is_of_events && finding.saved_ns() >= EVENTS_MIN_NS
}

/// A replay of the recording with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gain {
    /// The change, as `--change` of `smbscope predict` takes it.
    pub change: String,
    /// Time in which clients waited for operations, ns.
    pub waiting_before_ns: i64,
    /// The same with the change.
    pub waiting_after_ns: i64,
    /// Half of the 95 % interval of the difference, from the scatter of operations, ns.
    pub error_ns: Option<i64>,
    /// Operations that were replayed.
    pub operations: u64,
    /// Whether the recording has more operations than were replayed.
    pub is_part: bool,
}

/// Operations that took a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeClass {
    /// At least this, ns.
    pub from_ns: i64,
    /// Less than this, ns; none for the last class.
    pub below_ns: Option<i64>,
    /// Operations.
    pub operations: u64,
}

/// A client, connection, share or file that contributes to a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contributor {
    pub name: String,
    pub operations: u64,
    /// Time that would be saved there, ns.
    pub saved_ns: i64,
}

/// An operation to look at, for example in Wireshark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Its recording.
    pub recording: Option<String>,
    /// Its number in the table of operations.
    pub operation: Option<u64>,
    /// The command.
    pub command: String,
    /// The path.
    pub path: Option<String>,
    /// How long it took, ns; none for a later member of a compound, whose time is that of the lead.
    pub elapsed_ns: Option<i64>,
    /// When the server answered that the operation is pending, ns after the request.
    pub pending_ns: Option<i64>,
    /// The frame of its request in the capture.
    pub request_frame: Option<u64>,
    /// The frame of its reply.
    pub response_frame: Option<u64>,
}

/// All findings, with totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// How users fare.
    pub state: State,
    /// 95 of 100 operations take at most this, ns.
    pub p95_ns: Option<i64>,
    /// The round trip between client and server on the connection with most packets, ns.
    pub round_trip_ns: Option<i64>,
    /// What the time of clients consists of.
    pub account: Account,
    /// The row of waits in which the server needed longest, if that is long.
    pub slowest: Option<Row>,
    /// What clients waited for outside of operations, the longest sum first.
    pub waits: Vec<WaitGroup>,
    /// Most time first.
    pub findings: Vec<Finding>,
    /// Pauses of clients of less than a second: context, not a cause.
    pub pauses: Option<Pauses>,
    /// Waiting that no finding explains.
    pub unexplained: Option<Unexplained>,
    /// A moment at which operations begin to take longer, or shorter, than before.
    pub change: Option<ChangeInTime>,
    /// Facts worth knowing whose cost in time is not known.
    pub notes: Vec<Note>,
    /// What servers and clients logged on their own.
    pub logged: Vec<Logged>,
    /// Events of theirs that report no trouble, by number.
    pub logged_other: Vec<LoggedOther>,
    /// What is wrong with channels.
    pub channels: Vec<ChannelFinding>,
    /// The network without SMB next to SMB, where a test of the path (`smbscope net`) was given.
    pub network: Vec<SmbRatio>,
    /// Totals.
    pub whole: Whole,
}

/// How long clients had nothing in flight before a request, where that was less than a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pauses {
    /// Pauses.
    pub pauses: u64,
    /// Their sum, ns.
    pub sum_ns: i64,
    /// Clients, the longest sum first; `saved_ns` is that sum.
    pub clients: Vec<Contributor>,
}

/// A moment at which the time of operations changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangeInTime {
    /// The moment, ns since 1970.
    pub at_ns: i64,
    /// How exactly it is known, ns.
    pub resolution_ns: i64,
    /// How many times as long operations of the same kind take afterwards (geometric mean).
    pub times: f64,
    /// Operations before it.
    pub operations_before: u64,
    /// Operations after it.
    pub operations_after: u64,
}

/// Waiting that no finding explains, without round trips in the network, of the operations that were kept
/// for replaying.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unexplained {
    /// Busy time, ns.
    pub ns: i64,
    /// Share of all busy time of these operations.
    pub share: f64,
    /// The kinds of operations with most of it.
    pub kinds: Vec<UnexplainedKind>,
}

/// Operations of one command and detail.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnexplainedKind {
    /// The command.
    pub command: String,
    /// The detail.
    pub detail: Option<String>,
    /// The path with most of its time.
    pub path: Option<String>,
    /// Operations that no finding explains in full.
    pub operations: u64,
    /// Their time that no finding explains, ns.
    pub ns: i64,
}

/// The recording as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Whole {
    /// Operations.
    pub operations: u64,
    /// Operations with a time.
    pub timed: u64,
    /// Time with an operation in flight, summed over all connections, ns.
    pub busy_ns: i64,
    /// Part of `busy_ns`: transfer of bytes.
    pub transfer_ns: i64,
    /// Part of `busy_ns`: the server, where it can be distinguished from the network.
    pub server_ns: i64,
    /// Part of `busy_ns`: network round trips, where they can be distinguished from the server.
    pub network_ns: i64,
    /// Pauses of clients of less than a second, ns.
    pub think_ns: i64,
    /// What the shares of findings refer to, ns: `busy_ns`, locks that waited, and the pauses of a slow
    /// client.
    pub waited_ns: i64,
    /// Mean time of an operation, ns.
    pub elapsed_ns_mean: i64,
    /// Time with an operation in flight on any connection, ns.
    pub active_ns: i64,
    /// From the first request to the last reply, ns.
    pub lasted_ns: i64,
}

/// Something worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The subject.
    pub about: About,
    /// A sentence.
    pub what: String,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// SMB1 is in use.
    Smb1,
    /// Segments were lost.
    Loss,
    /// TCP receive windows were closed.
    ZeroWindows,
    /// The largest read or write is small.
    SmallMaximum,
    /// All writes request stable storage.
    WriteThrough,
    /// Messages are signed or encrypted, at a cost that the recording does not show.
    Protection,
    /// Messages are signed: which side decides it.
    Signing,
    /// Files that must survive a power failure were not written to stable storage.
    NotStable,
    /// Only a share's word promises that writes are stable.
    Unproven,
    /// Channels that the server refused, that it offers and the client does not use, or that add nothing.
    Channels,
    /// One of several connections carries nearly all bytes.
    OneConnection,
    /// What the path carries without SMB, and which of the two is the limit.
    Network,
    /// Most of the time is network round trips.
    Distance,
    /// A client asks for a missing file at regular intervals.
    Polling,
    /// Part of the traffic is missing or could not be decrypted.
    Unseen,
}

impl About {
    /// All subjects.
    pub const ALL: [About; 15] = [
        About::Smb1,
        About::Loss,
        About::ZeroWindows,
        About::SmallMaximum,
        About::WriteThrough,
        About::Protection,
        About::Signing,
        About::NotStable,
        About::Unproven,
        About::Channels,
        About::OneConnection,
        About::Network,
        About::Distance,
        About::Polling,
        About::Unseen,
    ];
}

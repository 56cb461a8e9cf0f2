//! The diagnosis as plain data: the JSON interface of `smbscope explain`. Names contain their units.

use serde::Serialize;

/// What can be wrong. A closed list: each has its [title](Trouble::title) and
/// [remedies](Trouble::remedies) in a file of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Reads go one at a time, in blocks so small that the round trip counts more than the bytes.
    SmallReads,
    /// The same for writes.
    SmallWrites,
    /// The network link is saturated.
    BandwidthLimited,
    /// The receiver's TCP window is too small for the round-trip time.
    WindowLimited,
    /// Packets are lost and sent again.
    Loss,
    /// Requests wait at the server before it begins to work on them.
    ServerQueueing,
    /// The server's file system is slow.
    SlowFilesystem,
    /// Logging on is slow.
    SlowLogon,
    /// Writing to stable storage is slow.
    SlowFlush,
    /// Signing and encryption use the server's processor.
    Protection,
    /// The same files are looked up again.
    RepeatedLookups,
    /// The same folders are listed again.
    RepeatedListings,
    /// Missing files are looked up again.
    FailingLookups,
    /// Files are opened and closed without being used.
    OpenCloseChurn,
    /// Related requests on one open go one at a time.
    NoCompounding,
    /// Opens fail because another program has the file open.
    ShareConflicts,
    /// Byte ranges are locked by other clients.
    LockContention,
    /// Opens wait until other clients give up what they cache.
    BreakWaits,
    /// The server grants too few credits.
    CreditStarvation,
    /// One file, folder, client or second is far slower than the rest.
    Stragglers,
    /// The client pauses between requests.
    SlowClient,
}

impl Trouble {
    /// All troubles.
    pub const ALL: [Trouble; 21] = [
        Trouble::SmallReads,
        Trouble::SmallWrites,
        Trouble::BandwidthLimited,
        Trouble::WindowLimited,
        Trouble::Loss,
        Trouble::ServerQueueing,
        Trouble::SlowFilesystem,
        Trouble::SlowLogon,
        Trouble::SlowFlush,
        Trouble::Protection,
        Trouble::RepeatedLookups,
        Trouble::RepeatedListings,
        Trouble::FailingLookups,
        Trouble::OpenCloseChurn,
        Trouble::NoCompounding,
        Trouble::ShareConflicts,
        Trouble::LockContention,
        Trouble::BreakWaits,
        Trouble::CreditStarvation,
        Trouble::Stragglers,
        Trouble::SlowClient,
    ];
}

/// How much evidence there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Another cause is possible.
    Low,
    /// The figures agree, but a part is estimated.
    Medium,
    /// It was measured.
    High,
}

/// One thing that costs time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The kind of trouble.
    pub trouble: Trouble,
    /// A sentence for readers who do not know the protocol.
    pub what: String,
    /// Time that would be saved without it, ns: the sum over all connections.
    pub saved_ns: i64,
    /// Half of its 95 % interval, from the scatter of operations, ns.
    pub saved_error_ns: i64,
    /// Share of all time in which clients waited or paused.
    pub share: f64,
    /// How much evidence there is.
    pub confidence: Confidence,
    /// What the confidence is based on.
    pub because: String,
    /// Operations that it concerns.
    pub operations: u64,
    /// When the first of them began, ns since 1970; none without times.
    pub first_ns: Option<i64>,
    /// When the last of them ended, ns since 1970.
    pub last_ns: Option<i64>,
    /// How long they took, or how long the client paused before them: the classes that have any.
    pub times: Vec<TimeClass>,
    /// Figures that prove it.
    pub figures: Vec<Figure>,
    /// Most time first.
    pub clients: Vec<Contributor>,
    /// Most time first.
    pub connections: Vec<Contributor>,
    /// Most time first.
    pub shares: Vec<Contributor>,
    /// Most time first.
    pub paths: Vec<Contributor>,
    /// The operations that it costs most.
    pub examples: Vec<Example>,
    /// What to do.
    pub remedies: Vec<Remedy>,
    /// What remedies would gain, for those that a replay can compute.
    pub gains: Vec<Gain>,
    /// Operations of it that were replayed without it to compute what is saved. If 0, `saved_ns` is the
    /// sum of what each operation would save.
    pub replayed: u64,
}

/// A replay of the recording with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gain {
    /// The change, as `smbscope predict --change` takes it.
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

/// A number that supports a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name, for programs.
    pub name: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// Half of the 95 % interval, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// ns, bytes, bits/s, share (from 0 to 1), or empty for a plain number.
    pub unit: &'static str,
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

/// What to do, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Where: Samba, Windows, client, application, network ...
    pub at: &'static str,
    /// What to do, as exactly as possible.
    pub action: &'static str,
}

/// All findings, with totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Most time first.
    pub findings: Vec<Finding>,
    /// Facts worth knowing whose cost in time is not known.
    pub notes: Vec<Note>,
    /// Totals.
    pub whole: Whole,
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
    /// Channels that the server refused, that it offers and the client does not use, or that bring nothing.
    Channels,
    /// One of several connections carries nearly all bytes.
    OneConnection,
    /// Most of the time is network round trips.
    Distance,
    /// Part of the traffic is missing or could not be decrypted.
    Unseen,
}

impl About {
    /// All subjects.
    pub const ALL: [About; 12] = [
        About::Smb1,
        About::Loss,
        About::ZeroWindows,
        About::SmallMaximum,
        About::WriteThrough,
        About::Protection,
        About::Signing,
        About::NotStable,
        About::Channels,
        About::OneConnection,
        About::Distance,
        About::Unseen,
    ];
}

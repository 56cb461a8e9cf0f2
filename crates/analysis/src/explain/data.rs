//! What a diagnosis says, as plain data: the JSON interface of `smbscope explain`. Units stand in the
//! names.

use serde::Serialize;

/// What can be wrong. A closed list: each has its words and remedies in [`Trouble::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Reads go one at a time, in blocks so small that the distance counts more than the bytes.
    SmallReads,
    /// Writes do.
    SmallWrites,
    /// The line is full.
    BandwidthLimited,
    /// The receiver's TCP window is too small for the distance.
    WindowLimited,
    /// Packets are lost, and sent again.
    Loss,
    /// Requests wait at the server before it begins to work on them.
    ServerQueueing,
    /// The server's file system is slow.
    SlowFilesystem,
    /// Logging on takes long.
    SlowLogon,
    /// Making bytes stable is slow.
    SlowFlush,
    /// Signing and encryption take the server's processor.
    Protection,
    /// What was looked up is looked up again.
    RepeatedLookups,
    /// Folders are listed again.
    RepeatedListings,
    /// Names that are not there are looked for again.
    FailingLookups,
    /// Files are opened and closed, and nothing is done in between.
    OpenCloseChurn,
    /// Requests on one open go one by one.
    NoCompounding,
    /// An open fails because somebody else has the file.
    ShareConflicts,
    /// Ranges of files are locked by somebody else.
    LockContention,
    /// Opens wait until other clients give back what they cache.
    BreakWaits,
    /// The server lets clients send so few requests at once.
    CreditStarvation,
    /// One file, client or moment is out of line with the rest.
    Stragglers,
    /// The client takes its time between requests.
    SlowClient,
}

impl Trouble {
    /// All.
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
    /// It may also be something else.
    Low,
    /// Figures agree, but a part was estimated.
    Medium,
    /// It was measured.
    High,
}

/// One thing that costs time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Which.
    pub trouble: Trouble,
    /// In a sentence that somebody understands who does not know the protocol.
    pub what: String,
    /// Time that would be saved without it, ns; of all connections together.
    pub saved_ns: i64,
    /// Half of its 95 % interval, by the scatter of operations, ns.
    pub saved_error_ns: i64,
    /// Of all time in which somebody waited or was about to ask.
    pub share: f64,
    /// How much evidence there is.
    pub confidence: Confidence,
    /// What that rests on.
    pub because: String,
    /// Operations that it concerns.
    pub operations: u64,
    /// Figures that prove it.
    pub figures: Vec<Figure>,
    /// Where, most time first.
    pub clients: Vec<Culprit>,
    /// Where, most time first.
    pub connections: Vec<Culprit>,
    /// Where, most time first.
    pub shares: Vec<Culprit>,
    /// Where, most time first.
    pub paths: Vec<Culprit>,
    /// The operations that cost most by it.
    pub examples: Vec<Example>,
    /// What to do.
    pub remedies: Vec<Remedy>,
    /// What that would bring, where the recording can be replayed with it.
    pub gains: Vec<Gain>,
    /// Operations of it that were replayed without it, to tell what is saved; without any it is the sum of what
    /// each would save.
    pub replayed: u64,
}

/// The recording once more, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gain {
    /// As `smbscope predict --change` takes it.
    pub change: String,
    /// Time in which clients' operations were under way, ns.
    pub waiting_before_ns: i64,
    /// The same with the change.
    pub waiting_after_ns: i64,
    /// Half of the 95 % interval of the difference that the operations' scatter allows, ns.
    pub error_ns: Option<i64>,
    /// Operations that were replayed.
    pub operations: u64,
    /// Whether they are the first ones of more.
    pub is_part: bool,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is, as a word for programs.
    pub name: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// What may be added to it or taken away, if that is known (95 %).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// ns, bytes, bits/s, share (a part of one), or nothing for a number.
    pub unit: &'static str,
}

/// Who or what is concerned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// Its name.
    pub name: String,
    /// Operations.
    pub operations: u64,
    /// Time that would be saved there, ns.
    pub saved_ns: i64,
}

/// An operation to look at.
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
    /// How long it took, ns; none of a later member of a compound, whose time its lead has.
    pub elapsed_ns: Option<i64>,
    /// The frame of its request in the capture.
    pub request_frame: Option<u64>,
    /// The frame of its reply.
    pub response_frame: Option<u64>,
}

/// What to do, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Samba, Windows server, client, application, network.
    pub at: &'static str,
    /// Exactly what.
    pub action: &'static str,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Most time first.
    pub findings: Vec<Finding>,
    /// Worth knowing, though its time is not known.
    pub notes: Vec<Note>,
    /// Figures of the whole.
    pub whole: Whole,
}

/// The recording as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Whole {
    /// Operations.
    pub operations: u64,
    /// Of them those with a time.
    pub timed: u64,
    /// Time with something under way, over all connections, ns.
    pub busy_ns: i64,
    /// Of it, bytes under way.
    pub transfer_ns: i64,
    /// Of it, the server's, where that is known apart.
    pub server_ns: i64,
    /// Of it, the distance, where that is known apart.
    pub network_ns: i64,
    /// Pauses of clients of less than a second, ns.
    pub think_ns: i64,
    /// Mean time of an operation, ns.
    pub elapsed_ns_mean: i64,
    /// Time with something under way on any connection, ns.
    pub active_ns: i64,
    /// From the first request to the last reply, ns.
    pub lasted_ns: i64,
}

/// Something worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Which.
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
    /// Receive windows were closed.
    ZeroWindows,
    /// The largest read or write is small.
    SmallMaximum,
    /// Writes are stable before they are answered, throughout.
    WriteThrough,
    /// Messages are signed or encrypted, and nobody saw what that costs.
    Protection,
    /// What must survive a power failure was never made stable.
    NotStable,
    /// Client and server offer several connections for a session, and use one.
    MultichannelUnused,
    /// One of many connections carries nearly everything.
    OneConnection,
    /// Most of the time is distance.
    Distance,
    /// Part of the traffic was not seen or not understood.
    Unseen,
}

impl About {
    /// All.
    pub const ALL: [About; 11] = [
        About::Smb1,
        About::Loss,
        About::ZeroWindows,
        About::SmallMaximum,
        About::WriteThrough,
        About::Protection,
        About::NotStable,
        About::MultichannelUnused,
        About::OneConnection,
        About::Distance,
        About::Unseen,
    ];
}

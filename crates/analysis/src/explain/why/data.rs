//! The explanation of one operation as plain data: the JSON interface of `smbscope explain --why`.
//! Times named `at_ns` count from the first byte of the operation's request.

use serde::Serialize;

/// Why one operation took as long as it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// How the operation was found.
    pub found_by: FoundBy,
    /// What took most of its time.
    pub reason: Reason,
    /// The part of its time that the reason explains, from 0 to 1; `None` without a time.
    pub reason_share: Option<f64>,
    /// The operation.
    pub operation: Subject,
    /// Where its time went. Those that are not parts of other steps add up to `elapsed_ns`.
    pub steps: Vec<Step>,
    /// Oplock and lease breaks of its file before its reply: those that it waited for longest, in the order
    /// of time.
    pub breaks: Vec<Break>,
    /// How many there are.
    pub breaks_count: u64,
    /// How long it waited for their answers in total.
    pub breaks_waited_ns: i64,
    /// For a break: the opens of its file that were in flight when the server sent it.
    pub waiters: Vec<Brief>,
    /// For a lock, and for an open that failed with a sharing violation: the locks or other opens that
    /// were held while it waited, the longest first.
    pub holders: Vec<Holder>,
    /// How many there are.
    pub holders_count: u64,
    /// Other requests on its connection.
    pub neighbours: Neighbours,
    /// The open that it uses.
    pub open: Option<OpenHistory>,
    /// Operations of the same kind.
    pub likes: Likes,
    /// A timer that may have determined its duration.
    pub timer: Option<Timer>,
    /// A Wireshark display filter that shows it and its neighbours.
    pub filter: Option<String>,
    /// Rows of the file that were not compared because there were too many: breaks, opens, closes, locks.
    pub left_out: u64,
}

/// How an operation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    /// The frame has the first byte of its request.
    Request,
    /// The frame has the first byte of its reply.
    Reply,
    /// The frame lies between the two, and no other operation's frames enclose it.
    Between,
    /// By its number.
    Number,
}

/// What took most of an operation's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The operation is a break that the server sent.
    Break,
    /// The recording has no reply.
    NoReply,
    /// The recording has no request, or no time.
    NoTime,
    /// It waits by design: a change notification, a blocked lock.
    WaitsByDesign,
    /// A client did not acknowledge an oplock or lease break.
    BreakNotAcknowledged,
    /// A client acknowledged an oplock or lease break late.
    BreakAcknowledged,
    /// Another client held a lock on the range, or had the file open.
    Holder,
    /// Requests before it on its connection were answered first.
    EarlierRequests,
    /// Replies to other requests occupied its connection.
    OtherReplies,
    /// TCP recovered lost segments.
    Loss,
    /// The bytes of the request.
    RequestTransfer,
    /// The bytes of the reply.
    ResponseTransfer,
    /// The network's round trip.
    Network,
    /// The server.
    Server,
    /// The server or the network: the recording does not show which.
    ServerOrNetwork,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 15] = [
        Reason::Break,
        Reason::NoReply,
        Reason::NoTime,
        Reason::WaitsByDesign,
        Reason::BreakNotAcknowledged,
        Reason::BreakAcknowledged,
        Reason::Holder,
        Reason::EarlierRequests,
        Reason::OtherReplies,
        Reason::Loss,
        Reason::RequestTransfer,
        Reason::ResponseTransfer,
        Reason::Network,
        Reason::Server,
        Reason::ServerOrNetwork,
    ];
}

/// An operation in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Brief {
    pub recording: Option<String>,
    /// The file that its frames are counted in.
    pub capture_file: Option<String>,
    pub operation: Option<u64>,
    pub connection: Option<u64>,
    pub client: Option<String>,
    pub command: Option<String>,
    pub detail: Option<String>,
    pub path: Option<String>,
    pub offset_bytes: Option<u64>,
    /// Bytes that were transferred, or requested if that is unknown.
    pub bytes: Option<u64>,
    pub status: Option<String>,
    /// When its request began, or its reply if that is all that was recorded.
    pub at_ns: Option<i64>,
    pub elapsed_ns: Option<i64>,
    /// Whether it waits by design.
    pub waits: bool,
    pub request_frame: Option<u64>,
    pub response_frame: Option<u64>,
}

/// The explained operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
    #[serde(flatten)]
    pub brief: Brief,
    /// When it began, ns since 1970.
    pub start_ns: Option<i64>,
    pub client_port: Option<u16>,
    pub server: Option<String>,
    pub server_port: Option<u16>,
    pub user: Option<String>,
    pub share: Option<String>,
    pub encrypted: bool,
    /// When the server answered that it is pending.
    pub pending_at_ns: Option<i64>,
    /// Operations of its compound; none if it is alone in its message.
    pub compound_size: Option<u16>,
    /// The member of the compound that was named, if its time is that of the first one, which is
    /// explained instead.
    pub compound_member: Option<u16>,
}

/// A step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    pub kind: StepKind,
    /// For a slice of the server's time: its kind, as in the table `slices`.
    pub slice: Option<&'static str>,
    /// Whether its time is part of the step before it, so that it does not count again.
    pub is_part: bool,
    /// When it began, if that is known.
    pub at_ns: Option<i64>,
    /// How long it took; `None` for a moment.
    pub duration_ns: Option<i64>,
    /// The uncertainty of that, if it is an estimate.
    pub error_ns: Option<i64>,
    /// The frame in which it began.
    pub frame: Option<u64>,
}

/// Kinds of steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// First to last byte of the request.
    RequestTransfer,
    /// An interim response: the operation is pending.
    Interim,
    /// Requests that were sent before it on its connection were answered.
    EarlierRequests,
    /// Replies to other requests were on the wire of its connection.
    OtherReplies,
    /// The server.
    Server,
    /// A break of the file: from then on, the server waited for its answer.
    Break,
    /// A slice of the server's time.
    Slice,
    /// The rest of the server's time, which no slice explains.
    Unexplained,
    /// The network's round trip.
    Network,
    /// Server and network, if the round trip is unknown.
    ServerOrNetwork,
    /// Recovery of lost segments.
    Loss,
    /// First to last byte of the reply.
    ResponseTransfer,
}

impl StepKind {
    /// All kinds.
    pub const ALL: [StepKind; 12] = [
        StepKind::RequestTransfer,
        StepKind::Interim,
        StepKind::EarlierRequests,
        StepKind::OtherReplies,
        StepKind::Server,
        StepKind::Break,
        StepKind::Slice,
        StepKind::Unexplained,
        StepKind::Network,
        StepKind::ServerOrNetwork,
        StepKind::Loss,
        StepKind::ResponseTransfer,
    ];
}

/// An oplock or lease break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// Whether it breaks a lease; otherwise an oplock.
    pub is_lease: bool,
    /// The client that it was sent to.
    pub client: Option<String>,
    pub client_port: Option<u16>,
    pub is_same_client: bool,
    pub is_same_connection: bool,
    pub at_ns: i64,
    pub frame: Option<u64>,
    /// The level or state before, if it is known.
    pub from: Option<String>,
    pub to: Option<String>,
    /// The frame of the request that opened the file with it.
    pub opened_frame: Option<u64>,
    /// Whether the client has to acknowledge it; `None` if the level before is unknown.
    pub needs_acknowledgement: Option<bool>,
    /// What the client did.
    pub answer: Option<BreakAnswer>,
    /// How long the operation waited from this break to its answer or its own reply.
    pub waited_ns: i64,
}

/// What a client did after a break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakAnswer {
    /// Whether it closed the file instead of acknowledging the break.
    pub is_close: bool,
    pub at_ns: i64,
    pub took_ns: i64,
    pub frame: Option<u64>,
    pub status: Option<String>,
}

/// A lock on the range, or an open of the file, that was held while an operation waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The request that got it.
    #[serde(flatten)]
    pub brief: Brief,
    pub is_same_client: bool,
    /// When it was granted.
    pub from_ns: i64,
    /// When it was given up; `None` if the recording does not show that.
    pub until_ns: Option<i64>,
    /// The frame of the Unlock or Close.
    pub until_frame: Option<u64>,
}

/// Other requests on the connection of an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Neighbours {
    pub blocking: Blocking,
    /// Requests that were in flight when it was sent.
    pub in_flight: u64,
    /// Requests among them that were answered while it waited.
    pub in_flight_answered: u64,
    /// Requests that were sent while it waited.
    pub sent: u64,
    /// Requests among them that were answered before it.
    pub sent_answered: u64,
    /// Requests in flight that wait by design; they are in no other number.
    pub waiting: u64,
    /// The next request on the connection after a long silence, if the reply came just after it: it may have
    /// released the reply.
    pub released_by: Option<Brief>,
    /// The same request on a connection from this server to another one: the server is a proxy.
    pub forwarded: Option<Brief>,
    /// The request before it that took longest of those that were answered while it waited, if it waited
    /// for them.
    pub blocker: Option<Brief>,
    /// Those that overlap it most, in the order of their requests.
    pub shown: Vec<Brief>,
    /// Others.
    pub left_out: u64,
}

/// How an operation and its neighbours depended on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blocking {
    /// There was no other request.
    #[default]
    Alone,
    /// Requests that were sent after it were answered while it waited.
    OnlyThis,
    /// It was answered just after requests that were sent before it.
    Behind,
    /// Replies to other requests were on the wire for most of its wait.
    Replies,
    /// No request that was sent after it was answered before it.
    OthersWaited,
    /// The neighbours do not show it.
    Unknown,
}

impl Blocking {
    /// All of them.
    pub const ALL: [Blocking; 6] = [
        Blocking::Alone,
        Blocking::OnlyThis,
        Blocking::Behind,
        Blocking::Replies,
        Blocking::OthersWaited,
        Blocking::Unknown,
    ];
}

/// The open that an operation uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenHistory {
    /// Its number in the table of handles.
    pub handle: u64,
    /// All operations that use it.
    pub uses: u64,
    /// The first, those around the operation, and the close.
    pub shown: Vec<Brief>,
}

/// Operations of the same kind: command, detail, and for reads and writes the power of two of their size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Likes {
    pub command: Option<String>,
    pub detail: Option<String>,
    pub from_bytes: Option<u64>,
    pub below_bytes: Option<u64>,
    /// Operations with a time, with itself.
    pub operations: u64,
    /// `None` below ten operations.
    pub p50_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    pub max_ns: Option<i64>,
    /// Operations that took longer.
    pub slower: u64,
    /// Its time divided by the median.
    pub times_median: Option<f64>,
    /// Others whose time differs by at most 1 %.
    pub same_duration: u64,
    /// The same among operations of any command.
    pub same_duration_any: u64,
}

/// A timer that may have determined a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timer {
    /// The constant.
    pub constant_ns: i64,
    /// What has this constant, if something fits that is known.
    pub name: Option<&'static str>,
    /// Other operations of any command with this duration.
    pub operations: u64,
}

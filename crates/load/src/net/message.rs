//! The messages of an authenticated test, as JSON. [`super::control`] frames and authenticates them.

use serde::{Deserialize, Serialize};

use super::cpu::CpuUse;
use super::spec::{Direction, Spec};

/// Version of the messages: both sides must have the same.
pub const VERSION: u32 = 1;

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "message")]
pub enum Message {
    /// Sender: begins the test.
    Begin {
        /// [`VERSION`].
        version: u32,
        /// What is wanted.
        spec: Spec,
        /// Recognises the machine, without naming it.
        machine: String,
    },
    /// Listener: the test is possible.
    Begun {
        /// [`VERSION`].
        version: u32,
        /// Recognises the machine.
        machine: String,
    },
    /// Sender: a connection for round trips follows.
    RoundTrips,
    /// Sender: the streams of a phase follow.
    Phase {
        /// Its place in [`Spec::phases`].
        phase: u32,
    },
    /// Listener: all streams are there.
    Ready,
    /// Sender: data flows from now on.
    Go,
    /// Listener: its sending streams in the last interval.
    Intervals {
        /// One for each stream.
        intervals: Vec<Interval>,
    },
    /// Listener: its part of the phase.
    PhaseEnd {
        /// What it measured.
        report: SideReport,
    },
    /// Sender: the test is over.
    Done,
    /// Either: the test cannot continue.
    Abort {
        /// The reason.
        reason: String,
    },
}

impl Message {
    /// Reads a message.
    pub fn parse(bytes: &[u8]) -> Result<Message, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// One sending stream in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Direction of its data.
    pub direction: Direction,
    /// Its number.
    pub stream: u32,
    /// End of the interval since the start of the phase.
    pub end_ns: i64,
    /// Its length.
    pub duration_ns: i64,
    /// Acknowledged payload; received payload where that is all that is known.
    pub bytes: u64,
    /// Smoothed round trip.
    pub rtt_ns: Option<i64>,
    /// Smallest round trip so far.
    pub rtt_min_ns: Option<i64>,
    /// Congestion window.
    pub cwnd_bytes: Option<u64>,
    /// The peer's receive window.
    pub peer_window_bytes: Option<u64>,
    /// Unacknowledged segments.
    pub in_flight_bytes: Option<u64>,
    /// Retransmitted segments.
    pub retransmissions: Option<u64>,
    /// Time with data to send or to be acknowledged.
    pub busy_ns: Option<i64>,
    /// Its part with a full receive window.
    pub rwnd_limited_ns: Option<i64>,
    /// Its part with a send buffer that was too small.
    pub sndbuf_limited_ns: Option<i64>,
}

/// What one side measured in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideReport {
    /// CPU time of this side.
    pub cpu: CpuUse,
    /// Streams that it sent.
    pub sent: Vec<Moved>,
    /// Streams that it received.
    pub received: Vec<Moved>,
    /// Retransmitted segments, where no intervals have them.
    pub retransmissions: Option<u64>,
    /// MTU of the path.
    pub mtu: Option<u64>,
    /// Payload of a full segment.
    pub mss: Option<u64>,
}

/// What passed through one stream at one side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moved {
    /// Its number.
    pub stream: u32,
    /// Payload written or read.
    pub bytes: u64,
    /// First byte since the start of the phase.
    pub first_ns: i64,
    /// Last byte since the start of the phase.
    pub last_ns: i64,
    /// CPU time of the stream's thread, which may move others as well.
    pub cpu_ns: i64,
}

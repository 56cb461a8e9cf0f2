//! The timeline as plain data, with units in its names.

use serde::Serialize;
use smbscope_findings::Finding;
use smbscope_tables::tables::Interface;

use super::findings::ChannelFindingKind;

/// Channels of all sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Channels {
    /// In the order of recordings and time.
    pub sessions: Vec<SessionTimeline>,
    /// Sessions that are not listed.
    pub others: u64,
    /// What servers offered.
    pub interfaces: Vec<OfferedInterface>,
    /// What is wrong.
    pub findings: Vec<ChannelFinding>,
}

/// A session and its connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionTimeline {
    pub recording: String,
    pub session_id: Option<u64>,
    pub client: String,
    pub server: String,
    /// When the first connection was opened, or first seen; of a load run that wrote its files
    /// first, the begin of what is measured.
    pub start_ns: i64,
    /// Time from there to the first byte.
    pub first_byte_after_ns: Option<i64>,
    /// Time from there to 90 % of the plateau of all channels together.
    pub plateau_after_ns: Option<i64>,
    /// Time from there to the last byte.
    pub lasted_ns: i64,
    pub written_bytes: u64,
    pub read_bytes: u64,
    /// Plateau of all channels together.
    pub plateau_bytes_per_second: Option<f64>,
    /// Mean from the first byte to the last.
    pub mean_bytes_per_second: f64,
    /// Pairs of addresses of client and server that carried bytes.
    pub paths: u64,
    /// Jain's index of the bytes of the channels while all of them carry some; 1 is equal.
    pub fairness: Option<f64>,
    pub gain: Option<PathGain>,
    pub slowest: Option<SlowestPath>,
    /// Another session of the report that moved as much.
    pub versus: Option<Versus>,
    pub power: Option<PowerState>,
    /// Bytes that RDMA counters of the client or the server show: they bypass TCP.
    pub rdma_bytes: Option<f64>,
    /// Time from the start until RDMA moved more than TCP; null if it never did.
    pub rdma_after_ns: Option<i64>,
    /// CPU time for each GB moved.
    pub cpu: Vec<CpuCost>,
    /// Width of the values of the rates.
    pub bin_ns: i64,
    /// Beginning of the first of them.
    pub bins_start_ns: i64,
    /// Channels in the order in which they were opened.
    pub channels: Vec<ChannelTimeline>,
    /// Rate of RDMA, as the rates of the channels.
    pub rdma_bytes_per_second: Vec<f64>,
}

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChannelTimeline {
    pub connection: u64,
    /// Null if it was not bound.
    pub channel: Option<u64>,
    pub client: String,
    pub client_port: u64,
    pub server: String,
    pub server_port: u64,
    pub transport: Option<String>,
    pub opened_ns: Option<i64>,
    pub bound_ns: Option<i64>,
    pub first_byte_ns: Option<i64>,
    /// Beginning of the interval in which it reached 90 % of its plateau.
    pub plateau_ns: Option<i64>,
    /// End of its last interval with payload.
    pub last_byte_ns: Option<i64>,
    pub written_bytes: u64,
    pub read_bytes: u64,
    /// Share of the bytes of the session.
    pub share: f64,
    pub operations: u64,
    pub plateau_bytes_per_second: Option<f64>,
    /// Mean of Reads and Writes in flight from its first to its last byte.
    pub outstanding_mean: f64,
    /// Reads and Writes whose payload was on its way, mean from its first to its last byte.
    pub transferring_mean: f64,
    pub outstanding_max: Option<u64>,
    pub in_flight_max_bytes: Option<u64>,
    /// Smallest and median of the intervals' round trips.
    pub round_trip_min_ns: Option<i64>,
    pub round_trip_p50_ns: Option<i64>,
    pub retransmissions: Option<u64>,
    /// Speed of the server's interface, if it was offered.
    pub link_bits_per_second: Option<u64>,
    /// When it was lost; null if it was not, as far as the recording shows.
    pub lost_ns: Option<i64>,
    /// Why.
    pub lost_reason: Option<String>,
    /// Requests that other channels carried again because it was lost.
    pub repeated: Option<u64>,
    /// Status with which the server refused it.
    pub bind_status: Option<String>,
    /// Rate of each bin.
    pub bytes_per_second: Vec<f64>,
}

/// What additional paths gained within one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PathGain {
    /// Plateau while one path carried bytes.
    pub before_bytes_per_second: f64,
    /// Plateau while all paths did.
    pub after_bytes_per_second: f64,
    /// The quotient.
    pub factor: f64,
    /// What the paths promise: the sum of their link speeds over that of the first, or their number.
    pub promised: f64,
}

/// The slowest path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowestPath {
    pub connection: u64,
    pub bytes_per_second: f64,
    pub brake: Brake,
    /// Whether the faster channels run at its rate although their paths could carry more.
    pub brakes_others: bool,
}

/// What limits a channel. A closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Brake {
    /// It carries what its interface can.
    Link,
    /// Segments are lost.
    Loss,
    /// It always has data on its way, and more of it only makes the round trip longer: a slower link
    /// between both is full.
    Path,
    /// Bytes in flight over the round trip are what it carries.
    Window,
    /// Hardly ever more than one request is in flight.
    Requests,
    /// Nothing of that.
    Unknown,
}

/// The same amount moved in another session of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Versus {
    /// The recording that it is compared with.
    pub recording: String,
    /// Its paths.
    pub paths: u64,
    /// How many times as long that one took.
    pub factor: f64,
    /// What the additional paths promise; 1 if there are none.
    pub promised: f64,
    /// The factor without the time until the first byte.
    pub transfer_factor: f64,
}

/// Idle states of the machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PowerState {
    /// Whose: client or server.
    pub source: String,
    /// Share of the time in deep idle states until the plateau.
    pub deep_idle_before: f64,
    /// The same at the plateau.
    pub deep_idle_plateau: Option<f64>,
    /// Mean frequency until the plateau and at it, Hz.
    pub hertz_before: Option<f64>,
    pub hertz_plateau: Option<f64>,
    pub samples: u64,
}

/// What moving a GB (10^9 bytes) costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuCost {
    /// client, server or metrics.
    pub source: String,
    /// A process, or null for the whole machine.
    pub process: Option<String>,
    pub user_seconds_per_gb: Option<f64>,
    /// Kernel, without deferred work where that is counted.
    pub system_seconds_per_gb: Option<f64>,
    pub softirq_seconds_per_gb: Option<f64>,
    pub seconds_per_gb: f64,
}

/// An interface that a server offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OfferedInterface {
    pub recording: String,
    pub session_id: Option<u64>,
    pub client: String,
    pub server: String,
    pub index: u64,
    pub address: String,
    pub rss_capable: bool,
    pub rdma_capable: bool,
    pub link_bits_per_second: u64,
    pub used: bool,
    /// As in the table `interfaces`.
    pub reason: String,
    pub status: Option<String>,
}

impl OfferedInterface {
    pub(super) fn from_row(row: &Interface) -> OfferedInterface {
        OfferedInterface {
            recording: row.recording.clone(),
            session_id: row.session_id,
            client: row.client.clone(),
            server: row.server.clone(),
            index: row.index,
            address: row.address.clone(),
            rss_capable: row.rss_capable,
            rdma_capable: row.rdma_capable,
            link_bits_per_second: row.link_bits_per_second,
            used: row.used,
            reason: row.reason.clone(),
            status: row.status.clone(),
        }
    }
}

/// One thing that is wrong. Its period is that of the session.
pub type ChannelFinding = Finding<ChannelFindingKind, OnSession>;

/// Where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OnSession {
    pub recording: String,
    pub session_id: Option<u64>,
}

impl SessionTimeline {
    /// Payload of both directions.
    pub fn bytes(&self) -> u64 {
        self.written_bytes.saturating_add(self.read_bytes)
    }

    /// Whether it has several connections, or moved enough to be compared with one that has.
    pub(super) fn is_worth_showing(&self) -> bool {
        self.channels.len() > 1 || self.bytes() >= super::versus::BYTES_MIN
    }
}

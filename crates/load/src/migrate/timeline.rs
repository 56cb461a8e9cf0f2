//! What a migration's channels did, as rows: the tables `channels`, `interfaces` and `counters`.

use std::net::IpAddr;
use std::sync::Arc;

use smbscope_client::multichannel::ChannelState;
use smbscope_client::multichannel::policy::{Judged, Verdict};
use smbscope_client::row::Row;
use smbscope_client::tcp_state::TcpState;
use smbscope_tables::Part;
use smbscope_tables::channels::{Channels, Direction, Network, Opened, Transfer};
use smbscope_tables::run::Counter;
use smbscope_tables::tables::Interface;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::network_interface::InterfaceCapabilities;

use crate::recorder::Recorder;

/// Counters are sampled in every n-th sample of TCP.
const COUNTER_EVERY: u64 = 10;

/// Collects the rows.
pub(super) struct Timeline {
    channels: Channels,
    recording: Arc<str>,
    session_id: u64,
    /// Connections that are known, with their last state of TCP.
    known: Vec<(u64, Option<TcpState>)>,
    samples: u64,
    /// When counters were made last, and the retransmissions then.
    counted: Option<i64>,
    counted_retransmissions: Vec<(u64, u64)>,
}

impl Timeline {
    pub fn new(recording: &str, session_id: u64) -> Timeline {
        Timeline {
            channels: Channels::default(),
            recording: recording.into(),
            session_id,
            known: Vec::new(),
            samples: 0,
            counted: None,
            counted_retransmissions: Vec::new(),
        }
    }

    /// A channel was bound. `offered` says on which interfaces it is.
    pub fn joined(&mut self, state: &ChannelState, offered: Option<&Judged>) {
        if self.known.iter().any(|(connection, _)| *connection == state.connection) {
            return;
        }
        self.open(state, offered);
        let channel = u64::from(state.channel);
        self.channels.bind(state.connection, self.session_id, channel, Some(state.bound_at));
        self.known.push((state.connection, None));
    }

    /// A channel that is known is on these interfaces.
    pub fn locate(&mut self, connection: u64, offered: &Judged) {
        let (client, server) = interfaces(offered);
        self.channels.locate(connection, client, server);
    }

    /// The server refused a channel.
    pub fn refused(&mut self, state: &ChannelState, offered: Option<&Judged>, status: &str) {
        self.open(state, offered);
        let (connection, session_id, at) = (state.connection, self.session_id, state.bound_at);
        self.channels.refuse(connection, session_id, at, status.to_owned());
        self.channels.close(connection);
    }

    /// A part of the run begins.
    pub fn begin_phase(&mut self, name: &'static str, at: i64) {
        self.channels.begin_phase(name, at);
    }

    /// A channel is lost, and others carry its requests again.
    pub fn lost(&mut self, state: &ChannelState, at: i64, reason: String, repeated: u64) {
        let at = state.lost_at.unwrap_or(at);
        self.channels.lose(state.connection, at, reason, Some(repeated));
    }

    fn open(&mut self, state: &ChannelState, offered: Option<&Judged>) {
        let (client_interface, server_interface) = offered.map_or((None, None), interfaces);
        let opened = Opened {
            at: Some(state.opened_at),
            client: state.client.0.as_str().into(),
            client_port: state.client.1,
            server: state.server.0.as_str().into(),
            server_port: state.server.1,
            client_interface,
            server_interface,
            transport: Some("tcp".into()),
        };
        self.channels.open(state.connection, state.opened_at, opened);
    }

    /// Counts operations that ended.
    pub fn rows(&mut self, rows: &[Box<Row>]) {
        for row in rows {
            let row = &row.operation;
            let direction = match row.command().map(|code| Command(code as u16)) {
                Some(Command::READ) => Direction::Read,
                Some(Command::WRITE) => Direction::Write,
                _ => continue,
            };
            let (Some(connection), Some(bytes)) = (row.connection(), row.transferred_bytes())
            else {
                continue;
            };
            let request = row.request_start().zip(row.request_end());
            let response = row.response_start().zip(row.response_end());
            let (Some(request), Some(response)) = (request, response) else { continue };
            let outstanding = row.outstanding();
            let transfer = Transfer { direction, bytes, request, response, outstanding };
            self.channels.transfer(connection, row.session_id(), &transfer);
        }
    }

    /// A sample of TCP of all channels.
    pub fn sample(&mut self, now: i64, states: &[ChannelState], recorder: &Recorder) {
        for state in states {
            let Some(tcp) = state.tcp else { continue };
            let known = self.known.iter_mut().find(|(number, _)| *number == state.connection);
            let Some((connection, before)) = known else { continue };
            let sent_again = before.map_or(0, |before| before.retransmissions);
            let network = Network {
                bytes_in_flight: Some(tcp.in_flight_bytes),
                round_trip_ns: (tcp.round_trip_ns > 0).then_some(tcp.round_trip_ns),
                retransmissions: Some(tcp.retransmissions.saturating_sub(sent_again)),
            };
            *before = Some(tcp);
            self.channels.network(*connection, now, &network);
        }
        if self.samples.is_multiple_of(COUNTER_EVERY) {
            let counters = self.counters(now, states);
            if !counters.is_empty() {
                recorder.part(Part::Counters(counters));
            }
        }
        self.samples += 1;
        self.channels.advance(now);
        self.hand_over(recorder);
    }

    fn counters(&mut self, now: i64, states: &[ChannelState]) -> Vec<Counter> {
        let seconds = self.counted.replace(now).map(|before| (now - before) as f64 / 1e9);
        let mut rows = Vec::new();
        let mut seen = Vec::new();
        for state in states {
            let Some(tcp) = state.tcp else { continue };
            let instance = format!("channel {}", state.channel);
            let mut add = |name: &str, unit: &str, value: f64| {
                rows.push(Counter {
                    recording: self.recording.to_string(),
                    time: now,
                    source: "client".to_owned(),
                    name: name.to_owned(),
                    instance: Some(instance.clone()),
                    unit: unit.to_owned(),
                    value,
                });
            };
            add("channel_round_trip_ns", "ns", tcp.round_trip_ns as f64);
            add("channel_window_bytes", "bytes", tcp.window_bytes as f64);
            add("channel_in_flight_bytes", "bytes", tcp.in_flight_bytes as f64);
            let before = self
                .counted_retransmissions
                .iter()
                .find(|(connection, _)| *connection == state.connection);
            if let (Some(seconds), Some((_, before))) = (seconds.filter(|s| *s > 0.0), before) {
                let again = tcp.retransmissions.saturating_sub(*before) as f64;
                add("channel_retransmissions_per_second", "1/s", again / seconds);
            }
            seen.push((state.connection, tcp.retransmissions));
        }
        self.counted_retransmissions = seen;
        rows
    }

    fn hand_over(&mut self, recorder: &Recorder) {
        let rows = self.channels.take_rows(&self.recording);
        if !rows.is_empty() {
            recorder.part(Part::Channels(rows));
        }
    }

    /// The rest of the rows.
    pub fn finish(mut self, recorder: &Recorder) {
        self.channels.finish();
        self.hand_over(recorder);
    }
}

/// What is known of the interface with this address.
pub(super) fn judged_for(interfaces: &[Outcome], address: &str) -> Option<Judged> {
    let found = interfaces.iter().find(|one| {
        one.judged.offered.address.is_some_and(|offered| offered.to_string() == address)
    });
    found.map(|one| one.judged.clone())
}

/// The client's interface and the server's.
fn interfaces(offered: &Judged) -> (Option<Arc<str>>, Option<u64>) {
    let route = offered.route.as_ref();
    let client = route.and_then(|route| route.interface.as_deref()).map(Arc::from);
    (client, Some(u64::from(offered.offered.index)))
}

/// Why an offered address was used or not, after all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The offer, and what the policy said.
    pub judged: Judged,
    /// Channels that were bound to it.
    pub channels: u64,
    /// Why the last attempt failed, if one did: the word in the table, the status, and the sentence.
    pub failure: Option<(&'static str, Option<String>, String)>,
}

impl Outcome {
    /// The word in the column `reason`.
    pub fn word(&self) -> &'static str {
        match (&self.judged.verdict, &self.failure) {
            _ if self.channels > 0 => "used",
            (Verdict::Not(reason), _) => reason.word(),
            (Verdict::Use(_), Some((word, ..))) => word,
            (Verdict::Use(_), None) => "not_tried",
        }
    }

    /// The reason as a sentence.
    pub fn sentence(&self) -> String {
        match (&self.judged.verdict, &self.failure) {
            _ if self.channels > 0 => "used".to_owned(),
            (_, Some((_, _, sentence))) => sentence.clone(),
            (Verdict::Not(reason), None) => reason.to_string(),
            (Verdict::Use(_), None) => "the transfer ended before it was tried".to_owned(),
        }
    }

    /// The row in the table of interfaces; `first` is the connection on which the list came.
    pub fn row(&self, recording: &str, session_id: u64, first: &ChannelState) -> Option<Interface> {
        let offered = &self.judged.offered;
        let address: IpAddr = offered.address?;
        let can = |flag| offered.capabilities.contains(flag);
        Some(Interface {
            recording: recording.to_owned(),
            connection: first.connection,
            session_id: Some(session_id),
            client: first.client.0.clone(),
            server: first.server.0.clone(),
            index: u64::from(offered.index),
            address: address.to_string(),
            rss_capable: can(InterfaceCapabilities::RSS_CAPABLE),
            rdma_capable: can(InterfaceCapabilities::RDMA_CAPABLE),
            link_bits_per_second: offered.link_speed,
            used: self.channels > 0,
            reason: self.word().to_owned(),
            status: self.failure.as_ref().and_then(|(_, status, _)| status.clone()),
        })
    }
}

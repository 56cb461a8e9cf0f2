//! What a log of Windows says about SMB: packets, messages of SMB, and events of the server, as rows of
//! operations.
//!
//! Owns which events of a log become operations, when it has several kinds of them, and the coverage of that.
//! The log's buffers and records belong to `etl`, packets and messages to `smbscope_capture`.
//!
//! A log can say the same operation twice: as packets, and as events of the server. Only one kind becomes rows,
//! in this order: messages of the server, packets, requests and responses of the server. The server's work is
//! added to the rows of each kind.

mod client;
mod delay;
mod fields;
mod fragments;
pub mod log_events;
mod messages;
mod packets;
mod provider;
pub mod server;

use std::sync::Arc;

use foldhash::HashMap;
use smbscope_capture::{Error, Options, PushDecoder};
use smbscope_tables::Part;
use smbscope_tables::code::Vantage;
use smbscope_tables::tables::{Coverage, ServerEvent};

#[cfg(feature = "evtx")]
pub(crate) use client::REASON as CLIENT_REASON;
pub(crate) use fields::Fields;
pub use packets::Counts as PacketCounts;
pub use provider::{Guid, Provider};
pub use server::{Calibration, Machine, socket_address};

use crate::etl::clock::Clock;
use crate::etl::record::{Origin, Record};
use crate::event;
use client::ClientEvents;
use delay::{Delay, What};
use messages::{Connections, Messages};
use packets::{Layers, Packet, Packets};
use server::{Names, ServerEvents};

/// Which events of a log become operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Packets of NDIS or of the packet monitor.
    Packets,
    /// Messages of SMB in plaintext, which a provider of SMB wrote.
    Messages,
    /// Requests and responses of the server, without their bytes.
    Events,
    /// Sums of the client's requests, without their messages.
    Client,
}

/// Events of each kind that a log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub packets: u64,
    pub messages: u64,
    pub requests: u64,
    pub responses: u64,
    /// Requests that the client sums up.
    pub client_requests: u64,
    /// Events that the server, and those that the client, also writes to its event log.
    pub log_events: u64,
    pub client_log_events: u64,
}

impl Found {
    /// Counts an event. Returns whether it is of any of the kinds.
    pub fn count(&mut self, provider: Provider, id: u16) -> bool {
        let count = match provider {
            Provider::PacketCapture if packets::is_ndis(id) => &mut self.packets,
            Provider::PacketMonitor if packets::is_packet_monitor(id) => &mut self.packets,
            Provider::SmbServer | Provider::SmbClient if messages::is_message(id) => {
                &mut self.messages
            }
            Provider::SmbServer if server::is_request(id) || server::is_lease_break(id) => {
                &mut self.requests
            }
            Provider::SmbServer if server::is_response(id) => &mut self.responses,
            Provider::SmbClient if client::is_request(id) => &mut self.client_requests,
            // They belong to requests, which are counted.
            Provider::SmbClient if client::is_known(id) => return true,
            Provider::SmbClient if log_events::is_known(provider, id) => {
                &mut self.client_log_events
            }
            _ if log_events::is_known(provider, id) => &mut self.log_events,
            _ => return false,
        };
        *count += 1;
        true
    }

    /// Whether the log has only what the client writes to its event log.
    fn is_log_of_client(&self) -> bool {
        Found { client_log_events: 0, ..*self } == Found::default()
    }

    /// Which of them become operations.
    pub fn rows(&self) -> Option<Rows> {
        match *self {
            Found { messages: 1.., .. } => Some(Rows::Messages),
            Found { packets: 1.., .. } => Some(Rows::Packets),
            Found { requests: 1.., .. } | Found { responses: 1.., .. } => Some(Rows::Events),
            Found { client_requests: 1.., .. } => Some(Rows::Client),
            Found { log_events: 1.., .. } | Found { client_log_events: 1.., .. } => {
                Some(Rows::Events)
            }
            _ => None,
        }
    }
}

/// Keeps the latest value of a key; false if there are too many keys.
fn keep_latest<K: Eq + std::hash::Hash, V>(
    values: &mut HashMap<K, V>,
    most: usize,
    key: K,
    value: V,
) -> bool {
    let has_room = values.len() < most || values.contains_key(&key);
    if has_room {
        values.insert(key, value);
    }
    has_room
}

/// Times before 1970 and after 2096 come from damaged records.
const TIME_MAX_NS: i64 = 4_000_000_000_000_000_000;
/// Rows of the event log after which they are handed on.
const LOG_EVENTS: usize = 4_096;

/// What the first reading of a log collects.
#[derive(Debug, Default)]
pub struct Survey {
    pub found: Found,
    layers: Layers,
    names: Names,
    calibration: server::calibration::Survey,
    client: client::Survey,
}

/// The provider and number of an event that may say something about SMB.
#[inline]
pub fn event_of(record: &Record<'_>) -> Option<(Provider, u16)> {
    let Origin::Manifest { guid, id } = record.origin else { return None };
    Some((Provider::from_guid(&guid)?, id))
}

/// Whether the first reading of a log needs only the number of such events.
pub fn is_counted_only(origin: Origin) -> bool {
    let Origin::Manifest { guid, id } = origin else { return false };
    guid == Provider::PacketMonitor.guid().0 && packets::is_packet_monitor(id)
}

impl Survey {
    /// Takes packets of the packet monitor.
    pub fn packets(&mut self, count: u64) {
        self.found.packets += count;
    }

    /// Takes an event. Returns whether the second reading needs it.
    pub fn event(&mut self, record: &Record<'_>, clock: &Clock) -> bool {
        let Some((provider, id)) = event_of(record) else { return false };
        match provider {
            Provider::PacketCapture => self.layers.survey(record, id),
            Provider::SmbServer => {
                self.names.event(record, id);
                self.calibration.event(record, id, clock);
            }
            Provider::SmbClient => self.client.event(record, id, clock),
            Provider::PacketMonitor | Provider::ProcessorPower => {}
        }
        self.found.count(provider, id)
    }
}

/// Makes rows of operations, in the second reading of a log.
pub struct Operations {
    recording: Arc<str>,
    build: u32,
    rows: Rows,
    found: Found,
    feed: PushDecoder,
    packets: Packets,
    messages: Messages,
    connections: Connections,
    server: ServerEvents,
    client: Option<ClientEvents>,
    /// Frames and messages that wait for the events of the server about the same operations.
    delay: Option<Delay>,
    log_events: Vec<ServerEvent>,
}

impl std::fmt::Debug for Operations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operations").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Operations {
    /// Operations of a log that was surveyed; `None` if it has none.
    ///
    /// # Errors
    ///
    /// Those of [`PushDecoder::new`].
    pub fn new(
        recording: &str,
        survey: Survey,
        machine: Machine,
        options: &Options,
    ) -> Result<Option<Operations>, Error> {
        let Some(rows) = survey.found.rows() else { return Ok(None) };
        let calibration = survey.calibration.finish(machine);
        let client = match rows {
            Rows::Client => {
                Some(ClientEvents::new(recording, survey.client.finish(machine), options)?)
            }
            _ => None,
        };
        Ok(Some(Operations {
            recording: recording.into(),
            build: machine.build,
            rows,
            found: survey.found,
            feed: PushDecoder::new(recording, options)?,
            packets: Packets::new(&survey.layers),
            messages: Messages::new(),
            connections: Connections::default(),
            server: ServerEvents::new(calibration, survey.names),
            client,
            delay: (!matches!(rows, Rows::Events | Rows::Client) && survey.found.responses > 0)
                .then(Delay::default),
            log_events: Vec::new(),
        }))
    }

    /// Takes an event and its time, ns since 1970; events in the order of time.
    pub fn event(&mut self, record: &Record<'_>, time_ns: i64) {
        let Some((provider, id)) = event_of(record) else { return };
        if !(0..=TIME_MAX_NS).contains(&time_ns) {
            self.server.counts.unknown += 1;
            return;
        }
        if log_events::is_known(provider, id) {
            let (version, payload) = (record.version, record.payload);
            match log_events::of_fields(provider, id, version, payload, time_ns, &self.recording) {
                Some(event) => self.log_events.push(event),
                None => self.server.counts.unknown += 1,
            }
            return;
        }
        if provider == Provider::SmbClient && client::is_known(id) {
            if let Some(client) = &mut self.client {
                client.event(record, id, time_ns);
            }
            return;
        }
        let Operations { feed, delay, rows, packets, messages, connections, server, .. } = self;
        let mut frame = |packet: Packet<'_>| match delay {
            Some(delay) => delay.frame(packet, time_ns),
            None => feed.frame(packet.link, packet.bytes, packet.original_bytes, time_ns),
        };
        match (provider, *rows) {
            (Provider::PacketCapture, Rows::Packets) => packets.ndis(record, id, frame),
            (Provider::PacketMonitor, Rows::Packets) => {
                packets.packet_monitor(record, id, &mut frame);
            }
            (Provider::SmbServer | Provider::SmbClient, Rows::Messages)
                if messages::is_message(id) =>
            {
                let is_server = provider == Provider::SmbServer;
                messages.event(record, id, is_server, |payload| match delay {
                    Some(delay) => delay.message(payload, is_server, time_ns),
                    None => connections.message(payload, is_server, time_ns, feed),
                });
            }
            (Provider::SmbServer, rows) => {
                let feed = (rows == Rows::Events).then_some(feed);
                server.event(record, id, time_ns, feed);
            }
            _ => {}
        }
        self.feed_until(time_ns);
    }

    /// Decodes what has waited long enough.
    fn feed_until(&mut self, time_ns: i64) {
        let Operations { feed, delay: Some(delay), connections, .. } = self else { return };
        while let Some(waiting) = delay.next(time_ns) {
            match waiting.what {
                What::Frame { link, original_bytes } => {
                    feed.frame(link, &waiting.bytes, original_bytes, waiting.time_ns);
                }
                What::Message { is_server } => {
                    connections.message(&waiting.bytes, is_server, waiting.time_ns, feed);
                }
            }
            delay.recycle(waiting.bytes);
        }
    }

    /// Whether [`Operations::parts`] should be called now.
    #[inline]
    pub fn wants_out(&self) -> bool {
        self.feed.wants_out()
            || self.log_events.len() >= LOG_EVENTS
            || self.client.as_ref().is_some_and(ClientEvents::wants_out)
    }

    /// Everything that ended since the last call.
    ///
    /// # Errors
    ///
    /// Arrow's.
    pub fn parts(&mut self) -> Result<Vec<Part>, Error> {
        let Operations { feed, server, client, rows, recording, log_events, .. } = self;
        let mut parts = feed.parts(&mut |row, ends| server.amend(row, ends, *rows))?;
        parts.push(server.take_slices(recording, *rows)?);
        if let Some(client) = client {
            parts.extend(client.parts()?);
        }
        if !log_events.is_empty() {
            parts.push(Part::ServerEvents(std::mem::take(log_events)));
        }
        parts.iter_mut().for_each(|part| server.complete(part, *rows));
        Ok(parts)
    }

    /// The last parts, the coverage the last of them. `log` is what the whole log contained, `joined` the name of another
    /// log whose events were taken, too.
    ///
    /// # Errors
    ///
    /// Arrow's.
    pub fn end(mut self, log: &event::Coverage, joined: Option<&str>) -> Result<Vec<Part>, Error> {
        self.feed_until(i64::MAX);
        let Operations { feed, mut server, rows, recording, mut packets, mut messages, .. } = self;
        let not_messages = self.connections.discarded;
        let (found, build) = (self.found, self.build);
        let mut client = self.client;
        let packets = packets.end();
        let discarded = messages.end() + not_messages;
        let mut parts = feed.end(&mut |row, ends| server.amend(row, ends, rows), |coverage| {
            coverage.file_bytes = log.read_bytes;
            (coverage.events_lost, coverage.buffers_lost) = (log.events_lost, log.buffers_lost);
            coverage.records_damaged = log.damaged;
            coverage.cut_off =
                log.first_damaged.as_ref().map(|first| format!("damaged at {first}"));
            // Events of the server alone have no packets.
            coverage.start = coverage.start.or(log.start_ns);
            coverage.end = coverage.end.or(log.end_ns);
            coverage.format = format(rows, &found, build);
            coverage.resolution_ns = Some(100);
            match rows {
                Rows::Packets => cover_packets(coverage, packets),
                Rows::Messages => {
                    coverage.messages_malformed += discarded;
                    coverage.frames = 0;
                }
                Rows::Events | Rows::Client => coverage.frames = 0,
            }
        })?;
        // The coverage is the last part.
        let slices = server.take_slices(&recording, rows)?;
        parts.insert(parts.len().saturating_sub(1), slices);
        if let Some(client) = &mut client {
            for part in client.end()? {
                parts.insert(parts.len().saturating_sub(1), part);
            }
        }
        if !self.log_events.is_empty() {
            parts.insert(parts.len().saturating_sub(1), Part::ServerEvents(self.log_events));
        }
        parts.iter_mut().for_each(|part| server.complete(part, rows));
        if let Some(Part::Coverage(coverage)) = parts.last_mut() {
            let inside = match rows {
                Rows::Packets => None,
                Rows::Client => Some((Vantage::Client, client::REASON)),
                Rows::Events if found.is_log_of_client() => Some((Vantage::Client, client::REASON)),
                Rows::Messages | Rows::Events => Some((Vantage::Inside, server::REASON)),
            };
            if let Some((vantage, reason)) = inside {
                coverage.vantage = Some(vantage.name().to_owned());
                reason.clone_into(&mut coverage.vantage_reason);
            }
            if rows == Rows::Events {
                coverage.connections_mid_stream = server.begun_before();
            }
            let counts = &server.counts;
            coverage.messages_unknown += counts.unknown;
            coverage.operations_discarded += counts.limited;
            if let Some(client) = &client {
                coverage.operations += client.rows;
                coverage.messages_unknown += client.unknown;
                coverage.operations_discarded += client.limited;
            }
            let joined = joined.map(|name| {
                format!(
                    "Joined with {name}, a log of the same machine and time: packets and events of the server are the same operations."
                )
            });
            let notes = notes(&found, rows, &server, client.as_ref(), packets);
            let notes: Vec<_> = joined.into_iter().chain(notes).collect();
            coverage.notes = (!notes.is_empty()).then(|| notes.join(" "));
        }
        Ok(parts)
    }
}

fn format(rows: Rows, found: &Found, build: u32) -> String {
    let what = match rows {
        Rows::Packets if found.responses > 0 => "packets and events of SMBServer",
        Rows::Packets => "packets",
        Rows::Messages if found.responses > 0 => "messages of SMB and events of SMBServer",
        Rows::Messages => "messages of SMB",
        Rows::Events if found.is_log_of_client() => "events of SMBClient",
        Rows::Events if found.requests > 0 && found.responses == 0 => "requests of SMBServer",
        Rows::Client => "requests of SMBClient",
        Rows::Events => "events of SMBServer",
    };
    format!("Windows event trace log ({what}), build {build}")
}

fn cover_packets(coverage: &mut Coverage, counts: &PacketCounts) {
    coverage.wire_bytes = counts.wire_bytes;
    coverage.frames_cut = counts.cut;
    coverage.frames_repeated += counts.repeated;
    coverage.frames_malformed += counts.damaged;
}

/// What a reader of the report should know about the events.
fn notes(
    found: &Found,
    rows: Rows,
    server: &ServerEvents,
    client: Option<&ClientEvents>,
    packets: &PacketCounts,
) -> Option<String> {
    let mut notes = Vec::new();
    if let Some(unit) = client.map(ClientEvents::unit) {
        let sure = if unit.is_checked { "" } else { " (not sure)" };
        notes.push(format!(
            "The client's time: {}{sure}. These events have no connection, session and status.",
            unit.reason
        ));
    }
    if rows != Rows::Client && found.client_requests > 0 {
        notes.push(format!(
            "The log also has {} requests of the client, which show the same operations: they were not decoded.",
            found.client_requests
        ));
    }
    if let Some(calibration) = server.calibration() {
        let sure = if calibration.is_checked { "" } else { " (not sure)" };
        notes.push(format!("The server's time: {}{sure}.", calibration.reason));
    }
    if rows != Rows::Packets && found.packets > 0 {
        notes.push(format!(
            "The log also has {} packets, which show the same operations: they were not decoded.",
            found.packets
        ));
    }
    let mut dropped: Vec<_> = packets.dropped.iter().collect();
    dropped.sort_by_key(|(reason, count)| (std::cmp::Reverse(**count), **reason));
    if !dropped.is_empty() {
        let all: u64 = packets.dropped.values().sum();
        let first: Vec<_> =
            dropped.iter().take(5).map(|(r, n)| format!("{n} for reason {r}")).collect();
        notes.push(format!(
            "Windows dropped {all} packets ({}; `pktmon` lists the reasons).",
            first.join(", ")
        ));
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

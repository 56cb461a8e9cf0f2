//! What the resolver knows of channels: rows of the tables `channels` and `interfaces`.
//!
//! Does not own how rows are made of events ([`smbscope_tables::channels`]), nor what TCP does in an
//! interval (`tcp::interval`).

use std::borrow::Cow;
use std::net::IpAddr;

use smbscope_tables::channels::{Channels, Direction, Limits, Opened, Transfer};
use smbscope_tables::code;
use smbscope_tables::interface::{self, Path};
use smbscope_tables::open::smb2_writes;
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::tables::{Connection, Interface};
use smbscope_wire::smb1;
use smbscope_wire::status::Status;

use super::Map;
use super::connections::ConnectionState;
use crate::outcome::{self, ConnectionStart, NetworkSample};

/// Answers with interfaces that are kept until the end of the recording.
const OFFERS_MAX: usize = 4_096;
/// A connection whose requests have no reply for this time, while others get replies, is lost, ns.
const SILENT_NS: i64 = 3_000_000_000;
/// Others get replies for this time after the end of a connection that was lost, ns: otherwise all ended.
const OUTLIVED_NS: i64 = 100_000_000;
/// Sessions' paths that are remembered.
const PATHS_MAX: usize = 65_536;

/// Interfaces that a server offered on one connection.
#[derive(Clone)]
struct Offer {
    connection: u64,
    session_id: Option<u64>,
    client: IpAddr,
    server: IpAddr,
    text: String,
}

/// Channels of all sessions.
#[derive(Clone)]
pub(super) struct Timeline {
    pub(super) is_wanted: bool,
    pub(super) wants_interfaces: bool,
    /// Rows of the table `channels`.
    pub(super) channels: Channels,
    offers: Vec<Offer>,
    /// Sessions and addresses of their servers that were tried.
    paths: Map<(u64, IpAddr), Path>,
    latest: i64,
    /// End of the last response on any connection.
    heard: i64,
}

impl Timeline {
    pub(super) fn new(is_wanted: bool, wants_interfaces: bool, connections: usize) -> Timeline {
        // The limit of the shards holds for each of them.
        let limits = Limits { connections: connections.saturating_mul(64), ..Limits::default() };
        Timeline {
            is_wanted,
            wants_interfaces,
            channels: Channels::new(limits),
            offers: Vec::new(),
            paths: Map::default(),
            latest: i64::MIN,
            heard: i64::MIN,
        }
    }

    pub(super) fn connection(&mut self, connection: &ConnectionState, started: &ConnectionStart) {
        if !self.is_wanted {
            return;
        }
        self.channels.open(
            connection.number,
            started.time,
            Opened {
                at: started.opened,
                client: connection.client_name.shared().unwrap_or_default(),
                client_port: connection.client_port,
                server: connection.server_name.shared().unwrap_or_default(),
                server_port: connection.server_port,
                transport: Some(Cow::Borrowed(started.transport)),
                ..Opened::default()
            },
        );
    }

    /// A session setup was answered.
    pub(super) fn setup(
        &mut self,
        connection: &ConnectionState,
        (id, channel): (u64, Option<u32>),
        setup: &outcome::Session,
        row: &Operation,
        time: i64,
    ) {
        let Some(status) = row.status() else { return };
        let is_refused = setup.refused && setup.binding && Status(status).is_error();
        let key = (id, connection.server);
        let is_new = self.paths.len() < PATHS_MAX || self.paths.contains_key(&key);
        if let Some(channel) = channel.filter(|_| Status(status) == Status::SUCCESS) {
            self.channels.bind(connection.number, id, channel.into(), Some(time));
            if is_new {
                self.paths.insert(key, Path::Used);
            }
        } else if is_refused {
            let name = code::text(Column::status_name, code::status_name(status));
            self.channels.refuse(connection.number, id, time, name.clone());
            if is_new {
                self.paths.entry(key).or_insert(Path::Refused(name.into_owned()));
            }
        }
    }

    /// A session is used on a connection without its setup having been captured.
    pub(super) fn join(&mut self, connection: &ConnectionState, id: u64, channel: u32) {
        self.channels.bind(connection.number, id, channel.into(), None);
        if self.paths.len() < PATHS_MAX {
            self.paths.insert((id, connection.server), Path::Used);
        }
    }

    /// An operation ended.
    #[inline]
    pub(super) fn operation(
        &mut self,
        connection: &mut ConnectionState,
        row: &Operation,
        time: i64,
    ) {
        if !self.is_wanted {
            return;
        }
        let writes = match row.command() {
            Some(command) if row.protocol() == Some(1) => {
                smb1::Command(command as u8).writes_data()
            }
            _ => smb2_writes(row),
        };
        self.latest = self.latest.max(time);
        self.channels.advance(self.latest);
        let answered = row.response_end().or(row.response_start());
        if let Some(end) = answered {
            connection.answered_until = connection.answered_until.max(end);
            self.heard = self.heard.max(end);
        }
        let Some(writes) = writes.filter(|_| row.waits() != Some(true)) else { return };
        if let (None, Some(start)) = (answered, row.request_start()) {
            connection.unanswered_from = connection.unanswered_from.max(start);
        }
        // A later member of a compound has no times of its own; a request or reply may be missing.
        let end = row.response_end().or(row.response_start()).unwrap_or(time);
        let begin = row.request_start().unwrap_or(end).min(end);
        let transfer = Transfer {
            direction: if writes { Direction::Write } else { Direction::Read },
            bytes: row.transferred_bytes().unwrap_or(0),
            request: (begin, row.request_end().unwrap_or(begin).max(begin)),
            response: (row.response_start().unwrap_or(end).min(end), end),
            outstanding: row.outstanding(),
        };
        self.channels.transfer(connection.number, row.session_id(), &transfer);
    }

    pub(super) fn network(&mut self, connection: u64, sample: &NetworkSample) {
        if self.is_wanted {
            self.channels.network(connection, sample.time, &sample.state);
        }
    }

    pub(super) fn connection_ended(&mut self, connection: &ConnectionState, row: &Connection) {
        if let Some((at, reason)) = self.loss(connection, row) {
            self.channels.lose(connection.number, at, reason, None);
        }
        self.channels.close(connection.number);
        if let Some(text) = &row.server_interfaces
            && self.wants_interfaces
            && self.offers.len() < OFFERS_MAX
        {
            self.offers.push(Offer {
                connection: connection.number,
                session_id: connection.sessions.first().map(|&(id, ..)| id),
                client: connection.client,
                server: connection.server,
                text: text.clone(),
            });
        }
    }

    /// When and how a connection was lost: its last requests have no reply, it got some before, and others get
    /// replies afterwards.
    fn loss(&self, connection: &ConnectionState, row: &Connection) -> Option<(i64, &'static str)> {
        let (answered, unanswered) = (connection.answered_until, connection.unanswered_from);
        if !self.is_wanted || answered == i64::MIN || unanswered < answered {
            return None;
        }
        let after = |at: i64| self.heard.saturating_sub(at);
        match row.end_reason.as_str() {
            "reset" if after(row.end) >= OUTLIVED_NS => Some((row.end, "reset")),
            "fin" if after(row.end) >= OUTLIVED_NS => Some((row.end, "fin")),
            "reset" | "fin" => None,
            // A server that is only slow acknowledges the request.
            _ => (after(answered) >= SILENT_NS && row.retransmissions_to_server > 0)
                .then_some((answered, "silent")),
        }
    }

    /// What was before does not belong to the recording that begins.
    pub(super) fn begin_recording(&mut self) {
        self.channels.forget_intervals();
    }

    /// The recording ends. Returns the rows of interfaces.
    pub(super) fn end(&mut self, recording: &str) -> Vec<Interface> {
        self.channels.finish();
        (self.latest, self.heard) = (i64::MIN, i64::MIN);
        let paths = std::mem::take(&mut self.paths);
        let mut rows = Vec::new();
        for offer in self.offers.drain(..) {
            let offered = interface::from_text(&offer.text);
            let path = |address| Some(paths.get(&(offer.session_id?, address))?.clone());
            let reasons = interface::reasons(&offered, offer.client, offer.server, path);
            rows.extend(offered.iter().zip(reasons).map(|(one, (reason, status))| Interface {
                recording: recording.to_owned(),
                connection: offer.connection,
                session_id: offer.session_id,
                client: offer.client.to_string(),
                server: offer.server.to_string(),
                index: one.index.into(),
                address: one.address.to_string(),
                rss_capable: one.has_rss,
                rdma_capable: one.has_rdma,
                link_bits_per_second: one.speed,
                used: reason == interface::Reason::Used,
                reason: reason.name().to_owned(),
                status,
            }));
        }
        rows
    }
}

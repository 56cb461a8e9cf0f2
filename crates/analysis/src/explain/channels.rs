//! Channels of a session: those that the server refused, interfaces that it offers and that the client does
//! not use, and channels that carry nothing (MS-SMB2 sections 3.2.4.1.7, 3.2.5.5, 3.3.5.5.2 and 3.3.5.15.11).
//!
//! Nothing is said about a client that never tries a channel and never queries the server's interfaces.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hashbrown::HashMap;
use smbscope_tables::interface::{self, ServerInterface};
use smbscope_tables::tables::Connection;
use smbscope_wire::status::Status;

use super::connections::{Connections, list_names};
use super::data::About;
use super::operation::{Act, Operation};
use crate::channels::{ChannelFinding, ChannelFindingKind};

/// From this many bytes on, a second channel is worth its setup.
const MANY_BYTES: u64 = 64 << 20;
/// A channel with this share of the bytes carries nearly all.
const NEARLY_ALL: f64 = 0.9;
/// Most sessions, clients and refusals that are followed, and connections and lists of each.
const SESSIONS_MAX: usize = 65_536;
const CONNECTIONS_MAX: usize = 64;
const LISTS_MAX: usize = 8;
/// Most notes of one kind.
const NOTES_MAX: usize = 3;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Recording and connection.
type Key = (u32, u64);

/// A client's connections, and the interfaces that servers offered it.
#[derive(Default)]
struct Client {
    address: Box<str>,
    /// The server's address and the bytes of each.
    connections: Vec<(Box<str>, u64)>,
    /// The server's address on the connection that queried, and its interfaces.
    offered: Vec<(Box<str>, Vec<ServerInterface>)>,
}

/// Channels of all sessions.
#[derive(Default)]
pub(super) struct Channels {
    /// Recording and client: its GUID if known, otherwise its address.
    clients: Map<(u32, String), Client>,
    /// Recording and SessionId: connections, and whether each was added to the session.
    sessions: Map<(u32, u64), Vec<(u64, bool)>>,
    /// Refused bindings by connection and status.
    refused: Map<(Key, u32), u64>,
}

impl Channels {
    pub(super) fn connection(&mut self, recording: u32, row: &Connection) {
        let client = row.client_guid.as_ref().unwrap_or(&row.client).clone();
        let key = (recording, client);
        if self.clients.len() >= SESSIONS_MAX && !self.clients.contains_key(&key) {
            return;
        }
        let client = self.clients.entry(key).or_default();
        client.address = row.client.as_str().into();
        let server: Box<str> = row.server.as_str().into();
        if let Some(text) = &row.server_interfaces
            && client.offered.len() < LISTS_MAX
        {
            client.offered.push((server.clone(), interface::from_text(text)));
        }
        if client.connections.len() < CONNECTIONS_MAX {
            let bytes = row.bytes_to_client.saturating_add(row.bytes_to_server);
            client.connections.push((server, bytes));
        }
    }

    pub(super) fn see(&mut self, op: &Operation) {
        let columns = op.columns;
        if op.act != Act::Logon || columns.command.get(op.row) != Some("SessionSetup") {
            return;
        }
        let (Some(id), Some(status)) = (columns.session_id.get(op.row), op.status) else { return };
        let is_binding = columns.detail.get(op.row) == Some("Bind");
        match Status(status) {
            Status::SUCCESS => {
                let key = (op.recording, id);
                if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&key) {
                    return;
                }
                let session = self.sessions.entry(key).or_default();
                let is_known = session.iter().any(|(known, _)| *known == op.connection);
                if !is_known && session.len() < CONNECTIONS_MAX {
                    session.push((op.connection, is_binding));
                }
            }
            status if is_binding && status.is_error() && status != MORE_PROCESSING => {
                let key = ((op.recording, op.connection), status.0);
                if self.refused.len() < SESSIONS_MAX || self.refused.contains_key(&key) {
                    *self.refused.entry(key).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// How many connections the session of a connection has, where channels were added to it; otherwise one.
    pub(super) fn of(&self, (recording, connection): Key) -> usize {
        let sessions = self.sessions.iter().filter(|(key, _)| key.0 == recording);
        let channels = sessions.map(|(_, channels)| channels).filter(|channels| {
            channels.iter().any(|(number, _)| *number == connection)
                && channels.iter().any(|(_, is_binding)| *is_binding)
        });
        channels.map(Vec::len).max().unwrap_or(1)
    }

    /// Notes about channels; not about what `found` says with more detail.
    pub(super) fn notes(
        &self,
        connections: &Connections,
        found: &[ChannelFinding],
        note: &mut impl FnMut(bool, About, String),
    ) {
        let has = |kind| found.iter().any(|one| one.kind == kind);
        let refused = if has(ChannelFindingKind::BindRefused) {
            Vec::new()
        } else {
            self.refused(connections)
        };
        let without_gain = self.without_gain(connections);
        let unused =
            if has(ChannelFindingKind::InterfaceUnused) { Vec::new() } else { self.unused() };
        for sentences in [refused, unused, without_gain] {
            for sentence in sentences.into_iter().take(NOTES_MAX) {
                note(true, About::Channels, sentence);
            }
        }
    }

    /// Channels that the client tried to add and the server refused, by server and status.
    fn refused(&self, connections: &Connections) -> Vec<String> {
        let mut groups: BTreeMap<(String, u32), (u64, BTreeSet<String>)> = BTreeMap::new();
        for ((key, status), times) in &self.refused {
            let facts = connections.get(*key);
            let end = |address: Option<&str>| address.unwrap_or("unknown").to_owned();
            let server = end(facts.map(|facts| &*facts.server));
            let group = groups.entry((server, *status)).or_default();
            group.0 += times;
            group.1.insert(end(facts.map(|facts| &*facts.client)));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, (times, _))| std::cmp::Reverse(*times));
        let sentence = |((server, status), (times, clients)): ((String, u32), (u64, _))| {
            let name = Status(status).name();
            let name = name.map_or_else(|| format!("0x{status:08x}"), str::to_owned);
            let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!(
                "the server refused {times} to add a channel at {server} to a session of client {} ({name}): {}",
                list_names(&clients),
                reason(Status(status))
            )
        };
        groups.into_iter().map(sentence).collect()
    }

    /// Sessions with several channels of which one carries nearly everything.
    fn without_gain(&self, connections: &Connections) -> Vec<String> {
        let mut sessions: Vec<_> = self.sessions.iter().collect();
        sessions.sort_unstable_by_key(|(key, _)| **key);
        let sentence = |(&(recording, _), channels): (&(u32, u64), &Vec<(u64, bool)>)| {
            // A session that ended and another one with its id are not channels of each other.
            let is_bound = channels.iter().any(|(_, is_binding)| *is_binding);
            let facts =
                channels.iter().filter_map(|(number, _)| connections.get((recording, *number)));
            let facts: Vec<_> = facts.filter(|_| is_bound).collect();
            let all = facts.iter().fold(0_u64, |sum, facts| sum.saturating_add(facts.bytes));
            let most = facts.iter().max_by_key(|facts| facts.bytes)?;
            let share = most.bytes as f64 / all.max(1) as f64;
            (facts.len() > 1 && all > MANY_BYTES && share > NEARLY_ALL).then(|| {
                format!(
                    "one of {} channels of a session of client {} carries {:.0} % of the bytes (the one to {}): the \
                     others add nothing; the client sends most requests one at a time, or a slower interface \
                     carries the others",
                    facts.len(),
                    most.client,
                    100.0 * share,
                    most.server
                )
            })
        };
        sessions.into_iter().filter_map(sentence).collect()
    }

    /// Interfaces that servers offered to clients with many bytes, and that these do not use.
    fn unused(&self) -> Vec<String> {
        let mut clients: Vec<_> = self.clients.iter().collect();
        clients.sort_unstable_by_key(|(key, _)| (*key).clone());
        let mut sentences = Vec::new();
        for (_, client) in clients {
            let mut servers = BTreeSet::new();
            for (server, interfaces) in &client.offered {
                if servers.insert(server) {
                    sentences.extend(client.unused_of(server, interfaces));
                }
            }
        }
        sentences
    }
}

impl Client {
    fn unused_of(&self, server: &str, interfaces: &[ServerInterface]) -> Option<String> {
        let is_at = |one: &ServerInterface, address: &str| address.parse() == Ok(one.address);
        let is_of_server =
            |address: &str| address == server || interfaces.iter().any(|one| is_at(one, address));
        let mine = self.connections.iter().filter(|(address, _)| is_of_server(address));
        let mine: Vec<_> = mine.filter(|(_, bytes)| *bytes > 0).collect();
        let bytes = mine.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        if bytes < MANY_BYTES {
            return None;
        }
        let is_reached =
            |one: &&ServerInterface| mine.iter().any(|(address, _)| is_at(one, address));
        let used: Vec<_> = interfaces.iter().filter(is_reached).collect();
        let is_used = |index| used.iter().any(|one| one.index == index);
        // Without the interface in use (a NAT, an address of a cluster) nothing can be compared. Clients
        // leave slower interfaces out.
        let least = used.iter().map(|one| one.speed).max()?;
        let others: Vec<_> = interfaces
            .iter()
            .filter(|one| !is_used(one.index) && one.speed >= least && is_global(one.address))
            .collect();
        if !others.is_empty() {
            let names: BTreeSet<_> = others.iter().map(|one| described(one)).collect();
            return Some(format!(
                "the server {server} also offers {}, but the recording has no connection of client {} to it: the \
                 client has no route, no second interface, or multichannel is off (Windows: \
                 Get-SmbMultichannelConnection -IncludeNotSelected; Linux: mount options multichannel, \
                 max_channels=4)",
                list_names(&names),
                self.address
            ));
        }
        let rss = used.iter().find(|one| one.has_rss).filter(|_| mine.len() == 1)?;
        Some(format!(
            "the server's interface {} allows several channels, but client {} uses one connection: its own interface \
             has no RSS, or multichannel is off (Windows: Get-NetAdapterRss, Get-SmbMultichannelConnection; Linux: \
             mount options multichannel, max_channels=4)",
            described(rss),
            self.address
        ))
    }
}

/// Whether an address is more than link-local or loopback.
fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_link_local() && !address.is_loopback(),
        IpAddr::V6(address) => !address.is_unicast_link_local() && !address.is_loopback(),
    }
}

fn described(one: &ServerInterface) -> String {
    let flags = [(one.has_rss, ", RSS"), (one.has_rdma, ", RDMA")];
    let flags: String = flags.iter().filter(|(has, _)| *has).map(|(_, text)| *text).collect();
    format!("{} ({:.1} Gbit/s{flags})", one.address, one.speed as f64 / 1e9)
}

const MORE_PROCESSING: Status = Status::MORE_PROCESSING_REQUIRED;

/// Why servers refuse a channel with that status.
fn reason(status: Status) -> &'static str {
    match status {
        Status::ACCESS_DENIED => {
            "the server could not verify the request's signature, or requires encryption for everything (Samba: smb \
             encrypt = required in [global]; Windows: EncryptData with RejectUnencryptedAccess), which a channel \
             that is being added does not have yet"
        }
        Status::USER_SESSION_DELETED => {
            "the session does not exist at that address: it leads to another node or another server, the ClientGUID \
             differs, or the session ended in the meantime"
        }
        Status::REQUEST_NOT_ACCEPTED => {
            "the server does not accept channels on this connection (Samba: server multi channel support; Windows: \
             Set-SmbServerConfiguration -EnableMultiChannel $true), or the connection is a channel already"
        }
        Status::INVALID_PARAMETER => {
            "the new connection has another dialect than the session, or the request was not signed"
        }
        Status::NOT_SUPPORTED => {
            "sessions of guests and anonymous users have no channels; or cipher and signing algorithm differ"
        }
        Status::INSUFFICIENT_RESOURCES => "the session has as many channels as the server allows",
        Status::NETWORK_SESSION_EXPIRED => {
            "the session had expired: the client must log on again first"
        }
        _ => "no reason is known for this status; the server's log may have one",
    }
}

//! Live connections, as the resolver knows them.

use std::net::IpAddr;

use super::Map;
use super::interned::Interned;
use crate::outcome::ConnectionStart;

/// Sessions of one connection that are found without hashing.
const SESSIONS: usize = 64;

/// A connection as the shards number it.
pub type ConnectionKey = (u32, u32);

/// What is known of a connection across its operations.
#[derive(Clone)]
pub struct ConnectionState {
    /// Its number in the recording.
    pub number: u64,
    pub client: IpAddr,
    pub server: IpAddr,
    /// The client's address as text.
    pub client_name: Interned,
    /// The server's address as text.
    pub server_name: Interned,
    /// The client's TCP port.
    pub client_port: u16,
    /// The server's TCP port.
    pub server_port: u16,
    /// Sessions on the connection and their channel number, the latest used first.
    pub sessions: Vec<(u64, u32, u32)>,
    /// Number of the current compound, whose members work on the file that its Create names.
    pub chain: u64,
    /// Its path.
    pub chain_path: Interned<String>,
    /// Path of another operation.
    pub path: Interned<String>,
    /// Indexes of the tree and the open that were used last, which are tried first.
    pub tree: u32,
    /// See `tree`.
    pub handle: u32,
    /// End of the last response.
    pub answered_until: i64,
    /// Beginning of the last Read or Write without a response.
    pub unanswered_from: i64,
}

impl ConnectionState {
    /// A connection that has just started to carry SMB.
    pub fn new(number: u64, started: &ConnectionStart) -> ConnectionState {
        let (client, server) = (started.client, started.server);
        ConnectionState {
            number,
            client: client.ip(),
            server: server.ip(),
            client_name: Interned::new(&client.ip().to_string()),
            server_name: Interned::new(&server.ip().to_string()),
            client_port: client.port(),
            server_port: server.port(),
            sessions: Vec::new(),
            chain: 0,
            chain_path: Interned::default(),
            path: Interned::default(),
            tree: 0,
            handle: 0,
            answered_until: i64::MIN,
            unanswered_from: i64::MIN,
        }
    }

    /// A session is used on it for the first time.
    pub fn join(&mut self, id: u64, place: u32, channel: u32) {
        self.sessions.insert(0, (id, place, channel));
        self.sessions.truncate(SESSIONS);
    }
}

/// A power of two.
const RECENT: usize = 32;

/// Live connections. One is taken out while its operation changes the rest of the state.
#[derive(Clone, Default)]
pub struct Connections {
    places: Map<ConnectionKey, u32>,
    /// The last ones used, by the low bits of their number: connections take turns.
    recent: [Option<(ConnectionKey, u32)>; RECENT],
    slots: Vec<Option<Box<ConnectionState>>>,
    free: Vec<u32>,
}

impl Connections {
    /// Adds a connection.
    pub fn insert(&mut self, key: ConnectionKey, connection: ConnectionState) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.places.insert(key, place);
        self.put(place, Box::new(connection));
    }

    /// The connection with a key.
    pub fn get(&self, key: ConnectionKey) -> Option<&ConnectionState> {
        self.slots.get(*self.places.get(&key)? as usize)?.as_deref()
    }

    /// Takes one out of its place.
    #[inline]
    pub fn take(&mut self, key: ConnectionKey) -> Option<(u32, Box<ConnectionState>)> {
        let recent = &mut self.recent[key.1 as usize % RECENT];
        let place = match *recent {
            Some((known, place)) if known == key => place,
            _ => {
                let place = *self.places.get(&key)?;
                *recent = Some((key, place));
                place
            }
        };
        Some((place, self.slots.get_mut(place as usize)?.take()?))
    }

    /// Puts back what [`Connections::take`] took out.
    #[inline]
    pub fn put(&mut self, place: u32, connection: Box<ConnectionState>) {
        if let Some(slot) = self.slots.get_mut(place as usize) {
            *slot = Some(connection);
        }
    }

    /// Removes a connection that ended.
    pub fn remove(&mut self, key: ConnectionKey) -> Option<Box<ConnectionState>> {
        let (place, connection) = self.take(key)?;
        self.places.remove(&key);
        self.recent[key.1 as usize % RECENT] = None;
        self.free.push(place);
        Some(connection)
    }
}

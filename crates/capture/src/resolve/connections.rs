//! The connections that live, as the resolver knows them.

use std::net::IpAddr;

use super::Map;
use super::interned::Known;
use crate::outcome::Started;

/// Sessions of one connection that are looked up without a hash.
const SESSIONS: usize = 64;

/// A connection as the shards number it.
pub type LinkKey = (u32, u32);

/// What is known of a connection across its operations.
#[derive(Clone)]
pub struct Link {
    /// Its number in the recording.
    pub number: u64,
    /// The client.
    pub client: IpAddr,
    /// The server.
    pub server: IpAddr,
    /// The client's address as text.
    pub client_name: Known,
    /// The server's address as text.
    pub server_name: Known,
    /// The client's TCP port.
    pub client_port: u16,
    /// The server's TCP port.
    pub server_port: u16,
    /// Sessions on the connection and their channel number, the latest used first.
    pub sessions: Vec<(u64, u32, u32)>,
    /// Number of the compound at hand, whose members work on what its create names.
    pub chain: u64,
    /// Its path.
    pub chain_path: Known<String>,
    /// Path of another operation.
    pub path: Known<String>,
    /// Places of the tree and the open that were used last, to be tried first.
    pub tree: u32,
    /// See `tree`.
    pub handle: u32,
}

impl Link {
    /// A connection that just began to carry SMB.
    pub fn new(number: u64, started: &Started) -> Link {
        let (client, server) = (started.client, started.server);
        Link {
            number,
            client: client.ip(),
            server: server.ip(),
            client_name: Known::new(&client.ip().to_string()),
            server_name: Known::new(&server.ip().to_string()),
            client_port: client.port(),
            server_port: server.port(),
            sessions: Vec::new(),
            chain: 0,
            chain_path: Known::default(),
            path: Known::default(),
            tree: 0,
            handle: 0,
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

/// The connections that live. One is taken out while its operation changes the rest.
#[derive(Clone, Default)]
pub struct Links {
    places: Map<LinkKey, u32>,
    /// Of the last ones, by the low bits of their number: connections take turns.
    recent: [Option<(LinkKey, u32)>; RECENT],
    slots: Vec<Option<Box<Link>>>,
    free: Vec<u32>,
}

impl Links {
    /// One began.
    pub fn insert(&mut self, key: LinkKey, link: Link) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.places.insert(key, place);
        self.put(place, Box::new(link));
    }

    /// Looks at one.
    pub fn get(&self, key: LinkKey) -> Option<&Link> {
        self.slots.get(*self.places.get(&key)? as usize)?.as_deref()
    }

    /// Takes one out of its place.
    #[inline]
    pub fn take(&mut self, key: LinkKey) -> Option<(u32, Box<Link>)> {
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

    /// Puts it back.
    #[inline]
    pub fn put(&mut self, place: u32, link: Box<Link>) {
        if let Some(slot) = self.slots.get_mut(place as usize) {
            *slot = Some(link);
        }
    }

    /// One ended.
    pub fn remove(&mut self, key: LinkKey) -> Option<Box<Link>> {
        let (place, link) = self.take(key)?;
        self.places.remove(&key);
        self.recent[key.1 as usize % RECENT] = None;
        self.free.push(place);
        Some(link)
    }
}

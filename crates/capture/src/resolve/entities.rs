//! Sessions, trees and opens while they live: bounded tables, and their rows.

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::HashMap;
use smbscope_event::builder::Names;
use smbscope_event::code;
use smbscope_event::operation::{Column, Operation};
use smbscope_event::pool::Pool;
use smbscope_event::tables::{Coverage, Handle, Session, Tree};

use crate::output;

/// A text and its number in the batch's pool, looked up once per batch.
#[derive(Clone, Debug, Default)]
pub struct Known {
    text: Option<Box<str>>,
    /// One more than the pool's generation in which `number` is valid; 0 for none.
    generation: u64,
    number: u32,
    /// Number of a path's extension, valid as long as `number`.
    pub extension: Option<u32>,
}

impl Known {
    /// Keeps a text.
    pub fn new(text: &str) -> Known {
        Known { text: Some(text.into()), ..Known::default() }
    }

    /// Whether there is a text.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.text.is_some()
    }

    /// The text, empty when there is none.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// One more than the generation of its number.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Its number in the pool.
    #[inline]
    pub fn in_pool(&mut self, names: &mut Names, pool: impl Fn(&mut Names) -> &mut Pool) -> u32 {
        let generation = names.generation + 1;
        if self.generation != generation {
            self.number = pool(names).intern(self.text.as_deref().unwrap_or_default());
            self.generation = generation;
        }
        self.number
    }
}

/// Something with a key that lives for a while.
pub trait Entity {
    /// What it is found by.
    type Key: Copy + Eq + Hash;
    /// Its key.
    fn key(&self) -> Self::Key;
}

struct Slot<E> {
    entity: Option<E>,
    /// Told apart from an earlier entity in the same slot by the queue.
    stamp: u64,
}

/// A bounded table. Beyond its limit the oldest goes.
pub struct Entities<K, E> {
    index: HashMap<K, u32, foldhash::fast::RandomState>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
    ages: VecDeque<(u32, u64)>,
    retired: VecDeque<(u32, u64)>,
    stamp: u64,
    limit: usize,
    live: usize,
}

/// Closed opens that late replies may still name.
const RETIRED: usize = 512;

impl<K: Copy + Eq + Hash, E: Entity<Key = K>> Entities<K, E> {
    /// An empty table for `limit` entities.
    pub fn new(limit: usize) -> Self {
        Entities {
            index: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            ages: VecDeque::new(),
            retired: VecDeque::new(),
            stamp: 0,
            limit: limit.max(1),
            live: 0,
        }
    }

    /// The place of an entity.
    #[inline]
    pub fn find(&self, key: &K) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// The entity at a place.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&E> {
        self.slots.get(place as usize)?.entity.as_ref()
    }

    /// The entity at a place, to change.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut E> {
        self.slots.get_mut(place as usize)?.entity.as_mut()
    }

    /// Adds an entity; one with the same key, or the oldest beyond the limit, comes back.
    pub fn insert(&mut self, entity: E) -> (u32, Option<E>) {
        let key = entity.key();
        let mut evicted = self.index.get(&key).copied().and_then(|place| self.remove(place));
        if self.live >= self.limit && evicted.is_none() {
            evicted = self.remove_oldest();
        }
        self.stamp += 1;
        let slot = Slot { entity: Some(entity), stamp: self.stamp };
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(old) = self.slots.get_mut(place as usize) {
                    *old = slot;
                }
                place
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert(key, place);
        self.live += 1;
        self.ages.push_back((place, self.stamp));
        if self.ages.len() > 2 * self.live + 1024 {
            let slots = &self.slots;
            self.ages.retain(|&(place, stamp)| {
                slots
                    .get(place as usize)
                    .is_some_and(|slot| slot.stamp == stamp && slot.entity.is_some())
            });
        }
        (place, evicted)
    }

    /// Lets an entity live on a little for late replies; an earlier such one comes back.
    pub fn retire(&mut self, place: u32) -> Option<E> {
        let stamp = self.slots.get(place as usize)?.stamp;
        self.retired.push_back((place, stamp));
        if self.retired.len() <= RETIRED {
            return None;
        }
        let (place, stamp) = self.retired.pop_front()?;
        let same = self.slots.get(place as usize).is_some_and(|slot| slot.stamp == stamp);
        if same { self.remove(place) } else { None }
    }

    fn remove_oldest(&mut self) -> Option<E> {
        while let Some((place, stamp)) = self.ages.pop_front() {
            if self.slots.get(place as usize).is_some_and(|slot| slot.stamp == stamp)
                && let Some(entity) = self.remove(place)
            {
                return Some(entity);
            }
        }
        None
    }

    fn remove(&mut self, place: u32) -> Option<E> {
        let entity = self.slots.get_mut(place as usize)?.entity.take()?;
        let key = entity.key();
        if self.index.get(&key) == Some(&place) {
            self.index.remove(&key);
        }
        self.free.push(place);
        self.live -= 1;
        Some(entity)
    }

    /// Takes all out, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = E> + use<'_, K, E> {
        self.index.clear();
        self.retired.clear();
        self.free.clear();
        self.live = 0;
        let mut slots = std::mem::take(&mut self.slots);
        std::mem::take(&mut self.ages).into_iter().filter_map(move |(place, stamp)| {
            let slot = slots.get_mut(place as usize)?;
            if slot.stamp == stamp { slot.entity.take() } else { None }
        })
    }
}

/// A session while it lives.
pub struct SessionState {
    /// SessionId or UID.
    pub id: u64,
    key: u64,
    /// Its row so far.
    pub row: Session,
    /// DOMAIN\user.
    pub user: Known,
}

impl Entity for SessionState {
    // Servers reuse ids and clash in them: sessions are found through their connections.
    type Key = u64;
    fn key(&self) -> u64 {
        self.key
    }
}

impl SessionState {
    /// A session that was just seen; `key` tells it apart from all others of the recording.
    pub fn new(key: u64, id: u64, connection: u64, time: i64) -> SessionState {
        SessionState {
            id,
            key,
            row: Session {
                session_id: id,
                connection,
                start: time,
                end: time,
                ..Session::default()
            },
            user: Known::default(),
        }
    }

    /// Takes what a session setup tells.
    pub fn learn(&mut self, told: &output::Session) {
        if let Some(user) = &told.user {
            self.user = Known::new(user);
        }
        let row = &mut self.row;
        if told.workstation.is_some() {
            row.workstation.clone_from(&told.workstation);
        }
        if told.mechanism.is_some() {
            row.mechanism.clone_from(&told.mechanism);
        }
        row.guest = told.guest.or(row.guest);
        row.encrypt_data = told.encrypt_data.or(row.encrypt_data);
    }

    /// Its row.
    pub fn row(self, recording: &str) -> Session {
        Session {
            recording: recording.to_owned(),
            user: self.user.is_known().then(|| self.user.text().to_owned()),
            ..self.row
        }
    }
}

/// A tree while it lives.
pub struct TreeState {
    key: (u32, u32),
    /// Its row so far.
    pub row: Tree,
    /// `\\server\share`.
    pub share: Known,
}

impl Entity for TreeState {
    type Key = (u32, u32);
    fn key(&self) -> (u32, u32) {
        self.key
    }
}

impl TreeState {
    /// A tree that was just seen.
    pub fn new(key: (u32, u32), row: &Operation, time: i64) -> TreeState {
        TreeState {
            key,
            row: Tree {
                session_id: row.session_id().unwrap_or_default(),
                tree_id: u64::from(key.1),
                connection: row.connection().unwrap_or_default(),
                start: row.request_start().unwrap_or(time),
                end: time,
                ..Tree::default()
            },
            share: Known::default(),
        }
    }

    /// Takes what a tree connect tells.
    pub fn learn(&mut self, told: &output::Tree, share: Option<&str>) {
        if let Some(share) = share {
            self.share = Known::new(share);
        }
        let row = &mut self.row;
        row.share_type.clone_from(&told.share_type);
        row.share_flags = told.flags;
        row.capabilities = told.capabilities;
        row.continuous_availability = told.continuous_availability;
        row.encrypt_data = told.encrypt_data;
    }

    /// Its row.
    pub fn row(self, recording: &str) -> Tree {
        Tree {
            recording: recording.to_owned(),
            share: self.share.is_known().then(|| self.share.text().to_owned()),
            ..self.row
        }
    }
}

/// An open while it lives.
pub struct HandleState {
    key: (u32, [u8; 16]),
    protocol: u8,
    /// Its row so far.
    pub row: Handle,
    /// File or directory.
    pub path: Known,
    oplock: Option<u64>,
    lease: Option<u64>,
}

impl Entity for HandleState {
    type Key = (u32, [u8; 16]);
    fn key(&self) -> (u32, [u8; 16]) {
        self.key
    }
}

impl HandleState {
    /// An open that was just seen.
    pub fn new(key: (u32, [u8; 16]), number: u64, row: &Operation) -> HandleState {
        HandleState {
            key,
            protocol: row.protocol().unwrap_or(2),
            row: Handle {
                handle: number,
                connection: row.connection().unwrap_or_default(),
                session_id: row.session_id(),
                tree_id: row.tree_id().map(u64::from),
                ..Handle::default()
            },
            path: Known::default(),
            oplock: None,
            lease: None,
        }
    }

    /// Takes what a create tells.
    pub fn open(
        &mut self,
        row: &Operation,
        told: Option<&output::Open>,
        path: Option<&str>,
        time: i64,
    ) {
        if let Some(path) = path {
            self.path = Known::new(path);
        }
        self.oplock = row.oplock_granted();
        self.lease = row.lease_granted();
        let handle = &mut self.row;
        handle.opened_at = Some(time);
        handle.create_operation = row.operation();
        handle.desired_access = row.desired_access().map(u64::from);
        handle.share_access = row.share_access().map(u64::from);
        handle.create_options = row.create_options().map(u64::from);
        handle.write_through = row.write_through();
        if let Some(told) = told {
            handle.directory = told.directory;
            handle.size_bytes = told.size_bytes;
            handle.durable = told.durable;
            handle.persistent = told.persistent;
            handle.disk_file_id = told.disk_file_id;
        }
    }

    /// Counts an operation on it.
    #[inline]
    pub fn count(&mut self, row: &Operation) {
        const READ: u64 = 2 << 16 | 8;
        const WRITE: u64 = 2 << 16 | 9;
        let handle = &mut self.row;
        handle.operations += 1;
        let bytes = row.transferred_bytes().unwrap_or(0);
        match row.command() {
            Some(READ) => {
                handle.reads += 1;
                handle.read_bytes += bytes;
            }
            Some(WRITE) => {
                handle.writes += 1;
                handle.written_bytes += bytes;
            }
            Some(other) if self.protocol == 1 => match crate::smb1::data_direction(other as u8) {
                Some(true) => {
                    handle.writes += 1;
                    handle.written_bytes += bytes;
                }
                Some(false) => {
                    handle.reads += 1;
                    handle.read_bytes += bytes;
                }
                None => {}
            },
            _ => {}
        }
    }

    /// Takes what a close tells.
    pub fn close(&mut self, row: &Operation, size: Option<u64>, time: i64) {
        self.row.closed_at = Some(time);
        self.row.close_operation = row.operation();
        self.row.size_bytes = size.or(self.row.size_bytes);
    }

    /// Its row.
    pub fn row(self, recording: &str) -> Handle {
        let bytes: &[u8] = if self.protocol == 1 { &self.key.1[..2] } else { &self.key.1 };
        let text =
            |column, value: Option<u64>| value.map(|value| code::text(column, value).into_owned());
        Handle {
            recording: recording.to_owned(),
            path: self.path.is_known().then(|| self.path.text().to_owned()),
            file_id: hex(bytes),
            oplock: text(Column::oplock_granted, self.oplock),
            lease: text(Column::lease_granted, self.lease),
            ..self.row
        }
    }
}

/// Bytes in hexadecimal, without a formatter for each: every open has some.
fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Adds one set of counters to another; what is no counter stays.
pub fn add_counters(sum: &mut Coverage, more: &Coverage) {
    macro_rules! add {
        ($($counter:ident)*) => { $(sum.$counter += more.$counter;)* };
    }
    add!(frames_not_tcp frames_fragment frames_malformed frames_not_smb frames_time_backwards
        connections connections_mid_stream connections_one_direction connections_evicted
        retransmissions out_of_order gaps gap_bytes segments_discarded resynchronised
        skipped_bytes messages messages_cut messages_malformed messages_unknown
        messages_encrypted messages_decrypted decryption_failed messages_compressed
        decompression_failed operations_unanswered replies_unmatched operations_discarded
        commands_unknown);
}

//! Leases that a client holds, on files and directories, and what breaks do to them.
//!
//! A lease belongs to a path and has a key that the client chose; all opens of the path share it.
//! Directory leases let the client answer from its cache; the opens that it makes below such a
//! directory carry the directory's key (ParentLeaseKey), so that its own changes do not break its
//! own lease. MS-SMB2 sections 3.2.1.5, 3.2.4.3.8, 3.2.5.19.2.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use smbscope_wire::smb2::create_context::{Lease, LeaseV2};
use smbscope_wire::smb2::lease::{LeaseFlags, LeaseState};

/// One lease.
#[derive(Clone, Debug)]
pub struct Held {
    /// The file or directory, relative to the share.
    pub path: Arc<str>,
    /// Its key.
    pub key: [u8; 16],
    /// What the server granted and has not broken.
    pub state: LeaseState,
    /// Counts changes of the state (3.x).
    pub epoch: u16,
    /// Whether it is on a directory whose handle the client keeps.
    pub directory: bool,
}

/// The leases of one session.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    held: Vec<Held>,
    /// Breaks that came.
    pub breaks: u64,
}

/// A client's lease key for a path: the same each time it opens the path, different for every client.
pub fn key_of(client_guid: &[u8; 16], path: &str) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(client_guid);
    hash.update(path.to_lowercase());
    let hash = hash.finalize();
    std::array::from_fn(|place| hash[place])
}

impl Leases {
    /// The lease on a path, while it allows anything.
    pub fn held_on(&self, path: &str) -> Option<&Held> {
        self.held.iter().find(|held| held.state != LeaseState::NONE && same(&held.path, path))
    }

    /// Whether a directory's contents may be answered from the client's cache.
    pub fn caches_directory(&self, path: &str) -> bool {
        self.held_on(path)
            .is_some_and(|held| held.directory && held.state.contains(LeaseState::READ))
    }

    /// The directories whose contents may be answered from the client's cache.
    pub fn directories(&self) -> impl Iterator<Item = &Held> {
        let held = |held: &&Held| held.directory && held.state.contains(LeaseState::READ);
        self.held.iter().filter(held)
    }

    /// Whether the client holds a lease on the folder that contains `path`.
    pub fn holds_parent(&self, path: &str) -> bool {
        let parent = path.rsplit_once('\\').map_or("", |(parent, _)| parent);
        self.caches_directory(parent)
    }

    /// The lease to request when `path` is opened; `v2`: in a dialect with version 2 leases.
    pub fn wish(&self, guid: &[u8; 16], path: &str, state: LeaseState, v2: bool) -> Lease {
        let key = key_of(guid, path);
        let epoch = self.held.iter().find(|held| held.key == key).map_or(0, |held| held.epoch);
        let parent = path.rsplit_once('\\').map_or("", |(parent, _)| parent);
        let parent = self.held_on(parent).filter(|held| v2 && held.directory && !path.is_empty());
        Lease {
            key,
            state,
            flags: match parent {
                Some(_) => LeaseFlags::PARENT_LEASE_KEY_SET,
                None => LeaseFlags::default(),
            },
            v2: v2.then(|| LeaseV2 { parent_key: parent.map_or([0; 16], |held| held.key), epoch }),
        }
    }

    /// The server granted a lease.
    pub fn granted(&mut self, path: &Arc<str>, lease: &Lease, directory: bool) {
        let epoch = lease.v2.map_or(0, |v2| v2.epoch);
        match self.held.iter_mut().find(|held| held.key == lease.key) {
            Some(held) => {
                held.state = lease.state;
                held.epoch = epoch;
                held.directory |= directory;
            }
            None => self.held.push(Held {
                path: path.clone(),
                key: lease.key,
                state: lease.state,
                epoch,
                directory,
            }),
        }
    }

    /// The server broke a lease to `state`; returns the path if the lease is ours.
    pub fn broken(&mut self, key: &[u8; 16], state: LeaseState, epoch: u16) -> Option<Held> {
        self.breaks += 1;
        let held = self.held.iter_mut().find(|held| held.key == *key)?;
        held.state = state;
        held.epoch = epoch;
        Some(held.clone())
    }

    /// The last open under a lease was closed.
    pub fn released(&mut self, path: &str) {
        self.held.retain(|held| !same(&held.path, path));
    }

    /// The session is gone, and all leases with it.
    pub fn clear(&mut self) {
        self.held.clear();
    }

    /// Number of leases that allow something.
    pub fn len(&self) -> usize {
        self.held.iter().filter(|held| held.state != LeaseState::NONE).count()
    }

    /// Whether there is no such lease.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether two paths are equal to a server that ignores case.
fn same(left: &str, right: &str) -> bool {
    left == right || left.eq_ignore_ascii_case(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: [u8; 16] = [3; 16];

    fn directory(leases: &mut Leases, path: &str) -> [u8; 16] {
        let lease = leases.wish(&GUID, path, LeaseState(3), true);
        leases.granted(&Arc::from(path), &lease, true);
        lease.key
    }

    #[test]
    fn opens_below_a_leased_directory_carry_its_key() {
        let mut leases = Leases::default();
        let before = leases.wish(&GUID, "dir\\a", LeaseState(7), true);
        assert_eq!(before.parent_key(), None);
        let key = directory(&mut leases, "dir");
        assert!(leases.caches_directory("DIR"));
        let lease = leases.wish(&GUID, "dir\\a", LeaseState(7), true);
        assert_eq!((lease.parent_key(), lease.key), (Some(key), before.key));
        assert_eq!(leases.wish(&GUID, "dir\\a", LeaseState(7), false).v2, None);
        assert_ne!(key_of(&GUID, "dir"), key_of(&[4; 16], "dir"));
    }

    #[test]
    fn a_break_takes_the_cache_away() {
        let mut leases = Leases::default();
        let key = directory(&mut leases, "dir");
        assert!(leases.broken(&[9; 16], LeaseState::NONE, 1).is_none());
        let held = leases.broken(&key, LeaseState::NONE, 2).unwrap();
        assert_eq!((&*held.path, held.epoch), ("dir", 2));
        assert!(!leases.caches_directory("dir") && leases.is_empty());
        assert_eq!(leases.breaks, 2);
    }
}

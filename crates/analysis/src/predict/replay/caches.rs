//! What clients keep of directories, as rules that the recorded operations go through.
//!
//! Directory leases (MS-SMB2 section 3.2.5.7.5 and MS-FSA 2.1.4.12): the first open of a directory that
//! changes nothing is sent, gets a lease and stays open; from then on further opens of that directory
//! are answered by the client, listings once one was sent under the lease, and so are lookups of names
//! in it whose answer is known: because the directory was listed, or the same name was asked for under
//! the lease. What needs an open at the server (attributes of the volume, FSCTLs, notifications) goes
//! to the one that is kept. A change in the directory by another client takes the lease away; the
//! one that makes it does not wait for that.
//!
//! Collapsed opens (SMB 2.1): an open of a directory for which nothing but a Close follows is not sent
//! if the client opened that directory within ten seconds, nor is a lookup that failed within
//! ten seconds (the lifetime of the Windows redirector's caches).

use smbscope_tables::profile::CacheOption;

use super::Map;
use super::opens::{Opens, Use};
use super::role::Role;
use crate::rows::create_intent::CreateIntent as Opening;

type Set<T> = hashbrown::HashSet<T, foldhash::fast::RandomState>;

/// How long opens are collapsed, ns.
const LIFETIME_NS: i64 = 10_000_000_000;
/// Directories, names and opens that are remembered; beyond, all are forgotten, and what they would
/// have answered is sent.
const KNOWN_MAX: usize = 1 << 20;

/// STATUS_NO_MORE_FILES: a listing has ended.
const NO_MORE_FILES: u32 = 0x8000_0006;

/// Whether a status says what kind of thing a name stands for, or that there is none: no such file, name
/// not found, path not found, is a directory, is none.
fn tells_of_name(status: u32) -> bool {
    [0xC000_000F, 0xC000_0034, 0xC000_003A, 0xC000_00BA, 0xC000_0103].contains(&status)
}

/// A file or directory: numbers made of recording, share and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) own: u64,
    pub(super) parent: u64,
}

/// An operation, as far as caches care.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) client: u32,
    pub(super) role: Role,
    pub(super) handle: Option<(u32, u64)>,
    pub(super) place: Option<Place>,
    pub(super) start: i64,
    pub(super) status: u32,
    /// Create: only what is there is opened.
    pub(super) only_opens: bool,
    pub(super) opening: Opening,
}

/// A client's lease on a directory, or that it opened it lately.
struct Holder {
    client: u32,
    since: i64,
    is_listed: bool,
    /// The open that stays.
    kept: Option<(u32, u64)>,
}

/// All clients' caches.
pub(super) struct Caches {
    option: CacheOption,
    uses: Opens,
    creates: usize,
    directories: Map<u64, Vec<Holder>>,
    /// Lookups: when each client had the last answer.
    names: Map<(u32, u64), i64>,
    /// Opens that were never sent.
    answered: Set<(u32, u64)>,
    /// Opens that stay although they were closed.
    kept: Set<(u32, u64)>,
    /// Leases that were taken away.
    pub(super) breaks: u64,
    /// Of their opens those that had been closed before: the Close is sent then.
    pub(super) late_closes: u64,
    /// Creates of which a path is known.
    pub(super) known: u64,
}

impl Caches {
    /// Empty ones.
    pub(super) fn new(option: CacheOption, uses: Opens) -> Caches {
        Caches {
            option,
            uses,
            creates: 0,
            directories: Map::default(),
            names: Map::default(),
            answered: Set::default(),
            kept: Set::default(),
            breaks: 0,
            late_closes: 0,
            known: 0,
        }
    }

    /// Whether the client's cache answers an operation, so that it is not sent.
    pub(super) fn answer(&mut self, ask: &Ask) -> bool {
        match ask.role {
            Role::Create => {
                let used = self.uses.get(self.creates);
                self.creates += 1;
                match ask.place {
                    Some(place) => self.create(ask, place, used),
                    None => false,
                }
            }
            Role::Close => ask.handle.is_some_and(|handle| {
                let is_kept = self.directories_keep(ask, handle);
                self.answered.remove(&handle) || is_kept
            }),
            Role::List if self.option == CacheOption::DirLease => {
                let Some(holder) = ask.place.and_then(|place| self.holder(ask.client, place.own))
                else {
                    return false;
                };
                let was_listed = holder.is_listed;
                holder.is_listed |= ask.status == NO_MORE_FILES;
                was_listed
            }
            Role::Set | Role::Move(super::Direction::Write) => {
                self.changed(ask);
                false
            }
            _ => false,
        }
    }

    fn create(&mut self, ask: &Ask, place: Place, used: Use) -> bool {
        self.known += 1;
        if !ask.only_opens || ask.opening.deletes() {
            if ask.status == 0 {
                self.changed(ask);
            }
            return false;
        }
        if ask.status != 0 {
            return tells_of_name(ask.status) && self.name(ask, place);
        }
        if !ask.opening.only_looks() {
            return false;
        }
        // A name may be opened without saying that it is a directory; the share itself is one.
        let is_directory = ask.opening.is_of_directory()
            || used.is_listed()
            || place.own == place.parent
            || self.directories.contains_key(&place.own);
        let answered = match is_directory {
            true => self.directory(ask, place, used),
            // A file: what it is asked for afterwards needs the open.
            false => {
                used.is_none() && ask.opening.only_asks() && {
                    self.option == CacheOption::DirLease && self.name(ask, place)
                }
            }
        };
        if answered && let Some(handle) = ask.handle {
            if self.answered.len() >= KNOWN_MAX {
                self.answered.clear();
            }
            self.answered.insert(handle);
        }
        answered
    }

    /// An open of a directory that changes nothing.
    fn directory(&mut self, ask: &Ask, place: Place, used: Use) -> bool {
        let is_lease = self.option == CacheOption::DirLease;
        if let Some(holder) = self.holder(ask.client, place.own) {
            let is_answered = match is_lease {
                true => true,
                false => used.is_none() && ask.start - holder.since < LIFETIME_NS,
            };
            if !is_answered {
                holder.since = ask.start;
            }
            return is_answered;
        }
        if self.directories.len() >= KNOWN_MAX {
            self.directories.clear();
            self.kept.clear();
        }
        let kept = ask.handle.filter(|_| is_lease);
        let holder = Holder { client: ask.client, since: ask.start, is_listed: false, kept };
        self.directories.entry(place.own).or_default().push(holder);
        self.kept.extend(kept);
        false
    }

    /// A lookup of a name; what is known of it afterwards.
    fn name(&mut self, ask: &Ask, place: Place) -> bool {
        let key = (ask.client, place.own);
        let asked = self.names.get(&key).copied();
        let answered = match self.option {
            CacheOption::DirLease => self.holder(ask.client, place.parent).is_some_and(|holder| {
                holder.is_listed || asked.is_some_and(|asked| asked >= holder.since)
            }),
            _ => asked.is_some_and(|asked| ask.start - asked < LIFETIME_NS),
        };
        if !answered {
            if self.names.len() >= KNOWN_MAX {
                self.names.clear();
            }
            self.names.insert(key, ask.start);
        }
        answered
    }

    fn holder(&mut self, client: u32, directory: u64) -> Option<&mut Holder> {
        self.directories.get_mut(&directory)?.iter_mut().find(|holder| holder.client == client)
    }

    /// Whether a Close is not sent because the open stays for the lease.
    fn directories_keep(&mut self, ask: &Ask, handle: (u32, u64)) -> bool {
        if !self.kept.remove(&handle) {
            return false;
        }
        // Its lease may be gone.
        ask.place
            .and_then(|place| self.holder(ask.client, place.own))
            .is_some_and(|holder| holder.kept == Some(handle))
    }

    /// A client changed something in a directory: others lose what they kept of it.
    fn changed(&mut self, ask: &Ask) {
        let Some(place) = ask.place else { return };
        let Some(holders) = self.directories.get_mut(&place.parent) else { return };
        let (kept, mut late) = (&self.kept, 0);
        let before = holders.len();
        holders.retain(|holder| {
            let stays = holder.client == ask.client;
            // One that is still in use is closed as it was.
            if !stays && holder.kept.is_some_and(|handle| !kept.contains(&handle)) {
                late += 1;
            }
            stays
        });
        self.breaks += (before - holders.len()) as u64;
        self.late_closes += late;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const DIRECTORY_FILE: u32 = smbscope_wire::smb2::create::CreateOptions::DIRECTORY_FILE.0;

    const HOME: Place = Place { own: 1, parent: 0 };
    const FILE: Place = Place { own: 2, parent: 1 };
    const SECOND: i64 = 1_000_000_000;

    fn ask(role: Role, place: Place, handle: u64, start: i64) -> Ask {
        Ask {
            client: 0,
            role,
            handle: Some((0, handle)),
            place: Some(place),
            start,
            status: 0,
            only_opens: true,
            opening: Opening::new(Some(0x81), Some(DIRECTORY_FILE)),
        }
    }

    fn caches(option: CacheOption, creates: usize) -> Caches {
        let mut learning = super::super::opens::Learning::default();
        for handle in 0..creates as u64 {
            learning.add(Role::Create, Some((0, handle)));
        }
        Caches::new(option, learning.finish())
    }

    #[test]
    fn under_a_lease_only_the_first_open_and_the_first_listing_are_sent() {
        let mut caches = caches(CacheOption::DirLease, 3);
        let mut answers = Vec::new();
        for handle in 0..3 {
            for (role, status) in
                [(Role::Create, 0), (Role::List, 0), (Role::List, NO_MORE_FILES), (Role::Close, 0)]
            {
                let ask = ask(role, HOME, handle, handle as i64 * 60 * SECOND);
                answers.push(caches.answer(&Ask { status, ..ask }));
            }
        }
        // The open stays, so that its Close is not sent either.
        let first = [false, false, false, true];
        assert_eq!(answers[..4], first);
        assert!(answers[4..].iter().all(|answered| *answered));
    }

    #[test]
    fn a_change_by_another_client_takes_the_lease_and_ones_own_does_not() {
        let mut caches = caches(CacheOption::DirLease, 5);
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 0)));
        assert!(caches.answer(&ask(Role::Close, HOME, 0, 1)));
        let makes = Ask { only_opens: false, ..ask(Role::Create, FILE, 1, 2) };
        assert!(!caches.answer(&makes));
        assert!(caches.answer(&ask(Role::Create, HOME, 2, 3)));
        assert!(!caches.answer(&Ask { client: 1, ..makes }));
        assert_eq!((caches.breaks, caches.late_closes), (1, 1));
        assert!(!caches.answer(&ask(Role::Create, HOME, 4, 5)));
    }

    #[test]
    fn names_are_known_from_a_listing_or_from_before() {
        let lookup = Ask { status: 0xC000_0034, ..ask(Role::Create, FILE, 9, 10) };
        let other = Ask { place: Some(Place { own: 3, parent: 1 }), ..lookup };
        let mut caches = caches(CacheOption::DirLease, 9);
        assert!(!caches.answer(&lookup), "no lease yet");
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 20)));
        let later = |ask: Ask| Ask { start: 30, ..ask };
        assert!(!caches.answer(&later(lookup)), "asked before the lease only");
        assert!(caches.answer(&later(lookup)));
        assert!(!caches.answer(&later(other)));
        assert!(!caches.answer(&Ask { status: NO_MORE_FILES, ..ask(Role::List, HOME, 0, 40) }));
        assert!(caches.answer(&Ask { place: Some(Place { own: 4, parent: 1 }), ..lookup }));
    }

    #[test]
    fn opens_collapse_for_ten_seconds() {
        let mut caches = caches(CacheOption::DirCache, 4);
        let times = [0, 9, 11, 20];
        let answers =
            times.map(|at| caches.answer(&ask(Role::Create, HOME, at as u64, at * SECOND)));
        assert_eq!(answers, [false, true, false, true]);
        assert!(caches.answer(&ask(Role::Close, HOME, 9, 0)));
        assert!(!caches.answer(&ask(Role::Close, HOME, 11, 0)));
        assert!(!caches.answer(&ask(Role::List, HOME, 9, 0)));
    }

    #[test]
    fn what_is_used_otherwise_is_sent() {
        let mut caches = caches(CacheOption::DirLease, 0);
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 0)));
        assert!(!caches.answer(&ask(Role::List, HOME, 0, 1)));
        // Of a file's uses nothing was learnt: it might be read.
        let opening = |access, options| Opening::new(Some(access), Some(options));
        let opens = Ask { opening: opening(0x80, 0), ..ask(Role::Create, FILE, 1, 2) };
        assert!(!caches.answer(&opens));
        let writes = Ask { opening: opening(0x2, DIRECTORY_FILE), ..ask(Role::Create, HOME, 2, 2) };
        assert!(!caches.answer(&writes));
    }
    #[test]
    fn a_directory_is_one_whether_it_is_asked_for_as_one_or_not() {
        let bare = Opening::new(Some(0x80), Some(0));
        let share = Place { own: 7, parent: 7 };
        let mut caches = caches(CacheOption::DirLease, 5);
        let of = |place, handle| Ask { opening: bare, ..ask(Role::Create, place, handle, 1) };
        assert!(!caches.answer(&of(share, 0)));
        assert!(caches.answer(&of(share, 1)));
        assert!(!caches.answer(&of(HOME, 2)), "nobody knows what it is");
        assert!(!caches.answer(&ask(Role::Create, HOME, 3, 2)));
        assert!(caches.answer(&of(HOME, 4)));
    }

    #[test]
    fn who_deletes_by_closing_changes_the_directory() {
        let mut caches = caches(CacheOption::DirLease, 3);
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 0)));
        let opening = Opening::new(Some(0x0200_0000), Some(0x1040));
        let deletes = Ask { opening, client: 1, ..ask(Role::Create, FILE, 1, 1) };
        assert!(!caches.answer(&deletes));
        assert_eq!(caches.breaks, 1);
        assert!(!caches.answer(&ask(Role::Create, HOME, 2, 2)));
    }
}

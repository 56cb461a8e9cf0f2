//! The clients' caches of directories, as rules that are applied to the recorded operations.
//!
//! Directory leases (MS-SMB2 section 3.2.5.7.5 and MS-FSA 2.1.4.12): the first open of a directory that
//! changes nothing is sent, gets a lease and stays open. From then on the client's cache answers later
//! opens of that directory, listings once one was sent under the lease, and lookups of names in it whose
//! answer is known because the directory was listed or the same name was looked up under the lease.
//! Requests that need an open at the server (attributes of the volume, FSCTLs, notifications) use the
//! open that is kept. A change in the directory by another client breaks the lease; that client does not
//! wait for the break.
//!
//! Collapsed opens (SMB 2.1): an open of a directory that is followed by nothing but a Close is not sent
//! if the client opened that directory within the last ten seconds, nor is a lookup that failed within
//! the last ten seconds (the lifetime of the Windows redirector's caches).

use smbscope_tables::profile::CacheOption;

use super::Map;
use super::opens::{Opens, Use};
use super::role::Role;
use crate::predict::plan::Direction;
use crate::rows::create_intent::CreateIntent as Opening;

type Set<T> = hashbrown::HashSet<T, foldhash::fast::RandomState>;

/// How long an open is shared, ns.
const LIFETIME_NS: i64 = 10_000_000_000;
/// Most directories, names and opens that are remembered; beyond that all are forgotten, and the requests that they
/// would have answered are sent.
const KNOWN_MAX: usize = 1 << 20;

/// STATUS_NO_MORE_FILES: a listing has ended.
const NO_MORE_FILES: u32 = 0x8000_0006;

/// Whether a status says what kind of object a name is, or that there is none: no such file, name not found, path
/// not found, is a directory, is not a directory.
fn describes_name(status: u32) -> bool {
    [0xC000_000F, 0xC000_0034, 0xC000_003A, 0xC000_00BA, 0xC000_0103].contains(&status)
}

/// A file or directory and its parent, as hashes of recording, share and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathId {
    pub(super) own: u64,
    pub(super) parent: u64,
}

/// The properties of an operation that matter to caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheQuery {
    pub(super) client: u32,
    pub(super) role: Role,
    pub(super) handle: Option<(u32, u64)>,
    pub(super) place: Option<PathId>,
    pub(super) start: i64,
    pub(super) status: u32,
    /// Create: opens existing files only.
    pub(super) only_opens: bool,
    pub(super) opening: Opening,
}

/// A client's lease on a directory, or its recent open of it.
struct Holder {
    client: u32,
    since: i64,
    is_listed: bool,
    /// The open that is kept for the lease.
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
    /// Opens that are kept although they were closed.
    kept: Set<(u32, u64)>,
    /// Broken leases.
    pub(super) breaks: u64,
    /// How many of their opens had been closed before: their Close is sent at the break.
    pub(super) late_closes: u64,
    /// Creates with a known path.
    pub(super) known: u64,
}

impl Caches {
    /// Empty caches.
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
    pub(super) fn answer(&mut self, ask: &CacheQuery) -> bool {
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
            Role::Set | Role::Move(Direction::Write) => {
                self.changed(ask);
                false
            }
            _ => false,
        }
    }

    fn create(&mut self, ask: &CacheQuery, place: PathId, used: Use) -> bool {
        self.known += 1;
        if !ask.only_opens || ask.opening.deletes() {
            if ask.status == 0 {
                self.changed(ask);
            }
            return false;
        }
        if ask.status != 0 {
            return describes_name(ask.status) && self.name(ask, place);
        }
        if !ask.opening.only_looks() {
            return false;
        }
        // A directory may be opened without the flag that it is one; the share itself is a directory.
        let is_directory = ask.opening.is_of_directory()
            || used.is_listed()
            || place.own == place.parent
            || self.directories.contains_key(&place.own);
        let answered = if is_directory {
            self.directory(ask, place, used)
        } else {
            // A file: later requests need the open.

            used.is_none() && ask.opening.only_asks() && {
                self.option == CacheOption::DirLease && self.name(ask, place)
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
    fn directory(&mut self, ask: &CacheQuery, place: PathId, used: Use) -> bool {
        let is_lease = self.option == CacheOption::DirLease;
        if let Some(holder) = self.holder(ask.client, place.own) {
            let is_answered = if is_lease {
                true
            } else {
                used.is_none() && ask.start - holder.since < LIFETIME_NS
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

    /// A lookup of a name, which is known afterwards.
    fn name(&mut self, ask: &CacheQuery, place: PathId) -> bool {
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

    /// Whether a Close is not sent because the open is kept for the lease.
    fn directories_keep(&mut self, ask: &CacheQuery, handle: (u32, u64)) -> bool {
        if !self.kept.remove(&handle) {
            return false;
        }
        // Its lease may have been broken.
        ask.place
            .and_then(|place| self.holder(ask.client, place.own))
            .is_some_and(|holder| holder.kept == Some(handle))
    }

    /// A client changed something in a directory: the leases of other clients break.
    fn changed(&mut self, ask: &CacheQuery) {
        let Some(place) = ask.place else { return };
        let Some(holders) = self.directories.get_mut(&place.parent) else { return };
        let (kept, mut late) = (&self.kept, 0);
        let before = holders.len();
        holders.retain(|holder| {
            let stays = holder.client == ask.client;
            // An open that is still in use is closed as recorded.
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

    const HOME: PathId = PathId { own: 1, parent: 0 };
    const FILE: PathId = PathId { own: 2, parent: 1 };
    const SECOND: i64 = 1_000_000_000;

    fn ask(role: Role, place: PathId, handle: u64, start: i64) -> CacheQuery {
        CacheQuery {
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
        let mut learning = super::super::opens::OpenLearning::default();
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
                answers.push(caches.answer(&CacheQuery { status, ..ask }));
            }
        }
        // The open is kept, so its Close is not sent either.
        let first = [false, false, false, true];
        assert_eq!(answers[..4], first);
        assert!(answers[4..].iter().all(|answered| *answered));
    }

    #[test]
    fn a_change_by_another_client_breaks_the_lease_and_an_own_change_does_not() {
        let mut caches = caches(CacheOption::DirLease, 5);
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 0)));
        assert!(caches.answer(&ask(Role::Close, HOME, 0, 1)));
        let makes = CacheQuery { only_opens: false, ..ask(Role::Create, FILE, 1, 2) };
        assert!(!caches.answer(&makes));
        assert!(caches.answer(&ask(Role::Create, HOME, 2, 3)));
        assert!(!caches.answer(&CacheQuery { client: 1, ..makes }));
        assert_eq!((caches.breaks, caches.late_closes), (1, 1));
        assert!(!caches.answer(&ask(Role::Create, HOME, 4, 5)));
    }

    #[test]
    fn names_are_known_from_a_listing_or_from_before() {
        let lookup = CacheQuery { status: 0xC000_0034, ..ask(Role::Create, FILE, 9, 10) };
        let other = CacheQuery { place: Some(PathId { own: 3, parent: 1 }), ..lookup };
        let mut caches = caches(CacheOption::DirLease, 9);
        assert!(!caches.answer(&lookup), "no lease yet");
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 20)));
        let later = |ask: CacheQuery| CacheQuery { start: 30, ..ask };
        assert!(!caches.answer(&later(lookup)), "looked up before the lease only");
        assert!(caches.answer(&later(lookup)));
        assert!(!caches.answer(&later(other)));
        assert!(
            !caches.answer(&CacheQuery { status: NO_MORE_FILES, ..ask(Role::List, HOME, 0, 40) })
        );
        assert!(caches.answer(&CacheQuery { place: Some(PathId { own: 4, parent: 1 }), ..lookup }));
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
    fn an_open_with_other_uses_is_sent() {
        let mut caches = caches(CacheOption::DirLease, 0);
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 0)));
        assert!(!caches.answer(&ask(Role::List, HOME, 0, 1)));
        // Nothing was learnt about the uses of the file: it might be read.
        let opening = |access, options| Opening::new(Some(access), Some(options));
        let opens = CacheQuery { opening: opening(0x80, 0), ..ask(Role::Create, FILE, 1, 2) };
        assert!(!caches.answer(&opens));
        let writes =
            CacheQuery { opening: opening(0x2, DIRECTORY_FILE), ..ask(Role::Create, HOME, 2, 2) };
        assert!(!caches.answer(&writes));
    }

    #[test]
    fn a_directory_is_recognised_without_the_directory_flag() {
        let bare = Opening::new(Some(0x80), Some(0));
        let share = PathId { own: 7, parent: 7 };
        let mut caches = caches(CacheOption::DirLease, 5);
        let of =
            |place, handle| CacheQuery { opening: bare, ..ask(Role::Create, place, handle, 1) };
        assert!(!caches.answer(&of(share, 0)));
        assert!(caches.answer(&of(share, 1)));
        assert!(!caches.answer(&of(HOME, 2)), "its kind is not known");
        assert!(!caches.answer(&ask(Role::Create, HOME, 3, 2)));
        assert!(caches.answer(&of(HOME, 4)));
    }

    #[test]
    fn delete_on_close_changes_the_directory() {
        let mut caches = caches(CacheOption::DirLease, 3);
        assert!(!caches.answer(&ask(Role::Create, HOME, 0, 0)));
        let opening = Opening::new(Some(0x0200_0000), Some(0x1040));
        let deletes = CacheQuery { opening, client: 1, ..ask(Role::Create, FILE, 1, 1) };
        assert!(!caches.answer(&deletes));
        assert_eq!(caches.breaks, 1);
        assert!(!caches.answer(&ask(Role::Create, HOME, 2, 2)));
    }
}

//! What clients look up again although no other client changed it in between: missing names, opens
//! that only query, listings; and opens that nothing uses. A client with a directory lease would know
//! most of it (MS-SMB2 section 3.2.4.3.8; Lovinger and Kruse, SDC 2010).
//!
//! One observation for four troubles, because they share what is known about names and opens.

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

use super::attribution::Attribution;
use super::candidate::Candidate;
use super::detector::{Context, Detector};
use super::findings::{failing_lookups, open_close_churn, repeated_listings, repeated_lookups};
use super::operation::{Act, Operation, TextId, text_id};
use super::savings::Savings;
use crate::rows::status_class::StatusClass;

/// Most names, and opens, that are remembered; when there are more, all are forgotten.
const KNOWN_MAX: usize = 131_072;
/// The lifetime of Windows' own cache of names and directories, ns.
const NAME_LIFETIME_NS: i64 = 10_000_000_000;
/// A listing should stay valid for longer if the folder does not change, ns.
const LISTING_LIFETIME_NS: i64 = 60_000_000_000;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What a client asked about a name.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Question {
    Missing,
    Query,
    Listing,
}

/// The last change of a path.
#[derive(Clone, Copy)]
struct Change {
    client: Option<TextId>,
    at: i64,
    /// The last change by any other client.
    by_others: Option<i64>,
}

impl Change {
    /// Whether what the client learned at that time may be outdated. It knows about its own changes.
    fn outdates(self, client: Option<TextId>, learned_at: i64) -> bool {
        let last = if self.client == client { self.by_others } else { Some(self.at) };
        last.is_some_and(|at| at >= learned_at)
    }
}

/// One open.
#[derive(Default)]
struct Open {
    /// Whether the client had opened the same path shortly before.
    is_repeat: bool,
    /// Whether it did more than query; an open that creates or deletes the file is a use by itself.
    is_used: bool,
    /// Whether its listing repeats an earlier one; none before it lists.
    lists_again: Option<bool>,
    queries: u64,
    cost_ns: i64,
    /// The time of all its operations.
    savings: Savings,
    start: Option<i64>,
}

/// All lookups of names that do not exist.
#[derive(Default)]
pub(super) struct Absent {
    pub(super) attribution: Attribution,
    /// Names without their folders.
    names: HashSet<TextId, foldhash::fast::RandomState>,
    /// By the extension of the name.
    extensions: HashMap<Box<str>, u64>,
}

/// Names and extensions that are counted.
const ABSENT_NAMES_MAX: usize = 1_024;
const EXTENSIONS_MAX: usize = 256;

impl Absent {
    fn add(&mut self, op: &Operation) {
        self.attribution.add(op, op.busy_ns);
        let name = op.path_name().and_then(|path| path.rsplit('\\').next()).unwrap_or_default();
        if self.names.len() < ABSENT_NAMES_MAX {
            self.names.insert(text_id(name));
        }
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let extension = extension.to_lowercase();
        if let Some(n) = self.extensions.get_mut(extension.as_str()) {
            *n += 1;
        } else if self.extensions.len() < EXTENSIONS_MAX {
            self.extensions.insert(extension.into(), 1);
        }
    }

    /// How many different names there are, whatever their folders.
    pub(super) fn names(&self) -> usize {
        self.names.len()
    }

    /// The most frequent extension, and its number.
    pub(super) fn extension(&self) -> Option<(&str, u64)> {
        let most = self.extensions.iter().max_by_key(|(name, n)| (**n, std::cmp::Reverse(*name)));
        most.map(|(name, n)| (&**name, *n))
    }
}

/// Names, changes and opens that are remembered, and what was found.
#[derive(Default)]
pub(super) struct Lookups {
    /// When a client last asked a question about a path.
    names: Map<TextId, i64>,
    /// By recording, share and path.
    changes: Map<TextId, Change>,
    opens: Map<(u32, u64), Open>,
    failing: Attribution,
    /// All lookups that failed, the first ones too.
    missing: u64,
    absent: Absent,
    /// Repeated opens that requested a lease, and all of them.
    requested: (u64, u64),
    repeated: Attribution,
    listings: Attribution,
    unused: Attribution,
    /// The shortest time after which a client asked the same again, by question, ns.
    again_ns: [Option<i64>; 3],
}

/// The path of an operation's share.
fn path_of_share(op: &Operation, path: TextId) -> TextId {
    text_id((op.recording, op.share, path))
}

impl Detector for Lookups {
    fn see(&mut self, op: &Operation) {
        match op.act {
            // What another finding explains did not take long for being asked again.
            Act::Open | Act::Query | Act::List if op.explained.is_some() => {}
            Act::Open => self.open(op),
            Act::Close => self.close(op),
            Act::Query | Act::List => self.query(op),
            _ => {
                if matches!(op.act, Act::Write | Act::Change) {
                    self.record_change(op);
                }
                if let Some(open) = op.handle.and_then(|handle| self.opens.get_mut(&handle)) {
                    open.is_used = true;
                }
            }
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        vec![
            failing_lookups::finish(
                self.failing,
                self.missing,
                self.absent,
                self.again_ns[Question::Missing as usize],
            ),
            repeated_lookups::finish(
                self.repeated,
                self.requested,
                self.again_ns[Question::Query as usize],
            ),
            repeated_listings::finish(self.listings),
            open_close_churn::finish(self.unused),
        ]
    }
}

impl Lookups {
    /// Whether the client asked the same question about the path within that time; remembers that it
    /// asked now.
    fn is_repeat(&mut self, op: &Operation, question: Question, within_ns: i64) -> bool {
        let (Some(path), Some(start)) = (op.path, self.start(op)) else { return false };
        // An open may query anything; without an open, each information level is its own question.
        let level = op.columns.detail.get(op.row).filter(|_| op.act == Act::Query);
        let name = text_id((op.recording, question as u8, op.client, op.share, path, level));
        if self.names.len() >= KNOWN_MAX {
            self.names.clear();
        }
        let before = match self.names.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(start);
                return false;
            }
            Entry::Occupied(mut entry) => {
                // Requests in parallel end in another order than they began.
                let before = *entry.get();
                entry.insert(before.max(start));
                before
            }
        };
        let after_ns = start.saturating_sub(before).saturating_abs();
        if after_ns >= within_ns {
            return false;
        }
        let change = self.changes.get(&path_of_share(op, path));
        if change.is_some_and(|change| change.outdates(op.client, before)) {
            return false;
        }
        let again = &mut self.again_ns[question as usize];
        *again = Some(again.map_or(after_ns, |least| least.min(after_ns)));
        true
    }

    /// When an operation started. A later member of a compound has no time of its own: its open's.
    fn start(&self, op: &Operation) -> Option<i64> {
        op.start.or_else(|| {
            let open = op.handle.and_then(|handle| self.opens.get(&handle));
            open.and_then(|open| open.start)
        })
    }

    /// Records that the client changes a path, and with it the listing of the folder.
    fn record_change(&mut self, op: &Operation) {
        let (Some(path), Some(at)) = (op.path, self.start(op)) else { return };
        if self.changes.len() >= KNOWN_MAX {
            // What clients learned before these changes may be outdated.
            self.changes.clear();
            self.names.clear();
        }
        let folder = op.folder.unwrap_or_else(|| text_id("\\"));
        for path in [path, folder] {
            let change = Change { client: op.client, at, by_others: None };
            let known = self.changes.entry(path_of_share(op, path)).or_insert(change);
            if known.client != change.client {
                *known = Change { by_others: Some(known.at), ..change };
            }
            known.at = at;
        }
    }

    fn open(&mut self, op: &Operation) {
        if self.is_missing(op) {
            return;
        }
        let (Some(handle), Some(0)) = (op.handle, op.status) else { return };
        let changes = !op.opens_existing || op.intent.deletes();
        let is_repeat = self.is_repeat(op, Question::Query, NAME_LIFETIME_NS)
            && !changes
            && op.intent.only_looks();
        if changes {
            self.record_change(op);
        }
        if is_repeat {
            let lease = op.columns.lease_requested.get(op.row);
            self.requested.0 += u64::from(lease.is_some_and(|lease| !lease.is_empty()));
            self.requested.1 += 1;
        }
        if self.opens.len() >= KNOWN_MAX {
            self.opens.clear();
        }
        let cost_ns = op.busy_ns;
        let start = op.start;
        let mut savings = Savings::default();
        savings.add(op, cost_ns);
        let open = Open { is_repeat, is_used: changes, cost_ns, savings, start, ..Open::default() };
        self.opens.insert(handle, open);
    }

    /// Whether the name does not exist; counts it.
    fn is_missing(&mut self, op: &Operation) -> bool {
        let is_missing = op.status.is_some_and(|status| {
            status != 0 && StatusClass::from_status(status) == StatusClass::NotFound
        });
        if is_missing {
            self.missing += 1;
            self.absent.add(op);
            if self.is_repeat(op, Question::Missing, NAME_LIFETIME_NS) {
                self.failing.add(op, op.busy_ns);
            }
        }
        is_missing
    }

    fn query(&mut self, op: &Operation) {
        let Some(handle) = op.handle else { return self.query_path(op) };
        if op.act == Act::List
            && self.opens.get(&handle).is_some_and(|open| open.lists_again.is_none())
        {
            let again = self.is_repeat(op, Question::Listing, LISTING_LIFETIME_NS);
            if let Some(open) = self.opens.get_mut(&handle) {
                open.lists_again = Some(again);
            }
        }
        let Some(open) = self.opens.get_mut(&handle) else { return };
        open.queries += 1;
        if op.act == Act::List && open.lists_again == Some(true) {
            self.listings.add(op, op.busy_ns);
        } else {
            open.cost_ns = open.cost_ns.saturating_add(op.busy_ns);
            open.savings.add(op, op.busy_ns);
        }
    }

    /// SMB1 queries paths without an open.
    fn query_path(&mut self, op: &Operation) {
        let is_list = op.act == Act::List;
        let (question, within_ns) = if is_list {
            (Question::Listing, LISTING_LIFETIME_NS)
        } else {
            (Question::Query, NAME_LIFETIME_NS)
        };
        if !self.is_missing(op) && op.path.is_some() && self.is_repeat(op, question, within_ns) {
            let again = if is_list { &mut self.listings } else { &mut self.repeated };
            again.add(op, op.busy_ns);
        }
    }

    fn close(&mut self, op: &Operation) {
        let Some(mut open) = op.handle.and_then(|handle| self.opens.remove(&handle)) else {
            return;
        };
        let cost_ns = open.cost_ns.saturating_add(op.busy_ns);
        open.savings.add(op, op.busy_ns);
        let (savings, at) = (open.savings, open.start);
        match (open.is_used, open.lists_again, open.is_repeat, open.queries) {
            (true, ..) => {}
            // Listings count one by one; in a compound, all of the time is the open's.
            (false, Some(true), ..) => self.listings.add_many(op, at, cost_ns, 2, savings),
            (false, Some(false), ..) => {}
            (false, None, true, queries) => {
                self.repeated.add_many(op, at, cost_ns, 2 + queries, savings);
            }
            (false, None, false, 0) => self.unused.add_many(op, at, cost_ns, 2, savings),
            (false, None, false, _) => {}
        }
    }
}

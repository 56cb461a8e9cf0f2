//! What clients look up once more, although nobody else changed it since: names that are not there, opens
//! that only ask, listings; and opens with which nothing is done. A client that held a directory lease would
//! know most of it (MS-SMB2 section 3.2.4.3.8; Lovinger and Kruse, SDC 2010).

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::attribution::Gathered;
use super::data::{Confidence, Figure, Trouble};
use super::operation::{Act, Seen, Word, word};
use super::savings::Spared;
use super::{Found, finding};
use crate::rows::status_class::StatusClass;

/// Names, and opens, that are known at once; beyond that all are forgotten.
const KNOWN_MAX: usize = 131_072;
/// As long as Windows' own cache of names and directories, ns.
const SOON_NS: i64 = 10_000_000_000;
/// A listing is expected to be good for longer where nobody changes the folder, ns.
const LISTED_NS: i64 = 60_000_000_000;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Who changed a path, and when.
#[derive(Clone, Copy)]
struct Change {
    client: Option<Word>,
    at: i64,
    /// When somebody else did.
    by_others: Option<i64>,
}

impl Change {
    /// Whether what the client learnt then may be wrong: of its own changes it knows.
    fn outdates(self, client: Option<Word>, learnt: i64) -> bool {
        let last = if self.client == client { self.by_others } else { Some(self.at) };
        last.is_some_and(|at| at >= learnt)
    }
}

/// One open.
#[derive(Default)]
struct Open {
    /// Whether the client had opened the same shortly before.
    is_repeat: bool,
    /// Whether more was done than asked: the open itself may make the file, or delete it.
    is_used: bool,
    /// Whether its listing is one more of the same.
    lists_again: Option<bool>,
    asked: u64,
    cost_ns: i64,
    /// What all of it takes.
    spared: Spared,
    start: Option<i64>,
}

/// All of it.
#[derive(Default)]
pub(super) struct Lookups {
    /// When a name was asked for last, by what was asked.
    names: Map<Word, i64>,
    /// By recording, share and path.
    changes: Map<Word, Change>,
    opens: Map<(u32, u64), Open>,
    failing: Gathered,
    /// All that failed, once or more.
    missing: u64,
    repeated: Gathered,
    listings: Gathered,
    churn: Gathered,
}

/// A path of a share.
fn place(seen: &Seen, path: Word) -> Word {
    word((seen.recording, seen.share, path))
}

impl Lookups {
    /// Whether the client asked the same of the path no longer ago than that; it is asked now.
    fn is_again(&mut self, seen: &Seen, what: u8, within_ns: i64) -> bool {
        let (Some(path), Some(start)) = (seen.path, self.start(seen)) else { return false };
        // An open may ask for anything; without one, each question is another.
        let level = seen.columns.detail.get(seen.row).filter(|_| seen.act == Act::Query);
        let name = word((seen.recording, what, seen.client, seen.share, path, level));
        if self.names.len() >= KNOWN_MAX {
            self.names.clear();
        }
        let before = match self.names.entry(name) {
            Entry::Vacant(place) => {
                place.insert(start);
                return false;
            }
            Entry::Occupied(mut place) => {
                // Side by side they end in another order than they began.
                let before = *place.get();
                place.insert(before.max(start));
                before
            }
        };
        if start.saturating_sub(before).saturating_abs() >= within_ns {
            return false;
        }
        let change = self.changes.get(&place(seen, path));
        !change.is_some_and(|change| change.outdates(seen.client, before))
    }

    /// A member of a compound has no time of its own.
    fn start(&self, seen: &Seen) -> Option<i64> {
        seen.start.or_else(|| {
            let open = seen.handle.and_then(|handle| self.opens.get(&handle));
            open.and_then(|open| open.start)
        })
    }

    /// The client changes a path, and so what its folder lists.
    fn changed(&mut self, seen: &Seen) {
        let (Some(path), Some(at)) = (seen.path, self.start(seen)) else { return };
        if self.changes.len() >= KNOWN_MAX {
            // What was learnt before them may be wrong.
            self.changes.clear();
            self.names.clear();
        }
        let folder = seen.folder.unwrap_or_else(|| word("\\"));
        for path in [path, folder] {
            let change = Change { client: seen.client, at, by_others: None };
            let known = self.changes.entry(place(seen, path)).or_insert(change);
            if known.client != change.client {
                *known = Change { by_others: Some(known.at), ..change };
            }
            known.at = at;
        }
    }

    pub(super) fn see(&mut self, seen: &Seen) {
        match seen.act {
            Act::Open => self.open(seen),
            Act::Close => self.close(seen),
            Act::Query | Act::List => self.ask(seen),
            _ => {
                if matches!(seen.act, Act::Write | Act::Change) {
                    self.changed(seen);
                }
                if let Some(open) = seen.handle.and_then(|handle| self.opens.get_mut(&handle)) {
                    open.is_used = true;
                }
            }
        }
    }

    fn open(&mut self, seen: &Seen) {
        if self.fails(seen) {
            return;
        }
        let (Some(handle), Some(0)) = (seen.handle, seen.status) else { return };
        let changes = !seen.only_opens || seen.intent.deletes();
        let is_repeat = self.is_again(seen, 1, SOON_NS) && !changes && seen.intent.only_looks();
        if changes {
            self.changed(seen);
        }
        if self.opens.len() >= KNOWN_MAX {
            self.opens.clear();
        }
        let cost_ns = seen.busy_ns;
        let start = seen.start;
        let mut spared = Spared::default();
        spared.add(seen, cost_ns);
        let open = Open { is_repeat, is_used: changes, cost_ns, spared, start, ..Open::default() };
        self.opens.insert(handle, open);
    }

    /// Whether the name is not there.
    fn fails(&mut self, seen: &Seen) -> bool {
        let is_missing = seen
            .status
            .is_some_and(|status| status != 0 && StatusClass::of(status) == StatusClass::NotFound);
        if is_missing {
            self.missing += 1;
            if self.is_again(seen, 0, SOON_NS) {
                self.failing.add(seen, seen.busy_ns);
            }
        }
        is_missing
    }

    fn ask(&mut self, seen: &Seen) {
        let Some(handle) = seen.handle else { return self.ask_path(seen) };
        if seen.act == Act::List
            && self.opens.get(&handle).is_some_and(|open| open.lists_again.is_none())
        {
            let again = self.is_again(seen, 2, LISTED_NS);
            if let Some(open) = self.opens.get_mut(&handle) {
                open.lists_again = Some(again);
            }
        }
        let Some(open) = self.opens.get_mut(&handle) else { return };
        open.asked += 1;
        if seen.act == Act::List && open.lists_again == Some(true) {
            self.listings.add(seen, seen.busy_ns);
        } else {
            open.cost_ns = open.cost_ns.saturating_add(seen.busy_ns);
            open.spared.add(seen, seen.busy_ns);
        }
    }

    /// SMB1 asks about paths without an open.
    fn ask_path(&mut self, seen: &Seen) {
        let is_list = seen.act == Act::List;
        let (what, within_ns) = if is_list { (2, LISTED_NS) } else { (1, SOON_NS) };
        if !self.fails(seen) && seen.path.is_some() && self.is_again(seen, what, within_ns) {
            let again = if is_list { &mut self.listings } else { &mut self.repeated };
            again.add(seen, seen.busy_ns);
        }
    }

    fn close(&mut self, seen: &Seen) {
        let Some(mut open) = seen.handle.and_then(|handle| self.opens.remove(&handle)) else {
            return;
        };
        let cost_ns = open.cost_ns.saturating_add(seen.busy_ns);
        open.spared.add(seen, seen.busy_ns);
        let spared = open.spared;
        match (open.is_used, open.lists_again, open.is_repeat, open.asked) {
            (true, ..) => {}
            // Listings count one by one; of a compound, all of its time is the open's.
            (false, Some(true), ..) => self.listings.add_many(seen, cost_ns, 2, spared),
            (false, Some(false), ..) => {}
            (false, None, true, asked) => self.repeated.add_many(seen, cost_ns, 2 + asked, spared),
            (false, None, false, 0) => self.churn.add_many(seen, cost_ns, 2, spared),
            (false, None, false, _) => {}
        }
    }

    pub(super) fn finish(self) -> Vec<Found> {
        let all =
            Figure { name: "failed_lookups", value: self.missing as f64, error: None, unit: "" };
        let mut failing = finding(
            Trouble::FailingLookups,
            "Names that do not exist are looked for again and again".to_owned(),
            self.failing,
            Confidence::High,
            "each was asked for by the same client within ten seconds, and was not there then either",
        );
        failing.finding.figures.push(all);
        let repeated = finding(
            Trouble::RepeatedLookups,
            "The same files and folders are opened again only to ask what was asked before"
                .to_owned(),
            self.repeated,
            Confidence::High,
            "the same client opened each within ten seconds before, did nothing but ask, and nobody else changed it since",
        );
        let listings = finding(
            Trouble::RepeatedListings,
            "The same folders are listed again and again".to_owned(),
            self.listings,
            Confidence::Medium,
            "the same client listed each within a minute before, and nobody else was seen to change it since",
        );
        let churn = finding(
            Trouble::OpenCloseChurn,
            "Files are opened and closed, and nothing is done in between".to_owned(),
            self.churn,
            Confidence::Medium,
            "nothing was sent on the open; who wanted to know whether the file is there does need it",
        );
        vec![failing, repeated, listings, churn]
    }
}

//! A client lists a folder and then asks about each entry on its own: one open, query and close, or
//! one named stream, for each file (MS-FSCC section 2.4: a listing returns most attributes itself).

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation, TextId, text_id};
use super::super::savings::Savings;
use crate::rows::status_class::StatusClass;

pub(crate) const KIND: KindInfo = KindInfo::new("per-entry-requests", "requests for each entry of a listing")
    .with_actor(Actor::Application)
    .with_remedies(&[
    (
        "application",
        "take the attributes from the listing (FindFirstFileEx, readdir with statx of the cache), and do not open \
         each file for its icon, owner, tags or alternate streams",
    ),
    (
        "macOS client",
        "Finder reads AFP_AfpInfo and AFP_Resource of each file: defaults write com.apple.desktopservices \
         DSDontWriteNetworkStores -bool true; Samba with vfs objects = fruit streams_xattr returns them in the \
         listing (readdir_attr:aapl_finder_info = yes)",
    ),
    (
        "Windows client",
        "hide the columns of Explorer that open files (author, dimensions, length)",
    ),
]);

/// Where the client asks by path.
const BY_PATH: [(&str, &str); 2] = [
    ("client", "use SMB2 or later: one open, query and close travel as one compound, and listings bring the attributes"),
    ("application", "take the attributes from the listing, and hide columns of Explorer that open files"),
];

/// Most folders that are followed; when there are more, all are forgotten.
const FOLDERS_MAX: usize = 16_384;
/// Most opens that are followed; when there are more, all are forgotten.
const OPENS_MAX: usize = 65_536;
/// Most folders with requests for their entries.
const GROUPS_MAX: usize = 1_024;
/// Requests for entries follow the listing within this time, ns.
const AFTER_NS: i64 = 60_000_000_000;
/// Fewest entries of a folder.
const ENTRIES_MIN: u64 = 20;
/// Kinds of questions that are named.
const QUESTIONS: usize = 6;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// An open of an entry.
struct Open {
    group: TextId,
    path: TextId,
    requests: u64,
    cost_ns: i64,
    savings: Savings,
    /// Whether it is an alternate stream: what a client reads of it is an attribute.
    is_stream: bool,
}

/// The entries of a folder that one client asked about.
struct Group {
    entries: u64,
    last: Option<TextId>,
    attribution: Attribution,
}

/// Listings, and the requests after them.
#[derive(Default)]
pub(crate) struct PerEntryRequests {
    /// When the latest request began.
    now: i64,
    listed: Map<TextId, i64>,
    opens: Map<(u32, u64), Open>,
    groups: Map<TextId, Group>,
    /// Whether SMB1's client asked by path.
    is_by_path: bool,
    /// What the requests were for, and their number.
    questions: Vec<(Box<str>, u64)>,
}

impl Detector for PerEntryRequests {
    fn see(&mut self, op: &Operation) {
        self.now = self.now.max(op.start.unwrap_or(i64::MIN));
        match op.act {
            Act::List => {
                if self.listed.len() >= FOLDERS_MAX {
                    self.listed.clear();
                }
                // The root of a share is the folder of names without a backslash. A later member of a
                // compound has no time of its own.
                let folder = op.listed_folder().filter(|_| !is_root(op));
                let at = op.start.unwrap_or(self.now);
                self.listed.insert(Self::key(op, folder), at);
            }
            Act::Open if !self.listed.is_empty() => self.open(op),
            // SMB1 asks by path.
            Act::Query if op.handle.is_none() => self.ask_by_path(op),
            Act::Query | Act::Read if self.is_question(op) => {
                if let Some(open) = op.handle.and_then(|handle| self.opens.get_mut(&handle)) {
                    open.requests += 1;
                    open.cost_ns = open.cost_ns.saturating_add(op.busy_ns);
                    open.savings.add(op, op.busy_ns);
                    self.ask(op.columns.detail.get(op.row));
                }
            }
            Act::Close => {
                let open = op.handle.and_then(|handle| self.opens.remove(&handle));
                if let Some(mut open) = open {
                    open.savings.add(op, op.busy_ns);
                    let cost_ns = open.cost_ns.saturating_add(op.busy_ns);
                    let requests = open.requests + 1;
                    self.count(op, open.group, open.path, (cost_ns, requests), open.savings);
                }
            }
            // To read, write or list is not a question.
            _ => {
                if let Some(handle) = op.handle {
                    self.opens.remove(&handle);
                }
            }
        }
    }

    fn finish(mut self, _: &mut Context) -> Vec<Candidate> {
        let mut attribution = Attribution::default();
        let (mut entries, mut folders) = (0, 0_u64);
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_unstable_by_key(|(key, _)| *key);
        for (_, group) in groups {
            if group.entries >= ENTRIES_MIN {
                entries += group.entries;
                folders += 1;
                attribution.merge(group.attribution);
            }
        }
        let each = attribution.operations as f64 / entries.max(1) as f64;
        self.questions.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        let questions = self.questions.iter().take(QUESTIONS);
        let questions: Vec<_> = questions.map(|(question, _)| &**question).collect();
        let asked = if questions.is_empty() { "opened and closed each".to_owned() } else { format!("asked for {}", questions.join(", ")) };
        let candidate = Candidate::new(
            FindingKind::PerEntryRequests,
            "After listing a folder, the client opens and asks about each entry on its own: one or more round trips \
             for each file",
            attribution,
            Confidence::Measured,
            format!(
                "the same client had listed the folder less than a minute before, and read nothing from these files; \
                 it {asked}"
            ),
        );
        // The redirector of SMB1 asks by path, whatever the program wants to know.
        let candidate = if self.is_by_path {
            candidate.with_owner(Actor::Client, Vec::new()).with_remedies(&BY_PATH)
        } else {
            candidate
        };
        vec![candidate.with_figures([
            ("entries", entries as f64, "", "entries: {}"),
            ("folders", folders as f64, "", "folders: {}"),
            ("requests_for_each_entry", each, "", "{} requests for each entry"),
        ])]
    }
}

impl PerEntryRequests {
    fn key(op: &Operation, folder: Option<TextId>) -> TextId {
        text_id((op.recording, op.client, op.share, folder))
    }

    /// Whether the request only asks about the entry: a query, or a read of an alternate stream.
    fn is_question(&self, op: &Operation) -> bool {
        let open = op.handle.and_then(|handle| self.opens.get(&handle));
        op.act == Act::Query || open.is_some_and(|open| open.is_stream)
    }

    fn ask_by_path(&mut self, op: &Operation) {
        let (Some(path), Some(start)) = (op.path, op.start) else { return };
        let group = Self::key(op, op.folder);
        if self.is_after_listing(group, start) {
            let mut savings = Savings::default();
            savings.add(op, op.busy_ns);
            self.ask(op.columns.detail.get(op.row));
            self.is_by_path = true;
            self.count(op, group, path, (op.busy_ns, 1), savings);
        }
    }

    /// Whether the folder was listed shortly before.
    fn is_after_listing(&self, group: TextId, start: i64) -> bool {
        let listed = self.listed.get(&group);
        listed.is_some_and(|at| (*at..=at.saturating_add(AFTER_NS)).contains(&start))
    }

    fn open(&mut self, op: &Operation) {
        let (Some(path), Some(start)) = (op.path, op.start) else { return };
        if !op.opens_existing || op.intent.deletes() || op.intent.is_of_directory() {
            return;
        }
        let stream = op.path_name().and_then(|path| {
            let name = path.rsplit('\\').next()?;
            name.split_once(':').map(|(_, stream)| stream)
        });
        if !op.intent.only_looks() && stream.is_none() {
            return;
        }
        let group = Self::key(op, op.folder);
        if !self.is_after_listing(group, start) {
            return;
        }
        let mut savings = Savings::default();
        savings.add(op, op.busy_ns);
        if stream.is_some() {
            self.ask(stream);
        }
        let is_missing =
            op.status.is_some_and(|status| StatusClass::from_status(status) == StatusClass::NotFound);
        if is_missing && stream.is_some() {
            self.count(op, group, path, (op.busy_ns, 1), savings);
            return;
        }
        let (Some(handle), Some(0)) = (op.handle, op.status) else { return };
        if self.opens.len() >= OPENS_MAX {
            self.opens.clear();
        }
        let (cost_ns, is_stream) = (op.busy_ns, stream.is_some());
        let open = Open { group, path, requests: 1, cost_ns, savings, is_stream };
        self.opens.insert(handle, open);
    }

    /// Remembers what a request was for.
    fn ask(&mut self, question: Option<&str>) {
        let Some(question) = question else { return };
        let has_room = self.questions.len() < 4 * QUESTIONS;
        match self.questions.iter_mut().find(|(known, _)| **known == *question) {
            Some((_, n)) => *n += 1,
            None if has_room => self.questions.push((question.into(), 1)),
            None => {}
        }
    }

    fn count(
        &mut self,
        op: &Operation,
        group: TextId,
        path: TextId,
        (cost_ns, requests): (i64, u64),
        savings: Savings,
    ) {
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&group) {
            return;
        }
        let group = self.groups.entry(group).or_insert_with(|| Group {
            entries: 0,
            last: None,
            attribution: Attribution::with_few_names(),
        });
        if group.last != Some(path) {
            group.entries += 1;
            group.last = Some(path);
        }
        group.attribution.add_many(op, Some(self.now), cost_ns, requests, savings);
    }
}

fn is_root(op: &Operation) -> bool {
    op.path_name().is_none_or(|path| path.is_empty() || path == "\\")
}

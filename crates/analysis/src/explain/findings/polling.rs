//! A client asks for a missing file at regular intervals, and does nothing in between: it waits for
//! the file to appear. A change notification would say when it does (MS-SMB2 section 3.3.5.19).

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::{About, FindingKind, Note};
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation, TextId, text_id};
use crate::rows::status_class::StatusClass;
use crate::stats::mean::Mean;

pub(crate) const KIND: KindInfo = KindInfo::new("polling", "polling for a missing file")
    .with_actor(Actor::Application)
    .with_remedies(&[
    (
        "application",
        "wait for a change notification of the folder (ReadDirectoryChangesW, FileSystemWatcher) instead of asking",
    ),
    ("application", "ask less often, and keep the share connected in between"),
]);

/// Most missing names that are followed; when there are more, all are forgotten.
const NAMES_MAX: usize = 16_384;
/// Most operations of the client for each request: a logon, tree connect and open, and their ends. A client
/// that does more does not only wait.
const OPERATIONS_MAX: u64 = 10;
/// Characters of a name that are kept for the note.
const PATH_MAX: usize = 256;
/// Most clients that are followed; when there are more, all are forgotten.
const CLIENTS_MAX: usize = 65_536;
/// Fewest times that a client asks.
const ASKED_MIN: u64 = 5;
/// Shorter intervals are those of a busy client, ns.
const INTERVAL_MIN_NS: f64 = 100e6;
/// The intervals differ by at most this share of their mean (standard deviation).
const IRREGULAR: f64 = 0.5;
/// The client is idle for at least this share of the intervals.
const IDLE_MIN: f64 = 0.5;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What a client has done so far.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// When its last operation ended.
    last: Option<i64>,
    operations: u64,
    idle_ns: i64,
    tree_connects: u64,
    tree_ns: i64,
}

/// A missing name that a client asked for.
struct Name {
    asked: u64,
    last: i64,
    then: Progress,
    intervals: Mean,
    idle_ns: i64,
    operations: u64,
    tree_connects: u64,
    who: Box<str>,
    path: Box<str>,
    attribution: Option<Box<Attribution>>,
}

/// The missing names of all clients.
#[derive(Default)]
pub(crate) struct Polling {
    progress: Map<(u32, Option<TextId>), Progress>,
    names: Map<TextId, Name>,
}

impl Detector for Polling {
    fn see(&mut self, op: &Operation) {
        let is_missing = op.act == Act::Open
            && op.status.is_some_and(|it| it != 0 && StatusClass::from_status(it) == StatusClass::NotFound);
        let command = match op.act {
            Act::Logon => op.columns.command.get(op.row),
            _ => None,
        };
        let is_tree = command.is_some_and(|command| command.starts_with("Tree"));
        let Some(start) = op.start else { return };
        if !is_missing && self.names.is_empty() {
            return;
        }
        if self.progress.len() >= CLIENTS_MAX {
            self.progress.clear();
        }
        let progress = self.progress.entry((op.recording, op.client)).or_default();
        progress.operations += 1;
        // Over all its connections: a client may open one for each poll.
        let before = progress.last.unwrap_or(start);
        progress.idle_ns = progress.idle_ns.saturating_add(start.saturating_sub(before).max(0));
        progress.last = Some(before.max(start.saturating_add(op.elapsed_ns)));
        if is_tree {
            progress.tree_connects += u64::from(command == Some("TreeConnect"));
            progress.tree_ns = progress.tree_ns.saturating_add(op.busy_ns);
        }
        let now = *progress;
        if let (true, Some(path)) = (is_missing, op.path) {
            self.missing(op, path, start, now);
        }
    }

    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        let polled = |name: &Name| {
            let interval = name.intervals.mean();
            name.asked >= ASKED_MIN
                && interval >= INTERVAL_MIN_NS
                && name.intervals.deviation() <= IRREGULAR * interval
                && name.idle_ns as f64 >= IDLE_MIN * interval * name.intervals.n as f64
                && name.operations <= OPERATIONS_MAX * name.intervals.n
        };
        let mut names: Vec<_> = self.names.into_values().filter(|name| polled(name)).collect();
        names.sort_by(|one, other| (other.asked, &one.path).cmp(&(one.asked, &other.path)));
        let mut attribution = Attribution::default();
        let (mut asked, mut tree_connects, mut interval) = (0, 0, Mean::default());
        if let Some(name) = names.first() {
            let more = match names.len() {
                1 => String::new(),
                n => format!(", and {} other names likewise", n - 1),
            };
            context.notes.push(Note {
                about: About::Polling,
                what: format!(
                    "{} asks for {} every {:.1} s ({} times), and it does not exist{}{more}",
                    name.who,
                    name.path,
                    name.intervals.mean() / 1e9,
                    name.asked,
                    match name.tree_connects {
                        0 => String::new(),
                        n => format!("; it connects to the share {n} times for that"),
                    }
                ),
            });
        }
        for name in names {
            asked += name.asked;
            tree_connects += name.tree_connects;
            interval.merge(&name.intervals);
            if let Some(one) = name.attribution {
                attribution.merge(*one);
            }
        }
        let mut candidate = Candidate::new(
            FindingKind::Polling,
            "A client asks for a file that does not exist at regular intervals: it waits for it to appear",
            attribution,
            Confidence::Measured,
            "the same client asks for the same missing name at nearly equal intervals, and is idle in between",
        )
        .of_events()
        .with_figures([
            ("requests", asked as f64, "", "requests: {}"),
            ("mean_interval", interval.mean(), "ns", "{} between them on average"),
            ("connections_to_the_share", tree_connects as f64, "", "connections to the share: {}"),
        ]);
        candidate.explains = (&[FindingKind::FailingLookups], candidate.savings.numbers());
        vec![candidate]
    }
}

impl Polling {
    fn missing(&mut self, op: &Operation, path: TextId, start: i64, now: Progress) {
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        let key = text_id((op.recording, op.client, op.share, path));
        let name = self.names.entry(key).or_insert_with(|| Name {
            asked: 0,
            last: start,
            then: now,
            intervals: Mean::default(),
            idle_ns: 0,
            operations: 0,
            tree_connects: 0,
            who: op.client_name().unwrap_or_default().into(),
            path: op.path_name().unwrap_or_default().chars().take(PATH_MAX).collect(),
            attribution: None,
        });
        name.asked += 1;
        if name.asked > 1 {
            name.intervals.add(start.saturating_sub(name.last).max(0) as f64);
            name.idle_ns += now.idle_ns.saturating_sub(name.then.idle_ns).max(0);
            name.operations += now.operations.saturating_sub(name.then.operations);
            name.tree_connects += now.tree_connects.saturating_sub(name.then.tree_connects);
            let tree_ns = now.tree_ns.saturating_sub(name.then.tree_ns).max(0);
            let attribution =
                name.attribution.get_or_insert_with(|| Box::new(Attribution::with_few_names()));
            attribution.add(op, op.busy_ns.saturating_add(tree_ns));
        }
        (name.last, name.then) = (start, now);
    }
}

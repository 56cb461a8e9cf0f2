//! Requests wait behind one slow request of their connection: the server works on one after the other
//! (Samba has one process for each connection; MS-SMB2 section 3.3.5 leaves the order to the server).
//! Their replies follow that of the slow request at once.

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation, TextId, text_id};

pub(crate) const CLIENT: (&str, &str) = (
    "client",
    "a second connection (SMB Multichannel, another mount with nosharesock) for the slow requests",
);
/// Where its session has several connections.
pub(crate) const CLIENT_CHANNELS: (&str, &str) = (
    "client",
    "another mount (Linux: nosharesock) or session for the slow requests: the channels of one session do not separate them",
);

pub(crate) const KIND: KindInfo = KindInfo::new("head-of-line-blocking", "head-of-line blocking")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "find out why the request in front is slow: `smbscope explain INPUT --why FRAME`, `smbscope record` inside Samba",
    ),
    (
        "Samba",
        "let slow calls wait elsewhere: aio read size = 1 and aio write size = 1 (the default), services of pipes in \
         processes of their own (rpc start on demand helpers), no vfs modules that block",
    ),
    CLIENT,
]);

/// A wait of at least this is worth a look, ns.
const WAIT_MIN_NS: i64 = 50_000_000;
/// The reply follows that of the request in front within this time, ns, or this share of the wait.
const AFTER_NS: i64 = 1_000_000;
const AFTER_SHARE: f64 = 0.01;
/// The request in front is in flight for at least this share of the wait.
const BEHIND_SHARE: f64 = 0.9;
/// Fewest requests that waited.
const WAITS_MIN: u64 = 3;
/// Most connections that are followed; when there are more, all are forgotten.
const CONNECTIONS_MAX: usize = 65_536;
/// Most kinds of requests in front that are counted separately.
const KINDS_MAX: usize = 256;

/// The last slow request of a connection, and when the last reply behind it ended.
#[derive(Clone, Copy)]
struct Front {
    start: i64,
    end: i64,
    last: i64,
    handle: Option<(u32, u64)>,
    kind: Option<TextId>,
}

/// Requests that waited, and what they waited behind.
#[derive(Default)]
pub(crate) struct HeadOfLineBlocking {
    fronts: HashMap<(u32, u64), Front, foldhash::fast::RandomState>,
    attribution: Attribution,
    /// Requests in front: words, and how many waited behind them.
    kinds: HashMap<TextId, (Box<str>, u64), foldhash::fast::RandomState>,
    longest_ns: i64,
}

impl Detector for HeadOfLineBlocking {
    fn claim(&mut self, op: &Operation) -> Option<FindingKind> {
        // Behind a proxy, the order of replies is the proxy's.
        if op.explained.is_some() || !op.is_timed {
            return None;
        }
        let (start, turnaround) = (op.start?, op.turnaround_ns()?);
        let end = start.saturating_add(op.elapsed_ns);
        let replied = end.saturating_sub(op.reply_ns());
        let key = (op.recording, op.connection);
        let after_ns = AFTER_NS.max((AFTER_SHARE * turnaround as f64) as i64);
        if let Some(front) = self.fronts.get_mut(&key)
            && turnaround >= WAIT_MIN_NS
        {
            let behind_ns = front.end.saturating_sub(start);
            let is_next = (0..=after_ns).contains(&replied.saturating_sub(front.last).max(0))
                && front.last <= end;
            // Blocks of one file come in order by themselves.
            let is_same_file = front.handle.is_some() && front.handle == op.handle;
            let waits = front.start < start
                && is_next
                && !is_same_file
                && behind_ns as f64 >= BEHIND_SHARE * turnaround as f64
                && !op.waits_for_others();
            if waits {
                front.last = front.last.max(end);
                self.attribution.add(op, op.of_busy(behind_ns));
                self.longest_ns = self.longest_ns.max(behind_ns);
                if let Some((_, n)) = front.kind.and_then(|kind| self.kinds.get_mut(&kind)) {
                    *n += 1;
                }
                return Some(FindingKind::HeadOfLineBlocking);
            }
        }
        if op.elapsed_ns >= WAIT_MIN_NS && op.act != Act::Break {
            if self.fronts.len() >= CONNECTIONS_MAX {
                self.fronts.clear();
            }
            let kind = self.kind(op);
            let front = Front { start, end, last: end, handle: op.handle, kind };
            self.fronts.insert(key, front);
        } else if let Some(front) = self.fronts.get(&key)
            && end > front.last.saturating_add(after_ns)
        {
            self.fronts.remove(&key);
        }
        None
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let waits = self.attribution.operations;
        if waits < WAITS_MIN {
            return Vec::new();
        }
        let mut kinds: Vec<_> = self.kinds.into_values().filter(|(_, n)| *n > 0).collect();
        kinds.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        let fronts: Vec<_> =
            kinds.iter().take(3).map(|(words, n)| format!("{words} ({n})")).collect();
        let behind = if fronts.is_empty() { "one slow request".to_owned() } else { fronts.join(", ") };
        let candidate = Candidate::new(
            FindingKind::HeadOfLineBlocking,
            "Requests wait behind a slow request on their connection, which the server finishes first",
            self.attribution,
            Confidence::Likely,
            format!(
                "their replies follow that of the request in front at once, and they were sent while it was in flight; \
                 in front: {behind}"
            ),
        );
        let figures = [
            ("waits", waits as f64, "", "requests that waited: {}"),
            ("longest_wait", self.longest_ns as f64, "ns", "longest wait {}"),
        ];
        vec![candidate.of_events().with_figures(figures)]
    }
}

impl HeadOfLineBlocking {
    /// The kind of a slow request, in words.
    fn kind(&mut self, op: &Operation) -> Option<TextId> {
        let detail = op.columns.detail.get(op.row).or(op.columns.command.get(op.row))?;
        let id = text_id((detail, op.path));
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&id) {
            return None;
        }
        self.kinds.entry(id).or_insert_with(|| {
            let path = op.path_name().map_or(String::new(), |path| format!(" of {path}"));
            (format!("{detail}{path}").into(), 0)
        });
        Some(id)
    }
}

//! Breaks of oplocks and leases that the server sent, and the requests that waited for them (MS-SMB2
//! sections 2.2.23, 2.2.24 and 3.3.4.6): which client had to acknowledge a break, and when it did.
//!
//! A break names a file id or a lease key; its SessionId and TreeId are 0 from some servers. One
//! observation for two troubles: [`break_waits`] and [`break_not_acknowledged`].

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use smbscope_findings::Actor;

use super::account::REQUEST_HANG_NS;
use super::attribution::Attribution;
use super::candidate::Candidate;
use super::data::FindingKind;
use super::detector::{Context, Detector};
use super::findings::{break_not_acknowledged, break_waits};
use super::operation::{Act, Operation, TextId};

/// Most breaks that are remembered: the last ones.
const BREAKS_MAX: usize = 4_096;
/// Most opens whose file is remembered for the breaks that name them.
const OPENS_MAX: usize = 131_072;
/// Most requests that are judged one by one; others are counted as waits for a break.
const WAITS_MAX: usize = 1_024;
/// A server sends the break and its interim response within this time, ns.
const TOGETHER_NS: i64 = 1_000_000_000;
/// What an open takes without a break, about, ns.
const QUICK_OPEN_NS: i64 = 1_000_000;
/// A break that others waited for this long is not acknowledged in time, ns.
const LONG_NS: i64 = 1_000_000_000;
/// After these times servers give up waiting for an acknowledgement, ns: Samba 30 s
/// (`OPLOCK_BREAK_TIMEOUT`), Windows 35 s (`OplockBreakWait`).
const TIMEOUTS_NS: [i64; 2] = [30_000_000_000, 35_000_000_000];

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What a break names: a file id or a lease key, in its recording. SMB1's FIDs are unique on their
/// connection only; for SMB2 the connection is 0.
type Key = (u32, u64, [u8; 16]);

/// A break that the server sent.
struct Break {
    key: Option<Key>,
    recording: u32,
    server: u32,
    path: Option<TextId>,
    at: i64,
    frame: Option<u64>,
    holder: Option<TextId>,
    holder_name: String,
    answered_at: Option<i64>,
    /// It breaks the oplock of a directory, which has none.
    is_of_directory: bool,
    connection: (u32, u64),
}

/// A request that waited.
struct Wait {
    attribution: Attribution,
    recording: u32,
    server: u32,
    path: Option<TextId>,
    client: Option<TextId>,
    start: i64,
    /// When the server said that it takes longer, or when it was sent.
    known_at: i64,
    end: i64,
    connection: (u32, u64),
    /// Requests outstanding with it.
    outstanding: u64,
}

impl Wait {
    fn from_op(op: &Operation, start: i64) -> Wait {
        let pending_at = op.columns.pending_at.get(op.row);
        Wait {
            attribution: Attribution::with_few_names(),
            recording: op.recording,
            server: op.server,
            path: op.path,
            client: op.client,
            start,
            known_at: pending_at.unwrap_or(start),
            end: start.saturating_add(op.elapsed_ns),
            connection: (op.recording, op.connection),
            outstanding: u64::from(op.columns.outstanding.get(op.row).unwrap_or(0)) + 1,
        }
    }
}

/// The breaks, and the requests with an interim response.
#[derive(Default)]
pub(super) struct Breaks {
    breaks: VecDeque<Break>,
    sent: u64,
    paths: Map<Key, TextId>,
    /// The lease of each open, and how many opens a lease has: it ends with the last one.
    leases: Map<Key, Key>,
    lease_opens: Map<Key, u32>,
    /// Opens whose oplock breaks without an acknowledgement.
    quiet: HashSet<Key, foldhash::fast::RandomState>,
    /// Opens of directories with an oplock: only leases of version 2 cache directories (MS-SMB2 section
    /// 3.3.5.9.11), so the server may neither grant nor break it.
    directories: HashSet<Key, foldhash::fast::RandomState>,
    waits: Vec<Wait>,
    others: Attribution,
}

impl Detector for Breaks {
    /// Requests that waited for the break of an oplock or lease. An open with an interim
    /// response counts in any case; other requests (a write, a rename, an open of SMB1) if the server
    /// sent a break of their file meanwhile.
    fn claim(&mut self, op: &Operation) -> Option<FindingKind> {
        let is_pending_open = op.act == Act::Open
            && op.status == Some(0)
            && op.columns.pending_at.get(op.row).is_some();
        let is_long = op.elapsed_ns >= LONG_NS && !self.breaks.is_empty() && op.act != Act::Break;
        let start = op.start.filter(|_| op.is_timed && (is_pending_open || is_long))?;
        let mut wait = Wait::from_op(op, start);
        // Where names are cut, only an open that hangs from the moment of a break is taken for one that waits for it.
        let is_nameless_hang =
            op.path.is_none() && op.act == Act::Open && op.elapsed_ns >= REQUEST_HANG_NS;
        let is_cause = |cause: &Break| cause.path.is_some() || is_nameless_hang;
        if !is_pending_open && !self.cause(&wait).is_some_and(is_cause) {
            return None;
        }
        let saved_ns = op.of_busy(op.elapsed_ns - QUICK_OPEN_NS);
        if self.waits.len() >= WAITS_MAX {
            self.others.add(op, saved_ns);
        } else {
            wait.attribution.add(op, saved_ns);
            self.waits.push(wait);
        }
        Some(FindingKind::BreakWaits)
    }

    fn see(&mut self, op: &Operation) {
        match op.act {
            Act::Break => self.see_break(op),
            // SMB1 breaks oplocks by LockingAndX.
            Act::Lock if is_smb1_break(op) => self.see_break(op),
            Act::Open if op.status == Some(0) => self.open(op),
            Act::Close => self.close(op),
            _ => {}
        }
    }

    fn finish(mut self, context: &mut Context) -> Vec<Candidate> {
        let waits = std::mem::take(&mut self.waits);
        let (mut waited, mut owed) = (std::mem::take(&mut self.others), Owed::default());
        let (mut acknowledged, mut slowest_ns) = (Vec::new(), 0);
        for wait in waits {
            let after = |at: i64| wait.end.saturating_sub(at);
            match self.cause(&wait) {
                Some(cause)
                    if after(cause.at) >= LONG_NS
                        && cause.answered_at.is_none_or(|at| at >= wait.end) =>
                {
                    owed.breaks += 1;
                    owed.of_directories += u64::from(cause.is_of_directory);
                    let limit = context
                        .connections
                        .get(wait.connection)
                        .filter(|_| wait.connection == cause.connection)
                        .and_then(|facts| facts.max_outstanding);
                    if let Some(limit) = limit.filter(|limit| wait.outstanding >= *limit) {
                        owed.full += 1;
                        owed.limit = owed.limit.max(limit);
                    }
                    owed.waits_ns.push(after(cause.at));
                    owed.frames.extend(cause.frame);
                    owed.own += u64::from(wait.client.is_some() && wait.client == cause.holder);
                    owed.holders.push(cause.holder_name.clone());
                    owed.attribution.merge(wait.attribution);
                }
                Some(cause) => {
                    let answered_ns = cause.answered_at.map_or(0, |at| at - cause.at);
                    slowest_ns = slowest_ns.max(answered_ns);
                    acknowledged.push(cause.holder_name.clone());
                    waited.merge(wait.attribution);
                }
                None => {
                    let ns = after(wait.known_at);
                    let is_timeout =
                        TIMEOUTS_NS.iter().any(|timeout| (ns - timeout).abs() < timeout / 100);
                    if is_timeout {
                        owed.unseen += 1;
                        owed.waits_ns.push(ns);
                        owed.attribution.merge(wait.attribution);
                    } else {
                        waited.merge(wait.attribution);
                    }
                }
            }
        }
        let mut candidate = break_waits::finish(waited, self.sent, slowest_ns);
        acknowledged.sort();
        acknowledged.dedup();
        if !acknowledged.is_empty() {
            acknowledged.truncate(3);
            // A client that needs a second to acknowledge is slow itself.
            let actor = if slowest_ns >= LONG_NS { Actor::Client } else { Actor::Application };
            candidate = candidate.with_owner(actor, acknowledged);
        }
        vec![candidate, break_not_acknowledged::finish(owed)]
    }
}

impl Breaks {
    fn key(op: &Operation, key: [u8; 16]) -> Key {
        let is_smb1 = op.columns.protocol.get(op.row) == Some(1);
        (op.recording, if is_smb1 { op.connection } else { 0 }, key)
    }

    fn file(op: &Operation) -> Option<Key> {
        op.columns.file_id.get(op.row).map(|key| Self::key(op, key))
    }

    fn lease(op: &Operation) -> Option<Key> {
        op.columns.lease_key.get(op.row).map(|key| Self::key(op, key))
    }

    /// A break that the server sent has no request; an acknowledgement has one.
    fn see_break(&mut self, op: &Operation) {
        let key = Self::file(op).or(Self::lease(op));
        if let Some(start) = op.start {
            let open = self.breaks.iter_mut().filter(|one| one.answered_at.is_none());
            let mut open = open.filter(|one| one.key == key && one.at <= start);
            if let Some(one) = open.next() {
                one.answered_at = Some(start);
            }
            return;
        }
        let Some(at) = op.columns.response_start.get(op.row) else { return };
        self.sent += 1;
        // No request waits for a break of read caching.
        let is_quiet = match op.columns.lease_requested.get(op.row) {
            Some(from) => !needs_acknowledgement(from, true),
            None => key.is_some_and(|key| self.quiet.contains(&key)),
        };
        if is_quiet {
            return;
        }
        if self.breaks.len() >= BREAKS_MAX {
            self.breaks.pop_front();
        }
        self.breaks.push_back(Break {
            path: op.path.or_else(|| self.paths.get(&key?).copied()),
            key,
            recording: op.recording,
            server: op.server,
            at,
            frame: op.columns.response_frame.get(op.row),
            holder: op.client,
            holder_name: op.client_name().unwrap_or_default().to_owned(),
            answered_at: None,
            is_of_directory: key.is_some_and(|key| self.directories.contains(&key)),
            connection: (op.recording, op.connection),
        });
    }

    fn open(&mut self, op: &Operation) {
        let most = self.paths.len().max(self.leases.len()).max(self.quiet.len());
        if most >= OPENS_MAX {
            self.paths.clear();
            self.leases.clear();
            self.lease_opens.clear();
            self.quiet.clear();
            self.directories.clear();
        }
        let (file, lease) = (Self::file(op), Self::lease(op));
        if let Some(path) = op.path {
            self.paths.extend(file.into_iter().chain(lease).map(|key| (key, path)));
        }
        let level = op.columns.oplock_granted.get(op.row);
        if let (Some(file), Some(level)) = (file, level)
            && level != "None"
            && !needs_acknowledgement(level, false)
        {
            self.quiet.insert(file);
        }
        if let (Some(file), None, Some(level)) = (file, lease, level)
            && level != "None"
            && op.intent.is_of_directory()
        {
            self.directories.insert(file);
        }
        if let (Some(file), Some(lease)) = (file, lease)
            && self.leases.insert(file, lease).is_none()
        {
            *self.lease_opens.entry(lease).or_default() += 1;
        }
    }

    /// A client that closes the file need not acknowledge the break of its oplock, or of its lease if that
    /// was the last open of the lease.
    fn close(&mut self, op: &Operation) {
        let file = Self::file(op);
        if let Some(file) = &file {
            self.quiet.remove(file);
            self.directories.remove(file);
        }
        let lease = file.and_then(|file| self.leases.remove(&file));
        let mut ended = None;
        if let Some(lease) = lease
            && let Some(opens) = self.lease_opens.get_mut(&lease)
        {
            *opens = opens.saturating_sub(1);
            if *opens == 0 {
                self.lease_opens.remove(&lease);
                ended = Some(lease);
            }
        }
        let Some(start) = op.start else { return };
        for one in self.breaks.iter_mut().filter(|one| one.answered_at.is_none()) {
            let is_named = one.key.is_some() && (one.key == file || one.key == ended);
            // An open from before the recording.
            let is_unknown = one.key.is_none_or(|key| !self.lease_opens.contains_key(&key));
            let is_of_holder = lease.is_none() && is_unknown && op.client == one.holder;
            let is_same_file = op.path.is_some() && op.path == one.path;
            if one.at <= start && (is_named || is_of_holder && is_same_file) {
                one.answered_at = Some(start);
            }
        }
    }

    /// The break that a request waited for: that of its file which was sent while it was new.
    fn cause(&self, wait: &Wait) -> Option<&Break> {
        let until = wait.known_at.saturating_add(TOGETHER_NS).min(wait.end);
        let candidates = self.breaks.iter().filter(|one| {
            (one.recording, one.server) == (wait.recording, wait.server)
                && (wait.start..=until).contains(&one.at)
        });
        let of_file = |one: &&Break| one.path.is_none() || one.path == wait.path;
        // Rather one that is known to be of this file, and among those the one that took longest.
        candidates.filter(of_file).max_by_key(|one| {
            let answered = one.answered_at.unwrap_or(i64::MAX);
            (one.path.is_some(), answered)
        })
    }
}

/// A client has to acknowledge the break of a lease with write or handle caching, and of an oplock
/// above level II (MS-SMB2 sections 3.3.4.6 and 3.3.4.7). `from` is the state before.
pub(super) fn needs_acknowledgement(from: &str, is_lease: bool) -> bool {
    if is_lease { from.contains(['H', 'W']) } else { !matches!(from, "II" | "None") }
}

fn is_smb1_break(op: &Operation) -> bool {
    op.columns.protocol.get(op.row) == Some(1)
        && op.columns.detail.get(op.row).is_some_and(|detail| detail.starts_with("Oplock "))
}

/// Breaks that were not acknowledged, and the requests that waited.
#[derive(Default)]
pub(super) struct Owed {
    pub(super) attribution: Attribution,
    /// Waits with a break in the recording, and without.
    pub(super) breaks: u64,
    pub(super) unseen: u64,
    /// Breaks of the oplock of a directory.
    pub(super) of_directories: u64,
    /// Waits of the client that had to acknowledge, with as many requests outstanding as it may have, and
    /// that limit.
    pub(super) full: u64,
    pub(super) limit: u64,
    /// Waits for which the client that waited is the client that did not acknowledge.
    pub(super) own: u64,
    /// From the break to the reply, ns.
    pub(super) waits_ns: Vec<i64>,
    /// Frames of the breaks.
    pub(super) frames: Vec<u64>,
    /// Addresses of the clients that did not acknowledge.
    pub(super) holders: Vec<String>,
}

//! Oplock and lease breaks of the explained operation's file, and what the clients did after them
//! (MS-SMB2 sections 2.2.23, 2.2.24, 3.3.4.6 and 3.3.4.7).
//!
//! A break names an open or a lease key only, and its SessionId and TreeId may be 0, so the file follows
//! from the Creates of the recording. A client answers with an acknowledgement, or by closing the file.

use smbscope_tables::command_class::CommandClass;

use super::super::breaks::needs_acknowledgement;
use super::data::{Break, BreakAnswer, Brief};
use super::row::{Columns, Row};

/// Details of the rows of breaks and of their acknowledgements.
const OPLOCK: &str = "Oplock notification";
const LEASE: &str = "Lease notification";
const ACKNOWLEDGEMENTS: [&str; 2] = ["Oplock acknowledgement", "Lease acknowledgement"];

/// How long before the operation a break may be, and how long after its end an answer, ns. The longest
/// known timeout is 35 s.
const AROUND_NS: i64 = 120_000_000_000;
/// Most rows of each kind that are kept.
const ROWS_MAX: usize = 4096;
/// Most breaks of an explanation.
const SHOWN_MAX: usize = 4;
/// Opens in flight at a break that are kept.
const WAITERS_MAX: usize = 64;

/// Whether the detail is that of a break that a server sent.
pub(super) fn is_notification(detail: Option<&str>) -> bool {
    detail.is_some_and(|detail| matches!(detail, OPLOCK | LEASE))
}

/// What identifies an open or a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keys {
    file_id: Option<[u8; 16]>,
    lease_key: Option<[u8; 16]>,
    handle: Option<u64>,
}

struct Notification {
    keys: Keys,
    seen: Break,
    path: Option<String>,
}

struct Answer {
    keys: Keys,
    at: i64,
    answer: BreakAnswer,
}

struct Open {
    keys: Keys,
    /// When it was requested and answered, after the target's first byte.
    times: (i64, i64),
    frame: Option<u64>,
    level: Option<String>,
    path: Option<String>,
}

/// Breaks, answers and opens while the rows stream by.
#[derive(Default)]
pub(super) struct Breaks {
    notifications: Vec<Notification>,
    answers: Vec<Answer>,
    opens: Vec<Open>,
    waiters: Vec<Brief>,
    left_out: u64,
}

impl Breaks {
    pub(super) fn see(&mut self, columns: &Columns, row: usize, target: &Row) {
        let Some(zero) = target.zero else { return };
        let end = target.end().unwrap_or(zero);
        let Some(at) = columns.seen(row) else { return };
        if at > end.saturating_add(AROUND_NS) {
            return;
        }
        let class = columns.class(row);
        let is_near = at >= zero.saturating_sub(AROUND_NS);
        let detail = columns.detail.get(row);
        if is_notification(detail) {
            if is_near && at <= end {
                self.notification(columns, row, target, at - zero);
            }
        } else if class == CommandClass::Break
            || detail.is_some_and(|detail| ACKNOWLEDGEMENTS.contains(&detail))
        {
            if is_near {
                self.answer(columns, row, at, zero, false);
            }
        } else if class == CommandClass::Close {
            if is_near && (is_same_file(columns, row, target) || is_same_open(columns, row, target))
            {
                self.answer(columns, row, at, zero, true);
            }
        } else if class == CommandClass::Open {
            self.open(columns, row, target, (at, zero));
        }
    }

    fn notification(&mut self, columns: &Columns, row: usize, target: &Row, at_ns: i64) {
        if self.notifications.len() >= ROWS_MAX {
            self.left_out += 1;
            return;
        }
        let client = columns.client.get(row);
        let connection = columns.connection.get(row);
        let text = |text: Option<&str>| text.map(str::to_owned);
        let is_lease = columns.detail.get(row) == Some(LEASE);
        let to =
            if is_lease { columns.lease_granted.get(row) } else { columns.oplock_granted.get(row) };
        self.notifications.push(Notification {
            keys: keys(columns, row),
            seen: Break {
                is_lease,
                client: text(client),
                client_port: columns.client_port.get(row),
                is_same_client: client.is_some() && client == target.brief.client.as_deref(),
                is_same_connection: connection.is_some() && connection == target.brief.connection,
                at_ns,
                frame: columns.response_frame.get(row),
                from: text(columns.lease_requested.get(row).filter(|_| is_lease)),
                to: text(to),
                opened_frame: None,
                needs_acknowledgement: None,
                answer: None,
                waited_ns: 0,
            },
            path: text(columns.path.get(row)),
        });
    }

    fn answer(&mut self, columns: &Columns, row: usize, at: i64, zero: i64, is_close: bool) {
        if self.answers.len() >= ROWS_MAX {
            self.left_out += 1;
            return;
        }
        let answer = BreakAnswer {
            is_close,
            at_ns: at - zero,
            took_ns: 0,
            frame: columns.request_frame.get(row),
            status: columns.status(row),
        };
        self.answers.push(Answer { keys: keys(columns, row), at: at - zero, answer });
    }

    fn open(&mut self, columns: &Columns, row: usize, target: &Row, (at, zero): (i64, i64)) {
        let text = |text: Option<&str>| text.map(str::to_owned);
        // In flight when the server sent the break that is explained.
        let end = columns.end(row).unwrap_or(at);
        if target.is_break() && at <= zero && end > zero && self.waiters.len() < WAITERS_MAX {
            self.waiters.push(columns.brief(row, zero));
        }
        let is_its = if target.is_break() {
            is_same_open(columns, row, target)
        } else {
            is_same_file(columns, row, target)
        };
        if !is_its || columns.status.get(row) != Some(0) {
            return;
        }
        if self.opens.len() >= ROWS_MAX {
            self.left_out += 1;
            return;
        }
        let level = columns.lease_granted.get(row).or_else(|| columns.oplock_granted.get(row));
        self.opens.push(Open {
            keys: keys(columns, row),
            times: (at - zero, end - zero),
            frame: columns.request_frame.get(row),
            level: text(level),
            path: text(columns.path.get(row)),
        });
    }

    /// The breaks of the target's file that were not answered before it began.
    pub(super) fn finish(mut self, target: &Row) -> BreaksOfFile {
        let opened_path = self.opens.iter().find_map(|open| open.path.clone());
        let path = target.brief.path.clone().or(opened_path);
        self.answers.sort_by_key(|answer| answer.at);
        let wait = (
            target.request_end.or(target.zero).map_or(0, |ns| ns - target.zero.unwrap_or(ns)),
            target.response_start.or(target.zero).map_or(0, |ns| ns - target.zero.unwrap_or(ns)),
        );
        let mut breaks = Vec::new();
        for mut one in std::mem::take(&mut self.notifications) {
            let is_target = target.is_break()
                && one.seen.frame == target.brief.response_frame
                && one.seen.at_ns == 0;
            let opens = self.opens.iter().filter(|open| is_same(&open.keys, &one.keys));
            // The first that had it; a lease may have been granted before the recording began.
            let open = opens.min_by_key(|open| (open.times.1 > one.seen.at_ns, open.times));
            let is_named = one.path.is_some() && same_text(one.path.as_deref(), path.as_deref());
            if !(is_target || (!target.is_break() && (open.is_some() || is_named))) {
                continue;
            }
            if let Some(open) = open {
                one.seen.opened_frame = open.frame;
                if one.seen.from.is_none() && !one.seen.is_lease {
                    one.seen.from.clone_from(&open.level);
                }
            }
            let before = one.seen.from.as_deref();
            one.seen.needs_acknowledgement =
                before.map(|from| needs_acknowledgement(from, one.seen.is_lease));
            one.seen.answer = self.answer_to(&one);
            let answered = one.seen.answer.as_ref().map(|answer| answer.at_ns);
            // It is over, too, when the server answers the open that caused it.
            let caused = self
                .opens
                .iter()
                .filter(|open| open.times.0 <= one.seen.at_ns && one.seen.at_ns < open.times.1);
            let until = caused.map(|open| open.times.1).chain(answered).min().unwrap_or(i64::MAX);
            if until < 0 {
                continue;
            }
            if one.seen.needs_acknowledgement != Some(false) {
                one.seen.waited_ns = (until.min(wait.1) - one.seen.at_ns.max(wait.0)).max(0);
            }
            breaks.push(one.seen);
        }
        let count = breaks.len() as u64;
        let waits = breaks.iter().map(|one| {
            let from = one.at_ns.max(wait.0);
            (from, from + one.waited_ns)
        });
        let waited_ns = union(waits.collect());
        breaks.sort_by_key(|one| std::cmp::Reverse(one.waited_ns));
        breaks.truncate(SHOWN_MAX);
        breaks.sort_by_key(|one| one.at_ns);
        let mut waiters: Vec<_> = std::mem::take(&mut self.waiters)
            .into_iter()
            .filter(|brief| path.is_some() && same_text(brief.path.as_deref(), path.as_deref()))
            .collect();
        waiters.sort_by_key(|brief| std::cmp::Reverse(brief.elapsed_ns));
        waiters.truncate(SHOWN_MAX);
        BreaksOfFile { breaks, count, waited_ns, waiters, path, left_out: self.left_out }
    }

    /// The first answer to a break on the open or lease that it names. A lease that several opens share is
    /// given up only with the Close of the last one.
    fn answer_to(&self, of: &Notification) -> Option<BreakAnswer> {
        let opens = self.opens.iter().filter(|open| is_same(&open.keys, &of.keys));
        let mut opens: Vec<_> = opens.map(|open| (open.times.1, open.keys.handle)).collect();
        let found = self.answers.iter().find(|answer| {
            let is_after = answer.at >= of.seen.at_ns;
            if !answer.answer.is_close {
                return is_after && is_same(&answer.keys, &of.keys);
            }
            let is_open = |(_, handle): &(i64, Option<u64>)| {
                handle.is_some() && *handle == answer.keys.handle
            };
            let is_its = opens.iter().any(is_open) || is_same(&answer.keys, &of.keys);
            opens.retain(|open| !is_open(open));
            let is_last = opens.iter().all(|(granted, _)| *granted > answer.at);
            is_after && is_its && (is_last || !of.seen.is_lease)
        })?;
        let took_ns = found.at - of.seen.at_ns;
        Some(BreakAnswer { took_ns, ..found.answer.clone() })
    }
}

/// What is known about the breaks of one file.
pub(super) struct BreaksOfFile {
    pub(super) breaks: Vec<Break>,
    pub(super) count: u64,
    pub(super) waited_ns: i64,
    pub(super) waiters: Vec<Brief>,
    pub(super) path: Option<String>,
    pub(super) left_out: u64,
}

/// The length of the union of intervals.
pub(super) fn union(mut intervals: Vec<(i64, i64)>) -> i64 {
    intervals.sort_unstable();
    let (mut sum, mut end) = (0, i64::MIN);
    for (from, until) in intervals {
        sum += (until - from.max(end)).max(0);
        end = end.max(until);
    }
    sum
}

fn keys(columns: &Columns, row: usize) -> Keys {
    Keys {
        file_id: columns.file_id.get(row),
        lease_key: columns.lease_key.get(row),
        handle: columns.handle.get(row),
    }
}

fn is_same(one: &Keys, other: &Keys) -> bool {
    let same = |one: Option<[u8; 16]>, other| one.is_some() && one == other;
    same(one.file_id, other.file_id) || same(one.lease_key, other.lease_key)
}

/// Whether a row names the open or the lease of the target.
fn is_same_open(columns: &Columns, row: usize, target: &Row) -> bool {
    let target = Keys { file_id: target.file_id, lease_key: target.lease_key, handle: None };
    is_same(&keys(columns, row), &target)
}

/// Whether a row works on the target's file: the same path on a share of the same name. Servers may
/// have several names.
pub(super) fn is_same_file(columns: &Columns, row: usize, target: &Row) -> bool {
    let path = target.brief.path.as_deref().filter(|path| !path.is_empty());
    let name = |share: Option<&str>| share.map(|share| last(share).to_lowercase());
    path.is_some()
        && same_text(columns.path.get(row), path)
        && (columns.share.get(row).is_none()
            || target.share.is_none()
            || name(columns.share.get(row)) == name(target.share.as_deref()))
}

fn last(share: &str) -> &str {
    share.rsplit('\\').next().unwrap_or(share)
}

fn same_text(one: Option<&str>, other: Option<&str>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.len() == other.len() && (one == other || one.to_lowercase() == other.to_lowercase())
        }
        _ => false,
    }
}

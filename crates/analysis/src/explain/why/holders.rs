//! Which locks and other opens were in the way of the explained operation: locks on its range for a
//! Lock (MS-SMB2 section 3.3.5.14), opens of its file for an open that failed with a sharing violation
//! (MS-FSA section 2.1.5.1.2).
//!
//! A lock is held from its grant to the Unlock of the range or the Close of its handle, an open from the
//! reply to its Close.

use smbscope_tables::command_class::CommandClass;
use smbscope_wire::status::Status;

use super::breaks::{is_same_file, union};
use super::data::Holder;
use super::row::{Columns, Row};

/// Most locks or opens that are followed at a time.
const HOLDS_MAX: usize = 4096;
/// Holders that are shown.
const SHOWN_MAX: usize = 3;
/// Details of the rows of locks.
const LOCK: &str = "Lock";
const UNLOCKS: [&str; 2] = ["Unlock", "Lock+Unlock"];

/// What the target waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// A lock on bytes from the first up to the second.
    Range(u64, u64),
    Open,
}

/// Locks or opens of the file while the rows stream by.
pub(super) struct Holds {
    wanted: Option<Wanted>,
    holds: Vec<Hold>,
    left_out: u64,
}

struct Hold {
    handle: u64,
    range: (u64, u64),
    /// Absolute.
    from: i64,
    until: Option<i64>,
    holder: Holder,
}

/// What was held while the target waited.
pub(super) struct Held {
    pub(super) holders: Vec<Holder>,
    pub(super) count: u64,
    /// How long the target waited for locks.
    pub(super) held_ns: i64,
    pub(super) left_out: u64,
}

impl Holds {
    pub(super) fn new(target: &Row) -> Holds {
        let is_lock = target.brief.detail.as_deref() == Some(LOCK);
        let is_violation = target.status_code == Some(Status::SHARING_VIOLATION.0);
        let wanted = match target.class {
            Some(CommandClass::Lock) if is_lock => {
                let from = target.brief.offset_bytes;
                let bytes = target.requested_bytes.unwrap_or(0);
                from.map(|from| Wanted::Range(from, from.saturating_add(bytes)))
            }
            // An open, or a change by path.
            Some(_) if is_violation => Some(Wanted::Open),
            _ => None,
        };
        Holds { wanted, holds: Vec::new(), left_out: 0 }
    }

    pub(super) fn see(&mut self, columns: &Columns, row: usize, target: &Row) {
        let (Some(wanted), Some(zero)) = (self.wanted, target.zero) else { return };
        let Some(handle) = columns.handle.get(row) else { return };
        let class = columns.class(row);
        let relevant = match wanted {
            Wanted::Range(..) => matches!(class, CommandClass::Lock | CommandClass::Close),
            Wanted::Open => matches!(class, CommandClass::Open | CommandClass::Close),
        };
        if !relevant || target.is(columns, row) || !is_same_file(columns, row, target) {
            return;
        }
        // `Lock of 2 ranges` is a lock.
        let detail = columns.detail.get(row).and_then(|detail| detail.split(' ').next());
        let detail = detail.unwrap_or_default();
        let length = columns.requested_bytes.get(row).filter(|_| class == CommandClass::Lock);
        let range = match columns.offset_bytes.get(row).zip(length) {
            Some((from, length)) => (from, from.saturating_add(length)),
            // Perhaps all of the file.
            None => (0, u64::MAX),
        };
        if class == CommandClass::Close || UNLOCKS.contains(&detail) {
            if let Some(at) = columns.start(row) {
                self.release(handle, range, (at, columns.request_frame.get(row)), zero);
            }
            return;
        }
        let is_granted = columns.status.get(row) == Some(0);
        let is_wanted = match wanted {
            Wanted::Range(from, until) => detail == LOCK && from < range.1 && range.0 < until,
            Wanted::Open => true,
        };
        let Some(from) = columns.end(row).filter(|_| is_granted && is_wanted) else { return };
        if Some(handle) == target.handle {
            return;
        }
        if self.holds.len() >= HOLDS_MAX {
            self.left_out += 1;
            return;
        }
        let brief = columns.brief(row, zero);
        let is_same_client = brief.client.is_some() && brief.client == target.brief.client;
        let from_ns = from.saturating_sub(zero);
        let holder = Holder { brief, is_same_client, from_ns, until_ns: None, until_frame: None };
        self.holds.push(Hold { handle, range, from, until: None, holder });
    }

    /// Ends what a handle holds in a range; what ended before the target began is forgotten.
    fn release(
        &mut self,
        handle: u64,
        range: (u64, u64),
        (at, frame): (i64, Option<u64>),
        zero: i64,
    ) {
        self.holds.retain_mut(|hold| {
            let is_its = hold.handle == handle && hold.until.is_none() && hold.from <= at;
            if is_its && range.0 < hold.range.1 && hold.range.0 < range.1 {
                hold.until = Some(at);
                hold.holder.until_ns = Some(at.saturating_sub(zero));
                hold.holder.until_frame = frame;
            }
            hold.until.is_none_or(|until| until > zero)
        });
    }

    pub(super) fn finish(self, target: &Row) -> Held {
        let Holds { wanted, holds, left_out } = self;
        let zero = target.zero.unwrap_or(0);
        let end = target.end().unwrap_or(i64::MAX);
        let overlap = |hold: &Hold| {
            let from = hold.from.max(zero);
            (from, hold.until.unwrap_or(i64::MAX).min(end).max(from))
        };
        let mut holds: Vec<_> = holds.into_iter().filter(|hold| hold.from < end).collect();
        // A sharing violation is an answer, not a wait.
        let held_ns = match wanted {
            Some(Wanted::Range(..)) => union(holds.iter().map(overlap).collect()),
            _ => 0,
        };
        let count = holds.len() as u64;
        holds.sort_by_key(|hold| {
            let (from, until) = overlap(hold);
            std::cmp::Reverse(until - from)
        });
        holds.truncate(SHOWN_MAX);
        let holders = holds.into_iter().map(|hold| hold.holder).collect();
        Held { holders, count, held_ns, left_out }
    }
}

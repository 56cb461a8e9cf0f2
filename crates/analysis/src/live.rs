//! What happens now: operations in slots of time, grouped by each of several properties.
//!
//! [`Live`] takes record batches of the operations table as they arrive. It has no clock: the caller
//! advances the time ([`Live::advance`]). It keeps the last slots (of a second, say) by every
//! [`Key`], so that the view can change to another key at once. An operation counts in the slot
//! in which its reply ended; one whose time is not known (a member of a compound, a request without
//! reply) where the row before it does, for rows come in the order in which operations ended.
//!
//! As in [`summary`](crate::summary), operations that wait by design (`waits`) count, but not as latency.
//! Groups are bounded ([`Options::groups_max`]); operations of later ones count together.

mod data;
mod groups;
mod rows;
mod tally;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

pub use data::{Key, Part, Row, Snapshot, Sort, Span, sort};

use groups::Groups;
use tally::{Facts, Tally};

/// Slots after the last complete one for which rows can come: on a busy
/// CPU, the time advances late.
const AHEAD: i64 = 10;

/// Limits of what is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Length of a slot.
    pub slot_ns: i64,
    /// Complete slots that make the window.
    pub slots: usize,
    /// Most groups of one key.
    pub groups_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { slot_ns: 1_000_000_000, slots: 10, groups_max: 10_000 }
    }
}

/// The last slots.
#[derive(Clone)]
pub struct Live {
    slot_ns: i64,
    slots: i64,
    /// The first slot that was observed from its start.
    first: i64,
    /// The last slot that is complete.
    complete: i64,
    keys: Vec<Groups>,
    total: Groups,
    has_slices: bool,
    late: u64,
}

impl Live {
    /// Creates a view that starts at `begin_ns`, in nanoseconds since 1970.
    pub fn new(options: Options, begin_ns: i64) -> Live {
        let slot_ns = options.slot_ns.max(1);
        let slots = i64::try_from(options.slots).unwrap_or(i64::MAX).clamp(1, 3_600);
        let begun = begin_ns.div_euclid(slot_ns);
        let ring = (slots + AHEAD) as usize;
        let groups = |limit| Groups::new(limit, ring);
        Live {
            slot_ns,
            slots,
            first: begun + 1,
            complete: begun,
            keys: Key::ALL.iter().map(|_| groups(options.groups_max)).collect(),
            total: groups(0),
            has_slices: false,
            late: 0,
        }
    }

    /// Adds operations. Columns are found by name; those that are absent read as null. Fails only
    /// on a column of a type that cannot be cast to the schema's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        rows::add(self, batch)
    }

    /// Everything that ended before that time has come (what comes later still counts in its slot,
    /// as long as that is in the window). Gives whether another slot is complete.
    pub fn advance(&mut self, until_ns: i64) -> bool {
        let complete = until_ns.div_euclid(self.slot_ns) - 1;
        let ring = self.slots + AHEAD;
        match complete - self.complete {
            // The clock was set back: the slots that are kept are in the future.
            gone if gone < -ring => {
                self.all().for_each(Groups::clear);
                (self.first, self.complete) = (complete + 1, complete);
                return true;
            }
            ..=0 => return false,
            gone if gone >= ring => self.all().for_each(Groups::clear),
            gone => {
                for slot in 1..=gone {
                    let place = self.place(self.complete + AHEAD + slot);
                    self.all().for_each(|groups| groups.forget(place));
                }
            }
        }
        self.complete = complete;
        true
    }

    /// As [`Live::advance`], but by one slot, so that each can be looked at: to be called again until
    /// it returns `false`. After the machine was suspended, it continues with the current time.
    pub fn step(&mut self, until_ns: i64) -> bool {
        let gone = until_ns.div_euclid(self.slot_ns) - 1 - self.complete;
        let is_asleep = gone > self.slots + AHEAD && self.total.is_empty();
        if gone <= 1 || is_asleep {
            return self.advance(until_ns);
        }
        self.advance(self.next_ns())
    }

    /// When the next slot is complete.
    pub fn next_ns(&self) -> i64 {
        (self.complete + 2).saturating_mul(self.slot_ns)
    }

    /// What happened, by a key: in the last complete slot, or in all that are kept.
    pub fn snapshot(&self, key: Key, span: Span) -> Snapshot {
        let oldest = match span {
            Span::Slot => self.complete,
            Span::Window => self.complete - self.slots + 1,
        };
        let slots = oldest.max(self.first)..=self.complete;
        let count = (self.complete - slots.start() + 1).max(0);
        let places: Vec<usize> = slots.map(|slot| self.place(slot)).collect();
        let (rows, others) = match self.keys.get(key as usize) {
            Some(groups) => groups.rows(&places),
            None => (Vec::new(), None),
        };
        Snapshot {
            key,
            span_ns: count * self.slot_ns,
            end_ns: (self.complete + 1) * self.slot_ns,
            total: self.total.none(&places),
            rows,
            others,
            has_slices: self.has_slices,
            late: self.late,
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Groups> {
        self.keys.iter_mut().chain(std::iter::once(&mut self.total))
    }

    /// Where a slot is kept.
    fn place(&self, slot: i64) -> usize {
        slot.rem_euclid(self.slots + AHEAD) as usize
    }

    /// The slot in which an operation counts; none when that was not seen from its begin.
    fn slot(&self, at_ns: i64) -> Option<i64> {
        let slot = at_ns.div_euclid(self.slot_ns);
        let oldest = (self.complete - self.slots + 1).max(self.first);
        match slot {
            _ if slot < self.first => None,
            // So late that its slot is gone, as with a request that was given up: it is news now.
            _ if slot < oldest => Some(self.complete + 1),
            _ => Some(slot),
        }
    }
}

#[cfg(test)]
mod tests;

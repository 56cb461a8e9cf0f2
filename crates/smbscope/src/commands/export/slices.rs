//! The slices of operations that pass by: the table `slices`, read along with the operations.
//!
//! Both tables have their rows in the order of the operations' numbers, but for little, so that
//! only the slices of some thousand operations are held at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smbscope_store::source::{Inputs, Parts, Request, Source};
use smbscope_store::{Part, Result, Table};
use smbscope_tables::slice::Slice;

/// How far ahead slices are read, in operations: a source may be somewhat out of order.
const AHEAD: u64 = 4096;
/// Operations whose slices wait; more mean that the tables do not belong together.
const WAITING_MAX: usize = 1 << 18;

/// Slices in step with operations.
pub struct SliceFeed {
    parts: Option<Parts>,
    ready: std::vec::IntoIter<Slice>,
    next: Option<Slice>,
    waiting: HashMap<Arc<str>, HashMap<u64, Vec<Slice>>>,
    waiting_count: usize,
    /// Recordings whose operations came.
    seen: HashSet<String>,
    lost: u64,
}

impl SliceFeed {
    /// The slices of a source that has any.
    pub fn new(source: &Source) -> Result<SliceFeed> {
        // A capture has none, and would be decoded twice.
        let request = Request { tables: vec![Table::Slices], projection: None };
        let parts = match source.files(Table::Slices).is_empty() {
            true => None,
            false => Some(source.parts_of(Inputs::Datasets, &request)?),
        };
        let mut feed = SliceFeed {
            parts,
            ready: Vec::new().into_iter(),
            next: None,
            waiting: HashMap::new(),
            waiting_count: 0,
            seen: HashSet::new(),
            lost: 0,
        };
        feed.advance()?;
        Ok(feed)
    }

    /// Reads on until the slices of operations up to `last` of a recording are there.
    pub fn reach(&mut self, recording: &str, last: u64) -> Result<()> {
        if !self.seen.contains(recording) {
            self.seen.insert(recording.to_owned());
        }
        while let Some(slice) = &self.next {
            let here = &*slice.recording == recording;
            // Another recording's whose operations have not begun.
            if (here && slice.operation > last.saturating_add(AHEAD))
                || (!here && !self.seen.contains(&*slice.recording))
            {
                break;
            }
            self.keep();
            self.advance()?;
        }
        Ok(())
    }

    /// The slices of an operation, the outer before those that lie in them.
    pub fn take(&mut self, recording: &str, operation: u64) -> Vec<Slice> {
        let Some(mut slices) =
            self.waiting.get_mut(recording).and_then(|waiting| waiting.remove(&operation))
        else {
            return Vec::new();
        };
        self.waiting_count -= 1;
        slices.sort_by_key(|slice| (slice.start, std::cmp::Reverse(slice.duration_ns)));
        slices
    }

    /// Slices whose operation did not come, or came too early.
    pub fn lost(mut self) -> Result<u64> {
        while self.next.is_some() {
            self.lost += 1;
            self.advance()?;
        }
        let waiting = self.waiting.values().flat_map(HashMap::values);
        Ok(self.lost + waiting.map(|slices| slices.len() as u64).sum::<u64>())
    }

    fn keep(&mut self) {
        let Some(slice) = self.next.take() else { return };
        if self.waiting_count >= WAITING_MAX {
            self.lost += 1;
            return;
        }
        let waiting = self.waiting.entry(slice.recording.clone()).or_default();
        let slices = waiting.entry(slice.operation).or_default();
        self.waiting_count += usize::from(slices.is_empty());
        slices.push(slice);
    }

    fn advance(&mut self) -> Result<()> {
        self.next = self.ready.next();
        while self.next.is_none() {
            match self.parts.as_mut().and_then(Iterator::next) {
                None => return Ok(()),
                Some(part) => {
                    if let Part::Slices(batch) = part? {
                        self.ready = Slice::from_batch(&batch).into_iter();
                        self.next = self.ready.next();
                    }
                }
            }
        }
        Ok(())
    }
}

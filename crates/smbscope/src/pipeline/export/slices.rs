//! Reads the table `slices` in step with the operations.
//!
//! Both tables are almost in the order of the operations' numbers, so only the slices of a few thousand
//! operations are held at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smbscope_store::source::{Inputs, Parts, Request, Source};
use smbscope_store::{Part, Result, Table};
use smbscope_tables::slice::Slice;

/// How far ahead slices are read, in operations, because a source may be slightly out of order.
const AHEAD: u64 = 4096;
/// Most operations whose slices are held; more mean that the tables do not belong together.
const WAITING_MAX: usize = 1 << 18;

/// Slices in step with operations.
pub struct SliceFeed {
    parts: Option<Parts>,
    ready: std::vec::IntoIter<Slice>,
    next: Option<Slice>,
    waiting: HashMap<Arc<str>, HashMap<u64, Vec<Slice>>>,
    waiting_count: usize,
    /// Recordings whose operations have begun.
    seen: HashSet<String>,
    orphans: u64,
    /// Whether operations are left out, so that slices without an operation are expected.
    is_filtered: bool,
}

impl SliceFeed {
    /// Starts reading the slices of a source, if it has any.
    pub fn new(source: &Source) -> Result<SliceFeed> {
        // A capture has none; reading them would decode it twice.
        let request = Request { tables: vec![Table::Slices], projection: None };
        let parts = if source.files(Table::Slices).is_empty() {
            None
        } else {
            Some(source.parts_of(Inputs::Datasets, &request)?)
        };
        let mut feed = SliceFeed {
            parts,
            ready: Vec::new().into_iter(),
            next: None,
            waiting: HashMap::new(),
            waiting_count: 0,
            seen: HashSet::new(),
            orphans: 0,
            is_filtered: source.filter().is_some(),
        };
        feed.advance()?;
        Ok(feed)
    }

    /// Reads the slices of a recording's operations up to number `last`.
    pub fn read_to(&mut self, recording: &str, last: u64) -> Result<()> {
        if !self.seen.contains(recording) {
            self.seen.insert(recording.to_owned());
        }
        if self.is_filtered && self.waiting_count >= WAITING_MAX / 2 {
            self.forget(recording, last);
        }
        while let Some(slice) = &self.next {
            let here = &*slice.recording == recording;
            // It belongs to a recording whose operations have not begun.
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

    /// The slices of an operation, outer ones before those nested in them.
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

    /// The number of slices whose operation was missing or came too early.
    pub fn orphans(mut self) -> Result<u64> {
        if self.is_filtered {
            return Ok(0);
        }
        while self.next.is_some() {
            self.orphans += 1;
            self.advance()?;
        }
        let waiting = self.waiting.values().flat_map(HashMap::values);
        Ok(self.orphans + waiting.map(|slices| slices.len() as u64).sum::<u64>())
    }

    /// Forgets slices of operations that the filter left out: their numbers are far behind.
    fn forget(&mut self, recording: &str, last: u64) {
        let Some(waiting) = self.waiting.get_mut(recording) else { return };
        let before = waiting.len();
        waiting.retain(|operation, _| operation.saturating_add(AHEAD) >= last);
        self.waiting_count -= before - waiting.len();
    }

    fn keep(&mut self) {
        let Some(slice) = self.next.take() else { return };
        if self.waiting_count >= WAITING_MAX {
            self.orphans += 1;
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

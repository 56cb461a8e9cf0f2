//! The events of all buffers in the order of their times.
//!
//! A buffer is opened when the merge arrives at its first event and dropped after its last one:
//! about one for each CPU and session is open. This does not depend on the order of the
//! buffers in the file, which is neither that of time nor complete in circular logs.

use super::index::{self, Entry};
use super::log_header::LogHeader;
use super::record::{self, Next, Position, Record};
use super::times::{self, Bounds};
use crate::order::Order;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, Read, Seek};

/// Bytes and number of open buffers. Beyond them a buffer waits until another one is finished, and its events
/// may come late.
const OPEN_BYTES_MAX: usize = 96 << 20;
const OPEN_MAX: usize = 16_384;
const STEP_RECORDS: usize = 4_096;

/// An open buffer.
#[derive(Debug)]
struct Open {
    records: Vec<u8>,
    position: Position,
    order: Order,
    cpu: u32,
}

impl Open {
    /// Moves to the next record whose time can be. Returns its time, if it has one, and how many records were left
    /// out.
    #[inline]
    fn advance(&mut self, bounds: &Bounds) -> (Option<i64>, u64) {
        let mut left_out = 0;
        loop {
            let rest = self.position.rest(&self.records);
            let Some(ticks) = record::ticks(rest) else { return (None, left_out) };
            let following = record::stride_bytes(rest).and_then(|stride| rest.get(stride..));
            let next = following.and_then(record::ticks).filter(|&next| bounds.contain(next));
            if bounds.contain(ticks) && self.order.check(ticks, next) {
                return (Some(ticks), left_out);
            }
            match self.position.next(&self.records, self.cpu) {
                Next::Record(_) => left_out += 1,
                _ => return (None, left_out),
            }
        }
    }
}

/// The merge while it runs.
#[derive(Debug)]
pub struct Merge {
    log: LogHeader,
    bounds: Bounds,
    entries: Vec<Entry>,
    /// Number of the next buffer to open.
    next: usize,
    /// Time of the next record, number of the buffer, place in `open`.
    heap: BinaryHeap<Reverse<(i64, usize, usize)>>,
    open: Vec<Open>,
    free: Vec<usize>,
    open_bytes: usize,
    raw: Vec<u8>,
    last_ticks: i64,
    /// Records that were older than the one before.
    pub out_of_order: u64,
    /// Records that were left out because their time cannot be.
    pub damaged: u64,
}

impl Merge {
    /// A merge of buffers, which are sorted by the times of their first events.
    pub fn new(log: LogHeader, entries: Vec<Entry>, bounds: Bounds) -> Merge {
        Merge {
            log,
            bounds,
            entries,
            next: 0,
            heap: BinaryHeap::new(),
            open: Vec::new(),
            free: Vec::new(),
            open_bytes: 0,
            raw: Vec::new(),
            last_ticks: i64::MIN,
            out_of_order: 0,
            damaged: 0,
        }
    }

    /// Calls `f` with the next records, about as many as a buffer has; false at the end.
    pub fn step(
        &mut self,
        source: &mut (impl Read + Seek),
        mut f: impl FnMut(&Record<'_>),
    ) -> io::Result<bool> {
        for _ in 0..STEP_RECORDS {
            self.open_due(source)?;
            if !self.one(&mut f) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Calls `f` with the records that begin before a time on the clock of the merge.
    pub fn until(
        &mut self,
        source: &mut (impl Read + Seek),
        ticks: i64,
        mut f: impl FnMut(&Record<'_>),
    ) -> io::Result<()> {
        loop {
            self.open_due(source)?;
            let is_due = self.heap.peek().is_some_and(|Reverse((next, ..))| *next < ticks);
            if !is_due || !self.one(&mut f) {
                return Ok(());
            }
        }
    }

    /// Calls `f` with the next record, or drops a buffer that has none left; false at the end.
    #[inline]
    fn one(&mut self, f: &mut impl FnMut(&Record<'_>)) -> bool {
        let Some(mut top) = self.heap.peek_mut() else { return false };
        let Reverse((ticks, _, place)) = *top;
        let Some(buffer) = self.open.get_mut(place) else { return false };
        if let Next::Record(record) = buffer.position.next(&buffer.records, buffer.cpu) {
            if record.ticks != 0 {
                self.out_of_order += u64::from(record.ticks < self.last_ticks);
                self.last_ticks = self.last_ticks.max(record.ticks);
            }
            f(&record);
            let (next, left_out) = buffer.advance(&self.bounds);
            self.damaged += left_out;
            top.0.0 = next.unwrap_or(ticks);
        } else {
            PeekMut::pop(top);
            self.open_bytes -= buffer.records.len();
            // Its memory is used again, unless it is more than buffers usually need.
            buffer.records.clear();
            buffer.records.shrink_to(1 << 20);
            self.free.push(place);
        }
        true
    }

    /// Opens the buffers that begin before the next record.
    #[inline]
    fn open_due(&mut self, source: &mut (impl Read + Seek)) -> io::Result<()> {
        while let Some(entry) = self.entries.get(self.next) {
            let due = self.heap.peek().is_none_or(|Reverse((ticks, ..))| entry.ticks <= *ticks);
            let fits = self.open_bytes + entry.header.filled_bytes <= OPEN_BYTES_MAX
                && self.heap.len() < OPEN_MAX;
            if !due || !(fits || self.heap.is_empty()) {
                return Ok(());
            }
            let place = self.free.pop().unwrap_or_else(|| {
                let (records, position) = (Vec::new(), Position::default());
                self.open.push(Open { records, position, order: times::order(&self.log), cpu: 0 });
                self.open.len() - 1
            });
            let Some(buffer) = self.open.get_mut(place) else { return Ok(()) };
            index::load(source, &self.log, entry, &mut self.raw, &mut buffer.records)?;
            self.open_bytes += buffer.records.len();
            buffer.position = Position::default();
            buffer.order = times::order(&self.log);
            buffer.cpu = entry.header.cpu;
            let (first, left_out) = buffer.advance(&self.bounds);
            self.damaged += left_out;
            self.heap.push(Reverse((first.unwrap_or(entry.ticks), self.next, place)));
            self.next += 1;
        }
        Ok(())
    }

    /// Share of the buffers that were opened.
    pub fn share_read(&self) -> f64 {
        if self.entries.is_empty() { 1.0 } else { self.next as f64 / self.entries.len() as f64 }
    }
}

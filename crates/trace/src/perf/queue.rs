//! Records in the order of their times.
//!
//! `perf record` empties the buffers of all processors in rounds. What is in a round is not older
//! than everything of the round before the previous one (`tools/perf/util/ordered-events.c`).

use super::stream::Record;

/// Bytes of waiting records; what exceeds them is given out early.
const BYTES_MAX: usize = 48 << 20;

#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    /// Records of the same time stay in the order of the file.
    number: u64,
    start: usize,
    length: u32,
    kind: u32,
    misc: u16,
    attribute: u16,
}

/// Records that wait for older ones.
#[derive(Debug, Default)]
pub struct Queue {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    next_number: u64,
    /// Latest times of the previous and of the current round.
    previous: u64,
    current: u64,
    /// Latest time that was given out.
    given: u64,
    /// Records that came after later ones were given out.
    pub late: u64,
}

impl Queue {
    /// Takes a record of an attribute.
    pub fn push(&mut self, time: u64, attribute: usize, record: Record<'_>) {
        let (Ok(attribute), Ok(length)) =
            (u16::try_from(attribute), u32::try_from(record.body.len()))
        else {
            return;
        };
        if time != 0 && time < self.given {
            self.late += 1;
        }
        self.current = self.current.max(time);
        let (start, number) = (self.bytes.len(), self.next_number);
        self.next_number += 1;
        self.bytes.extend_from_slice(record.body);
        let (kind, misc) = (record.kind, record.misc);
        self.entries.push(Entry { time, number, start, length, kind, misc, attribute });
    }

    /// A round ends: what is older than the previous one is given out.
    pub fn round(&mut self, give: impl FnMut(usize, Record<'_>)) {
        let limit = self.previous;
        self.previous = self.current;
        self.sort();
        let count = self.entries.partition_point(|entry| entry.time <= limit);
        self.give(count, give);
    }

    /// Whether [`Queue::relieve`] is needed.
    pub fn is_full(&self) -> bool {
        self.bytes.len() + self.entries.len() * size_of::<Entry>() > BYTES_MAX
    }

    /// Gives out the older half.
    pub fn relieve(&mut self, give: impl FnMut(usize, Record<'_>)) {
        self.sort();
        self.give(self.entries.len().div_ceil(2), give);
    }

    /// Gives out everything.
    pub fn finish(&mut self, give: impl FnMut(usize, Record<'_>)) {
        self.sort();
        self.give(self.entries.len(), give);
    }

    fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| (entry.time, entry.number));
    }

    fn give(&mut self, count: usize, mut give: impl FnMut(usize, Record<'_>)) {
        let place = |entry: &Entry| entry.start..entry.start + entry.length as usize;
        for entry in self.entries.drain(..count) {
            let body = self.bytes.get(place(&entry)).unwrap_or_default();
            let record = Record { kind: entry.kind, misc: entry.misc, body };
            give(usize::from(entry.attribute), record);
            self.given = self.given.max(entry.time);
        }
        let mut kept = Vec::new();
        for entry in &mut self.entries {
            let body = self.bytes.get(place(entry)).unwrap_or_default();
            entry.start = kept.len();
            kept.extend_from_slice(body);
        }
        self.bytes = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, time: u64) {
        let body = time.to_le_bytes();
        queue.push(time, 1, Record { kind: 9, misc: 0, body: &body });
    }

    #[test]
    fn rounds_overlap_with_the_previous_one_only() {
        let mut queue = Queue::default();
        let mut given = Vec::new();
        let mut give = |_: usize, record: Record<'_>| {
            given.push(u64::from_le_bytes(record.body.try_into().unwrap()));
        };
        for time in [1, 2, 2, 3, 4] {
            push(&mut queue, time);
        }
        queue.round(&mut give);
        for time in [3, 5, 6, 7, 4, 5] {
            push(&mut queue, time);
        }
        queue.round(&mut give);
        push(&mut queue, 6);
        queue.relieve(&mut give);
        push(&mut queue, 2);
        queue.finish(&mut give);
        assert_eq!(given, [1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 2, 6, 7]);
        assert_eq!((queue.late, queue.bytes.len()), (1, 0));
        assert!(!queue.is_full());
    }
}

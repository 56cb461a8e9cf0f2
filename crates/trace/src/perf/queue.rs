//! Records in the order of their times.
//!
//! `perf record` empties the buffers of all CPUs in rounds. What is in a round is not older
//! than everything of the round before the previous one (`tools/perf/util/ordered-events.c`).

use std::collections::HashMap;

use super::stream::Record;
use crate::order::{JUMP_MAX_NS, Order, TOLERANCE_NS};

/// Bytes of waiting records; what exceeds them is given out early.
const BYTES_MAX: usize = 48 << 20;
/// Most buffers whose records are checked.
const LANES_MAX: usize = 1 << 16;
/// Records of different threads can be in the buffers in another order than in that of a CPU's time.
const THREADS_TOLERANCE_NS: i64 = 10_000_000_000;
/// How far a sample may be outside of the times of the first and last one.
const BOUNDS_TOLERANCE_NS: u64 = 1_000_000_000;

/// Records of a lane are in the order of their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Those with the same number: they come from one buffer.
    Id(u64),
    /// Records of a CPU, where records have no number.
    Cpu(u32),
}

/// Where a record belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub attribute: usize,
    pub time: u64,
    pub lane: Option<Lane>,
    pub is_sample: bool,
}

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
    lane: Option<Lane>,
    is_sample: bool,
    is_damaged: bool,
}

/// Records that wait for older ones.
#[derive(Debug, Default)]
pub struct Queue {
    entries: Vec<Entry>,
    /// Number of those at the beginning whose times were checked.
    checked: usize,
    bytes: Vec<u8>,
    next_number: u64,
    /// Latest times of the previous and of the current round.
    previous: u64,
    current: u64,
    /// Latest time that was given out.
    given: u64,
    /// Records that came after later ones were given out.
    pub late: u64,
    /// Times of the first and last sample, if they are known.
    pub bounds: Option<(u64, u64)>,
    lanes: HashMap<Lane, Order>,
    /// Records whose time cannot be.
    pub damaged: u64,
}

impl Queue {
    /// Takes a record.
    pub fn push(&mut self, key: Key, record: Record<'_>) {
        let Key { attribute, time, lane, is_sample } = key;
        let (Ok(attribute), Ok(length)) =
            (u16::try_from(attribute), u32::try_from(record.body.len()))
        else {
            return;
        };
        let (start, number) = (self.bytes.len(), self.next_number);
        self.next_number += 1;
        self.bytes.extend_from_slice(record.body);
        let (kind, misc, is_damaged) = (record.kind, record.misc, false);
        self.entries.push(Entry {
            time,
            number,
            start,
            length,
            kind,
            misc,
            attribute,
            lane,
            is_sample,
            is_damaged,
        });
    }

    /// Whether a sample can have this time, as far as the file says.
    pub fn is_within(bounds: Option<(u64, u64)>, time: u64) -> bool {
        let is_time = i64::try_from(time).is_ok();
        is_time
            && bounds.is_none_or(|(first, last)| {
                let last = last.saturating_add(BOUNDS_TOLERANCE_NS);
                (first.saturating_sub(BOUNDS_TOLERANCE_NS)..=last).contains(&time)
            })
    }

    /// Checks the times of new records: samples that cannot be are left out, other records come at once.
    fn check(&mut self) {
        let bounds = self.bounds;
        let fresh = self.entries.get_mut(self.checked..).unwrap_or_default();
        let mut later: HashMap<Lane, i64> = HashMap::new();
        let mut next = Vec::with_capacity(fresh.len());
        for entry in fresh.iter().rev() {
            let lane = entry.lane.filter(|_| entry.time != 0);
            let is_within = Queue::is_within(bounds.filter(|_| entry.is_sample), entry.time);
            next.push(match (lane, i64::try_from(entry.time)) {
                (Some(lane), Ok(time)) if is_within => later.insert(lane, time),
                (Some(lane), _) => later.get(&lane).copied(),
                _ => None,
            });
        }
        for (entry, next) in fresh.iter_mut().zip(next.into_iter().rev()) {
            if entry.time == 0 {
                continue;
            }
            let is_within = Queue::is_within(bounds.filter(|_| entry.is_sample), entry.time);
            let is_room = self.lanes.len() < LANES_MAX;
            let lane = entry.lane.filter(|lane| is_room || self.lanes.contains_key(lane));
            let is_possible = match (lane, i64::try_from(entry.time)) {
                (_, Err(_)) => false,
                (Some(lane), Ok(time)) if is_within => {
                    let tolerance = match lane {
                        Lane::Id(_) => TOLERANCE_NS,
                        Lane::Cpu(_) => THREADS_TOLERANCE_NS,
                    };
                    let order = || Order::new(tolerance, JUMP_MAX_NS);
                    self.lanes.entry(lane).or_insert_with(order).check(time, next)
                }
                _ => is_within,
            };
            if !is_possible {
                self.damaged += 1;
                (entry.time, entry.is_damaged) = (0, entry.is_sample);
            } else if entry.time < self.given {
                self.late += 1;
            }
            self.current = self.current.max(entry.time);
        }
        self.checked = self.entries.len();
    }

    /// A round ends: what is older than the previous one is given out.
    pub fn round(&mut self, give: impl FnMut(usize, Record<'_>)) {
        self.check();
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
        self.check();
        self.sort();
        self.give(self.entries.len().div_ceil(2), give);
    }

    /// Gives out everything.
    pub fn finish(&mut self, give: impl FnMut(usize, Record<'_>)) {
        self.check();
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
            if !entry.is_damaged {
                give(usize::from(entry.attribute), record);
            }
            self.given = self.given.max(entry.time);
        }
        let mut kept = Vec::new();
        for entry in &mut self.entries {
            let body = self.bytes.get(place(entry)).unwrap_or_default();
            entry.start = kept.len();
            kept.extend_from_slice(body);
        }
        self.bytes = kept;
        self.checked = self.entries.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, time: u64) {
        push_to(queue, time, None);
    }

    fn push_to(queue: &mut Queue, time: u64, lane: Option<Lane>) {
        let body = time.to_le_bytes();
        let key = Key { attribute: 1, time, lane, is_sample: true };
        queue.push(key, Record { kind: 9, misc: 0, body: &body });
    }

    /// Times that are given out of records of two buffers in two rounds.
    fn given(bounds: Option<(u64, u64)>, rounds: [&[(u64, u64)]; 2]) -> (Vec<u64>, u64) {
        let mut queue = Queue { bounds, ..Queue::default() };
        let mut given = Vec::new();
        for round in rounds {
            for &(lane, seconds) in round {
                push_to(&mut queue, seconds * 1_000_000_000, Some(Lane::Id(lane)));
            }
            queue
                .round(|_, record| given.push(u64::from_le_bytes(record.body.try_into().unwrap())));
        }
        queue.finish(|_, record| given.push(u64::from_le_bytes(record.body.try_into().unwrap())));
        assert_eq!(queue.late, 0);
        (given.into_iter().map(|time| time / 1_000_000_000).collect(), queue.damaged)
    }

    #[test]
    fn samples_whose_time_cannot_be_are_left_out() {
        let first: &[(u64, u64)] = &[(1, 5), (1, 900), (1, 7), (2, 6), (2, 6), (2, 1), (2, 9)];
        let second: &[(u64, u64)] = &[(1, 8), (1, 10), (2, 9), (2, 99_999_999)];
        assert_eq!(given(None, [first, second]), (vec![5, 6, 6, 7, 8, 9, 9, 10], 3));
        // The first and last record of a buffer are compared with the times that the file says.
        let first: &[(u64, u64)] = &[(1, 1), (1, 5), (2, 6), (2, 7)];
        let second: &[(u64, u64)] = &[(1, 8), (2, 9), (2, 99)];
        let bounds = Some((5_000_000_000, 9_000_000_000));
        assert_eq!(given(bounds, [first, second]), (vec![5, 6, 7, 8, 9], 2));
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

//! What all connections of a recording carry together, in slots of time: a line that many share is full where
//! their sum keeps to one rate while messages are under way all the time, though each goes faster and slower.

use hashbrown::HashMap;

use super::lines::FLAT;
use super::operation::Seen;

/// A slot, ns, and how many of them.
const SLOT_NS: i64 = 100_000_000;
const SLOTS_MAX: usize = 1_000_000;
/// A message in more slots counts in so many.
const SPREAD_MAX: i64 = 1_000;
/// Slots without which nothing is said.
const LEAST: usize = 10;
/// So much of a slot messages are under way in which the line is busy.
const BUSY: f64 = 0.8;
/// Slots with so much of the peak are at the line's rate.
const AT_PEAK: f64 = 0.7;

/// Bytes, and time in which messages were under way.
type Slot = (u64, i64);
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// By recording, direction and time.
#[derive(Default)]
pub(super) struct Together(Map<(u32, usize, i64), Slot>);

impl Together {
    /// Counts a message that took that long; `place` is 0 for a reply.
    pub(super) fn add(&mut self, seen: &Seen, place: usize, bytes: u64, ns: i64) {
        if seen.start.is_none() {
            return;
        }
        let begin = seen.message_begin(place, ns);
        let first = begin.div_euclid(SLOT_NS);
        let last = begin.saturating_add(ns).div_euclid(SLOT_NS).min(first + SPREAD_MAX);
        for number in first..=last {
            let from = begin.max(number * SLOT_NS);
            let until = (begin + ns).min((number + 1) * SLOT_NS);
            let key = (seen.recording, place, number);
            if self.0.len() >= SLOTS_MAX && !self.0.contains_key(&key) {
                return;
            }
            let slot = self.0.entry(key).or_default();
            let within = (until - from).max(0);
            let share = if ns > 0 { within as f64 / ns as f64 } else { 1.0 };
            slot.0 = slot.0.saturating_add((bytes as f64 * share) as u64);
            slot.1 = slot.1.saturating_add(within);
        }
    }

    /// The rates at which lines are full, bits/s, by recording and direction, of those recordings in which
    /// several connections share one.
    pub(super) fn finish(self, is_shared: impl Fn(u32) -> bool) -> Map<(u32, usize), f64> {
        let mut all: Map<(u32, usize), Vec<Slot>> = Map::default();
        for ((recording, place, _), slot) in self.0 {
            if is_shared(recording) {
                all.entry((recording, place)).or_default().push(slot);
            }
        }
        all.into_iter().filter_map(|(key, slots)| Some((key, full(slots)?))).collect()
    }
}

/// The rate at which a line is full, bits/s.
fn full(mut slots: Vec<Slot>) -> Option<f64> {
    slots.sort_unstable();
    let sum = slots.iter().map(|slot| slot.0 as f64).sum::<f64>();
    // What only a tenth of the bytes exceeds.
    let mut above = 0.0;
    let (peak, _) = *slots.iter().rfind(|slot| {
        above += slot.0 as f64;
        above >= 0.1 * sum
    })?;
    let is_full = |slot: &&Slot| {
        slot.1 as f64 >= BUSY * SLOT_NS as f64 && slot.0 as f64 >= AT_PEAK * peak as f64
    };
    let at_peak = slots.iter().filter(is_full).map(|slot| slot.0 as f64).sum::<f64>();
    let is_line = slots.len() >= LEAST && at_peak >= FLAT * sum;
    is_line.then_some(8e9 * peak as f64 / SLOT_NS as f64)
}

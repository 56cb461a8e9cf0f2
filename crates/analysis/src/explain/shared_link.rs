//! The rate of all connections of a recording together, in slots of time: a link that several share
//! is full if their sum keeps to one rate while messages are in flight all the time, although each
//! single one varies.

use hashbrown::HashMap;

use super::operation::Operation;
use super::transfer_rates::STEADY;

/// Length of a slot, ns, and the most slots that are kept.
const SLOT_NS: i64 = 100_000_000;
const SLOTS_MAX: usize = 1_000_000;
/// Most slots in which a message counts.
const SLOTS_OF_MESSAGE_MAX: i64 = 1_000;
/// Fewest slots to judge a recording by.
const SLOTS_MIN: usize = 10;
/// The link is busy in a slot if messages are in flight for this share of it.
const BUSY: f64 = 0.8;
/// Slots with this share of the peak are at the rate of the link.
const AT_PEAK: f64 = 0.7;

/// Bytes, and time in which messages were in flight.
type Slot = (u64, i64);
type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// By recording, direction and time.
#[derive(Default)]
pub(super) struct SharedLink(Map<(u32, usize, i64), Slot>);

impl SharedLink {
    /// Counts a message that took `ns`; `direction` is 0 for a reply.
    pub(super) fn add(&mut self, op: &Operation, direction: usize, bytes: u64, ns: i64) {
        if op.start.is_none() {
            return;
        }
        let begin = op.message_begin(direction, ns);
        let first = begin.div_euclid(SLOT_NS);
        let last = begin.saturating_add(ns).div_euclid(SLOT_NS).min(first + SLOTS_OF_MESSAGE_MAX);
        for number in first..=last {
            let from = begin.max(number * SLOT_NS);
            let until = (begin + ns).min((number + 1) * SLOT_NS);
            let key = (op.recording, direction, number);
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

    /// The rates at which links are full, bits/s, by recording and direction, for recordings in which
    /// several connections share one.
    pub(super) fn finish(self, is_shared: impl Fn(u32) -> bool) -> Map<(u32, usize), f64> {
        let mut all: Map<(u32, usize), Vec<Slot>> = Map::default();
        for ((recording, direction, _), slot) in self.0 {
            if is_shared(recording) {
                all.entry((recording, direction)).or_default().push(slot);
            }
        }
        all.into_iter().filter_map(|(key, slots)| Some((key, full_rate(slots)?))).collect()
    }
}

/// The rate at which a link is full, bits/s; none if it is not.
fn full_rate(mut slots: Vec<Slot>) -> Option<f64> {
    slots.sort_unstable();
    let sum = slots.iter().map(|slot| slot.0 as f64).sum::<f64>();
    // The rate that only a tenth of the bytes exceeds.
    let mut above = 0.0;
    let (peak, _) = *slots.iter().rfind(|slot| {
        above += slot.0 as f64;
        above >= 0.1 * sum
    })?;
    let is_full = |slot: &&Slot| {
        slot.1 as f64 >= BUSY * SLOT_NS as f64 && slot.0 as f64 >= AT_PEAK * peak as f64
    };
    let at_peak = slots.iter().filter(is_full).map(|slot| slot.0 as f64).sum::<f64>();
    let is_steady = slots.len() >= SLOTS_MIN && at_peak >= STEADY * sum;
    is_steady.then_some(8e9 * peak as f64 / SLOT_NS as f64)
}

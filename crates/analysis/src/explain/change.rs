//! A moment at which operations begin to take longer, or shorter, than before: found where it is sharp.
//!
//! The logarithm of each operation's turnaround is compared with the mean of its kind, in slots of
//! equal length; the best split of the slots is the moment (a single change point by least squares,
//! D. V. Hinkley, Biometrika 57, 1970).

use super::data::ChangeInTime;
use super::operation::{Act, Operation};
use crate::stats::mean::Mean;

/// Most slots; when the recording outgrows them, two become one.
const SLOTS: usize = 512;
/// The first length of a slot, ns.
const SLOT_NS: i64 = 1_000_000;
/// Fewest operations on each side.
const OPERATIONS_MIN: u64 = 50;
/// Fewest slots with operations on each side.
const SLOTS_MIN: usize = 5;
/// Operations take at least this many times as long on one side.
const TIMES_MIN: f64 = 2.0;
/// The difference is at least this many times its standard error ...
const CERTAIN: f64 = 8.0;
/// ... and at least this share of it happens from one slot to the next ones.
const SHARP: f64 = 0.6;
/// The change explains at least this share of what differs between slots: otherwise it comes and goes.
const EXPLAINED_MIN: f64 = 0.5;
/// Slots next to the moment: they show if it is sharp.
const NEXT: usize = 3;

/// Operations by time and kind.
pub(super) struct Change {
    slot_ns: i64,
    first: Option<i64>,
    slots: Vec<[Mean; Act::ALL.len()]>,
}

impl Default for Change {
    fn default() -> Change {
        Change { slot_ns: SLOT_NS, first: None, slots: Vec::new() }
    }
}

/// A slot: how much longer than usual its operations take (logarithm), and their number.
#[derive(Clone, Copy)]
struct Slot {
    place: usize,
    excess: f64,
    n: u64,
}

impl Change {
    pub(super) fn see(&mut self, op: &Operation) {
        let (true, Some(start), Some(turnaround)) = (op.is_timed, op.start, op.turnaround_ns())
        else {
            return;
        };
        // The load of simulated users changes with the steps of the run.
        let is_simulated = op.columns.scenario_run.get(op.row).is_some();
        if is_simulated || op.act == Act::Logon {
            return;
        }
        let first = *self.first.get_or_insert(start);
        let since = start.saturating_sub(first).max(0);
        while since / self.slot_ns >= SLOTS as i64 {
            self.halve();
        }
        let place = (since / self.slot_ns) as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, Default::default);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            slot[op.act as usize].add((turnaround.max(1) as f64).ln());
        }
    }

    fn halve(&mut self) {
        self.slot_ns = self.slot_ns.saturating_mul(2);
        let pairs = self.slots.chunks(2).map(|pair| {
            let mut sum = [Mean::default(); Act::ALL.len()];
            for slot in pair {
                sum.iter_mut().zip(slot).for_each(|(sum, one)| sum.merge(one));
            }
            sum
        });
        self.slots = pairs.collect();
    }

    /// How much longer than usual the operations of each slot take.
    fn excess(&self) -> Vec<Slot> {
        let mut usual = [Mean::default(); Act::ALL.len()];
        for slot in &self.slots {
            usual.iter_mut().zip(slot).for_each(|(sum, one)| sum.merge(one));
        }
        let slots = self.slots.iter().enumerate().filter_map(|(place, slot)| {
            let n: u64 = slot.iter().map(|one| one.n).sum();
            let sum: f64 = slot
                .iter()
                .zip(&usual)
                .map(|(one, usual)| one.n as f64 * (one.mean() - usual.mean()))
                .sum();
            (n > 0).then(|| Slot { place, excess: sum / n as f64, n })
        });
        slots.collect()
    }

    pub(super) fn finish(self) -> Option<ChangeInTime> {
        let slots = self.excess();
        let mean = |slots: &[Slot]| {
            let mut mean = Mean::default();
            slots.iter().for_each(|slot| mean.add(slot.excess));
            mean
        };
        let count = |slots: &[Slot]| slots.iter().map(|slot| slot.n).sum::<u64>();
        let splits = SLOTS_MIN..slots.len().saturating_sub(SLOTS_MIN - 1);
        // The part of the squares that a split explains.
        let between = |at: usize| {
            let (before, after) = slots.split_at(at);
            let (a, b) = (mean(before), mean(after));
            let weight = a.n as f64 * b.n as f64 / (a.n + b.n).max(1) as f64;
            weight * (b.mean() - a.mean()).powi(2)
        };
        let best = splits.max_by(|one, other| between(*one).total_cmp(&between(*other)))?;
        let all = mean(&slots);
        let squares = all.deviation().powi(2) * all.n.saturating_sub(1) as f64;
        let (before, after) = slots.split_at(best);
        let (was, is) = (mean(before), mean(after));
        let apart = is.mean() - was.mean();
        let error = was.error().hypot(is.error());
        let near = |slots: &[Slot]| mean(slots).mean();
        let step = near(after.get(..NEXT)?) - near(before.get(before.len().checked_sub(NEXT)?..)?);
        let is_certain = apart.abs() >= CERTAIN * error
            && apart.abs() >= TIMES_MIN.ln()
            && between(best) >= EXPLAINED_MIN * squares;
        let is_sharp = step / apart >= SHARP;
        let (n_before, n_after) = (count(before), count(after));
        if !is_certain || !is_sharp || n_before.min(n_after) < OPERATIONS_MIN {
            return None;
        }
        let place = after.first()?.place as i64;
        Some(ChangeInTime {
            at_ns: self.first?.saturating_add(place.saturating_mul(self.slot_ns)),
            resolution_ns: self.slot_ns,
            times: apart.exp(),
            operations_before: n_before,
            operations_after: n_after,
        })
    }
}

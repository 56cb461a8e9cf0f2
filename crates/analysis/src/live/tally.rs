//! The counters of one group in one slot.

use super::data::{PARTS, Part, Row};
use crate::stats::latency::{Grain, Latency, Sample};

/// What one operation adds to each of its groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) error: bool,
    pub(super) not_found: bool,
    pub(super) waits: bool,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// Null for operations that wait by design.
    pub(super) turnaround: Option<Sample>,
    pub(super) parts_ns: [i64; PARTS],
}

impl Facts {
    /// Adds time to a part.
    pub(super) fn spend(&mut self, part: Part, ns: i64) {
        if let Some(sum) = self.parts_ns.get_mut(part.place()) {
            *sum = sum.saturating_add(ns);
        }
    }
}

/// One group's counters.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    operations: u64,
    errors: u64,
    not_found: u64,
    waits: u64,
    read_bytes: u64,
    written_bytes: u64,
    turnaround: Latency,
    parts_ns: [i64; PARTS],
}

impl Tally {
    pub(super) fn new() -> Tally {
        Tally {
            operations: 0,
            errors: 0,
            not_found: 0,
            waits: 0,
            read_bytes: 0,
            written_bytes: 0,
            turnaround: Latency::new(Grain::Coarse),
            parts_ns: [0; PARTS],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, facts: &Facts) {
        self.operations += 1;
        self.errors += u64::from(facts.error);
        self.not_found += u64::from(facts.not_found);
        self.waits += u64::from(facts.waits);
        self.read_bytes = self.read_bytes.saturating_add(facts.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(facts.written_bytes);
        if let Some(turnaround) = &facts.turnaround {
            self.turnaround.record(turnaround);
        }
        self.spend(&facts.parts_ns);
    }

    pub(super) fn absorb(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.errors += other.errors;
        self.not_found += other.not_found;
        self.waits += other.waits;
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.turnaround.absorb(&other.turnaround);
        self.spend(&other.parts_ns);
    }

    #[inline]
    fn spend(&mut self, parts_ns: &[i64; PARTS]) {
        for (sum, ns) in self.parts_ns.iter_mut().zip(parts_ns) {
            *sum = sum.saturating_add(*ns);
        }
    }

    pub(super) fn row(&self, name: Option<&str>) -> Row {
        Row {
            name: name.map(str::to_owned),
            operations: self.operations,
            errors: self.errors,
            not_found: self.not_found,
            waits: self.waits,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            turnaround: self.turnaround.distribution(false),
            parts_ns: self.parts_ns,
        }
    }
}

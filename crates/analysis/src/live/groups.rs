//! The groups of one key: named ones while they are in any slot, bounded in number.

use std::sync::Arc;

use hashbrown::HashMap;

use super::data::Row;
use super::{Facts, Tally};

/// Operations of which the property is not known.
pub(super) const NONE: u32 = 0;
/// Operations of groups beyond the limit.
pub(super) const OTHERS: u32 = 1;

/// One group's slots.
#[derive(Clone)]
struct Group {
    /// None for operations without the property, and for those beyond the limit; both stay.
    name: Option<Arc<str>>,
    slots: Vec<Option<Box<Tally>>>,
    /// Slots that are filled.
    filled: usize,
}

/// All groups.
#[derive(Clone)]
pub(super) struct Groups {
    groups: Vec<Group>,
    index: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    free: Vec<u32>,
    limit: usize,
    ring: usize,
}

impl Groups {
    /// None yet; `limit` is of the named ones, `ring` the number of slots.
    pub(super) fn new(limit: usize, ring: usize) -> Groups {
        let mut groups =
            Groups { groups: Vec::new(), index: HashMap::default(), free: Vec::new(), limit, ring };
        groups.clear();
        groups
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.free.clear();
        self.groups.clear();
        for _ in [NONE, OTHERS] {
            self.groups.push(Group::new(None, self.ring));
        }
    }

    /// Whether there is nothing in any slot.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.filled == 0)
    }

    /// The number of a group, valid until the next [`Groups::forget`].
    pub(super) fn resolve(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.index.get(name) {
            return number;
        }
        if self.index.len() >= self.limit {
            return OTHERS;
        }
        let name: Arc<str> = name.into();
        let group = Group::new(Some(name.clone()), self.ring);
        let number = match self.free.pop() {
            Some(number) => number,
            None => self.groups.len() as u32,
        };
        match self.groups.get_mut(number as usize) {
            Some(place) => *place = group,
            None => self.groups.push(group),
        }
        self.index.insert(name, number);
        number
    }

    /// Adds an operation.
    #[inline]
    pub(super) fn add(&mut self, number: u32, place: usize, facts: &Facts) {
        let Some(group) = self.groups.get_mut(number as usize) else { return };
        let Some(slot) = group.slots.get_mut(place) else { return };
        if slot.is_none() {
            group.filled += 1;
        }
        slot.get_or_insert_with(|| Box::new(Tally::new())).add(facts);
    }

    /// Empties a slot; groups that are in no other one go.
    pub(super) fn forget(&mut self, place: usize) {
        for (number, group) in (0..).zip(&mut self.groups) {
            let Some(slot) = group.slots.get_mut(place) else { continue };
            if slot.take().is_none() {
                continue;
            }
            group.filled -= 1;
            if group.filled == 0
                && let Some(name) = group.name.take()
            {
                self.index.remove(&name);
                group.slots = Vec::new();
                self.free.push(number);
            }
        }
    }

    /// The groups that have operations in these slots, and the others.
    pub(super) fn rows(&self, places: &[usize]) -> (Vec<Row>, Option<Row>) {
        let mut rows = Vec::new();
        let mut others = None;
        for (number, group) in (0..).zip(&self.groups) {
            let Some(tally) = group.sum(places) else { continue };
            let row = tally.row(group.name.as_deref());
            match number {
                OTHERS => others = Some(row),
                _ => rows.push(row),
            }
        }
        (rows, others)
    }

    /// The operations without the property in these slots.
    pub(super) fn none(&self, places: &[usize]) -> Row {
        let group = self.groups.get(NONE as usize);
        group.and_then(|group| group.sum(places)).map_or_else(Row::default, |tally| tally.row(None))
    }
}

impl Group {
    fn new(name: Option<Arc<str>>, ring: usize) -> Group {
        Group { name, slots: vec![None; ring], filled: 0 }
    }

    /// None without an operation.
    fn sum(&self, places: &[usize]) -> Option<Tally> {
        let filled = places.iter().filter_map(|&place| self.slots.get(place)?.as_deref());
        filled.fold(None, |sum: Option<Tally>, tally| match sum {
            Some(mut sum) => {
                sum.absorb(tally);
                Some(sum)
            }
            None => Some(tally.clone()),
        })
    }
}

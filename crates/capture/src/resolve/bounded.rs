//! Bounded tables of what lives for a while: sessions, trees, opens.

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::HashMap;

/// Something with a key that lives for a while. It stays in its place, which another of its kind
/// takes after it: there are many, and they are not small.
pub trait Entity: Default {
    /// What it is found by.
    type Key: Copy + Eq + Hash;
    /// Its key.
    fn key(&self) -> Self::Key;
    /// Makes it a new one with this key.
    fn renew(&mut self, key: Self::Key);
    /// It is found by another key from now on.
    fn set_key(&mut self, key: Self::Key);
}

#[derive(Clone, Default)]
struct Slot<E> {
    entity: E,
    /// Details apart from an earlier entity in the same slot by the queue.
    stamp: u64,
    is_live: bool,
}

/// A bounded table. Beyond its limit the oldest goes.
#[derive(Clone)]
pub struct Entities<E: Entity> {
    index: HashMap<E::Key, u32, foldhash::fast::RandomState>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
    ages: VecDeque<(u32, u64)>,
    retired: VecDeque<(u32, u64)>,
    stamp: u64,
    limit: usize,
    live: usize,
}

/// Closed opens that late replies may still name.
const RETIRED: usize = 128;

impl<E: Entity> Entities<E> {
    /// An empty table for `limit` entities.
    pub fn new(limit: usize) -> Self {
        Entities {
            index: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            ages: VecDeque::new(),
            retired: VecDeque::new(),
            stamp: 0,
            limit: limit.max(1),
            live: 0,
        }
    }

    /// The place of an entity; `hint` is looked at first.
    #[inline]
    pub fn find(&self, key: &E::Key, hint: u32) -> Option<u32> {
        match self.get(hint) {
            Some(entity) if entity.key() == *key => Some(hint),
            _ => self.index.get(key).copied(),
        }
    }

    /// The entity at a place.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&E> {
        let slot = self.slots.get(place as usize)?;
        slot.is_live.then_some(&slot.entity)
    }

    /// The entity at a place, to change.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut E> {
        let slot = self.slots.get_mut(place as usize)?;
        slot.is_live.then_some(&mut slot.entity)
    }

    /// Lets an entity be found by another key, which nothing else has.
    pub fn rekey(&mut self, place: u32, key: E::Key) {
        let Some(slot) = self.slots.get_mut(place as usize).filter(|slot| slot.is_live) else {
            return;
        };
        self.index.remove(&slot.entity.key());
        slot.entity.set_key(key);
        self.index.insert(key, place);
    }

    /// Adds a new entity. `ended` gets the one with the same key, or the oldest beyond the limit.
    pub fn insert(&mut self, key: E::Key, ended: &mut impl FnMut(&mut E)) -> u32 {
        if let Some(&place) = self.index.get(&key) {
            self.remove(place, ended);
        }
        while self.live >= self.limit
            && let Some((place, stamp)) = self.ages.pop_front()
        {
            if self.is_same(place, stamp) {
                self.remove(place, ended);
            }
        }
        self.stamp += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        if let Some(slot) = self.slots.get_mut(place as usize) {
            slot.entity.renew(key);
            slot.stamp = self.stamp;
            slot.is_live = true;
        }
        self.index.insert(key, place);
        self.live += 1;
        self.ages.push_back((place, self.stamp));
        if self.ages.len() > 2 * self.live + 1024 {
            let slots = &self.slots;
            self.ages.retain(|&(place, stamp)| {
                slots.get(place as usize).is_some_and(|slot| slot.stamp == stamp && slot.is_live)
            });
        }
        place
    }

    /// Lets an entity live on a little for late replies; `ended` gets an earlier such one.
    pub fn retire(&mut self, place: u32, ended: &mut impl FnMut(&mut E)) {
        let Some(slot) = self.slots.get(place as usize) else { return };
        self.retired.push_back((place, slot.stamp));
        if self.retired.len() > RETIRED
            && let Some((place, stamp)) = self.retired.pop_front()
            && self.is_same(place, stamp)
        {
            self.remove(place, ended);
        }
    }

    fn is_same(&self, place: u32, stamp: u64) -> bool {
        self.slots.get(place as usize).is_some_and(|slot| slot.is_live && slot.stamp == stamp)
    }

    fn remove(&mut self, place: u32, ended: &mut impl FnMut(&mut E)) {
        let Some(slot) = self.slots.get_mut(place as usize).filter(|slot| slot.is_live) else {
            return;
        };
        slot.is_live = false;
        self.index.remove(&slot.entity.key());
        ended(&mut slot.entity);
        self.free.push(place);
        self.live -= 1;
    }

    /// Takes all out, oldest first.
    pub fn drain(&mut self, ended: &mut impl FnMut(&mut E)) {
        for (place, stamp) in std::mem::take(&mut self.ages) {
            if self.is_same(place, stamp) {
                self.remove(place, ended);
            }
        }
        self.retired.clear();
    }
}

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
    /// Bytes that it holds in addition to its own size.
    fn text_bytes(&self) -> usize;
    /// Whether it is known to have ended, so that nothing is lost when it is forgotten.
    fn has_ended(&self) -> bool;
    /// Frees what it holds, after its end.
    fn free_texts(&mut self);
}

#[derive(Clone, Default)]
struct Slot<E> {
    entity: E,
    /// Details apart from an earlier entity in the same slot by the queue.
    stamp: u64,
    is_live: bool,
    /// [`Entity::text_bytes`] as last measured.
    bytes: usize,
}

/// A bounded table. Beyond its limits, a number and a size in bytes, the oldest goes.
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
    /// Texts of the entities, and their limit.
    bytes: usize,
    limit_bytes: usize,
    /// Entities that had not ended when a limit removed them.
    pub forgotten: u64,
}

/// About what an entity takes in the index and in the queue of ages.
const INDEX_BYTES: usize = 64;
/// Closed opens that late replies may still name.
const RETIRED: usize = 128;

impl<E: Entity> Entities<E> {
    /// An empty table for `limit` entities with `limit_bytes` together, their own size included.
    pub fn new(limit: usize, limit_bytes: usize) -> Self {
        let own = size_of::<Slot<E>>() + INDEX_BYTES;
        let limit = limit.min(limit_bytes / 4 * 3 / own);
        Entities {
            index: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            ages: VecDeque::new(),
            retired: VecDeque::new(),
            stamp: 0,
            limit: limit.max(1),
            live: 0,
            bytes: 0,
            limit_bytes: limit_bytes.saturating_sub(limit * own),
            forgotten: 0,
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
            self.forget(place, stamp, ended);
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

    /// Measures an entity again whose texts changed, and makes room for them: the oldest others go.
    pub fn measure(&mut self, place: u32, ended: &mut impl FnMut(&mut E)) {
        let Some(slot) = self.slots.get_mut(place as usize).filter(|slot| slot.is_live) else {
            return;
        };
        let bytes = slot.entity.text_bytes();
        self.bytes = self.bytes - slot.bytes + bytes;
        slot.bytes = bytes;
        while self.bytes > self.limit_bytes
            && let Some((oldest, stamp)) = self.ages.pop_front()
        {
            if oldest == place && self.is_same(oldest, stamp) {
                self.ages.push_front((oldest, stamp));
                return;
            }
            self.forget(oldest, stamp, ended);
        }
    }

    /// Removes one for a limit.
    fn forget(&mut self, place: u32, stamp: u64, ended: &mut impl FnMut(&mut E)) {
        if self.is_same(place, stamp) {
            self.forgotten += u64::from(self.get(place).is_some_and(|one| !one.has_ended()));
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
        slot.entity.free_texts();
        self.bytes -= std::mem::take(&mut slot.bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Named(u32, String, bool);

    impl Entity for Named {
        type Key = u32;
        fn key(&self) -> u32 {
            self.0
        }
        fn renew(&mut self, key: u32) {
            *self = Named(key, String::new(), false);
        }
        fn set_key(&mut self, key: u32) {
            self.0 = key;
        }
        fn text_bytes(&self) -> usize {
            self.1.capacity()
        }
        fn has_ended(&self) -> bool {
            self.2
        }
        fn free_texts(&mut self) {
            self.1 = String::new();
        }
    }

    #[test]
    fn texts_stay_below_their_limit_and_what_is_forgotten_is_counted() {
        let mut table = Entities::<Named>::new(1_000_000, 1 << 20);
        let mut rows = 0;
        for key in 0..10_000 {
            let place = table.insert(key, &mut |_| rows += 1);
            if let Some(named) = table.get_mut(place) {
                named.1 = "x".repeat(10_000);
                named.2 = key % 2 == 0;
            }
            table.measure(place, &mut |_| rows += 1);
            assert!(table.bytes <= 1 << 20, "{}", table.bytes);
            assert!(table.get(place).is_some(), "the newest stays");
        }
        assert!(table.live < 100 && table.live > 20, "{}", table.live);
        assert_eq!(rows, 10_000 - table.live);
        assert!(table.forgotten.abs_diff(5_000) < 100, "{}", table.forgotten);
        // One that is larger than the limit replaces all others.
        let place = table.insert(10_000, &mut |_| {});
        table.get_mut(place).unwrap().1 = "x".repeat(2 << 20);
        table.measure(place, &mut |_| {});
        assert_eq!(table.live, 1);
        // It goes with the next one.
        let place = table.insert(10_001, &mut |_| {});
        table.measure(place, &mut |_| {});
        assert_eq!((table.live, table.bytes), (1, 0));
    }
}

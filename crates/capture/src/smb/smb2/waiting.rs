//! Requests that wait for their reply, by MessageId.
//!
//! Clients number upwards and few requests wait at a time: most have a slot by the low bits of
//! their number, the others are in a map.

use hashbrown::HashMap;

/// Places by the number's low bits.
const NEAR: usize = 32;

#[derive(Clone, Debug)]
pub struct Waiting {
    near: [Option<(u64, u32)>; NEAR],
    far: HashMap<u64, u32, foldhash::fast::RandomState>,
    len: usize,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting { near: [None; NEAR], far: HashMap::default(), len: 0 }
    }
}

impl Waiting {
    /// Number of requests that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Lets a request wait; the one that did under the same number comes back.
    #[inline(always)]
    pub fn insert(&mut self, id: u64, slot: u32) -> Option<u32> {
        let near = &mut self.near[id as usize % NEAR];
        let before = match near {
            Some((known, before)) if *known == id => Some(std::mem::replace(before, slot)),
            // While anything is far the number may be there.
            None if self.far.is_empty() => {
                *near = Some((id, slot));
                None
            }
            _ => self.far.insert(id, slot),
        };
        self.len += usize::from(before.is_none());
        before
    }

    /// The request with a number.
    #[inline]
    pub fn get(&self, id: u64) -> Option<u32> {
        match self.near[id as usize % NEAR] {
            Some((known, slot)) if known == id => Some(slot),
            _ if self.far.is_empty() => None,
            _ => self.far.get(&id).copied(),
        }
    }

    /// Takes the request with a number out.
    #[inline(always)]
    pub fn remove(&mut self, id: u64) -> Option<u32> {
        let near = &mut self.near[id as usize % NEAR];
        let slot = match near {
            Some((known, slot)) if *known == id => {
                let slot = *slot;
                *near = None;
                Some(slot)
            }
            _ if self.far.is_empty() => None,
            _ => self.far.remove(&id),
        };
        self.len -= usize::from(slot.is_some());
        slot
    }

    /// The places of all of them, in no order.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        let near = self.near.iter().flatten().map(|&(_, slot)| slot);
        near.chain(self.far.values().copied())
    }

    /// All of them by number.
    pub fn sorted(&self) -> Vec<(u64, u32)> {
        let far = self.far.iter().map(|(&id, &slot)| (id, slot));
        let mut all: Vec<_> = self.near.iter().flatten().copied().chain(far).collect();
        all.sort_unstable();
        all
    }

    /// Takes all out, by number.
    pub fn drain(&mut self) -> Vec<(u64, u32)> {
        let all = self.sorted();
        *self = Waiting::default();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_map() {
        let mut waiting = Waiting::default();
        let mut map = std::collections::BTreeMap::new();
        let mut state = 7_u64;
        for slot in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let id = (state >> 40) % 100 * 16;
            match state >> 33 & 3 {
                0 | 1 if map.len() < 60 => {
                    assert_eq!(waiting.insert(id, slot), map.insert(id, slot))
                }
                2 => assert_eq!(waiting.get(id), map.get(&id).copied()),
                _ => assert_eq!(waiting.remove(id), map.remove(&id)),
            }
            assert_eq!(waiting.len(), map.len());
        }
        assert_eq!(waiting.drain(), map.into_iter().collect::<Vec<_>>());
        assert_eq!(waiting.len(), 0);
    }
}

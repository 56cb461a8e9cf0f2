//! Operations of the same share, client and user: counted once, and added to all three at the end.

use hashbrown::HashMap;

use super::tally::{Dimension, Facts, Tally};
use crate::stats::latency::Grain;

/// Numbers of share, client and user in their dimensions.
pub(crate) type Key = [u32; 3];

/// Combinations that are counted by themselves; others go to their dimensions at once.
const CELLS: usize = 1_024;

/// Tallies by share, client and user.
pub(crate) struct Cells {
    cells: Vec<(Key, Tally)>,
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    grain: Grain,
}

impl Cells {
    pub(crate) fn new(grain: Grain) -> Cells {
        Cells { cells: Vec::new(), index: HashMap::default(), grain }
    }

    /// Counts an operation. `hint` is the place that its connection used last. False when there is
    /// no room for another combination.
    #[inline]
    pub(crate) fn add(&mut self, key: Key, hint: &mut u32, facts: &Facts) -> bool {
        if let Some((known, tally)) = self.cells.get_mut(*hint as usize)
            && *known == key
        {
            tally.add(facts);
            return true;
        }
        let Some(place) = self.find(key) else { return false };
        *hint = place;
        if let Some((_, tally)) = self.cells.get_mut(place as usize) {
            tally.add(facts);
        }
        true
    }

    fn find(&mut self, key: Key) -> Option<u32> {
        if let Some(&place) = self.index.get(&key) {
            return Some(place);
        }
        let place = self.cells.len();
        if place == CELLS {
            return None;
        }
        self.cells.push((key, Tally::new(self.grain)));
        self.index.insert(key, place as u32);
        Some(place as u32)
    }

    /// Adds all to shares, clients and users.
    pub(crate) fn finish(self, dimensions: [&mut Dimension; 3]) {
        for (place, dimension) in dimensions.into_iter().enumerate() {
            for (key, tally) in &self.cells {
                dimension.absorb(key[place], tally);
            }
        }
    }
}

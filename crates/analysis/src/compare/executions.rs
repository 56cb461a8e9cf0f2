//! Which user of a load run an operation belongs to, and whether it was measured: from the
//! numbers of the scenarios' executions, in two bytes each.

use hashbrown::HashMap;

/// Executions in one block.
const BLOCK: u64 = 4096;
/// Most blocks: 16 million executions that follow each other, 32 MiB.
const BLOCKS_MAX: usize = 1 << 12;
const MEASURED: u16 = 1 << 15;
const KNOWN: u16 = 1 << 14;

/// One execution of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Execution {
    /// Number of the user's cluster, under 16384.
    pub(super) cluster: u16,
    pub(super) measured: bool,
}

/// Executions by recording and number.
#[derive(Default)]
pub(super) struct Executions {
    blocks: HashMap<(u32, u64), Box<[u16; BLOCK as usize]>, foldhash::fast::RandomState>,
    /// Executions beyond the limit.
    pub(super) forgotten: u64,
}

impl Executions {
    pub(super) fn set(&mut self, recording: u32, number: u64, execution: Execution) {
        let key = (recording, number / BLOCK);
        if self.blocks.len() >= BLOCKS_MAX && !self.blocks.contains_key(&key) {
            self.forgotten += 1;
            return;
        }
        let block = self.blocks.entry(key).or_insert_with(|| Box::new([0; BLOCK as usize]));
        if let Some(slot) = block.get_mut((number % BLOCK) as usize) {
            let measured = if execution.measured { MEASURED } else { 0 };
            *slot = measured | KNOWN | execution.cluster & (KNOWN - 1);
        }
    }

    #[inline]
    pub(super) fn get(&self, recording: u32, number: u64) -> Option<Execution> {
        let block = self.blocks.get(&(recording, number / BLOCK))?;
        let bits = *block.get((number % BLOCK) as usize)?;
        (bits & KNOWN != 0)
            .then_some(Execution { cluster: bits & (KNOWN - 1), measured: bits & MEASURED != 0 })
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_execution_has_its_own_user_and_phase_and_the_room_is_bounded() {
        let mut executions = Executions::default();
        let of = |n: u64| Execution { cluster: (n % 1024) as u16, measured: n.is_multiple_of(3) };
        (0..10_000).for_each(|n| executions.set(7, n, of(n)));
        assert!((0..10_000).all(|n| executions.get(7, n) == Some(of(n))));
        assert_eq!((executions.get(6, 1), executions.get(7, 12_000)), (None, None));
        (0..BLOCKS_MAX as u64 + 10).for_each(|n| executions.set(7, n * BLOCK, of(1)));
        assert_eq!(executions.forgotten, 10);
    }
}

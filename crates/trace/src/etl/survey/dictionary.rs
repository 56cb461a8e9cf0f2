//! The dictionary of stacks: the frames of a key, for as long as the key means them.

/// Limits: addresses of all stacks (32 MiB), and stacks.
const ADDRESSES_MAX: usize = 4 << 20;
const STACKS_MAX: usize = 1 << 20;

/// Frames by key and time.
#[derive(Debug, Default)]
pub struct Dictionary {
    addresses: Vec<u64>,
    stacks: Vec<Stack>,
}

#[derive(Debug)]
struct Stack {
    key: u64,
    /// The key is deleted at this time.
    until_ticks: i64,
    start: usize,
    count: usize,
}

impl Dictionary {
    /// Adds an entry. Returns how many were left out because of a limit.
    pub fn add(&mut self, key: u64, until_ticks: i64, frames: impl Iterator<Item = u64>) -> u64 {
        if self.stacks.len() >= STACKS_MAX || self.addresses.len() >= ADDRESSES_MAX {
            return 1;
        }
        let start = self.addresses.len();
        self.addresses.extend(frames);
        let count = self.addresses.len() - start;
        self.stacks.push(Stack { key, until_ticks, start, count });
        0
    }

    /// Prepares it for questions.
    pub fn sort(&mut self) {
        self.stacks.sort_by_key(|stack| (stack.key, stack.until_ticks));
    }

    /// The frames that `key` means at a time.
    pub fn frames(&self, key: u64, ticks: i64) -> Option<&[u64]> {
        let wanted = (key, ticks);
        let at = self.stacks.partition_point(|stack| (stack.key, stack.until_ticks) < wanted);
        let stack = self.stacks.get(at).filter(|stack| stack.key == key)?;
        self.addresses.get(stack.start..stack.start + stack.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_used_again_means_other_frames() {
        let mut dictionary = Dictionary::default();
        dictionary.add(7, i64::MAX, [3, 4].into_iter());
        dictionary.add(7, 100, [1, 2].into_iter());
        dictionary.add(9, i64::MAX, [5].into_iter());
        dictionary.sort();
        assert_eq!(dictionary.frames(7, 100), Some(&[1, 2][..]));
        assert_eq!(dictionary.frames(7, 101), Some(&[3, 4][..]));
        assert_eq!(dictionary.frames(8, 0), None);
        assert_eq!(dictionary.frames(9, 101), Some(&[5][..]));
    }
}

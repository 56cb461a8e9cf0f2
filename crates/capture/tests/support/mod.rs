//! Shared by the tests of whole captures: SMB2 conversations, the packets that carry them, and the rows
//! that they decode to. Owns no expectation.

#![allow(dead_code, clippy::unwrap_used, missing_docs)]

pub mod decode;
pub mod packets;
pub mod smb2;
pub mod talk;

/// A small generator of pseudo-random numbers, so that a seed reproduces a failure.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}

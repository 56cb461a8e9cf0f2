//! `--scale`: a smaller (or larger) file set for the same workload.
//!
//! What shrinks, pool by pool: first the repeats of its list of sizes, so that the frequency of each
//! size and all averages stay the same. If one repeat is left and that is still too much, the sizes
//! themselves shrink: then the averages of the scenarios that use the pool change
//! ([`crate::workload::Expectation`] computes them at the scale). A file of several blocks keeps two of
//! them, a size in bytes one byte, and pools of up to 256 KiB are left as they are. For new files,
//! first their number shrinks, then their sizes.

use super::{BLOCK_BYTES, FileClass, Pool, Sizes};

/// Pools (a template, a list) whose sizes add up to no more than this keep them.
const SMALL_BYTES: u64 = 256 << 10;

/// A factor on the bytes of a file set, 1 for the workload as written.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Scale(f64);

/// An invalid scale.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("invalid scale {0}: it must be greater than 0 and at most 100")]
pub struct BadScale(pub f64);

impl Scale {
    /// The file set as written.
    pub const FULL: Scale = Scale(1.0);

    /// A factor above 0 and up to 100.
    pub fn new(factor: f64) -> Result<Scale, BadScale> {
        if factor > 0.0 && factor <= 100.0 { Ok(Scale(factor)) } else { Err(BadScale(factor)) }
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// The pool at this scale.
    pub(super) fn apply(self, pool: &Pool) -> Pool {
        let mut pool = pool.clone();
        let count = match pool.class {
            FileClass::New => &mut pool.keep,
            _ => &mut pool.repeat,
        };
        if *count == 0 {
            return pool;
        }
        let wanted = f64::from(*count) * self.0;
        *count = (wanted.round() as u32).max(1);
        // One repeat is left and is still too much: the sizes shrink as well.
        if wanted < 1.0 {
            shrink(&mut pool.sizes, wanted);
        }
        pool
    }
}

impl Default for Scale {
    fn default() -> Scale {
        Scale::FULL
    }
}

fn shrink(sizes: &mut Sizes, factor: f64) {
    match sizes {
        Sizes::Blocks(list) => {
            let all: u64 = list.iter().map(|&blocks| u64::from(blocks)).sum();
            if all * BLOCK_BYTES <= SMALL_BYTES {
                return;
            }
            for blocks in list {
                let wanted = (f64::from(*blocks) * factor).round() as u32;
                *blocks = wanted.max((*blocks).min(2));
            }
        }
        Sizes::Bytes(list) => {
            if list.iter().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes)) <= SMALL_BYTES {
                return;
            }
            for bytes in list {
                let wanted = (*bytes as f64 * factor).round() as u64;
                *bytes = wanted.max((*bytes).min(1));
            }
        }
    }
}

//! The blocks of the streams, in the order in which they are sent.

use std::sync::Arc;

use super::request::{Act, Block, Opened};
use crate::fileset::FileRef;

/// Blocks of several streams in turn.
pub(super) struct Blocks {
    /// Each with what happens to it, the length of its blocks, and the next offset.
    pub streams: Vec<(Arc<Opened>, FileRef, Act, u32, u64)>,
    pub turn: usize,
    pub total: u64,
}

impl Blocks {
    /// Whether all were taken.
    pub fn is_empty(&self) -> bool {
        self.streams.iter().all(|(_, file, _, _, offset)| *offset >= file.bytes)
    }
}

impl Iterator for Blocks {
    type Item = Arc<Block>;

    fn next(&mut self) -> Option<Arc<Block>> {
        for _ in 0..self.streams.len() {
            let place = self.turn % self.streams.len();
            self.turn += 1;
            let (opened, file, act, length, offset) = self.streams.get_mut(place)?;
            let left = file.bytes.saturating_sub(*offset);
            if left == 0 {
                continue;
            }
            let length = left.min(u64::from(*length)) as u32;
            let (opened, file, act, at) = (opened.clone(), *file, *act, *offset);
            *offset += u64::from(length);
            return Some(Arc::new(Block { opened, file, offset: at, length, act }));
        }
        None
    }
}

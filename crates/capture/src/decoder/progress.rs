//! Progress of decoding.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters that grow while a decoder works.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    in_file: AtomicU64,
    total: AtomicU64,
    frames: AtomicU64,
    operations: AtomicU64,
}

impl Progress {
    /// Bytes of the inputs, as stored, that were read.
    pub fn bytes_done(&self) -> u64 {
        self.done.load(Relaxed) + self.in_file.load(Relaxed)
    }

    /// Bytes of all inputs; none when one of them is a pipe.
    pub fn bytes_total(&self) -> Option<u64> {
        Some(self.total.load(Relaxed)).filter(|&total| total > 0)
    }

    /// Packets read.
    pub fn frames(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    /// Operations found.
    pub fn operations(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    pub(super) fn set_total(&self, total: u64) {
        self.total.store(total, Relaxed);
    }

    pub(super) fn begin_file(&self) {
        self.done.fetch_add(self.in_file.swap(0, Relaxed), Relaxed);
    }

    pub(super) fn advance(&self, in_file: u64, frames: u64) {
        self.in_file.store(in_file, Relaxed);
        self.frames.fetch_add(frames, Relaxed);
    }

    pub(super) fn set_operations(&self, operations: u64) {
        self.operations.store(operations, Relaxed);
    }
}

//! Limits on the state of a decoder. The coverage counts what a limit discarded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limits of the decoder's state.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// SMB connections followed at once; beyond that the longest idle ones are forgotten.
    pub connections: usize,
    /// Connections on other ports that may turn out to be SMB.
    pub candidates: usize,
    /// Bytes that wait behind a hole in one direction of a connection.
    pub reorder_bytes: usize,
    /// Bytes that wait on all connections together.
    pub reorder_bytes_total: usize,
    /// Bytes of one message that are kept until it is complete.
    pub message_bytes: usize,
    /// Requests of one connection that wait for a reply.
    pub pending: usize,
    /// Replies of one connection that wait for their request to be seen.
    pub early: usize,
    /// Sessions, and trees, that are remembered.
    pub sessions: usize,
    /// Opens that are remembered.
    pub handles: usize,
    /// Bytes of remembered sessions, trees and opens together, their names included. Beyond it the oldest are forgotten.
    /// Long names in requests that wait, and messages that are not complete, may take a quarter of it in addition.
    pub state_bytes: usize,
}

impl Limits {
    /// Bytes of what waits, in all connections.
    pub fn waiting_bytes(&self) -> usize {
        self.state_bytes / 4
    }
}

/// Shorter texts and messages are limited by their number alone, and cost nothing to count.
pub const LONG_BYTES: usize = 4 << 10;

/// Bytes that one connection keeps of what waits, as a part of those of all connections. Only what is long counts.
#[derive(Debug, Default)]
pub struct WaitingBytes {
    own: usize,
    all: Arc<AtomicUsize>,
}

impl WaitingBytes {
    /// What another connection of the same decoder has.
    pub fn another(&self) -> WaitingBytes {
        WaitingBytes { own: 0, all: self.all.clone() }
    }

    /// Counts more.
    pub fn add(&mut self, bytes: usize) {
        self.own += bytes;
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts less.
    pub fn remove(&mut self, bytes: usize) {
        let bytes = bytes.min(self.own);
        self.own -= bytes;
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of all connections.
    pub fn all(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

impl Clone for WaitingBytes {
    fn clone(&self) -> WaitingBytes {
        let mut copy = self.another();
        copy.add(self.own);
        copy
    }
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        self.remove(self.own);
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 16_384,
            candidates: 4_096,
            reorder_bytes: 8 << 20,
            reorder_bytes_total: 48 << 20,
            message_bytes: 1 << 20,
            pending: 8_192,
            early: 256,
            sessions: 65_536,
            handles: 131_072,
            state_bytes: 256 << 20,
        }
    }
}

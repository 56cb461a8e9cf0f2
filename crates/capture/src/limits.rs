//! Limits on the state of a decoder. The coverage counts what a limit discarded.

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
    pub state_bytes: usize,
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

//! One operation inside the server: how it is identified, and what is recorded about it.
//!
//! `assemble` fills these, `rows` and `join` read them.

use std::net::SocketAddr;

use crate::ring_event::Within;
use crate::slices::Slices;

/// Identifies an operation by the position of its request in the connection's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    /// Client address.
    pub client: SocketAddr,
    /// Server address.
    pub server: SocketAddr,
    /// Position of the message, as in [`crate::assemble::StreamMessage::sequence`].
    pub sequence: u32,
    /// Index in the compound.
    pub index: u16,
}

/// What the probe knows about an operation that its messages do not say.
#[derive(Clone, Debug, Default)]
pub struct ServerSide {
    /// Where the server's time went.
    pub slices: Slices,
    /// Off-CPU and disk time within the slices.
    pub within: Within,
    /// Process that served the request.
    pub process: u32,
    /// Thread that dispatched it.
    pub thread: u32,
    /// CPU it ran on.
    pub cpu: u16,
    /// TCP sequence number of the request on the wire.
    pub tcp_sequence: u32,
    /// Whether the request was encrypted.
    pub encrypted: bool,
    /// How many bytes longer the encrypted request was than the plaintext.
    pub more_bytes: u32,
    /// Arrival of the request's first byte, CLOCK_MONOTONIC ns; if unknown, the time it was read.
    pub first: u64,
    /// Arrival of its last byte.
    pub arrived: u64,
    /// The arrival is unknown; `arrived` is the time the first byte was read.
    pub without_arrival: bool,
}

//! RDMA below SMB: the packets of RoCE, the streams of iWARP, and SMB Direct in the Sends of both.
//!
//! Owns layouts and the state of one direction; a direction yields the SMB messages as a stream
//! with NetBIOS headers, so that `stream::Framer` and everything above it is the same as for TCP.
//! Does not own which queue pairs belong together (`shard`), nor rows (`tcp`). MS-SMBD section 2;
//! InfiniBand Architecture Specification volume 1 chapters 9 and 12, as Wireshark's dissectors
//! `infiniband`, `iwarp-mpa` and `iwarp-ddp-rdmap` document them; RFC 5040, 5041, 5044.

pub mod cm;
pub mod infiniband;
pub mod iwarp;
mod mpa;
mod psn;
pub mod smb_direct;

pub use psn::{Order, Verdict, ahead};

/// The port of SMB Direct over iWARP (MS-SMBD section 2.1).
pub const IWARP_PORT: u16 = 5445;

/// What RDMA moved and refused on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// RDMA Read requests.
    pub reads: u64,
    /// RDMA Write messages.
    pub writes: u64,
    /// Bytes of Read responses and Writes.
    pub bytes: u64,
    /// Negative acknowledgements, or Terminate messages.
    pub naks: u64,
}

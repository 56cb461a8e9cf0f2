//! What a second server that holds the same data would cost and need: the arithmetic of `smbscope plan replication`.
//!
//! [`load`] keeps how many bytes were written in each second, which is all that a recording of days becomes; from it
//! follow the log, an outage of the link and the initial copy. Waits and data at risk come from a replay
//! ([`crate::predict::replay`]), which also answers which round trip a [`goal`] allows ([`search`]).
//! [`forecast`] is what comes out. The same arithmetic holds for Windows' Storage Replica, DRBD and replication between file
//! systems: what differs is what a reply waits for.

pub mod forecast;
pub mod goal;
pub mod load;
pub mod search;

/// A link between both servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Round trip, ns.
    pub rtt_ns: i64,
    /// Rate, bit/s; none without a limit.
    pub bandwidth_bits: Option<f64>,
}

impl Line {
    /// Bytes that it carries in a second; none without a limit.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.bandwidth_bits.map(|bits| bits / 8.0)
    }
}

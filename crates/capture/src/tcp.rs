//! TCP connections: both directions' streams, round trips and windows, and the SMB in them. Also
//! the same without TCP: what RoCE or NetBEUI brought in order (`carrier`).

mod carrier;
mod connection;
mod half;
mod interval;
mod lost_bytes;
mod measure;
mod mirrored;
mod reorder;
mod row;
mod sink;
mod waits;

use std::net::IpAddr;

use hashbrown::HashSet;

use crate::limits::{Limits, WaitingBytes};
use crate::options::Options;
use crate::smb::secrets::Keys;
pub use carrier::{Carrier, CarrierBegin, CarrierHalf, count};
pub use connection::{Connection, is_reply};

/// The same segment within this time was recorded twice, ns.
const TWICE_NS: u64 = 1_000_000;

/// Whether the same segment at two times was recorded twice.
fn is_soon(one: i64, other: i64) -> bool {
    one.abs_diff(other) < TWICE_NS
}

/// Whether SMB is expected on a TCP port; on other ports it is recognised by its content.
pub fn is_usual(port: u16) -> bool {
    matches!(port, 445 | 139)
}

/// What is the same for all connections of a shard.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub limits: Limits,
    /// What waits in all connections.
    pub waiting: WaitingBytes,
    /// Decryption keys by session, and secrets to compute them from.
    pub keys: Keys,
    /// Addresses of the machine that records.
    pub host: HashSet<IpAddr>,
}

impl Context {
    /// As the options say.
    pub fn new(options: &Options) -> Context {
        Context {
            limits: options.limits,
            waiting: WaitingBytes::default(),
            keys: Keys::new(&options.keys, options.secrets.clone()),
            host: options.host.iter().copied().collect(),
        }
    }
}

/// Why a connection is no longer followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Forgotten for the limit on connections.
    Idle,
    /// A new connection uses the same addresses and ports.
    Reused,
    /// The capture ends.
    Capture,
}

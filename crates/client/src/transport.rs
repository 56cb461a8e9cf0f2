//! What lies below an SMB connection: the byte stream, its endpoints and its round-trip time.
//!
//! `host` makes these, `channel` uses them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::row::LinkNames;
pub use crate::tcp_state::Socket;

/// The byte stream below a connection: TCP, or an in-memory pipe in tests.
pub trait Transport: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Transport for T {}

/// The endpoints of a new connection and how it was established.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Number of the connection in the recording.
    pub connection: u64,
    /// Index among the session's channels.
    pub channel: u32,
    /// Ports of client and server.
    pub ports: (u16, u16),
    /// Duration of the connect call: SYN to SYN-ACK.
    pub connect_ns: Option<i64>,
    /// Shared by all connections to that address.
    pub round_trip: Arc<RoundTrip>,
    /// Addresses and names for its rows.
    pub names: Arc<LinkNames>,
    /// The TCP socket, if its state is sampled.
    pub socket: Option<Arc<Socket>>,
    /// How long what is read had waited for the client, where the kernel stamps what arrives.
    pub arrival: Option<Arc<Arrival>>,
}

/// How long the bytes of a connection's last read had waited in this machine, ns.
#[derive(Debug, Default)]
pub struct Arrival(pub(crate) AtomicI64);

impl Arrival {
    /// The time for the last read; zero where it is not known.
    pub fn age_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The shortest time that a connect or a request to an address took: the network round trip is at
/// most this long. One value for all connections to the address, because a single connection's
/// times also contain scheduling delays of its task on a busy client or after a wake-up.
#[derive(Debug)]
pub struct RoundTrip(AtomicI64);

impl RoundTrip {
    /// A round trip without samples.
    pub fn new() -> RoundTrip {
        RoundTrip(AtomicI64::new(i64::MAX))
    }

    /// Adds a sample.
    pub fn add_sample(&self, ns: i64) {
        self.0.fetch_min(ns, Ordering::Relaxed);
    }

    /// The shortest sample so far; `None` before the first.
    pub fn least_ns(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|ns| *ns != i64::MAX)
    }
}

impl Default for RoundTrip {
    fn default() -> RoundTrip {
        RoundTrip::new()
    }
}

//! The network without SMB: TCP streams between two machines, to know what a path could carry.
//!
//! Owns the two sides of the test ([`listen`], [`send`]), their authentication, the client of an iperf3
//! server ([`iperf3`]), and the rows of the tables `net_tests`, `net_intervals` and `net_round_trips`.
//! It does not own folders, progress or text. Threads block: with one thread for each stream and large
//! writes nothing is between the measurement and the kernel. docs/method/net.md describes what is
//! measured and how the limit of a rate is determined.

mod accept;
mod control;
mod cpu;
mod error;
mod handshake;
pub mod iperf3;
mod limit;
pub mod listen;
pub mod message;
mod percentile;
mod phase;
mod result;
mod round_trips;
mod sample;
pub mod send;
mod socket_option;
pub mod spec;
mod stream;
pub mod token;

pub use error::NetError;
pub use listen::{Listener, Served};
pub use result::Outcome;
pub use send::{Observer, Target};
pub use spec::{Direction, Length, Spec};
pub use token::Token;

/// The port that `smbscope net listen` uses by default.
pub const PORT: u16 = 5446;

/// Parses bytes from the network as every message of the protocol; for fuzzing.
pub fn parse_any(bytes: &[u8]) {
    let _ = handshake::Response::parse(bytes);
    let _ = handshake::Challenge::parse(bytes);
    let _ = smbscope_client::tcp_info::TcpInfo::parse(bytes);
    let _ = message::Message::parse(bytes);
    let _ = iperf3::parse_results(bytes);
    let mut framer = control::Framer::new(&[7; 32], handshake::Side::Sender);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.len().min(61));
        if framer.take(piece).is_err() {
            break;
        }
        while let Ok(Some(_)) = framer.message() {}
        rest = more;
    }
}

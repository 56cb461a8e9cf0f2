//! Why a test of the network ended early.

use std::io;
use std::net::SocketAddr;

/// An error of `net listen` or `net send`.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The address cannot be bound.
    #[error("{0}: cannot be listened on: {1}; give an address of this machine and a free port")]
    Bind(SocketAddr, io::Error),
    /// Not one address.
    #[error(
        "{0}: `net listen` listens on one address, not on all: give the address that the other machine reaches"
    )]
    AllAddresses(SocketAddr),
    /// The other side cannot be reached.
    #[error(
        "{0}: cannot be connected to: {1}; is `{2}` running there, and does a firewall let the port through?"
    )]
    Connect(String, io::Error, &'static str),
    /// The name has no address.
    #[error("{0}: cannot be resolved: {1}")]
    Resolve(String, io::Error),
    /// The token is not the one that `net listen` printed.
    #[error(
        "{0}: the token was refused: copy the one that `smbscope net listen` printed; each start prints a new one"
    )]
    Refused(String),
    /// The token is not one.
    #[error("`{0}` is not a token: `smbscope net listen` prints it, 24 letters and digits")]
    Token(String),
    /// The other side does not know the token, or does not speak the protocol.
    #[error("{0}: is not `smbscope net listen` with this token: {1}")]
    NotListener(String, &'static str),
    /// Another test is running.
    #[error(
        "{0}: serves a test already: wait until it ends, or start another `smbscope net listen`"
    )]
    Busy(String),
    /// No sender came.
    #[error("no sender with the token connected within {0} s")]
    NoSender(u64),
    /// Reading or writing failed.
    #[error("the connection to {0} failed: {1}")]
    Connection(String, io::Error),
    /// The other side left.
    #[error("{0} ended the test early{1}")]
    Left(String, String),
    /// A message that the protocol does not have.
    #[error("{0}: sent a message that is not valid: {1}")]
    Message(String, String),
    /// Nothing arrives.
    #[error(
        "{0}: no byte arrived for {1} s: the path is cut, or it loses full-sized packets (MTU)"
    )]
    Stalled(String, u64),
    /// An option out of range.
    #[error("{0}")]
    Spec(String),
    /// iperf3's server refused.
    #[error("{0}: the iperf3 server refuses the test: {1}")]
    Iperf3(String, String),
    /// iperf3's server is busy or wants a user.
    #[error(
        "{0}: the iperf3 server denies access: it serves another test, or requires a user, which smbscope cannot be"
    )]
    Iperf3Busy(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// No randomness, threads or sockets.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

impl NetError {
    /// Why a connection on which data should flow failed; `seconds` is its time limit.
    pub(super) fn of_connection(peer: &str, error: io::Error, seconds: u64) -> NetError {
        match error.kind() {
            // What a socket's time limit looks like.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                NetError::Stalled(peer.to_owned(), seconds)
            }
            _ => NetError::Connection(peer.to_owned(), error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_names_the_mtu() {
        let of = |kind: io::ErrorKind| {
            NetError::of_connection("10.0.0.2:5446", io::Error::from(kind), 20).to_string()
        };
        for kind in [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut] {
            assert!(
                of(kind).starts_with("10.0.0.2:5446: no byte arrived for 20 s"),
                "{}",
                of(kind)
            );
            assert!(of(kind).contains("full-sized packets (MTU)"));
        }
        assert!(
            of(io::ErrorKind::ConnectionReset).contains("the connection to 10.0.0.2:5446 failed")
        );
    }
}

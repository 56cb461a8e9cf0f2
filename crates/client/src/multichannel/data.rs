//! What a caller says about the use of connections, and what it hears of them.

use std::net::SocketAddr;
use std::time::Duration;

use crate::channel::{Channel, Scene};
use crate::error::ClientError;
use crate::reply::Reply;
use crate::tcp_state::TcpState;

/// How the connection for the next request is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one with the fewest payload bytes in flight.
    #[default]
    LeastInFlight,
    /// One after another, each in its turn: a slow one delays all.
    RoundRobin,
}

/// How the connections are used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// See [`Choice`].
    pub choice: Choice,
    /// Requests in flight on each connection.
    pub depth: usize,
    /// A request without a reply for this time, or a binding that takes longer, has failed.
    pub timeout: Duration,
    /// What the rows of all connections say about their scenario.
    pub scene: Scene,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A request was answered.
    Done {
        /// Its number.
        id: u64,
        /// The connection.
        channel: u32,
        /// The answer.
        reply: Reply,
        /// Whether the payload of the reply is what it should be.
        is_intact: bool,
    },
    /// A connection was bound to the session and takes requests.
    Joined {
        /// Its number among those of the session.
        channel: u32,
        /// Its address at the server.
        to: SocketAddr,
    },
    /// A connection could not be bound.
    Refused {
        /// Its number; no connection has it.
        channel: u32,
        /// The address.
        to: SocketAddr,
        /// The connection, if there was one.
        state: Option<Box<ChannelState>>,
        /// The reason.
        error: ClientError,
    },
    /// A connection was lost; its requests are repeated on others. After the last one there are only errors.
    Lost {
        /// The connection.
        channel: u32,
        /// Requests that are repeated.
        repeated: usize,
        /// Whether no other one is left.
        is_last: bool,
        /// The reason.
        error: ClientError,
    },
}

/// What a connection has done so far.
#[derive(Clone, Debug)]
pub struct ChannelState {
    /// Its number among those of the session.
    pub channel: u32,
    /// Number of the connection in the recording.
    pub connection: u64,
    /// The client: address and port.
    pub client: (String, u16),
    /// The server: address and port.
    pub server: (String, u16),
    /// When it was opened; ns since 1970.
    pub opened_at: i64,
    /// When it could be used; ns since 1970.
    pub bound_at: i64,
    /// When it was lost.
    pub lost_at: Option<i64>,
    /// File data of answered requests, bytes.
    pub bytes: u64,
    /// Answered requests.
    pub requests: u64,
    /// Payload bytes in flight.
    pub in_flight_bytes: u64,
    /// What the system knows of its TCP connection.
    pub tcp: Option<TcpState>,
}

impl ChannelState {
    /// The state of a connection that has not carried anything.
    pub(super) fn new(number: u32, channel: &Channel) -> ChannelState {
        let (client_port, server_port) = channel.ports();
        let names = channel.names();
        ChannelState {
            channel: number,
            connection: channel.table.connection,
            client: (names.client.clone(), client_port),
            server: (names.server.clone(), server_port),
            opened_at: channel.table.start,
            bound_at: channel.now(),
            lost_at: None,
            bytes: 0,
            requests: 0,
            in_flight_bytes: 0,
            tcp: None,
        }
    }
}

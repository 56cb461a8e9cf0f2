//! Where the server is and how sessions talk to it: what all sessions of a run share.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpStream;

use super::config::{Config, Target};
use super::delay::Delayed;
use super::error::ClientError;
use super::transport::{Arrival, Endpoints, RoundTrip, Socket, Transport};
use crate::clock::{Clock, nanoseconds};
use crate::row::LinkNames;
use crate::tcp_state::end_when_silent;

/// What all sessions of a run share: where the server is and how to talk to it.
#[derive(Debug)]
pub struct Host {
    /// Where the share is.
    pub target: Target,
    /// The server's addresses: channels are spread over them.
    pub addresses: Vec<SocketAddr>,
    /// How to connect.
    pub config: Config,
    /// The run's clock.
    pub clock: Clock,
    /// Whether rows are recorded.
    pub record: bool,
    connections: AtomicU64,
    /// One for each of the addresses.
    round_trips: Vec<Arc<RoundTrip>>,
    /// Connects instead of TCP, if there is one.
    dial: Option<Dial>,
}

/// Makes the transports of a host that is not on a network.
struct Dial(Box<dyn Fn() -> io::Result<Box<dyn Transport>> + Send + Sync>);

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}

impl Host {
    /// Looks the server's name up.
    pub async fn find(
        target: Target,
        config: Config,
        clock: Clock,
        record: bool,
    ) -> Result<Host, ClientError> {
        let failed = |error| ClientError::Connect { server: target.address(), error };
        let looking = tokio::net::lookup_host((target.host.as_str(), target.port));
        let found = tokio::time::timeout(config.connect_timeout, looking).await;
        let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let addresses: Vec<_> = found.map_err(failed)?.collect();
        if addresses.is_empty() {
            let error = io::Error::other("the name has no address");
            return Err(ClientError::Connect { server: target.address(), error });
        }
        let round_trips = addresses.iter().map(|_| Arc::new(RoundTrip::new())).collect();
        Ok(Host { addresses, round_trips, ..Host::nowhere(target, config, clock, record) })
    }

    /// The same server, reached at this address only.
    pub fn at_address(mut self, address: SocketAddr) -> Host {
        self.addresses = vec![address];
        self.round_trips = vec![Arc::new(RoundTrip::new())];
        self
    }

    /// A host that cannot be reached yet.
    fn nowhere(target: Target, config: Config, clock: Clock, record: bool) -> Host {
        Host {
            target,
            addresses: Vec::new(),
            config,
            clock,
            record,
            connections: AtomicU64::new(0),
            round_trips: Vec::new(),
            dial: None,
        }
    }

    /// A host whose connections come from `dial`, for servers that exist in tests only.
    pub fn dialled(
        target: Target,
        config: Config,
        clock: Clock,
        record: bool,
        dial: impl Fn() -> io::Result<Box<dyn Transport>> + Send + Sync + 'static,
    ) -> Host {
        let dial = Some(Dial(Box::new(dial)));
        Host { dial, ..Host::nowhere(target, config, clock, record) }
    }

    /// Connects a session's channel to the address `to`, or to one of the server's name.
    pub(super) async fn connect(
        &self,
        channel: u32,
        to: Option<SocketAddr>,
    ) -> Result<(Box<dyn Transport>, Endpoints), ClientError> {
        let server = || to.map_or_else(|| self.target.address(), |to| to.to_string());
        if let Some(Dial(dial)) = &self.dial {
            let failed = |error| ClientError::Connect { server: server(), error };
            let texts = [String::new(), to.map_or_else(String::new, |to| to.ip().to_string())];
            let endpoints =
                self.endpoints(channel, (0, 0), (None, Arc::new(RoundTrip::new())), texts);
            return Ok((dial().map_err(failed)?, endpoints));
        }
        // IPv4 and IPv6 of one name are tried in turn for the first channel.
        let mut last = io::Error::other("the name has no address");
        let own = to.map(|address| (address, Arc::new(RoundTrip::new())));
        let attempts = if own.is_some() { 1 } else { self.addresses.len() };
        for attempt in 0..attempts {
            let place = (channel as usize + attempt) % self.addresses.len().max(1);
            let known =
                self.addresses.get(place).copied().zip(self.round_trips.get(place).cloned());
            let Some((address, round_trip)) = own.clone().or(known) else { break };
            let begin = tokio::time::Instant::now();
            let connecting = TcpStream::connect(address);
            let stream = match tokio::time::timeout(self.config.connect_timeout, connecting).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    last = error;
                    continue;
                }
                Err(_) => {
                    last = io::ErrorKind::TimedOut.into();
                    continue;
                }
            };
            let took = nanoseconds(begin.elapsed()) + nanoseconds(self.config.delay);
            let failed = |error| ClientError::Connect { server: server(), error };
            stream.set_nodelay(true).map_err(failed)?;
            let local = stream.local_addr().map_err(failed)?;
            let ports = (local.port(), address.port());
            let texts = [local.ip().to_string(), address.ip().to_string()];
            round_trip.add_sample(took);
            let mut endpoints = self.endpoints(channel, ports, (Some(took), round_trip), texts);
            if let Some(limit) = self.config.path_timeout {
                end_when_silent(&stream, limit).map_err(failed)?;
                endpoints.socket = Socket::of_stream(&stream).map(Arc::new);
            }
            let stream: Box<dyn Transport> = if self.config.delay.is_zero() {
                let (stream, arrival) = stamped(stream);
                endpoints.arrival = arrival;
                stream
            } else {
                let (delay, credits) = (self.config.delay, self.config.credits);
                Box::new(Delayed::new(stream, delay, credits, self.clock.clone()))
            };
            return Ok((stream, endpoints));
        }
        Err(ClientError::Connect { server: server(), error: last })
    }

    fn endpoints(
        &self,
        channel: u32,
        ports: (u16, u16),
        (connect_ns, round_trip): (Option<i64>, Arc<RoundTrip>),
        [client, server]: [impl Into<String>; 2],
    ) -> Endpoints {
        let names =
            LinkNames { client: client.into(), server: server.into(), ..LinkNames::default() };
        let connection = self.connections.fetch_add(1, Ordering::Relaxed);
        let names = Arc::new(names);
        let (socket, arrival) = (None, None);
        Endpoints { connection, channel, ports, connect_ns, round_trip, names, socket, arrival }
    }
}

/// A stream with the kernel's time stamps, where it has them.
#[cfg(target_os = "linux")]
fn stamped(stream: TcpStream) -> (Box<dyn Transport>, Option<Arc<Arrival>>) {
    match crate::arrival::Stamped::new(stream) {
        Ok(stream) => {
            let arrival = stream.arrival();
            (Box::new(stream), Some(arrival))
        }
        Err(stream) => (Box::new(stream), None),
    }
}

/// A stream with the kernel's time stamps, where it has them.
#[cfg(not(target_os = "linux"))]
fn stamped(stream: TcpStream) -> (Box<dyn Transport>, Option<Arc<Arrival>>) {
    (Box::new(stream), None)
}

//! Where the server is and how sessions talk to it: what all sessions of a run share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpStream;

use super::channel::{Ends, Transport};
use super::config::{Config, Target};
use super::delay::Delayed;
use super::error::ClientError;
use crate::clock::{Clock, nanoseconds};
use crate::row::LinkNames;

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
    /// Whether rows are made.
    pub record: bool,
    connections: AtomicU64,
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
        let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
        let addresses: Vec<_> = found.map_err(failed)?.collect();
        if addresses.is_empty() {
            let error = std::io::Error::other("the name has no address");
            return Err(ClientError::Connect { server: target.address(), error });
        }
        Ok(Host { target, addresses, config, clock, record, connections: AtomicU64::new(0) })
    }

    /// A host that is no network place, for tests over pipes.
    pub fn nowhere(target: Target, config: Config, clock: Clock, record: bool) -> Host {
        let connections = AtomicU64::new(0);
        Host { target, addresses: Vec::new(), config, clock, record, connections }
    }

    /// A TCP connection for a session's channel.
    pub(super) async fn connect(
        &self,
        channel: u32,
    ) -> Result<(Box<dyn Transport>, Ends), ClientError> {
        let server = || self.target.address();
        // IPv4 and IPv6 of one name are tried in turn for the first channel.
        let mut last = std::io::Error::other("the name has no address");
        for attempt in 0..self.addresses.len() {
            let place = (channel as usize + attempt) % self.addresses.len();
            let Some(&address) = self.addresses.get(place) else { break };
            let begin = tokio::time::Instant::now();
            let connecting = TcpStream::connect(address);
            let stream = match tokio::time::timeout(self.config.connect_timeout, connecting).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    last = error;
                    continue;
                }
                Err(_) => {
                    last = std::io::ErrorKind::TimedOut.into();
                    continue;
                }
            };
            let took = nanoseconds(begin.elapsed()) + nanoseconds(self.config.delay);
            let failed = |error| ClientError::Connect { server: server(), error };
            stream.set_nodelay(true).map_err(failed)?;
            let local = stream.local_addr().map_err(failed)?;
            let names = LinkNames {
                client: local.ip().to_string(),
                server: address.ip().to_string(),
                ..LinkNames::default()
            };
            let ends = Ends {
                connection: self.connections.fetch_add(1, Ordering::Relaxed),
                channel,
                ports: (local.port(), address.port()),
                connect_ns: Some(took),
                names: Arc::new(names),
            };
            let stream: Box<dyn Transport> = match self.config.delay.is_zero() {
                true => Box::new(stream),
                false => Box::new(Delayed::new(stream, self.config.delay)),
            };
            return Ok((stream, ends));
        }
        Err(ClientError::Connect { server: server(), error: last })
    }
}

//! A client or server: an address, a network, or a name as the tables have it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A client or server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// The addresses that have these first bits in common.
    Network { address: IpAddr, bits: u8 },
    /// Any other text of the column: a token, or the name of a machine.
    Name(String),
}

/// Why a text is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Nothing.
    #[error(
        "expected an address, for example 10.1.2.3, 10.1.2.3:49152, [fe80::1]:445 or 10.1.0.0/16"
    )]
    Empty,
    /// The part behind the slash.
    #[error("invalid network: expected ADDRESS/BITS, for example 10.1.0.0/16 or fd00::/8")]
    Network,
}

impl Endpoint {
    /// Whether a row's host is this one, whatever its port.
    pub fn has_host(&self, text: &str) -> bool {
        match &self.host {
            Host::Name(name) => name.eq_ignore_ascii_case(text),
            Host::Network { address, bits } => {
                text.parse().is_ok_and(|other: IpAddr| in_network(other, *address, *bits))
            }
        }
    }

    /// The port, if it must be a certain one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        let text = text.trim();
        let alone = |address: IpAddr, port| {
            let address = address.to_canonical();
            let bits = if address.is_ipv4() { 32 } else { 128 };
            Endpoint { host: Host::Network { address, bits }, port }
        };
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(alone(address, None));
        }
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Ok(alone(socket.ip(), Some(socket.port())));
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| EndpointError::Network)?;
            let bits: u8 = bits.parse().map_err(|_| EndpointError::Network)?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            return if bits <= most {
                Ok(Endpoint { host: Host::Network { address, bits }, port: None })
            } else {
                Err(EndpointError::Network)
            };
        }
        Ok(Endpoint { host: Host::Name(text.to_owned()), port: None })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (Host::Name(name), _) => f.write_str(name),
            (Host::Network { address, .. }, Some(port)) => {
                write!(f, "{}", SocketAddr::new(*address, port))
            }
            (Host::Network { address, bits }, None) => match (address, bits) {
                (IpAddr::V4(_), 32) | (IpAddr::V6(_), 128) => write!(f, "{address}"),
                _ => write!(f, "{address}/{bits}"),
            },
        }
    }
}

fn in_network(other: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (other.to_canonical(), network) {
        (IpAddr::V4(other), IpAddr::V4(network)) => {
            let differ = u32::from(other) ^ u32::from(network);
            bits == 0 || differ.checked_shr(32 - u32::from(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(other), IpAddr::V6(network)) => {
            let differ = u128::from(other) ^ u128::from(network);
            bits == 0 || differ.checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_networks_ports_and_names() {
        assert!(endpoint("10.1.2.3").has_host("10.1.2.3"));
        assert!(endpoint("10.1.2.3").has_host("::ffff:10.1.2.3"));
        assert!(!endpoint("10.1.2.3").has_host("10.1.2.30"));
        assert_eq!(endpoint("10.1.2.3:445").port(), Some(445));
        assert_eq!(endpoint("[fe80::1]:445").port(), Some(445));
        assert!(endpoint("fe80:0::1").has_host("fe80::1"));
        assert!(endpoint("10.1.0.0/16").has_host("10.1.255.1"));
        assert!(!endpoint("10.1.0.0/16").has_host("10.2.0.1"));
        assert!(endpoint("0.0.0.0/0").has_host("10.2.0.1"));
        assert!(
            endpoint("fd00::/8").has_host("fdab::1") && !endpoint("fd00::/8").has_host("fe80::1")
        );
        assert!(endpoint("Machine-1a2b").has_host("machine-1a2b"));
        for text in ["10.1.0.0/33", "10.1.0.0/x", "host/8"] {
            assert_eq!(text.parse::<Endpoint>(), Err(EndpointError::Network), "{text}");
        }
        assert_eq!(" ".parse::<Endpoint>(), Err(EndpointError::Empty));
        for text in ["10.1.2.3", "10.1.2.3:445", "[fe80::1]:445", "10.1.0.0/16", "server1"] {
            assert_eq!(endpoint(text).to_string(), text);
        }
    }
}

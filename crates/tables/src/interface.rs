//! A server's network interface as the column `connections.server_interfaces` stores it: an entry of the
//! answer to FSCTL_QUERY_NETWORK_INTERFACE_INFO (MS-SMB2 section 2.2.32.5); and why it was used or not.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Most interfaces that a row keeps.
pub const INTERFACES_MAX: usize = 32;

/// One address of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerInterface {
    /// Its address.
    pub address: IpAddr,
    /// The number of the interface: several addresses can belong to one.
    pub index: u32,
    /// Its speed, bits/s.
    pub speed: u64,
    /// Whether it distributes connections over CPUs (receive side scaling).
    pub has_rss: bool,
    /// Whether it has RDMA.
    pub has_rdma: bool,
}

impl fmt::Display for ServerInterface {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerInterface { address, index, speed, has_rss, has_rdma } = self;
        write!(to, "{address} on {index} at {speed} bits/s")?;
        to.write_str(if *has_rss { " RSS" } else { "" })?;
        to.write_str(if *has_rdma { " RDMA" } else { "" })
    }
}

impl FromStr for ServerInterface {
    type Err = ();

    fn from_str(text: &str) -> Result<ServerInterface, ()> {
        let mut words = text.split_whitespace();
        let mut number = |before: &str| {
            let is_next = before.is_empty() || words.next() == Some(before);
            words.next().filter(|_| is_next).ok_or(())
        };
        let address = number("")?.parse().map_err(|_| ())?;
        let index = number("on")?.parse().map_err(|_| ())?;
        let speed = number("at")?.parse().map_err(|_| ())?;
        let flags: Vec<_> = words.collect();
        let has = |flag| flags.contains(&flag);
        Ok(ServerInterface { address, index, speed, has_rss: has("RSS"), has_rdma: has("RDMA") })
    }
}

/// Why an offered interface was used or not: the column `interfaces.reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A channel went to it.
    Used,
    /// Clients prefer RDMA, then RSS, then speed, and one that is used is of a better class.
    SpeedClass,
    /// The client has no address in its subnet.
    Subnet,
    /// The client has no route to it.
    NoRoute,
    /// No connection to it could be opened.
    ConnectFailed,
    /// The server refused to bind the session to a connection to it.
    Refused,
    /// The client has all channels that it wants.
    Limit,
    /// It is a loopback or link-local address, which other machines cannot reach.
    Loopback,
    /// Another address of the same interface was used.
    SameInterface,
    /// No channel to it was tried; why is not known.
    NotTried,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 10] = [
        Reason::Used,
        Reason::SpeedClass,
        Reason::Subnet,
        Reason::NoRoute,
        Reason::ConnectFailed,
        Reason::Refused,
        Reason::Limit,
        Reason::Loopback,
        Reason::SameInterface,
        Reason::NotTried,
    ];

    /// The text of the column.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Used => "used",
            Reason::SpeedClass => "speed_class",
            Reason::Subnet => "subnet",
            Reason::NoRoute => "no_route",
            Reason::ConnectFailed => "connect_failed",
            Reason::Refused => "refused",
            Reason::Limit => "limit",
            Reason::Loopback => "loopback",
            Reason::SameInterface => "same_interface",
            Reason::NotTried => "not_tried",
        }
    }

    /// The reason with that name.
    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// What became of connections of one session to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// One is a channel.
    Used,
    /// The server refused to bind them, with that status.
    Refused(String),
}

/// Why each interface was used or not, as far as connections show it, and the status with which the
/// server refused it. `client` and `server` are the addresses of the connection on which the client
/// asked; `path` says what became of connections to an address.
pub fn reasons(
    offered: &[ServerInterface],
    client: IpAddr,
    server: IpAddr,
    path: impl Fn(IpAddr) -> Option<Path>,
) -> Vec<(Reason, Option<String>)> {
    let paths: Vec<_> = offered.iter().map(|one| path(one.address)).collect();
    let is_used = |(one, path): &(&ServerInterface, &Option<Path>)| {
        **path == Some(Path::Used) || one.address == server
    };
    let used: Vec<_> = offered.iter().zip(&paths).filter(is_used).map(|(one, _)| *one).collect();
    // A client takes the best class only (MS-SMB2 section 3.2.4.20.10, note on selection).
    let class = |one: &ServerInterface| (one.has_rdma, one.has_rss, one.speed);
    let best = used.iter().map(class).max();
    let judge = |(one, path): (&ServerInterface, &Option<Path>)| match path {
        _ if is_used(&(one, path)) => (Reason::Used, None),
        Some(Path::Refused(status)) => (Reason::Refused, Some(status.clone())),
        _ if is_local(one.address) && !is_local(client) => (Reason::Loopback, None),
        _ if used.iter().any(|other| other.index == one.index) => (Reason::SameInterface, None),
        _ if best.is_some_and(|best| class(one) < best) => (Reason::SpeedClass, None),
        _ => (Reason::NotTried, None),
    };
    offered.iter().zip(&paths).map(judge).collect()
}

/// Whether other machines cannot reach it.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
    }
}

/// The text of the column.
pub fn to_text(interfaces: impl IntoIterator<Item = ServerInterface>) -> String {
    let texts = interfaces.into_iter().take(INTERFACES_MAX).map(|one| one.to_string());
    texts.collect::<Vec<_>>().join(", ")
}

/// The interfaces in the text of the column; those that cannot be read (replaced names) are left out.
pub fn from_text(text: &str) -> Vec<ServerInterface> {
    text.split(", ").filter_map(|one| one.parse().ok()).take(INTERFACES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_from_what_became_of_connections() {
        let one = |address: &str, index, speed, has_rss| ServerInterface {
            address: address.parse().unwrap(),
            index,
            speed,
            has_rss,
            has_rdma: false,
        };
        let offered = [
            one("10.0.0.2", 1, 10, true),
            one("10.0.1.2", 2, 10, true),
            one("10.0.2.2", 3, 10, true),
            one("10.0.3.2", 4, 1, true),
            one("10.0.4.2", 5, 40, false),
            one("fe80::1", 6, 10, true),
            one("10.0.7.2", 1, 10, true),
            one("10.0.8.2", 8, 10, true),
        ];
        let [client, server] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let found =
            reasons(&offered, client, server, |address| match address.to_string().as_str() {
                "10.0.1.2" => Some(Path::Used),
                "10.0.2.2" => Some(Path::Refused("STATUS_NOT_SUPPORTED".into())),
                _ => None,
            });
        let names: Vec<_> = found.iter().map(|(reason, _)| reason.name()).collect();
        let expected = [
            "used",
            "used",
            "refused",
            "speed_class",
            "speed_class",
            "loopback",
            "same_interface",
            "not_tried",
        ];
        assert_eq!(names, expected);
        assert_eq!(found[2].1.as_deref(), Some("STATUS_NOT_SUPPORTED"));
        assert!(Reason::ALL.iter().all(|one| Reason::from_name(one.name()) == Some(*one)));
    }

    #[test]
    fn texts_read_back() {
        let one = |address: &str, index, has_rss, has_rdma| ServerInterface {
            address: address.parse().unwrap(),
            index,
            speed: 10_000_000_000,
            has_rss,
            has_rdma,
        };
        let all = vec![one("10.0.0.2", 14, true, false), one("fe80::1", 3, false, true)];
        let text = to_text(all.clone());
        assert_eq!(
            text,
            "10.0.0.2 on 14 at 10000000000 bits/s RSS, fe80::1 on 3 at 10000000000 bits/s RDMA"
        );
        assert_eq!(from_text(&text), all);
        assert_eq!(from_text("machine-7a2b"), []);
        assert_eq!(from_text("10.0.0.2 on x at 1 bits/s, 10.0.0.2 at 1 on 2"), []);
    }
}

//! A server's network interface as the column `connections.server_interfaces` stores it: an entry of the
//! answer to FSCTL_QUERY_NETWORK_INTERFACE_INFO (MS-SMB2 section 2.2.32.5).

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
    /// Whether it distributes connections over processors (receive side scaling).
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

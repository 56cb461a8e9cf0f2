//! Which of the server's interfaces get channels, and how many: the policy of Windows' client, as a pure function.
//!
//! A server lists the addresses of its interfaces (MS-SMB2 section 2.2.32.5); which of them a client uses is its own
//! decision (section 3.2.5.14.11 leaves it open). Windows uses the fastest ones, with several connections on an
//! interface with receive side scaling on both sides and one on others (ConnectionCountPerRssNetworkInterface 4,
//! ConnectionCountPerNetworkInterface 1, MaximumConnectionCountPerServer 32: Get-SmbClientConfiguration). Interfaces
//! with RDMA are used through TCP, because SMB Direct is not spoken here.

use std::fmt;
use std::net::IpAddr;

use smbscope_wire::smb2::network_interface::{InterfaceCapabilities, NetworkInterface};

use super::routes::Route;

/// Samba sends it for interfaces that `interfaces` in smb.conf gives by their addresses.
const UNKNOWN_INDEX: u32 = u32::MAX;

/// How many channels, and on which interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Connections to an interface with receive side scaling on both sides.
    pub per_rss_interface: u16,
    /// Connections to another interface.
    pub per_interface: u16,
    /// Maximum number of connections.
    pub most: u16,
    /// Slowest link that is used, bits/s; `None`: that of the fastest usable one.
    pub least_speed: Option<u64>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { per_rss_interface: 4, per_interface: 1, most: 32, least_speed: None }
    }
}

/// An address that the server offers, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The offer.
    pub offered: NetworkInterface,
    /// How this machine reaches it, where that is known.
    pub route: Option<Route>,
    /// How many connections it gets, or why none.
    pub verdict: Verdict,
}

/// What becomes of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This many connections, a first one that is already there included.
    Use(u16),
    /// None.
    Not(Reason),
}

/// Why an address is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its family is neither IPv4 nor IPv6.
    Family,
    /// An address of the server itself.
    Loopback,
    /// Valid on one link only, and the offer does not say on which.
    LinkLocal,
    /// This machine has no route to it.
    NoRoute(String),
    /// The route leads through a gateway, while the first connection is in a network of this machine.
    Subnet {
        /// The gateway.
        gateway: IpAddr,
    },
    /// The link is slower than others.
    SpeedClass {
        /// Its speed: the slower of both ends, bits/s.
        speed: u64,
        /// The least speed that is used.
        needed: u64,
    },
    /// Another address of the same interface is used.
    SameInterface(IpAddr),
    /// There are enough connections.
    Limit(u16),
    /// The caller lists the addresses that are used, and this is not one of them.
    NotListed,
}

impl Reason {
    /// The word in the table of interfaces.
    pub fn word(&self) -> &'static str {
        match self {
            Reason::Family => "family",
            Reason::Loopback => "loopback",
            Reason::LinkLocal => "link_local",
            Reason::NoRoute(_) => "no_route",
            Reason::Subnet { .. } => "subnet",
            Reason::SpeedClass { .. } => "speed_class",
            Reason::SameInterface(_) => "same_interface",
            Reason::Limit(_) => "limit",
            Reason::NotListed => "not_listed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabits = |speed: u64| speed as f64 / 1e9;
        match self {
            Reason::Family => write!(f, "its address family is unknown"),
            Reason::Loopback => {
                write!(f, "a loopback address, which only the server itself reaches")
            }
            Reason::LinkLocal => write!(f, "an IPv6 link-local address, valid on one link only"),
            Reason::NoRoute(error) => write!(f, "this machine has no route to it ({error})"),
            Reason::Subnet { gateway } => write!(
                f,
                "this machine has no address in its subnet, and the route leads through {gateway}"
            ),
            Reason::SpeedClass { speed, needed } => write!(
                f,
                "speed class: its link has {} Gbit/s, and {} Gbit/s are used",
                gigabits(*speed),
                gigabits(*needed)
            ),
            Reason::SameInterface(address) => {
                write!(f, "the same interface is used with the address {address}")
            }
            Reason::Limit(most) => write!(f, "the limit of {most} channels is reached"),
            Reason::NotListed => write!(f, "the list of channels does not have it"),
        }
    }
}

/// Decides for each offered address. `first` is the server's address on the first connection, `route_to` says how
/// this machine reaches an address.
pub fn judge(
    offered: &[NetworkInterface],
    first: IpAddr,
    rules: &Rules,
    route_to: impl Fn(IpAddr) -> Result<Route, String>,
) -> Vec<Judged> {
    let first_gateway = route_to(first).ok().and_then(|route| route.gateway);
    let mut judged: Vec<Judged> = Vec::with_capacity(offered.len());
    for &offered in offered {
        let (route, reason) = reach(&offered, first, first_gateway, &route_to);
        let verdict = reason.map_or(Verdict::Use(0), Verdict::Not);
        judged.push(Judged { offered, route, verdict });
    }
    let speeds = judged.iter().filter(|one| one.is_usable()).map(Judged::speed);
    let needed = rules.least_speed.or(speeds.max()).unwrap_or(0);
    // The first connection's own address comes first, then the order of the list.
    let mut order: Vec<usize> = (0..judged.len()).collect();
    order.sort_by_key(|&index| judged.get(index).is_none_or(|one| one.address() != Some(first)));
    let mut used: Vec<(Judged, IpAddr)> = Vec::new();
    // The first connection exists, whether or not its address is in the list.
    let is_listed = judged.iter().any(|one| one.address() == Some(first) && one.is_usable());
    let mut left = rules.most.max(1) - u16::from(!is_listed);
    for index in order {
        let Some(one) = judged.get_mut(index).filter(|one| one.is_usable()) else { continue };
        let Some(address) = one.address() else { continue };
        let (is_first, speed) = (address == first, one.speed());
        let twin = used.iter().find(|(other, _)| one.shares_interface(other));
        one.verdict = match twin {
            Some((_, twin)) => Verdict::Not(Reason::SameInterface(*twin)),
            None if speed < needed && !is_first => {
                Verdict::Not(Reason::SpeedClass { speed, needed })
            }
            None if left == 0 => Verdict::Not(Reason::Limit(rules.most)),
            None => {
                let wanted =
                    if one.has_rss() { rules.per_rss_interface } else { rules.per_interface };
                // A slower link carries the first connection alone.
                let wanted = if speed < needed { 1 } else { wanted.max(1) };
                let count = wanted.min(left);
                left -= count;
                used.push((one.clone(), address));
                Verdict::Use(count)
            }
        };
    }
    judged
}

impl Judged {
    fn address(&self) -> Option<IpAddr> {
        self.offered.address
    }

    /// Whether both are addresses of one interface of the server. Where it does not number one of them, those
    /// that this machine reaches by one interface are taken to be.
    fn shares_interface(&self, other: &Judged) -> bool {
        let (own, others) = (self.offered.index, other.offered.index);
        if own != UNKNOWN_INDEX && others != UNKNOWN_INDEX {
            return own == others;
        }
        let by = |one: &Judged| one.route.as_ref().and_then(|route| route.interface.clone());
        by(self).is_some() && by(self) == by(other)
    }

    fn is_usable(&self) -> bool {
        matches!(self.verdict, Verdict::Use(_))
    }

    /// The slower of both ends, bits/s; a client's interface of unknown speed does not limit.
    pub fn speed(&self) -> u64 {
        let own = self.route.as_ref().and_then(|route| route.speed);
        self.offered.link_speed.min(own.unwrap_or(u64::MAX))
    }

    /// Whether both ends spread connections over CPUs; a client's interface of which nothing is known does.
    pub fn has_rss(&self) -> bool {
        let queues = self.route.as_ref().and_then(|route| route.receive_queues);
        self.offered.capabilities.contains(InterfaceCapabilities::RSS_CAPABLE)
            && queues.is_none_or(|queues| queues > 1)
    }
}

/// How this machine reaches an address, or why it does not.
fn reach(
    offered: &NetworkInterface,
    first: IpAddr,
    first_gateway: Option<IpAddr>,
    route_to: &impl Fn(IpAddr) -> Result<Route, String>,
) -> (Option<Route>, Option<Reason>) {
    let Some(address) = offered.address else { return (None, Some(Reason::Family)) };
    if address.is_loopback() && !first.is_loopback() {
        return (None, Some(Reason::Loopback));
    }
    let is_link_local = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    if is_link_local && address != first {
        return (None, Some(Reason::LinkLocal));
    }
    match route_to(address) {
        Err(error) => (None, Some(Reason::NoRoute(error))),
        Ok(route) => {
            let reason = match route.gateway {
                Some(gateway) if first_gateway.is_none() && address != first => {
                    Some(Reason::Subnet { gateway })
                }
                _ => None,
            };
            (Some(route), reason)
        }
    }
}

#[cfg(test)]
mod tests;

//! How this machine reaches an address: source address, interface, gateway, the interface's speed and queues.
//!
//! The source comes from the system itself: a UDP socket that is connected sends nothing, but has a route. Interface
//! and gateway come from the main routing table (Linux: /proc/net/route, ipv6_route; proc_net(5); of the thread's namespace), speed
//! and queues from /sys/class/net. Policy routing beyond the source address is not evaluated.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// A route to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// This machine's address on the route.
    pub source: IpAddr,
    /// The interface.
    pub interface: Option<String>,
    /// The gateway; `None` on the same link, and where it is unknown.
    pub gateway: Option<IpAddr>,
    /// Speed of the interface, bits/s.
    pub speed: Option<u64>,
    /// Receive queues of the interface: more than one spread connections over CPUs.
    pub receive_queues: Option<u32>,
}

/// The route to an address.
///
/// # Errors
/// There is none; the system's words.
pub fn route_to(address: IpAddr) -> Result<Route, String> {
    let source = source_to(address).map_err(|error| error.to_string())?;
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let hop = match (source == address, address) {
        // An address of this machine.
        (true, _) => Some(("lo".to_owned(), None)),
        (_, IpAddr::V4(address)) => hop_v4(&read("/proc/thread-self/net/route"), address)
            .map(|(interface, gateway)| (interface, gateway.map(IpAddr::V4))),
        (_, IpAddr::V6(address)) => hop_v6(&read("/proc/thread-self/net/ipv6_route"), address)
            .map(|(interface, gateway)| (interface, gateway.map(IpAddr::V6))),
    };
    let (interface, gateway) = hop.unzip();
    let (speed, receive_queues) = interface.as_deref().map_or((None, None), interface_state);
    Ok(Route { source, interface, gateway: gateway.flatten(), speed, receive_queues })
}

fn source_to(address: IpAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Any port: nothing is sent.
    socket.connect((address, 445))?;
    Ok(socket.local_addr()?.ip())
}

/// Speed in bits/s and receive queues of an interface.
fn interface_state(name: &str) -> (Option<u64>, Option<u32>) {
    // The name comes from the routing table; a path in it would leave the folder.
    if name.contains('/') || name.starts_with('.') {
        return (None, None);
    }
    let folder = format!("/sys/class/net/{name}");
    let speed = std::fs::read_to_string(format!("{folder}/speed")).ok();
    // Megabits per second; -1 if the driver does not know.
    let speed = speed.and_then(|text| text.trim().parse::<u64>().ok()).filter(|&speed| speed > 0);
    let queues = std::fs::read_dir(format!("{folder}/queues")).ok().map(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with("rx-")).count() as u32
    });
    (speed.map(|speed| speed.saturating_mul(1_000_000)), queues.filter(|&queues| queues > 0))
}

/// Interface and gateway of an IPv4 address in the text of /proc/net/route.
fn hop_v4(table: &str, address: Ipv4Addr) -> Option<(String, Option<Ipv4Addr>)> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (interface, destination) = (words.next()?, number_v4(words.next()?)?);
        let (gateway, flags) = (number_v4(words.next()?)?, words.next()?);
        let (metric, mask) = (words.nth(2)?.parse::<u32>().ok()?, number_v4(words.next()?)?);
        let flags = u32::from_str_radix(flags, 16).ok()?;
        let fits = u32::from(address) & mask == destination;
        (fits && flags & ROUTE_UP != 0).then_some((mask, metric, interface, gateway, flags))
    });
    let (_, _, interface, gateway, flags) =
        routes.max_by_key(|&(mask, metric, ..)| (mask, std::cmp::Reverse(metric)))?;
    let gateway = (flags & ROUTE_GATEWAY != 0).then(|| Ipv4Addr::from(gateway));
    Some((interface.to_owned(), gateway))
}

/// RTF_UP and RTF_GATEWAY (include/uapi/linux/route.h).
const ROUTE_UP: u32 = 0x1;
const ROUTE_GATEWAY: u32 = 0x2;

/// An address in the table: four bytes in network order, printed as a number of this machine.
fn number_v4(text: &str) -> Option<u32> {
    Some(u32::from_be(u32::from_str_radix(text, 16).ok()?))
}

/// Interface and gateway of an IPv6 address in the text of /proc/net/ipv6_route.
fn hop_v6(table: &str, address: Ipv6Addr) -> Option<(String, Option<Ipv6Addr>)> {
    let routes = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [destination, length, _, _, gateway, metric, _, _, flags, interface] = words.as_slice()
        else {
            return None;
        };
        let number = |text: &str| u128::from_str_radix(text, 16).ok();
        let length = u32::from_str_radix(length, 16).ok().filter(|&length| length <= 128)?;
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let flags = u32::from_str_radix(flags, 16).ok()?;
        let metric = u32::from_str_radix(metric, 16).ok()?;
        let fits = u128::from(address) & mask == number(destination)? && *interface != "lo";
        (fits && flags & ROUTE_UP != 0).then_some((
            length,
            metric,
            *interface,
            number(gateway)?,
            flags,
        ))
    });
    let (_, _, interface, gateway, flags) =
        routes.max_by_key(|&(length, metric, ..)| (length, std::cmp::Reverse(metric)))?;
    let gateway = (flags & ROUTE_GATEWAY != 0).then(|| Ipv6Addr::from(gateway));
    Some((interface.to_owned(), gateway))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\tFE00000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
eth1\t0000010A\t00000000\t0001\t0\t0\t101\t0000FFFF\t0\t0\t0
eth2\t0000010A\t00000000\t0001\t0\t0\t50\t0000FFFF\t0\t0\t0
eth3\tbroken
";

    #[test]
    fn the_longest_prefix_and_the_least_metric_win() {
        if cfg!(target_endian = "big") {
            return;
        }
        let hop = |address: [u8; 4]| hop_v4(TABLE, Ipv4Addr::from(address)).unwrap();
        assert_eq!(hop([10, 0, 0, 7]), ("eth0".into(), None));
        assert_eq!(hop([10, 1, 2, 3]), ("eth2".into(), None));
        assert_eq!(hop([8, 8, 8, 8]), ("eth0".into(), Some(Ipv4Addr::new(10, 0, 0, 254))));
        assert_eq!(hop_v4("", Ipv4Addr::LOCALHOST), None);
    }

    #[test]
    fn ipv6_routes_are_read() {
        let table = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth1
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";
        let hop = |address: &str| hop_v6(table, address.parse().unwrap()).unwrap();
        assert_eq!(hop("fd00::7"), ("eth0".into(), None));
        assert_eq!(hop("2001:db8::1"), ("eth1".into(), Some("fe80::1".parse().unwrap())));
    }

    #[test]
    fn this_machine_reaches_itself() {
        let route = route_to(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert_eq!((route.source, route.gateway), (Ipv4Addr::LOCALHOST.into(), None));
        assert_eq!(route.interface.as_deref(), Some("lo"));
    }
}

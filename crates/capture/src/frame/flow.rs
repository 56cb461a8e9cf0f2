//! The key of a TCP connection: both endpoints in one order, whichever way a segment goes.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::TcpSegment;

/// Two endpoints, the lower (by address, then port) first.
///
/// IPv4 addresses are held in their IPv6-mapped form (`::ffff:a.b.c.d`), which no packet carries
/// as such.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    lower: [u64; 2],
    higher: [u64; 2],
    ports: u32,
}

impl FlowKey {
    /// The segment's connection, and whether the segment goes from its lower to its higher
    /// endpoint.
    #[inline]
    pub fn of(segment: &TcpSegment<'_>) -> (FlowKey, bool) {
        let source = (packed(segment.source), segment.source_port);
        let destination = (packed(segment.destination), segment.destination_port);
        let forward = source <= destination;
        let (lower, higher) = match forward {
            true => (source, destination),
            false => (destination, source),
        };
        let key = FlowKey {
            lower: lower.0,
            higher: higher.0,
            ports: u32::from(lower.1) << 16 | u32::from(higher.1),
        };
        (key, forward)
    }

    /// The lower endpoint.
    pub fn lower(&self) -> SocketAddr {
        SocketAddr::new(unpacked(self.lower), (self.ports >> 16) as u16)
    }

    /// The higher endpoint.
    pub fn higher(&self) -> SocketAddr {
        SocketAddr::new(unpacked(self.higher), self.ports as u16)
    }

    /// A number below `shards`, the same in every run, to spread connections over workers.
    #[inline]
    pub fn shard(&self, shards: usize) -> usize {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = u64::from(self.ports);
        for word in [self.lower, self.higher].as_flattened() {
            // The high half of a product depends on all bits of both factors.
            let wide = u128::from(mixed ^ word) * u128::from(ODD);
            mixed = (wide >> 64) as u64 ^ wide as u64;
        }
        ((u128::from(mixed) * shards as u128) >> 64) as usize
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Word by word: a derived hash would go through byte slices and their lengths.
        for word in [self.lower, self.higher].as_flattened() {
            state.write_u64(*word);
        }
        state.write_u32(self.ports);
    }
}

impl std::fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} <> {}", self.lower(), self.higher())
    }
}

#[inline]
fn packed(address: IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(v4) => [0, 0xffff_0000_0000 | u64::from(v4.to_bits())],
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            [(bits >> 64) as u64, bits as u64]
        }
    }
}

fn unpacked(words: [u64; 2]) -> IpAddr {
    match words {
        [0, low] if low >> 32 == 0xffff => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
        [high, low] => IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))),
    }
}

//! What identifies the TCP connection of a segment: both endpoints, either in the packet's order or
//! in an order that does not depend on the direction.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use super::{Address, TcpSegment, UdpDatagram};

/// A multiplier without a bit pattern, for mixing words (the golden ratio's fraction).
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// One direction of a connection: the two endpoints as a packet names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    source: Address,
    destination: Address,
    ports: u32,
}

impl Direction {
    /// The direction of a segment.
    #[inline]
    pub fn from_segment(segment: &TcpSegment<'_>) -> Direction {
        Direction {
            source: segment.source,
            destination: segment.destination,
            ports: u32::from(segment.source_port) << 16 | u32::from(segment.destination_port),
        }
    }

    /// The direction of a datagram.
    pub fn of_datagram(datagram: &UdpDatagram<'_>) -> Direction {
        let UdpDatagram { source, destination, source_port, destination_port, .. } = *datagram;
        let ports = u32::from(source_port) << 16 | u32::from(destination_port);
        Direction { source, destination, ports }
    }

    /// The direction between two endpoints.
    pub fn from_ends(source: (Address, u16), destination: (Address, u16)) -> Direction {
        Direction {
            source: source.0,
            destination: destination.0,
            ports: u32::from(source.1) << 16 | u32::from(destination.1),
        }
    }

    /// The opposite direction.
    pub fn back(self) -> Direction {
        let Direction { source, destination, ports } = self;
        Direction { source: destination, destination: source, ports: ports.rotate_left(16) }
    }

    /// A number below 2^`bits` that is cheap rather than evenly distributed, for a small table.
    #[inline]
    pub fn bucket(&self, bits: u32) -> usize {
        let ([s1, s0], [d1, d0]) = (self.source.0, self.destination.0);
        let mixed = s1 ^ s0 ^ (d1 ^ d0).rotate_left(32) ^ u64::from(self.ports).rotate_left(16);
        (mixed.wrapping_mul(ODD) >> (u64::BITS - bits)) as usize
    }

    /// The connection, and whether this direction runs from its lower to its higher endpoint.
    pub fn flow(&self) -> (FlowKey, bool) {
        let source = (self.source, (self.ports >> 16) as u16);
        let destination = (self.destination, self.ports as u16);
        let forward = source <= destination;
        let (lower, higher) = if forward { (source, destination) } else { (destination, source) };
        let ports = u32::from(lower.1) << 16 | u32::from(higher.1);
        (FlowKey(Direction { source: lower.0, destination: higher.0, ports }), forward)
    }
}

/// Two endpoints: the direction from the lower (by address, then port) to the higher.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FlowKey(Direction);

impl FlowKey {
    /// The segment's connection, and whether the segment goes from its lower to its higher
    /// endpoint.
    #[inline]
    pub fn from_segment(segment: &TcpSegment<'_>) -> (FlowKey, bool) {
        Direction::from_segment(segment).flow()
    }

    /// The direction from the lower to the higher endpoint.
    pub fn forward(&self) -> Direction {
        self.0
    }

    /// The lower endpoint.
    pub fn lower(&self) -> SocketAddr {
        SocketAddr::new(self.0.source.ip(), (self.0.ports >> 16) as u16)
    }

    /// The higher endpoint.
    pub fn higher(&self) -> SocketAddr {
        SocketAddr::new(self.0.destination.ip(), self.0.ports as u16)
    }

    /// A number below `shards`, the same in every run, to spread connections over workers.
    #[inline]
    pub fn shard(&self, shards: usize) -> usize {
        let mut mixed = u64::from(self.0.ports);
        for word in [self.0.source.0, self.0.destination.0].as_flattened() {
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
        for word in [self.0.source.0, self.0.destination.0].as_flattened() {
            state.write_u64(*word);
        }
        state.write_u32(self.0.ports);
    }
}

impl std::fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} <> {}", self.lower(), self.higher())
    }
}

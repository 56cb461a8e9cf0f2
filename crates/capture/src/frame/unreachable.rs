//! ICMP's reports that a packet cannot be delivered: RFC 792, RFC 1191 (the path's MTU), RFC 4443.

use super::ip::{self, TCP, UDP};
use super::{Address, Direction, FlowKey, NotTcp, be16, byte};

/// Bytes of ICMP's header, behind which the packet begins.
const HEADER_BYTES: usize = 8;

/// Where a frame's ICMP message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Icmp {
    source: Address,
    at: usize,
    is_v6: bool,
}

/// A report that a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The address of the reporter: a router, or the receiver itself.
    pub source: Address,
    /// Why, in the RFC's words.
    pub reason: &'static str,
    /// The largest packet that passes, if the packet was too large; 0 if the router does not say.
    pub largest_bytes: Option<u64>,
    /// The packet.
    pub packet: Undelivered,
}

/// What the report quotes of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// Its sender.
    pub source: Address,
    /// The receiver that it did not reach.
    pub destination: Address,
    /// Its ports.
    pub source_port: u16,
    /// The port that it was sent to.
    pub destination_port: u16,
    /// Whether it is TCP; otherwise UDP.
    pub is_tcp: bool,
}

/// An ICMP message at `at`, if it is a report.
pub(super) fn find(bytes: &[u8], at: usize, source: Address, is_v6: bool) -> NotTcp {
    match (is_v6, byte(bytes, at)) {
        (false, Ok(3)) | (true, Ok(1 | 2)) => NotTcp::Icmp(Icmp { source, at, is_v6 }),
        _ => NotTcp::OtherProtocol,
    }
}

impl Icmp {
    /// What it reports; none if it was cut, or the packet is neither TCP nor UDP.
    pub fn unreachable(&self, bytes: &[u8]) -> Option<Unreachable> {
        let Icmp { source, at, is_v6 } = *self;
        let (kind, code) = (byte(bytes, at).ok()?, byte(bytes, at + 1).ok()?);
        let largest = |at| be16(bytes, at).ok().map(u64::from);
        let (reason, largest_bytes) = match (is_v6, kind, code) {
            (true, 2, _) => ("packet too big", largest(at + 6)),
            (true, _, 0) => ("no route", None),
            (true, _, 1) => ("administratively prohibited", None),
            (true, _, 3) => ("address unreachable", None),
            (true, _, 4) => ("port unreachable", None),
            (false, _, 0) => ("network unreachable", None),
            (false, _, 1) => ("host unreachable", None),
            (false, _, 3) => ("port unreachable", None),
            (false, _, 4) => ("fragmentation needed", largest(at + 6)),
            (false, _, 9 | 10 | 13) => ("administratively prohibited", None),
            _ => ("unreachable", None),
        };
        let quoted = at + HEADER_BYTES;
        let header = ip::header(bytes, quoted, u32::MAX).ok()?;
        let is_tcp = match header.protocol {
            TCP => true,
            UDP => false,
            _ => return None,
        };
        let packet = Undelivered {
            source: header.source,
            destination: header.destination,
            source_port: be16(bytes, header.start).ok()?,
            destination_port: be16(bytes, header.start + 2).ok()?,
            is_tcp,
        };
        Some(Unreachable { source, reason, largest_bytes, packet })
    }
}

impl Undelivered {
    /// The connection or exchange that it belongs to.
    pub fn flow(&self) -> FlowKey {
        let source = (self.source, self.source_port);
        Direction::from_ends(source, (self.destination, self.destination_port)).flow().0
    }
}

impl Unreachable {
    /// The shard that follows the packet's connection: datagrams are followed by the first.
    pub fn flow_shard(&self, shards: usize) -> usize {
        if self.packet.is_tcp { self.packet.flow().shard(shards) } else { 0 }
    }
}

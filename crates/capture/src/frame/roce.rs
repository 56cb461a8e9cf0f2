//! RoCE v1: InfiniBand's packets directly in Ethernet, EtherType 0x8915.
//!
//! Owns the Global Route Header, which has the form of an IPv6 header; the rest is as in RoCE v2's
//! datagrams. InfiniBand Architecture Specification volume 1 section 8.3 and annex A16.

use super::{Address, NotTcp, UdpDatagram, be16, byte};

/// The header's length, and the number of InfiniBand's transport in its NxtHdr.
const HEADER_BYTES: usize = 40;
const TRANSPORT: u8 = 0x1b;
/// The port of RoCE v2, so that both are read alike; there is no source port.
const PORT: u16 = 4791;

/// Where a frame's InfiniBand packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Roce {
    source: Address,
    destination: Address,
    at: usize,
    length: usize,
}

/// Finds the packet behind a route header at `at`.
pub(super) fn find(bytes: &[u8], at: usize) -> NotTcp {
    read(bytes, at).unwrap_or_else(|reason| reason)
}

fn read(bytes: &[u8], at: usize) -> Result<NotTcp, NotTcp> {
    if byte(bytes, at)? >> 4 != 6 || byte(bytes, at + 6)? != TRANSPORT {
        return Err(NotTcp::OtherProtocol);
    }
    let length = usize::from(be16(bytes, at + 4)?);
    let address = |at: usize| {
        let found = bytes.get(at..).and_then(<[u8]>::first_chunk::<16>);
        found.map(|bytes| Address::v6(*bytes)).ok_or(NotTcp::Truncated)
    };
    let (source, destination) = (address(at + 8)?, address(at + 24)?);
    Ok(NotTcp::Roce(Roce { source, destination, at: at + HEADER_BYTES, length }))
}

impl Roce {
    /// The packet as RoCE v2 would have it in a datagram.
    pub fn datagram<'a>(&self, bytes: &'a [u8]) -> UdpDatagram<'a> {
        let payload = bytes.get(self.at..).unwrap_or_default();
        UdpDatagram {
            source: self.source,
            destination: self.destination,
            source_port: PORT,
            destination_port: PORT,
            payload: payload.get(..self.length).unwrap_or(payload),
            payload_len: self.length as u32,
        }
    }
}

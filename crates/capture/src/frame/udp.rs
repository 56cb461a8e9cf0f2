//! UDP (RFC 768).

use super::{Address, NotTcp, be16};

/// Ports to which tunnels send: L2TP, GTP-U, LISP, IPsec, GRE, VXLAN (IANA's, GPE, and Linux' own),
/// CAPWAP, Geneve, MPLS.
const TUNNELS: [u16; 11] = [1701, 2152, 4341, 4500, 4754, 4789, 4790, 8472, 5247, 6081, 6635];
/// The port of one end of a tunnel.
const TEREDO: u16 = 3544;

/// Where a frame's UDP header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Udp {
    pub(super) source: Address,
    pub(super) destination: Address,
    pub(super) at: usize,
}

/// A datagram, of whose payload perhaps the start only was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// The sender's address.
    pub source: Address,
    /// The receiver's address.
    pub destination: Address,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The payload as captured, without the frame's padding.
    pub payload: &'a [u8],
    /// The payload's bytes on the wire by the UDP length; never less than `payload.len()`.
    pub payload_len: u32,
}

impl UdpDatagram<'_> {
    /// Whether it carries other packets, as its port says. Those that can be read were unwrapped
    /// before (`tunnel`), so this one stays closed.
    pub fn is_tunnel(&self) -> bool {
        let ports = [self.source_port, self.destination_port];
        TUNNELS.contains(&self.destination_port) || ports.contains(&TEREDO)
    }
}

impl Udp {
    /// The datagram, from the frame's bytes.
    pub fn datagram<'a>(&self, bytes: &'a [u8]) -> Result<UdpDatagram<'a>, NotTcp> {
        let Udp { source, destination, at } = *self;
        let length = usize::from(be16(bytes, at + 4)?);
        let payload = bytes.get(at + 8..).ok_or(NotTcp::Truncated)?;
        let length = length.checked_sub(8).ok_or(NotTcp::Malformed)?;
        Ok(UdpDatagram {
            source,
            destination,
            source_port: be16(bytes, at)?,
            destination_port: be16(bytes, at + 2)?,
            payload: payload.get(..length).unwrap_or(payload),
            payload_len: length as u32,
        })
    }
}

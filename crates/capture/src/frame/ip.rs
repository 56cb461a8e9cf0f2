//! IPv4 and IPv6 down to TCP, UDP or the packet inside a tunnel.
//!
//! Owns where the packet ends: its own length, not the frame's, because Ethernet pads; the
//! frame's where the length is 0, as segmentation offload and jumbograms leave it. RFC 791,
//! RFC 8200, RFC 2675, RFC 4302. It does not own what a tunnel's packet contains (`tunnel`).

use super::fragment::Fragment;
use super::tcp::{Packet, TcpSegment};
use super::{Address, NotTcp, Udp, be16, byte, unreachable};

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
pub(super) const IPV4_IN_IP: u8 = 4;
pub(super) const IPV6_IN_IP: u8 = 41;
pub(super) const GRE: u8 = 47;
pub(super) const ESP: u8 = 50;
pub(super) const AUTHENTICATION: u8 = 51;
pub(super) const ETHERNET_IN_IP: u8 = 97;
pub(super) const COMPRESSED: u8 = 108;
pub(super) const L2TP: u8 = 115;
pub(super) const MPLS_IN_IP: u8 = 137;
/// Whole packets in packets.
const TUNNELS: [u8; 8] =
    [IPV4_IN_IP, IPV6_IN_IP, GRE, ESP, ETHERNET_IN_IP, COMPRESSED, L2TP, MPLS_IN_IP];
/// IPv6's header of a fragment.
pub(super) const FRAGMENT: u8 = 44;
const EXTENSIONS_MAX: usize = 16;

/// What the headers of an IP packet say.
pub(super) struct Header {
    pub(super) source: Address,
    pub(super) destination: Address,
    ttl: u8,
    /// The protocol behind the extension headers.
    pub(super) protocol: u8,
    /// Where it begins.
    pub(super) start: usize,
    /// Where the packet ends on the wire.
    end: usize,
}

/// A raw IP header contains its version.
pub(super) fn any(bytes: &[u8], at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    match byte(bytes, at)? >> 4 {
        4 => v4(bytes, at, original),
        6 => v6(bytes, at, original),
        _ => Err(NotTcp::OtherProtocol),
    }
}

// Called for every packet, and its result is large: inlined so that the result stays in registers.
#[inline(always)]
pub(super) fn v4(bytes: &[u8], at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    let header = bytes.get(at..).and_then(<[u8]>::first_chunk::<20>);
    let Some(
        &[version, _, l1, l0, _, _, f1, f0, ttl, protocol, _, _, s3, s2, s1, s0, d3, d2, d1, d0],
    ) = header
    else {
        return Err(NotTcp::Truncated);
    };
    let header_len = usize::from(version & 15) * 4;
    if version >> 4 != 4 || header_len < 20 {
        return Err(NotTcp::Malformed);
    }
    // More Fragments or an offset.
    if protocol != TCP || u16::from_be_bytes([f1, f0]) & 0x3fff != 0 {
        return other(bytes, at, original);
    }
    let length = match usize::from(u16::from_be_bytes([l1, l0])) {
        0 => (original as usize).saturating_sub(at),
        length => length,
    };
    Packet {
        source: Address::v4([s3, s2, s1, s0]),
        destination: Address::v4([d3, d2, d1, d0]),
        ttl,
        start: at + header_len,
        length: length.checked_sub(header_len).ok_or(NotTcp::Malformed)?,
    }
    .tcp(bytes)
}

#[inline(always)]
pub(super) fn v6(bytes: &[u8], at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    let header = bytes.get(at..).and_then(<[u8]>::first_chunk::<40>);
    let Some(header) = header else {
        return Err(NotTcp::Truncated);
    };
    let &[version, _, _, _, l1, l0, next, ttl, ref addresses @ ..] = header;
    if version >> 4 != 6 {
        return Err(NotTcp::Malformed);
    }
    if next != TCP {
        return other(bytes, at, original);
    }
    let start = at + 40;
    let end = match usize::from(u16::from_be_bytes([l1, l0])) {
        0 => original as usize,
        length => start + length,
    };
    let (Some(source), Some(destination)) =
        (addresses.first_chunk::<16>(), addresses.last_chunk::<16>())
    else {
        return Err(NotTcp::Truncated);
    };
    Packet {
        source: Address::v6(*source),
        destination: Address::v6(*destination),
        ttl,
        start,
        length: end.checked_sub(start).ok_or(NotTcp::Malformed)?,
    }
    .tcp(bytes)
}

/// A packet that is not TCP behind a plain header.
#[cold]
fn other(bytes: &[u8], at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    let Header { source, destination, ttl, protocol, start, end } = header(bytes, at, original)?;
    match protocol {
        TCP => {
            let length = end.checked_sub(start).ok_or(NotTcp::Malformed)?;
            Packet { source, destination, ttl, start, length }.tcp(bytes)
        }
        UDP => Err(NotTcp::Udp(Udp { source, destination, at: start })),
        ICMP | ICMP_V6 => Err(unreachable::find(bytes, start, source, protocol == ICMP_V6)),
        protocol if TUNNELS.contains(&protocol) => Err(NotTcp::Tunnel),
        _ => Err(NotTcp::OtherProtocol),
    }
}

/// The header at `at`, and the extension headers behind it.
pub(super) fn header(bytes: &[u8], at: usize, original: u32) -> Result<Header, NotTcp> {
    let version = byte(bytes, at)?;
    let rest = bytes.get(at..).unwrap_or_default();
    let original = original as usize;
    match version >> 4 {
        4 => {
            let Some(&[_, _, l1, l0, _, _, f1, f0, ttl, next, _, _, ref addresses @ ..]) =
                rest.first_chunk::<20>()
            else {
                return Err(NotTcp::Truncated);
            };
            let header_len = usize::from(version & 15) * 4;
            let (Some(source), Some(destination)) =
                (addresses.first_chunk(), addresses.last_chunk())
            else {
                return Err(NotTcp::Truncated);
            };
            if header_len < 20 {
                return Err(NotTcp::Malformed);
            }
            let can_hold_tcp =
                [TCP, UDP, AUTHENTICATION].contains(&next) || TUNNELS.contains(&next);
            if can_hold_tcp && u16::from_be_bytes([f1, f0]) & 0x3fff != 0 {
                return Err(NotTcp::Fragment(Fragment { at }));
            }
            let end = match usize::from(u16::from_be_bytes([l1, l0])) {
                0 => original.max(at),
                length => at + length,
            };
            let (source, destination) = (Address::v4(*source), Address::v4(*destination));
            let start = at + header_len;
            // Other extension headers are of IPv6 only.
            let (protocol, start) = match next {
                AUTHENTICATION => extensions(bytes, next, start, at)?,
                next => (next, start),
            };
            Ok(Header { source, destination, ttl, protocol, start, end })
        }
        6 => {
            let Some(&[_, _, _, _, l1, l0, next, ttl, ref addresses @ ..]) =
                rest.first_chunk::<40>()
            else {
                return Err(NotTcp::Truncated);
            };
            let (Some(source), Some(destination)) =
                (addresses.first_chunk(), addresses.last_chunk())
            else {
                return Err(NotTcp::Truncated);
            };
            let end = match usize::from(u16::from_be_bytes([l1, l0])) {
                0 => original,
                length => at + 40 + length,
            };
            let (source, destination) = (Address::v6(*source), Address::v6(*destination));
            let (protocol, start) = extensions(bytes, next, at + 40, at)?;
            Ok(Header { source, destination, ttl, protocol, start, end })
        }
        _ => Err(NotTcp::Malformed),
    }
}

/// Steps over the extension headers of the packet at `packet_at`; which protocol follows, and where.
fn extensions(
    bytes: &[u8],
    mut next: u8,
    mut at: usize,
    packet_at: usize,
) -> Result<(u8, usize), NotTcp> {
    for _ in 0..EXTENSIONS_MAX {
        let length = match next {
            // Hop-by-hop, routing, destination, mobility, host identity, shim6: in units of eight
            // bytes, the first not counted.
            0 | 43 | 60 | 135 | 139 | 140 => 8 + 8 * usize::from(byte(bytes, at + 1)?),
            FRAGMENT => {
                // An offset or More Fragments; an atomic fragment (RFC 6946) is whole.
                if be16(bytes, at + 2)? & 0xfff9 != 0 {
                    return Err(NotTcp::Fragment(Fragment { at: packet_at }));
                }
                8
            }
            // Authentication: in units of four bytes, the first two not counted.
            AUTHENTICATION => 8 + 4 * usize::from(byte(bytes, at + 1)?),
            protocol => return Ok((protocol, at)),
        };
        next = byte(bytes, at)?;
        at += length;
    }
    Err(NotTcp::TooDeep)
}

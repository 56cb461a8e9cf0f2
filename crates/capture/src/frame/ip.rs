//! IPv4 and IPv6 down to TCP, or UDP.
//!
//! Owns where the packet ends: its own length, not the frame's, because Ethernet pads; the
//! frame's where the length is 0, as segmentation offload and jumbograms leave it. RFC 791,
//! RFC 8200, RFC 2675.

use super::tcp::{Packet, TcpSegment};
use super::{Address, NotTcp, Udp, byte};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv4, IPv6, GRE, ESP: whole packets in packets.
const TUNNELS: [u8; 4] = [4, 41, 47, 50];
const EXTENSIONS_MAX: usize = 16;

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
    let (source, destination) = (Address::v4([s3, s2, s1, s0]), Address::v4([d3, d2, d1, d0]));
    if protocol != TCP {
        let is_first = u16::from_be_bytes([f1, f0]) & 0x1fff == 0;
        return Err(match protocol {
            UDP if is_first => NotTcp::Udp(Udp { source, destination, at: at + header_len }),
            protocol if TUNNELS.contains(&protocol) => NotTcp::Tunnel,
            _ => NotTcp::OtherProtocol,
        });
    }
    // More Fragments or an offset.
    if u16::from_be_bytes([f1, f0]) & 0x3fff != 0 {
        return Err(NotTcp::Fragment);
    }
    let length = match usize::from(u16::from_be_bytes([l1, l0])) {
        0 => (original as usize).saturating_sub(at),
        length => length,
    };
    Packet {
        source,
        destination,
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
    let start = at + 40;
    let end = match usize::from(u16::from_be_bytes([l1, l0])) {
        0 => original as usize,
        length => start + length,
    };
    let (protocol, start) = match next {
        TCP => (TCP, start),
        next => extensions(bytes, next, start)?,
    };
    let (Some(source), Some(destination)) =
        (addresses.first_chunk::<16>(), addresses.last_chunk::<16>())
    else {
        return Err(NotTcp::Truncated);
    };
    let (source, destination) = (Address::v6(*source), Address::v6(*destination));
    if protocol != TCP {
        return Err(NotTcp::Udp(Udp { source, destination, at: start }));
    }
    Packet {
        source,
        destination,
        ttl,
        start,
        length: end.checked_sub(start).ok_or(NotTcp::Malformed)?,
    }
    .tcp(bytes)
}

/// Steps over the extension headers; whether TCP or UDP follows, and where.
fn extensions(bytes: &[u8], mut next: u8, mut at: usize) -> Result<(u8, usize), NotTcp> {
    for _ in 0..EXTENSIONS_MAX {
        let length = match next {
            TCP | UDP => return Ok((next, at)),
            // Hop-by-hop, routing, destination, mobility, host identity, shim6: in units of eight
            // bytes, the first not counted.
            0 | 43 | 60 | 135 | 139 | 140 => 8 + 8 * usize::from(byte(bytes, at + 1)?),
            44 => {
                // An offset or More Fragments; an atomic fragment (RFC 6946) is whole.
                if super::be16(bytes, at + 2)? & 0xfff9 != 0 {
                    return Err(NotTcp::Fragment);
                }
                8
            }
            // Authentication: in units of four bytes, the first two not counted.
            51 => 8 + 4 * usize::from(byte(bytes, at + 1)?),
            next if TUNNELS.contains(&next) => return Err(NotTcp::Tunnel),
            _ => return Err(NotTcp::OtherProtocol),
        };
        next = byte(bytes, at)?;
        at += length;
    }
    Err(NotTcp::TooDeep)
}

//! Packets in packets: what IP protocols and UDP ports carry whole packets in.
//!
//! Owns the headers of tunnels, one step at a time. A datagram to a tunnel's port is one only if its
//! header fits, because a port says little. RFC 2003, RFC 2784, RFC 2890, RFC 2637, RFC 3378,
//! RFC 7348, RFC 8926, 3GPP TS 29.281, draft-foschiano-erspan, RFC 2661, RFC 4380, RFC 5415,
//! RFC 7510, RFC 8086, RFC 9300; TZSP as MikroTik and Wireshark document it.

use super::ip;
use super::layers::{Layer, Layers};
use super::{Next, NotTcp, Step, Udp, be16, byte};

const ERSPAN: u16 = 0x88be;
const ERSPAN3: u16 = 0x22eb;
/// Cisco's redirection of web traffic: GRE with four bytes more.
const WCCP: u16 = 0x883e;
const PPP: u16 = 0x880b;
const ETHERNET: u16 = 0x6558;
/// The smallest EtherType.
const ETHERTYPE_MIN: u16 = 0x0600;

/// What is in an IP packet whose protocol is a tunnel.
pub(super) fn in_ip(bytes: &[u8], at: usize, original: u32, layers: &mut Layers) -> Step {
    let header = ip::header(bytes, at, original)?;
    let start = header.start;
    match header.protocol {
        ip::IPV4_IN_IP => {
            layers.add(Layer::IpInIp);
            Ok((Next::Ipv4, start))
        }
        ip::IPV6_IN_IP => {
            layers.add(Layer::IpInIp);
            Ok((Next::Ipv6, start))
        }
        ip::GRE => Ok((Next::Gre, start)),
        ip::ETHERNET_IN_IP => match byte(bytes, start)? >> 4 {
            3 => {
                layers.add(Layer::EtherIp);
                Ok((Next::Ethernet, start + 2))
            }
            _ => Err(NotTcp::Tunnel),
        },
        ip::MPLS_IN_IP => Ok((Next::Mpls, start)),
        // Encrypted, compressed, or with a cookie of unknown length.
        _ => Err(NotTcp::Tunnel),
    }
}

/// GRE with its optional fields, and what mirrors send in it.
pub(super) fn gre(bytes: &[u8], at: usize, layers: &mut Layers) -> Step {
    let (flags, kind) = (be16(bytes, at)?, be16(bytes, at + 2)?);
    let [checksum, routing, key, sequence, acknowledgement] =
        [0x8000, 0x4000, 0x2000, 0x1000, 0x0080].map(|flag| flags & flag != 0);
    let version = flags & 7;
    if routing || version > 1 {
        return Err(NotTcp::Tunnel);
    }
    let fields = [checksum, key, sequence, version == 1 && acknowledgement];
    let start = at + 4 + 4 * fields.iter().filter(|is_there| **is_there).count();
    if version == 1 {
        // Without a sequence number there is only an acknowledgement.
        if !sequence {
            return Err(NotTcp::OtherProtocol);
        }
        layers.add(Layer::Gre);
        return Ok((Next::Ppp, start));
    }
    match kind {
        // Type I has neither a sequence number nor a header.
        ERSPAN if !sequence => {
            layers.add(Layer::Erspan1);
            Ok((Next::Ethernet, start))
        }
        ERSPAN if byte(bytes, start)? >> 4 == 1 => {
            layers.add(Layer::Erspan2);
            Ok((Next::Ethernet, start + 8))
        }
        ERSPAN | ERSPAN3 if byte(bytes, start)? >> 4 == 2 => {
            layers.add(Layer::Erspan3);
            let last = be16(bytes, start + 10)?;
            // A header of the platform follows.
            let inner = start + if last & 1 != 0 { 20 } else { 12 };
            Ok((if last >> 10 & 0x1f == 2 { Next::Ip } else { Next::Ethernet }, inner))
        }
        ERSPAN | ERSPAN3 => Err(NotTcp::Tunnel),
        WCCP => {
            layers.add(Layer::Gre);
            // Version 2 has a header of its own in front of the packet.
            Ok((Next::Ipv4, start + if byte(bytes, start)? >> 4 == 4 { 0 } else { 4 }))
        }
        PPP => {
            layers.add(Layer::Gre);
            Ok((Next::Ppp, start))
        }
        kind if kind < ETHERTYPE_MIN => Err(NotTcp::OtherProtocol),
        kind => {
            layers.add(Layer::Gre);
            Ok((Next::EtherType(kind), start))
        }
    }
}

/// What is in a datagram whose port and header are those of a tunnel.
pub(super) fn in_udp(bytes: &[u8], udp: &Udp, layers: &mut Layers) -> Option<(Next, usize)> {
    let (source, destination) = (be16(bytes, udp.at).ok()?, be16(bytes, udp.at + 2).ok()?);
    let at = udp.at + 8;
    let (layer, next, at) = match destination {
        4789 | 8472 => (Layer::Vxlan, Next::Ethernet, vxlan(bytes, at)?),
        4790 => vxlan_gpe(bytes, at)?,
        6081 => geneve(bytes, at)?,
        2152 => (Layer::Gtp, Next::Ip, gtp(bytes, at)?),
        37008 => tzsp(bytes, at)?,
        // GRE and MPLS count themselves.
        4754 => return Some((Next::Gre, at)),
        6635 => return Some((Next::Mpls, at)),
        4341 => (Layer::Lisp, Next::Ip, at + 8),
        1701 => (Layer::L2tp, Next::Ppp, l2tp(bytes, at)?),
        5247 => capwap(bytes, at)?,
        3544 => (Layer::Teredo, Next::Ipv6, teredo(bytes, at)?),
        _ if source == 3544 => (Layer::Teredo, Next::Ipv6, teredo(bytes, at)?),
        _ => return None,
    };
    layers.add(layer);
    Some((next, at))
}

/// The flag of a valid network identifier must be set.
fn vxlan(bytes: &[u8], at: usize) -> Option<usize> {
    (bytes.get(at)? & 0x08 != 0).then_some(at + 8)
}

fn vxlan_gpe(bytes: &[u8], at: usize) -> Option<(Layer, Next, usize)> {
    let &[flags, _, _, protocol] = bytes.get(at..)?.first_chunk()?;
    let next = match protocol {
        _ if flags & 0x04 == 0 => Next::Ethernet,
        1 => Next::Ipv4,
        2 => Next::Ipv6,
        3 => Next::Ethernet,
        4 => Next::Nsh,
        5 => Next::Mpls,
        _ => return None,
    };
    Some((Layer::Vxlan, next, at + 8))
}

/// Version 0, options of a length in four bytes, an EtherType.
fn geneve(bytes: &[u8], at: usize) -> Option<(Layer, Next, usize)> {
    let &[first, _, k1, k0] = bytes.get(at..)?.first_chunk()?;
    if first >> 6 != 0 {
        return None;
    }
    let next = match u16::from_be_bytes([k1, k0]) {
        ETHERNET => Next::Ethernet,
        kind => Next::EtherType(kind),
    };
    Some((Layer::Geneve, next, at + 8 + 4 * usize::from(first & 0x3f)))
}

/// Version 1, a user's packet; extension headers in units of four bytes.
fn gtp(bytes: &[u8], at: usize) -> Option<usize> {
    const EXTENSIONS_MAX: usize = 8;
    let &[flags, kind] = bytes.get(at..)?.first_chunk()?;
    if flags >> 4 != 0x03 || kind != 0xff {
        return None;
    }
    if flags & 0x07 == 0 {
        return Some(at + 8);
    }
    let mut next = if flags & 0x04 != 0 { *bytes.get(at + 11)? } else { 0 };
    let mut at = at + 12;
    for _ in 0..EXTENSIONS_MAX {
        if next == 0 {
            return Some(at);
        }
        let length = 4 * usize::from(*bytes.get(at)?);
        at += length;
        next = *bytes.get(at.checked_sub(1)?)?;
        if length == 0 {
            return None;
        }
    }
    None
}

/// Version 1, a received or sent packet, its link, and tagged fields up to the one that ends them.
fn tzsp(bytes: &[u8], at: usize) -> Option<(Layer, Next, usize)> {
    const FIELDS_MAX: usize = 64;
    let &[version, kind, l1, l0] = bytes.get(at..)?.first_chunk()?;
    let next = match u16::from_be_bytes([l1, l0]) {
        1 => Next::Ethernet,
        18 => Next::Wireless,
        _ => return None,
    };
    if version != 1 || kind > 1 {
        return None;
    }
    let mut at = at + 4;
    for _ in 0..FIELDS_MAX {
        match bytes.get(at)? {
            0 => at += 1,
            1 => return Some((Layer::Tzsp, next, at + 1)),
            _ => at += 2 + usize::from(*bytes.get(at + 1)?),
        }
    }
    None
}

/// Version 2, a data message, with the optional fields that its flags announce.
fn l2tp(bytes: &[u8], at: usize) -> Option<usize> {
    let flags = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    if flags & 0x8000 != 0 || flags & 0x000f != 2 {
        return None;
    }
    let mut start = at + 6;
    for (flag, length) in [(0x4000, 2), (0x0800, 4)] {
        start += if flags & flag != 0 { length } else { 0 };
    }
    if flags & 0x0200 == 0 {
        return Some(start);
    }
    let padding = u16::from_be_bytes(*bytes.get(start..)?.first_chunk()?);
    Some(start + 2 + usize::from(padding))
}

/// Not encrypted and not fragmented; 802.3 or 802.11 in it.
fn capwap(bytes: &[u8], at: usize) -> Option<(Layer, Next, usize)> {
    let &[preamble, b1, b2, b3] = bytes.get(at..)?.first_chunk()?;
    if preamble != 0 || b3 & 0x80 != 0 {
        return None;
    }
    let next = if b2 & 1 != 0 { Next::Wireless } else { Next::Ethernet };
    Some((Layer::Capwap, next, at + 4 * usize::from(b1 >> 3)))
}

/// Behind an authentication and an origin, if they are there, IPv6.
fn teredo(bytes: &[u8], mut at: usize) -> Option<usize> {
    if let &[0, 1, identifier, value] = bytes.get(at..)?.first_chunk()? {
        at += 13 + usize::from(identifier) + usize::from(value);
    }
    if bytes.get(at..)?.first_chunk() == Some(&[0, 0]) {
        at += 8;
    }
    (bytes.get(at)? >> 4 == 6).then_some(at)
}

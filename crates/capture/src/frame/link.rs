//! Headers in front of IP: link types, EtherTypes, LLC, PPP and labels.
//!
//! Owns one step at a time: which header follows and where. IEEE 802.3, 802.1Q, 802.1ah, 802.1AE;
//! RFC 1042, RFC 1661, RFC 2427, RFC 2516, RFC 2684, RFC 3032, RFC 6325, RFC 8300; the link types as
//! the LINKTYPE_ pages of tcpdump.org describe them.

use super::layers::{Layer, Layers};
use super::{Next, NotTcp, Step, be16, byte, host32, wireless};
use crate::file::LinkType;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
const ETHERNET: u16 = 0x6558;
/// 802.1Q, 802.1ad and its predecessors.
const VLAN: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
const ROCE: u16 = 0x8915;
const PPP: u16 = 0x880b;
const IPX: u16 = 0x8137;
const BACKBONE: u16 = 0x88e7;
const TRILL: u16 = 0x22f3;
const FABRIC_PATH: u16 = 0x8903;
const VN_TAG: u16 = 0x8926;
const HSR: u16 = 0x892f;
const MAC_SEC: u16 = 0x88e5;
/// Security group tags of Cisco.
const CISCO_META_DATA: u16 = 0x8909;
const NSH: u16 = 0x894f;
/// Smaller values of the type field are an 802.3 length.
const ETHERTYPE_MIN: u16 = 0x0600;
/// Linux' protocol numbers of Novell's raw 802.3 and of 802.2 LLC frames in a cooked header.
const SLL_RAW_802_3: u16 = 1;
const SLL_LLC: u16 = 4;
const LABELS_MAX: usize = 16;
/// IPX sockets of SMB without NetBIOS: server and client.
const IPX_SMB: [u16; 2] = [0x0550, 0x0552];
/// IPX sockets of names and mailslots.
const IPX_NAMES: [u16; 3] = [0x0551, 0x0553, 0x0554];
/// The type of IPX packets that routers propagate: queries for names.
const IPX_PROPAGATED: u8 = 0x14;
/// The IPX socket of NetBIOS, and those kinds of its packets, in the second byte, that belong to a
/// session: data, its end, and the acknowledgement of that.
const IPX_NETBIOS: u16 = 0x0455;
const IPX_SESSION: std::ops::RangeInclusive<u8> = 6..=8;

/// The first header of a frame.
pub(super) fn link(link: LinkType, bytes: &[u8], layers: &mut Layers) -> Step {
    Ok(match link {
        LinkType::ETHERNET => (Next::Ethernet, 0),
        LinkType::LINUX_SLL => return cooked(be16(bytes, 2)?, be16(bytes, 14)?, bytes, 16, layers),
        LinkType::LINUX_SLL2 => return cooked(be16(bytes, 8)?, be16(bytes, 0)?, bytes, 20, layers),
        LinkType::RAW | LinkType::DLT_RAW | LinkType::DLT_RAW_OPENBSD => (Next::Ip, 0),
        LinkType::IPV4 => (Next::Ipv4, 0),
        LinkType::IPV6 => (Next::Ipv6, 0),
        LinkType::NULL | LinkType::LOOP => return loopback(bytes),
        LinkType::WIRELESS => (Next::Wireless, 0),
        LinkType::RADIOTAP => (Next::Wireless, wireless::radiotap(bytes)?),
        LinkType::PRISM => (Next::Wireless, wireless::prism(bytes)?),
        LinkType::AVS => (Next::Wireless, host32(bytes, 4)? as usize),
        LinkType::PPI | LinkType::PKTAP => return per_packet_link(link, bytes, layers),
        LinkType::PPP | LinkType::PPP_HDLC => {
            layers.add(Layer::Ppp);
            match byte(bytes, 0)? {
                // Cisco's HDLC: unicast or broadcast.
                0x0f | 0x8f => (Next::EtherType(be16(bytes, 2)?), 4),
                _ => (Next::Ppp, 0),
            }
        }
        // A direction comes first.
        LinkType::PPP_PPPD | LinkType::PPP_WITH_DIRECTION => {
            layers.add(Layer::Ppp);
            (Next::Ppp, 1)
        }
        LinkType::PPP_ETHERNET => (Next::EtherType(PPPOE_SESSION), 0),
        LinkType::CISCO_HDLC => (Next::EtherType(be16(bytes, 2)?), 4),
        LinkType::FRAME_RELAY => match bytes.get(2..5) {
            Some([3, 0, nlpid]) => network_layer(*nlpid, 5)?,
            Some([3, nlpid, _]) => network_layer(*nlpid, 4)?,
            Some(_) => return Err(NotTcp::OtherProtocol),
            None => return Err(NotTcp::Truncated),
        },
        LinkType::ATM => (Next::Llc, 0),
        LinkType::SUN_ATM => (Next::Llc, 4),
        LinkType::FDDI => (Next::Llc, 13),
        LinkType::TOKEN_RING => (Next::Llc, token_ring(bytes)?),
        LinkType::FIBRE_CHANNEL_IP => (Next::Llc, 16),
        LinkType::FIREWIRE => (Next::EtherType(be16(bytes, 16)?), 18),
        LinkType::OPENBSD_ENC => {
            layers.add(Layer::IpsecDecrypted);
            (Next::Ip, 12)
        }
        LinkType::OPENBSD_PFLOG => (Next::Ip, usize::from(byte(bytes, 0)?).next_multiple_of(4)),
        LinkType::SOLARIS_IPNET => (Next::Ip, 24),
        LinkType::NFLOG => (Next::Ip, nflog(bytes)?),
        LinkType::NET_ANALYZER => (Next::Ethernet, 4),
        _ => return Err(NotTcp::UnknownLink),
    })
}

/// Where receiver and sender are in front of LLC, if the link type has them.
pub(super) fn stations(link: LinkType) -> Option<usize> {
    match link {
        LinkType::TOKEN_RING => Some(2),
        LinkType::FDDI => Some(1),
        _ => None,
    }
}

/// Addresses, then an EtherType or a length.
pub(super) fn ethernet(bytes: &[u8], at: usize) -> Step {
    Ok(typed(be16(bytes, at + 12)?, at + 14))
}

/// An EtherType, or the length of an 802.2 frame.
fn typed(kind: u16, at: usize) -> (Next, usize) {
    match kind {
        length if length < ETHERTYPE_MIN => (Next::Llc, at),
        kind => (Next::EtherType(kind), at),
    }
}

/// What follows an EtherType at `at`.
pub(super) fn ether_type(kind: u16, bytes: &[u8], at: usize, layers: &mut Layers) -> Step {
    Ok(match kind {
        IPV4 => (Next::Ipv4, at),
        IPV6 => (Next::Ipv6, at),
        kind if VLAN.contains(&kind) => {
            let inner = be16(bytes, at + 2)?;
            layers.add(Layer::Vlan);
            typed(inner, at + 4)
        }
        kind if MPLS.contains(&kind) => (Next::Mpls, at),
        ROCE => return Err(super::roce::find(bytes, at)),
        PPPOE_SESSION => {
            layers.add(Layer::PppoE);
            (Next::Ppp, at + 6)
        }
        PPP => {
            layers.add(Layer::Ppp);
            (Next::Ppp, at)
        }
        ETHERNET => (Next::Ethernet, at),
        BACKBONE => {
            layers.add(Layer::Pbb);
            (Next::Ethernet, at + 4)
        }
        TRILL => {
            layers.add(Layer::Trill);
            // Five bits: the length of options in four bytes.
            let options = usize::from(be16(bytes, at)? >> 6 & 0x1f) * 4;
            (Next::Ethernet, at + 6 + options)
        }
        FABRIC_PATH => {
            layers.add(Layer::Trill);
            (Next::Ethernet, at + 2)
        }
        VN_TAG => {
            layers.add(Layer::VnTag);
            typed(be16(bytes, at + 4)?, at + 6)
        }
        CISCO_META_DATA => {
            layers.add(Layer::CiscoMetaData);
            typed(be16(bytes, at + 6)?, at + 8)
        }
        HSR => {
            layers.add(Layer::Hsr);
            typed(be16(bytes, at + 4)?, at + 6)
        }
        MAC_SEC => {
            let control = byte(bytes, at)?;
            // Encrypted, or changed so that it cannot be read.
            if control & 0x0c != 0 {
                return Err(NotTcp::Tunnel);
            }
            layers.add(Layer::MacSec);
            let length = if control & 0x20 != 0 { 14 } else { 6 };
            typed(be16(bytes, at + length)?, at + length + 2)
        }
        NSH => (Next::Nsh, at),
        IPX => return Err(ipx(bytes, at)),
        _ => return Err(NotTcp::OtherProtocol),
    })
}

/// 802.2 LLC. IP comes in its SNAP form with the organisation 0, or behind a protocol identifier.
pub(super) fn llc(bytes: &[u8], at: usize, layers: &mut Layers) -> Step {
    let rest = bytes.get(at..).unwrap_or_default();
    match *rest.first_chunk::<3>().ok_or(NotTcp::Truncated)? {
        [0xaa, 0xaa, 3] => {
            let Some(&[_, _, _, o2, o1, o0, k1, k0]) = rest.first_chunk::<8>() else {
                return Err(NotTcp::Truncated);
            };
            let kind = u16::from_be_bytes([k1, k0]);
            layers.add(Layer::Snap);
            match ([o2, o1, o0], kind) {
                // RFC 1042, and IEEE 802.1H for what an 802.11 bridge translated.
                ([0, 0, 0] | [0, 0, 0xf8], kind) => Ok((Next::EtherType(kind), at + 8)),
                // A bridged Ethernet frame behind two bytes of padding (RFC 2684).
                ([0, 0x80, 0xc2], 1 | 7) => Ok((Next::Ethernet, at + 10)),
                _ => Err(NotTcp::OtherProtocol),
            }
        }
        [6, 6, 3] => Ok((Next::Ip, at + 3)),
        [0xfe, 0xfe, 3] => network_layer(byte(bytes, at + 3)?, at + 4),
        [0xe0, 0xe0, _] => Err(ipx(bytes, at + 3)),
        // Novell's raw 802.3: an IPX header without check sum.
        [0xff, 0xff, _] => Err(ipx(bytes, at)),
        _ => Err(NotTcp::OtherProtocol),
    }
}

/// PPP, perhaps with HDLC's address and control.
pub(super) fn ppp(bytes: &[u8], at: usize) -> Step {
    let at = match bytes.get(at..at + 2) {
        Some([0xff, 3]) => at + 2,
        Some(_) => at,
        None => return Err(NotTcp::Truncated),
    };
    let first = byte(bytes, at)?;
    // A protocol number of one byte is odd.
    let (protocol, at) = match first & 1 {
        1 => (u16::from(first), at + 1),
        _ => (be16(bytes, at)?, at + 2),
    };
    match protocol {
        0x0021 => Ok((Next::Ipv4, at)),
        0x0057 => Ok((Next::Ipv6, at)),
        0x0281 | 0x0283 => Ok((Next::Mpls, at)),
        0x002b => Err(ipx(bytes, at)),
        // Compressed TCP (RFC 1144, RFC 2507), multilink, compressed or encrypted datagrams.
        0x002d | 0x002f | 0x003d | 0x0053 | 0x0055 | 0x0061 | 0x00fb | 0x00fd => {
            Err(NotTcp::Tunnel)
        }
        _ => Err(NotTcp::OtherProtocol),
    }
}

/// A stack of labels. The first four bits below it say what it carries (RFC 4928): IP, a control
/// word (RFC 4385), or an Ethernet frame at once.
pub(super) fn mpls(bytes: &[u8], mut at: usize, layers: &mut Layers) -> Step {
    for _ in 0..LABELS_MAX {
        let bottom = byte(bytes, at + 2)? & 1 == 1;
        at += 4;
        if bottom {
            layers.add(Layer::Mpls);
            return Ok(match byte(bytes, at)? >> 4 {
                4 | 6 => (Next::Ip, at),
                // A vendor's part of an address may begin with 0 too.
                0 if has_known_type(bytes, at) => (Next::Ethernet, at),
                0 => (Next::Ethernet, at + 4),
                _ => (Next::Ethernet, at),
            });
        }
    }
    Err(NotTcp::TooDeep)
}

/// Whether an Ethernet frame at `at` would carry IP, tags or labels.
fn has_known_type(bytes: &[u8], at: usize) -> bool {
    be16(bytes, at + 12).is_ok_and(|kind| {
        [IPV4, IPV6].contains(&kind) || VLAN.contains(&kind) || MPLS.contains(&kind)
    })
}

/// A service function chain's header: its length in four bytes, and what follows.
pub(super) fn nsh(bytes: &[u8], at: usize, layers: &mut Layers) -> Step {
    let length = usize::from(byte(bytes, at + 1)? & 0x3f) * 4;
    layers.add(Layer::Nsh);
    let next = match byte(bytes, at + 3)? {
        1 => Next::Ipv4,
        2 => Next::Ipv6,
        3 => Next::Ethernet,
        5 => Next::Mpls,
        _ => return Err(NotTcp::OtherProtocol),
    };
    match length {
        0..8 => Err(NotTcp::Malformed),
        length => Ok((next, at + length)),
    }
}

/// A frame behind Linux' cooked header, whose kind of hardware may have a header of its own.
fn cooked(hardware: u16, kind: u16, bytes: &[u8], at: usize, layers: &mut Layers) -> Step {
    match (hardware, kind) {
        // ARPHRD_IEEE80211, ARPHRD_IEEE80211_RADIOTAP
        (801, _) => Ok((Next::Wireless, at)),
        (803, _) => {
            let inner = bytes.get(at..).unwrap_or_default();
            Ok((Next::Wireless, at + wireless::radiotap(inner)?))
        }
        (_, SLL_LLC) => Ok((Next::Llc, at)),
        (_, SLL_RAW_802_3) => Err(ipx(bytes, at)),
        (_, kind) => ether_type(kind, bytes, at, layers),
    }
}

/// An address family in the recording machine's order (null) or the network's (loop). The
/// numbers of IPv6 are those of Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS.
fn loopback(bytes: &[u8]) -> Step {
    match host32(bytes, 0)? {
        2 => Ok((Next::Ipv4, 4)),
        10 | 23 | 24 | 28 | 30 => Ok((Next::Ipv6, 4)),
        _ => Err(NotTcp::OtherProtocol),
    }
}

/// A header that names the link type of its packet: PPI, or Apple's PKTAP.
fn per_packet_link(outer: LinkType, bytes: &[u8], layers: &mut Layers) -> Step {
    let (length, inner) = match outer {
        LinkType::PPI => {
            let length = bytes.get(2..).and_then(<[u8]>::first_chunk);
            let length = u16::from_le_bytes(*length.ok_or(NotTcp::Truncated)?);
            (usize::from(length), host32(bytes, 4)?)
        }
        _ => (host32(bytes, 0)? as usize, host32(bytes, 8)?),
    };
    let inner = LinkType(u16::try_from(inner).unwrap_or(u16::MAX));
    // One in the other is not written by anything.
    if [LinkType::PPI, LinkType::PKTAP].contains(&inner) {
        return Err(NotTcp::UnknownLink);
    }
    let rest = bytes.get(length..).ok_or(NotTcp::Truncated)?;
    link(inner, rest, layers).map(|(next, at)| (next, length + at))
}

/// Where LLC begins: behind a route, if the source address says that there is one.
fn token_ring(bytes: &[u8]) -> Result<usize, NotTcp> {
    Ok(match byte(bytes, 8)? & 0x80 {
        0 => 14,
        _ => 14 + usize::from(byte(bytes, 14)? & 0x1f),
    })
}

/// Where the packet begins in the list of attributes of Linux' packet filter log.
fn nflog(bytes: &[u8]) -> Result<usize, NotTcp> {
    const ATTRIBUTES_MAX: usize = 32;
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    for _ in 0..ATTRIBUTES_MAX {
        let Some(&[l0, l1, k0, k1]) = bytes.get(at..).and_then(<[u8]>::first_chunk) else {
            return Err(NotTcp::Truncated);
        };
        let (length, kind) = match [l0, l1, k0, k1] {
            [l0, l1, k0, 0] => (u16::from_le_bytes([l0, l1]), u16::from(k0)),
            [l0, l1, k0, k1] => (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([k0, k1])),
        };
        if kind == PAYLOAD {
            return Ok(at + 4);
        }
        if length < 4 {
            return Err(NotTcp::Malformed);
        }
        at += usize::from(length).next_multiple_of(4);
    }
    Err(NotTcp::OtherProtocol)
}

/// What an NLPID announces (RFC 2427).
fn network_layer(identifier: u8, at: usize) -> Step {
    match identifier {
        0xcc => Ok((Next::Ipv4, at)),
        0x8e => Ok((Next::Ipv6, at)),
        _ => Err(NotTcp::OtherProtocol),
    }
}

/// An IPX packet, with SMB, NetBIOS or another protocol in it.
fn ipx(bytes: &[u8], at: usize) -> NotTcp {
    let (Ok(destination), Ok(source)) = (be16(bytes, at + 16), be16(bytes, at + 28)) else {
        return NotTcp::Truncated;
    };
    let has = |socket: u16| [destination, source].contains(&socket);
    if IPX_SMB.into_iter().any(has) {
        NotTcp::Ipx
    } else if has(IPX_NETBIOS) {
        let is_session = byte(bytes, at + 5) != Ok(IPX_PROPAGATED)
            && byte(bytes, at + 31).is_ok_and(|kind| IPX_SESSION.contains(&kind));
        if is_session { NotTcp::Ipx } else { NotTcp::NetBios }
    } else if IPX_NAMES.into_iter().any(has) {
        NotTcp::NetBios
    } else {
        NotTcp::OtherProtocol
    }
}

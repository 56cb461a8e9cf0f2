//! Frames to TCP segments: link layer, IPv4 or IPv6, TCP; and to UDP datagrams.
//!
//! Owns the headers below SMB's byte stream and the flow's key. It does not own reassembly of IP
//! fragments (reported, not joined), tunnels other than MPLS and PPPoE (reported), check sums
//! (offload makes them wrong at the sender), nor streams (`stream`). IEEE 802.3, 802.1Q, RFC 2516, RFC 3032; the
//! cooked and loopback headers as tcpdump.org's LINKTYPE_ pages give them.

use crate::file::LinkType;

mod address;
mod flow;
mod ip;
mod roce;
mod tcp;
mod udp;

pub use address::Address;
pub use flow::{Direction, FlowKey};
pub use roce::Roce;
pub use tcp::{TcpFlags, TcpOption, TcpSegment};
pub use udp::{Udp, UdpDatagram};

/// Why a frame holds no TCP segment that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotTcp {
    /// Another protocol; nothing is wrong.
    OtherProtocol,
    /// IP or Ethernet in IP: a tunnel, whose content is not looked at.
    Tunnel,
    /// UDP; of a fragmented IPv4 packet the first piece.
    Udp(Udp),
    /// RoCE v1: InfiniBand in Ethernet.
    Roce(Roce),
    /// A piece of a fragmented IP packet.
    Fragment,
    /// Captured too short for the headers through TCP's.
    Truncated,
    /// A link type that is not dissected.
    UnknownLink,
    /// Headers that contradict themselves.
    Malformed,
    /// More tags, labels or extension headers than any network stacks up.
    TooDeep,
}

/// What [`dissect`] finds in the frames that are the most: TCP in IP in plain Ethernet. None says
/// nothing of a frame but that it is to be dissected.
#[inline(always)]
pub fn dissect_plain(link: LinkType, bytes: &[u8], original: u32) -> Option<TcpSegment<'_>> {
    let &[.., t1, t0] = bytes.first_chunk::<14>()?;
    match u16::from_be_bytes([t1, t0]) {
        _ if link != LinkType::ETHERNET => None,
        IPV4 => ip::v4(bytes, 14, original).ok(),
        IPV6 => ip::v6(bytes, 14, original).ok(),
        _ => None,
    }
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and its predecessor.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
const ROCE: u16 = 0x8915;
/// Smaller values of the type field are an 802.3 length.
const ETHERTYPE_MIN: u16 = 0x0600;
/// Linux' protocol number of 802.2 LLC frames in a cooked header.
const SLL_LLC: u16 = 4;
const TAGS_MAX: usize = 16;

/// Finds the TCP segment in a frame of which `bytes` were captured and `original` bytes were on
/// the wire.
pub fn dissect(link: LinkType, bytes: &[u8], original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    match link {
        LinkType::ETHERNET => match be16(bytes, 12)? {
            length if length < ETHERTYPE_MIN => llc(bytes, 14, original),
            kind => payload(kind, bytes, 14, original),
        },
        LinkType::LINUX_SLL => cooked(be16(bytes, 14)?, bytes, 16, original),
        LinkType::LINUX_SLL2 => cooked(be16(bytes, 0)?, bytes, 20, original),
        LinkType::RAW | LinkType::DLT_RAW | LinkType::DLT_RAW_OPENBSD => {
            ip::any(bytes, 0, original)
        }
        LinkType::IPV4 => ip::v4(bytes, 0, original),
        LinkType::IPV6 => ip::v6(bytes, 0, original),
        LinkType::NULL | LinkType::LOOP => loopback(bytes, original),
        _ => Err(NotTcp::UnknownLink),
    }
}

/// What follows an EtherType at `at`.
fn payload(
    mut kind: u16,
    bytes: &[u8],
    mut at: usize,
    original: u32,
) -> Result<TcpSegment<'_>, NotTcp> {
    for _ in 0..TAGS_MAX {
        match kind {
            IPV4 => return ip::v4(bytes, at, original),
            IPV6 => return ip::v6(bytes, at, original),
            kind if MPLS.contains(&kind) => return mpls(bytes, at, original),
            PPPOE_SESSION => return pppoe(bytes, at, original),
            ROCE => return Err(roce::find(bytes, at)),
            kind_ if VLAN.contains(&kind_) => {
                kind = be16(bytes, at + 2)?;
                at += 4;
                if kind < ETHERTYPE_MIN {
                    return llc(bytes, at, original);
                }
            }
            _ => return Err(NotTcp::OtherProtocol),
        }
    }
    Err(NotTcp::TooDeep)
}

/// 802.2 LLC; IP comes in its SNAP form with the organisation 0 (RFC 1042).
fn llc(bytes: &[u8], at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    match bytes.get(at..at + 8) {
        Some(&[0xaa, 0xaa, 3, 0, 0, 0, k1, k0]) => {
            payload(u16::from_be_bytes([k1, k0]), bytes, at + 8, original)
        }
        Some(_) => Err(NotTcp::OtherProtocol),
        None => Err(NotTcp::Truncated),
    }
}

fn cooked(kind: u16, bytes: &[u8], at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    match kind {
        SLL_LLC => llc(bytes, at, original),
        kind => payload(kind, bytes, at, original),
    }
}

/// An address family in the recording machine's order (null) or the network's (loop). The
/// numbers of IPv6 are those of Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS.
fn loopback(bytes: &[u8], original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    let family = *bytes.first_chunk::<4>().ok_or(NotTcp::Truncated)?;
    match u32::from_le_bytes(family).min(u32::from_be_bytes(family)) {
        2 => ip::v4(bytes, 4, original),
        10 | 23 | 24 | 28 | 30 => ip::v6(bytes, 4, original),
        _ => Err(NotTcp::OtherProtocol),
    }
}

/// A stack of labels. The first four bits below it say what it carries (RFC 4928).
fn mpls(bytes: &[u8], mut at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    for _ in 0..TAGS_MAX {
        let bottom = byte(bytes, at + 2)? & 1 == 1;
        at += 4;
        if bottom {
            return ip::any(bytes, at, original);
        }
    }
    Err(NotTcp::TooDeep)
}

fn pppoe(bytes: &[u8], at: usize, original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    match be16(bytes, at + 6)? {
        0x0021 => ip::v4(bytes, at + 8, original),
        0x0057 => ip::v6(bytes, at + 8, original),
        _ => Err(NotTcp::OtherProtocol),
    }
}

#[inline]
fn byte(bytes: &[u8], at: usize) -> Result<u8, NotTcp> {
    bytes.get(at).copied().ok_or(NotTcp::Truncated)
}

#[inline]
fn be16(bytes: &[u8], at: usize) -> Result<u16, NotTcp> {
    let two = bytes.get(at..).and_then(<[u8]>::first_chunk);
    two.map(|two| u16::from_be_bytes(*two)).ok_or(NotTcp::Truncated)
}

#[cfg(test)]
mod tests;

//! Frames to TCP segments: link layer, tags, tunnels, IPv4 or IPv6, TCP; and to UDP datagrams.
//!
//! Owns the headers below SMB's byte stream, the flow's key and IP fragments. It does not own check
//! sums (offload makes them wrong at the sender) nor streams (`stream`). A frame is walked header by
//! header without recursion: `link` knows what is in front of IP (IEEE 802.3, 802.1Q, RFC 2516,
//! RFC 3032, the LINKTYPE_ pages of tcpdump.org), `wireless` IEEE 802.11, `tunnel` what IP carries
//! packets in. Packets that stay closed (encrypted, unknown) are reported.

use crate::file::LinkType;

mod address;
mod flow;
mod fragment;
mod ip;
mod layers;
mod link;
mod llc;
mod reassembly;
mod roce;
mod tcp;
mod tunnel;
mod udp;
mod unreachable;
mod wireless;

pub use address::Address;
pub use flow::{Direction, FlowKey};
pub use fragment::Fragment;
pub use layers::{Layer, LayerCounts, Layers};
pub use llc::{Llc, LlcFrame};
pub use reassembly::{FragmentCounts, Reassembled, Reassembler};
pub use roce::Roce;
pub use tcp::{TcpFlags, TcpOption, TcpSegment};
pub use udp::{Udp, UdpDatagram};
pub use unreachable::{Icmp, Undelivered, Unreachable};

/// Why a frame holds no TCP segment that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotTcp {
    /// Another protocol; nothing is wrong.
    OtherProtocol,
    /// Names and datagrams of NetBIOS in IPX or LLC.
    NetBios,
    /// SMB or a NetBIOS session in IPX, which is not read.
    Ipx,
    /// NetBEUI between two stations.
    NetBeui(Llc),
    /// A packet in a packet that stays closed: encrypted, or of an unknown kind.
    Tunnel,
    /// UDP.
    Udp(Udp),
    /// An ICMP message that reports a packet which was not delivered.
    Icmp(Icmp),
    /// RoCE v1: InfiniBand in Ethernet.
    Roce(Roce),
    /// A piece of a fragmented IP packet.
    Fragment(Fragment),
    /// Captured too short for the headers through TCP's.
    Truncated,
    /// A link type that is not dissected.
    UnknownLink,
    /// Headers that contradict themselves.
    Malformed,
    /// More tags, labels, tunnels or extension headers than any network stacks up.
    TooDeep,
}

/// What [`dissect`] finds in the frames that are the most: TCP in IP in plain Ethernet. None says
/// only that the frame must be dissected.
#[inline(always)]
pub fn dissect_plain(link: LinkType, bytes: &[u8], original: u32) -> Option<TcpSegment<'_>> {
    let &[.., t1, t0] = bytes.first_chunk::<14>()?;
    match u16::from_be_bytes([t1, t0]) {
        _ if link != LinkType::ETHERNET => None,
        link::IPV4 => ip::v4(bytes, 14, original).ok(),
        link::IPV6 => ip::v6(bytes, 14, original).ok(),
        _ => None,
    }
}

/// Headers of one frame, tags included.
const STEPS_MAX: usize = 40;
/// Packets in packets.
const TUNNELS_MAX: usize = 8;

/// The header that is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Link(LinkType),
    Ethernet,
    /// What an EtherType announces.
    EtherType(u16),
    /// IEEE 802.2.
    Llc,
    Ppp,
    Mpls,
    Nsh,
    Wireless,
    Gre,
    /// IPv4 or IPv6, by the version.
    Ip,
    Ipv4,
    Ipv6,
}

/// The next header and where it begins.
type Step = Result<(Next, usize), NotTcp>;

/// Finds the TCP segment in a frame of which `bytes` were captured and `original` bytes were on
/// the wire.
pub fn dissect(link: LinkType, bytes: &[u8], original: u32) -> Result<TcpSegment<'_>, NotTcp> {
    dissect_layers(link, bytes, original, &mut Layers::default())
}

/// Like [`dissect`], and adds what the packet was wrapped in.
pub fn dissect_layers<'a>(
    link: LinkType,
    bytes: &'a [u8],
    original: u32,
    layers: &mut Layers,
) -> Result<TcpSegment<'a>, NotTcp> {
    let (mut next, mut at) = (Next::Link(link), 0);
    let mut tunnels = 0;
    // The datagram to a tunnel's port, if what it contains must be a packet and is not.
    let mut datagram = None;
    // Where the MAC addresses are that belong to LLC.
    let mut stations = link::stations(link);
    for _ in 0..STEPS_MAX {
        if next == Next::Ethernet {
            stations = Some(at);
        }
        let step = match next {
            Next::Link(link) => link::link(link, bytes, layers),
            Next::Ethernet => link::ethernet(bytes, at),
            Next::EtherType(kind) => link::ether_type(kind, bytes, at, layers),
            Next::Llc if llc::is_netbeui(bytes, at) => {
                Err(llc::find(bytes, at, stations, link, original))
            }
            Next::Llc => link::llc(bytes, at, layers),
            Next::Ppp => link::ppp(bytes, at),
            Next::Mpls => link::mpls(bytes, at, layers),
            Next::Nsh => link::nsh(bytes, at, layers),
            Next::Wireless => wireless::data(bytes, at, layers),
            Next::Gre => tunnel::gre(bytes, at, layers),
            Next::Ip | Next::Ipv4 | Next::Ipv6 => {
                let result = match next {
                    Next::Ipv4 => ip::v4(bytes, at, original),
                    Next::Ipv6 => ip::v6(bytes, at, original),
                    _ => ip::any(bytes, at, original),
                };
                tunnels += 1;
                match result {
                    Ok(segment) => return Ok(segment),
                    Err(_) if tunnels > TUNNELS_MAX => Err(NotTcp::TooDeep),
                    Err(NotTcp::Tunnel) => tunnel::in_ip(bytes, at, original, layers),
                    Err(NotTcp::Udp(udp)) => {
                        let before = *layers;
                        let inside = tunnel::in_udp(bytes, &udp, layers);
                        if inside.is_some() {
                            datagram = Some((NotTcp::Udp(udp), before));
                        }
                        inside.ok_or(NotTcp::Udp(udp))
                    }
                    Err(reason) => Err(reason),
                }
            }
        };
        match step {
            Ok(step) => (next, at) = step,
            Err(reason) => {
                let is_no_packet =
                    matches!(reason, NotTcp::Malformed | NotTcp::UnknownLink | NotTcp::TooDeep);
                return Err(match datagram {
                    Some((datagram, before)) if is_no_packet => {
                        *layers = before;
                        datagram
                    }
                    _ => reason,
                });
            }
        }
    }
    Err(NotTcp::TooDeep)
}

/// The Ethernet frames in a wireless frame that consists of several (A-MSDU), as ranges of `bytes`;
/// their end may not have been captured. Empty for any other frame.
pub fn aggregated(link: LinkType, bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    match link::link(link, bytes, &mut Layers::default()) {
        Ok((Next::Wireless, at)) => wireless::subframes(bytes, at),
        _ => Vec::new(),
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

/// A number that the recording machine wrote in its own order, where values are small.
fn host32(bytes: &[u8], at: usize) -> Result<u32, NotTcp> {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    let four = *four.ok_or(NotTcp::Truncated)?;
    Ok(u32::from_le_bytes(four).min(u32::from_be_bytes(four)))
}

#[cfg(test)]
mod tests;

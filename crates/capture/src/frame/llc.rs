//! Frames of NetBEUI in IEEE 802.2 LLC: where they are, and between which stations.
//!
//! Owns the addresses and the length; the frames' contents are `netbeui`'s. Stations have no IP address:
//! each is shown as the link-local IPv6 address that contains its MAC address (RFC 4291 appendix A).

use super::{Address, LinkType, NotTcp, be16, byte};

/// Unnumbered information: names and datagrams of NetBIOS, outside of sessions.
const INFORMATION: u8 = 0x03;

/// Where a NetBEUI frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Llc {
    source: Address,
    destination: Address,
    at: usize,
    length: usize,
}

/// A NetBEUI frame between two stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcFrame<'a> {
    /// The sender's address.
    pub source: Address,
    /// The receiver's address.
    pub destination: Address,
    /// From the LLC header, as captured, without the frame's padding.
    pub bytes: &'a [u8],
    /// Its bytes on the wire.
    pub length: u32,
}

/// Whether the service access points at `at` are those of NetBIOS, in a command or a response.
pub(super) fn is_netbeui(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 2), Some([0xf0, 0xf0 | 0xf1]))
}

/// Finds the NetBEUI frame whose LLC header is at `at`, in a frame of `original` bytes on the wire. The
/// MAC addresses of receiver and sender are at `stations`.
pub(super) fn find(
    bytes: &[u8],
    at: usize,
    stations: Option<usize>,
    link: LinkType,
    original: u32,
) -> NotTcp {
    read(bytes, at, stations, link, original).unwrap_or_else(|reason| reason)
}

fn read(
    bytes: &[u8],
    at: usize,
    stations: Option<usize>,
    link: LinkType,
    original: u32,
) -> Result<NotTcp, NotTcp> {
    let (false, Some(stations)) = (byte(bytes, at + 2)? == INFORMATION, stations) else {
        return Ok(NotTcp::NetBios);
    };
    let station = |at: usize| {
        let found = bytes.get(at..).and_then(<[u8]>::first_chunk::<6>);
        found.copied().ok_or(NotTcp::Truncated)
    };
    let (destination, mut source) = (station(stations)?, station(stations + 6)?);
    let length = if matches!(link, LinkType::TOKEN_RING | LinkType::FDDI) {
        // The bit says that a route follows.
        source[0] &= 0x7f;
        (original as usize).saturating_sub(at)
    } else {
        // IEEE 802.3 has the length in front of LLC.
        usize::from(be16(bytes, at.saturating_sub(2))?)
    };
    let [source, destination] = [source, destination].map(Address::of_station);
    Ok(NotTcp::NetBeui(Llc { source, destination, at, length }))
}

impl Llc {
    /// The frame, from the bytes that it is in.
    pub fn frame<'a>(&self, bytes: &'a [u8]) -> LlcFrame<'a> {
        let rest = bytes.get(self.at..).unwrap_or_default();
        LlcFrame {
            source: self.source,
            destination: self.destination,
            bytes: rest.get(..self.length).unwrap_or(rest),
            length: self.length as u32,
        }
    }
}

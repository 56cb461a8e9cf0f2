//! Pieces of fragmented IP packets: where a piece belongs, and the header of the whole packet.
//!
//! Owns the layout of one fragment (RFC 791 section 3.2, RFC 8200 section 4.5); it does not own the
//! pieces that wait for each other (`reassembly`).

use super::ip::FRAGMENT;
use super::{Address, NotTcp, be16, byte};
use crate::file::LinkType;

/// Where the IP header of a fragment is in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    pub(super) at: usize,
}

/// Which packet a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    source: Address,
    destination: Address,
    protocol: u8,
    identification: u32,
}

/// One fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) key: Key,
    /// The link type of the packet when it is whole: [`LinkType::IPV4`] or [`LinkType::IPV6`].
    pub(super) link: LinkType,
    /// The header of the packet without what only the fragment has.
    pub(super) header: &'a [u8],
    /// Where its bytes begin in the packet's payload.
    pub(super) offset: usize,
    /// Its bytes on the wire.
    pub(super) length: usize,
    /// Its bytes as captured.
    pub(super) bytes: &'a [u8],
    /// Whether no fragment follows.
    pub(super) is_last: bool,
}

impl Fragment {
    /// The piece, from the frame's bytes.
    pub(super) fn piece<'a>(&self, bytes: &'a [u8]) -> Result<Piece<'a>, NotTcp> {
        match byte(bytes, self.at)? >> 4 {
            4 => v4(bytes.get(self.at..).unwrap_or_default()),
            _ => v6(bytes.get(self.at..).unwrap_or_default()),
        }
    }
}

fn v4(packet: &[u8]) -> Result<Piece<'_>, NotTcp> {
    let Some(
        &[version, _, l1, l0, i1, i0, f1, f0, _, protocol, _, _, s3, s2, s1, s0, d3, d2, d1, d0],
    ) = packet.first_chunk::<20>()
    else {
        return Err(NotTcp::Truncated);
    };
    let header_len = usize::from(version & 15) * 4;
    let header = packet.get(..header_len).ok_or(NotTcp::Truncated)?;
    let end = usize::from(u16::from_be_bytes([l1, l0]));
    let place = u16::from_be_bytes([f1, f0]);
    let payload = packet.get(header_len..end.min(packet.len())).unwrap_or_default();
    Ok(Piece {
        key: Key {
            source: Address::v4([s3, s2, s1, s0]),
            destination: Address::v4([d3, d2, d1, d0]),
            protocol,
            identification: u32::from(u16::from_be_bytes([i1, i0])),
        },
        link: LinkType::IPV4,
        header,
        offset: usize::from(place & 0x1fff) * 8,
        length: end.checked_sub(header_len).ok_or(NotTcp::Malformed)?,
        bytes: payload,
        is_last: place & 0x2000 == 0,
    })
}

fn v6(packet: &[u8]) -> Result<Piece<'_>, NotTcp> {
    let Some(header) = packet.first_chunk::<40>() else { return Err(NotTcp::Truncated) };
    let &[_, _, _, _, l1, l0, mut next, _, ref addresses @ ..] = header;
    let (Some(source), Some(destination)) = (addresses.first_chunk(), addresses.last_chunk())
    else {
        return Err(NotTcp::Truncated);
    };
    let end = 40 + usize::from(u16::from_be_bytes([l1, l0]));
    let mut at = 40;
    // Headers that every router reads come before the fragment header: hop-by-hop, routing,
    // destination options.
    for _ in 0..4 {
        if next == FRAGMENT {
            break;
        }
        let length = 8 + 8 * usize::from(byte(packet, at + 1)?);
        next = byte(packet, at)?;
        at += length;
    }
    let place = be16(packet, at + 2)?;
    let identification = packet.get(at + 4..).and_then(<[u8]>::first_chunk);
    let identification = u32::from_be_bytes(*identification.ok_or(NotTcp::Truncated)?);
    let start = at + 8;
    match next {
        FRAGMENT => Ok(Piece {
            key: Key {
                source: Address::v6(*source),
                destination: Address::v6(*destination),
                protocol: byte(packet, at)?,
                identification,
            },
            link: LinkType::IPV6,
            header,
            offset: usize::from(place & 0xfff8),
            length: end.checked_sub(start).ok_or(NotTcp::Malformed)?,
            bytes: packet.get(start..end.min(packet.len())).unwrap_or_default(),
            is_last: place & 1 == 0,
        }),
        _ => Err(NotTcp::Malformed),
    }
}

/// The header of the whole packet, of whose payload there are `length` bytes on the wire; from that
/// of its first piece. `None` if no header can say so.
pub(super) fn whole_header(first: &Piece<'_>, length: usize) -> Option<Vec<u8>> {
    let mut header = first.header.to_vec();
    if first.link == LinkType::IPV4 {
        let total = u16::try_from(header.len() + length).ok()?;
        header.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
        header.get_mut(6..8)?.copy_from_slice(&[0, 0]);
    } else {
        let payload = u16::try_from(length).ok()?;
        header.get_mut(4..6)?.copy_from_slice(&payload.to_be_bytes());
        *header.get_mut(6)? = first.key.protocol;
    }
    Some(header)
}

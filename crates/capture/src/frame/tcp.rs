//! TCP's header and options.
//!
//! Owns one segment as it is in a frame; sequence arithmetic and order are the stream's. RFC 9293
//! section 3, RFC 7323 (window scale, timestamps), RFC 2018 (SACK).

use super::{Address, NotTcp};

/// The flag byte of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u8);

#[allow(missing_docs)]
impl TcpFlags {
    pub const FIN: TcpFlags = TcpFlags(0x01);
    pub const SYN: TcpFlags = TcpFlags(0x02);
    pub const RST: TcpFlags = TcpFlags(0x04);
    pub const PSH: TcpFlags = TcpFlags(0x08);
    pub const ACK: TcpFlags = TcpFlags(0x10);
    pub const URG: TcpFlags = TcpFlags(0x20);
    pub const ECE: TcpFlags = TcpFlags(0x40);
    pub const CWR: TcpFlags = TcpFlags(0x80);
}

impl TcpFlags {
    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Sequence numbers that the flags themselves occupy: one each for SYN and FIN.
    #[inline]
    pub fn sequence_len(self) -> u32 {
        u32::from(self.has(TcpFlags::SYN)) + u32::from(self.has(TcpFlags::FIN))
    }
}

impl std::ops::BitOr for TcpFlags {
    type Output = TcpFlags;
    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

/// One TCP segment in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment<'a> {
    /// The sender's address.
    pub source: Address,
    /// The receiver's address.
    pub destination: Address,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Sequence number of the first payload byte (of the SYN, if set).
    pub sequence: u32,
    /// The next sequence number expected; meaningful with ACK.
    pub acknowledgement: u32,
    /// The flags.
    pub flags: TcpFlags,
    /// The window as sent, not scaled.
    pub window: u16,
    /// IPv4's time to live or IPv6's hop limit.
    pub ttl: u8,
    /// The options as captured.
    pub options: &'a [u8],
    /// The payload as captured, without the frame's padding.
    pub payload: &'a [u8],
    /// The payload's bytes on the wire by the IP length; never less than `payload.len()`.
    pub payload_len: u32,
}

/// One TCP option that is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Maximum segment size, in bytes.
    Mss(u16),
    /// Window scale: the shift.
    WindowScale(u8),
    /// Selective acknowledgements are welcome.
    SackPermitted,
    /// Blocks of left and right edges, four bytes each.
    Sack(&'a [u8]),
    /// Timestamp value and echo reply.
    Timestamps(u32, u32),
    /// Any other: kind and data.
    Other(u8, &'a [u8]),
}

impl<'a> TcpSegment<'a> {
    /// All options in order, up to the first that is broken or cut off.
    pub fn options(&self) -> impl Iterator<Item = TcpOption<'a>> + use<'a> {
        let mut rest = self.options;
        std::iter::from_fn(move || {
            loop {
                let (&kind, after) = rest.split_first()?;
                match kind {
                    0 => return None,
                    1 => rest = after,
                    _ => {
                        let length = usize::from(*after.first()?);
                        let data = rest.get(2..length)?;
                        rest = rest.get(length..).unwrap_or_default();
                        return Some(TcpOption::from_kind(kind, data));
                    }
                }
            }
        })
    }

    /// The maximum segment size, on a SYN.
    pub fn mss(&self) -> Option<u16> {
        self.options().find_map(|option| match option {
            TcpOption::Mss(bytes) => Some(bytes),
            _ => None,
        })
    }

    /// The window's shift, on a SYN; at most 14, as RFC 7323 demands.
    pub fn window_scale(&self) -> Option<u8> {
        self.options().find_map(|option| match option {
            TcpOption::WindowScale(shift) => Some(shift.min(14)),
            _ => None,
        })
    }

    /// Whether a SYN allows selective acknowledgements.
    pub fn sack_permitted(&self) -> bool {
        self.options().any(|o| o == TcpOption::SackPermitted)
    }

    /// The timestamp value and its echo.
    #[inline]
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        // Two no-operations and the timestamps are what nearly every segment carries.
        if let [1, 1, 8, 10, v3, v2, v1, v0, e3, e2, e1, e0] = *self.options {
            let value = u32::from_be_bytes([v3, v2, v1, v0]);
            return Some((value, u32::from_be_bytes([e3, e2, e1, e0])));
        }
        self.options().find_map(|option| match option {
            TcpOption::Timestamps(value, echo) => Some((value, echo)),
            _ => None,
        })
    }

    /// Left and right edges of the blocks received beyond the acknowledgement, at most four.
    pub fn sack_blocks(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let blocks = self.options().find_map(|option| match option {
            TcpOption::Sack(blocks) => Some(blocks),
            _ => None,
        });
        let blocks = blocks.unwrap_or_default().chunks_exact(8).take(4);
        blocks.filter_map(|block| match *block {
            [l3, l2, l1, l0, r3, r2, r1, r0] => {
                Some((u32::from_be_bytes([l3, l2, l1, l0]), u32::from_be_bytes([r3, r2, r1, r0])))
            }
            _ => None,
        })
    }
}

impl<'a> TcpOption<'a> {
    fn from_kind(kind: u8, data: &'a [u8]) -> TcpOption<'a> {
        match (kind, data) {
            (2, &[m1, m0]) => TcpOption::Mss(u16::from_be_bytes([m1, m0])),
            (3, &[shift]) => TcpOption::WindowScale(shift),
            (4, []) => TcpOption::SackPermitted,
            (5, blocks) => TcpOption::Sack(blocks),
            (8, &[v3, v2, v1, v0, e3, e2, e1, e0]) => TcpOption::Timestamps(
                u32::from_be_bytes([v3, v2, v1, v0]),
                u32::from_be_bytes([e3, e2, e1, e0]),
            ),
            (kind, data) => TcpOption::Other(kind, data),
        }
    }
}

/// Where TCP is in a frame, according to the IP header.
pub(super) struct Packet {
    pub(super) source: Address,
    pub(super) destination: Address,
    pub(super) ttl: u8,
    pub(super) start: usize,
    /// Bytes of header and payload on the wire.
    pub(super) length: usize,
}

impl Packet {
    #[inline(always)]
    pub(super) fn tcp(self, bytes: &[u8]) -> Result<TcpSegment<'_>, NotTcp> {
        let rest = bytes.get(self.start..).unwrap_or_default();
        let Some(
            &[s1, s0, d1, d0, q3, q2, q1, q0, a3, a2, a1, a0, offset, flags, w1, w0, _, _, _, _],
        ) = rest.first_chunk::<20>()
        else {
            return Err(NotTcp::Truncated);
        };
        let header_len = usize::from(offset >> 4) * 4;
        if header_len < 20 || header_len > self.length {
            return Err(NotTcp::Malformed);
        }
        let payload_len = self.length - header_len;
        // The frame may be cut short (snap length) or padded (Ethernet's 60 bytes).
        let captured = rest.get(..self.length).unwrap_or(rest);
        Ok(TcpSegment {
            source: self.source,
            destination: self.destination,
            source_port: u16::from_be_bytes([s1, s0]),
            destination_port: u16::from_be_bytes([d1, d0]),
            sequence: u32::from_be_bytes([q3, q2, q1, q0]),
            acknowledgement: u32::from_be_bytes([a3, a2, a1, a0]),
            flags: TcpFlags(flags),
            window: u16::from_be_bytes([w1, w0]),
            ttl: self.ttl,
            options: captured.get(20..header_len.min(captured.len())).unwrap_or_default(),
            payload: captured.get(header_len..).unwrap_or_default(),
            payload_len: payload_len as u32,
        })
    }
}

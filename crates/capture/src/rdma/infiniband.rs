//! One packet of InfiniBand's transport layer, as RoCE v2 carries it in UDP, and v1 in Ethernet.
//!
//! Owns the Base Transport Header and the extended headers of the reliable connection service, and
//! of datagrams to the connection manager. Does not own order (`psn`), nor the invariant CRC, which
//! is skipped. InfiniBand Architecture Specification volume 1 sections 9.2 to 9.5; RoCE v2 is its
//! annex A17.

/// The UDP port of RoCE v2.
pub const PORT: u16 = 4791;
/// The queue pair of the connection manager.
pub const MANAGEMENT_QUEUE_PAIR: u32 = 1;

const BTH_BYTES: usize = 12;
const ICRC_BYTES: u32 = 4;
const RETH_BYTES: usize = 16;
const AETH_BYTES: usize = 4;
const DETH_BYTES: usize = 8;
const IMMEDIATE_BYTES: usize = 4;
const INVALIDATE_BYTES: usize = 4;

/// What a packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A packet of a Send.
    Send {
        /// It begins the Send.
        first: bool,
        /// It ends the Send.
        last: bool,
    },
    /// A packet of an RDMA Write.
    Write {
        /// It begins the Write.
        first: bool,
    },
    /// An RDMA Read request for that many bytes.
    ReadRequest(u32),
    /// A packet of an RDMA Read response.
    ReadResponse,
    /// An acknowledgement.
    Acknowledge(Answer),
    /// An atomic operation: a request.
    Atomic,
    /// A datagram.
    Datagram,
    /// Any other: atomic responses, congestion notifications, services that SMB Direct does not use.
    Other,
}

/// What an acknowledgement says (section 9.7.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Everything up to its packet sequence number came.
    Positive,
    /// The receiver has no buffer yet.
    NotReady,
    /// Packets are missing, or the request failed.
    Negative,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub operation: Operation,
    /// The receiver's queue pair.
    pub queue_pair: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// The payload as captured, without padding.
    pub payload: &'a [u8],
    /// The payload's bytes on the wire; never less than `payload.len()`.
    pub payload_bytes: u32,
}

impl<'a> Packet<'a> {
    /// Reads a packet of which `bytes` were captured and `length` bytes were on the wire. None if
    /// a header is not there, or contradicts the length.
    pub fn parse(bytes: &'a [u8], length: u32) -> Option<Packet<'a>> {
        let &[opcode, flags, _, _, _, q2, q1, q0, _, p2, p1, p0] =
            bytes.first_chunk::<BTH_BYTES>()?;
        // The transport version is 0.
        if flags & 0x0f != 0 {
            return None;
        }
        let mut at = BTH_BYTES;
        let mut take = |count: usize| {
            let header = bytes.get(at..at + count);
            at += count;
            header
        };
        let send = |first, last| Operation::Send { first, last };
        let operation = match opcode {
            0x00 => send(true, false),
            0x01 => send(false, false),
            0x02 => send(false, true),
            0x03 => {
                take(IMMEDIATE_BYTES)?;
                send(false, true)
            }
            0x04 => send(true, true),
            0x05 => {
                take(IMMEDIATE_BYTES)?;
                send(true, true)
            }
            0x06 | 0x0a => {
                take(RETH_BYTES)?;
                Operation::Write { first: true }
            }
            0x07 | 0x08 => Operation::Write { first: false },
            0x09 => {
                take(IMMEDIATE_BYTES)?;
                Operation::Write { first: false }
            }
            0x0b => {
                take(RETH_BYTES + IMMEDIATE_BYTES)?;
                Operation::Write { first: true }
            }
            0x0c => {
                let &length = take(RETH_BYTES)?.last_chunk::<4>()?;
                Operation::ReadRequest(u32::from_be_bytes(length))
            }
            0x0d | 0x0f | 0x10 => {
                take(AETH_BYTES)?;
                Operation::ReadResponse
            }
            0x0e => Operation::ReadResponse,
            0x11 => Operation::Acknowledge(match take(AETH_BYTES)?.first()? >> 5 & 3 {
                0 => Answer::Positive,
                1 => Answer::NotReady,
                _ => Answer::Negative,
            }),
            0x13 | 0x14 => Operation::Atomic,
            0x16 => {
                take(INVALIDATE_BYTES)?;
                send(false, true)
            }
            0x17 => {
                take(INVALIDATE_BYTES)?;
                send(true, true)
            }
            0x64 => {
                take(DETH_BYTES)?;
                Operation::Datagram
            }
            _ => Operation::Other,
        };
        let padding = u32::from(flags >> 4 & 3);
        let payload_bytes = length.checked_sub(at as u32 + ICRC_BYTES + padding)?;
        let captured = bytes.get(at..).unwrap_or_default();
        Some(Packet {
            operation,
            queue_pair: u32::from_be_bytes([0, q2, q1, q0]),
            psn: u32::from_be_bytes([0, p2, p1, p0]),
            payload: captured.get(..payload_bytes as usize).unwrap_or(captured),
            payload_bytes,
        })
    }

    /// Whether it takes a packet sequence number of its sender: a request, not an answer.
    pub fn is_request(&self) -> bool {
        matches!(
            self.operation,
            Operation::Send { .. }
                | Operation::Write { .. }
                | Operation::ReadRequest(_)
                | Operation::Atomic
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(opcode: u8, pad: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![opcode, pad << 4, 0xff, 0xff, 0, 0, 0x22, 0xa3, 0x80, 0, 1, 2];
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn headers_padding_and_crc_are_not_payload() {
        let bytes = packet(0x17, 3, b"STagSMB___CRC_");
        let found = Packet::parse(&bytes, bytes.len() as u32).unwrap();
        assert_eq!(found.operation, Operation::Send { first: true, last: true });
        assert_eq!((found.queue_pair, found.psn), (0x22a3, 0x102));
        assert_eq!((found.payload, found.payload_bytes), (&b"SMB"[..], 3));
        // A snap length within the payload.
        let cut = Packet::parse(&bytes[..18], bytes.len() as u32).unwrap();
        assert_eq!((cut.payload, cut.payload_bytes), (&b"SM"[..], 3));
        assert_eq!(Packet::parse(&bytes[..13], bytes.len() as u32), None);
        assert_eq!(Packet::parse(&bytes, 20), None, "too short for its headers");
    }

    #[test]
    fn acknowledgements_are_positive_or_not() {
        for (syndrome, answer) in
            [(0x1f, Answer::Positive), (0x2e, Answer::NotReady), (0x60, Answer::Negative)]
        {
            let bytes = packet(0x11, 0, &[syndrome, 0, 0, 1, 9, 9, 9, 9]);
            let found = Packet::parse(&bytes, 20).unwrap();
            assert_eq!(found.operation, Operation::Acknowledge(answer));
            assert!(!found.is_request());
        }
    }

    #[test]
    fn a_read_request_names_its_length() {
        let mut reth = [0; 20];
        reth[12..16].copy_from_slice(&70_000_u32.to_be_bytes());
        let bytes = packet(0x0c, 0, &reth);
        let found = Packet::parse(&bytes, 32).unwrap();
        assert_eq!((found.operation, found.payload_bytes), (Operation::ReadRequest(70_000), 0));
    }
}

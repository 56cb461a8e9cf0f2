//! Messages of InfiniBand's connection manager: which queue pairs belong together, and for what.
//!
//! Owns the management datagram's header and the fields of ConnectRequest, ConnectReply,
//! ConnectReject, DisconnectRequest that identify a connection. InfiniBand Architecture
//! Specification volume 1 sections 12.6 and 13.4.3; the service id and the private data of IP
//! services are its annex A11.

/// Header of a management datagram.
const MAD_BYTES: usize = 24;
/// Class of communication management.
const CLASS: u8 = 7;
/// In front of the port in the service id of an IP service with TCP semantics.
const IP_SERVICE: u64 = 0x0000_0000_0106;
/// Where the private data of a ConnectRequest begins.
const REQUEST_PRIVATE: usize = MAD_BYTES + 140;

/// A message that says something of a connection. Communication ids are those of the sender
/// (`own`) and of the receiver (`peer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The client wants a connection.
    ConnectRequest {
        own: u32,
        /// The client's queue pair.
        queue_pair: u32,
        /// The port of the service, if it is an IP service.
        service_port: Option<u16>,
        /// The client's port, if it is an IP service.
        source_port: Option<u16>,
        /// Bytes of payload in a packet, at most.
        mtu_bytes: Option<u32>,
    },
    /// The server accepts it.
    ConnectReply {
        own: u32,
        peer: u32,
        /// The server's queue pair.
        queue_pair: u32,
    },
    /// The server refuses it, or the client gives up.
    ConnectReject { own: u32, peer: u32 },
    /// One side ends it.
    DisconnectRequest {
        /// The receiver's queue pair.
        queue_pair: u32,
    },
}

impl Message {
    /// Reads a management datagram; None if it is anything else, or cut off.
    pub fn parse(bytes: &[u8]) -> Option<Message> {
        if u8_at(bytes, 1)? != CLASS {
            return None;
        }
        let attribute = u16::from_be_bytes(*array_at(bytes, 16)?);
        let own = be32(bytes, MAD_BYTES)?;
        let peer = be32(bytes, MAD_BYTES + 4)?;
        Some(match attribute {
            0x10 => {
                let service = u64::from_be_bytes(*array_at(bytes, MAD_BYTES + 8)?);
                let is_ip = service >> 16 == IP_SERVICE;
                let source = array_at(bytes, REQUEST_PRIVATE + 2).copied().map(u16::from_be_bytes);
                Message::ConnectRequest {
                    own,
                    queue_pair: be24(bytes, MAD_BYTES + 32)?,
                    service_port: is_ip.then_some(service as u16),
                    source_port: source.filter(|_| is_ip),
                    mtu_bytes: match u8_at(bytes, MAD_BYTES + 50)? >> 4 {
                        code @ 1..=5 => Some(128 << code),
                        _ => None,
                    },
                }
            }
            0x12 => Message::ConnectReject { own, peer },
            0x13 => Message::ConnectReply { own, peer, queue_pair: be24(bytes, MAD_BYTES + 12)? },
            0x15 => Message::DisconnectRequest { queue_pair: be24(bytes, MAD_BYTES + 8)? },
            _ => return None,
        })
    }
}

use smbscope_wire::read::{array_at, u8_at};

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(|four| u32::from_be_bytes(*four))
}

fn be24(bytes: &[u8], at: usize) -> Option<u32> {
    array_at::<3>(bytes, at).map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(attribute: u8, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
        bytes[17] = attribute;
        for (at, value) in fields {
            bytes[24 + at..24 + at + value.len()].copy_from_slice(value);
        }
        bytes
    }

    #[test]
    fn reads_what_identifies_a_connection() {
        let service = [0, 0, 0, 0, 1, 6, 0x15, 0x45];
        let fields: &[(usize, &[u8])] = &[
            (0, &[0, 0, 0, 7]),
            (8, &service),
            (32, &[0, 0, 0x11]),
            (50, &[0x50]),
            (142, &[0xb4, 0xca]),
        ];
        let request = datagram(0x10, fields);
        let expected = Message::ConnectRequest {
            own: 7,
            queue_pair: 0x11,
            service_port: Some(5445),
            source_port: Some(0xb4ca),
            mtu_bytes: Some(4096),
        };
        assert_eq!(Message::parse(&request), Some(expected));
        let reply = datagram(0x13, &[(3, &[9]), (7, &[7]), (12, &[0, 0x22, 0xa3])]);
        let expected = Message::ConnectReply { own: 9, peer: 7, queue_pair: 0x22a3 };
        assert_eq!(Message::parse(&reply), Some(expected));
        let end = datagram(0x15, &[(8, &[0, 0x22, 0xa3])]);
        assert_eq!(Message::parse(&end), Some(Message::DisconnectRequest { queue_pair: 0x22a3 }));
        assert_eq!(Message::parse(&request[..70]), None);
        assert_eq!(Message::parse(&[0; 256]), None);
    }
}

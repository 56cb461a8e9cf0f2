//! The server's interfaces, in answer to FSCTL_QUERY_NETWORK_INTERFACE_INFO (MS-SMB2 section
//! 2.2.32.5).

use super::view::{Field, flags};
use crate::read::{array_at, slice_at, u16_at, u32_at, u64_at};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

flags! {
    /// What an interface can do.
    InterfaceCapabilities(u32) {
        RSS_CAPABLE = 0x0000_0001,
        RDMA_CAPABLE = 0x0000_0002,
    }
}

/// One address of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// The interface's number; several entries with the same are one interface.
    pub index: u32,
    /// Spreads over cores, RDMA.
    pub capabilities: InterfaceCapabilities,
    /// Bits per second.
    pub link_speed: u64,
    /// Its address; `None` for a family that is neither IPv4 nor IPv6.
    pub address: Option<IpAddr>,
}

/// Bytes of one entry.
const ENTRY_BYTES: usize = 152;

/// Windows' numbers of the families IPv4 and IPv6.
const FAMILY_V4: u16 = 0x0002;
const FAMILY_V6: u16 = 0x0017;

/// The entries in order; ends with the bytes, or if the list would not advance.
#[derive(Clone, Debug)]
pub struct NetworkInterfaces<'a> {
    rest: &'a [u8],
}

impl<'a> NetworkInterfaces<'a> {
    /// The entries in an ioctl's output.
    pub fn new(rest: &'a [u8]) -> Self {
        NetworkInterfaces { rest }
    }
}

impl Iterator for NetworkInterfaces<'_> {
    type Item = NetworkInterface;

    fn next(&mut self) -> Option<NetworkInterface> {
        let here = std::mem::take(&mut self.rest);
        let entry = slice_at(here, 0, ENTRY_BYTES)?;
        let next = u32_at(entry, 0)? as usize;
        if next >= ENTRY_BYTES {
            self.rest = here.get(next..).unwrap_or_default();
        }
        // A sockaddr_in or sockaddr_in6 with Windows' family numbers is at offset 24.
        let address = match u16_at(entry, 24)? {
            FAMILY_V4 => Some(Ipv4Addr::from(*array_at::<4>(entry, 28)?).into()),
            FAMILY_V6 => Some(Ipv6Addr::from(*array_at::<16>(entry, 32)?).into()),
            _ => None,
        };
        Some(NetworkInterface {
            index: u32_at(entry, 4)?,
            capabilities: InterfaceCapabilities::read(entry, 8)?,
            link_speed: u64_at(entry, 16)?,
            address,
        })
    }
}

/// The answer with these interfaces, as a server writes it; an address of no family has family 0.
pub fn to_bytes(interfaces: &[NetworkInterface]) -> Vec<u8> {
    let mut bytes = vec![0; interfaces.len() * ENTRY_BYTES];
    let last = interfaces.len().saturating_sub(1);
    let entries = bytes.chunks_exact_mut(ENTRY_BYTES).zip(interfaces);
    for (place, (entry, interface)) in entries.enumerate() {
        let next = if place == last { 0 } else { ENTRY_BYTES as u32 };
        let mut put = |at: usize, value: &[u8]| {
            if let Some(room) = entry.get_mut(at..at + value.len()) {
                room.copy_from_slice(value);
            }
        };
        put(0, &next.to_le_bytes());
        put(4, &interface.index.to_le_bytes());
        put(8, &interface.capabilities.0.to_le_bytes());
        put(16, &interface.link_speed.to_le_bytes());
        match interface.address {
            Some(IpAddr::V4(address)) => {
                put(24, &FAMILY_V4.to_le_bytes());
                put(28, &address.octets());
            }
            Some(IpAddr::V6(address)) => {
                put(24, &FAMILY_V6.to_le_bytes());
                put(32, &address.octets());
            }
            None => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::abuse;
    use super::*;

    #[test]
    fn lists_interfaces() {
        let mut bytes = vec![0; 2 * ENTRY_BYTES];
        bytes[0] = ENTRY_BYTES as u8;
        bytes[4] = 12;
        bytes[8] = 3;
        bytes[16..24].copy_from_slice(&10_000_000_000u64.to_le_bytes());
        bytes[24] = 2;
        bytes[28..32].copy_from_slice(&[10, 0, 0, 1]);
        bytes[ENTRY_BYTES + 24] = 0x17;
        bytes[ENTRY_BYTES + 47] = 1;
        let found: Vec<_> = NetworkInterfaces::new(&bytes).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            NetworkInterface {
                index: 12,
                capabilities: InterfaceCapabilities(3),
                link_speed: 10_000_000_000,
                address: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)))
            }
        );
        assert_eq!(found[1].address, Some(IpAddr::V6(Ipv6Addr::LOCALHOST)));
        bytes[0] = 4;
        assert_eq!(NetworkInterfaces::new(&bytes).count(), 1);
        abuse(&bytes, |bytes| {
            assert!(NetworkInterfaces::new(bytes).count() <= 2);
        });
    }

    #[test]
    fn reads_back_what_was_written() {
        let one = |index, address| NetworkInterface {
            index,
            capabilities: InterfaceCapabilities::RSS_CAPABLE,
            link_speed: 25_000_000_000,
            address,
        };
        let list = [
            one(2, Some(IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2)))),
            one(3, Some("fd00::7".parse().unwrap())),
            one(4, None),
        ];
        let bytes = to_bytes(&list);
        assert_eq!(NetworkInterfaces::new(&bytes).collect::<Vec<_>>(), list);
        assert!(to_bytes(&[]).is_empty());
    }
}

//! An IP address as a packet's headers hold it: two words that are compared and hashed at once.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 or IPv6 address.
///
/// IPv4 addresses are held in their IPv6-mapped form (`::ffff:a.b.c.d`), which no packet carries
/// as such.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub(super) [u64; 2]);

impl Address {
    /// From the four bytes of an IPv4 header.
    #[inline]
    pub fn v4(bytes: [u8; 4]) -> Address {
        Address([0, 0xffff_0000_0000 | u64::from(u32::from_be_bytes(bytes))])
    }

    /// From the sixteen bytes of an IPv6 header.
    #[inline]
    pub fn v6(bytes: [u8; 16]) -> Address {
        let bits = u128::from_be_bytes(bytes);
        Address([(bits >> 64) as u64, bits as u64])
    }

    /// The link-local IPv6 address that contains a MAC address (RFC 4291 appendix A), for stations
    /// without an IP address.
    pub fn of_station(mac: [u8; 6]) -> Address {
        let [a, b, c, d, e, f] = mac;
        Address::v6([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// In the standard library's form.
    pub fn ip(self) -> IpAddr {
        match self.0 {
            [0, low] if low >> 32 == 0xffff => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
            [high, low] => {
                IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)))
            }
        }
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Address {
        match ip {
            IpAddr::V4(v4) => Address::v4(v4.octets()),
            IpAddr::V6(v6) => Address::v6(v6.octets()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

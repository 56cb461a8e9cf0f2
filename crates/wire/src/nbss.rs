//! The four bytes before every SMB message on TCP: NetBIOS session service framing.
//!
//! RFC 1002 section 4.3.1 (port 139: type, flags whose lowest bit extends the length to 17 bits)
//! and MS-SMB2 section 2.1 (port 445: a zero byte and a 24-bit length). Both are read as a type
//! and a 24-bit length; on port 139 the upper seven bits of the flags must be zero anyway.

/// Bytes of the framing header.
pub const HEADER_BYTES: usize = 4;

/// Message type of the framing header (RFC 1002 section 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u8);

#[allow(missing_docs)]
impl Kind {
    pub const SESSION_MESSAGE: Kind = Kind(0x00);
    pub const SESSION_REQUEST: Kind = Kind(0x81);
    pub const POSITIVE_RESPONSE: Kind = Kind(0x82);
    pub const NEGATIVE_RESPONSE: Kind = Kind(0x83);
    pub const RETARGET_RESPONSE: Kind = Kind(0x84);
    pub const KEEP_ALIVE: Kind = Kind(0x85);

    /// Whether the type is one of RFC 1002's.
    pub fn is_known(self) -> bool {
        self.0 == 0 || (0x81..=0x85).contains(&self.0)
    }
}

/// A decoded framing header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows.
    pub kind: Kind,
    /// Bytes that follow the four bytes of the header (0 ..= 16,777,215).
    pub length: u32,
}

impl Header {
    /// Reads the first four bytes; `None` when fewer are there.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let [kind, a, b, c] = *crate::read::array_at(bytes, 0)?;
        Some(Header { kind: Kind(kind), length: u32::from_be_bytes([0, a, b, c]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_24_bit_length() {
        let header = Header::parse(&[0, 0x01, 0x00, 0x04, 0xfe]).unwrap();
        assert_eq!(header, Header { kind: Kind::SESSION_MESSAGE, length: 0x1_0004 });
        assert_eq!(Header::parse(&[0, 1, 2]), None);
    }
}

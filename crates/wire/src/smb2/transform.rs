//! What wraps SMB2 messages: the encryption header, and how a message's first bytes tell what it
//! is (MS-SMB2 sections 2.2.1, 2.2.41 and 2.2.42).
//!
//! Decryption belongs to `crypto`, the compression header and its algorithms to `compression`.

use crate::read::{array_at, slice_at};

/// The first four bytes of an encrypted message.
pub const ENCRYPTED_MAGIC: [u8; 4] = [0xfd, b'S', b'M', b'B'];

/// The first four bytes of a compressed message.
pub const COMPRESSED_MAGIC: [u8; 4] = [0xfc, b'S', b'M', b'B'];

/// Bytes of the encryption header; the encrypted messages follow it.
pub const TRANSFORM_HEADER_BYTES: usize = 52;

/// What a message behind the NetBIOS header is, by its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SMB1.
    Smb1,
    /// A plain SMB2 message.
    Smb2,
    /// SMB2, encrypted.
    Encrypted,
    /// SMB2, compressed.
    Compressed,
}

impl Protocol {
    /// Judges by the first four bytes; `None` if it is not SMB.
    #[inline]
    pub fn from_message(message: &[u8]) -> Option<Protocol> {
        let [first, b'S', b'M', b'B'] = *array_at(message, 0)? else {
            return None;
        };
        match first {
            0xff => Some(Protocol::Smb1),
            0xfe => Some(Protocol::Smb2),
            0xfd => Some(Protocol::Encrypted),
            0xfc => Some(Protocol::Compressed),
            _ => None,
        }
    }
}

/// An encrypted message, from its transform header.
#[derive(Clone, Copy, Debug)]
pub struct Transform<'a>(pub &'a [u8]);

impl<'a> Transform<'a> {
    /// The authentication tag.
    pub fn signature(self) -> Option<&'a [u8; 16]> {
        array_at(self.0, 4)
    }

    /// The nonce: the first 11 (CCM) or 12 (GCM) bytes count.
    pub fn nonce(self) -> Option<&'a [u8; 16]> {
        array_at(self.0, 20)
    }

    /// Bytes of the messages inside.
    #[inline]
    pub fn original_message_size(self) -> Option<u32> {
        crate::read::u32_at(self.0, 36)
    }

    /// 3.1.1: flags, of which 1 is "encrypted". 3.0 and 3.0.2: the cipher, 1 for AES-128-CCM.
    pub fn flags_or_algorithm(self) -> Option<u16> {
        crate::read::u16_at(self.0, 42)
    }

    /// The session whose key encrypted it.
    #[inline]
    pub fn session_id(self) -> Option<u64> {
        crate::read::u64_at(self.0, 44)
    }

    /// The part of the header that is authenticated with the message.
    pub fn authenticated(self) -> Option<&'a [u8]> {
        slice_at(self.0, 20, TRANSFORM_HEADER_BYTES - 20)
    }

    /// The encrypted bytes, as far as captured.
    pub fn ciphertext(self) -> Option<&'a [u8]> {
        self.0.get(TRANSFORM_HEADER_BYTES..)
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::abuse;
    use super::*;

    #[test]
    fn reads_a_transform_header() {
        let mut bytes = ENCRYPTED_MAGIC.to_vec();
        bytes.extend_from_slice(&[1; 16]);
        bytes.extend_from_slice(&[2; 16]);
        bytes.extend_from_slice(&[3, 0, 0, 0, 0, 0, 1, 0]);
        bytes.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(b"xyz");
        let view = Transform(&bytes);
        assert_eq!(view.signature(), Some(&[1; 16]));
        assert_eq!(view.nonce(), Some(&[2; 16]));
        assert_eq!(view.original_message_size(), Some(3));
        assert_eq!(view.flags_or_algorithm(), Some(1));
        assert_eq!(view.session_id(), Some(9));
        assert_eq!(view.authenticated().map(<[u8]>::len), Some(32));
        assert_eq!(view.ciphertext(), Some(&b"xyz"[..]));
        abuse(&bytes, |bytes| {
            let view = Transform(bytes);
            let _ = (view.signature(), view.nonce(), view.original_message_size());
            let _ = (view.flags_or_algorithm(), view.session_id());
            let _ = (view.authenticated(), view.ciphertext());
        });
    }

    #[test]
    fn recognizes_the_protocol() {
        assert_eq!(Protocol::from_message(b"\xffSMBr"), Some(Protocol::Smb1));
        assert_eq!(Protocol::from_message(&super::super::MAGIC), Some(Protocol::Smb2));
        assert_eq!(Protocol::from_message(&ENCRYPTED_MAGIC), Some(Protocol::Encrypted));
        assert_eq!(Protocol::from_message(&COMPRESSED_MAGIC), Some(Protocol::Compressed));
        assert_eq!(Protocol::from_message(b"\xfeSM"), None);
        assert_eq!(Protocol::from_message(b"\xfbSMB"), None);
        assert_eq!(Protocol::from_message(b"\xfeSMA"), None);
    }
}

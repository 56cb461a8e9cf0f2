//! Signing and encryption of SMB2 and SMB3 messages by somebody who has the keys.
//!
//! Owns: ciphers and keys, their derivation (`derive`), the preauthentication integrity hash
//! (`preauth`), signing one message (`sign`) with its algorithms (`mac`), encrypting and
//! decrypting one transform message (`encrypt`, `decrypt`) with its ciphers (`aead`, `ccm`),
//! Wireshark's list of keys (`key_list`), and the first packets of QUIC (`quic`). It does not own which session a message belongs to, nor
//! what must be protected (`capture`, `load`). MS-SMB2 sections 2.2.41, 3.1.4.1 to 3.1.4.3, 3.1.5.1.

mod aead;
mod ccm;
mod decrypt;
mod derive;
mod encrypt;
mod key_list;
mod mac;
mod preauth;
pub mod quic;
mod sign;

pub use crate::smb2::transform::TRANSFORM_HEADER_BYTES;
pub use decrypt::{DecryptError, Decryptor};
pub use derive::{SessionKeys, derive_session_keys, derive_signing_key};
pub use encrypt::{EncryptError, Encryptor};
pub use key_list::{KeyEntry, KeyListError, parse_key, parse_key_list};
pub use preauth::PreauthIntegrity;
pub use sign::Signer;

use std::fmt;
use zeroize::Zeroize;

/// A cipher of SMB2_ENCRYPTION_CAPABILITIES (MS-SMB2 section 2.2.3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cipher(pub u16);

#[allow(missing_docs)]
impl Cipher {
    pub const AES_128_CCM: Cipher = Cipher(1);
    pub const AES_128_GCM: Cipher = Cipher(2);
    pub const AES_256_CCM: Cipher = Cipher(3);
    pub const AES_256_GCM: Cipher = Cipher(4);

    /// All of them: where the Negotiate was not captured, the one that verifies is the right one.
    pub const ALL: [Cipher; 4] =
        [Cipher::AES_128_CCM, Cipher::AES_128_GCM, Cipher::AES_256_CCM, Cipher::AES_256_GCM];

    /// The length of its key; `None` for a cipher that is not known.
    pub fn key_bytes(self) -> Option<usize> {
        match self {
            Cipher::AES_128_CCM | Cipher::AES_128_GCM => Some(16),
            Cipher::AES_256_CCM | Cipher::AES_256_GCM => Some(32),
            _ => None,
        }
    }
}

/// A secret of 1 to 32 bytes: a session key, or the key of one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; Key::BYTES_MAX],
    length: usize,
}

impl Key {
    /// The longest key: AES-256's, or the session key of a Kerberos ticket that uses it.
    pub const BYTES_MAX: usize = 32;

    /// `None` when there are no bytes or too many.
    pub fn new(bytes: &[u8]) -> Option<Key> {
        let mut key = Key { bytes: [0; Key::BYTES_MAX], length: bytes.len() };
        let room = key.bytes.get_mut(..bytes.len())?;
        room.copy_from_slice(bytes);
        (!bytes.is_empty()).then_some(key)
    }

    /// The secret itself.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }

    /// The first 16 bytes, with zeros behind a shorter key (`Session.SessionKey`).
    fn first_16(&self) -> Key {
        let mut key = Key { bytes: [0; Key::BYTES_MAX], length: 16 };
        key.bytes[..16].copy_from_slice(&self.bytes[..16]);
        key
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for Key {
    /// Says the length only, so that no log holds a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_1_to_32_bytes_and_does_not_print_them() {
        assert_eq!(Key::new(&[]), None);
        assert_eq!(Key::new(&[1; 33]), None);
        let key = Key::new(&[0xab; 8]).unwrap();
        assert_eq!(key.as_bytes(), [0xab; 8]);
        assert_eq!(key.first_16().as_bytes()[7..9], [0xab, 0]);
        assert_eq!(format!("{key:?}"), "Key(8 bytes)");
    }
}

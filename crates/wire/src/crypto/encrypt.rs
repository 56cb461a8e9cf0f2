//! Encryption of one message, in place, behind an SMB2 TRANSFORM_HEADER.
//!
//! Owns: the header and the nonces. MS-SMB2 sections 2.2.41 (a nonce is never used again under
//! its key) and 3.1.4.3. It does not own which messages are encrypted, nor the framing.

use super::aead::Aead;
use super::{Cipher, Key};
use crate::smb2::transform::{ENCRYPTED_MAGIC, TRANSFORM_HEADER_BYTES};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a message was not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptError {
    /// The buffer is shorter than the header.
    NoRoom {
        /// Bytes of the buffer; [`TRANSFORM_HEADER_BYTES`] are needed in front of the message.
        bytes: usize,
    },
    /// The message is longer than a header can say (32 bits).
    TooLong {
        /// Bytes of the message.
        bytes: usize,
    },
}

impl fmt::Display for EncryptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncryptError::NoRoom { bytes } => write!(
                f,
                "a buffer of {bytes} bytes has no room for the {TRANSFORM_HEADER_BYTES} bytes of \
                 the encryption header; leave them in front of the message"
            ),
            EncryptError::TooLong { bytes } => {
                write!(f, "a message of {bytes} bytes cannot be encrypted; split it below 4 GiB")
            }
        }
    }
}

impl std::error::Error for EncryptError {}

/// A cipher with the key of one direction of a session, and the nonces used under it.
///
/// All channels of a session have the same key: they must share one encryptor (it may be used from
/// several threads), so that no nonce comes twice. A nonce is a 64-bit counter, unique for 2^64
/// messages, before 24 (CCM) or 32 bits (GCM) that stay; both start at random, so that a second
/// encryptor of the same key, made by mistake or after a reconnect, does not repeat the first's.
pub struct Encryptor {
    aead: Box<Aead>,
    salt: [u8; 4],
    counter: AtomicU64,
}

impl Encryptor {
    /// `None` when the cipher is not known, the key has not its length, or the system gives no
    /// random bytes.
    pub fn new(cipher: Cipher, key: &Key) -> Option<Encryptor> {
        let aead = Box::new(Aead::new(cipher, key)?);
        let mut salt = [0; 4];
        getrandom::fill(&mut salt).ok()?;
        let counter = AtomicU64::new(getrandom::u64().ok()?);
        Some(Encryptor { aead, salt, counter })
    }

    /// Encrypts in place. `message` is [`TRANSFORM_HEADER_BYTES`] of room, whose content does not
    /// matter, and the SMB2 message or compound; after it the same bytes are the transform header
    /// and the encrypted message. After an error nothing is changed.
    pub fn encrypt(&self, session_id: u64, message: &mut [u8]) -> Result<(), EncryptError> {
        let bytes = message.len();
        let Some((header, plain)) = message.split_first_chunk_mut::<TRANSFORM_HEADER_BYTES>()
        else {
            return Err(EncryptError::NoRoom { bytes });
        };
        let too_long = EncryptError::TooLong { bytes: plain.len() };
        let size = u32::try_from(plain.len()).map_err(|_| too_long)?;
        let nonce = self.next_nonce();
        let mut fields = [0; TRANSFORM_HEADER_BYTES];
        fields[..4].copy_from_slice(&ENCRYPTED_MAGIC);
        fields[20..36].copy_from_slice(&nonce);
        fields[36..40].copy_from_slice(&size.to_le_bytes());
        // Flags of 3.1.1: encrypted; EncryptionAlgorithm of 3.0 and 3.0.2: AES-128-CCM. Both 1.
        fields[42] = 1;
        fields[44..].copy_from_slice(&session_id.to_le_bytes());
        let tag = self.aead.seal(&nonce, &fields[20..], plain).ok_or(too_long)?;
        fields[4..20].copy_from_slice(&tag);
        *header = fields;
        Ok(())
    }

    /// The nonce field: what the cipher does not take is zero.
    fn next_nonce(&self) -> [u8; 16] {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        let salt_bytes = self.aead.nonce_bytes() - 8;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&counter.to_le_bytes());
        for (byte, salt) in nonce[8..].iter_mut().zip(&self.salt[..salt_bytes]) {
            *byte = *salt;
        }
        nonce
    }
}

impl fmt::Debug for Encryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encryptor({})", self.aead.name())
    }
}

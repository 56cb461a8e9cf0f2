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
        let mut start = [0; 12];
        getrandom::fill(&mut start).ok()?;
        let counter = AtomicU64::new(u64::from_le_bytes(*start.first_chunk()?));
        Some(Encryptor { aead, salt: *start.last_chunk()?, counter })
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
        // Nonce, size, reserved, flags, session id: what is authenticated with the message.
        let mut aad = [0; 32];
        aad[..16].copy_from_slice(&nonce);
        aad[16..20].copy_from_slice(&size.to_le_bytes());
        // Flags of 3.1.1: encrypted; EncryptionAlgorithm of 3.0 and 3.0.2: AES-128-CCM. Both 1.
        aad[22] = 1;
        aad[24..].copy_from_slice(&session_id.to_le_bytes());
        let tag = self.aead.seal(&nonce, &aad, plain).ok_or(too_long)?;
        header[..4].copy_from_slice(&ENCRYPTED_MAGIC);
        header[4..20].copy_from_slice(&tag);
        header[20..].copy_from_slice(&aad);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::Decryptor;
    use crate::smb2::transform::Transform;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn pair(cipher: Cipher) -> (Encryptor, Decryptor) {
        let key = Key::new(&[9; 32][..cipher.key_bytes().unwrap()]).unwrap();
        (Encryptor::new(cipher, &key).unwrap(), Decryptor::new(cipher, &key).unwrap())
    }

    #[test]
    fn writes_the_transform_header() {
        for cipher in Cipher::ALL {
            let (encryptor, _) = pair(cipher);
            let mut message = vec![0xee; TRANSFORM_HEADER_BYTES + 70];
            encryptor.encrypt(0x1122_3344_5566_7788, &mut message).unwrap();
            assert!(message.starts_with(&ENCRYPTED_MAGIC));
            let view = Transform(&message);
            assert_eq!(view.original_message_size(), Some(70));
            assert_eq!(message[40..42], [0, 0]);
            assert_eq!(view.flags_or_algorithm(), Some(1));
            assert_eq!(view.session_id(), Some(0x1122_3344_5566_7788));
            let unused = &message[20 + encryptor.aead.nonce_bytes()..36];
            assert!(unused.iter().all(|byte| *byte == 0), "{unused:?}");
            assert_ne!(message[52..], [0xee; 70]);
        }
    }

    #[test]
    fn no_nonce_repeats_when_threads_share_the_encryptor() {
        for cipher in [Cipher::AES_128_CCM, Cipher::AES_256_GCM] {
            let (encryptor, _) = pair(cipher);
            let nonces = || {
                let nonce = |_| {
                    let mut message = [0; TRANSFORM_HEADER_BYTES];
                    encryptor.encrypt(1, &mut message).unwrap();
                    <[u8; 16]>::try_from(&message[20..36]).unwrap()
                };
                (0..500).map(nonce).collect::<Vec<_>>()
            };
            let found = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(nonces));
                threads.map(|thread| thread.join().unwrap()).concat()
            });
            assert_eq!(found.iter().collect::<HashSet<_>>().len(), 2000);
            // Another encryptor of the same key starts elsewhere.
            let (other, _) = pair(cipher);
            assert!(!found.contains(&other.next_nonce()));
        }
    }

    #[test]
    fn the_counter_may_wrap() {
        let (mut encryptor, _) = pair(Cipher::AES_128_GCM);
        encryptor.counter = AtomicU64::new(u64::MAX);
        encryptor.salt = [1, 2, 3, 4];
        assert_eq!(encryptor.next_nonce(), 0x0403_0201_ffff_ffff_ffff_ffff_u128.to_le_bytes());
        assert_eq!(encryptor.next_nonce(), 0x0403_0201_0000_0000_0000_0000_u128.to_le_bytes());
    }

    #[test]
    fn wants_room_for_the_header() {
        let (encryptor, _) = pair(Cipher::AES_128_GCM);
        let error = encryptor.encrypt(1, &mut [0; 51]).unwrap_err();
        assert_eq!(error, EncryptError::NoRoom { bytes: 51 });
        assert!(error.to_string().contains("52 bytes"), "{error}");
        assert!(Encryptor::new(Cipher(5), &Key::new(&[1; 16]).unwrap()).is_none());
        assert!(Encryptor::new(Cipher::AES_256_GCM, &Key::new(&[1; 16]).unwrap()).is_none());
        assert_eq!(format!("{encryptor:?}"), "Encryptor(AES-128-GCM)");
    }

    proptest! {
        #[test]
        fn any_encrypted_message_decrypts(
            plain in proptest::collection::vec(any::<u8>(), 0..400),
            session: u64,
            at: proptest::sample::Index,
        ) {
            for cipher in Cipher::ALL {
                let (encryptor, decryptor) = pair(cipher);
                let mut message = [&[0; TRANSFORM_HEADER_BYTES], plain.as_slice()].concat();
                encryptor.encrypt(session, &mut message).unwrap();
                let mut out = Vec::new();
                decryptor.decrypt(&message, &mut out).unwrap();
                prop_assert_eq!(&out, &plain);

                let mut changed = message.clone();
                let at = 4 + at.index(message.len() - 4);
                changed[at] ^= 0x10;
                prop_assert!(decryptor.decrypt(&changed, &mut out).is_err());
                prop_assert!(decryptor.decrypt_in_place(&mut changed).is_err());

                let range = decryptor.decrypt_in_place(&mut message).unwrap();
                prop_assert_eq!(&message[range], &plain);
            }
        }
    }
}

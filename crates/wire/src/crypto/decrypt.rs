//! Decryption of one message behind an SMB2 TRANSFORM_HEADER.
//!
//! MS-SMB2 section 2.2.41 (the header: `FD 'SMB'`, signature, nonce, size, session) and 3.1.4.3:
//! the header from the nonce on is authenticated, the signature is the tag of CCM (11 bytes of the
//! nonce) or GCM (12 bytes). The header's other fields are read by `smb2`.

use super::aead::Aead;
use super::{Cipher, Key};
use crate::read::{array_at, slice_at, u32_at};
use crate::smb2::transform::{ENCRYPTED_MAGIC, TRANSFORM_HEADER_BYTES};
use std::fmt;
use std::ops::Range;

/// Why a message was not decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecryptError {
    /// It does not start with `FD 'SMB'`.
    NotEncrypted,
    /// Not all of it was captured.
    Truncated {
        /// Bytes given.
        captured: usize,
        /// Bytes that the header asks for.
        needed: usize,
    },
    /// The tag does not fit: another key or cipher, or changed bytes.
    Unverified,
}

impl fmt::Display for DecryptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecryptError::NotEncrypted => f.write_str("no SMB2 TRANSFORM_HEADER"),
            DecryptError::Truncated { captured, needed } => {
                write!(f, "{captured} of {needed} bytes were captured")
            }
            DecryptError::Unverified => f.write_str("the key does not fit or bytes were changed"),
        }
    }
}

impl std::error::Error for DecryptError {}

/// A cipher with the key of one direction of a session, its round keys expanded.
pub struct Decryptor(Box<Aead>);

impl Decryptor {
    /// `None` when the cipher is not known or the key has not its length.
    pub fn new(cipher: Cipher, key: &Key) -> Option<Decryptor> {
        Some(Decryptor(Box::new(Aead::new(cipher, key)?)))
    }

    /// Decrypts and verifies `message` (all of it, from `FD 'SMB'` on; bytes behind its end are
    /// left alone) into `out`, whose contents it replaces. After an error `out` is empty.
    pub fn decrypt(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), DecryptError> {
        out.clear();
        let parts = Parts::from_message(message)?;
        let body = message.get(TRANSFORM_HEADER_BYTES..).unwrap_or_default();
        out.extend_from_slice(slice_at(body, 0, parts.length).ok_or(parts.truncated(message))?);
        let opened = parts.open(&self.0, out);
        if opened.is_err() {
            out.clear();
        }
        opened
    }

    /// The same where the message stands: gives the range of the plaintext in it. After
    /// [`DecryptError::Unverified`] the encrypted bytes may be lost; after another error nothing
    /// is changed.
    pub fn decrypt_in_place(&self, message: &mut [u8]) -> Result<Range<usize>, DecryptError> {
        let parts = Parts::from_message(message)?;
        let range = TRANSFORM_HEADER_BYTES..TRANSFORM_HEADER_BYTES.saturating_add(parts.length);
        let truncated = parts.truncated(message);
        parts.open(&self.0, message.get_mut(range.clone()).ok_or(truncated)?)?;
        Ok(range)
    }

    /// Decrypts the part of a message that was captured, for captures cut to headers. The tag
    /// cannot be checked; instead the result must start like an SMB2 message, plain (`FE 'SMB'`)
    /// or compressed (`FC 'SMB'`), which another key passes once in two thousand million times.
    pub fn decrypt_prefix(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), DecryptError> {
        out.clear();
        let parts = Parts::from_message(message)?;
        let body = message.get(TRANSFORM_HEADER_BYTES..).unwrap_or_default();
        out.extend_from_slice(body.get(..parts.length).unwrap_or(body));
        let applied = self.0.apply(&parts.nonce, out);
        if out.len() < 4 {
            out.clear();
            return Err(DecryptError::Truncated {
                captured: message.len(),
                needed: TRANSFORM_HEADER_BYTES + 4,
            });
        }
        if !applied || !(out.starts_with(b"\xfeSMB") || out.starts_with(b"\xfcSMB")) {
            out.clear();
            return Err(DecryptError::Unverified);
        }
        Ok(())
    }
}

impl fmt::Debug for Decryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decryptor({})", self.0.name())
    }
}

/// What a transform header says: copied, so that the body may be changed meanwhile.
struct Parts {
    tag: [u8; 16],
    nonce: [u8; 16],
    associated: [u8; 32],
    length: usize,
}

impl Parts {
    fn from_message(message: &[u8]) -> Result<Parts, DecryptError> {
        if !message.starts_with(&ENCRYPTED_MAGIC) {
            return Err(DecryptError::NotEncrypted);
        }
        let parts = || {
            Some(Parts {
                tag: *array_at(message, 4)?,
                nonce: *array_at(message, 20)?,
                associated: *array_at(message, 20)?,
                length: usize::try_from(u32_at(message, 36)?).ok()?,
            })
        };
        parts().ok_or(DecryptError::Truncated {
            captured: message.len(),
            needed: TRANSFORM_HEADER_BYTES,
        })
    }

    fn truncated(&self, message: &[u8]) -> DecryptError {
        DecryptError::Truncated {
            captured: message.len(),
            needed: TRANSFORM_HEADER_BYTES.saturating_add(self.length),
        }
    }

    fn open(&self, aead: &Aead, body: &mut [u8]) -> Result<(), DecryptError> {
        let opened = aead.open(&self.nonce, &self.associated, body, &self.tag);
        opened.then_some(()).ok_or(DecryptError::Unverified)
    }
}

#[cfg(test)]
mod tests {
    use super::super::key_list::tests::{hex, key};
    use super::*;
    use crate::crypto::Encryptor;
    use proptest::prelude::*;

    /// From Microsoft's "SMB 3.1.1 Encryption in Windows 10": a Write and its reply.
    const GCM_REQUEST: &str = concat!(
        "fd534d42bd73d97d2bc9001bcafac0fdff5feebcc7d6822d269caf48904c664c0000000087000000",
        "0000010025000000001000006ecdd2a7afc7b47763057a041b8fd4daffe990b70c9e09d36c084e02",
        "d14ef247f8bde38acf6256f8b1d3b56f77fbdeb312fea5e92cbcc1ed8fb2ebbfaa75e49a4a394bb4",
        "4576545567c24d4c014d47c9fbdfdafd2c4f9b72f8d256452620a299f48e29e53d6b61d1c13a19e9",
        "1af013f00d17e3abc2fc3d36c8c1b6b93973253852dbd442e46ee8"
    );
    const GCM_RESPONSE: &str = concat!(
        "fd534d42acbe1cb7ed343adf1725ef144d90d4b0e06831dd2e8eb7b4000000000000000050000000",
        "00000100250000000010000026bbbf949983a6c1c796559d0f2c510cb651d1f7b6ac8ded32a2a0b8",
        "f2d793a815c6f6b848d69767a215841a42d400ae6ddb5f0b44173a014973321fdd7950da6179159b",
        "82e03c9e18a050ff0ea1c967"
    );
    /// From "Encryption in SMB 3.0: A protocol perspective": the reply to a Write.
    const CCM_RESPONSE: &str = concat!(
        "fd534d42a6015530a18f6d9affe22afae8e66484860000000000000011000014",
        "00e4080050000000000001001100001400e40800dbf46435c5f14169293ce079",
        "e344479bf670227e49873f458672c3098dac467dd5809f369d67409166515787",
        "1483e01f7becd02064eac3e235f913668bbc2f097980d4b378f1993eff6e60d1",
        "77309e5b"
    );

    fn request() -> (Decryptor, Vec<u8>) {
        let key = key("a2f5e80e5d59103034f32e52f698e5ec");
        let decryptor = Decryptor::new(Cipher::AES_128_GCM, &key).unwrap();
        (decryptor, hex(GCM_REQUEST))
    }

    #[test]
    fn published_messages_of_3_1_1_gcm() {
        let (decryptor, message) = request();
        let mut out = vec![1, 2, 3];
        decryptor.decrypt(&message, &mut out).unwrap();
        assert_eq!(out.len(), 0x87);
        assert!(out.starts_with(&hex("fe534d4240000100000000000900010008000000")));
        assert!(out.ends_with(b"Smb3 encryption testing"));

        let key = key("748c50868c90f302962a5c35f5f9a8bf");
        let decryptor = Decryptor::new(Cipher::AES_128_GCM, &key).unwrap();
        decryptor.decrypt(&hex(GCM_RESPONSE), &mut out).unwrap();
        let expected = concat!(
            "fe534d4240000100000000000900010001000000000000000500000000000000fffe000001000000",
            "25000000001000000000000000000000000000000000000011000000170000000000000000000000"
        );
        assert_eq!(out, hex(expected));
    }

    #[test]
    fn published_message_of_3_0_ccm() {
        let key = key("8fe2b57ec34d2db5b1a9727f526bbdb5");
        let decryptor = Decryptor::new(Cipher::AES_128_CCM, &key).unwrap();
        let mut out = Vec::new();
        decryptor.decrypt(&hex(CCM_RESPONSE), &mut out).unwrap();
        let expected = concat!(
            "fe534d4240000100000000000900210009000000000000000400000000000000",
            "fffe0000010000001100001400e4080000000000000000000000000000000000",
            "11000000170000000000000000000000"
        );
        assert_eq!(out, hex(expected));
    }

    #[test]
    fn the_256_bit_ciphers() {
        let plain: Vec<u8> = b"\xfeSMB".iter().copied().chain(0..200).collect();
        let secret = [7u8; 32];
        let key = Key::new(&secret).unwrap();
        let mut out = Vec::new();
        for cipher in [Cipher::AES_256_CCM, Cipher::AES_256_GCM] {
            let mut message = [&[0; TRANSFORM_HEADER_BYTES], plain.as_slice()].concat();
            Encryptor::new(cipher, &key).unwrap().encrypt(5, &mut message).unwrap();
            let decryptor = Decryptor::new(cipher, &key).unwrap();
            decryptor.decrypt(&message, &mut out).unwrap();
            assert_eq!(out, plain);
            decryptor.decrypt_prefix(&message[..100], &mut out).unwrap();
            assert_eq!(out, plain[..48]);
        }
        let short = Key::new(&secret[..16]).unwrap();
        assert!(Decryptor::new(Cipher::AES_256_GCM, &short).is_none());
        assert!(Decryptor::new(Cipher(9), &key).is_none());
    }

    #[test]
    fn a_changed_byte_or_another_key_is_noticed() {
        let (decryptor, message) = request();
        let mut out = Vec::new();
        // All but the protocol, the tail of the nonce that GCM leaves out is authenticated too.
        for index in (4..36).chain(40..message.len()) {
            let mut changed = message.clone();
            changed[index] ^= 1;
            let result = decryptor.decrypt(&changed, &mut out);
            assert_eq!(result, Err(DecryptError::Unverified), "byte {index}");
            assert!(out.is_empty());
        }
        let other = Decryptor::new(Cipher::AES_128_GCM, &key(&"00".repeat(16))).unwrap();
        assert!(other.decrypt(&message, &mut out).is_err());
        let prefix = other.decrypt_prefix(&message, &mut out);
        assert_eq!(prefix, Err(DecryptError::Unverified));
    }

    #[test]
    fn every_truncation_gives_its_prefix() {
        let (decryptor, message) = request();
        let (mut whole, mut out) = (Vec::new(), Vec::new());
        decryptor.decrypt(&message, &mut whole).unwrap();
        for length in 0..message.len() {
            let cut = &message[..length];
            let error = decryptor.decrypt(cut, &mut out).unwrap_err();
            assert_ne!(error, DecryptError::Unverified);
            assert_eq!(decryptor.decrypt_in_place(&mut cut.to_vec()), Err(error));
            let prefix = decryptor.decrypt_prefix(cut, &mut out);
            assert_eq!(prefix.is_ok(), length >= 56, "{length}");
            if length >= 56 {
                assert_eq!(out, whole[..length - 52]);
            }
        }
        let mut padded = [&message[..], &[0; 5]].concat();
        decryptor.decrypt(&padded, &mut out).unwrap();
        assert_eq!(out, whole);
        let range = decryptor.decrypt_in_place(&mut padded).unwrap();
        assert_eq!(padded[range], whole);
        assert!(padded.ends_with(&[0; 5]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (decryptor, _) = request();
            let mut out = Vec::new();
            let mut message = [b"\xfdSMB", tail.as_slice()].concat();
            let error = decryptor.decrypt(&message, &mut out).unwrap_err();
            let _ = decryptor.decrypt_prefix(&message, &mut out);
            prop_assert_eq!(decryptor.decrypt_in_place(&mut message), Err(error));
        }
    }
}

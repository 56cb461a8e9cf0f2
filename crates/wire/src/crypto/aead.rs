//! The four ciphers with a key: sealing, opening, and the bare key stream.
//!
//! Owns: which part of a transform header's nonce each cipher takes, and which library does it:
//! GCM is aws-lc's, CCM is made in `ccm` (no library has a fast one). It knows neither the header
//! (`encrypt`, `decrypt`) nor where keys come from (`derive`). MS-SMB2 section 2.2.41; NIST SP
//! 800-38C (CCM) and 800-38D (GCM).

use super::{Cipher, Key, ccm};
use aes::cipher::KeyInit;
use aes::{Aes128Enc, Aes256Enc};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, Nonce, UnboundKey};

/// A cipher with its key, the round keys expanded.
pub enum Aead {
    Aes128Ccm(Aes128Enc),
    Aes128Gcm(LessSafeKey),
    Aes256Ccm(Aes256Enc),
    Aes256Gcm(LessSafeKey),
}

impl Aead {
    /// `None` when the cipher is not known or the key has not its length.
    pub fn new(cipher: Cipher, key: &Key) -> Option<Aead> {
        let key = key.as_bytes();
        Some(match cipher {
            Cipher::AES_128_CCM => Aead::Aes128Ccm(KeyInit::new_from_slice(key).ok()?),
            Cipher::AES_128_GCM => Aead::Aes128Gcm(gcm(&AES_128_GCM, key)?),
            Cipher::AES_256_CCM => Aead::Aes256Ccm(KeyInit::new_from_slice(key).ok()?),
            Cipher::AES_256_GCM => Aead::Aes256Gcm(gcm(&AES_256_GCM, key)?),
            _ => return None,
        })
    }

    /// Encrypts `text` in place and gives the tag; `None` when the text is too long (CCM's length
    /// field has 32 bits).
    pub fn seal(&self, nonce: &[u8; 16], aad: &[u8; 32], text: &mut [u8]) -> Option<[u8; 16]> {
        match self {
            Aead::Aes128Ccm(cipher) => ccm::seal(cipher, &first(nonce), aad, text),
            Aead::Aes256Ccm(cipher) => ccm::seal(cipher, &first(nonce), aad, text),
            Aead::Aes128Gcm(key) | Aead::Aes256Gcm(key) => {
                let nonce = Nonce::assume_unique_for_key(first(nonce));
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), text).ok()?;
                tag.as_ref().try_into().ok()
            }
        }
    }

    /// Decrypts `text` in place if the tag matches; otherwise its content is unspecified, but not
    /// the plaintext.
    pub fn open(&self, nonce: &[u8; 16], aad: &[u8; 32], text: &mut [u8], tag: &[u8; 16]) -> bool {
        match self {
            Aead::Aes128Ccm(cipher) => ccm::open(cipher, &first(nonce), aad, text, tag),
            Aead::Aes256Ccm(cipher) => ccm::open(cipher, &first(nonce), aad, text, tag),
            Aead::Aes128Gcm(key) | Aead::Aes256Gcm(key) => {
                let nonce = Nonce::assume_unique_for_key(first(nonce));
                key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, text).is_ok()
            }
        }
    }

    /// Applies the key stream alone. All modes are counter modes, so that it decrypts too.
    pub fn apply(&self, nonce: &[u8; 16], text: &mut [u8]) -> bool {
        self.seal(nonce, &[0; 32], text).is_some()
    }

    /// Bytes of the nonce that count.
    pub fn nonce_bytes(&self) -> usize {
        match self {
            Aead::Aes128Ccm(_) | Aead::Aes256Ccm(_) => 11,
            Aead::Aes128Gcm(_) | Aead::Aes256Gcm(_) => 12,
        }
    }

    /// As Wireshark calls the cipher.
    pub fn name(&self) -> &'static str {
        match self {
            Aead::Aes128Ccm(_) => "AES-128-CCM",
            Aead::Aes128Gcm(_) => "AES-128-GCM",
            Aead::Aes256Ccm(_) => "AES-256-CCM",
            Aead::Aes256Gcm(_) => "AES-256-GCM",
        }
    }
}

/// A key of AES-GCM; `None` when it has not the algorithm's length.
pub fn gcm(algorithm: &'static Algorithm, key: &[u8]) -> Option<LessSafeKey> {
    Some(LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?))
}

fn first<const N: usize>(nonce: &[u8; 16]) -> [u8; N] {
    const { assert!(N <= 16) };
    std::array::from_fn(|index| nonce[index])
}

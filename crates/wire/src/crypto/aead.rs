//! The four ciphers with a key: sealing, opening, and the bare key stream.
//!
//! Owns: which part of a transform header's nonce each cipher takes and the call of the library.
//! It knows neither the header (`encrypt`, `decrypt`) nor where keys come from (`derive`).
//! MS-SMB2 section 2.2.41; NIST SP 800-38C (CCM) and 800-38D (GCM).

use super::{Cipher, Key};
use aes::{Aes128Enc, Aes256Enc};
use aes_gcm::AesGcm;
use aes_gcm::aead::consts::{U11, U12, U16};
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce};
use ccm::Ccm;

type Aes128Ccm = Ccm<Aes128Enc, U16, U11>;
type Aes256Ccm = Ccm<Aes256Enc, U16, U11>;
type Aes128Gcm = AesGcm<Aes128Enc, U12>;
type Aes256Gcm = AesGcm<Aes256Enc, U12>;

/// A cipher with its key, the round keys expanded.
pub enum Aead {
    Aes128Ccm(Aes128Ccm),
    Aes128Gcm(Aes128Gcm),
    Aes256Ccm(Aes256Ccm),
    Aes256Gcm(Aes256Gcm),
}

impl Aead {
    /// `None` when the cipher is not known or the key has not its length.
    pub fn new(cipher: Cipher, key: &Key) -> Option<Aead> {
        let key = key.as_bytes();
        Some(match cipher {
            Cipher::AES_128_CCM => Aead::Aes128Ccm(KeyInit::new_from_slice(key).ok()?),
            Cipher::AES_128_GCM => Aead::Aes128Gcm(KeyInit::new_from_slice(key).ok()?),
            Cipher::AES_256_CCM => Aead::Aes256Ccm(KeyInit::new_from_slice(key).ok()?),
            Cipher::AES_256_GCM => Aead::Aes256Gcm(KeyInit::new_from_slice(key).ok()?),
            _ => return None,
        })
    }

    /// Encrypts `buffer` in place and gives the tag; `None` when the buffer is too long (CCM's
    /// length field has 32 bits).
    pub fn seal(&self, nonce: &[u8; 16], associated: &[u8], buffer: &mut [u8]) -> Option<[u8; 16]> {
        match self {
            Aead::Aes128Ccm(aead) => seal(aead, first::<11>(nonce), associated, buffer),
            Aead::Aes128Gcm(aead) => seal(aead, first::<12>(nonce), associated, buffer),
            Aead::Aes256Ccm(aead) => seal(aead, first::<11>(nonce), associated, buffer),
            Aead::Aes256Gcm(aead) => seal(aead, first::<12>(nonce), associated, buffer),
        }
    }

    /// Decrypts `buffer` in place when the tag fits; otherwise its content is not specified, but
    /// it is no plaintext.
    pub fn open(
        &self,
        nonce: &[u8; 16],
        associated: &[u8],
        buffer: &mut [u8],
        tag: &[u8; 16],
    ) -> bool {
        match self {
            Aead::Aes128Ccm(aead) => open(aead, first::<11>(nonce), associated, buffer, tag),
            Aead::Aes128Gcm(aead) => open(aead, first::<12>(nonce), associated, buffer, tag),
            Aead::Aes256Ccm(aead) => open(aead, first::<11>(nonce), associated, buffer, tag),
            Aead::Aes256Gcm(aead) => open(aead, first::<12>(nonce), associated, buffer, tag),
        }
    }

    /// Applies the key stream alone. All modes are counter modes, so that it decrypts too.
    pub fn apply(&self, nonce: &[u8; 16], buffer: &mut [u8]) -> bool {
        self.seal(nonce, &[], buffer).is_some()
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

fn first<const N: usize>(nonce: &[u8; 16]) -> [u8; N] {
    const { assert!(N <= 16) };
    std::array::from_fn(|index| nonce[index])
}

fn seal<A, const N: usize>(
    aead: &A,
    nonce: [u8; N],
    associated: &[u8],
    buffer: &mut [u8],
) -> Option<[u8; 16]>
where
    A: AeadInOut<TagSize = U16>,
    Nonce<A>: From<[u8; N]>,
{
    let tag = aead.encrypt_inout_detached(&nonce.into(), associated, buffer.into()).ok()?;
    Some(tag.into())
}

fn open<A, const N: usize>(
    aead: &A,
    nonce: [u8; N],
    associated: &[u8],
    buffer: &mut [u8],
    tag: &[u8; 16],
) -> bool
where
    A: AeadInOut<TagSize = U16>,
    Nonce<A>: From<[u8; N]>,
{
    aead.decrypt_inout_detached(&nonce.into(), associated, buffer.into(), tag.into()).is_ok()
}

//! The three message authentication codes over a header, sixteen zeros, and the rest.
//!
//! Owns: keyed state that is made once, and one computation without an allocation or a copy of the
//! message. It does not know SMB2's fields (`sign`). RFC 2104 (HMAC), RFC 4493 (AES-CMAC), RFC 4543
//! and NIST SP 800-38D (AES-GMAC: the tag of AES-GCM without a plaintext).

use crate::smb2::negotiate_context::SigningId;
use aes::Aes128Enc;
use aes::cipher::{Block, BlockCipherEncrypt, KeyInit as _};
use cmac::Cmac;
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// One algorithm with its key.
pub enum Mac {
    /// The first 16 of 32 bytes count.
    HmacSha256(Hmac<Sha256>),
    AesCmac(Cmac<Aes128Enc>),
    AesGmac(Gmac),
}

impl Mac {
    /// `None` when the algorithm is not known.
    pub fn new(algorithm: SigningId, key: &[u8; 16]) -> Option<Mac> {
        Some(match algorithm {
            SigningId::HMAC_SHA256 => Mac::HmacSha256(Hmac::new_from_slice(key).ok()?),
            SigningId::AES_CMAC => Mac::AesCmac(Cmac::new(key.into())),
            SigningId::AES_GMAC => Mac::AesGmac(Gmac::new(key)),
            _ => return None,
        })
    }

    /// The code of `head`, 16 zeros and `rest`; the nonce is asked for by AES-GMAC only.
    pub fn compute(
        &self,
        nonce: impl FnOnce() -> [u8; 12],
        head: &[u8; 48],
        rest: &[u8],
    ) -> [u8; 16] {
        match self {
            Mac::HmacSha256(mac) => {
                let mut mac = mac.clone();
                mac.update(head);
                mac.update(&[0; 16]);
                mac.update(rest);
                let code = mac.finalize().into_bytes();
                std::array::from_fn(|index| code[index])
            }
            Mac::AesCmac(mac) => {
                let mut mac = mac.clone();
                mac.update(head);
                mac.update(&[0; 16]);
                mac.update(rest);
                mac.finalize().into_bytes().into()
            }
            Mac::AesGmac(mac) => mac.compute(nonce(), head, rest),
        }
    }

    /// As Wireshark calls the algorithm.
    pub fn name(&self) -> &'static str {
        match self {
            Mac::HmacSha256(_) => "HMAC-SHA256",
            Mac::AesCmac(_) => "AES-CMAC",
            Mac::AesGmac(_) => "AES-GMAC",
        }
    }
}

/// AES-GCM's tag alone.
pub struct Gmac {
    cipher: Aes128Enc,
    hash: GHash,
}

impl Gmac {
    fn new(key: &[u8; 16]) -> Gmac {
        let cipher = Aes128Enc::new(key.into());
        let mut hash_key = ghash::Key::default();
        cipher.encrypt_block(&mut hash_key);
        Gmac { cipher, hash: GHash::new(&hash_key) }
    }

    fn compute(&self, nonce: [u8; 12], head: &[u8; 48], rest: &[u8]) -> [u8; 16] {
        let mut hash = self.hash.clone();
        // Head and zeros are whole blocks, so that only the rest is padded.
        hash.update_padded(head);
        hash.update(&[Default::default()]);
        hash.update_padded(rest);
        let mut lengths = ghash::Block::default();
        let bits = (head.len() as u64 + 16 + rest.len() as u64) * 8;
        lengths[..8].copy_from_slice(&bits.to_be_bytes());
        hash.update(&[lengths]);

        let mut mask = Block::<Aes128Enc>::default();
        mask[..12].copy_from_slice(&nonce);
        mask[15] = 1;
        self.cipher.encrypt_block(&mut mask);
        let hash = hash.finalize();
        std::array::from_fn(|index| hash[index] ^ mask[index])
    }
}

//! The three message authentication codes over a message whose bytes 48 to 64 count as zeros.
//!
//! Owns keyed state that is made once, one computation without a copy of the message, and the
//! choice of library: HMAC is RustCrypto's, the others are aws-lc's (docs/measurements/crypto.md).
//! It does not know SMB2's fields (`sign`). RFC 2104 (HMAC), RFC 4493 (AES-CMAC), RFC 4543 and NIST
//! SP 800-38D (AES-GMAC: the tag of AES-GCM without a plaintext).

use super::aead::gcm;
use crate::smb2::header::{HEADER_BYTES, HEADER_BYTES_MIN};
use crate::smb2::negotiate_context::SigningId;
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce};
use aws_lc_rs::cmac;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// One algorithm with its key.
pub enum Mac {
    /// The first 16 of 32 bytes count.
    HmacSha256(Hmac<Sha256>),
    AesCmac(cmac::Key),
    AesGmac(LessSafeKey),
}

impl Mac {
    /// `None` when the algorithm is not known.
    pub fn new(algorithm: SigningId, key: &[u8; 16]) -> Option<Mac> {
        Some(match algorithm {
            SigningId::HMAC_SHA256 => Mac::HmacSha256(Hmac::new_from_slice(key).ok()?),
            SigningId::AES_CMAC => Mac::AesCmac(cmac::Key::new(cmac::AES_128, key).ok()?),
            SigningId::AES_GMAC => Mac::AesGmac(gcm(&AES_128_GCM, key)?),
            _ => return None,
        })
    }

    /// The code of a message in whose bytes 48 to 64 zeros do stand.
    pub fn of_zeroed(&self, nonce: [u8; 12], message: &[u8]) -> Option<[u8; 16]> {
        match self {
            Mac::HmacSha256(_) => self.of_parts(message),
            Mac::AesCmac(key) => cmac::sign(key, message).ok()?.as_ref().try_into().ok(),
            Mac::AesGmac(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag =
                    key.seal_in_place_separate_tag(nonce, Aad::from(message), &mut []).ok()?;
                tag.as_ref().try_into().ok()
            }
        }
    }

    /// The code of a message whose bytes 48 to 64 are taken for zeros; `None` when the message is
    /// shorter, and with AES-GMAC, which wants the message in one piece.
    pub fn of_parts(&self, message: &[u8]) -> Option<[u8; 16]> {
        let head = message.get(..HEADER_BYTES_MIN)?;
        let rest = message.get(HEADER_BYTES..)?;
        let zeros: &[u8] = &[0; HEADER_BYTES - HEADER_BYTES_MIN];
        match self {
            Mac::HmacSha256(mac) => {
                let mut mac = mac.clone();
                [head, zeros, rest].into_iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes().first_chunk().copied()
            }
            Mac::AesCmac(key) => {
                let mut mac = cmac::Context::with_key(key);
                [head, zeros, rest].into_iter().try_for_each(|part| mac.update(part)).ok()?;
                mac.sign().ok()?.as_ref().try_into().ok()
            }
            Mac::AesGmac(_) => None,
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

#[cfg(test)]
mod tests {
    use super::super::key_list::tests::hex;
    use super::*;

    #[test]
    fn a_vector_of_nist_for_gmac() {
        let key = hex("77be63708971c4e240d1cb79e8d77feb").try_into().unwrap();
        let nonce = hex("e0e00f19fed7ba0136a797f3").try_into().unwrap();
        let mac = Mac::new(SigningId::AES_GMAC, &key).unwrap();
        let code = mac.of_zeroed(nonce, &hex("7a43ec1d9c0a5a78a0b16533a6213cab"));
        assert_eq!(code.unwrap().as_slice(), hex("209fcc8d3675ed938e9c7166709dd946"));
    }

    #[test]
    fn a_vector_of_rfc_4493_for_cmac() {
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c").try_into().unwrap();
        let message = hex(concat!(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51",
            "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
        ));
        let code = Mac::new(SigningId::AES_CMAC, &key).unwrap().of_zeroed([0; 12], &message);
        assert_eq!(code.unwrap().as_slice(), hex("51f0bebf7e3b9d92fc49741779363cfe"));
    }

    #[test]
    fn a_message_with_zeros_in_it_has_the_code_of_its_parts() {
        let message: Vec<u8> = (0..150u8).collect();
        let mut zeroed = message.clone();
        zeroed[48..64].fill(0);
        for algorithm in [SigningId::HMAC_SHA256, SigningId::AES_CMAC] {
            let mac = Mac::new(algorithm, &[3; 16]).unwrap();
            let code = mac.of_parts(&message);
            assert!(code.is_some());
            assert_eq!(mac.of_zeroed([0; 12], &zeroed), code);
        }
        let gmac = Mac::new(SigningId::AES_GMAC, &[3; 16]).unwrap();
        assert_eq!(gmac.of_parts(&message), None);
    }
}

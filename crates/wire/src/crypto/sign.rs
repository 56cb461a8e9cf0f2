//! Signatures of SMB2 messages: HMAC-SHA256, AES-128-CMAC and AES-128-GMAC.
//!
//! Owns: computing and checking the signature in one header. It does not own which messages must
//! be signed, nor which are exempt from verification (interim replies, break notifications:
//! MS-SMB2 section 3.2.5.1.3), which is the session's business. MS-SMB2 sections 3.1.4.1 and
//! 3.1.5.1; RFC 2104, RFC 4493, RFC 4543. The keys come from `derive`.

use super::Key;
use super::mac::Mac;
use crate::read::{array_at, u16_at};
use crate::smb2::Command;
use crate::smb2::header::{Flags, HEADER_BYTES, HEADER_BYTES_MIN};
use crate::smb2::negotiate_context::SigningId;
use ctutils::CtEq;
use std::fmt;

/// Where the signature stands: behind the session id, up to the end of the header.
const SIGNATURE_AT: usize = HEADER_BYTES_MIN;

/// An algorithm with the signing key of a session or channel, its round keys expanded. It is not
/// changed by its use, so that threads may share it.
pub struct Signer(Box<Mac>);

impl Signer {
    /// `None` when the algorithm is not known or the key has not 16 bytes (all have 16, see
    /// [`derive_signing_key`](super::derive_signing_key)).
    pub fn new(algorithm: SigningId, key: &Key) -> Option<Signer> {
        let key = key.as_bytes().try_into().ok()?;
        Some(Signer(Box::new(Mac::new(algorithm, key)?)))
    }

    /// The algorithm that a connection signs with: what 3.1.1 negotiated, or the one that its
    /// dialect has (a 3.1.1 server without the context signs with AES-CMAC). `None` when the
    /// dialect is not known.
    pub fn algorithm(dialect: u16, negotiated: Option<SigningId>) -> Option<SigningId> {
        match dialect {
            0x0202 | 0x0210 => Some(SigningId::HMAC_SHA256),
            0x0300 | 0x0302 => Some(SigningId::AES_CMAC),
            0x0311 => Some(negotiated.unwrap_or(SigningId::AES_CMAC)),
            _ => None,
        }
    }

    /// Signs one message: sets SMB2_FLAGS_SIGNED and writes the 16 bytes of the signature.
    ///
    /// `message` begins with its SMB2 header. Of a compound each member is signed by itself, with
    /// its NextCommand and the padding behind it. AES-GMAC's nonce is the MessageId with the
    /// direction and whether it is a Cancel: who sends two different messages that agree in all
    /// three under one key gives the key away. False, and nothing written, when `message` is
    /// shorter than a header.
    pub fn sign(&self, message: &mut [u8]) -> bool {
        if message.len() < HEADER_BYTES {
            return false;
        }
        if let Some(flags) = message.get_mut(16) {
            *flags |= Flags::SIGNED.0 as u8;
        }
        let Some(signature) = self.signature(message) else { return false };
        if let Some(room) = message.get_mut(SIGNATURE_AT..HEADER_BYTES) {
            room.copy_from_slice(&signature);
        }
        true
    }

    /// Whether the message says that it is signed and its signature fits. `message` begins with
    /// its SMB2 header and ends where the next member of the compound begins. Takes the same time
    /// wherever the signatures differ.
    pub fn verify(&self, message: &[u8]) -> bool {
        let is_signed = message.get(16).is_some_and(|flags| flags & Flags::SIGNED.0 as u8 != 0);
        let (Some(expected), Some(found)) =
            (self.signature(message), array_at::<16>(message, SIGNATURE_AT))
        else {
            return false;
        };
        is_signed && bool::from(expected.ct_eq(found))
    }

    /// The signature over the message as it stands but with zeros in the signature's place.
    fn signature(&self, message: &[u8]) -> Option<[u8; 16]> {
        let head: &[u8; SIGNATURE_AT] = array_at(message, 0)?;
        let rest = message.get(HEADER_BYTES..)?;
        Some(self.0.compute(|| nonce(head), head, rest))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.0.name())
    }
}

/// AES-GMAC's nonce: the MessageId, then 32 bits of which the lowest is set when the server sends
/// and the next when the message is a Cancel.
fn nonce(head: &[u8; SIGNATURE_AT]) -> [u8; 12] {
    let is_cancel = u16_at(head, 12) == Some(Command::CANCEL.0);
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&head[24..32]);
    nonce[8] = (head[16] & Flags::SERVER_TO_REDIR.0 as u8) | (u8::from(is_cancel) << 1);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALGORITHMS: [SigningId; 3] =
        [SigningId::HMAC_SHA256, SigningId::AES_CMAC, SigningId::AES_GMAC];

    fn signer(algorithm: SigningId) -> Signer {
        Signer::new(algorithm, &Key::new(&[7; 16]).unwrap()).unwrap()
    }

    #[test]
    fn signs_and_notices_every_changed_byte() {
        for algorithm in ALGORITHMS {
            let signer = signer(algorithm);
            let mut message = vec![3; 150];
            message[16] = 0;
            assert!(!signer.verify(&message));
            assert!(signer.sign(&mut message));
            assert_eq!(message[16], 8);
            assert!(signer.verify(&message));
            for index in 0..message.len() {
                let mut changed = message.clone();
                changed[index] ^= 1;
                assert!(!signer.verify(&changed), "{signer:?} byte {index}");
            }
        }
    }
}

//! Signatures of SMB2 messages: HMAC-SHA256, AES-128-CMAC and AES-128-GMAC.
//!
//! Owns: computing and checking the signature in one header. It does not own which messages must
//! be signed, nor which are exempt from verification (interim replies, break notifications:
//! MS-SMB2 section 3.2.5.1.3), which is the session's business. MS-SMB2 sections 3.1.4.1 and
//! 3.1.5.1; RFC 2104, RFC 4493, RFC 4543. The keys come from `derive`.

use super::Key;
use super::mac::Mac;
use crate::read::u16_at;
use crate::smb2::Command;
use crate::smb2::header::{Flags, HEADER_BYTES, HEADER_BYTES_MIN};
use crate::smb2::negotiate_context::SigningId;
use ctutils::CtEq;
use std::fmt;

/// Where the signature stands: behind the session id, up to the end of the header.
const SIGNATURE_AT: usize = HEADER_BYTES_MIN;

/// The lowest byte of the flags, and the bit in it.
const FLAGS_AT: usize = 16;
const SIGNED: u8 = Flags::SIGNED.0 as u8;

/// Up to this length [`Signer::verify`] copies to the stack.
const COPY_BYTES: usize = 1024;

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
    /// `message` begins with its SMB2 header. Each member of a compound is signed separately, with
    /// its NextCommand and the padding behind it. AES-GMAC's nonce is the MessageId with the
    /// direction and whether it is a Cancel: sending two different messages that agree in all three
    /// under one key reveals the key. Returns false, and writes nothing, if `message` is shorter
    /// than a header.
    pub fn sign(&self, message: &mut [u8]) -> bool {
        let Some(header) = message.first_chunk_mut::<HEADER_BYTES>() else { return false };
        header[FLAGS_AT] |= SIGNED;
        header[SIGNATURE_AT..].fill(0);
        let nonce = nonce(header);
        let Some(signature) = self.0.of_zeroed(nonce, message) else { return false };
        write(message, &signature);
        true
    }

    /// Whether the message claims to be signed and its signature is correct. `message` begins with
    /// its SMB2 header and ends where the next member of the compound begins.
    ///
    /// AES-GMAC needs the message in one piece and therefore copies it here; a caller that may
    /// modify the message calls [`verify_in_place`](Signer::verify_in_place), which never copies.
    pub fn verify(&self, message: &[u8]) -> bool {
        let Some(header) = message.first_chunk::<HEADER_BYTES>() else { return false };
        if !matches!(&*self.0, Mac::AesGmac(_)) {
            return is_signed(header)
                && self.0.of_parts(message).is_some_and(|it| fits(it, header));
        }
        let mut short = [0; COPY_BYTES];
        match short.get_mut(..message.len()) {
            Some(copy) => {
                copy.copy_from_slice(message);
                self.verify_in_place(copy)
            }
            None => self.verify_in_place(&mut message.to_vec()),
        }
    }

    /// Like [`verify`](Signer::verify), for a message that may be modified: its signature is zero
    /// in the meantime and restored when this returns.
    pub fn verify_in_place(&self, message: &mut [u8]) -> bool {
        let Some(header) = message.first_chunk_mut::<HEADER_BYTES>() else { return false };
        let before = *header;
        header[SIGNATURE_AT..].fill(0);
        let code = self.0.of_zeroed(nonce(&before), message);
        write(message, &signature(&before));
        is_signed(&before) && code.is_some_and(|code| fits(code, &before))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.0.name())
    }
}

fn is_signed(header: &[u8; HEADER_BYTES]) -> bool {
    header[FLAGS_AT] & SIGNED != 0
}

fn signature(header: &[u8; HEADER_BYTES]) -> [u8; 16] {
    std::array::from_fn(|index| header[SIGNATURE_AT + index])
}

/// Whether a code is the signature; takes the same time wherever they differ.
fn fits(code: [u8; 16], header: &[u8; HEADER_BYTES]) -> bool {
    code.ct_eq(&signature(header)).into()
}

fn write(message: &mut [u8], signature: &[u8; 16]) {
    if let Some(room) = message.get_mut(SIGNATURE_AT..HEADER_BYTES) {
        room.copy_from_slice(signature);
    }
}

/// AES-GMAC's nonce: the MessageId, then 32 bits of which the lowest is set when the server sends
/// and the next when the message is a Cancel.
fn nonce(header: &[u8; HEADER_BYTES]) -> [u8; 12] {
    let is_cancel = u16_at(header, 12) == Some(Command::CANCEL.0);
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&header[24..32]);
    nonce[8] = (header[FLAGS_AT] & Flags::SERVER_TO_REDIR.0 as u8) | (u8::from(is_cancel) << 1);
    nonce
}

#[cfg(test)]
mod tests {
    use super::super::key_list::tests::{hex, key};
    use super::*;
    use proptest::prelude::*;

    const ALGORITHMS: [SigningId; 3] =
        [SigningId::HMAC_SHA256, SigningId::AES_CMAC, SigningId::AES_GMAC];

    fn signer(algorithm: SigningId) -> Signer {
        Signer::new(algorithm, &Key::new(&[7; 16]).unwrap()).unwrap()
    }

    /// From Microsoft's "SMB 2 and SMB 3 security in Windows 10: the anatomy of signing and
    /// cryptographic keys": the final SessionSetup of a session, the first of its binding to a
    /// second channel (signed with the session's key) and the final one (with the channel's).
    #[test]
    fn published_messages_of_3_1_1() {
        let session = "73fe7a9a77bef0bde49c650d8ccb5f76";
        let channel = "c962bca1a9dd1697b030644199705431";
        let messages = [
            (
                session,
                concat!(
                    "fe534d4240000100000000000100800009000000000000000300000000000000fffe000000000000",
                    "1900000000100000ebe146da120ba25fc3376a49dfe31bc10900000048001d00a11b3019a0030a01",
                    "00a3120410010000003b453cdc3524164200000000"
                ),
            ),
            (
                session,
                concat!(
                    "fe534d4240000100000000000100800008000000000000000200000000000000fffe000000000000",
                    "190000000010000068bd0c58f613ce1334b1eb51c68d39ea19000101010000000000000058004a00",
                    "0000000000000000604806062b0601050502a03e303ca00e300c060a2b06010401823702020aa22a",
                    "04284e544c4d5353500001000000978208e200000000000000000000000000000000060380250000",
                    "000f"
                ),
            ),
            (
                channel,
                concat!(
                    "fe534d4240000100000000000100800009000000000000000300000000000000fffe000000000000",
                    "19000000001000008d604217ffbacf40635bf9d8729921500900000048001d00a11b3019a0030a01",
                    "00a312041001000000cfb046fc5d368e2200000000"
                ),
            ),
        ];
        for (secret, message) in messages {
            let signer = Signer::new(SigningId::AES_CMAC, &key(secret)).unwrap();
            let mut message = hex(message);
            assert!(signer.verify(&message));
            let before = message.clone();
            message[48..64].fill(1);
            assert!(signer.sign(&mut message));
            assert_eq!(message, before);
        }
    }

    #[test]
    fn the_nonce_of_gmac() {
        let mut header = [0xff; HEADER_BYTES];
        header[12..14].copy_from_slice(&Command::READ.0.to_le_bytes());
        header[24..32].copy_from_slice(&0x0807_0605_0403_0201u64.to_le_bytes());
        header[16] = !1;
        assert_eq!(nonce(&header), [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
        header[16] = 1;
        assert_eq!(nonce(&header), [1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0]);
        header[12..14].copy_from_slice(&Command::CANCEL.0.to_le_bytes());
        header[16] = 0;
        assert_eq!(nonce(&header), [1, 2, 3, 4, 5, 6, 7, 8, 2, 0, 0, 0]);
    }

    #[test]
    fn a_dialect_has_its_algorithm() {
        let gmac = Some(SigningId::AES_GMAC);
        for dialect in [0x0202, 0x0210] {
            assert_eq!(Signer::algorithm(dialect, gmac), Some(SigningId::HMAC_SHA256));
        }
        for dialect in [0x0300, 0x0302] {
            assert_eq!(Signer::algorithm(dialect, gmac), Some(SigningId::AES_CMAC));
        }
        assert_eq!(Signer::algorithm(0x0311, gmac), gmac);
        assert_eq!(Signer::algorithm(0x0311, None), Some(SigningId::AES_CMAC));
        assert_eq!(Signer::algorithm(0x02ff, gmac), None);
    }

    #[test]
    fn wants_a_known_algorithm_a_key_of_16_bytes_and_a_whole_header() {
        for bytes in [1, 15, 17, 32] {
            let key = Key::new(&[7; 32][..bytes]).unwrap();
            assert!(Signer::new(SigningId::AES_CMAC, &key).is_none());
        }
        assert!(Signer::new(SigningId(3), &Key::new(&[7; 16]).unwrap()).is_none());
        for algorithm in ALGORITHMS {
            let signer = signer(algorithm);
            for length in 0..HEADER_BYTES {
                let mut message = vec![5; length];
                assert!(!signer.sign(&mut message));
                assert!(!signer.verify(&message));
                assert!(!signer.verify_in_place(&mut message));
                assert_eq!(message, vec![5; length]);
            }
            assert!(signer.sign(&mut [5; HEADER_BYTES]));
        }
    }

    proptest! {
        #[test]
        fn signs_and_notices_a_changed_byte(
            mut message in proptest::collection::vec(any::<u8>(), 64..1300),
            at: proptest::sample::Index,
            bit in 0..8u8,
        ) {
            for algorithm in ALGORITHMS {
                let signer = signer(algorithm);
                prop_assert!(signer.sign(&mut message));
                prop_assert!(message[16] & 8 != 0);
                prop_assert!(signer.verify(&message));
                prop_assert!(signer.verify_in_place(&mut message));
                let before = message.clone();
                let at = at.index(message.len());
                message[at] ^= 1u8 << bit;
                prop_assert!(!signer.verify(&message), "{signer:?} byte {at}");
                prop_assert!(!signer.verify_in_place(&mut message));
                message[at] ^= 1u8 << bit;
                prop_assert_eq!(&message, &before);
                let other = Signer::new(algorithm, &Key::new(&[8; 16]).unwrap()).unwrap();
                prop_assert!(!other.verify(&message));
            }
        }
    }
}

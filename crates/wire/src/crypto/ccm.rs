//! AES-CCM as SMB uses it: a nonce of 11 bytes, a tag of 16, a length field of 4 and 32 bytes that
//! are only authenticated (MS-SMB2 section 2.2.41, NIST SP 800-38C, RFC 3610).
//!
//! Owns only the mode; the block cipher is the library's. The chain of the tag leaves most of the
//! CPU's AES unit idle, so the key stream is computed in that time, in one visit of the
//! backend. This is three times as fast as the `ccm` crate, and aws-lc-rs has no CCM
//! (docs/measurements/crypto.md). The tests compare it with that crate.

use aes::Block;
use aes::cipher::consts::U16;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
};
use ctutils::CtEq;

/// Encrypts in place and gives the tag; `None` when the text is longer than 32 bits can say.
pub fn seal<C>(cipher: &C, nonce: &[u8; 11], aad: &[u8; 32], text: &mut [u8]) -> Option<[u8; 16]>
where
    C: BlockCipherEncrypt<BlockSize = U16>,
{
    run::<C, true>(cipher, nonce, aad, text)
}

/// Decrypts in place; false, and zeros for the text, when the tag does not fit.
pub fn open<C>(
    cipher: &C,
    nonce: &[u8; 11],
    aad: &[u8; 32],
    text: &mut [u8],
    tag: &[u8; 16],
) -> bool
where
    C: BlockCipherEncrypt<BlockSize = U16>,
{
    let Some(expected) = run::<C, false>(cipher, nonce, aad, text) else { return false };
    let fits = bool::from(expected.ct_eq(tag));
    if !fits {
        text.fill(0);
    }
    fits
}

fn run<C, const SEAL: bool>(
    cipher: &C,
    nonce: &[u8; 11],
    aad: &[u8; 32],
    text: &mut [u8],
) -> Option<[u8; 16]>
where
    C: BlockCipherEncrypt<BlockSize = U16>,
{
    let length = u32::try_from(text.len()).ok()?;
    // B_0, and behind the length in 16 bits the authenticated bytes, filled up with zeros.
    let mut start = [0; 64];
    start[0] = 0x40 | 7 << 3 | 3;
    start[1..12].copy_from_slice(nonce);
    start[12..16].copy_from_slice(&length.to_be_bytes());
    start[17] = 32;
    start[18..50].copy_from_slice(aad);
    let mut counter = [0; 16];
    counter[0] = 3;
    counter[1..12].copy_from_slice(nonce);
    let mut tag = [0; 16];
    let counter = u128::from_be_bytes(counter);
    cipher.encrypt_with_backend(Run::<SEAL> { start: &start, counter, text, tag: &mut tag });
    Some(tag)
}

/// One message in one visit of the backend. The counter block is a big-endian number whose low 32
/// bits count; 2^28 blocks are the most.
struct Run<'a, const SEAL: bool> {
    start: &'a [u8; 64],
    counter: u128,
    text: &'a mut [u8],
    tag: &'a mut [u8; 16],
}

impl<const SEAL: bool> BlockSizeUser for Run<'_, SEAL> {
    type BlockSize = U16;
}

impl<const SEAL: bool> BlockCipherEncClosure for Run<'_, SEAL> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let stream = |counter: u128| encrypted(backend, u128::from_ne_bytes(counter.to_be_bytes()));
        let mut chain = 0;
        for block in Block::slice_as_chunks(self.start).0 {
            chain = encrypted(backend, chain ^ value(block));
        }
        let mut counter = self.counter;
        let (blocks, tail) = Block::slice_as_chunks_mut(self.text);
        for block in blocks {
            counter += 1;
            let before = value(block);
            let after = before ^ stream(counter);
            chain = encrypted(backend, chain ^ if SEAL { before } else { after });
            *block = after.to_ne_bytes().into();
        }
        if !tail.is_empty() {
            let mut plain = [0; 16];
            let stream = stream(counter + 1).to_ne_bytes();
            for ((byte, stream), plain) in tail.iter_mut().zip(stream).zip(&mut plain) {
                let before = *byte;
                *byte ^= stream;
                *plain = if SEAL { before } else { *byte };
            }
            chain = encrypted(backend, chain ^ u128::from_ne_bytes(plain));
        }
        *self.tag = (chain ^ stream(self.counter)).to_ne_bytes();
    }
}

/// Encrypts one block, as a number in memory order.
#[inline(always)]
fn encrypted<B: BlockCipherEncBackend<BlockSize = U16>>(backend: &B, block: u128) -> u128 {
    let mut bytes = Block::from(block.to_ne_bytes());
    backend.encrypt_block((&mut bytes).into());
    value(&bytes)
}

/// A block as a number in memory order.
#[inline(always)]
fn value(block: &Block) -> u128 {
    u128::from_ne_bytes((*block).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::ccm::aead::consts::U11;
    use ::ccm::{AeadInOut, Ccm, KeyInit};
    use aes::{Aes128Enc, Aes256Enc};
    use proptest::prelude::*;

    fn check<C>(key: &[u8], nonce: [u8; 11], aad: [u8; 32], text: &[u8])
    where
        C: BlockCipherEncrypt<BlockSize = U16> + KeyInit,
    {
        let library = Ccm::<C, U16, U11>::new_from_slice(key).unwrap();
        let mut expected = text.to_vec();
        let buffer = expected.as_mut_slice().into();
        let tag = library.encrypt_inout_detached(&nonce.into(), &aad, buffer).unwrap();

        let cipher = C::new_from_slice(key).unwrap();
        let mut found = text.to_vec();
        assert_eq!(seal(&cipher, &nonce, &aad, &mut found), Some(tag.into()));
        assert_eq!(found, expected);
        assert!(open(&cipher, &nonce, &aad, &mut found, &tag.into()));
        assert_eq!(found, text);
        let mut other = tag;
        other[15] ^= 1;
        let mut found = expected;
        assert!(!open(&cipher, &nonce, &aad, &mut found, &other.into()));
        assert!(found.iter().all(|byte| *byte == 0));
    }

    proptest! {
        #[test]
        fn equals_the_library(
            key: [u8; 32],
            nonce: [u8; 11],
            aad: [u8; 32],
            text in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            check::<Aes128Enc>(&key[..16], nonce, aad, &text);
            check::<Aes256Enc>(&key, nonce, aad, &text);
        }
    }
}

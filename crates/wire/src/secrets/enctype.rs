//! Decryption with the encryption types of Kerberos.
//!
//! RFC 3961 sections 5.1 and 5.3 (n-fold, key derivation), RFC 3962 (aes-cts-hmac-sha1-96), RFC 8009
//! (aes-cts-hmac-sha2) and RFC 4757 (rc4-hmac). A plaintext is given out only if its checksum is right,
//! which shows that the key is. DES types are not supported: no domain has used them since 2008.

use super::ntlm::hmac_md5;
use super::rc4::rc4;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt};
use aes::{Aes128, Aes256, Block};
use ctutils::CtEq;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384};
use zeroize::Zeroizing;

/// The HMAC of some parts, as bytes that are wiped.
macro_rules! hmac {
    ($hash:ty, $key:expr, $parts:expr) => {{
        let mut mac = Hmac::<$hash>::new_from_slice($key).ok()?;
        $parts.iter().for_each(|part| mac.update(part));
        Zeroizing::new(mac.finalize().into_bytes().to_vec())
    }};
}

/// An encryption type (RFC 3961 number).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncryptionType(pub i32);

impl EncryptionType {
    pub const AES128_SHA1: EncryptionType = EncryptionType(17);
    pub const AES256_SHA1: EncryptionType = EncryptionType(18);
    pub const AES128_SHA2: EncryptionType = EncryptionType(19);
    pub const AES256_SHA2: EncryptionType = EncryptionType(20);
    pub const RC4: EncryptionType = EncryptionType(23);

    /// The length of its key; `None` for a type that is not supported.
    pub fn key_bytes(self) -> Option<usize> {
        match self {
            EncryptionType::AES128_SHA1 | EncryptionType::AES128_SHA2 | EncryptionType::RC4 => {
                Some(16)
            }
            EncryptionType::AES256_SHA1 | EncryptionType::AES256_SHA2 => Some(32),
            _ => None,
        }
    }
}

/// A plaintext, wiped when it is dropped.
pub type Plaintext = Zeroizing<Vec<u8>>;

/// Decrypts without the confounder; `None` when the key does not fit or the type is not supported.
pub fn decrypt(
    kind: EncryptionType,
    key: &[u8],
    usage: u32,
    ciphertext: &[u8],
) -> Option<Plaintext> {
    if kind.key_bytes()? != key.len() {
        return None;
    }
    match kind {
        EncryptionType::RC4 => decrypt_rc4(key, usage, ciphertext),
        EncryptionType::AES128_SHA1 | EncryptionType::AES256_SHA1 => {
            decrypt_sha1(key, usage, ciphertext)
        }
        _ => decrypt_sha2(kind, key, usage, ciphertext),
    }
}

/// The last byte of the constant from which the keys of a usage are derived (RFC 3961 section 5.3).
const ENCRYPTION: u8 = 0xaa;
const INTEGRITY: u8 = 0x55;

/// Bytes of an AES block and of the confounder before each plaintext.
const BLOCK_BYTES: usize = 16;

fn decrypt_sha1(key: &[u8], usage: u32, ciphertext: &[u8]) -> Option<Plaintext> {
    let (sealed, tag) = ciphertext.split_last_chunk::<12>()?;
    let mut text = Zeroizing::new(sealed.to_vec());
    Aes::new(&derive_sha1(key, usage, ENCRYPTION)?)?.cts_decrypt(&mut text)?;
    let integrity = derive_sha1(key, usage, INTEGRITY)?;
    is_tag(&hmac!(Sha1, &integrity, [&text]), tag)?;
    without_confounder(&text, BLOCK_BYTES)
}

fn decrypt_sha2(
    kind: EncryptionType,
    key: &[u8],
    usage: u32,
    ciphertext: &[u8],
) -> Option<Plaintext> {
    let is_short = kind == EncryptionType::AES128_SHA2;
    let (key_bytes, tag_bytes) = if is_short { (16, 16) } else { (32, 24) };
    let (sealed, tag) = ciphertext.split_at(ciphertext.len().checked_sub(tag_bytes)?);
    let integrity = derive_sha2(is_short, key, usage, INTEGRITY, tag_bytes)?;
    // The cipher state, which is always zero, is part of what the checksum covers.
    let parts = [&[0; BLOCK_BYTES][..], sealed];
    let expected =
        if is_short { hmac!(Sha256, &integrity, parts) } else { hmac!(Sha384, &integrity, parts) };
    is_tag(&expected, tag)?;
    let mut text = Zeroizing::new(sealed.to_vec());
    Aes::new(&derive_sha2(is_short, key, usage, ENCRYPTION, key_bytes)?)?.cts_decrypt(&mut text)?;
    without_confounder(&text, BLOCK_BYTES)
}

fn decrypt_rc4(key: &[u8], usage: u32, ciphertext: &[u8]) -> Option<Plaintext> {
    let (tag, sealed) = ciphertext.split_first_chunk::<16>()?;
    // Two usages have the numbers that Windows 2000 gave them (RFC 4757 section 3).
    let usage = if matches!(usage, 3 | 9) { 8 } else { usage };
    let usage_key = hmac_md5(key, &[&usage.to_le_bytes()])?;
    let mut text = Zeroizing::new(sealed.to_vec());
    rc4(hmac_md5(usage_key.as_slice(), &[tag])?.as_slice(), &mut text);
    is_tag(hmac_md5(usage_key.as_slice(), &[&text])?.as_slice(), tag)?;
    without_confounder(&text, 8)
}

fn without_confounder(text: &[u8], bytes: usize) -> Option<Plaintext> {
    Some(Zeroizing::new(text.get(bytes..)?.to_vec()))
}

/// Whether the code begins with the tag.
fn is_tag(code: &[u8], tag: &[u8]) -> Option<()> {
    bool::from(code.get(..tag.len())?.ct_eq(tag)).then_some(())
}

/// DK of RFC 3961 section 5.1: the constant, folded to a block, is encrypted again and again.
fn derive_sha1(key: &[u8], usage: u32, purpose: u8) -> Option<Zeroizing<Vec<u8>>> {
    let [a, b, c, d] = usage.to_be_bytes();
    let cipher = Aes::new(key)?;
    let mut block = n_fold(&[a, b, c, d, purpose]);
    let mut derived = Zeroizing::new(Vec::with_capacity(key.len()));
    while derived.len() < key.len() {
        cipher.encrypt(&mut block);
        derived.extend_from_slice(&block);
    }
    Some(derived)
}

/// KDF-HMAC-SHA2 of RFC 8009 section 3, whose one round gives all that is needed.
fn derive_sha2(
    is_short: bool,
    key: &[u8],
    usage: u32,
    purpose: u8,
    bytes: usize,
) -> Option<Zeroizing<Vec<u8>>> {
    let bits = u32::try_from(bytes * 8).ok()?.to_be_bytes();
    let usage = usage.to_be_bytes();
    let parts: [&[u8]; 5] = [&[0, 0, 0, 1], &usage, &[purpose], &[0], &bits];
    let mut derived = if is_short { hmac!(Sha256, key, parts) } else { hmac!(Sha384, key, parts) };
    derived.truncate(bytes);
    Some(derived)
}

/// n-fold of RFC 3961 section 5.1 to 128 bits: copies, each rotated by 13 bits more, are added in
/// ones' complement. `input` has 1 to 16 bytes.
fn n_fold(input: &[u8]) -> [u8; BLOCK_BYTES] {
    let bits = input.len() * 8;
    let bit = |at: usize| input.get(at / 8).map_or(0, |byte| u128::from(byte >> (7 - at % 8) & 1));
    let mut sum = 0_u128;
    // The blocks of the least common multiple of both lengths.
    let blocks = input.len() >> input.len().trailing_zeros().min(4);
    for block in 0..blocks {
        let mut term = 0_u128;
        for place in block * 128..(block + 1) * 128 {
            let rotation = 13 * (place / bits) % bits;
            term = term << 1 | bit((place % bits + bits - rotation) % bits);
        }
        let (added, carry) = sum.overflowing_add(term);
        sum = added.wrapping_add(u128::from(carry));
    }
    sum.to_be_bytes()
}

/// AES with either key length.
enum Aes {
    Short(Box<Aes128>),
    Long(Box<Aes256>),
}

impl Aes {
    fn new(key: &[u8]) -> Option<Aes> {
        Some(match key.len() {
            16 => Aes::Short(Box::new(Aes128::new_from_slice(key).ok()?)),
            _ => Aes::Long(Box::new(Aes256::new_from_slice(key).ok()?)),
        })
    }

    fn encrypt(&self, block: &mut [u8; BLOCK_BYTES]) {
        let block: &mut Block = block.into();
        match self {
            Aes::Short(cipher) => cipher.encrypt_block(block),
            Aes::Long(cipher) => cipher.encrypt_block(block),
        }
    }

    fn decrypt(&self, block: &[u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
        let mut out = *block;
        let place: &mut Block = (&mut out).into();
        match self {
            Aes::Short(cipher) => cipher.decrypt_block(place),
            Aes::Long(cipher) => cipher.decrypt_block(place),
        }
        out
    }

    /// CBC with ciphertext stealing in place, the last two blocks exchanged and an initial vector of
    /// zeros (RFC 3962 section 5); `None` for less than a block.
    fn cts_decrypt(&self, text: &mut [u8]) -> Option<()> {
        if text.len() == BLOCK_BYTES {
            let block = text.first_chunk_mut()?;
            *block = self.decrypt(block);
            return Some(());
        }
        // The last block that has 1 to 16 bytes, and the whole one before it.
        let whole = text.len().checked_sub(1)? / BLOCK_BYTES;
        let start = whole.checked_sub(1)? * BLOCK_BYTES;
        let (head, tail) = text.split_at_mut_checked(start)?;
        let mut previous = [0; BLOCK_BYTES];
        for block in head.as_chunks_mut().0 {
            let sealed = *block;
            *block = xor(self.decrypt(block), &previous);
            previous = sealed;
        }
        let (first, last) = tail.split_first_chunk_mut()?;
        let end = self.decrypt(first);
        // What the last block lacks is in the one before it.
        let mut stolen = end;
        stolen.get_mut(..last.len())?.copy_from_slice(last);
        *first = xor(self.decrypt(&stolen), &previous);
        last.copy_from_slice(xor(end, &stolen).get(..last.len())?);
        Some(())
    }
}

fn xor(mut block: [u8; BLOCK_BYTES], other: &[u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
    block.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digits: &str) -> Vec<u8> {
        let digits: String = digits.split_whitespace().collect();
        let pairs = digits.as_bytes().as_chunks::<2>().0;
        let text = |pair: &[u8; 2]| std::str::from_utf8(pair).unwrap().to_owned();
        pairs.iter().map(|pair| u8::from_str_radix(&text(pair), 16).unwrap()).collect()
    }

    #[test]
    fn folds_as_rfc_3961_a_1() {
        assert_eq!(n_fold(b"kerberos").to_vec(), hex("6b65726265726f737b9b5b2b93132b93"));
    }

    #[test]
    fn steals_ciphertext_as_rfc_3962_appendix_b() {
        let cipher = Aes::new(b"chicken teriyaki").unwrap();
        for (sealed, length) in [
            ("c6353568f2bf8cb4d8a580362da7ff7f97", 17),
            ("fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5", 31),
            ("39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584", 32),
        ] {
            let mut text = hex(sealed);
            cipher.cts_decrypt(&mut text).unwrap();
            assert_eq!(
                text,
                &b"I would like the General Gau's Chicken, please, and wonton soup."[..length]
            );
        }
        for length in 0..16 {
            assert_eq!(cipher.cts_decrypt(&mut vec![0; length]), None, "{length}");
        }
    }

    #[test]
    fn decrypts_as_rfc_8009_appendix_a() {
        let short = hex("3705D96080C17728A0E800EAB6E0D23C");
        let long = hex("6D404D37FAF79F9DF0D33568D320669800EB4836472EA8A026D16B7182460C52");
        for (kind, key, sealed, length) in [
            (19, &short, "EF85FB890BB8472F4DAB20394DCA781D AD877EDA39D50C870C0D5A0A8E48C718", 0),
            (
                19,
                &short,
                "84D7F30754ED987BAB0BF3506BEB09CF B55402CEF7E6877CE99E247E52D16ED4421DFDF8976C",
                6,
            ),
            (
                20,
                &long,
                "41F53FA5BFE7026D91FAF9BE959195A0 58707273A96A40F0A01960621AC612748B9BBFBE7EB4CE3C",
                0,
            ),
            (
                20,
                &long,
                "4ED7B37C2BCAC8F74F23C1CF07E62BC7 B75FB3F637B9F559C7F664F69EAB7B60 92237526EA0D1F61CB20D69D10F2",
                6,
            ),
        ] {
            let (kind, mut sealed) = (EncryptionType(kind), hex(sealed));
            let plain = decrypt(kind, key, 2, &sealed).unwrap();
            assert_eq!(*plain, [0, 1, 2, 3, 4, 5][..length]);
            assert_eq!(decrypt(kind, key, 11, &sealed), None, "another usage");
            sealed[3] ^= 1;
            assert_eq!(decrypt(kind, key, 2, &sealed), None, "a changed byte");
        }
    }

    #[test]
    fn short_ciphertexts_and_keys_of_another_length_are_refused() {
        for kind in [17, 18, 19, 20, 23, 3, -1].map(EncryptionType) {
            let key = vec![7; kind.key_bytes().unwrap_or(16)];
            for length in 0..80 {
                assert_eq!(decrypt(kind, &key, 2, &vec![9; length]), None, "{kind:?} {length}");
            }
            assert_eq!(decrypt(kind, &key[1..], 2, &[9; 100]), None, "{kind:?}");
        }
    }
}

//! The NT hash of a password (MS-NLMP section 3.3.1, NTOWFv1): MD4 over its UTF-16LE form. It is all
//! that NTLM needs, so that passwords are not kept. It does not own who it belongs to (`accounts`).

use md4::{Digest, Md4};
use zeroize::{Zeroize, Zeroizing};

/// The NT hash of an account: a secret like its password.
#[derive(Clone, PartialEq, Eq)]
pub struct NtHash([u8; 16]);

impl NtHash {
    /// The hash of a password.
    pub fn of_password(password: &str) -> NtHash {
        let units = password.encode_utf16().flat_map(u16::to_le_bytes);
        let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(units.collect());
        NtHash(Md4::digest(bytes.as_slice()).into())
    }

    /// From 32 hexadecimal digits; `None` for anything else.
    pub fn from_hex(digits: &str) -> Option<NtHash> {
        let mut hash = NtHash([0; 16]);
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        if !rest.is_empty() || pairs.len() != hash.0.len() {
            return None;
        }
        for (byte, pair) in hash.0.iter_mut().zip(pairs) {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            *byte = (high? << 4 | low?) as u8;
        }
        Some(hash)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl Drop for NtHash {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl std::fmt::Debug for NtHash {
    /// Nothing of it, so that no log holds a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NtHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_ms_nlmp_4_2_2_1_2() {
        let hash = NtHash::of_password("Password");
        assert_eq!(Some(&hash), NtHash::from_hex("a4F49c406510bdcab6824ee7c30fd852").as_ref());
        assert_eq!(format!("{hash:?}"), "NtHash");
        for wrong in
            ["", "a4", &"g".repeat(32), &"a".repeat(33), "+4f49c406510bdcab6824ee7c30fd852"]
        {
            assert_eq!(NtHash::from_hex(wrong), None, "{wrong}");
        }
    }
}

//! The RC4 stream cipher, which NTLM (MS-NLMP section 3.4.5.1) and Kerberos' type 23 (RFC 4757) use to
//! encrypt keys. No message is protected with it.

use zeroize::Zeroize;

/// Encrypts or decrypts in place with a key of at least one byte; an empty key changes nothing.
pub fn rc4(key: &[u8], data: &mut [u8]) {
    let mut state: [u8; 256] = std::array::from_fn(|at| at as u8);
    let mut j = 0_u8;
    for (i, &byte) in (0..=255_u8).zip(key.iter().cycle()) {
        j = j.wrapping_add(at(&state, i)).wrapping_add(byte);
        state.swap(usize::from(i), usize::from(j));
    }
    let (mut i, mut j) = (0_u8, 0_u8);
    for byte in data.iter_mut().filter(|_| !key.is_empty()) {
        i = i.wrapping_add(1);
        j = j.wrapping_add(at(&state, i));
        state.swap(usize::from(i), usize::from(j));
        *byte ^= at(&state, at(&state, i).wrapping_add(at(&state, j)));
    }
    state.zeroize();
}

/// Any byte is a place in the state.
fn at(state: &[u8; 256], place: u8) -> u8 {
    state[usize::from(place)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_rfc_6229_and_without_a_key() {
        let mut stream = [0; 16];
        rc4(&[1, 2, 3, 4, 5], &mut stream);
        assert_eq!(u128::from_be_bytes(stream), 0xb239_6305_f03d_c027_ccc3_524a_0a11_18a8);
        let mut stream = [0; 16];
        rc4(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], &mut stream);
        assert_eq!(u128::from_be_bytes(stream), 0x9ac7_cc9a_609d_1ef7_b293_2899_cde4_1b97);
        let mut data = *b"plain";
        rc4(&[], &mut data);
        assert_eq!(&data, b"plain");
    }
}

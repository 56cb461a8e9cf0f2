//! The token that authenticates a test: 120 random bits, shown as 24 letters and digits.
//!
//! It is never sent. Each side proves that it knows it by an HMAC-SHA256 (RFC 2104) over both sides'
//! nonces ([`super::handshake`]). The alphabet is that of RFC 4648 section 6 (base32) in small letters.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::NetError;

/// Bytes of a token: 24 characters of 5 bits.
const BYTES: usize = 15;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What both sides know.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; BYTES]);

impl Token {
    /// A new one.
    pub fn random() -> Result<Token, NetError> {
        let mut bytes = [0; BYTES];
        random(&mut bytes)?;
        Ok(Token(bytes))
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes from the system's random numbers.
pub(super) fn random(bytes: &mut [u8]) -> Result<(), NetError> {
    getrandom::fill(bytes)
        .map_err(|error| NetError::System("random numbers", std::io::Error::other(error)))
}

impl fmt::Display for Token {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut bits, mut held) = (0u32, 0);
        for byte in self.0 {
            bits = bits << 8 | u32::from(byte);
            held += 8;
            while held >= 5 {
                held -= 5;
                let digit = (bits >> held & 31) as usize;
                write!(to, "{}", char::from(ALPHABET.get(digit).copied().unwrap_or(b'?')))?;
            }
        }
        Ok(())
    }
}

/// Secrets do not belong in logs.
impl fmt::Debug for Token {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Token(..)")
    }
}

impl FromStr for Token {
    type Err = NetError;

    /// Capital letters, blanks and hyphens do not matter.
    fn from_str(text: &str) -> Result<Token, NetError> {
        let wrong =
            || NetError::Token(text.chars().take(40).flat_map(char::escape_debug).collect());
        let mut token = [0; BYTES];
        let (mut bits, mut held, mut place) = (0u32, 0, 0);
        for letter in text.bytes().filter(|byte| !matches!(byte, b'-' | b' ' | b'\n' | b'\r')) {
            let letter = letter.to_ascii_lowercase();
            let digit = ALPHABET.iter().position(|known| *known == letter).ok_or_else(wrong)?;
            bits = (bits << 5 | digit as u32) & 0xfff;
            held += 5;
            if held >= 8 {
                held -= 8;
                *token.get_mut(place).ok_or_else(wrong)? = (bits >> held & 255) as u8;
                place += 1;
            }
        }
        if place == BYTES && held == 0 { Ok(Token(token)) } else { Err(wrong()) }
    }
}

/// HMAC-SHA256 over the parts, each with its length in front, so that no two lists of parts are the
/// same text.
pub(super) fn proof(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    mac(key, parts).finalize().into_bytes().into()
}

/// Whether it is that proof, in constant time.
pub(super) fn is_proof(key: &[u8], parts: &[&[u8]], claimed: &[u8]) -> bool {
    mac(key, parts).verify_slice(claimed).is_ok()
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    // HMAC takes keys of any length.
    let mut mac = match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        Err(_) => Hmac::<Sha256>::new(&Default::default()),
    };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_text_and_differ() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one != two);
        let text = one.to_string();
        assert_eq!(text.len(), 24);
        assert!(text.parse::<Token>().unwrap() == one);
        let (front, back) = text.split_at(12);
        assert!(format!(" {}-{back}\n", front.to_uppercase()).parse::<Token>().unwrap() == one);
        assert_eq!(format!("{one:?}"), "Token(..)");
        for wrong in ["", "abc", &text[1..], &format!("{text}a"), "000000000000000000000000"] {
            assert!(wrong.parse::<Token>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn proofs_depend_on_the_key_and_on_each_part() {
        let first = proof(b"k", &[b"ab", b"c"]);
        assert!(is_proof(b"k", &[b"ab", b"c"], &first));
        assert!(!is_proof(b"k", &[b"a", b"bc"], &first));
        assert!(!is_proof(b"l", &[b"ab", b"c"], &first));
        assert!(!is_proof(b"k", &[b"ab", b"c"], &first[..31]));
        // RFC 4231 test case 2 has the parts without lengths; ours must not equal it.
        assert_ne!(proof(b"Jefe", &[b"what do ya want ", b"for nothing?"])[..2], [0x5b, 0xdc]);
    }
}

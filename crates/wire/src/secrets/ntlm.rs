//! The session key of an NTLM logon from the account's NT hash.
//!
//! MS-NLMP sections 3.3.1 (NTLMv1, also with extended session security), 3.3.2 (NTLMv2) and 3.4.5.1
//! (KXKEY and the exported session key). The client's response is computed again; only if it is equal
//! is the hash right, and a key given out. NTLMv1 without extended session security but with
//! NTLMSSP_NEGOTIATE_LM_KEY needs the LM hash, which no server of SMB2 asks for; it gives no key.

use crate::auth::ntlmssp::{Flags, Kind, Message};
use crate::crypto::Key;
use crate::read::slice_at;
use ctutils::CtEq;
use des::Des;
use des::cipher::{Block, BlockCipherEncrypt};
use hmac::{Hmac, KeyInit, Mac};
use md4::Md4;
use md5::{Digest, Md5};
use zeroize::{Zeroize, Zeroizing};

use super::nt_hash::NtHash;
use super::rc4::rc4;

/// Bytes of a response of NTLMv1.
const NTLM_V1_BYTES: usize = 24;

/// What an AUTHENTICATE and the CHALLENGE before it show.
pub struct Logon<'a> {
    server_challenge: &'a [u8; 8],
    user: String,
    domain: String,
    response: &'a [u8],
    lm_response: &'a [u8],
    encrypted_key: &'a [u8],
    flags: Flags,
}

impl<'a> Logon<'a> {
    /// `None` when the message is not an AUTHENTICATE with a response, or was not captured whole.
    pub fn new(server_challenge: &'a [u8; 8], message: &Message<'a>) -> Option<Logon<'a>> {
        if message.kind()? != Kind::AUTHENTICATE || message.is_anonymous()? {
            return None;
        }
        let response = message.nt_response()?;
        (response.len() >= NTLM_V1_BYTES).then_some(())?;
        Some(Logon {
            server_challenge,
            user: message.user()?,
            domain: message.domain()?,
            response,
            lm_response: message.lm_response()?,
            encrypted_key: message.encrypted_session_key()?,
            flags: message.flags()?,
        })
    }

    /// The account, without its domain unless that is part of the name (`user@domain`).
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The exported session key; `None` when the hash is not the account's.
    pub fn session_key(&self, hash: &NtHash) -> Option<Key> {
        let mut exchange_key = match self.response.len() {
            NTLM_V1_BYTES => self.exchange_key_v1(hash)?,
            _ => self.exchange_key_v2(hash)?,
        };
        let mut key = *exchange_key;
        if self.flags.contains(Flags::KEY_EXCHANGE) && !self.encrypted_key.is_empty() {
            key = *self.encrypted_key.first_chunk()?;
            rc4(exchange_key.as_slice(), &mut key);
        }
        let exported = Key::new(&key);
        key.zeroize();
        exchange_key.zeroize();
        exported
    }

    /// Servers also accept a response over the domain in upper case and over none, because clients
    /// and domain controllers do not agree on it.
    fn exchange_key_v2(&self, hash: &NtHash) -> Option<Zeroizing<[u8; 16]>> {
        let domains =
            [self.domain.clone(), self.domain.chars().map(upper).collect(), String::new()];
        let (proof, rest) = self.response.split_first_chunk::<16>()?;
        domains.iter().find_map(|domain| {
            let response_key = response_key_v2(hash, &self.user, domain)?;
            let expected = hmac_md5(response_key.as_slice(), &[self.server_challenge, rest])?;
            bool::from(expected.ct_eq(proof))
                .then(|| hmac_md5(response_key.as_slice(), &[expected.as_slice()]))?
        })
    }

    fn exchange_key_v1(&self, hash: &NtHash) -> Option<Zeroizing<[u8; 16]>> {
        let is_extended = self.flags.contains(Flags::EXTENDED_SESSION_SECURITY);
        if !is_extended && self.flags.contains(Flags::LM_KEY) {
            return None;
        }
        let client_challenge = slice_at(self.lm_response, 0, 8);
        let mut challenge = *self.server_challenge;
        if is_extended {
            let both =
                Md5::new().chain_update(challenge).chain_update(client_challenge?).finalize();
            challenge = *both.first_chunk()?;
        }
        if !bool::from(desl(hash, &challenge)?.as_slice().ct_eq(self.response)) {
            return None;
        }
        let base: Zeroizing<[u8; 16]> = Zeroizing::new(Md4::digest(hash.as_bytes()).into());
        if is_extended {
            hmac_md5(base.as_slice(), &[self.server_challenge, client_challenge?])
        } else {
            Some(base)
        }
    }
}

/// NTOWFv2: what an account's responses are made with.
pub(super) fn response_key_v2(
    hash: &NtHash,
    user: &str,
    domain: &str,
) -> Option<Zeroizing<[u8; 16]>> {
    let user: String = user.chars().map(upper).collect();
    let owner: Vec<u8> =
        user.encode_utf16().chain(domain.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    hmac_md5(hash.as_bytes(), &[&owner])
}

/// Unicode simple case mapping, as Windows has it: one character stays one.
fn upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    mapped.next().filter(|_| mapped.next().is_none()).unwrap_or(character)
}

pub(super) fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> Option<Zeroizing<[u8; 16]>> {
    let mut mac = Hmac::<Md5>::new_from_slice(key).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(Zeroizing::new(mac.finalize().into_bytes().into()))
}

/// DESL of MS-NLMP section 6: three DES encryptions with the hash and five zeros as keys.
fn desl(hash: &NtHash, challenge: &[u8; 8]) -> Option<[u8; NTLM_V1_BYTES]> {
    let mut padded = Zeroizing::new([0; 21]);
    padded.first_chunk_mut::<16>()?.copy_from_slice(hash.as_bytes());
    let mut response = [0; NTLM_V1_BYTES];
    let blocks = response.as_chunks_mut::<8>().0;
    for (seven, block) in padded.as_chunks::<7>().0.iter().zip(blocks) {
        let [a, b, c, d, e, f, g] = *seven;
        let bits = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
        // Seven bits of the key in each byte, above the parity bit, which is not used.
        let mut key: [u8; 8] = std::array::from_fn(|at| (bits >> (49 - 7 * at) << 1) as u8);
        let cipher = Des::new_from_slice(&key).ok()?;
        key.zeroize();
        *block = *challenge;
        let block: &mut Block<Des> = block.into();
        cipher.encrypt_block(block);
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::super::{Secrets, Unlocked};
    use super::*;
    use crate::auth::ntlmssp::tests::utf16;
    use crate::crypto::parse_key;

    const CHALLENGE: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];

    fn hex(digits: &str) -> Vec<u8> {
        let pairs = digits.as_bytes().as_chunks::<2>().0;
        let text = |pair: &[u8; 2]| std::str::from_utf8(pair).unwrap().to_owned();
        pairs.iter().map(|pair| u8::from_str_radix(&text(pair), 16).unwrap()).collect()
    }

    fn key(digits: &str) -> Key {
        parse_key(&format!("0000000000000000,{digits}")).unwrap().session_key.unwrap()
    }

    /// An AUTHENTICATE with these fields (MS-NLMP section 2.2.1.3).
    pub fn authenticate(flags: u32, lm: &[u8], nt: &[u8], key: &[u8]) -> Vec<u8> {
        let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
        let (domain, user, host) = (utf16("Domain"), utf16("User"), utf16("COMPUTER"));
        let mut payload = Vec::new();
        for bytes in [lm, nt, &domain, &user, &host, key] {
            message.extend((bytes.len() as u16).to_le_bytes());
            message.extend((bytes.len() as u16).to_le_bytes());
            message.extend((64 + payload.len() as u32).to_le_bytes());
            payload.extend_from_slice(bytes);
        }
        message.extend(flags.to_le_bytes());
        message.extend(payload);
        message
    }

    fn session_key(message: &[u8], password: &str) -> Option<Key> {
        let message = Message::parse(message).unwrap();
        Logon::new(&CHALLENGE, &message).unwrap().session_key(&NtHash::of_password(password))
    }

    /// The response of MS-NLMP section 4.2.4.
    fn v2_response() -> Vec<u8> {
        hex(concat!(
            "68cd0ab851e51c96aabc927bebef6a1c",
            "01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000",
            "02000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000"
        ))
    }

    #[test]
    fn ntlm_v2_of_ms_nlmp_4_2_4() {
        let encrypted = hex("c5dad2544fc9799094ce1ce90bc9d03e");
        let message = authenticate(0xe288_8235, &[0; 24], &v2_response(), &encrypted);
        assert_eq!(session_key(&message, "Password"), Some(key(&"55".repeat(16))));
        assert_eq!(session_key(&message, "password"), None);
        // Without key exchange the session base key itself is the key.
        let message = authenticate(0xa288_8235, &[0; 24], &v2_response(), &[]);
        assert_eq!(
            session_key(&message, "Password"),
            Some(key("8de40ccadbc14a82f15cb0ad0de95ca3"))
        );
    }

    #[test]
    fn ntlm_v1_of_ms_nlmp_4_2_2_and_4_2_3() {
        let plain = hex("67c43011f30298a2ad35ece64f16331c44bdbed927841f94");
        let message = authenticate(0x2000_0235, &[0; 24], &plain, &[]);
        let base = "d87262b0cde4b1cb7499becccdf10784";
        assert_eq!(session_key(&message, "Password"), Some(key(base)));
        let with_lm_key = authenticate(0x2000_02b5, &[0; 24], &plain, &[]);
        assert_eq!(session_key(&with_lm_key, "Password"), None);
        let extended = hex("7537f803ae367128ca458204bde7caf81e97ed2683267232");
        let lm = [&[0xaa; 8][..], &[0; 16]].concat();
        let message = authenticate(0x2008_0235, &lm, &extended, &[]);
        assert_eq!(
            session_key(&message, "Password"),
            Some(key("eb93429a8bd952f8b89c55b87f475edc"))
        );
        assert_eq!(session_key(&message, "Passwort"), None);
    }

    #[test]
    fn secrets_say_whether_a_logon_matches() {
        let message = authenticate(0xa288_8235, &[0; 24], &v2_response(), &[]);
        let message = Message::parse(&message).unwrap();
        let outcome = |file: &str| {
            let mut secrets = Secrets::default();
            secrets.add_passwords(file.as_bytes()).unwrap();
            secrets.ntlm(&CHALLENGE, &message)
        };
        assert_eq!(outcome("other:Password\n"), Unlocked::Missing);
        assert_eq!(outcome("user:wrong\nUSER@x:wrong too\n"), Unlocked::Wrong);
        let right = Unlocked::With(key("8de40ccadbc14a82f15cb0ad0de95ca3"));
        assert_eq!(outcome("user:wrong\nX\\user:Password\n"), right);
        assert_eq!(outcome("*:wrong\n*:Password\n"), right);
    }

    #[test]
    fn names_are_mapped_character_by_character() {
        let name: String = "straße é ǰ".chars().map(upper).collect();
        assert_eq!(name, "STRAßE É ǰ");
    }
}

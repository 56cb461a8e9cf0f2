//! The client's messages of an NTLMv2 logon, and its session key.
//!
//! MS-NLMP sections 2.2.1 (messages), 3.1.5.1 (NEGOTIATE and AUTHENTICATE), 3.3.2 (NTLMv2) and 3.4.5.1
//! (the exported session key). The AUTHENTICATE always has a message integrity code. What the server
//! does with them is in `ntlm`, which verifies logons that were captured.

use zeroize::Zeroizing;

use super::nt_hash::NtHash;
use super::ntlm::{hmac_md5, response_key_v2};
use super::rc4::rc4;
use crate::auth::ntlmssp::{AvId, Flags, Kind, Message, SIGNATURE};
use crate::crypto::Key;

/// Flags of both messages.
const FLAGS: u32 = Flags::UNICODE.0
    | Flags::REQUEST_TARGET.0
    | Flags::SIGN.0
    | Flags::SEAL.0
    | Flags::NTLM.0
    | Flags::ALWAYS_SIGN.0
    | Flags::EXTENDED_SESSION_SECURITY.0
    | Flags::VERSION.0
    | Flags::KEY_128.0
    | Flags::KEY_56.0;
/// Windows 10 without a build, NTLM revision 15 (section 2.2.2.10).
const VERSION: [u8; 8] = [10, 0, 0, 0, 0, 0, 0, 15];
/// MsvAvFlags: the AUTHENTICATE has a message integrity code.
const HAS_INTEGRITY_CODE: u32 = 2;
/// Place of that code, and of the payload behind it.
const CODE_AT: usize = 72;
const PAYLOAD_AT: usize = CODE_AT + 16;

/// The account that logs on.
#[derive(Clone, Debug)]
pub struct NtlmAccount<'a> {
    /// Its name.
    pub user: &'a str,
    /// Its domain; empty for an account of the server.
    pub domain: &'a str,
    /// The hash of its password.
    pub hash: NtHash,
}

/// What is new in every logon.
pub struct NtlmFresh {
    /// The client's nonce.
    pub challenge: [u8; 8],
    /// The session key, if the server lets the client choose it.
    pub session_key: Zeroizing<[u8; 16]>,
    /// Now, as FILETIME (100 ns since 1601); used if the server does not tell its own time.
    pub now_filetime: u64,
}

/// The first message.
pub fn ntlm_negotiate() -> Vec<u8> {
    let flags = FLAGS | Flags::OEM.0 | Flags::KEY_EXCHANGE.0;
    let mut message = header(Kind::NEGOTIATE);
    message.extend(flags.to_le_bytes());
    // Neither a domain nor a workstation.
    message.extend([0; 16]);
    message.extend(VERSION);
    message
}

/// The AUTHENTICATE that answers `challenge`, and the session key; `negotiate` is the first message.
/// `None` when `challenge` is something else.
pub fn ntlm_authenticate(
    account: &NtlmAccount<'_>,
    negotiate: &[u8],
    challenge: &[u8],
    fresh: &NtlmFresh,
) -> Option<(Vec<u8>, Key)> {
    let asked = Message::parse(challenge)?;
    let server_challenge = asked.server_challenge()?;
    let response_key = response_key_v2(&account.hash, account.user, account.domain)?;
    let said = response_without_proof(&asked, fresh);
    let proof = hmac_md5(response_key.as_slice(), &[server_challenge, &said])?;
    let mut session_key = hmac_md5(response_key.as_slice(), &[proof.as_slice()])?;
    let mut flags = FLAGS | Flags::TARGET_INFO.0;
    let mut encrypted_key = Vec::new();
    if asked.flags()?.contains(Flags::KEY_EXCHANGE) {
        flags |= Flags::KEY_EXCHANGE.0;
        encrypted_key = fresh.session_key.to_vec();
        rc4(session_key.as_slice(), &mut encrypted_key);
        session_key = fresh.session_key.clone();
    }
    let response = [proof.as_slice(), &said].concat();
    let (domain, user) = (utf16(account.domain), utf16(account.user));
    // LmChallengeResponse and Workstation are not used.
    let mut message = assemble(flags, [&[0; 24], &response, &domain, &user, &[], &encrypted_key]);
    let code = hmac_md5(session_key.as_slice(), &[negotiate, challenge, &message])?;
    message.get_mut(CODE_AT..PAYLOAD_AT)?.copy_from_slice(code.as_slice());
    Some((message, Key::new(session_key.as_slice())?))
}

/// NTLMv2_CLIENT_CHALLENGE (section 2.2.2.7): the server's own target information comes back in it.
fn response_without_proof(asked: &Message<'_>, fresh: &NtlmFresh) -> Vec<u8> {
    let mut time = fresh.now_filetime.to_le_bytes();
    let mut flags = HAS_INTEGRITY_CODE;
    let mut pairs = Vec::new();
    for pair in asked.target_info() {
        match (pair.id, pair.value.first_chunk()) {
            (AvId::FLAGS, value) => flags |= value.map_or(0, |value| u32::from_le_bytes(*value)),
            _ => push_pair(&mut pairs, pair.id, pair.value),
        }
        if let (AvId::TIMESTAMP, Some(value)) = (pair.id, pair.value.first_chunk()) {
            time = *value;
        }
    }
    push_pair(&mut pairs, AvId::FLAGS, &flags.to_le_bytes());
    push_pair(&mut pairs, AvId::EOL, &[]);
    let fixed = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &time, &fresh.challenge, &[0; 4]].concat();
    [&fixed[..], &pairs, &[0; 4]].concat()
}

fn push_pair(pairs: &mut Vec<u8>, id: AvId, value: &[u8]) {
    pairs.extend(id.0.to_le_bytes());
    pairs.extend((value.len() as u16).to_le_bytes());
    pairs.extend_from_slice(value);
}

/// An AUTHENTICATE with these fields, in the order of their descriptors, and without its code.
fn assemble(flags: u32, fields: [&[u8]; 6]) -> Vec<u8> {
    let mut message = header(Kind::AUTHENTICATE);
    let mut offset = PAYLOAD_AT as u32;
    for field in fields {
        message.extend((field.len() as u16).to_le_bytes());
        message.extend((field.len() as u16).to_le_bytes());
        message.extend(offset.to_le_bytes());
        offset += field.len() as u32;
    }
    message.extend(flags.to_le_bytes());
    message.extend(VERSION);
    message.extend([0; PAYLOAD_AT - CODE_AT]);
    message.extend(fields.concat());
    message
}

fn header(kind: Kind) -> Vec<u8> {
    [&SIGNATURE[..], &kind.0.to_le_bytes()].concat()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Secrets, Unlocked};
    use super::*;
    use crate::auth::ntlmssp::tests::challenge as captured_challenge;

    fn fresh() -> NtlmFresh {
        let session_key = Zeroizing::new([0x55; 16]);
        NtlmFresh { challenge: [0xaa; 8], session_key, now_filetime: 7 }
    }

    fn account(domain: &str) -> NtlmAccount<'_> {
        NtlmAccount { user: "Jörg", domain, hash: NtHash::of_password("Password") }
    }

    /// The server's side: the key that the account's password gives.
    fn opened(challenge: &[u8], message: &[u8]) -> Unlocked<Key> {
        let mut secrets = Secrets::default();
        secrets.add_passwords("JÖRG:Password\n".as_bytes()).unwrap();
        let nonce = Message::parse(challenge).unwrap().server_challenge().unwrap();
        secrets.ntlm(nonce, &Message::parse(message).unwrap())
    }

    #[test]
    fn a_server_computes_the_same_key() {
        let negotiate = ntlm_negotiate();
        let challenge = captured_challenge();
        for domain in ["", "LAB"] {
            let (message, key) =
                ntlm_authenticate(&account(domain), &negotiate, &challenge, &fresh()).unwrap();
            assert_eq!(key.as_bytes(), [0x55; 16]);
            assert_eq!(opened(&challenge, &message), Unlocked::With(key));
            let read = Message::parse(&message).unwrap();
            assert_eq!((read.domain().as_deref(), read.is_ntlm_v2()), (Some(domain), Some(true)));
        }
        // A server that does not let the client choose a key.
        let mut challenge = challenge;
        challenge[23] &= !0x40;
        let (message, key) =
            ntlm_authenticate(&account(""), &negotiate, &challenge, &fresh()).unwrap();
        assert_ne!(key.as_bytes(), [0x55; 16]);
        assert_eq!(opened(&challenge, &message), Unlocked::With(key));
        assert!(ntlm_authenticate(&account(""), &negotiate, &negotiate, &fresh()).is_none());
        assert!(ntlm_authenticate(&account(""), &negotiate, b"none", &fresh()).is_none());
    }

    #[test]
    fn the_code_protects_all_three_messages() {
        let (negotiate, challenge) = (ntlm_negotiate(), captured_challenge());
        let (mut message, key) =
            ntlm_authenticate(&account(""), &negotiate, &challenge, &fresh()).unwrap();
        let code = message[CODE_AT..PAYLOAD_AT].to_vec();
        message[CODE_AT..PAYLOAD_AT].fill(0);
        let expected = hmac_md5(key.as_bytes(), &[&negotiate, &challenge, &message]).unwrap();
        assert_eq!(code, expected.as_slice());
    }

    #[test]
    fn the_response_has_the_servers_time_and_says_that_there_is_a_code() {
        let mut info = Vec::new();
        push_pair(&mut info, AvId::FLAGS, &[1, 0, 0, 0]);
        push_pair(&mut info, AvId::TIMESTAMP, &[9; 8]);
        let mut challenge = header(Kind::CHALLENGE);
        challenge.extend([0; 8]);
        challenge.extend((FLAGS | Flags::TARGET_INFO.0).to_le_bytes());
        challenge.extend([0; 16]);
        challenge.extend((info.len() as u16).to_le_bytes());
        challenge.extend((info.len() as u16).to_le_bytes());
        challenge.extend(48_u32.to_le_bytes());
        challenge.extend(&info);
        let said = response_without_proof(&Message::parse(&challenge).unwrap(), &fresh());
        assert_eq!(said[8..16], [9; 8]);
        assert!(said.ends_with(&[6, 0, 4, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "{said:x?}");
        let said = response_without_proof(&Message::parse(&ntlm_negotiate()).unwrap(), &fresh());
        assert_eq!(said[8..16], [7, 0, 0, 0, 0, 0, 0, 0]);
    }
}

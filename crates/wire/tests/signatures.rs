//! Signatures and keys of a real Samba: every signed message of the project's fixtures verifies with
//! the key derived from its capture, and signing it again gives the same bytes.
//!
//! The accounts of the fixtures have one known password, so that their session keys follow from the
//! NTLM messages (MS-NLMP section 3.4.5.1) and no key needs to be stored next to a capture. The
//! walk over frames is naive on purpose (pcapng, Ethernet, IPv4, segments in order).

#![cfg(feature = "crypto")]
// The lint's exception for tests does not reach their helpers.
#![allow(clippy::unwrap_used)]

use hmac::{Hmac, KeyInit, Mac};
use md4::{Digest, Md4};
use md5::Md5;
use smbscope_wire::auth::{inspect, ntlmssp};
use smbscope_wire::crypto::*;
use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::{Header, members};
use smbscope_wire::smb2::negotiate::NegotiateResponse;
use smbscope_wire::smb2::negotiate_context::{NegotiateContextData, SigningId};
use smbscope_wire::smb2::session::SessionSetupRequest;
use smbscope_wire::status::Status;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// The password that `tests/samba/lab.py` gives every account.
const PASSWORD: &str = "Pass-w0rd";

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    std::fs::read(folder.join(name)).unwrap()
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// A message with the client's port, which identifies the connection.
struct Message {
    connection: u16,
    bytes: Vec<u8>,
}

/// The messages after NetBIOS framing in the order in which they were completed.
fn messages(pcapng: &[u8]) -> Vec<Message> {
    let mut streams: HashMap<(u16, bool), (u32, Vec<u8>)> = HashMap::new();
    let mut found = Vec::new();
    let mut at = 0;
    while at < pcapng.len() {
        let (kind, length) = (u32_at(pcapng, at), u32_at(pcapng, at + 4));
        let block = &pcapng[at..at + length];
        at += length;
        if kind != 6 {
            continue;
        }
        let frame = &block[28..28 + u32_at(block, 20)];
        if frame.len() < 54 || frame[12..14] != [8, 0] || frame[23] != 6 {
            continue;
        }
        let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let ip = &frame[14..14 + total];
        let tcp = &ip[usize::from(ip[0] & 15) * 4..];
        let data = &tcp[usize::from(tcp[12] >> 4) * 4..];
        let ports = [0, 2].map(|at| u16::from_be_bytes([tcp[at], tcp[at + 1]]));
        let from_client = ports[1] == 445;
        let connection = if from_client { ports[0] } else { ports[1] };
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        let stream = streams.entry((connection, from_client));
        let (next, buffer) = stream.or_insert((sequence, Vec::new()));
        if tcp[13] & 0x02 != 0 {
            *next = sequence.wrapping_add(1);
            continue;
        }
        let overlap = next.wrapping_sub(sequence) as usize;
        if overlap >= data.len() {
            continue;
        }
        buffer.extend_from_slice(&data[overlap..]);
        *next = sequence.wrapping_add(data.len() as u32);
        while buffer.len() >= 4 {
            let size = u32::from_be_bytes([0, buffer[1], buffer[2], buffer[3]]) as usize;
            if buffer.len() < 4 + size {
                break;
            }
            found.push(Message { connection, bytes: buffer[4..4 + size].to_vec() });
            buffer.drain(..4 + size);
        }
    }
    found
}

fn hmac_md5(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Md5>::new_from_slice(key).unwrap();
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

fn rc4(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut state: Vec<u8> = (0..=255).collect();
    let mut j = 0u8;
    for i in 0..256 {
        j = j.wrapping_add(state[i]).wrapping_add(key[i % key.len()]);
        state.swap(i, usize::from(j));
    }
    let (mut i, mut j) = (0u8, 0u8);
    let stream = data.iter().map(|byte| {
        i = i.wrapping_add(1);
        j = j.wrapping_add(state[usize::from(i)]);
        state.swap(usize::from(i), usize::from(j));
        let at = state[usize::from(i)].wrapping_add(state[usize::from(j)]);
        byte ^ state[usize::from(at)]
    });
    stream.collect()
}

/// The session key for the AUTHENTICATE in a security blob, if there is one.
fn session_key(blob: &[u8]) -> Option<Key> {
    let message =
        inspect(blob).ntlmssp.filter(|m| m.kind() == Some(ntlmssp::Kind::AUTHENTICATE))?;
    let (user, domain) = (message.user()?, message.domain()?);
    let at = blob.windows(8).position(|bytes| bytes == b"NTLMSSP\0")?;
    let bytes = &blob[at..];
    let field = |at| &bytes[u32_at(bytes, at + 4)..][..u16_at(bytes, at)];
    let (response, encrypted_key) = (field(20), field(52));

    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let password = Md4::digest(utf16(PASSWORD));
    let owner = hmac_md5(&password, &utf16(&(user.to_uppercase() + &domain)));
    let base = hmac_md5(&owner, &response[..16]);
    Key::new(&rc4(&base, encrypted_key))
}

#[derive(Default)]
struct Connection {
    dialect: u16,
    signing: Option<SigningId>,
    cipher: Option<Cipher>,
    hash: PreauthIntegrity,
    /// By session; those still without an id at 0.
    hashes: HashMap<u64, PreauthIntegrity>,
    keys: HashMap<u64, Key>,
    /// The signers of the sessions on this connection.
    channels: HashMap<u64, Signer>,
}

/// The results of checking a capture.
#[derive(Default)]
struct Seen {
    verified: usize,
    algorithms: BTreeSet<String>,
    encrypted: usize,
    session_keys: HashMap<u64, Key>,
}

/// Walks through a capture; panics if a message does not verify or decrypt.
fn check(capture: &str) -> Seen {
    let mut connections: HashMap<u16, Connection> = HashMap::new();
    let mut sessions: HashMap<u64, Signer> = HashMap::new();
    let mut ciphers: HashMap<(u64, bool), Decryptor> = HashMap::new();
    let mut seen = Seen::default();
    for message in messages(&fixture(capture)) {
        let connection = connections.entry(message.connection).or_default();
        let mut bytes = message.bytes;
        if bytes.starts_with(b"\xfdSMB") {
            let session = u64::from_le_bytes(bytes[44..52].try_into().unwrap());
            let mut copied = Vec::new();
            let mut decrypts = |to_server| {
                let decryptor: &Decryptor = &ciphers[&(session, to_server)];
                decryptor.decrypt(&bytes, &mut copied).is_ok()
            };
            let to_server = [true, false].into_iter().find(|side| decrypts(*side));
            let decryptor = &ciphers[&(session, to_server.unwrap())];
            decryptor.decrypt(&bytes, &mut copied).unwrap();
            let range = decryptor.decrypt_in_place(&mut bytes).unwrap();
            assert_eq!(bytes[range], copied);
            assert_eq!(copied[16] & 1 == 0, to_server.unwrap());
            seen.encrypted += 1;
            continue;
        }
        let header = Header::parse(&bytes).unwrap();
        let (id, is_response) = (header.session_id, header.is_response());
        let is_success = header.status() == Some(Status::SUCCESS);
        match header.command {
            Command::NEGOTIATE => {
                connection.hash.update(&bytes);
                if is_response {
                    let view = NegotiateResponse(&bytes);
                    connection.dialect = view.dialect().unwrap().0;
                    for context in view.contexts() {
                        match context.decode() {
                            NegotiateContextData::Signing(mut codes) => {
                                connection.signing = codes.next().map(SigningId);
                            }
                            NegotiateContextData::Encryption(mut codes) => {
                                connection.cipher = codes.next().map(Cipher);
                            }
                            _ => {}
                        }
                    }
                }
            }
            Command::SESSION_SETUP if !is_response => {
                let hash = connection.hashes.remove(&id).unwrap_or(connection.hash);
                connection.hashes.entry(id).insert_entry(hash).get_mut().update(&bytes);
                let blob = SessionSetupRequest(&bytes).security_blob().unwrap();
                if let Some(key) = session_key(blob) {
                    connection.keys.insert(id, key);
                }
            }
            Command::SESSION_SETUP if is_success => {
                let session_key = connection.keys.remove(&id).unwrap();
                let hash = connection.hashes.remove(&id);
                let dialect = connection.dialect;
                let algorithm = Signer::algorithm(dialect, connection.signing).unwrap();
                let key = derive_signing_key(dialect, &session_key, hash.as_ref()).unwrap();
                let signer = || Signer::new(algorithm, &key).unwrap();
                // Reauthentication does not change the keys.
                connection.channels.entry(id).or_insert_with(signer);
                if let Entry::Vacant(session) = sessions.entry(id) {
                    session.insert(signer());
                    let cipher = connection.cipher.unwrap_or(Cipher::AES_128_CCM);
                    let keys = derive_session_keys(dialect, cipher, &session_key, hash.as_ref());
                    if let Some(keys) = keys {
                        assert_eq!(keys.signing, key);
                        let decryptor = |key| Decryptor::new(cipher, key).unwrap();
                        ciphers.insert((id, true), decryptor(&keys.client_to_server));
                        ciphers.insert((id, false), decryptor(&keys.server_to_client));
                    }
                    seen.session_keys.insert(id, session_key);
                }
            }
            Command::SESSION_SETUP => {
                let hash = connection.hashes.remove(&id).or(connection.hashes.remove(&0));
                let hash = hash.unwrap_or(connection.hash);
                connection.hashes.entry(id).insert_entry(hash).get_mut().update(&bytes);
            }
            _ => {}
        }
        let mut session = 0;
        for member in members(&bytes) {
            if member.header.session_id != u64::MAX {
                session = member.header.session_id;
            }
            if !member.header.flags.is_signed() {
                continue;
            }
            // While a session is being bound, the session's key signs; then the channel's own.
            let signer = connection.channels.get(&session).unwrap_or_else(|| &sessions[&session]);
            let place = format!("{capture}: MessageId {} {signer:?}", header.message_id);
            assert!(signer.verify(member.bytes), "{place}");
            let mut again = member.bytes.to_vec();
            assert!(signer.verify_in_place(&mut again), "{place}");
            assert_eq!(again, member.bytes, "{place}");
            again[16] &= !8;
            again[48..64].fill(0xee);
            assert!(!signer.verify(&again), "{place}");
            assert!(signer.sign(&mut again));
            assert_eq!(again, member.bytes, "{place}");
            for at in [0, 17, 47, 48, 63, 64, again.len() - 1] {
                again[at] ^= 0x20;
                assert!(!signer.verify(&again), "{place}, byte {at} changed");
                again[at] ^= 0x20;
            }
            seen.verified += 1;
            seen.algorithms.insert(format!("{signer:?}"));
        }
    }
    seen
}

#[test]
fn signed_captures_of_every_algorithm() {
    for (capture, algorithm) in [
        ("signed-hmac-sha256-210.pcapng", "Signer(HMAC-SHA256)"),
        ("signed-aes-128-cmac-300.pcapng", "Signer(AES-CMAC)"),
        ("signed-hmac-sha256-311.pcapng", "Signer(HMAC-SHA256)"),
        ("signed-aes-128-cmac-311.pcapng", "Signer(AES-CMAC)"),
        ("signed-aes-128-gmac-311.pcapng", "Signer(AES-GMAC)"),
    ] {
        let seen = check(capture);
        assert_eq!(seen.algorithms, BTreeSet::from([algorithm.to_owned()]), "{capture}");
        assert!(seen.verified >= 90, "{capture}: {}", seen.verified);
    }
}

#[test]
fn a_channel_signs_with_its_own_key() {
    let seen = check("session-bind.pcapng");
    assert_eq!(seen.session_keys.len(), 2);
    assert!(seen.verified >= 25, "{}", seen.verified);
}

#[test]
fn encrypted_captures_from_the_password() {
    for name in [
        "encrypted-aes-128-ccm-300",
        "encrypted-aes-128-ccm-311",
        "encrypted-aes-128-gcm-311",
        "encrypted-aes-256-ccm-311",
        "encrypted-aes-256-gcm-311",
        "encrypted-share",
    ] {
        let seen = check(&format!("{name}.pcapng"));
        assert!(seen.encrypted >= 20, "{name}: {}", seen.encrypted);
        let list = String::from_utf8(fixture(&format!("{name}.keys"))).unwrap();
        for entry in parse_key_list(&list).unwrap() {
            assert_eq!(Some(&seen.session_keys[&entry.session_id]), entry.session_key.as_ref());
        }
    }
}

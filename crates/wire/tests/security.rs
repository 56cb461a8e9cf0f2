//! Logons, DFS referrals and decryption on the real captures in the shared folder.
//!
//! The walk over frames is naive on purpose (pcap, Ethernet, IPv4, segments in order): it must not
//! share code with the code under test. Without the folder the tests report that and pass.

// The lint's exception for tests does not reach their helpers.
#![allow(clippy::unwrap_used)]

use smbscope_wire::auth::{Mechanism, inspect};
use smbscope_wire::dfs::{HeaderFlags, Request, Response, ServerType};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// The bytes of a file of the shared folder, or `None` with a message.
fn shared(name: &str) -> Option<Vec<u8>> {
    let folder = std::env::var_os("SMBSCOPE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let bytes = std::fs::read(folder.join(name)).ok();
    if bytes.is_none() {
        smbscope_testing::skip!("{name} is not in {}", folder.display());
    }
    bytes
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// A message and whether the client sent it.
struct Message {
    from_client: bool,
    bytes: Vec<u8>,
}

/// The messages after NetBIOS framing in the order in which they were completed.
fn messages(pcap: &[u8]) -> Vec<Message> {
    let mut streams: HashMap<Vec<u8>, (u32, Vec<u8>)> = HashMap::new();
    let mut clients = BTreeSet::new();
    let mut found = Vec::new();
    let mut at = 24;
    while at + 16 <= pcap.len() {
        let length = u32_at(pcap, at + 8);
        let frame = &pcap[at + 16..at + 16 + length];
        at += 16 + length;
        if frame.len() < 54 || frame[12..14] != [8, 0] || frame[23] != 6 {
            continue;
        }
        let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let ip = &frame[14..frame.len().min(14 + total)];
        let tcp = &ip[usize::from(ip[0] & 15) * 4..];
        let data = &tcp[usize::from(tcp[12] >> 4) * 4..];
        let key = [&ip[12..20], &tcp[..4]].concat();
        if tcp[13] & 0x12 == 0x02 {
            clients.insert(key.clone());
        }
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        let (next, buffer) = streams.entry(key.clone()).or_insert((sequence, Vec::new()));
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
            found.push(Message {
                from_client: clients.contains(&key) || tcp[2..4] == 445u16.to_be_bytes(),
                bytes: buffer[4..4 + size].to_vec(),
            });
            buffer.drain(..4 + size);
        }
    }
    found
}

fn command(message: &[u8]) -> Option<usize> {
    message.starts_with(b"\xfeSMB").then(|| u16_at(message, 12))
}

fn is_response(message: &[u8]) -> bool {
    message[16] & 1 != 0
}

/// The security blobs of SMB2's SessionSetup.
fn blobs(messages: &[Message]) -> Vec<&[u8]> {
    let setups = messages.iter().map(|message| message.bytes.as_slice());
    let setups = setups.filter(|message| command(message) == Some(1));
    setups
        .filter_map(|message| {
            let fields = if is_response(message) { 68 } else { 76 };
            let (offset, length) = (u16_at(message, fields), u16_at(message, fields + 2));
            message.get(offset..offset + length)
        })
        .collect()
}

#[test]
fn accounts_and_services_of_the_captures() {
    let expected = [
        ("smb202-64k-writes.pcap", "CONTOSO\\Administrator", ""),
        ("smb300-encrypted.pcap", "SUSE\\administrator", ""),
        ("smb311-100-small-files.pcap", "zeek", ""),
        ("smb311-lost-segments.pcap", "WORKGROUP\\zeek", ""),
        ("smb311-multichannel.pcap", ".\\user2", ""),
        ("smb2-delete.pcap", "GUEST", ""),
        ("smb311-multichannel.pcap", "ANONYMOUS LOGON", ""),
        // An empty name, but with a response: not anonymous as MS-NLMP defines it.
        ("smb202-copy.pcap", "BUILDER\\", ""),
        ("smb21-compounds.pcap", "", "cifs/phxlabbal821.techlab.susq.com@DS.SUSQ.COM"),
        ("smb21-one-direction.pcap", "", "cifs/dc1.contoso.local@CONTOSO.LOCAL"),
    ];
    for (name, account, service) in expected {
        let Some(pcap) = shared(&format!("captures/{name}")) else {
            return;
        };
        let messages = messages(&pcap);
        let (mut accounts, mut services) = (BTreeSet::new(), BTreeSet::new());
        for blob in blobs(&messages) {
            let auth = inspect(blob);
            if let Some(found) = auth.service() {
                assert!(auth.mechanism.is_some_and(Mechanism::is_kerberos), "{name}");
                services.insert(found);
            }
            accounts.extend(auth.account());
            for length in 0..blob.len() {
                let cut = inspect(&blob[..length]).account();
                assert!(cut.is_none() || cut == auth.account(), "{name} {length}");
            }
        }
        let contains = |set: &BTreeSet<String>, item: &str| match item {
            "" => set.is_empty(),
            _ => set.contains(item),
        };
        assert!(contains(&accounts, account), "{name}: {accounts:?}");
        assert!(contains(&services, service), "{name}: {services:?}");
    }
}

#[test]
fn a_server_calls_itself_by_its_names() {
    let Some(pcap) = shared("captures/smb300-encrypted.pcap") else {
        return;
    };
    let messages = messages(&pcap);
    let challenge = blobs(&messages)
        .into_iter()
        .find_map(|blob| inspect(blob).ntlmssp.filter(|m| m.target_name().is_some()))
        .unwrap();
    assert_eq!(challenge.target_name().as_deref(), Some("SUSE"));
    assert!(challenge.target_info().count() >= 4);
    assert!(challenge.version().is_some_and(|version| version.major >= 6));
}

#[test]
fn referrals_of_samba() {
    let Some(pcap) = shared("dfs/samba417-referrals.pcap") else {
        return;
    };
    let messages = messages(&pcap);
    for message in messages.iter().filter(|m| command(&m.bytes).is_some()) {
        assert_eq!(is_response(&message.bytes), !message.from_client);
    }
    let ioctls = messages.iter().map(|message| message.bytes.as_slice());
    let referrals = ioctls.filter(|message| {
        command(message) == Some(11) && message.len() > 72 && u32_at(message, 68) == 0x0006_0194
    });
    let (mut requested, mut answered) = (Vec::new(), Vec::new());
    for message in referrals {
        if !is_response(message) {
            let (offset, length) = (u32_at(message, 88), u32_at(message, 92));
            let request = Request::new(&message[offset..offset + length]);
            assert_eq!(request.max_referral_level(), Some(3));
            requested.push(request.path().unwrap());
            continue;
        }
        let (offset, length) = (u32_at(message, 96), u32_at(message, 100));
        let output = &message[offset..offset + length];
        let response = Response::new(output);
        let flags = response.flags().unwrap();
        assert!(flags.contains(HeaderFlags::STORAGE_SERVERS));
        for referral in response.referrals() {
            assert_eq!(referral.version(), Some(3));
            assert_eq!(referral.time_to_live_s(), Some(600));
            answered.push((
                response.path_consumed().unwrap(),
                referral.server_type().unwrap(),
                referral.dfs_path().unwrap(),
                referral.network_address().unwrap(),
            ));
        }
    }
    assert_eq!(&requested[..2], [r"\127.0.0.1\dfs", r"\127.0.0.1\proxy"]);
    let dfs = r"\127.0.0.1\dfs".to_owned();
    assert_eq!(answered[0], (28, ServerType::ROOT, dfs.clone(), dfs));
    let proxy = (r"\127.0.0.1\proxy".to_owned(), r"\127.0.0.1\s".to_owned());
    assert_eq!(answered[1], (32, ServerType::NON_ROOT, proxy.0, proxy.1));
}

#[cfg(feature = "crypto")]
mod decryption {
    use super::*;
    use smbscope_wire::crypto::*;

    /// Decrypts every encrypted message of a capture; returns the commands found.
    fn decrypt_all(messages: &[Message], cipher: Cipher, keys: &SessionKeys) -> Vec<usize> {
        let from_client = Decryptor::new(cipher, &keys.client_to_server).unwrap();
        let from_server = Decryptor::new(cipher, &keys.server_to_client).unwrap();
        let (mut out, mut prefix) = (Vec::new(), Vec::new());
        let mut commands = Vec::new();
        for message in messages {
            if !message.bytes.starts_with(b"\xfdSMB") {
                continue;
            }
            let decryptor = if message.from_client { &from_client } else { &from_server };
            decryptor.decrypt(&message.bytes, &mut out).unwrap();
            assert_eq!(out.len(), u32_at(&message.bytes, 36));
            assert_eq!(is_response(&out), !message.from_client);
            commands.extend(command(&out));
            let cut = &message.bytes[..52 + 64];
            decryptor.decrypt_prefix(cut, &mut prefix).unwrap();
            assert_eq!(prefix, out[..64]);
        }
        commands
    }

    fn entry(value: &str) -> KeyEntry {
        parse_key(value).unwrap()
    }

    #[test]
    fn smb_3_0_from_the_session_key() {
        let Some(pcap) = shared("captures/smb300-encrypted.pcap") else {
            return;
        };
        let known = entry(concat!(
            "3d00009400480000,28f2847263c83dc00621f742dd3f2e7b,",
            "6c9062802e06b81b06eff6989d166228,81f0762857c4b01cc3e12eff0d184362"
        ));
        let cipher = Cipher::AES_128_CCM;
        let session_key = known.session_key.unwrap();
        let keys = derive_session_keys(0x0300, cipher, &session_key, None).unwrap();
        assert_eq!(Some(&keys.client_to_server), known.client_to_server.as_ref());
        assert_eq!(Some(&keys.server_to_client), known.server_to_client.as_ref());

        let messages = messages(&pcap);
        let commands = decrypt_all(&messages, cipher, &keys);
        assert_eq!(commands.len(), 44);
        assert_eq!(commands[..6], [11, 11, 5, 5, 11, 11]);
        let encrypted = messages.iter().find(|m| m.bytes.starts_with(b"\xfdSMB"));
        let session = encrypted.unwrap().bytes[44..52].try_into().unwrap();
        assert_eq!(u64::from_le_bytes(session), known.session_id);
    }

    #[test]
    fn smb_3_1_1_from_the_session_key_and_the_hash_of_its_messages() {
        let Some(pcap) = shared("captures/smb311-encrypted.pcap") else {
            return;
        };
        let known = entry(concat!(
            "690000ac1c280000,b25a135fc3dc14269f20d7cbc8716b6b,",
            "394071f1a21db5ba683efa868c36aedf,f8c1a6b544e8226f98ee44778eaf316b"
        ));
        let messages = messages(&pcap);
        let mut hash = PreauthIntegrity::new();
        for message in &messages {
            let is_setup = matches!(command(&message.bytes), Some(0 | 1));
            let is_success = is_response(&message.bytes) && u32_at(&message.bytes, 8) == 0;
            let is_last = command(&message.bytes) == Some(1) && is_success;
            if is_setup && !is_last {
                hash.update(&message.bytes);
            }
        }
        let cipher = Cipher::AES_128_CCM;
        let session_key = known.session_key.unwrap();
        let keys = derive_session_keys(0x0311, cipher, &session_key, Some(&hash)).unwrap();
        assert_eq!(Some(&keys.client_to_server), known.client_to_server.as_ref());
        assert_eq!(Some(&keys.server_to_client), known.server_to_client.as_ref());
        assert_eq!(decrypt_all(&messages, cipher, &keys).len(), 28);
    }
}

//! Decryption by password, NT hash and keytab: the rows are those that session keys give.
//!
//! The fixtures are recorded from a private Samba whose accounts have one known password
//! (`tests/samba/lab.py`). The captures from other people are read in place; their password was
//! published with them. Where tshark is installed, it decrypts them too and must agree.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use smbscope_capture::Options;
use smbscope_tables::tables::Coverage;
use smbscope_wire::crypto::parse_key_list;
use smbscope_wire::secrets::Secrets;
use support::decode::{Decoded, Row, assert_same, decode, decode_files, single};

/// With the password that `tests/samba/lab.py` gives every account.
const PASSWORDS: &str = "# the lab\nLAB\\alice:Pass-w0rd\nbob:Pass-w0rd\n";
/// Its NT hash.
const HASH: &str = "4362ee3792b9e4a30d1fb6a44befad17";

const ENCRYPTED: &[&str] = &[
    "encrypted-aes-128-ccm-300.pcapng",
    "encrypted-aes-128-ccm-311.pcapng",
    "encrypted-aes-128-gcm-311.pcapng",
    "encrypted-aes-256-ccm-311.pcapng",
    "encrypted-aes-256-gcm-311.pcapng",
    "encrypted-share.pcapng",
    "encrypted-bind.pcapng.gz",
    "mtu-1500-encrypted.pcap",
];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures")).join(name)
}

fn with(secrets: Secrets) -> Options {
    Options { secrets: Arc::new(secrets), ..Options::default() }
}

fn passwords(text: &str) -> Options {
    let mut secrets = Secrets::default();
    secrets.add_passwords(text.as_bytes()).unwrap();
    with(secrets)
}

fn session_keys(name: &str) -> Options {
    let (base, _) = name.split_once('.').unwrap();
    let list = std::fs::read_to_string(fixture(&format!("{base}.keys"))).unwrap();
    Options { keys: parse_key_list(&list).unwrap(), ..single() }
}

fn read(name: &str, options: &Options) -> Decoded {
    decode_files(vec![fixture(name)], options).unwrap()
}

/// Counters of sessions: unlocked, with a wrong secret, without a secret, without a logon.
fn sessions(coverage: &Coverage) -> [u64; 4] {
    [
        coverage.sessions_unlocked,
        coverage.sessions_wrong_secret,
        coverage.sessions_without_secret,
        coverage.sessions_without_logon,
    ]
}

/// How the keys of the sessions are known.
fn decryption(decoded: &Decoded) -> Vec<Option<&str>> {
    decoded.sessions.iter().map(|session| session.decryption.as_deref()).collect()
}

#[test]
fn a_password_gives_the_rows_that_session_keys_give() {
    for name in ENCRYPTED {
        let expected = read(name, &session_keys(name));
        let found = read(name, &passwords(PASSWORDS));
        assert_same(&found.rows(), &expected.rows(), name);
        let coverage = &found.coverage[0];
        assert!(coverage.messages_decrypted >= 20, "{name}");
        assert_eq!(coverage.messages_decrypted, coverage.messages_encrypted, "{name}");
        let count = found.sessions.len() as u64;
        assert_eq!(decryption(&found), vec![Some("password"); found.sessions.len()], "{name}");
        assert_eq!(decryption(&expected), vec![Some("key"); found.sessions.len()], "{name}");
        assert_eq!(sessions(coverage), [count, 0, 0, 0], "{name}");
    }
}

#[test]
fn an_nt_hash_and_a_line_for_every_account_do_the_same() {
    let name = ENCRYPTED[2];
    let expected = read(name, &session_keys(name)).rows();
    for text in [format!("alice:{HASH}"), HASH.to_owned(), format!("x\\alice:1:{HASH}:{HASH}:::")] {
        let mut secrets = Secrets::default();
        secrets.add_nt_hashes(text.as_bytes()).unwrap();
        assert_same(&read(name, &with(secrets)).rows(), &expected, &text);
    }
    assert_same(&read(name, &passwords("*:no\n*:Pass-w0rd")).rows(), &expected, "any account");
}

#[test]
fn a_keytab_gives_the_rows_that_session_keys_give() {
    for (name, logons) in [("encrypted-kerberos-128", 5), ("encrypted-kerberos-256", 2)] {
        let bytes = std::fs::read(fixture(&format!("{name}.keytab"))).unwrap();
        let capture = format!("{name}.pcapng.gz");
        let mut secrets = Secrets::default();
        assert_eq!(secrets.add_keytab(&bytes), Ok(logons), "one key of each type");
        let expected = read(&capture, &session_keys(&capture));
        let found = read(&capture, &with(secrets));
        // The ticket names the user, whom session keys do not show.
        let user = |decoded: &Decoded| -> Vec<Option<String>> {
            decoded.sessions.iter().map(|session| session.user.clone()).collect()
        };
        assert_eq!(user(&expected), vec![None; logons], "{name}");
        assert_eq!(user(&found), vec![Some("alice@LAB.TEST".to_owned()); logons], "{name}");
        let without_user = |decoded: &Decoded| decoded.rows_without(&["user"]);
        assert_same(&without_user(&found), &without_user(&expected), name);
        assert_eq!(decryption(&found), vec![Some("keytab"); logons], "{name}");
        let (coverage, logons) = (&found.coverage[0], logons as u64);
        assert_eq!(sessions(coverage), [logons, 0, 0, 0], "{name}");
        assert_eq!(coverage.messages_decrypted, coverage.messages_encrypted, "{name}");
        assert!(coverage.messages_decrypted > 20 * logons, "{name}");

        // The keys of another host.
        let mut other = bytes.clone();
        for entry in smbscope_wire::secrets::keytab_entries(&bytes).unwrap() {
            let at = bytes.windows(entry.key.len()).position(|window| window == entry.key).unwrap();
            other[at] ^= 1;
        }
        let mut secrets = Secrets::default();
        secrets.add_keytab(&other).unwrap();
        assert_eq!(
            sessions(&read(&capture, &with(secrets)).coverage[0]),
            [0, logons, 0, 0],
            "{name}"
        );
        let locked = read(&capture, &passwords(PASSWORDS));
        assert_eq!(sessions(&locked.coverage[0]), [0, 0, logons, 0], "{name}");
    }
}

#[test]
fn sessions_that_stay_locked_are_counted_by_their_reason() {
    let name = "mtu-1500-encrypted.pcap";
    let locked = read(name, &single());
    assert_eq!(sessions(&locked.coverage[0]), [0; 4], "without secrets nothing is said");
    for (text, expected) in [
        ("alice:Pass-word", [0, 1, 0, 0]),
        ("carol:Pass-w0rd", [0, 0, 1, 0]),
        ("*:Pass-word", [0, 1, 0, 0]),
    ] {
        let found = read(name, &passwords(text));
        assert_eq!(sessions(&found.coverage[0]), expected, "{text}");
        let reason = if expected[1] == 1 { "wrong secret" } else { "no secret" };
        assert_eq!(decryption(&found), [Some(reason)], "{text}");
        assert_eq!(found.coverage[0].messages_decrypted, 0);
        assert_eq!(found.coverage[0].decryption_failed, 0, "there is no key that could fail");
        assert_same(&found.rows(), &locked.rows(), text);
    }
}

/// A pcap without its first packets.
fn mid_stream(capture: &[u8], left_out: usize) -> Vec<u8> {
    let mut at = 24;
    for _ in 0..left_out {
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    [&capture[..24], &capture[at..]].concat()
}

/// A pcapng without the packets of the TCP handshake and of the first request and reply.
fn without_negotiate(capture: &[u8]) -> Vec<u8> {
    let (mut out, mut at, mut with_data) = (Vec::new(), 0, 0);
    while at < capture.len() {
        let number = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
        let (kind, length) = (number(at), number(at + 4) as usize);
        let block = &capture[at..at + length];
        with_data += usize::from(kind == 6 && block.windows(4).any(|bytes| bytes == b"\xfeSMB"));
        if kind != 6 || with_data > 2 {
            out.extend_from_slice(block);
        }
        at += length;
    }
    out
}

#[test]
fn a_logon_that_was_not_captured_is_counted() {
    let capture = std::fs::read(fixture("mtu-1500-encrypted.pcap")).unwrap();
    let options = passwords(PASSWORDS);
    for left_out in 0..20 {
        let found = decode(&mid_stream(&capture, left_out), &options);
        let coverage = &found.coverage[0];
        let [unlocked, wrong, missing, no_logon] = sessions(coverage);
        assert_eq!((wrong, missing), (0, 0));
        assert_eq!(unlocked + no_logon, 1, "{left_out} packets left out");
        assert_eq!(coverage.decryption_failed, 0, "{left_out} packets left out");
        assert_eq!(coverage.messages_decrypted > 0, unlocked > 0, "{left_out} packets left out");
    }
    let found = decode(&mid_stream(&capture, 20), &options);
    assert_eq!(sessions(&found.coverage[0]), [0, 0, 0, 1]);
    // SMB 3.0 needs no hash: the logon is enough, without the Negotiate before it.
    let name = "encrypted-aes-128-ccm-300.pcapng";
    let expected = read(name, &session_keys(name));
    let capture = without_negotiate(&std::fs::read(fixture(name)).unwrap());
    let found = decode(&capture, &options);
    assert_eq!(sessions(&found.coverage[0]), [1, 0, 0, 0]);
    assert_eq!(found.coverage[0].messages_decrypted, expected.coverage[0].messages_decrypted);
}

#[test]
fn anonymous_and_refused_logons_have_no_key() {
    // A wrong password that the server refuses, and anonymous logons.
    let errors = read("errors.pcapng", &passwords(PASSWORDS));
    let [_, wrong, ..] = sessions(&errors.coverage[0]);
    assert_eq!(wrong, 0);
    let guest = read("guest.pcapng", &passwords("*:Pass-w0rd"));
    assert_eq!(sessions(&guest.coverage[0]), [0; 4]);
    assert_eq!(decryption(&guest), [None]);
}

/// Number of operations by command.
fn commands(rows: &[Row]) -> String {
    let mut counts = BTreeMap::new();
    for row in rows {
        let command = row.get("command").map_or("(encrypted)", String::as_str);
        *counts.entry(command).or_insert(0) += 1;
    }
    let counts = counts.iter().map(|(command, count)| format!("{command} {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

#[test]
fn captures_with_a_published_password_open() {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or(beside, PathBuf::from);
    let captures = shared.join("captures");
    if !captures.is_dir() {
        smbscope_testing::skip!("no captures in {}", captures.display());
    }
    for (name, unlocked, expected) in [
        (
            "acl_0.15_enumerate_computers",
            1,
            "(encrypted) 1, Create 1, Logoff 1, Negotiate 2, Read 29, SessionSetup 2, TreeConnect 1, TreeDisconnect 1, Write 29",
        ),
        (
            "acl_2.1_local_groups",
            1,
            "(encrypted) 1, Create 1, Logoff 1, Negotiate 2, Read 120, SessionSetup 2, TreeConnect 1, TreeDisconnect 1, Write 120",
        ),
        // A server without SMB1 resets the connections of a scanner.
        ("nmap", 0, "Negotiate 11"),
        // Signed, not encrypted.
        (
            "rpcclient_queryuser",
            1,
            "Close 1, Create 1, Ioctl 10, Negotiate 1, SessionSetup 2, TreeConnect 1, TreeDisconnect 1",
        ),
    ] {
        let path = captures.join(format!("smb3-ntlm-password-{name}.pcapng"));
        let found = decode_files(vec![path.clone()], &passwords("*:LabAdm1!\n")).unwrap();
        let (rows, coverage) = (found.rows(), &found.coverage[0]);
        assert_eq!(commands(&rows), expected, "{name}");
        assert_eq!(sessions(coverage), [unlocked, 0, 0, 0], "{name}");
        // The client sends a message of session 0 after its logoff, which tshark does not read either.
        assert!(coverage.messages_encrypted - coverage.messages_decrypted <= 1, "{name}");
        agrees_with_tshark(&path, &rows);
    }
}

/// Command, MessageId, status of the reply and name of the file are those that tshark shows.
fn agrees_with_tshark(path: &Path, rows: &[Row]) {
    let fields = ["tcp.stream", "smb2.cmd", "smb2.msg_id", "smb2.nt_status", "smb2.filename"];
    let output = Command::new("tshark")
        .args(["-o", "ntlmssp.nt_password:LabAdm1!", "-Y", "smb2", "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .arg("-r")
        .arg(path)
        .output();
    let Ok(output) = output else {
        smbscope_testing::skipped("tshark is not installed");
        return;
    };
    let mut expected: BTreeMap<u64, (String, Option<u64>, Option<String>)> = BTreeMap::new();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, command, id, status, file] = columns[..] else { panic!("{line}") };
        let (Ok(command), Ok(id)) = (command.parse(), id.parse()) else { continue };
        let name = smbscope_wire::smb2::Command(command).name().unwrap().to_owned();
        if !status.is_empty() && !expected.contains_key(&id) {
            // The answer to an SMB1 Negotiate, whose row has that protocol.
            continue;
        }
        let known = expected.entry(id).or_insert((name, None, None));
        if let Some(status) = status.strip_prefix("0x") {
            known.1 = Some(u64::from_str_radix(status, 16).unwrap());
        }
        if known.0 == "Create" && !file.is_empty() {
            known.2 = Some(file.to_owned());
        }
    }
    let found = rows.iter().filter(|row| row.get("protocol").is_some_and(|one| one == "2"));
    let found: BTreeMap<_, _> = found
        .filter_map(|row| {
            let path = row.get("path").filter(|_| row["command"] == "Create").cloned();
            let status = row.get("status").map(|status| status.parse().unwrap());
            let id = row.get("message_id")?.parse().unwrap();
            Some((id, (row["command"].clone(), status, path)))
        })
        .collect();
    assert_eq!(found, expected, "{}", path.display());
}

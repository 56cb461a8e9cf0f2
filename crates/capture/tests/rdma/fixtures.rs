//! The messages of recorded TCP captures, sent by RoCE and by iWARP instead: every dialect, compounds,
//! asynchronous replies, encryption, compression. The rows are those of the messages over TCP.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use smbscope_capture::Options;
use smbscope_capture::file::{Limits, Reader};
use smbscope_capture::frame::dissect;
use smbscope_wire::crypto::parse_key_list;

use crate::TRANSPORT;
use crate::support::decode::{assert_same, decode, single};
use crate::support::packets::{Sending, pcap};
use crate::support::talk::{Said, Talk};
use crate::write::{self, Roce, iwarp};

/// Captures of SMB2 and SMB3 without losses.
const FIXTURES: &[&str] = &[
    "smb202.pcapng.gz",
    "smb210.pcap",
    "smb300.pcapng.gz",
    "session-bind.pcapng",
    "dfs.pcapng",
    "smb311.pcapng",
    "compound-break.pcapng",
    "compound-chains.pcapng",
    "compound-interim.pcapng.gz",
    "credits.pcapng",
    "encrypted-aes-128-ccm-300.pcapng",
    "encrypted-aes-256-gcm-311.pcapng",
    "lease-break.pcapng",
    "lock-blocked.pcapng",
    "mtu-1500-encrypted.pcap",
    "notify-cancel.pcapng.gz",
];

/// The messages of each connection in the order in which they were complete.
fn talks(path: &Path) -> Vec<Talk> {
    let mut reader = Reader::open(path, Limits::default()).unwrap();
    let mut talks: BTreeMap<u16, Talk> = BTreeMap::new();
    let mut streams: HashMap<(u16, u16), (u32, Vec<u8>)> = HashMap::new();
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        for frame in &chunk.frames {
            let Ok(segment) = dissect(frame.link, chunk.frame(frame), frame.original) else {
                continue;
            };
            let to_server = segment.destination_port == 445;
            if segment.payload.is_empty() || !to_server && segment.source_port != 445 {
                continue;
            }
            let ports = (segment.source_port, segment.destination_port);
            let (next, bytes) = streams.entry(ports).or_insert((segment.sequence, Vec::new()));
            if *next != segment.sequence {
                continue;
            }
            *next = next.wrapping_add(segment.payload_len);
            bytes.extend_from_slice(segment.payload);
            let client = if to_server { ports.0 } else { ports.1 };
            let talk = talks
                .entry(client)
                .or_insert_with(|| Talk { said: Vec::new(), now: frame.time_ns });
            while let Some(&length) = bytes.first_chunk::<4>() {
                let end = 4 + u32::from_be_bytes(length) as usize;
                if bytes.len() < end {
                    break;
                }
                let rest = bytes.split_off(end);
                let message = std::mem::replace(bytes, rest);
                talk.said.push(Said { to_server, time: frame.time_ns, bytes: message });
            }
        }
    }
    talks.into_values().collect()
}

#[test]
fn recorded_messages_give_the_same_rows_over_rdma() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let (mut connections, mut operations) = (0, 0);
    for name in FIXTURES {
        let keys = name.split('.').next().map(|stem| folder.join(format!("{stem}.keys")));
        let keys = keys.and_then(|path| std::fs::read_to_string(path).ok());
        let keys = keys.map(|text| parse_key_list(&text).unwrap()).unwrap_or_default();
        let options = Options { keys, ..single() };
        for talk in talks(&folder.join(name)) {
            let what = format!("{name} from {}", talk.now);
            let of_tcp = pcap(&Sending::default().aligned(&talk), usize::MAX, false);
            let expected = decode(&of_tcp, &options).rows_without(TRANSPORT);
            let roce = Roce { mtu: 1_024, fragment: 1_340, ..Roce::default() };
            let of_roce = write::pcap(&roce.send(&talk), usize::MAX);
            let of_iwarp = Sending { server_port: 5_445, ..Sending::default() }
                .aligned(&iwarp(&talk, 1_340, 1_428, true));
            let of_iwarp = pcap(&of_iwarp, usize::MAX, false);
            for capture in [of_roce, of_iwarp] {
                let decoded = decode(&capture, &options);
                assert_same(&expected, &decoded.rows_without(TRANSPORT), &what);
                let coverage = &decoded.coverage[0];
                assert_eq!((coverage.decryption_failed, coverage.smb_direct_given_up), (0, 0));
                assert_eq!(coverage.messages_decrypted, coverage.messages_encrypted, "{what}");
                assert_eq!(coverage.messages_encrypted > 0, name.contains("encrypted"), "{what}");
            }
            connections += 1;
            operations += expected.len();
        }
    }
    assert!(connections >= FIXTURES.len() && operations > 500, "{connections} {operations}");
}

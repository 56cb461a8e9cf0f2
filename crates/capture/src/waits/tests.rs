//! Packets of other services to rows, and the shared captures where they are.

use std::path::Path;

use proptest::prelude::*;
use smbscope_tables::Part;
use smbscope_tables::tables::Wait;

use crate::file::LinkType;
use crate::options::{Input, Options};
use crate::{Decoder, PushDecoder};

const MS: i64 = 1_000_000;
const CLIENT: [u8; 4] = [10, 0, 0, 9];
const SERVER: [u8; 4] = [10, 0, 0, 5];
const RESOLVER: [u8; 4] = [10, 0, 0, 2];
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn ip(protocol: u8, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    packet.extend(from);
    packet.extend(to);
    packet.extend(payload);
    packet
}

fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for number in [from.1, to.1, 8 + payload.len() as u16, 0] {
        datagram.extend(number.to_be_bytes());
    }
    datagram.extend(payload);
    ip(17, from.0, to.0, &datagram)
}

fn tcp(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(from.1.to_be_bytes());
    segment.extend(to.1.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    ip(6, from.0, to.0, &segment)
}

/// A message of DNS: its flags, the name in labels, the type.
fn dns(flags: u16, name: &str, record: u16) -> Vec<u8> {
    let mut message = vec![0, 7];
    message.extend(flags.to_be_bytes());
    message.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(record.to_be_bytes());
    message.extend([0, 1]);
    message
}

/// The rows of packets at these times (ms), and an attempt to connect that makes the client one of SMB.
fn waits(packets: &[(i64, Vec<u8>)]) -> Vec<Wait> {
    let options = Options { threads: 1, ..Options::default() };
    let mut decoder = PushDecoder::new("test", &options).unwrap();
    for (time, packet) in packets {
        decoder.frame(LinkType::RAW, packet, packet.len() as u32, time * MS);
    }
    let parts = decoder.end(&mut |_, _| (), |_| ()).unwrap();
    let rows = parts.into_iter().filter_map(|part| match part {
        Part::Waits(rows) => Some(rows),
        _ => None,
    });
    rows.flatten().collect()
}

fn syn(port: u16) -> Vec<u8> {
    tcp((CLIENT, 50_000), (SERVER, port), SYN, &[])
}

/// Kind, name, milliseconds waited, attempts, outcome.
fn in_short(row: &Wait) -> (&str, Option<&str>, i64, u64, &str) {
    let waited = row.waited_ns() / MS;
    (&row.kind, row.subject.as_deref(), waited, row.attempts, &row.outcome)
}

#[test]
fn a_name_is_one_wait_over_all_servers_that_are_asked() {
    let query = |server| udp((CLIENT, 4_000), (server, 53), &dns(0x100, "Fs1.corp", 1));
    let answer = udp((RESOLVER, 53), (CLIENT, 4_000), &dns(0x8180, "fs1.CORP", 1));
    let silent = [10, 0, 0, 3];
    let rows = waits(&[
        (0, query(silent)),
        (1_000, query(silent)),
        (1_001, query(RESOLVER)),
        (1_003, answer.clone()),
        // It answers once more: no client waits for it.
        (1_004, answer),
        (1_010, syn(445)),
        (1_011, tcp((SERVER, 445), (CLIENT, 50_000), SYN | ACK, &[])),
    ]);
    let [name, connect] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(in_short(name), ("name_lookup", Some("fs1.corp"), 1_003, 3, "answered"));
    assert_eq!((&*name.server, name.answered_by.as_deref()), ("10.0.0.3", Some("10.0.0.2")));
    assert_eq!((name.first_frame, name.last_frame), (1, 4));
    assert_eq!(in_short(connect), ("connect", None, 1, 1, "answered"));
}

#[test]
fn a_name_that_does_not_exist_and_one_that_nobody_knows() {
    // FS1 with the suffix 0x20, as NetBIOS encodes it.
    let encoded: String = b"FS1            \x20"
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from(b'A' + half))
        .collect();
    let broadcast = [10, 0, 0, 255];
    let netbios = udp((CLIENT, 137), (broadcast, 137), &dns(0x110, &encoded, 32));
    let rows = waits(&[
        (0, udp((CLIENT, 4_000), (RESOLVER, 53), &dns(0x100, "fs1", 1))),
        (2, udp((RESOLVER, 53), (CLIENT, 4_000), &dns(0x8183, "fs1", 1))),
        (10, netbios.clone()),
        (760, netbios.clone()),
        (1_510, netbios),
        // A registration is not a question.
        (1_600, udp((CLIENT, 137), (broadcast, 137), &dns(0x2910, &encoded, 32))),
        (3_000, syn(445)),
    ]);
    let [dns, netbios, connect] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(in_short(dns), ("name_lookup", Some("fs1"), 2, 1, "failed"));
    assert_eq!(dns.result.as_deref(), Some("NXDOMAIN"));
    assert_eq!(in_short(netbios), ("name_lookup", Some("FS1<20>"), 1_500, 3, "none"));
    assert_eq!(in_short(connect), ("connect", None, 0, 1, "none"));
}

#[test]
fn attempts_to_connect_end_in_five_ways() {
    let from = |port| (CLIENT, port);
    let smb = (SERVER, 445);
    let asked = |port| tcp(from(port), smb, SYN, &[]);
    let mut report = vec![3, 1, 0, 0, 0, 0, 0, 0];
    report.extend(asked(50_003));
    let rows = waits(&[
        (0, asked(50_000)),
        (3_000, asked(50_000)),
        (3_001, tcp(smb, from(50_000), SYN | ACK, &[])),
        (4_000, asked(50_001)),
        (4_001, tcp(smb, from(50_001), RST | ACK, &[])),
        (5_000, asked(50_002)),
        (5_500, tcp(from(50_002), smb, RST, &[])),
        (6_000, asked(50_003)),
        (6_002, ip(1, [10, 0, 0, 1], CLIENT, &report)),
        (7_000, asked(50_004)),
    ]);
    let found: Vec<_> = rows.iter().map(in_short).collect();
    let connect = |ms, attempts, outcome| ("connect", None, ms, attempts, outcome);
    assert_eq!(
        found,
        [
            connect(3_001, 2, "answered"),
            connect(1, 1, "refused"),
            connect(500, 1, "abandoned"),
            connect(2, 1, "unreachable"),
            connect(0, 1, "none"),
        ]
    );
    assert_eq!(rows[3].result.as_deref(), Some("host unreachable"));
    assert_eq!(rows[3].answered_by.as_deref(), Some("10.0.0.1"));
}

#[test]
fn requests_of_other_services() {
    let (client, ldap) = ((CLIENT, 40_000), (RESOLVER, 389));
    let web = (SERVER, 80);
    let rows = waits(&[
        (0, tcp(client, ldap, SYN, &[])),
        (1, tcp(ldap, client, SYN | ACK, &[])),
        (2, tcp(client, ldap, ACK, b"search")),
        (52, tcp(ldap, client, ACK, b"entry")),
        (60, tcp(client, ldap, ACK, b"search")),
        (90, tcp(ldap, client, RST, &[])),
        (100, tcp(client, web, SYN, &[])),
        (101, tcp(web, client, SYN | ACK, &[])),
        (102, tcp(client, web, ACK, b"PROPFIND /")),
        (202, tcp(web, client, ACK, b"HTTP/1.1 405")),
        // Only the first answer is waited for.
        (203, tcp(client, web, ACK, b"GET /")),
        (300, syn(445)),
    ]);
    let found: Vec<_> = rows.iter().map(in_short).collect();
    assert_eq!(
        found,
        [
            ("connect", None, 1, 1, "answered"),
            ("directory", None, 50, 1, "answered"),
            ("directory", None, 30, 1, "reset"),
            ("connect", None, 1, 1, "answered"),
            ("web", None, 100, 1, "answered"),
            ("connect", None, 0, 1, "none"),
        ]
    );
}

#[test]
fn machines_without_smb_have_no_rows() {
    let other = [10, 0, 0, 77];
    let rows = waits(&[
        (0, udp((other, 4_000), (RESOLVER, 53), &dns(0x100, "example", 1))),
        (5, syn(445)),
    ]);
    assert_eq!(rows.len(), 1, "{rows:?}");
}

#[test]
fn routers_that_ask_for_smaller_packets() {
    let mut report = vec![3, 4, 0, 0, 0, 0, 0x05, 0x14];
    report.extend(tcp((CLIENT, 50_000), (SERVER, 445), ACK, &[0; 8]));
    let rows = waits(&[(0, syn(445)), (9, ip(1, [10, 0, 0, 1], CLIENT, &report))]);
    let row = rows.iter().find(|row| row.kind == "path_mtu").unwrap();
    assert_eq!((row.size_bytes, row.answered_by.as_deref()), (Some(1_300), Some("10.0.0.1")));
}

/// The waits of a capture after a public report.
fn shared(name: &str, threads: usize) -> Option<Vec<Wait>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/diagnoses");
    let path = folder.join(format!("{name}.pcap.gz"));
    if !path.exists() {
        smbscope_testing::skip!("{} is not there", path.display());
        return None;
    }
    let options = Options { threads, ..Options::default() };
    let mut waits = Vec::new();
    for part in Decoder::open(vec![Input::Path(path)], options).unwrap() {
        if let Part::Waits(rows) = part.unwrap() {
            waits.extend(rows);
        }
    }
    Some(waits)
}

#[test]
fn in_captures_after_public_reports() {
    for threads in [1, 4] {
        // As tshark lists the packets.
        let Some(rows) = shared("g06_dns_delay", threads) else { return };
        assert_eq!(
            in_short(&rows[0]),
            ("name_lookup", Some("fs1.corp.example"), 11_002, 8, "answered")
        );
        let rows = shared("n14_mup_before_smb", threads).unwrap();
        let before: Vec<_> = rows.iter().take(5).map(in_short).collect();
        assert_eq!(
            before,
            [
                ("name_lookup", Some("FS1<00>"), 1_500, 3, "none"),
                ("name_lookup", Some("fs1.corp.example"), 0, 1, "answered"),
                ("connect", None, 9_000, 3, "none"),
                ("connect", None, 3_000, 2, "none"),
                ("connect", None, 0, 1, "answered"),
            ]
        );
        let rows = shared("n08_reconnect_sleep", threads).unwrap();
        let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
        assert_eq!((count("answered"), count("unreachable")), (1, 50), "{rows:#?}");
        let rows = shared("n11_delack_notify_signing", threads).unwrap();
        let late = rows.iter().filter(|row| row.kind == "acknowledgement").count();
        assert_eq!(late, 60);
        let rows = shared("g01_pmtu_hole_up", threads).unwrap();
        let resent: Vec<_> = rows.iter().filter(|row| row.kind == "retransmission").collect();
        assert!(!resent.is_empty() && resent.iter().all(|row| row.is_unanswered()), "{resent:#?}");
        for healthy in ["c01_office_healthy", "c03_player"] {
            let rows = shared(healthy, threads).unwrap();
            assert!(rows.iter().all(|row| row.kind == "connect"), "{rows:#?}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_to_any_port(
        packets in prop::collection::vec(
            (any::<bool>(), any::<bool>(), 0..8_usize, any::<u8>(), prop::collection::vec(any::<u8>(), 0..80)),
            0..60,
        ),
    ) {
        const PORTS: [u16; 8] = [53, 88, 137, 389, 445, 5353, 5355, 80];
        let packets: Vec<_> = packets
            .into_iter()
            .zip(0..)
            .map(|((is_tcp, back, port, flags, bytes), time)| {
                let (mut from, mut to) = ((CLIENT, 4_000), (SERVER, PORTS[port]));
                if back {
                    std::mem::swap(&mut from, &mut to);
                }
                let packet = if is_tcp { tcp(from, to, flags, &bytes) } else { udp(from, to, &bytes) };
                (time, packet)
            })
            .collect();
        let count = packets.len();
        let rows = waits(&packets);
        prop_assert!(rows.len() <= count);
        prop_assert!(rows.iter().all(|row| row.end.is_none_or(|end| end >= row.start)));
    }
}

//! Packets in tunnels: copies of one packet count once, pieces of a tunnel's packet come together, and
//! the coverage counts what stays closed.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use smbscope_tables::tables::Coverage;
use support::decode::{assert_same, decode, single};
use support::packets::{Sending, pcap};
use support::talk::{Talk, everything, noise};

/// Coverage of a capture whose packets were changed; `change` gets each packet from the IP header on.
fn coverage(link: u8, change: impl Fn(&mut [u8])) -> Coverage {
    let mut talk = Talk::new();
    talk.connect();
    let mut capture = pcap(&Sending::default().aligned(&talk), usize::MAX, false);
    capture[20] = link;
    let mut at = 24;
    while at < capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
        change(&mut capture[at + 16 + 14..at + 16 + length]);
        at += 16 + length;
    }
    let decoded = decode(&capture, &single());
    assert_eq!(decoded.operations() == 0, decoded.coverage[0].connections == 0);
    decoded.coverage[0].clone()
}

#[test]
fn tunnels_and_unknown_links_are_distinguished_from_other_protocols() {
    let flags = |coverage: Coverage| {
        let Coverage { frames_not_tcp, frames_tunnelled, frames_link_unknown, .. } = coverage;
        [frames_not_tcp, frames_tunnelled, frames_link_unknown].map(|count| count > 0)
    };
    let protocol = |number: u8| move |ip: &mut [u8]| ip[9] = number;
    let udp = |port: u16| {
        move |ip: &mut [u8]| {
            ip[9] = 17;
            ip[22..24].copy_from_slice(&port.to_be_bytes());
            // UDP's length.
            ip[24..26].copy_from_slice(&[0, 8]);
        }
    };
    const ETHERNET: u8 = 1;
    assert_eq!(flags(coverage(ETHERNET, |_| ())), [false, false, false]);
    assert_eq!(flags(coverage(ETHERNET, protocol(1))), [true, false, false]);
    for tunnel in [50, 108, 115] {
        assert_eq!(flags(coverage(ETHERNET, protocol(tunnel))), [false, true, false]);
    }
    assert_eq!(flags(coverage(ETHERNET, udp(4789))), [false, true, false]);
    assert_eq!(flags(coverage(ETHERNET, udp(53))), [true, false, false]);
    // USB.
    assert_eq!(flags(coverage(220, |_| ())), [false, false, true]);
}

/// Records of a pcap: their header and frame.
fn records(capture: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    let mut at = 24;
    while at < capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
        let (head, rest) = capture[at..at + 16 + length].split_at(16);
        records.push((head.to_vec(), rest.to_vec()));
        at += 16 + length;
    }
    records
}

/// A frame of 10.9.8.1 with this protocol and payload; `place` has the fragment's flags and offset.
fn outer(protocol: u8, identification: u16, place: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((20 + payload.len() as u16).to_be_bytes());
    frame.extend(identification.to_be_bytes());
    frame.extend(place.to_be_bytes());
    frame.extend([64, protocol, 0, 0, 10, 9, 8, 1, 10, 9, 8, 2]);
    frame.extend(payload);
    frame
}

/// A UDP datagram with a frame in VXLAN.
fn vxlan(frame: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0xc3, 0x50, 0x12, 0xb5];
    datagram.extend((16 + frame.len() as u16).to_be_bytes());
    datagram.extend([0, 0, 8, 0, 0, 0, 0, 0, 1, 0]);
    datagram.extend(frame);
    datagram
}

/// A pcap of these frames; each is this many nanoseconds behind the record's time.
fn written(capture: &[u8], frames: &[(Vec<u8>, u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = capture[..24].to_vec();
    for (head, later_ns, frame) in frames {
        let ns = u32::from_le_bytes(head[4..8].try_into().unwrap()) + later_ns;
        file.extend(&head[..4]);
        file.extend(ns.to_le_bytes());
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend(frame);
    }
    file
}

/// Columns that a copy or a tunnel changes.
const OWN: &[&str] =
    &["recording", "capture_file", "request_frame", "response_frame", "pending_frame"];

#[test]
fn tunnelled_and_plain_copies_of_one_packet_count_once() {
    let packets = Sending::default().aligned(&everything(noise()));
    let capture = pcap(&packets, usize::MAX, false);
    let whole = decode(&capture, &single());
    assert!(whole.operations() > 20);
    for tunnelled_first in [true, false] {
        let mut frames = Vec::new();
        for (head, frame) in records(&capture) {
            let tunnelled = outer(17, 1, 0, &vxlan(&frame));
            let [first, second] =
                if tunnelled_first { [tunnelled, frame] } else { [frame, tunnelled] };
            frames.push((head.clone(), 0, first));
            frames.push((head, 900, second));
        }
        let decoded = decode(&written(&capture, &frames), &single());
        assert_same(&whole.rows_without(OWN), &decoded.rows_without(OWN), "twice");
        let coverage = &decoded.coverage[0];
        let repeated = coverage.frames_repeated as usize;
        assert!((packets.len() - 1..=packets.len()).contains(&repeated), "{repeated}");
        assert_eq!(coverage.retransmissions, 0);
        let text = format!("VXLAN {}", packets.len());
        assert_eq!(coverage.unwrapped.as_deref(), Some(text.as_str()));
    }
}

#[test]
fn a_tunnels_fragments_come_together() {
    let packets = Sending::default().aligned(&everything(noise()));
    let capture = pcap(&packets, usize::MAX, false);
    let whole = decode(&capture, &single());
    let mut frames = Vec::new();
    let mut fragments = 0;
    for (number, (head, frame)) in records(&capture).into_iter().enumerate() {
        let datagram = vxlan(&frame);
        let cut = datagram.len() / 2 / 8 * 8;
        let (one, two) = datagram.split_at(cut);
        frames.push((head.clone(), 0, outer(17, number as u16, 0x2000, one)));
        frames.push((head, 0, outer(17, number as u16, (cut / 8) as u16, two)));
        fragments += 2;
    }
    for threads in [1, 3] {
        let options = smbscope_capture::Options { threads, ..single() };
        let decoded = decode(&written(&capture, &frames), &options);
        assert_same(&whole.rows_without(OWN), &decoded.rows_without(OWN), "fragments");
        let coverage = &decoded.coverage[0];
        assert_eq!((coverage.fragments_reassembled, coverage.frames_fragment), (fragments, 0));
    }
    // Without one of the pieces, there is a gap as for any lost packet.
    frames.remove(frames.len() / 2);
    let decoded = decode(&written(&capture, &frames), &single());
    let coverage = &decoded.coverage[0];
    assert_eq!((coverage.fragments_reassembled, coverage.frames_fragment), (fragments - 2, 1));
    assert!(decoded.operations() < whole.operations() || coverage.gaps > 0);
}

#[test]
fn datagrams_of_netbios_are_counted() {
    let coverage = coverage(1, |ip| {
        ip[9] = 17;
        ip[22..24].copy_from_slice(&138_u16.to_be_bytes());
        ip[24..26].copy_from_slice(&[0, 8]);
    });
    assert!(coverage.datagrams_not_sessions > 0);
    assert_eq!(coverage.datagrams_not_sessions, coverage.frames_not_tcp);
}

#[test]
fn frames_that_wireless_sends_as_one_are_split() {
    let packets = Sending::default().aligned(&everything(noise()));
    let capture = pcap(&packets, usize::MAX, false);
    let whole = decode(&capture, &single());
    let mut frames = Vec::new();
    for pair in records(&capture).chunks(2) {
        // QoS data of an access point, with the bit of an aggregate.
        let mut frame = vec![0x88, 2];
        frame.resize(24, 0);
        frame.extend([0x80, 0]);
        for (_, ethernet) in pair {
            frame.resize((frame.len() - 26).next_multiple_of(4) + 26, 0);
            frame.extend(&ethernet[..12]);
            let payload = [&[0xaa, 0xaa, 3, 0, 0, 0], &ethernet[12..]].concat();
            frame.extend((payload.len() as u16).to_be_bytes());
            frame.extend(payload);
        }
        frames.push((pair[0].0.clone(), 0, frame));
    }
    let mut file = written(&capture, &frames);
    file[20] = 105;
    for threads in [1, 3] {
        let options = smbscope_capture::Options { threads, ..single() };
        let decoded = decode(&file, &options);
        let keys = |rows: Vec<support::decode::Row>| -> Vec<_> {
            rows.into_iter().map(|row| (row["command"].clone(), row.get("path").cloned())).collect()
        };
        assert_eq!(keys(whole.rows()), keys(decoded.rows()));
        let coverage = &decoded.coverage[0];
        assert_eq!((coverage.gaps, coverage.frames), (0, frames.len() as u64));
        let unwrapped = coverage.unwrapped.clone().unwrap();
        assert!(unwrapped.contains(&format!("802.11 {}", frames.len())), "{unwrapped}");
    }
}

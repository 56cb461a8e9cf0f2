//! State is bounded for any capture, and discarded state is counted.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use smbscope_capture::{Limits, Options};
use support::decode::{Decoded, decode};
use support::packets::{ACK, FIN, Packet, Sending, mixed, pcap};
use support::smb2;
use support::talk::Talk;

fn decoded(packets: &[Packet], limits: Limits) -> Decoded {
    decode(&pcap(packets, usize::MAX, false), &Options { threads: 1, limits, ..Options::default() })
}

#[test]
fn connections_beyond_the_limit_are_forgotten_the_idle_ones_first() {
    let mut connections = Vec::new();
    for index in 0..200_u16 {
        let mut talk = Talk::new();
        talk.pass(i64::from(index) * 100_000_000);
        talk.connect();
        let sending = Sending { client_port: 2_000 + index, ..Sending::default() };
        connections.push(sending.aligned(&talk));
    }
    let limits = Limits { connections: 20, ..Limits::default() };
    let decoded = decoded(&mixed(connections), limits);
    // Connections that had ended lose nothing.
    assert_eq!(decoded.operations(), 200 * 4);
    let coverage = &decoded.coverage[0];
    assert_eq!(coverage.connections, 200);
    assert!((180..200).contains(&coverage.connections_evicted));
    let idle = decoded.connections.iter().filter(|connection| connection.end_reason == "idle");
    assert_eq!(idle.count() as u64, coverage.connections_evicted);
}

#[test]
fn connections_that_are_over_make_room_for_those_that_are_not() {
    let mut connections = Vec::new();
    for index in 0..200_u16 {
        let mut talk = Talk::new();
        talk.pass(i64::from(index) * 100_000_000);
        talk.connect();
        if index == 0 {
            // Silent while the others come and go.
            talk.pass(30_000_000_000);
            talk.exchange(smb2::create(4, "a"), 1_000, smb2::created(4, 40));
        }
        let sending = Sending { client_port: 2_000 + index, ..Sending::default() };
        let mut packets = sending.aligned(&talk);
        if index > 0 {
            let last = packets.last().unwrap().clone();
            packets.push(Packet { flags: FIN | ACK, payload: vec![], ..last });
        }
        connections.push(packets);
    }
    let limits = Limits { connections: 20, ..Limits::default() };
    let decoded = decoded(&mixed(connections), limits);
    let coverage = &decoded.coverage[0];
    assert_eq!((coverage.connections, coverage.connections_evicted), (200, 0));
    let of = |reason| decoded.connections.iter().filter(|one| one.end_reason == reason).count();
    assert_eq!((of("fin"), of("end of the capture")), (199, 1));
    assert_eq!(coverage.connections_mid_stream, 0);
}

#[test]
fn flows_of_other_protocols_are_candidates_for_a_while_only() {
    let mut connections = Vec::new();
    for index in 0..300_u16 {
        let mut talk = Talk::new();
        talk.pass(i64::from(index) * 1_000);
        talk.ask(b"something else".to_vec());
        let sending =
            Sending { client_port: 2_000 + index, server_port: 8_080, ..Sending::default() };
        connections.push(sending.aligned(&talk));
    }
    let limits = Limits { candidates: 10, connections: 20, ..Limits::default() };
    let decoded = decoded(&mixed(connections), limits);
    let coverage = &decoded.coverage[0];
    assert_eq!((coverage.connections, coverage.connections_evicted), (0, 0));
    assert_eq!(decoded.operations(), 0);
}

/// A stream in which every other segment is lost, without end, and nothing is acknowledged.
fn holes(payload: usize, segments: usize) -> Vec<Packet> {
    let mut talk = Talk::new();
    talk.connect();
    let mut packets = Sending::default().aligned(&talk);
    let last = packets.iter().rfind(|packet| packet.to_server).unwrap().clone();
    for index in 0..segments {
        packets.push(Packet {
            sequence: last.sequence.wrapping_add(10_000 + (index * (payload + 50)) as u32),
            payload: vec![0; payload],
            ..last.clone()
        });
    }
    packets
}

#[test]
fn endless_holes_are_given_up() {
    let limits = Limits { reorder_bytes: 10_000, ..Limits::default() };
    for (payload, segments) in [(1_000, 200), (1, 4_000)] {
        let decoded = decoded(&holes(payload, segments), limits);
        let coverage = &decoded.coverage[0];
        assert_eq!(coverage.gaps, segments as u64, "{payload}");
        assert_eq!(decoded.operations(), 4);
    }
}

#[test]
fn tiny_segments_behind_a_hole_cost_little() {
    let decoded = decoded(&holes(1, 60_000), Limits::default());
    assert_eq!(decoded.coverage[0].gaps, 60_000);
    assert_eq!(decoded.operations(), 4);
}

#[test]
fn waiting_bytes_of_all_connections_are_bounded() {
    let mut connections = Vec::new();
    for index in 0..30_u16 {
        let mut packets = holes(1_000, 20);
        packets.iter_mut().for_each(|packet| packet.client_port = 2_000 + index);
        connections.push(packets);
    }
    let limits = Limits { reorder_bytes_total: 50_000, ..Limits::default() };
    let decoded = decoded(&mixed(connections), limits);
    assert!(decoded.coverage[0].segments_discarded > 0);
    assert_eq!(decoded.operations(), 30 * 4);
}

#[test]
fn unanswered_requests_are_given_up() {
    let mut talk = Talk::new();
    talk.connect();
    for id in 4..1_004 {
        talk.ask(smb2::create(id, "a").framed());
        talk.pass(1_000);
    }
    // One of the last is still known.
    talk.answer(smb2::created(1_000, 9).framed());
    let limits = Limits { pending: 50, ..Limits::default() };
    let decoded = decoded(&Sending::default().aligned(&talk), limits);
    assert_eq!(decoded.operations(), 1_004);
    let coverage = &decoded.coverage[0];
    assert!((950..=957).contains(&coverage.operations_discarded));
    assert_eq!(coverage.operations_unanswered, 999);
    assert_eq!(coverage.replies_unmatched, 0);
}

#[test]
fn long_names_that_wait_are_limited_in_bytes() {
    let mut talk = Talk::new();
    talk.connect();
    for id in 4..204 {
        talk.ask(smb2::create(id, &format!("{id}{}", "x".repeat(8_000))).framed());
        talk.pass(1_000);
    }
    // A quarter of it is 1 MiB, and each name is counted with its capacity.
    let limits = Limits { state_bytes: 4 << 20, ..Limits::default() };
    let decoded = decoded(&Sending::default().aligned(&talk), limits);
    let coverage = &decoded.coverage[0];
    assert!(
        (50..150).contains(&coverage.operations_discarded),
        "{}",
        coverage.operations_discarded
    );
    assert_eq!(coverage.operations_unanswered, 200);
    // Each has its row nevertheless.
    assert_eq!(decoded.operations(), 204);
}

#[test]
fn replies_without_a_request_are_given_up() {
    let mut talk = Talk::new();
    talk.connect();
    for id in 4..1_004 {
        talk.answer(smb2::created(id, id).framed());
        talk.pass(1_000);
    }
    let limits = Limits { early: 10, ..Limits::default() };
    let decoded = decoded(&Sending::default().aligned(&talk), limits);
    assert_eq!(decoded.operations(), 1_004);
    assert_eq!(decoded.coverage[0].replies_unmatched, 1_000);
}

#[test]
fn opens_that_are_never_closed_are_forgotten() {
    let mut talk = Talk::new();
    talk.connect();
    for id in 4..1_004 {
        talk.exchange(smb2::create(id, &format!("file {id}")), 1_000, smb2::created(id, id));
    }
    talk.exchange(smb2::read(2_000, 4, 0, 1), 1_000, smb2::data(2_000, b"x"));
    talk.exchange(smb2::read(2_001, 1_003, 0, 1), 1_000, smb2::data(2_001, b"x"));
    let limits = Limits { handles: 100, ..Limits::default() };
    let decoded = decoded(&Sending::default().aligned(&talk), limits);
    let rows = decoded.by_id();
    assert!(!rows["12000"].contains_key("path"), "the oldest is forgotten");
    assert_eq!(rows["12001"]["path"], "file 1003");
    let coverage = &decoded.coverage[0];
    assert_eq!(coverage.handles_forgotten, 901);
    assert_eq!(coverage.paths_unknown, 1);
    // Each has its row nevertheless.
    assert_eq!(decoded.handles.len(), 1_001);
}

#[test]
fn sessions_beyond_the_limit_are_forgotten() {
    let mut talk = Talk::new();
    talk.exchange(smb2::negotiate(0), 1_000, smb2::negotiated(0));
    for id in 1..301 {
        let request = smb2::session_setup(id, Some("ada")).session(id);
        talk.exchange(request, 1_000, smb2::session_ready(id, smb2::SUCCESS).session(id));
    }
    let limits = Limits { sessions: 30, ..Limits::default() };
    let decoded = decoded(&Sending::default().aligned(&talk), limits);
    assert_eq!(decoded.operations(), 301);
    assert_eq!(decoded.sessions.len(), 300);
}

#[test]
fn a_forgotten_session_does_not_become_the_one_that_takes_its_place() {
    let mut talk = Talk::new();
    talk.exchange(smb2::negotiate(0), 1_000, smb2::negotiated(0));
    for (id, user) in [(1, "ada"), (2, "bob")] {
        let request = smb2::session_setup(id, Some(user)).session(id);
        talk.exchange(request, 1_000, smb2::session_ready(id, smb2::SUCCESS).session(id));
    }
    for (id, session) in [(3, 1), (4, 2)] {
        let request = smb2::tree_connect(id, r"\\files\home").session(session);
        talk.exchange(request, 1_000, smb2::tree_connected(id).session(session));
    }
    let limits = Limits { sessions: 1, ..Limits::default() };
    let decoded = decoded(&Sending::default().aligned(&talk), limits);
    let rows = decoded.by_id();
    assert_eq!(rows["12"]["user"], "bob");
    // By now Bob's session has Ada's slot: the user of this operation is unknown.
    assert_eq!(rows["13"].get("user"), None);
}

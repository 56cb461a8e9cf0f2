//! Packets that a mirror port shows twice count once.

use crate::support::decode::{assert_same, decode, single};
use crate::support::packets::{Packet, pcap};
use crate::support::talk::{everything, noise};
use crate::{ALL, FRAMES, rows_of, sent};

#[test]
fn packets_that_a_mirror_port_shows_twice_count_once() {
    let packets = sent(&everything(noise()));
    let whole = decode(&pcap(&packets, ALL, false), &single());
    let expected = &whole.connections[0];
    // Copies come at once, or after some of the packets that follow.
    for most in [1, 3] {
        let mut twice = Vec::new();
        let mut rest = &packets[..];
        while let Some(first) = rest.first() {
            let near = rest.iter().take(most).take_while(|one| one.time - first.time < 400_000);
            let (group, after) = rest.split_at(near.count());
            let copied_at = group.last().unwrap().time + 900;
            twice.extend_from_slice(group);
            twice.extend(group.iter().map(|one| Packet { time: copied_at, ..one.clone() }));
            rest = after;
        }
        let decoded = decode(&pcap(&twice, ALL, false), &single());
        assert_same(&rows_of(&packets, FRAMES), &rows_of(&twice, FRAMES), "twice");
        let found = &decoded.connections[0];
        assert_eq!(found.server_rtt_samples, expected.server_rtt_samples);
        assert_eq!(found.retransmissions_to_client + found.retransmissions_to_server, 0);
        // What came between the first one and its copy is not known yet.
        let repeated = decoded.coverage[0].frames_repeated as usize;
        assert!((packets.len() - most + 1..=packets.len()).contains(&repeated), "{repeated}");
    }
}

#[test]
fn packets_that_are_shown_before_and_after_segmentation_count_once() {
    let packets = sent(&everything(noise()));
    let mut twice = Vec::new();
    for packet in &packets {
        twice.push(packet.clone());
        let mut at = 0;
        // The handshake is duplicated too.
        while at < packet.payload.len() || at == 0 {
            let piece = &packet.payload[at..packet.payload.len().min(at + 500)];
            let sequence = packet.sequence.wrapping_add(at as u32);
            let time = packet.time + 900;
            twice.push(Packet { time, sequence, payload: piece.to_vec(), ..packet.clone() });
            at += piece.len().max(1);
        }
    }
    let decoded = decode(&pcap(&twice, ALL, false), &single());
    assert_same(&rows_of(&packets, FRAMES), &rows_of(&twice, FRAMES), "in pieces");
    let found = &decoded.connections[0];
    assert_eq!(found.retransmissions_to_client + found.retransmissions_to_server, 0);
    assert_eq!(decoded.coverage[0].frames_repeated as usize, twice.len() - packets.len());
}

//! RoCE v2: fragments, packets that are lost, repeated or late, and captures that begin mid-stream.

use std::collections::BTreeSet;

use proptest::prelude::*;
use smbscope_capture::Options;

use crate::support::Dice;
use crate::support::decode::{Decoded, assert_same, decode, single};
use crate::support::packets::{Sending, pcap as tcp_pcap};
use crate::support::smb2::*;
use crate::support::talk::{EVERYTHING, Talk, everything, noise};
use crate::write::{ACK, Packet, Roce, as_version_1, pcap, runs};
use crate::{Row, TRANSPORT, rows_of_tcp, wire_bytes};

const ALL: usize = usize::MAX;

fn decoded(packets: &[Packet]) -> Decoded {
    decode(&pcap(packets, ALL), &single())
}

#[test]
fn rows_are_those_of_tcp() {
    let talk = everything(noise());
    let expected = rows_of_tcp(&talk, TRANSPORT);
    assert_eq!(expected.len(), EVERYTHING);
    for (mtu, fragment) in [(1_024, 1_340), (4_096, 8_168), (256, 104), (256, 4_000)] {
        let roce = Roce { mtu, fragment, ..Roce::default() };
        let decoded = decoded(&roce.send(&talk));
        let what = format!("MTU {mtu}, fragments of {fragment}");
        assert_same(&expected, &decoded.rows_without(TRANSPORT), &what);
        let coverage = &decoded.coverage[0];
        assert_eq!((coverage.frames_roce, coverage.frames_roce_other), (coverage.frames, 0));
        assert_eq!((coverage.smb_direct_unknown, coverage.smb_direct_given_up), (0, 0));
        assert_eq!((coverage.retransmissions, coverage.gaps, coverage.resynchronised), (0, 0, 0));
    }
}

#[test]
fn version_1_gives_the_same_rows() {
    for begins in [true, false] {
        let roce = Roce { begins, ..Roce::default() };
        let capture = pcap(&roce.send(&everything(noise())), ALL);
        let of = |capture: &[u8]| decode(capture, &single()).rows_without(&["client_port"]);
        assert_same(&of(&capture), &of(&as_version_1(&capture)), "version 1");
    }
}

#[test]
fn sizes_have_no_netbios_header_and_operations_no_tcp_sequence() {
    let talk = everything(noise());
    let by_tcp = wire_bytes(&rows_of_tcp(&talk, &[]));
    let rows = decoded(&Roce::default().send(&talk)).rows();
    let fewer: Vec<_> = by_tcp.iter().map(|bytes| bytes.map(|bytes| bytes - 4)).collect();
    assert_eq!(wire_bytes(&rows), fewer);
    assert!(rows.iter().all(|row| !row.contains_key("tcp_sequence")));
}

#[test]
fn the_connection_has_its_queue_pairs_and_ports() {
    let decoded = decoded(&Roce::default().send(&everything(noise())));
    let [connection] = &decoded.connections[..] else { panic!("one connection") };
    assert_eq!(connection.transport.as_deref(), Some("roce"));
    assert_eq!(connection.queue_pair_client, Some(0x11));
    assert_eq!(connection.queue_pair_server, Some(0x22a3));
    assert_eq!((connection.client_port, connection.server_port), (50_000, 445));
    assert!(connection.handshake_seen);
    assert_eq!((connection.naks, connection.rdma_reads), (Some(0), Some(0)));
    assert_eq!((connection.server_mss, connection.server_window_max), (None, None));
    assert!(connection.server_rtt_samples > 0 && connection.client_rtt_samples > 0);
    let by_tcp = crate::support::decode::decoded(&everything(noise()));
    let [connection] = &by_tcp.connections[..] else { panic!("one connection") };
    assert_eq!(connection.transport.as_deref(), Some("tcp"));
    assert_eq!((connection.rdma_reads, connection.queue_pair_client), (None, None));
}

/// Without the connection manager, acknowledgements show which queue pairs belong together.
#[test]
fn a_capture_that_begins_mid_stream_pairs_queue_pairs_by_acknowledgements() {
    let talk = everything(noise());
    let expected = rows_of_tcp(&talk, &[TRANSPORT, &["client_port"]].concat());
    let one = Roce { begins: false, ..Roce::default() };
    // Two at once, whose packets take turns.
    let two = Roce { queue_pairs: [0x31, 0x22a4], psns: [90, 0x80_0000], ..one.clone() };
    let alone = decoded(&one.send(&talk));
    assert_same(&expected, &alone.rows_without(&[TRANSPORT, &["client_port"]].concat()), "alone");
    let turns = one.send(&talk).into_iter().zip(two.send(&talk)).flat_map(<[Packet; 2]>::from);
    let both = decoded(&turns.collect::<Vec<_>>());
    assert_eq!(both.operations(), 2 * EVERYTHING);
    let mut pairs: Vec<_> = (both.connections.iter())
        .map(|row| (row.queue_pair_client, row.queue_pair_server, row.operations))
        .collect();
    pairs.sort_unstable();
    let operations = EVERYTHING as u64;
    let expected = [(Some(0x11), Some(0x22a3), operations), (Some(0x31), Some(0x22a4), operations)];
    assert_eq!(pairs, expected);
    assert!(both.connections.iter().all(|row| row.server_port == 4_791 && !row.handshake_seen));
}

/// Queue pairs are used again by a connection whose beginning was not captured.
#[test]
fn a_second_connection_of_the_same_queue_pairs_is_decoded() {
    let talk = everything(noise());
    let mut later = talk.clone();
    later.said.iter_mut().for_each(|said| said.time += 60_000_000_000);
    let first = Roce { begins: false, psns: [0x90_0000, 0x10_0000], ..Roce::default() };
    let second = Roce { begins: false, psns: [0x20_0000, 0xa0_0000], ..Roce::default() };
    let packets = [first.send(&talk), second.send(&later)].concat();
    assert_eq!(decoded(&packets).operations(), 2 * EVERYTHING);
}

#[test]
fn one_direction_alone_has_requests_or_replies() {
    let talk = everything(noise());
    let packets = Roce { begins: false, ..Roce::default() }.send(&talk);
    for to_server in [true, false] {
        let half: Vec<_> =
            packets.iter().filter(|packet| packet.to_server == to_server).cloned().collect();
        let decoded = decoded(&half);
        assert!(decoded.operations() >= EVERYTHING - 2, "{}", decoded.operations());
        assert_eq!(decoded.coverage[0].connections_one_direction, 1);
        assert_eq!(decoded.connections[0].client, "192.0.2.1");
    }
}

/// The sender goes back to a packet that was refused and sends everything from there again.
fn go_back(packets: &[Packet], dice: &mut Dice, is_captured: bool) -> (Vec<Packet>, u64) {
    let mut out = Vec::new();
    let mut refused = 0;
    for run in runs(packets) {
        let sent = &packets[run];
        if sent[0].opcode > 4 || dice.below(3) > 0 {
            out.extend_from_slice(sent);
            continue;
        }
        let lost = dice.below(sent.len());
        refused += 1;
        let kept = |index: usize| index != lost || is_captured;
        out.extend(
            sent.iter().enumerate().filter(|(index, _)| kept(*index)).map(|(_, p)| p.clone()),
        );
        let first = &sent[lost];
        let queue_pair = Roce::default().queue_pairs[usize::from(!first.to_server)];
        let to_server = !first.to_server;
        let rest = vec![0x60, 0, 0, 1];
        out.push(Packet { to_server, opcode: ACK, queue_pair, rest, ..first.clone() });
        out.extend_from_slice(&sent[lost..]);
    }
    (out, refused)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Lost on the way to the recorder or behind it, refused, and retransmitted.
    #[test]
    fn retransmissions_change_no_row(seed in any::<u64>(), is_captured in any::<bool>()) {
        let talk = everything(noise());
        let expected = rows_of_tcp(&talk, TRANSPORT);
        let roce = Roce { mtu: 256, fragment: 2_000, ..Roce::default() };
        let (packets, refused) = go_back(&roce.send(&talk), &mut Dice::new(seed), is_captured);
        let decoded = decoded(&packets);
        assert_same(&expected, &decoded.rows_without(TRANSPORT), "go back");
        prop_assert_eq!(decoded.connections[0].naks, Some(refused));
        prop_assert!(decoded.coverage[0].retransmissions >= refused);
        prop_assert_eq!(decoded.coverage[0].gaps, 0);
    }

    /// Packets of one direction and time in another order.
    #[test]
    fn order_changes_no_row(seed in any::<u64>()) {
        let talk = everything(noise());
        let expected = rows_of_tcp(&talk, TRANSPORT);
        let mut dice = Dice::new(seed);
        let mut packets = Roce { mtu: 256, fragment: 4_000, ..Roce::default() }.send(&talk);
        for run in runs(&packets) {
            for index in run.clone().skip(1) {
                if dice.below(3) == 0 {
                    packets.swap(index - 1, index);
                }
            }
        }
        let decoded = decoded(&packets);
        assert_same(&expected, &decoded.rows_without(TRANSPORT), "order");
        prop_assert_eq!(decoded.coverage[0].gaps, 0);
    }

    /// Packets that only the recorder missed: what is left is true, and the loss is counted.
    #[test]
    fn losses_of_the_recorder_invent_nothing(seed in any::<u64>(), one_in in 5_usize..60) {
        let talk = everything(noise());
        let whole = rows_of_tcp(&talk, TRANSPORT);
        let mut dice = Dice::new(seed);
        let packets = Roce { mtu: 256, fragment: 700, ..Roce::default() }.send(&talk);
        let kept: Vec<_> = packets.into_iter().filter(|_| dice.below(one_in) > 0).collect();
        let decoded = decoded(&kept);
        for row in decoded.rows_without(TRANSPORT) {
            let agrees = |other: &Row| {
                ["message_id", "command", "path", "status", "requested_bytes", "transferred_bytes"]
                    .iter()
                    .all(|column| match (row.get(*column), other.get(*column)) {
                        (Some(own), Some(other)) => own == other,
                        _ => true,
                    })
            };
            prop_assert!(whole.iter().any(agrees), "invented {:?}", row);
        }
        if decoded.operations() < whole.len() {
            let coverage = &decoded.coverage[0];
            prop_assert!(coverage.gaps + coverage.connections_mid_stream > 0);
        }
    }

    /// The number of threads changes nothing.
    #[test]
    fn threads_do_not_matter(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let mut packets = Vec::new();
        for index in 0..5 {
            let roce = Roce {
                queue_pairs: [index + 2, 100 + index],
                psns: [dice.below(1 << 24) as u32, dice.below(1 << 24) as u32],
                begins: dice.below(2) == 0,
                client_port: 50_000 + index as u16,
                ..Roce::default()
            };
            packets.extend(roce.send(&everything(noise())));
        }
        packets.sort_by_key(|packet| packet.time);
        let capture = pcap(&packets, ALL);
        let decode = |threads| decode(&capture, &Options { threads, ..Options::default() });
        let (one, many) = (decode(1), decode(8));
        assert_same(&one.rows(), &many.rows(), "threads");
        prop_assert_eq!(one.connections, many.connections);
        prop_assert_eq!(one.coverage, many.coverage);
        prop_assert_eq!(one.batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 5 * EVERYTHING);
    }
}

/// Cut behind the same bytes of a message, the rows are those of a TCP capture. Below a message are
/// 42 bytes of Ethernet, IP and UDP, 12 of InfiniBand and 24 of SMB Direct; or 54 and 4.
#[test]
fn packets_may_be_cut_to_their_headers() {
    const HEAD: usize = 154;
    let talk = everything(noise());
    let segments = Sending::default().aligned(&talk);
    let expected = decode(&tcp_pcap(&segments, 54 + 4 + HEAD, false), &single());
    let packets = Roce { mtu: 4_096, fragment: 8_168, ..Roce::default() }.send(&talk);
    let decoded = decode(&pcap(&packets, 42 + 12 + 24 + HEAD), &single());
    assert_eq!(decoded.operations(), expected.operations());
    let messages = |decoded: &Decoded| {
        let rows = decoded.rows();
        let of = |row: &Row| (row["message_id"].clone(), row.get("command").cloned());
        rows.iter().map(of).collect::<BTreeSet<_>>()
    };
    assert_eq!(messages(&decoded), messages(&expected));
    assert_eq!(decoded.coverage[0].smb_direct_given_up, 0);
}

/// Several queue pairs of one session are its channels (MS-SMB2 section 3.3.5.5.2).
#[test]
fn queue_pairs_that_bind_a_session_are_channels_of_it() {
    let mut first = Talk::new();
    first.connect();
    first.exchange(create(4, "a.txt"), 100_000, created(4, 40));
    let mut second = Talk::new();
    second.now = first.now;
    second.exchange(negotiate(0), 400_000, negotiated(0));
    // Flags: SMB2_SESSION_FLAG_BINDING.
    let binding = session_setup(1, Some("ada")).put(64 + 2, &[1]);
    second.exchange(binding, 700_000, session_ready(1, SUCCESS));
    second.exchange(read(2, 40, 0, 4_096), 100_000, data(2, &[7; 4_096]));
    let other = Roce { queue_pairs: [0x12, 0x22a4], client_port: 50_001, ..Roce::default() };
    let mut packets = Roce::default().send(&first);
    packets.extend(other.send(&second));
    packets.sort_by_key(|packet| packet.time);
    let decoded = decoded(&packets);
    let [session] = &decoded.sessions[..] else { panic!("{:?}", decoded.sessions) };
    assert_eq!(session.channels, 2);
    let rows = decoded.rows();
    let read = rows.iter().find(|row| row["command"] == "Read").unwrap();
    assert_eq!((&*read["channel"], &*read["connection"], &*read["path"]), ("1", "2", "a.txt"));
}

/// Other services over RoCE are counted, and have no rows.
#[test]
fn other_services_are_counted() {
    let mut sender_of = Roce { begins: false, ..Roce::default() };
    sender_of.fragment = 500;
    let mut sender = sender_of.sender();
    for index in 0..100_u8 {
        sender.fragment(i64::from(index) * 1_000_000, index % 2 == 0, &[index; 300]);
    }
    let decoded = decoded(&sender.packets);
    assert_eq!((decoded.operations(), decoded.connections.len()), (0, 0));
    let coverage = &decoded.coverage[0];
    assert_eq!((coverage.frames_roce, coverage.frames_roce_other), (200, 200));
}

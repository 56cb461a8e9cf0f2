//! Packets that are cut, reordered or repeated, several files, and one direction alone.

use proptest::prelude::*;
use smbscope_capture::Options;

use crate::support::Dice;
use crate::support::decode::{assert_same, decode, decode_all, single};
use crate::support::packets::{Packet, Sending, any_size, disturb, mixed, pcap, shuffled};
use crate::support::talk::{EVERYTHING, everything, noise};
use crate::{ALL, FRAMES, ROUND_TRIPS, rows_of, sent};

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any segmentation, the rows are the same in all columns that do not count frames.
    #[test]
    fn any_split_gives_the_same_rows(seed in any::<u64>(), most in 1_usize..4_000) {
        let talk = everything(noise());
        let expected = rows_of(&sent(&talk), FRAMES);
        let cut = Sending::default().send(&talk, any_size(&mut Dice::new(seed), most));
        assert_same(&expected, &rows_of(&cut, FRAMES), "split");
    }

    /// Nor do order (within one side's bytes at a time), repetition or overlap matter.
    #[test]
    fn any_order_gives_the_same_rows(
        seed in any::<u64>(),
        most in 1_usize..3_000,
        window in 0_usize..12,
        again in 0_usize..60,
    ) {
        let talk = everything(noise());
        let expected = rows_of(&sent(&talk), ROUND_TRIPS);
        let mut dice = Dice::new(seed);
        let cut = Sending::default().send(&talk, any_size(&mut dice, most));
        let disturbed = disturb(&cut, &mut dice, window, again);
        assert_same(&expected, &rows_of(&disturbed, ROUND_TRIPS), "order");
        let decoded = decode(&pcap(&disturbed, ALL, false), &single());
        assert_eq!(decoded.coverage[0].gaps, 0);
    }

    /// A recorder that captures the two directions late by a few packets: only times suffer.
    #[test]
    fn directions_recorded_out_of_order_still_pair(seed in any::<u64>(), window in 1_usize..6) {
        let talk = everything(noise());
        let mut packets = sent(&talk);
        let columns = ["message_id", "command", "status", "transferred_bytes", "requested_bytes"];
        let of = |packets: &[Packet]| -> Vec<Vec<Option<String>>> {
            let rows = rows_of(packets, &[]);
            let mut out: Vec<Vec<Option<String>>> = rows
                .iter()
                .map(|row| columns.iter().map(|column| row.get(*column).cloned()).collect())
                .collect();
            out.sort();
            out
        };
        let expected = of(&packets);
        let mut dice = Dice::new(seed);
        let handshake = packets.drain(..3).collect::<Vec<_>>();
        packets = handshake.into_iter().chain(shuffled(packets, &mut dice, window)).collect();
        prop_assert_eq!(of(&packets), expected);
    }

    /// The number of threads changes nothing, not even numbers.
    #[test]
    fn threads_do_not_matter(seed in any::<u64>(), again in 0_usize..30) {
        let mut dice = Dice::new(seed);
        let mut connections = Vec::new();
        for index in 0..7 {
            let mut talk = everything(noise());
            // Some connections end with pending requests.
            talk.said.truncate(talk.said.len() - dice.below(30));
            let late = dice.below(9_000_000) as i64;
            talk.said.iter_mut().for_each(|said| said.time += late);
            let sending = Sending {
                client_port: 50_000 + index,
                handshake: dice.below(4) > 0,
                ..Sending::default()
            };
            connections.push(disturb(&sending.aligned(&talk), &mut dice, 3, again));
        }
        let capture = pcap(&mixed(connections), ALL, false);
        let one = decode(&capture, &single());
        let three = decode(&capture, &Options { threads: 3, ..Options::default() });
        assert_same(&one.rows(), &three.rows(), "threads");
        prop_assert_eq!(&one.connections, &three.connections);
        prop_assert_eq!(&one.sessions, &three.sessions);
        prop_assert_eq!(&one.trees, &three.trees);
        prop_assert_eq!(&one.handles, &three.handles);
        prop_assert_eq!(&one.channels, &three.channels);
        prop_assert_eq!(&one.coverage, &three.coverage);
    }
}

#[test]
fn two_files_that_continue_each_other_are_as_one() {
    let packets = sent(&everything(noise()));
    let left_out =
        &["recording", "capture_file", "request_frame", "response_frame", "pending_frame"];
    let expected = rows_of(&packets, left_out);
    for split in 1..packets.len() {
        let parts = [pcap(&packets[..split], ALL, false), pcap(&packets[split..], ALL, false)];
        // Their order on the command line does not matter either.
        for inputs in [[&parts[0][..], &parts[1]], [&parts[1][..], &parts[0]]] {
            let decoded = decode_all(&inputs, &single());
            assert_same(&expected, &decoded.rows_without(left_out), "two files");
            assert_eq!(decoded.coverage.len(), 2);
            assert_eq!(decoded.connections.len(), 1);
            // Keys of one table exist in the others.
            let recording = &decoded.coverage[0].recording;
            assert!(decoded.rows().iter().all(|row| &row["recording"] == recording));
            assert_eq!(&decoded.connections[0].recording, recording);
            assert!(decoded.sessions.iter().all(|row| &row.recording == recording));
            assert!(decoded.trees.iter().all(|row| &row.recording == recording));
            assert!(decoded.handles.iter().all(|row| *row.recording == **recording));
            assert_eq!(decoded.coverage[0].capture_file.as_ref(), Some(recording));
            assert_eq!(&decoded.coverage[1].recording, recording);
            assert_ne!(decoded.coverage[1].capture_file.as_ref(), Some(recording));
        }
    }
}

#[test]
fn one_direction_alone_gives_its_operations() {
    let talk = everything(noise());
    let packets = sent(&talk);
    for to_server in [true, false] {
        let half: Vec<Packet> =
            packets.iter().filter(|packet| packet.to_server == to_server).cloned().collect();
        let decoded = decode(&pcap(&half, ALL, false), &single());
        let coverage = &decoded.coverage[0];
        assert_eq!(coverage.connections_one_direction, 1);
        // The Cancel goes one way, the break the other.
        assert_eq!(decoded.operations(), EVERYTHING - 1, "to the server: {to_server}");
        if to_server {
            assert_eq!(coverage.operations_unanswered, EVERYTHING as u64 - 2);
        } else {
            assert_eq!(coverage.replies_unmatched, EVERYTHING as u64 - 2);
        }
        for row in decoded.rows() {
            assert!(!row.contains_key("elapsed_ns") && !row.contains_key("server_ns"));
        }
    }
}

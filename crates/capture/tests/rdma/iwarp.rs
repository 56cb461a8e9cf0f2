//! iWARP: the TCP stream may be cut, reordered or repeated in any way.

use proptest::prelude::*;

use crate::support::Dice;
use crate::support::decode::{Decoded, assert_same, decode, single};
use crate::support::packets::{Packet, Sending, any_size, disturb, pcap};
use crate::support::talk::{EVERYTHING, everything, noise};
use crate::write::iwarp;
use crate::{TRANSPORT, rows_of_tcp};

fn sending() -> Sending {
    Sending { server_port: 5_445, ..Sending::default() }
}

fn decoded(packets: &[Packet]) -> Decoded {
    decode(&pcap(packets, usize::MAX, false), &single())
}

#[test]
fn rows_are_those_of_tcp() {
    let talk = everything(noise());
    let expected = rows_of_tcp(&talk, TRANSPORT);
    for (fragment, segment, markers) in
        [(1_340, 1_428, false), (8_000, 1_428, true), (100, 60, true), (65_000, 60_000, false)]
    {
        let decoded = decoded(&sending().aligned(&iwarp(&talk, fragment, segment, markers)));
        let what = format!("fragments of {fragment}, segments of {segment}, {markers}");
        assert_same(&expected, &decoded.rows_without(TRANSPORT), &what);
        let [connection] = &decoded.connections[..] else { panic!("one connection") };
        assert_eq!(connection.transport.as_deref(), Some("iwarp"));
        assert_eq!((connection.queue_pair_client, connection.naks), (None, Some(0)));
        assert_eq!((connection.server_port, connection.server_mss), (5_445, Some(1_460)));
        let coverage = &decoded.coverage[0];
        assert_eq!((coverage.smb_direct_unknown, coverage.smb_direct_given_up), (0, 0));
        assert!(coverage.smb_direct_messages > EVERYTHING as u64);
        assert_eq!(coverage.resynchronised, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_segments_give_the_same_rows(
        seed in any::<u64>(),
        most in 200_usize..3_000,
        window in 0_usize..12,
        again in 0_usize..60,
        markers in any::<bool>(),
    ) {
        let talk = everything(noise());
        let expected = rows_of_tcp(&talk, TRANSPORT);
        let mut dice = Dice::new(seed);
        let cut = sending().send(&iwarp(&talk, 1_340, 900, markers), any_size(&mut dice, most));
        // The startup frames are short and come first, each in a segment.
        let disturbed = disturb(&cut, &mut dice, window, again);
        assert_same(&expected, &decoded(&disturbed).rows_without(TRANSPORT), "segments");
    }
}

/// Begins mid-stream with the first Create.
#[test]
fn a_capture_may_begin_mid_stream() {
    let talk = everything(noise());
    let packets = sending().aligned(&iwarp(&talk, 1_340, 1_400, false));
    let begin = talk.said.iter().position(|said| said.bytes[16] == 5).unwrap();
    let after: Vec<_> =
        packets.into_iter().filter(|packet| packet.time >= talk.said[begin].time).collect();
    let decoded = decoded(&after);
    assert_eq!(decoded.operations(), EVERYTHING - 4);
    assert_eq!(decoded.connections[0].client, "192.0.2.1");
    assert!(!decoded.connections[0].handshake_seen);
}

/// A segment that the recorder missed costs what was in it.
#[test]
fn a_lost_segment_costs_its_messages_only() {
    let talk = everything(noise());
    let packets = sending().aligned(&iwarp(&talk, 1_340, 1_400, false));
    for lost in (8..packets.len()).step_by(7) {
        let mut kept = packets.clone();
        kept.remove(lost);
        let decoded = decoded(&kept);
        assert!(decoded.operations() + 3 >= EVERYTHING, "{lost}: {}", decoded.operations());
        assert!(decoded.operations() <= EVERYTHING + 1, "{lost}: {}", decoded.operations());
    }
}

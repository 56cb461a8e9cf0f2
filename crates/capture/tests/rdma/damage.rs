//! Any bytes in RoCE packets: what the fuzz target `rdma` does, with bytes that a seed makes. Every
//! operation is one of the conversation's, or comes from bytes that were changed.

use smbscope_capture::{Limits, Options};

use crate::support::Dice;
use crate::support::decode::{decode, single};
use crate::support::talk::{everything, noise};
use crate::write::{Packet, Roce, iwarp, pcap};

/// A pcap's header, and that of a record.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Ethernet, IPv4 and UDP, which are not changed.
const BELOW: usize = 42;

/// Changes bytes of records behind their lower headers.
fn damage(capture: &mut [u8], below: usize, dice: &mut Dice) {
    let mut at = FILE_HEADER;
    while at + RECORD_HEADER < capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
        let frame = &mut capture[at + RECORD_HEADER..][..length];
        if dice.below(8) == 0 && length > below {
            for _ in 0..=dice.below(4) {
                // Headers are near the begin.
                let place = below + dice.below((length - below).min(100));
                frame[place] = dice.below(256) as u8;
            }
        }
        at += RECORD_HEADER + length;
    }
}

#[test]
fn damaged_roce_ends_with_coverage() {
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let roce = Roce { mtu: 256, begins: seed % 2 == 0, ..Roce::default() };
        let mut packets: Vec<Packet> = roce.send(&everything(noise()));
        for _ in 0..dice.below(20) {
            let from = packets[dice.below(packets.len())].clone();
            packets.insert(dice.below(packets.len()), from);
        }
        let mut capture = pcap(&packets, if seed % 3 == 0 { 100 } else { usize::MAX });
        damage(&mut capture, BELOW, &mut dice);
        let whole = decode(&capture, &single());
        assert_eq!(whole.coverage[0].frames_roce, packets.len() as u64);
        let limits = Limits { connections: 2, pending: 4, early: 2, ..Limits::default() };
        let bounded = decode(&capture, &Options { limits, ..single() });
        assert_eq!(bounded.coverage[0].frames, whole.coverage[0].frames);
        let many = decode(&capture, &Options { threads: 8, ..Options::default() });
        assert_eq!(many.coverage, whole.coverage);
    }
}

#[test]
fn damaged_iwarp_ends_with_coverage() {
    let sending = crate::support::packets::Sending {
        server_port: 5_445,
        ..crate::support::packets::Sending::default()
    };
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let talk = iwarp(&everything(noise()), 1_340, 700, seed % 2 == 0);
        let mut capture = crate::support::packets::pcap(&sending.aligned(&talk), usize::MAX, false);
        damage(&mut capture, 54, &mut dice);
        let decoded = decode(&capture, &single());
        assert_eq!(decoded.coverage[0].connections, 1);
    }
}

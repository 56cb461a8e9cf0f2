//! Packets that may carry SMB but are not decoded: the coverage counts them.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use smbscope_tables::tables::Coverage;
use support::decode::{decode, single};
use support::packets::{Sending, pcap};
use support::talk::Talk;

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

//! When an open begins and ends (MS-SMB2 sections 3.3.5.9 to 3.3.5.10), and what is none.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::decode::{Decoded, decode, single};
use support::packets::{Sending, pcap};
use support::smb2::{READ, close, closed, create, created, data, error, read};
use support::talk::Talk;

const FILE_CLOSED: u32 = 0xc000_0128;

fn decoded(talk: &Talk) -> Decoded {
    decode(&pcap(&Sending::default().aligned(talk), usize::MAX, false), &single())
}

#[test]
fn what_the_server_does_not_know_was_not_opened_before() {
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(create(4, "a"), 1_000, created(4, 40));
    talk.exchange(close(5, 40), 1_000, closed(5));
    // Guessed, and closed a second time long after.
    talk.exchange(read(6, 7, 0, 1), 1_000, error(READ, 6, FILE_CLOSED));
    let before = decoded(&talk);
    assert_eq!((before.handles.len(), before.coverage[0].paths_unknown), (1, 0));
    assert!(!before.by_id()["16"].contains_key("handle"));
    // One that is there was.
    talk.exchange(read(7, 9, 0, 1), 1_000, data(7, b"x"));
    let after = decoded(&talk);
    assert_eq!((after.handles.len(), after.coverage[0].paths_unknown), (2, 1));
    assert!(after.by_id()["17"].contains_key("handle"));
}

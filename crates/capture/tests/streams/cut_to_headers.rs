//! Captures that keep only the first bytes of each packet count every operation.

use smbscope_capture::Options;

use crate::support::decode::{Decoded, Row, assert_same, decode, single};
use crate::support::packets::{Sending, pcap};
use crate::support::smb2::{
    SAME, close, closed, compound, create, created, data, information, query_info, read,
};
use crate::support::talk::{Talk, everything, noise};
use crate::{ALL, sent};

/// The body after the SMB2 header, and the columns that follow from it.
const BEHIND_HEADERS: &[&str] = &[
    "path",
    "share",
    "user",
    "extension",
    "handle",
    "file_id",
    "offset_bytes",
    "requested_bytes",
    "transferred_bytes",
    "detail",
    "lease_key",
    "lease_granted",
    "lease_requested",
    "oplock_requested",
    "oplock_granted",
    "desired_access",
    "share_access",
    "create_options",
    "write_through",
    "unbuffered",
    "dialect",
    "waits",
    "outstanding",
    "busy_ns",
    "server_ns",
    "server_error_ns",
    "client_gap_ns",
];

#[test]
fn truncated_rows_are_consistent() {
    let packets = sent(&everything(noise()));
    let decoded = decode(&pcap(&packets, 80, false), &single());
    let coverage = &decoded.coverage[0];
    assert_eq!((decoded.operations(), coverage.messages_malformed), (0, 0));
    assert!(coverage.messages > 0 && coverage.messages_cut == coverage.messages);
}

#[test]
fn captures_cut_to_headers_lose_no_operation() {
    // The later members of a compound are after the first 128 bytes, so no compounds.
    let mut talk = everything(noise());
    talk.said.retain(|said| said.bytes[4 + 20] == 0);
    let packets = sent(&talk);
    let whole = decode(&pcap(&packets, ALL, false), &single());
    for timestamps in [false, true] {
        for snap in [256, 128] {
            let decoded = decode(&pcap(&packets, snap, timestamps), &single());
            let what = format!("snap length {snap}, timestamps {timestamps}");
            let (expected, found) =
                (whole.rows_without(BEHIND_HEADERS), decoded.rows_without(BEHIND_HEADERS));
            assert_same(&expected, &found, &what);
            assert_eq!(decoded.coverage[0].gaps, 0, "{what}");
            if snap == 256 {
                let left_out = ["path", "share", "user", "extension"];
                let sizes = ["requested_bytes", "transferred_bytes", "offset_bytes", "outstanding"];
                for (expected, found) in
                    whole.rows_without(&left_out).iter().zip(decoded.rows_without(&left_out))
                {
                    for column in sizes {
                        assert_eq!(found.get(column), expected.get(column), "{what}: {column}");
                    }
                }
            }
        }
    }
}

#[test]
fn captures_cut_to_headers_count_the_members_of_compounds() {
    let mut talk = Talk::new();
    talk.connect();
    // Names that leave no second header, one that does, and one among parallel requests.
    let long = "a name that fills what a capture cut to 256 bytes has room for, all by itself";
    for (id, members, name) in [(10, 3, long), (13, 2, "short"), (15, 4, long)] {
        let next = (id + 1..id + members - 1).map(|id| query_info(id, SAME).related());
        let last = close(id + members - 1, SAME).related();
        talk.ask(compound([create(id, name)].into_iter().chain(next).chain([last]).collect()));
        if id == 15 {
            talk.ask(read(19, 2, 0, 10).framed());
        }
        talk.pass(100_000);
        let next = (id + 1..id + members - 1).map(|id| information(id, &[7; 300]).related());
        let last = closed(id + members - 1).related();
        talk.answer(compound([created(id, 9)].into_iter().chain(next).chain([last]).collect()));
        talk.pass(50_000);
    }
    talk.answer(data(19, &[1; 10]).framed());
    let packets = sent(&talk);
    let numbers = |decoded: &Decoded| {
        let mut numbers = decoded.numbers("message_id");
        numbers.sort_unstable();
        numbers
    };
    let whole = decode(&pcap(&packets, ALL, false), &single());
    for snap in [256, 192, 150, 128] {
        let decoded = decode(&pcap(&packets, snap, false), &single());
        let what = format!("snap length {snap}");
        assert_eq!(numbers(&decoded), numbers(&whole), "{what}");
        let coverage = &decoded.coverage[0];
        assert_eq!((coverage.operations_unanswered, coverage.replies_unmatched), (0, 0), "{what}");
        let rows = decoded.rows();
        let without = rows.iter().filter(|row| !row.contains_key("command"));
        assert_eq!(without.clone().count() as u64, coverage.members_not_captured, "{what}");
        assert!(without.clone().count() >= 3, "{what}");
        for row in without {
            assert!(row.contains_key("compound") && !row.contains_key("status"), "{row:?}");
        }
        let of = |row: &Row, column: &str| row.get(column).cloned();
        for row in &rows {
            let id = of(row, "message_id");
            let same =
                whole.rows().into_iter().find(|other| of(other, "message_id") == id).unwrap();
            for column in [
                "compound_index",
                "request_frame",
                "response_frame",
                "pending_frame",
                "request_end",
            ] {
                assert_eq!(of(row, column), of(&same, column), "{what}: {id:?} {column}");
            }
        }
    }
}

/// Compounds of which the client sends several at once, in one long segment; their replies come one by
/// one, the last first.
fn in_long_segments(with_large_read: bool) -> Talk {
    let mut talk = Talk::new();
    talk.connect();
    let mut id = 10;
    for members in [[3, 2, 4], [2, 3, 2], [5, 3, 3]] {
        let mut replies = Vec::new();
        for count in members {
            let (first, last) = (id, id + count - 1);
            let next = (first + 1..last).map(|id| query_info(id, SAME).related());
            let closing = close(last, SAME).related();
            talk.ask(compound(
                [create(first, "name")].into_iter().chain(next).chain([closing]).collect(),
            ));
            let next = (first + 1..last).map(|id| information(id, &[7; 300]).related());
            replies.push(compound(
                [created(first, first)]
                    .into_iter()
                    .chain(next)
                    .chain([closed(last).related()])
                    .collect(),
            ));
            id = last + 1;
        }
        if with_large_read {
            // One request that takes many numbers.
            talk.ask(read(id, 2, 0, 1 << 20).charge(16).framed());
            replies.push(data(id, &[1; 400]).framed());
            id += 16;
        }
        for reply in replies.into_iter().rev() {
            talk.pass(50_000);
            talk.answer(reply);
        }
        talk.pass(1_000_000);
        talk.exchange(query_info(id, 1), 50_000, information(id, &[7; 10]));
        id += 1;
    }
    talk
}

#[test]
fn captures_cut_to_headers_count_what_begins_late_in_long_segments() {
    let talk = in_long_segments(false);
    let packets = Sending::default().send(&talk, |_| usize::MAX);
    let whole = decode(&pcap(&packets, ALL, false), &single());
    let numbers = |decoded: &Decoded| {
        let mut numbers = decoded.numbers("message_id");
        numbers.sort_unstable();
        numbers
    };
    for snap in [256, 192] {
        for options in [single(), Options { threads: 4, ..single() }] {
            let decoded = decode(&pcap(&packets, snap, false), &options);
            assert_eq!(numbers(&decoded), numbers(&whole), "snap length {snap}");
            for row in decoded.rows().iter().filter(|row| !row.contains_key("command")) {
                let same = whole
                    .rows()
                    .into_iter()
                    .find(|other| other.get("message_id") == row.get("message_id"));
                let same = same.unwrap();
                assert_eq!(row.get("response_frame"), same.get("response_frame"), "{row:?}");
                assert!(!row.contains_key("status"), "{row:?}");
            }
        }
    }
    // Without the following request nothing shows where the last ones end: at most one is made up for
    // each compound.
    let last = packets.iter().rposition(|packet| packet.to_server && !packet.payload.is_empty());
    let cut = decode(&pcap(&packets[..last.unwrap()], 256, false), &single());
    assert!(numbers(&cut).iter().all(|id| numbers(&whole).contains(id)));
}

#[test]
fn numbers_that_one_request_takes_are_no_operations() {
    let talk = in_long_segments(true);
    let packets = Sending::default().send(&talk, |_| usize::MAX);
    let whole = decode(&pcap(&packets, ALL, false), &single()).numbers("message_id");
    let cut = decode(&pcap(&packets, 256, false), &single()).numbers("message_id");
    for id in &cut {
        assert!(whole.contains(id), "{id:?} does not belong to an operation");
    }
    // One of each compound is known to follow.
    assert!(cut.len() + 9 >= whole.len(), "{} of {}", cut.len(), whole.len());
}

#[test]
fn a_length_that_lies_makes_no_rows() {
    // A compound of 15 MiB of which only the head is present, and a next request whose number implies
    // 200,000 members in it.
    let mut talk = Talk::new();
    talk.connect();
    let mut huge = compound(vec![create(10, "x"), close(11, SAME).related()]);
    huge.resize(15 << 20, 0);
    let length = huge.len() as u32 - 4;
    huge[1..4].copy_from_slice(&length.to_be_bytes()[1..]);
    // The position of the second member is after the cut.
    huge[4 + 20..4 + 24].copy_from_slice(&4_096_u32.to_le_bytes());
    talk.ask(huge);
    talk.pass(1_000);
    talk.exchange(query_info(200_011, 1), 50_000, information(200_011, &[7; 100]));
    let decoded = decode(&pcap(&sent(&talk), 256, false), &single());
    assert_eq!(decoded.operations(), 7);
    assert_eq!(decoded.coverage[0].members_not_captured, 1);
}

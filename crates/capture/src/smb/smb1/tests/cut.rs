//! Captures cut to headers: what a message's length and few words tell instead of the rest.

use super::transactions::{nt_response, nt_transact, response, secondary, trans2};
use super::*;

/// What a snap length of 128 leaves of a message with its length in front, behind Ethernet, IPv4
/// and TCP with timestamps.
const CAPTURED: usize = 128 - 66;
/// The header, and no more than WordCount and two words.
const HEADER: usize = 4 + 32 + 1 + 4;

impl Wire {
    fn client_cut(&mut self, smb: Smb, captured: usize) -> i64 {
        self.cut_segment(true, &smb.framed(), captured)
    }

    fn server_cut(&mut self, smb: Smb, captured: usize) -> i64 {
        self.cut_segment(false, &smb.framed(), captured)
    }
}

/// An answer of NtTransact, or a secondary request, with data of which some came before.
fn nt_data(smb: fn(u8, u16, &[u8], &[u8]) -> Smb, command: u8, data: &[u8], before: u8) -> Smb {
    let count = data.len() as u8;
    let fixed = words(36, &[(7, &[100]), (23, &[count, 0, 0, 0, 71, 0, 0, 0, before])]);
    smb(command, 1, &fixed, data)
}

#[test]
fn a_cut_request_asks_for_its_rest() {
    for captured in [HEADER, CAPTURED] {
        let mut wire = Wire::default();
        let start = wire.client_cut(trans2(1, 6, b"\x01\x00\0\0\0\0\\a\0", 20), captured);
        wire.server_cut(Smb::reply(0x32, 1, &[], &[]), captured);
        assert!(wire.rows().is_empty(), "it only asks for the rest");
        wire.client_cut(secondary(1, &[0; 12], 0, 20), captured);
        let end = wire.client_cut(secondary(1, &[0; 8], 12, 20), captured);
        wire.server_cut(response(0x32, 1, &[], 0, 0), captured);
        let row = &wire.rows()[0];
        assert_eq!((row.row.status(), row.row.transferred_bytes()), (OK, None));
        assert_eq!((row.row.request_start(), row.row.request_end()), (Some(start), Some(end)));
        assert_eq!(row.row.request_wire_bytes(), Some(78 + (57 + 12) + (57 + 8)));
        assert!(wire.end().is_empty());
    }
}

#[test]
fn a_cut_request_that_is_whole_may_be_answered_without_words() {
    let mut wire = Wire::default();
    wire.client_cut(trans2(1, 3, &[3, 1], 0), HEADER);
    wire.server(Smb::reply(0x32, 1, &[], &[]));
    assert_eq!(wire.rows()[0].row.status(), OK);
    wire.client_cut(nt_transact(2, 6, &[], &[7, 0, 0, 0, 4, 0, 0, 0]), CAPTURED);
    wire.server(Smb::reply(0xa0, 2, &[], &[]));
    assert_eq!(wire.rows()[0].row.status(), OK);
}

#[test]
fn a_cut_answer_of_several_messages_is_one() {
    for captured in [4 + 44, CAPTURED] {
        let mut wire = Wire::default();
        wire.client_cut(nt_transact(1, 6, &[], &[7, 0, 0, 0, 4, 0, 0, 0]), captured);
        let start = wire.server_cut(nt_data(Smb::reply, 0xa0, &[1; 60], 0), captured);
        assert!(wire.rows().is_empty());
        let end = wire.server_cut(nt_data(Smb::reply, 0xa0, &[1; 40], 60), captured);
        let row = &wire.rows()[0];
        assert_eq!((row.row.response_start(), row.row.response_end()), (Some(start), Some(end)));
        assert_eq!(row.row.response_wire_bytes(), Some(2 * (4 + 32 + 1 + 36 + 2) + 100));
        assert!(wire.end().is_empty());
    }
}

#[test]
fn results_of_a_cut_request_are_unknown_unless_it_returns_data() {
    let mut wire = Wire::default();
    wire.client_cut(trans2(1, 6, &[1; 6], 0), HEADER);
    wire.server(response(0x32, 1, &[], 0, 0));
    wire.client_cut(trans2(2, 7, &[1; 4], 0), HEADER);
    wire.server(response(0x32, 2, &[0; 24], 0, 24));
    let rows = wire.rows();
    let bytes: Vec<_> = rows.iter().map(|row| row.row.transferred_bytes()).collect();
    assert_eq!(bytes, [None, Some(24)]);
}

#[test]
fn a_cut_notification_waits_all_the_same() {
    let mut wire = Wire::default();
    let mut notify = nt_transact(1, 4, &[1, 0, 0, 0, 7, 0, 1, 0], &[]);
    // Asks for parameters, not for data.
    notify.bytes[4 + 33 + 11] = 32;
    notify.bytes[4 + 33 + 15..4 + 33 + 19].fill(0);
    wire.client_cut(notify, CAPTURED);
    assert_eq!(wire.pairing.in_flight, 0);
    wire.server_cut(nt_response(1, &[0; 24]), CAPTURED);
    let row = &wire.rows()[0];
    assert_eq!(row.text(Column::detail), "NtTransactNotifyChange");
    assert_eq!((row.row.waits(), row.row.busy_ns()), (Some(true), None));

    let ioctl = nt_transact(2, 2, &[0xc0, 0, 9, 0, 7, 0, 1, 0], &[]);
    wire.client_cut(ioctl, CAPTURED);
    wire.server_cut(nt_response(2, &[]), CAPTURED);
    assert_eq!(wire.rows()[0].row.waits(), None);
}

#[test]
fn a_break_is_known_by_its_header() {
    let mut wire = Wire::default();
    wire.server_cut(Smb::new(0x24, 0xffff, &last(16, &[(6, &[2, 1])]), &[]), 4 + 32 + 1);
    let row = &wire.rows()[0];
    assert_eq!(row.text(Column::detail), "Oplock notification");
    assert_eq!((row.row.request_frame(), row.row.response_frame()), (None, Some(1)));
    assert!(wire.end().is_empty());
}

/// A reply whose request was in the part of a segment that was cut off.
fn reply_of_long_ago(command: u8) -> Wire {
    let mut wire = Wire::default();
    wire.server(Smb::failed(command, 1, 0xc000_00ca));
    wire.time += 5_000_000_000;
    wire
}

#[test]
fn a_reply_of_long_ago_does_not_answer_a_number_used_again() {
    let mut wire = reply_of_long_ago(0x25);
    // A Transaction waits, and a secondary of another command has its number.
    wire.client(Smb::new(0x25, 1, &words(28, &[(2, &[9])]), &[]));
    wire.server(Smb::reply(0x25, 1, &[], &[]));
    wire.client(nt_data(Smb::new, 0xa1, &[1; 4], 9));
    let rows = wire.end();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].row.status(), rows[0].row.request_frame()), (Some(0xc000_00ca), None));
    assert_eq!((rows[1].row.status(), rows[1].row.request_frame()), (None, Some(2)));
}

#[test]
fn a_reply_of_long_ago_does_not_answer_secondaries() {
    let mut wire = reply_of_long_ago(0xa0);
    wire.client(nt_data(Smb::new, 0xa1, &[1; 4], 9));
    let rows = wire.end();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].row.request_end(), rows[0].row.response_frame()), (None, Some(1)));
    assert_eq!(wire.out.coverage.messages_malformed, 1);
}

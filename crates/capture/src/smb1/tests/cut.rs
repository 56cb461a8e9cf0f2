//! Captures cut to headers: what a message's length and few words tell instead of the rest.

use super::*;

impl Wire {
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

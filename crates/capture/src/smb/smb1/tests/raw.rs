//! Raw mode.

use super::*;

fn read_raw(mid: u16) -> Smb {
    Smb::new(0x1a, mid, &words(16, &[(0, &[7, 0, 0, 4]), (6, &[0xe8, 3])]), &[])
}

/// 10 bytes at 5, four of them at once.
fn write_raw(mid: u16, through: bool) -> Smb {
    let mode = u8::from(through);
    let fixed = words(24, &[(0, &[7, 0, 10]), (6, &[5]), (14, &[mode]), (20, &[4, 0, 59])]);
    Smb::new(0x1d, mid, &fixed, b"abcd")
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u32).to_be_bytes().to_vec();
    out.extend(bytes);
    out
}

#[test]
fn a_raw_read_is_answered_by_bare_data() {
    let mut wire = Wire::default();
    wire.client(read_raw(1));
    assert!(wire.smb1.expects_raw(false) && !wire.smb1.expects_raw(true));
    let data = framed(&[b'x'; 1000]);
    let start = wire.segment(false, &data[..3]);
    wire.segment(false, &data[3..500]);
    let end = wire.segment(false, &data[500..]);
    let row = &wire.rows()[0];
    assert_eq!((row.command(), row.row.status()), ("ReadRaw".into(), OK));
    assert_eq!((row.row.offset_bytes(), row.row.requested_bytes()), (Some(1024), Some(1000)));
    assert_eq!(row.row.transferred_bytes(), Some(1000));
    assert_eq!((row.row.response_start(), row.row.response_end()), (Some(start), Some(end)));
    assert!(!wire.smb1.expects_raw(false));

    // Data that looks like a message.
    wire.client(read_raw(2));
    let message = read_and_x_reply(9).framed();
    wire.segment(false, &message);
    let row = &wire.rows()[0];
    assert_eq!(row.row.transferred_bytes(), Some(message.len() as u64 - 4));

    // The end of the file, or an error: the status is not known.
    wire.client(read_raw(3));
    wire.segment(false, &framed(&[]));
    let row = &wire.rows()[0];
    assert_eq!((row.row.transferred_bytes(), row.row.status()), (Some(0), None));
    assert_eq!(row.row.response_frame(), Some(8));
    assert!(wire.end().is_empty());
}

#[test]
fn an_expected_raw_message_is_forgotten_with_the_next_request() {
    let mut wire = Wire::default();
    wire.client(read_raw(1));
    let (request, reply) = close(2);
    wire.client(request);
    assert!(!wire.smb1.expects_raw(false));
    wire.server(reply);
    assert_eq!(wire.rows()[0].command(), "Close");
    assert_eq!(wire.end()[0].command(), "ReadRaw");
}

#[test]
fn a_raw_write_through_has_two_replies() {
    let mut wire = Wire::default();
    let start = wire.client(write_raw(1, true));
    assert!(!wire.smb1.expects_raw(true));
    // As Samba sends it: without the bit that says reply.
    wire.server(Smb::new(0x1d, 1, &[0xff, 0xff], &[]));
    assert!(wire.smb1.expects_raw(true));
    let end = wire.segment(true, &framed(b"efghij"));
    assert!(wire.rows().is_empty());
    wire.server(Smb::reply(0x20, 1, &[10, 0], &[]));
    let row = &wire.rows()[0];
    assert_eq!((row.command(), row.row.status()), ("WriteRaw".into(), OK));
    assert_eq!((row.row.offset_bytes(), row.row.requested_bytes()), (Some(5), Some(10)));
    assert_eq!((row.row.transferred_bytes(), row.row.write_through()), (Some(10), Some(true)));
    assert_eq!((row.row.request_start(), row.row.request_end()), (Some(start), Some(end)));
    assert_eq!(row.row.turnaround_ns(), Some(1_000));
    assert_eq!(row.row.request_wire_bytes(), Some((4 + 32 + 27 + 4) + 10));
    assert_eq!(row.row.response_wire_bytes(), Some(2 * 41));
    assert_eq!(row.row.response_frame(), Some(4));
    assert!(wire.end().is_empty());
}

#[test]
fn a_raw_write_behind_ends_with_its_data() {
    let mut wire = Wire::default();
    wire.client(write_raw(1, false));
    wire.server(Smb::reply(0x1d, 1, &[0xff, 0xff], &[]));
    let end = wire.segment(true, &framed(b"efghij"));
    let row = &wire.rows()[0];
    // The server asked for the data, and says no more.
    assert_eq!((row.row.status(), row.row.response_start()), (None, None));
    assert_eq!(row.row.response_frame(), Some(2));
    assert_eq!((row.row.transferred_bytes(), row.row.request_end()), (Some(10), Some(end)));
    assert!(wire.end().is_empty());
    assert_eq!(wire.out.coverage.operations_unanswered, 0);
}

#[test]
fn a_raw_write_that_is_refused_brings_no_data() {
    let mut wire = Wire::default();
    let row = wire.call(write_raw(1, false), Smb::failed(0x20, 1, 0xc000_0022));
    assert_eq!(row.row.status(), Some(0xc000_0022));
    assert!(!wire.smb1.expects_raw(true));
}

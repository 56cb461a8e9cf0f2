//! Requests and replies by PID and MID, and what happens when one of them is missing.

use super::*;

#[test]
fn a_pair_becomes_a_row_with_its_times() {
    let mut wire = Wire::default();
    let request = read_and_x(1).framed();
    let start = wire.segment(true, &request[..50]);
    let end = wire.segment(true, &request[50..]);
    let reply = read_and_x_reply(1).framed();
    let response = wire.segment(false, &reply[..1000]);
    let done = wire.segment(false, &reply[1000..]);
    let row = &wire.rows()[0];
    assert_eq!(row.command(), "ReadAndX");
    assert_eq!((row.row.protocol(), row.row.message_id()), (Some(1), Some(1)));
    assert_eq!((row.row.session_id(), row.row.tree_id()), (Some(5), Some(3)));
    assert_eq!((row.row.status(), row.fid()), (OK, Some(7)));
    assert_eq!((row.row.offset_bytes(), row.row.requested_bytes()), (Some(8192), Some(4096)));
    assert_eq!(row.row.transferred_bytes(), Some(4096));
    assert_eq!((row.row.request_start(), row.row.request_end()), (Some(start), Some(end)));
    assert_eq!((row.row.response_start(), row.row.response_end()), (Some(response), Some(done)));
    assert_eq!(row.row.busy_ns(), Some(done - start));
    assert_eq!(row.row.request_wire_bytes(), Some(request.len() as u64));
    assert_eq!(row.row.response_wire_bytes(), Some(reply.len() as u64));
    assert_eq!(row.row.signed(), Some(false));
}

#[test]
fn pipelined_requests_pair_by_number() {
    let mut wire = Wire::default();
    wire.client(read_and_x(1));
    wire.client(read_and_x(2));
    wire.server(read_and_x_reply(2));
    wire.server(read_and_x_reply(1));
    let rows = wire.rows();
    assert_eq!(rows.iter().map(|row| row.row.message_id()).collect::<Vec<_>>(), [Some(2), Some(1)]);
    assert_eq!(
        rows.iter().map(|row| row.row.outstanding()).collect::<Vec<_>>(),
        [Some(1), Some(0)]
    );
}

#[test]
fn a_number_that_is_used_again_means_a_lost_reply() {
    let mut wire = Wire::default();
    wire.client(read_and_x(1));
    wire.client(read_and_x(1));
    wire.server(read_and_x_reply(1));
    let rows = wire.rows();
    assert_eq!((rows[0].row.response_start(), rows[0].row.request_frame()), (None, Some(1)));
    assert_eq!((rows[1].row.status(), rows[1].row.request_frame()), (OK, Some(2)));
    assert_eq!(wire.out.coverage.operations_unanswered, 1);
}

#[test]
fn a_request_whose_reply_was_lost_is_not_in_flight_for_ever() {
    for has_losses in [true, false] {
        let mut wire = Wire::default();
        wire.pairing.has_losses = has_losses;
        // The reply to the second, which shares its number with a Close, is late and not lost.
        wire.client(read_and_x(1));
        wire.client(read_and_x(2));
        wire.client(close(2).0);
        for mid in 3..203 {
            wire.client(read_and_x(mid));
            wire.server(read_and_x_reply(mid));
        }
        wire.server(read_and_x_reply(2));
        let rows = wire.rows();
        let outstanding: Vec<_> = rows.iter().map(|row| row.row.outstanding()).collect();
        assert_eq!((outstanding[0], outstanding[60]), (Some(3), Some(3)));
        assert_eq!(outstanding[199], Some(if has_losses { 0 } else { 3 }));
        let late = rows.last().unwrap();
        assert_eq!((late.row.message_id(), late.row.request_frame()), (Some(2), Some(2)));
        assert_eq!(late.row.status(), OK);
    }
}

#[test]
fn uid_0_is_a_session_after_the_logon() {
    let mut wire = Wire::default();
    let setup = || words(26, &[(0, &[0xff])]);
    wire.client(Smb::new(0x73, 1, &setup(), &[]).uid(0));
    wire.server(Smb::reply(0x73, 1, &last(6, &[]), b"Unix\0").uid(0));
    let (request, reply) = close(2);
    wire.client(request.uid(0));
    wire.server(reply.uid(0));
    wire.client(Smb::new(0x2b, 3, &[1, 0], b"x").uid(0));
    wire.server(Smb::reply(0x2b, 3, &[1, 0], b"x").uid(0));
    // Of no session, which servers with sessions report.
    let (request, reply) = close(4);
    wire.client(request.uid(0xffff));
    wire.server(reply.uid(0xffff));
    let sessions: Vec<_> = wire.rows().iter().map(|row| row.row.session_id()).collect();
    assert_eq!(sessions, [Some(0), Some(0), None, None]);
}

#[test]
fn one_number_for_several_commands_pairs_by_command() {
    let mut wire = Wire::default();
    let (close, closed) = close(0);
    wire.client(close);
    wire.client(Smb::new(0x71, 0, &[], &[]));
    wire.client(read_and_x(0));
    wire.server(closed);
    wire.server(read_and_x_reply(0));
    let rows = wire.rows();
    let summary = |row: &Row| (row.command(), row.row.request_frame(), row.row.response_frame());
    assert_eq!(summary(&rows[0]), ("Close".to_owned(), Some(1), Some(4)));
    // What came before one that is answered is not answered any more.
    assert_eq!(summary(&rows[1]), ("TreeDisconnect".to_owned(), Some(2), None));
    assert_eq!(summary(&rows[2]), ("ReadAndX".to_owned(), Some(3), Some(5)));
    assert!(wire.end().is_empty());
}

#[test]
fn a_reply_recorded_before_its_request_is_paired() {
    let mut wire = Wire::default();
    wire.server(read_and_x_reply(1));
    wire.client(read_and_x(1));
    assert!(wire.rows().is_empty());
    let row = &wire.end()[0];
    assert_eq!((row.row.request_frame(), row.row.response_frame()), (Some(2), Some(1)));
    assert_eq!(wire.out.coverage.replies_unmatched, 0);
}

#[test]
fn a_lost_request_does_not_shift_the_pairs_after_it() {
    let mut wire = Wire::default();
    wire.server(read_and_x_reply(1));
    for _ in 0..3 {
        wire.client(read_and_x(1));
        wire.server(read_and_x_reply(1));
    }
    let mut rows = wire.rows();
    rows.extend(wire.end());
    let frames: Vec<_> =
        rows.iter().map(|row| (row.row.request_frame(), row.row.response_frame())).collect();
    let expected = [(Some(2), Some(3)), (Some(4), Some(5)), (Some(6), Some(7)), (None, Some(1))];
    assert_eq!(frames, expected);
    assert_eq!(wire.out.coverage.replies_unmatched, 1);
}

#[test]
fn replies_alone_become_rows_in_their_order() {
    let mut wire = Wire::default();
    for mid in 0..600 {
        wire.server(read_and_x_reply(mid));
    }
    let mut rows = wire.rows();
    rows.extend(wire.end());
    assert_eq!(rows.len(), 600);
    assert!(rows.iter().zip(0..).all(|(row, mid)| row.row.message_id() == Some(mid)));
    assert_eq!(rows[0].row.transferred_bytes(), Some(4096));
    assert_eq!((rows[0].row.request_start(), rows[0].row.elapsed_ns()), (None, None));
}

#[test]
fn dos_errors_keep_their_bytes_and_get_their_name() {
    let mut wire = Wire::default();
    let row = wire.call(read_and_x(1), Smb::failed(0x2e, 1, 0x0006_0001).flags2(0x0001));
    assert_eq!(row.row.status(), Some(0x0006_0001));
    assert_eq!(row.text(Column::status_name), "ERRbadfid");
    let row = wire.call(read_and_x(2), Smb::failed(0x2e, 2, 0xc000_0022));
    assert_eq!(row.text(Column::status_name), "STATUS_ACCESS_DENIED");
    assert_eq!(row.row.transferred_bytes(), None);
}

#[test]
fn echo_ends_with_its_last_reply() {
    let mut wire = Wire::default();
    wire.client(Smb::new(0x2b, 4, &[3, 0], b"x"));
    let first = wire.server(Smb::reply(0x2b, 4, &[1, 0], b"x"));
    wire.server(Smb::reply(0x2b, 4, &[2, 0], b"x"));
    assert!(wire.rows().is_empty());
    let end = wire.server(Smb::reply(0x2b, 4, &[3, 0], b"x"));
    let row = &wire.rows()[0];
    assert_eq!((row.row.response_start(), row.row.response_end()), (Some(first), Some(end)));
    assert_eq!(row.row.response_wire_bytes(), Some(3 * 42));
    wire.client(Smb::new(0x2b, 5, &[0, 0], b"x"));
    assert_eq!(wire.rows().len(), 1, "nothing answers an Echo that asks for nothing");
}

#[test]
fn a_negotiate_gives_the_dialect_or_is_answered_by_smb2() {
    let offer = |mid| Smb::new(0x72, mid, &[], b"\x02LANMAN1.0\0\x02NT LM 0.12\0\x02SMB 2.???\0");
    let fixed = words(34, &[(0, &[1, 0, 0x0f, 50, 0]), (7, &[4, 0x41]), (19, &[0xfd, 0xf3])]);
    let mut wire = Wire::default();
    wire.client(offer(0));
    assert!(wire.smb1.expects_negotiate());
    wire.server(Smb::reply(0x72, 0, &fixed, &[0; 8]));
    assert!(!wire.smb1.expects_negotiate());
    assert_eq!(wire.rows()[0].row.status(), OK);
    assert_eq!(wire.pairing.table.dialect.as_deref(), Some("NT LM 0.12"));
    assert_eq!(wire.pairing.table.max_transact_bytes, Some(0x4104));
    assert_eq!(wire.pairing.table.signing_required, Some(true));
    assert_eq!(wire.pairing.table.client_signing_required, Some(false));
    assert_eq!(wire.pairing.table.server_capabilities, Some(0xf3fd));
    let (request, reply) = close(1);
    assert_eq!(wire.call(request, reply).row.dialect(), Some(code::smb1_dialect("NT LM 0.12")));

    let mut wire = Wire::default();
    wire.client(offer(0));
    let times =
        crate::smb::pending::ReplyTimes { start: 5_000_000, end: None, frame: 9, wire_bytes: 70 };
    let (smb1, mut cx) = wire.parts();
    assert!(smb1.answered_by_smb2(&times, 0, &mut cx));
    assert!(!smb1.answered_by_smb2(&times, 0, &mut cx));
    let rows = wire.rows();
    assert_eq!((rows.len(), rows[0].row.response_frame()), (1, Some(9)));
}

#[test]
fn waiting_requests_are_limited() {
    let mut wire = Wire::default();
    wire.limits.pending = 16;
    for mid in 0..100 {
        wire.client(read_and_x(mid));
    }
    assert!(wire.out.coverage.operations_discarded >= 84);
    assert_eq!(wire.rows().len() + wire.end().len(), 100);
    assert_eq!(wire.out.coverage.operations_unanswered, 100);
}

#[test]
fn a_cut_header_is_malformed_and_off_the_clock() {
    let mut wire = Wire::default();
    wire.segment(true, b"\0\0\0\x14\xffSMB\x2e0000000000000000");
    assert_eq!(wire.out.coverage.messages_malformed, 1);
    let (request, reply) = close(1);
    let row = wire.call(request, reply);
    assert_eq!(row.row.busy_ns(), Some(1_000));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whatever is sent, every request and every reply ends up in at most one row, nothing
    /// remains in flight, and nothing panics.
    #[test]
    fn any_messages_can_be_taken(
        sent in proptest::collection::vec(
            (
                proptest::prelude::any::<(bool, u8, u8)>(),
                0_u16..3,
                proptest::collection::vec(0_u8..6, 0..60),
                0_u8..30,
            ),
            0..40,
        ),
    ) {
        let mut wire = Wire::default();
        wire.limits.pending = 4;
        wire.limits.early = 4;
        let commands = [0x1a, 0x1d, 0x20, 0x24, 0x25, 0x26, 0x2b, 0x2e, 0x32, 0x33, 0x72, 0x75,
            0xa0, 0xa1, 0xa2, 0xa4];
        for ((to_server, command, flags), mid, rest, word_count) in sent {
            let command = commands[usize::from(command) % commands.len()];
            let mut smb = Smb::new(command, mid, &[], &[]);
            smb.bytes.truncate(36);
            smb.bytes[13] = if flags % 8 == 0 { flags } else { u8::from(!to_server) << 7 };
            smb.bytes.push(word_count);
            smb.bytes.extend(rest);
            wire.segment(to_server, &smb.framed());
        }
        wire.end();
    }
}

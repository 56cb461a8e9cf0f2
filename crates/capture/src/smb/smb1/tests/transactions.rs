//! Transactions in one and in several messages.

use super::*;

/// Transaction2 with parameters in front, `data` bytes of data of which none is in the message.
pub fn trans2(mid: u16, subcommand: u8, parameters: &[u8], data: u8) -> Smb {
    let count = parameters.len() as u8;
    let fixed = words(
        30,
        &[(0, &[count, 0, data]), (6, &[0, 1]), (18, &[count, 0, 65]), (26, &[1, 0, subcommand])],
    );
    Smb::new(0x32, mid, &fixed, parameters)
}

pub fn secondary(mid: u16, data: &[u8], before: u8, total: u8) -> Smb {
    let count = data.len() as u8;
    let fixed = words(18, &[(0, &[0, 0, total]), (10, &[count, 0, 53, 0, before])]);
    Smb::new(0x33, mid, &fixed, data)
}

pub fn response(command: u8, mid: u16, data: &[u8], before: u8, total: u8) -> Smb {
    let count = data.len() as u8;
    let fixed = words(20, &[(2, &[total]), (12, &[count, 0, 55, 0, before])]);
    Smb::reply(command, mid, &fixed, data)
}

#[test]
fn a_request_ends_with_its_last_secondary() {
    let mut wire = Wire::default();
    let start = wire.client(trans2(1, 6, b"\x01\x00\0\0\0\0\\a\0", 20));
    wire.server(Smb::reply(0x32, 1, &[], &[]));
    assert!(wire.rows().is_empty(), "it only asks for the rest");
    wire.client(secondary(1, &[0; 12], 0, 20));
    let end = wire.client(secondary(1, &[0; 8], 12, 20));
    let replied = wire.server(response(0x32, 1, &[], 0, 0));
    let row = &wire.rows()[0];
    assert_eq!(row.text(Column::detail), "Trans2SetPathInformation SMB_INFO_STANDARD");
    assert_eq!((row.path.as_deref(), row.row.status()), (Some("a"), OK));
    assert_eq!((row.row.requested_bytes(), row.row.transferred_bytes()), (Some(20), None));
    assert_eq!((row.row.request_start(), row.row.request_end()), (Some(start), Some(end)));
    assert_eq!((row.row.response_start(), row.row.pending_at()), (Some(replied), None));
    assert_eq!(row.row.request_wire_bytes(), Some(78 + (57 + 12) + (57 + 8)));
    assert_eq!(row.row.response_wire_bytes(), Some(39 + 59));
    assert_eq!(row.row.outstanding(), Some(0));
    assert!(wire.end().is_empty());
}

#[test]
fn while_the_server_waits_for_the_rest_the_request_is_not_in_flight() {
    let mut wire = Wire::default();
    let parameters = b"\x01\x00\0\0\0\0\\a\0";
    // The rest of this one never comes.
    wire.client(trans2(1, 6, parameters, 20));
    wire.server(Smb::reply(0x32, 1, &[], &[]));
    let start = wire.client(trans2(2, 6, parameters, 20));
    let paused = wire.server(Smb::reply(0x32, 2, &[], &[]));
    wire.time += 1_000_000;
    let between = wire.client(Smb::new(0x2b, 3, &words(2, &[(0, &[1])]), &[]));
    wire.time += 5_000;
    let rest = wire.client(secondary(2, &[0; 20], 0, 20));
    let echoed = wire.server(Smb::reply(0x2b, 3, &words(2, &[]), &[]));
    let replied = wire.server(response(0x32, 2, &[], 0, 0));
    let rows = wire.rows();
    let (echo, request) = (&rows[0].row, &rows[1].row);
    assert_eq!((echo.outstanding(), request.outstanding()), (Some(0), Some(0)));
    assert_eq!(echo.busy_ns(), Some(rest - between + (echoed - rest) / 2));
    let busy = (paused - start) + (echoed - rest) / 2 + (replied - echoed);
    assert_eq!(request.busy_ns(), Some(busy));
    assert_eq!(request.elapsed_ns(), Some(replied - start));
    let left = wire.end();
    assert_eq!((left.len(), left[0].row.busy_ns()), (1, None));
}

#[test]
fn a_whole_request_may_be_answered_without_words() {
    let mut wire = Wire::default();
    let row = wire.call(trans2(1, 3, &[3, 1], 0), Smb::reply(0x32, 1, &[], &[]));
    assert_eq!((row.row.status(), row.row.requested_bytes()), (OK, Some(256)));
}

#[test]
fn a_message_that_overtook_its_first_part_does_not_end_before_it() {
    // The first message of each was lost and retransmitted, the second had come before.
    let mut wire = Wire::default();
    let start = wire.client(trans2(1, 6, b"\x01\x00\0\0\0\0\\a\0", 20));
    wire.time -= 7_000;
    wire.client(secondary(1, &[0; 20], 0, 20));
    wire.time += 20_000;
    let first = wire.server(response(0x32, 1, &[1; 60], 0, 100));
    wire.time -= 5_000;
    wire.server(response(0x32, 1, &[1; 40], 60, 100));
    let row = &wire.rows()[0];
    assert_eq!((row.row.request_start(), row.row.request_end()), (Some(start), Some(start)));
    assert_eq!((row.row.response_start(), row.row.response_end()), (Some(first), Some(first)));
    assert_eq!(row.row.elapsed_ns(), Some(first - start));
}

#[test]
fn an_answer_of_several_messages_is_one() {
    let mut wire = Wire::default();
    wire.client(trans2(1, 1, b"\x16\0\x64\0\x06\0\x04\x01\0\0\0\0\\d\\*\0", 0));
    let first = wire.server(response(0x32, 1, &[1; 60], 0, 100));
    assert!(wire.rows().is_empty());
    let end = wire.server(response(0x32, 1, &[1; 40], 60, 100));
    let row = &wire.rows()[0];
    assert_eq!(row.path.as_deref(), Some("d\\*"));
    assert_eq!(row.text(Column::detail), "Trans2FindFirst2 SMB_FIND_FILE_BOTH_DIRECTORY_INFO");
    assert_eq!(row.row.transferred_bytes(), Some(100));
    assert_eq!((row.row.response_start(), row.row.response_end()), (Some(first), Some(end)));
    assert_eq!(row.row.response_wire_bytes(), Some(59 + 60 + 59 + 40));

    // Without its end it is a row all the same, once the number is used again.
    wire.client(trans2(2, 7, &[7, 0, 7, 1], 0));
    wire.server(response(0x32, 2, &[1; 60], 0, 100));
    wire.client(secondary(2, &[], 0, 0));
    wire.client(read_and_x(2));
    let row = &wire.rows()[0];
    assert_eq!((row.row.transferred_bytes(), row.row.turnaround_ns()), (Some(60), Some(1_000)));
    assert_eq!((row.fid(), wire.out.coverage.operations_unanswered), (Some(7), 0));
}

#[test]
fn answers_without_request_are_put_together() {
    let mut wire = Wire::default();
    wire.server(Smb::reply(0x32, 1, &[], &[]));
    wire.server(response(0x32, 1, &[1; 60], 0, 100));
    wire.server(response(0x32, 1, &[1; 40], 60, 100));
    let rows = wire.end();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].row.transferred_bytes(), Some(100));
    assert_eq!((rows[0].row.response_frame(), rows[0].row.request_frame()), (Some(2), None));
}

#[test]
fn secondaries_without_their_primary_count_when_they_are_answered() {
    let mut wire = Wire::default();
    let end = wire.client(secondary(1, &[0; 8], 12, 20));
    wire.server(response(0x32, 1, &[], 0, 0));
    let row = &wire.rows()[0];
    assert_eq!(row.command(), "Transaction2");
    assert_eq!((row.row.request_start(), row.row.request_end()), (None, Some(end)));
    assert_eq!((row.row.turnaround_ns(), row.row.elapsed_ns()), (Some(1_000), None));
    wire.client(secondary(2, &[0; 8], 12, 20));
    assert!(wire.end().is_empty());
    assert_eq!(wire.out.coverage.messages_malformed, 1);
}

#[test]
fn pipes_mailslots_and_rap() {
    let mut wire = Wire::default();
    let fixed = words(32, &[(2, &[3]), (6, &[0, 4]), (22, &[3, 0, 74]), (26, &[2, 0, 0x26, 0, 7])]);
    let reply = response(0x25, 1, &[1; 30], 0, 30);
    let row = wire.call(Smb::new(0x25, 1, &fixed, b"\\PIPE\\\0abc"), reply);
    assert_eq!((row.text(Column::detail), row.fid()), ("TransactNmPipe".into(), Some(7)));
    assert_eq!((row.row.requested_bytes(), row.row.transferred_bytes()), (Some(1024), Some(30)));
    assert_eq!(row.path, None);

    let fixed = words(28, &[(0, &[2]), (18, &[2, 0, 76])]);
    let row = wire
        .call(Smb::new(0x25, 2, &fixed, b"\\PIPE\\LANMAN\0\x68\0"), response(0x25, 2, &[], 0, 0));
    assert_eq!(row.text(Column::detail), "Rap 0x0068");

    let fixed = words(34, &[(10, &[2]), (26, &[3, 0, 1, 0, 1])]);
    wire.client(Smb::new(0x25, 3, &fixed, b"\\MAILSLOT\\BROWSE\0"));
    let row = &wire.rows()[0];
    assert_eq!((row.text(Column::detail), row.row.status()), ("MailslotWrite".into(), None));
    assert_eq!(wire.out.coverage.operations_unanswered, 0);
}

pub fn nt_transact(mid: u16, function: u8, setup: &[u8], parameters: &[u8]) -> Smb {
    let count = parameters.len() as u8;
    let at = (32 + 1 + 38 + setup.len() + 2) as u8;
    let mut fixed = words(38, &[(3, &[count]), (15, &[0, 2]), (19, &[count]), (23, &[at])]);
    fixed[35] = (setup.len() / 2) as u8;
    fixed[36] = function;
    fixed.extend(setup);
    Smb::new(0xa0, mid, &fixed, parameters)
}

pub fn nt_response(mid: u16, parameters: &[u8]) -> Smb {
    let count = parameters.len() as u8;
    let fixed = words(36, &[(3, &[count]), (11, &[count]), (15, &[71])]);
    Smb::reply(0xa0, mid, &fixed, parameters)
}

#[test]
fn a_notification_waits_and_can_be_cancelled() {
    let mut wire = Wire::default();
    wire.client(nt_transact(1, 4, &[1, 0, 0, 0, 7, 0, 1, 0], &[]));
    let (request, reply) = close(2);
    let row = wire.call(request, reply);
    assert_eq!(row.row.outstanding(), Some(0));
    wire.client(Smb::new(0xa4, 1, &[], &[]));
    wire.server(Smb::failed(0xa0, 1, 0xc000_0120));
    let rows = wire.rows();
    assert_eq!((rows[0].command(), rows[0].row.message_id()), ("NtCancel".into(), Some(1)));
    assert_eq!((rows[0].row.status(), rows[0].row.response_frame()), (None, None));
    assert_eq!(rows[1].text(Column::detail), "NtTransactNotifyChange");
    assert_eq!((rows[1].row.waits(), rows[1].row.status()), (Some(true), Some(0xc000_0120)));
    assert_eq!((rows[1].row.busy_ns(), rows[1].fid()), (None, Some(7)));

    wire.client(nt_transact(3, 4, &[1, 0, 0, 0, 7, 0, 1, 0], &[]));
    wire.server(nt_response(3, &[0; 24]));
    assert_eq!(wire.rows()[0].row.transferred_bytes(), Some(24));
    assert_eq!(wire.out.coverage.operations_unanswered, 0);
}

#[test]
fn the_unix_extensions_open_by_setting_a_path() {
    let open = |mid| trans2(mid, 6, b"\x09\x02\0\0\0\0\\a\0", 0);
    let mut wire = Wire::default();
    let row = wire.call(open(1), response(0x32, 1, &[0, 0, 8, 0, 2, 0, 0, 0], 0, 8));
    assert_eq!((row.path.as_deref(), row.fid()), (Some("a"), Some(8)));
    assert!(matches!(row.effect, Effect::Open(_)));
    let row = wire.call(open(2), response(0x32, 2, &[0, 0, 0, 0, 2, 0, 0, 0], 0, 8));
    assert_eq!((row.effect, row.fid()), (Effect::None, None));
}

#[test]
fn nt_transact_opens_and_controls() {
    let mut wire = Wire::default();
    let request = nt_transact(1, 2, &[0xc0, 0, 9, 0, 7, 0, 1, 0], &[]);
    let row = wire.call(request, nt_response(1, &[]));
    assert_eq!(row.text(Column::detail), "FSCTL_CREATE_OR_GET_OBJECT_ID");
    assert_eq!((row.fid(), row.row.requested_bytes()), (Some(7), Some(512)));

    let mut parameters = words(53, &[(0, &[2]), (8, &[0x89]), (28, &[1]), (44, &[2])]);
    parameters.extend(b"\\f");
    let reply = words(69, &[(0, &[1, 0, 8, 0]), (56, &[99]), (68, &[1])]);
    let row = wire.call(nt_transact(2, 1, &[], &parameters), nt_response(2, &reply));
    assert_eq!(row.text(Column::detail), "NtTransactCreate");
    assert_eq!((row.path.as_deref(), row.fid()), (Some("f"), Some(8)));
    assert_eq!(row.row.desired_access(), Some(0x89));
    assert_eq!(row.text(Column::oplock_granted), "Exclusive");
    assert_eq!(wire.out.details.opens[0].directory, Some(true));
}

#[test]
fn a_listing_that_goes_on_has_the_path_of_its_beginning() {
    let mut wire = Wire::default();
    let begin = b"\x16\0\x01\0\0\0\x04\x01\0\0\0\0\\docs\\*\0";
    let found = words(20, &[(0, &[6]), (6, &[6, 0, 55])]);
    let found = Smb::reply(0x32, 1, &found, b"\x01\x08\x01\0\0\0");
    let path = wire.call(trans2(1, 1, begin, 0), found).path;
    assert!(path.is_some());
    let next = |number: u8| [number, 8, 1, 0, 4, 1, 0, 0, 0, 0, 0, 0, b'x', 0];
    let row = wire.call(trans2(2, 2, &next(1), 0), response(0x32, 2, b"", 0, 0));
    assert_eq!(row.path, path);
    let row = wire.call(trans2(3, 2, &next(2), 0), response(0x32, 3, b"", 0, 0));
    assert_eq!(row.path, None);
    let row = wire.call(Smb::new(0x34, 4, &[1, 8], &[]), Smb::reply(0x34, 4, &[], &[]));
    assert_eq!((row.command(), row.path), ("FindClose2".into(), path));
}

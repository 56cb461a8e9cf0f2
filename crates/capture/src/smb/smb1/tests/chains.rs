//! AndX chains.

use super::*;

/// NtCreateAndX of `a\b`, then ReadAndX of file 0.
fn create_and_read(mid: u16) -> Smb {
    let create = words(48, &[(5, &[5, 0]), (35, &[1])]);
    let read = last(24, &[(4, &[0, 0, 0, 0x10]), (10, &[0, 2])]);
    // The first words lie at 33 of the message.
    Smb::new(0xa2, mid, &create, b"\\a\\b\0").chained(33, 0x2e, &read, &[])
}

fn created() -> Vec<u8> {
    words(68, &[(4, &[3, 0x34, 0x12, 1]), (55, &[0, 9])])
}

#[test]
fn members_are_rows_and_the_file_is_the_one_that_was_opened() {
    let mut wire = Wire::default();
    let start = wire.client(create_and_read(1));
    let read = last(24, &[(10, &[0, 2, 59])]);
    let end = wire.server(Smb::reply(0xa2, 1, &created(), &[]).chained(33, 0x2e, &read, &[0; 512]));
    let rows = wire.rows();
    assert_eq!((rows[0].command(), rows[1].command()), ("NtCreateAndX".into(), "ReadAndX".into()));
    assert_eq!((rows[0].fid(), rows[1].fid()), (Some(0x1234), Some(0x1234)));
    assert_eq!((rows[0].row.status(), rows[1].row.status()), (OK, OK));
    assert_eq!(rows[0].path.as_deref(), Some("a\\b"));
    assert_eq!(rows[0].text(Column::detail), "FILE_OPEN");
    assert_eq!(rows[0].text(Column::oplock_granted), "II");
    assert!(matches!(rows[0].effect, Effect::Open(0)));
    assert_eq!(wire.out.details.opens[0].size_bytes, Some(0x900));
    assert_eq!(
        (rows[1].row.offset_bytes(), rows[1].row.transferred_bytes()),
        (Some(4096), Some(512))
    );
    let place = |row: &Row| {
        (row.row.compound(), row.row.compound_index(), row.row.compound_size(), row.row.related())
    };
    assert_eq!(place(&rows[0]), (Some(1), Some(0), Some(2), Some(false)));
    assert_eq!(place(&rows[1]), (Some(1), Some(1), Some(2), Some(true)));
    assert_eq!((rows[0].row.request_start(), rows[0].row.response_end()), (Some(start), Some(end)));
    assert_eq!((rows[1].row.request_start(), rows[1].row.response_end()), (None, None));
    assert_eq!(rows[1].row.request_wire_bytes(), None);
    assert_eq!((rows[0].row.response_frame(), rows[1].row.response_frame()), (Some(2), Some(2)));
    assert_eq!(wire.pairing.table.compounds, 1);
}

#[test]
fn a_chain_ends_where_a_command_fails() {
    const NOT_FOUND: u32 = 0xc000_0034;
    let mut wire = Wire::default();
    wire.client(create_and_read(1));
    wire.server(Smb::failed(0xa2, 1, NOT_FOUND));
    let rows = wire.rows();
    // The read was not carried out: it has no status, but it is answered.
    assert_eq!((rows[0].row.status(), rows[1].row.status()), (Some(NOT_FOUND), None));
    assert_eq!((rows[1].fid(), rows[1].row.response_frame()), (None, Some(2)));
    assert_eq!(wire.out.coverage.operations_unanswered, 0);

    // Servers say which command failed, or end the chain before it.
    let whole = Smb::reply(0xa2, 2, &created(), &[]).chained(33, 0x2e, &[], &[]);
    let ended = Smb::reply(0xa2, 2, &created(), &[]);
    for reply in [whole, ended] {
        wire.client(create_and_read(2));
        wire.server(reply.status(0xc000_0022));
        let rows = wire.rows();
        assert_eq!((rows[0].row.status(), rows[1].row.status()), (OK, Some(0xc000_0022)));
        assert!(matches!(rows[0].effect, Effect::Open(_)));
        assert_eq!(rows[1].fid(), Some(0x1234));
    }
}

#[test]
fn logging_on_and_connecting_in_one_message() {
    let mut wire = Wire::default();
    let setup = words(26, &[(14, &[24, 0])]);
    let mut names = vec![1; 24];
    names.extend(b"alice\0LAB\0Unix\0Samba\0");
    let connect = last(8, &[(6, &[1, 0])]);
    let request = Smb::new(0x73, 1, &setup, &names).uid(0).tid(0);
    wire.client(request.chained(33, 0x75, &connect, b"\0\\\\S\\X\0?????\0"));
    let reply = Smb::reply(0x73, 1, &words(6, &[(4, &[1])]), b"Unix\0").uid(77).tid(8);
    wire.server(reply.chained(33, 0x75, &last(6, &[]), b"A:\0"));
    let rows = wire.rows();
    assert_eq!(rows[0].user.as_deref(), Some("LAB\\alice"));
    assert_eq!(wire.out.details.sessions[0].guest, Some(true));
    assert_eq!(wire.out.details.sessions[0].mechanism.as_deref(), Some("NTLM"));
    assert_eq!(rows[1].share.as_deref(), Some("\\\\S\\X"));
    assert_eq!(wire.out.details.trees[0].share_type.as_deref(), Some("DISK"));
    assert_eq!((rows[0].row.session_id(), rows[1].row.session_id()), (Some(77), Some(77)));
    assert_eq!((rows[0].row.tree_id(), rows[1].row.tree_id()), (None, Some(8)));
}

#[test]
fn a_refused_logon_names_its_user() {
    let mut wire = Wire::default();
    let setup = last(26, &[]);
    let row =
        wire.call(Smb::new(0x73, 1, &setup, b"eve\0LAB\0"), Smb::failed(0x73, 1, 0xc000_006d));
    assert_eq!(row.user.as_deref(), Some("LAB\\eve"));
    assert!(wire.out.details.sessions[0].refused);
}

#[test]
fn a_refused_or_unanswered_share_is_named() {
    let mut wire = Wire::default();
    let connect = [0xff, 0, 0, 0, 0, 0, 1, 0];
    let row = wire.call(
        Smb::new(0x75, 1, &connect, b"\0\\\\S\\NONE\0?????\0"),
        Smb::failed(0x75, 1, 0xc000_00cc),
    );
    assert_eq!(row.share.as_deref(), Some("\\\\S\\NONE"));
    assert!(wire.out.details.trees[0].refused);
    wire.client(Smb::new(0x70, 2, &[], b"\x04\\\\S\\OLD\0\x04\0\x04A:\0"));
    let rows = wire.end();
    assert_eq!(rows[0].share.as_deref(), Some("\\\\S\\OLD"));
    assert!(wire.out.details.trees[1].refused);
}

#[test]
fn trees_and_sessions_end() {
    let mut wire = Wire::default();
    let row = wire.call(Smb::new(0x71, 1, &[], &[]), Smb::reply(0x71, 1, &[], &[]));
    assert_eq!((row.effect, row.row.tree_id()), (Effect::TreeDisconnect, Some(3)));
    let row = wire.call(Smb::new(0x71, 2, &[], &[]), Smb::failed(0x71, 2, 0xc000_00c9));
    assert_eq!(row.effect, Effect::None);
    let row =
        wire.call(Smb::new(0x74, 3, &last(4, &[]), &[]), Smb::reply(0x74, 3, &last(4, &[]), &[]));
    assert_eq!((row.effect, row.row.session_id()), (Effect::Logoff, Some(5)));
    let row = wire.call(
        Smb::new(0x70, 4, &[], b"\x04\\\\S\\OLD\0\x04\0\x04A:\0"),
        Smb::reply(0x70, 4, &[0, 0x40, 9, 0], &[]),
    );
    assert_eq!((row.share.as_deref(), row.row.tree_id()), (Some("\\\\S\\OLD"), Some(9)));
}

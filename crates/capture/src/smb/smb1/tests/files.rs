//! Opens, paths, the older reads and writes, locks and oplocks.

use super::*;
use crate::smb::smb1::open::set_path;

#[test]
fn paths_are_as_smb2_has_them() {
    let path_of = |path: &str, dfs| {
        let mut pending = crate::smb::pending::Pending::default();
        let bytes = path.as_bytes();
        set_path(&mut pending, smbscope_wire::smb1::Text { bytes, unicode: false }, dfs);
        pending.name
    };
    assert_eq!(path_of("\\a\\b", false), "a\\b");
    assert_eq!(path_of("a", false), "a");
    assert_eq!(path_of("\\dir\\", false), "dir");
    assert_eq!(path_of("/posix/way", false), "posix\\way");
    assert_eq!(path_of("", false), "\\");
    assert_eq!(path_of("\\", false), "\\");
    assert_eq!(path_of("\\server\\share\\a\\b", true), "a\\b");
    assert_eq!(path_of("\\server\\share", true), "\\");
}

#[test]
fn opens_of_all_kinds() {
    let mut wire = Wire::default();
    let request =
        last(48, &[(7, &[4]), (15, &[0x89, 0, 0x12]), (31, &[3]), (35, &[5]), (39, &[2])]);
    let mut request = request;
    request[5] = 3;
    let reply = last(68, &[(4, &[2, 7, 0])]);
    let row = wire.call(Smb::new(0xa2, 1, &request, b"\\a\0"), Smb::reply(0xa2, 1, &reply, &[]));
    assert_eq!((row.path.as_deref(), row.fid()), (Some("a"), Some(7)));
    assert_eq!(row.row.desired_access(), Some(0x12_0089));
    assert_eq!((row.row.share_access(), row.row.create_options()), (Some(3), Some(2)));
    assert_eq!(row.row.write_through(), Some(true));
    assert_eq!(row.text(Column::detail), "FILE_OVERWRITE_IF");
    assert_eq!(row.text(Column::oplock_requested), "Batch");
    assert_eq!(row.text(Column::oplock_granted), "Batch");
    // A name relative to an open directory is not a path from the root.
    request[11] = 9;
    let row = wire.call(Smb::new(0xa2, 2, &request, b"\\a\0"), Smb::reply(0xa2, 2, &reply, &[]));
    assert_eq!(row.path, None);

    let request = last(30, &[(4, &[2, 0, 0x42, 0x40]), (16, &[0x11])]);
    let reply = last(30, &[(4, &[8, 0, 0x20, 0]), (12, &[5]), (22, &[1, 0x80])]);
    let row = wire.call(Smb::new(0x2d, 3, &request, b"b\0"), Smb::reply(0x2d, 3, &reply, &[]));
    assert_eq!((row.path.as_deref(), row.fid()), (Some("b"), Some(8)));
    assert_eq!(row.text(Column::detail), "FILE_OPEN_IF");
    assert_eq!(row.text(Column::oplock_granted), "Exclusive");
    assert_eq!(row.row.write_through(), Some(true));
    assert_eq!(wire.out.details.opens.last().unwrap().size_bytes, Some(5));

    let row =
        wire.call(Smb::new(0x0f, 4, &[0; 6], b"\x04\\new\0"), Smb::reply(0x0f, 4, &[9, 0], &[]));
    assert_eq!((row.path.as_deref(), row.fid()), (Some("new"), Some(9)));
    assert_eq!(row.text(Column::detail), "FILE_CREATE");
    assert!(matches!(row.effect, Effect::Open(_)));
    let (request, reply) = close(5);
    assert_eq!(wire.call(request, reply).effect, Effect::Close(None));
}

#[test]
fn reads_and_writes_of_all_kinds() {
    let mut wire = Wire::default();
    let range = |row: &Row| {
        (row.row.offset_bytes(), row.row.requested_bytes(), row.row.transferred_bytes())
    };
    let request = last(28, &[(4, &[7, 0, 0, 1]), (14, &[1]), (18, &[1, 0, 0, 0x10]), (24, &[2])]);
    let row = wire.call(
        Smb::new(0x2f, 1, &request, &[]),
        Smb::reply(0x2f, 1, &last(12, &[(4, &[0, 8, 0, 0, 1])]), &[]),
    );
    assert_eq!(range(&row), (Some(0x2_0000_0100), Some(0x1_1000), Some(0x1_0800)));
    assert_eq!((row.row.write_through(), row.fid()), (Some(true), Some(7)));

    let core = [7, 0, 0, 2, 0, 0, 1, 0, 0, 0];
    for command in [0x0a, 0x13] {
        let reply = Smb::reply(command, 2, &words(10, &[(1, &[1])]), &[1, 0, 1]);
        let row = wire.call(Smb::new(command, 2, &core, &[]), reply);
        assert_eq!(range(&row), (Some(65_536), Some(512), Some(256)));
    }
    for command in [0x0b, 0x14, 0x2c] {
        let request = Smb::new(command, 3, &core, b"\x01\x00\x02..");
        let row = wire.call(request, Smb::reply(command, 3, &[0, 2], &[]));
        assert_eq!(range(&row), (Some(65_536), Some(512), Some(512)));
        let closes = row.effect == Effect::Close(None);
        assert_eq!(closes, command == 0x2c);
    }
}

fn lock(mid: u16, timeout: u8) -> Smb {
    let fixed = last(16, &[(4, &[7, 0, 0]), (8, &[timeout]), (14, &[1])]);
    Smb::new(0x24, mid, &fixed, &[9, 0, 100, 0, 0, 0, 10, 0, 0, 0])
}

fn locked(mid: u16) -> Smb {
    Smb::reply(0x24, mid, &last(4, &[]), &[])
}

#[test]
fn a_lock_waits_when_another_operation_overtakes_it() {
    let mut wire = Wire::default();
    let row = wire.call(lock(1, 5), locked(1));
    assert_eq!((row.text(Column::detail), row.row.waits()), ("Lock".into(), None));
    assert_eq!((row.row.offset_bytes(), row.row.requested_bytes()), (Some(100), Some(10)));
    assert!(row.row.busy_ns().is_some());

    wire.client(lock(2, 5));
    wire.client(read_and_x(3));
    wire.server(read_and_x_reply(3));
    wire.client(read_and_x(4));
    wire.server(read_and_x_reply(4));
    wire.server(locked(2));
    let rows = wire.rows();
    assert_eq!((rows[0].row.outstanding(), rows[1].row.outstanding()), (Some(1), Some(0)));
    assert_eq!((rows[2].command(), rows[2].row.waits()), ("LockingAndX".into(), Some(true)));
    assert_eq!((rows[2].row.busy_ns(), rows[2].row.server_ns()), (None, None));

    let row = wire.call(lock(5, 5), Smb::failed(0x24, 5, 0xc000_0054));
    assert_eq!((row.row.waits(), row.row.busy_ns()), (Some(true), None));
    // Without a timeout it cannot have waited.
    let row = wire.call(lock(6, 0), Smb::failed(0x24, 6, 0xc000_0055));
    assert_eq!(row.row.waits(), None);
    assert!(wire.end().is_empty());
}

#[test]
fn an_oplock_break_and_its_answer_are_rows_without_counterpart() {
    let mut wire = Wire::default();
    wire.call(
        Smb::new(0xa2, 1, &last(48, &[(5, &[3])]), b"\\a\0"),
        Smb::reply(0xa2, 1, &last(68, &[(4, &[2, 7, 0])]), &[]),
    );
    let broken = last(16, &[(4, &[7, 0, 2, 1])]);
    wire.client(read_and_x(2));
    wire.server(Smb::new(0x24, 0xffff, &broken, &[]).uid(0));
    wire.client(Smb::new(0x24, 3, &broken, &[]));
    wire.server(read_and_x_reply(2));
    let rows = wire.rows();
    assert_eq!(rows[0].text(Column::detail), "Oplock notification");
    assert_eq!(rows[0].text(Column::oplock_granted), "II");
    assert_eq!((rows[0].fid(), rows[0].row.session_id()), (Some(7), Some(5)));
    assert_eq!((rows[0].row.request_frame(), rows[0].row.response_frame()), (None, Some(4)));
    assert_eq!(rows[1].text(Column::detail), "Oplock acknowledgement");
    assert_eq!((rows[1].row.request_frame(), rows[1].row.response_frame()), (Some(5), None));
    assert_eq!(rows[2].command(), "ReadAndX");
    assert_eq!(wire.pairing.table.breaks, 1);
    // Only one that fails is answered.
    wire.client(Smb::new(0x24, 4, &broken, &[]));
    wire.server(Smb::failed(0x24, 4, 0xc000_0008));
    assert_eq!(wire.rows().len(), 1);
    assert!(wire.end().is_empty());
    assert_eq!(wire.out.coverage.operations_unanswered, 0);
    assert_eq!(wire.out.coverage.replies_unmatched, 0);
}

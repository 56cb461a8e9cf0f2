//! Groups: commands, statuses, clients, shares, users, paths and connections.

use smbscope_analysis::summary::{Options, Summary};
use smbscope_tables::code;
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::tables::Connection;

use crate::{CLOSE, CREATE, MS, QUERY_DIRECTORY, READ, WRITE, batch, report, row};

#[test]
fn encrypted_operations_have_a_line_of_their_own() {
    let encrypted = row(READ, 0, MS).with(|row| {
        row.clear(Column::command);
        row.set_encrypted(true);
    });
    let found = report(&[encrypted, row(READ, 0, MS).with(|row| row.set_encrypted(true))]);
    let names: Vec<_> = found.commands.iter().map(|row| row.command.as_str()).collect();
    assert_eq!(names, ["(encrypted)", "Read"]);
    assert_eq!((found.protection.encrypted, found.protection.encrypted_unread), (2, 1));
}

#[test]
fn statuses_are_classed_and_counted_by_command() {
    let status = |command, status| {
        row(command, 0, MS).with(|row| {
            row.set_status(status);
            row.set_status_name(code::status_name(status));
        })
    };
    let found = report(&[
        status(READ, 0xc000_0011),
        status(CREATE, 0xc000_0034),
        status(CREATE, 0xc000_0034),
        status(CREATE, 0xc000_0022),
        status(QUERY_DIRECTORY, 0x8000_0006),
        row(READ, 0, MS),
    ]);
    assert_eq!(found.statuses.success, 1);
    assert_eq!(found.statuses.rows[0].status, 0xc000_0034);
    assert_eq!(found.statuses.rows[0].commands[0].name, "Create");
    let create = found.commands.iter().find(|row| row.command == "Create");
    let create = &create.unwrap().tally;
    assert_eq!((create.errors, create.not_found), (1, 2));
    assert_eq!(found.totals.tally.errors, 1);
}

#[test]
fn groups_and_paths() {
    let data = |command, bytes| {
        move |row: &mut Operation| {
            row.set_command(code::command(2, command));
            row.set_requested_bytes(65_536);
            row.set_transferred_bytes(bytes);
        }
    };
    let found = report(&[
        row(READ, 0, 3 * MS)
            .at("\\\\s\\a", "d\\x.txt")
            .by("10.0.0.1", "D\\u")
            .with(data(READ, 65_536)),
        row(WRITE, 0, MS)
            .at("\\\\s\\a", "d\\y.doc")
            .by("10.0.0.1", "D\\u")
            .with(data(WRITE, 4_096)),
        row(READ, 0, MS).at("\\\\s\\b", "d\\x.txt").by("10.0.0.2", "D\\v").with(data(READ, 1)),
        row(QUERY_DIRECTORY, 0, MS).at("\\\\s\\a", "d").by("10.0.0.1", "D\\u"),
        row(CREATE, 0, MS).at("\\\\s\\a", "d").with(|row| row.set_create_options(1)),
        row(CLOSE, 0, MS),
    ]);
    let rows: Vec<_> = found
        .shares
        .rows
        .iter()
        .map(|row| (row.name.as_deref(), row.tally.operations, row.tally.read_bytes))
        .collect();
    assert_eq!(rows, [(Some("\\\\s\\a"), 4, 65_536), (None, 1, 0), (Some("\\\\s\\b"), 1, 1)]);
    let sum: f64 = found.users.rows.iter().map(|row| row.tally.busy_share).sum();
    assert!((sum - 1.0).abs() < 1e-12);
    assert_eq!(found.extensions.distinct, 2);
    let files: Vec<_> = found
        .files
        .by_time
        .iter()
        .map(|row| (row.share.as_deref(), row.path.as_str(), row.busy_ns / MS))
        .collect();
    assert_eq!(
        files,
        [
            (Some("\\\\s\\a"), "d\\x.txt", 3),
            (Some("\\\\s\\a"), "d\\y.doc", 1),
            (Some("\\\\s\\b"), "d\\x.txt", 1),
        ]
    );
    let directories: Vec<_> = found
        .directories
        .by_operations
        .iter()
        .map(|row| (row.share.as_deref(), row.path.as_str(), row.operations))
        .collect();
    assert_eq!(
        directories,
        [(Some("\\\\s\\a"), "d", 3), (Some("\\\\s\\b"), "d", 1), (Some("\\\\s\\a"), "", 1),]
    );
    assert_eq!((found.reads.operations, found.reads.transferred_bytes), (2, 65_537));
    assert_eq!(found.reads.sizes[0].size_bytes, 65_536);
    assert_eq!(found.reads.powers[0].below_bytes, Some(131_072));
    assert_eq!(found.writes.transferred_bytes, 4_096);
}

#[test]
fn a_share_written_otherwise_is_the_same_and_its_root_a_directory() {
    let found = report(&[
        row(CREATE, 0, MS).at("\\\\s\\Home", "\\").by("10.0.0.1", "D\\u"),
        row(CLOSE, 0, MS).at("\\\\S\\home", "\\").by("10.0.0.1", "d\\U"),
        row(CREATE, 0, MS).at("\\\\S\\HOME", "x.txt").by("10.0.0.1", "D\\u"),
    ]);
    let [share] = &found.shares.rows[..] else { panic!("{:?}", found.shares.rows) };
    assert_eq!((share.name.as_deref(), share.tally.operations), (Some("\\\\s\\Home"), 3));
    assert_eq!(found.users.rows.len(), 1);
    let [file] = &found.files.by_time[..] else { panic!("{:?}", found.files.by_time) };
    assert_eq!(file.path, "x.txt");
    let [root] = &found.directories.by_time[..] else { panic!() };
    assert_eq!((root.path.as_str(), root.operations), ("", 3));
}

#[test]
fn connections_past_the_limit_have_their_sums() {
    let mut summary = Summary::new(Options { groups_max: 2, ..Options::default() });
    let of = |connection| {
        row(READ, 0, MS).with(|row| {
            row.set_connection(connection);
            row.set_credit_charge(1);
        })
    };
    // The last one has the most operations.
    let rows: Vec<_> = [1, 2, 3, 3, 3].map(of).into();
    summary.operations(&batch(&rows)).unwrap();
    let connections = [(1, 1), (2, 1), (3, 3)].map(|(connection, operations)| Connection {
        recording: "a.pcap".into(),
        connection,
        operations,
        ..Connection::default()
    });
    summary.connections(&connections);
    let found = summary.finish();
    let most = &found.connections.rows[0];
    assert_eq!((most.connection.connection, most.credit_charge), (3, 3));
    assert_eq!((most.busy_share, most.elapsed.n), (0.6, 0));
    assert_eq!(found.connections.others, 1);
}

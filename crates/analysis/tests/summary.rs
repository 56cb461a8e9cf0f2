//! The summary of synthetic batches with known answers.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Schema};
use proptest::prelude::*;
use smbscope_analysis::summary::{COLUMNS, Options, Report, Summary};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::tables::{Connection, Coverage, Handle, Session, Tree};

const MS: i64 = 1_000_000;
const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const NEGOTIATE: u16 = 0;
const READ: u16 = 8;
const WRITE: u16 = 9;
const CANCEL: u16 = 12;
const QUERY_DIRECTORY: u16 = 14;
const NOTIFY: u16 = 15;
const BREAK: u16 = 18;

/// A row with names, for the builder's pools.
#[derive(Clone, Debug, Default)]
struct Row {
    operation: Operation,
    names: [Option<String>; 5],
}

fn row(command: u16, start: i64, elapsed: i64) -> Row {
    let mut operation = Operation::default();
    operation.set_protocol(2);
    operation.set_command(code::command(2, command));
    operation.set_status(0);
    operation.set_status_name(0);
    operation.set_connection(1);
    operation.set_client_port(50_123);
    operation.set_message_id(17);
    operation.set_request_frame(3);
    operation.set_response_frame(4);
    operation.set_request_start(start);
    operation.set_request_end(start);
    operation.set_response_start(start + elapsed);
    operation.set_response_end(start + elapsed);
    operation.derive_durations();
    operation.set_busy_ns(elapsed);
    Row { operation, names: Default::default() }
}

impl Row {
    fn with(mut self, set: impl FnOnce(&mut Operation)) -> Row {
        set(&mut self.operation);
        self
    }

    fn at(mut self, share: &str, path: &str) -> Row {
        self.names[0] = Some(share.to_owned());
        self.names[1] = Some(path.to_owned());
        self.names[2] = smbscope_tables::builder::extension_of(path).map(str::to_owned);
        self
    }

    fn by(mut self, client: &str, user: &str) -> Row {
        self.names[3] = Some(client.to_owned());
        self.names[4] = Some(user.to_owned());
        self
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for row in rows {
        let mut operation = row.operation;
        let [share, path, extension, client, user] = &row.names;
        let names = &mut builder.names;
        operation.set_recording(names.recording.intern("a.pcap"));
        if let Some(share) = share {
            operation.set_share(names.share.intern(share));
        }
        if let Some(path) = path {
            operation.set_path(names.path.intern(path));
        }
        if let Some(extension) = extension {
            operation.set_extension(names.extension.intern(extension));
        }
        if let Some(client) = client {
            operation.set_client(names.client.intern(client));
        }
        if let Some(user) = user {
            operation.set_user(names.user.intern(user));
        }
        builder.append(&[operation]);
    }
    builder.finish().unwrap()
}

fn report(rows: &[Row]) -> Report {
    let mut summary = Summary::new(Options::default());
    summary.operations(&batch(rows)).unwrap();
    summary.finish()
}

#[test]
fn every_column_that_it_reads_is_in_the_schema() {
    let schema = smbscope_tables::operation::schema();
    for name in COLUMNS {
        assert!(schema.index_of(name).is_ok(), "{name}");
    }
}

#[test]
fn nothing_gives_an_empty_report() {
    let found = Summary::new(Options::default()).finish();
    assert_eq!(found.totals.tally.operations, 0);
    assert!(found.commands.is_empty() && found.series.bins.is_empty());
    assert_eq!((found.start_ns, found.totals.outstanding_max), (None, None));
}

#[test]
fn latency_and_shares_of_commands() {
    let mut rows: Vec<_> = (1..=100).map(|n| row(READ, n * MS, n * 1_000)).collect();
    rows.push(row(CLOSE, 5 * MS, 50_000));
    let found = report(&rows);
    let read = &found.commands[0];
    assert_eq!((read.command.as_str(), read.tally.operations), ("Read", 100));
    let elapsed = &read.tally.elapsed;
    let near = |found: Option<i64>, exact: i64| (found.unwrap() - exact).abs() <= exact / 1_000;
    assert!(near(elapsed.p50_ns, 50_000) && near(elapsed.p95_ns, 95_000));
    assert!(near(elapsed.p99_ns, 99_000));
    assert_eq!((elapsed.max_ns, elapsed.sum_ns), (Some(100_000), 5_050_000));
    let histogram = elapsed.histogram.as_ref().unwrap();
    assert_eq!(histogram.iter().sum::<u64>(), 100);
    // From 1 to 2 us, from 2 to 5 us.
    assert_eq!((histogram[0], histogram[1], histogram[2]), (0, 1, 3));
    let close = &found.commands[1];
    assert_eq!(close.tally.elapsed.p99_ns, Some(50_000));
    assert!((read.tally.busy_share + close.tally.busy_share - 1.0).abs() < 1e-12);
    assert_eq!(found.totals.tally.busy_ns, 5_100_000);
    assert_eq!(found.start_ns, Some(MS));
    assert_eq!(found.end_ns, Some(100 * MS + 100_000));
}

#[test]
fn waits_by_design_are_not_latency() {
    let found = report(&[
        row(NOTIFY, 0, 9_000 * MS).with(|row| {
            row.set_waits(true);
            row.set_busy_ns(0);
            row.set_outstanding(9);
        }),
        row(READ, 0, MS).with(|row| row.set_outstanding(2)),
        row(READ, MS, MS).with(|row| row.set_outstanding(1)),
    ]);
    let total = &found.totals;
    assert_eq!((total.tally.waits, total.tally.waiting_ns), (1, 9_000 * MS));
    assert_eq!((total.tally.elapsed.n, total.tally.elapsed.max_ns), (2, Some(MS)));
    assert_eq!(total.turnaround.n, 2);
    assert_eq!((total.outstanding_max, total.outstanding_mean), (Some(2), Some(1.5)));
    assert!(found.slowest.iter().all(|row| row.command == "Read"));
}

#[test]
fn an_unknown_latency_is_never_zero() {
    let request_only = row(READ, 0, MS).with(|row| {
        for column in [
            Column::status,
            Column::response_start,
            Column::response_end,
            Column::response_frame,
            Column::elapsed_ns,
            Column::turnaround_ns,
            Column::response_transfer_ns,
            Column::busy_ns,
        ] {
            row.clear(column);
        }
    });
    let cancel = Row { operation: request_only.operation, ..Row::default() }
        .with(|row| row.set_command(code::command(2, CANCEL)));
    let reply_only = row(READ, 0, MS).with(|row| {
        for column in [
            Column::request_start,
            Column::request_end,
            Column::request_frame,
            Column::elapsed_ns,
            Column::turnaround_ns,
            Column::request_transfer_ns,
            Column::busy_ns,
        ] {
            row.clear(column);
        }
    });
    let member = row(CLOSE, 0, MS).with(|row| {
        for column in [
            Column::request_start,
            Column::request_end,
            Column::response_start,
            Column::response_end,
            Column::request_frame,
            Column::response_frame,
            Column::elapsed_ns,
            Column::request_transfer_ns,
            Column::turnaround_ns,
            Column::response_transfer_ns,
            Column::busy_ns,
        ] {
            row.clear(column);
        }
        row.set_compound_index(1);
    });
    let found = report(&[request_only, cancel, reply_only, member]);
    let total = &found.totals.tally;
    assert_eq!((total.operations, total.unanswered, total.request_unseen), (4, 1, 1));
    assert_eq!((total.elapsed.n, total.elapsed.p50_ns), (0, None));
    assert_eq!(found.statuses.unknown, 2);
    assert_eq!(found.series.without_time, 1);
}

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
fn negative_server_times_are_kept() {
    let server = |ns| row(READ, 0, MS).with(|row| row.set_server_ns(ns));
    let found = report(&[server(-300), server(100), server(200)]);
    let times = &found.commands[0].tally.server;
    assert_eq!((times.n, times.negative, times.sum_ns), (3, 1, 0));
    assert_eq!((times.min_ns, times.p50_ns, times.max_ns), (Some(-300), Some(100), Some(200)));
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
fn chains_credits_breaks_and_slowest() {
    let member = |command, index| {
        row(command, 0, (i64::from(index) + 1) * MS).with(|row| {
            row.set_compound(5);
            row.set_compound_index(index);
            row.set_compound_size(2);
            row.set_related(index > 0);
            row.set_credit_charge(1);
            row.set_credits_requested(64);
            row.set_credits_granted(32);
        })
    };
    let broken = row(BREAK, 0, MS).with(|row| {
        row.clear(Column::request_start);
        row.clear(Column::request_frame);
        row.clear(Column::elapsed_ns);
        row.set_detail(code::detail(code::Detail::Break, 1));
        row.set_lease_requested(code::lease(7));
        row.set_lease_granted(code::lease(1));
    });
    let mut summary = Summary::new(Options::default());
    let create = member(CREATE, 0).with(|row| row.set_lease_granted(code::lease(3)));
    summary.operations(&batch(&[create, member(CLOSE, 1), broken])).unwrap();
    summary.connections(&[Connection {
        recording: "a.pcap".into(),
        connection: 1,
        retransmissions_to_client: 3,
        operations: 3,
        ..Connection::default()
    }]);
    let found = summary.finish();
    assert_eq!((found.compounds.chains, found.compounds.members), (1, 2));
    assert_eq!(found.compounds.patterns[0].name, "Create + Close");
    assert_eq!((found.breaks.breaks, found.breaks.acknowledgements), (1, 0));
    assert_eq!(found.breaks.changes[0].name, "Lease RHW → R");
    let connection = &found.connections.rows[0];
    assert_eq!((connection.credits_granted, connection.credit_charge), (64, 2));
    assert_eq!((connection.leases[0].name.as_str(), connection.leases[0].count), ("RH", 1));
    assert_eq!(found.connections.retransmissions, 3);
    assert_eq!(found.slowest[0].elapsed_ns, 2 * MS);
    assert_eq!(found.slowest[0].filter.as_deref(), Some("tcp.port == 50123 && smb2.msg_id == 17"));
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

#[test]
fn a_slow_operation_is_called_as_its_command_is() {
    let of_smb1 = row(NEGOTIATE, 0, 9 * MS).with(|row| {
        row.set_protocol(1);
        row.set_command(code::command(1, 0x72));
    });
    let found = report(&[of_smb1, row(NEGOTIATE, 0, MS)]);
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let slow: Vec<_> = found.slowest.into_iter().map(|row| row.command).collect();
    assert_eq!(slow, names(["Negotiate (SMB1)", "Negotiate"]));
    let commands: Vec<_> = found.commands.into_iter().map(|row| row.command).collect();
    assert_eq!(commands, slow);
}

#[test]
fn a_member_that_is_answered_late_counts_where_its_lead_does() {
    let member = |chain, index: u16, at| {
        row(CREATE, at, MS).with(|row| {
            row.set_compound(chain);
            row.set_compound_index(index);
            row.set_compound_size(3);
            if index > 0 {
                row.clear(Column::request_start);
                row.clear(Column::response_end);
                row.clear(Column::elapsed_ns);
            }
        })
    };
    let found = report(&[
        member(1, 0, 0),
        member(1, 1, 0),
        member(2, 0, 90 * MS),
        member(2, 1, 0),
        member(1, 2, 0),
        member(2, 2, 0),
        member(3, 1, 0),
    ]);
    // The start of the third is unknown.
    assert_eq!(found.series.without_time, 1);
    let of = |at: usize| found.series.bins.get(at).map(|bin| bin.operations);
    assert_eq!((of(0), of(90)), (Some(3), Some(3)));
}

#[test]
fn the_other_tables() {
    let mut summary = Summary::new(Options::default());
    summary.coverage(&Coverage { start: Some(5), end: Some(9), ..Coverage::default() });
    summary.sessions(&[Session {
        guest: Some(true),
        mechanism: Some("NTLMSSP".into()),
        channels: 2,
        ..Session::default()
    }]);
    summary.trees(&[Tree { continuous_availability: Some(true), ..Tree::default() }]);
    let handle = |opened_at, closed_at, operations| Handle {
        opened_at,
        closed_at,
        operations,
        lease: Some("RH".into()),
        ..Handle::default()
    };
    let closed = |handle| Handle { close_operation: Some(9), ..handle };
    summary.handles(&[
        closed(handle(Some(0), Some(7), 2)),
        closed(handle(None, Some(3), 9)),
        handle(Some(1), None, 2),
    ]);
    let found = summary.finish();
    assert_eq!((found.start_ns, found.end_ns), (Some(5), Some(9)));
    assert_eq!((found.sessions.guests, found.sessions.multichannel), (1, 1));
    assert_eq!(found.trees.continuously_available, 1);
    let handles = &found.handles;
    assert_eq!((handles.handles, handles.opened_before), (3, 1));
    assert_eq!((handles.still_open, handles.never_used), (1, 1));
    assert_eq!((handles.open.n, handles.open.p50_ns), (1, Some(7)));
    assert_eq!(handles.leases[0].count, 3);
}

#[test]
fn an_open_that_ended_without_a_close_may_have_been_used() {
    let mut summary = Summary::new(Options::default());
    let handle = |close_operation, operations, reads| Handle {
        opened_at: Some(0),
        closed_at: Some(7),
        close_operation,
        operations,
        reads,
        ..Handle::default()
    };
    // Nothing in between; with the connection, a query; with it, nothing; with the tree, a read.
    summary.handles(&[
        handle(Some(9), 2, 0),
        handle(None, 2, 0),
        handle(None, 1, 0),
        handle(Some(9), 2, 1),
    ]);
    assert_eq!(summary.finish().handles.never_used, 2);
}

/// The batch with its text as plain strings.
fn plain(batch: &RecordBatch, to: &DataType) -> RecordBatch {
    let schema = batch.schema();
    let (fields, columns): (Vec<_>, Vec<ArrayRef>) = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| match field.data_type() {
            DataType::Dictionary(..) => {
                (Arc::new(Field::new(field.name(), to.clone(), true)), cast(column, to).unwrap())
            }
            _ => (field.clone(), column.clone()),
        })
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[test]
fn text_may_be_encoded_or_plain() {
    let rows: Vec<_> = (0..50)
        .map(|n| row(READ, n, MS).at("\\\\s\\a", &format!("d{}\\f{n}.txt", n % 3)).by("c", "u"))
        .collect();
    let encoded = batch(&rows);
    let expected = report(&rows);
    for to in [DataType::Utf8, DataType::Utf8View, DataType::LargeUtf8] {
        let mut summary = Summary::new(Options::default());
        summary.operations(&plain(&encoded, &to)).unwrap();
        assert_eq!(summary.finish(), expected, "{to}");
    }
}

#[test]
fn absent_columns_read_as_null() {
    let whole = batch(&[row(READ, 0, MS)]);
    let place = whole.schema().index_of("command").unwrap();
    let mut summary = Summary::new(Options::default());
    summary.operations(&whole.project(&[place]).unwrap()).unwrap();
    let found = summary.finish();
    assert_eq!((found.commands[0].command.as_str(), found.commands[0].protocol), ("Read", None));
    assert_eq!(found.totals.tally.elapsed.n, 0);
}

fn any_row() -> impl Strategy<Value = Row> {
    (
        (prop::sample::select(vec![CREATE, CLOSE, READ, WRITE, NOTIFY]), 0i64..2_000, 0i64..5_000),
        (0u32..4, 0usize..30, 0usize..3, any::<bool>()),
        (prop::option::of(-50i64..500), prop::option::of(0u64..100_000), 0u64..4, 0u16..3),
    )
        .prop_map(
            |(
                (command, start, elapsed),
                (status, path, user, waits),
                (server, bytes, chain, index),
            )| {
                row(command, start * MS, elapsed * 1_000)
                    .at(&format!("s{}", path % 2), &format!("d{}\\f{path}.x{}", path % 5, path % 4))
                    .by("c", &format!("u{user}"))
                    .with(|row| {
                        row.set_status([0, 0xc000_0034, 0xc000_0022, 0x8000_0006][status as usize]);
                        row.set_waits(waits && command == NOTIFY);
                        row.set_connection(user as u64);
                        if let Some(server) = server {
                            row.set_server_ns(server * 1_000);
                        }
                        if let Some(bytes) = bytes {
                            row.set_requested_bytes(bytes);
                            row.set_transferred_bytes(bytes / 2);
                        }
                        if chain > 0 {
                            row.set_compound(chain);
                            row.set_compound_index(index);
                            row.set_compound_size(3);
                        }
                    })
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn how_rows_are_cut_into_batches_does_not_matter(
        rows in prop::collection::vec(any_row(), 1..200),
        size in 1usize..50,
    ) {
        let whole = report(&rows);
        let parts: Vec<_> = rows.chunks(size).map(batch).collect();
        let mut summary = Summary::new(Options::default());
        for part in &parts {
            summary.operations(part).unwrap();
        }
        prop_assert_eq!(&summary.finish(), &whole);
        // Arrow may join dictionaries without making them distinct.
        let joined = concat_batches(&parts[0].schema(), &parts).unwrap();
        let mut summary = Summary::new(Options::default());
        summary.operations(&joined).unwrap();
        prop_assert_eq!(&summary.finish(), &whole);
        let sum = |shares: Vec<f64>| shares.into_iter().sum::<f64>();
        let commands = sum(whole.commands.iter().map(|row| row.tally.busy_share).collect());
        let users = sum(whole.users.rows.iter().map(|row| row.tally.busy_share).collect());
        if whole.totals.tally.busy_ns > 0 {
            prop_assert!((commands - 1.0).abs() < 1e-9 && (users - 1.0).abs() < 1e-9);
        }
        let split = &whole.totals.busy_split;
        prop_assert_eq!(
            split.request_transfer_ns + split.server_ns + split.network_ns + split.unsplit_ns
                + split.response_transfer_ns,
            whole.totals.tally.busy_ns
        );
    }
}

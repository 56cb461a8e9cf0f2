//! How rows are stored does not matter: batches of any size, encoded or plain text, absent columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Schema};
use proptest::prelude::*;
use smbscope_analysis::summary::{Options, Summary, columns};

use crate::{CLOSE, CREATE, MS, NOTIFY, READ, Row, WRITE, batch, report, row};

#[test]
fn every_column_that_it_reads_is_in_the_schema() {
    let schema = smbscope_tables::operation::schema();
    for name in columns() {
        assert!(schema.index_of(name).is_ok(), "{name}");
    }
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

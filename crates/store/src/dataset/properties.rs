//! How each column is stored in a Parquet file: encoding, dictionary, statistics.
//!
//! Chosen by measuring rows like a metadata workload's (`docs/measurements/benchmarks.md`): a dictionary costs a
//! hash per row and pays where few values repeat; numbers that grow or vary little are shortest and
//! cheapest as differences (DELTA_BINARY_PACKED); statistics pay where one prunes by them.

use arrow::datatypes::{DataType, Schema};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use smbscope_tables::SCHEMA_VERSION;

use crate::Table;

/// Key of the table's name in a file's metadata.
pub const TABLE_KEY: &str = "smbscope.table";
/// Key of the version of the schemas.
pub const SCHEMA_VERSION_KEY: &str = "smbscope.schema_version";
/// Key of the version of smbscope that wrote the file.
pub const VERSION_KEY: &str = "smbscope.version";

/// Usual rows of a row group: small enough for bounded memory and for pruning by time.
pub const ROW_GROUP_ROWS: usize = 64 * 1024;

/// The writer's properties for `table`.
pub fn properties(
    table: Table,
    schema: &Schema,
    row_group_rows: usize,
) -> Result<WriterProperties, ParquetError> {
    let mut builder = noted(table)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        let path = ColumnPath::from(field.name().as_str());
        builder = match layout(table, field.name(), field.data_type()) {
            Layout::Plain => builder.set_column_dictionary_enabled(path, false),
            Layout::Differences => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Layout::Noise => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_compression(path.clone(), Compression::UNCOMPRESSED)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Layout::Dictionary => {
                builder.set_column_statistics_enabled(path, EnabledStatistics::None)
            }
        };
    }
    Ok(builder.build())
}

/// The properties of a piece of a part, which lives for seconds: what costs the least.
pub fn piece_properties(table: Table) -> WriterProperties {
    noted(table)
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .build()
}

/// What all files of a table say about themselves.
fn noted(table: Table) -> WriterPropertiesBuilder {
    let note = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    WriterProperties::builder()
        .set_created_by(concat!("smbscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![
            note(TABLE_KEY, table.name().to_owned()),
            note(SCHEMA_VERSION_KEY, SCHEMA_VERSION.to_string()),
            note(VERSION_KEY, env!("CARGO_PKG_VERSION").to_owned()),
        ]))
}

/// How one column is written.
enum Layout {
    /// Plain encoding: general compression handles values that rarely change.
    Plain,
    /// As differences: numbers that grow, and durations.
    Differences,
    /// The same, of which compression makes nothing: times to the nanosecond, and what is in no
    /// order (0.9 to 0.99 of the size for a tenth of the whole import's time).
    Noise,
    /// As a dictionary, without statistics: no query prunes by them, and they cost a comparison per row.
    Dictionary,
}

fn layout(table: Table, name: &str, data_type: &DataType) -> Layout {
    match (data_type, name) {
        // Names of few scenarios, counters and kinds in many rows.
        (DataType::Utf8, _)
            if matches!(table, Table::Scenarios | Table::Counters | Table::Slices) =>
        {
            Layout::Dictionary
        }
        // Times to the nanosecond.
        (_, "start" | "duration_ns" | "cpu_ns" | "cycles") if table == Table::Slices => {
            Layout::Noise
        }
        // Arbitrary numbers of which there are few: their differences would not be small.
        (_, "session_id") => Layout::Dictionary,
        (
            _,
            "operation" | "handle" | "message_id" | "tcp_sequence" | "request_frame"
            | "request_start" | "request_end" | "response_start" | "response_end" | "elapsed_ns"
            | "turnaround_ns" | "server_ns" | "client_gap_ns" | "busy_ns" | "opened_at"
            | "closed_at" | "create_operation",
        ) => Layout::Noise,
        (_, "outstanding") => Layout::Differences,
        (DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..), _) => Layout::Differences,
        (DataType::Dictionary(..) | DataType::FixedSizeBinary(_), _) => Layout::Dictionary,
        _ => Layout::Plain,
    }
}

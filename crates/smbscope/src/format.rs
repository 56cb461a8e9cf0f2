//! Rows in the format of `--format`, written as they arrive.
//!
//! text is for people: numbers are right-aligned, unknown values are blank. The others are for
//! programs and lossless: csv (RFC 4180), json (one object per line), parquet, arrow (the IPC
//! stream format).

mod machine;
mod table;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use clap::ValueEnum;

use crate::output::Output;
use crate::terminal;

pub use smbscope_report::table::{Align, Column};

/// Formats of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RowFormat {
    /// Text or an aligned table.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
    /// Comma-separated values with a header.
    Csv,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC stream.
    Arrow,
}

/// Formats of everything that is not rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs.
    Json,
}

impl RowFormat {
    /// Whether a terminal cannot show it.
    pub fn is_binary(self) -> bool {
        matches!(self, RowFormat::Parquet | RowFormat::Arrow)
    }
}

/// Takes rows and writes them.
pub trait RowWriter {
    /// Writes rows.
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()>;
    /// Writes the end of the format and flushes the output.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

/// How JSON objects represent unknown values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonNulls {
    /// As null.
    Explicit,
    /// Omitted.
    LeftOut,
}

/// A whole table as text, for small ones; the last column wraps to fit the terminal.
pub fn lines(columns: &[Column], rows: &[Vec<String>], style: (&str, &str)) -> String {
    smbscope_report::table::lines(columns, rows, style, terminal::width())
}

/// Starts to write rows of `schema`; `readable` durations and sizes are for text alone.
pub fn row_writer(
    format: RowFormat,
    nulls: JsonNulls,
    readable: bool,
    schema: &SchemaRef,
    output: Output,
) -> anyhow::Result<Box<dyn RowWriter>> {
    match format {
        RowFormat::Text => Ok(Box::new(table::TableWriter::new(schema, readable, output))),
        RowFormat::Json => Ok(Box::new(machine::Json::new(nulls, output))),
        RowFormat::Csv => machine::Csv::begin(schema, output),
        RowFormat::Parquet => machine::Parquet::begin(schema, output),
        RowFormat::Arrow => machine::Arrow::begin(schema, output),
    }
}

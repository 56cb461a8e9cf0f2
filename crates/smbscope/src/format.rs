//! Rows in the form that `--format` asks for, written as they come.
//!
//! text is for people: numbers right-aligned, what is not known left blank. The others are for
//! programs and lose nothing: csv (RFC 4180), json (one object per line), parquet, arrow (the IPC
//! stream format).

mod machine;
mod table;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use clap::ValueEnum;

use crate::output::Output;
use crate::terminal;

pub use smbscope_report::table::{Align, Column};

/// Forms of rows.
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

/// Forms of everything that is not rows.
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
    /// Writes what stands at the end, and hands everything on.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

/// What a JSON object does with a value that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonNulls {
    /// Says null.
    Explicit,
    /// Leaves it out.
    LeftOut,
}

/// A whole table as text, for small ones; the last column wraps to fit the terminal.
pub fn lines(columns: &[Column], rows: &[Vec<String>], style: (&str, &str)) -> String {
    smbscope_report::table::lines(columns, rows, style, terminal::width())
}

/// Begins to write rows of `schema`.
pub fn row_writer(
    format: RowFormat,
    nulls: JsonNulls,
    schema: &SchemaRef,
    output: Output,
) -> anyhow::Result<Box<dyn RowWriter>> {
    match format {
        RowFormat::Text => Ok(Box::new(table::TableWriter::new(schema, output))),
        RowFormat::Json => Ok(Box::new(machine::Json::new(nulls, output))),
        RowFormat::Csv => machine::Csv::begin(schema, output),
        RowFormat::Parquet => machine::Parquet::begin(schema, output),
        RowFormat::Arrow => machine::Arrow::begin(schema, output),
    }
}

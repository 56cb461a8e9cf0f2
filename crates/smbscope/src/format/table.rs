//! Rows as an aligned table for people, written as they come.
//!
//! Widths come from the first rows, so that any number of rows can follow in bounded memory; on a
//! terminal the widest columns are narrowed until a line fits, and cells end in `…`.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use smbscope_report::format::{bytes, duration, sanitized};
use smbscope_report::table::{Align, Column, Layout};

use unicode_width::UnicodeWidthStr as _;

use super::RowWriter;
use crate::output::Output;
use crate::terminal;

/// Rows that decide on widths.
const PREVIEW_ROWS: usize = 1000;
/// Widest column where there is no terminal to fit.
const CELL_MAX: usize = 120;

/// A row with more columns than this that does not fit the terminal is written as a list.
const COLUMNS_MAX: usize = 8;

/// Writes rows as they come.
pub struct TableWriter {
    columns: Vec<Column>,
    /// What the numbers of each column are.
    units: Vec<Unit>,
    /// Rows written as lists so far, where a line has no room for all columns.
    listed: Option<u64>,
    preview: Vec<Vec<String>>,
    layout: Option<Layout>,
    output: Output,
}

impl TableWriter {
    /// `readable`: durations and sizes as people write them; otherwise as they are.
    pub fn new(schema: &SchemaRef, readable: bool, output: Output) -> TableWriter {
        let units = schema.fields().iter().map(|field| {
            if readable { Unit::from_name(field.name(), field.data_type()) } else { Unit::None }
        });
        let units = units.collect();
        let fields = schema.fields().iter();
        let columns = fields.map(|field| Column {
            title: sanitized(field.name()),
            align: if is_number(field.data_type()) { Align::Right } else { Align::Left },
        });
        let columns = columns.collect();
        TableWriter { columns, units, listed: None, preview: Vec::new(), layout: None, output }
    }

    /// A row as a list of its columns; those without a value are left out.
    fn push_list(&mut self, out: &mut String, row: &[String]) {
        let number = self.listed.map_or(1, |listed| listed + 1);
        self.listed = Some(number);
        let (begin, end) = self.output.bold();
        let widest = self.columns.iter().map(|column| column.title.width()).max().unwrap_or(0);
        out.push_str(&format!("{begin}row {number}{end}\n"));
        for (column, cell) in self.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
            let room = widest - column.title.width();
            out.push_str(&format!("  {}{}  {cell}\n", column.title, " ".repeat(room)));
        }
    }

    /// Decides on widths and writes the rows that waited for them.
    fn begin(&mut self) -> anyhow::Result<()> {
        let mut layout = Layout::natural(self.columns.clone(), &self.preview);
        layout.limit_columns(CELL_MAX);
        if let Some(width) = self.output.is_terminal().then(terminal::width).flatten() {
            if self.columns.len() > COLUMNS_MAX && layout.width() > width {
                self.listed = Some(0);
                self.layout = Some(layout);
                let mut out = String::new();
                for row in std::mem::take(&mut self.preview) {
                    self.push_list(&mut out, &row);
                }
                return self.output.text(&out);
            }
            layout.fit(width);
        }
        let (begin, end) = self.output.bold();
        let mut out = String::new();
        layout.push_header(&mut out, (begin, end));
        for row in std::mem::take(&mut self.preview) {
            layout.push_row(&mut out, row.iter().map(String::as_str));
        }
        self.layout = Some(layout);
        self.output.text(&out)
    }
}

impl RowWriter for TableWriter {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let options = FormatOptions::default();
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<Result<Vec<_>, _>>()?;
        let mut out = String::new();
        let mut cells = vec![String::new(); formatters.len()];
        for row in 0..batch.num_rows() {
            for ((formatter, cell), unit) in formatters.iter().zip(&mut cells).zip(&self.units) {
                cell.clear();
                let value = formatter.value(row).try_to_string()?;
                match unit.text(&value) {
                    Some(text) => cell.push_str(&text),
                    None => cell.push_str(&sanitized(&value)),
                }
            }
            if self.listed.is_some() {
                self.push_list(&mut out, &cells);
            } else if let Some(layout) = &self.layout {
                layout.push_row(&mut out, cells.iter().map(String::as_str));
            } else {
                self.preview.push(cells.clone());
                if self.preview.len() >= PREVIEW_ROWS {
                    self.begin()?;
                }
            }
        }
        self.output.text(&out)
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        if self.layout.is_none() {
            self.begin()?;
        }
        self.output.finish()
    }
}

/// What the numbers of a column are, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    None,
    Nanoseconds,
    Bytes,
}

impl Unit {
    fn from_name(name: &str, data_type: &DataType) -> Unit {
        match name {
            _ if !is_number(data_type) => Unit::None,
            name if name.ends_with("_ns") => Unit::Nanoseconds,
            name if name.ends_with("_bytes") || name == "bytes" => Unit::Bytes,
            _ => Unit::None,
        }
    }

    /// A number in that unit as people write it.
    fn text(self, value: &str) -> Option<String> {
        let value = value.parse::<f64>().ok().filter(|_| self != Unit::None)?;
        Some(match self {
            Unit::Bytes if value >= 0.0 => bytes(value as u64),
            Unit::Nanoseconds => duration(value as i64),
            _ => return None,
        })
    }
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_unit_in_their_name_are_readable() {
        let text = |name: &str, value: &str| Unit::from_name(name, &DataType::Int64).text(value);
        assert_eq!(text("p95_ns", "4510000000").as_deref(), Some("4.51 s"));
        assert_eq!(text("p95_ns", "2500.5").as_deref(), Some("2.50 µs"));
        assert_eq!(text("read_bytes", "1048576").as_deref(), Some("1.00 MiB"));
        assert_eq!(text("read_bytes", "-1"), None);
        assert_eq!(text("n", "1048576"), None);
        assert_eq!(text("p95_ns", ""), None);
        assert!(Unit::from_name("path_bytes", &DataType::Utf8) == Unit::None);
    }
}

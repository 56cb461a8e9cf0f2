//! Rows as an aligned table for people, written as they come.
//!
//! Widths come from the first rows, so that any number of rows can follow in bounded memory; on a
//! terminal the widest columns are narrowed until a line fits, and cells end in `…`.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use smbscope_report::format::harmless;
use smbscope_report::table::{Align, Column, Layout};

use super::RowWriter;
use crate::output::Output;
use crate::terminal;

/// Rows that decide on widths.
const PREVIEW_ROWS: usize = 1000;
/// Widest column where there is no terminal to fit.
const CELL_MAX: usize = 120;

/// Writes rows as they come.
pub struct TableWriter {
    columns: Vec<Column>,
    preview: Vec<Vec<String>>,
    layout: Option<Layout>,
    output: Output,
}

impl TableWriter {
    pub fn new(schema: &SchemaRef, output: Output) -> TableWriter {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| Column {
            title: harmless(field.name()),
            align: if is_number(field.data_type()) { Align::Right } else { Align::Left },
        });
        TableWriter { columns: columns.collect(), preview: Vec::new(), layout: None, output }
    }

    /// Decides on widths and writes the rows that waited for them.
    fn begin(&mut self) -> anyhow::Result<()> {
        let mut layout = Layout::natural(self.columns.clone(), &self.preview);
        layout.limit_columns(CELL_MAX);
        if let Some(width) = self.output.is_terminal().then(terminal::width).flatten() {
            layout.fit(width);
        }
        let (begin, end) = self.output.bold();
        let mut out = String::new();
        layout.push_header(&mut out, (&begin, end));
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
            for (formatter, cell) in formatters.iter().zip(&mut cells) {
                cell.clear();
                let value = formatter.value(row).try_to_string()?;
                cell.push_str(&harmless(&value));
            }
            if let Some(layout) = &self.layout {
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

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

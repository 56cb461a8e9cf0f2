//! Aligned columns for people.
//!
//! Widths come from the first rows, so that any number of rows can follow in bounded memory; on a
//! terminal the widest columns give way until a line fits, and cells end in `…`.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use smbscope_report::format::harmless;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::RowWriter;
use crate::output::Output;
use crate::terminal;

/// Rows that decide on widths.
const PREVIEW_ROWS: usize = 1000;
/// Most characters of a column while there is no terminal whose width matters.
const CELL_MAX: usize = 120;
/// A column is not made narrower than this.
const CELL_MIN: usize = 8;
const GAP: usize = 2;

/// Which side a column's cells stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// What stands above it.
    pub title: String,
    /// Where its cells stand.
    pub align: Align,
}

impl Column {
    /// A column of text.
    pub fn left(title: impl Into<String>) -> Column {
        Column { title: title.into(), align: Align::Left }
    }

    /// A column of numbers.
    pub fn right(title: impl Into<String>) -> Column {
        Column { title: title.into(), align: Align::Right }
    }

    /// A column of names and then columns of numbers.
    pub fn numbers_of(names: &str, titles: &[&str]) -> Vec<Column> {
        let numbers = titles.iter().map(|title| Column::right(*title));
        std::iter::once(Column::left(names)).chain(numbers).collect()
    }
}

/// A whole table as lines, for small ones that are at hand. The last column wraps on terminals.
pub fn lines(columns: &[Column], rows: &[Vec<String>], style: (&str, &str)) -> String {
    let width = terminal::width();
    let mut widths = natural(columns, rows);
    let last = columns.len().saturating_sub(1);
    let before: usize = widths.iter().take(last).map(|width| width + GAP).sum();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(before).max(20));
    if let Some(width) = widths.get_mut(last) {
        *width = (*width).min(room);
    }
    let mut out = String::new();
    push_header(&mut out, columns, &widths, style);
    for row in rows {
        let wrapped = wrap(row.last().map_or("", String::as_str), room);
        for (place, piece) in wrapped.into_iter().enumerate() {
            let mut cells: Vec<&str> = match place {
                0 => row.iter().map(String::as_str).collect(),
                _ => vec![""; columns.len()],
            };
            if let Some(cell) = cells.last_mut() {
                *cell = piece;
            }
            push_row(&mut out, columns, &widths, cells.into_iter());
        }
    }
    out
}

/// Writes rows as they come.
pub struct TableWriter {
    columns: Vec<Column>,
    preview: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
    output: Output,
}

impl TableWriter {
    pub fn new(schema: &SchemaRef, output: Output) -> TableWriter {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| Column {
            title: harmless(field.name()),
            align: if is_number(field.data_type()) { Align::Right } else { Align::Left },
        });
        TableWriter { columns: columns.collect(), preview: Vec::new(), widths: None, output }
    }

    /// Decides on widths and writes what waited for that.
    fn begin(&mut self) -> anyhow::Result<()> {
        let mut widths = natural(&self.columns, &self.preview);
        widths.iter_mut().for_each(|width| *width = (*width).min(CELL_MAX));
        if let Some(width) = self.output.is_terminal().then(terminal::width).flatten() {
            fit(&mut widths, width);
        }
        let (begin, end) = self.output.bold();
        let mut out = String::new();
        push_header(&mut out, &self.columns, &widths, (&begin, end));
        for row in std::mem::take(&mut self.preview) {
            push_row(&mut out, &self.columns, &widths, row.iter().map(String::as_str));
        }
        self.widths = Some(widths);
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
            if let Some(widths) = &self.widths {
                push_row(&mut out, &self.columns, widths, cells.iter().map(String::as_str));
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
        if self.widths.is_none() {
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

/// The width that shows every cell.
fn natural(columns: &[Column], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<_> = columns.iter().map(|column| column.title.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    widths
}

/// Takes from the widest columns until a line fits.
fn fit(widths: &mut [usize], line: usize) {
    loop {
        let total: usize = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let Some(widest) = widths.iter_mut().max() else { return };
        if total <= line || *widest <= CELL_MIN {
            return;
        }
        *widest -= 1;
    }
}

fn push_header(out: &mut String, columns: &[Column], widths: &[usize], style: (&str, &str)) {
    out.push_str(style.0);
    push_row(out, columns, widths, columns.iter().map(|column| column.title.as_str()));
    if !style.1.is_empty() {
        // The style ends before the line does.
        out.pop();
        out.push_str(style.1);
        out.push('\n');
    }
}

fn push_row<'a>(
    out: &mut String,
    columns: &[Column],
    widths: &[usize],
    cells: impl Iterator<Item = &'a str>,
) {
    let begin = out.len();
    for (place, ((column, &width), cell)) in columns.iter().zip(widths).zip(cells).enumerate() {
        if place > 0 {
            out.extend(std::iter::repeat_n(' ', GAP));
        }
        let used = cell.width();
        let blank = std::iter::repeat_n(' ', width.saturating_sub(used));
        match column.align {
            _ if used > width => push_cut(out, cell, width),
            Align::Left => {
                out.push_str(cell);
                out.extend(blank);
            }
            Align::Right => {
                out.extend(blank);
                out.push_str(cell);
            }
        }
    }
    let end = out.trim_end_matches(' ').len().max(begin);
    out.truncate(end);
    out.push('\n');
}

fn push_cut(out: &mut String, cell: &str, width: usize) {
    let mut used = 0;
    for c in cell.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        out.push(c);
    }
    out.push('…');
}

/// Pieces of at most `width` columns, cut at spaces where there are any.
fn wrap(text: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.width() > width {
        let mut used = 0;
        let mut hard = rest.len();
        for (place, c) in rest.char_indices() {
            used += c.width().unwrap_or(0);
            if used > width {
                hard = place;
                break;
            }
        }
        let head = rest.get(..hard).unwrap_or(rest);
        let cut = head.rfind(' ').filter(|&place| place > 0).unwrap_or(hard);
        if cut == 0 {
            break;
        }
        let (piece, tail) = rest.split_at(cut);
        pieces.push(piece);
        rest = tail.trim_start_matches(' ');
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(aligns: &[(&str, Align)]) -> Vec<Column> {
        aligns.iter().map(|&(title, align)| Column { title: title.into(), align }).collect()
    }

    #[test]
    fn numbers_stand_right_and_lines_have_no_blank_end() {
        let columns = columns(&[("name", Align::Left), ("n", Align::Right)]);
        let rows = [vec!["a".into(), "1".into()], vec!["long one".into(), "".into()]];
        assert_eq!(lines(&columns, &rows, ("", "")), "name      n\na         1\nlong one\n");
    }

    #[test]
    fn cells_give_way_to_the_terminal() {
        let mut widths = [30, 10, 4];
        fit(&mut widths, 30);
        assert_eq!(widths.iter().sum::<usize>() + 4, 30);
        assert_eq!(widths[2], 4);
        let mut out = String::new();
        push_cut(&mut out, "日本語テキスト", 5);
        assert_eq!(out, "日本…");
    }

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
    }
}

//! One operation as a line, in the style of a log.
//!
//! Time, client, command, detail, status unless it is success, path, offset+length, elapsed and
//! the server's part of it, frames. Unknown values read `-`; values that an operation does not have
//! (the offset of a Create) are left out.

use anstyle::{AnsiColor, Effects, Style};
use arrow::array::RecordBatch;
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use smbscope_report::Clock;
use smbscope_report::format::{duration, sanitized};
use smbscope_tables::named_columns::{Flags, Numbers, Text};

use crate::cli::TimeForm;
use crate::filter_options::FilterOptions;
use crate::format::RowWriter;
use crate::output::Output;

/// The columns that a line needs.
pub const COLUMNS: &[&str] = &[
    "client",
    "share",
    "command",
    "detail",
    "status",
    "status_name",
    "path",
    "offset_bytes",
    "requested_bytes",
    "transferred_bytes",
    "request_start",
    "response_start",
    "elapsed_ns",
    "server_ns",
    "encrypted",
    "request_frame",
    "response_frame",
];

/// Widths that align most lines; longer texts shift the rest to the right.
const CLIENT: usize = 15;
const COMMAND: usize = 14;

/// Writes lines.
pub struct LineWriter {
    time: TimeForm,
    /// Its zone is that of the first operation.
    filter: FilterOptions,
    /// The origin of relative times, and the zone that holds then.
    first: Option<(i64, Clock)>,
    faint: (String, &'static str),
    bold: (String, &'static str),
    red: (String, &'static str),
    output: Output,
}

impl LineWriter {
    /// Lines to `output`.
    pub fn new(time: TimeForm, filter: FilterOptions, output: Output) -> LineWriter {
        LineWriter {
            time,
            filter,
            first: None,
            faint: output.style(Style::new().effects(Effects::DIMMED)),
            bold: output.style(Style::new().effects(Effects::BOLD)),
            red: output.style(AnsiColor::Red.on_default()),
            output,
        }
    }

    fn push_line(&mut self, out: &mut String, rows: &Rows, row: usize) {
        let time = rows.request_start.get(row).or_else(|| rows.response_start.get(row));
        let time = time.map_or("-".to_owned(), |time| self.time_of(time));
        let width = match self.time {
            TimeForm::Clock => 27,
            TimeForm::Epoch => 17,
            TimeForm::Relative => 10,
        };
        out.push_str(&format!("{}{time:>width$}{}", self.faint.0, self.faint.1));
        let client = rows.client.get(row).unwrap_or("-");
        push_field(out, |out| out.push_str(&sanitized(client)));
        pad(out, CLIENT.saturating_sub(client.len()));
        let command = match rows.command.get(row) {
            Some(command) => command,
            None if rows.encrypted.get(row) => "(encrypted)",
            None => "-",
        };
        push_field(out, |out| {
            out.push_str(&self.bold.0);
            out.push_str(&sanitized(command));
            out.push_str(self.bold.1);
        });
        pad(out, COMMAND.saturating_sub(command.len()));
        if let Some(detail) = rows.detail.get(row) {
            push_field(out, |out| out.push_str(&sanitized(detail)));
        }
        self.push_status(out, rows, row);
        push_path(out, rows, row);
        if let Some(offset) = rows.offset.get(row) {
            let bytes = rows.transferred_bytes.get(row).or_else(|| rows.requested_bytes.get(row));
            let bytes = bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
            push_field(out, |out| out.push_str(&format!("{offset}+{bytes}")));
        }
        let elapsed = rows.elapsed_ns.get(row).map_or("-".to_owned(), duration);
        let server = rows.server_ns.get(row).map_or("-".to_owned(), duration);
        push_field(out, |out| out.push_str(&format!("{elapsed} ({server})")));
        let frame = |frame: Option<u64>| frame.map_or("-".to_owned(), |frame| frame.to_string());
        let frames = (frame(rows.request_frame.get(row)), frame(rows.response_frame.get(row)));
        push_field(out, |out| {
            out.push_str(&format!("{}#{}/{}{}", self.faint.0, frames.0, frames.1, self.faint.1));
        });
        out.push('\n');
    }

    fn time_of(&mut self, time: i64) -> String {
        let begin = || (time, self.filter.clock(Some(time)));
        let (first, clock) = self.first.get_or_insert_with(begin);
        match self.time {
            TimeForm::Clock => clock.exact(time),
            TimeForm::Epoch => seconds(time),
            TimeForm::Relative => seconds(time.saturating_sub(*first)),
        }
    }

    fn push_status(&self, out: &mut String, rows: &Rows, row: usize) {
        let status = match (rows.status.get(row), rows.response_frame.get(row)) {
            (Some(0), _) => return,
            (Some(_), _) => rows.status_name.get(row).unwrap_or("-"),
            (None, None) => "(no reply)",
            (None, Some(_)) => return,
        };
        push_field(out, |out| {
            out.push_str(&self.red.0);
            out.push_str(&sanitized(status));
            out.push_str(self.red.1);
        });
    }
}

impl RowWriter for LineWriter {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let rows = Rows::from_batch(batch)?;
        let mut out = String::with_capacity(batch.num_rows() * 160);
        for row in 0..batch.num_rows() {
            self.push_line(&mut out, &rows, row);
        }
        self.output.text(&out)?;
        // Lines appear immediately, not when a buffer is full.
        let flushed = std::io::Write::flush(&mut self.output);
        self.output.watch().check(flushed)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        self.output.finish()
    }
}

/// Writes the share before the path, or alone for a tree connect.
fn push_path(out: &mut String, rows: &Rows, row: usize) {
    let (share, path) = (rows.share.get(row), rows.path.get(row));
    let about_share = rows.command.get(row).is_some_and(|command| command.starts_with("Tree"));
    match (share, path) {
        (share, Some(path)) => push_field(out, |out| {
            if let Some(share) = share {
                out.push_str(&sanitized(share));
                if !path.starts_with('\\') {
                    out.push('\\');
                }
            }
            out.push_str(&sanitized(path));
        }),
        (Some(share), None) if about_share => {
            push_field(out, |out| out.push_str(&sanitized(share)))
        }
        _ => {}
    }
}

fn push_field(out: &mut String, push: impl FnOnce(&mut String)) {
    out.push_str("  ");
    push(out);
}

/// A point in time, or a distance between two, as seconds with microseconds.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1000;
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn pad(out: &mut String, blanks: usize) {
    out.extend(std::iter::repeat_n(' ', blanks));
}

/// A batch's columns by name; missing columns read as unknown.
struct Rows {
    client: Text,
    share: Text,
    command: Text,
    detail: Text,
    status: Numbers<UInt32Type>,
    status_name: Text,
    path: Text,
    offset: Numbers<UInt64Type>,
    requested_bytes: Numbers<UInt64Type>,
    transferred_bytes: Numbers<UInt64Type>,
    request_start: Numbers<Int64Type>,
    response_start: Numbers<Int64Type>,
    elapsed_ns: Numbers<Int64Type>,
    server_ns: Numbers<Int64Type>,
    encrypted: Flags,
    request_frame: Numbers<UInt64Type>,
    response_frame: Numbers<UInt64Type>,
}

impl Rows {
    fn from_batch(batch: &RecordBatch) -> Result<Rows, ArrowError> {
        Ok(Rows {
            client: Text::from_batch(batch, "client")?,
            share: Text::from_batch(batch, "share")?,
            command: Text::from_batch(batch, "command")?,
            detail: Text::from_batch(batch, "detail")?,
            status: Numbers::from_batch(batch, "status")?,
            status_name: Text::from_batch(batch, "status_name")?,
            path: Text::from_batch(batch, "path")?,
            offset: Numbers::from_batch(batch, "offset_bytes")?,
            requested_bytes: Numbers::from_batch(batch, "requested_bytes")?,
            transferred_bytes: Numbers::from_batch(batch, "transferred_bytes")?,
            request_start: Numbers::from_batch(batch, "request_start")?,
            response_start: Numbers::from_batch(batch, "response_start")?,
            elapsed_ns: Numbers::from_batch(batch, "elapsed_ns")?,
            server_ns: Numbers::from_batch(batch, "server_ns")?,
            encrypted: Flags::from_batch(batch, "encrypted")?,
            request_frame: Numbers::from_batch(batch, "request_frame")?,
            response_frame: Numbers::from_batch(batch, "response_frame")?,
        })
    }
}

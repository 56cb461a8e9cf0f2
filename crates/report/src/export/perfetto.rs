//! A trace for Perfetto (ui.perfetto.dev): a track for each connection, a slice for each operation, and
//! within it the slices that a probe recorded for it. For CPU traces, tracks for each CPU.

mod packets;
mod processors;
mod rows;
mod tracks;

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use smbscope_tables::slice::Slice;

use crate::value::format;
use packets::{TraceWriter, Type, Value};
use tracks::{Tracks, Uuid};

pub use rows::{COLUMNS, Rows};

/// A trace that is being written.
pub struct PerfettoTrace<W> {
    writer: TraceWriter<W>,
    tracks: Tracks,
    counts: Counts,
}

/// What was written and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub operations: u64,
    pub slices: u64,
    /// Interrupts and runs of deferred work.
    pub interrupts: u64,
    /// Operations whose request or reply is missing.
    pub instants: u64,
    /// Operations that were left out because they have no times of their own.
    pub without_time: u64,
}

impl Counts {
    /// What was written of a CPU trace, in words.
    pub fn text_of_trace(&self) -> String {
        format!("interrupts and deferred work: {}", format::count(self.interrupts))
    }

    /// One line for people; `orphans` is the number of slices whose operation was not found.
    pub fn text(&self, orphans: u64) -> String {
        let lines = [
            (self.operations, "operations"),
            (self.slices, "slices within them"),
            (self.instants, "operations without request or reply, shown as an instant"),
            (self.without_time, "operations without times of their own, left out"),
            (orphans, "slices without an operation, left out"),
        ];
        let shown =
            lines.iter().enumerate().filter(|(index, (count, _))| *index == 0 || *count > 0);
        let shown = shown.map(|(_, (count, what))| format!("{what}: {}", format::count(*count)));
        shown.collect::<Vec<_>>().join("; ")
    }
}

/// The columns of a batch of operations, for [`PerfettoTrace::operation`].
pub fn rows(batch: &RecordBatch) -> Result<Rows, ArrowError> {
    Rows::from_batch(batch)
}

impl<W: Write> PerfettoTrace<W> {
    /// Begins a trace in `out`.
    pub fn new(out: W) -> PerfettoTrace<W> {
        PerfettoTrace {
            writer: TraceWriter::new(out),
            tracks: Tracks::default(),
            counts: Counts::default(),
        }
    }

    /// Ends the trace.
    pub fn finish(self) -> (W, Counts) {
        (self.writer.into_inner(), self.counts)
    }

    /// Adds one operation with its slices: outer slices before those nested in them.
    pub fn operation(&mut self, rows: &Rows, row: usize, slices: &[Slice]) -> io::Result<()> {
        // A member of a compound has no times of its own; its slices may have some.
        let timed = [&rows.request_start, &rows.response_end].map(|times| times.get(row));
        let [start, end] = match timed {
            [None, None] => span(slices),
            timed => timed,
        };
        let is_instant = start.is_none() || end.is_none();
        let (start, end) = match (start, end) {
            (Some(start), Some(end)) if start <= end => (start, end),
            (Some(at), _) | (_, Some(at)) => (at, at),
            (None, None) => {
                self.counts.without_time += 1;
                return Ok(());
            }
        };
        let track = self.track(rows, row, (start, end))?;
        let values = rows.values(row);
        let name = ("operation", rows.name(row));
        self.counts.operations += 1;
        if is_instant {
            self.counts.instants += 1;
            return self.writer.event(track, start, Type::Instant, name, &values);
        }
        self.writer.event(track, start, Type::Begin, name, &values)?;
        self.nest(track, (start, end), slices)?;
        self.writer.event(track, end, Type::End, name, &[])
    }

    /// The operation's track, which is declared when it is new.
    fn track(&mut self, rows: &Rows, row: usize, span: (i64, i64)) -> io::Result<Uuid> {
        let recording = rows.recording.get(row).unwrap_or_default();
        let top = self.tracks.recording(recording);
        if top.new {
            if self.counts.operations == 0 {
                self.writer.clock(span.0)?;
            }
            self.writer.track(top.uuid, None, recording, top.uuid)?;
        }
        let connection = rows.connection.get(row);
        let track = self.tracks.take(top.uuid, connection, span);
        if track.new {
            let rank = connection.unwrap_or(u64::from(u32::MAX));
            self.writer.track(track.uuid, Some(top.uuid), &rows.connection_name(row), rank)?;
        }
        Ok(track.uuid)
    }

    /// Adds an operation's slices. On a track they must nest, in the operation and in each other: a slice that
    /// outlasts the one around it is cut, and gets its true duration as a value.
    fn nest(&mut self, track: Uuid, span: (i64, i64), slices: &[Slice]) -> io::Result<()> {
        let mut open = vec![span.1];
        let mut at = span.0;
        for slice in slices {
            let start = slice.start.max(at).min(span.1);
            while let [.., _, end] = open[..]
                && end <= start
            {
                open.pop();
                self.writer.event(track, end, Type::End, ("", ""), &[])?;
            }
            let outer = open.last().copied().unwrap_or(span.1);
            let end = slice.start.saturating_add(slice.duration_ns).clamp(start, outer);
            let mut values = Vec::new();
            if end - start != slice.duration_ns {
                values.push(("duration_ns", Value::Signed(slice.duration_ns)));
            }
            if let Some(cpu_ns) = slice.cpu_ns {
                values.push(("cpu_ns", Value::Signed(cpu_ns)));
            }
            for (name, value) in [("cycles", slice.cycles), ("hits", slice.hits)] {
                values.extend(value.map(|value| (name, Value::Unsigned(value))));
            }
            self.writer.event(track, start, Type::Begin, ("server", &slice.kind), &values)?;
            self.counts.slices += 1;
            open.push(end);
            at = start;
        }
        while let [.., _, end] = open[..] {
            open.pop();
            self.writer.event(track, end, Type::End, ("", ""), &[])?;
        }
        Ok(())
    }
}

/// Start of the first slice and end of the last one.
fn span(slices: &[Slice]) -> [Option<i64>; 2] {
    let ends = slices.iter().map(|slice| slice.start.saturating_add(slice.duration_ns));
    [slices.iter().map(|slice| slice.start).min(), ends.max()]
}

//! `smbscope export`: operations in the formats of other programs. So far Perfetto
//! (ui.perfetto.dev): a track for each connection, a slice for each operation, and nested in it the
//! slices recorded by a probe.

mod lanes;
mod perfetto;
mod rows;
mod slices;

use std::path::PathBuf;

use smbscope_report::format;
use smbscope_store::source::{Request, Source};
use smbscope_store::{Part, Table};
use smbscope_tables::operation;
use smbscope_tables::slice::Slice;

use crate::interrupt;
use crate::options::{Anonymize, Decode, Talk};
use crate::output::Output;
use crate::progress::Shown;
use lanes::{Lanes, Uuid};
use perfetto::{TraceWriter, Type, Value};
use rows::Rows;
use slices::SliceFeed;

/// Export operations to the format of another program.
///
/// --perfetto writes a trace for ui.perfetto.dev (drop the file on the page; it is not uploaded). Each
/// connection is a track and each operation a slice, from the first byte of the request to the last
/// byte of the reply; operations in flight at the same time are shown below each other. Select an
/// operation to see its path, status, bytes and so on. In a recording from inside a server, the server's
/// slices are nested in the operation. An operation without request or reply is shown as an instant. An
/// operation that is not the first of a compound has no times of its own; it is shown only if it has
/// server slices. The number of omitted operations is reported at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope export --perfetto recording/ --out recording.pftrace
  smbscope export --perfetto capture.pcapng --anonymize > capture.pftrace")]
pub struct Export {
    /// Write a Perfetto trace (protobuf).
    #[arg(long, required = true)]
    pub perfetto: bool,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Writes the trace.
pub fn run(args: &Export, talk: Talk) -> anyhow::Result<()> {
    Output::check(args.out.as_ref(), true)?;
    let tokenizer = args.anonymize.tokenizer()?;
    let source = args.decode.reading.open(&args.decode.inputs, tokenizer)?;
    let output = Output::open(args.out.as_ref())?;
    let mut trace = Trace {
        watch: output.watch(),
        writer: TraceWriter::new(output),
        lanes: Lanes::default(),
        counts: Counts::default(),
    };
    let lost = trace.copy(&source, talk)?;
    let Trace { writer, counts, .. } = trace;
    writer.into_inner().finish()?;
    talk.say(&counts.said(lost));
    Ok(())
}

#[derive(Default)]
struct Counts {
    operations: u64,
    slices: u64,
    moments: u64,
    without_time: u64,
}

impl Counts {
    fn said(&self, lost: u64) -> String {
        let words = [
            (self.operations, "operations"),
            (self.slices, "slices within them"),
            (self.moments, "operations seen half, shown as a moment"),
            (self.without_time, "operations without times of their own, left out"),
            (lost, "slices without an operation, left out"),
        ];
        let words =
            words.iter().enumerate().filter(|(place, (count, _))| *place == 0 || *count > 0);
        let words = words.map(|(_, (count, what))| format!("{what}: {}", format::count(*count)));
        words.collect::<Vec<_>>().join("; ")
    }
}

struct Trace {
    writer: TraceWriter<Output>,
    watch: crate::output::Watch,
    lanes: Lanes,
    counts: Counts,
}

impl Trace {
    /// Writes all operations; gives the number of slices that belong to none of them.
    fn copy(&mut self, source: &Source, talk: Talk) -> anyhow::Result<u64> {
        let schema = operation::schema();
        let places = rows::COLUMNS.iter().map(|name| schema.index_of(name));
        let projection = Some(places.collect::<Result<_, _>>()?);
        let parts = source.parts(&Request { tables: vec![Table::Operations], projection })?;
        let _shown = Shown::begin(talk, parts.progress());
        let mut feed = SliceFeed::new(source)?;
        for part in parts {
            if let Part::Operations(batch) = part? {
                self.batch(&Rows::of(&batch)?, &mut feed)?;
            }
            interrupt::check()?;
        }
        Ok(feed.lost()?)
    }

    fn batch(&mut self, rows: &Rows, feed: &mut SliceFeed) -> anyhow::Result<()> {
        for row in 0..rows.count {
            let recording = rows.recording.get(row).unwrap_or_default();
            let slices = match rows.operation.get(row) {
                Some(number) => {
                    feed.reach(recording, number)?;
                    feed.take(recording, number)
                }
                None => Vec::new(),
            };
            let written = self.operation(rows, row, recording, &slices);
            self.watch.check(written)?;
        }
        Ok(())
    }

    fn operation(
        &mut self,
        rows: &Rows,
        row: usize,
        recording: &str,
        slices: &[Slice],
    ) -> std::io::Result<()> {
        // A member of a compound has no times of its own but those of its slices.
        let timed = [&rows.request_start, &rows.response_end].map(|times| times.get(row));
        let [start, end] = match timed {
            [None, None] => span(slices),
            timed => timed,
        };
        let half = start.is_none() || end.is_none();
        let (start, end) = match (start, end) {
            (Some(start), Some(end)) if start <= end => (start, end),
            (Some(at), _) | (_, Some(at)) => (at, at),
            (None, None) => {
                self.counts.without_time += 1;
                return Ok(());
            }
        };
        let track = self.track(rows, row, recording, (start, end))?;
        let values = rows.values(row);
        let name = ("operation", rows.name(row));
        self.counts.operations += 1;
        if half {
            self.counts.moments += 1;
            return self.writer.event(track, start, Type::Instant, name, &values);
        }
        self.writer.event(track, start, Type::Begin, name, &values)?;
        self.nest(track, (start, end), slices)?;
        self.writer.event(track, end, Type::End, name, &[])
    }

    /// The operation's track, made known when it is new.
    fn track(
        &mut self,
        rows: &Rows,
        row: usize,
        recording: &str,
        span: (i64, i64),
    ) -> std::io::Result<Uuid> {
        let top = self.lanes.recording(recording);
        if top.new {
            if self.counts.operations == 0 {
                self.writer.clock(span.0)?;
            }
            self.writer.track(top.uuid, None, recording, top.uuid)?;
        }
        let connection = rows.connection.get(row);
        let lane = self.lanes.take(top.uuid, connection, span);
        if lane.new {
            let rank = connection.unwrap_or(u64::from(u32::MAX));
            self.writer.track(lane.uuid, Some(top.uuid), &rows.connection_name(row), rank)?;
        }
        Ok(lane.uuid)
    }

    /// An operation's slices. On a track they must nest, in the operation and in each other: what
    /// goes on longer than what it lies in is cut there, and tells its true duration.
    fn nest(&mut self, track: Uuid, span: (i64, i64), slices: &[Slice]) -> std::io::Result<()> {
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

/// Begin of the first slice and end of the last.
fn span(slices: &[Slice]) -> [Option<i64>; 2] {
    let ends = slices.iter().map(|slice| slice.start.saturating_add(slice.duration_ns));
    [slices.iter().map(|slice| slice.start).min(), ends.max()]
}

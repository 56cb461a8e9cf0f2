//! Prints a table or a JSON object for each interval, for pipes, files and tests.

use std::io::Write as _;

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use smbscope_analysis::live::{Live, Part, Row, Snapshot};
use smbscope_report::format;

use super::state::State;
use super::{Limits, numbers, parts};
use crate::format::{Align, Column, TextFormat, lines};
use crate::interrupt;
use crate::output::Output;
use crate::pipeline::record::collector::Collector;
use crate::pipeline::record::source::Received;

/// Prints until a limit or the user ends it.
pub fn run(
    collector: &mut Collector,
    mut live: Live,
    state: &State,
    limits: &Limits,
    (form, most): (TextFormat, usize),
) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    let mut intervals = 0;
    loop {
        for batch in collector.collect()?.0 {
            live.operations(&batch).context("operations cannot be counted")?;
        }
        // Every interval is shown, even if several ended at once because this program was not scheduled.
        while live.step(collector.until()) {
            intervals += 1;
            let mut snapshot = live.snapshot(state.key, state.span);
            let mut rows = state.rows(&mut snapshot);
            let groups = rows.len();
            rows.truncate(most);
            let seen = collector.received();
            let text = match form {
                TextFormat::Text => table(&snapshot, &rows, groups, &seen, &output),
                TextFormat::Json => format!("{}\n", object(&snapshot, &rows, groups, &seen)),
            };
            output.text(&text)?;
            let flushed = output.flush();
            output.watch().check(flushed)?;
            if limits.are_over(intervals) {
                return output.finish();
            }
        }
        if interrupt::asked() || limits.are_over(intervals) {
            return output.finish();
        }
    }
}

/// An interval for people.
fn table(
    snapshot: &Snapshot,
    rows: &[Row],
    groups: usize,
    seen: &Received,
    output: &Output,
) -> String {
    let total = &snapshot.total;
    let span_ns = snapshot.span_ns;
    let bytes = |count| match count {
        0 => "0 B".to_owned(),
        count => numbers::byte_rate(count, span_ns),
    };
    let mut text = format!(
        "{}, last {}: {} operations/s, {}/s read, {}/s written, {} errors/s, {} dropped so far\n",
        format::time(snapshot.end_ns),
        format::duration(span_ns),
        numbers::rate(total.operations, span_ns),
        bytes(total.read_bytes),
        bytes(total.written_bytes),
        numbers::rate(total.errors, span_ns),
        format::count(seen.dropped()),
    );
    if snapshot.late > 0 {
        text.push_str(&format!(
            "{} operations so far arrived after their interval was shown: give smbscope more CPU time (--cpus), or use --window\n",
            format::count(snapshot.late)
        ));
    }
    if !rows.is_empty() {
        let right = |title: &&str| Column { title: (*title).to_owned(), align: Align::Right };
        let left = |title: &str| Column { title: title.to_owned(), align: Align::Left };
        let mut columns = vec![left(snapshot.key.name())];
        columns.extend(numbers::TITLES.iter().map(right));
        columns.push(left("Where the time goes"));
        let total_ns = total.turnaround.sum_ns;
        let cells = rows.iter().map(|row| {
            let mut cells = vec![numbers::name(row, snapshot.key)];
            cells.extend(numbers::cells(row, span_ns, total_ns));
            cells.push(parts::words(row));
            cells
        });
        let (begin, end) = output.bold();
        text.push_str(&lines(&columns, &cells.collect::<Vec<_>>(), (begin, end)));
        if groups > rows.len() {
            text.push_str(&format!("and {} more\n", format::count((groups - rows.len()) as u64)));
        }
    }
    text.push('\n');
    text
}

/// An interval for programs: numbers of the whole span, times in nanoseconds.
fn object(snapshot: &Snapshot, rows: &[Row], groups: usize, seen: &Received) -> Value {
    json!({
        "end_ns": snapshot.end_ns,
        "span_ns": snapshot.span_ns,
        "by": snapshot.key.name(),
        "dropped": seen.dropped(),
        "late": snapshot.late,
        "total": row(&snapshot.total),
        "groups": groups,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    let parts = Part::all().map(|part| (part, row.part_ns(part))).filter(|(_, ns)| *ns != 0);
    let parts: Map<_, _> =
        parts.map(|(part, ns)| (format!("{}_ns", part.name()), Value::from(ns))).collect();
    let turnaround = &row.turnaround;
    json!({
        "name": row.name,
        "operations": row.operations,
        "errors": row.errors,
        "not_found": row.not_found,
        "waits": row.waits,
        "read_bytes": row.read_bytes,
        "written_bytes": row.written_bytes,
        "turnaround": {
            "n": turnaround.n,
            "sum_ns": turnaround.sum_ns,
            "p50_ns": turnaround.p50_ns,
            "p95_ns": turnaround.p95_ns,
            "p99_ns": turnaround.p99_ns,
            "max_ns": turnaround.max_ns,
        },
        "parts": parts,
    })
}

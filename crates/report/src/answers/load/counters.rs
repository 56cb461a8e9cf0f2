//! Counters of client and server: a table, and small charts on the axis of the operations.

use smbscope_analysis::summary::{CounterRow, Load, Report};

use crate::answers::recording::fields::column;
use crate::document::{Block, Cell, Join, Lines, Section, Table};
use crate::value::{Format, format};

/// Most lines of one chart; more cannot be distinguished.
const LINES_MAX: usize = 5;
/// Charts; what is past them is in the table.
const CHARTS_MAX: usize = 24;

/// What has a chart, in the order in which one looks at it.
const CHARTED: [&str; 20] = [
    "cpu_percent",
    "process_cpu_percent",
    "run_queue",
    "pressure_cpu_percent",
    "disk_busy_percent",
    "disk_queue",
    "disk_read_ns",
    "disk_write_ns",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "pressure_io_percent",
    "network_receive_bytes_per_second",
    "network_transmit_bytes_per_second",
    "rdma_receive_bytes_per_second",
    "rdma_transmit_bytes_per_second",
    "tcp_retransmissions_per_second",
    "cpu_idle_deep_percent",
    "cpu_frequency_hertz",
    "memory_available_bytes",
    "open_files",
];
/// Counters that say whether the client was the limit.
const CHARTED_OF_CLIENT: [&str; 3] =
    ["cpu_percent", "network_receive_bytes_per_second", "network_transmit_bytes_per_second"];
/// Our own counters begin like this; what has another name is the server's own and has a chart.
const OURS: [&str; 10] = [
    "cpu_",
    "process",
    "pressure_",
    "disk_",
    "network_",
    "rdma_",
    "tcp_",
    "memory_",
    "context_",
    "windows_",
];

pub(crate) fn counters(load: &Load) -> Option<Section> {
    if load.counters.is_empty() {
        return None;
    }
    let of = "counter";
    let several = load.counters.iter().any(|row| row.recording != load.counters[0].recording);
    let mut columns = vec![
        column(of, "source", 0, |row: &CounterRow| Cell::Text(row.source.clone())),
        column(of, "name", 0, |row: &CounterRow| Cell::Text(row.name.clone())),
        column(of, "instance", 0, |row: &CounterRow| Cell::text(&row.instance)),
        column(of, "measured_mean", 0, |row: &CounterRow| {
            row.measured_mean.map_or(Cell::Empty, |mean| value(row, mean))
        }),
        column(of, "measured_n", 2, |row: &CounterRow| Cell::Count(row.measured_n)),
        column(of, "mean", 1, |row: &CounterRow| value(row, row.mean)),
        column(of, "min", 2, |row: &CounterRow| value(row, row.min)),
        column(of, "max", 0, |row: &CounterRow| value(row, row.max)),
        column(of, "n", 2, |row: &CounterRow| Cell::Count(row.n)),
        column(of, "unit", 3, |row: &CounterRow| Cell::Text(row.unit.clone())),
    ];
    if several {
        columns
            .push(column(of, "recording", 1, |row: &CounterRow| Cell::Code(row.recording.clone())));
    }
    let mut rows: Vec<_> = load.counters.iter().collect();
    rows.sort_by_key(|row| order(row));
    let rows: Vec<_> = rows.into_iter().cloned().collect();
    let table = Table::new(
        "Counters",
        "Measured: samples in the measured windows of all steps; the named question counters-by-step shows them by load.",
        &rows,
        columns,
    )
    .cut(20, 260, "select source, name, instance, unit, avg(value), max(value) from counters group by source, name, instance, unit");
    let mut blocks = vec![Block::Table(table)];
    if load.counters_others > 0 {
        blocks.push(Block::Note(format!(
            "{} samples are of counters past the limit on their number.",
            format::count(load.counters_others)
        )));
    }
    Some(Section {
        id: "counters",
        title: "Counters of client and server",
        help: "Counters of the machines during the run; charts are in the section Over time.",
        blocks,
    })
}

/// How a counter's values are shown: their format, what to multiply them by, what stands behind.
fn shown(unit: &str) -> (Format, f64, String) {
    let (unit, per) = match unit.split_once('/') {
        Some((unit, per)) => (unit, format!("/{per}")),
        None => (unit, String::new()),
    };
    match unit.trim() {
        // Also "percent of one CPU".
        unit if unit == "%" || unit.starts_with("percent") => (Format::Share, 0.01, per),
        "ratio" => (Format::Share, 1.0, per),
        "bytes" | "B" => (Format::Bytes, 1.0, per),
        "ns" | "nanoseconds" => (Format::Duration, 1.0, per),
        "us" | "µs" | "microseconds" => (Format::Duration, 1e3, per),
        "ms" | "milliseconds" => (Format::Duration, 1e6, per),
        "s" | "seconds" => (Format::Duration, 1e9, per),
        _ => (Format::Number, 1.0, per),
    }
}

fn value(row: &CounterRow, value: f64) -> Cell {
    let (format, factor, per) = shown(&row.unit);
    let value = value * factor;
    match (format, per.is_empty()) {
        (Format::Share, _) => Cell::Share(value),
        (Format::Duration, true) => Cell::Duration(value as i64),
        (Format::Bytes, true) if value >= 0.0 => Cell::Bytes(value as u64),
        (Format::Bytes, false) if value >= 0.0 => {
            Cell::Measure(value, format!("{}{per}", format::bytes(value as u64)))
        }
        (Format::Duration, false) => {
            Cell::Measure(value, format!("{}{per}", format::duration(value as i64)))
        }
        _ => Cell::Number(value),
    }
}

fn order(row: &CounterRow) -> (usize, usize, String, Option<String>) {
    let source = match row.source.as_str() {
        "server" => 0,
        "client" => 2,
        _ => 1,
    };
    let name = CHARTED.iter().position(|name| *name == row.name).unwrap_or(CHARTED.len());
    (name, source, row.name.clone(), row.instance.clone())
}

fn is_charted(row: &CounterRow) -> bool {
    let name = row.name.as_str();
    match row.source.as_str() {
        "client" => CHARTED_OF_CLIENT.contains(&name),
        _ => CHARTED.contains(&name) || !OURS.iter().any(|begin| name.starts_with(begin)),
    }
}

/// Charts of counters, those of one name together.
pub(crate) fn over_time(report: &Report) -> Vec<Block> {
    let Some(load) = &report.load else { return Vec::new() };
    let mut rows: Vec<_> = load.counters.iter().filter(|row| is_charted(row)).collect();
    rows.sort_by_key(|row| order(row));
    let groups =
        rows.chunk_by(|a, b| (&a.source, &a.name, &a.unit) == (&b.source, &b.name, &b.unit));
    groups.take(CHARTS_MAX).filter_map(|group| chart(report, group)).collect()
}

fn chart(report: &Report, group: &[&CounterRow]) -> Option<Block> {
    let first = group.first()?;
    let (format, factor, per) = shown(&first.unit);
    let mut rows = group.to_vec();
    // Where there are too many, the sum and those that show the most.
    rows.sort_by(|a, b| {
        let whole = |row: &CounterRow| row.instance.is_some();
        whole(a).cmp(&whole(b)).then_with(|| b.mean.total_cmp(&a.mean))
    });
    rows.truncate(LINES_MAX);
    rows.sort_by_key(|row| (row.instance.clone(), row.recording.clone()));
    let machines = rows.iter().any(|row| row.recording != first.recording);
    let name = |row: &CounterRow| match (&row.instance, machines) {
        (Some(instance), false) => instance.clone(),
        (Some(instance), true) => format!("{instance} ({})", row.recording),
        (None, true) => row.recording.clone(),
        (None, false) if group.len() > 1 => "all".to_owned(),
        (None, false) => row.name.clone(),
    };
    let values = |row: &CounterRow| -> Vec<f64> {
        row.values.iter().map(|value| value.map_or(f64::NAN, |value| value * factor)).collect()
    };
    let left_out = match group.len().saturating_sub(rows.len()) {
        0 => String::new(),
        n => format!(" Only those with the largest means; {n} more are in the table."),
    };
    let mut words = first.name.replace('_', " ");
    if let Some(letter) = words.get(..1).map(str::to_uppercase) {
        words.replace_range(..1, &letter);
    }
    let words = words.replace("Cpu", "CPU").replace(" cpu", " CPU").replace("Tcp", "TCP");
    // The same disk has bytes, too.
    let words = words.strip_suffix(" ns").map(|words| format!("{words} time")).unwrap_or(words);
    let words = [" percent", " bytes per second", " per second", " bytes"]
        .iter()
        .find_map(|unit| words.strip_suffix(unit))
        .unwrap_or(&words);
    Some(Block::chart(Lines {
        caption: format!("{words}, {}", first.source),
        help: format!("Counter {}.{left_out}", first.name),
        format,
        unit: first.unit.clone(),
        per,
        join: Join::Mean,
        start_ns: report.series.bins.first().map_or(0, |bin| bin.start_ns),
        bin_ns: report.series.bin_ns,
        lines: rows.iter().map(|row| (name(row), values(row))).collect(),
        is_sampled: true,
        bands: crate::answers::load::bands(report),
    }))
}

//! Rows as text: rates of a span, for the screen and the printed table.

use smbscope_analysis::live::{Key, Row};
use smbscope_report::format;

/// Something per second.
fn per_second(count: u64, span_ns: i64) -> f64 {
    if span_ns <= 0 { 0.0 } else { count as f64 * 1e9 / span_ns as f64 }
}

/// How often per second.
pub fn rate(count: u64, span_ns: i64) -> String {
    match per_second(count, span_ns) {
        rate if rate == 0.0 || rate >= 9.95 || rate.fract() == 0.0 => {
            format::count(rate.round() as u64)
        }
        rate if rate < 0.05 => "<0.1".to_owned(),
        rate => format!("{rate:.1}"),
    }
}

/// Bytes per second; nothing of none, so that what has some is seen.
pub fn byte_rate(bytes: u64, span_ns: i64) -> String {
    if bytes == 0 {
        return String::new();
    }
    format::bytes(per_second(bytes, span_ns).round() as u64)
}

/// A duration that may not be known.
pub fn time(ns: Option<i64>) -> String {
    ns.map_or_else(String::new, format::duration)
}

/// The name of a row.
pub fn name(row: &Row, key: Key) -> String {
    match (&row.name, key) {
        (Some(name), _) => format::sanitized(name),
        (None, Key::Share) => "(no share)".to_owned(),
        (None, Key::File) => "(no file)".to_owned(),
        (None, _) => "(unknown)".to_owned(),
    }
}

/// A row's cells except its name: operations, bytes read, bytes written, errors, percentiles and
/// maximum of the turnaround, its part of all.
pub fn cells(row: &Row, span_ns: i64, total_ns: i64) -> [String; 9] {
    let turnaround = &row.turnaround;
    let errors = if row.errors == 0 { String::new() } else { rate(row.errors, span_ns) };
    let part = match total_ns {
        1.. if turnaround.n > 0 => format::share(turnaround.sum_ns as f64 / total_ns as f64),
        _ => String::new(),
    };
    [
        rate(row.operations, span_ns),
        byte_rate(row.read_bytes, span_ns),
        byte_rate(row.written_bytes, span_ns),
        errors,
        time(turnaround.p50_ns),
        time(turnaround.p95_ns),
        time(turnaround.p99_ns),
        time(turnaround.max_ns),
        part,
    ]
}

/// What stands above [`cells`].
pub const TITLES: [&str; 9] =
    ["Ops/s", "Read/s", "Written/s", "Errors/s", "p50", "p95", "p99", "Max", "Time"];

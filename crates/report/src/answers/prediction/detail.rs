//! The distribution of each part of the operations' time, by command and size, as text and as flat records.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow::error::ArrowError;
use smbscope_analysis::predict::forecast::RecordedForecast;
use smbscope_analysis::predict::replay::{Detail, Share, Sizes, Times};

use super::title;
use crate::document::TextOptions;
use crate::render::table::{Column, lines};
use crate::value::format;

/// The name of all parts together.
const ALL: &str = "all";

/// A line: all of a group, or one part of it.
struct DetailRow<'a> {
    sizes: &'a Sizes,
    part: &'static str,
    times: &'a Times,
}

fn rows(detail: &Detail) -> impl Iterator<Item = DetailRow<'_>> {
    detail.sizes.iter().flat_map(|sizes| {
        let all = DetailRow { sizes, part: ALL, times: &sizes.whole };
        let parts = sizes.parts.iter();
        let parts = parts.map(move |(part, times)| DetailRow { sizes, part: part.name(), times });
        std::iter::once(all).chain(parts)
    })
}

impl DetailRow<'_> {
    fn share(&self) -> Share {
        self.sizes.share(self.times)
    }
}

/// The table, and the data rates.
pub(crate) fn text(forecast: &RecordedForecast, detail: &Detail, options: &TextOptions) -> String {
    let mut text = options.heading("What operations consist of");
    text.push_str(&format!(
        "{} operations with a time, as seen by the clients, in {}\n",
        format::count(forecast.prediction.timed),
        format::duration(detail.lasted_ns)
    ));
    for (rate, to) in detail.rates.iter().zip(["the server", "the clients"]) {
        let seconds = detail.lasted_ns as f64 / 1e9;
        let mean = if seconds > 0.0 { rate.bytes as f64 / seconds } else { 0.0 };
        text.push_str(&format!(
            "to {to} {} per second, {} in the busiest second\n",
            format::bytes(mean as u64),
            format::bytes(rate.most)
        ));
    }
    text.push_str(
        "mean, ± and sd are over all operations of a size, so that parts add up; percentiles are over the n operations \
         that have the part\n\n",
    );
    let ms = |ns: Option<f64>| ns.map_or(String::new(), |ns| format!("{:.3}", ns / 1e6));
    let mut command = "";
    let body = rows(detail).map(|row| {
        let is_first = row.part == ALL;
        let shown = if is_first && command != row.sizes.command { &row.sizes.command } else { "" };
        command = &row.sizes.command;
        let size = match row.sizes.bytes {
            _ if !is_first => String::new(),
            None => "any".to_owned(),
            Some((least, most)) if least == most => format::bytes(least),
            Some((least, most)) => format!("{} to {}", format::bytes(least), format::bytes(most)),
        };
        let part = if is_first { "Total".to_owned() } else { title(row.part) };
        let (share, distribution) = (row.share(), &row.times.distribution);
        let whole = |ns: Option<i64>| ms(ns.map(|ns| ns as f64));
        vec![
            shown.to_owned(),
            size,
            part,
            format::count(distribution.n),
            ms(Some(share.mean_ns)),
            ms(share.error_ns),
            ms(Some(share.stddev_ns)),
            whole(distribution.p50_ns),
            whole(distribution.p95_ns),
            whole(distribution.p99_ns),
        ]
    });
    let mut columns = ["command", "size", "part"].map(Column::left).to_vec();
    let numbers = ["n", "mean ms", "±", "sd", "p50", "p95", "p99"];
    columns.extend(numbers.map(Column::right));
    text.push_str(&lines(&columns, &body.collect::<Vec<_>>(), options.bold, options.width));
    text
}

/// Flat records: one for each command, size and part.
pub fn batch(detail: &Detail) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<_> = rows(detail).collect();
    let words = |of: fn(&DetailRow) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let counts = |of: fn(&DetailRow) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<UInt64Array>())
    };
    let seconds = |of: fn(&DetailRow) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row)? / 1e9)).collect::<Float64Array>())
    };
    let percentile = |of: fn(&Times) -> Option<i64>| -> ArrayRef {
        let value = |row: &DetailRow| Some(of(row.times)? as f64 / 1e9);
        Arc::new(rows.iter().map(value).collect::<Float64Array>())
    };
    RecordBatch::try_from_iter_with_nullable([
        ("command", words(|row| row.sizes.command.clone()), false),
        ("least_bytes", counts(|row| row.sizes.bytes.map(|bytes| bytes.0)), true),
        ("most_bytes", counts(|row| row.sizes.bytes.map(|bytes| bytes.1)), true),
        ("part", words(|row| row.part.to_owned()), false),
        ("operations", counts(|row| Some(row.sizes.whole.distribution.n)), false),
        ("count", counts(|row| Some(row.times.distribution.n)), false),
        ("mean_seconds", seconds(|row| Some(row.share().mean_ns)), false),
        ("error_seconds", seconds(|row| row.share().error_ns), true),
        ("stddev_seconds", seconds(|row| Some(row.share().stddev_ns)), false),
        ("p50_seconds", percentile(|times| times.distribution.p50_ns), true),
        ("p95_seconds", percentile(|times| times.distribution.p95_ns), true),
        ("p99_seconds", percentile(|times| times.distribution.p99_ns), true),
    ])
}

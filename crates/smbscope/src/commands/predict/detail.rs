//! What recorded operations are made of, by command and size: shown, and kept as a profile.
//!
//! Owns: the table, its rows, and the file of a profile. What is gathered is
//! `smbscope_analysis::predict::replay::Detail`, what is made of it `smbscope_analysis::predict::reduce`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use smbscope_analysis::predict::reduce;
use smbscope_analysis::predict::replay::{Detail, Share, Sizes, Times};
use smbscope_report::format;
use smbscope_tables::profile::Profile;

use super::forecast::Forecast;
use super::recorded::meaning;
use crate::exit::Failure;
use crate::format::{Column, lines};
use crate::output::Output;

/// The part that is all of them.
const ALL: &str = "all";

/// Reads a profile.
pub fn read(path: &Path) -> anyhow::Result<Profile> {
    let hint = "a profile is published, published-means, or a file that `smbscope predict RUN --save-profile \
                FILE` writes";
    super::read(path, "profile", hint, Profile::wrong)
}

/// Writes the profile of what was recorded.
pub fn save(forecast: &Forecast, inputs: &[String], mut file: Output) -> anyhow::Result<()> {
    let names = inputs.iter().map(|input| {
        let name = Path::new(input).file_name().map_or(input.into(), |name| name.to_string_lossy());
        name.into_owned()
    });
    let name = names.collect::<Vec<_>>().join(", ");
    let timed = format::count(forecast.prediction.timed);
    let mut source = format!(
        "{timed} operations of {name}, reduced by {} {}",
        "smbscope",
        env!("CARGO_PKG_VERSION")
    );
    // Who predicts from it has no other way to know.
    if forecast.prediction.without_rtt > 0 {
        source.push_str(&format!(
            "; the round trip of {} of them is not known and stays as it is",
            format::count(forecast.prediction.without_rtt)
        ));
    }
    let profile = reduce::profile(&forecast.prediction, forecast.users_s, &name, &source)
        .ok_or_else(|| Failure::usage("the inputs last no time at all: no rate can be told"))?;
    let text = serde_json::to_string_pretty(&profile).context("to JSON")?;
    file.text(&format!("{text}\n"))?;
    file.finish()
}

/// A row: all of a group, or one part of it.
struct Line<'a> {
    sizes: &'a Sizes,
    part: &'static str,
    times: &'a Times,
}

fn rows(detail: &Detail) -> impl Iterator<Item = Line<'_>> {
    detail.sizes.iter().flat_map(|sizes| {
        let all = Line { sizes, part: ALL, times: &sizes.whole };
        let parts = sizes.parts.iter();
        let parts = parts.map(move |(part, times)| Line { sizes, part: part.name(), times });
        std::iter::once(all).chain(parts)
    })
}

impl Line<'_> {
    fn share(&self) -> Share {
        self.sizes.share(self.times)
    }
}

/// The table, and how fast bytes went.
pub fn text(forecast: &Forecast, detail: &Detail, bold: (&str, &str)) -> String {
    let mut text = format!("{}What operations are made of{}\n", bold.0, bold.1);
    text.push_str(&format!(
        "{} operations with a time, as clients see them, in {}\n",
        format::count(forecast.prediction.timed),
        format::duration(detail.lasted_ns)
    ));
    for (rate, to) in detail.rates.iter().zip(["the server", "the clients"]) {
        let seconds = detail.lasted_ns as f64 / 1e9;
        let mean = if seconds > 0.0 { rate.bytes as f64 / seconds } else { 0.0 };
        text.push_str(&format!(
            "to {to} {} in a second, {} in the busiest one\n",
            format::bytes(mean as u64),
            format::bytes(rate.most)
        ));
    }
    text.push_str("mean, ± and sd are of all operations of a size, so that parts add up; percentiles of the n that have the part\n\n");
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
        let part = if is_first { "all of it" } else { meaning(row.part) };
        let (share, distribution) = (row.share(), &row.times.distribution);
        let whole = |ns: Option<i64>| ms(ns.map(|ns| ns as f64));
        vec![
            shown.to_owned(),
            size,
            part.to_owned(),
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
    text.push_str(&lines(&columns, &body.collect::<Vec<_>>(), bold));
    text
}

/// Flat records: one for each command, size and part.
pub fn batch(detail: &Detail) -> anyhow::Result<RecordBatch> {
    let rows: Vec<_> = rows(detail).collect();
    let words = |of: fn(&Line) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let counts = |of: fn(&Line) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<UInt64Array>())
    };
    let seconds = |of: fn(&Line) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row)? / 1e9)).collect::<Float64Array>())
    };
    let percentile = |of: fn(&Times) -> Option<i64>| -> ArrayRef {
        let value = |row: &Line| Some(of(row.times)? as f64 / 1e9);
        Arc::new(rows.iter().map(value).collect::<Float64Array>())
    };
    Ok(RecordBatch::try_from_iter_with_nullable([
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
    ])?)
}

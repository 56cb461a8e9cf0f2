//! A prediction from the means of a profile, as text and as flat records.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow::error::ArrowError;
use smbscope_analysis::predict::averages::TOTAL;
use smbscope_analysis::predict::forecast::{ProfileForecast, ProfileRow};
use smbscope_tables::profile::{CacheOption, Profile};

use super::assumptions;
use crate::document::TextOptions;
use crate::render::table::{Column, lines};

/// What a user has of an hour, s.
const HOUR_S: f64 = 3600.0;

/// The table of scenarios, and what the totals consist of.
pub(crate) fn text(forecast: &ProfileForecast, options: &TextOptions) -> String {
    let ProfileForecast { today, changed, changes, rows } = forecast;
    let ms = |profile: &Profile| format!("{} ms", (profile.rtt_s * 1e6).round() / 1e3);
    let rtt = if changed.rtt_s == today.rtt_s {
        ms(today)
    } else {
        format!("{}, predicted {}", ms(today), ms(changed))
    };
    let mut text = options.heading("Seconds that a user spends on each scenario in one hour");
    text.push_str(&format!("{}\nround trip {rtt}\n\n", today.source));
    text.push_str(&table(forecast, options));
    text.push('\n');
    for row in rows.iter().filter(|row| row.before.scenario == TOTAL) {
        let cell = row.shown();
        text.push_str(&format!(
            "{}: {:.1} s = network {:.1} + server {:.1} + client and transfer {:.1}; the error of the means is {:.1} s \
             (95 %)\n",
            cell.option.title(),
            cell.seconds(),
            cell.network_s,
            cell.server_s,
            cell.constant_s,
            cell.error_s
        ));
        if cell.seconds() > HOUR_S {
            text.push_str(
                "An hour has no more than 3,600 s: a user completes less than this in it.\n",
            );
        }
    }
    if !changes.is_empty() {
        text.push_str(&assumptions(changes, options));
        text.push_str(
            "The profile was measured at one round trip, on one server; nothing was measured after the change. \
             Additional round trips caused by TCP windows are part of the constants here; a prediction from the \
             recording itself separates them.\n",
        );
    }
    text
}

/// One line for each scenario, with one column or three for each cache.
fn table(forecast: &ProfileForecast, options: &TextOptions) -> String {
    let ProfileForecast { today, changes, rows, .. } = forecast;
    let mut caches: Vec<CacheOption> = rows.iter().map(|row| row.shown().option).collect();
    caches.sort_unstable();
    caches.dedup();
    let mut columns = vec![Column::left("scenario"), Column::right("runs/h")];
    for option in &caches {
        match changes.as_slice() {
            [] => columns.push(Column::right(option.title())),
            _ => columns.extend([
                Column::right("before"),
                Column::right(option.title()),
                Column::right("%"),
            ]),
        }
    }
    let mut scenarios: Vec<&str> = Vec::new();
    for row in rows {
        if !scenarios.contains(&&*row.before.scenario) {
            scenarios.push(&row.before.scenario);
        }
    }
    let body = scenarios.iter().map(|&scenario| {
        let runs: f64 = today
            .scenarios
            .iter()
            .filter(|one| scenario == TOTAL || one.scenario == scenario)
            .map(|one| one.runs_per_hour)
            .sum();
        let mut cells = vec![scenario.to_owned(), format!("{}", (runs * 100.0).round() / 100.0)];
        for option in &caches {
            let is_cell = |row: &&ProfileRow| {
                row.before.scenario == scenario && row.shown().option == *option
            };
            let Some(row) = rows.iter().find(is_cell) else { continue };
            if row.after.is_some() {
                cells.push(format!("{:.3}", row.before.seconds()));
            }
            cells.push(format!("{:.3}", row.shown().seconds()));
            if row.after.is_some() {
                let percent = row.percent();
                cells.push(percent.map_or(String::new(), crate::value::format::change_cell));
            }
        }
        cells
    });
    lines(&columns, &body.collect::<Vec<_>>(), options.bold, options.width)
}

/// Flat records: one for each scenario and cache.
pub fn batch(forecast: &ProfileForecast) -> Result<RecordBatch, ArrowError> {
    let rows = &forecast.rows;
    let numbers = |of: &dyn Fn(&ProfileRow) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from(rows.iter().map(of).collect::<Vec<_>>()))
    };
    let words = |of: fn(&ProfileRow) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    RecordBatch::try_from_iter_with_nullable([
        ("scenario", words(|row| &row.before.scenario), false),
        ("option", words(|row| row.shown().option.name()), false),
        ("seconds", numbers(&|row| Some(row.shown().seconds())), false),
        ("network_seconds", numbers(&|row| Some(row.shown().network_s)), false),
        ("server_seconds", numbers(&|row| Some(row.shown().server_s)), false),
        ("constant_seconds", numbers(&|row| Some(row.shown().constant_s)), false),
        ("error_seconds", numbers(&|row| Some(row.shown().error_s)), false),
        ("before_seconds", numbers(&|row| row.after.as_ref().map(|_| row.before.seconds())), true),
        ("change_percent", numbers(&ProfileRow::percent), true),
    ])
}

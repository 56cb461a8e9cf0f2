//! Predictions from a profile: the time that a user spends in an hour on each scenario.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use smbscope_analysis::predict::averages::{Cell, TOTAL, table};
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::published;
use smbscope_tables::profile::{CacheOption, Profile};

use super::args::{Named, Predict};
use super::{detail, taken_for_granted, write};
use crate::exit::Failure;
use crate::format::{Column, RowFormat, lines};
use crate::output::Output;

/// What a user has of an hour, s.
const HOUR_S: f64 = 3600.0;

/// One time before and after the changes.
struct Row {
    before: Cell,
    /// None without a change.
    after: Option<Cell>,
}

impl Row {
    fn shown(&self) -> &Cell {
        self.after.as_ref().unwrap_or(&self.before)
    }

    fn percent(&self) -> Option<f64> {
        let (before, after) = (self.before.seconds(), self.after.as_ref()?.seconds());
        (before != 0.0).then(|| 100.0 * (after / before - 1.0))
    }
}

/// Predicts from a profile.
pub fn run(args: &Predict, named: &Named) -> anyhow::Result<()> {
    let today = match named {
        Named::Published => published::profile(),
        Named::PublishedMeans => published::means(),
        Named::File(path) => detail::read(path)?,
    };
    let mut changed = today.clone();
    let is_distance = |change: &Change| matches!(change, Change::Rtt(_) | Change::Distance(_));
    for change in &args.asked.changes {
        // What a round trip takes that was not known is somewhere in the rest, and would count twice.
        let applied = match is_distance(change) && today.rtt_s <= 0.0 {
            true => Err(change.lacking()),
            false => change.apply(&mut changed),
        };
        applied.map_err(|lacking| {
            Failure::usage(format!(
                "--change {}: the profile {} has not what that needs: {}",
                lacking.change, today.name, lacking.what
            ))
        })?;
    }
    let rows = rows(&today, &changed, &args.asked.changes);
    match args.format {
        RowFormat::Text => {
            let mut output = Output::open(args.out.as_ref())?;
            let (bold, end) = output.bold();
            output.text(&text(&today, &changed, &rows, &args.asked.changes, (&bold, end)))?;
            output.finish()
        }
        format => write(batch(&rows)?, format, Output::open(args.out.as_ref())?),
    }
}

/// Before and after, scenario by scenario.
fn rows(today: &Profile, changed: &Profile, changes: &[Change]) -> Vec<Row> {
    let before = table(today);
    if changes.is_empty() {
        return before.into_iter().map(|before| Row { before, after: None }).collect();
    }
    // A change of the cache is from today's, which is the first.
    let is_cache = changes.iter().any(|change| matches!(change, Change::Cache(_)));
    let rows = table(changed).into_iter().filter_map(|after| {
        let option = if is_cache { CacheOption::Smb21 } else { after.option };
        let before =
            before.iter().find(|one| one.scenario == after.scenario && one.option == option)?;
        Some(Row { before: before.clone(), after: Some(after) })
    });
    rows.collect()
}

fn text(
    today: &Profile,
    changed: &Profile,
    rows: &[Row],
    changes: &[Change],
    bold: (&str, &str),
) -> String {
    let ms = |profile: &Profile| format!("{} ms", (profile.rtt_s * 1e6).round() / 1e3);
    let rtt = match changed.rtt_s == today.rtt_s {
        true => ms(today),
        false => format!("{}, then {}", ms(today), ms(changed)),
    };
    let mut text = format!(
        "{}Seconds that a user spends in an hour on each scenario{}\n{}\nround trip {rtt}\n\n",
        bold.0, bold.1, today.source
    );
    let mut options: Vec<CacheOption> = rows.iter().map(|row| row.shown().option).collect();
    options.sort_unstable();
    options.dedup();
    let mut columns = vec![Column::left("scenario"), Column::right("runs/h")];
    for option in &options {
        match changes {
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
        for option in &options {
            let row = rows
                .iter()
                .find(|row| row.before.scenario == scenario && row.shown().option == *option);
            let Some(row) = row else { continue };
            if row.after.is_some() {
                cells.push(format!("{:.3}", row.before.seconds()));
            }
            cells.push(format!("{:.3}", row.shown().seconds()));
            if row.after.is_some() {
                let percent = row.percent();
                cells.push(percent.map_or(String::new(), |percent| format!("{percent:+.1}")));
            }
        }
        cells
    });
    text.push_str(&lines(&columns, &body.collect::<Vec<_>>(), bold));
    text.push('\n');
    for row in rows.iter().filter(|row| row.before.scenario == TOTAL) {
        let cell = row.shown();
        text.push_str(&format!(
            "{}: {:.1} s = network {:.1} + server {:.1} + client and transfer {:.1}; the means' own \
             error is {:.1} s (95 %)\n",
            cell.option.title(),
            cell.seconds(),
            cell.network_s,
            cell.server_s,
            cell.constant_s,
            cell.error_s
        ));
        if cell.seconds() > HOUR_S {
            text.push_str("An hour has no more than 3,600 s: a user does less in it than this.\n");
        }
    }
    if !changes.is_empty() {
        text.push_str(&taken_for_granted(changes, bold));
        text.push_str(
            "The profile was measured at one round trip, on one server: nothing was measured after the \
             change. Further round trips of TCP's windows are not told apart from the rest: from the recording itself \
             they are.\n",
        );
    }
    text
}

fn batch(rows: &[Row]) -> anyhow::Result<RecordBatch> {
    let numbers = |of: &dyn Fn(&Row) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from(rows.iter().map(of).collect::<Vec<_>>()))
    };
    let words = |of: fn(&Row) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("scenario", words(|row| &row.before.scenario), false),
        ("option", words(|row| row.shown().option.name()), false),
        ("seconds", numbers(&|row| Some(row.shown().seconds())), false),
        ("network_seconds", numbers(&|row| Some(row.shown().network_s)), false),
        ("server_seconds", numbers(&|row| Some(row.shown().server_s)), false),
        ("constant_seconds", numbers(&|row| Some(row.shown().constant_s)), false),
        ("error_seconds", numbers(&|row| Some(row.shown().error_s)), false),
        ("before_seconds", numbers(&|row| row.after.as_ref().map(|_| row.before.seconds())), true),
        ("change_percent", numbers(&Row::percent), true),
    ])?)
}

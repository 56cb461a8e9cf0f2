//! What a change would bring: from today's mean to the predicted one, and both means by scenario and
//! by command.

use crate::answers::prediction::waterfall::{Step, Steps, Waterfall};
use crate::answers::prediction::{Forecast, ForecastRow};
use crate::answers::recording::fields::{column, fact};
use crate::document::{Block, Cell, Column, Facts, Section, Table};
use crate::value::format;

/// Most rows: there are few scenarios in a workload, and few commands.
const ROWS_MAX: usize = 100;

pub(crate) fn forecast(forecast: &Forecast) -> Section {
    let mut blocks = vec![Block::Facts(facts(forecast))];
    blocks.extend(forecast.notes.iter().map(|line| Block::Note(line.clone())));
    blocks.extend(forecast.warnings.iter().map(|line| Block::Warn(line.clone())));
    blocks.extend(parts_of(
        "The mean operation",
        "From the first byte of the request to the last of the reply, as the client sees it.",
        &forecast.operations,
    ));
    if let Some(all) = &forecast.all_scenarios {
        blocks.extend(parts_of(
            "The mean scenario",
            "From the scheduled start to the end. \"Between operations\" is what the client does between them, and how late it starts; time during which several operations are in flight is subtracted there, because each of them counts it.",
            all,
        ));
        blocks.push(Block::Table(table("Scenarios", &forecast.scenarios, all)));
    }
    blocks.push(Block::Table(table("Commands", &forecast.commands, &forecast.operations)));
    let assumptions = forecast.assumptions.join(" ");
    if !assumptions.is_empty() {
        blocks.push(Block::Note(format!("Assumptions: {assumptions}")));
    }
    Section {
        id: "forecast",
        title: "What a change would bring",
        help: "The recorded operations, replayed with the changes: each takes its recorded time, minus the cost of the network and of the changed server slices, plus their cost with the changes. Intervals are 95 % intervals from the scatter of the recorded values; they do not include the error of the method, which the documentation shows by comparing predictions with real changes.",
        blocks,
    }
}

fn facts(forecast: &Forecast) -> Facts {
    let of = |name: &str, value: Cell| fact("forecast", name, value);
    let then = |before: String, after: String| {
        if before == after { before } else { format!("{before}, predicted {after}") }
    };
    let mut rows: Vec<_> = forecast
        .changes
        .iter()
        .map(|change| {
            fact("forecast_change", "sentence", Cell::Text(change.sentence.clone()))
                .titled(&change.change)
        })
        .collect();
    if let (Some(before), Some(after)) = (forecast.rtt_before_ns, forecast.rtt_after_ns) {
        let text = then(format::duration(before), format::duration(after));
        rows.push(of("rtt_before_ns", Cell::Text(text)).titled("Round trip"));
    }
    let waiting = then(
        format::duration(forecast.waiting_before_ns),
        format::duration(forecast.waiting_after_ns),
    );
    rows.push(of("timed", Cell::Count(forecast.timed)));
    rows.push(of("waiting_before_ns", Cell::Text(waiting)).titled("Clients waited"));
    Facts { caption: "Changes".to_owned(), rows }
}

/// A chart, its numbers as a table, and the parts that it shows as one.
fn parts_of(caption: &str, help: &str, row: &ForecastRow) -> Vec<Block> {
    let Some(steps) = Steps::from_row(row) else { return Vec::new() };
    let mut rows = steps.changed.clone();
    rows.extend(steps.unchanged.clone());
    rows.push(Step {
        title: "Total".to_owned(),
        joined: Vec::new(),
        before_ns: steps.before_ns,
        after_ns: steps.after_ns,
    });
    let of = "forecast_part";
    let columns: Vec<Column<'_, Step>> = vec![
        column(of, "part", 0, |row: &Step| Cell::Text(row.title.clone())),
        column(of, "before_ns", 0, |row: &Step| ms(Some(row.before_ns))),
        column(of, "after_ns", 0, |row: &Step| ms(Some(row.after_ns))),
        column(of, "after_ns", 0, |row: &Step| {
            let ns = row.difference_ns();
            Cell::Measure(ns as f64, format::signed_ms(ns))
        })
        .titled("Difference"),
    ];
    let mut table = Table::new(format!("{caption}: its parts"), "", &rows, columns);
    (table.in_text, table.in_page) = (ROWS_MAX, ROWS_MAX);
    let chart = Waterfall {
        caption: caption.to_owned(),
        unit: format!("{} to {}", format::ms(steps.before_ns), format::ms(steps.after_ns)),
        help: help.to_owned(),
        bars: steps.bars(),
    };
    let mut blocks = vec![Block::drawing(chart), Block::Table(table)];
    let several = steps.changed.iter().chain(&steps.unchanged);
    let named: Vec<_> = several
        .filter(|step| !step.joined.is_empty())
        .map(|step| format!("{}: {}.", step.title, step.joined.join("; ")))
        .collect();
    if !named.is_empty() {
        blocks.push(Block::Note(named.join(" ")));
    }
    blocks
}

fn table(caption: &str, rows: &[ForecastRow], all: &ForecastRow) -> Table {
    let rows: Vec<_> = rows.iter().chain([all]).cloned().collect();
    let of = "forecast_row";
    let percent = |value: Option<f64>, text: fn(f64) -> String| match value {
        Some(value) => Cell::Measure(value, text(value)),
        None => Cell::Empty,
    };
    let columns: Vec<Column<'_, ForecastRow>> = vec![
        column(of, "name", 0, |row: &ForecastRow| Cell::Text(row.name.clone())),
        column(of, "count", 0, |row: &ForecastRow| Cell::Count(row.count)),
        column(of, "count_after", 0, |row: &ForecastRow| {
            if row.count_after == row.count { Cell::Empty } else { Cell::Count(row.count_after) }
        }),
        column(of, "before_ns", 0, |row: &ForecastRow| ms(row.before_ns)).grouped("Today"),
        column(of, "before_error_ns", 1, |row: &ForecastRow| ms(row.before_error_ns))
            .grouped("Today"),
        column(of, "after_ns", 0, |row: &ForecastRow| ms(row.after_ns)).grouped("Predicted"),
        column(of, "after_error_ns", 1, |row: &ForecastRow| ms(row.after_error_ns))
            .grouped("Predicted"),
        column(of, "change_percent", 0, move |row: &ForecastRow| {
            percent(row.change_percent, format::signed_percent)
        })
        .grouped("Change"),
        column(of, "change_error_percent", 1, move |row: &ForecastRow| {
            percent(row.change_error_percent, |value| format!("{} %", format::fixed(value, 1)))
        })
        .grouped("Change"),
    ];
    let mut table = Table::new(caption, "Means; ± is half of a 95 % interval.", &rows, columns);
    (table.in_text, table.in_page) = (ROWS_MAX, ROWS_MAX);
    table
}

/// One unit for all values, so that they can be compared.
fn ms(ns: Option<i64>) -> Cell {
    ns.map_or(Cell::Empty, |ns| Cell::Measure(ns as f64, format::ms(ns)))
}

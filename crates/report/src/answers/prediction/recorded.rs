//! A prediction from recorded operations, as text and as flat records.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow::error::ArrowError;
use smbscope_analysis::predict::capacity::{Capacity, NoCapacity, Resource};
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::forecast::RecordedForecast;
use smbscope_analysis::predict::replay::{Part, Row, Times};

use super::page::verdict;
use super::{BETWEEN, Forecast, assumptions, title};
use crate::document::TextOptions;
use crate::render::table::{Column, lines};
use crate::render::text::write_verdict;
use crate::value::format;

/// How many times the recorded users a capacity may be without a warning.
const FAR_USERS: f64 = 5.0;

/// The whole prediction for people.
pub(crate) fn text(forecast: &RecordedForecast, options: &TextOptions) -> String {
    let RecordedForecast { changes, prediction, capacity, notes, warnings, .. } = forecast;
    let is_changed = !changes.is_empty();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let verdict = verdict(&Forecast::new(forecast));
    let _ = write_verdict(&mut text, &verdict, options.columns(), options);
    text.push('\n');
    text.push_str(&options.heading(if is_changed {
        "What the change would bring"
    } else {
        "What times consist of"
    }));
    text.push_str(&format!(
        "{} operations with a time, as seen by the clients\n",
        format::count(prediction.timed)
    ));
    if let Some(round_trips) = prediction.rtt_ns {
        text.push_str(&round_trip(round_trips));
    }
    if let Some(all) = &prediction.all_scenarios {
        text.push('\n');
        text.push_str(&options.heading("Scenarios: from the scheduled start to the end"));
        text.push_str(&times_table("scenario", &prediction.scenarios, all, is_changed, options));
    }
    text.push('\n');
    text.push_str(
        &options.heading(
            "Operations: from the first byte of the request to the last byte of the reply",
        ),
    );
    let all = &prediction.operations;
    text.push_str(&times_table("command", &prediction.commands, all, is_changed, options));
    if all.count > prediction.timed {
        text.push_str(&format!(
            "n counts all operations; the means are of the {} with a time of their own (of a compound, its first \
             member)\n",
            format::count(prediction.timed)
        ));
    }
    text.push('\n');
    text.push_str(&options.heading("Parts of the mean operation"));
    text.push_str(&parts_table(all, is_changed, options));
    text.push_str(&waiting(prediction.waiting_ns, is_changed));
    notes.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    // A capture is not expected to show a capacity.
    if !matches!(capacity, Err(NoCapacity::NoSteps)) {
        let title = if is_changed { "Capacity today" } else { "Capacity" };
        text.push('\n');
        text.push_str(&options.heading(title));
        text.push_str(&capacity_text(capacity, options));
    }
    if let Some(changed) = &forecast.changed_capacity {
        text.push('\n');
        text.push_str(&options.heading("Capacity with the changes"));
        text.push_str(&resources_table(changed, options));
        text.extend(changed.limit().map(|limit| {
            format!("{} are exhausted first, at {:.0} users.\n", limit.name, limit.users)
        }));
    }
    if is_changed {
        text.push_str(&assumptions(changes, options));
    }
    if !warnings.is_empty() {
        text.push('\n');
        text.push_str(&options.heading("Warnings"));
        warnings.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    text
}

/// Least, median and largest, today and predicted.
fn round_trip([least, median, largest]: [(i64, i64); 3]) -> String {
    let range = |of: fn((i64, i64)) -> i64| {
        let [least, median, largest] = [least, median, largest].map(of).map(format::duration);
        if least == largest { median } else { format!("{median} ({least} to {largest})") }
    };
    if median.0 == median.1 {
        format!("round trip {}\n", range(|ns| ns.0))
    } else {
        format!("round trip {}, predicted {}\n", range(|ns| ns.0), range(|ns| ns.1))
    }
}

fn waiting((before_ns, after_ns): (i64, i64), is_changed: bool) -> String {
    let mut text = format!("\nClients waited {} in total", format::duration(before_ns));
    if is_changed {
        text.push_str(&format!(", predicted {}", format::duration(after_ns)));
        if before_ns > 0 {
            let percent = 100.0 * (after_ns as f64 / before_ns as f64 - 1.0);
            text.push_str(&format!(" ({})", format::change(percent)));
        }
    }
    text.push_str(".\n");
    text
}

/// Times of groups and of all of them.
fn times_table(
    name: &str,
    rows: &[Row],
    all: &Row,
    is_changed: bool,
    options: &TextOptions,
) -> String {
    let ms = |ns: Option<f64>| ns.map_or(String::new(), |ns| format!("{:.3}", ns / 1e6));
    let times = |times: &Times| {
        let p95 = times.distribution.p95_ns.map(|ns| ns as f64);
        [ms(times.mean_ns()), ms(times.error_ns), ms(p95)]
    };
    let mut titles = vec!["n"];
    if is_changed {
        titles.extend(["before ms", "±", "p95", "after ms", "±", "p95", "%"])
    } else {
        titles.extend(["mean ms", "±", "p95"])
    }
    let rows = rows.iter().map(|row| (row.name.as_str(), row)).chain([("All", all)]);
    let body = rows.map(|(name, row)| {
        let mut cells = vec![name.to_owned(), format::count(row.count)];
        cells.extend(times(&row.before));
        if is_changed {
            cells.extend(times(&row.after));
            cells.push(row.percent().map_or(String::new(), format::change_cell));
        }
        cells
    });
    lines(
        &Column::numbers_of(name, &titles),
        &body.collect::<Vec<_>>(),
        options.bold,
        options.width,
    )
}

/// The parts of the mean, today and predicted.
fn parts_table(all: &Row, is_changed: bool, options: &TextOptions) -> String {
    let mut titles = vec!["before ms"];
    if is_changed {
        titles.extend(["after ms", "difference"]);
    }
    let line = |name: String, before: f64, after: f64| {
        let mut cells = vec![name, format!("{:.3}", before / 1e6)];
        if is_changed {
            cells.push(format!("{:.3}", after / 1e6));
            cells.push(format!("{:+.3}", (after - before) / 1e6));
        }
        cells
    };
    let parts = all.parts.iter();
    let parts = parts.map(|part| line(title(part.part), part.before_ns, part.after_ns));
    let mean = |side: &Times| side.mean_ns().unwrap_or(0.0);
    let total = line("Total".to_owned(), mean(&all.before), mean(&all.after));
    let body: Vec<_> = parts.chain([total]).collect();
    lines(&Column::numbers_of("part", &titles), &body, options.bold, options.width)
}

/// How many users the server carries.
fn capacity_text(capacity: &Result<Capacity, NoCapacity>, options: &TextOptions) -> String {
    let capacity = match capacity {
        Ok(capacity) => capacity,
        Err(missing) => return format!("{}\n", missing.sentence()),
    };
    let mut text = resources_table(capacity, options);
    if let Some(limit) = capacity.limit() {
        text.push_str(&format!(
            "{} are exhausted first, at {:.0} users; {:.0} were recorded. Steps used: {}.\n",
            limit.name, limit.users, capacity.users_recorded, capacity.steps
        ));
        if limit.used.more > 0.0 {
            let more = 100.0 * (1.0 - limit.used.each * limit.servers as f64 / limit.demand_s);
            text.push_str(&format!(
                "A scenario costs more when more of them run: {more:.0} % of those seconds grow with the load.\n"
            ));
        }
        text.extend(far_from_recorded(capacity).map(|line| format!("{line}\n")));
    }
    capacity.notes.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    text
}

fn resources_table(capacity: &Capacity, options: &TextOptions) -> String {
    let titles = ["busy", "without load", "s per scenario", "full at users", "±"];
    let body: Vec<_> = capacity
        .resources
        .iter()
        .map(|one| {
            vec![
                format!("{} ({})", one.name, one.servers),
                format!("{:.1} %", 100.0 * one.utilization),
                one.used.idle.map_or(String::new(), |idle| format!("{:.1} %", 100.0 * idle)),
                format!("{:.6}", one.demand_s),
                format!("{:.0}", one.users),
                format!("{:.0}", one.users_error),
            ]
        })
        .collect();
    lines(&Column::numbers_of("resource", &titles), &body, options.bold, options.width)
}

/// A warning about a capacity that few of its users were recorded for.
fn far_from_recorded(capacity: &Capacity) -> Option<&'static str> {
    let limit = capacity.limit()?;
    (limit.users > FAR_USERS * capacity.users_recorded)
        .then_some("That is far from what was recorded: load the server more for a better answer.")
}

/// Flat records: kind, name, number, before and after. Sentences are records, too, with the sentence as the
/// name.
pub fn batch(forecast: &RecordedForecast) -> Result<RecordBatch, ArrowError> {
    let is_changed = !forecast.changes.is_empty();
    let records = Records::new(forecast);
    let mut columns = records.names(is_changed);
    records.push_times(&mut columns, is_changed);
    records.push_parts(&mut columns, is_changed);
    records.push_commands(&mut columns, forecast);
    records.push_risk(&mut columns, forecast);
    records.push_resources(&mut columns);
    RecordBatch::try_from_iter_with_nullable(columns)
}

type Columns = Vec<(String, ArrayRef, bool)>;

/// The records in their order: times, sentences, what is sent, resources.
struct Records<'a> {
    rows: Vec<(&'static str, Row)>,
    /// Commands of the records about what is sent, and where those begin.
    sent: (usize, Vec<&'a str>),
    /// The last records, one for each.
    resources: Vec<&'a Resource>,
    /// The record of all operations.
    operations: usize,
}

impl<'a> Records<'a> {
    fn new(forecast: &'a RecordedForecast) -> Records<'a> {
        let RecordedForecast { prediction, capacity, .. } = forecast;
        let named = |name: &str| Row { name: name.to_owned(), ..Row::default() };
        let mut rows: Vec<(&'static str, Row)> = Vec::new();
        rows.extend(prediction.scenarios.iter().map(|row| ("scenario", row.clone())));
        rows.extend(prediction.all_scenarios.iter().map(|row| ("scenarios", row.clone())));
        rows.extend(prediction.commands.iter().map(|row| ("command", row.clone())));
        let operations = rows.len();
        rows.push(("operations", prediction.operations.clone()));
        let assumptions = Change::assumptions(&forecast.changes);
        rows.extend(assumptions.into_iter().map(|line| ("assumption", named(line))));
        rows.extend(forecast.notes.iter().map(|line| ("note", named(line))));
        match capacity {
            Ok(capacity) => rows.extend(capacity.notes.iter().map(|line| ("note", named(line)))),
            // A capture is not expected to show a capacity.
            Err(NoCapacity::NoSteps) => {}
            Err(missing) => rows.push(("note", named(missing.sentence()))),
        }
        rows.extend(forecast.warnings.iter().map(|line| ("warning", named(line))));
        let far = capacity.as_ref().ok().and_then(far_from_recorded);
        rows.extend(far.map(|line| ("warning", named(line))));
        let sent = (rows.len(), prediction.sent.iter().map(|one| one.command.as_str()).collect());
        rows.extend(prediction.sent.iter().map(|one| {
            let counts = Row { count: one.before, count_after: one.after, ..Row::default() };
            ("sent", Row { name: one.scenario.clone(), ..counts })
        }));
        let today = capacity.as_ref().ok().map(|capacity| ("capacity", capacity));
        let changed = forecast.changed_capacity.as_ref().map(|one| ("capacity_then", one));
        let mut resources = Vec::new();
        for (kind, capacity) in today.into_iter().chain(changed) {
            rows.extend(capacity.resources.iter().map(|one| (kind, named(&one.name))));
            resources.extend(&capacity.resources);
        }
        Records { rows, sent, resources, operations }
    }

    fn numbers(&self, of: &dyn Fn(&Row) -> Option<f64>) -> ArrayRef {
        Arc::new(self.rows.iter().map(|(_, row)| of(row)).collect::<Float64Array>())
    }

    fn seconds(&self, of: &dyn Fn(&Row) -> Option<f64>) -> ArrayRef {
        self.numbers(&|row| of(row).map(|ns| ns / 1e9))
    }

    fn counts(&self, of: fn(&Row) -> u64) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(self.rows.iter().map(|(_, row)| of(row))))
    }

    fn names(&self, is_changed: bool) -> Columns {
        let words = |of: &dyn Fn(&'_ (&'static str, Row)) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(self.rows.iter().map(of)))
        };
        let mut columns = vec![
            ("of".to_owned(), words(&|row| row.0.to_owned()), false),
            ("name".to_owned(), words(&|row| row.1.name.clone()), false),
            ("count".to_owned(), self.counts(|row| row.count), false),
        ];
        if is_changed {
            columns.push(("count_after".to_owned(), self.counts(|row| row.count_after), false));
        }
        columns
    }

    fn push_times(&self, columns: &mut Columns, is_changed: bool) {
        type Of = fn(&Row) -> &Times;
        let sides: [(&str, Of); 2] = [("before", |row| &row.before), ("after", |row| &row.after)];
        for (side, of) in sides.into_iter().take(if is_changed { 2 } else { 1 }) {
            let mut add = |name: &str, value: &dyn Fn(&Times) -> Option<f64>| {
                columns.push((format!("{side}_{name}"), self.seconds(&|row| value(of(row))), true));
            };
            add("seconds", &|times| times.mean_ns());
            add("error_seconds", &|times| times.error_ns);
            add("p50_seconds", &|times| times.distribution.p50_ns.map(|ns| ns as f64));
            add("p95_seconds", &|times| times.distribution.p95_ns.map(|ns| ns as f64));
            add("p99_seconds", &|times| times.distribution.p99_ns.map(|ns| ns as f64));
        }
        if is_changed {
            columns.push(("change_percent".to_owned(), self.numbers(&Row::percent), true));
            let errors = self.numbers(&Row::percent_error);
            columns.push(("change_error_percent".to_owned(), errors, true));
        }
    }

    fn push_parts(&self, columns: &mut Columns, is_changed: bool) {
        for name in Part::ALL.iter().map(|part| part.name()).chain([BETWEEN]) {
            let of = |row: &Row| row.parts.iter().find(|part| part.part == name).cloned();
            let before = self.seconds(&|row| of(row).map(|part| part.before_ns));
            columns.push((format!("before_{name}_seconds"), before, true));
            if is_changed {
                let after = self.seconds(&|row| of(row).map(|part| part.after_ns));
                columns.push((format!("after_{name}_seconds"), after, true));
            }
        }
    }

    fn push_commands(&self, columns: &mut Columns, forecast: &RecordedForecast) {
        if forecast.prediction.sent.is_empty() {
            return;
        }
        let (first, commands) = &self.sent;
        let command = |place: usize| commands.get(place.checked_sub(*first)?).copied();
        let commands = (0..self.rows.len()).map(command).collect::<StringArray>();
        columns.push(("command".to_owned(), Arc::new(commands), true));
    }

    fn push_risk(&self, columns: &mut Columns, forecast: &RecordedForecast) {
        let Some(risk) = forecast.prediction.at_risk else { return };
        let of = |value: f64| -> ArrayRef {
            let is_operations = |place: usize| (place == self.operations).then_some(value);
            Arc::new((0..self.rows.len()).map(is_operations).collect::<Float64Array>())
        };
        columns.push(("at_risk_bytes".to_owned(), of(risk.mean), true));
        columns.push(("at_risk_most_bytes".to_owned(), of(risk.most as f64), true));
        columns.push(("at_risk_most_seconds".to_owned(), of(risk.longest_ns as f64 / 1e9), true));
    }

    fn push_resources(&self, columns: &mut Columns) {
        let first = self.rows.len() - self.resources.len();
        let mut add = |name: &str, of: fn(&Resource) -> f64| {
            let none = std::iter::repeat_n(None, first);
            let values = none.chain(self.resources.iter().map(|one| Some(of(one))));
            columns.push((name.to_owned(), Arc::new(values.collect::<Float64Array>()), true));
        };
        add("users", |one| one.users);
        add("users_error", |one| one.users_error);
        add("utilization", |one| one.utilization);
        add("demand_seconds", |one| one.demand_s);
        add("demand_growth", |one| one.used.more * one.servers as f64);
    }
}

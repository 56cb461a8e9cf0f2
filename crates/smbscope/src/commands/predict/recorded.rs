//! What is shown of a prediction from recorded operations.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use smbscope_analysis::predict::capacity::{Capacity, NoCapacity, Resource};
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::replay::{Part, Row, Times};
use smbscope_report::format;

use super::args::Predict;
use super::forecast::Forecast;
use super::{detail, taken_for_granted, write};
use crate::format::{Column, RowFormat, lines};
use crate::options::Talk;
use crate::output::Output;

/// How many times the recorded users a capacity may be without a warning.
const FAR_USERS: f64 = 5.0;

/// Predicts from recordings.
pub fn run(args: &Predict, talk: Talk) -> anyhow::Result<()> {
    let mut source = args.reading.open(&args.inputs, None)?;
    // A file that cannot be written is better known before.
    let profile = args.save_profile.as_deref().map(Output::file).transpose()?;
    let in_detail = args.detail || profile.is_some();
    let forecast = Forecast::read(&mut source, &args.asked, in_detail, talk)?;
    if let Some(file) = profile {
        detail::save(&forecast, &args.inputs, file)?;
    }
    let in_detail = forecast.prediction.detail.as_ref().filter(|_| args.detail);
    match args.format {
        RowFormat::Text => {
            let mut output = Output::open(args.out.as_ref())?;
            let (bold, end) = output.bold();
            let text = match in_detail {
                Some(all) => detail::text(&forecast, all, (&bold, end)),
                None => text(&forecast, (&bold, end)),
            };
            output.text(&text)?;
            output.finish()
        }
        format => {
            let batch = match in_detail {
                Some(all) => detail::batch(all)?,
                None => batch(&forecast)?,
            };
            write(batch, format, Output::open(args.out.as_ref())?)
        }
    }
}

fn text(forecast: &Forecast, bold: (&str, &str)) -> String {
    let Forecast { changes, prediction, capacity, capacity_then, notes, warnings, .. } = forecast;
    let is_changed = !changes.is_empty();
    let mut text = match is_changed {
        true => format!("{}What the change would bring{}\n", bold.0, bold.1),
        false => format!("{}What times are made of{}\n", bold.0, bold.1),
    };
    text.push_str(&format!(
        "{} operations with a time, as clients see them\n",
        format::count(prediction.timed)
    ));
    if let Some([least, median, largest]) = prediction.rtt_ns {
        let range = |of: fn((i64, i64)) -> i64| {
            let [least, median, largest] = [least, median, largest].map(of).map(format::duration);
            match least == largest {
                true => median,
                false => format!("{median} ({least} to {largest})"),
            }
        };
        text.push_str(&format!("round trip {}", range(|ns| ns.0)));
        if median.0 != median.1 {
            text.push_str(&format!(", then {}", range(|ns| ns.1)));
        }
        text.push('\n');
    }
    if let Some(all) = &prediction.all_scenarios {
        let mut rows: Vec<&Row> = prediction.scenarios.iter().collect();
        let all = Row { name: "All".to_owned(), ..all.clone() };
        rows.push(&all);
        text.push_str(&format!(
            "\n{}Scenarios: from the time at which one was scheduled to its end{}\n",
            bold.0, bold.1
        ));
        text.push_str(&table("scenario", &rows, is_changed, bold));
    }
    let mut rows: Vec<&Row> = prediction.commands.iter().collect();
    let all = Row { name: "All".to_owned(), ..prediction.operations.clone() };
    rows.push(&all);
    text.push_str(&format!(
        "\n{}Operations: from the first byte of the request to the last of the reply{}\n",
        bold.0, bold.1
    ));
    text.push_str(&table("command", &rows, is_changed, bold));
    if prediction.operations.count > prediction.timed {
        text.push_str(&format!(
            "n counts all of them; means are of the {} with a time of their own: of a compound its first has it\n",
            format::count(prediction.timed)
        ));
    }
    text.push_str(&format!("\n{}What the mean operation is made of{}\n", bold.0, bold.1));
    text.push_str(&parts(&prediction.operations, is_changed, bold));
    let waiting = prediction.waiting_ns;
    text.push_str(&format!("\nClients waited {} in all", format::duration(waiting.0)));
    if is_changed {
        text.push_str(&format!(", then {}", format::duration(waiting.1)));
        if waiting.0 > 0 {
            let percent = 100.0 * (waiting.1 as f64 / waiting.0 as f64 - 1.0);
            text.push_str(&format!(" ({percent:+.1} %)"));
        }
    }
    text.push_str(".\n");
    notes.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    // Of a capture nobody expects a capacity.
    if !matches!(capacity, Err(NoCapacity::NoSteps)) {
        let title = if is_changed { "Capacity today" } else { "Capacity" };
        text.push_str(&format!("\n{}{title}{}\n", bold.0, bold.1));
        text.push_str(&carries(capacity, bold));
    }
    if let Some(then) = capacity_then {
        text.push_str(&format!("\n{}Capacity then{}\n", bold.0, bold.1));
        text.push_str(&resources(then, bold));
        text.extend(then.limit().map(|limit| {
            format!("{} then run out first, at {:.0} users.\n", limit.name, limit.users)
        }));
    }
    if is_changed {
        text.push_str(&taken_for_granted(changes, bold));
    }
    if !warnings.is_empty() {
        text.push_str(&format!("\n{}Beware{}\n", bold.0, bold.1));
        warnings.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    text
}

fn table(title: &str, rows: &[&Row], is_changed: bool, bold: (&str, &str)) -> String {
    let ms = |ns: Option<f64>| ns.map_or(String::new(), |ns| format!("{:.3}", ns / 1e6));
    let times = |times: &Times| {
        let p95 = times.distribution.p95_ns.map(|ns| ns as f64);
        [ms(times.mean_ns()), ms(times.error_ns), ms(p95)]
    };
    let mut titles = vec!["n"];
    match is_changed {
        true => titles.extend(["before ms", "±", "p95", "after ms", "±", "p95", "%"]),
        false => titles.extend(["mean ms", "±", "p95"]),
    }
    let body = rows.iter().map(|row| {
        let mut cells = vec![row.name.clone(), format::count(row.count)];
        cells.extend(times(&row.before));
        if is_changed {
            cells.extend(times(&row.after));
            cells.push(row.percent().map_or(String::new(), |percent| format!("{percent:+.1}")));
        }
        cells
    });
    lines(&Column::numbers_of(title, &titles), &body.collect::<Vec<_>>(), bold)
}

/// The parts of the mean, from today's to the one predicted.
fn parts(all: &Row, is_changed: bool, bold: (&str, &str)) -> String {
    let mut titles = vec!["before ms"];
    if is_changed {
        titles.extend(["after ms", "difference"]);
    }
    let line = |name: &str, before: f64, after: f64| {
        let mut cells = vec![name.to_owned(), format!("{:.3}", before / 1e6)];
        if is_changed {
            cells.push(format!("{:.3}", after / 1e6));
            cells.push(format!("{:+.3}", (after - before) / 1e6));
        }
        cells
    };
    let mut body: Vec<_> = all
        .parts
        .iter()
        .map(|part| line(meaning(part.part), part.before_ns, part.after_ns))
        .collect();
    let sum = |side: &Times| side.mean_ns().unwrap_or(0.0);
    body.push(line("all of it", sum(&all.before), sum(&all.after)));
    lines(&Column::numbers_of("part", &titles), &body, bold)
}

/// How many users the server carries.
fn carries(capacity: &Result<Capacity, NoCapacity>, bold: (&str, &str)) -> String {
    let capacity = match capacity {
        Ok(capacity) => capacity,
        Err(missing) => return format!("{}\n", missing.sentence()),
    };
    let mut text = resources(capacity, bold);
    if let Some(limit) = capacity.limit() {
        text.push_str(&format!(
            "{} run out first, at {:.0} users; {:.0} were recorded. Steps used: {}.\n",
            limit.name, limit.users, capacity.users_recorded, capacity.steps
        ));
        if limit.used.more > 0.0 {
            let more = 100.0 * (1.0 - limit.used.each * limit.servers as f64 / limit.demand_s);
            text.push_str(&format!(
                "A scenario costs more when there are more of them: {more:.0} % of those seconds, which grow with the \
                 load.\n"
            ));
        }
        text.extend(far(capacity).map(|line| format!("{line}\n")));
    }
    capacity.notes.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    text
}

fn resources(capacity: &Capacity, bold: (&str, &str)) -> String {
    let titles = ["busy", "without load", "s a scenario", "full at users", "±"];
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
    lines(&Column::numbers_of("resource", &titles), &body, bold)
}

/// What is to be said of a capacity that few of its users were recorded for.
fn far(capacity: &Capacity) -> Option<&'static str> {
    let limit = capacity.limit()?;
    (limit.users > FAR_USERS * capacity.users_recorded)
        .then_some("That is far from what was recorded: load the server more for a better answer.")
}

/// A part in words for people.
pub fn meaning(part: &str) -> &str {
    match part {
        "network" => "network: one round trip",
        "windows" => "network: TCP's windows and rate",
        "server" => "server, not split further",
        "rest" => "client, and sending the bytes",
        "replica" => "second server",
        slice => slice,
    }
}

/// Flat records: what of, which, how many, before and after; and what is to be known of them, a sentence
/// each, as a name.
fn batch(forecast: &Forecast) -> anyhow::Result<RecordBatch> {
    let Forecast { changes, prediction, capacity, capacity_then, notes, warnings, .. } = forecast;
    let is_changed = !changes.is_empty();
    let scenarios = prediction.scenarios.iter().map(|row| ("scenario", row));
    let all = prediction.all_scenarios.iter().map(|row| ("scenarios", row));
    let commands = prediction.commands.iter().map(|row| ("command", row));
    let operations = std::iter::once(("operations", &prediction.operations));
    let today = capacity.as_ref().ok().map(|capacity| ("capacity", capacity));
    let then = capacity_then.as_ref().map(|capacity| ("capacity_then", capacity));
    let (named, resources): (Vec<_>, Vec<_>) = today
        .into_iter()
        .chain(then)
        .flat_map(|(of, capacity)| capacity.resources.iter().map(move |one| (of, one)))
        .map(|(of, one)| ((of, Row { name: one.name.clone(), ..Row::default() }), one))
        .unzip();
    let limits = named.iter().map(|(of, row)| (*of, row));
    let sentence = |of, name: &str| (of, Row { name: name.to_owned(), ..Row::default() });
    let assumptions = Change::assumptions(changes).into_iter();
    let of_capacity = match capacity {
        Ok(capacity) => capacity.notes.clone(),
        // Of a capture nobody expects one.
        Err(NoCapacity::NoSteps) => Vec::new(),
        Err(missing) => vec![missing.sentence().to_owned()],
    };
    let far = capacity.as_ref().ok().and_then(far);
    let said: Vec<_> = (assumptions.map(|line| sentence("assumption", line)))
        .chain(notes.iter().chain(&of_capacity).map(|line| sentence("note", line)))
        .chain(warnings.iter().map(String::as_str).chain(far).map(|line| sentence("warning", line)))
        .collect();
    let sent: Vec<_> = prediction
        .sent
        .iter()
        .map(|one| Row {
            name: one.scenario.clone(),
            count: one.before,
            count_after: one.after,
            ..Row::default()
        })
        .collect();
    let sent_rows = sent.iter().map(|row| ("sent", row));
    let rows: Vec<_> = scenarios
        .chain(all)
        .chain(commands)
        .chain(operations)
        .chain(said.iter().map(|(of, row)| (*of, row)))
        .chain(sent_rows)
        .chain(limits)
        .collect();
    let before = rows.len() - resources.len();
    let limits = |of: fn(&Resource) -> f64| -> ArrayRef {
        let none = std::iter::repeat_n(None, before);
        Arc::new(none.chain(resources.iter().map(|one| Some(of(one)))).collect::<Float64Array>())
    };
    let numbers = |of: &dyn Fn(&Row) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(|(_, row)| of(row)).collect::<Float64Array>())
    };
    let seconds = |of: &dyn Fn(&Row) -> Option<f64>| numbers(&|row| of(row).map(|ns| ns / 1e9));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1.name.as_str())));
    let counts: ArrayRef =
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.1.count)));
    let mut columns = vec![
        ("of".to_owned(), words, false),
        ("name".to_owned(), names, false),
        ("count".to_owned(), counts, false),
    ];
    if is_changed {
        let after = rows.iter().map(|(_, row)| row.count_after);
        columns.push(("count_after".to_owned(), Arc::new(after.collect::<UInt64Array>()), false));
    }
    type Of = fn(&Row) -> &Times;
    let sides: [(&str, Of); 2] = [("before", |row| &row.before), ("after", |row| &row.after)];
    for (side, of) in sides.into_iter().take(if is_changed { 2 } else { 1 }) {
        let mut add = |name: &str, value: &dyn Fn(&Times) -> Option<f64>| {
            columns.push((format!("{side}_{name}"), seconds(&|row| value(of(row))), true));
        };
        add("seconds", &|times| times.mean_ns());
        add("error_seconds", &|times| times.error_ns);
        add("p50_seconds", &|times| times.distribution.p50_ns.map(|ns| ns as f64));
        add("p95_seconds", &|times| times.distribution.p95_ns.map(|ns| ns as f64));
        add("p99_seconds", &|times| times.distribution.p99_ns.map(|ns| ns as f64));
    }
    if is_changed {
        columns.push(("change_percent".to_owned(), numbers(&Row::percent), true));
        columns.push(("change_error_percent".to_owned(), numbers(&Row::percent_error), true));
    }
    for name in Part::ALL.iter().map(|part| part.name()).chain(["between"]) {
        let of = |row: &Row| row.parts.iter().find(|part| part.part == name).cloned();
        columns.push((
            format!("before_{name}_seconds"),
            seconds(&|row| of(row).map(|part| part.before_ns)),
            true,
        ));
        if is_changed {
            columns.push((
                format!("after_{name}_seconds"),
                seconds(&|row| of(row).map(|part| part.after_ns)),
                true,
            ));
        }
    }
    if !sent.is_empty() {
        let none = std::iter::repeat_n(None, before - sent.len());
        let commands = prediction.sent.iter().map(|one| Some(one.command.as_str()));
        let rest = std::iter::repeat_n(None, resources.len());
        let commands: ArrayRef =
            Arc::new(none.chain(commands).chain(rest).collect::<StringArray>());
        columns.push(("command".to_owned(), commands, true));
    }
    if let Some(risk) = prediction.at_risk {
        let of =
            |value: f64| numbers(&|row| std::ptr::eq(row, &prediction.operations).then_some(value));
        columns.push(("at_risk_bytes".to_owned(), of(risk.mean), true));
        columns.push(("at_risk_most_bytes".to_owned(), of(risk.most as f64), true));
        columns.push(("at_risk_most_seconds".to_owned(), of(risk.longest_ns as f64 / 1e9), true));
    }
    columns.push(("users".to_owned(), limits(|one| one.users), true));
    columns.push(("users_error".to_owned(), limits(|one| one.users_error), true));
    columns.push(("utilization".to_owned(), limits(|one| one.utilization), true));
    columns.push(("demand_seconds".to_owned(), limits(|one| one.demand_s), true));
    columns.push((
        "demand_growth".to_owned(),
        limits(|one| one.used.more * one.servers as f64),
        true,
    ));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

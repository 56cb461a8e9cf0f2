//! Predictions from recorded operations.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use smbscope_event::operation;
use smbscope_event::tables::Connection;
use smbscope_model::predict::capacity::{Capacity, Demand, NoCapacity, Resource};
use smbscope_model::predict::change::Change;
use smbscope_model::predict::plan::Plan;
use smbscope_model::predict::replay::{self, Learnt, Part, Prediction, Replay, Row, Times};
use smbscope_report::format;
use smbscope_store::source::{Request, Source};
use smbscope_store::{Part as Rows, Table};

use super::args::Predict;
use super::{taken_for_granted, write};
use crate::exit::Failure;
use crate::format::{Column, RowFormat, lines};
use crate::interrupt;
use crate::options::Talk;
use crate::output::Output;
use crate::progress::Shown;

/// How many times as long as any recorded round trip a new one may be without a warning.
const FAR: f64 = 10.0;
/// How many times the recorded users a capacity may be without a warning.
const FAR_USERS: f64 = 5.0;

/// Predicts from recordings.
pub fn run(args: &Predict, talk: Talk) -> anyhow::Result<()> {
    let mut plan = Plan::default();
    for change in &args.changes {
        change.plan(&mut plan).map_err(|lacking| {
            Failure::usage(format!(
                "--change {}: cannot be predicted from recorded operations yet, only from a profile: \
                 {} is not known of them",
                lacking.change, lacking.what
            ))
        })?;
    }
    let mut source = args.reading.open(&args.inputs, None)?;
    // The round trips must be known before the first operation.
    source.spool()?;
    let context = Context::read(&source, talk)?;
    let capacity = context.demand.finish();
    for change in &args.changes {
        if let Change::Users(users) = change {
            plan.stretch *= stretch(&capacity, *users)?;
        }
    }
    let connections = context.connections;
    let mut learnt = [Learnt::default(); 2];
    if plan.is_other_blocks() {
        // What requests of other sizes cost must be learnt from all of them first.
        learnt = replay(&source, &connections, Plan::default(), learnt, talk)?.learnt;
        has_sizes(args, learnt)?;
    }
    let prediction = replay(&source, &connections, plan.clone(), learnt, talk)?;
    check(args, &plan, &prediction)?;
    match args.format {
        RowFormat::Text => {
            let mut output = Output::open(args.out.as_ref())?;
            let (bold, end) = output.bold();
            output.text(&text(args, &prediction, &capacity, (&bold, end)))?;
            output.finish()
        }
        format => write(
            batch(&prediction, &capacity, !args.changes.is_empty())?,
            format,
            Output::open(args.out.as_ref())?,
        ),
    }
}

/// What must be known before the first operation.
#[derive(Default)]
struct Context {
    connections: Vec<Connection>,
    demand: Demand,
}

impl Context {
    fn read(source: &Source, talk: Talk) -> anyhow::Result<Context> {
        let mut context = Context::default();
        let tables = vec![Table::Steps, Table::Counters, Table::Connections];
        let parts = source.parts(&Request { tables, projection: Some(Vec::new()) })?;
        let _shown = Shown::begin(talk, parts.progress());
        for part in parts {
            match part? {
                Rows::Steps(rows) => context.demand.steps(&rows),
                Rows::Counters(rows) => context.demand.counters(&rows),
                Rows::Connections(rows) => context.connections.extend(rows),
                _ => {}
            }
            interrupt::check()?;
        }
        Ok(context)
    }
}

/// How many times as long the server takes with so many users.
fn stretch(capacity: &Result<Capacity, NoCapacity>, users: f64) -> anyhow::Result<f64> {
    let refused = |why: &str| Failure::usage(format!("--change users: {why}"));
    let capacity = capacity.as_ref().map_err(|missing| refused(missing.sentence()))?;
    let limit = capacity.limit().ok_or_else(|| refused(NoCapacity::NoCounters.sentence()))?;
    capacity.stretch(users).ok_or_else(|| {
        refused(&format!(
            "the server carries about {:.0} users ({}): with {users:.0} queues grow without end and there \
             is no response time",
            limit.users, limit.name
        ))
    })
}

fn replay(
    source: &Source,
    connections: &[Connection],
    plan: Plan,
    learnt: [Learnt; 2],
    talk: Talk,
) -> anyhow::Result<Prediction> {
    let mut replay = Replay::new(plan, learnt);
    replay.connections(connections);
    let schema = operation::schema();
    let places = replay::columns().map(|name| schema.index_of(name)).collect::<Result<_, _>>()?;
    let tables = vec![Table::Scenarios, Table::Operations];
    let parts = source.parts(&Request { tables, projection: Some(places) })?;
    let _shown = Shown::begin(talk, parts.progress());
    for part in parts {
        match part? {
            Rows::Scenarios(rows) => replay.scenarios(&rows),
            Rows::Operations(batch) => replay.operations(&batch)?,
            _ => {}
        }
        interrupt::check()?;
    }
    Ok(replay.finish())
}

/// Whether reads and writes of other sizes can be predicted.
fn has_sizes(args: &Predict, [read, write]: [Learnt; 2]) -> anyhow::Result<()> {
    for change in &args.changes {
        let (block, of): (u64, &[Learnt]) = match *change {
            Change::Block(bytes) => (bytes, &[read, write]),
            Change::ReadBlock(bytes) => (bytes, &[read]),
            Change::WriteBlock(bytes) => (bytes, &[write]),
            _ => continue,
        };
        // What stays as it is needs no costs.
        let is_cut = |one: &Learnt| one.continued > 0 || one.most_bytes > block;
        if of.iter().any(|one| one.line.is_none() && is_cut(one)) {
            let lacking = change.lacking();
            return Err(Failure::usage(format!(
                "--change {}: the inputs have not what that needs: {}; record with a second block size \
                 (load --block) and give both recordings",
                lacking.change, lacking.what
            )));
        }
    }
    Ok(())
}

/// Whether the recording has what the changes need.
fn check(args: &Predict, plan: &Plan, prediction: &Prediction) -> anyhow::Result<()> {
    if prediction.timed == 0 {
        return Err(Failure::usage(
            "the inputs hold no operation with a time of its own: nothing can be predicted from them",
        ));
    }
    for change in &args.changes {
        let Some((kinds, _)) = change.slices() else { continue };
        let has = |name: &str| prediction.slices.iter().any(|(slice, n)| *slice == name && *n > 0);
        if !kinds.iter().any(|kind| has(kind.name())) {
            let lacking = change.lacking();
            return Err(Failure::usage(format!(
                "--change {}: the inputs have not what that needs: {}",
                lacking.change, lacking.what
            )));
        }
    }
    if plan.is_other_line() && prediction.without_rtt == prediction.timed {
        return Err(Failure::usage(
            "no connection of the inputs has a round trip on both sides of where it was recorded, so \
             another line cannot be put in its place: record the TCP handshakes, or data in both \
             directions (a load run and `smbscope record --interface` have them)",
        ));
    }
    Ok(())
}

fn text(
    args: &Predict,
    prediction: &Prediction,
    capacity: &Result<Capacity, NoCapacity>,
    bold: (&str, &str),
) -> String {
    let changes = &args.changes;
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
    // Of a capture nobody expects a capacity.
    if !matches!(capacity, Err(NoCapacity::NoSteps)) {
        text.push_str(&format!("\n{}Capacity{}\n", bold.0, bold.1));
        text.push_str(&carries(capacity, bold));
    }
    if is_changed {
        text.push_str(&taken_for_granted(changes, bold));
    }
    let warnings = warnings(prediction);
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
    let titles = ["busy", "without load", "s a scenario", "full at users", "±"];
    let body: Vec<_> = capacity
        .resources
        .iter()
        .map(|one| {
            vec![
                format!("{} ({})", one.name, one.servers),
                format!("{:.1} %", 100.0 * one.utilization),
                one.idle_utilization.map_or(String::new(), |idle| format!("{:.1} %", 100.0 * idle)),
                format!("{:.6}", one.demand_s),
                format!("{:.0}", one.users),
                format!("{:.0}", one.users_error),
            ]
        })
        .collect();
    let mut text = lines(&Column::numbers_of("resource", &titles), &body, bold);
    if let Some(limit) = capacity.limit() {
        text.push_str(&format!(
            "{} run out first, at {:.0} users; {:.0} were recorded. Steps used: {}.\n",
            limit.name, limit.users, capacity.users_recorded, capacity.steps
        ));
        if limit.users > FAR_USERS * capacity.users_recorded {
            text.push_str(
                "That is far from what was recorded: load the server more for a better answer.\n",
            );
        }
    }
    text
}

/// A part in words for people.
fn meaning(part: &str) -> &str {
    match part {
        "network" => "network: one round trip",
        "windows" => "network: TCP's windows and rate",
        "server" => "server, not split further",
        "rest" => "client, and sending the bytes",
        slice => slice,
    }
}

/// Where the prediction leaves what was measured.
fn warnings(prediction: &Prediction) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some([_, _, largest]) = prediction.rtt_ns
        && largest.1 as f64 > FAR * largest.0 as f64
        && largest.0 != largest.1
    {
        warnings.push(format!(
            "The longest round trip that was recorded is {}: {} lies far outside of what was measured.",
            format::duration(largest.0),
            format::duration(largest.1)
        ));
    }
    if prediction.without_rtt > 0 && prediction.rtt_ns.is_some_and(|[_, one, _]| one.0 != one.1) {
        warnings.push(format!(
            "{} of {} operations belong to connections whose round trip is not known: they keep their \
             time.",
            format::count(prediction.without_rtt),
            format::count(prediction.timed)
        ));
    }
    let (before, after) = prediction.late;
    if after > before {
        let n = prediction.all_scenarios.as_ref().map_or(0, |row| row.count);
        warnings.push(format!(
            "{} of {} scenarios begin more than a second late (today {}): users cannot keep their \
             schedule, and response times grow with the length of the run.",
            format::count(after),
            format::count(n),
            format::count(before)
        ));
    }
    if prediction.executions_left_out > 0 {
        warnings.push(format!(
            "{} executions of scenarios were not followed: there are too many.",
            format::count(prediction.executions_left_out)
        ));
    }
    warnings
}

/// Flat records: what of, which, how many, before and after.
fn batch(
    prediction: &Prediction,
    capacity: &Result<Capacity, NoCapacity>,
    is_changed: bool,
) -> anyhow::Result<RecordBatch> {
    let scenarios = prediction.scenarios.iter().map(|row| ("scenario", row));
    let all = prediction.all_scenarios.iter().map(|row| ("scenarios", row));
    let commands = prediction.commands.iter().map(|row| ("command", row));
    let operations = std::iter::once(("operations", &prediction.operations));
    let resources = capacity.as_ref().map_or(&[][..], |capacity| &capacity.resources);
    let named: Vec<_> =
        resources.iter().map(|one| Row { name: one.name.clone(), ..Row::default() }).collect();
    let limits = named.iter().map(|row| ("capacity", row));
    let rows: Vec<_> =
        scenarios.chain(all).chain(commands).chain(operations).chain(limits).collect();
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
    columns.push(("users".to_owned(), limits(|one| one.users), true));
    columns.push(("users_error".to_owned(), limits(|one| one.users_error), true));
    columns.push(("utilization".to_owned(), limits(|one| one.utilization), true));
    columns.push(("demand_seconds".to_owned(), limits(|one| one.demand_s), true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

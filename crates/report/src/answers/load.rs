//! The capacity of a server: the curve, the answer, and the steps.

pub(crate) mod bottleneck;
pub mod calibration;
pub mod capacity;
pub(crate) mod counters;
pub(crate) mod fields;
mod over_time;
pub(crate) mod run;
mod scenarios;
pub mod state;
pub mod workload;

use smbscope_analysis::summary::{Answer, Load, StepRow};

use crate::answers::load::bottleneck::bottleneck;
use crate::answers::recording::fields::{column, distribution, fact, field};
use crate::document::{Block, Cell, Chart, Curve, Fact, Facts, Point, Section, Table};
use crate::value::{Format, format};

pub(crate) use over_time::{bands, over_time};
pub(crate) use scenarios::scenarios;

fn users(users: Option<u64>) -> String {
    users.map_or_else(|| "none".to_owned(), format::count)
}

pub(crate) fn capacity(load: &Load) -> Section {
    // The first curve answers the question; the others explain it.
    let mut curves = curves(load).into_iter();
    let mut blocks: Vec<_> = curves.by_ref().take(2).collect();
    blocks.extend(load.answers.iter().map(|it| Block::Facts(answer(load, it))));
    blocks.push(Block::Table(table(load)));
    let more: Vec<_> = curves.collect();
    if !more.is_empty() {
        blocks.push(Block::fold("Throughput by load", more));
    }
    let searched = load.steps.len() > 1;
    Section {
        id: "capacity",
        title: if searched { "Capacity" } else { "The load" },
        help: "Response times count from the scheduled time of a scenario, so that delays caused by a slow server are included. Overload means that users no longer keep their schedule; docs/method/overload.md has the exact definition.",
        blocks,
    }
}

fn answer(load: &Load, answer: &Answer) -> Facts {
    let of = |name: &str, value: Cell| fact("answer", name, value);
    let interval = match (answer.low, answer.high) {
        (Some(low), Some(high)) => {
            format!("between {} and {}", format::count(low), format::count(high))
        }
        (Some(low), None) => format!("at least {}", format::count(low)),
        (None, Some(high)) => format!("at most {}", format::count(high)),
        (None, None) => "its interval is unknown".to_owned(),
    };
    let confidence = answer
        .confidence
        .map(|share| format!(" with {} confidence", format::share(share)))
        .unwrap_or_default();
    let mut rows = vec![Fact {
        title: "Users without overload".to_owned(),
        value: Cell::Text(users(answer.users)),
        note: format!("{interval}{confidence}"),
        help: field("capacity", "users").help,
    }];
    if let Some(p95) = answer.p95_ns {
        rows.push(of("p95_ns", Cell::Duration(p95)));
    }
    if let Some(overall) = answer.overall_response_ns {
        rows.push(of("overall_response_ns", Cell::Duration(overall)));
    }
    if !answer.reason.is_empty() {
        rows.push(of("reason", Cell::Text(answer.reason.clone())));
    }
    if answer.derived {
        rows.push(of("derived", Cell::Text("yes".to_owned())).noted(
            "the highest load without overload below the lowest overloaded one; the run has no answer of its own",
        ));
    }
    let caption = match load.answers.len() {
        1 => "Answer".to_owned(),
        _ => format!("Answer of {}", answer.run),
    };
    Facts { caption, rows }
}

fn table(load: &Load) -> Table {
    let of = "load_step";
    let mut columns = vec![
        column(of, "users", 0, |row: &StepRow| Cell::Count(row.users)),
        column(of, "overload_share", 0, |row: &StepRow| Cell::Share(row.overload_share)),
        column(of, "overloaded", 1, |row: &StepRow| verdict(row)).titled("Verdict"),
        column(of, "throughput", 0, |row: &StepRow| Cell::Number(row.throughput)),
        column(of, "operations_per_second", 0, |row: &StepRow| {
            row.operations_per_second.map_or(Cell::Empty, Cell::Number)
        }),
        column(of, "bytes_per_second", 1, |row: &StepRow| {
            row.bytes_per_second.map_or(Cell::Empty, |bytes| Cell::Bytes(bytes as u64))
        }),
        column(of, "server_cpu_share", 0, |row: &StepRow| {
            row.server_cpu_share.map_or(Cell::Empty, Cell::Share)
        }),
        column(of, "server_disk_share", 1, |row: &StepRow| {
            row.server_disk_share.map_or(Cell::Empty, Cell::Share)
        }),
        column(of, "bottleneck", 1, |row: &StepRow| {
            bottleneck(row).map_or(Cell::Empty, Cell::Text)
        }),
        column(of, "failed", 0, |row: &StepRow| Cell::Count(row.failed)),
        column(of, "failed_share", 1, |row: &StepRow| Cell::Share(row.failed_share)),
        column(of, "duration_ns", 1, |row: &StepRow| Cell::Duration(row.duration_ns)),
    ];
    columns.extend(distribution(of, "response", [2, 1, 0, 1, 2], |row: &StepRow| &row.response));
    columns.extend([
        column("distribution", "p95_ns", 3, |row: &StepRow| Cell::duration(row.late.p95_ns))
            .grouped("Late"),
        column("distribution", "max_ns", 2, |row: &StepRow| Cell::duration(row.late.max_ns))
            .grouped("Late"),
        column(of, "rate", 3, |row: &StepRow| Cell::Number(row.rate)),
        column(of, "scheduled", 3, |row: &StepRow| Cell::Count(row.scheduled)),
        column(of, "on_time", 3, |row: &StepRow| Cell::Count(row.on_time)),
        column(of, "users_overloaded", 3, |row: &StepRow| Cell::Count(row.users_overloaded)),
        column(of, "client_cpu_share", 2, |row: &StepRow| {
            row.client_cpu_share.map_or(Cell::Empty, Cell::Share)
        }),
        column(of, "reply_wait_mean_ns", 2, |row: &StepRow| Cell::duration(row.reply_wait_mean_ns)),
        column(of, "step", 3, |row: &StepRow| Cell::Count(row.step)),
    ]);
    if load.steps.iter().any(|step| step.parts > 1) {
        columns.push(column(of, "parts", 2, |row: &StepRow| Cell::Count(row.parts)));
    }
    if load.steps.iter().any(|step| Some(&step.run) != load.steps.first().map(|it| &it.run)) {
        columns.push(column(of, "run", 0, |row: &StepRow| Cell::Code(row.run.clone())));
    }
    let mut rows = load.steps.clone();
    rows.sort_by(|a, b| (&a.run, a.users, a.step).cmp(&(&b.run, b.users, b.step)));
    Table::new(
        "Steps",
        "Each step has a constant number of users; errors are scenarios that failed.",
        &rows,
        columns,
    )
    .cut(40, 200, "select * from steps order by step")
}

fn verdict(row: &StepRow) -> Cell {
    let words = [
        (row.server_gone, "server stopped answering"),
        (row.overloaded, "overloaded"),
        (row.limited_by_client, "limited by the client"),
        (row.ended_early, "ended early"),
    ];
    let words: Vec<_> = words.iter().filter(|(said, _)| *said).map(|(_, word)| *word).collect();
    if words.is_empty() { Cell::Empty } else { Cell::Text(words.join(", ")) }
}

/// Users against overload and response time; nothing of a single load, or of several runs.
fn curves(load: &Load) -> Vec<Block> {
    let steps = &load.steps;
    let first = steps.first();
    let several = steps.iter().any(|step| Some(step.users) != first.map(|it| it.users));
    if !several || steps.iter().any(|step| Some(&step.run) != first.map(|it| &it.run)) {
        return Vec::new();
    }
    let mark = match load.answers.as_slice() {
        [answer] => match (answer.low, answer.high) {
            (Some(low), Some(high)) => Some((low as f64, high as f64, "the answer's interval")),
            _ => None,
        },
        _ => None,
    };
    let limit = load.runs.first().and_then(|run| run.description.overload_limit_percent);
    let line = |of: &dyn Fn(&StepRow) -> Option<f64>| -> Vec<Point> {
        let point = |step: &StepRow| Some((step.users as f64, of(step)?, step.overloaded));
        steps.iter().filter_map(point).collect()
    };
    let time = |ns: Option<i64>| ns.map(|ns| ns as f64);
    let curve = |caption: &str, help: &str, format, limit, lines| {
        Block::chart(Curve {
            caption: caption.to_owned(),
            help: help.to_owned(),
            over: "users",
            format,
            limit,
            mark,
            // The table next to it has the rest.
            in_text: caption != "Throughput",
            lines,
        })
    };
    let mut blocks = vec![
        curve(
            "Overload",
            "Each dot is a step; lines connect the means.",
            Format::Share,
            limit.map(|percent| (percent / 100.0, "overloaded above")),
            vec![("Overload", line(&|step| Some(step.overload_share)))],
        ),
        curve(
            "Response time",
            "All scenarios, from their scheduled time.",
            Format::Duration,
            None,
            vec![
                ("p95", line(&|step| time(step.response.p95_ns))),
                ("p50", line(&|step| time(step.response.p50_ns))),
                ("p99", line(&|step| time(step.response.p99_ns))),
            ],
        ),
        curve(
            "Throughput",
            "Scenarios per second that ended without failing, and the scheduled rate.",
            Format::Number,
            None,
            vec![
                ("Ended", line(&|step| Some(step.throughput))),
                ("Asked for", line(&|step| Some(step.rate).filter(|rate| *rate > 0.0))),
            ],
        ),
    ];
    // A line without points says nothing.
    for block in &mut blocks {
        if let Block::Chart(Chart::Curve(curve)) = block {
            curve.lines.retain(|(_, points)| !points.is_empty());
        }
    }
    blocks.retain(
        |block| !matches!(block, Block::Chart(Chart::Curve(curve)) if curve.lines.is_empty()),
    );
    blocks
}

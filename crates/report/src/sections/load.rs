//! Capacity, scenarios with their response times, failures, and scenarios over time.

use smbscope_analysis::summary::{
    Answer, Failure, Load, LoadBin, PhaseRow, Report, ScenarioRow, Status, StatusClass, StepRow,
};

use crate::document::{
    Block, Cell, Curve, Fact, Facts, Join, Lines, Point, Section, Table, column, distribution, fact,
};
use crate::fields::{Format, field};
use crate::format;
use crate::pages::capacity::failure_meaning;

/// The numbers of a load run that everybody looks for first.
pub(crate) fn figures(load: &Load) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    match load.answers.as_slice() {
        [answer] => figures.push(("Users without overload", users(answer.users))),
        _ => {
            let most = load.steps.iter().map(|step| step.users).max();
            figures.push(("Users", users(most)));
        }
    }
    let shown: Vec<_> = load
        .steps
        .iter()
        .filter(|step| {
            load.scenario_steps.iter().any(|it| it.run == step.run && it.step == step.step)
        })
        .collect();
    if let [first, ..] = shown.as_slice() {
        figures.push(("Scenarios/s", format::number(first.throughput)));
        let p95 = first.response.p95_ns;
        let p95 = p95.map_or_else(|| "–".to_owned(), format::duration);
        figures.push(("95 of 100 scenarios within", p95));
    }
    figures
}

fn users(users: Option<u64>) -> String {
    users.map_or_else(|| "none".to_owned(), format::count)
}

pub(crate) fn capacity(load: &Load) -> Section {
    let mut blocks: Vec<_> = load.answers.iter().map(|it| Block::Facts(answer(load, it))).collect();
    blocks.push(Block::Table(table(load)));
    blocks.extend(curves(load));
    let searched = load.steps.len() > 1;
    Section {
        id: "capacity",
        title: if searched { "Capacity" } else { "Load" },
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
            row.bottleneck.clone().map_or(Cell::Empty, Cell::Text)
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
    match words.is_empty() {
        true => Cell::Empty,
        false => Cell::Text(words.join(", ")),
    }
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
        Block::Curve(Curve {
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
        if let Block::Curve(curve) = block {
            curve.lines.retain(|(_, points)| !points.is_empty());
        }
    }
    blocks.retain(|block| !matches!(block, Block::Curve(curve) if curve.lines.is_empty()));
    blocks
}

pub(crate) fn scenarios(load: &Load) -> Section {
    let mut blocks = vec![Block::Note(window(load))];
    let mut loads: Vec<_> = load.scenario_steps.iter().map(|step| step.users).collect();
    loads.sort_unstable();
    loads.dedup();
    let loads: Vec<_> = loads.into_iter().map(format::count).collect();
    let caption = match loads.is_empty() {
        true => "Response times".to_owned(),
        false => format!("Response times with {} users", loads.join(", ")),
    };
    let several = load.steps.len() > load.scenario_steps.len();
    let help = match (several, load.window.step) {
        (_, Some(_)) => "Scenarios of the requested step.",
        (true, _) => "The highest load without overload; the other steps follow.",
        (false, _) => "Scenarios of the measured window.",
    };
    blocks.push(Block::Table(scenario_table(&caption, help, &load.scenarios, false)));
    if several {
        let mut rows = load.scenarios_by_step.clone();
        rows.sort_by(|a, b| (a.users, a.step, &a.scenario).cmp(&(b.users, b.step, &b.scenario)));
        blocks.push(Block::Table(scenario_table(
            "Response times at every load",
            "Likewise for each step.",
            &rows,
            true,
        )));
    }
    if load.scenarios_others > 0 {
        blocks.push(Block::Note(format!(
            "{} scenarios have a step and name past the limit on their number.",
            format::count(load.scenarios_others)
        )));
    }
    blocks.extend(failures(load));
    blocks.push(Block::Table(phases(&load.phases)));
    blocks.extend(left_out(load));
    Section {
        id: "scenarios",
        title: "Scenarios",
        help: "Response: from the scheduled time of a scenario to its end, which is how long the user waits. Late: the part of it before the scenario began, because the previous one had not ended.",
        blocks,
    }
}

/// Which operations the report counts.
fn window(load: &Load) -> String {
    let window = &load.window;
    if !window.measured {
        return format!(
            "The sections on operations count all {} operations of the recording in all phases.",
            format::count(window.operations)
        );
    }
    let which = match window.step {
        Some(step) => format!("step {step}"),
        None if load.steps.len() > 1 => {
            "the measured windows of all steps (--step N shows one)".to_owned()
        }
        None => "the measured window".to_owned(),
    };
    format!(
        "The sections on operations count the {} operations of scenarios that were scheduled in {which}. {} others are left out, {} of them errors: warm-up, cool-down and logons (--phase all counts them). Charts over time, connections, sessions and opens cover the whole run.",
        format::count(window.operations),
        format::count(window.left_out),
        format::count(window.left_out_errors)
    )
}

fn scenario_table(caption: &str, help: &str, rows: &[ScenarioRow], by_step: bool) -> Table {
    let of = "load_scenario";
    let mut columns = Vec::new();
    if by_step {
        columns.push(column(of, "users", 0, |row: &ScenarioRow| Cell::count(row.users)));
        columns.push(column(of, "step", 2, |row: &ScenarioRow| Cell::count(row.step)));
    }
    columns.push(column(of, "scenario", 0, |row: &ScenarioRow| Cell::Text(row.scenario.clone())));
    columns
        .extend(distribution(of, "response", [0, 0, 0, 0, 1], |row: &ScenarioRow| &row.response));
    columns.push(
        column("distribution", "histogram", 3, |row: &ScenarioRow| match by_step {
            true => Cell::Empty,
            false => row
                .response
                .histogram
                .clone()
                .map_or(Cell::Empty, |counts| Cell::Histogram(trimmed(rows, counts))),
        })
        .titled("Distribution"),
    );
    columns.extend([
        column("distribution", "p95_ns", 1, |row: &ScenarioRow| Cell::duration(row.late.p95_ns))
            .grouped("Late"),
        column("distribution", "max_ns", 2, |row: &ScenarioRow| Cell::duration(row.late.max_ns))
            .grouped("Late"),
        column(of, "scheduled", 3, |row: &ScenarioRow| Cell::Count(row.scheduled)),
        column(of, "failed", 0, |row: &ScenarioRow| Cell::some(row.failed)),
        column(of, "not_started", 1, |row: &ScenarioRow| Cell::some(row.not_started)),
        column(of, "operations_mean", 2, |row: &ScenarioRow| Cell::Number(row.operations_mean)),
        column(of, "saved_mean", 3, |row: &ScenarioRow| match row.saved_mean {
            0.0 => Cell::Empty,
            saved => Cell::Number(saved),
        }),
    ]);
    let mut table = Table::new(caption, help, rows, columns).cut(
        if by_step { 15 } else { 40 },
        300,
        "select * from scenarios where phase = 'measured'",
    );
    if by_step {
        table.sql = None;
    }
    table
}

/// The part of a histogram that any of the rows uses.
fn trimmed(rows: &[ScenarioRow], counts: Vec<u64>) -> Vec<u64> {
    let used = |place: usize| {
        let mut all = rows.iter().filter_map(|row| row.response.histogram.as_ref());
        all.any(|counts| counts.get(place).is_some_and(|count| *count > 0))
    };
    let first = (0..counts.len()).find(|&place| used(place)).unwrap_or(0);
    let last = (0..counts.len()).rev().find(|&place| used(place)).map_or(0, |last| last + 1);
    counts.get(first..last).unwrap_or(&[]).to_vec()
}

fn failures(load: &Load) -> Vec<Block> {
    if load.failures.is_empty() && load.failures_others == 0 {
        return vec![Block::Note("No scenario failed.".to_owned())];
    }
    let of = "failure";
    let range = |row: &Failure| match (row.users_min, row.users_max) {
        (Some(least), Some(most)) if least == most => Cell::Text(format::count(least)),
        (Some(least), Some(most)) => {
            Cell::Text(format!("{} – {}", format::count(least), format::count(most)))
        }
        _ => Cell::Empty,
    };
    let columns = vec![
        column(of, "status", 0, |row: &Failure| Cell::Text(row.status.clone())),
        column(of, "scenario", 0, |row: &Failure| Cell::Text(row.scenario.clone())),
        column(of, "count", 0, |row: &Failure| Cell::Count(row.count)),
        column(of, "measured", 1, |row: &Failure| Cell::Count(row.measured)),
        column(of, "users_min", 1, range).titled("With users"),
        column(of, "first_ns", 2, |row: &Failure| Cell::Time(row.first_ns)),
        column(of, "status", 1, |row: &Failure| {
            failure_meaning(&row.status).map_or(Cell::Empty, |text| Cell::Text(text.to_owned()))
        })
        .titled("Meaning"),
    ];
    let mut blocks = vec![Block::Table(
        Table::new("Failed scenarios", "By status and scenario, in all phases.", &load.failures, columns)
            .cut(15, 100, "select status_name, scenario, count(*) from scenarios where outcome = 'failed' group by status_name, scenario order by 3 desc"),
    )];
    if load.failures_others > 0 {
        blocks.push(Block::Note(format!(
            "{} further failures have a status and scenario past the limit on their number.",
            format::count(load.failures_others)
        )));
    }
    blocks
}

fn phases(rows: &[PhaseRow]) -> Table {
    let of = "load_phase";
    let columns = vec![
        column(of, "phase", 0, |row: &PhaseRow| Cell::Text(row.phase.clone())),
        column(of, "scenarios", 0, |row: &PhaseRow| Cell::Count(row.scenarios)),
        column(of, "done", 2, |row: &PhaseRow| Cell::Count(row.done)),
        column(of, "failed", 0, |row: &PhaseRow| Cell::some(row.failed)),
        column(of, "not_started", 1, |row: &PhaseRow| Cell::some(row.not_started)),
        column(of, "operations", 0, |row: &PhaseRow| Cell::Count(row.operations)),
        column(of, "errors", 0, |row: &PhaseRow| Cell::some(row.errors)),
        column(of, "counted", 1, |row: &PhaseRow| {
            Cell::Text(if row.counted { "yes" } else { "no" }.to_owned())
        }),
    ];
    Table::new(
        "Phases",
        "Phases in which scenarios were scheduled, and whether the sections on operations count their operations.",
        rows,
        columns,
    )
}

/// Replies of operations that are not counted, where they are not as they should be.
fn left_out(load: &Load) -> Option<Block> {
    // Usual ones, such as the steps of a logon, say nothing.
    let statuses = load.window.statuses.rows.iter();
    let rows: Vec<_> = statuses.filter(|row| row.class != StatusClass::Usual).cloned().collect();
    if rows.is_empty() {
        return None;
    }
    let of = "status";
    let columns = vec![
        column(of, "name", 0, |row: &Status| Cell::Text(row.name.clone())),
        column(of, "operations", 0, |row: &Status| Cell::Count(row.operations)),
        column(of, "commands", 1, |row: &Status| {
            let words = row.commands.iter().take(4);
            let words: Vec<_> =
                words.map(|it| format!("{}: {}", it.name, format::count(it.count))).collect();
            Cell::Text(words.join(", "))
        }),
    ];
    Some(Block::Table(
        Table::new(
            "Errors outside the measured windows",
            "Errors in warm-up, cool-down and logons, including names that do not exist; those of the measured windows are in the section Errors.",
            &rows,
            columns,
        )
        .cut(8, 50, "select status_name, command, count(*) from operations where status <> 0 and scenario_run is null group by status_name, command order by 3 desc"),
    ))
}

/// Users and scenarios, on the axis of the operations.
pub(crate) fn over_time(report: &Report) -> Vec<Block> {
    let series = &report.series;
    let Some(load) =
        report.load.as_ref().filter(|load| load.bins.iter().any(|it| it.scheduled > 0))
    else {
        return Vec::new();
    };
    let seconds = series.bin_ns.max(1) as f64 / 1e9;
    let each = |of: &dyn Fn(&LoadBin) -> f64| -> Vec<f64> { load.bins.iter().map(of).collect() };
    let time = |ns: Option<i64>| ns.map_or(f64::NAN, |ns| ns as f64);
    let chart = |caption: &str,
                 help: &str,
                 format,
                 unit: &str,
                 per: &str,
                 join,
                 lines: Vec<(&str, Vec<f64>)>| {
        Block::Lines(Lines {
            caption: caption.to_owned(),
            help: help.to_owned(),
            format,
            unit: unit.to_owned(),
            per: per.to_owned(),
            join,
            start_ns: load.bins.first().map_or(0, |bin| bin.start_ns),
            bin_ns: series.bin_ns,
            lines: lines.into_iter().map(|(name, line)| (name.to_owned(), line)).collect(),
        })
    };
    let mut blocks = Vec::new();
    if load.bins.iter().any(|bin| bin.users.is_some()) {
        let users = each(&|bin| bin.users.map_or(f64::NAN, |users| users as f64));
        blocks.push(chart(
            "Users",
            "Users in measured windows; empty between them.",
            Format::Count,
            "count",
            "",
            Join::Most,
            vec![("Users", users)],
        ));
    }
    blocks.push(chart(
        "Scenarios",
        "Scenarios by scheduled time and by the time at which they ended: where the lines diverge, the server does not keep up.",
        Format::Count,
        "scenarios/s",
        "/s",
        Join::Mean,
        vec![
            ("Scheduled", each(&|bin| bin.scheduled as f64 / seconds)),
            ("Ended", each(&|bin| bin.completed as f64 / seconds)),
        ],
    ));
    blocks.push(chart(
        "Response time of scenarios",
        "By scheduled time.",
        Format::Duration,
        "time",
        "",
        Join::Most,
        vec![
            ("p50", each(&|bin| time(bin.response.p50_ns))),
            ("p95", each(&|bin| time(bin.response.p95_ns))),
            ("p99", each(&|bin| time(bin.response.p99_ns))),
            ("Latest begin", each(&|bin| time(bin.late_max_ns))),
        ],
    ));
    blocks
}

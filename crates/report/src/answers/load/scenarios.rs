//! Scenarios: response times, failures, and phases.

use smbscope_analysis::summary::{Failure, Load, PhaseRow, ScenarioRow, Status, StatusClass};

use crate::answers::load::capacity::failure_meaning;
use crate::answers::recording::fields::{column, distribution};
use crate::document::{Block, Cell, Section, Table};
use crate::value::format;

pub(crate) fn scenarios(load: &Load) -> Section {
    let mut blocks = Vec::new();
    let mut loads: Vec<_> = load.scenario_steps.iter().map(|step| step.users).collect();
    loads.sort_unstable();
    loads.dedup();
    let loads: Vec<_> = loads.into_iter().map(format::count).collect();
    let caption = if loads.is_empty() {
        "Response times".to_owned()
    } else {
        format!("Response times with {} users", loads.join(", "))
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
        let table =
            scenario_table("Response times at every load", "Likewise for each step.", &rows, true);
        blocks.push(Block::fold("Response times at every load", vec![Block::Table(table)]));
    }
    if load.scenarios_others > 0 {
        blocks.push(Block::Note(format!(
            "{} scenarios have a step and name past the limit on their number.",
            format::count(load.scenarios_others)
        )));
    }
    blocks.extend(failures(load));
    let mut counted = vec![Block::Note(window(load)), Block::Table(phases(&load.phases))];
    counted.extend(left_out(load));
    blocks.push(Block::fold("What is counted", counted));
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
        column("distribution", "histogram", 3, |row: &ScenarioRow| {
            if by_step {
                Cell::Empty
            } else {
                row.response
                    .histogram
                    .clone()
                    .map_or(Cell::Empty, |counts| Cell::Histogram(trimmed(rows, counts)))
            }
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
            "{} more failures have a status and scenario past the limit on their number.",
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

//! A prediction as a page: what the changes would bring, the parts of the time as steps, and the tables
//! of scenarios and commands; or the times of a profile.

use smbscope_analysis::predict::averages::TOTAL;
use smbscope_analysis::predict::capacity::Capacity;
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::forecast::{ProfileForecast, ProfileRow, RecordedForecast};

use crate::answers::prediction::section::forecast;
use crate::answers::prediction::{Forecast, ForecastRow};
use crate::document::{
    Block, Cell, Column, Document, Fact, Facts, Heading, Section, Table, Tile, Tone, Verdict,
};
use crate::value::format;

/// The page of a prediction from recordings.
pub(crate) fn recorded(recorded: &RecordedForecast, inputs: &[String], version: &str) -> Document {
    let all = Forecast::new(recorded);
    let mut sections = vec![forecast(&all)];
    sections.extend(capacity(recorded));
    Document {
        brand: "smbscope predict",
        title: inputs.join(", "),
        span: if all.changes.is_empty() {
            "what times consist of".to_owned()
        } else {
            words(&recorded.changes)
        },
        verdict: verdict(&all),
        tiles: tiles(&all),
        sections,
        inputs: inputs.to_vec(),
        version: version.to_owned(),
        ..Document::default()
    }
}

fn words(changes: &[Change]) -> String {
    changes.iter().map(Change::sentence).collect::<Vec<_>>().join("; ")
}

/// What a person waits for: scenarios where there are any.
fn decisive(all: &Forecast) -> (&ForecastRow, &'static str) {
    match &all.all_scenarios {
        Some(scenarios) => (scenarios, "scenarios"),
        None => (&all.operations, "operations"),
    }
}

/// `12 % longer`, `2.5 times as long`.
fn longer(before_ns: i64, after_ns: i64) -> (Tone, String) {
    let times = after_ns as f64 / before_ns.max(1) as f64;
    match times {
        2.0.. => (Tone::Bad, format!("{} times as long", format::number(times))),
        1.005.. => (Tone::Watch, format!("{} longer", format::share(times - 1.0))),
        ..0.995 => (Tone::Good, format!("{} shorter", format::share(1.0 - times))),
        _ => (Tone::Watch, "as long as today".to_owned()),
    }
}

pub(crate) fn verdict(all: &Forecast) -> Verdict {
    let (row, what) = decisive(all);
    let (Some(before), Some(after)) = (row.before_ns, row.after_ns) else {
        return Verdict {
            tone: Tone::Unknown,
            sentence: "No operation has a time: there is nothing to predict from".to_owned(),
            reasons: Vec::new(),
        };
    };
    if all.changes.is_empty() {
        return Verdict {
            tone: Tone::Unknown,
            sentence: format!("The mean of the {what} is {}", format::duration(before)),
            reasons: vec!["No change was requested (--change).".to_owned()],
        };
    }
    let (tone, longer) = longer(before, after);
    let names: Vec<_> = all.changes.iter().map(|change| change.sentence.as_str()).collect();
    let mut reasons = vec![format!(
        "{} instead of {} on average; clients would wait {} instead of {} in total.",
        format::duration(after),
        format::duration(before),
        format::duration(all.waiting_after_ns),
        format::duration(all.waiting_before_ns)
    )];
    reasons.push(format!("With: {}.", names.join("; ").trim_end_matches('.')));
    Verdict { tone, sentence: format!("{} would be {longer}", format::capitalized(what)), reasons }
}

fn tiles(all: &Forecast) -> Vec<Tile> {
    let (row, what) = decisive(all);
    let error =
        |ns: Option<i64>| ns.map_or_else(String::new, |ns| format!("± {}", format::duration(ns)));
    let percent =
        |percent: Option<f64>| percent.map_or_else(|| "–".to_owned(), format::signed_percent);
    vec![
        Tile::new(
            format!("Mean of {what} today"),
            format::known_duration(row.before_ns),
            error(row.before_error_ns),
        ),
        Tile::new(
            format!("Mean of {what}, predicted"),
            format::known_duration(row.after_ns),
            error(row.after_error_ns),
        ),
        Tile::new(
            "Change",
            percent(row.change_percent),
            row.change_error_percent.map_or_else(String::new, |error| format!("± {error:.1} %")),
        ),
        Tile::new(
            "Mean of operations, predicted",
            format::known_duration(all.operations.after_ns),
            format!("today {}", format::known_duration(all.operations.before_ns)),
        ),
        Tile::new(
            "Round trip, predicted",
            format::known_duration(all.rtt_after_ns),
            format!("today {}", format::known_duration(all.rtt_before_ns)),
        ),
        Tile::new("Operations replayed", format::count(all.timed), ""),
    ]
}

/// How many users the server carries today, and with the changes.
fn capacity(recorded: &RecordedForecast) -> Option<Section> {
    let today = recorded.capacity.as_ref().ok();
    let fact = |title: &str, capacity: Option<&Capacity>| {
        let limit = capacity?.limit()?;
        Some(Fact {
            title: title.to_owned(),
            value: Cell::Text(format!("{:.0} users", limit.users)),
            note: format!("{} are exhausted first", limit.name),
            help: "The number of users at which the first resource has no more to give.",
        })
    };
    let facts =
        [fact("Today", today), fact("With the changes", recorded.changed_capacity.as_ref())];
    let rows: Vec<_> = facts.into_iter().flatten().collect();
    (!rows.is_empty()).then(|| Section {
        id: "capacity",
        title: "Capacity",
        help: "From the use of each resource in the steps of the load run.",
        blocks: vec![Block::Facts(Facts {
            caption: "Users that the server carries".to_owned(),
            rows,
        })],
    })
}

/// The page of a prediction from a profile.
pub(crate) fn profile(profile: &ProfileForecast, version: &str) -> Document {
    let ProfileForecast { today, changed, changes, rows } = profile;
    let total = rows.iter().find(|row| row.before.scenario == TOTAL);
    let (tone, sentence) = match total {
        Some(row) if row.after.is_some() => {
            let ns = |seconds: f64| (seconds * 1e9) as i64;
            let (tone, longer) = longer(ns(row.before.seconds()), ns(row.shown().seconds()));
            (tone, format!("All scenarios of a user would be {longer}"))
        }
        Some(row) => (
            Tone::Unknown,
            format!("A user spends {:.1} s of each hour on its scenarios", row.shown().seconds()),
        ),
        None => (Tone::Unknown, "The profile has no scenario".to_owned()),
    };
    let mut reasons = vec![today.source.clone()];
    if !changes.is_empty() {
        reasons.push(format!("With: {}.", words(changes).trim_end_matches('.')));
    }
    let seconds = |value: f64| format!("{value:.1} s");
    let mut tiles = Vec::new();
    if let Some(row) = total {
        tiles.push(Tile::new("Seconds of an hour, today", seconds(row.before.seconds()), ""));
        if let Some(after) = &row.after {
            tiles.push(Tile::new("Seconds of an hour, predicted", seconds(after.seconds()), ""));
        }
        let cell = row.shown();
        tiles.push(Tile::new("Network", seconds(cell.network_s), "of them"));
        tiles.push(Tile::new("Server", seconds(cell.server_s), "of them"));
        tiles.push(Tile::new("Client and transfer", seconds(cell.constant_s), "of them"));
        tiles.push(Tile::new(
            "Round trip",
            format::milli((changed.rtt_s * 1e9) as i64),
            format!("today {}", format::milli((today.rtt_s * 1e9) as i64)),
        ));
    }
    let mut blocks = vec![Block::Table(table(rows))];
    blocks
        .extend(Change::assumptions(changes).into_iter().map(|line| Block::Note(line.to_owned())));
    let section = Section {
        id: "scenarios",
        title: "Scenarios",
        help: "Seconds that a user spends on each scenario in one hour.",
        blocks,
    };
    Document {
        brand: "smbscope predict",
        title: today.name.clone(),
        span: "from the means of a profile".to_owned(),
        verdict: Verdict { tone, sentence, reasons },
        tiles,
        sections: vec![section],
        inputs: Vec::new(),
        version: version.to_owned(),
        ..Document::default()
    }
}

fn table(rows: &[ProfileRow]) -> Table {
    let heading = |title: &str, numeric| Heading::new(title, numeric, 0);
    let number = |value: f64, decimals| Cell::Measure(value, format::fixed(value, decimals));
    let mut columns = vec![
        Column::new(heading("Scenario", false), |row: &ProfileRow| {
            Cell::Text(row.before.scenario.clone())
        }),
        Column::new(heading("Cache", false), |row: &ProfileRow| {
            Cell::Text(row.shown().option.title().to_owned())
        }),
        Column::new(heading("Today, s", true), move |row: &ProfileRow| {
            number(row.before.seconds(), 3)
        }),
        Column::new(heading("Predicted, s", true), move |row: &ProfileRow| {
            row.after.as_ref().map_or(Cell::Empty, |after| number(after.seconds(), 3))
        }),
        Column::new(heading("Change", true), |row: &ProfileRow| {
            let percent = row.percent();
            percent.map_or(Cell::Empty, |value| Cell::Measure(value, format::signed_percent(value)))
        }),
    ];
    type Pick = fn(&ProfileRow) -> f64;
    let picks: [(&str, Pick); 3] = [
        ("Network, s", |row| row.shown().network_s),
        ("Server, s", |row| row.shown().server_s),
        ("Client and transfer, s", |row| row.shown().constant_s),
    ];
    columns.extend(picks.map(|(title, pick)| {
        Column::new(heading(title, true), move |row: &ProfileRow| number(pick(row), 3))
    }));
    let mut table = Table::new("Scenarios by cache", "", rows, columns);
    table.in_page = 500;
    table.filter = Some(1);
    table
}

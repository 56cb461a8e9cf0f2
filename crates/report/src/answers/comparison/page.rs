//! A comparison of two recordings as a page: whether B is slower than A, which groups changed with their
//! intervals, and the tables of the text.

use smbscope_analysis::compare::{About, Comparison, Measured, Row, RowKind};

use crate::answers::comparison::{
    about_lines, by, comparison_warnings, legend, p_value, percent, title,
};
use crate::document::{
    Block, Cell, Change, Changes, Column, Document, Fact, Facts, Heading, Section, Table, Tile,
    Tone, Verdict,
};
use crate::value::{
    Clock,
    format::{self, count, sanitized},
};

/// Groups in the chart; the table has all.
const CHARTED: usize = 20;
/// Groups that the verdict names.
const NAMED: usize = 3;

/// The page of a comparison.
pub(crate) fn document(
    found: &Comparison,
    names: &[String; 2],
    version: &str,
    clock: Clock,
) -> Document {
    let span = match (found.a.start_ns, found.b.start_ns) {
        (Some(a), Some(b)) => format!("A from {}, B from {}", clock.second(a), clock.second(b)),
        _ => "No time is known.".to_owned(),
    };
    let warnings = comparison_warnings(found, names);
    Document {
        brand: "smbscope compare",
        title: format!("A: {}, B: {}", names[0], names[1]),
        span,
        verdict: verdict(found),
        tiles: tiles(found),
        notices: warnings.into_iter().map(|line| Block::Warn(upper(&line))).collect(),
        sections: vec![changes(found), numbers(found), sides(found, names, &clock)],
        clock,
        inputs: names.to_vec(),
        version: version.to_owned(),
        ..Document::default()
    }
}

/// "Warning: ...": a sentence of its own.
fn upper(line: &str) -> String {
    let line =
        line.strip_prefix("warning: ").or_else(|| line.strip_prefix("note: ")).unwrap_or(line);
    format::capitalized(line)
}

/// The row that decides: how long users waited, or all operations.
fn whole(found: &Comparison) -> Option<&Row> {
    let of =
        |kind: RowKind| found.rows.iter().find(move |row| row.kind == kind && row.change.is_some());
    of(RowKind::Scenarios).or_else(|| of(RowKind::TotalAtMixOfA)).or_else(|| of(RowKind::Total))
}

fn time(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), |s| format::duration((s * 1e9).round() as i64))
}

/// `+12.3 %`, and of what is much longer how many times.
fn change_words(change: f64) -> String {
    match change {
        900.0.. => format!("{} times", format::number(1.0 + change / 100.0)),
        _ => percent(change),
    }
}

pub(crate) fn verdict(found: &Comparison) -> Verdict {
    let Some((row, change)) = whole(found).and_then(|row| Some((row, row.change.as_ref()?))) else {
        return Verdict {
            tone: Tone::Unknown,
            sentence: "A and B cannot be compared as a whole".to_owned(),
            reasons: vec!["The groups below can.".to_owned()],
        };
    };
    let what = match row.kind {
        RowKind::Scenarios => "scenarios",
        _ => "operations",
    };
    let means = format!("{} instead of {} on average", time(row.b.mean_s), time(row.a.mean_s));
    let (tone, sentence) = match (change.significant, change.percent > 0.0) {
        (true, true) if change.percent >= 100.0 => (
            Tone::Bad,
            format!(
                "B is slower: its {what} take {} times as long as those of A ({means})",
                format::number(1.0 + change.percent / 100.0)
            ),
        ),
        (true, is_slower) => {
            let (tone, word, more) = if is_slower {
                (Tone::Bad, "slower", "more")
            } else {
                (Tone::Good, "faster", "less")
            };
            let size = format::share(change.percent.abs() / 100.0);
            (tone, format!("B is {word}: its {what} take {size} {more} time ({means})"))
        }
        (false, _) => (
            Tone::Unknown,
            format!("No significant difference: {what} take {means}, {}", percent(change.percent)),
        ),
    };
    let mut reasons = Vec::new();
    if let (Some(low), Some(high)) = (change.low_percent, change.high_percent) {
        reasons.push(format!(
            "The change of the mean lies between {} and {} (95 % interval; by {}).",
            percent(low),
            percent(high),
            by(row)
        ));
    }
    let mut changed: Vec<&Row> =
        found.rows.iter().filter(|row| is_group(row) && is_sure(row)).collect();
    let seconds = |row: &Row| {
        let total = |side: &Measured| side.mean_s.unwrap_or(0.0) * side.timed as f64;
        (total(&row.b) - total(&row.a)).abs()
    };
    changed.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    let words: Vec<_> = changed
        .iter()
        .take(NAMED)
        .filter_map(|row| {
            Some(format!("{} {}", title(row), change_words(row.change.as_ref()?.percent)))
        })
        .collect();
    reasons.push(match (words.is_empty(), changed.len()) {
        (true, _) => "No group differs significantly.".to_owned(),
        (false, 1) => format!("One group differs significantly: {}.", words.join(", ")),
        (false, n) => format!("{n} groups differ significantly; most time: {}.", words.join(", ")),
    });
    Verdict { tone, sentence, reasons }
}

fn is_group(row: &Row) -> bool {
    !matches!(row.kind, RowKind::Total | RowKind::TotalAtMixOfA | RowKind::Scenarios)
}

fn is_sure(row: &Row) -> bool {
    row.change.as_ref().is_some_and(|change| change.significant)
}

fn tiles(found: &Comparison) -> Vec<Tile> {
    let Some(row) = whole(found) else { return Vec::new() };
    let what = if row.kind == RowKind::Scenarios { "scenarios" } else { "operations" };
    let change = row.change.as_ref();
    let interval = change.and_then(|it| Some((it.low_percent?, it.high_percent?)));
    let interval = interval.map(|(low, high)| format!("{} to {}", percent(low), percent(high)));
    let rate =
        |side: &Measured| side.operations_per_second.map_or_else(String::new, format::number);
    let errors =
        |side: &Measured| side.errors_per_operation.map_or_else(|| "–".to_owned(), format::share);
    // The total at A's mix has a mean only.
    let total = found.rows.iter().find(|one| one.kind == RowKind::Total);
    let all = total.filter(|_| row.kind == RowKind::TotalAtMixOfA).unwrap_or(row);
    vec![
        Tile::new(
            format!("Mean of {what}, A"),
            time(row.a.mean_s),
            format!("n {}", count(row.a.timed)),
        ),
        Tile::new(
            format!("Mean of {what}, B"),
            time(row.b.mean_s),
            format!("n {}", count(row.b.timed)),
        ),
        Tile::new(
            "Change of the mean",
            change.map_or_else(|| "–".to_owned(), |change| change_words(change.percent)),
            interval.unwrap_or_default(),
        ),
        Tile::new(
            format!("p95 of {what}, B"),
            time(all.b.p95_s),
            format!("A {}", time(all.a.p95_s)),
        ),
        Tile::new("Per second, B", rate(&all.b), format!("A {}", rate(&all.a))),
        Tile::new("Errors, B", errors(&all.b), format!("A {}", errors(&all.a))),
    ]
}

fn changes(found: &Comparison) -> Section {
    let rows = found.rows.iter().filter_map(|row| {
        let change = row.change.as_ref()?;
        Some(Change {
            label: title(row),
            percent: change.percent,
            interval: change.low_percent.zip(change.high_percent),
            significant: change.significant,
            words: format!(
                "{} ({} to {})",
                change_words(change.percent),
                time(row.a.mean_s),
                time(row.b.mean_s)
            ),
        })
    });
    Section {
        id: "changes",
        title: "What changed",
        help: "The change of the mean elapsed time from A to B with its 95 % interval; grey where it may be chance. Groups with the most time come first.",
        blocks: vec![Block::chart(Changes {
            caption: "Change of the mean".to_owned(),
            help: "Red is slower, green is faster.".to_owned(),
            rows: rows.take(CHARTED).collect(),
        })],
    }
}

/// A column with a heading of its own.
fn column<'a>(
    heading: &str,
    group: Option<&'static str>,
    rank: u8,
    value: impl Fn(&&Row) -> Cell + 'a,
) -> Column<'a, &'a Row> {
    let numeric = rank != TEXT;
    let heading =
        Heading { group, ..Heading::new(heading, numeric, if numeric { rank } else { 0 }) };
    Column::new(heading, value)
}

/// The rank of columns of text.
const TEXT: u8 = 9;

fn numbers(found: &Comparison) -> Section {
    let rows: Vec<&Row> = found.rows.iter().collect();
    let seconds =
        |value: Option<f64>| value.map_or(Cell::Empty, |s| Cell::Duration((s * 1e9) as i64));
    let measure = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or(Cell::Empty, |value| Cell::Measure(value, text(value)))
    };
    let change = |row: &Row, of: fn(&smbscope_analysis::compare::Change) -> Option<f64>| {
        row.change.as_ref().and_then(of)
    };
    let mut columns = vec![
        column("Group", None, TEXT, |row| Cell::Text(title(row))),
        column("A", Some("n"), 1, |row| Cell::Count(row.a.timed)),
        column("B", Some("n"), 1, |row| Cell::Count(row.b.timed)),
        column("A", Some("Mean"), 0, move |row| seconds(row.a.mean_s)),
        column("B", Some("Mean"), 0, move |row| seconds(row.b.mean_s)),
        column("Change", None, 0, move |row| {
            measure(change(row, |it| Some(it.percent)), change_words)
        }),
        column("From", Some("95 % interval"), 1, move |row| {
            measure(change(row, |it| it.low_percent), percent)
        }),
        column("To", Some("95 % interval"), 1, move |row| {
            measure(change(row, |it| it.high_percent), percent)
        }),
        column("p", None, 1, move |row| measure(change(row, |it| it.p_holm), p_value)),
        column("Delta", None, 2, move |row| {
            measure(change(row, |it| it.cliffs_delta), |delta| format!("{delta:+.2}"))
        }),
        column("Samples", None, TEXT, |row| Cell::Text(by(row))),
    ];
    type Pick = fn(&Measured) -> Option<f64>;
    let picks: [(&'static str, u8, Pick); 4] = [
        ("p50", 3, |side| side.p50_s),
        ("p95", 2, |side| side.p95_s),
        ("p99", 3, |side| side.p99_s),
        ("Server", 3, |side| side.server_mean_s),
    ];
    for (group, rank, pick) in picks {
        columns.push(column("A", Some(group), rank, move |row| seconds(pick(&row.a))));
        columns.push(column("B", Some(group), rank, move |row| seconds(pick(&row.b))));
    }
    let errors = |side: &Measured| {
        side.errors_per_operation.filter(|share| *share > 0.0).map_or(Cell::Empty, Cell::Share)
    };
    columns.push(column("A", Some("Errors"), 3, move |row| errors(&row.a)));
    columns.push(column("B", Some("Errors"), 3, move |row| errors(&row.b)));
    let mut table = Table::new("Groups", "Elapsed times.", &rows, columns);
    table.in_page = 500;
    Section {
        id: "numbers",
        title: "All numbers",
        help: "p is corrected for the number of groups (Holm). Delta (Cliff): probability that an operation of B takes longer than one of A, minus the reverse.",
        blocks: vec![
            Block::Table(table),
            Block::fold(
                "How to read it",
                vec![Block::Note(sanitized(&legend(found).replace('\n', " ")))],
            ),
        ],
    }
}

fn sides(found: &Comparison, names: &[String; 2], clock: &Clock) -> Section {
    let facts = |letter: &str, name: &str, about: &About| {
        let lines = about_lines(about, clock).into_iter().enumerate();
        let titles = ["Recording", "Protocol", "Load run", "", "", ""];
        let rows = lines.map(|(place, line)| Fact {
            title: titles.get(place).copied().unwrap_or("").to_owned(),
            value: Cell::Text(line),
            note: String::new(),
            help: "",
        });
        Block::Facts(Facts { caption: format!("{letter}: {name}"), rows: rows.collect() })
    };
    Section {
        id: "sides",
        title: "What was compared",
        help: "The two recordings.",
        blocks: vec![facts("A", &names[0], &found.a), facts("B", &names[1], &found.b)],
    }
}

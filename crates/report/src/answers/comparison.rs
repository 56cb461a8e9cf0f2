//! A comparison of two recordings as text: what they are, how they differ in kind, and two tables.

pub(crate) mod page;

use smbscope_analysis::compare::{
    About, Change, Comparison, Measured, Row, RowKind, Unit, Warning, WarningKind,
};

use crate::document::{Document, TextOptions};
use crate::render::{
    Answer,
    table::{Column, lines},
    text::write_verdict,
};
use crate::value::{
    Clock,
    format::{bytes, count, duration, number, sanitized, share, shortened},
};

/// Most rows that are listed; the other formats have all.
const LISTED: usize = 50;
/// Smaller changes of a mean are not shown where chance cannot be judged, %.
const UNCHANGED_PERCENT: f64 = 0.05;
/// Most characters of a group's name.
const NAME: usize = 40;

/// Two recordings side by side; programs read its rows.
#[derive(Clone, Debug)]
pub struct ComparisonAnswer<'a> {
    pub found: &'a Comparison,
    pub names: &'a [String; 2],
    /// Version of smbscope.
    pub version: String,
    /// How times of day are shown.
    pub clock: Clock,
}

impl Answer for ComparisonAnswer<'_> {
    fn document(&self) -> Option<Document> {
        Some(page::document(self.found, self.names, &self.version, self.clock.clone()))
    }

    fn text(&self, options: &TextOptions) -> String {
        comparison_text(self, options)
    }
}

fn comparison_text(answer: &ComparisonAnswer<'_>, options: &TextOptions) -> String {
    let (found, names, clock) = (answer.found, answer.names, &answer.clock);
    let (bold, width) = (options.bold, options.width);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_verdict(&mut text, &page::verdict(found), options.columns(), options);
    text.push('\n');
    for ((side, about), name) in [("A", &found.a), ("B", &found.b)].into_iter().zip(names) {
        text.push_str(&format!("{}{side}{}  {}\n", bold.0, bold.1, sanitized(name)));
        for line in about_lines(about, clock) {
            text.push_str(&format!("   {}\n", sanitized(&line)));
        }
    }
    let warnings = comparison_warnings(found, names);
    if !warnings.is_empty() {
        text.push('\n');
        warnings.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    if !options.all && found.rows.iter().all(is_unchanged) {
        text.push_str("\nNo group changed by more than chance does: --all shows the tables.\n");
        return text;
    }
    let rows: Vec<&Row> = found.rows.iter().take(LISTED).collect();
    text.push_str(&format!("\n{}Mean elapsed time, ms{}\n", bold.0, bold.1));
    text.push_str(&means(&rows, bold, width));
    text.push_str(&format!("\n{}Elapsed time, ms, and other measures{}\n", bold.0, bold.1));
    text.push_str(&more(&rows, bold, width));
    if found.rows.len() > rows.len() {
        let left = found.rows.len() - rows.len();
        text.push_str(&format!("and {left} more rows; --format json lists all\n"));
    }
    text.push('\n');
    text.push_str(&legend(found));
    text
}

/// Whether a group did not change by more than chance, or not at all.
fn is_unchanged(row: &Row) -> bool {
    row.change.as_ref().is_none_or(|change| {
        !change.significant && (change.p.is_some() || change.percent.abs() < UNCHANGED_PERCENT)
    })
}

/// How the recordings differ in kind, one sentence each.
pub fn comparison_warnings(found: &Comparison, names: &[String; 2]) -> Vec<String> {
    let mut lines: Vec<String> = found.warnings.iter().map(sentence).collect();
    let [a, b] = names;
    if a == b {
        lines.insert(0, "note: A and B are the same input".to_owned());
    }
    for (about, name) in [&found.a, &found.b].into_iter().zip(names) {
        if about.operations_of_others > 0 {
            let n = count(about.operations_of_others);
            lines.push(format!(
                "warning: {name}: {n} operations belong to groups beyond the limit and are combined as \
                 (others), which are not the same groups in A and B"
            ));
        }
    }
    lines.iter().map(|line| sanitized(line)).collect()
}

fn sentence(warning: &Warning) -> String {
    let what = match warning.kind {
        WarningKind::Vantage => {
            "recorded at different vantage points: elapsed times include different parts of the \
             network; compare server times"
        }
        WarningKind::LoadRun => "one is a load run, the other is not",
        WarningKind::Workload => "different workloads",
        WarningKind::Scale => "different file set sizes",
        WarningKind::Users => "different numbers of users",
        WarningKind::Seed => "different seeds: users do different things and are not paired",
        WarningKind::Pacing => "different pacing of the users",
        WarningKind::Dialect => "different dialects",
        WarningKind::Signing => "different signing",
        WarningKind::Encryption => "different encryption",
        WarningKind::Mix => {
            "different mixes of commands, which change the total by themselves; see the total at A's mix"
        }
        WarningKind::Incomplete => "a run is still in progress, or ended early",
        WarningKind::LimitedByClient => "the load generator was the bottleneck, not the server",
        WarningKind::Forgotten => {
            "more scenario executions than the limit: operations of the last ones are not counted"
        }
    };
    format!("warning: {what} (A: {}; B: {})", warning.a, warning.b)
}

pub(crate) fn about_lines(about: &About, clock: &Clock) -> Vec<String> {
    let mut first = vec![format!("{} operations", count(about.operations))];
    if about.timed != about.operations {
        first.push(format!("{} of them timed", count(about.timed)));
    }
    if about.left_out > 0 {
        first.push(format!("{} outside the measured window left out", count(about.left_out)));
    }
    if let Some(start) = about.start_ns {
        first.push(format!("from {}", clock.time(start)));
    }
    if let (Some(start), Some(end)) = (about.start_ns, about.end_ns) {
        first.push(format!("{} long", duration(end.saturating_sub(start))));
    }
    match about.users {
        Some(users) => first.push(counted(users, "user")),
        None => first.push(counted(about.connections, "connection")),
    }
    let mut second = Vec::new();
    if !about.vantages.is_empty() {
        second.push(format!("vantage: {}", about.vantages.join(", ")));
    }
    if !about.dialects.is_empty() {
        second.push(format!("dialect {}", about.dialects.join(", ")));
    }
    second.push(format!("{} signed", share(about.signed)));
    second.push(format!("{} encrypted", share(about.encrypted)));
    let mut lines = vec![first.join(", "), second.join(", ")];
    for run in about.runs.iter().take(4) {
        let rtt = run.emulated_rtt_ns.map(|ns| format!(", round trip +{}", duration(ns)));
        let line = run.line.as_ref().map(|line| format!(", {line}"));
        lines.push(format!(
            "workload {}, seed {}, scale {}, {} users of //{}/{}{}{}",
            run.workload,
            run.seed,
            run.scale,
            run.users_total,
            run.server,
            run.share,
            rtt.unwrap_or_default(),
            line.unwrap_or_default()
        ));
    }
    lines
}

/// The title of a row.
pub(crate) fn title(row: &Row) -> String {
    let name = row.name.as_deref();
    match row.kind {
        RowKind::Total => "all operations".to_owned(),
        RowKind::TotalAtMixOfA => "all, at A's mix".to_owned(),
        RowKind::Scenarios => "all scenarios".to_owned(),
        _ => shortened(&sanitized(name.unwrap_or("(none)")), NAME),
    }
}

fn means(rows: &[&Row], bold: (&str, &str), width: Option<usize>) -> String {
    let columns = [
        Column::left(""),
        Column::right("n in A"),
        Column::right("n in B"),
        Column::right("A"),
        Column::right("B"),
        Column::right("change"),
        Column::right("95 % interval"),
        Column::right("delta"),
        Column::left("effect"),
        Column::right("p"),
        Column::left(""),
        Column::left("by"),
    ];
    let body = rows.iter().map(|row| {
        let change = row.change.as_ref();
        let text = |of: &dyn Fn(&Change) -> Option<String>| change.and_then(of).unwrap_or_default();
        vec![
            title(row),
            count(row.a.timed),
            count(row.b.timed),
            ms(row.a.mean_s),
            ms(row.b.mean_s),
            text(&|change| Some(percent(change.percent))),
            text(&|change| {
                let (low, high) = (change.low_percent?, change.high_percent?);
                Some(format!("{} to {}", percent(low), percent(high)))
            }),
            text(&|change| change.cliffs_delta.map(|delta| format!("{delta:+.2}"))),
            text(&|change| change.effect.map(|effect| effect.name().to_owned())),
            text(&|change| change.p_holm.map(p_value)),
            text(&|change| change.significant.then(|| "*".to_owned())),
            by(row),
        ]
    });
    lines(&columns, &body.collect::<Vec<_>>(), bold, width)
}

/// The units that are taken to be independent.
pub(crate) fn by(row: &Row) -> String {
    let (Some(a), Some(b)) = (row.a.unit, row.b.unit) else { return String::new() };
    let n = |side: &Measured| side.clusters.unwrap_or(0);
    let word = |unit: Unit| match unit {
        Unit::UserPair => "pair of users",
        Unit::User => "user",
        Unit::Connection => "connection",
        Unit::TimeBlock => "block of time",
        Unit::TimeBlockPair => "pair of blocks",
    };
    match (a, b) {
        (Unit::UserPair | Unit::TimeBlockPair, _) => counted(n(&row.a), word(a)),
        _ if a == b => format!("{} and {}", n(&row.a), counted(n(&row.b), word(b))),
        _ => format!("{}, {}", counted(n(&row.a), word(a)), counted(n(&row.b), word(b))),
    }
}

/// `1 user`, `2 users`, `3 pairs of users`.
fn counted(n: u64, word: &str) -> String {
    let (head, tail) = word.split_once(' ').unwrap_or((word, ""));
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {head}{plural} {tail}", count(n)).trim_end().to_owned()
}

fn more(rows: &[&Row], bold: (&str, &str), width: Option<usize>) -> String {
    let rows: Vec<_> = rows.iter().filter(|row| row.kind != RowKind::TotalAtMixOfA).collect();
    type Shown = fn(&Measured) -> Option<String>;
    const ALL: [(&str, Shown); 7] = [
        ("p50", |side| side.p50_s.map(|s| ms(Some(s)))),
        ("p95", |side| side.p95_s.map(|s| ms(Some(s)))),
        ("p99", |side| side.p99_s.map(|s| ms(Some(s)))),
        ("server", |side| side.server_mean_s.map(|s| ms(Some(s)))),
        ("per s", |side| side.operations_per_second.map(number)),
        ("bytes", |side| {
            let per = side.bytes_per_operation.filter(|&per| per > 0.0)?;
            Some(bytes(per.round() as u64))
        }),
        ("errors", |side| side.errors_per_operation.filter(|&per| per > 0.0).map(share)),
    ];
    // Measures that no row has are not shown.
    let used: Vec<_> = ALL
        .into_iter()
        .filter(|(_, of)| rows.iter().any(|row| of(&row.a).or_else(|| of(&row.b)).is_some()))
        .collect();
    let mut columns = vec![Column::left("")];
    for (name, _) in &used {
        columns.extend([Column::right(format!("{name} A")), Column::right("B")]);
    }
    let body = rows.iter().map(|row| {
        let mut cells = vec![title(row)];
        for (_, of) in &used {
            cells.extend([&row.a, &row.b].map(|side| of(side).unwrap_or_default()));
        }
        cells
    });
    lines(&columns, &body.collect::<Vec<_>>(), bold, width)
}

pub(crate) fn legend(found: &Comparison) -> String {
    let mut text = String::from(
        "change: of the mean, from A to B. delta (Cliff): probability that an operation of B takes \
         longer than one of A,\nminus the reverse. p is corrected for the number of groups (Holm); \
         * marks p below 0.05.\n",
    );
    let units: Vec<_> =
        found.rows.iter().flat_map(|row| [row.a.unit, row.b.unit]).flatten().collect();
    if found.paired {
        text.push_str(
            "Both are load runs of the same schedule: each user (or block of time) of A is compared with the \
             same one of B.\n",
        );
    }
    if units.iter().any(|unit| matches!(unit, Unit::TimeBlock | Unit::TimeBlockPair)) {
        text.push_str(
            "Blocks of time replace connections or users where those are few or uneven, or vary less \
             than time does;\nneighbouring blocks are similar, so intervals may be too narrow.\n",
        );
    }
    if found.rows.iter().any(|row| row.change.as_ref().is_some_and(|change| change.p.is_none())) {
        text.push_str(
            "No p: too few connections, users or blocks of time, or no variation between them.\n",
        );
    }
    text
}

pub(crate) fn ms(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return String::new() };
    let ms = seconds * 1e3;
    match ms.abs() {
        0.0..10.0 => format!("{ms:.3}"),
        10.0..100.0 => format!("{ms:.2}"),
        100.0..1000.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

pub(crate) fn percent(percent: f64) -> String {
    // A number that rounds to zero has no sign.
    let percent = if percent.abs() < 0.05 { 0.0 } else { percent };
    match percent.abs() {
        0.0 => "0.0 %".to_owned(),
        0.0..1000.0 => format!("{percent:+.1} %"),
        _ => crate::value::format::change(percent),
    }
}

pub(crate) fn p_value(p: f64) -> String {
    match p {
        p if p < 0.001 => "<0.001".to_owned(),
        p => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_plurals() {
        assert_eq!(counted(1, "user"), "1 user");
        assert_eq!(counted(2_000, "block of time"), "2,000 blocks of time");
    }

    #[test]
    fn numbers_are_short_and_zero_has_no_sign() {
        assert_eq!(
            [0.01, -0.01, 12.34, -99.9, 5_000.0].map(percent).join(" "),
            "0.0 % 0.0 % +12.3 % -99.9 % 51 times"
        );
        assert_eq!([0.0, 0.0009, 0.049, 1.0].map(p_value), ["<0.001", "<0.001", "0.049", "1.000"]);
        assert_eq!([0.000_012_34, 0.0123, 1.5].map(|s| ms(Some(s))), ["0.012", "12.30", "1500"]);
        assert_eq!(ms(None), "");
    }
}

//! CPU traces side by side, as text and as a page.

use serde_json::{Value, json};
use smbscope_analysis::processors::compare::{
    Change, ComparedGroup, ComparedProcessor, Comparison, Side,
};
use smbscope_analysis::processors::{InterruptGroup, Report};

use crate::answers::cpu::ranks::DurationRanks;
use crate::answers::cpu::strip::{CpuStrip, StripRow};
use crate::answers::cpu::{coverage, sampled};
use crate::answers::recording::meta::Meta;
use crate::document::{
    Block, Cell, Column, Document, Heading, Section, Table, Tile, Tone, Verdict,
};
use crate::render::Answer;
use crate::value::format;

/// Rows of tables in a text and on a page, and names whose distributions are drawn.
const IN_TEXT: usize = 12;
const IN_PAGE: usize = 200;
const DRAWN: usize = 3;
/// Names that the verdict has.
const NAMED: usize = 3;
/// Smaller changes are not worth a sentence, CPU seconds per second.
const NAMED_MIN: f64 = 0.005;

/// CPU traces side by side.
#[derive(Clone, Copy, Debug)]
pub struct CpuComparison<'a> {
    pub found: &'a Comparison,
    pub reports: &'a [Report],
    pub meta: &'a Meta,
}

impl Answer for CpuComparison<'_> {
    fn document(&self) -> Option<Document> {
        Some(document(self.found, self.reports, self.meta))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(self.found)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("version".to_owned(), json!(self.meta.version));
            object.insert("inputs".to_owned(), json!(self.meta.inputs));
        }
        Ok(value)
    }
}

fn document(found: &Comparison, reports: &[Report], meta: &Meta) -> Document {
    let lengths: Vec<_> = reports.iter().map(|one| format::duration(one.length_ns)).collect();
    let letters = meta.inputs.iter().enumerate();
    let letters: Vec<_> = letters.map(|(at, name)| format!("{}: {name}", letter(at))).collect();
    Document {
        brand: "smbscope compare",
        title: letters.join(", "),
        span: lengths.join(", "),
        verdict: verdict(found),
        tiles: tiles(found, reports),
        notices: notices(found, reports),
        sections: sections(found, reports, meta),
        clock: meta.clock.clone(),
        inputs: meta.inputs.clone(),
        version: meta.version.clone(),
        ..Document::default()
    }
}

fn sections(found: &Comparison, reports: &[Report], meta: &Meta) -> Vec<Section> {
    let letters: Vec<_> = (0..reports.len()).map(letter).collect();
    let mut sections = vec![names(found)];
    sections.extend(sampled::section(found, &letters));
    sections.extend([durations(found, reports, &meta.inputs), processors(found)]);
    sections
}

/// What a reader must know before any number: what was lost, and what one trace does not have.
fn notices(found: &Comparison, reports: &[Report]) -> Vec<Block> {
    let of_traces = reports
        .iter()
        .enumerate()
        .flat_map(|(at, report)| coverage::notices(report).into_iter().map(move |it| (at, it)))
        .filter_map(|(at, block)| match block {
            Block::Warn(words) => Some(Block::Warn(format!("{}: {words}", letter(at)))),
            _ => None,
        });
    let missing = found.missing.iter().zip(reports).enumerate();
    let missing = missing.filter_map(|(at, (kinds, report))| {
        let letter = letter(at);
        if kinds.is_empty() {
            return None;
        }
        let kinds = kinds.iter().map(|kind| format::sanitized(kind)).collect::<Vec<_>>().join(", ");
        Some(Block::Warn(if report.recorded.any() { format!(
                "{letter} has no event of these kinds: {kinds}. They were not recorded there, or did not occur, so they are not compared."
            ) } else { format!(
                "{letter} has no events of interrupts and deferred work, so their time is not known there, and nothing is compared."
            ) }))
    });
    let is_of_intervals =
        |report: &&Report| report.totals.as_ref().is_some_and(|totals| totals.of_intervals);
    let sums = reports.iter().any(|report| report.totals.is_some());
    let sums = sums.then(|| {
        Block::Warn(if reports.iter().any(|report| is_of_intervals(&report)) { "Sums of a period have no names, so names are not compared.".to_owned() } else { "Sums are times with what ran within, and have no intervals of names: how certain a change is, is not known.".to_owned() })
    });
    of_traces.chain(missing).chain(sums).collect()
}

/// The letter of a trace.
fn letter(place: usize) -> String {
    let code = u8::try_from(place).ok().and_then(|place| b'A'.checked_add(place));
    code.filter(u8::is_ascii_uppercase)
        .map_or_else(|| format!("#{}", place + 1), |code| char::from(code).to_string())
}

fn title(group: &ComparedGroup) -> String {
    format!("{} ({})", group.name.as_deref().unwrap_or("without a name"), group.kind)
}

/// CPU seconds per second as the number of CPUs that are busy with it.
fn load(value: f64) -> String {
    match value.abs() {
        0.0995.. => format!("{value:.2} CPUs"),
        _ => format!("{:.2} % of a CPU", 100.0 * value),
    }
}

fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", load(value.abs()))
}

fn percent(side: Option<&Side>, change: f64) -> Option<f64> {
    let before = side?.load;
    (before > 0.0).then(|| 100.0 * change / before)
}

/// `−69 %`, `3.1 times`, `new`, `gone`; `–` for what one of the traces did not record.
fn percent_words(group: &ComparedGroup, change: &Change, place: usize) -> String {
    let side = |place: usize| group.sides.get(place).and_then(Option::as_ref);
    let Some(load) = change.load else { return "–".to_owned() };
    match (side(0), side(place)) {
        (None, None) => "–".to_owned(),
        (None, _) => "new".to_owned(),
        (_, None) => "gone".to_owned(),
        (before, _) => match percent(before, load) {
            Some(percent @ 200.0..) => format!("{} times", format::number(1.0 + percent / 100.0)),
            Some(percent) if percent < 0.0 => format!("−{:.0} %", -percent),
            Some(percent) => format!("+{percent:.0} %"),
            None => "–".to_owned(),
        },
    }
}

/// The verdict is about the first trace and the last.
fn verdict(found: &Comparison) -> Verdict {
    let ends = found.all.first().copied().flatten().zip(found.all.last().copied().flatten());
    let Some((first, last)) = ends else {
        return Verdict {
            tone: Tone::Unknown,
            sentence: "There is nothing to compare: the traces have no kind of interrupts or deferred work in common".to_owned(),
            reasons: Vec::new(),
        };
    };
    let place = found.all.len() - 1;
    // Sums do not say whether a change is chance.
    let is_judged = found
        .groups
        .iter()
        .filter_map(|group| group.changes.last())
        .any(|change| change.p.is_some());
    let changes = found.groups.iter().filter_map(|group| Some((group, group.changes.last()?)));
    let sure: Vec<_> = changes.filter(|(_, change)| change.significant).collect();
    let to = letter(place);
    let (tone, sentence) = match (sure.is_empty(), last < first) {
        (true, _) if !is_judged => (
            Tone::Unknown,
            format!(
                "Interrupts and deferred work take {} in A, {} in {to}; whether that is chance is not known",
                load(first),
                load(last)
            ),
        ),
        (true, _) => (
            Tone::Unknown,
            format!(
                "No significant change: interrupts and deferred work take {} in A, {} in {to}",
                load(first),
                load(last)
            ),
        ),
        (false, is_less) => (
            if is_less { Tone::Good } else { Tone::Bad },
            format!(
                "Interrupts and deferred work take {} in {to} instead of {} in A",
                load(last),
                load(first)
            ),
        ),
    };
    let changes = found.groups.iter().filter_map(|group| Some((group, group.changes.last()?)));
    let named = changes.filter(|(_, it)| it.significant || (found.has_sums && it.p.is_none()));
    let mut reasons: Vec<_> = named
        .filter_map(|(group, change)| Some((group, change, change.load?)))
        .filter(|(_, _, more)| more.abs() >= NAMED_MIN)
        .take(NAMED)
        .map(|(group, change, more)| {
            let mean =
                |at: usize| group.sides.get(at).and_then(Option::as_ref).and_then(|it| it.mean_ns);
            let means = match (mean(0), mean(place)) {
                // Three digits are shown.
                (Some(a), Some(b)) if format::duration(a) != format::duration(b) => format!(
                    "; a run takes {} instead of {} on average",
                    format::duration(b),
                    format::duration(a)
                ),
                _ => String::new(),
            };
            // A name that does not occur has no runs.
            let count = |at: usize| match group.sides.get(at).and_then(Option::as_ref) {
                Some(side) => side.count,
                None => Some(0),
            };
            let runs = count(place).zip(count(0)).map_or_else(String::new, |(after, before)| {
                format!(", {} runs instead of {}", format::count(after), format::count(before))
            });
            format!(
                "{}: {} ({}){runs}{means}.{}",
                format::sanitized(&title(group)),
                signed(more),
                percent_words(group, change, place),
                if change.significant { "" } else { " Whether that is chance is not known." },
            )
        })
        .collect();
    reasons.extend(sampled::came_and_went(found, place));
    reasons.extend(found.moved.iter().map(|moved| {
        format!(
            "Time moved from {} (−{}) to {} (+{}).",
            format::sanitized(&moved.from),
            load(moved.lost),
            format::sanitized(&moved.to),
            load(moved.gained)
        )
    }));
    Verdict { tone, sentence, reasons }
}

fn tiles(found: &Comparison, reports: &[Report]) -> Vec<Tile> {
    let most = |report: &Report| {
        let busy = report.processors.iter().filter_map(|one| one.busy_share());
        busy.reduce(f64::max)
    };
    found
        .all
        .iter()
        .zip(reports)
        .enumerate()
        .map(|(at, (all, report))| {
            Tile::new(
                format!("Interrupt work in {}", letter(at)),
                all.map_or_else(|| "–".to_owned(), load),
                match (all, most(report)) {
                    (None, None) => "not recorded".to_owned(),
                    (_, most) => format!(
                        "busiest CPU {}",
                        most.map_or_else(|| "–".to_owned(), format::share)
                    ),
                },
            )
        })
        .collect()
}

/// A column that is not a field of a report.
pub(super) fn column<'a, T>(
    heading: impl Into<String>,
    group: Option<&'static str>,
    rank: u8,
    numeric: bool,
    value: impl Fn(&T) -> Cell + 'a,
) -> Column<'a, T> {
    Column::new(Heading { group, ..Heading::new(heading, numeric, rank) }, value)
}

fn names(found: &Comparison) -> Section {
    type Row = ComparedGroup;
    let traces = found.all.len();
    let mut columns = vec![column("Name", None, 0, false, |row: &Row| Cell::Text(title(row)))];
    let side = |row: &Row, at: usize| row.sides.get(at).cloned().flatten();
    for at in 0..traces {
        columns.push(column(letter(at), Some("CPU s/s"), 0, true, move |row: &Row| {
            side(row, at)
                .map_or(Cell::Empty, |side| Cell::Measure(side.load, format!("{:.3}", side.load)))
        }));
    }
    for at in 1..traces {
        columns.push(column(letter(at), Some("Change"), 0, true, move |row: &Row| {
            row.changes.get(at - 1).map_or(Cell::Empty, |change| {
                let star = if change.significant { " *" } else { "" };
                Cell::Measure(
                    change.load.unwrap_or(0.0),
                    format!("{}{star}", percent_words(row, change, at)),
                )
            })
        }));
        columns.push(column(letter(at), Some("p"), 2, true, move |row: &Row| {
            row.changes.get(at - 1).and_then(|change| change.p).map_or(Cell::Empty, |p| {
                Cell::Measure(p, if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") })
            })
        }));
    }
    type Pick = fn(&Side) -> Cell;
    let picks: [(&'static str, u8, Pick); 4] = [
        ("Runs", 1, |side| Cell::count(side.count)),
        ("Mean", 0, |side| Cell::duration(side.mean_ns)),
        ("p95", 2, |side| Cell::duration(side.p95_ns)),
        ("Over limit", 1, |side| side.over_limit.map_or(Cell::Empty, Cell::some)),
    ];
    for (name, rank, pick) in picks {
        for at in 0..traces {
            columns.push(column(letter(at), Some(name), rank, true, move |row: &Row| {
                side(row, at).map_or(Cell::Empty, |side| pick(&side))
            }));
        }
    }
    let table = Table::new("Time by name", "", &found.groups, columns);
    Section {
        id: "names",
        title: "What changed",
        help: "CPU seconds per second of each name, the largest change first. – is a change that is not known, because one of the traces does not have such events. A star marks changes that are larger than how much the time varies within the traces (p below 0.05, corrected for the number of names).",
        blocks: vec![Block::Table(table.cut(
            IN_TEXT,
            IN_PAGE,
            "SELECT recording, kind, name, sum(exclusive_ns) FROM interrupts GROUP BY 1, 2, 3",
        ))],
    }
}

/// The durations of the names with most change, of all traces.
fn durations(found: &Comparison, reports: &[Report], inputs: &[String]) -> Section {
    let of = |report: &Report, wanted: &ComparedGroup| -> Option<InterruptGroup> {
        let mut groups = report.interrupts.iter();
        groups.find(|group| group.kind == wanted.kind && group.name == wanted.name).cloned()
    };
    // The first one is drawn even if nothing changed.
    let is_changed = |group: &ComparedGroup| group.changes.iter().any(|change| change.significant);
    let drawn = found.groups.iter().enumerate();
    let drawn = drawn.filter(|(place, group)| *place == 0 || is_changed(group));
    let charts = drawn.take(DRAWN).map(|(_, group)| {
        let lines = reports.iter().zip(inputs).enumerate().filter_map(|(at, (report, input))| {
            let points = of(report, group)?.longest;
            let points = points.iter().map(|one| (one.count as f64, one.duration_ns as f64));
            Some((format!("{}: {input}", letter(at)), points.collect::<Vec<_>>()))
        });
        let limit = reports.iter().find_map(|report| of(report, group)).map(|it| it.limit_ns);
        Block::drawing(DurationRanks {
            caption: format!("Durations of {} in order of size", title(group)),
            help: "How many runs (to the right) take at least so long (upwards).".to_owned(),
            lines: lines.filter(|(_, points)| !points.is_empty()).collect(),
            limits: limit
                .map(|ns| (format!("limit, {}", format::duration(ns)), ns as f64))
                .into_iter()
                .collect(),
        })
    });
    Section {
        id: "durations",
        title: "Durations",
        help: "The distributions of all traces over each other.",
        blocks: Block::worth_showing(charts.collect()),
    }
}

fn processors(found: &Comparison) -> Section {
    type Row = ComparedProcessor;
    let traces = found.all.len();
    let mut columns =
        vec![column("CPU", None, 0, true, |row: &Row| Cell::Text(row.cpu.to_string()))];
    if found.processors.iter().any(|row| row.node.is_some()) {
        columns.push(column("Node", None, 2, true, |row: &Row| Cell::count(row.node)));
    }
    for at in 0..traces {
        columns.push(column(letter(at), Some("Interrupt work"), 0, true, move |row: &Row| {
            row.shares.get(at).copied().flatten().map_or(Cell::Empty, Cell::Share)
        }));
    }
    let table = Table::new(
        "Share of each CPU's time in interrupts and deferred work",
        "",
        &found.processors,
        columns,
    );
    let most =
        found.processors.iter().any(|row| row.shares.iter().flatten().any(|share| *share > 0.0));
    let strip = CpuStrip {
        caption: "Each CPU, trace by trace".to_owned(),
        help: "Dark where a CPU has no time for threads; one field for each trace.".to_owned(),
        bin_ns: 0,
        before_ns: 0,
        whole_ns: 0,
        groups: vec![(
            String::new(),
            found
                .processors
                .iter()
                .map(|row| StripRow {
                    label: format!("CPU {}", row.cpu),
                    words: row
                        .shares
                        .iter()
                        .map(|share| {
                            share.map_or_else(|| "–".to_owned(), |it| format!("{:.0}", 100.0 * it))
                        })
                        .collect::<Vec<_>>()
                        .join(" → "),
                    shares: row.shares.iter().map(|share| share.unwrap_or(0.0)).collect(),
                })
                .collect(),
        )],
    };
    let mut blocks = Vec::new();
    if most {
        blocks.push(Block::drawing(strip));
    }
    blocks.push(Block::Table(table.cut(
        2 * IN_TEXT,
        IN_PAGE,
        "SELECT recording, cpu, sum(exclusive_ns) FROM interrupts GROUP BY 1, 2",
    )));
    Section {
        id: "processors",
        title: "CPUs",
        help: "What each CPU spends on interrupts and deferred work of the kinds that all traces have, side by side.",
        blocks,
    }
}

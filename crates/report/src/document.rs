//! The report as a document: sections of tables and charts with typed values, which the text and
//! the HTML renderer show in their own ways. Nothing here knows how.

use crate::fields::{Field, Format, field};
use crate::format;
use crate::waterfall::Waterfall;
use smbscope_analysis::summary::Distribution;

/// A value with its meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Not known.
    Empty,
    /// Text from outside or ours.
    Text(String),
    /// Text that is typed as it is.
    Code(String),
    Count(u64),
    Number(f64),
    Bytes(u64),
    /// Bytes to the last one.
    Size(u64),
    Duration(i64),
    Time(i64),
    Share(f64),
    /// A number, and how it reads with its unit.
    Measure(f64, String),
    /// Counts between bounds.
    Histogram(Vec<u64>),
}

impl Cell {
    pub(crate) fn text(text: &Option<String>) -> Cell {
        text.as_ref().map_or(Cell::Empty, |text| Cell::Text(text.clone()))
    }

    pub(crate) fn duration(value: Option<i64>) -> Cell {
        value.map_or(Cell::Empty, Cell::Duration)
    }

    pub(crate) fn count(value: Option<u64>) -> Cell {
        value.map_or(Cell::Empty, Cell::Count)
    }

    pub(crate) fn bytes(value: Option<u64>) -> Cell {
        value.map_or(Cell::Empty, Cell::Bytes)
    }

    /// A count of which zero is not worth reading.
    pub(crate) fn some(value: u64) -> Cell {
        match value {
            0 => Cell::Empty,
            _ => Cell::Count(value),
        }
    }

    /// As people read it.
    pub(crate) fn show(&self) -> String {
        match self {
            Cell::Empty => "–".to_owned(),
            Cell::Text(text) | Cell::Code(text) => format::harmless(text),
            Cell::Count(count) => format::count(*count),
            Cell::Number(value) => format::number(*value),
            Cell::Bytes(bytes) => format::bytes(*bytes),
            Cell::Size(bytes) => format!("{} B", format::count(*bytes)),
            Cell::Duration(ns) => format::duration(*ns),
            Cell::Time(ns) => format::time(*ns),
            Cell::Share(share) => format::share(*share),
            Cell::Measure(_, text) => format::harmless(text),
            Cell::Histogram(counts) => {
                let counts: Vec<_> = counts.iter().map(|&count| count as f64).collect();
                format::sparkline(&counts)
            }
        }
    }

    /// What a table is sorted by in the browser; none where the text itself serves.
    pub(crate) fn sort_key(&self) -> Option<String> {
        match self {
            Cell::Empty => Some("-1e308".to_owned()),
            Cell::Count(value) | Cell::Bytes(value) | Cell::Size(value) => Some(value.to_string()),
            Cell::Duration(value) | Cell::Time(value) => Some(value.to_string()),
            Cell::Number(value) | Cell::Share(value) | Cell::Measure(value, _) => {
                Some(value.to_string())
            }
            Cell::Text(_) | Cell::Code(_) | Cell::Histogram(_) => None,
        }
    }
}

/// A column's heading.
#[derive(Clone, Debug)]
pub(crate) struct Heading {
    pub(crate) title: String,
    /// Stands above the headings of several columns.
    pub(crate) group: Option<&'static str>,
    pub(crate) help: &'static str,
    pub(crate) numeric: bool,
    /// 0 always stays; columns of the highest rank go first where there is no room.
    pub(crate) rank: u8,
}

/// How one column is made from a row.
pub(crate) struct Column<'a, T> {
    heading: Heading,
    value: Box<dyn Fn(&T) -> Cell + 'a>,
}

/// A column of a field.
pub(crate) fn column<'a, T>(
    object: &str,
    name: &str,
    rank: u8,
    value: impl Fn(&T) -> Cell + 'a,
) -> Column<'a, T> {
    let field: &Field = field(object, name);
    Column {
        heading: Heading {
            title: field.title.to_owned(),
            group: None,
            help: field.help,
            numeric: field.format.is_number(),
            rank,
        },
        value: Box::new(value),
    }
}

/// Columns of a distribution: n and the percentiles, under a common heading.
pub(crate) fn distribution<'a, T: 'a>(
    object: &str,
    name: &str,
    ranks: [u8; 5],
    of: impl Fn(&T) -> &Distribution + Copy + 'a,
) -> Vec<Column<'a, T>> {
    let group = Some(field(object, name).title);
    let mut columns =
        vec![column("distribution", "n", ranks[0], move |row: &T| Cell::Count(of(row).n))];
    type Pick = fn(&Distribution) -> Option<i64>;
    let picks: [(&str, Pick); 4] = [
        ("p50_ns", |d| d.p50_ns),
        ("p95_ns", |d| d.p95_ns),
        ("p99_ns", |d| d.p99_ns),
        ("max_ns", |d| d.max_ns),
    ];
    for ((name, pick), rank) in picks.into_iter().zip(ranks.into_iter().skip(1)) {
        columns
            .push(column("distribution", name, rank, move |row: &T| Cell::duration(pick(of(row)))));
    }
    for column in &mut columns {
        column.heading.group = group;
    }
    columns
}

impl<T> Column<'_, T> {
    pub(crate) fn titled(mut self, title: impl Into<String>) -> Self {
        self.heading.title = title.into();
        self
    }

    pub(crate) fn grouped(mut self, group: &'static str) -> Self {
        self.heading.group = Some(group);
        self
    }

    pub(crate) fn ungrouped(mut self) -> Self {
        self.heading.group = None;
        self
    }
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) headings: Vec<Heading>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Rows that there are altogether.
    pub(crate) total: u64,
    /// Rows that a terminal shows.
    pub(crate) in_text: usize,
    /// Rows that a page shows.
    pub(crate) in_page: usize,
    /// Lists all.
    pub(crate) sql: Option<String>,
}

impl Table {
    pub(crate) fn new<T>(
        caption: impl Into<String>,
        help: impl Into<String>,
        rows: &[T],
        columns: Vec<Column<'_, T>>,
    ) -> Table {
        Table {
            caption: caption.into(),
            help: help.into(),
            rows: rows
                .iter()
                .map(|row| columns.iter().map(|column| (column.value)(row)).collect())
                .collect(),
            headings: columns.into_iter().map(|column| column.heading).collect(),
            total: rows.len() as u64,
            in_text: 10,
            in_page: 50,
            sql: None,
        }
    }

    pub(crate) fn cut(mut self, in_text: usize, in_page: usize, sql: &str) -> Table {
        (self.in_text, self.in_page) = (in_text, in_page);
        self.sql = Some(sql.to_owned());
        self
    }
}

/// Facts, one a line.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) caption: String,
    pub(crate) rows: Vec<Fact>,
}

#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) title: String,
    pub(crate) value: Cell,
    pub(crate) note: String,
    pub(crate) help: &'static str,
}

/// A fact of a field.
pub(crate) fn fact(object: &str, name: &str, value: Cell) -> Fact {
    let field = field(object, name);
    Fact { title: field.title.to_owned(), value, note: String::new(), help: field.help }
}

impl Fact {
    pub(crate) fn noted(mut self, note: impl Into<String>) -> Fact {
        self.note = note.into();
        self
    }

    pub(crate) fn titled(mut self, title: &str) -> Fact {
        self.title = title.to_owned();
        self
    }
}

/// Parts of wholes as bars.
#[derive(Clone, Debug)]
pub(crate) struct Stacked {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) format: Format,
    /// What is counted, in words.
    pub(crate) unit: &'static str,
    /// The place of each part's colour, and its name.
    pub(crate) parts: Vec<(usize, &'static str)>,
    pub(crate) rows: Vec<(String, Vec<f64>)>,
    /// If set, all bars have the full width, and these words are printed next to them instead of sums.
    pub(crate) beside: Option<Vec<String>>,
}

impl Stacked {
    /// The place of a part's colour.
    pub(crate) fn place(&self, part: usize) -> usize {
        self.parts.get(part).map_or(0, |(place, _)| *place)
    }
}

/// What happened in several times of equal width, one below the other.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// The place of each part's colour, and its name.
    pub(crate) parts: Vec<(usize, &'static str)>,
    pub(crate) rows: Vec<TimelineRow>,
}

#[derive(Clone, Debug)]
pub(crate) struct TimelineRow {
    pub(crate) label: String,
    pub(crate) note: String,
    pub(crate) whole_ns: i64,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Which of the parts.
    pub(crate) part: usize,
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    /// In how many others it lies.
    pub(crate) depth: u32,
}

/// Several lines over time, one unit.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) format: Format,
    /// What is counted, in words.
    pub(crate) unit: String,
    /// Stands after values: "/s".
    pub(crate) per: String,
    /// How neighbouring values are combined if there is not enough room.
    pub(crate) join: Join,
    pub(crate) start_ns: i64,
    pub(crate) bin_ns: i64,
    /// NaN where there is no value.
    pub(crate) lines: Vec<(String, Vec<f64>)>,
}

/// Values over a quantity other than time: points, and lines between them.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// The quantity on the horizontal axis: "users".
    pub(crate) over: &'static str,
    pub(crate) format: Format,
    /// A value from which on it is too much.
    pub(crate) limit: Option<(f64, &'static str)>,
    /// Between which places the answer lies: from, to, what it is.
    pub(crate) mark: Option<(f64, f64, &'static str)>,
    pub(crate) in_text: bool,
    pub(crate) lines: Vec<(&'static str, Vec<Point>)>,
}

/// A place, the value there, and whether it stands out.
pub(crate) type Point = (f64, f64, bool);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Mean,
    Most,
}

/// Histograms with common bounds.
#[derive(Clone, Debug)]
pub(crate) struct Histograms {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// Where the bars begin and the last one ends; none for the first without a lower bound, and for the
    /// end of the last without an upper one.
    pub(crate) bounds: Vec<Option<i64>>,
    pub(crate) rows: Vec<(String, Vec<u64>)>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Table(Table),
    Facts(Facts),
    Stacked(Stacked),
    Timeline(Timeline),
    Lines(Lines),
    Curve(Curve),
    Histograms(Histograms),
    Waterfall(Waterfall),
    Note(String),
    /// A note that must not be overlooked.
    Warn(String),
}

/// A part of the report under one heading.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) help: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// A value of a format as people read it.
pub(crate) fn show(format: Format, value: f64) -> String {
    match format {
        Format::Bytes => format::bytes(value.max(0.0) as u64),
        Format::Duration => format::duration(value as i64),
        Format::Share => format::share(value),
        Format::Count if value.fract() == 0.0 => format::count(value.max(0.0) as u64),
        _ if value >= 1000.0 => format::count(value.round() as u64),
        _ => format::number(value),
    }
}

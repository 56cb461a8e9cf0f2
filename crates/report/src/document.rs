//! The report as a document: sections of tables and charts with typed values, which the text and
//! the HTML renderer show in their own ways. Nothing here knows how.

mod cards;
mod charts;
mod drawing;
mod verdict;

pub(crate) use charts::{
    AreaMark, Areas, Band, Change, Changes, Chart, Curve, Histograms, Join, Lines, Piece, Point,
    Portions, Stacked, Timeline, TimelineRow, Times, joined,
};
pub(crate) use verdict::{Tile, Tone, Verdict};

pub(crate) use cards::{CardText, ChecklistItem, FindingCard, FindingLine};
pub(crate) use drawing::Drawing;
pub use drawing::TextOptions;

use crate::value::{Clock, Fields, format};
use smbscope_analysis::summary::Distribution;

/// Everything that one page or one text says.
#[derive(Debug)]
pub struct Document {
    pub(crate) brand: &'static str,
    /// What it is about: the inputs.
    pub(crate) title: String,
    pub(crate) span: String,
    pub(crate) verdict: Verdict,
    pub(crate) tiles: Vec<Tile>,
    /// What a reader must know before any number.
    pub(crate) notices: Vec<Block>,
    pub(crate) sections: Vec<Section>,
    pub(crate) clock: Clock,
    /// The inputs, as they were given.
    pub(crate) inputs: Vec<String>,
    pub(crate) version: String,
    /// Version of the tables' schema.
    pub(crate) schema: u32,
}

impl Default for Document {
    fn default() -> Document {
        Document {
            brand: "smbscope",
            title: String::new(),
            span: String::new(),
            verdict: Verdict { tone: Tone::Unknown, sentence: String::new(), reasons: Vec::new() },
            tiles: Vec::new(),
            notices: Vec::new(),
            sections: Vec::new(),
            clock: Clock::default(),
            inputs: Vec::new(),
            version: String::new(),
            schema: smbscope_tables::SCHEMA_VERSION,
        }
    }
}

/// Inputs that a hint at a command names.
const INPUTS_NAMED: usize = 4;

impl Document {
    /// The command that lists all rows of a table, or, in a program without SQL, that writes them as Parquet.
    pub(crate) fn query(&self, sql: &str) -> String {
        let names = self.inputs.iter().take(INPUTS_NAMED).map(|name| quoted(name));
        let mut names: Vec<_> = names.collect();
        if self.inputs.len() > INPUTS_NAMED {
            names.push("...".to_owned());
        }
        let names = names.join(" ");
        if cfg!(feature = "sql") {
            format!("smbscope query {names} \"{sql}\"")
        } else {
            format!("smbscope import {names} --out dataset")
        }
    }
}

/// A word of a command line as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

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
    pub(crate) fn show(&self, clock: &Clock) -> String {
        match self {
            Cell::Empty => "–".to_owned(),
            Cell::Text(text) | Cell::Code(text) => format::sanitized(text),
            Cell::Count(count) => format::count(*count),
            Cell::Number(value) => format::number(*value),
            Cell::Bytes(bytes) => format::bytes(*bytes),
            Cell::Size(bytes) => format!("{} B", format::count(*bytes)),
            Cell::Duration(ns) => format::duration(*ns),
            Cell::Time(ns) => clock.time(*ns),
            Cell::Share(share) => format::share(*share),
            Cell::Measure(_, text) => format::sanitized(text),
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

impl Heading {
    /// A heading that is not a field's.
    pub(crate) fn new(title: impl Into<String>, numeric: bool, rank: u8) -> Heading {
        Heading { title: title.into(), group: None, help: "", numeric, rank }
    }
}

/// How one column is made from a row.
pub(crate) struct Column<'a, T> {
    heading: Heading,
    value: Box<dyn Fn(&T) -> Cell + 'a>,
}

/// Functions that look up a field in the `FIELDS` of their module, for the names that an answer needs.
macro_rules! by_field {
    (@ column) => {
        pub(crate) fn column<'a, T>(
            object: &str,
            name: &str,
            rank: u8,
            value: impl Fn(&T) -> $crate::document::Cell + 'a,
        ) -> $crate::document::Column<'a, T> {
            FIELDS.column(object, name, rank, value)
        }
    };
    (@ distribution) => {
        pub(crate) fn distribution<'a, T: 'a>(
            object: &str,
            name: &str,
            ranks: [u8; 5],
            value: impl Fn(&T) -> &smbscope_analysis::summary::Distribution + Copy + 'a,
        ) -> Vec<$crate::document::Column<'a, T>> {
            FIELDS.distribution(object, name, ranks, value)
        }
    };
    (@ fact) => {
        pub(crate) fn fact(
            object: &str,
            name: &str,
            value: $crate::document::Cell,
        ) -> $crate::document::Fact {
            FIELDS.fact(object, name, value)
        }
    };
    (@ field) => {
        pub(crate) fn field(object: &str, name: &str) -> &'static $crate::value::Field {
            FIELDS.field(object, name)
        }
    };
    ($($name:ident)*) => {
        $(by_field! { @ $name })*
    };
}

pub(crate) use by_field;

impl Fields {
    /// A column of a field.
    pub(crate) fn column<'a, T>(
        &self,
        object: &str,
        name: &str,
        rank: u8,
        value: impl Fn(&T) -> Cell + 'a,
    ) -> Column<'a, T> {
        let field = self.field(object, name);
        let heading = Heading {
            title: field.title.to_owned(),
            group: None,
            help: field.help,
            numeric: field.format.is_number(),
            rank,
        };
        Column::new(heading, value)
    }

    /// Columns of a distribution: n and the percentiles, under a common heading.
    pub(crate) fn distribution<'a, T: 'a>(
        &self,
        object: &str,
        name: &str,
        ranks: [u8; 5],
        of: impl Fn(&T) -> &Distribution + Copy + 'a,
    ) -> Vec<Column<'a, T>> {
        let group = Some(self.field(object, name).title);
        let n = move |row: &T| Cell::Count(of(row).n);
        let mut columns = vec![self.column("distribution", "n", ranks[0], n)];
        type Pick = fn(&Distribution) -> Option<i64>;
        let picks: [(&str, Pick); 4] = [
            ("p50_ns", |d| d.p50_ns),
            ("p95_ns", |d| d.p95_ns),
            ("p99_ns", |d| d.p99_ns),
            ("max_ns", |d| d.max_ns),
        ];
        for ((name, pick), rank) in picks.into_iter().zip(ranks.into_iter().skip(1)) {
            let value = move |row: &T| Cell::duration(pick(of(row)));
            columns.push(self.column("distribution", name, rank, value));
        }
        for column in &mut columns {
            column.heading.group = group;
        }
        columns
    }

    /// A fact of a field.
    pub(crate) fn fact(&self, object: &str, name: &str, value: Cell) -> Fact {
        let field = self.field(object, name);
        Fact { title: field.title.to_owned(), value, note: String::new(), help: field.help }
    }
}

impl<'a, T> Column<'a, T> {
    /// A column that is not a field of the report.
    pub(crate) fn new(heading: Heading, value: impl Fn(&T) -> Cell + 'a) -> Column<'a, T> {
        Column { heading, value: Box::new(value) }
    }

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
    /// The column whose values a page offers as filters.
    pub(crate) filter: Option<usize>,
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
            filter: None,
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

/// A part of a section.
#[derive(Debug)]
pub(crate) enum Block {
    Table(Table),
    Facts(Facts),
    Chart(Chart),
    /// A finding that a page unfolds.
    Finding(FindingCard),
    /// Findings, a line for each, the most severe first.
    Findings(Vec<FindingLine>),
    /// Commands as a checklist.
    Steps(Vec<ChecklistItem>),
    /// A drawing that only one answer has.
    Drawing(Box<dyn Drawing>),
    Note(String),
    /// A note that must not be overlooked.
    Warn(String),
    /// What is shown only on request.
    Fold(Fold),
}

/// Parts of a section that a page folds.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

impl Block {
    /// Blocks under a title that unfolds them.
    pub(crate) fn fold(title: impl Into<String>, blocks: Vec<Block>) -> Block {
        Block::Fold(Fold { title: title.into(), blocks })
    }

    pub(crate) fn chart(chart: impl Into<Chart>) -> Block {
        Block::Chart(chart.into())
    }

    pub(crate) fn drawing(drawing: impl Drawing + 'static) -> Block {
        Block::Drawing(Box::new(drawing))
    }

    /// Findings, of which a page folds those after the first `most`; `title` of their number.
    pub(crate) fn findings(
        mut lines: Vec<FindingLine>,
        most: usize,
        title: impl FnOnce(usize) -> String,
    ) -> Vec<Block> {
        let others = lines.split_off(lines.len().min(most));
        let mut blocks = Vec::new();
        if !lines.is_empty() {
            blocks.push(Block::Findings(lines));
        }
        if !others.is_empty() {
            blocks.push(Block::fold(title(others.len()), vec![Block::Findings(others)]));
        }
        blocks
    }

    /// Whether it shows nothing: no rows, or lines that are zero everywhere.
    fn is_trivial(&self) -> bool {
        match self {
            Block::Table(table) => table.rows.is_empty(),
            Block::Facts(facts) => facts.rows.is_empty(),
            Block::Chart(chart) => chart.is_empty(),
            Block::Drawing(drawing) => drawing.is_empty(),
            Block::Fold(fold) => fold.blocks.is_empty(),
            _ => false,
        }
    }

    /// Without what shows nothing.
    pub(crate) fn worth_showing(blocks: Vec<Block>) -> Vec<Block> {
        let inside = |block| match block {
            Block::Fold(fold) => {
                Block::Fold(Fold { blocks: Block::worth_showing(fold.blocks), ..fold })
            }
            other => other,
        };
        let kept = |block: &Block| !block.is_trivial();
        blocks.into_iter().map(inside).filter(kept).collect()
    }
}

/// A part of the report under one heading.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) help: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// Sections that a page folds: what one looks up.
const FOLDED: [&str; 7] =
    ["counters", "sizes", "compounds", "protection", "connections", "run", "coverage"];

impl Section {
    /// Sections that say something, without what shows nothing.
    pub(crate) fn worth_showing(sections: Vec<Section>) -> Vec<Section> {
        let shown = sections
            .into_iter()
            .map(|section| Section { blocks: Block::worth_showing(section.blocks), ..section });
        shown.filter(|section| !section.blocks.is_empty()).collect()
    }

    /// Whether a page folds it.
    pub(crate) fn is_folded(&self) -> bool {
        FOLDED.contains(&self.id)
    }
}

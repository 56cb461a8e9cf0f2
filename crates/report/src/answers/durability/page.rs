//! A durability test as a page.

use super::{Durability, DurableWay, by, risk_text, verdict};
use crate::document::{Block, Cell, Document, Heading, Section, Table, Tile, Tone, Verdict};

/// Broken promises that a page lists.
const LISTED: usize = 200;

/// A test as a document. `version` is that of smbscope.
pub(super) fn document(test: &Durability, version: &str) -> Document {
    let sentence = test.sentence();
    let sentence = sentence.strip_suffix('.').unwrap_or(&sentence).to_owned();
    let checked: u64 = test.ways.iter().map(|way| way.checked).sum();
    let tone = match (test.broken(), checked) {
        (0, 0) => Tone::Unknown,
        (0, _) if !test.proves() => Tone::Watch,
        (0, _) => Tone::Good,
        _ => Tone::Bad,
    };
    let mut sections = vec![
        section(
            "promises",
            "Promises",
            "What was acknowledged as durable in each way of writing, and whether it was there after the power was lost.",
            promises(test),
        ),
        section(
            "unpromised",
            "Data without a promise",
            "What was acknowledged, not promised and lost. Its age is the time from its reply to the last reply of the server.",
            unpromised(test),
        ),
    ];
    if test.ways.iter().any(|way| way.renames > 0) {
        let help = "Renames that were undone, and renames that are there although the data that was acknowledged before is not.";
        sections.push(section("renames", "Renames", help, renames(test)));
    }
    if !test.losses.is_empty() {
        let help = "Each block whose newest promised write was not there.";
        sections.push(section("broken", "Broken promises", help, losses(test)));
    }
    let tile =
        |title: &str, value: String, note: String| Tile { title: title.to_owned(), value, note };
    Document {
        brand: "smbscope",
        title: test.target.clone(),
        span: format!("run {}, {} rounds", test.run, test.rounds),
        verdict: Verdict { tone, sentence, reasons: Vec::new() },
        tiles: vec![
            tile(
                "Broken promises",
                crate::value::format::count(test.broken()),
                format!("of {} checked", crate::value::format::count(checked)),
            ),
            tile(
                "Rounds",
                test.rounds.to_string(),
                format!("{} with a broken promise", test.rounds_broken),
            ),
            tile(
                "Oldest lost data",
                test.cache_age_ns.map_or_else(|| "–".to_owned(), crate::value::format::duration),
                "without a promise".to_owned(),
            ),
        ],
        notices: test.notes.iter().map(|note| Block::Note(note.clone())).collect(),
        sections,
        inputs: vec![test.journal.clone()],
        version: version.to_owned(),
        ..Document::default()
    }
}

fn section(id: &'static str, title: &'static str, help: &'static str, table: Table) -> Section {
    Section { id, title, help, blocks: vec![Block::Table(table)] }
}

/// A table whose first column is text; of the others each has a title, a help and whether it is a number.
fn table(caption: &str, columns: &[(&str, &'static str, bool)], rows: Vec<Vec<Cell>>) -> Table {
    let headings = columns.iter().map(|(title, help, numeric)| Heading {
        title: (*title).to_owned(),
        group: None,
        help,
        numeric: *numeric,
        rank: rank(title),
    });
    Table {
        caption: caption.to_owned(),
        help: String::new(),
        headings: headings.collect(),
        total: rows.len() as u64,
        rows,
        in_text: LISTED,
        in_page: LISTED,
        sql: None,
        filter: None,
    }
}

/// Which columns go first where there is no room.
fn rank(title: &str) -> u8 {
    match title {
        "What it does" => 3,
        "Fresh" | "Rounds broken" | "Half" => 2,
        "Instead" | "of other files" => 1,
        _ => 0,
    }
}

/// Counts by what is there instead; nothing without any.
fn instead(counts: &[(String, u64)]) -> Cell {
    if counts.is_empty() { Cell::Empty } else { Cell::Text(by(counts)) }
}

fn promises(test: &Durability) -> Table {
    let columns = [
        ("Way", "How the application writes.", false),
        ("What it does", "The requests.", false),
        ("Promise", "Whether each promise was kept.", false),
        ("Written", "Acknowledged writes.", true),
        ("Promised", "Writes that were promised durable.", true),
        ("Checked", "Blocks with a promise, of each the newest.", true),
        ("Fresh", "Blocks promised in the last five seconds.", true),
        ("Broken", "Missing or damaged.", true),
        ("Risk at 95 %", "Interval of the share of broken promises (Clopper-Pearson).", false),
        ("Rounds broken", "Rounds with a broken promise, of all.", false),
        ("Instead", "What was found instead.", false),
    ];
    let row = |way: &DurableWay| {
        let risk = way.risk.map_or(Cell::Empty, |risk| Cell::Text(risk_text(risk, way.broken)));
        vec![
            Cell::Text(way.way.clone()),
            Cell::Text(way.description.clone()),
            Cell::Text(verdict(way).to_owned()),
            Cell::Count(way.writes),
            Cell::Count(way.promised),
            Cell::Count(way.checked),
            Cell::Count(way.fresh),
            Cell::Count(way.broken),
            risk,
            Cell::Text(format!("{} of {}", way.rounds_broken, way.rounds)),
            instead(&way.broken_by),
        ]
    };
    table("By way", &columns, test.ways.iter().map(row).collect())
}

fn unpromised(test: &Durability) -> Table {
    let columns = [
        ("Way", "How the application writes.", false),
        ("Lost", "Acknowledged writes that are gone.", true),
        ("Bytes", "Their bytes.", true),
        ("Age p50", "Half of them are younger.", true),
        ("p95", "95 % of them are younger.", true),
        ("max", "The oldest: how long the server keeps data in memory.", true),
        ("Later kept", "Lost although a later write to the same file is there.", true),
        ("of other files", "Lost although a later write to another file is there.", true),
        ("Half", "Blocks that a write in flight changed in part.", true),
        ("Instead", "What was found instead.", false),
    ];
    let row = |way: &DurableWay| {
        vec![
            Cell::Text(way.way.clone()),
            Cell::Count(way.lost),
            Cell::Bytes(way.lost_bytes),
            Cell::duration(way.lost_age_ns_p50),
            Cell::duration(way.lost_age_ns_p95),
            Cell::duration(way.lost_age_ns_max),
            Cell::Count(way.reordered_in_file),
            Cell::Count(way.reordered_across_files),
            Cell::Count(way.torn_in_flight),
            instead(&way.lost_by),
        ]
    };
    table("By way", &columns, test.ways.iter().map(row).collect())
}

fn renames(test: &Durability) -> Table {
    let columns = [
        ("Way", "How the application writes.", false),
        ("Done", "Acknowledged renames.", true),
        ("Undone", "The older version has the name again.", true),
        ("Oldest", "Age of the oldest undone rename.", true),
        ("Before their data", "The new version has the name, but not its data.", true),
    ];
    let row = |way: &DurableWay| {
        vec![
            Cell::Text(way.way.clone()),
            Cell::Count(way.renames),
            Cell::Count(way.renames_lost),
            Cell::duration(way.rename_age_ns_max),
            Cell::Count(way.renames_before_data),
        ]
    };
    let ways = test.ways.iter().filter(|way| way.renames > 0);
    table("By way", &columns, ways.map(row).collect())
}

fn losses(test: &Durability) -> Table {
    let columns = [
        ("File", "Path below the share.", false),
        ("Offset", "Place of the block.", true),
        ("Bytes", "Size of the block.", true),
        ("Instead", "What is there.", false),
        ("Way", "How it was written.", false),
        ("Round", "Round of the test.", true),
        ("Promised before the end", "Time from the promise to the last reply.", true),
    ];
    let row = |loss: &super::BrokenPromise| {
        vec![
            Cell::Code(loss.path.clone()),
            Cell::Count(loss.offset_bytes),
            Cell::Size(loss.bytes),
            Cell::Text(loss.how.clone()),
            Cell::Text(loss.way.clone()),
            Cell::Count(u64::from(loss.round) + 1),
            Cell::Duration(loss.age_ns),
        ]
    };
    let total = test.losses.len() as u64;
    let rows = test.losses.iter().take(LISTED).map(row).collect();
    Table { total, ..table("Blocks", &columns, rows) }
}

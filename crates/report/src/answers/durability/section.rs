//! Which acknowledged writes were stable, and how much was at risk.

use smbscope_analysis::durability::{
    Durability, DurabilityFile, DurabilityGroup, DurabilityKind, OpenTally, WayRow, settings,
};
use smbscope_analysis::explain::About;
use smbscope_analysis::summary::Report;

use crate::answers::recording::fields::{column, fact, field};
use crate::answers::recording::meta::Meta;
use crate::document::{Block, Cell, Column, Facts, Join, Lines, Section, Table};
use crate::value::{Format, format};

/// The tables are worth their space if this much data was at risk at one time.
const AT_RISK_BYTES: u64 = 16 << 20;

pub(crate) fn durability(report: &Report, meta: &Meta) -> Section {
    Section {
        id: "durability",
        title: "Durability",
        help: "Which acknowledged writes were stable, as the wire shows it: write-through, a Flush before the Close, or a continuously available share. Whether the server keeps these promises is not visible on the wire.",
        blocks: report.durability.as_ref().map(|one| folded(one, meta)).unwrap_or_default(),
    }
}

/// The section, of which a page folds all but the facts if little was at risk.
fn folded(found: &Durability, meta: &Meta) -> Vec<Block> {
    let notes = meta.diagnosis.iter().flat_map(|diagnosis| &diagnosis.notes);
    let is_noted = notes.into_iter().any(|note| note.about == About::NotStable);
    let blocks = blocks(found, meta);
    if is_noted || found.not_persistent.is_some() || found.most_bytes >= AT_RISK_BYTES {
        return blocks;
    }
    let (mut shown, hidden): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|block| matches!(block, Block::Facts(_)));
    shown.push(Block::fold("By way, application, share, client and file", hidden));
    shown
}

fn blocks(found: &Durability, meta: &Meta) -> Vec<Block> {
    let of = "durability";
    let window = format!("data without a Flush counts for {}", format::duration(found.window_ns));
    let at_most = if found.is_bound {
        "at most: shares were known to be continuously available only afterwards; "
    } else {
        ""
    };
    let until = &found.until_flush;
    let rows = vec![
        fact(of, "writes", Cell::Count(found.writes)).noted(format::bytes(found.written_bytes)),
        fact(of, "write_through_writes", Cell::Count(found.write_through_writes)),
        fact(of, "write_through_open_writes", Cell::Count(found.write_through_open_writes)),
        fact(of, "unbuffered_writes", Cell::Count(found.unbuffered_writes)),
        fact(of, "flushes", Cell::Count(found.flushes))
            .noted(format!("{} with nothing to do", format::count(found.idle_flushes))),
        fact(of, "until_flush", Cell::duration(until.p50_ns)).noted(match until.max_ns {
            Some(max) => format!(
                "median; p99 {}, max {} (n {})",
                until.p99_ns.map_or_else(String::new, format::duration),
                format::duration(max),
                format::count(until.n)
            ),
            None => "no Flush had anything to do".to_owned(),
        }),
        fact(of, "most_bytes", Cell::Bytes(found.most_bytes)).noted(match found.most_at_ns {
            Some(at) => format!("{at_most}at {}; {window}", meta.clock.time(at)),
            None => window,
        }),
    ];
    let mut rows = rows;
    if let (Some(opens), Some(without)) = (found.available_opens, found.not_persistent_opens) {
        rows.push(
            fact(of, "not_persistent_opens", Cell::Count(without))
                .noted(format!("of {} on continuously available shares", format::count(opens))),
        );
    }
    let mut ways = vec![column("durability_way", "way", 0, |row: &WayRow| {
        Cell::Text(row.way.title().to_owned())
    })];
    ways.extend(tally("durability_way", |row: &WayRow| &row.tally));
    let kind = "durability_kind";
    let mut kinds = vec![column(kind, "application", 0, |row: &DurabilityKind| {
        Cell::Code(row.application.to_owned())
    })];
    kinds.push(column(kind, "stable_opens", 0, |row: &DurabilityKind| {
        Cell::Count(row.stable_opens)
    }));
    kinds.extend(tally(kind, |row: &DurabilityKind| &row.tally));
    let mut blocks = vec![
        Block::Table(Table::new(
            field(of, "ways").title,
            field(of, "ways").help,
            &found.ways,
            ways,
        )),
        Block::Facts(Facts { caption: "Acknowledged and not stable".to_owned(), rows }),
    ];
    // With its cost, where a diagnosis was made.
    let notes = meta.diagnosis.iter().flat_map(|diagnosis| &diagnosis.notes);
    let mut notes: Vec<_> = notes
        .filter(|note| note.about == About::NotStable)
        .map(|note| Block::Warn(note.what.clone()))
        .collect();
    let verdicts = found.applications.iter().filter_map(|kind| kind.verdict.clone());
    if let Some(what) = &found.not_persistent {
        blocks.push(Block::Warn(format!("{what}.")));
    }
    if notes.is_empty() {
        notes.extend(verdicts.map(|verdict| Block::Note(format!("{verdict}."))));
        if found.most_bytes > 0 {
            let settings = settings().map(|(side, setting)| format!("{side}: {setting}"));
            notes.push(Block::Note(format!("What makes writes stable. {}.", settings.join(". "))));
        }
    }
    blocks.extend(notes);
    blocks.push(Block::chart(Lines {
        caption: "Acknowledged and not stable over time".to_owned(),
        help: field(of, "series_bytes").help.to_owned(),
        format: Format::Bytes,
        unit: "bytes".to_owned(),
        per: String::new(),
        join: Join::Most,
        start_ns: found.series_start_ns,
        bin_ns: found.series_bin_ns,
        lines: vec![(
            "at risk".to_owned(),
            found.series_bytes.iter().map(|bytes| *bytes as f64).collect(),
        )],
        is_sampled: false,
        bands: Vec::new(),
    }));
    blocks.push(Block::Table(Table::new(
        field(of, "applications").title,
        field(of, "applications").help,
        &found.applications,
        kinds,
    )));
    for (name, rows) in [("shares", &found.shares), ("clients", &found.clients)] {
        let columns = groups();
        let field = field(of, name);
        blocks.push(Block::Table(Table::new(
            format!("{}, at risk", field.title),
            field.help,
            rows,
            columns,
        )));
    }
    let file = "durability_file";
    let mut columns = vec![
        column(file, "path", 0, |row: &DurabilityFile| {
            Cell::Text(format::path(row.share.as_deref(), Some(&row.path)))
        }),
        column(file, "way", 1, |row: &DurabilityFile| {
            row.way.map_or(Cell::Empty, |way| Cell::Text(way.title().to_owned()))
        }),
    ];
    columns.extend(tally(file, |row: &DurabilityFile| &row.tally));
    blocks.push(Block::Table(
        Table::new("Files with data that nothing made stable", field(of, "files").help, &found.files, columns).cut(
            5,
            50,
            "select share, path, sum(transferred_bytes) from operations where command = 'Write' and not coalesce(write_through, false) group by share, path order by 3 desc",
        ),
    ));
    blocks
}

fn groups<'a>() -> Vec<Column<'a, DurabilityGroup>> {
    let of = "durability_group";
    let mut columns = vec![
        column(of, "name", 0, |row: &DurabilityGroup| Cell::text(&row.name)),
        column(of, "most_bytes", 0, |row: &DurabilityGroup| Cell::Bytes(row.most_bytes)),
        column(of, "most_at_ns", 2, |row: &DurabilityGroup| {
            row.most_at_ns.map_or(Cell::Empty, Cell::Time)
        }),
    ];
    columns.extend(tally(of, |row: &DurabilityGroup| &row.tally));
    columns
}

fn tally<'a, T: 'a>(of: &str, part: impl Fn(&T) -> &OpenTally + Copy + 'a) -> Vec<Column<'a, T>> {
    vec![
        column(of, "opens", 1, move |row: &T| Cell::Count(part(row).opens)),
        column(of, "writes", 2, move |row: &T| Cell::Count(part(row).writes)),
        column(of, "written_bytes", 1, move |row: &T| Cell::Bytes(part(row).written_bytes)),
        column(of, "acknowledged_bytes", 1, move |row: &T| {
            Cell::Bytes(part(row).acknowledged_bytes)
        }),
        column(of, "unflushed_bytes", 0, move |row: &T| Cell::Bytes(part(row).unflushed_bytes)),
    ]
}

//! Drivers and functions that samples hit in several CPU traces.

use smbscope_analysis::processors::compare::{ComparedSamples, Comparison};

use super::comparison::column;
use crate::document::{Block, Cell, Section, Table};
use crate::value::format;

/// Rows of tables in a text and on a page, and names that the verdict has.
const IN_TEXT: usize = 12;
const IN_PAGE: usize = 200;
const NAMED: usize = 3;
/// A driver with this share of the samples is worth a sentence when it comes or goes.
const NAMED_SHARE: f64 = 0.05;

/// Which drivers are gone in a trace, and which are new.
pub(super) fn came_and_went(found: &Comparison, place: usize) -> Vec<String> {
    let shares = |row: &ComparedSamples| {
        let side = |place: usize| row.sides.get(place).copied().flatten();
        Some((side(0)?, side(place)?))
    };
    let modules = found.sampled.iter().filter(|row| row.function.is_none());
    let words = modules.filter_map(|row| {
        let name = format::sanitized(&row.module);
        match shares(row)? {
            (before, after) if after.samples == 0 && before.share >= NAMED_SHARE => Some(format!(
                "{name} is gone: it had {} of the samples in interrupts and deferred work.",
                format::share(before.share)
            )),
            (before, after) if before.samples == 0 && after.share >= NAMED_SHARE => Some(format!(
                "{name} is new: it has {} of the samples in interrupts and deferred work.",
                format::share(after.share)
            )),
            _ => None,
        }
    });
    words.take(NAMED).collect()
}

/// What samples hit in each trace; `letters` name the traces.
pub(super) fn section(found: &Comparison, letters: &[String]) -> Option<Section> {
    let rows = &found.sampled;
    if rows.is_empty() {
        return None;
    }
    type Row = ComparedSamples;
    let mut columns =
        vec![column("Module", None, 0, false, |row: &Row| Cell::Code(row.module.clone()))];
    if rows.iter().any(|row| row.function.is_some()) {
        columns.push(column("Function", None, 0, false, |row: &Row| match &row.function {
            Some(function) => Cell::Code(function.clone()),
            None => Cell::Text("all".to_owned()),
        }));
    }
    let side = |row: &Row, at: usize| row.sides.get(at).copied().flatten();
    for (at, letter) in letters.iter().enumerate() {
        columns.push(column(letter, Some("Samples"), 0, true, move |row: &Row| {
            side(row, at).map_or(Cell::Empty, |side| Cell::Share(side.share))
        }));
    }
    for (at, letter) in letters.iter().enumerate() {
        columns.push(column(letter, Some("CPU s/s"), 1, true, move |row: &Row| {
            let load = side(row, at).and_then(|side| side.load);
            load.map_or(Cell::Empty, |load| Cell::Measure(load, format!("{load:.3}")))
        }));
    }
    let table = Table::new("What samples in interrupts and deferred work hit", "", rows, columns);
    let sql =
        "SELECT module, function, count(*) FROM samples WHERE during IS NOT NULL GROUP BY 1, 2";
    Some(Section {
        id: "sampled",
        title: "Drivers and functions by samples",
        help: "Share of the samples in interrupts and deferred work, and CPU seconds per second estimated from it. The largest change first.",
        blocks: vec![Block::Table(table.cut(IN_TEXT, IN_PAGE, sql))],
    })
}

//! Which PDB files are missing, in the form in which a symbol server has them.

use smbscope_analysis::processors::{MissingSymbols, Report};

use super::{IN_PAGE, IN_TEXT};
use crate::answers::cpu::fields::column;
use crate::document::{Block, Cell, Table};

/// Files that the notice names.
const NAMED: usize = 3;

/// One line on what to get, most important first.
pub(super) fn notice(report: &Report) -> Option<Block> {
    let missing = &report.symbols_missing;
    let names: Vec<_> = missing.iter().take(NAMED).map(|one| one.file.clone()).collect();
    let more = match missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more (--all)"),
    };
    let note = format!(
        "Functions have no names without these PDB files (--symbols DIR): {}{more}.",
        names.join(", ")
    );
    (!missing.is_empty()).then_some(Block::Note(note))
}

/// All of them.
pub(super) fn table(report: &Report) -> Option<Block> {
    let of = "symbols_missing";
    let rows = &report.symbols_missing;
    let columns = vec![
        column(of, "module", 0, |row: &MissingSymbols| Cell::Code(row.module.clone())),
        column(of, "file", 0, |row: &MissingSymbols| Cell::Code(row.file.clone())),
        column(of, "exclusive_ns", 1, |row: &MissingSymbols| match row.exclusive_ns {
            0 => Cell::Empty,
            time => Cell::Duration(time),
        }),
        column(of, "sampled_ns", 1, |row: &MissingSymbols| match row.sampled_ns {
            0 => Cell::Empty,
            time => Cell::Duration(time),
        }),
        column(of, "frames", 2, |row: &MissingSymbols| Cell::some(row.frames)),
    ];
    let table = Table::new("Missing PDB files", "", rows, columns);
    let table =
        table.cut(20 * IN_TEXT, IN_PAGE, "SELECT name, symbols FROM images WHERE process = 0");
    (!rows.is_empty()).then_some(Block::Table(table))
}

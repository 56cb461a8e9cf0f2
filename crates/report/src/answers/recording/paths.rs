//! Files and directories in one table, which a page sorts and filters.

use smbscope_analysis::summary::{PathRow, Report, Top};

use crate::answers::recording::fields::column;
use crate::document::{Block, Cell, Section, Table};
use crate::value::format;

/// A path and whether it is that of a file.
struct Entry<'a> {
    row: &'a PathRow,
    is_file: bool,
}

pub(crate) fn paths(report: &Report) -> Section {
    let mut entries = entries(&report.files, true);
    entries.extend(entries_of_directories(&report.directories));
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.row.busy_ns, entry.row.operations)));
    let mut blocks = Vec::new();
    if !entries.is_empty() {
        let listed = entries.len() as u64;
        let mut table = table(&entries);
        table.total = report.files.distinct.saturating_add(report.directories.distinct).max(listed);
        blocks.push(Block::Table(table));
    }
    for (what, top) in [("Files", &report.files), ("Directories", &report.directories)] {
        if top.approximate {
            blocks.push(Block::Note(format!(
                "{what}: there are more than are kept. The numbers above may be too low by up to {}, {} and {} operations.",
                format::duration(top.error_busy_ns),
                format::bytes(top.error_bytes),
                format::count(top.error_operations)
            )));
        }
    }
    Section {
        id: "paths",
        title: "Files and directories",
        help: "The paths with the most time, bytes and operations. A directory includes operations on its direct entries and listings of itself.",
        blocks,
    }
}

fn entries_of_directories(top: &Top) -> Vec<Entry<'_>> {
    entries(top, false)
}

/// The rows of all rankings, each once.
fn entries(top: &Top, is_file: bool) -> Vec<Entry<'_>> {
    let mut rows: Vec<&PathRow> =
        top.by_time.iter().chain(&top.by_bytes).chain(&top.by_operations).collect();
    rows.sort_by_key(|row| (&row.share, &row.path));
    rows.dedup_by_key(|row| (&row.share, &row.path));
    rows.into_iter().map(|row| Entry { row, is_file }).collect()
}

fn table(entries: &[Entry]) -> Table {
    let of = "path";
    let columns = vec![
        column(of, "path", 0, |entry: &Entry| {
            let row = entry.row;
            let path = if row.path.is_empty() { "\\" } else { row.path.as_str() };
            Cell::Text(format::path(row.share.as_deref(), Some(path)))
        }),
        column(of, "path", 0, |entry: &Entry| {
            Cell::Text(if entry.is_file { "file" } else { "directory" }.to_owned())
        })
        .titled("Kind"),
        column(of, "operations", 0, |entry: &Entry| Cell::Count(entry.row.operations)),
        column(of, "busy_share", 0, |entry: &Entry| Cell::Share(entry.row.busy_share)),
        column(of, "busy_ns", 1, |entry: &Entry| Cell::Duration(entry.row.busy_ns)),
        column(of, "read_bytes", 0, |entry: &Entry| Cell::Bytes(entry.row.read_bytes)),
        column(of, "written_bytes", 0, |entry: &Entry| Cell::Bytes(entry.row.written_bytes)),
        column(of, "errors", 2, |entry: &Entry| Cell::some(entry.row.errors)),
        column(of, "not_found", 2, |entry: &Entry| Cell::some(entry.row.not_found)),
    ];
    let sql = "select share, path, count(*) as operations, sum(busy_ns) as busy_ns, sum(case when command like 'Read%' or command like 'Write%' then transferred_bytes end) as bytes from operations where path is not null group by 1, 2 order by busy_ns desc nulls last";
    let help = "Those with the most time, bytes or operations, most time first.";
    let mut table = Table::new("Files and directories", help, entries, columns).cut(10, 300, sql);
    table.filter = Some(1);
    table
}

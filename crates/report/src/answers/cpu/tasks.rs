//! What samples hit, by process and by symbol.

use smbscope_analysis::processors::{Report, SampledProcess, SampledSymbol, TaskSamples};

use crate::answers::cpu::fields::column;
use crate::document::{Block, Cell, Section, Table};

/// Rows of tables in a text and on a page.
const IN_TEXT: usize = 10;
const IN_PAGE: usize = 200;

pub(super) fn section(report: &Report) -> Option<Section> {
    let tasks = report.tasks.as_ref()?;
    Some(Section {
        id: "tasks",
        title: "What samples hit",
        help: "The samples of all CPUs by process, and by the function and module of their innermost frame. Samples in interrupts count to the thread that they interrupted.",
        blocks: vec![Block::Table(processes(tasks)), Block::Table(symbols(tasks))],
    })
}

fn processes(tasks: &TaskSamples) -> Table {
    let of = "sampled_process";
    let rows = &tasks.processes;
    let mut columns = vec![
        column(of, "process", 0, |row: &SampledProcess| {
            row.process.map_or(Cell::Empty, |process| Cell::Text(process.to_string()))
        }),
        column(of, "name", 0, |row: &SampledProcess| Cell::text(&row.name)),
        column(of, "threads", 1, |row: &SampledProcess| Cell::Count(row.threads)),
        column(of, "samples", 0, |row: &SampledProcess| Cell::Count(row.samples)),
        column(of, "share", 0, |row: &SampledProcess| Cell::Share(row.share)),
        column(of, "kernel", 0, |row: &SampledProcess| Cell::some(row.kernel)),
        column(of, "user", 0, |row: &SampledProcess| Cell::some(row.user)),
    ];
    if rows.iter().any(|row| row.time_ns.is_some()) {
        columns.push(column(of, "time_ns", 0, |row: &SampledProcess| Cell::duration(row.time_ns)));
    }
    let sql = "SELECT process, task, count(*) FROM samples GROUP BY 1, 2 ORDER BY 3 DESC";
    Table::new("By process", "", rows, columns).cut(IN_TEXT, IN_PAGE, sql)
}

fn symbols(tasks: &TaskSamples) -> Table {
    let of = "sampled_symbol";
    let rows = &tasks.symbols;
    let mut columns = Vec::new();
    if rows.iter().any(|row| row.task.is_some()) {
        columns.push(column(of, "task", 0, |row: &SampledSymbol| Cell::text(&row.task)));
    }
    columns.extend([
        column(of, "module", 0, |row: &SampledSymbol| Cell::text(&row.module)),
        column(of, "function", 0, |row: &SampledSymbol| Cell::text(&row.function)),
        column(of, "samples", 0, |row: &SampledSymbol| Cell::Count(row.samples)),
        column(of, "share", 0, |row: &SampledSymbol| Cell::Share(row.share)),
    ]);
    let sql =
        "SELECT task, module, function, count(*) FROM samples GROUP BY 1, 2, 3 ORDER BY 4 DESC";
    Table::new("By thread, module and function", "", rows, columns).cut(IN_TEXT, IN_PAGE, sql)
}

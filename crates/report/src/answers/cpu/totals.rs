//! The report of an input that has sums of interrupts and deferred work only.

use smbscope_analysis::processors::{TotalBucket, TotalCpu, TotalModule, Totals};

use super::{IN_PAGE, IN_TEXT, cpu_list, share};
use crate::answers::cpu::fields::column;
use crate::document::{Block, Cell, Section, Table, Tile};
use crate::value::format;

/// The module with the most time; `None` if modules are not known.
pub(super) fn most_time(totals: &Totals) -> Option<String> {
    totals.modules.first().map(most_time_in)
}

/// What a reader must know of the sums of a period.
pub(super) fn notice(totals: &Totals) -> Option<String> {
    totals.of_intervals.then(|| {
        format!(
            "The sums of the input are about the whole trace, so the times of this period are those of its intervals that are within: {} of it. Modules and durations of runs are known for the whole trace only.",
            format::duration(totals.covered_ns)
        )
    })
}

fn most_time_in(module: &TotalModule) -> String {
    let runs = match (module.count, module.mean_ns) {
        (Some(count), Some(mean)) => {
            format!(" in {} runs, {} on average", format::count(count), format::duration(mean))
        }
        _ => String::new(),
    };
    format!(
        "Most time takes {} ({}): {}{runs}, on CPU {}.",
        format::sanitized(&module.name),
        module.kind,
        format::duration(module.duration_ns),
        cpu_list(&module.cpus)
    )
}

pub(super) fn tiles(totals: &Totals) -> Vec<Tile> {
    let tile = |title: &str, of: fn(&TotalCpu) -> Option<i64>| {
        let times: Vec<i64> = totals.cpus.iter().filter_map(of).collect();
        let sum = times.iter().copied().fold(0, i64::saturating_add);
        let whole = totals.covered_ns as f64 * totals.cpus.len() as f64;
        match (times.is_empty(), whole > 0.0) {
            (true, _) => Tile::new(title, "–".to_owned(), "not known".to_owned()),
            (false, true) => Tile::new(
                title,
                format::duration(sum),
                format!("{} of all CPUs", format::share(sum as f64 / whole)),
            ),
            (false, false) => Tile::new(title, format::duration(sum), String::new()),
        }
    };
    let longest = totals.modules.iter().max_by_key(|module| module.longest_above_ns);
    let above = longest.and_then(|module| module.longest_above_ns);
    vec![
        tile("Deferred work", |one| one.deferred_ns),
        tile("Interrupts", |one| one.interrupt_ns),
        Tile::new(
            "Longest run",
            above.map_or_else(|| "–".to_owned(), |ns| format!("above {}", format::duration(ns))),
            longest.map(|module| module.name.clone()).unwrap_or_default(),
        ),
    ]
}

pub(super) fn sections(totals: &Totals) -> Vec<Section> {
    let mut sections = vec![processors(totals)];
    sections.extend(modules(totals));
    sections
}

fn processors(totals: &Totals) -> Section {
    let of = "total_cpu";
    let rows = &totals.cpus;
    let mut columns = vec![
        column(of, "cpu", 0, |row: &TotalCpu| Cell::Text(row.cpu.to_string())),
        column(of, "deferred_share", 0, |row: &TotalCpu| share(row.deferred_share)),
        column(of, "interrupt_share", 0, |row: &TotalCpu| share(row.interrupt_share)),
    ];
    if rows.iter().any(|row| row.highest_share.is_some()) {
        columns.push(column(of, "highest_share", 0, |row: &TotalCpu| share(row.highest_share)));
        columns.push(column(of, "highest_start_ns", 2, |row: &TotalCpu| {
            Cell::duration(row.highest_start_ns)
        }));
    }
    columns.push(column(of, "deferred_ns", 1, |row: &TotalCpu| Cell::duration(row.deferred_ns)));
    columns.push(column(of, "interrupt_ns", 1, |row: &TotalCpu| Cell::duration(row.interrupt_ns)));
    let table = Table::new("The time of each CPU", "", rows, columns);
    let sql = "SELECT kind, cpu, sum(duration_ns) FROM interrupt_totals WHERE name IS NOT NULL GROUP BY kind, cpu";
    Section {
        id: "processors",
        title: "CPUs",
        help: "Sums over the trace or the period, and of the interval in which a CPU had the most of both.",
        blocks: vec![Block::Table(table.cut(2 * IN_TEXT, IN_PAGE, sql))],
    }
}

/// The time by module; `None` if modules are not known.
pub(super) fn modules(totals: &Totals) -> Option<Section> {
    if totals.modules.is_empty() {
        return None;
    }
    let of = "total_module";
    let columns = vec![
        column(of, "kind", 0, |row: &TotalModule| Cell::Code(row.kind.clone())),
        column(of, "name", 0, |row: &TotalModule| Cell::Text(row.name.clone())),
        column(of, "duration_ns", 0, |row: &TotalModule| Cell::Duration(row.duration_ns)),
        column(of, "share", 2, |row: &TotalModule| share(row.share)),
        column(of, "count", 0, |row: &TotalModule| Cell::count(row.count)),
        column(of, "mean_ns", 0, |row: &TotalModule| Cell::duration(row.mean_ns)),
        column(of, "longest_above_ns", 0, |row: &TotalModule| Cell::duration(row.longest_above_ns)),
        column(of, "over_limit_least", 0, |row: &TotalModule| Cell::count(row.over_limit_least)),
        column(of, "over_limit_most", 0, |row: &TotalModule| Cell::count(row.over_limit_most)),
        column(of, "cpus", 0, |row: &TotalModule| Cell::Text(cpu_list(&row.cpus))),
    ];
    let table = Table::new("Time by module", "", &totals.modules, columns);
    let sql = "SELECT * FROM interrupt_totals WHERE name IS NOT NULL";
    let mut blocks = vec![Block::Table(table.cut(IN_TEXT, IN_PAGE, sql))];
    blocks.extend(totals.modules.first().filter(|one| !one.histogram.is_empty()).map(histogram));
    Some(Section {
        id: "interrupts",
        title: "Interrupts and deferred work",
        help: "The input counts durations between powers of two, so the number above a limit is a range.",
        blocks,
    })
}

fn histogram(module: &TotalModule) -> Block {
    let of = "total_bucket";
    let columns = vec![
        column(of, "above_ns", 0, |row: &TotalBucket| Cell::Duration(row.above_ns)),
        column(of, "up_to_ns", 0, |row: &TotalBucket| Cell::duration(row.up_to_ns)),
        column(of, "count", 0, |row: &TotalBucket| Cell::Count(row.count)),
    ];
    let title = format!("Durations of {} ({})", format::sanitized(&module.name), module.kind);
    let table = Table::new(&title, "", &module.histogram, columns);
    Block::Table(table.cut(2 * IN_TEXT, IN_PAGE, "SELECT * FROM interrupt_totals WHERE count > 0"))
}

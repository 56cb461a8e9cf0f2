//! The report of an input that has sums of interrupts and deferred work only.

use smbscope_analysis::processors::{Report, TotalBucket, TotalCpu, TotalModule, Totals};

use super::verdict::held;
use super::{IN_PAGE, IN_TEXT, cpu_list, share};
use crate::document::{Block, Cell, Section, Table, column};
use crate::format;
use crate::verdict::{Tile, Verdict};

pub(super) fn verdict(totals: &Totals) -> Verdict {
    let busy =
        |one: &TotalCpu| one.deferred_share.unwrap_or(0.0) + one.interrupt_share.unwrap_or(0.0);
    let shares: Vec<_> = totals.cpus.iter().map(|one| (one.cpu, busy(one))).collect();
    let (tone, sentence) = held(&shares);
    let mut reasons: Vec<_> = totals.modules.first().map(most_time).into_iter().collect();
    reasons.push(
        "The input has sums, not single runs: neither stacks nor exact durations.".to_owned(),
    );
    Verdict { tone, sentence, reasons }
}

fn most_time(module: &TotalModule) -> String {
    let runs = match (module.count, module.mean_ns) {
        (Some(count), Some(mean)) => {
            format!(" in {} runs, {} on average", format::count(count), format::duration(mean))
        }
        _ => String::new(),
    };
    format!(
        "Most time takes {} ({}): {}{runs}, on CPU {}.",
        format::harmless(&module.name),
        module.kind,
        format::duration(module.duration_ns),
        cpu_list(&module.cpus)
    )
}

pub(super) fn tiles(totals: &Totals, report: &Report) -> Vec<Tile> {
    let time = |of: fn(&TotalCpu) -> i64| totals.cpus.iter().map(of).fold(0, i64::saturating_add);
    let of_all = |ns: i64| match report.length_ns {
        1.. => {
            let whole = report.length_ns as f64 * totals.cpus.len() as f64;
            format!("{} of all CPUs", format::share(ns as f64 / whole))
        }
        _ => String::new(),
    };
    let (deferred, interrupts) = (time(|one| one.deferred_ns), time(|one| one.interrupt_ns));
    let longest = totals.modules.iter().max_by_key(|module| module.longest_above_ns);
    let above = longest.and_then(|module| module.longest_above_ns);
    vec![
        Tile::new("Deferred work", format::duration(deferred), of_all(deferred)),
        Tile::new("Interrupts", format::duration(interrupts), of_all(interrupts)),
        Tile::new(
            "Longest run",
            above.map_or_else(|| "–".to_owned(), |ns| format!("above {}", format::duration(ns))),
            longest.map(|module| module.name.clone()).unwrap_or_default(),
        ),
    ]
}

pub(super) fn sections(totals: &Totals) -> Vec<Section> {
    vec![processors(totals), modules(totals)]
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
    columns.push(column(of, "deferred_ns", 1, |row: &TotalCpu| Cell::Duration(row.deferred_ns)));
    columns.push(column(of, "interrupt_ns", 1, |row: &TotalCpu| Cell::Duration(row.interrupt_ns)));
    let table = Table::new("The time of each CPU", "", rows, columns);
    let sql = "SELECT kind, cpu, sum(duration_ns) FROM interrupt_totals WHERE name IS NOT NULL GROUP BY kind, cpu";
    Section {
        id: "processors",
        title: "Processors",
        help: "Sums over the whole trace, and of the interval in which a CPU had the most of both.",
        blocks: vec![Block::Table(table.cut(2 * IN_TEXT, IN_PAGE, sql))],
    }
}

fn modules(totals: &Totals) -> Section {
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
    Section {
        id: "interrupts",
        title: "Interrupts and deferred work",
        help: "The input counts durations between powers of two, so the number above a limit is a range.",
        blocks,
    }
}

fn histogram(module: &TotalModule) -> Block {
    let of = "total_bucket";
    let columns = vec![
        column(of, "above_ns", 0, |row: &TotalBucket| Cell::Duration(row.above_ns)),
        column(of, "up_to_ns", 0, |row: &TotalBucket| Cell::duration(row.up_to_ns)),
        column(of, "count", 0, |row: &TotalBucket| Cell::Count(row.count)),
    ];
    let title = format!("Durations of {} ({})", format::harmless(&module.name), module.kind);
    let table = Table::new(&title, "", &module.histogram, columns);
    Block::Table(table.cut(2 * IN_TEXT, IN_PAGE, "SELECT * FROM interrupt_totals WHERE count > 0"))
}

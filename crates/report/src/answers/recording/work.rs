//! Groups, time and sizes.

use smbscope_analysis::summary::{Bin, Group, Groups, Report, Sizes};

use crate::answers::load;
use crate::answers::load::counters;
use crate::answers::recording::fields::{column, distribution, fact, field};
use crate::document::{Block, Cell, Facts, Join, Lines, Section, Stacked, Table};
use crate::value::{Format, format};

/// Charts of counters that are not folded.
const COUNTERS: usize = 4;

pub(crate) fn groups(report: &Report) -> Section {
    let tables = [
        ("Shares", "share", "(no share)", &report.shares),
        ("Clients", "client", "(unknown)", &report.clients),
        ("Users", "user", "(unknown)", &report.users),
        ("File extensions", "extension", "(none)", &report.extensions),
    ];
    let mut blocks = Vec::new();
    let mut same = Vec::new();
    for (caption, name, without, groups) in tables {
        match groups.rows.as_slice() {
            // A table of one row says nothing that the totals do not.
            [only] if groups.others.is_none() => {
                let value = only.name.as_deref().unwrap_or(without);
                same.push(format!("{name} {value}"));
            }
            _ => blocks.push(Block::Table(group_table(caption, name, without, groups))),
        }
        if let Some(others) = &groups.others {
            blocks.push(Block::Note(format!(
                "Only the first {} are distinguished; {} operations with {} of the time belong to others.",
                format::count(groups.limit),
                format::count(others.operations),
                format::share(others.busy_share)
            )));
        }
    }
    if !same.is_empty() {
        blocks.push(Block::Note(format!("All operations have {}.", same.join(", "))));
    }
    Section {
        id: "groups",
        title: "Shares, clients, users",
        help: "The same numbers for each value of one property, most time first.",
        blocks,
    }
}

fn group_table(caption: &str, name: &str, without: &'static str, groups: &Groups) -> Table {
    let of = "group";
    let mut columns = vec![
        column(of, "name", 0, move |row: &Group| {
            Cell::Text(row.name.clone().unwrap_or_else(|| without.to_owned()))
        })
        .titled(caption.trim_end_matches('s')),
        column(of, "operations", 0, |row: &Group| Cell::Count(row.tally.operations)),
        column(of, "busy_share", 0, |row: &Group| Cell::Share(row.tally.busy_share)),
        column(of, "busy_ns", 3, |row: &Group| Cell::Duration(row.tally.busy_ns)),
        column(of, "read_bytes", 1, |row: &Group| Cell::Bytes(row.tally.read_bytes)),
        column(of, "written_bytes", 1, |row: &Group| Cell::Bytes(row.tally.written_bytes)),
        column(of, "errors", 2, |row: &Group| Cell::some(row.tally.errors)),
        column(of, "not_found", 3, |row: &Group| Cell::some(row.tally.not_found)),
        column(of, "unanswered", 3, |row: &Group| Cell::some(row.tally.unanswered)),
    ];
    columns.extend(distribution(of, "elapsed", [1, 0, 0, 1, 1], |row: &Group| &row.tally.elapsed));
    columns.extend(distribution(of, "server", [3, 1, 1, 3, 3], |row: &Group| &row.tally.server));
    Table::new(caption, field("report", plural(name)).help, &groups.rows, columns).cut(
        10,
        50,
        &format!("select {name}, count(*) as operations, sum(busy_ns) as busy_ns from operations group by {name} order by busy_ns desc nulls last"),
    )
}

fn plural(name: &str) -> &'static str {
    match name {
        "share" => "shares",
        "client" => "clients",
        "user" => "users",
        _ => "extensions",
    }
}

pub(crate) fn series(report: &Report) -> Section {
    let series = &report.series;
    let (bins, start_ns) = (&series.bins, series.bins.first().map_or(0, |bin| bin.start_ns));
    let seconds = series.bin_ns.max(1) as f64 / 1e9;
    let chart =
        |caption: &str, help: &str, format, per: &str, join, lines: Vec<(&str, Vec<f64>)>| {
            Block::chart(Lines {
                caption: caption.to_owned(),
                help: help.to_owned(),
                format,
                unit: match (format, per) {
                    (Format::Bytes, per) => format!("bytes{per}"),
                    (Format::Duration, _) => "time".to_owned(),
                    (_, "") => "count".to_owned(),
                    (_, per) => format!("operations{per}"),
                },
                per: per.to_owned(),
                join,
                start_ns,
                bin_ns: series.bin_ns,
                lines: lines.into_iter().map(|(name, line)| (name.to_owned(), line)).collect(),
                is_sampled: join == Join::Most,
                bands: load::bands(report),
            })
        };
    let each = |value: &dyn Fn(&Bin) -> f64| -> Vec<f64> { bins.iter().map(value).collect() };
    let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let mut blocks = load::over_time(report);
    let counters = counters::over_time(report);
    if !bins.is_empty() {
        blocks.extend([
            chart(
                "Operations",
                "Operations that began in each bin.",
                Format::Count,
                "/s",
                Join::Mean,
                vec![("Operations", each(&|bin| bin.operations as f64 / seconds))],
            ),
            chart(
                "Throughput",
                "File data read and written by operations that began in each bin.",
                Format::Bytes,
                "/s",
                Join::Mean,
                vec![
                    ("Read", each(&|bin| bin.read_bytes as f64 / seconds)),
                    ("Written", each(&|bin| bin.written_bytes as f64 / seconds)),
                ],
            ),
            chart(
                "Latency",
                "Elapsed time of operations that began in each bin.",
                Format::Duration,
                "",
                Join::Most,
                vec![
                    ("p50", each(&|bin| known(bin.elapsed.p50_ns.map(|ns| ns as f64)))),
                    ("p95", each(&|bin| known(bin.elapsed.p95_ns.map(|ns| ns as f64)))),
                    ("p99", each(&|bin| known(bin.elapsed.p99_ns.map(|ns| ns as f64)))),
                ],
            ),
            chart(
                "In flight",
                "Operations already in flight on the connection when one was sent.",
                Format::Count,
                "",
                Join::Most,
                vec![
                    ("Mean", each(&|bin| known(bin.outstanding_mean))),
                    ("Most", each(&|bin| known(bin.outstanding_max.map(f64::from)))),
                ],
            ),
            chart(
                "Open handles",
                "Opens at the end of each bin, including those from before the recording.",
                Format::Count,
                "",
                Join::Most,
                vec![("Open", each(&|bin| bin.open_handles as f64))],
            ),
        ]);
    }
    blocks = Block::worth_showing(blocks);
    // The first counters are those that one looks at first.
    let mut counters = Block::worth_showing(counters).into_iter();
    blocks.extend(counters.by_ref().take(COUNTERS));
    let rest: Vec<_> = counters.collect();
    if !rest.is_empty() {
        blocks.push(Block::fold(format!("{} more counters", rest.len()), rest));
    }
    if !blocks.is_empty() {
        blocks.push(Block::Note(format!(
            "Bins of {}. Operations without any time: {}.",
            format::duration(series.bin_ns),
            format::count(series.without_time)
        )));
    }
    Section {
        id: "series",
        title: "Over time",
        help: match report.load {
            None => "An operation is counted in the bin in which its request began.",
            Some(_) => {
                "The whole run with warm-up and cool-down, all charts on one axis. An operation is counted in the bin in which its request began, a scenario in the bin for which it was scheduled."
            }
        },
        blocks,
    }
}

pub(crate) fn sizes(report: &Report) -> Section {
    let mut blocks = Vec::new();
    for (what, sizes) in [("Reads", &report.reads), ("Writes", &report.writes)] {
        if sizes.operations == 0 {
            continue;
        }
        blocks.extend(size_blocks(what, sizes));
        if sizes.others > 0 {
            blocks.push(Block::Note(format!(
                "{} {} have a size past the limit on the number of exact ones.",
                format::count(sizes.others),
                what.to_lowercase()
            )));
        }
    }
    Section {
        id: "sizes",
        title: "Sizes of reads and writes",
        help: "The size that the client requested in one operation.",
        blocks,
    }
}

fn size_blocks(what: &str, sizes: &Sizes) -> [Block; 3] {
    let of = |name: &str, value: Cell| fact("sizes", name, value);
    let known = sizes.operations.saturating_sub(sizes.size_unknown);
    let mean = sizes.requested_bytes.checked_div(known);
    let facts = Facts {
        caption: what.to_owned(),
        rows: vec![
            of("operations", Cell::Count(sizes.operations)).titled(what),
            of("transferred_bytes", Cell::Bytes(sizes.transferred_bytes)).noted(format!(
                "of {} requested; mean size {}",
                format::bytes(sizes.requested_bytes),
                mean.map_or_else(|| "not known".to_owned(), format::bytes)
            )),
            of("size_unknown", Cell::Count(sizes.size_unknown)),
        ],
    };
    let bars = Stacked {
        caption: format!("{what} by size"),
        help: "Operations between two powers of two.".to_owned(),
        format: Format::Count,
        unit: "operations",
        beside: None,
        parts: vec![(1, "Operations")],
        rows: sizes
            .powers
            .iter()
            .map(|class| {
                let label = match (class.from_bytes, class.below_bytes) {
                    (0, _) => "0 B".to_owned(),
                    (from, Some(below)) if below - from == 1 => format::bytes(from),
                    (from, Some(below)) => format!("{} – {}", bytes(from), bytes(below)),
                    (from, None) => format!("from {}", bytes(from)),
                };
                (label, vec![class.operations as f64])
            })
            .collect(),
    };
    let columns = vec![
        column("size", "size_bytes", 0, |row: &smbscope_analysis::summary::SizeCount| {
            Cell::Size(row.size_bytes)
        }),
        column("size", "operations", 0, |row: &smbscope_analysis::summary::SizeCount| {
            Cell::Count(row.operations)
        }),
    ];
    let mut table = Table::new(
        format!("Most common sizes of {}", what.to_lowercase()),
        "Exact sizes.",
        &sizes.sizes,
        columns,
    )
    .cut(5, 20, &format!("select coalesce(requested_bytes, transferred_bytes) as size_bytes, count(*) from operations where command like '{}%' group by 1 order by 2 desc", what.trim_end_matches('s')));
    table.total = sizes.distinct_sizes;
    [Block::Facts(facts), Block::chart(bars), Block::Table(table)]
}

/// Powers of two without decimals: "64 KiB".
fn bytes(bytes: u64) -> String {
    format::bytes(bytes).replace(".00 ", " ").replace(".0 ", " ")
}

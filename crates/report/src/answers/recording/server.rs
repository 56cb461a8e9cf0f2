//! The inside of a server: slices of its time by command, by share, over time, and of the slowest
//! operations.

use smbscope_analysis::summary::{
    PlacedSlice, Report, Server, ServerBin, ServerCommand, ServerShare, ServerSlice, ServerSlow,
    ServerSplit, Spread,
};
use smbscope_tables::slice::Kind;

use crate::answers::recording::fields::{column, distribution, fact, field};
use crate::document::{
    Block, Cell, Column, Facts, Join, Lines, Piece, Section, Stacked, Table, Timeline, TimelineRow,
};
use crate::value::{Format, format};

/// Commands with a bar.
const BARS: usize = 16;

pub(crate) fn server(report: &Report, server: &Server) -> Section {
    let mut blocks = vec![Block::Facts(facts(server))];
    if !server.commands.is_empty() {
        blocks.extend([
            Block::chart(shares_of_time(server)),
            Block::chart(one_operation(server)),
            Block::Table(reference(server)),
            Block::fold(
                "By share and by slice",
                vec![Block::Table(by_share(server)), Block::Table(by_slice(server))],
            ),
        ]);
    }
    if !server.bins.is_empty() {
        blocks.push(Block::chart(over_time(report, server)));
    }
    if !server.slowest.is_empty() {
        blocks.push(Block::chart(slowest(server)));
    }
    if server.shares_others > 0 {
        blocks.push(Block::Note(format!(
            "{} operations have shares and commands past the limit on their number.",
            format::count(server.shares_others)
        )));
    }
    Section {
        id: "server",
        title: "Inside the server",
        help: "What a probe inside the server, or the server's own events, recorded: the time from the last byte of a request to the first byte of its reply, slice by slice, without operations that wait by design.",
        blocks,
    }
}

fn facts(server: &Server) -> Facts {
    let of = |name: &str, value: Cell| fact("server", name, value);
    let split = &server.split;
    let whole = at_server(split);
    let mut rows = vec![of("operations", Cell::Count(server.operations))];
    if server.waits > 0 {
        rows.push(
            of("waits", Cell::Count(server.waits)).noted("wait by design: notifications, locks"),
        );
    }
    for (name, part) in PLACES {
        let ns = part(split);
        if ns != 0 {
            let share = format::share(ns as f64 / whole.max(1) as f64);
            rows.push(
                fact("server_split", name, Cell::Duration(ns))
                    .noted(format!("{share} of its time")),
            );
        }
    }
    Facts { caption: "All operations with slices".to_owned(), rows }
}

type Part = (&'static str, fn(&ServerSplit) -> i64);

/// What the turnaround consists of.
const PLACES: [Part; 7] = [
    ("queue_ns", |split| split.queue_ns),
    ("processing_ns", |split| split.processing_ns),
    ("security_ns", |split| split.security_ns),
    ("filesystem_ns", |split| split.filesystem_ns),
    ("lock_wait_ns", |split| split.lock_wait_ns),
    ("send_ns", |split| split.send_ns),
    ("residual_ns", |split| split.residual_ns),
];

fn at_server(split: &ServerSplit) -> i64 {
    PLACES.iter().map(|(_, part)| part(split)).fold(0, i64::saturating_add)
}

/// The colour of what no slice explains.
const UNEXPLAINED: usize = 3;

/// The kinds that occur.
fn kinds(server: &Server) -> Vec<Kind> {
    server.kinds.iter().filter_map(|name| Kind::from_name(name)).collect()
}

/// The kinds of slices that add up.
fn parts(server: &Server) -> Vec<Kind> {
    kinds(server).into_iter().filter(|kind| kind.is_part()).collect()
}

/// Sums of a command's slices, in the order of `kinds`, and last what they leave unexplained.
fn sums(row: &ServerCommand, kinds: &[Kind]) -> Vec<f64> {
    let of = |kind: &Kind| {
        let slice = row.slices.iter().find(|slice| slice.kind == kind.name());
        slice.map_or(0.0, |slice| slice.spread.distribution.sum_ns.max(0) as f64)
    };
    let residual = row.residual.distribution.sum_ns.max(0) as f64;
    kinds.iter().map(of).chain([residual]).collect()
}

fn legend(kinds: &[Kind]) -> Vec<(usize, &'static str)> {
    let residual = (UNEXPLAINED, field("server_split", "residual_ns").title);
    kinds.iter().map(|&kind| (kind.chart_colour(), kind.title())).chain([residual]).collect()
}

fn shares_of_time(server: &Server) -> Stacked {
    let kinds = parts(server);
    let all = server.commands.iter().map(|row| (row, sums(row, &kinds)));
    let whole: f64 = all.clone().flat_map(|(_, sums)| sums).sum();
    let rows = all.take(BARS).map(|(row, sums)| {
        let shares = sums.into_iter().map(|ns| ns / whole.max(1.0));
        (row.command.clone(), shares.collect())
    });
    Stacked {
        caption: "Server time by command".to_owned(),
        help: "The share of each command in all time at the server, divided into its slices."
            .to_owned(),
        format: Format::Share,
        unit: "% of server time",
        parts: legend(&kinds),
        rows: rows.collect(),
        beside: None,
    }
}

fn one_operation(server: &Server) -> Stacked {
    let kinds = parts(server);
    let shown = || server.commands.iter().take(BARS);
    let words = |row: &ServerCommand| {
        let all = match row.turnaround.distribution.n {
            0 => &row.slices_sum.distribution,
            _ => &row.turnaround.distribution,
        };
        let show = |ns: Option<i64>| ns.map_or_else(|| "–".to_owned(), format::duration);
        format!("p50 {}, p95 {}", show(all.p50_ns), show(all.p95_ns))
    };
    Stacked {
        caption: "One operation at the server, by command".to_owned(),
        help: "Mean slices of an operation, each bar at full width; next to it are the percentiles of the total time at the server.".to_owned(),
        format: Format::Duration,
        unit: "mean slices",
        parts: legend(&kinds),
        rows: shown()
            .map(|row| {
                let n = row.operations.max(1) as f64;
                (row.command.clone(), sums(row, &kinds).into_iter().map(|ns| ns / n).collect())
            })
            .collect(),
        beside: Some(shown().map(words).collect()),
    }
}

/// Columns of mean, standard deviation and 95th percentile under a common heading.
fn spread<'a, T: 'a>(
    object: &str,
    name: &str,
    ranks: [u8; 3],
    of: impl Fn(&T) -> &Spread + Copy + 'a,
) -> [Column<'a, T>; 3] {
    let group = field(object, name).title;
    [
        column("distribution", "mean_ns", ranks[0], move |row: &T| {
            Cell::duration(of(row).distribution.mean_ns)
        }),
        column("spread", "stddev_ns", ranks[1], move |row: &T| Cell::duration(of(row).stddev_ns)),
        column("distribution", "p95_ns", ranks[2], move |row: &T| {
            Cell::duration(of(row).distribution.p95_ns)
        }),
    ]
    .map(|column| column.grouped(group))
}

fn reference(server: &Server) -> Table {
    let of = "server_command";
    let mut columns = vec![
        column(of, "command", 0, |row: &ServerCommand| Cell::Text(row.command.clone())),
        column(of, "operations", 0, |row: &ServerCommand| Cell::Count(row.operations)),
    ];
    columns.extend(spread(of, "queue", [0, 2, 0], |row: &ServerCommand| &row.queue));
    columns.extend(spread(of, "processing", [0, 2, 1], |row: &ServerCommand| &row.processing));
    columns.extend(spread(of, "filesystem", [0, 2, 0], |row: &ServerCommand| &row.filesystem));
    let [mean, _, p95] = spread(of, "slices_sum", [1, 3, 1], |row: &ServerCommand| &row.slices_sum);
    columns.extend([mean, p95]);
    let [mean, _, p95] = spread(of, "residual", [2, 3, 2], |row: &ServerCommand| &row.residual);
    columns.extend([mean, p95]);
    columns.push(column(of, "time_share", 1, |row: &ServerCommand| Cell::Share(row.time_share)));
    Table::new(
        "Queue, processing and file system by command",
        "Processing is the server's own work; file system includes waiting for an I/O thread, I/O and flushing. Cells are empty if no operation has such a slice.",
        &server.commands,
        columns,
    )
    .cut(40, 100, SQL_BY_COMMAND)
}

const SQL_BY_COMMAND: &str = "select command, count(*), avg(queue_ns), avg(processing_ns), avg(filesystem_ns) from operations where waits is not true group by command";

fn by_share(server: &Server) -> Table {
    let of = "server_share";
    let mut columns = vec![
        column(of, "share", 0, |row: &ServerShare| Cell::text(&row.share)),
        column(of, "command", 0, |row: &ServerShare| Cell::Text(row.command.clone())),
        column(of, "operations", 2, |row: &ServerShare| Cell::Count(row.operations)),
        column(of, "time_share", 1, |row: &ServerShare| Cell::Share(row.time_share)),
    ];
    let part = |row: &ServerShare, ns: i64| {
        let split = &row.split;
        let whole = at_server(split)
            .saturating_add(split.request_transfer_ns)
            .saturating_add(split.response_transfer_ns);
        match ns {
            0 => Cell::Empty,
            _ => Cell::Share(ns as f64 / whole.max(1) as f64),
        }
    };
    type Pick = fn(&ServerShare) -> Option<i64>;
    let picks: [(&str, Pick); 2] =
        [("p50_ns", |row| row.slices_sum.p50_ns), ("p95_ns", |row| row.slices_sum.p95_ns)];
    let group = field(of, "slices_sum").title;
    columns.extend(picks.map(|(name, pick)| {
        column("distribution", name, 1, move |row: &ServerShare| Cell::duration(pick(row)))
            .grouped(group)
    }));
    for (name, ns) in PLACES {
        if name != "send_ns" {
            let rank = match name {
                "lock_wait_ns" | "residual_ns" => 2,
                "security_ns" => 1,
                _ => 0,
            };
            columns.push(column("server_split", name, rank, move |row: &ServerShare| {
                part(row, ns(&row.split))
            }));
        }
    }
    columns.push(
        column("server_split", "send_ns", 0, move |row: &ServerShare| {
            let split = &row.split;
            let wire = split.send_ns.saturating_add(split.request_transfer_ns);
            part(row, wire.saturating_add(split.response_transfer_ns))
        })
        .titled("Wire"),
    );
    Table::new(
        "Where the time goes, by share and command",
        "Shares of the time from the first byte of a request to the last byte of its reply; wire is transfer and sending.",
        &server.shares,
        columns,
    )
    .cut(12, 50, "select share, command, count(*), sum(queue_ns), sum(processing_ns), sum(filesystem_ns), sum(io_ns), sum(flush_ns), sum(send_ns) from operations where waits is not true group by share, command")
}

fn by_slice(server: &Server) -> Table {
    let of = "server_slice";
    let rows: Vec<(&ServerCommand, &ServerSlice)> = server
        .commands
        .iter()
        .flat_map(|row| row.slices.iter().map(move |slice| (row, slice)))
        .collect();
    type Row<'a> = (&'a ServerCommand, &'a ServerSlice);
    let mut columns = vec![
        column("server_command", "command", 0, |row: &Row| Cell::Text(row.0.command.clone())),
        column(of, "kind", 0, |row: &Row| {
            Cell::Text(Kind::from_name(row.1.kind).map_or(row.1.kind, Kind::title).to_owned())
        }),
        column("distribution", "sum_ns", 2, |row: &Row| {
            Cell::Duration(row.1.spread.distribution.sum_ns)
        }),
        column("distribution", "mean_ns", 0, |row: &Row| {
            Cell::duration(row.1.spread.distribution.mean_ns)
        }),
        column("spread", "stddev_ns", 1, |row: &Row| Cell::duration(row.1.spread.stddev_ns)),
    ];
    columns.extend(
        distribution(of, "kind", [0, 0, 0, 2, 1], |row: &Row| &row.1.spread.distribution)
            .into_iter()
            .map(Column::ungrouped),
    );
    Table::new(
        "Slices by command",
        "Disk time and time off the CPU are within the other slices.",
        &rows,
        columns,
    )
    .cut(16, 300, "select kind, count(*), sum(duration_ns) from slices group by kind")
}

fn over_time(report: &Report, server: &Server) -> Lines {
    let line = |(name, part): &Part| {
        let mean = |bin: &ServerBin| match bin.operations {
            0 => f64::NAN,
            n => part(&bin.split) as f64 / n as f64,
        };
        let title = field("server_split", name).title;
        (title.to_owned(), server.bins.iter().map(mean).collect::<Vec<_>>())
    };
    // Six lines can be distinguished; the residual is in the table.
    let places = PLACES.iter().filter(|(name, _)| *name != "residual_ns");
    let used = places.filter(|(_, part)| part(&server.split) != 0);
    Lines {
        caption: "Slices over time".to_owned(),
        help: "Mean over the operations that began in each bin.".to_owned(),
        format: Format::Duration,
        unit: "time per operation".to_owned(),
        per: String::new(),
        join: Join::Mean,
        start_ns: server.bins.first().map_or(0, |bin| bin.start_ns),
        bin_ns: report.series.bin_ns,
        lines: used.map(line).collect(),
        is_sampled: true,
        bands: Vec::new(),
    }
}

fn slowest(server: &Server) -> Timeline {
    let kinds = kinds(server);
    let unknown = kinds.len();
    let mut others = false;
    let mut piece = |slice: &PlacedSlice| {
        let place = kinds.iter().position(|kind| kind.name() == slice.kind);
        others |= place.is_none();
        Piece {
            part: place.unwrap_or(unknown),
            start_ns: slice.offset_ns,
            duration_ns: slice.duration_ns,
            depth: slice.depth,
        }
    };
    let mut rows = Vec::new();
    for row in &server.slowest {
        rows.push(TimelineRow {
            label: format!("{} {}", format::duration(row.server_ns), row.command),
            note: note(row),
            whole_ns: row.server_ns,
            pieces: row.slices.iter().map(&mut piece).collect(),
        });
    }
    let mut parts: Vec<_> = kinds.iter().map(|&kind| (kind.chart_colour(), kind.title())).collect();
    if others {
        parts.push((UNEXPLAINED, "Other"));
    }
    let laid = server.slowest.iter().filter(|row| !row.placed).count();
    let help = match laid {
        0 => "From the last byte of the request to the first byte of the reply, each scaled to its own length; nested slices are drawn in the lower part of the outer slice, gaps are unexplained.".to_owned(),
        n => format!(
            "From the last byte of the request on, each scaled to its own length. For {n} of them the starts of slices were not recorded: their slices are placed one after the other.",
        ),
    };
    Timeline { caption: field("server", "slowest").title.to_owned(), help, parts, rows }
}

fn note(row: &ServerSlow) -> String {
    let place = format::path(row.share.as_deref(), row.path.as_deref());
    let number = row.operation.map(|number| format!("operation {number}"));
    let words = [Some(place).filter(|place| !place.is_empty()), number, row.client.clone()];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

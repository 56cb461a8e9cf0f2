//! Totals, commands with their latencies, errors, and the slowest operations.

use smbscope_analysis::summary::{BusySplit, Command, Load, Report, Slow, Status, StatusClass};

use crate::answers::recording::fields::{column, distribution, fact, field};
use crate::answers::recording::portions;
use crate::document::{Block, Cell, Facts, Histograms, Section, Stacked, Table};
use crate::value::{Format, format};

pub(crate) fn overview(report: &Report) -> Section {
    let totals = &report.totals;
    let tally = &totals.tally;
    let of = |name: &str, value: Cell| fact("totals", name, value);
    let (seconds, over) = match (report.start_ns, report.end_ns, &report.load) {
        (_, _, Some(load)) if load.window.measured => (measured_seconds(load), "the measured time"),
        (Some(start), Some(end), _) => {
            (end.saturating_sub(start) as f64 / 1e9, "the whole recording")
        }
        _ => (0.0, ""),
    };
    let rate = |count: u64| match seconds {
        s if s > 0.0 => format!("{}/s over {over}", format::number(count as f64 / s)),
        _ => String::new(),
    };
    let quantiles = |d: &smbscope_analysis::summary::Distribution| match (
        d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns,
    ) {
        (Some(p50), Some(p95), Some(p99), Some(max)) => (
            Cell::Duration(p50),
            format!(
                "median; p95 {}, p99 {}, max {} (n {}{})",
                format::duration(p95),
                format::duration(p99),
                format::duration(max),
                format::count(d.n),
                match d.negative {
                    0 => String::new(),
                    n => format!(", {} below zero", format::count(n)),
                }
            ),
        ),
        _ => (Cell::Empty, "not known for any operation".to_owned()),
    };
    let mut rows = vec![
        of("operations", Cell::Count(tally.operations)).noted(rate(tally.operations)),
        of("busy_ns", Cell::Duration(tally.busy_ns))
            .noted("at least one answered operation in flight, summed over connections"),
    ];
    for (name, d) in [
        ("elapsed", &tally.elapsed),
        ("server", &tally.server),
        ("turnaround", &totals.turnaround),
        ("request_transfer", &totals.request_transfer),
        ("response_transfer", &totals.response_transfer),
        ("client_gap", &totals.client_gap),
    ] {
        let (value, note) = quantiles(d);
        rows.push(of(name, value).noted(note));
    }
    if let (Some(most), Some(mean)) = (totals.outstanding_max, totals.outstanding_mean) {
        rows.push(of("outstanding_mean", Cell::Number(mean)).noted(format!(
            "already in flight when one is sent; most {} (n {})",
            format::count(most.into()),
            format::count(totals.outstanding_n)
        )));
    }
    rows.push(of("read_bytes", Cell::Bytes(tally.read_bytes)));
    rows.push(of("written_bytes", Cell::Bytes(tally.written_bytes)));
    rows.push(of("wire_bytes", Cell::Bytes(tally.wire_bytes)));
    rows.push(of("errors", Cell::Count(tally.errors)).noted(format!(
        "and {} for names that do not exist. {}",
        format::count(tally.not_found),
        successes(report)
    )));
    rows.push(of("unanswered", Cell::Count(tally.unanswered)).noted(format!(
        "requests; replies without their request: {}",
        format::count(tally.request_unseen)
    )));
    if tally.waits > 0 {
        rows.push(of("waits", Cell::Count(tally.waits)).noted(format!(
            "waited {} in total, by design: not counted as latency",
            format::duration(tally.waiting_ns)
        )));
    }
    let facts = Block::Facts(Facts { caption: "All operations".to_owned(), rows });
    let mut blocks = portions::portions(report);
    let mut more = vec![facts];
    if tally.busy_ns > 0 {
        more.insert(0, Block::chart(stacked(report)));
    }
    blocks.push(Block::fold("By command and part, and all totals", more));
    Section {
        id: "time",
        title: "Where the time goes",
        help: "Busy time is divided among the operations in flight on a connection at each point in time, so that shares add up to the whole.",
        blocks,
    }
}

/// What replies other than errors say.
fn successes(report: &Report) -> &'static str {
    let statuses = &report.statuses;
    match (statuses.rows.is_empty(), statuses.success, statuses.unknown) {
        (false, ..) => "",
        (true, 0, _) => "No reply has a known status.",
        (true, _, 0) => "Every recorded reply was a success.",
        // Not answered, or not decrypted.
        (true, ..) => "Every reply with a known status was a success.",
    }
}

/// Length of the measured windows whose operations count.
fn measured_seconds(load: &Load) -> f64 {
    let wanted = |step: u64| load.window.step.is_none_or(|only| only == step);
    let steps = load.steps.iter().filter(|row| wanted(row.step));
    steps.map(|row| row.duration_ns as f64 / 1e9).sum()
}

type Part = (&'static str, fn(&BusySplit) -> i64);

const PARTS: [Part; 5] = [
    ("request_transfer_ns", |split| split.request_transfer_ns),
    ("server_ns", |split| split.server_ns),
    ("unsplit_ns", |split| split.unsplit_ns),
    ("network_ns", |split| split.network_ns),
    ("response_transfer_ns", |split| split.response_transfer_ns),
];

fn stacked(report: &Report) -> Stacked {
    let used: Vec<_> = PARTS
        .iter()
        .enumerate()
        .filter(|(_, (_, part))| report.commands.iter().any(|row| part(&row.busy_split) > 0))
        .collect();
    let whole = report.totals.tally.busy_ns.max(1) as f64;
    let shown = report.commands.iter().filter(|row| row.tally.busy_ns > 0).take(20);
    Stacked {
        caption: "Time by command".to_owned(),
        help: "The share of each command in all busy time, divided in proportion to the parts of its operations' elapsed time.".to_owned(),
        format: Format::Share,
        unit: "% of busy time",
        beside: None,
        parts: used
            .iter()
            .map(|(place, (name, _))| (*place, field("busy_split", name).title))
            .collect(),
        rows: shown
            .map(|row| {
                let split = drawn(&row.busy_split);
                let parts = used.iter().map(|(_, (_, part))| part(&split).max(0) as f64 / whole);
                (row.command.clone(), parts.collect())
            })
            .collect(),
    }
}

/// Without what is below zero at the server, where the round trip was estimated too long: bars are as long
/// as the command's share.
fn drawn(split: &BusySplit) -> BusySplit {
    let below = split.server_ns.min(0);
    BusySplit {
        server_ns: split.server_ns.saturating_sub(below),
        network_ns: split.network_ns.saturating_add(below),
        ..split.clone()
    }
}

pub(crate) fn commands(report: &Report) -> Section {
    let of = "command";
    let range = histogram_range(report.commands.iter());
    // The first bar has no lower bound, and the last no upper one.
    let bounds: Vec<Option<i64>> = std::iter::once(None)
        .chain(report.latency_bounds_ns.iter().copied().map(Some))
        .chain([None])
        .collect();
    let within = |row: &Command| -> Vec<u64> {
        let counts = row.tally.elapsed.histogram.as_deref().unwrap_or(&[]);
        counts.get(range.clone()).unwrap_or(&[]).to_vec()
    };
    let bound = |place: usize| match bounds.get(place).copied().flatten() {
        Some(bound) => format::duration(bound),
        None if place == 0 => "0".to_owned(),
        None => "∞".to_owned(),
    };
    let axis = format!("{} … {}", bound(range.start), bound(range.end));
    let mut columns = vec![
        column(of, "command", 0, |row: &Command| Cell::Text(row.command.clone())),
        column(of, "operations", 0, |row: &Command| Cell::Count(row.tally.operations)),
        column(of, "operations_share", 1, |row: &Command| Cell::Share(row.tally.operations_share)),
        column(of, "busy_share", 0, |row: &Command| Cell::Share(row.tally.busy_share)),
        column(of, "busy_ns", 3, |row: &Command| Cell::Duration(row.tally.busy_ns)),
        column(of, "errors", 2, |row: &Command| Cell::some(row.tally.errors)),
        column(of, "unanswered", 2, |row: &Command| Cell::some(row.tally.unanswered)),
    ];
    columns
        .extend(distribution(of, "elapsed", [0, 0, 0, 1, 0], |row: &Command| &row.tally.elapsed));
    columns.push(
        column("distribution", "histogram", 1, |row: &Command| Cell::Histogram(within(row)))
            .titled(axis),
    );
    let usage = Table::new(
        "Commands",
        "How often each command is used and how long it takes from first byte of the request to last byte of the reply.",
        &report.commands,
        columns,
    )
    .cut(40, 100, "select command, count(*) as operations, sum(busy_ns) as busy_ns from operations group by command order by busy_ns desc nulls last");
    let mut blocks = vec![
        Block::Table(usage),
        Block::fold("Latency and parts by command", vec![Block::chart(Histograms {
            unit: "operations by elapsed time",
            caption: "Latency by command".to_owned(),
            help: "Operations by elapsed time; each bar spans from 1, 2 or 5 to the next, and the highest bar of each command has full height.".to_owned(),
            bounds: bounds.get(range.start..range.end + 1).unwrap_or(&[]).to_vec(),
            rows: report
                .commands
                .iter()
                .filter(|row| row.tally.elapsed.n > 0)
                .take(16)
                .map(|row| (row.command.clone(), within(row)))
                .collect(),
        }), Block::Table(split(report))]),
    ];
    let waiting: Vec<_> = report.commands.iter().filter(|row| row.tally.waits > 0).collect();
    if !waiting.is_empty() {
        let columns = vec![
            column(of, "command", 0, |row: &&Command| Cell::Text(row.command.clone())),
            column(of, "waits", 0, |row: &&Command| Cell::Count(row.tally.waits)),
            column(of, "waiting_ns", 0, |row: &&Command| Cell::Duration(row.tally.waiting_ns)),
        ];
        blocks.push(Block::Table(Table::new(
            "Waiting by design",
            "Change notifications and blocked locks are excluded from every latency.",
            &waiting,
            columns,
        )));
    }
    Section {
        id: "commands",
        title: "Commands",
        help: "Percentiles cover operations whose times are known; n is their number. Members of a compound are counted as operations; their time is recorded with the first one.",
        blocks,
    }
}

fn split(report: &Report) -> Table {
    let of = "command";
    let mut columns =
        vec![column(of, "command", 0, |row: &Command| Cell::Text(row.command.clone()))];
    columns.extend(distribution(of, "server", [0, 0, 0, 2, 1], |row: &Command| &row.tally.server));
    columns.push(
        column("distribution", "negative", 3, |row: &Command| {
            Cell::some(row.tally.server.negative)
        })
        .grouped("Server"),
    );
    columns
        .extend(distribution(of, "turnaround", [3, 0, 0, 3, 2], |row: &Command| &row.turnaround));
    columns.extend(distribution(of, "request_transfer", [3, 1, 1, 3, 3], |row: &Command| {
        &row.request_transfer
    }));
    columns.extend(distribution(of, "response_transfer", [3, 1, 1, 3, 3], |row: &Command| {
        &row.response_transfer
    }));
    let timed: Vec<_> =
        report.commands.iter().filter(|row| row.turnaround.n > 0).cloned().collect();
    Table::new(
        "Server and transfer",
        "The parts of elapsed time: server is the turnaround minus the round trip between capture point and server, and empty if that is unknown.",
        &timed,
        columns,
    )
    .cut(40, 100, "select command, percentile(server_ns, 0.95) from operations where waits is not true group by command")
}

/// The bars that any command uses.
fn histogram_range<'a>(commands: impl Iterator<Item = &'a Command>) -> std::ops::Range<usize> {
    let (mut first, mut last) = (usize::MAX, 0);
    for command in commands {
        let counts = command.tally.elapsed.histogram.as_deref().unwrap_or(&[]);
        for (place, &count) in counts.iter().enumerate() {
            if count > 0 {
                first = first.min(place);
                last = last.max(place + 1);
            }
        }
    }
    first.min(last)..last
}

pub(crate) fn errors(report: &Report) -> Section {
    let statuses = &report.statuses;
    let of = "status";
    let class = |row: &Status| match row.class {
        StatusClass::Usual => "usual",
        StatusClass::NotFound => "not found",
        StatusClass::Error => "error",
    };
    let columns = vec![
        column(of, "name", 0, |row: &Status| Cell::Text(row.name.clone())),
        column(of, "status", 2, |row: &Status| Cell::Text(format!("0x{:08x}", row.status))),
        column(of, "class", 0, move |row: &Status| Cell::Text(class(row).to_owned())),
        column(of, "operations", 0, |row: &Status| Cell::Count(row.operations)),
        column(of, "operations_share", 1, |row: &Status| Cell::Share(row.operations_share)),
        column(of, "commands", 1, |row: &Status| {
            let words = row.commands.iter().take(4);
            let mut words: Vec<_> =
                words.map(|word| format!("{}: {}", word.name, format::count(word.count))).collect();
            if row.commands.len() > 4 {
                words.push("…".to_owned());
            }
            Cell::Text(words.join(", "))
        }),
    ];
    let mut blocks = Vec::new();
    // Errors first, then names that do not exist, then what the protocol works by.
    let mut rows = statuses.rows.clone();
    rows.sort_by_key(|row: &Status| std::cmp::Reverse(row.class as u8));
    if !rows.is_empty() {
        blocks.push(Block::Table(
            Table::new(
                "Replies other than success",
                "Usual statuses are part of normal operation (end of a listing, next step of a logon); all others are errors.",
                &rows,
                columns,
            )
            .cut(20, 100, "select status_name, command, count(*) from operations where status <> 0 group by status_name, command order by 3 desc"),
        ));
    }
    if !blocks.is_empty() {
        blocks.push(Block::Note(format!(
            "{} replies were STATUS_SUCCESS; of {} operations the status is not known.",
            format::count(statuses.success),
            format::count(statuses.unknown)
        )));
    }
    if statuses.others > 0 {
        blocks.push(Block::Note(format!(
            "{} more replies have statuses past the limit on their number.",
            format::count(statuses.others)
        )));
    }
    Section { id: "errors", title: "Errors", help: "Replies by NTSTATUS and command.", blocks }
}

pub(crate) fn slowest(report: &Report) -> Section {
    let of = "slow";
    let mut columns = vec![
        column(of, "elapsed_ns", 0, |row: &Slow| Cell::Duration(row.elapsed_ns)),
        column(of, "server_ns", 1, |row: &Slow| Cell::duration(row.server_ns)),
        column(of, "turnaround_ns", 3, |row: &Slow| Cell::duration(row.turnaround_ns)),
        column(of, "response_transfer_ns", 3, |row: &Slow| {
            Cell::duration(row.response_transfer_ns)
        }),
        column(of, "outstanding", 2, |row: &Slow| Cell::count(row.outstanding.map(u64::from))),
        column(of, "command", 0, |row: &Slow| Cell::Text(row.command.clone())),
        column(of, "detail", 3, |row: &Slow| Cell::text(&row.detail)),
        column(of, "status", 2, |row: &Slow| Cell::text(&row.status)),
        column(of, "client", 3, |row: &Slow| Cell::text(&row.client)),
        column(of, "path", 1, |row: &Slow| match (&row.share, &row.path) {
            (None, None) => Cell::Empty,
            (share, path) => Cell::Text(format::path(share.as_deref(), path.as_deref())),
        }),
        column(of, "request_start_ns", 3, |row: &Slow| {
            row.request_start_ns.map_or(Cell::Empty, Cell::Time)
        }),
        column(of, "request_frame", 2, |row: &Slow| {
            Cell::text(&row.request_frame.map(|frame| frame.to_string()))
        }),
        column(of, "response_frame", 2, |row: &Slow| {
            Cell::text(&row.response_frame.map(|frame| frame.to_string()))
        }),
    ];
    // Load runs and recordings from inside a server have none.
    let has_packets = report.slowest.iter().any(|row| row.request_frame.is_some());
    if has_packets {
        columns.push(column(of, "filter", 0, |row: &Slow| {
            row.filter.clone().map_or(Cell::Empty, Cell::Code)
        }));
    }
    if report.coverage.len() > 1 {
        columns.push(column(of, "capture_file", 1, |row: &Slow| {
            Cell::text(if row.capture_file.is_some() { &row.capture_file } else { &row.recording })
        }));
    }
    let table = Table::new(
        "Slowest operations",
        if has_packets {
            "By elapsed time, without those that wait by design; paste the filter into Wireshark to see the packets."
        } else {
            "By elapsed time, without those that wait by design."
        },
        &report.slowest,
        columns,
    )
    .cut(15, 50, "select * from operations where waits is not true order by elapsed_ns desc nulls last limit 1000");
    let mut table = table;
    table.total = report.totals.tally.elapsed.n;
    let mut blocks = vec![Block::Table(table)];
    if report.slowest.is_empty() {
        blocks.clear();
    }
    Section {
        id: "slowest",
        title: "Slowest operations",
        help: if has_packets { "The outliers, each with its packets." } else { "The outliers." },
        blocks,
    }
}

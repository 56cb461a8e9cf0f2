//! The plan of a second server as text, as JSON and as a page, from one document.

mod checks;
pub(crate) mod fields;
mod verdict;

use serde_json::{Value, json};
use smbscope_analysis::replication::forecast::{
    GoalForecast, LinkForecast, Percentiles, ReplicationForecast, RiskRow, WaitRow,
};
use smbscope_analysis::replication::load::BusySecond;
use smbscope_plan::replication::TEST_SR_TOPOLOGY;
use smbscope_plan::replication::checks::Check;
use smbscope_plan::replication::html::HtmlTables;

use crate::answers::replication::fields::{column, fact, field};
use crate::document::{
    Block, Cell, Column, Curve, Document, Facts, Heading, Join, Lines, Section, Table, TextOptions,
};
use crate::render::{Answer, text::document_text};
use crate::value::{Clock, Format, format};

use checks::checks;
use verdict::{most_waiting, tiles, verdict};

/// Rows of a table of waits in text.
const WAITS_IN_TEXT: usize = 8;

/// A plan with everything that it is based on.
#[derive(Clone, Debug, Default)]
pub struct ReplicationPlan {
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Version of smbscope.
    pub version: String,
    pub forecast: ReplicationForecast,
    /// Checks of each link.
    pub checks: Vec<Vec<Check>>,
    /// A report of Test-SRTopology, if one was given.
    pub test_report: Option<HtmlTables>,
    /// How times of day are shown.
    pub clock: Clock,
}

impl Answer for ReplicationPlan {
    fn document(&self) -> Option<Document> {
        Some(document(self))
    }

    fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(&self.forecast)?;
        let checks = self.forecast.lines.iter().zip(&self.checks).map(|(line, checks)| {
            json!({ "rtt_ns": line.rtt_ns, "bandwidth_bits": line.bandwidth_bits, "checks": checks })
        });
        let checks: Vec<_> = checks.collect();
        if let Some(object) = value.as_object_mut() {
            object.insert("version".to_owned(), json!(self.version));
            object.insert("inputs".to_owned(), json!(self.inputs));
            object.insert("checks".to_owned(), json!(checks));
            object.insert("test_command".to_owned(), json!(TEST_SR_TOPOLOGY));
            object.insert("test_report".to_owned(), json!(self.test_report));
        }
        Ok(value)
    }

    fn text(&self, options: &TextOptions) -> String {
        document_text(&document(self), &TextOptions { all: true, ..*options })
    }
}

/// `5 ms, 1,000 Mbit/s`.
fn name(line: &LinkForecast) -> String {
    match line.bandwidth_bits {
        Some(bits) => format!("{}, {}", format::duration(line.rtt_ns), rate(bits)),
        None => format::duration(line.rtt_ns),
    }
}

fn rate(bits: f64) -> String {
    match bits {
        1e9.. => format!("{} Gbit/s", format::number(bits / 1e9)),
        1e6.. => format!("{} Mbit/s", format::number(bits / 1e6)),
        _ => format!("{} kbit/s", format::number(bits / 1e3)),
    }
}

fn bits(value: f64) -> Cell {
    Cell::Measure(value, rate(value))
}

fn document(plan: &ReplicationPlan) -> Document {
    let forecast = &plan.forecast;
    let mut sections = vec![load(forecast)];
    sections.extend((!forecast.goals.is_empty()).then(|| goals(&forecast.goals)));
    sections.push(sync(forecast));
    sections.push(later(forecast));
    sections.push(log(forecast));
    sections.push(checks(plan));
    Document {
        brand: "smbscope plan replication",
        title: plan.inputs.join(", "),
        span: format!(
            "{} written in {}",
            format::bytes(forecast.written_bytes),
            format::duration(forecast.lasted_ns)
        ),
        verdict: verdict(forecast),
        tiles: tiles(forecast),
        sections: Section::worth_showing(sections),
        clock: plan.clock.clone(),
        inputs: plan.inputs.clone(),
        version: plan.version.clone(),
        ..Document::default()
    }
}

fn load(forecast: &ReplicationForecast) -> Section {
    let of = "link_load";
    let optional = |value: Option<f64>| value.map_or(Cell::Empty, bits);
    let number = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Number);
    let columns = vec![
        Column::new(Heading::new("Link", false, 0), |row: &LinkForecast| Cell::Text(name(row))),
        column(of, "mean_bits", 0, |row: &LinkForecast| bits(row.load.mean_bits)),
        column(of, "p95_bits", 2, |row: &LinkForecast| bits(row.load.p95_bits)),
        column(of, "p99_bits", 1, |row: &LinkForecast| bits(row.load.p99_bits)),
        column(of, "minute_bits", 2, move |row: &LinkForecast| optional(row.load.minute_bits)),
        column(of, "max_bits", 0, |row: &LinkForecast| bits(row.load.max_bits)),
        column(of, "saturated_share", 0, |row: &LinkForecast| {
            row.load.saturated_share.map_or(Cell::Empty, Cell::Share)
        }),
        column(of, "queue_s", 1, move |row: &LinkForecast| number(row.load.queue_s)),
        column(of, "queue_bytes", 2, |row: &LinkForecast| Cell::bytes(row.load.queue_bytes)),
        column(of, "times_mean", 2, move |row: &LinkForecast| number(row.load.times_mean)),
        column(of, "times_busiest", 1, move |row: &LinkForecast| number(row.load.times_busiest)),
    ];
    let busiest = vec![
        column("busy_second", "at_ns", 0, |row: &BusySecond| Cell::Time(row.at_ns)),
        column("busy_second", "written_bytes", 0, |row: &BusySecond| {
            Cell::Bytes(row.written_bytes)
        }),
        Column::new(Heading::new("Rate", true, 0), |row: &BusySecond| {
            bits(row.written_bytes as f64 * 8.0)
        }),
    ];
    let mut blocks = vec![
        Block::Table(Table::new(
            "Writes against the link",
            "Seconds of the recording, without the delay of a queue.",
            &forecast.lines,
            columns,
        )),
        Block::chart(Lines {
            caption: "Written in a second".to_owned(),
            help: field("replication", "series_bytes").help.to_owned(),
            format: Format::Bytes,
            unit: "bytes".to_owned(),
            per: "/s".to_owned(),
            join: Join::Most,
            start_ns: forecast.start_ns.unwrap_or(0),
            bin_ns: forecast.series_bin_ns,
            lines: vec![(
                "written".to_owned(),
                forecast.series_bytes.iter().map(|bytes| *bytes as f64).collect(),
            )],
            is_sampled: false,
            bands: Vec::new(),
        }),
        Block::Table(Table::new("The busiest seconds", "", &forecast.busiest, busiest)),
    ];
    if forecast.left_out > 0 {
        blocks.push(Block::Warn(format!(
            "{} writes are more than 90 days away from the others and are not counted.",
            format::count(forecast.left_out)
        )));
    }
    Section {
        id: "load",
        title: "The writes and the link",
        help: "All acknowledged writes of the recording, by second. Overwritten data counts each time: a log and an asynchronous copy send it each time.",
        blocks,
    }
}

/// `over a link of 100 Mbit/s`.
fn over(bandwidth_bits: Option<f64>) -> String {
    match bandwidth_bits {
        Some(bits) => format!("over a link of {}", rate(bits)),
        None => "over a link without a limit of its rate".to_owned(),
    }
}

fn goals(goals: &[GoalForecast]) -> Section {
    let sentence = |goal: &GoalForecast| {
        let over = over(goal.bandwidth_bits);
        let today = format::duration(goal.today_ns);
        let Some(ns) = goal.rtt_ns else {
            return match goal.tried.last().filter(|_| goal.is_always) {
                Some(last) => format!(
                    "{} is kept at any round trip {over}: at {}, the longest that was tried, it is {}; today it is {today}.",
                    goal.goal,
                    format::duration(last.rtt_ns),
                    format::duration(last.time_ns)
                ),
                None => {
                    format!("{} is missed at any distance {over}: today it is {today}.", goal.goal)
                }
            };
        };
        format!(
            "{} is kept up to a round trip of {} ({} km of fibre, if only light took time) {over}; today it is {today}.",
            goal.goal,
            format::duration(ns),
            goal.distance_km.map_or_else(|| "-".to_owned(), format::number),
        )
    };
    let curve = |goal: &GoalForecast| {
        let points =
            goal.tried.iter().map(|point| (point.rtt_ns as f64 / 1e6, point.time_ns as f64, false));
        Block::chart(Curve {
            caption: format!(
                "{} over the round trip between the servers, {}",
                goal.goal,
                over(goal.bandwidth_bits)
            ),
            help: String::new(),
            over: "ms",
            format: Format::Duration,
            limit: Some((goal.limit_ns as f64, "the goal")),
            mark: None,
            in_text: false,
            lines: vec![("predicted", points.collect())],
        })
    };
    let sentences = goals.iter().map(|goal| Block::Note(sentence(goal)));
    Section {
        id: "goal",
        title: "The goal",
        help: "The longest round trip between the servers that keeps the goal with synchronous copies, found by replaying the recording, for each rate of the links.",
        blocks: sentences.chain(goals.iter().map(curve)).collect(),
    }
}

fn percentiles<'a>(
    group: &'static str,
    ranks: [u8; 3],
    of: impl Fn(&WaitRow) -> Option<Percentiles> + Copy + 'a,
) -> Vec<Column<'a, WaitRow>> {
    type Pick = fn(&Percentiles) -> Option<i64>;
    let picks: [(&str, Pick); 3] =
        [("p50", |all| all.p50_ns), ("p95", |all| all.p95_ns), ("p99", |all| all.p99_ns)];
    let columns = picks.into_iter().zip(ranks).map(|((title, pick), rank)| {
        Column::new(Heading::new(title, true, rank), move |row: &WaitRow| {
            Cell::duration(of(row).as_ref().and_then(pick))
        })
        .grouped(group)
    });
    columns.collect()
}

fn waits(caption: String, rows: &[WaitRow]) -> Block {
    let mut columns = vec![
        column("wait", "name", 0, |row: &WaitRow| Cell::Text(row.name.clone())),
        Column::new(Heading::new("n", true, 1), |row: &WaitRow| Cell::Count(row.before.n)),
    ];
    if rows.iter().any(|row| row.waiting.is_some()) {
        columns.push(column("wait", "waiting", 0, |row: &WaitRow| Cell::count(row.waiting)));
        columns.extend(percentiles("Added", [0, 1, 0], |row| row.added));
    }
    columns.extend(percentiles("Today", [2, 3, 1], |row| Some(row.before)));
    columns.extend(percentiles("Predicted", [1, 2, 0], |row| Some(row.after)));
    let mut table = Table::new(caption, "", rows, columns);
    table.in_text = WAITS_IN_TEXT;
    Block::Table(table)
}

fn sync(forecast: &ReplicationForecast) -> Section {
    let mut blocks = Vec::new();
    // One chart for each rate: a mean over links of different rates belongs to none of them.
    let mut rates: Vec<Option<f64>> = Vec::new();
    for line in &forecast.lines {
        if !rates.contains(&line.bandwidth_bits) {
            rates.push(line.bandwidth_bits);
        }
    }
    for bandwidth_bits in rates {
        let lines =
            || forecast.lines.iter().filter(move |line| line.bandwidth_bits == bandwidth_bits);
        let mut round_trips: Vec<_> = lines().map(|line| line.rtt_ns).collect();
        round_trips.sort_unstable();
        round_trips.dedup();
        if round_trips.len() < 2 {
            continue;
        }
        let points = |pick: fn(&Percentiles) -> Option<i64>| {
            let points = lines().filter_map(|line| {
                let (_, added) = most_waiting(&line.sync)?;
                Some((line.rtt_ns as f64 / 1e6, pick(added)? as f64, false))
            });
            points.collect()
        };
        blocks.push(Block::chart(Curve {
            caption: format!("Added time over the round trip, {}", over(bandwidth_bits)),
            help: "Time of the command with the longest total wait.".to_owned(),
            over: "ms",
            format: Format::Duration,
            limit: None,
            mark: None,
            in_text: false,
            lines: vec![("p50", points(|all| all.p50_ns)), ("p99", points(|all| all.p99_ns))],
        }));
    }
    // Tables of equal times say nothing.
    let waiting = forecast.lines.iter().filter(|_| forecast.stable_operations > 0);
    for line in waiting {
        let name = name(line);
        let mut folded = Vec::new();
        for (what, rows) in [
            ("scenarios", &line.sync.scenarios),
            ("shares", &line.sync.shares),
            ("applications", &line.sync.applications),
        ] {
            folded.push(waits(
                format!("{name}: synchronous, by {}", what.trim_end_matches('s')),
                rows,
            ));
        }
        folded.push(waits(
            format!("{name}: on receipt (DRBD protocol B), by command"),
            &line.received.commands,
        ));
        blocks.push(waits(format!("{name}: synchronous, by command"), &line.sync.commands));
        blocks.extend(folded);
    }
    if forecast.writes > 0 && forecast.stable_operations == 0 {
        blocks.push(Block::Note(
            "No request of these clients requires stable storage (no Flush, no write-through, no continuously available \
             share), so no reply waits for a second server: the file server's cache takes the writes, and its own flushes \
             wait."
                .to_owned(),
        ));
    }
    Section {
        id: "sync",
        title: "Synchronous copies",
        help: "What must be stable (a Flush, a write-through write, any write to a continuously available share) waits until both servers have it. Storage Replica in synchronous mode and DRBD's protocol C wait for both logs, which are taken to be equally fast; DRBD's protocol B waits for receipt only.",
        blocks,
    }
}

fn later(forecast: &ReplicationForecast) -> Section {
    type Number = fn(&RiskRow) -> Cell;
    let numbers: [(&str, u8, Number); 7] = [
        ("mean_bytes", 2, |row| Cell::Bytes(row.mean_bytes)),
        ("p50_bytes", 1, |row| Cell::Bytes(row.p50_bytes)),
        ("p99_bytes", 0, |row| Cell::Bytes(row.p99_bytes)),
        ("max_bytes", 0, |row| Cell::Bytes(row.max_bytes)),
        ("p50_ns", 1, |row| Cell::Duration(row.p50_ns)),
        ("p99_ns", 0, |row| Cell::Duration(row.p99_ns)),
        ("max_ns", 0, |row| Cell::Duration(row.max_ns)),
    ];
    let mut columns = vec![Column::new(Heading::new("Link", false, 0), |row: &LinkForecast| {
        Cell::Text(name(row))
    })];
    columns.extend(numbers.map(|(name, rank, value)| {
        column("at_risk", name, rank, move |row: &LinkForecast| {
            row.at_risk.as_ref().map_or(Cell::Empty, value)
        })
    }));
    let snapshots = "snapshots";
    let of = |row: &LinkForecast| row.snapshots.unwrap_or_default();
    let at_intervals = vec![
        Column::new(Heading::new("Link", false, 0), |row: &LinkForecast| Cell::Text(name(row))),
        column(snapshots, "interval_ns", 0, move |row: &LinkForecast| {
            Cell::Duration(of(row).interval_ns)
        }),
        column(snapshots, "snapshot_bytes", 1, move |row: &LinkForecast| {
            Cell::Bytes(of(row).snapshot_bytes)
        }),
        column(snapshots, "recovery_ns", 0, move |row: &LinkForecast| match of(row).recovery_ns {
            Some(ns) => Cell::Duration(ns),
            None => Cell::Text("never".to_owned()),
        }),
        column(snapshots, "at_risk_bytes", 0, move |row: &LinkForecast| {
            Cell::Bytes(of(row).at_risk_bytes)
        }),
    ];
    let with_snapshots: Vec<_> =
        forecast.lines.iter().filter(|line| line.snapshots.is_some()).cloned().collect();
    let rows: Vec<_> =
        forecast.lines.iter().filter(|line| line.at_risk.is_some()).cloned().collect();
    Section {
        id: "async",
        title: "Asynchronous copies",
        help: "No reply waits. What the second server lacks is lost with the first one: percentiles are over time, from the first write to the last arrival. DRBD's protocol A is the same as long as its send buffer (sndbuf-size) holds the most data at risk; after that, writes wait.",
        blocks: vec![
            Block::Table(Table::new("Data at risk, and the recovery point", "", &rows, columns)),
            Block::Table(Table::new(
                "A snapshot at each interval (a file system's own replication)",
                "Each snapshot holds what was written in its interval; overwritten data counts each time, so it is an upper bound.",
                &with_snapshots,
                at_intervals,
            )),
        ],
    }
}

fn log(forecast: &ReplicationForecast) -> Section {
    let of = "outage";
    let outage = |row: &LinkForecast| row.outage.unwrap_or_default();
    let columns = vec![
        Column::new(Heading::new("Link", false, 0), |row: &LinkForecast| Cell::Text(name(row))),
        column(of, "outage_ns", 0, move |row: &LinkForecast| Cell::Duration(outage(row).outage_ns)),
        column(of, "log_bytes", 0, move |row: &LinkForecast| Cell::Bytes(outage(row).log_bytes)),
        column(of, "worst_at_ns", 2, move |row: &LinkForecast| Cell::Time(outage(row).worst_at_ns)),
        column(of, "log_bytes_p50", 1, move |row: &LinkForecast| {
            Cell::Bytes(outage(row).log_bytes_p50)
        }),
        column(of, "catch_up_ns", 0, move |row: &LinkForecast| {
            match (row.bandwidth_bits, outage(row).catch_up_ns) {
                (_, Some(ns)) => Cell::Duration(ns),
                (Some(_), None) => Cell::Text("never".to_owned()),
                (None, None) => Cell::Empty,
            }
        }),
    ];
    let copy = "initial_copy";
    let first = |row: &LinkForecast| row.initial_copy.unwrap_or_default();
    let copies = vec![
        Column::new(Heading::new("Link", false, 0), |row: &LinkForecast| Cell::Text(name(row))),
        column(copy, "data_bytes", 0, move |row: &LinkForecast| Cell::Bytes(first(row).data_bytes)),
        column(copy, "idle_ns", 0, move |row: &LinkForecast| Cell::Duration(first(row).idle_ns)),
        column(copy, "loaded_ns", 0, move |row: &LinkForecast| match first(row).loaded_ns {
            Some(ns) => Cell::Duration(ns),
            None => Cell::Text("never".to_owned()),
        }),
    ];
    let of_lines = |is: fn(&LinkForecast) -> bool| {
        forecast.lines.iter().filter(|line| is(line)).cloned().collect::<Vec<_>>()
    };
    let outages = of_lines(|line| line.outage.is_some());
    let copied = of_lines(|line| line.initial_copy.is_some());
    let is_repeated = outages.iter().any(|line| line.outage.is_some_and(|one| one.is_repeated))
        || forecast.hold.is_some_and(|hold| hold.is_repeated);
    let mut blocks = Vec::new();
    if let Some(hold) = &forecast.hold {
        let never = i64::MAX;
        let held = |ns: i64| {
            if ns == never { Cell::Text("for ever".to_owned()) } else { Cell::Duration(ns) }
        };
        blocks.push(Block::Facts(Facts {
            caption: "The log while the link is down".to_owned(),
            rows: vec![
                fact("log_hold", "log_bytes", Cell::Bytes(hold.log_bytes)),
                fact("log_hold", "worst_ns", held(hold.worst_ns)),
                fact("log_hold", "p50_ns", held(hold.p50_ns)),
            ],
        }));
    }
    blocks.push(Block::Table(Table::new("The link is down", "", &outages, columns)));
    blocks.push(Block::Table(Table::new(
        "The first copy",
        "The recorded load goes first, and repeats.",
        &copied,
        copies,
    )));
    if is_repeated {
        blocks.push(Block::Note(
            "The recording is shorter than the outage or than the log holds: it was taken to repeat.".to_owned(),
        ));
    }
    if !outages.is_empty() {
        blocks.push(Block::Note(
            "A log keeps each write. DRBD has none: it marks blocks, and sends each changed block of 4 KiB once, so at most \
             this much."
                .to_owned(),
        ));
    }
    Section {
        id: "log",
        title: "The log, an outage and the first copy",
        help: "Bytes of the writes alone: the headers of a log's records are not known here.",
        blocks,
    }
}

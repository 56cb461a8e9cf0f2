//! The network without SMB: rates, what limited them, what they cost, round trips, packet sizes, and SMB
//! next to them.

use smbscope_analysis::summary::{Net, PathProblem, SmbRatio};
use smbscope_tables::tables::{NetRoundTrip, NetTest};

use crate::answers::recording::fields::column;
use crate::document::{Block, Cell, Column, Section, Table};
use crate::value::format;

pub(crate) fn net(net: &Net) -> Section {
    let mut blocks = Vec::new();
    if !net.ratios.is_empty() {
        blocks.push(Block::Table(ratios(net)));
        blocks.extend(net.ratios.iter().map(|one| Block::Note(sentence(one))));
    }
    if !net.tests.is_empty() {
        blocks.push(Block::Table(tests(&net.tests)));
        blocks.extend(net.tests.iter().map(|test| {
            Block::Note(format!(
                "{} to {}, {}: {}.",
                test.sender,
                test.receiver,
                limit(test),
                test.limit_reason
            ))
        }));
        blocks.push(Block::Table(costs(net)));
    }
    if !net.round_trips.is_empty() {
        blocks.push(Block::Table(round_trips(&net.round_trips)));
    }
    blocks.extend(net.problems.iter().map(|one| Block::Warn(problem(one))));
    if net.left_out > 0 {
        let more = format::count(net.left_out);
        blocks.push(Block::Note(format!("{more} more rows are past the limit on their number.")));
    }
    Section {
        id: "net",
        title: "The network without SMB",
        help: "What the path carries by TCP alone, measured by `smbscope net send`, and what SMB makes of it.",
        blocks,
    }
}

/// What limited a test, behind its rate or its ends.
pub(crate) fn limit(test: &NetTest) -> String {
    match test.limit.as_str() {
        "unknown" => "what limited it is not known".to_owned(),
        limit => format!("limited by the {limit}"),
    }
}

fn rate(bits_per_second: f64) -> Cell {
    Cell::Measure(bits_per_second, format::bits(bits_per_second))
}

fn ratios(net: &Net) -> Table {
    let of = "net_ratio";
    let columns = vec![
        column(of, "operation", 0, |row: &SmbRatio| Cell::Text(row.operation.clone())),
        column(of, "smb_bits_per_second", 0, |row: &SmbRatio| rate(row.smb_bits_per_second)),
        column(of, "smb_windows", 0, |row: &SmbRatio| Cell::Count(row.smb_windows)),
        column(of, "raw_bits_per_second", 0, |row: &SmbRatio| rate(row.raw_bits_per_second)),
        column(of, "ratio", 0, |row: &SmbRatio| Cell::Share(row.ratio)),
        column(of, "limit", 0, |row: &SmbRatio| Cell::Text(row.limit.clone())),
        column(of, "paths", 1, |row: &SmbRatio| Cell::count(row.paths)),
        column(of, "paths_tested", 1, |row: &SmbRatio| Cell::count(row.paths_tested)),
    ];
    Table::new(
        "SMB and the network",
        "Rates of file data by SMB and of bytes by TCP alone, in the same direction.",
        &net.ratios,
        columns,
    )
}

/// Which of the two is the limit.
fn sentence(row: &SmbRatio) -> String {
    let part = format::share(row.ratio);
    let over = match row.paths {
        Some(2..) => format!(" {}", row.over()),
        _ => String::new(),
    };
    let what = format!("SMB {}s {part} of what TCP alone moves{over}", row.operation);
    match &*row.limit {
        "smb" => format!(
            "{what}: SMB is the limit, not the network. Look at the findings: server, storage, requests in flight."
        ),
        "network" => format!("{what}: the network is the limit, not SMB."),
        side @ ("sender" | "receiver") => {
            format!("{what}, and the {side} limited TCP alone: that machine is the limit, not SMB.")
        }
        _ => format!(
            "{what}, but the test was paced: repeat it without --pace to see what the path carries."
        ),
    }
}

fn tests(rows: &[NetTest]) -> Table {
    let of = "net_test";
    let share = |part: Option<i64>, of: Option<i64>| match (part, of) {
        (Some(part), Some(of)) if of > 0 => Cell::Share(part as f64 / of as f64),
        _ => Cell::Empty,
    };
    let columns = vec![
        column(of, "sender", 0, |row: &NetTest| Cell::Code(row.sender.clone())).titled("From"),
        column(of, "receiver", 0, |row: &NetTest| Cell::Code(row.receiver.clone())).titled("To"),
        column(of, "together", 2, |row: &NetTest| Cell::Text(yes(row.together)))
            .titled("With the other direction"),
        column(of, "streams", 0, |row: &NetTest| Cell::Count(row.streams)).titled("Streams"),
        column(of, "write_bytes", 2, |row: &NetTest| Cell::Bytes(row.write_bytes))
            .titled("Write size"),
        column(of, "bits_per_second", 0, |row: &NetTest| rate(row.bits_per_second)).titled("Rate"),
        column(of, "slowest_bits_per_second", 2, |row: &NetTest| rate(row.slowest_bits_per_second))
            .titled("Slowest stream"),
        column(of, "bytes", 2, |row: &NetTest| Cell::Bytes(row.bytes)).titled("Bytes"),
        column(of, "duration_ns", 1, |row: &NetTest| Cell::Duration(row.duration_ns))
            .titled("Time"),
        column(of, "rtt_min_ns", 2, |row: &NetTest| Cell::duration(row.rtt_min_ns))
            .titled("Smallest round trip"),
        column(of, "rtt_mean_ns", 1, |row: &NetTest| Cell::duration(row.rtt_mean_ns))
            .titled("Round trip"),
        column(of, "retransmissions", 0, |row: &NetTest| Cell::count(row.retransmissions))
            .titled("Retransmitted"),
        column(of, "rwnd_limited_ns", 2, move |row: &NetTest| {
            share(row.rwnd_limited_ns, row.busy_ns)
        })
        .titled("Waits for the window"),
        column(of, "sndbuf_limited_ns", 2, move |row: &NetTest| {
            share(row.sndbuf_limited_ns, row.busy_ns)
        })
        .titled("Waits for the buffer"),
        column(of, "limit", 0, |row: &NetTest| Cell::Text(row.limit.clone())).titled("Limit"),
        column(of, "sender_mtu", 2, |row: &NetTest| Cell::count(row.sender_mtu)).titled("MTU"),
        column(of, "sender_mss", 2, |row: &NetTest| Cell::count(row.sender_mss)).titled("Segment"),
        column(of, "tool", 2, |row: &NetTest| Cell::Text(row.tool.clone())).titled("Other side"),
    ];
    Table::new("Rates", "Payload at the receiver, per second.", rows, columns)
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// CPU time for each GB of payload, ns.
fn per_gb(ns: Option<i64>, bytes: u64) -> Option<i64> {
    let gigabytes = bytes as f64 / 1e9;
    (gigabytes > 0.0).then(|| ns.map(|ns| (ns as f64 / gigabytes) as i64)).flatten()
}

/// One line of costs: what, the sender's and the receiver's CPU per GB.
struct Cost {
    what: String,
    process: [Option<i64>; 2],
    machine: [Option<i64>; 2],
    softirq: [Option<i64>; 2],
}

fn costs(net: &Net) -> Table {
    let of_test = |test: &NetTest| {
        let gb = |ns| per_gb(ns, test.bytes);
        Cost {
            what: format!("TCP alone, {} to {}", test.sender, test.receiver),
            process: [gb(test.sender_cpu_ns), gb(test.receiver_cpu_ns)],
            machine: [gb(test.sender_machine_cpu_ns), gb(test.receiver_machine_cpu_ns)],
            softirq: [gb(test.sender_softirq_ns), gb(test.receiver_softirq_ns)],
        }
    };
    let mut rows: Vec<Cost> = net.tests.iter().map(of_test).collect();
    let smb = [net.smb_client_cpu_per_gb_ns, net.smb_server_cpu_per_gb_ns];
    if smb.iter().any(Option::is_some) {
        let what = "SMB, client and server".to_owned();
        rows.push(Cost { what, process: [None, None], machine: smb, softirq: [None, None] });
    }
    let of = "net_test";
    let two = |name: &'static str,
               title: &'static str,
               rank,
               pick: fn(&Cost) -> Option<i64>|
     -> Column<'static, Cost> {
        column(of, name, rank, move |row: &Cost| Cell::duration(pick(row))).titled(title)
    };
    let columns = vec![
        column(of, "tool", 0, |row: &Cost| Cell::Text(row.what.clone())).titled("CPU time per GB"),
        two("sender_cpu_ns", "Sender", 0, |row| row.process[0]),
        two("receiver_cpu_ns", "Receiver", 0, |row| row.process[1]),
        two("sender_machine_cpu_ns", "Its machine", 1, |row| row.machine[0])
            .titled("Sender's machine"),
        two("receiver_machine_cpu_ns", "Receiver's machine", 1, |row| row.machine[1]),
        two("sender_softirq_ns", "Sender's softirqs", 2, |row| row.softirq[0]),
        two("receiver_softirq_ns", "Receiver's softirqs", 2, |row| row.softirq[1]),
    ];
    let same = net.tests.iter().any(|test| test.same_machine);
    let help = if same {
        "CPU time for each GB (10^9 bytes). Both sides ran on one machine: the machine's times have both."
    } else {
        "CPU time for each GB (10^9 bytes), of the process and of the whole machine."
    };
    Table::new("Costs", help, &rows, columns)
}

fn round_trips(rows: &[NetRoundTrip]) -> Table {
    let of = "net_round_trip";
    let columns = vec![
        column(of, "kind", 0, |row: &NetRoundTrip| Cell::Text(row.kind.clone())).titled("As"),
        column(of, "payload_bytes", 0, |row: &NetRoundTrip| Cell::Bytes(row.payload_bytes))
            .titled("Payload"),
        column(of, "samples", 0, |row: &NetRoundTrip| Cell::Count(row.samples)).titled("n"),
        column(of, "min_ns", 1, |row: &NetRoundTrip| Cell::Duration(row.min_ns)).titled("min"),
        column(of, "p50_ns", 0, |row: &NetRoundTrip| Cell::Duration(row.p50_ns)).titled("p50"),
        column(of, "p99_ns", 0, |row: &NetRoundTrip| Cell::Duration(row.p99_ns)).titled("p99"),
        column(of, "max_ns", 1, |row: &NetRoundTrip| Cell::Duration(row.max_ns)).titled("max"),
    ];
    let help = "Messages with the lengths of SMB's Read and Write over an idle connection, and an echo of 64 bytes.";
    let mut table = Table::new("Round trips", help, rows, columns);
    (table.in_text, table.in_page) = (20, 100);
    table
}

/// What is wrong with packet sizes, and what to do.
pub(crate) fn problem(problem: &PathProblem) -> String {
    let (first, second) = (problem.first_bytes, problem.second_bytes);
    match &*problem.kind {
        "mtu_differs" => format!(
            "The two ends have different MTUs ({first} and {second}): use the same on both and on all switches between them."
        ),
        "segments_differ" => format!(
            "Full segments have {first} bytes in one direction and {second} in the other: look for a router or a tunnel that changes the MSS, and for different MTUs."
        ),
        _ => format!(
            "The MTU is {first}, but a full segment has only {second} bytes of payload: the other end, a tunnel or a router on the path has a smaller MTU, and larger packets than that would be lost or refused."
        ),
    }
}

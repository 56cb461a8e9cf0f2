//! The summary of a server's slices with known answers.

// A test may panic.
#![allow(clippy::unwrap_used)]

use arrow::array::RecordBatch;
use smbscope_analysis::summary::{Options, Server, Summary};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::slice::{Kind, Slice};

const READ: u16 = 8;
const CLOSE: u16 = 6;
const NOTIFY: u16 = 15;

/// An operation that took the sum of its slices and 5 ns.
fn row(number: u64, command: u16, slices: &[(Kind, i64)]) -> Operation {
    let mut row = Operation::default();
    row.set_operation(number);
    row.set_protocol(2);
    row.set_command(code::command(2, command));
    row.set_connection(1);
    let start = 1_000_000_000 + number as i64 * 1_000_000;
    row.set_request_start(start);
    row.set_request_end(start + 10);
    let parts = slices.iter().filter(|(kind, _)| kind.is_part());
    let sum: i64 = parts.map(|(_, ns)| ns).sum();
    row.set_response_start(start + 10 + sum + 5);
    row.set_response_end(start + 10 + sum + 5 + 20);
    row.derive_durations();
    for &(kind, ns) in slices {
        match kind {
            Kind::Queue => row.set_queue_ns(ns),
            Kind::Parse => row.set_parse_ns(ns),
            Kind::Processing => row.set_processing_ns(ns),
            Kind::Filesystem => row.set_filesystem_ns(ns),
            Kind::Io => row.set_io_ns(ns),
            Kind::Send => row.set_send_ns(ns),
            Kind::Disk => row.set_disk_ns(ns),
            other => panic!("{other:?}"),
        }
    }
    row
}

fn batch(rows: &[(Operation, Option<&str>)]) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for (row, share) in rows {
        let mut row = *row;
        row.set_recording(builder.names.recording.intern("probe"));
        if let Some(share) = share {
            row.set_share(builder.names.share.intern(share));
        }
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn rows() -> Vec<(Operation, Option<&'static str>)> {
    use Kind::*;
    let mut notify = row(4, NOTIFY, &[(Queue, 1_000), (Processing, 9_000_000)]);
    notify.set_waits(true);
    vec![
        (
            row(1, READ, &[(Queue, 100), (Parse, 10), (Io, 1_000), (Send, 50), (Disk, 900)]),
            Some("a"),
        ),
        (row(2, READ, &[(Queue, 300), (Parse, 30), (Io, 3_000), (Send, 50)]), Some("b")),
        (row(3, CLOSE, &[(Processing, 40), (Filesystem, 60)]), Some("a")),
        (notify, Some("a")),
        (row(5, CLOSE, &[]), None),
    ]
}

fn summary(slices: &[Slice]) -> Option<Server> {
    let mut summary = Summary::new(Options { server_slowest_listed: 2, ..Options::default() });
    summary.operations(&batch(&rows())).unwrap();
    summary.slices(slices);
    summary.finish().server
}

#[test]
fn a_recording_without_slices_says_nothing_of_the_server() {
    let mut summary = Summary::new(Options::default());
    summary.operations(&batch(&[(row(1, READ, &[]), None)])).unwrap();
    assert_eq!(summary.finish().server, None);
}

#[test]
fn by_command_and_by_share() {
    let server = summary(&[]).unwrap();
    assert_eq!((server.operations, server.waits), (3, 1));
    let kinds = ["queue", "parse", "processing", "filesystem", "io", "send", "disk"];
    assert_eq!(server.kinds, kinds);
    let [read, close] = server.commands.as_slice() else { panic!("{:?}", server.commands) };
    assert_eq!((read.command.as_str(), read.operations), ("Read", 2));
    let sum = &read.slices_sum;
    assert_eq!((sum.distribution.sum_ns, sum.distribution.mean_ns), (4_540, Some(2_270)));
    // python3: statistics.stdev([1160, 3380]) = 1569.78
    assert_eq!(sum.stddev_ns, Some(1_569));
    assert_eq!(read.turnaround.distribution.max_ns, Some(3_385));
    assert_eq!(read.residual.distribution.p95_ns, Some(5));
    assert_eq!(read.processing.distribution.mean_ns, Some(20));
    assert_eq!(read.filesystem.distribution.p95_ns, Some(3_000));
    let disk = read.slices.iter().find(|slice| slice.kind == "disk").unwrap();
    assert_eq!((disk.spread.distribution.n, disk.spread.stddev_ns), (1, None));
    let split = &read.split;
    assert_eq!((split.queue_ns, split.processing_ns, split.filesystem_ns), (400, 40, 4_000));
    assert_eq!((split.send_ns, split.residual_ns), (100, 10));
    assert_eq!((split.request_transfer_ns, split.response_transfer_ns), (20, 40));
    // A missing slice is not a slice of zero.
    assert_eq!((close.queue.distribution.n, close.filesystem.distribution.n), (0, 1));
    let shares: f64 = server.commands.iter().map(|row| row.time_share).sum();
    assert!((shares - 1.0).abs() < 1e-5);
    let shares: Vec<_> = server
        .shares
        .iter()
        .map(|row| (row.share.as_deref(), row.command.as_str(), row.slices_sum.sum_ns))
        .collect();
    let expected =
        [(Some("b"), "Read", 3_380), (Some("a"), "Read", 1_160), (Some("a"), "Close", 100)];
    assert_eq!(shares, expected);
}

#[test]
fn a_compound_s_turnaround_is_not_its_lead_s() {
    let mut lead = row(1, READ, &[(Kind::Queue, 100), (Kind::Io, 400)]);
    lead.set_compound(1);
    lead.set_compound_index(0);
    lead.set_response_start(lead.response_start().unwrap() + 5_000);
    lead.derive_durations();
    // A member has no wire times of its own.
    let mut member = Operation::default();
    member.set_operation(2);
    member.set_protocol(2);
    member.set_command(code::command(2, CLOSE));
    member.set_connection(1);
    member.set_compound(1);
    member.set_compound_index(1);
    member.set_processing_ns(900);
    let mut summary = Summary::new(Options::default());
    summary.operations(&batch(&[(lead, None), (member, None)])).unwrap();
    let slice = Slice {
        recording: "probe".into(),
        operation: 2,
        kind: Kind::Processing.name().into(),
        start: 1_000_000_700,
        duration_ns: 900,
        ..Slice::default()
    };
    summary.slices(&[slice]);
    let server = summary.finish().server.unwrap();
    assert_eq!(server.split.residual_ns, 0);
    assert!(server.commands.iter().all(|row| row.residual.distribution.n == 0));
    let [close, read] = server.slowest.as_slice() else { panic!() };
    assert_eq!((close.server_ns, close.arrived_ns, close.placed), (900, Some(1_000_000_700), true));
    assert_eq!((read.server_ns, read.residual_ns), (500, None));
    // It counts at the start of its lead.
    assert_eq!(server.bins.iter().map(|bin| bin.operations).sum::<u64>(), 2);
}

#[test]
fn over_time_nothing_is_lost() {
    let server = summary(&[]).unwrap();
    assert_eq!(server.bins.iter().map(|bin| bin.operations).sum::<u64>(), 3);
    let io: i64 = server.bins.iter().map(|bin| bin.split.filesystem_ns).sum();
    assert_eq!(io, server.split.filesystem_ns);
}

#[test]
fn the_slowest_are_laid_out_as_recorded_or_one_behind_the_other() {
    let slice = |operation, kind: Kind, offset, duration_ns| Slice {
        recording: "probe".into(),
        operation,
        kind: kind.name().into(),
        start: 1_000_000_010 + operation as i64 * 1_000_000 + offset,
        duration_ns,
        ..Slice::default()
    };
    let server = summary(&[
        slice(1, Kind::Queue, 0, 100),
        slice(2, Kind::Io, 330, 3_000),
        slice(2, Kind::Disk, 400, 2_000),
        slice(2, Kind::Queue, 0, 300),
        slice(99, Kind::Queue, 0, 300),
    ]);
    let server = server.unwrap();
    let [first, second] = server.slowest.as_slice() else { panic!() };
    assert_eq!((first.operation, first.server_ns, first.placed), (Some(2), 3_385, true));
    let found: Vec<_> = first
        .slices
        .iter()
        .map(|it| (it.kind.as_str(), it.offset_ns, it.duration_ns, it.depth))
        .collect();
    assert_eq!(found, [("queue", 0, 300, 0), ("io", 330, 3_000, 0), ("disk", 400, 2_000, 1)]);
    assert_eq!((second.operation, second.slices.len()), (Some(1), 1));
    let server = summary(&[]).unwrap();
    let first = &server.slowest[0];
    assert!(!first.placed);
    let found: Vec<_> = first.slices.iter().map(|it| (it.kind.as_str(), it.offset_ns)).collect();
    assert_eq!(found, [("queue", 0), ("parse", 300), ("io", 330), ("send", 3_330)]);
    assert_eq!(first.residual_ns, Some(5));
}

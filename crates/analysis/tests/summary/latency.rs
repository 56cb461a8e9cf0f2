//! Times of operations: latency, waits by design, the server, and members of compounds.

use smbscope_analysis::summary::{Options, Summary};
use smbscope_tables::code;
use smbscope_tables::operation::Column;
use smbscope_tables::tables::Connection;

use crate::{BREAK, CANCEL, CLOSE, CREATE, MS, NEGOTIATE, NOTIFY, READ, Row, batch, report, row};

#[test]
fn latency_and_shares_of_commands() {
    let mut rows: Vec<_> = (1..=100).map(|n| row(READ, n * MS, n * 1_000)).collect();
    rows.push(row(CLOSE, 5 * MS, 50_000));
    let found = report(&rows);
    let read = &found.commands[0];
    assert_eq!((read.command.as_str(), read.tally.operations), ("Read", 100));
    let elapsed = &read.tally.elapsed;
    let near = |found: Option<i64>, exact: i64| (found.unwrap() - exact).abs() <= exact / 1_000;
    assert!(near(elapsed.p50_ns, 50_000) && near(elapsed.p95_ns, 95_000));
    assert!(near(elapsed.p99_ns, 99_000));
    assert_eq!((elapsed.max_ns, elapsed.sum_ns), (Some(100_000), 5_050_000));
    let histogram = elapsed.histogram.as_ref().unwrap();
    assert_eq!(histogram.iter().sum::<u64>(), 100);
    // From 1 to 2 us, from 2 to 5 us.
    assert_eq!((histogram[0], histogram[1], histogram[2]), (0, 1, 3));
    let close = &found.commands[1];
    assert_eq!(close.tally.elapsed.p99_ns, Some(50_000));
    assert!((read.tally.busy_share + close.tally.busy_share - 1.0).abs() < 1e-12);
    assert_eq!(found.totals.tally.busy_ns, 5_100_000);
    assert_eq!(found.start_ns, Some(MS));
    assert_eq!(found.end_ns, Some(100 * MS + 100_000));
}

#[test]
fn waits_by_design_are_not_latency() {
    let found = report(&[
        row(NOTIFY, 0, 9_000 * MS).with(|row| {
            row.set_waits(true);
            row.set_busy_ns(0);
            row.set_outstanding(9);
        }),
        row(READ, 0, MS).with(|row| row.set_outstanding(2)),
        row(READ, MS, MS).with(|row| row.set_outstanding(1)),
    ]);
    let total = &found.totals;
    assert_eq!((total.tally.waits, total.tally.waiting_ns), (1, 9_000 * MS));
    assert_eq!((total.tally.elapsed.n, total.tally.elapsed.max_ns), (2, Some(MS)));
    assert_eq!(total.turnaround.n, 2);
    assert_eq!((total.outstanding_max, total.outstanding_mean), (Some(2), Some(1.5)));
    assert!(found.slowest.iter().all(|row| row.command == "Read"));
}

#[test]
fn an_unknown_latency_is_never_zero() {
    let request_only = row(READ, 0, MS).with(|row| {
        for column in [
            Column::status,
            Column::response_start,
            Column::response_end,
            Column::response_frame,
            Column::elapsed_ns,
            Column::turnaround_ns,
            Column::response_transfer_ns,
            Column::busy_ns,
        ] {
            row.clear(column);
        }
    });
    let cancel = Row { operation: request_only.operation, ..Row::default() }
        .with(|row| row.set_command(code::command(2, CANCEL)));
    let reply_only = row(READ, 0, MS).with(|row| {
        for column in [
            Column::request_start,
            Column::request_end,
            Column::request_frame,
            Column::elapsed_ns,
            Column::turnaround_ns,
            Column::request_transfer_ns,
            Column::busy_ns,
        ] {
            row.clear(column);
        }
    });
    let member = row(CLOSE, 0, MS).with(|row| {
        for column in [
            Column::request_start,
            Column::request_end,
            Column::response_start,
            Column::response_end,
            Column::request_frame,
            Column::response_frame,
            Column::elapsed_ns,
            Column::request_transfer_ns,
            Column::turnaround_ns,
            Column::response_transfer_ns,
            Column::busy_ns,
        ] {
            row.clear(column);
        }
        row.set_compound_index(1);
    });
    let found = report(&[request_only, cancel, reply_only, member]);
    let total = &found.totals.tally;
    assert_eq!((total.operations, total.unanswered, total.request_unseen), (4, 1, 1));
    assert_eq!((total.elapsed.n, total.elapsed.p50_ns), (0, None));
    assert_eq!(found.statuses.unknown, 2);
    assert_eq!(found.series.without_time, 1);
}

#[test]
fn negative_server_times_are_kept() {
    let server = |ns| row(READ, 0, MS).with(|row| row.set_server_ns(ns));
    let found = report(&[server(-300), server(100), server(200)]);
    let times = &found.commands[0].tally.server;
    assert_eq!((times.n, times.negative, times.sum_ns), (3, 1, 0));
    assert_eq!((times.min_ns, times.p50_ns, times.max_ns), (Some(-300), Some(100), Some(200)));
}

#[test]
fn chains_credits_breaks_and_slowest() {
    let member = |command, index| {
        row(command, 0, (i64::from(index) + 1) * MS).with(|row| {
            row.set_compound(5);
            row.set_compound_index(index);
            row.set_compound_size(2);
            row.set_related(index > 0);
            row.set_credit_charge(1);
            row.set_credits_requested(64);
            row.set_credits_granted(32);
        })
    };
    let broken = row(BREAK, 0, MS).with(|row| {
        row.clear(Column::request_start);
        row.clear(Column::request_frame);
        row.clear(Column::elapsed_ns);
        row.set_detail(code::detail(code::Detail::Break, 1));
        row.set_lease_requested(code::lease(7));
        row.set_lease_granted(code::lease(1));
    });
    let mut summary = Summary::new(Options::default());
    let create = member(CREATE, 0).with(|row| row.set_lease_granted(code::lease(3)));
    summary.operations(&batch(&[create, member(CLOSE, 1), broken])).unwrap();
    summary.connections(&[Connection {
        recording: "a.pcap".into(),
        connection: 1,
        retransmissions_to_client: 3,
        operations: 3,
        ..Connection::default()
    }]);
    let found = summary.finish();
    assert_eq!((found.compounds.chains, found.compounds.members), (1, 2));
    assert_eq!(found.compounds.patterns[0].name, "Create + Close");
    assert_eq!((found.breaks.breaks, found.breaks.acknowledgements), (1, 0));
    assert_eq!(found.breaks.changes[0].name, "Lease RHW → R");
    let connection = &found.connections.rows[0];
    assert_eq!((connection.credits_granted, connection.credit_charge), (64, 2));
    assert_eq!((connection.leases[0].name.as_str(), connection.leases[0].count), ("RH", 1));
    assert_eq!(found.connections.retransmissions, 3);
    assert_eq!(found.slowest[0].elapsed_ns, 2 * MS);
    assert_eq!(found.slowest[0].filter.as_deref(), Some("tcp.port == 50123 && smb2.msg_id == 17"));
}

#[test]
fn a_slow_operation_is_called_as_its_command_is() {
    let of_smb1 = row(NEGOTIATE, 0, 9 * MS).with(|row| {
        row.set_protocol(1);
        row.set_command(code::command(1, 0x72));
    });
    let found = report(&[of_smb1, row(NEGOTIATE, 0, MS)]);
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let slow: Vec<_> = found.slowest.into_iter().map(|row| row.command).collect();
    assert_eq!(slow, names(["Negotiate (SMB1)", "Negotiate"]));
    let commands: Vec<_> = found.commands.into_iter().map(|row| row.command).collect();
    assert_eq!(commands, slow);
}

#[test]
fn a_member_that_is_answered_late_counts_where_its_lead_does() {
    let member = |chain, index: u16, at| {
        row(CREATE, at, MS).with(|row| {
            row.set_compound(chain);
            row.set_compound_index(index);
            row.set_compound_size(3);
            if index > 0 {
                row.clear(Column::request_start);
                row.clear(Column::response_end);
                row.clear(Column::elapsed_ns);
            }
        })
    };
    let found = report(&[
        member(1, 0, 0),
        member(1, 1, 0),
        member(2, 0, 90 * MS),
        member(2, 1, 0),
        member(1, 2, 0),
        member(2, 2, 0),
        member(3, 1, 0),
    ]);
    // The start of the third is unknown.
    assert_eq!(found.series.without_time, 1);
    let of = |at: usize| found.series.bins.get(at).map(|bin| bin.operations);
    assert_eq!((of(0), of(90)), (Some(3), Some(3)));
}

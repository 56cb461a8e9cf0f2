//! Diagnoses: each trouble is found where it is, and not where it nearly is.

// A test may panic.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use smbscope_analysis::explain::{
    About, COLUMNS, Confidence, Diagnosis, Explain, Finding, Trouble,
};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::{self, Operation};
use smbscope_tables::tables::{Connection, Coverage};

const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const FLUSH: u16 = 7;
const READ: u16 = 8;
const WRITE: u16 = 9;
const LOCK: u16 = 10;
const QUERY_DIRECTORY: u16 = 14;
const QUERY_INFO: u16 = 16;
const SET_INFO: u16 = 17;
const NEGOTIATE: u16 = 0;
const OPLOCK_BREAK: u16 = 18;
const MS: i64 = 1_000_000;
const NO_HANDLE: u64 = u64::MAX;
const NOT_FOUND: u32 = 0xc000_0034;

/// One operation: its command, what the server takes, on which open and path.
#[derive(Clone)]
struct Act {
    command: u16,
    server_ns: i64,
    handle: u64,
    path: &'static str,
    client: &'static str,
    gap_ns: i64,
    rtt_ns: i64,
    set: fn(&mut Operation),
}

fn act(command: u16, handle: u64, path: &'static str) -> Act {
    let client = "10.0.0.1";
    Act {
        command,
        server_ns: MS / 10,
        handle,
        path,
        client,
        gap_ns: 0,
        rtt_ns: MS / 5,
        set: |_| (),
    }
}

/// One after the other, each when the one before was answered.
fn explain(acts: &[Act]) -> Diagnosis {
    explain_on(acts, Connection::default())
}

/// The same on a connection of which that is known.
fn explain_on(acts: &[Act], connection: Connection) -> Diagnosis {
    explain_of(acts, vec![Connection { connection: 1, ..connection }])
}

/// The same on connections of which that is known.
fn explain_of(acts: &[Act], mut connections: Vec<Connection>) -> Diagnosis {
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut at = 1_000_000_000_000;
    for (number, act) in acts.iter().enumerate() {
        at += act.gap_ns;
        let mut row = Operation::default();
        row.set_operation(number as u64);
        row.set_recording(builder.names.recording.intern("run"));
        row.set_client(builder.names.client.intern(act.client));
        row.set_share(builder.names.share.intern("\\\\server\\share"));
        row.set_path(builder.names.path.intern(act.path));
        row.set_connection(1);
        row.set_protocol(2);
        row.set_command(code::command(2, act.command));
        if act.command == CREATE {
            row.set_detail(code::detail(code::Detail::Disposition, 1));
            row.set_desired_access(0x81);
        }
        if act.handle != NO_HANDLE {
            row.set_handle(act.handle);
        }
        row.set_status(0);
        row.set_outstanding(0);
        row.set_request_start(at);
        row.set_request_end(at);
        row.set_response_start(at + act.rtt_ns + act.server_ns);
        row.set_response_end(at + act.rtt_ns + act.server_ns);
        row.derive_durations();
        row.set_server_ns(act.server_ns);
        row.set_busy_ns(act.rtt_ns + act.server_ns);
        if act.gap_ns > 0 {
            row.set_client_gap_ns(act.gap_ns);
        }
        (act.set)(&mut row);
        at = row.response_end().unwrap_or(at);
        builder.append(&[row]);
    }
    let mut explain = Explain::with_gains();
    explain.operations(&builder.finish().unwrap()).unwrap();
    connections.iter_mut().for_each(|row| row.recording = "run".into());
    explain.connections(&connections);
    explain.finish().unwrap()
}

/// The finding of a trouble that explains 5 % or more.
fn found(diagnosis: &Diagnosis, trouble: Trouble) -> Option<&Finding> {
    diagnosis.findings.iter().find(|one| one.trouble == trouble && one.share >= 0.05)
}

fn figure(found: &Finding, name: &str) -> f64 {
    found.figures.iter().find(|figure| figure.name == name).unwrap().value
}

#[test]
fn every_column_that_it_reads_is_in_the_schema() {
    for name in COLUMNS {
        assert!(operation::schema().field_with_name(name).is_ok(), "{name}");
    }
}

/// Reads that continue each other, of so many bytes, over a round trip of 20 ms.
fn reads(set: fn(&mut Operation)) -> Vec<Act> {
    (0..40).map(|_| Act { rtt_ns: 20 * MS, set, ..act(READ, 1, "big.iso") }).collect()
}

fn place(row: &mut Operation, bytes: u64) {
    row.set_offset(row.operation().unwrap() * bytes);
    row.set_transferred_bytes(bytes);
}

#[test]
fn small_reads_one_at_a_time() {
    let diagnosis = explain(&reads(|row| place(row, 4096)));
    let small = found(&diagnosis, Trouble::SmallReads).unwrap();
    assert_eq!(diagnosis.findings[0], *small);
    assert!(small.share > 0.9, "{small:?}");
    assert_eq!(figure(small, "round"), 20e6);
    assert_eq!((figure(small, "block"), figure(small, "larger_block")), (4096.0, 1048576.0));
    // 4 KiB in 20.1 ms.
    assert!((figure(small, "throughput") - 8e9 * 4096.0 / 20.1e6).abs() < 1.0);
    // Side by side, at other places, and large: nothing is to be gained.
    for set in [
        (|row: &mut Operation| {
            place(row, 4096);
            row.set_outstanding(3);
        }) as fn(&mut Operation),
        |row| {
            place(row, 4096);
            row.set_offset(row.offset().unwrap() * 7);
        },
        |row| place(row, 1 << 20),
    ] {
        assert_eq!(found(&explain(&reads(set)), Trouble::SmallReads), None);
    }
}

#[test]
fn a_dialect_without_large_blocks_gains_up_to_64_kib() {
    let old = |row: &mut Operation| {
        place(row, 65_536);
        row.set_dialect(0x0202);
    };
    assert_eq!(found(&explain(&reads(old)), Trouble::SmallReads), None);
}

/// Opens a path, asks, closes.
fn looks(handle: u64, path: &'static str) -> [Act; 3] {
    [act(CREATE, handle, path), act(QUERY_INFO, handle, path), act(CLOSE, handle, path)]
}

#[test]
fn what_is_looked_up_again() {
    let again: Vec<_> = (0..20).flat_map(|handle| looks(handle, "a.txt")).collect();
    let diagnosis = explain(&again);
    let repeated = found(&diagnosis, Trouble::RepeatedLookups).unwrap();
    // All but the first.
    assert_eq!((repeated.operations, repeated.confidence), (57, Confidence::High));
    assert_eq!(repeated.paths[0].name, "a.txt");
    // Long after, others, and files that are then read: none of that is a repetition.
    let mut late = again.clone();
    late.iter_mut().for_each(|act| act.gap_ns = 11_000 * MS);
    assert_eq!(found(&explain(&late), Trouble::RepeatedLookups), None);
    let names = ["a", "b", "c", "d", "e", "f"];
    let others: Vec<_> = (0..6).flat_map(|one| looks(one, names[one as usize])).collect();
    assert_eq!(found(&explain(&others), Trouble::RepeatedLookups), None);
    let read: Vec<_> = (0..20)
        .flat_map(|handle| {
            let [open, _, close] = looks(handle, "a.txt");
            [open, act(READ, handle, "a.txt"), close]
        })
        .collect();
    assert_eq!(found(&explain(&read), Trouble::RepeatedLookups), None);
}

#[test]
fn what_others_change_is_looked_up_anew() {
    let changed_by = |client: &'static str| {
        let acts: Vec<_> = (0..10)
            .flat_map(|round| {
                let change = Act { client, ..act(SET_INFO, 100, "a.txt") };
                looks(round, "a.txt").into_iter().chain([change])
            })
            .collect();
        found(&explain(&acts), Trouble::RepeatedLookups).map(|found| found.operations)
    };
    assert_eq!(changed_by("10.0.0.2"), None);
    assert_eq!(changed_by("10.0.0.1"), Some(27));
    // A folder's listing is another one when something in it was made, written or deleted.
    let deletes = |row: &mut Operation| {
        row.set_desired_access(0x1_0000);
        row.set_create_options(0x1040);
    };
    let listed: Vec<_> = (0..10)
        .flat_map(|round| {
            let open = Act {
                client: "10.0.0.2",
                set: deletes,
                ..act(CREATE, 100 + round, "folder\\gone.txt")
            };
            lists(round).into_iter().chain([open])
        })
        .collect();
    assert_eq!(found(&explain(&listed), Trouble::RepeatedListings), None);
}

#[test]
fn opens_that_make_or_delete_are_for_something() {
    for set in [
        (|row: &mut Operation| {
            row.set_desired_access(0x1_0000);
            row.set_create_options(0x1040);
        }) as fn(&mut Operation),
        // FILE_CREATE.
        |row| row.set_detail(code::detail(code::Detail::Disposition, 2)),
    ] {
        let pairs: Vec<_> = (0..20)
            .flat_map(|one| [Act { set, ..act(CREATE, one, "a.txt") }, act(CLOSE, one, "a.txt")])
            .collect();
        let diagnosis = explain(&pairs);
        assert_eq!(found(&diagnosis, Trouble::OpenCloseChurn), None);
        assert_eq!(found(&diagnosis, Trouble::RepeatedLookups), None);
    }
}

#[test]
fn names_that_are_not_there() {
    let missing = |path| Act { set: |row| row.set_status(NOT_FOUND), ..act(CREATE, 0, path) };
    let diagnosis = explain(&vec![missing("desktop.ini"); 20]);
    let failing = found(&diagnosis, Trouble::FailingLookups).unwrap();
    assert_eq!((failing.operations, figure(failing, "failed_lookups")), (19, 20.0));
    let once: Vec<_> = ["a", "b", "c", "d"].map(missing).to_vec();
    assert_eq!(found(&explain(&once), Trouble::FailingLookups), None);
}

/// Opens a folder, lists it, closes it.
fn lists(handle: u64) -> [Act; 4] {
    let end = |row: &mut Operation| row.set_status(0x8000_0006);
    let act = |command| act(command, handle, "folder");
    [act(CREATE), act(QUERY_DIRECTORY), Act { set: end, ..act(QUERY_DIRECTORY) }, act(CLOSE)]
}

#[test]
fn folders_that_are_listed_again() {
    let again: Vec<_> = (0..10).flat_map(lists).collect();
    let diagnosis = explain(&again);
    // All but the first, with their opens and closes.
    assert_eq!(found(&diagnosis, Trouble::RepeatedListings).unwrap().operations, 36);
    assert_eq!(found(&explain(&lists(1)), Trouble::RepeatedListings), None);
    // In a compound all of the time is the open's.
    let set: fn(&mut Operation) = |row| match row.operation().unwrap() % 4 {
        0 => row.set_compound(1),
        _ => {
            row.set_compound(1);
            row.clear(operation::Column::request_start);
            row.clear(operation::Column::elapsed_ns);
            row.clear(operation::Column::busy_ns);
        }
    };
    let together: Vec<_> = again.into_iter().map(|act| Act { set, ..act }).collect();
    let diagnosis = explain(&together);
    assert_eq!(diagnosis.findings[0].trouble, Trouble::RepeatedListings);
    assert_eq!(found(&diagnosis, Trouble::RepeatedLookups), None);
}

#[test]
fn opens_for_nothing() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let pairs: Vec<_> = (0..6)
        .flat_map(|one| {
            let path = names[one as usize];
            [act(CREATE, one, path), act(CLOSE, one, path)]
        })
        .collect();
    assert_eq!(found(&explain(&pairs), Trouble::OpenCloseChurn).unwrap().operations, 12);
    let used: Vec<_> = (0..6).flat_map(|one| looks(one, names[one as usize])).collect();
    assert_eq!(found(&explain(&used), Trouble::OpenCloseChurn), None);
}

#[test]
fn queues_grow_with_what_is_in_flight_and_slow_storage_does_not() {
    // Nine connections, of each a request at once, and in between one request alone.
    let with = |groups, alone: bool, server_ns: fn(u64) -> i64| {
        let mut rows = Vec::new();
        for _ in 0..groups {
            let mut before_ns = 0;
            for number in 0..9 {
                let server_ns = server_ns(number);
                let gap_ns = if number == 0 { 20 * MS } else { 1_000 - before_ns };
                let set: fn(&mut Operation) =
                    |row| row.set_connection(1 + row.operation().unwrap() % 10);
                let act = Act { server_ns, gap_ns, rtt_ns: 0, set, ..act(READ, 1, "a") };
                before_ns = server_ns;
                rows.push(act);
            }
            if alone {
                let act = rows[rows.len() - 9].clone();
                rows.push(Act { gap_ns: 20 * MS, ..act });
            }
        }
        explain(&rows)
    };
    let queue = with(30, true, |number| (1 + number as i64) * MS);
    let queueing = found(&queue, Trouble::ServerQueueing).unwrap();
    assert!(figure(queueing, "times_as_long_with_most_in_flight") > 5.0, "{queueing:?}");
    assert_eq!(found(&queue, Trouble::SlowFilesystem), None);
    let slow = with(30, true, |_| 9 * MS);
    assert_eq!(found(&slow, Trouble::ServerQueueing), None);
    assert_eq!(found(&slow, Trouble::SlowFilesystem).unwrap().confidence, Confidence::Medium);
    // Too seldom alone: nobody can tell.
    let unknown = with(15, false, |_| 9 * MS);
    assert_eq!(found(&unknown, Trouble::SlowFilesystem).unwrap().confidence, Confidence::Low);
    let quick = with(30, true, |_| MS / 10);
    let server = [Trouble::ServerQueueing, Trouble::SlowFilesystem];
    assert!(server.iter().all(|one| found(&quick, *one).is_none()), "{:?}", quick.findings);
}

#[test]
fn many_requests_in_flight_do_not_make_a_server_slow() {
    // Sixteen at once: each is answered 1 ms after the one before, while bytes arrive without a pause.
    let mut rows = vec![act(READ, 1, "big.iso"); 600];
    for act in &mut rows {
        act.server_ns = 16 * MS;
        act.gap_ns = -15 * MS;
        act.set = |row| {
            row.set_outstanding(15);
            row.set_response_start(row.response_end().unwrap() - MS);
            row.derive_durations();
            row.set_server_ns(15 * MS);
            row.set_busy_ns(MS);
            row.set_transferred_bytes(1 << 20);
        };
    }
    let diagnosis = explain(&rows);
    assert!(diagnosis.findings.iter().all(|one| one.share < 0.05), "{:?}", diagnosis.findings);
}

#[test]
fn slices_tell_what_the_server_does() {
    let slow = |set: fn(&mut Operation)| {
        explain(&vec![Act { server_ns: 10 * MS, set, ..act(WRITE, 1, "a") }; 30])
    };
    for (trouble, set) in [
        (Trouble::ServerQueueing, (|row: &mut Operation| row.set_queue_ns(9 * MS)) as fn(&mut _)),
        (Trouble::SlowFilesystem, |row| row.set_filesystem_ns(9 * MS)),
        (Trouble::SlowFilesystem, |row| row.set_io_wait_ns(9 * MS)),
        (Trouble::SlowFlush, |row| row.set_flush_ns(9 * MS)),
        (Trouble::Protection, |row| row.set_crypto_in_ns(9 * MS)),
        (Trouble::LockContention, |row| row.set_lock_wait_ns(9 * MS)),
    ] {
        let diagnosis = slow(set);
        assert_eq!(diagnosis.findings[0].trouble, trouble, "{:?}", diagnosis.findings);
        assert_eq!(diagnosis.findings[0].confidence, Confidence::High);
        assert!(diagnosis.findings[0].share > 0.8);
    }
}

#[test]
fn what_protection_costs_is_not_seen_from_outside() {
    let is_told = |set: fn(&mut Operation)| {
        let diagnosis = explain(&vec![Act { set, ..act(READ, 1, "a") }; 30]);
        diagnosis.notes.iter().any(|note| note.about == About::Protection)
    };
    assert!(is_told(|row| row.set_signed(true)) && is_told(|row| row.set_encrypted(true)));
    assert!(!is_told(|_| ()));
    assert!(!is_told(|row| {
        row.set_signed(true);
        row.set_crypto_in_ns(MS / 100);
    }));
}

#[test]
fn flushes_and_logons_are_told_from_the_file_system() {
    let flushes = vec![Act { server_ns: 5 * MS, ..act(FLUSH, 1, "a") }; 20];
    let diagnosis = explain(&flushes);
    assert!(found(&diagnosis, Trouble::SlowFlush).is_some());
    assert_eq!(found(&diagnosis, Trouble::SlowFilesystem), None);
    let through =
        Act { server_ns: 5 * MS, set: |row| row.set_write_through(true), ..act(WRITE, 1, "a") };
    let diagnosis = explain(&vec![through; 20]);
    assert!(found(&diagnosis, Trouble::SlowFlush).is_some());
    assert!(diagnosis.notes.iter().any(|note| note.about == About::WriteThrough));
    let logon = Act { server_ns: 900 * MS, ..act(NEGOTIATE, 0, "") };
    let diagnosis = explain(std::slice::from_ref(&logon));
    let slow = found(&diagnosis, Trouble::SlowLogon).unwrap();
    // One alone may be chance.
    assert_eq!(slow.confidence, Confidence::Low);
    assert!(slow.because.contains("from outside"));
    let inside = explain(&[Act { set: |row| row.set_queue_ns(MS), ..logon }]);
    assert!(!found(&inside, Trouble::SlowLogon).unwrap().because.contains("outside"));
}

#[test]
fn what_others_do() {
    let conflict = |row: &mut Operation| row.set_status(0xc000_0043);
    let diagnosis = explain(&vec![Act { set: conflict, ..act(CREATE, 0, "a.xlsx") }; 20]);
    assert_eq!(found(&diagnosis, Trouble::ShareConflicts).unwrap().operations, 20);
    let refused = |row: &mut Operation| row.set_status(0xc000_0055);
    let diagnosis = explain(&vec![Act { set: refused, ..act(LOCK, 1, "a.mdb") }; 20]);
    assert_eq!(found(&diagnosis, Trouble::LockContention).unwrap().operations, 20);
    let blocked = |row: &mut Operation| row.set_waits(true);
    let blocked = Act { server_ns: 500 * MS, set: blocked, ..act(LOCK, 1, "a.mdb") };
    let diagnosis = explain(&[blocked, act(QUERY_INFO, 1, "a.mdb")]);
    assert!(found(&diagnosis, Trouble::LockContention).unwrap().share > 0.9);
    let later = |row: &mut Operation| row.set_pending_at(row.request_start().unwrap());
    let waits = Act { server_ns: 35 * MS, set: later, ..act(CREATE, 1, "a.docx") };
    let mut rows = vec![waits; 20];
    let unseen = explain(&rows);
    assert_eq!(found(&unseen, Trouble::BreakWaits).unwrap().confidence, Confidence::Low);
    rows.push(act(OPLOCK_BREAK, 1, "a.docx"));
    let diagnosis = explain(&rows);
    let waiting = found(&diagnosis, Trouble::BreakWaits).unwrap();
    assert_eq!((waiting.confidence, figure(waiting, "breaks")), (Confidence::Medium, 1.0));
    assert_eq!(found(&diagnosis, Trouble::SlowFilesystem), None);
}

#[test]
fn requests_one_by_one() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let far = |act: Act| Act { rtt_ns: 20 * MS, ..act };
    let apart: Vec<_> = (0..6).flat_map(|one| looks(one, names[one as usize])).map(far).collect();
    let diagnosis = explain(&apart);
    let single = found(&diagnosis, Trouble::NoCompounding).unwrap();
    // Two of three could go along.
    assert_eq!(single.operations, 12);
    assert!((single.share - 2.0 / 3.0).abs() < 0.01, "{}", single.share);
    assert!(diagnosis.notes.iter().any(|note| note.about == About::Distance));
    let together = |act: Act| Act { set: |row| row.set_compound(1), ..act };
    let whole: Vec<_> = apart.iter().cloned().map(together).collect();
    assert_eq!(found(&explain(&whole), Trouble::NoCompounding), None);
    let looked: Vec<_> = apart.into_iter().map(|act| Act { gap_ns: 5 * MS, ..act }).collect();
    assert_eq!(found(&explain(&looked), Trouble::NoCompounding), None);
}

#[test]
fn a_client_that_pauses_and_one_that_nobody_uses() {
    let pauses = Act { gap_ns: 50 * MS, ..act(QUERY_INFO, 1, "a") };
    let diagnosis = explain(&vec![pauses.clone(); 40]);
    assert_eq!(diagnosis.findings[0].trouble, Trouble::SlowClient);
    assert!(diagnosis.findings[0].share > 0.9);
    // The first one comes at once: 39 of 50 ms, and 40 operations of 0.3.
    assert_eq!(figure(&diagnosis.findings[0], "mean_pause"), 50e6);
    let idle = 1.0 - 40.0 * 0.3 / (39.0 * 50.0 + 40.0 * 0.3);
    let told = figure(&diagnosis.findings[0], "share_of_time_with_nothing_in_flight");
    assert!((told - idle).abs() < 1e-9, "{told}");
    let away = Act { gap_ns: 60_000 * MS, ..pauses };
    assert_eq!(found(&explain(&vec![away; 40]), Trouble::SlowClient), None);
}

#[test]
fn a_pause_of_one_channel_is_none_while_another_is_busy() {
    // Each of two connections of one session is idle while the other one is not.
    let mut rows = vec![act(QUERY_INFO, 1, "a"); 40];
    for act in &mut rows {
        act.server_ns = 40 * MS;
        act.set = |row| {
            row.set_session_id(7);
            row.set_connection(1 + row.operation().unwrap() % 2);
            row.set_client_gap_ns(40 * MS);
        };
    }
    let diagnosis = explain(&rows);
    assert_eq!((diagnosis.whole.think_ns, found(&diagnosis, Trouble::SlowClient)), (0, None));
}

#[test]
fn connections_and_coverage_make_notes() {
    let mut explain = Explain::new();
    explain.connections(&[Connection {
        recording: "run".into(),
        packets_to_client: 1000,
        retransmissions_to_client: 20,
        zero_windows_to_server: 3,
        gaps_to_client: 1,
        max_read_bytes: Some(65_536),
        max_write_bytes: Some(65_536),
        ..Connection::default()
    }]);
    explain.coverage(&[Coverage {
        messages_encrypted: 9,
        messages_decrypted: 4,
        ..Coverage::default()
    }]);
    let diagnosis = explain.finish().unwrap();
    assert!(diagnosis.findings.is_empty());
    let about: Vec<_> = diagnosis.notes.iter().map(|note| note.about).collect();
    use About::{Loss, SmallMaximum, Unseen, ZeroWindows};
    assert_eq!(about, [Loss, ZeroWindows, SmallMaximum, Unseen, Unseen]);
    assert!(diagnosis.notes[4].what.starts_with("5 messages"));
}

/// Two machines, so far apart, whose windows are that large.
fn line(rtt_ms: i64, window: u64) -> Connection {
    Connection {
        client: "10.0.0.1".into(),
        server: "10.0.0.2".into(),
        server_rtt_ns: Some(rtt_ms * MS),
        client_rtt_ns: Some(0),
        client_window_max: Some(window),
        ..Connection::default()
    }
}

/// Reads of 1 MiB whose bytes come in so many milliseconds.
fn long_reads(of_ms: fn(u64) -> i64) -> Vec<Act> {
    let read = |number| Act {
        server_ns: MS,
        gap_ns: 0,
        rtt_ns: of_ms(number) * MS,
        set: |row| long_read(row, 1),
        ..act(READ, 1, "big.iso")
    };
    (0..40).map(read).collect()
}

/// A read of 1 MiB on that connection, whose bytes come from 1 ms on until the end.
fn long_read(row: &mut Operation, connection: u64) {
    let bytes = 1 << 20;
    place(row, bytes);
    row.set_connection(connection);
    row.set_response_wire_bytes(bytes + 84);
    row.set_response_start(row.request_start().unwrap() + MS);
    row.derive_durations();
}

#[test]
fn a_full_line_goes_at_one_rate() {
    // 1 MiB in 100 ms is 84 Mbit/s.
    let diagnosis = explain_on(&long_reads(|_| 100), line(2, 4 << 20));
    let full = &diagnosis.findings[0];
    assert_eq!((full.trouble, full.operations), (Trouble::BandwidthLimited, 40));
    assert!((figure(full, "rate") / 83.9e6 - 1.0).abs() < 0.01, "{full:?}");
    assert!(full.share > 0.85, "{full:?}");
    // At any rate, and on one machine, no line is full.
    let uneven = explain_on(&long_reads(|number| 20 << (number % 6)), line(2, 4 << 20));
    assert_eq!(found(&uneven, Trouble::BandwidthLimited), None);
    let here = Connection { server: "10.0.0.1".into(), ..line(2, 4 << 20) };
    assert_eq!(found(&explain_on(&long_reads(|_| 100), here), Trouble::BandwidthLimited), None);
}

#[test]
fn a_line_that_many_share_is_full_though_none_keeps_to_one_rate() {
    // Two connections, in turn fast and slow, that together move 2 MiB in 200 ms.
    let read = |number: u64, fast: bool| Act {
        server_ns: MS,
        gap_ns: if number.is_multiple_of(2) { 0 } else { -(if fast { 150 } else { 51 } * MS) },
        rtt_ns: if fast { 49 } else { 149 } * MS,
        set: match number % 2 {
            0 => |row| long_read(row, 1),
            _ => |row| long_read(row, 2),
        },
        ..act(READ, 1 + number % 2, "big.iso")
    };
    let shared: Vec<_> =
        (0..160).map(|number| read(number, (number / 2 + number).is_multiple_of(2))).collect();
    let two = |acts: &[Act]| {
        let mut connections = vec![line(2, 4 << 20), line(2, 4 << 20)];
        (connections[0].connection, connections[1].connection) = (1, 2);
        explain_of(acts, connections)
    };
    let diagnosis = two(&shared);
    let full = found(&diagnosis, Trouble::BandwidthLimited);
    assert!(full.is_some_and(|full| full.share > 0.5), "{:?}", diagnosis.findings);
    // One of them alone is uneven.
    let single: Vec<_> = shared.iter().filter(|act| act.handle == 1).cloned().collect();
    let single: Vec<_> = single.into_iter().map(|act| Act { gap_ns: 0, ..act }).collect();
    assert_eq!(found(&two(&single), Trouble::BandwidthLimited), None);
}

#[test]
fn a_window_that_is_small_for_the_distance() {
    // 64 KiB in each round of 20 ms.
    let diagnosis = explain_on(&long_reads(|_| 320), line(20, 64 << 10));
    let small = &diagnosis.findings[0];
    assert_eq!(small.trouble, Trouble::WindowLimited);
    assert_eq!((figure(small, "window"), figure(small, "round_trip")), (65_536.0, 20e6));
    let ratio = figure(small, "rate") / figure(small, "most_that_the_window_allows");
    assert!((0.95..1.05).contains(&ratio), "{small:?}");
    assert_eq!(found(&diagnosis, Trouble::BandwidthLimited), None);
    let large = explain_on(&long_reads(|_| 320), line(20, 4 << 20));
    assert_eq!(found(&large, Trouble::WindowLimited), None);
    let near = explain_on(&long_reads(|_| 320), line(0, 64 << 10));
    assert_eq!(found(&near, Trouble::WindowLimited), None);
}

#[test]
fn what_is_lost_costs_the_time_until_it_came() {
    let lost = |row: &mut Operation| row.set_recovery_ns(200 * MS);
    let mut rows = vec![Act { rtt_ns: 0, ..act(QUERY_INFO, 1, "a") }; 200];
    rows[50..60].iter_mut().for_each(|act| (act.rtt_ns, act.set) = (201 * MS, lost));
    let diagnosis = explain(&rows);
    let losses = found(&diagnosis, Trouble::Loss).unwrap();
    assert_eq!((losses.operations, losses.saved_ns), (10, 10 * 200 * MS));
    assert_eq!((losses.confidence, figure(losses, "standstill")), (Confidence::High, 2e9));
    assert_eq!(diagnosis.findings[0], *losses);
    let [at] = &losses.connections[..] else { panic!("{losses:?}") };
    assert_eq!((at.name.as_str(), at.operations, at.saved_ns), (":0 > :0", 10, 2_000 * MS));
    rows.iter_mut().for_each(|act| act.set = |_| ());
    assert_eq!(found(&explain(&rows), Trouble::Loss), None);
}

#[test]
fn a_server_that_grants_few_credits() {
    let set: fn(&mut Operation) = |row| {
        row.set_outstanding(3);
        row.set_credit_charge(1);
        row.set_credits_requested(32);
        row.set_credits_granted(1);
    };
    let reads: Vec<_> =
        (0..40).map(|_| Act { rtt_ns: 20 * MS, set, ..act(READ, 1, "big.iso") }).collect();
    let held = |least, most| Connection {
        credits_min: Some(least),
        credits_max: most,
        ..line(20, 4 << 20)
    };
    let diagnosis = explain_on(&reads, held(0, 4));
    let few = found(&diagnosis, Trouble::CreditStarvation).unwrap();
    assert_eq!((figure(few, "credits_at_most"), figure(few, "in_flight_at_most")), (4.0, 4.0));
    assert_eq!(diagnosis.findings[0], *few);
    // Some were left; many; or nobody asked for more.
    assert_eq!(found(&explain_on(&reads, held(2, 4)), Trouble::CreditStarvation), None);
    assert_eq!(found(&explain_on(&reads, held(0, 512)), Trouble::CreditStarvation), None);
    let content = |row: &mut Operation| {
        row.set_outstanding(3);
        row.set_credits_requested(1);
        row.set_credits_granted(1);
    };
    let reads: Vec<_> = reads.into_iter().map(|act| Act { set: content, ..act }).collect();
    assert_eq!(found(&explain_on(&reads, held(0, 4)), Trouble::CreditStarvation), None);
}

#[test]
fn one_file_is_out_of_line() {
    let rows = |slow: fn(usize) -> bool, path: &'static str| {
        let one = |number| match slow(number) {
            true => Act { server_ns: 80 * MS, ..act(READ, 2, path) },
            false => act(READ, 1, "quick.txt"),
        };
        explain(&(0..400).map(one).collect::<Vec<_>>())
    };
    let each_twentieth = |number| number > 100 && number % 20 == 0;
    let diagnosis = rows(each_twentieth, "slow.txt");
    let late = found(&diagnosis, Trouble::Stragglers).unwrap();
    assert_eq!((late.operations, late.paths[0].name.as_str()), (14, "slow.txt"));
    assert!(late.share > 0.8 && late.what.contains("One file"), "{late:?}");
    // That is all that is slow.
    assert_eq!(found(&diagnosis, Trouble::SlowFilesystem), None);
    // Several files of a folder.
    let names = ["slow\\a", "slow\\b", "slow\\c"];
    let one = |number: usize| match number > 100 && number.is_multiple_of(20) {
        true => Act { server_ns: 80 * MS, ..act(READ, 2, names[number / 20 % 3]) },
        false => act(READ, 1, "quick\\a"),
    };
    let diagnosis = explain(&(0..400).map(one).collect::<Vec<_>>());
    assert!(found(&diagnosis, Trouble::Stragglers).unwrap().what.contains("One folder"));
    // Where all is slow, or slow for the same file now and then, none is out of line.
    assert_eq!(found(&rows(|_| true, "slow.txt"), Trouble::Stragglers), None);
    assert_eq!(found(&rows(each_twentieth, "quick.txt"), Trouble::Stragglers), None);
}

#[test]
fn one_second_is_out_of_line() {
    let one = |number| {
        let gap_ns = 20 * MS;
        let server_ns = if (300..310).contains(&number) { 80 * MS } else { MS / 10 };
        Act { server_ns, gap_ns, ..act(READ, 1, "a") }
    };
    let diagnosis = explain(&(0..600).map(one).collect::<Vec<_>>());
    let late = found(&diagnosis, Trouble::Stragglers).unwrap();
    assert!(late.what.contains("one second"), "{late:?}");
}

#[test]
fn what_nobody_made_stable() {
    let large = |row: &mut Operation| row.set_transferred_bytes(2 << 20);
    let copy = |path, with: &[Act]| {
        let write = Act { set: large, ..act(WRITE, 1, path) };
        let acts = [&[act(CREATE, 1, path), write], with, &[act(CLOSE, 1, path)]].concat();
        let is_told = |note: &smbscope_analysis::explain::Note| note.about == About::NotStable;
        explain(&acts).notes.iter().any(is_told)
    };
    assert!(copy("backup\\full.VBK", &[]));
    assert!(!copy("backup\\full.vbk", &[act(FLUSH, 1, "backup\\full.vbk")]));
    assert!(!copy("letter.docx", &[]));
}

#[test]
fn channels_that_are_offered_and_not_used() {
    let one = |number, bytes| Connection {
        recording: "run".into(),
        connection: number,
        bytes_to_client: bytes,
        server_capabilities: Some(0x7f),
        client_capabilities: Some(8),
        client_guid: Some(format!("client {}", number % 4)),
        ..line(0, 1 << 20)
    };
    let about = |rows: &[Connection]| {
        let mut explain = Explain::new();
        explain.connections(rows);
        explain.finish().unwrap().notes.iter().map(|note| note.about).collect::<Vec<_>>()
    };
    let many = 1 << 30;
    assert_eq!(about(&[one(1, many)]), [About::MultichannelUnused]);
    assert_eq!(about(&[one(1, many), one(5, many)]), []);
    assert_eq!(about(&[Connection { client_capabilities: Some(0), ..one(1, many) }]), []);
    let rest = [one(2, 9), one(3, 9), one(4, 9)];
    let all = [&[one(1, many)], &rest[..]].concat();
    assert_eq!(about(&all), [About::MultichannelUnused, About::OneConnection]);
}

#[test]
fn remedies_are_replayed() {
    let far = |acts: &[Act]| {
        let far = |act: &Act| Act { rtt_ns: 20 * MS, ..act.clone() };
        explain_on(&acts.iter().map(far).collect::<Vec<_>>(), line(20, 4 << 20))
    };
    // All but the first listing need not be sent: of 20 ms each, and a little of the server's.
    let again: Vec<_> = (0..40).flat_map(lists).collect();
    let diagnosis = far(&again);
    let repeated = found(&diagnosis, Trouble::RepeatedListings).unwrap();
    let [gain] = &repeated.gains[..] else { panic!("{repeated:?}") };
    assert_eq!((gain.change.as_str(), gain.operations, gain.is_part), ("dirlease", 160, false));
    assert!(gain.waiting_after_ns < gain.waiting_before_ns / 10, "{gain:?}");
    let single = found(&diagnosis, Trouble::NoCompounding).unwrap();
    assert_eq!(single.gains[0].change, "compound=on");
    let left = single.gains[0].waiting_after_ns as f64 / single.gains[0].waiting_before_ns as f64;
    assert!((left - 1.0 / 4.0).abs() < 0.05, "{left}");
    // What blocks of other sizes cost is known where there are several.
    let sizes: Vec<_> = (0..200)
        .map(|number| {
            let set: fn(&mut Operation) = match number % 50 < 25 {
                true => |row| place(row, 4096),
                false => |row| place(row, 8192),
            };
            let handle = 1 + number / 25;
            Act { rtt_ns: 20 * MS, set, ..act(READ, handle, "big.iso") }
        })
        .collect();
    let diagnosis = far(&sizes);
    let small = found(&diagnosis, Trouble::SmallReads).unwrap();
    let changes: Vec<_> = small.gains.iter().map(|gain| gain.change.as_str()).collect();
    assert_eq!(changes, ["max-read=1MiB", "depth=8"]);
    assert!(small.gains.iter().all(|one| one.waiting_after_ns < one.waiting_before_ns / 3));
}

#[test]
fn what_nobody_waits_for_saves_nothing() {
    let of = |server_us: i64, gap_ms: i64, set| Act {
        server_ns: server_us * MS / 1000,
        gap_ns: gap_ms * MS,
        rtt_ns: 0,
        set,
        ..act(READ, 1, "a")
    };
    // One channel of a session is answered each 0.4 ms; beside it another waits for 100 ms.
    let mut rows = vec![of(400, 0, |row| row.set_session_id(7)); 250];
    rows.push(of(100_000, -100, |row| {
        row.set_session_id(7);
        row.set_connection(2);
    }));
    let slow = |rows: &[Act]| {
        let diagnosis = explain(rows);
        let found = found(&diagnosis, Trouble::SlowFilesystem)?;
        Some((found.share, found.replayed))
    };
    assert_eq!(slow(&rows), None);
    // With pauses between them, the other one is waited for in these.
    let mut apart = rows.clone();
    apart[..250].iter_mut().for_each(|act| act.gap_ns = MS / 10);
    apart[250].gap_ns = -100 * MS;
    let (share, _) = slow(&apart).unwrap();
    assert!((0.05..0.25).contains(&share), "{share}");
    // A client that has nothing else to do waits for it.
    let (share, replayed) = slow(&rows[200..]).unwrap();
    assert!(replayed == 1 && (0.7..0.85).contains(&share), "{share} {replayed}");
    // Four in flight that are served one by one all gain by what each takes less.
    let full = |row: &mut Operation| {
        row.set_outstanding(3);
        row.set_busy_ns(10 * MS);
    };
    let (share, replayed) = slow(&vec![of(40_000, -30, full); 100]).unwrap();
    assert!(replayed == 100 && share > 0.9, "{share} {replayed}");
}

#[test]
fn what_is_saved_does_not_depend_on_where_it_was_recorded() {
    // At the server, 20 ms from the client.
    let at_server =
        Connection { server_rtt_ns: Some(0), client_rtt_ns: Some(20 * MS), ..line(0, 1 << 20) };
    let rows = vec![Act { server_ns: 30 * MS, rtt_ns: 0, ..act(QUERY_INFO, 1, "a") }; 40];
    let share = |diagnosis: Diagnosis| found(&diagnosis, Trouble::SlowFilesystem).unwrap().share;
    let (there, here) = (share(explain_on(&rows, at_server)), share(explain(&rows)));
    assert!((there - here).abs() < 1e-6 && here > 0.95, "{there} {here}");
}

#[test]
fn no_more_is_saved_than_a_client_waited() {
    fn on(row: &mut Operation, connection: u64, session: u64) {
        row.set_connection(connection);
        row.set_session_id(session);
    }
    // One session on four channels that are all busy, and another whose server is slow.
    let many = |channel: u64, gap_ns| {
        let set: fn(&mut Operation) = match channel {
            1 => |row| on(row, 1, 1),
            2 => |row| on(row, 2, 1),
            3 => |row| on(row, 3, 1),
            _ => |row| on(row, 4, 1),
        };
        Act { server_ns: MS / 10, rtt_ns: 50 * MS, gap_ns, set, ..act(READ, channel, "a") }
    };
    let slow = Act {
        server_ns: 50 * MS,
        rtt_ns: MS / 10,
        gap_ns: -50 * MS - MS / 10,
        set: |row| on(row, 9, 9),
        ..act(READ, 9, "b")
    };
    let each = 50 * MS + MS / 10;
    let round = [many(1, 0), many(2, -each), many(3, -each), many(4, -each), slow];
    let diagnosis = explain(&vec![round; 40].concat());
    let slow = &diagnosis.findings[0];
    let each = slow.saved_ns / slow.operations as i64;
    assert!(slow.replayed >= 30 && (49 * MS..=50 * MS).contains(&each), "{slow:?}");
}

#[test]
fn tcp_goes_slower_after_losses() {
    // Of 100 segments one is lost: 12.2 of 1,460 bytes are in flight, in each 20 ms.
    let lossy = |lost| Connection {
        client_mss: Some(1460),
        server_mss: Some(1460),
        packets_to_client: 30_000,
        retransmissions_to_client: lost,
        ..line(20, 4 << 20)
    };
    let rows = long_reads(|number| 800 + 150 * (number as i64 % 7));
    let diagnosis = explain_on(&rows, lossy(300));
    let slower = found(&diagnosis, Trouble::Loss).unwrap();
    assert_eq!(slower.confidence, Confidence::Medium);
    assert!(slower.share > 0.8 && figure(slower, "rate_afterwards") > 5e6, "{slower:?}");
    // So few losses allow more, so many less.
    for lost in [0, 3, 3_000] {
        assert_eq!(found(&explain_on(&rows, lossy(lost)), Trouble::Loss), None, "{lost}");
    }
}

#[test]
fn smb1_asks_about_paths_without_an_open() {
    const TRANSACTION2: u16 = 0x32;
    const QUERY_PATH_ALL: u32 = 0x5_0107;
    const FIND_FIRST_BOTH: u32 = 0x1_0104;
    fn smb1(row: &mut Operation, detail: u32, status: u32) {
        row.set_protocol(1);
        row.set_command(code::command(1, TRANSACTION2));
        row.set_detail(code::detail(code::Detail::Transaction2, detail));
        row.set_status(status);
    }
    let asks = |number: u64| {
        let set: fn(&mut Operation) = match number % 3 {
            0 => |row| smb1(row, QUERY_PATH_ALL, 0),
            1 => |row| smb1(row, FIND_FIRST_BOTH, 0),
            _ => |row| smb1(row, QUERY_PATH_ALL, NOT_FOUND),
        };
        Act { set, rtt_ns: 20 * MS, ..act(0, NO_HANDLE, "a\\b") }
    };
    let diagnosis = explain(&(0..60).map(asks).collect::<Vec<_>>());
    for trouble in [Trouble::RepeatedLookups, Trouble::RepeatedListings, Trouble::FailingLookups] {
        let share = found(&diagnosis, trouble).map(|found| found.share);
        assert!(share.is_some_and(|share| (0.3..0.34).contains(&share)), "{trouble:?} {share:?}");
    }
}

fn wild() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -10..10_i64, Just(i64::MAX), Just(i64::MIN)]
}

proptest! {
    #[test]
    fn no_nonsense_in_a_file_stops_it(
        numbers in prop::collection::vec((wild(), wild(), wild(), wild(), 0..12_usize), 1..40),
    ) {
        let mut builder = OperationBuilder::new(None).unwrap();
        for (start, elapsed, part, bytes, kind) in numbers {
            let commands = [
                CREATE, CLOSE, FLUSH, READ, WRITE, LOCK, QUERY_DIRECTORY, QUERY_INFO, NEGOTIATE,
                OPLOCK_BREAK, 17, 11,
            ];
            let mut row = Operation::default();
            row.set_protocol(2);
            row.set_command(code::command(2, commands[kind]));
            row.set_handle(1);
            row.set_status(if bytes % 3 == 0 { NOT_FOUND } else { 0 });
            row.set_path(builder.names.path.intern("x"));
            row.set_offset(bytes as u64);
            row.set_transferred_bytes(bytes as u64);
            row.set_response_wire_bytes(bytes as u64);
            row.set_outstanding(bytes as u32);
            row.set_request_start(start);
            row.set_elapsed_ns(elapsed);
            row.set_busy_ns(elapsed);
            row.set_turnaround_ns(part);
            row.set_server_ns(part);
            row.set_response_transfer_ns(part);
            row.set_request_transfer_ns(part);
            row.set_client_gap_ns(part);
            row.set_flush_ns(part);
            row.set_queue_ns(elapsed);
            row.set_recovery_ns(part);
            row.set_credits_requested(bytes as u16);
            row.set_credits_granted(kind as u16);
            row.set_waits(part % 2 == 0);
            builder.append(&[row]);
        }
        let mut explain = Explain::with_gains();
        explain.operations(&builder.finish().unwrap()).unwrap();
        for one in explain.finish().unwrap().findings {
            prop_assert!(one.share.is_finite() && one.share >= 0.0, "{:?}", one);
        }
    }
}

//! Diagnoses: each trouble is found where it is, and not where it nearly is.

// A test may panic.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use smbscope_event::builder::OperationBuilder;
use smbscope_event::code;
use smbscope_event::operation::{self, Operation};
use smbscope_event::tables::{Connection, Coverage};
use smbscope_model::explain::{About, COLUMNS, Confidence, Diagnosis, Explain, Finding, Trouble};

const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const FLUSH: u16 = 7;
const READ: u16 = 8;
const WRITE: u16 = 9;
const LOCK: u16 = 10;
const QUERY_DIRECTORY: u16 = 14;
const QUERY_INFO: u16 = 16;
const NEGOTIATE: u16 = 0;
const OPLOCK_BREAK: u16 = 18;
const MS: i64 = 1_000_000;
const NOT_FOUND: u32 = 0xc000_0034;

/// One operation: its command, what the server takes, on which open and path.
#[derive(Clone)]
struct Act {
    command: u16,
    server_ns: i64,
    handle: u64,
    path: &'static str,
    gap_ns: i64,
    rtt_ns: i64,
    set: fn(&mut Operation),
}

fn act(command: u16, handle: u64, path: &'static str) -> Act {
    Act { command, server_ns: MS / 10, handle, path, gap_ns: 0, rtt_ns: MS / 5, set: |_| () }
}

/// One after the other, each when the one before was answered.
fn explain(acts: &[Act]) -> Diagnosis {
    let mut builder = OperationBuilder::new(None).unwrap();
    let mut at = 1_000_000_000_000;
    for (number, act) in acts.iter().enumerate() {
        at += act.gap_ns;
        let mut row = Operation::default();
        row.set_operation(number as u64);
        row.set_recording(builder.names.recording.intern("run"));
        row.set_client(builder.names.client.intern("10.0.0.1"));
        row.set_share(builder.names.share.intern("\\\\server\\share"));
        row.set_path(builder.names.path.intern(act.path));
        row.set_connection(1);
        row.set_protocol(2);
        row.set_command(code::command(2, act.command));
        if act.command == CREATE {
            row.set_detail(code::detail(code::Detail::Disposition, 1));
        }
        row.set_handle(act.handle);
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
    let mut explain = Explain::new();
    explain.operations(&builder.finish().unwrap()).unwrap();
    explain.finish()
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
fn names_that_are_not_there() {
    let missing = |path| Act { set: |row| row.set_status(NOT_FOUND), ..act(CREATE, 0, path) };
    let diagnosis = explain(&vec![missing("desktop.ini"); 20]);
    let failing = found(&diagnosis, Trouble::FailingLookups).unwrap();
    assert_eq!((failing.operations, figure(failing, "failed_lookups")), (19, 20.0));
    let once: Vec<_> = ["a", "b", "c", "d"].map(missing).to_vec();
    assert_eq!(found(&explain(&once), Trouble::FailingLookups), None);
}

#[test]
fn folders_that_are_listed_again() {
    let list = |handle| {
        [
            act(CREATE, handle, "folder"),
            act(QUERY_DIRECTORY, handle, "folder"),
            act(QUERY_DIRECTORY, handle, "folder"),
            act(CLOSE, handle, "folder"),
        ]
    };
    let again: Vec<_> = (0..10).flat_map(list).collect();
    let diagnosis = explain(&again);
    assert_eq!(found(&diagnosis, Trouble::RepeatedListings).unwrap().operations, 18);
    assert_eq!(found(&explain(&list(1)), Trouble::RepeatedListings), None);
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
    let with = |outstanding: fn(u64) -> u32, server_ns: fn(u64) -> i64| {
        let mut rows = vec![act(READ, 1, "a"); 200];
        for (number, act) in rows.iter_mut().enumerate() {
            act.server_ns = server_ns(number as u64);
            act.set = if outstanding(number as u64) == 0 {
                |row| row.set_outstanding(0)
            } else {
                |row| row.set_outstanding(8)
            };
        }
        explain(&rows)
    };
    let every_fifth = |number| if number % 5 == 0 { 0 } else { 8 };
    let queue = with(every_fifth, |number| if number % 5 == 0 { MS } else { 9 * MS });
    let queueing = found(&queue, Trouble::ServerQueueing).unwrap();
    assert!(figure(queueing, "times_as_long_with_most_in_flight") > 8.0, "{queueing:?}");
    assert_eq!(found(&queue, Trouble::SlowFilesystem), None);
    let slow = with(every_fifth, |_| 9 * MS);
    assert_eq!(found(&slow, Trouble::ServerQueueing), None);
    assert_eq!(found(&slow, Trouble::SlowFilesystem).unwrap().confidence, Confidence::Medium);
    // Never alone: nobody can tell.
    let unknown = with(|_| 8, |_| 9 * MS);
    assert_eq!(found(&unknown, Trouble::SlowFilesystem).unwrap().confidence, Confidence::Low);
    let quick = with(every_fifth, |_| MS / 10);
    assert!(quick.findings.iter().all(|one| one.share < 0.05), "{:?}", quick.findings);
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
    let diagnosis = explain(&[logon]);
    let slow = found(&diagnosis, Trouble::SlowLogon).unwrap();
    // One alone may be chance.
    assert_eq!(slow.confidence, Confidence::Low);
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
    let diagnosis = explain.finish();
    assert!(diagnosis.findings.is_empty());
    let about: Vec<_> = diagnosis.notes.iter().map(|note| note.about).collect();
    use About::{Loss, SmallMaximum, Unseen, ZeroWindows};
    assert_eq!(about, [Loss, ZeroWindows, SmallMaximum, Unseen, Unseen]);
    assert!(diagnosis.notes[4].what.starts_with("5 messages"));
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
            row.set_waits(part % 2 == 0);
            builder.append(&[row]);
        }
        let mut explain = Explain::new();
        explain.operations(&builder.finish().unwrap()).unwrap();
        for one in explain.finish().findings {
            prop_assert!(one.share.is_finite() && one.share >= 0.0, "{:?}", one);
        }
    }
}

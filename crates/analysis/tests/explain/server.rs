//! Findings about the server and its files: queueing, storage, flushes, logons, conflicts, stragglers.

use smbscope_analysis::explain::{About, Explain, FindingKind};
use smbscope_findings::Confidence;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Step;

use crate::support::*;

#[test]
fn queueing_grows_with_the_load_and_slow_storage_does_not() {
    // Nine connections with a request each at the same time, and in between one request alone.
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
    let queueing = found(&queue, FindingKind::ServerQueueing).unwrap();
    assert!(figure(queueing, "times_as_long_with_most_in_flight") > 5.0, "{queueing:?}");
    assert_eq!(found(&queue, FindingKind::SlowFilesystem), None);
    let slow = with(30, true, |_| 9 * MS);
    assert_eq!(found(&slow, FindingKind::ServerQueueing), None);
    assert_eq!(
        found(&slow, FindingKind::SlowFilesystem).unwrap().confidence,
        Some(Confidence::Likely)
    );
    // Too few requests alone to decide.
    let unknown = with(15, false, |_| 9 * MS);
    assert_eq!(
        found(&unknown, FindingKind::SlowFilesystem).unwrap().confidence,
        Some(Confidence::Possible)
    );
    let quick = with(30, true, |_| MS / 10);
    let server = [FindingKind::ServerQueueing, FindingKind::SlowFilesystem];
    assert!(server.iter().all(|one| found(&quick, *one).is_none()), "{:?}", quick.findings);
}

#[test]
fn an_interim_response_to_a_read_means_that_it_is_slow() {
    let late = |row: &mut Operation| row.set_pending_at(row.request_start().unwrap() + MS);
    let read = |number: i64| Act { server_ns: (80 + number) * MS, set: late, ..act(READ, 1, "a") };
    let diagnosis = explain(&(0..40).map(read).collect::<Vec<_>>());
    assert!(found(&diagnosis, FindingKind::SlowFilesystem).is_some(), "{:?}", diagnosis.findings);
}

#[test]
fn many_requests_in_flight_do_not_make_a_server_slow() {
    // Sixteen in flight: each is answered 1 ms after the one before, and bytes arrive without a pause.
    let mut rows = vec![act(READ, 1, "big.iso"); 600];
    for act in &mut rows {
        act.server_ns = 16 * MS;
        act.gap_ns = -15 * MS;
        act.rtt_ns = MS / 5;
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
    assert!(diagnosis.findings.iter().all(|one| one.share() < 0.05), "{:?}", diagnosis.findings);
}

#[test]
fn slices_decide_what_the_server_does() {
    let slow = |set: fn(&mut Operation)| {
        let write = Act { server_ns: 10 * MS, rtt_ns: MS / 5, set, ..act(WRITE, 1, "a") };
        explain(&vec![write; 30])
    };
    for (trouble, set) in [
        (
            FindingKind::ServerQueueing,
            (|row: &mut Operation| row.set_queue_ns(9 * MS)) as fn(&mut _),
        ),
        (FindingKind::SlowFilesystem, |row| row.set_filesystem_ns(9 * MS)),
        (FindingKind::SlowFilesystem, |row| row.set_io_wait_ns(9 * MS)),
        (FindingKind::SlowFlush, |row| row.set_flush_ns(9 * MS)),
        (FindingKind::Protection, |row| row.set_crypto_in_ns(9 * MS)),
        (FindingKind::LockContention, |row| row.set_lock_wait_ns(9 * MS)),
    ] {
        let diagnosis = slow(set);
        assert_eq!(diagnosis.findings[0].kind, trouble, "{:?}", diagnosis.findings);
        assert_eq!(diagnosis.findings[0].confidence, Some(Confidence::Measured));
        assert!(diagnosis.findings[0].share() > 0.8);
    }
}

#[test]
fn flushes_and_logons_are_not_the_file_system() {
    let flushes = vec![Act { server_ns: 5 * MS, ..act(FLUSH, 1, "a") }; 20];
    let diagnosis = explain(&flushes);
    assert!(found(&diagnosis, FindingKind::SlowFlush).is_some());
    assert_eq!(found(&diagnosis, FindingKind::SlowFilesystem), None);
    let set: fn(&mut Operation) = |row| {
        row.set_write_through(true);
        row.set_transferred_bytes(4096);
    };
    let through = Act { server_ns: 5 * MS, set, ..act(WRITE, 1, "a") };
    let diagnosis = explain(&vec![through; 20]);
    assert!(found(&diagnosis, FindingKind::SlowFlush).is_some());
    assert!(diagnosis.notes.iter().any(|note| note.about == About::WriteThrough));
    let logon = Act { server_ns: 900 * MS, ..act(NEGOTIATE, 0, "") };
    let diagnosis = explain(std::slice::from_ref(&logon));
    let slow = found(&diagnosis, FindingKind::SlowLogon).unwrap();
    // A single one may be chance.
    assert_eq!(slow.confidence, Some(Confidence::Possible));
    assert!(slow.because.contains("from outside"));
    let inside = explain(&[Act { set: |row| row.set_queue_ns(MS), ..logon }]);
    assert!(!found(&inside, FindingKind::SlowLogon).unwrap().because.contains("outside"));
}

/// A load run does not see when the last byte of a write has left its client.
#[test]
fn writes_of_a_load_run_over_distance_are_not_the_servers_time() {
    let found_slow = |set: fn(&mut Operation)| {
        let write = Act { server_ns: 10 * MS, rtt_ns: 20 * MS, set, ..act(WRITE, 1, "a") };
        found(&explain(&vec![write; 40]), FindingKind::SlowFilesystem).is_some()
    };
    assert!(!found_slow(|row| row.set_scenario_run(1)));
    assert!(found_slow(|_| ()));
}

/// The users of a load run log on before its window, and leave after it.
#[test]
fn operations_outside_the_measured_window_do_not_count() {
    let of = |acts: &[Act], start: i64, end: i64| {
        let mut explain = Explain::new();
        explain.steps(&[Step { recording: "run".into(), start, end, ..Step::default() }]);
        explain_with(explain, acts, Vec::new())
    };
    let logon = [Act { server_ns: 900 * MS, ..act(NEGOTIATE, 0, "") }];
    let leave = vec![Act { server_ns: 220 * MS, ..act(TREE_DISCONNECT, NO_HANDLE, "") }; 16];
    let begin = 1_000_000_000_000;
    let inside = of(&logon, begin - MS, begin + MS);
    assert!(inside.findings.iter().any(|one| one.kind == FindingKind::SlowLogon));
    assert_eq!(of(&leave, begin - MS, begin + 10_000 * MS).whole.operations, 16);
    for acts in [&logon[..], &leave] {
        let outside = of(acts, begin + 10_000 * MS, begin + 20_000 * MS);
        assert!(outside.findings.is_empty() && outside.whole.operations == 0);
    }
}

#[test]
fn finds_conflicts_with_other_clients() {
    let conflict = |row: &mut Operation| row.set_status(0xc000_0043);
    let diagnosis = explain(&vec![Act { set: conflict, ..act(CREATE, 0, "a.xlsx") }; 20]);
    assert_eq!(found(&diagnosis, FindingKind::ShareConflicts).unwrap().details.operations, 20);
    let refused = |row: &mut Operation| row.set_status(0xc000_0055);
    let diagnosis = explain(&vec![Act { set: refused, ..act(LOCK, 1, "a.mdb") }; 20]);
    assert_eq!(found(&diagnosis, FindingKind::LockContention).unwrap().details.operations, 20);
    let blocked = |row: &mut Operation| row.set_waits(true);
    let blocked = Act { server_ns: 500 * MS, set: blocked, ..act(LOCK, 1, "a.mdb") };
    let diagnosis = explain(&[blocked, act(QUERY_INFO, 1, "a.mdb")]);
    assert!(found(&diagnosis, FindingKind::LockContention).unwrap().share() > 0.9);
    let later = |row: &mut Operation| row.set_pending_at(row.request_start().unwrap());
    let waits = Act { server_ns: 35 * MS, set: later, ..act(CREATE, 1, "a.docx") };
    let mut rows = vec![waits; 20];
    let unseen = explain(&rows);
    assert_eq!(
        found(&unseen, FindingKind::BreakWaits).unwrap().confidence,
        Some(Confidence::Possible)
    );
    rows.push(notification("a.docx"));
    let diagnosis = explain(&rows);
    let waiting = found(&diagnosis, FindingKind::BreakWaits).unwrap();
    assert_eq!((waiting.confidence, figure(waiting, "breaks")), (Some(Confidence::Likely), 1.0));
    assert_eq!(found(&diagnosis, FindingKind::SlowFilesystem), None);
}

/// A long time that is not that of a timer.
fn scattered(number: usize) -> i64 {
    (60 + number as i64 * 7 % 43) * MS
}

#[test]
fn finds_a_slow_file_or_folder() {
    let rows = |slow: fn(usize) -> bool, path: &'static str| {
        let one = |number| {
            if slow(number) {
                Act { server_ns: scattered(number), ..act(READ, 2, path) }
            } else {
                act(READ, 1, "quick.txt")
            }
        };
        let one = |number| Act { rtt_ns: MS / 5, ..one(number) };
        explain(&(0..400).map(one).collect::<Vec<_>>())
    };
    let each_twentieth = |number| number > 100 && number % 20 == 0;
    let diagnosis = rows(each_twentieth, "slow.txt");
    let late = found(&diagnosis, FindingKind::Stragglers).unwrap();
    assert_eq!((late.details.operations, late.details.paths[0].name.as_str()), (14, "slow.txt"));
    assert!(late.share() > 0.8 && late.what.contains("One file"), "{late:?}");
    // Nothing else is slow.
    assert_eq!(found(&diagnosis, FindingKind::SlowFilesystem), None);
    // Several files of a folder.
    let names = ["slow\\a", "slow\\b", "slow\\c"];
    let one = |number: usize| {
        if number > 100 && number.is_multiple_of(20) {
            Act { server_ns: scattered(number), ..act(READ, 2, names[number / 20 % 3]) }
        } else {
            act(READ, 1, "quick\\a")
        }
    };
    let diagnosis = explain(&(0..400).map(one).collect::<Vec<_>>());
    assert!(found(&diagnosis, FindingKind::Stragglers).unwrap().what.contains("One folder"));
    // Not if everything is slow, or the one file only now and then.
    assert_eq!(found(&rows(|_| true, "slow.txt"), FindingKind::Stragglers), None);
    assert_eq!(found(&rows(each_twentieth, "quick.txt"), FindingKind::Stragglers), None);
}

#[test]
fn finds_a_slow_second() {
    let one = |number| {
        let gap_ns = 20 * MS;
        let server_ns = if (300..310).contains(&number) { scattered(number) } else { MS / 10 };
        Act { server_ns, gap_ns, rtt_ns: MS / 5, ..act(READ, 1, "a") }
    };
    let diagnosis = explain(&(0..600).map(one).collect::<Vec<_>>());
    let late = found(&diagnosis, FindingKind::Stragglers).unwrap();
    assert!(late.what.contains("one second"), "{late:?}");
}

//! Findings about events that did not happen, timers and decisions of one side, each with a near miss.

use smbscope_analysis::explain::{About, Diagnosis, FindingKind};
use smbscope_findings::{Actor, Confidence};
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

use crate::support::*;

const FILE: [u8; 16] = [7; 16];

/// An open that is answered 30 s after its interim response.
fn waiting_open(path: &'static str) -> Act {
    let set = |row: &mut Operation| row.set_pending_at(row.request_start().unwrap() + MS);
    Act { server_ns: 30_000 * MS, set, ..act(CREATE, 2, path) }
}

/// A break of the file's oplock, sent 0.5 ms after the last request, which is then in flight.
fn broken(client: &'static str) -> Act {
    let notification = notification("data.docx");
    let set = |row: &mut Operation| {
        row.clear(smbscope_tables::operation::Column::request_start);
        row.clear(smbscope_tables::operation::Column::elapsed_ns);
        row.clear(smbscope_tables::operation::Column::busy_ns);
        row.set_file_id(FILE);
        row.set_response_frame(8);
    };
    Act { client, set, ..notification }
}

fn holding_open() -> Act {
    Act { set: |row| row.set_file_id(FILE), ..act(CREATE, 1, "data.docx") }
}

/// The rows in the order in which they end: the break and what follows it lie within the open.
fn with_break(answer: Option<Act>) -> Diagnosis {
    let mut rows = vec![holding_open(), broken("10.0.0.9")];
    let mut back_ns = -MS;
    if let Some(answer) = answer {
        back_ns -= answer.server_ns + answer.rtt_ns + answer.gap_ns;
        rows.push(answer);
    }
    rows[1].gap_ns = MS;
    rows.push(Act { gap_ns: back_ns, ..waiting_open("data.docx") });
    explain(&rows)
}

#[test]
fn a_break_without_acknowledgement_is_the_holders_fault() {
    let diagnosis = with_break(None);
    let owed = found(&diagnosis, FindingKind::BreakNotAcknowledged).unwrap();
    assert_eq!((owed.details.operations, owed.confidence), (1, Some(Confidence::Measured)));
    assert_eq!(
        (owner(owed).actor, &owner(owed).names[..]),
        (Actor::Client, &["10.0.0.9".into()][..])
    );
    assert!(owed.because.contains("frame 8"), "{}", owed.because);
    assert_eq!(owed.saved_error_ns(), None, "one operation has no interval");
    assert_eq!(found(&diagnosis, FindingKind::BreakWaits), None);
    assert_eq!(found(&diagnosis, FindingKind::SlowFilesystem), None);
}

#[test]
fn an_acknowledged_break_or_a_close_is_a_wait_for_the_holder() {
    let acknowledge = Act {
        gap_ns: 20_000 * MS,
        client: "10.0.0.9",
        set: |row| row.set_file_id(FILE),
        ..act(OPLOCK_BREAK, NO_HANDLE, "data.docx")
    };
    let close = Act { command: CLOSE, ..acknowledge.clone() };
    for answer in [acknowledge, close] {
        let diagnosis = with_break(Some(answer));
        assert_eq!(found(&diagnosis, FindingKind::BreakNotAcknowledged), None);
        let waits = found(&diagnosis, FindingKind::BreakWaits).unwrap();
        assert_eq!(owner(waits).names, ["10.0.0.9"]);
        assert!(figure(waits, "slowest_acknowledgement") > 19e9);
    }
    // The break of another file is not the cause; 30 s are those of a break that was not seen.
    let other = explain(&[
        Act { path: "other.docx", ..holding_open() },
        Act { path: "other.docx", gap_ns: MS, ..broken("10.0.0.9") },
        Act { gap_ns: -MS, ..waiting_open("data.docx") },
    ]);
    let owed = found(&other, FindingKind::BreakNotAcknowledged).unwrap();
    assert_eq!(
        (owed.confidence, owner(owed).names[0].as_str()),
        (Some(Confidence::Possible), "not in the recording")
    );
}

#[test]
fn equal_durations_are_a_timer_and_scattered_ones_are_not() {
    let rows = |long: fn(i64) -> i64| {
        let one = |number: i64| match number % 5 {
            4 => Act { server_ns: long(number), ..act(QUERY_INFO, 1, "a") },
            _ => act(QUERY_INFO, 1, "a"),
        };
        explain(&(0..50).map(one).collect::<Vec<_>>())
    };
    let diagnosis = rows(|number| 10_000 * MS + number * MS / 10);
    let timer = found(&diagnosis, FindingKind::FixedTimer).unwrap();
    assert_eq!(timer.details.operations, 10);
    assert!((figure(timer, "timer") - 10.003e9).abs() < 2e6, "{timer:?}");
    assert_eq!(found(&diagnosis, FindingKind::SlowFilesystem), None);
    let scattered = rows(|number| (4_000 + number * 331 % 7_000) * MS);
    assert_eq!(found(&scattered, FindingKind::FixedTimer), None);
    assert!(found(&scattered, FindingKind::SlowFilesystem).is_some());
    // Everything that a server does takes 203 ms: its replies leave at the ticks of a timer.
    let kinds = [QUERY_INFO, CLOSE, SET_INFO, READ, WRITE];
    let tick = |number: i64| Act {
        server_ns: 203 * MS + number % 3 * MS / 5,
        ..act(kinds[number as usize % 5], 1, "a")
    };
    let ticks = explain(&(0..30).map(tick).collect::<Vec<_>>());
    assert_eq!(found(&ticks, FindingKind::FixedTimer).unwrap().details.operations, 30);
    // Storage with a constant delay: opens take four calls, reads come from the cache.
    let stored = |number: i64| match number % 4 {
        0 => Act { server_ns: 120 * MS + number * MS / 100, ..act(CREATE, 1, "a") },
        _ => act(READ, 1, "a"),
    };
    let stored = explain(&(0..60).map(stored).collect::<Vec<_>>());
    assert_eq!(found(&stored, FindingKind::FixedTimer), None);
    assert!(found(&stored, FindingKind::SlowFilesystem).is_some());
    // Queries that take 200 ms each are slow: they do the same work.
    let slow = explain(&vec![Act { server_ns: 200 * MS, ..act(QUERY_INFO, 1, "a") }; 40]);
    assert_eq!(found(&slow, FindingKind::FixedTimer), None);
}

/// A request on the client's side of a proxy, and the same within it on the server's side.
fn forwarded(number: i64, after_ms: i64, set: fn(&mut Operation)) -> [Act; 2] {
    let inner = Act {
        client: "10.0.0.5",
        gap_ns: MS,
        rtt_ns: 0,
        server_ns: MS,
        set: |row| {
            row.set_connection(2);
            row.set_session_id(9);
            row.set_server_port(445);
            row.set_message_id(row.operation().unwrap() / 2);
        },
        ..act(QUERY_INFO, 1, "a")
    };
    let outer_ns = (2 + after_ms) * MS + number * 10_000;
    let outer =
        Act { gap_ns: -2 * MS, rtt_ns: 0, server_ns: outer_ns, set, ..act(QUERY_INFO, 1, "a") };
    [inner, outer]
}

#[test]
fn a_proxy_that_holds_replies_has_the_time() {
    let outer: fn(&mut Operation) = |row| {
        row.set_session_id(9);
        row.set_message_id(row.operation().unwrap() / 2);
    };
    let rows = |set| {
        let rows: Vec<_> = (0..20).flat_map(|number| forwarded(number, 500, set)).collect();
        explain_between(&rows)
    };
    let diagnosis = rows(outer);
    let held = found(&diagnosis, FindingKind::ProxyDelay).unwrap();
    assert_eq!(
        (owner(held).actor, owner(held).names.as_slice()),
        (Actor::Proxy, &["10.0.0.5:0".into()][..])
    );
    assert!(held.what.contains("holds replies"), "{}", held.what);
    assert!((figure(held, "timer") - 500.2e6).abs() < 1e6, "{held:?}");
    assert_eq!(found(&diagnosis, FindingKind::SlowFilesystem), None);
    // Other sessions with the same numbers are not the same requests.
    let other = rows(|row| {
        row.set_session_id(8);
        row.set_message_id(row.operation().unwrap() / 2);
    });
    assert_eq!(found(&other, FindingKind::ProxyDelay), None);
}

#[test]
fn parts_of_a_message_that_wait_for_an_acknowledgement() {
    let rows = |of: fn(i64) -> i64| {
        let one = |number: i64| Act {
            rtt_ns: of(number) * MS,
            set: |row| {
                // The request takes all but the last millisecond.
                row.set_request_end(row.response_end().unwrap() - MS);
                row.set_request_wire_bytes(2_000);
                row.derive_durations();
                row.set_server_ns(MS);
            },
            ..act(SET_INFO, 1, "a")
        };
        explain(&(0..20).map(one).collect::<Vec<_>>())
    };
    let diagnosis = rows(|number| 41 + number % 3);
    let parts = found(&diagnosis, FindingKind::DelayedAcknowledgement).unwrap();
    assert_eq!((parts.details.operations, owner(parts).actor), (20, Actor::Client));
    // A slow link takes any time.
    assert_eq!(
        found(&rows(|number| 20 + 10 * (number % 7)), FindingKind::DelayedAcknowledgement),
        None
    );
    // A server that takes 40 ms is not the network.
    let slow = explain(&vec![Act { server_ns: 41 * MS, ..act(SET_INFO, 1, "a") }; 20]);
    assert_eq!(found(&slow, FindingKind::DelayedAcknowledgement), None);
}

#[test]
fn retries_of_the_server_show_in_the_time_of_a_sharing_violation() {
    let refused = Act {
        server_ns: 1_003 * MS,
        set: |row| row.set_status(0xc000_0043),
        ..act(CREATE, NO_HANDLE, "a.xlsx")
    };
    let quick = act(CREATE, 1, "b.xlsx");
    let diagnosis = explain(&[vec![quick.clone(); 20], vec![refused.clone(); 5]].concat());
    let conflicts = found(&diagnosis, FindingKind::ShareConflicts).unwrap();
    assert!((figure(conflicts, "time_of_retries") - 1.003e9).abs() < 1e6, "{conflicts:?}");
    assert!(conflicts.remedies.iter().any(|one| one.action.contains("SharingViolationDelay")));
    assert_eq!(found(&diagnosis, FindingKind::FixedTimer), None);
    let at_once = Act { server_ns: MS / 10, rtt_ns: 20 * MS, ..refused };
    let diagnosis = explain(&vec![at_once; 20]);
    let conflicts = found(&diagnosis, FindingKind::ShareConflicts).unwrap();
    assert!(conflicts.figures.is_empty(), "{conflicts:?}");
}

const ENTRIES: [&str; 24] = [
    "folder\\a",
    "folder\\b",
    "folder\\c",
    "folder\\d",
    "folder\\e",
    "folder\\f",
    "folder\\g",
    "folder\\h",
    "folder\\i",
    "folder\\j",
    "folder\\k",
    "folder\\l",
    "folder\\m",
    "folder\\n",
    "folder\\o",
    "folder\\p",
    "folder\\q",
    "folder\\r",
    "folder\\s",
    "folder\\t",
    "folder\\u",
    "folder\\v",
    "folder\\w",
    "folder\\x",
];

#[test]
fn questions_about_each_entry_follow_a_listing() {
    let rows = |used: u16, entries: usize| {
        let mut rows = list_folder(1).to_vec();
        for (number, path) in ENTRIES.iter().take(entries).enumerate() {
            let handle = 10 + number as u64;
            let mut asked = query_file(handle, path);
            asked[0].set = |row| row.set_desired_access(0x80);
            asked[1] = Act {
                set: |row| row.set_detail(code::detail(code::Detail::Information, 0x1_0004)),
                ..act(used, handle, path)
            };
            rows.extend(asked);
        }
        explain(&rows)
    };
    let diagnosis = rows(QUERY_INFO, 24);
    let each = found(&diagnosis, FindingKind::PerEntryRequests).unwrap();
    assert_eq!((figure(each, "entries"), each.details.operations), (24.0, 72));
    assert_eq!(figure(each, "requests_for_each_entry"), 3.0);
    assert!(each.because.contains("FileBasicInformation"), "{}", each.because);
    // Files that are read, and a few files, do not count.
    assert_eq!(found(&rows(READ, 24), FindingKind::PerEntryRequests), None);
    assert_eq!(found(&rows(QUERY_INFO, 8), FindingKind::PerEntryRequests), None);
}

#[test]
fn a_client_that_waits_for_a_file_polls() {
    let rows = |gap: fn(i64) -> i64| {
        let one = |number: i64| Act {
            gap_ns: gap(number) * MS,
            rtt_ns: 20 * MS,
            set: |row| row.set_status(NOT_FOUND),
            ..act(CREATE, NO_HANDLE, "ready.flag")
        };
        explain(&(0..20).map(one).collect::<Vec<_>>())
    };
    let diagnosis = rows(|_| 1_000);
    let polls = found(&diagnosis, FindingKind::Polling).unwrap();
    assert_eq!(figure(polls, "requests"), 20.0);
    assert_eq!(found(&diagnosis, FindingKind::FailingLookups), None, "the same requests");
    assert!((figure(polls, "mean_interval") - 1.0201e9).abs() < 1e6, "{polls:?}");
    // A busy client that asks again and again is not waiting.
    assert_eq!(found(&rows(|_| 0), FindingKind::Polling), None);
    assert_eq!(found(&rows(|number| 100 * (number * number % 17)), FindingKind::Polling), None);
    // A client that works in between does not wait for the file.
    let works = explain(
        &(0..400)
            .map(|number| match number % 20 {
                0 => Act {
                    gap_ns: 1_000 * MS,
                    rtt_ns: 20 * MS,
                    set: |row| row.set_status(NOT_FOUND),
                    ..act(CREATE, NO_HANDLE, "Thumbs.db")
                },
                _ => act(QUERY_INFO, 1, "a"),
            })
            .collect::<Vec<_>>(),
    );
    assert_eq!(found(&works, FindingKind::Polling), None);
    assert!(!works.notes.iter().any(|note| note.about == About::Polling));
    // What costs little is a note.
    let little = explain(
        &(0..10)
            .map(|_| Act {
                gap_ns: 1_000 * MS,
                rtt_ns: MS,
                set: |row| row.set_status(NOT_FOUND),
                ..act(CREATE, NO_HANDLE, "ready.flag")
            })
            .collect::<Vec<_>>(),
    );
    assert_eq!(found(&little, FindingKind::Polling), None);
    assert!(little.notes.iter().any(|note| note.about == About::Polling));
}

#[test]
fn what_no_finding_explains_is_named() {
    let call = Act {
        server_ns: 300 * MS,
        set: |row| row.set_detail(code::detail(code::Detail::Fsctl, 0x0011_c017)),
        ..act(11, 1, "srvsvc")
    };
    let mut rows: Vec<_> =
        (0..6).map(|number| Act { server_ns: (300 + 70 * number) * MS, ..call.clone() }).collect();
    rows.iter_mut().for_each(|act| act.path = "srvsvc");
    let diagnosis = explain_of_pipe(&rows);
    let rest = diagnosis.unexplained.unwrap();
    assert!(rest.share > 0.9, "{rest:?}");
    let first = &rest.kinds[0];
    assert_eq!((first.command.as_str(), first.path.as_deref()), ("Ioctl", Some("srvsvc")));
    assert_eq!(first.detail.as_deref(), Some("FSCTL_PIPE_TRANSCEIVE"));
    // Waiting that a finding explains is not repeated.
    let slow = explain(&vec![Act { server_ns: 50 * MS, rtt_ns: 0, ..act(QUERY_INFO, 1, "a") }; 40]);
    assert!(found(&slow, FindingKind::SlowFilesystem).is_some());
    assert_eq!(slow.unexplained, None);
}

#[test]
fn little_time_is_not_slow() {
    // 20 flushes that take 2 ms each are 40 ms in total.
    let diagnosis = explain(&vec![Act { server_ns: 2 * MS, ..act(FLUSH, 1, "a") }; 20]);
    assert_eq!(found(&diagnosis, FindingKind::SlowFlush), None);
    // 100 ms in a minute are not slow either, unless a person notices one of them.
    let minute = |server_ms: i64, n: usize| {
        let flush = |number| Act {
            server_ns: server_ms * MS,
            gap_ns: if number == 0 { 0 } else { 60_000 / n as i64 * MS },
            ..act(FLUSH, 1, "a")
        };
        let diagnosis = explain(&(0..n).map(flush).collect::<Vec<_>>());
        diagnosis.findings.iter().any(|one| one.kind == FindingKind::SlowFlush)
    };
    assert!(!minute(2, 50));
    assert!(minute(200, 2));
}

/// A slow request of one open, and four quick ones of other opens that were sent while it was in flight.
fn behind(reply_after: i64, same_file: bool) -> Diagnosis {
    let mut rows = Vec::new();
    for _ in 0..5 {
        rows.push(Act { server_ns: 400 * MS, ..act(IOCTL, 9, "slow.bin") });
        let mut back_ns = -390 * MS;
        for number in 0..4 {
            let handle = if same_file { 9 } else { 10 + number as u64 };
            // Sent 15 ms after the slow one, answered after it.
            let server_ns = 385 * MS + reply_after * (number + 1);
            rows.push(Act { server_ns, gap_ns: back_ns, ..act(QUERY_INFO, handle, "quick.txt") });
            back_ns = -(server_ns + 5 * MS);
        }
        rows.push(Act { gap_ns: 20 * MS, ..act(QUERY_INFO, 10, "quick.txt") });
    }
    explain(&rows)
}

#[test]
fn requests_behind_a_slow_one_wait_for_it() {
    let blocked = behind(MS / 20, false);
    let waits = found(&blocked, FindingKind::HeadOfLineBlocking).unwrap();
    assert_eq!(waits.details.operations, 20, "{waits:?}");
    assert!(waits.because.contains("slow.bin (20)"), "{}", waits.because);
    // Each of them takes its own time, or they are blocks of one file.
    assert_eq!(found(&behind(60 * MS, false), FindingKind::HeadOfLineBlocking), None);
    assert_eq!(found(&behind(MS / 20, true), FindingKind::HeadOfLineBlocking), None);
}

#[test]
fn a_request_that_releases_held_replies_is_named() {
    let rows = |echo_gap_ns: i64| {
        let rows = (0..20).flat_map(|number| {
            let [mut inner, mut outer] = forwarded(number, 500, |row| {
                row.set_session_id(9);
                row.set_message_id(row.operation().unwrap() / 3);
            });
            inner.set = |row| {
                row.set_connection(2);
                row.set_session_id(9);
                row.set_server_port(445);
                row.set_message_id(row.operation().unwrap() / 3);
            };
            outer.gap_ns = -2 * MS;
            let echo =
                Act { gap_ns: echo_gap_ns, rtt_ns: 0, server_ns: MS, ..act(ECHO, NO_HANDLE, "") };
            [inner, outer, echo]
        });
        let diagnosis = explain_between(&rows.collect::<Vec<_>>());
        found(&diagnosis, FindingKind::ProxyDelay).unwrap().because.clone()
    };
    let released = rows(-MS / 5);
    assert!(
        released.contains("19 of 19 held replies follow the client's next request"),
        "{released}"
    );
    assert!(!rows(3 * MS).contains("next request"));
}

#[test]
fn a_write_that_breaks_a_lease_waits_for_it_too() {
    let diagnosis = |path: &'static str| {
        let write = Act { server_ns: 30_000 * MS, gap_ns: -MS, ..act(WRITE, 2, path) };
        explain(&[holding_open(), Act { gap_ns: MS, ..broken("10.0.0.9") }, write])
    };
    let waits = diagnosis("data.docx");
    let owed = found(&waits, FindingKind::BreakNotAcknowledged).unwrap();
    assert_eq!(owner(owed).names, ["10.0.0.9"]);
    assert_eq!(found(&waits, FindingKind::SlowFilesystem), None);
    let other = diagnosis("other.docx");
    assert_eq!(found(&other, FindingKind::BreakNotAcknowledged), None);
    assert!(found(&other, FindingKind::SlowFilesystem).is_some());
}

#[test]
fn a_single_refusal_after_a_second_shows_the_retries() {
    let refused = |server_ms: i64| {
        let refused = Act {
            server_ns: server_ms * MS,
            set: |row| row.set_status(0xc000_0043),
            ..act(CREATE, NO_HANDLE, "a.xlsx")
        };
        let diagnosis = explain(&[vec![act(CREATE, 1, "b.xlsx"); 20], vec![refused]].concat());
        !found(&diagnosis, FindingKind::ShareConflicts).unwrap().figures.is_empty()
    };
    assert!(refused(1_010));
    assert!(!refused(700));
}

#[test]
fn streams_that_are_read_for_each_entry_are_questions() {
    let streams: Vec<&'static str> =
        ENTRIES.iter().map(|path| &*format!("{path}:AFP_AfpInfo").leak()).collect();
    let mut rows = list_folder(1).to_vec();
    for (number, path) in streams.iter().enumerate() {
        let handle = 10 + number as u64;
        rows.extend([act(CREATE, handle, path), act(READ, handle, path), act(CLOSE, handle, path)]);
    }
    let diagnosis = explain(&rows);
    let each = found(&diagnosis, FindingKind::PerEntryRequests).unwrap();
    assert_eq!((figure(each, "entries"), each.details.operations), (24.0, 72));
    assert!(each.because.contains("AFP_AfpInfo"), "{}", each.because);
}

#[test]
fn a_lease_ends_with_its_last_open() {
    const LEASE: [u8; 16] = [3; 16];
    let open = |handle, set: fn(&mut Operation)| Act { set, ..act(CREATE, handle, "data.docx") };
    let holder = "10.0.0.9";
    let diagnosis = |closes_both: bool| {
        let close = |set: fn(&mut Operation), handle| Act {
            client: holder,
            gap_ns: 10_000 * MS,
            rtt_ns: 0,
            set,
            ..act(CLOSE, handle, "data.docx")
        };
        let of_lease = |row: &mut Operation| {
            row.set_lease_key(LEASE);
            row.clear(smbscope_tables::operation::Column::request_start);
            row.clear(smbscope_tables::operation::Column::elapsed_ns);
            row.clear(smbscope_tables::operation::Column::busy_ns);
        };
        let mut rows = vec![
            Act {
                client: holder,
                ..open(1, |row| {
                    row.set_file_id([1; 16]);
                    row.set_lease_key([3; 16]);
                })
            },
            Act {
                client: holder,
                ..open(2, |row| {
                    row.set_file_id([2; 16]);
                    row.set_lease_key([3; 16]);
                })
            },
            Act { client: holder, gap_ns: MS, set: of_lease, ..notification("data.docx") },
            close(|row| row.set_file_id([1; 16]), 1),
        ];
        let mut back_ns = -(MS + 10_000 * MS + MS / 10);
        if closes_both {
            rows.push(Act { gap_ns: MS, ..close(|row| row.set_file_id([2; 16]), 2) });
            back_ns -= MS + MS / 10;
        }
        rows.push(Act { gap_ns: back_ns, ..waiting_open("data.docx") });
        explain(&rows)
    };
    assert!(found(&diagnosis(false), FindingKind::BreakNotAcknowledged).is_some());
    let both = diagnosis(true);
    assert_eq!(found(&both, FindingKind::BreakNotAcknowledged), None);
    assert!(
        figure(found(&both, FindingKind::BreakWaits).unwrap(), "slowest_acknowledgement") > 9e9
    );
}

/// A break of read caching needs no acknowledgement: a slow write after it is the server's.
#[test]
fn no_request_waits_for_a_break_of_read_caching() {
    let diagnosis = |state: u32| {
        let broken = broken("10.0.0.9");
        let set: fn(&mut Operation) = match state {
            1 => |row| set_lease_break(row, 1),
            _ => |row| set_lease_break(row, 5),
        };
        let write = Act { server_ns: 3_000 * MS, gap_ns: -MS, ..act(WRITE, 2, "data.docx") };
        explain(&[holding_open(), Act { gap_ns: MS, set, ..broken }, write])
    };
    let reads = diagnosis(1);
    assert_eq!(found(&reads, FindingKind::BreakNotAcknowledged), None);
    assert!(found(&reads, FindingKind::SlowFilesystem).is_some());
    assert!(found(&diagnosis(5), FindingKind::BreakNotAcknowledged).is_some());
}

fn set_lease_break(row: &mut Operation, state: u32) {
    row.clear(smbscope_tables::operation::Column::request_start);
    row.clear(smbscope_tables::operation::Column::elapsed_ns);
    row.clear(smbscope_tables::operation::Column::busy_ns);
    row.set_lease_key([3; 16]);
    row.set_lease_requested(code::lease(state));
}

#[test]
fn a_series_of_timers_is_one_finding() {
    // Logons, queries and opens of some hundred milliseconds at most, and those that wait for tries.
    let waits = |seconds: &[i64]| {
        let acts = seconds.iter().enumerate().flat_map(|(place, ms)| {
            let (number, quick) = (place as u64, act(QUERY_INFO, 1, "a"));
            let slow =
                Act { server_ns: ms * MS + place as i64 * MS / 4, ..act(CREATE, number, "b") };
            [quick.clone(), quick, slow]
        });
        let diagnosis = explain(&acts.collect::<Vec<_>>());
        let all = diagnosis.findings.into_iter().filter(|one| one.kind == FindingKind::FixedTimer);
        all.map(|one| {
            let factor = one.figures.iter().find(|figure| figure.name == "factor");
            let timer = (figure(&one, "timer") / 1e8).round() / 10.0;
            (timer, factor.map(|factor| factor.value), one.details.operations, one.because)
        })
        .collect::<Vec<_>>()
    };
    let known = |series: &[i64], words: &str| {
        let found = waits(series);
        let [(timer, factor, n, because)] = &found[..] else { panic!("{series:?}: {found:?}") };
        assert!(because.contains(words), "{because}");
        (*timer, *factor, *n)
    };
    assert_eq!(
        known(&[1_000, 2_000, 4_000, 8_000, 1_000, 1_000], "Windows asks its name servers"),
        (1.0, Some(2.0), 6)
    );
    assert_eq!(known(&[1_000, 3_000, 7_000, 1_000, 1_000], "repeats the SYN"), (1.0, Some(3.0), 5));
    assert_eq!(known(&[1_500, 3_000, 4_500, 4_500, 4_500], "NetBIOS"), (1.5, Some(2.0), 5));
    assert_eq!(known(&[5_000, 10_000, 10_000, 10_000], "resolv.conf"), (5.0, Some(2.0), 4));
    assert_eq!(known(&[3_000, 6_000, 9_000, 3_000, 3_000], "Linux client"), (3.0, Some(2.0), 5));
    assert_eq!(known(&[500, 1_000, 2_000, 1_000, 2_000, 1_000], ""), (0.5, Some(2.0), 6));
    // Near misses: one time only, two times without a law, and times that scatter.
    assert_eq!(known(&[5_000, 5_000, 5_000], "name server"), (5.0, None, 3));
    assert_eq!(waits(&[1_000, 1_000, 1_000, 3_700, 3_700, 3_700]).len(), 2);
    assert_eq!(waits(&[1_000, 1_370, 2_900, 4_300, 6_100]), []);
}

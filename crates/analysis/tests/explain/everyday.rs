//! Everyday trouble after other reports: resets and silence during a request, refused locks and logons, receivers that do
//! not take their data, services behind pipes, round trips in a row; each with a near miss.

use smbscope_analysis::explain::{Diagnosis, FindingKind, State};
use smbscope_findings::{Actor, Confidence};
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::tables::Connection;

use crate::support::*;

/// A request without a reply.
fn unanswered(command: u16) -> Act {
    let set = |row: &mut Operation| {
        row.clear(Column::response_start);
        row.clear(Column::response_end);
        row.clear(Column::elapsed_ns);
        row.clear(Column::busy_ns);
        row.clear(Column::status);
    };
    Act { set, ..act(command, 1, "a") }
}

/// A connection of the client of the operations, which begin at 1,000 s, from and until then, ms.
fn connection(number: u64, from_ms: i64, until_ms: i64, end: &str) -> Connection {
    Connection {
        recording: "run".into(),
        connection: number,
        start: 1_000_000 * MS + from_ms * MS,
        end: 1_000_000 * MS + until_ms * MS,
        end_reason: end.into(),
        reset_by_client: (end == "reset").then_some(false),
        packets_to_client: 9,
        packets_to_server: 9,
        ..far_connection(5, 1 << 20)
    }
}

fn first(diagnosis: &Diagnosis) -> Option<(FindingKind, State)> {
    diagnosis.findings.first().map(|one| (one.kind, diagnosis.state))
}

#[test]
fn a_reset_during_a_request_counts_whenever_the_last_reply_came() {
    // 20 minutes after the last reply, on two connections.
    let request = Act { gap_ns: 1_200_000 * MS, ..unanswered(READ) };
    let on_second = |row: &mut Operation| {
        (unanswered(READ).set)(row);
        row.set_connection(2);
    };
    let rows = [
        act(READ, 1, "a"),
        request.clone(),
        Act { set: |row| row.set_connection(2), ..act(READ, 1, "a") },
        Act { set: on_second, ..request },
    ];
    let until = [1_200_005 + 20, 2_400_010 + 30];
    let diagnosis = explain_of(
        &rows,
        vec![
            connection(1, 0, until[0], "reset"),
            connection(2, until[0] + 400, until[1], "reset"),
            connection(3, until[1] + 400, until[1] + 900, "end of the capture"),
        ],
    );
    assert_eq!(first(&diagnosis), Some((FindingKind::ConnectionReset, State::Broken)));
    // One is chance; without a return it is the end of work.
    let once = explain_of(&rows[..2], vec![connection(1, 0, until[0], "reset")]);
    assert_eq!(first(&once), None);
}

#[test]
fn a_request_at_the_end_of_the_recording_hangs_if_the_recording_goes_on() {
    let rows = [act(READ, 1, "a"), unanswered(CREATE)];
    let of = |until_ms| {
        let own = connection(1, 0, 20, "end of the capture");
        let other = connection(2, 0, until_ms, "end of the capture");
        explain_of(&rows, vec![own, Connection { client: "10.0.0.9".into(), ..other }])
    };
    assert_eq!(first(&of(50_000)), Some((FindingKind::NoReply, State::Broken)));
    assert_eq!(first(&of(5_000)), None);
}

#[test]
fn locks_that_are_tried_again_cost_the_time_until_they_are_granted() {
    let refused = |gap_ms: i64| Act {
        gap_ns: gap_ms * MS,
        set: |row: &mut Operation| row.set_status(0xc000_0055),
        ..act(LOCK, 1, "a.mdb")
    };
    let of = |gap_ms| {
        let mut rows = vec![refused(gap_ms); 40];
        rows.push(Act { gap_ns: gap_ms * MS, ..act(LOCK, 1, "a.mdb") });
        explain(&rows)
    };
    let tried = of(50);
    assert_eq!(first(&tried), Some((FindingKind::LockContention, State::Slow)));
    assert_eq!(owner(&tried.findings[0]).actor, Actor::Application);
    // A person who tries again after seconds.
    assert_eq!(of(4_000).state, State::Healthy);
}

#[test]
fn a_password_that_has_expired_breaks_the_work_of_its_user() {
    let refused = Act {
        set: |row: &mut Operation| row.set_status(0xc000_0071),
        gap_ns: 2_000 * MS,
        ..act(SESSION_SETUP, NO_HANDLE, "")
    };
    let mut rows = vec![act(READ, 1, "a"); 90];
    rows.extend(vec![refused; 3]);
    let diagnosis = explain(&rows);
    assert_eq!(first(&diagnosis), Some((FindingKind::FailingOperations, State::Broken)));
    rows.truncate(91);
    assert_eq!(explain(&rows).state, State::Healthy);
}

#[test]
fn a_receiver_that_closes_its_window_is_the_cause_of_long_messages() {
    let still = |row: &mut Operation| {
        row.set_request_end(row.request_start().unwrap() + 1_500 * MS);
        row.set_transferred_bytes(1 << 20);
        row.derive_durations();
    };
    let write = Act { server_ns: 1_600 * MS, set: still, gap_ns: 900 * MS, ..act(WRITE, 1, "a") };
    let of = |closed| {
        let row = Connection { zero_windows_to_client: closed, ..far_connection(1, 1 << 20) };
        explain_on(&vec![write.clone(); 6], row)
    };
    let closed = of(6);
    let one = found(&closed, FindingKind::ClosedWindow).unwrap();
    assert_eq!((owner(one).actor, closed.state), (Actor::Server, State::Slow));
    assert_eq!(found(&of(0), FindingKind::ClosedWindow), None);
}

#[test]
fn calls_through_a_pipe_that_take_seconds_are_those_of_a_service() {
    let call = |ms| Act { server_ns: ms * MS, ..act(IOCTL, 1, "spoolss") };
    let slow = explain_of_pipe(&vec![call(6_000); 4]);
    let one = found(&slow, FindingKind::SlowCalls).unwrap();
    assert_eq!((owner(one).actor, one.confidence), (Actor::Server, Some(Confidence::Likely)));
    // One call, and calls that wait for an event.
    assert_eq!(found(&explain_of_pipe(&[call(6_000)]), FindingKind::SlowCalls), None);
    assert_eq!(found(&explain_of_pipe(&vec![call(300_000); 4]), FindingKind::SlowCalls), None);
}

/// Requests for different files over 60 ms, each after a pause.
fn rounds(pause_ms: i64) -> Diagnosis {
    let paths = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let one = |number: usize| Act {
        rtt_ns: 60 * MS,
        gap_ns: MS / 100 + pause_ms * MS,
        ..act(
            [CREATE, QUERY_INFO, WRITE, SET_INFO][number % 4],
            number as u64 / 4,
            paths[number / 4 % 8],
        )
    };
    explain_on(&(0..400).map(one).collect::<Vec<_>>(), far_connection(60, 1 << 20))
}

#[test]
fn round_trips_in_a_row_are_a_finding_and_those_of_a_person_are_not() {
    let copy = rounds(0);
    let kinds: Vec<_> = copy.findings.iter().map(|one| one.kind).collect();
    assert!(copy.state == State::Slow, "{kinds:?}");
    assert!(
        kinds.contains(&FindingKind::SerialRequests) || kinds.contains(&FindingKind::NoCompounding),
        "{kinds:?}"
    );
    let person = rounds(400);
    assert_eq!(found(&person, FindingKind::SerialRequests), None);
}

#[test]
fn a_queue_of_equal_services_is_not_a_timer() {
    // Eight clients ask at once; the server answers one after the other, 400 ms each.
    let mut rows = Vec::new();
    for burst in 0..6 {
        for place in 1..=8_i64 {
            let gap_ns = if place == 1 { 5_000 * MS * burst } else { -400 * MS * (place - 1) + MS };
            rows.push(Act {
                gap_ns,
                server_ns: 400 * MS * place,
                rtt_ns: MS,
                ..act(QUERY_DIRECTORY, 1, "a")
            });
        }
    }
    let queue = explain(&rows);
    assert_eq!(found(&queue, FindingKind::FixedTimer), None);
}

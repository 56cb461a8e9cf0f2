//! Findings about the client: its pauses.

use smbscope_analysis::explain::FindingKind;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::support::*;

#[test]
fn finds_a_client_that_pauses_but_not_an_idle_one() {
    let set = |row: &mut Operation| row.set_transferred_bytes(4096);
    let pauses = Act { gap_ns: 50 * MS, rtt_ns: MS / 5, set, ..act(READ, 1, "a") };
    // Pauses alone are those of a player or a person; a client that does not keep up closes its window.
    let closes = |zero_windows_to_server| {
        let row = Connection { zero_windows_to_server, ..Connection::default() };
        explain_on(&vec![pauses.clone(); 40], row)
    };
    assert_eq!(found(&closes(0), FindingKind::SlowClient), None);
    assert_eq!(found(&closes(3), FindingKind::SlowClient), None);
    let diagnosis = closes(30);
    assert_eq!(diagnosis.findings[0].kind, FindingKind::SlowClient);
    assert!(diagnosis.findings[0].share() > 0.9);
    // The first one has no pause: 39 pauses of 50 ms, and 40 operations of 0.3 ms.
    assert_eq!(figure(&diagnosis.findings[0], "mean_pause"), 50e6);
    let idle = 1.0 - 40.0 * 0.3 / (39.0 * 50.0 + 40.0 * 0.3);
    let share = figure(&diagnosis.findings[0], "share_of_time_with_nothing_in_flight");
    assert!((share - idle).abs() < 1e-9, "{share}");
    // The pauses of a client that does not move data are context.
    let browses = Act { set: |_| (), ..pauses.clone() };
    let diagnosis = explain(&vec![browses; 40]);
    assert_eq!(found(&diagnosis, FindingKind::SlowClient), None);
    assert_eq!(diagnosis.pauses.map(|all| (all.pauses, all.sum_ns)), Some((39, 39 * 50 * MS)));
    let away = Act { gap_ns: 60_000 * MS, ..pauses };
    assert_eq!(found(&explain(&vec![away; 40]), FindingKind::SlowClient), None);
}

/// The client of a load run is smbscope: its pauses are the users' schedule.
#[test]
fn pauses_of_simulated_users_are_no_finding() {
    let mut rows = vec![Act { gap_ns: 50 * MS, ..act(QUERY_INFO, 1, "a") }; 40];
    for act in &mut rows {
        act.set = |row| row.set_scenario_run(row.operation().unwrap());
    }
    assert_eq!(found(&explain(&rows), FindingKind::SlowClient), None);
}

#[test]
fn a_channel_does_not_pause_while_another_is_busy() {
    // One of the two connections of a session is idle while the other is busy.
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
    assert_eq!((diagnosis.whole.think_ns, found(&diagnosis, FindingKind::SlowClient)), (0, None));
}

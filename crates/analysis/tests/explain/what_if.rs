//! Savings and gains that replays compute.

use smbscope_analysis::explain::{Diagnosis, Explain, FindingKind};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::support::*;

#[test]
fn remedies_are_replayed() {
    let far = |acts: &[Act]| {
        let far = |act: &Act| Act { rtt_ns: 20 * MS, ..act.clone() };
        explain_on(&acts.iter().map(far).collect::<Vec<_>>(), far_connection(20, 4 << 20))
    };
    // All but the first listing could be cached: 20 ms each, and a little server time.
    let again: Vec<_> = (0..40).flat_map(list_folder).collect();
    let diagnosis = far(&again);
    let repeated = found(&diagnosis, FindingKind::RepeatedListings).unwrap();
    let [gain] = &repeated.details.gains[..] else { panic!("{repeated:?}") };
    assert_eq!((gain.change.as_str(), gain.operations, gain.is_part), ("dirlease", 160, false));
    assert!(gain.waiting_after_ns < gain.waiting_before_ns / 10, "{gain:?}");
    let single = found(&diagnosis, FindingKind::NoCompounding).unwrap();
    assert_eq!(single.details.gains[0].change, "compound=on");
    let left = single.details.gains[0].waiting_after_ns as f64
        / single.details.gains[0].waiting_before_ns as f64;
    assert!((left - 1.0 / 4.0).abs() < 0.05, "{left}");
    // The cost of other block sizes is known if the recording has several.
    let sizes: Vec<_> = (0..200)
        .map(|number| {
            let set: fn(&mut Operation) = if number % 50 < 25 {
                |row| set_sequential(row, 4096)
            } else {
                |row| set_sequential(row, 8192)
            };
            let handle = 1 + number / 25;
            Act { rtt_ns: 20 * MS, set, ..act(READ, handle, "big.iso") }
        })
        .collect();
    let diagnosis = far(&sizes);
    let small = found(&diagnosis, FindingKind::SmallReads).unwrap();
    let changes: Vec<_> = small.details.gains.iter().map(|gain| gain.change.as_str()).collect();
    assert_eq!(changes, ["max-read=1MiB", "depth=8"]);
    assert!(small.details.gains.iter().all(|one| one.waiting_after_ns < one.waiting_before_ns / 3));
}

#[test]
fn a_diagnosis_with_first_gains_differs_only_in_what_it_leaves_out() {
    let far = |row: &mut Operation| set_sequential(row, 4096);
    let reads = (0..200).map(|number| {
        if number % 50 < 25 {
            Act { rtt_ns: 20 * MS, set: far, ..act(READ, 1 + number / 25, "big.iso") }
        } else {
            Act {
                rtt_ns: 20 * MS,
                set: |row| set_sequential(row, 8192),
                ..act(READ, 1 + number / 25, "big.iso")
            }
        }
    });
    let listings = (0..60).flat_map(list_folder).map(|act| Act { rtt_ns: 20 * MS, ..act });
    let acts: Vec<_> = reads.chain(listings).collect();
    let of = |explain| {
        let connection = Connection { connection: 1, ..far_connection(20, 4 << 20) };
        explain_with(explain, &acts, vec![connection])
    };
    let all = of(Explain::with_gains());
    let mut first = of(Explain::with_first_gains(2));
    let gains = |diagnosis: &Diagnosis| -> Vec<usize> {
        diagnosis.findings.iter().map(|found| found.details.gains.len()).collect()
    };
    // A remedy of the second finding, and the third finding, need no replay.
    assert_eq!(gains(&all)[..3], [1, 2, 1]);
    assert_eq!(gains(&first)[..3], [1, 1, 0]);
    assert_eq!(first.findings[1].details.gains[0], all.findings[1].details.gains[0]);
    for (found, whole) in first.findings.iter_mut().zip(&all.findings) {
        found.details.gains.clone_from(&whole.details.gains);
    }
    assert_eq!(first, all);
}

#[test]
fn an_operation_that_no_client_waits_for_saves_nothing() {
    let of = |server_us: i64, gap_ms: i64, set| Act {
        server_ns: server_us * MS / 1000,
        gap_ns: gap_ms * MS,
        rtt_ns: 0,
        set,
        ..act(READ, 1, "a")
    };
    // One channel of a session gets a reply every 0.4 ms, while another one waits for a second.
    let mut rows = vec![of(400, 0, |row| row.set_session_id(7)); 2500];
    rows.push(of(1_000_000, -1000, |row| {
        row.set_session_id(7);
        row.set_connection(2);
    }));
    let slow = |rows: &[Act]| {
        let diagnosis = explain(rows);
        let found = found(&diagnosis, FindingKind::SlowFilesystem)?;
        Some((found.share(), found.details.replayed))
    };
    assert_eq!(slow(&rows), None);
    // If the first one pauses, the client waits for the other one in these pauses.
    let mut apart = rows.clone();
    apart[..2500].iter_mut().for_each(|act| act.gap_ns = MS / 10);
    apart[2500].gap_ns = -1000 * MS;
    let (share, _) = slow(&apart).unwrap();
    assert!((0.05..0.25).contains(&share), "{share}");
    // A client with nothing else in flight waits for it.
    let (share, replayed) = slow(&rows[2000..]).unwrap();
    assert!(replayed == 1 && (0.7..0.85).contains(&share), "{share} {replayed}");
    // Four in flight that are served one at a time all gain what each saves.
    let full = |row: &mut Operation| {
        row.set_outstanding(3);
        row.set_busy_ns(10 * MS);
    };
    let (share, replayed) = slow(&vec![of(40_000, -30, full); 100]).unwrap();
    assert!(replayed == 100 && share > 0.9, "{share} {replayed}");
}

#[test]
fn savings_do_not_depend_on_the_capture_point() {
    // At the server, 20 ms from the client.
    let at_server = Connection {
        server_rtt_ns: Some(0),
        client_rtt_ns: Some(20 * MS),
        ..far_connection(0, 1 << 20)
    };
    let rows = vec![Act { server_ns: 30 * MS, rtt_ns: 0, ..act(QUERY_INFO, 1, "a") }; 40];
    let share =
        |diagnosis: Diagnosis| found(&diagnosis, FindingKind::SlowFilesystem).unwrap().share();
    let (there, here) = (share(explain_on(&rows, at_server)), share(explain(&rows)));
    assert!((there - here).abs() < 1e-6 && here > 0.95, "{there} {here}");
}

#[test]
fn no_more_is_saved_than_a_client_waited() {
    fn on(row: &mut Operation, connection: u64, session: u64) {
        row.set_connection(connection);
        row.set_session_id(session);
    }
    // One session with four busy channels, and another with a slow server.
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
    let each = slow.saved_ns() / slow.details.operations as i64;
    assert!(slow.details.replayed >= 30 && (49 * MS..=50 * MS).contains(&each), "{slow:?}");
}

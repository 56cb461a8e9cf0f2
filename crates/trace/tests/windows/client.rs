//! Requests that the SMB client of Windows sums up.

use smbscope_testing::windows_log::{ClientRequest, client_requests};

use super::captures;
use super::rows::{Row, frames, of_frames, of_log};

/// Command numbers of the events.
const COMMANDS: [(&str, u16); 6] =
    [("Read", 8), ("Write", 9), ("Create", 5), ("Close", 6), ("QueryDirectory", 14), ("Ioctl", 11)];

fn number<T: std::str::FromStr>(row: &Row, column: &str) -> Option<T> {
    row.get(column)?.parse().ok()
}

/// The requests of a capture that the client sums up.
fn requests(rows: &[Row]) -> Vec<ClientRequest> {
    let one = |row: &Row| {
        let name = row.get("command")?;
        let command = COMMANDS.iter().find(|(known, _)| known == name)?.1;
        Some(ClientRequest {
            command,
            start_ns: number(row, "request_start")?,
            end_ns: number(row, "response_end")?,
            bytes: number(row, "transferred_bytes").unwrap_or(0),
            path: row.get("path").cloned().unwrap_or_default(),
        })
    };
    rows.iter().filter_map(one).collect()
}

#[test]
fn rows_of_the_client_are_its_requests() {
    for path in captures(&["smb311.pcapng", "shared/smb311-100-small-files.pcap"]) {
        let mut expected = requests(&of_frames(&frames(&path)).operations);
        expected.sort_by_key(|one| one.end_ns);
        assert!(expected.len() > 5, "{}: {expected:?}", path.display());
        let log = of_log(&client_requests(&expected));
        assert_eq!(log.operations.len(), expected.len());
        let mut ours = log.operations.clone();
        ours.sort_by_key(|row| {
            (number::<i64>(row, "response_end"), number::<u64>(row, "operation"))
        });
        let mut paths = 0;
        for (row, request) in ours.iter().zip(&expected) {
            let command = COMMANDS.iter().find(|(_, one)| *one == request.command).unwrap().0;
            assert_eq!(row.get("command").map(String::as_str), Some(command));
            let total = request.end_ns - request.start_ns;
            let near = |column: &str, share: i64| {
                let value: i64 = number(row, column).unwrap();
                assert!(
                    (value - total * share / 100).abs() <= 1_500,
                    "{column}: {row:?} {request:?}"
                );
            };
            near("elapsed_ns", 100);
            near("request_transfer_ns", if matches!(request.command, 8 | 9) { 10 } else { 9 });
            near("turnaround_ns", 70);
            assert_eq!(row.get("vantage").map(String::as_str), Some("client"));
            if matches!(request.command, 8 | 9) {
                assert_eq!(number(row, "transferred_bytes"), Some(request.bytes));
                assert_eq!(row.get("path").cloned().unwrap_or_default(), request.path);
                paths += usize::from(!request.path.is_empty());
            }
        }
        assert!(paths > 0, "{}", path.display());
        let coverage = log.coverage.unwrap();
        assert_eq!(coverage.operations, expected.len() as u64);
        let notes = coverage.notes.unwrap();
        assert!(notes.contains("a unit of time is 100 ns"), "{notes}");
        assert_eq!(log.events.len(), expected.len().div_ceil(4));
        assert!(log.events.iter().all(|event| event.kind == "credits_exhausted"
            && event.duration_ns.is_some_and(|waited| waited >= 0)));
    }
}

#[test]
fn damaged_logs_of_the_client_end_with_coverage() {
    let requests: Vec<_> = (0..40)
        .map(|number| ClientRequest {
            command: COMMANDS[number % 6].1,
            start_ns: 1_700_000_000_000_000_000 + number as i64 * 1_000_000,
            end_ns: 1_700_000_000_000_500_000 + number as i64 * 1_000_000,
            bytes: 4096,
            path: "a\\b.txt".to_owned(),
        })
        .collect();
    let log = client_requests(&requests);
    assert_eq!(of_log(&log).operations.len(), 40);
    // Every sixteenth byte of the events is turned.
    for place in (0..log.len()).step_by(log.len() / 200) {
        let mut damaged = log.clone();
        damaged[place] ^= 0xff;
        assert!(of_log(&damaged).operations.len() <= 40);
    }
}

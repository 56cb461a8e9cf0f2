//! A log of Windows' SMB client as an input of every command. The log is synthetic (`smbscope_testing::windows_log`).

use serde_json::Value;
use smbscope_testing::windows_log::{ClientRequest, client_requests};

use super::users::rows;
use super::{answer, folder};

/// Requests of one after the other, 1 ms each.
fn log() -> Vec<u8> {
    let commands = [8, 9, 5, 6, 14, 11];
    let requests: Vec<_> = (0..240)
        .map(|number: i64| ClientRequest {
            command: commands[number as usize % 6],
            start_ns: 1_700_000_000_000_000_000 + number * 2_000_000,
            end_ns: 1_700_000_000_001_000_000 + number * 2_000_000,
            bytes: 65_536,
            path: format!("Documents\\file {}.docx", number % 7),
        })
        .collect();
    client_requests(&requests)
}

#[test]
fn requests_of_a_client_are_reported_explained_and_queried() {
    let (_guard, dir) = folder();
    let file = dir.join("client.etl");
    std::fs::write(&file, log()).unwrap();
    let file = file.to_str().unwrap();
    let report: Value =
        serde_json::from_str(&answer(["report", file, "--format", "json"])).unwrap();
    assert_eq!(report["totals"]["operations"], 240, "{}", report["totals"]);
    let text = answer(["report", file, "--all"]);
    for part in ["requests of SMBClient", "file 3.docx", "Read", "a unit of time is 100 ns"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    answer(["explain", file]);
    let sql = "select command, count(*) as n, sum(turnaround_ns) as ns from operations group by command order by command";
    let found = rows(&[file], sql);
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found.contains(&"Read,40,28000000".to_owned()), "{found:?}");
    let sql = "select count(*) as n from server_events where kind = 'credits_exhausted'";
    assert_eq!(rows(&[file], sql), ["60"]);
}

//! A log of the Windows SMB client as an input of every command. The log is synthetic
//! (`smbscope_testing::windows_log`).

use serde_json::Value;
use smbscope_capture::file::{Limits, Reader};
use smbscope_testing::windows_log::{
    ClientRequest, Frame, Layout, client_requests, conversation, server_events,
};

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

/// Frames of a fixture as its server saw them, whose clock is ahead.
fn frames(fixture: &str, ahead_ns: i64) -> Vec<Frame> {
    let path = super::fixture(fixture);
    let mut reader = Reader::open(std::path::Path::new(&path), Limits::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        frames.extend(chunk.frames.iter().map(|frame| Frame {
            time_ns: frame.time_ns / 100 * 100 + ahead_ns,
            bytes: chunk.frame(frame).to_vec(),
        }));
    }
    frames
}

#[test]
fn logs_of_a_client_and_of_its_server_are_joined() {
    const AHEAD_NS: i64 = 2_500_000_000;
    let (_guard, dir) = folder();
    let capture = super::fixture("smb311.pcapng");
    let sql = "select command, request_start, response_end, coalesce(transferred_bytes, 0), coalesce(path, '') from operations \
               where command in ('Read', 'Write', 'Create', 'Close', 'QueryDirectory', 'Ioctl') order by request_start";
    let requests: Vec<_> = rows(&[&capture], sql)
        .iter()
        .map(|row| {
            let fields: Vec<_> = row.splitn(5, ',').collect();
            let number = |place: usize| fields[place].parse::<i64>().unwrap();
            let command = match fields[0] {
                "Read" => 8,
                "Write" => 9,
                "Create" => 5,
                "Close" => 6,
                "QueryDirectory" => 14,
                _ => 11,
            };
            // The client is further away: the server's part is 70 % of its time, after the first tenth.
            let (start, end) = (number(1), number(2));
            let total = 2 * (end - start) + 400_000;
            let start_ns = start - total / 10 - (total * 7 / 10 - (end - start)) / 2;
            let path = fields[4].trim_matches('"').to_owned();
            ClientRequest {
                command,
                start_ns,
                end_ns: start_ns + total,
                bytes: number(3) as u64,
                path,
            }
        })
        .collect();
    let (client, server) = (dir.join("client.etl"), dir.join("server.etl"));
    std::fs::write(&client, client_requests(&requests)).unwrap();
    let exchanges = conversation(&frames("smb311.pcapng", AHEAD_NS));
    std::fs::write(&server, server_events(&exchanges, Layout::Times)).unwrap();
    let (client, server) = (client.to_str().unwrap(), server.to_str().unwrap());
    let report: Value =
        serde_json::from_str(&answer(["report", client, server, "--format", "json"])).unwrap();
    let sides = &report["both_sides"];
    let ahead_ns = sides["server_clock_ahead_ns"].as_i64().unwrap();
    assert!((ahead_ns - AHEAD_NS).abs() < 200_000, "{sides}");
    assert_eq!(sides["client_requests"], requests.len(), "{sides}");
    let joined = sides["joined"].as_u64().unwrap();
    assert!(joined * 10 >= requests.len() as u64 * 9, "{sides}");
    let text = answer(["report", client, server, "--all"]).replace('\n', " ");
    assert!(text.contains("The server's clock is 2.50 s ahead of the client's."), "{text}");
    // One log alone has nothing to join.
    let report: Value =
        serde_json::from_str(&answer(["report", client, "--format", "json"])).unwrap();
    assert!(report["both_sides"].is_null(), "{}", report["both_sides"]);
}

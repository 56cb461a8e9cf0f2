//! Events of the SMB server, in both layouts.

use std::collections::BTreeMap;

use smbscope_tables::slice::Kind;
use smbscope_tables::tables::Channel;
use smbscope_testing::windows_log::{
    Layers, Layout, conversation, join, netsh, server_events, server_messages,
};

use super::captures;
use super::rows::{Row, frames, of_frames, of_log, of_logs};

/// Captures in plaintext without losses.
const CAPTURES: [&str; 5] = [
    "credits.pcapng",
    "lease-break.pcapng",
    "shared/smb311-100-small-files.pcap",
    "shared/smb202-64k-writes.pcap",
    "shared/smb302-signed-leases-compounds.pcap",
];

/// Columns that both know.
const KNOWN: &[&str] = &[
    "protocol",
    "client",
    "client_port",
    "session_id",
    "tree_id",
    "user",
    "share",
    "dialect",
    "command",
    "detail",
    "message_id",
    "status",
    "status_name",
    "path",
    "extension",
    "desired_access",
    "share_access",
    "create_options",
    "oplock_requested",
    "oplock_granted",
    "lease_key",
    "lease_requested",
    "lease_granted",
    "offset_bytes",
    "requested_bytes",
    "transferred_bytes",
    "write_through",
    "unbuffered",
    "credits_requested",
    "credits_granted",
    "signed",
    "request_end",
    "response_start",
    "turnaround_ns",
    "compound_index",
];

/// Operations by connection and message. Responses without a request are in captures only, requests without a
/// response can end at another place.
fn by_message(rows: Vec<Row>) -> BTreeMap<(String, u64, bool), Row> {
    let key = |row: &Row| {
        // The server's events are about SMB2 only.
        (row.get("protocol")? == "2").then_some(())?;
        let message = row.get("message_id")?.parse().ok()?;
        let is_cancel = row.get("command")? == "Cancel";
        Some((row.get("client_port")?.clone(), message, is_cancel))
    };
    rows.into_iter().filter_map(|row| Some((key(&row)?, row))).collect()
}

/// Read and written bytes, Reads and Writes by the client's port.
fn by_port(channels: &[Channel]) -> BTreeMap<u64, (u64, u64, u64)> {
    let mut sums: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
    // Only this port is in the log.
    for row in channels.iter().filter(|row| row.server_port == 445) {
        let sum = sums.entry(row.client_port).or_default();
        sum.0 += row.bytes_read;
        sum.1 += row.bytes_written;
        sum.2 += row.operations;
    }
    sums.retain(|_, sum| *sum != (0, 0, 0));
    sums
}

#[test]
fn channels_of_events_carry_what_those_of_the_capture_do() {
    let names = [&CAPTURES[..], &["shared/smb311-multichannel.pcap"]].concat();
    for path in captures(&names) {
        let frames = frames(&path);
        let exchanges = conversation(&frames);
        let theirs = by_port(&of_frames(&frames).channels);
        for layout in [Layout::Cycles, Layout::Times] {
            let ours = of_log(&server_events(&exchanges, layout)).channels;
            assert_eq!(by_port(&ours), theirs, "{} {layout:?}", path.display());
            let is_bound = |row: &Channel| row.bound_at.is_some() && row.channel.is_some();
            assert!(ours.iter().any(is_bound), "{} {layout:?}", path.display());
        }
    }
}

#[test]
fn rows_of_events_are_those_of_the_capture() {
    for path in captures(&CAPTURES) {
        let frames = frames(&path);
        let (exchanges, capture) = (conversation(&frames), of_frames(&frames));
        for layout in [Layout::Cycles, Layout::Times] {
            let what = format!("{} {layout:?}", path.display());
            let log = of_log(&server_events(&exchanges, layout));
            let mut theirs = capture.with(&[KNOWN, &["server_port"]].concat());
            // Only this port is in the log.
            theirs.retain_mut(|row| row.remove("server_port").is_some_and(|port| port == "445"));
            let (ours, theirs) = (by_message(log.with(KNOWN)), by_message(theirs));
            let (mut compared, mut differences) = (0, Vec::new());
            for (key, theirs) in &theirs {
                let Some(ours) = ours.get(key) else {
                    differences.push(format!("{key:?} is missing: {theirs:?}"));
                    continue;
                };
                compared += 1;
                // The bytes of the interim response are in no event.
                let is_pending = capture.operations.iter().any(|row| {
                    row.contains_key("async_id")
                        && row.get("message_id") == theirs.get("message_id")
                });
                // Each member of a compound has times of its own, as from a probe.
                let is_member = theirs.get("compound_index").is_some_and(|index| index != "0");
                for (column, ours) in ours {
                    let of_time = ["request_end", "response_start", "turnaround_ns"];
                    // The events have the tree of a referral request, whose path is that of a namespace.
                    let is_referral = column == "share"
                        && theirs.get("detail").is_some_and(|it| it.contains("REFERRALS"));
                    if is_pending && column == "credits_granted"
                        || is_member && of_time.contains(&column.as_str())
                        || is_referral
                    {
                        continue;
                    }
                    if theirs.get(column) != Some(ours) {
                        differences.push(format!(
                            "{key:?} {column}: {ours:?}, not {:?}",
                            theirs.get(column)
                        ));
                    }
                }
                for column in theirs.keys().filter(|column| !ours.contains_key(*column)) {
                    // Not in the events: what an FSCTL carries, the length of answers without a length, and the
                    // name of a file that a member of the same compound did not open.
                    let is_unknown = match column.as_str() {
                        "requested_bytes" => theirs["command"] == "Ioctl",
                        "transferred_bytes" => ["Ioctl", "QueryDirectory", "ChangeNotify"]
                            .contains(&&*theirs["command"]),
                        "path" => is_member || theirs["command"] == "Ioctl",
                        "extension" => is_member,
                        "compound_index" => true,
                        "credits_granted" => is_pending,
                        _ => false,
                    };
                    if is_unknown {
                        continue;
                    }
                    differences.push(format!("{key:?} {column}: null, not {:?}", theirs[column]));
                }
            }
            assert!(
                differences.is_empty(),
                "{what}: {compared} compared\n{}",
                differences.join("\n")
            );
            assert!(compared > 20, "{what}: {compared}");
            let coverage = log.coverage.unwrap();
            assert_eq!(coverage.messages_unknown, 0, "{what}");
            // The server's work is the whole turnaround.
            let mut with_work = 0;
            for row in &log.operations {
                let sum: i64 = Kind::parts()
                    .filter_map(|kind| row.get(kind.column_name()))
                    .map(|ns| ns.parse::<i64>().unwrap())
                    .sum();
                let Some(turnaround) = row.get("turnaround_ns") else { continue };
                let turnaround: i64 = turnaround.parse().unwrap();
                if row.contains_key("queue_ns") {
                    with_work += 1;
                    assert!((sum - turnaround).abs() <= 8, "{what}: {sum} of {turnaround}");
                    assert_eq!(row["source"], "events");
                    assert_eq!(row["vantage"], "inside");
                }
            }
            assert!(with_work > 20, "{what}: {with_work}");
            assert!(log.slices.iter().all(|slice| slice.hits.is_some()));
            assert_eq!(
                log.slices.iter().any(|slice| slice.cycles.is_some()),
                layout == Layout::Cycles
            );
            let nameless =
                |names: Vec<bool>| names.into_iter().filter(|is_named| !is_named).count();
            assert_eq!(
                nameless(log.sessions.iter().map(|row| row.guid.is_some()).collect()),
                0,
                "{what} {:?}",
                log.sessions
            );
            assert_eq!(
                nameless(log.trees.iter().map(|row| row.guid.is_some()).collect()),
                0,
                "{what} {:?}",
                log.trees
            );
            assert_eq!(
                nameless(log.connections.iter().map(|row| row.guid.is_some()).collect()),
                0,
                "{what}"
            );
            let notes = coverage.notes.unwrap();
            assert!(notes.contains("agree on the layout"), "{notes}");
            assert!(notes.contains(" 100 %"), "{notes}");
        }
    }
}

/// Columns that a log of messages cannot have, or has of its own.
const NOT_IN_MESSAGES: &[&str] = &[
    "recording",
    "capture_file",
    "request_frame",
    "response_frame",
    "pending_frame",
    "tcp_sequence",
    "server",
    "server_port",
    "source",
    "vantage",
    "server_ns",
    "server_error_ns",
    // The first and the last byte of a message have one time.
    "request_start",
    "request_transfer_ns",
    "response_end",
    "response_transfer_ns",
    "elapsed_ns",
    "busy_ns",
    "client_gap_ns",
    "outstanding",
    "recovery_ns",
    // Operations end in another order.
    "operation",
    "connection",
    "handle",
    "compound",
];

#[test]
fn messages_in_plaintext_are_those_of_the_capture() {
    for path in captures(&CAPTURES) {
        let frames = frames(&path);
        let (exchanges, capture) = (conversation(&frames), of_frames(&frames));
        for piece_bytes in [0, 300] {
            let log = of_log(&server_messages(&exchanges, piece_bytes));
            let mut theirs = capture.without(NOT_IN_MESSAGES);
            let ports: Vec<_> = capture.with(&["server_port"]);
            let mut ports = ports.iter();
            theirs.retain(|row| {
                let port = ports.next().and_then(|row| row.get("server_port"));
                port.is_some_and(|port| port == "445") && row["protocol"] == "2"
            });
            let (ours, theirs) = (by_message(log.without(NOT_IN_MESSAGES)), by_message(theirs));
            for (key, theirs) in &theirs {
                assert_eq!(ours.get(key), Some(theirs), "{} {key:?}", path.display());
            }
            assert!(theirs.len() > 20);
            let coverage = log.coverage.unwrap();
            assert!(coverage.format.contains("messages of SMB"), "{}", coverage.format);
            assert_eq!((coverage.messages_malformed, coverage.messages_unknown), (0, 0));
        }
    }
}

#[test]
fn a_damaged_log_of_events_ends_with_a_coverage() {
    let Some(path) = captures(&["credits.pcapng"]).pop() else { return };
    let exchanges = conversation(&frames(&path));
    let mut state = 7_u64;
    for log in [server_events(&exchanges, Layout::Times), server_messages(&exchanges, 100)] {
        for round in 0..60 {
            let mut damaged = log.clone();
            for _ in 0..200 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let place = 4_096 + (state >> 20) as usize % (damaged.len() - 4_096);
                damaged[place] = (state >> 50) as u8;
            }
            damaged.truncate(damaged.len() - 1_000 * round);
            assert!(of_log(&damaged).coverage.is_some() || round > 0);
        }
    }
}

#[test]
fn losses_and_damage_of_a_log_are_in_the_coverage() {
    /// EventsLost and BuffersLost of TRACE_LOGFILE_HEADER, behind the headers of buffer and record.
    const LOST: [std::ops::Range<usize>; 2] = [152..156, 380..384];
    let Some(path) = captures(&["credits.pcapng"]).pop() else { return };
    let frames = frames(&path);
    let exchanges = conversation(&frames);
    let logs = [
        server_events(&exchanges, Layout::Times),
        server_messages(&exchanges, 100),
        netsh(&frames, Layers::default()),
    ];
    for mut log in logs {
        let coverage = of_log(&log).coverage.unwrap();
        assert_eq!((coverage.events_lost, coverage.buffers_lost), (Some(0), Some(0)));
        assert_eq!((coverage.records_damaged, &coverage.cut_off), (0, &None));
        for (place, lost) in LOST.into_iter().zip([1_234_u32, 7]) {
            log[place].copy_from_slice(&lost.to_le_bytes());
        }
        // Within a buffer, and not in what fills it up.
        log.truncate(log.len() / 2 / 4_096 * 4_096 + 300);
        let coverage = of_log(&log).coverage.unwrap();
        assert_eq!((coverage.events_lost, coverage.buffers_lost), (Some(1_234), Some(7)));
        assert!(coverage.records_damaged >= 1);
        let cut_off = coverage.cut_off.unwrap();
        assert!(cut_off.starts_with("damaged at the buffer at byte "), "{cut_off}");
    }
}

#[test]
fn a_server_without_address_is_null() {
    let Some(path) = captures(&["credits.pcapng"]).pop() else { return };
    let exchanges = conversation(&frames(&path));
    let log = of_log(&server_events(&exchanges, Layout::Times));
    assert!(!log.operations.is_empty());
    for row in &log.operations {
        assert!(row.contains_key("client") && row.contains_key("client_port"), "{row:?}");
        assert!(!row.contains_key("server") && !row.contains_key("server_port"), "{row:?}");
    }
    assert!(log.connections.iter().all(|row| row.server == "unknown"));
    assert!(log.channels.iter().all(|row| &*row.server == "unknown"));
    let coverage = log.coverage.unwrap();
    assert_eq!((coverage.vantage.as_deref(), coverage.connections_mid_stream), (Some("inside"), 0));
}

#[test]
fn the_server_adds_its_work_to_operations_in_packets() {
    for path in captures(&CAPTURES) {
        let frames = frames(&path);
        let exchanges = conversation(&frames);
        let capture = of_frames(&frames);
        let packets = netsh(&frames, Layers::default());
        let events = server_events(&exchanges, Layout::Times);
        let log = of_log(&join(&packets, &events));
        // The same in two logs, as `record --print-windows-script` records them.
        let logs = of_logs(&events, Some(&packets));
        assert_eq!((&logs.operations, &logs.slices), (&log.operations, &log.slices));
        let notes = logs.coverage.unwrap().notes.unwrap();
        assert!(notes.starts_with("Joined with other, "), "{notes}");
        let work = ["queue_ns", "processing_ns", "filesystem_ns", "filesystem_slow_ns"];
        let work = [&work[..], &["transport_ns", "transport_slow_ns", "security_ns"]].concat();
        let own =
            [&work[..], &["recording", "capture_file", "server_ns", "server_error_ns"]].concat();
        assert_eq!(log.without(&own), capture.without(&own), "{}", path.display());
        let with_work = log.operations.iter().filter(|row| row.contains_key("queue_ns")).count();
        let answered = capture.operations.iter().filter(|row| {
            row["protocol"] == "2"
                && row["server_port"] == "445"
                && row.contains_key("turnaround_ns")
        });
        let answered = answered.count();
        assert!(with_work * 10 >= answered * 9, "{}: {with_work} of {answered}", path.display());
    }
}

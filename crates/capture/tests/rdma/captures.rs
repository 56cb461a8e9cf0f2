//! Captures from other people: RoCE as tshark sees it, iWARP as a program sees it that reads the
//! streams in another way (`tests/rdma/iwarp.py`). They are read in place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use smbscope_capture::file::{Limits, Reader};

use crate::support::decode::{Decoded, assert_same, decode as decode_bytes, decode_files, single};
use crate::{Row, TRANSPORT};

/// What `tshark -Y smb2 -T fields -e frame.number -e smb2.cmd -e smb2.msg_id -e
/// smb2.flags.response -e smb2.nt_status` of version 4.0.17 prints for the capture.
const TSHARK: &str = include_str!("roce-frames.tsv");
/// The compound in this frame is the third fragment of its message: tshark shows the last frame
/// of a message, rows have the first.
const LAST_FRAGMENT: u64 = 80;
const FIRST_FRAGMENT: u64 = 78;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn capture(name: &str) -> Option<PathBuf> {
    let shared =
        std::env::var_os("SMBSCOPE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let path = shared.join("captures").join(name);
    if !path.is_file() {
        smbscope_testing::skip!("{} is not there", path.display());
        return None;
    }
    Some(path)
}

fn decode(path: PathBuf) -> Decoded {
    decode_files(vec![path], &single()).unwrap()
}

fn number(row: &Row, column: &str) -> Option<u64> {
    row.get(column).map(|value| value.parse().unwrap())
}

/// The codes of the commands in the captures.
fn code(row: &Row) -> u64 {
    let names = [
        "Negotiate",
        "SessionSetup",
        "Logoff",
        "TreeConnect",
        "TreeDisconnect",
        "Create",
        "Close",
        "Flush",
        "Read",
        "Write",
        "Lock",
        "Ioctl",
        "Cancel",
        "Echo",
        "QueryDirectory",
        "ChangeNotify",
        "QueryInfo",
    ];
    names.iter().position(|name| *name == row["command"]).unwrap() as u64
}

/// Frame, command, message id, and the status of a reply.
type Seen = (u64, u64, u64, Option<u64>);

fn seen(decoded: &Decoded) -> Vec<Seen> {
    let mut out = Vec::new();
    for row in decoded.rows() {
        let id = number(&row, "message_id").unwrap();
        let request = number(&row, "request_frame").unwrap();
        let frame = if request == FIRST_FRAGMENT { LAST_FRAGMENT } else { request };
        out.push((frame, code(&row), id, None));
        if let Some(frame) = number(&row, "response_frame") {
            out.push((frame, code(&row), id, number(&row, "status")));
        }
    }
    out.sort_unstable();
    out
}

fn parse(table: &str) -> Vec<Seen> {
    let mut out = Vec::new();
    for line in table.lines() {
        let cells: Vec<Vec<&str>> =
            line.split('\t').map(|cell| cell.split(',').collect()).collect();
        let [frame, commands, ids, replies, statuses] = &cells[..] else { panic!("{line}") };
        for (index, command) in commands.iter().enumerate() {
            let status = statuses[index.min(statuses.len() - 1)].trim_start_matches("0x");
            let status = (replies[index] == "1").then(|| u64::from_str_radix(status, 16).unwrap());
            let [frame, command, id] =
                [frame[0], command, ids[index]].map(|text| text.parse().unwrap());
            out.push((frame, command, id, status));
        }
    }
    out.sort_unstable();
    out
}

#[test]
fn rows_of_roce_agree_with_tshark() {
    let Some(path) = capture("smbdirect-roce-write.pcapng.gz") else { return };
    let decoded = decode(path.clone());
    assert_eq!(seen(&decoded), parse(TSHARK));
    let rows = decoded.rows();
    let writes: Vec<_> = rows.iter().filter(|row| row["command"] == "Write").collect();
    assert_eq!(writes.len(), 4);
    assert!(writes.iter().all(|row| row["requested_bytes"] == "16384"));
    assert!(writes.iter().all(|row| !row.contains_key("status")), "none was answered");
    // Four connections, each ended after six repetitions of its RDMA Read; the capture ends during
    // the fourth.
    let pairs: Vec<_> = (decoded.connections.iter())
        .map(|row| {
            let pairs = (row.queue_pair_client.unwrap(), row.queue_pair_server.unwrap());
            (pairs, row.rdma_reads, row.rdma_bytes, row.retransmissions_to_client, &*row.end_reason)
        })
        .collect();
    let end = "end of the capture";
    let expected = [
        ((0x11, 0x22a3), Some(1), Some(0), 6, "fin"),
        ((0x12, 0x22a4), Some(1), Some(0), 6, "fin"),
        ((0x13, 0x22a5), Some(1), Some(0), 6, "fin"),
        ((0x14, 0x22a6), Some(1), Some(0), 1, end),
    ];
    assert_eq!(pairs, expected);
    let coverage = &decoded.coverage[0];
    // tshark: 227 InfiniBand frames, 93 of them SMB Direct.
    assert_eq!((coverage.frames_roce, coverage.frames_roce_other), (227, 0));
    assert_eq!(coverage.smb_direct_messages, 93);
    assert_eq!((coverage.smb_direct_unknown, coverage.smb_direct_given_up), (0, 0));

    let tshark = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(["-Y", "smb2", "-T", "fields", "-e", "frame.number", "-e", "smb2.cmd"])
        .args(["-e", "smb2.msg_id", "-e", "smb2.flags.response", "-e", "smb2.nt_status"])
        .output();
    match tshark {
        Ok(output) if output.status.success() => {
            assert_eq!(seen(&decoded), parse(&String::from_utf8(output.stdout).unwrap()));
        }
        _ => smbscope_testing::skip!("tshark is not installed"),
    }
}

/// The capture as pcap, with as many copies of each frame as `copies` says, each 1 µs after the one before.
fn rewritten(path: &Path, mut copies: impl FnMut(&[u8]) -> usize) -> Vec<u8> {
    let mut reader = Reader::open(path, Limits::default()).unwrap();
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        out.extend(word.to_le_bytes());
    }
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        for frame in &chunk.frames {
            let bytes = chunk.frame(frame);
            for copy in 0..copies(bytes) {
                let time_ns = frame.time_ns + 1_000 * copy as i64;
                let (seconds, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
                let length = bytes.len() as u32;
                for word in [seconds as u32, rest as u32, length, length] {
                    out.extend(word.to_le_bytes());
                }
                out.extend_from_slice(bytes);
            }
        }
    }
    out
}

/// A mirror port shows each packet twice; repeated requests have copies, too.
#[test]
fn copies_of_roce_packets_count_once() {
    let Some(path) = capture("smbdirect-roce-write.pcapng.gz") else { return };
    let (once, twice) = (decode(path.clone()), decode_bytes(&rewritten(&path, |_| 2), &single()));
    let columns = [TRANSPORT, &["recording", "capture_file", "operation"]].concat();
    let rows = |decoded: &Decoded| decoded.rows_without(&columns);
    assert_same(&rows(&once), &rows(&twice), "each packet twice");
    assert_eq!(once.coverage[0].retransmissions, 19);
    assert_eq!(twice.coverage[0].retransmissions, 19);
    assert!(twice.coverage[0].frames_repeated > 0);
}

/// Mid-stream: without the connection manager's packets, the queue pairs are found by their
/// acknowledgements.
#[test]
fn rows_of_roce_do_not_need_the_connection_manager() {
    const PORTS: &[&str] = &["client_port", "server_port"];
    let Some(path) = capture("smbdirect-roce-write.pcapng.gz") else { return };
    let mut left_out = 0;
    let out = rewritten(&path, |bytes| {
        // Datagrams to queue pair 1, behind 42 bytes of Ethernet, IPv4 and UDP.
        let is_managed = bytes.get(36..38) == Some(&[0x12, 0xb7]) && bytes.get(42) == Some(&0x64);
        left_out += usize::from(is_managed);
        usize::from(!is_managed)
    });
    assert_eq!(left_out, 18);
    let whole = decode(path);
    let alone = decode_bytes(&out, &single());
    let columns = [TRANSPORT, PORTS, &["recording", "capture_file", "operation"]].concat();
    let sorted = |decoded: &Decoded| {
        let mut rows = decoded.rows_without(&columns);
        rows.sort();
        rows
    };
    assert_same(&sorted(&whole), &sorted(&alone), "without the connection manager");
    for (one, other) in whole.connections.iter().zip(&alone.connections) {
        assert_eq!(one.queue_pair_client, other.queue_pair_client);
        assert_eq!(one.queue_pair_server, other.queue_pair_server);
        assert_eq!((&*one.client, one.rdma_reads), (&*other.client, other.rdma_reads));
        assert_eq!(one.retransmissions_to_client, other.retransmissions_to_client);
    }
}

#[test]
fn rows_of_iwarp_agree_with_a_second_reader() {
    let Some(path) = capture("smbdirect-iwarp.pcapng.gz") else { return };
    let decoded = decode(path.clone());
    let output = Command::new("python3").arg(root().join("tests/rdma/iwarp.py")).arg(path).output();
    let Ok(output) = output else {
        smbscope_testing::skip!("python3 is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();

    let mut expected = Vec::new();
    let mut wire_bytes: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line[0] == "smb2") {
        let [port, command, id, reply, status, bytes] =
            [1, 2, 3, 4, 5, 6].map(|at| line[at].parse::<u64>().unwrap());
        expected.push((port, command, id, (reply == 1).then_some(status)));
        *wire_bytes.entry(format!("{port} {reply}")).or_default() += bytes;
    }
    let mut found = Vec::new();
    let mut found_bytes: BTreeMap<String, u64> = BTreeMap::new();
    for row in decoded.rows() {
        let id = number(&row, "message_id").unwrap();
        let port = number(&row, "client_port").unwrap();
        found.push((port, code(&row), id, None));
        if row.contains_key("response_frame") {
            found.push((port, code(&row), id, number(&row, "status")));
        }
        for (reply, column) in ["request_wire_bytes", "response_wire_bytes"].iter().enumerate() {
            let bytes = number(&row, column).unwrap_or(0);
            *found_bytes.entry(format!("{port} {reply}")).or_default() += bytes;
        }
    }
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(found_bytes, wire_bytes);

    let mut sends = 0;
    for line in lines.iter().filter(|line| line[0] == "rdma") {
        let [port, reads, read_bytes, writes, write_bytes, terminates, own] =
            [1, 2, 3, 4, 5, 6, 7].map(|at| line[at].parse::<u64>().unwrap());
        sends += own;
        let row = decoded.connections.iter().find(|row| row.client_port == port).unwrap();
        assert_eq!((row.rdma_reads, row.rdma_writes), (Some(reads), Some(writes)));
        assert_eq!((row.rdma_bytes, row.naks), (Some(read_bytes + write_bytes), Some(terminates)));
    }
    assert_eq!(decoded.coverage[0].smb_direct_messages, sends);
    // The Write that the server fetched, and the one that it refused, which has its data inline.
    let rows = decoded.rows();
    let writes: Vec<_> = (rows.iter().filter(|row| row["command"] == "Write"))
        .map(|row| (&*row["requested_bytes"], row.get("transferred_bytes").map(String::as_str)))
        .collect();
    assert_eq!(writes, [("16384", Some("16384")), ("16384", None)]);
}

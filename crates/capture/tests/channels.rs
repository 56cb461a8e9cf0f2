//! Rows of channels and interfaces from captures: bytes are those of the operations, moments those of
//! the packets, and neither chunks nor threads matter (MS-SMB2 sections 3.2.4.20.10, 3.3.5.5.2).

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use smbscope_capture::{Options, Tables};
use smbscope_tables::tables::Channel;
use smbscope_testing::skip;
use support::decode::{Decoded, decode, decode_files, decoded, single};
use support::packets::{Sending, mixed, pcap};
use support::smb2::{
    MORE_PROCESSING, SESSION_SETUP, SUCCESS, create, created, data, error, negotiate, negotiated,
    read, session_ready, session_setup, write, written,
};
use support::talk::Talk;

const MS: i64 = 1_000_000;
const ACCESS_DENIED: u32 = 0xc000_0022;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

/// Payload read and written by connection, from the rows of operations.
fn of_operations(decoded: &Decoded) -> BTreeMap<u64, (u64, u64, u64)> {
    let mut sums: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
    for row in decoded.rows() {
        let command = row.get("command").map_or("", String::as_str);
        let is_read = command.starts_with("Read") || command == "LockAndRead";
        let is_write = command.starts_with("Write");
        // An acknowledgement of a break has its name in SMB1.
        if !is_read && !is_write || row.get("waits").is_some_and(|waits| waits == "true") {
            continue;
        }
        let sum = sums.entry(row["connection"].parse().unwrap()).or_default();
        let bytes: u64 = row.get("transferred_bytes").map_or(0, |text| text.parse().unwrap());
        *(if is_read { &mut sum.0 } else { &mut sum.1 }) += bytes;
        sum.2 += 1;
    }
    sums
}

fn of_channels(rows: &[Channel]) -> BTreeMap<u64, (u64, u64, u64)> {
    let mut sums: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(row.connection).or_default();
        sum.0 += row.bytes_read;
        sum.1 += row.bytes_written;
        sum.2 += row.operations;
    }
    sums.retain(|_, sum| *sum != (0, 0, 0));
    sums
}

fn captures() -> Vec<PathBuf> {
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let shared = shared.join("captures");
    if !shared.is_dir() {
        skip!("captures of other people are not in {}", shared.display());
    }
    let folders = [file(""), shared];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.to_string_lossy().contains(".pcap"))
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    assert!(paths.len() > 30);
    paths
}

#[test]
fn bytes_are_those_of_the_operations_in_every_capture() {
    let mut channels = 0;
    for path in captures() {
        let decoded = decode_files(vec![path.clone()], &single()).unwrap();
        let name = path.display();
        assert_eq!(of_channels(&decoded.channels), of_operations(&decoded), "{name}");
        // Each connection has a row, whether it carried anything or not.
        let of: BTreeMap<_, _> = decoded.channels.iter().map(|row| (row.connection, row)).collect();
        for connection in &decoded.connections {
            let row = of.get(&connection.connection).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(
                (&*row.client, row.client_port),
                (&*connection.client, connection.client_port)
            );
            assert_eq!(row.transport.as_deref(), connection.transport.as_deref(), "{name}");
        }
        let again: u64 = decoded.channels.iter().filter_map(|row| row.retransmissions).sum();
        let of_tcp = (decoded.connections.iter())
            .filter(|row| matches!(row.transport.as_deref(), Some("tcp" | "iwarp")));
        let sent: u64 =
            of_tcp.map(|row| row.retransmissions_to_server + row.retransmissions_to_client).sum();
        assert_eq!(again, sent, "{name}");
        channels += decoded.channels.len();
    }
    assert!(channels > 500, "{channels}");
}

#[test]
fn threads_and_tables_do_not_matter() {
    for name in ["multichannel.pcapng.gz", "encrypted-bind.pcapng.gz"] {
        let path = vec![file(name)];
        let sorted = |options: &Options| {
            let mut rows = decode_files(path.clone(), options).unwrap().channels;
            rows.sort_by_key(|row| (row.interval_start, row.connection, row.session_id));
            rows
        };
        let one = sorted(&single());
        assert_eq!(one, sorted(&Options { threads: 3, ..Options::default() }));
        let tables = Tables { channels: true, ..Tables::NONE };
        assert_eq!(one, sorted(&Options { tables, ..single() }));
        let without = Options { tables: Tables { channels: false, ..Tables::ALL }, ..single() };
        assert_eq!(sorted(&without), []);
    }
}

/// smbtorture opens 34 connections of one session, of which the server takes 32.
#[test]
fn channels_of_a_session_are_numbered_and_a_refused_one_has_its_status() {
    let decoded = decode_files(vec![file("multichannel.pcapng.gz")], &single()).unwrap();
    let refused: Vec<_> = decoded.channels.iter().filter(|row| row.bind_status.is_some()).collect();
    assert!(!refused.is_empty());
    for row in refused {
        assert_eq!(row.bind_status.as_deref(), Some("STATUS_INSUFFICIENT_RESOURCES"));
        assert_eq!((row.channel, row.bound_at, row.bytes_written), (None, None, 0));
    }
    let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
    for row in decoded.channels.iter().filter(|row| row.bound_at.is_some()) {
        assert!(row.opened_at.unwrap() < row.bound_at.unwrap());
        numbers.insert(row.connection, row.channel.unwrap());
    }
    assert_eq!(numbers.values().max(), Some(&31), "{numbers:?}");
    let offered: Vec<_> = (decoded.interfaces.iter())
        .map(|row| (row.address.as_str(), row.reason.as_str(), row.used))
        .collect();
    // Both addresses have the same number.
    assert_eq!(offered, [("10.45.0.3", "same_interface", false), ("10.45.0.1", "used", true)]);
}

/// Another connection of the session 77, whose binding the server accepts or refuses.
fn channel(port: u16, after_ms: i64, status: u32, more: impl Fn(&mut Talk)) -> (Talk, Sending) {
    let mut talk = Talk::new();
    talk.pass(after_ms * MS);
    talk.exchange(negotiate(0), MS, negotiated(0));
    // Flags of the session setup: binding.
    let bind = |id| session_setup(id, None).session(77).put(66, &[1]);
    talk.exchange(bind(1), MS, session_ready(1, MORE_PROCESSING).session(77));
    let answer = match status {
        SUCCESS => session_ready(2, SUCCESS).session(77),
        status => error(SESSION_SETUP, 2, status).session(77),
    };
    talk.exchange(bind(2), MS, answer);
    more(&mut talk);
    (talk, Sending { client_port: port, ..Sending::default() })
}

fn first() -> (Talk, Sending) {
    let mut talk = Talk::new();
    talk.exchange(negotiate(0), MS, negotiated(0));
    talk.exchange(session_setup(1, None), MS, session_ready(1, MORE_PROCESSING).session(77));
    let setup = session_setup(2, Some("alice")).session(77);
    talk.exchange(setup, MS, session_ready(2, SUCCESS).session(77));
    talk.exchange(create(3, "vm").session(77), MS, created(3, 40).session(77));
    for id in 4..24 {
        talk.exchange(
            write(id, 40, 0, &[7; 1_000]).session(77),
            20 * MS,
            written(id, 1_000).session(77),
        );
    }
    (talk, Sending { client_port: 50_000, ..Sending::default() })
}

fn capture(all: Vec<(Talk, Sending)>) -> Decoded {
    let packets = all.iter().map(|(talk, sending)| sending.aligned(talk)).collect();
    decode(&pcap(&mixed(packets), usize::MAX, false), &single())
}

#[test]
fn a_channel_joins_and_another_is_refused() {
    let reads = |talk: &mut Talk| {
        talk.pass(50 * MS);
        for id in 3..6 {
            let reply = data(id, &[9; 500]).session(77);
            talk.exchange(read(id, 40, 0, 500).session(77), 10 * MS, reply);
        }
    };
    let decoded = capture(vec![
        first(),
        channel(50_001, 100, SUCCESS, reads),
        channel(50_002, 150, ACCESS_DENIED, |_| {}),
    ]);
    let sums = of_channels(&decoded.channels);
    let of = |port: u64| {
        let rows = decoded.channels.iter().filter(move |row| row.client_port == port);
        rows.collect::<Vec<_>>()
    };
    let sum = |port| sums.get(&of(port)[0].connection).copied();
    assert_eq!([sum(50_000), sum(50_001)], [Some((0, 20_000, 20)), Some((1_500, 0, 3))]);
    let joined = of(50_001);
    let last = joined.last().unwrap();
    assert_eq!(
        (last.session_id, last.channel, last.bind_status.as_deref()),
        (Some(77), Some(1), None)
    );
    // Three exchanges of a millisecond after the connection, then 50 ms until the first byte.
    let after = |at: Option<i64>| (at.unwrap() - last.opened_at.unwrap()) / MS;
    assert!((3..5).contains(&after(last.bound_at)), "{}", after(last.bound_at));
    assert!((60..70).contains(&after(last.first_byte_at)), "{}", after(last.first_byte_at));
    let refused = of(50_002);
    assert_eq!(refused[0].bind_status.as_deref(), Some("STATUS_ACCESS_DENIED"));
    assert_eq!((refused[0].session_id, refused[0].channel), (Some(77), None));
    let busy = of(50_000);
    assert!(busy.iter().any(|row| row.round_trip_ns.is_some()));
    assert!(busy.iter().all(|row| row.interval_start % 100_000_000 == 0));
}

/// A path that is cut: its last request has no reply, and the other channel continues.
#[test]
fn a_channel_without_replies_is_lost_if_others_have_some() {
    let lost = |seconds: i64, is_repeated: bool| {
        let (mut talk, sending) = first();
        for id in 24..24 + seconds as u64 {
            let reply = written(id, 1_000).session(77);
            talk.exchange(write(id, 40, 0, &[7; 1_000]).session(77), 1_000 * MS, reply);
        }
        let (other, sending_other) = channel(50_001, 100, SUCCESS, |talk: &mut Talk| {
            let reply = data(3, &[9; 500]).session(77);
            talk.exchange(read(3, 40, 0, 500).session(77), 10 * MS, reply);
            talk.ask(read(4, 40, 0, 500).session(77).framed());
        });
        let mut packets = sending_other.aligned(&other);
        if is_repeated {
            let mut again = packets.last().unwrap().clone();
            again.time += 300 * MS;
            packets.push(again);
        }
        let packets = mixed(vec![sending.aligned(&talk), packets]);
        let decoded = decode(&pcap(&packets, usize::MAX, false), &single());
        let lost = |port: u64| {
            let rows = decoded.channels.iter().filter(|row| row.client_port == port);
            let mut lost = rows.filter_map(|row| row.lost_at.zip(row.lost_reason.clone()));
            let last = lost.next_back();
            last.map(|(_, reason)| reason.into_owned())
        };
        [lost(50_000), lost(50_001)]
    };
    assert_eq!(lost(6, true), [None, Some("silent".to_owned())]);
    // Others get no replies for long enough, or the server is only slow.
    assert_eq!(lost(1, true), [None, None]);
    assert_eq!(lost(6, false), [None, None]);
}

#[test]
fn a_connection_that_moves_nothing_has_rows_for_its_beginning() {
    let mut talk = Talk::new();
    talk.connect();
    let decoded = decoded(&talk);
    // It is opened in one interval and bound in the next.
    assert_eq!(decoded.channels.len(), 2);
    let row = &decoded.channels[1];
    assert_eq!((row.channel, row.first_byte_at, row.bytes_read), (Some(0), None, 0));
    assert!(row.bound_at.is_some() && row.opened_at.is_some());
    assert_eq!(decoded.interfaces, []);
}

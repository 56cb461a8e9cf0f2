//! Conversations over TCP that are cut, reordered, repeated, lost or begin mid-stream: results that
//! must not change do not, and unknown values are counted (RFC 9293 section 3.4, MS-SMB2 section 3).

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use proptest::prelude::*;
use smbscope_capture::Options;
use support::decode::{Row, assert_same, decode, decode_all, single};
use support::packets::{ACK, Packet, RST, Sending, any_size, disturb, mixed, pcap, shuffled};
use support::smb2::{
    SAME, close, closed, compound, create, created, data, information, query_info, read,
};
use support::talk::{EVERYTHING, Talk, everything, noise};
use support::{Dice, smb2};

/// Whole frames.
const ALL: usize = usize::MAX;
/// Columns that depend on a packet's position in the file.
const FRAMES: &[&str] = &["request_frame", "response_frame", "pending_frame"];
/// Columns that repeated and late packets rightly change as well: they select the samples of the round trip.
const ROUND_TRIPS: &[&str] = &[
    "request_frame",
    "response_frame",
    "pending_frame",
    "server_ns",
    "server_error_ns",
    "client_gap_ns",
    "vantage",
    "recovery_ns",
];

fn sent(talk: &Talk) -> Vec<Packet> {
    Sending::default().aligned(talk)
}

fn rows_of(packets: &[Packet], left_out: &[&str]) -> Vec<Row> {
    decode(&pcap(packets, ALL, false), &single()).rows_without(left_out)
}

#[test]
fn everything_is_decoded_as_it_was_said() {
    let decoded = decode(&pcap(&sent(&everything(noise())), ALL, false), &single());
    assert_eq!(decoded.operations(), EVERYTHING);
    let coverage = &decoded.coverage[0];
    assert_eq!((coverage.gaps, coverage.resynchronised, coverage.replies_unmatched), (0, 0, 0));
    // The Cancel has no reply by design.
    assert_eq!((coverage.operations_unanswered, coverage.messages_malformed), (0, 0));
    let rows = decoded.by_id();
    let value = |id: &str, column: &str| rows[&format!("1{id}")].get(column).map(String::as_str);
    assert_eq!(value("7", "transferred_bytes"), Some("65536"));
    assert_eq!(value("7", "path"), Some(r"docs\big.bin"));
    assert_eq!(value("7", "share"), Some(r"\\files\home"));
    assert_eq!(value("7", "user"), Some("ada"));
    assert_eq!(value("7", "elapsed_ns"), Some("2000000"));
    assert_eq!(value("10", "elapsed_ns"), Some("127000"));
    assert_eq!(value("17", "waits"), Some("true"));
    assert_eq!(value("17", "status_name"), Some("STATUS_CANCELLED"));
    assert_eq!(value("18", "async_id"), Some("78"));
    assert_eq!(value("18", "elapsed_ns"), Some("4600000"));
    assert_eq!(value("20", "status_name"), Some("STATUS_OBJECT_NAME_NOT_FOUND"));
    assert_eq!(value("16", "path"), Some("two"));
    assert_eq!(decoded.handles.len(), 5);
    // Also where a later member of a compound, which has no times of its own, opens or closes.
    let (start, end) = (coverage.start.unwrap(), coverage.end.unwrap());
    for handle in &decoded.handles {
        let (opened, closed) = (handle.opened_at.unwrap(), handle.closed_at.unwrap());
        assert!(start < opened && opened <= closed && closed <= end, "{handle:?}");
    }
    for (begun, ended) in (decoded.sessions.iter().map(|row| (row.start, row.end)))
        .chain(decoded.trees.iter().map(|row| (row.start, row.end)))
    {
        assert!(start < begun && begun < ended && ended <= end);
    }
}

#[test]
fn a_keep_alive_is_not_a_retransmission() {
    let packets = sent(&everything(noise()));
    let retransmissions = |add: Option<Packet>| {
        let packets: Vec<_> = packets.iter().cloned().chain(add).collect();
        decode(&pcap(&packets, ALL, false), &single()).coverage[0].retransmissions
    };
    let last = packets.iter().rfind(|one| one.to_server && one.payload.len() > 1).unwrap();
    let again = Packet { time: last.time + 7_200_000_000_000, ..last.clone() };
    let length = again.payload.len();
    let alive = Packet {
        sequence: again.sequence.wrapping_add(length as u32 - 1),
        payload: again.payload[length - 1..].to_vec(),
        ..again.clone()
    };
    assert_eq!(retransmissions(None), 0);
    assert_eq!(retransmissions(Some(alive)), 0);
    assert_eq!(retransmissions(Some(again)), 1);
}

/// All packets; those from that index on arrive later by `ns`.
fn later(packets: &[Packet], from: usize, ns: i64) -> Vec<Packet> {
    let late = |(index, one): (usize, &Packet)| match index < from {
        true => one.clone(),
        false => Packet { time: one.time + ns, ..one.clone() },
    };
    packets.iter().enumerate().map(late).collect()
}

#[test]
fn the_cost_of_losses_is_on_the_operation() {
    const LATE_NS: i64 = 200_000_000;
    let packets = sent(&everything(noise()));
    let rows_with_recovery = |packets: &[Packet]| {
        let decoded = decode(&pcap(packets, ALL, false), &single());
        let rows = decoded.rows();
        let times =
            rows.iter().filter_map(|row| Some((row.get("recovery_ns")?, &row["elapsed_ns"])));
        let times: Vec<(i64, i64)> = times
            .map(|(recovery, elapsed)| (recovery.parse().unwrap(), elapsed.parse().unwrap()))
            .collect();
        let [row] = &decoded.connections[..] else { panic!("{:?}", decoded.connections) };
        (times, [row.recovery_ns_to_server, row.recovery_ns_to_client], row.clone())
    };
    assert_eq!(rows_with_recovery(&packets).0, []);
    // Lost before ReplyTimes: the request is sent again, and answered then.
    let place = packets.iter().rposition(|one| one.to_server && one.payload.len() > 1).unwrap();
    let mut again = later(&packets, place + 1, LATE_NS);
    let repeated = Packet { time: packets[place].time + LATE_NS, ..packets[place].clone() };
    again.insert(place + 1, repeated);
    let (times, [to_server, to_client], row) = rows_with_recovery(&again);
    let [(recovery, elapsed)] = times[..] else { panic!("{times:?}") };
    assert!(recovery >= LATE_NS && recovery <= elapsed, "{recovery} {elapsed}");
    assert!(to_server >= LATE_NS as u64 && to_client == 0, "{row:?}");
    // Recorded twice, nothing was lost.
    let mut twice = packets.clone();
    twice.insert(place + 1, packets[place].clone());
    assert_eq!(rows_with_recovery(&twice).0, []);
    // Lost after ReplyTimes: a part of a reply arrives after the segments that follow it.
    let is_long = |place: usize| {
        (place..place + 3).all(|one| !packets[one].to_server && packets[one].payload.len() > 1000)
    };
    let place = (0..packets.len() - 3).find(|&place| is_long(place)).unwrap();
    let mut late = later(&packets, place + 3, LATE_NS);
    let mut lost = late.remove(place + 1);
    lost.time = late[place + 1].time + LATE_NS - 1_000;
    late.insert(place + 2, lost);
    let (times, [to_server, to_client], _) = rows_with_recovery(&late);
    let [(recovery, elapsed)] = times[..] else { panic!("{times:?}") };
    assert!((LATE_NS - 2_000..=elapsed).contains(&recovery), "{recovery} {elapsed}");
    assert!(to_client.abs_diff(recovery as u64) < 10 && to_server == 0, "{to_client}");
}

#[test]
fn a_compounds_times_stand_on_its_lead() {
    let decoded = decode(&pcap(&sent(&everything(noise())), ALL, false), &single());
    for row in decoded.rows() {
        let Some(index) = row.get("compound_index") else { continue };
        for column in ["elapsed_ns", "turnaround_ns", "request_start", "busy_ns", "server_ns"] {
            assert_eq!(row.contains_key(column), index == "0", "{column} of member {index}");
        }
        let first = ["12", "13", "14"].contains(&row["message_id"].as_str());
        assert_eq!(row["compound_size"], if first { "3" } else { "2" });
    }
}

#[test]
fn notifications_and_blocked_locks_are_not_outstanding() {
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(smb2::create(4, "a"), 100_000, smb2::created(4, 1));
    talk.ask(smb2::notify(5, 1).framed());
    talk.pass(1_000);
    talk.ask(smb2::lock(6, 1).framed());
    talk.pass(100_000);
    talk.answer(smb2::error(smb2::LOCK, 6, smb2::PENDING).asynchronous(6).framed());
    talk.pass(1_000);
    talk.ask(smb2::read(7, 1, 0, 9).framed());
    talk.ask(smb2::read(8, 1, 0, 9).framed());
    talk.pass(50_000);
    talk.answer(smb2::data(7, b"123456789").framed());
    talk.answer(smb2::data(8, b"123456789").framed());
    let rows = decode(&pcap(&sent(&talk), ALL, false), &single()).by_id();
    let outstanding = |id: &str| rows[&format!("1{id}")]["outstanding"].clone();
    assert_eq!([outstanding("6"), outstanding("7"), outstanding("8")], ["0", "0", "1"]);
    assert_eq!(rows["16"]["waits"], "true");
    assert!(!rows["17"].contains_key("waits"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any segmentation, the rows are the same in all columns that do not count frames.
    #[test]
    fn any_split_gives_the_same_rows(seed in any::<u64>(), most in 1_usize..4_000) {
        let talk = everything(noise());
        let expected = rows_of(&sent(&talk), FRAMES);
        let cut = Sending::default().send(&talk, any_size(&mut Dice::new(seed), most));
        assert_same(&expected, &rows_of(&cut, FRAMES), "split");
    }

    /// Nor do order (within one side's bytes at a time), repetition or overlap matter.
    #[test]
    fn any_order_gives_the_same_rows(
        seed in any::<u64>(),
        most in 1_usize..3_000,
        window in 0_usize..12,
        again in 0_usize..60,
    ) {
        let talk = everything(noise());
        let expected = rows_of(&sent(&talk), ROUND_TRIPS);
        let mut dice = Dice::new(seed);
        let cut = Sending::default().send(&talk, any_size(&mut dice, most));
        let disturbed = disturb(&cut, &mut dice, window, again);
        assert_same(&expected, &rows_of(&disturbed, ROUND_TRIPS), "order");
        let decoded = decode(&pcap(&disturbed, ALL, false), &single());
        assert_eq!(decoded.coverage[0].gaps, 0);
    }

    /// A recorder that captures the two directions late by a few packets: only times suffer.
    #[test]
    fn directions_recorded_out_of_order_still_pair(seed in any::<u64>(), window in 1_usize..6) {
        let talk = everything(noise());
        let mut packets = sent(&talk);
        let columns = ["message_id", "command", "status", "transferred_bytes", "requested_bytes"];
        let of = |packets: &[Packet]| -> Vec<Vec<Option<String>>> {
            let rows = rows_of(packets, &[]);
            let mut out: Vec<Vec<Option<String>>> = rows
                .iter()
                .map(|row| columns.iter().map(|column| row.get(*column).cloned()).collect())
                .collect();
            out.sort();
            out
        };
        let expected = of(&packets);
        let mut dice = Dice::new(seed);
        let handshake = packets.drain(..3).collect::<Vec<_>>();
        packets = handshake.into_iter().chain(shuffled(packets, &mut dice, window)).collect();
        prop_assert_eq!(of(&packets), expected);
    }

    /// The number of threads changes nothing, not even numbers.
    #[test]
    fn threads_do_not_matter(seed in any::<u64>(), again in 0_usize..30) {
        let mut dice = Dice::new(seed);
        let mut connections = Vec::new();
        for index in 0..7 {
            let mut talk = everything(noise());
            // Some connections end with pending requests.
            talk.said.truncate(talk.said.len() - dice.below(30));
            let late = dice.below(9_000_000) as i64;
            talk.said.iter_mut().for_each(|said| said.time += late);
            let sending = Sending {
                client_port: 50_000 + index,
                handshake: dice.below(4) > 0,
                ..Sending::default()
            };
            connections.push(disturb(&sending.aligned(&talk), &mut dice, 3, again));
        }
        let capture = pcap(&mixed(connections), ALL, false);
        let one = decode(&capture, &single());
        let three = decode(&capture, &Options { threads: 3, ..Options::default() });
        assert_same(&one.rows(), &three.rows(), "threads");
        prop_assert_eq!(&one.connections, &three.connections);
        prop_assert_eq!(&one.sessions, &three.sessions);
        prop_assert_eq!(&one.trees, &three.trees);
        prop_assert_eq!(&one.handles, &three.handles);
        prop_assert_eq!(&one.coverage, &three.coverage);
    }
}

#[test]
fn two_files_that_continue_each_other_are_as_one() {
    let packets = sent(&everything(noise()));
    let left_out =
        &["recording", "capture_file", "request_frame", "response_frame", "pending_frame"];
    let expected = rows_of(&packets, left_out);
    for split in 1..packets.len() {
        let parts = [pcap(&packets[..split], ALL, false), pcap(&packets[split..], ALL, false)];
        // Their order on the command line does not matter either.
        for inputs in [[&parts[0][..], &parts[1]], [&parts[1][..], &parts[0]]] {
            let decoded = decode_all(&inputs, &single());
            assert_same(&expected, &decoded.rows_without(left_out), "two files");
            assert_eq!(decoded.coverage.len(), 2);
            assert_eq!(decoded.connections.len(), 1);
            // Keys of one table exist in the others.
            let recording = &decoded.coverage[0].recording;
            assert!(decoded.rows().iter().all(|row| &row["recording"] == recording));
            assert_eq!(&decoded.connections[0].recording, recording);
            assert!(decoded.sessions.iter().all(|row| &row.recording == recording));
            assert!(decoded.trees.iter().all(|row| &row.recording == recording));
            assert!(decoded.handles.iter().all(|row| *row.recording == **recording));
            assert_eq!(decoded.coverage[0].capture_file.as_ref(), Some(recording));
            assert_eq!(&decoded.coverage[1].recording, recording);
            assert_ne!(decoded.coverage[1].capture_file.as_ref(), Some(recording));
        }
    }
}

/// Checks an operation whose packets are all present.
fn essence(row: &Row) -> Vec<Option<String>> {
    [
        "command",
        "status",
        "elapsed_ns",
        "requested_bytes",
        "transferred_bytes",
        "request_wire_bytes",
        "response_wire_bytes",
        "offset_bytes",
        "async_id",
    ]
    .iter()
    .map(|column| row.get(*column).cloned())
    .collect()
}

/// The message ids in a message of the conversation.
fn ids(talk: &Talk, message: usize) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = &talk.said[message].bytes[4..];
    loop {
        let id = u64::from_le_bytes(rest[24..32].try_into().unwrap());
        let cancel = if rest[12] == 12 { "cancel of " } else { "" };
        out.push(format!("1{cancel}{id}"));
        match u32::from_le_bytes(rest[20..24].try_into().unwrap()) {
            0 => return out,
            next => rest = &rest[next as usize..],
        }
    }
}

/// Decodes without some packets and expects all other operations unharmed.
#[track_caller]
fn lose(talk: &Talk, packets: &[Packet], lost: &[usize], what: &str) -> support::decode::Decoded {
    let kept: Vec<Packet> = packets
        .iter()
        .enumerate()
        .filter(|(index, _)| !lost.contains(index))
        .map(|(_, packet)| packet.clone())
        .collect();
    let whole = decode(&pcap(packets, ALL, false), &single()).by_id();
    let decoded = decode(&pcap(&kept, ALL, false), &single());
    let rows = decoded.by_id();
    let harmed: Vec<String> = lost
        .iter()
        .flat_map(|&index| packets[index].carries.clone())
        .flat_map(|message| ids(talk, message))
        .collect();
    for (id, row) in &whole {
        if harmed.contains(id) {
            continue;
        }
        let found = rows.get(id).unwrap_or_else(|| panic!("{what}: {id} ({row:?}) is missing"));
        assert_eq!(essence(found), essence(row), "{what}: {id}");
    }
    decoded
}

#[test]
fn a_lost_segment_costs_only_what_it_carried() {
    for (zeros, talk) in [(false, everything(noise())), (true, everything(|| 0))] {
        let packets = sent(&talk);
        for (index, packet) in packets.iter().enumerate() {
            if packet.payload.is_empty() {
                continue;
            }
            let what = format!("zeros {zeros}, segment {index} of {:?}", packet.carries);
            let decoded = lose(&talk, &packets, &[index], &what);
            let coverage = &decoded.coverage[0];
            // Losses at the very end cannot be noticed.
            let last = packets[index + 1..].iter().all(|p| p.to_server != packet.to_server);
            assert_eq!(coverage.gaps, u64::from(!last), "{what}");
            let bytes = if last { 0 } else { packet.payload.len() as u64 };
            assert_eq!(coverage.gap_bytes, bytes, "{what}");
        }
    }
}

#[test]
fn a_lost_segment_does_not_make_the_connection_seem_busy() {
    let mut talk = Talk::new();
    talk.connect();
    for id in 10..60 {
        // Pauses are much longer than operations.
        talk.pass(4_000_000_000);
        talk.exchange(query_info(id, 1), 50_000, information(id, &[7; 100]));
        talk.exchange(query_info(100 + id, 1), 50_000, information(100 + id, &[7; 100]));
    }
    let packets = sent(&talk);
    let number = |row: &Row, column: &str| row.get(column).and_then(|text| text.parse().ok());
    let busy = |rows: &[Row]| rows.iter().filter_map(|row| number(row, "busy_ns")).sum::<i64>();
    let whole = busy(&decode(&pcap(&packets, ALL, false), &single()).rows());
    for lost in 20..packets.len() {
        let kept = (0..packets.len()).filter(|&at| at != lost).map(|at| packets[at].clone());
        let rows = decode(&pcap(&kept.collect::<Vec<_>>(), ALL, false), &single()).rows();
        for row in &rows {
            let outstanding = number(row, "outstanding");
            assert!(matches!(outstanding, None | Some(0)), "without segment {lost}: {row:?}");
            if let (Some(busy), Some(elapsed)) = (number(row, "busy_ns"), number(row, "elapsed_ns"))
            {
                assert!(busy <= elapsed, "without segment {lost}: {row:?}");
            }
        }
        let found = busy(&rows);
        let expected = whole * 9 / 10..=whole;
        assert!(expected.contains(&found), "without segment {lost}: {found} of {whole}");
    }
}

#[test]
fn lost_segments_that_end_amid_messages_cost_only_what_they_carried() {
    let talk = everything(noise());
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let packets = Sending::default().send(&talk, any_size(&mut dice, 900));
        let lost: Vec<usize> =
            (0..1 + dice.below(3)).map(|_| 3 + dice.below(packets.len() - 3)).collect();
        lose(&talk, &packets, &lost, &format!("seed {seed}, lost {lost:?}"));
    }
}

#[test]
fn a_capture_that_begins_in_mid_stream_has_all_that_follows() {
    for (zeros, talk) in [(false, everything(noise())), (true, everything(|| 0))] {
        let packets = sent(&talk);
        for begin in 1..packets.len() - 2 {
            let lost: Vec<usize> = (0..begin).collect();
            let decoded = lose(&talk, &packets, &lost, &format!("zeros {zeros}, from {begin} on"));
            assert_eq!(decoded.coverage[0].gaps, 0);
            assert_eq!(decoded.coverage[0].connections_mid_stream, 1);
        }
    }
}

#[test]
fn one_direction_alone_gives_its_operations() {
    let talk = everything(noise());
    let packets = sent(&talk);
    for to_server in [true, false] {
        let half: Vec<Packet> =
            packets.iter().filter(|packet| packet.to_server == to_server).cloned().collect();
        let decoded = decode(&pcap(&half, ALL, false), &single());
        let coverage = &decoded.coverage[0];
        assert_eq!(coverage.connections_one_direction, 1);
        // The Cancel goes one way, the break the other.
        assert_eq!(decoded.operations(), EVERYTHING - 1, "to the server: {to_server}");
        if to_server {
            assert_eq!(coverage.operations_unanswered, EVERYTHING as u64 - 2);
        } else {
            assert_eq!(coverage.replies_unmatched, EVERYTHING as u64 - 2);
        }
        for row in decoded.rows() {
            assert!(!row.contains_key("elapsed_ns") && !row.contains_key("server_ns"));
        }
    }
}

/// The body after the SMB2 header, and the columns that follow from it.
const BEHIND_HEADERS: &[&str] = &[
    "path",
    "share",
    "user",
    "extension",
    "handle",
    "file_id",
    "offset_bytes",
    "requested_bytes",
    "transferred_bytes",
    "detail",
    "lease_key",
    "lease_granted",
    "lease_requested",
    "oplock_requested",
    "oplock_granted",
    "desired_access",
    "share_access",
    "create_options",
    "write_through",
    "unbuffered",
    "dialect",
    "waits",
    "outstanding",
    "busy_ns",
    "server_ns",
    "server_error_ns",
    "client_gap_ns",
];

#[test]
fn truncated_rows_are_consistent() {
    let packets = sent(&everything(noise()));
    let decoded = decode(&pcap(&packets, 80, false), &single());
    let coverage = &decoded.coverage[0];
    assert_eq!((decoded.operations(), coverage.messages_malformed), (0, 0));
    assert!(coverage.messages > 0 && coverage.messages_cut == coverage.messages);
}

#[test]
fn captures_cut_to_headers_lose_no_operation() {
    // The later members of a compound are after the first 128 bytes, so no compounds.
    let mut talk = everything(noise());
    talk.said.retain(|said| said.bytes[4 + 20] == 0);
    let packets = sent(&talk);
    let whole = decode(&pcap(&packets, ALL, false), &single());
    for timestamps in [false, true] {
        for snap in [256, 128] {
            let decoded = decode(&pcap(&packets, snap, timestamps), &single());
            let what = format!("snap length {snap}, timestamps {timestamps}");
            let (expected, found) =
                (whole.rows_without(BEHIND_HEADERS), decoded.rows_without(BEHIND_HEADERS));
            assert_same(&expected, &found, &what);
            assert_eq!(decoded.coverage[0].gaps, 0, "{what}");
            if snap == 256 {
                let left_out = ["path", "share", "user", "extension"];
                let sizes = ["requested_bytes", "transferred_bytes", "offset_bytes", "outstanding"];
                for (expected, found) in
                    whole.rows_without(&left_out).iter().zip(decoded.rows_without(&left_out))
                {
                    for column in sizes {
                        assert_eq!(found.get(column), expected.get(column), "{what}: {column}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_request_whose_reply_was_lost_is_not_in_flight_for_ever() {
    let mut talk = Talk::new();
    talk.connect();
    for id in 10..800 {
        talk.exchange(query_info(id, 1), 50_000, information(id, &[7; 100]));
    }
    let all = sent(&talk);
    let reply = |packet: &Packet| !packet.to_server && packet.payload.len() > 64;
    let replies: Vec<usize> = (0..all.len()).filter(|&at| reply(&all[at])).collect();
    // Every twentieth reply was not captured.
    let lost: Vec<usize> = replies.iter().copied().skip(20).step_by(20).collect();
    let kept = (0..all.len()).filter(|at| !lost.contains(at)).map(|at| all[at].clone());
    let decoded = decode(&pcap(&kept.collect::<Vec<_>>(), ALL, false), &single());
    assert_eq!(decoded.coverage[0].operations_unanswered, lost.len() as u64);
    // One in twenty of the last 64, and those that wait for a hole to be filled.
    let number = |row: &Row, column: &str| -> Option<i64> { row.get(column)?.parse().ok() };
    let mut later = decoded.rows();
    later.retain(|row| number(row, "message_id").is_some_and(|id| id >= 250));
    let most = later.iter().filter_map(|row| number(row, "outstanding")).max().unwrap();
    let least = later.iter().filter_map(|row| number(row, "outstanding")).min().unwrap();
    assert!(least <= 3 && most <= 12, "{least} to {most}, of {} lost", lost.len());
}

#[test]
fn captures_cut_to_headers_count_the_members_of_compounds() {
    let mut talk = Talk::new();
    talk.connect();
    // Names that leave no second header, one that does, and one among parallel requests.
    let long = "a name that fills what a capture cut to 256 bytes has room for, all by itself";
    for (id, members, name) in [(10, 3, long), (13, 2, "short"), (15, 4, long)] {
        let next = (id + 1..id + members - 1).map(|id| query_info(id, SAME).related());
        let last = close(id + members - 1, SAME).related();
        talk.ask(compound([create(id, name)].into_iter().chain(next).chain([last]).collect()));
        if id == 15 {
            talk.ask(read(19, 2, 0, 10).framed());
        }
        talk.pass(100_000);
        let next = (id + 1..id + members - 1).map(|id| information(id, &[7; 300]).related());
        let last = closed(id + members - 1).related();
        talk.answer(compound([created(id, 9)].into_iter().chain(next).chain([last]).collect()));
        talk.pass(50_000);
    }
    talk.answer(data(19, &[1; 10]).framed());
    let packets = sent(&talk);
    let numbers = |decoded: &support::decode::Decoded| {
        let mut numbers = decoded.numbers("message_id");
        numbers.sort_unstable();
        numbers
    };
    let whole = decode(&pcap(&packets, ALL, false), &single());
    for snap in [256, 192, 150, 128] {
        let decoded = decode(&pcap(&packets, snap, false), &single());
        let what = format!("snap length {snap}");
        assert_eq!(numbers(&decoded), numbers(&whole), "{what}");
        let coverage = &decoded.coverage[0];
        assert_eq!((coverage.operations_unanswered, coverage.replies_unmatched), (0, 0), "{what}");
        let rows = decoded.rows();
        let without = rows.iter().filter(|row| !row.contains_key("command"));
        assert_eq!(without.clone().count() as u64, coverage.members_not_captured, "{what}");
        assert!(without.clone().count() >= 3, "{what}");
        for row in without {
            assert!(row.contains_key("compound") && !row.contains_key("status"), "{row:?}");
        }
        let of = |row: &Row, column: &str| row.get(column).cloned();
        for row in &rows {
            let id = of(row, "message_id");
            let same =
                whole.rows().into_iter().find(|other| of(other, "message_id") == id).unwrap();
            for column in ["compound_index", "request_frame", "response_frame", "request_end"] {
                assert_eq!(of(row, column), of(&same, column), "{what}: {id:?} {column}");
            }
        }
    }
}

#[test]
fn operations_that_end_after_the_logoff_belong_to_the_user() {
    let mut talk = Talk::new();
    talk.connect();
    // Never answered, so its row comes at the end.
    talk.ask(query_info(4, 1).framed());
    talk.pass(1_000);
    talk.exchange(smb2::bare(2, 5), 100_000, smb2::bare(2, 5).reply(smb2::SUCCESS));
    // Another user on the same connection gets the number.
    let setup = |id, user, status| (smb2::session_setup(id, user), smb2::session_ready(id, status));
    for (request, reply) in
        [setup(6, None, smb2::MORE_PROCESSING), setup(7, Some("bob"), smb2::SUCCESS)]
    {
        talk.exchange(request, 100_000, reply);
    }
    talk.exchange(query_info(8, 1), 50_000, information(8, &[7; 10]));
    let decoded = decode(&pcap(&sent(&talk), ALL, false), &single());
    let users: Vec<_> = decoded.sessions.iter().map(|session| session.user.as_deref()).collect();
    assert_eq!(users, [Some("ada"), Some("bob")]);
    let first = Talk { said: talk.said[..talk.said.len() - 6].to_vec(), ..Talk::new() };
    let decoded = decode(&pcap(&sent(&first), ALL, false), &single());
    assert_eq!(decoded.by_id()["14"]["user"], "ada");
    assert_eq!(decoded.sessions.len(), 1);
}

/// Compounds of which the client sends several at once, in one long segment; their replies come one by
/// one, the last first.
fn in_long_segments(with_large_read: bool) -> Talk {
    let mut talk = Talk::new();
    talk.connect();
    let mut id = 10;
    for members in [[3, 2, 4], [2, 3, 2], [5, 3, 3]] {
        let mut replies = Vec::new();
        for count in members {
            let (first, last) = (id, id + count - 1);
            let next = (first + 1..last).map(|id| query_info(id, SAME).related());
            let closing = close(last, SAME).related();
            talk.ask(compound(
                [create(first, "name")].into_iter().chain(next).chain([closing]).collect(),
            ));
            let next = (first + 1..last).map(|id| information(id, &[7; 300]).related());
            replies.push(compound(
                [created(first, first)]
                    .into_iter()
                    .chain(next)
                    .chain([closed(last).related()])
                    .collect(),
            ));
            id = last + 1;
        }
        if with_large_read {
            // One request that takes many numbers.
            talk.ask(read(id, 2, 0, 1 << 20).charge(16).framed());
            replies.push(data(id, &[1; 400]).framed());
            id += 16;
        }
        for reply in replies.into_iter().rev() {
            talk.pass(50_000);
            talk.answer(reply);
        }
        talk.pass(1_000_000);
        talk.exchange(query_info(id, 1), 50_000, information(id, &[7; 10]));
        id += 1;
    }
    talk
}

#[test]
fn captures_cut_to_headers_count_what_begins_late_in_long_segments() {
    let talk = in_long_segments(false);
    let packets = Sending::default().send(&talk, |_| usize::MAX);
    let whole = decode(&pcap(&packets, ALL, false), &single());
    let numbers = |decoded: &support::decode::Decoded| {
        let mut numbers = decoded.numbers("message_id");
        numbers.sort_unstable();
        numbers
    };
    for snap in [256, 192] {
        for options in [single(), Options { threads: 4, ..single() }] {
            let decoded = decode(&pcap(&packets, snap, false), &options);
            assert_eq!(numbers(&decoded), numbers(&whole), "snap length {snap}");
            for row in decoded.rows().iter().filter(|row| !row.contains_key("command")) {
                let same = whole
                    .rows()
                    .into_iter()
                    .find(|other| other.get("message_id") == row.get("message_id"));
                let same = same.unwrap();
                assert_eq!(row.get("response_frame"), same.get("response_frame"), "{row:?}");
                assert!(!row.contains_key("status"), "{row:?}");
            }
        }
    }
    // Without the following request nothing shows where the last ones end: at most one is made up for
    // each compound.
    let last = packets.iter().rposition(|packet| packet.to_server && !packet.payload.is_empty());
    let cut = decode(&pcap(&packets[..last.unwrap()], 256, false), &single());
    assert!(numbers(&cut).iter().all(|id| numbers(&whole).contains(id)));
}

#[test]
fn numbers_that_one_request_takes_are_no_operations() {
    let talk = in_long_segments(true);
    let packets = Sending::default().send(&talk, |_| usize::MAX);
    let whole = decode(&pcap(&packets, ALL, false), &single()).numbers("message_id");
    let cut = decode(&pcap(&packets, 256, false), &single()).numbers("message_id");
    for id in &cut {
        assert!(whole.contains(id), "{id:?} does not belong to an operation");
    }
    // One of each compound is known to follow.
    assert!(cut.len() + 9 >= whole.len(), "{} of {}", cut.len(), whole.len());
}

#[test]
fn a_length_that_lies_makes_no_rows() {
    // A compound of 15 MiB of which only the head is present, and a next request whose number implies
    // 200,000 members in it.
    let mut talk = Talk::new();
    talk.connect();
    let mut huge = compound(vec![create(10, "x"), close(11, SAME).related()]);
    huge.resize(15 << 20, 0);
    let length = huge.len() as u32 - 4;
    huge[1..4].copy_from_slice(&length.to_be_bytes()[1..]);
    // The position of the second member is after the cut.
    huge[4 + 20..4 + 24].copy_from_slice(&4_096_u32.to_le_bytes());
    talk.ask(huge);
    talk.pass(1_000);
    talk.exchange(query_info(200_011, 1), 50_000, information(200_011, &[7; 100]));
    let decoded = decode(&pcap(&sent(&talk), 256, false), &single());
    assert_eq!(decoded.operations(), 7);
    assert_eq!(decoded.coverage[0].members_not_captured, 1);
}

#[test]
fn sequence_numbers_wrap() {
    let talk = everything(noise());
    let left_out = &["tcp_sequence"];
    let expected = rows_of(&sent(&talk), left_out);
    for initial in [[u32::MAX - 700, u32::MAX - 70_000], [u32::MAX, u32::MAX - 300]] {
        let sending = Sending { initial, ..Sending::default() };
        assert_same(&expected, &rows_of(&sending.aligned(&talk), left_out), "wrap");
    }
}

#[test]
fn ports_used_again_are_another_connection() {
    let talk = everything(noise());
    let mut later = talk.clone();
    later.said.iter_mut().for_each(|said| said.time += 60_000_000_000);
    let mut packets = sent(&talk);
    let again = Sending { initial: [77_000_000, 500], ..Sending::default() };
    packets.extend(again.aligned(&later));
    let decoded = decode(&pcap(&packets, ALL, false), &single());
    assert_eq!(decoded.operations(), 2 * EVERYTHING);
    assert_eq!(decoded.coverage[0].gaps, 0);
    assert_eq!(decoded.coverage[0].operations_unanswered, 0);
    let ends: Vec<&str> =
        decoded.connections.iter().map(|connection| connection.end_reason.as_str()).collect();
    assert_eq!(ends, ["reused", "end of the capture"]);
}

#[test]
fn keep_alives_and_resets_cost_nothing() {
    let talk = everything(noise());
    let packets = sent(&talk);
    let expected = rows_of(&packets, FRAMES);
    for garbage in [vec![], vec![0], vec![0xff]] {
        let mut with = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            with.push(packet.clone());
            if index > 3 && index % 5 == 0 && !packet.payload.is_empty() {
                let behind = packet.sequence.wrapping_add(packet.payload.len() as u32);
                with.push(Packet {
                    sequence: behind.wrapping_sub(1),
                    payload: garbage.clone(),
                    flags: ACK,
                    ..packet.clone()
                });
            }
        }
        let last = with.last().unwrap().clone();
        with.push(Packet { flags: RST, payload: vec![], ..last });
        let decoded = decode(&pcap(&with, ALL, false), &single());
        assert_same(
            &expected.iter().map(without_round_trips).collect::<Vec<_>>(),
            &decoded.rows_without(ROUND_TRIPS),
            "keep-alives",
        );
        assert_eq!(decoded.connections[0].end_reason, "reset");
        assert_eq!(decoded.connections[0].resets, 1);
    }
}

fn without_round_trips(row: &Row) -> Row {
    let kept = row.iter().filter(|(column, _)| !ROUND_TRIPS.contains(&column.as_str()));
    kept.map(|(column, value)| (column.clone(), value.clone())).collect()
}

#[test]
fn smb_is_recognised_on_any_port_and_nothing_else_is() {
    let talk = everything(noise());
    let left_out = &["client_port", "server_port"];
    let expected = rows_of(&sent(&talk), left_out);
    let sending = Sending { server_port: 8_445, ..Sending::default() };
    assert_same(&expected, &rows_of(&sending.aligned(&talk), left_out), "unusual port");

    let mut web = Talk::new();
    for _ in 0..40 {
        web.ask(b"GET /fe53 HTTP/1.1\r\n\r\n".to_vec());
        web.pass(1_000);
        web.answer(b"HTTP/1.1 200 OK\r\n\r\n\0\0\0\x40SMB".to_vec());
        web.pass(1_000);
    }
    let other = Sending { server_port: 80, client_port: 9, ..Sending::default() };
    let decoded = decode(&pcap(&other.aligned(&web), ALL, false), &single());
    assert_eq!((decoded.operations(), decoded.coverage[0].connections), (0, 0));
    assert_eq!(decoded.coverage[0].frames_not_smb, 80);
    let both = mixed(vec![sending.aligned(&talk), other.aligned(&web)]);
    let left_out =
        &["client_port", "server_port", "request_frame", "response_frame", "pending_frame"];
    let mut plain = rows_of(&sent(&talk), left_out);
    plain.truncate(EVERYTHING);
    assert_same(&plain, &rows_of(&both, left_out), "among other traffic");
}

#[test]
fn port_139_begins_with_a_session_request() {
    let talk = everything(noise());
    let mut with = Talk::new();
    with.now = talk.said[0].time - 900_000;
    let mut call = vec![0x81, 0, 0, 68];
    call.extend_from_slice(&[b' '; 68]);
    with.ask(call);
    with.pass(100_000);
    with.answer(vec![0x82, 0, 0, 0]);
    with.said.extend(talk.said.iter().cloned());
    let sending = Sending { server_port: 139, ..Sending::default() };
    let left_out: Vec<&str> =
        ROUND_TRIPS.iter().copied().chain(["server_port", "tcp_sequence"]).collect();
    let expected = rows_of(&sent(&talk), &left_out);
    assert_same(&expected, &rows_of(&sending.aligned(&with), &left_out), "port 139");
}

#[test]
fn busy_shares_add_up_to_the_busy_time() {
    // A blocked lock does not count, and removes its share of busy time; so this test runs without
    // one.
    let talk = everything(noise());
    let decoded = decode(&pcap(&sent(&talk), ALL, false), &single());
    let (starts, ends) = (decoded.numbers("request_start"), decoded.numbers("response_end"));
    let waits = decoded.rows();
    let mut busy: Vec<(i64, i64)> = starts
        .iter()
        .zip(&ends)
        .zip(&waits)
        .filter(|(_, row)| !row.contains_key("waits"))
        .filter_map(|((start, end), _)| Some(((*start)?, (*end)?)))
        .collect();
    busy.sort_unstable();
    let (mut total, mut until) = (0, i64::MIN);
    for (start, end) in busy {
        total += end - start.max(until).min(end);
        until = until.max(end);
    }
    let shares: i64 = decoded.numbers("busy_ns").into_iter().flatten().sum();
    assert!((total - shares).abs() <= EVERYTHING as i64, "{shares} of {total}");
    for row in decoded.rows() {
        let number = |column: &str| row.get(column).map(|value| value.parse::<i64>().unwrap());
        if let Some(elapsed) = number("elapsed_ns") {
            let parts = ["request_transfer_ns", "turnaround_ns", "response_transfer_ns"];
            assert_eq!(elapsed, parts.iter().map(|part| number(part).unwrap()).sum::<i64>());
        }
    }
}

#[test]
fn packets_that_a_mirror_port_shows_twice_count_once() {
    let packets = sent(&everything(noise()));
    let whole = decode(&pcap(&packets, ALL, false), &single());
    let expected = &whole.connections[0];
    // Copies come at once, or after some of the packets that follow.
    for most in [1, 3] {
        let mut twice = Vec::new();
        let mut rest = &packets[..];
        while let Some(first) = rest.first() {
            let near = rest.iter().take(most).take_while(|one| one.time - first.time < 400_000);
            let (group, after) = rest.split_at(near.count());
            let copied_at = group.last().unwrap().time + 900;
            twice.extend_from_slice(group);
            twice.extend(group.iter().map(|one| Packet { time: copied_at, ..one.clone() }));
            rest = after;
        }
        let decoded = decode(&pcap(&twice, ALL, false), &single());
        assert_same(&rows_of(&packets, FRAMES), &rows_of(&twice, FRAMES), "twice");
        let found = &decoded.connections[0];
        assert_eq!(found.server_rtt_samples, expected.server_rtt_samples);
        assert_eq!(found.retransmissions_to_client + found.retransmissions_to_server, 0);
        // What came between the first one and its copy is not known yet.
        let repeated = decoded.coverage[0].frames_repeated as usize;
        assert!((packets.len() - most + 1..=packets.len()).contains(&repeated), "{repeated}");
    }
}

#[test]
fn packets_that_are_shown_before_and_after_segmentation_count_once() {
    let packets = sent(&everything(noise()));
    let mut twice = Vec::new();
    for packet in &packets {
        twice.push(packet.clone());
        let mut at = 0;
        // The handshake is duplicated too.
        while at < packet.payload.len() || at == 0 {
            let piece = &packet.payload[at..packet.payload.len().min(at + 500)];
            let sequence = packet.sequence.wrapping_add(at as u32);
            let time = packet.time + 900;
            twice.push(Packet { time, sequence, payload: piece.to_vec(), ..packet.clone() });
            at += piece.len().max(1);
        }
    }
    let decoded = decode(&pcap(&twice, ALL, false), &single());
    assert_same(&rows_of(&packets, FRAMES), &rows_of(&twice, FRAMES), "in pieces");
    let found = &decoded.connections[0];
    assert_eq!(found.retransmissions_to_client + found.retransmissions_to_server, 0);
    assert_eq!(decoded.coverage[0].frames_repeated as usize, twice.len() - packets.len());
}

//! Packets that were lost, repeated or came late cost only what they carried (RFC 9293 section 3.8.1).

use crate::support::Dice;
use crate::support::decode::{Decoded, Row, decode, single};
use crate::support::packets::{Packet, Sending, any_size, pcap};
use crate::support::smb2::{information, query_info};
use crate::support::talk::{Talk, everything, noise};
use crate::{ALL, sent};

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

/// All packets; those at the index `from` and after it arrive later by `ns`.
fn later(packets: &[Packet], from: usize, ns: i64) -> Vec<Packet> {
    let late = |(index, one): (usize, &Packet)| {
        if index < from { one.clone() } else { Packet { time: one.time + ns, ..one.clone() } }
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
    // Lost before ReplyTimes: the request is retransmitted, and answered then.
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
fn lose(talk: &Talk, packets: &[Packet], lost: &[usize], what: &str) -> Decoded {
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

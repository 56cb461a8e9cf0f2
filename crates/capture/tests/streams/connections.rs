//! Where a connection begins and ends, on which port, and what is SMB.

use crate::support::decode::{Row, assert_same, decode, single};
use crate::support::packets::{ACK, Packet, RST, Sending, mixed, pcap};
use crate::support::talk::{EVERYTHING, Talk, everything, noise};
use crate::{ALL, FRAMES, ROUND_TRIPS, rows_of, sent};

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

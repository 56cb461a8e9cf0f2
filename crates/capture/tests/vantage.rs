//! Captures taken at the client, at the server and between, with known round trips: server time and
//! think time must be right within the reported error.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::decode::{Decoded, decode, single};
use support::packets::{ACK, Packet, SYN, pcap};
use support::smb2;
use support::talk::Talk;

/// The server's time for an operation, and the client's time between two.
const SERVER_NS: i64 = 800_000;
const THINK_NS: i64 = 3_000_000;

/// A conversation captured where a round trip to the server takes `server_rtt` and one to the client
/// `client_rtt`; both acknowledge at once.
fn seen(server_rtt: i64, client_rtt: i64) -> Vec<Packet> {
    let mut talk = Talk::new();
    talk.connect();
    for id in 4..24 {
        talk.exchange(smb2::create(id, "a"), 0, smb2::error(smb2::CREATE, id, smb2::NOT_FOUND));
    }
    let begin = talk.said[0].time;
    let mut next = [100_u32, 900];
    let mut out: Vec<Packet> = Vec::new();
    let mut push = |time, to_server: bool, next: &[u32; 2], flags, payload: &[u8]| {
        out.push(Packet {
            time,
            to_server,
            sequence: next[usize::from(!to_server)],
            acknowledgement: next[usize::from(to_server)],
            flags,
            payload: payload.to_vec(),
            carries: 0..0,
            client_port: 50_000,
            server_port: 445,
        });
    };
    push(begin, true, &next, SYN, b"");
    push(begin + server_rtt, false, &[101, 900], SYN | ACK, b"");
    next = [101, 901];
    let mut now = begin + server_rtt + client_rtt;
    push(now, true, &next, ACK, b"");
    for said in &talk.said {
        let length = said.bytes.len() as u32;
        if said.to_server {
            push(now, true, &next, ACK, &said.bytes);
            next[0] += length;
            push(now + server_rtt, false, &next, ACK, b"");
            now += server_rtt + SERVER_NS;
        } else {
            push(now, false, &next, ACK, &said.bytes);
            next[1] += length;
            push(now + client_rtt, true, &next, ACK, b"");
            now += client_rtt + THINK_NS;
        }
    }
    out
}

#[test]
fn server_time_and_think_time_come_out_right_from_anywhere() {
    for (server_rtt, client_rtt, vantage) in [
        (5_000_000, 20_000, "client"),
        (30_000, 9_000_000, "server"),
        (2_000_000, 3_000_000, "between"),
        (400_000, 450_000, "between"),
    ] {
        let decoded = decode(&pcap(&seen(server_rtt, client_rtt), usize::MAX, false), &single());
        assert_eq!(decoded.coverage[0].vantage.as_deref(), Some(vantage));
        let connection = &decoded.connections[0];
        assert_eq!(connection.server_rtt_ns, Some(server_rtt));
        assert_eq!(connection.client_rtt_ns, Some(client_rtt));
        let rows = decoded.rows();
        assert_eq!(rows.len(), 24);
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row["vantage"], vantage);
            let number = |column: &str| row[column].parse::<i64>().unwrap();
            let (server, error) = (number("server_ns"), number("server_error_ns"));
            assert!((server - SERVER_NS).abs() <= error, "{vantage}: {server} +- {error}");
            assert!(error <= server_rtt, "{vantage}: {error}");
            if index > 0 {
                let gap = number("client_gap_ns");
                let error = if vantage == "client" { client_rtt } else { 0 };
                assert!((gap - THINK_NS).abs() <= error, "{vantage}: gap {gap}");
            }
        }
    }
}

/// Reads that the server answers after `server_ns`, on a connection that began before the capture.
/// With `acks` the server acknowledges each request at once, otherwise only with the reply.
fn without_handshake(server_ns: i64, acks: bool) -> Decoded {
    const RTT_NS: i64 = 100_000;
    let mut next = [100_u32, 900];
    let mut out = Vec::new();
    let mut now = Talk::new().now;
    for id in 1..40 {
        let mut push = |time, to_server: bool, payload: Vec<u8>| {
            let length = payload.len() as u32;
            out.push(Packet {
                time,
                to_server,
                sequence: next[usize::from(!to_server)],
                acknowledgement: next[usize::from(to_server)],
                flags: ACK,
                payload,
                carries: 0..0,
                client_port: 50_000,
                server_port: 445,
            });
            next[usize::from(!to_server)] += length;
        };
        push(now, true, smb2::read(id, 1, 0, 4).framed());
        if acks {
            push(now + RTT_NS, false, Vec::new());
        }
        now += RTT_NS + server_ns;
        push(now, false, smb2::data(id, b"four").framed());
        now += THINK_NS;
    }
    decode(&pcap(&out, usize::MAX, false), &single())
}

#[test]
fn an_acknowledgement_with_the_reply_says_nothing_about_the_server() {
    for server_ns in [300_000, 30_000_000] {
        let decoded = without_handshake(server_ns, false);
        let known = |column: &str| decoded.numbers(column).into_iter().flatten().count();
        assert_eq!((known("elapsed_ns"), known("server_ns"), known("server_error_ns")), (39, 0, 0));
        let connection = &decoded.connections[0];
        assert_eq!((connection.server_rtt_ns, connection.server_rtt_samples), (None, 0));
        assert_eq!(connection.vantage, None);
        // With acknowledgements of their own, requests show the round trip.
        let decoded = without_handshake(server_ns, true);
        let server = decoded.numbers("server_ns");
        assert!(server.iter().all(|&server| server == Some(server_ns)), "{server:?}");
    }
}

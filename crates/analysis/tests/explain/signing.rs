//! Signing: which side decides it, and what it costs.

use smbscope_analysis::explain::{About, Diagnosis, FindingKind};
use smbscope_findings::Confidence;
use smbscope_tables::code::{self, Detail};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::support::*;

const TREE_CONNECT: u16 = 3;
const IOCTL: u16 = 11;

fn note(diagnosis: &Diagnosis, about: About) -> Option<&str> {
    diagnosis.notes.iter().find(|note| note.about == about).map(|note| &*note.what)
}

/// A connection whose client and server require signing or not.
fn requires(client: Option<bool>, server: Option<bool>) -> Connection {
    Connection {
        client_signing_required: client,
        signing_required: server,
        signing_algorithm: Some("AES-CMAC".into()),
        ..far_connection(1, 1 << 20)
    }
}

#[test]
fn names_the_side_that_decides() {
    let signed = vec![Act { set: |row| row.set_signed(true), ..act(QUERY_INFO, 1, "a") }; 9];
    let because = |client, server| {
        let diagnosis = explain_on(&signed, requires(client, server));
        note(&diagnosis, About::Signing).unwrap().to_owned()
    };
    let (yes, no) = (Some(true), Some(false));
    let server = because(no, yes);
    assert!(server.starts_with("9 of 9 operations on 1 connection are signed"), "{server}");
    assert!(server.contains("because the server 10.0.0.2 requires it"), "{server}");
    assert!(server.contains("server signing") && server.contains("a decision"), "{server}");
    let client = because(yes, no);
    assert!(client.contains("because the client 10.0.0.1 requires it"), "{client}");
    assert!(client.contains("Set-SmbClientConfiguration"), "{client}");
    assert!(because(yes, yes).contains("both require it"));
    assert!(because(no, no).contains("although neither client 10.0.0.1 nor server 10.0.0.2"));
    assert!(because(None, None).contains("does not show which side"));
    assert!(because(None, no).contains("does not show which side"));
    // A client of which nothing is known is not said to require nothing.
    assert!(server.contains("the client does not") && !because(None, yes).contains("does not;"));
}

#[test]
fn a_negotiated_algorithm_and_signed_logons_are_not_signing_in_use() {
    let signed = |command, set: fn(&mut Operation)| Act { set, ..act(command, NO_HANDLE, "") };
    let validate = |row: &mut Operation| {
        row.set_signed(true);
        row.set_detail(code::detail(Detail::Fsctl, 0x0014_0204));
    };
    let mut acts = vec![signed(TREE_CONNECT, |row| row.set_signed(true)); 5];
    acts.extend(vec![signed(IOCTL, validate); 5]);
    acts.push(act(QUERY_INFO, 1, "a"));
    let diagnosis = explain_on(&acts, requires(Some(false), Some(true)));
    assert_eq!(note(&diagnosis, About::Signing), None);
    // Encrypted messages have no signature of their own.
    let encrypted = vec![Act { set: |row| row.set_encrypted(true), ..act(READ, 1, "a") }; 9];
    let diagnosis = explain_on(&encrypted, requires(Some(true), Some(true)));
    assert_eq!(note(&diagnosis, About::Signing), None);
}

fn set_size(row: &mut Operation) {
    row.set_transferred_bytes(4096 << (row.operation().unwrap() % 9));
}

/// Reads of 4 KiB to 1 MiB at that time per byte.
fn reads(ns_per_byte: f64, set: fn(&mut Operation)) -> Vec<Act> {
    let bytes = |number: u64| (4096_u64 << (number % 9)) as f64;
    let read = |number| Act {
        server_ns: MS / 10 + (ns_per_byte * bytes(number)) as i64 + number as i64 % 7 * 1000,
        rtt_ns: MS / 5,
        set,
        ..act(READ, 1, "a")
    };
    (0..90).map(read).collect()
}

fn set_signed(row: &mut Operation) {
    set_size(row);
    row.set_signed(true);
}

#[test]
fn slow_signing_grows_with_the_bytes() {
    let diagnosis = explain_on(&reads(200.0, set_signed), requires(Some(false), Some(true)));
    let slow = found(&diagnosis, FindingKind::Protection).unwrap();
    assert!((figure(slow, "server_time_per_byte") - 200.0).abs() < 1.0, "{slow:?}");
    assert_eq!((slow.confidence, slow.details.operations), (Some(Confidence::Possible), 90));
    assert!(slow.share() > 0.9 && slow.because.contains("slow storage looks the same"), "{slow:?}");
    assert_eq!(note(&diagnosis, About::Protection), None);
    // Reads of one size take the same time; that is not a timer.
    assert_eq!(found(&diagnosis, FindingKind::FixedTimer), None);
    // Unsigned reads of the same server are faster: then it is not the storage.
    let mut compared = reads(200.0, set_signed);
    compared.extend(reads(2.0, set_size));
    let diagnosis = explain_on(&compared, requires(Some(false), Some(true)));
    let slow = found(&diagnosis, FindingKind::Protection).unwrap();
    assert_eq!((slow.confidence, slow.details.operations), (Some(Confidence::Likely), 90));
    assert!((figure(slow, "server_time_per_unsigned_byte") - 2.0).abs() < 0.1, "{slow:?}");
}

#[test]
fn requests_in_flight_together_count_while_the_connection_is_silent() {
    let in_flight = |row: &mut Operation| {
        set_signed(row);
        row.set_outstanding(3);
    };
    let mut acts = reads(200.0, in_flight);
    let slow = explain_on(&acts, requires(Some(false), Some(true)));
    let slow = found(&slow, FindingKind::Protection).unwrap();
    assert!((figure(slow, "server_time_per_byte") - 200.0).abs() < 1.0, "{slow:?}");
    // Each was sent before the reply to the one before, and is answered right after that.
    for act in &mut acts {
        (act.gap_ns, act.rtt_ns) = (-act.server_ns, 1000);
    }
    let together = explain_on(&acts, requires(Some(false), Some(true)));
    assert_eq!(found(&together, FindingKind::Protection), None);
}

#[test]
fn what_grows_without_signing_too_is_not_its_cost() {
    for acts in [
        reads(5.0, set_signed),
        reads(200.0, set_size),
        [reads(200.0, set_signed), reads(200.0, set_size)].concat(),
    ] {
        let diagnosis = explain_on(&acts, requires(Some(false), Some(true)));
        assert_eq!(found(&diagnosis, FindingKind::Protection), None);
    }
    // What it costs at most is a note.
    let diagnosis = explain_on(&reads(5.0, set_signed), requires(Some(false), Some(true)));
    let bound = note(&diagnosis, About::Protection).unwrap();
    assert!(bound.contains("grows by 5.0 ns") && bound.contains("at most"), "{bound}");
}

#[test]
fn writes_at_a_client_include_the_network() {
    // 100 Mbit/s need 80 ns for each byte, after the request's last byte was seen at the client.
    let writes = |has_reads: bool| {
        let mut acts = reads(80.0, set_signed);
        acts.iter_mut().for_each(|act| act.command = WRITE);
        if has_reads {
            let long = |row: &mut Operation| {
                row.set_transferred_bytes(1 << 20);
                row.set_response_wire_bytes(1 << 20);
                row.set_response_start(row.request_start().unwrap() + MS);
                row.set_response_end(row.request_start().unwrap() + MS + (80 << 20));
                row.derive_durations();
            };
            acts.extend(vec![Act { set: long, ..act(READ, 1, "a") }; 20]);
        }
        explain_on(&acts, requires(Some(false), Some(true)))
    };
    assert_eq!(found(&writes(true), FindingKind::Protection), None);
    assert_eq!(found(&writes(false), FindingKind::Protection), None);
    let mut acts = reads(80.0, set_signed);
    acts.iter_mut().for_each(|act| act.command = WRITE);
    let at_server =
        Connection { vantage: Some("server".into()), ..requires(Some(false), Some(true)) };
    assert!(found(&explain_on(&acts, at_server), FindingKind::Protection).is_some());
}

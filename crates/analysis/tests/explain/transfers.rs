//! Findings about transfers and the network: block sizes, link, windows, loss.

use smbscope_analysis::explain::{Finding, FindingKind};
use smbscope_findings::Confidence;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::support::*;

#[test]
fn finds_small_reads_one_at_a_time() {
    let diagnosis = explain(&far_reads(|row| set_sequential(row, 4096)));
    let small = found(&diagnosis, FindingKind::SmallReads).unwrap();
    assert_eq!(diagnosis.findings[0], *small);
    assert!(small.share() > 0.9, "{small:?}");
    assert_eq!(figure(small, "round"), 20e6);
    assert_eq!((figure(small, "block"), figure(small, "larger_block")), (4096.0, 1048576.0));
    // 4 KiB in 20.1 ms.
    assert!((figure(small, "throughput") - 8e9 * 4096.0 / 20.1e6).abs() < 1.0);
    // In parallel, not sequential, or large: there is nothing to gain.
    for set in [
        (|row: &mut Operation| {
            set_sequential(row, 4096);
            row.set_outstanding(3);
        }) as fn(&mut Operation),
        |row| {
            set_sequential(row, 4096);
            row.set_offset_bytes(row.offset_bytes().unwrap() * 7);
        },
        |row| set_sequential(row, 1 << 20),
    ] {
        assert_eq!(found(&explain(&far_reads(set)), FindingKind::SmallReads), None);
    }
}

#[test]
fn blocks_of_dialect_2_0_2_are_small_below_64_kib() {
    let old = |row: &mut Operation| {
        set_sequential(row, 65_536);
        row.set_dialect(0x0202);
    };
    assert_eq!(found(&explain(&far_reads(old)), FindingKind::SmallReads), None);
}

/// SMB1 writes of 4,292 bytes at 20 ms on a connection with these facts.
fn smb1_writes(capabilities: u64, buffer: u64, set: fn(&mut Operation)) -> Finding {
    let mut acts = far_reads(set);
    acts.iter_mut().for_each(|act| act.command = WRITE);
    let connection = Connection {
        server_capabilities: Some(capabilities),
        max_transact_bytes: Some(buffer),
        ..far_connection(20, 1 << 20)
    };
    found(&explain_on(&acts, connection), FindingKind::SmallWrites).unwrap().clone()
}

#[test]
fn small_blocks_of_smb1_are_the_clients_or_the_servers_choice() {
    let block: fn(&mut Operation) = |row| {
        set_sequential(row, 4292);
        row.set_protocol(1);
    };
    let (large, raw) = (0x8000, 1);
    let client = smb1_writes(large, 16_644, block);
    let offer = "the client 10.0.0.1 does not use what the server 10.0.0.2 offered in Negotiate: CAP_LARGE_WRITEX";
    assert!(client.what.contains(offer), "{}", client.what);
    assert_eq!(client.remedies[0].at, "client");
    // Neither large blocks nor a larger buffer: then it is the server's.
    let server = smb1_writes(raw, 4356, block);
    let limit =
        "the server 10.0.0.2 did not offer CAP_LARGE_WRITEX, so with MaxBufferSize 4356 bytes";
    assert!(
        server.what.contains(limit) && server.what.contains("only raw mode"),
        "{}",
        server.what
    );
    assert_eq!(server.remedies[0].at, "Samba");
    // A larger buffer alone.
    let buffer = smb1_writes(0, 16_644, block);
    assert!(
        buffer.what.ends_with("offered in Negotiate: MaxBufferSize 16644 bytes"),
        "{}",
        buffer.what
    );
    // Signing excludes the large form.
    let signed = smb1_writes(large, 4356, |row| {
        set_sequential(row, 4292);
        row.set_protocol(1);
        row.set_signed(true);
    });
    assert!(signed.what.contains("signed messages exclude CAP_LARGE_WRITEX"), "{}", signed.what);
    // In SMB2 these bits mean something else.
    let smb2 = smb1_writes(large, 4356, |row| set_sequential(row, 4292));
    assert!(!smb2.what.contains("Negotiate") && smb2.remedies[0].at == "application", "{smb2:?}");
}

#[test]
fn a_saturated_link_has_one_rate() {
    // 1 MiB in 100 ms is 84 Mbit/s.
    let diagnosis = explain_on(&long_reads(|_| 100), far_connection(2, 4 << 20));
    let full = &diagnosis.findings[0];
    assert_eq!((full.kind, full.details.operations), (FindingKind::BandwidthLimited, 40));
    assert!((figure(full, "rate") / 83.9e6 - 1.0).abs() < 0.01, "{full:?}");
    assert!(full.share() > 0.85, "{full:?}");
    // Neither with uneven rates, nor on one machine.
    let uneven = explain_on(&long_reads(|number| 20 << (number % 6)), far_connection(2, 4 << 20));
    assert_eq!(found(&uneven, FindingKind::BandwidthLimited), None);
    let here = Connection { server: "10.0.0.1".into(), ..far_connection(2, 4 << 20) };
    assert_eq!(found(&explain_on(&long_reads(|_| 100), here), FindingKind::BandwidthLimited), None);
}

#[test]
fn a_shared_link_is_saturated_by_all_connections_together() {
    // Two connections, alternately fast and slow, that together move 2 MiB in 200 ms.
    let read = |number: u64, fast: bool| Act {
        server_ns: MS,
        gap_ns: if number.is_multiple_of(2) { 0 } else { -(if fast { 150 } else { 51 } * MS) },
        rtt_ns: if fast { 49 } else { 149 } * MS,
        set: match number % 2 {
            0 => |row| long_read(row, 1),
            _ => |row| long_read(row, 2),
        },
        ..act(READ, 1 + number % 2, "big.iso")
    };
    let shared: Vec<_> =
        (0..160).map(|number| read(number, (number / 2 + number).is_multiple_of(2))).collect();
    let two = |acts: &[Act]| {
        let mut connections = vec![far_connection(2, 4 << 20), far_connection(2, 4 << 20)];
        (connections[0].connection, connections[1].connection) = (1, 2);
        explain_of(acts, connections)
    };
    let diagnosis = two(&shared);
    let full = found(&diagnosis, FindingKind::BandwidthLimited);
    assert!(full.is_some_and(|full| full.share() > 0.5), "{:?}", diagnosis.findings);
    // One of them alone is uneven.
    let single: Vec<_> = shared.iter().filter(|act| act.handle == 1).cloned().collect();
    let single: Vec<_> = single.into_iter().map(|act| Act { gap_ns: 0, ..act }).collect();
    assert_eq!(found(&two(&single), FindingKind::BandwidthLimited), None);
}

#[test]
fn finds_a_window_too_small_for_the_round_trip() {
    // 64 KiB in each round of 20 ms.
    let diagnosis = explain_on(&long_reads(|_| 320), far_connection(20, 64 << 10));
    let small = &diagnosis.findings[0];
    assert_eq!(small.kind, FindingKind::WindowLimited);
    assert_eq!((figure(small, "window"), figure(small, "round_trip")), (65_536.0, 20e6));
    let ratio = figure(small, "rate") / figure(small, "most_that_the_window_allows");
    assert!((0.95..1.05).contains(&ratio), "{small:?}");
    assert_eq!(found(&diagnosis, FindingKind::BandwidthLimited), None);
    let large = explain_on(&long_reads(|_| 320), far_connection(20, 4 << 20));
    assert_eq!(found(&large, FindingKind::WindowLimited), None);
    let near = explain_on(&long_reads(|_| 320), far_connection(0, 64 << 10));
    assert_eq!(found(&near, FindingKind::WindowLimited), None);
}

#[test]
fn loss_costs_the_time_until_recovery() {
    let lost = |row: &mut Operation| row.set_recovery_ns(200 * MS);
    let mut rows = vec![Act { rtt_ns: 0, ..act(QUERY_INFO, 1, "a") }; 200];
    rows[50..60].iter_mut().for_each(|act| (act.rtt_ns, act.set) = (201 * MS, lost));
    let diagnosis = explain(&rows);
    let losses = found(&diagnosis, FindingKind::Loss).unwrap();
    assert_eq!((losses.details.operations, losses.saved_ns()), (10, 10 * 200 * MS));
    assert_eq!(
        (losses.confidence, figure(losses, "standstill")),
        (Some(Confidence::Measured), 2e9)
    );
    assert_eq!(diagnosis.findings[0], *losses);
    let [at] = &losses.details.connections[..] else { panic!("{losses:?}") };
    assert_eq!((at.name.as_str(), at.operations, at.saved_ns), (":0 > :0", 10, 2_000 * MS));
    rows.iter_mut().for_each(|act| act.set = |_| ());
    assert_eq!(found(&explain(&rows), FindingKind::Loss), None);
}

#[test]
fn loss_costs_the_lower_rate_afterwards() {
    // One of 100 segments is lost: 12.2 segments of 1,460 bytes are in flight per 20 ms.
    let lossy = |lost| Connection {
        client_mss: Some(1460),
        server_mss: Some(1460),
        packets_to_client: 30_000,
        retransmissions_to_client: lost,
        ..far_connection(20, 4 << 20)
    };
    let rows = long_reads(|number| 800 + 150 * (number as i64 % 7));
    let diagnosis = explain_on(&rows, lossy(300));
    let slower = found(&diagnosis, FindingKind::Loss).unwrap();
    assert_eq!(slower.confidence, Some(Confidence::Likely));
    assert!(slower.share() > 0.8 && figure(slower, "rate_afterwards") > 5e6, "{slower:?}");
    // Fewer losses allow a higher rate, more losses a lower one.
    for lost in [0, 3, 3_000] {
        assert_eq!(found(&explain_on(&rows, lossy(lost)), FindingKind::Loss), None, "{lost}");
    }
}

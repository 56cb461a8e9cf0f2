//! The network without SMB: alone, next to SMB, as JSON of the schema and as a page.

use smbscope_analysis::summary::{Net, PathProblem, Report, SmbRatio};
use smbscope_tables::tables::{NetRoundTrip, NetTest};

use super::{check, html, is_well_formed, json, meta, sample, text};

fn net() -> Net {
    let test = NetTest {
        recording: "net-1".into(),
        phase: 1,
        tool: "smbscope".into(),
        direction: "send".into(),
        sender: "10.0.0.1".into(),
        receiver: "<10.0.0.2>".into(),
        duration_ns: 10_000_000_000,
        streams: 4,
        write_bytes: 131_072,
        bytes: 12_500_000_000,
        bits_per_second: 1e10,
        retransmissions: Some(3),
        limit: "network".into(),
        limit_reason: "the congestion window held data back for 90 % of the time".into(),
        sender_cpu_ns: Some(2_500_000_000),
        receiver_cpu_ns: Some(5_000_000_000),
        sender_mtu: Some(9000),
        receiver_mtu: Some(1500),
        ..NetTest::default()
    };
    let trip = NetRoundTrip {
        kind: "read".into(),
        payload_bytes: 65_536,
        samples: 200,
        p50_ns: 250_000,
        p99_ns: 400_000,
        ..NetRoundTrip::default()
    };
    let ratio = SmbRatio {
        operation: "write".into(),
        smb_bits_per_second: 4e9,
        smb_windows: 12,
        smb_window_ns: 1_000_000_000,
        raw_bits_per_second: 1e10,
        ratio: 0.4,
        limit: "smb".into(),
        raw_limit: "network".into(),
        paths: Some(1),
        paths_tested: Some(1),
    };
    let problem = PathProblem { kind: "mtu_differs".into(), first_bytes: 9000, second_bytes: 1500 };
    Net {
        tests: vec![test],
        round_trips: vec![trip],
        ratios: vec![ratio],
        smb_client_cpu_per_gb_ns: Some(700_000_000),
        problems: vec![problem],
        ..Net::default()
    }
}

#[test]
fn a_test_alone_begins_with_the_rate_and_its_limit() {
    let report = Report { net: Some(net()), ..Report::default() };
    let text = text(&report, &meta(), 100);
    assert!(text.contains("Without SMB: 10.0 Gbit/s from 10.0.0.1 to <10.0.0.2>"), "{text}");
    assert!(text.contains("limited by the network"), "{text}");
    // CPU per GB: 2.5 s for 12.5 GB at the sender.
    for part in ["200 ms", "400 ms", "700 ms", "250 µs", "different MTUs (9000 and 1500)"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("no SMB operations"), "{text}");
    is_well_formed(&html(&report, &meta()));
}

#[test]
fn next_to_smb_it_names_the_limit() {
    let report = Report { net: Some(net()), ..sample::report(60) };
    let text = text(&report, &meta(), 100);
    assert!(text.contains("SMB writes 40.0 % of what TCP alone moves: SMB is the limit"), "{text}");
    let page = html(&report, &meta());
    is_well_formed(&page);
    assert!(page.contains("&lt;10.0.0.2&gt;") && !page.contains("<10.0.0.2>"));
    check(&json(&report, &meta()).unwrap(), "report", "");
}

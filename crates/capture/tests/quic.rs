//! SMB over QUIC in a file that `tests/quic/make_fixture.py` wrote: connections without operations.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod support;

use smbscope_capture::Options;
use support::decode::{decode, single};

const FILE: &[u8] = include_bytes!("../../../tests/quic/quic.pcap");

#[test]
fn connections_that_offer_smb_are_rows_without_operations() {
    for options in [single(), Options { threads: 3, ..single() }] {
        let decoded = decode(FILE, &options);
        assert_eq!(decoded.operations(), 0);
        let coverage = &decoded.coverage[0];
        assert_eq!((coverage.quic_connections, coverage.quic_maybe_smb), (2, 2));
        // A version that is not known, and a connection from before the capture; no TCP connection.
        assert_eq!(coverage.connections, 0);
        let [usual, other_port] = &decoded.connections[..] else {
            panic!("{:?}", decoded.connections)
        };
        assert_eq!(usual.transport.as_deref(), Some("quic"));
        assert_eq!((usual.client.as_str(), usual.client_port), ("10.0.0.1", 50_001));
        assert_eq!((usual.server.as_str(), usual.server_port), ("10.0.0.2", 443));
        assert!(usual.handshake_seen && usual.end_reason == "end of the capture");
        // Two Initial packets of 1200 bytes, then 85 and 165 bytes in each of 20 rounds.
        assert_eq!((usual.packets_to_server, usual.packets_to_client), (22, 21));
        assert_eq!(usual.bytes_to_server, 2 * 1_200 + 20 * 85);
        assert_eq!(usual.end - usual.start, 203_000_000);
        assert_eq!((usual.server_rtt_ns, usual.client_rtt_ns), (Some(3_000_000), Some(7_000_000)));
        assert!(usual.server_rtt_samples > 15);
        assert_eq!(usual.vantage, None);
        assert_eq!((other_port.server_port, other_port.connection), (8443, 2));
        assert_eq!((other_port.server_rtt_ns, other_port.server_rtt_samples), (None, 0));
    }
}

/// Each byte of the first packets changed: nothing is invented, nothing panics.
#[test]
fn damaged_packets_make_no_connection() {
    // The file's and the record's header, Ethernet, IP, UDP.
    let start = 24 + 16 + 14 + 20 + 8;
    for at in (start..start + 60).chain(start + 1_180..start + 1_200) {
        let mut changed = FILE.to_vec();
        changed[at] ^= 0x55;
        let coverage = &decode(&changed, &single()).coverage[0];
        assert!(coverage.quic_connections <= 2, "{at}");
        assert!(coverage.quic_connections + coverage.quic_maybe_smb >= 1, "{at}");
    }
}

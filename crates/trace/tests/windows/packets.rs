//! Packets in logs of `netsh trace` and `pktmon`.

use smbscope_testing::windows_log::{Layers, frames_of_pcap, netsh, pktmon};

use super::captures;
use super::rows::{Decoded, frames, of_frames, of_log};

/// Columns that name the file.
const FILE: [&str; 2] = ["recording", "capture_file"];
const CAPTURES: [&str; 9] = [
    "credits.pcapng",
    "lease-break.pcapng",
    "compound-break.pcapng",
    "shared/smb311-100-small-files.pcap",
    "shared/smb202-64k-writes.pcap",
    "shared/smb302-signed-leases-compounds.pcap",
    "shared/smb311-multichannel.pcap",
    "shared/smb-scanners.pcap",
    "shared/smb1-trans2-ntcreate.pcap",
];

fn same(log: &Decoded, capture: &Decoded, what: &str) {
    assert!(!capture.operations.is_empty(), "{what}");
    let (ours, theirs) = (log.without(&FILE), capture.without(&FILE));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{what}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
    assert_eq!(log.connections.len(), capture.connections.len());
    for (ours, theirs) in log.connections.iter().zip(&capture.connections) {
        assert_eq!(ours.bytes_to_client, theirs.bytes_to_client);
        assert_eq!(ours.server_rtt_ns, theirs.server_rtt_ns);
        assert_eq!(ours.retransmissions_to_server, theirs.retransmissions_to_server);
    }
    let (ours, theirs) = (log.coverage.as_ref().unwrap(), capture.coverage.as_ref().unwrap());
    assert_eq!(
        (ours.frames, ours.frames_not_tcp),
        (theirs.frames, theirs.frames_not_tcp),
        "{what}"
    );
    assert_eq!((ours.start, ours.end), (theirs.start, theirs.end), "{what}");
}

#[test]
fn packets_of_netsh_are_those_of_the_capture() {
    for path in captures(&CAPTURES) {
        let frames = frames(&path);
        let capture = of_frames(&frames);
        let name = path.display().to_string();
        for (what, layers) in [
            ("as they are", Layers::default()),
            ("in pieces", Layers { piece_bytes: 500, ..Layers::default() }),
            ("at three layers", Layers { filters: 2, ..Layers::default() }),
            ("of a switch", Layers { is_switch: true, filters: 1, ..Layers::default() }),
        ] {
            let log = of_log(&netsh(&frames, layers));
            same(&log, &capture, &format!("{name} {what}"));
            let coverage = log.coverage.unwrap();
            let repeated = frames.len() as u64 * u64::from(layers.filters);
            assert_eq!(
                coverage.frames_repeated,
                repeated + capture.coverage.as_ref().unwrap().frames_repeated
            );
            assert!(coverage.format.contains("(packets), build 19045"), "{}", coverage.format);
        }
    }
}

#[test]
fn packets_of_pktmon_count_once_and_drops_are_reported() {
    for path in captures(&CAPTURES) {
        let frames = frames(&path);
        let log = of_log(&pktmon(&frames, 3));
        same(&log, &of_frames(&frames), &path.display().to_string());
        let coverage = log.coverage.unwrap();
        assert!(coverage.frames_repeated >= 2 * frames.len() as u64);
        let notes = coverage.notes.unwrap();
        let dropped = frames.len().div_ceil(10);
        assert!(notes.contains(&format!("dropped {dropped} packets")), "{notes}");
    }
}

#[test]
fn packets_of_mobile_networks_begin_with_ip() {
    for path in captures(&["credits.pcapng"]) {
        let layers = Layers { is_mobile: true, ..Layers::default() };
        let frames = frames(&path);
        let (log, capture) = (of_log(&netsh(&frames, layers)), of_frames(&frames));
        assert_eq!(log.without(&FILE), capture.without(&FILE));
    }
}

#[test]
fn a_damaged_log_ends_with_a_coverage() {
    let Some(path) = captures(&["credits.pcapng"]).pop() else { return };
    let log = netsh(&frames(&path), Layers { piece_bytes: 300, ..Layers::default() });
    for cut in [log.len() / 3, log.len() - 1_000] {
        let decoded = of_log(&log[..cut]);
        assert!(decoded.coverage.is_some(), "{cut}");
    }
    // Bits that flip, wherever they are.
    let mut state = 1_u64;
    for _ in 0..60 {
        let mut damaged = log.clone();
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = 4_096 + (state >> 20) as usize % (damaged.len() - 4_096);
            damaged[place] ^= 1 << (state >> 60 & 7);
        }
        of_log(&damaged);
    }
}

#[test]
fn a_pcap_is_read_as_it_is() {
    for path in captures(&["shared/smb202-copy.pcap"]) {
        let read = frames_of_pcap(&std::fs::read(&path).unwrap());
        let frames = frames(&path);
        assert_eq!(read.len(), frames.len());
        assert!(
            read.iter().zip(&frames).all(|(a, b)| (a.time_ns, &a.bytes) == (b.time_ns, &b.bytes))
        );
    }
}

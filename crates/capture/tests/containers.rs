//! One capture in every container, link type and tunnel that two programs make of it
//! (`make_variants.py` next to the captures, and editcap): each gives the same operations, or is
//! refused by its name. Needs the captures, Python 3 and editcap; without them the test reports that
//! and passes.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use smbscope_capture::Options;
use support::decode::{Decoded, Row, assert_same, decode_files, folder, single};

/// Columns that depend on the place of packets in the file.
const OWN: &[&str] =
    &["recording", "capture_file", "request_frame", "response_frame", "pending_frame"];

/// What a container with coarser times, a tunnel or a moved clock changes as well.
const TIMES: &[&str] =
    &["request_start", "request_end", "pending_at", "response_start", "response_end"];

/// Containers that are recognised but not read.
const REFUSED: &[(&str, &str)] = &[
    ("v_5views.cap", "5View"),
    ("v_lanalyzer.cap", "LANalyzer"),
    ("v_nettl.cap", "nettl"),
    ("v_visual.cap", "Visual Networks"),
];

/// Formats that editcap writes for Ethernet.
const EDITCAP: &[&str] = &[
    "5views",
    "lanalyzer",
    "modpcap",
    "netmon1",
    "netmon2",
    "nettl",
    "ngsniffer",
    "ngwsniffer_1_1",
    "ngwsniffer_2_0",
    "nokiapcap",
    "nsecpcap",
    "pcapng",
    "rh6_1pcap",
    "snoop",
    "suse6_3pcap",
    "visual",
];

/// What the coverage must say was unwrapped.
const UNWRAPPED: &[(&str, &str)] = &[
    ("l_80211.pcap", "802.11 3"),
    ("l_erspan2.pcap", "ERSPAN II 3328"),
    ("l_erspan3.pcap", "ERSPAN III 3328"),
    ("l_geneve.pcap", "Geneve 3328"),
    ("l_gre_ip.pcap", "GRE 3320"),
    ("l_gtpu.pcap", "GTP-U 3320"),
    ("l_ipip.pcap", "IP in IP 3320"),
    ("l_llcsnap.pcap", "LLC/SNAP 3"),
    ("l_mpls2.pcap", "MPLS 3320"),
    ("l_ppp.pcap", "PPP 3320"),
    ("l_pppoe.pcap", "PPPoE 3320"),
    ("l_qinq.pcap", "QinQ 3328"),
    ("l_radiotap.pcap", "802.11 3"),
    ("l_tzsp.pcap", "TZSP 3328"),
    ("l_vxlan.pcap", "VXLAN 3328"),
];

fn shared() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or(beside, PathBuf::from);
    let captures = shared.join("captures");
    if !captures.join("make_variants.py").exists() {
        smbscope_testing::skip!("no make_variants.py in {}", captures.display());
        return None;
    }
    Some(captures)
}

/// Makes all variants; `None` if a program is missing.
fn make(captures: &Path, out: &Path) -> Option<()> {
    let original = captures.join("smb-scanners.pcap");
    for program in ["python3", "editcap"] {
        if Command::new(program).arg("--version").output().is_err() {
            smbscope_testing::skip!("{program} is not installed");
            return None;
        }
    }
    let made = Command::new("python3")
        .arg(captures.join("make_variants.py"))
        .args([&original, out])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for kind in EDITCAP {
        let variant = out.join(format!("v_{kind}.cap"));
        let made = Command::new("editcap").args(["-F", kind]).args([&original, &variant]).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{kind}: {}", String::from_utf8_lossy(&made.stderr));
    }
    Some(())
}

fn rows(decoded: &Decoded, left_out: &[&str]) -> Vec<Row> {
    let mut rows = decoded.rows_without(&[OWN, left_out].concat());
    if !left_out.is_empty() {
        for row in &mut rows {
            row.retain(|column, _| !column.ends_with("_ns"));
        }
    }
    rows.sort();
    rows
}

/// Times of requests: at most `slack_ns` from those of the original.
fn assert_times(original: &Decoded, variant: &Decoded, slack_ns: i64, name: &str) {
    let of = |decoded: &Decoded| -> Vec<i64> {
        let mut times: Vec<i64> = decoded
            .rows()
            .iter()
            .filter_map(|row| row.get("request_start"))
            .map(|time| time.parse().unwrap())
            .collect();
        times.sort_unstable();
        times
    };
    let (original, variant) = (of(original), of(variant));
    assert_eq!(original.len(), variant.len(), "{name}");
    for (one, other) in original.iter().zip(&variant) {
        assert!(one.abs_diff(*other) <= slack_ns as u64, "{name}: {one} {other}");
    }
}

fn check(name: &str, path: &Path, original: &Decoded, options: &Options) {
    let result = decode_files(vec![path.to_owned()], options);
    if let Some((_, what)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        let Err(error) = result else { panic!("{name} is read") };
        let error = error.to_string();
        assert!(error.contains(what) && error.contains("editcap -F"), "{error}");
        return;
    }
    let decoded = result.unwrap_or_else(|error| panic!("{name}: {error}"));
    let coverage = &decoded.coverage[0];
    if let Some((_, text)) = UNWRAPPED.iter().find(|(of, _)| *of == name) {
        let unwrapped = coverage.unwrapped.clone().unwrap_or_default();
        assert!(
            unwrapped.starts_with(text) || unwrapped.contains(&format!(", {text}")),
            "{name}: {unwrapped}"
        );
        assert_eq!(coverage.frames_tunnelled, 0, "{name}");
    }
    match name {
        // Some requests are cut behind the header; every lead is there.
        "t_cut_128.pcap" | "t_each_50th_lost.pcap" => {
            assert!(decoded.operations() > 0 && coverage.gaps + coverage.frames_cut > 0, "{name}");
        }
        "c_cut_in_last_block.pcapng" => {
            assert!(coverage.cut_off.is_some());
            assert_same(&rows(original, &[]), &rows(&decoded, &[]), name);
        }
        // Times in milliseconds hide on which side of the capture point a round trip is.
        "v_netmon1.cap" => {
            let coarse = [TIMES, &["vantage"]].concat();
            assert_same(&rows(original, &coarse), &rows(&decoded, &coarse), name);
            assert_times(original, &decoded, 1_000_000, name);
        }
        // Units of 2^-20 s, of 0.838 us, of 2^-32 s rounded down.
        "c_two_interfaces.pcapng" | "v_ngsniffer.cap" | "c_erf.erf" => {
            assert_same(&rows(original, TIMES), &rows(&decoded, TIMES), name);
            assert_times(original, &decoded, 2_000, name);
        }
        // Other addresses.
        "l_ipv6_exthdr.pcap" => {
            let ends = [TIMES, &["client", "server", "vantage"]].concat();
            assert_same(&rows(original, &ends), &rows(&decoded, &ends), name);
        }
        // Copies and pieces end messages later, and a clock that steps back moves times.
        "t_span_duplicates.pcap" | "t_clock_step_back.pcap" | "t_segments_61_bytes.pcap" => {
            assert_same(&rows(original, TIMES), &rows(&decoded, TIMES), name);
        }
        _ => assert_same(&rows(original, &[]), &rows(&decoded, &[]), name),
    }
    if name == "t_ipfrag.pcap" {
        assert_eq!((coverage.fragments_reassembled, coverage.frames_fragment), (64, 0));
    }
}

#[test]
fn every_container_link_and_tunnel_gives_the_same_operations() {
    let Some(captures) = shared() else { return };
    let folder = folder();
    if make(&captures, folder.path()).is_none() {
        return;
    }
    let several = Options { threads: 3, ..single() };
    let original = decode_files(vec![captures.join("smb-scanners.pcap")], &single())
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(original.operations() > 300);
    let variants: BTreeMap<String, PathBuf> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    for (name, path) in &variants {
        for options in [&single(), &several] {
            check(name, path, &original, options);
        }
    }
    assert!(variants.len() > 50, "{}", variants.len());
}

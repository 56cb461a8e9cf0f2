//! Real captures: the number of packets, compared with the table next to them.

use std::path::PathBuf;

use super::*;
use crate::frame::{NotTcp, dissect};

/// The captures next to the workspace, if this machine has them.
fn captures() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or(beside, PathBuf::from);
    let captures = shared.join("captures");
    if !captures.join("README.md").exists() {
        smbscope_testing::skip!("no captures in {}", captures.display());
        return None;
    }
    Some(captures)
}

#[test]
fn real_captures_have_the_packets_of_their_table() {
    let Some(folder) = captures() else {
        return;
    };
    let table = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut compared = 0;
    for row in table.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, _, _, packets, _, _, _, _, _] = cells[..] else {
            continue;
        };
        let Ok(packets) = packets.parse::<u64>() else {
            continue;
        };
        for limits in [SMALL, Limits::default()] {
            let reader = Reader::open(folder.join(name), limits).unwrap();
            let (seen, summary) = drain(reader);
            assert_eq!(summary.frames, packets, "{name}");
            assert_eq!(summary.cut_off, None, "{name}");
            let mut tcp = 0;
            for (_, link, bytes, original) in &seen {
                match dissect(LinkType(*link), bytes, *original) {
                    Ok(segment) => {
                        tcp += 1;
                        assert!(segment.payload.len() <= segment.payload_len as usize);
                    }
                    Err(NotTcp::UnknownLink) => panic!("{name}: {}", LinkType(*link)),
                    Err(_) => {}
                }
            }
            assert!(tcp > 0, "{name}");
        }
        compared += 1;
    }
    assert!(compared >= 26, "only {compared} rows");
}

//! Captures truncated at every byte: a coverage record or a clear error, never a panic, never more
//! operations than in the complete capture.
//!
//! The shared captures are read in place and skipped with a message if they do not exist; the fixtures
//! of this repository always exist.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use smbscope_capture::{Options, Tables};
use support::decode::{decode_files, folder};

/// Every byte up to here is a cut position.
const HEAD: usize = 4_096;
/// And every byte this close after a frame boundary.
const BOUNDARIES: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn captures() -> Vec<PathBuf> {
    let shared = std::env::var_os("SMBSCOPE_SHARED")
        .map_or_else(|| root().join("../shared"), PathBuf::from)
        .join("captures");
    if !shared.is_dir() {
        smbscope_testing::skip!("{} is not there", shared.display());
    }
    let mut out = Vec::new();
    for folder in [shared, root().join("tests/fixtures")] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy();
            if [".pcap", ".pcapng", ".gz", ".zst"].iter().any(|end| name.ends_with(end)) {
                out.push(path);
            }
        }
    }
    assert!(!out.is_empty(), "no capture found");
    out.sort();
    out
}

/// Other tests check the rows of the operations table; this one is about reading.
fn options() -> Options {
    Options { threads: 1, tables: Tables::NONE, ..Options::default() }
}

/// Where frames of a pcap file end, after `HEAD`: a few positions throughout the file.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let word = |at: usize| -> Option<u32> {
        let raw: [u8; 4] = bytes.get(at..at + 4)?.try_into().unwrap();
        Some(if bytes[0] == 0xa1 { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) })
    };
    if !matches!(bytes.get(..4), Some([0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3, 0xd4])) {
        return Vec::new();
    }
    let (mut at, mut all) = (24, Vec::new());
    while let Some(captured) = word(at + 8) {
        at += 16 + captured as usize;
        if at > HEAD && at < bytes.len() {
            all.push(at);
        }
    }
    let step = (all.len() / BOUNDARIES).max(1);
    all.into_iter().step_by(step).collect()
}

/// The project's own fixtures are many and similar: one cut per this number of bytes is enough.
const FIXTURE_STEP: usize = 61;

fn cuts(bytes: &[u8], is_fixture: bool) -> Vec<usize> {
    let step = if is_fixture { FIXTURE_STEP } else { 1 };
    let mut out: Vec<usize> = (0..bytes.len().min(HEAD)).step_by(step).collect();
    for boundary in boundaries(bytes) {
        out.extend(boundary.saturating_sub(8)..(boundary + 24).min(bytes.len()));
    }
    out
}

/// Operations of a file; `None` if it is not a capture, which only a truncated file may be.
fn operations(path: &Path, length: usize) -> Option<u64> {
    match decode_files(vec![path.to_owned()], &options()) {
        Ok(decoded) => {
            assert_eq!(decoded.coverage.len(), 1, "{} at {length}", path.display());
            Some(decoded.coverage[0].operations)
        }
        Err(error) => {
            // A compressed file is recognized only after some bytes.
            assert!(length < 1_024, "{} at {length}: {error}", path.display());
            assert!(error.to_string().contains("cut"), "{error}");
            None
        }
    }
}

fn cut_everywhere(path: &Path, folder: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let whole = operations(path, bytes.len()).unwrap_or(0);
    let file = folder.join("cut");
    let mut before = 0;
    let is_fixture = path.parent().is_some_and(|folder| folder.ends_with("fixtures"));
    for length in cuts(&bytes, is_fixture) {
        std::fs::write(&file, &bytes[..length]).unwrap();
        let Some(found) = operations(&file, length) else { continue };
        assert!(found <= whole, "{} at {length}: {found} of {whole}", path.display());
        // A longer piece does not have fewer.
        assert!(found >= before, "{} at {length}: {found} after {before}", path.display());
        before = found;
    }
}

#[test]
fn every_capture_can_be_cut_at_every_byte() {
    let captures = captures();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let folder = folder();
                while let Some(path) = captures.get(next.fetch_add(1, Ordering::Relaxed)) {
                    cut_everywhere(path, folder.path());
                }
            });
        }
    });
}

//! Names of functions from PDB files: files that a builder makes (`builder`), the same ones damaged,
//! and one that LLVM's linker made.

// Only tests call these helpers, and a test may panic.
#![allow(clippy::unwrap_used)]

mod builder;
mod store;

use builder::{GUID, Pdb, msf, msfz};
use ms_pdb_msfz::Compression;
use proptest::prelude::*;
use smbscope_trace::symbols::{Functions, Identity, Unreadable, pdb_functions};
use std::io::Cursor;

fn read(bytes: &[u8], age: u32) -> Result<Option<Functions>, Unreadable> {
    pdb_functions(Cursor::new(bytes), &Identity { guid: GUID, age })
}

fn containers(streams: &[Vec<u8>]) -> [Vec<u8>; 3] {
    [msf(streams), msfz(streams, Compression::Zstd), msfz(streams, Compression::Deflate)]
}

fn two_functions() -> Pdb {
    Pdb {
        symbols: vec![(1, 0x200, "Second"), (1, 0x100, "First"), (2, 0, "data"), (9, 0, "no")],
        ..Pdb::default()
    }
}

#[test]
fn every_container_gives_the_same_functions() {
    for bytes in containers(&two_functions().streams()) {
        let all = read(&bytes, 2).unwrap().unwrap();
        assert_eq!(all.find(0x50), None);
        assert_eq!(all.find(0x100), Some("First"));
        assert_eq!(all.find(0x1ff), Some("First"));
        assert_eq!(all.find(0x6fff), Some("Second"));
        assert_eq!(all.find(0x7000), None, "data has no functions");
    }
}

#[test]
fn another_file_of_that_name_is_not_used() {
    let bytes = msf(&two_functions().streams());
    // The age of the file's own history counts as well as that of the image.
    assert!(read(&bytes, 1).unwrap().is_some());
    assert!(read(&bytes, 3).unwrap().is_none());
    let other = Identity { guid: [7; 16], age: 2 };
    assert!(pdb_functions(Cursor::new(&bytes), &other).unwrap().is_none());
}

#[test]
fn moved_code_and_32_bit_names_are_understood() {
    let pdb = Pdb {
        machine: 0x14c,
        symbols: vec![(1, 0x100, "_KeBugCheck@4"), (1, 0x300, "_gone@0")],
        moved: vec![(0, 0x1000), (0x300, 0), (0x400, 0x400)],
        ..Pdb::default()
    };
    let all = read(&msf(&pdb.streams()), 2).unwrap().unwrap();
    assert_eq!(all.find(0x1110), Some("KeBugCheck"));
    assert_eq!((all.find(0x110), all.find(0x310)), (None, None));
}

#[test]
fn a_file_without_sections_or_of_another_kind_is_damaged() {
    let pdb = Pdb { sections: Vec::new(), ..two_functions() };
    let error = read(&msf(&pdb.streams()), 2).unwrap_err();
    assert_eq!(error.to_string(), "it does not list the sections of its image");
    assert_eq!(read(b"BSJB", 2).unwrap_err().to_string(), "not a PDB file");
    assert!(read(b"", 2).is_err());
}

#[test]
fn cut_files_are_damaged() {
    for bytes in containers(&two_functions().streams()) {
        for cut in 0..bytes.len() {
            if let Ok(Some(all)) = read(&bytes[..cut], 2) {
                // What was cut off was not needed.
                assert_eq!(all.find(0x100), Some("First"));
            }
        }
    }
}

/// A stream whose parts are in two pieces by turns, so that each is decompressed again and again.
#[test]
fn a_directory_that_names_pieces_again_and_again_is_refused() {
    const PIECE: u32 = 16 << 20;
    let piece = zstd::encode_all(&vec![0; PIECE as usize][..], 1).unwrap();
    let fragment = |turn: u32| [1, 0, (1 << 31) | (turn % 2)];
    let fragments = (0..400).flat_map(fragment);
    // Stream 0 is empty.
    let directory: Vec<u8> =
        [0].into_iter().chain(fragments).chain([0]).flat_map(u32::to_le_bytes).collect();
    let (piece_at, compressed) = (80, piece.len() as u32);
    let chunk = |at: u64| {
        [&at.to_le_bytes()[..], &[1, compressed, PIECE].map(u32::to_le_bytes).concat()].concat()
    };
    let table = [chunk(piece_at), chunk(piece_at)].concat();
    let table_at = piece_at + piece.len() as u64;
    let directory_at = table_at + table.len() as u64;
    let size = directory.len() as u32;
    let mut file = b"Microsoft MSFZ Container\r\n\x1aALD\0\0".to_vec();
    file.extend([0, directory_at, table_at].iter().flat_map(|word: &u64| word.to_le_bytes()));
    file.extend([2, 0, size, size, 2, 40].iter().flat_map(|word: &u32| word.to_le_bytes()));
    file.extend([piece, table, directory].concat());
    let error = read(&file, 2).unwrap_err();
    assert_eq!(error.to_string(), "its streams are too large");
}

proptest! {
    #[test]
    fn changed_bytes_do_no_harm(
        kind in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = containers(&two_functions().streams())[kind].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(Some(all)) = read(&bytes, 2) {
            all.find(0x100);
        }
    }
}

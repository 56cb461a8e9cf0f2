//! Makes PDB files: streams with public symbols, in containers that Microsoft's own code writes
//! (crates ms-pdb-msf and ms-pdb-msfz).

use ms_pdb_msf::{CreateOptions, MIN_PAGE_SIZE, Msf};
use ms_pdb_msfz::{Compression, MsfzFinishOptions, MsfzWriter};
use std::io::{Cursor, Write as _};

/// The GUID that the builder of event trace logs names, and how a symbol store writes it with the
/// age 2.
pub const GUID: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
pub const KEY: &str = "030201000504070608090A0B0C0D0E0F2";

/// A PDB file to be made.
#[derive(Clone)]
pub struct Pdb {
    pub age: u32,
    pub machine: u16,
    /// Address and size of each section, and whether it is code.
    pub sections: Vec<(u32, u32, bool)>,
    /// Section (from 1), offset and name of each public symbol.
    pub symbols: Vec<(u16, u32, &'static str)>,
    /// Old and new addresses of code that was moved.
    pub moved: Vec<(u32, u32)>,
}

impl Default for Pdb {
    fn default() -> Pdb {
        Pdb {
            age: 2,
            machine: 0x8664,
            sections: vec![(0, 0x7000, true), (0x7000, 0x1000, false)],
            symbols: Vec::new(),
            moved: Vec::new(),
        }
    }
}

impl Pdb {
    /// The streams; the first one is reserved.
    pub fn streams(&self) -> Vec<Vec<u8>> {
        const SECTIONS: u16 = 5;
        const SYMBOLS: u16 = 6;
        const MOVED: u16 = 7;
        let info =
            [&20_000_404_u32.to_le_bytes(), &[0; 4], &1_u32.to_le_bytes(), &GUID[..]].concat();
        let sections: Vec<u8> = self.sections.iter().flat_map(|section| header(*section)).collect();
        let mut symbols = vec![4, 0, 0x25, 0x11, 0, 0];
        for (section, offset, name) in &self.symbols {
            let mut record = 0x110e_u16.to_le_bytes().to_vec();
            record.extend(2_u32.to_le_bytes());
            record.extend(offset.to_le_bytes());
            record.extend(section.to_le_bytes());
            record.extend(name.bytes().chain([0]));
            record.resize((record.len() + 2).next_multiple_of(4) - 2, 0);
            symbols.extend((record.len() as u16).to_le_bytes());
            symbols.extend(record);
        }
        let moved = self.moved.iter();
        let moved: Vec<u8> =
            moved.flat_map(|(from, to)| [from.to_le_bytes(), to.to_le_bytes()].concat()).collect();
        // The DBI stream: its header, one part of 12 bytes, and the list of optional streams.
        let mut further = [u16::MAX; 11];
        if moved.is_empty() {
            further[5] = SECTIONS;
        } else {
            further[4] = MOVED;
            further[10] = SECTIONS;
        }
        let mut linked = vec![0; 64 + 12];
        let mut put = |at: usize, bytes: &[u8]| linked[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &u32::MAX.to_le_bytes());
        put(4, &19_990_903_u32.to_le_bytes());
        put(8, &self.age.to_le_bytes());
        put(20, &SYMBOLS.to_le_bytes());
        put(32, &12_u32.to_le_bytes());
        put(48, &22_u32.to_le_bytes());
        put(58, &self.machine.to_le_bytes());
        linked.extend(further.iter().flat_map(|number| number.to_le_bytes()));
        vec![vec![], info, vec![0; 56], linked, vec![], sections, symbols, moved]
    }
}

fn header((address, size, is_code): (u32, u32, bool)) -> Vec<u8> {
    let mut out = vec![0; 40];
    out[8..12].copy_from_slice(&size.to_le_bytes());
    out[12..16].copy_from_slice(&address.to_le_bytes());
    let flags: u32 = if is_code { 0x6000_0020 } else { 0x4000_0040 };
    out[36..40].copy_from_slice(&flags.to_le_bytes());
    out
}

/// Streams as an MSF file.
pub fn msf(streams: &[Vec<u8>]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made.pdb");
    let options = CreateOptions { page_size: MIN_PAGE_SIZE, ..CreateOptions::default() };
    let mut file = Msf::create(&path, options).unwrap();
    for (number, stream) in streams.iter().enumerate().skip(1) {
        if number <= 4 {
            file.write_stream(number as u32).unwrap().set_contents(stream).unwrap();
        } else {
            assert_eq!(file.new_stream_data(stream).unwrap() as usize, number);
        }
    }
    file.commit().unwrap();
    drop(file);
    std::fs::read(&path).unwrap()
}

/// Streams as an MSFZ file; every second one is not compressed.
pub fn msfz(streams: &[Vec<u8>], compression: Compression) -> Vec<u8> {
    let mut file = MsfzWriter::new(Cursor::new(Vec::new())).unwrap();
    file.set_chunk_compression_mode(compression);
    for (number, stream) in streams.iter().enumerate().skip(1) {
        let (written, mut writer) = file.new_stream_writer().unwrap();
        assert_eq!(written as usize, number);
        writer.set_compression_enabled(number % 2 == 0);
        writer.write_all(stream).unwrap();
        if number == 3 {
            writer.end_chunk().unwrap();
        }
    }
    let options =
        MsfzFinishOptions { stream_dir_compression: Some(compression), ..Default::default() };
    file.finish_with_options(options).unwrap().1.into_inner()
}

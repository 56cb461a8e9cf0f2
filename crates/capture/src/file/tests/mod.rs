//! Tests of the file formats: files written here by hand, byte by byte, with known contents.

use std::io::{self, Cursor, Read};

use super::*;

mod damage;
mod formats;
mod shared;
mod write;

/// A frame as a test compares it: time, link type, captured bytes, length on the wire.
type Seen = (i64, u16, Vec<u8>, u32);

/// Reads everything, with chunks small enough that many records straddle them.
fn read_all(bytes: &[u8]) -> (Vec<Seen>, FileSummary) {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let reader = Reader::from_read(input, "test", None, SMALL);
    drain(reader.unwrap())
}

const SMALL: Limits = Limits { chunk_bytes: 4 << 10, block_bytes: 1 << 20 };

fn drain(mut reader: Reader) -> (Vec<Seen>, FileSummary) {
    let mut seen = Vec::new();
    let mut recycled = None;
    while let Some(chunk) = reader.next_chunk(recycled.take()).unwrap() {
        assert!(!chunk.frames.is_empty());
        for frame in &chunk.frames {
            let bytes = chunk.frame(frame).to_vec();
            assert_eq!(bytes.len(), frame.captured as usize);
            seen.push((frame.time_ns, frame.link.0, bytes, frame.original));
            assert_eq!(frame.number, seen.len() as u64);
        }
        recycled = Some(chunk);
    }
    assert!(reader.next_chunk(None).unwrap().is_none(), "the end stays");
    let summary = reader.summary().clone();
    assert_eq!(summary.frames, seen.len() as u64);
    let captured: usize = seen.iter().map(|seen| seen.2.len()).sum();
    assert_eq!(summary.captured_bytes, captured as u64);
    assert_eq!(summary.first_time_ns, seen.iter().map(|seen| seen.0).min());
    assert_eq!(summary.last_time_ns, seen.iter().map(|seen| seen.0).max());
    (seen, summary)
}

fn error_of(bytes: &[u8]) -> FileError {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    Reader::from_read(input, "test", None, SMALL).err().unwrap()
}

/// A reader that gives one byte at a time and fails at the end.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut one = [0];
        match (self.0.read(&mut one)?, bytes.first_mut()) {
            (1, Some(first)) => {
                *first = one[0];
                Ok(1)
            }
            _ => Err(io::Error::other("the disk is gone")),
        }
    }
}

//! Records of `perf.data` one after the other, in the order of the file, decompressed.
//!
//! `perf record -z` packs records into one stream of Zstandard, which
//! `PERF_RECORD_COMPRESSED` records carry in pieces; a record can continue in the next piece.

use std::io::{self, Read};

use zstd::stream::raw::{DParameter, Decoder, Operation};

use crate::bytes::{Order, read_block};

/// Bytes that are decompressed at once.
const PIECE_BYTES: usize = 65_536;
/// Largest window of the compression: level 19 needs 8 MiB.
const WINDOW_LOG_MAX: u32 = 25;
/// Largest description of tracepoints, which follows its record when `perf` writes to a pipe.
const TRACING_BYTES_MAX: u64 = 64 << 20;
const HEADER_BYTES: usize = 8;

/// Kinds of records whose contents follow them, or are compressed.
pub const TRACING_DATA: u32 = 66;
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// A record without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'a [u8],
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    Record(Record<'a>),
    /// Something could not be read; what follows it is read if its place is known.
    Damaged(&'static str),
    End,
}

/// Where the body of a decompressed record is.
struct Place {
    kind: u32,
    misc: u16,
    start: usize,
    end: usize,
}

/// Reads records.
pub struct Stream<R> {
    source: R,
    order: Order,
    /// Bytes of the records that are not read yet; `None` up to the end of the file.
    left: Option<u64>,
    /// Bytes read so far.
    pub read_bytes: u64,
    body: Vec<u8>,
    packed: Vec<u8>,
    packed_at: usize,
    /// The decoder may have more without more input.
    has_more: bool,
    plain: Vec<u8>,
    plain_at: usize,
    decoder: Option<Decoder<'static>>,
    is_ended: bool,
}

impl<R: Read> Stream<R> {
    /// Reads the records that begin here.
    pub fn new(source: R, order: Order, length: Option<u64>) -> Stream<R> {
        Stream {
            source,
            order,
            left: length,
            read_bytes: 0,
            body: Vec::new(),
            packed: Vec::new(),
            packed_at: 0,
            has_more: false,
            plain: Vec::new(),
            plain_at: 0,
            decoder: None,
            is_ended: false,
        }
    }

    /// The next record.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn next(&mut self) -> io::Result<Next<'_>> {
        loop {
            match self.unpacked() {
                Some(Ok(Place { kind, misc, start, end })) => {
                    let body = self.plain.get(start..end).unwrap_or_default();
                    return Ok(Next::Record(Record { kind, misc, body }));
                }
                Some(Err(what)) => {
                    self.forget_packed();
                    return Ok(Next::Damaged(what));
                }
                None => {}
            }
            if self.packed_at < self.packed.len() || self.has_more {
                if self.unpack().is_none() {
                    self.forget_packed();
                    return Ok(Next::Damaged("compressed records"));
                }
                continue;
            }
            if self.is_ended {
                return Ok(Next::End);
            }
            let (kind, misc) = match self.read()? {
                Next::Record(record) => (record.kind, record.misc),
                Next::Damaged(what) => {
                    self.is_ended = true;
                    return Ok(Next::Damaged(what));
                }
                Next::End => {
                    self.is_ended = true;
                    continue;
                }
            };
            match kind {
                COMPRESSED => self.pack(0, usize::MAX),
                COMPRESSED2 => {
                    let length = self.order.u64(&self.body, 0).unwrap_or(0);
                    self.pack(8, usize::try_from(length).unwrap_or(usize::MAX));
                }
                _ => return Ok(Next::Record(Record { kind, misc, body: &self.body })),
            }
        }
    }

    /// Reads a record of the file.
    fn read(&mut self) -> io::Result<Next<'_>> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        self.take(HEADER_BYTES as u64, &mut header)?;
        if header.is_empty() {
            return Ok(match self.left {
                None | Some(0) => Next::End,
                Some(_) => Next::Damaged("the file is cut"),
            });
        }
        let (Some(kind), Some(misc), Some(size)) =
            (self.order.u32(&header, 0), self.order.u16(&header, 4), self.order.u16(&header, 6))
        else {
            return Ok(Next::Damaged("the file is cut"));
        };
        let Some(body_bytes) = usize::from(size).checked_sub(HEADER_BYTES) else {
            return Ok(Next::Damaged("a record shorter than its header"));
        };
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        self.take(body_bytes as u64, &mut body)?;
        self.body = body;
        if self.body.len() < body_bytes {
            return Ok(Next::Damaged("the file is cut"));
        }
        match kind {
            AUXTRACE => {
                let length = self.order.u64(&self.body, 0).unwrap_or(0);
                let length = length.min(self.left.unwrap_or(u64::MAX));
                let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                self.consumed(skipped);
            }
            TRACING_DATA => {
                let length = u64::from(self.order.u32(&self.body, 0).unwrap_or(0));
                let block = read_block(&mut self.source, length, TRACING_BYTES_MAX)?;
                let Some(block) = block else {
                    return Ok(Next::Damaged("description of the tracepoints"));
                };
                self.consumed(length);
                self.body = block;
            }
            _ => {}
        }
        Ok(Next::Record(Record { kind, misc, body: &self.body }))
    }

    /// Reads up to `length` bytes, fewer at the end.
    fn take(&mut self, length: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let length = length.min(self.left.unwrap_or(u64::MAX));
        let read = self.source.by_ref().take(length).read_to_end(out)?;
        self.consumed(read as u64);
        Ok(())
    }

    fn consumed(&mut self, bytes: u64) {
        self.read_bytes += bytes;
        self.left = self.left.map(|left| left.saturating_sub(bytes));
    }

    /// Takes the compressed bytes of the current record.
    fn pack(&mut self, start: usize, length: usize) {
        let end = start.saturating_add(length).min(self.body.len());
        self.packed.clear();
        self.packed.extend_from_slice(self.body.get(start..end).unwrap_or_default());
        self.packed_at = 0;
    }

    /// Decompresses a piece.
    fn unpack(&mut self) -> Option<()> {
        self.plain.drain(..self.plain_at);
        self.plain_at = 0;
        if self.decoder.is_none() {
            let mut decoder = Decoder::new().ok()?;
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).ok()?;
            self.decoder = Some(decoder);
        }
        let decoder = self.decoder.as_mut()?;
        let filled = self.plain.len();
        self.plain.resize(filled + PIECE_BYTES, 0);
        let input = self.packed.get(self.packed_at..)?;
        let output = self.plain.get_mut(filled..)?;
        let status = decoder.run_on_buffers(input, output).ok();
        let written = status.as_ref().map_or(0, |status| status.bytes_written);
        self.plain.truncate(filled + written);
        let status = status?;
        self.packed_at += status.bytes_read;
        self.has_more = written == PIECE_BYTES;
        let is_stuck = status.bytes_read == 0 && written == 0 && self.packed_at < self.packed.len();
        (!is_stuck).then_some(())
    }

    /// The next decompressed record.
    fn unpacked(&mut self) -> Option<Result<Place, &'static str>> {
        let bytes = self.plain.get(self.plain_at..)?;
        let size = usize::from(self.order.u16(bytes, 6)?);
        if size < HEADER_BYTES {
            return Some(Err("a record shorter than its header"));
        }
        if bytes.len() < size {
            return None;
        }
        let (kind, misc) = (self.order.u32(bytes, 0)?, self.order.u16(bytes, 4)?);
        let start = self.plain_at + HEADER_BYTES;
        self.plain_at += size;
        Some(Ok(Place { kind, misc, start, end: self.plain_at }))
    }

    fn forget_packed(&mut self) {
        self.packed.clear();
        self.packed_at = 0;
        self.plain.clear();
        self.plain_at = 0;
        self.has_more = false;
        self.decoder = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = (HEADER_BYTES + body.len()) as u16;
        [&kind.to_le_bytes()[..], &[7, 0], &size.to_le_bytes(), body].concat()
    }

    fn read(bytes: &[u8], length: Option<u64>) -> Vec<(u32, Vec<u8>)> {
        let mut stream = Stream::new(bytes, Order::Little, length);
        let mut found = Vec::new();
        loop {
            match stream.next().unwrap() {
                Next::Record(record) => found.push((record.kind, record.body.to_vec())),
                Next::Damaged(what) => found.push((0, what.into())),
                Next::End => break,
            }
        }
        assert!(stream.read_bytes <= bytes.len() as u64);
        found
    }

    #[test]
    fn compressed_records_continue_in_the_next_piece() {
        let plain: Vec<u8> =
            (0..3_000_u32).flat_map(|number| record(9, &number.to_le_bytes())).collect();
        let packed = zstd::encode_all(&plain[..], 1).unwrap();
        let (first, second) = packed.split_at(packed.len() / 2);
        let padded = [&(second.len() as u64).to_le_bytes(), second, &[0; 5]].concat();
        let bytes =
            [record(COMPRESSED, first), record(COMPRESSED2, &padded), record(3, b"x")].concat();
        let found = read(&bytes, None);
        assert_eq!(found.len(), 3_001);
        assert_eq!(found[2_999], (9, 2_999_u32.to_le_bytes().to_vec()));
        let damaged = [record(COMPRESSED, b"no frame"), record(3, b"x")].concat();
        assert_eq!(read(&damaged, None), [(0, b"compressed records".to_vec()), (3, b"x".to_vec())]);
    }

    #[test]
    fn contents_behind_a_record_belong_to_it() {
        let tracing = [&record(TRACING_DATA, &[3, 0, 0, 0])[..], b"abc"].concat();
        let aux = [&record(AUXTRACE, &2_u64.to_le_bytes())[..], b"zz"].concat();
        let bytes = [tracing, aux, record(3, b"x")].concat();
        let kinds: Vec<_> = read(&bytes, Some(bytes.len() as u64)).into_iter().collect();
        assert_eq!((kinds[0].clone(), kinds.len()), ((TRACING_DATA, b"abc".to_vec()), 3));
        let forged = record(TRACING_DATA, &[0xff; 4]);
        assert_eq!(read(&forged, None)[0].0, 0);
        assert_eq!(read(&record(AUXTRACE, &[0xff; 8]), None).len(), 1);
    }

    #[test]
    fn a_cut_ends_the_records() {
        let bytes = [record(3, b"x"), record(4, b"yz")].concat();
        let cut = "the file is cut";
        assert_eq!(read(&bytes[..11], None), [(3, b"x".to_vec()), (0, cut.into())]);
        assert_eq!(read(&bytes, Some(100)).last(), Some(&(0, cut.into())));
        assert_eq!(read(&[0; 8], None), [(0, b"a record shorter than its header".to_vec())]);
    }
}

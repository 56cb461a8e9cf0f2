//! Pages of one CPU, one after the other, plain or in compressed chunks.

use std::io::{self, Read, Seek};

use super::compression::Compression;
use crate::bytes::{Order, read_block, read_number, seek_to};

/// Largest page of the ring buffer (`buffer_subbuf_size_kb`), and largest chunk of compressed pages.
pub const PAGE_BYTES_MAX: u32 = 1 << 20;
const CHUNK_BYTES_MAX: u64 = 1 << 20;

/// Where the pages of a CPU are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub cpu: u32,
    pub at: u64,
    pub length: u64,
}

/// Pages of a CPU that are not read yet.
#[derive(Debug)]
pub struct Pages {
    pub cpu: u32,
    page_bytes: usize,
    /// Where the next page or chunk is.
    pub at: u64,
    end: u64,
    compression: Option<(Compression, Order)>,
    /// Chunks that are not read yet; `None` before their number is known.
    chunks_left: Option<u64>,
    chunk: Vec<u8>,
    chunk_at: usize,
    /// The current page.
    pub page: Vec<u8>,
}

/// What the next page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Page,
    Damaged,
    End,
}

impl Pages {
    pub fn new(place: Place, page_bytes: u32, compression: Option<(Compression, Order)>) -> Pages {
        Pages {
            cpu: place.cpu,
            page_bytes: page_bytes as usize,
            at: place.at,
            end: place.at.saturating_add(place.length),
            compression,
            chunks_left: None,
            chunk: Vec::new(),
            chunk_at: 0,
            page: Vec::new(),
        }
    }

    /// Most bytes that it has in memory.
    pub fn bytes_max(&self) -> usize {
        let chunk = self.compression.map_or(0, |_| CHUNK_BYTES_MAX as usize);
        // Two pages are ahead.
        3 * self.page_bytes + chunk
    }

    /// Reads the next page. A page that is cut at the end of the file is damaged.
    pub fn next(&mut self, source: &mut (impl Read + Seek)) -> io::Result<Next> {
        self.page.clear();
        if self.compression.is_some() {
            if self.chunk_at >= self.chunk.len() {
                match self.read_chunk(source)? {
                    Next::Page => {}
                    other => return Ok(other),
                }
            }
            let end = self.chunk_at.saturating_add(self.page_bytes).min(self.chunk.len());
            self.page.extend_from_slice(self.chunk.get(self.chunk_at..end).unwrap_or_default());
            self.chunk_at = end;
            return Ok(Next::Page);
        }
        let length = (self.page_bytes as u64).min(self.end.saturating_sub(self.at));
        if length == 0 {
            return Ok(Next::End);
        }
        if !seek_to(source, self.at)? {
            self.end = self.at;
            return Ok(Next::Damaged);
        }
        let read = source.by_ref().take(length).read_to_end(&mut self.page)?;
        self.at = self.at.saturating_add(read as u64);
        if (read as u64) < length {
            self.end = self.at;
        }
        // A page begins with its time.
        let is_zero = self.page.iter().all(|&byte| byte == 0);
        Ok(if read as u64 == length && !is_zero { Next::Page } else { Next::Damaged })
    }

    fn read_chunk(&mut self, source: &mut (impl Read + Seek)) -> io::Result<Next> {
        let Some((compression, order)) = self.compression else { return Ok(Next::End) };
        if self.chunks_left == Some(0) || self.at >= self.end && self.chunks_left.is_none() {
            // A count of chunks that is too small leaves some of them out.
            let is_whole = self.at >= self.end;
            self.at = self.end;
            return Ok(if is_whole { Next::End } else { Next::Damaged });
        }
        if !seek_to(source, self.at)? {
            self.at = self.end;
            self.chunks_left = Some(0);
            return Ok(Next::Damaged);
        }
        let left = match self.chunks_left {
            Some(left) => left,
            None => {
                self.at = self.at.saturating_add(4);
                read_number::<4>(source, order)?.unwrap_or(0)
            }
        };
        self.chunks_left = left.checked_sub(1).or(Some(0));
        if left == 0 {
            return self.read_chunk(source);
        }
        let packed_bytes = read_number::<4>(source, order)?;
        let plain_bytes = read_number::<4>(source, order)?;
        let (Some(packed_bytes), Some(plain_bytes)) = (packed_bytes, plain_bytes) else {
            self.chunks_left = Some(0);
            return Ok(Next::Damaged);
        };
        self.at = self.at.saturating_add(8).saturating_add(packed_bytes);
        let packed = read_block(source, packed_bytes, CHUNK_BYTES_MAX)?;
        self.chunk_at = 0;
        let is_whole = packed.is_some_and(|packed| {
            plain_bytes <= CHUNK_BYTES_MAX
                && compression.unpack(&packed, plain_bytes, &mut self.chunk)
        });
        if !is_whole {
            self.chunk.clear();
            return Ok(Next::Damaged);
        }
        Ok(if self.chunk.is_empty() { Next::Damaged } else { Next::Page })
    }
}

//! Where the buffers of a log are, and when each one begins.

use super::Error;
use super::buffer::{self, BufferHeader, HEADER_BYTES};
use super::log_header::LogHeader;
use std::io::{self, Read, Seek, SeekFrom};

/// Largest number of buffers of a log that are read; 128 GiB of buffers of 64 KiB.
pub const BUFFERS_MAX: usize = 2 << 20;

/// A buffer in the file.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Time of its first event.
    pub ticks: i64,
    pub offset_bytes: u64,
    pub header: BufferHeader,
}

/// Reads buffers one after the other.
#[derive(Debug)]
pub struct Buffers {
    log: LogHeader,
    next_bytes: u64,
    /// Bytes of the file that were read.
    pub read_bytes: u64,
    raw: Vec<u8>,
    /// The records of the current buffer.
    pub records: Vec<u8>,
}

/// A buffer that was read.
pub struct Buffer {
    pub offset_bytes: u64,
    pub header: BufferHeader,
    /// All of its records could be read.
    pub is_whole: bool,
}

/// The header of the log.
pub fn log_header(source: &mut (impl Read + Seek)) -> Result<LogHeader, Error> {
    let mut head = Vec::new();
    read_at(source, 0, LOG_HEADER_BYTES, &mut head)?;
    let header = LogHeader::of_first_buffer(&head);
    header.ok_or(Error::NotEtl("the first buffer has no TRACE_LOGFILE_HEADER"))
}

impl Buffers {
    pub fn new(log: LogHeader) -> Buffers {
        Buffers { log, next_bytes: 0, read_bytes: 0, raw: Vec::new(), records: Vec::new() }
    }

    pub fn log(&self) -> &LogHeader {
        &self.log
    }

    /// Reads the next buffer; `None` at the end of the file. Buffers that were never filled are
    /// skipped.
    pub fn next(&mut self, source: &mut (impl Read + Seek)) -> io::Result<Option<Buffer>> {
        loop {
            let offset_bytes = self.next_bytes;
            let found = read_at(source, offset_bytes, HEADER_BYTES, &mut self.raw)?;
            if found == 0 {
                // The last buffer may end before its size says.
                let file_bytes = source.seek(SeekFrom::End(0))?;
                self.read_bytes = offset_bytes.min(file_bytes);
                return Ok(None);
            }
            self.read_bytes = offset_bytes;
            let is_unused = self.raw.iter().all(|&byte| byte == 0);
            let header = BufferHeader::parse(&self.raw).filter(BufferHeader::is_plausible);
            let Some(header) = header else {
                // The size of the buffers is the only way to find the next one.
                self.next_bytes = offset_bytes.saturating_add(self.step_bytes());
                if is_unused && found == HEADER_BYTES {
                    continue;
                }
                self.records.clear();
                let header = BufferHeader::default();
                return Ok(Some(Buffer { offset_bytes, header, is_whole: false }));
            };
            self.next_bytes = offset_bytes.saturating_add(header.stride_bytes as u64);
            let entry = Entry { ticks: 0, offset_bytes, header };
            let (raw, records) = (&mut self.raw, &mut self.records);
            let is_whole = load(source, &self.log, &entry, raw, records)?;
            return Ok(Some(Buffer { offset_bytes, header, is_whole }));
        }
    }

    fn step_bytes(&self) -> u64 {
        match self.log.buffer_bytes {
            1_024..=buffer::SIZE_MAX => self.log.buffer_bytes as u64,
            _ => 65_536,
        }
    }
}

/// Enough for the header of the first buffer and the first record.
const LOG_HEADER_BYTES: usize = 4_096;

/// Reads the records of a buffer into `records`. Returns whether all of them are there.
pub fn load(
    source: &mut (impl Read + Seek),
    log: &LogHeader,
    entry: &Entry,
    raw: &mut Vec<u8>,
    records: &mut Vec<u8>,
) -> io::Result<bool> {
    let header = &entry.header;
    if !header.is_compressed {
        // Where they are needed, without a copy.
        let length = header.filled_bytes.saturating_sub(HEADER_BYTES);
        let offset_bytes = entry.offset_bytes.saturating_add(HEADER_BYTES as u64);
        return Ok(read_at(source, offset_bytes, length, records)? == length);
    }
    read_at(source, entry.offset_bytes, header.stride_bytes, raw)?;
    Ok(buffer::unpack(header, log.algorithm, raw, records))
}

/// Reads up to `length` bytes, fewer only at the end of the file.
fn read_at(
    source: &mut (impl Read + Seek),
    offset_bytes: u64,
    length: usize,
    out: &mut Vec<u8>,
) -> io::Result<usize> {
    out.clear();
    source.seek(SeekFrom::Start(offset_bytes))?;
    source.by_ref().take(length as u64).read_to_end(out)
}

//! Capture files as a stream of chunks: large buffers and the positions of the frames in them.
//!
//! Owns reading, decompression, the formats, and what the file says about itself. It does not own
//! the meaning of a frame's bytes (`frame`) nor the order of times. Formats: `pcap`
//! (draft-ietf-opsawg-pcap), `pcapng` (draft-ietf-opsawg-pcapng), and those of plain records
//! (`records`): `erf`, `netmon`, `netxray`, `sniffer`, `snoop`. `magic` recognises them.
//!
//! Bytes are read once, directly into the buffer that the caller receives; buffers are recycled, so
//! that a steady reader neither allocates nor touches fresh pages.

use std::io::Read;
use std::path::Path;

mod erf;
mod error;
mod link;
mod magic;
mod netmon;
mod netxray;
mod pcap;
mod pcapng;
mod records;
mod sniffer;
mod snoop;
mod source;
mod standard_input;
mod summary;

pub use error::FileError;
pub use link::LinkType;
pub use source::xz;
pub use standard_input::{look_at_standard_input, standard_input};
pub use summary::{ByteOrder, Compression, FileSummary, Format, Interface};

use source::{Cause, Source};
use summary::Tally;

/// How much is read at once and how large one record may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The usual size of a chunk; larger only for a record that does not fit.
    pub chunk_bytes: usize,
    /// The largest record or block; a larger one counts as corrupt.
    pub block_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // A chunk, its frames and a worker's tables fit in a second-level cache of 1 MiB.
            chunk_bytes: 256 << 10,
            block_bytes: 16 << 20,
        }
    }
}

/// One frame: its time, and the position of its bytes in its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRef {
    /// Number in its file, from 1, as Wireshark counts.
    pub number: u64,
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    pub time_ns: i64,
    /// Where its bytes begin in `Chunk::bytes`.
    pub offset: u32,
    /// Its bytes in the chunk.
    pub captured: u32,
    /// Its bytes on the wire; never less than `captured`.
    pub original: u32,
    /// Its link type.
    pub link: LinkType,
}

/// A piece of a capture file, and the frames that are completely in it.
#[derive(Debug, Default)]
pub struct Chunk {
    /// File bytes: the frames and the record headers between them.
    pub bytes: Vec<u8>,
    /// The frames, in the file's order.
    pub frames: Vec<FrameRef>,
    /// Bytes of the input as stored (compressed size) read up to this chunk's end, for progress.
    pub consumed: u64,
}

impl Chunk {
    /// The captured bytes of one of this chunk's frames.
    #[inline]
    pub fn frame(&self, frame: &FrameRef) -> &[u8] {
        let start = frame.offset as usize;
        self.bytes.get(start..start + frame.captured as usize).unwrap_or_default()
    }

    /// Appends other bytes and makes them those of a frame, which keeps its number and time.
    pub(crate) fn replace(&mut self, index: usize, link: LinkType, bytes: &[u8], original: u32) {
        let (Some(frame), Ok(offset), Ok(captured)) = (
            self.frames.get_mut(index),
            u32::try_from(self.bytes.len()),
            u32::try_from(bytes.len()),
        ) else {
            return;
        };
        *frame = FrameRef { offset, captured, original, link, ..*frame };
        self.bytes.extend_from_slice(bytes);
    }
}

/// Reads one capture file.
pub struct Reader {
    source: Source,
    limits: Limits,
    format: Parser,
    summary: FileSummary,
    /// The beginning of a record whose rest was not yet read.
    carry: Vec<u8>,
    /// Place of `carry`'s first byte in the (uncompressed) file.
    offset: u64,
    end: Option<End>,
}

impl Reader {
    /// Opens a capture, `-` for standard input, and recognises it by its content.
    pub fn open(path: impl AsRef<Path>, limits: Limits) -> Result<Reader, FileError> {
        Reader::start(Source::open(path.as_ref())?, limits)
    }

    /// Reads a capture from anything; `total` is its size as stored, if known.
    pub fn from_read(
        input: Box<dyn Read + Send>,
        name: impl Into<String>,
        total: Option<u64>,
        limits: Limits,
    ) -> Result<Reader, FileError> {
        Reader::start(Source::new(input, name.into(), total), limits)
    }

    /// The next chunk with at least one frame; `None` at the end, also at the end of what can be
    /// read of a damaged file (see [`FileSummary::cut_off`]). `recycled` is a chunk no longer
    /// needed, whose memory is used again.
    pub fn next_chunk(&mut self, recycled: Option<Chunk>) -> Result<Option<Chunk>, FileError> {
        let mut chunk = recycled.unwrap_or_default();
        if chunk.bytes.capacity() > 4 * self.limits.chunk_bytes {
            // A very large record must not keep its memory forever.
            chunk.bytes = Vec::new();
        }
        chunk.frames.clear();
        while chunk.frames.is_empty() {
            match self.end.take() {
                None => self.fill(&mut chunk),
                Some(End::Failed(error)) => {
                    self.end = Some(End::Reached);
                    return Err(error);
                }
                Some(End::Reached) => {
                    self.end = Some(End::Reached);
                    return Ok(None);
                }
            }
        }
        Ok(Some(chunk))
    }

    /// The summary of the file so far; complete once `next_chunk` has returned `None`.
    pub fn summary(&self) -> &FileSummary {
        &self.summary
    }

    /// Whether it is read from a pipe, perhaps while it is being recorded.
    pub fn is_live(&self) -> bool {
        self.source.is_live
    }

    /// The file's size as stored, if it has one.
    pub fn total_bytes(&self) -> Option<u64> {
        self.source.total()
    }

    fn start(mut source: Source, limits: Limits) -> Result<Reader, FileError> {
        let limits = Limits {
            // Offsets in a chunk are 32 bits, and a chunk must hold more than a record's header.
            chunk_bytes: limits.chunk_bytes.clamp(4 << 10, 1 << 30),
            block_bytes: limits.block_bytes.clamp(4 << 10, 1 << 30),
        };
        let head = source.recognise()?;
        let name = source.name().to_owned();
        let (format, mut summary) = match head.kind {
            magic::Kind::Pcap(layout) => {
                let summary = FileSummary::new(name, layout.format(), layout.byte_order());
                (Parser::Pcap(pcap::Pcap::new(layout)), summary)
            }
            magic::Kind::PcapNg(order) => {
                let summary = FileSummary::new(name, Format::PcapNg, order);
                (Parser::PcapNg(pcapng::PcapNg::new()), summary)
            }
            magic::Kind::Records(kind) => {
                let (format, container) = container(kind);
                let order = match format {
                    Format::Snoop => ByteOrder::Big,
                    _ => ByteOrder::Little,
                };
                let mut summary = FileSummary::new(name.clone(), format, order);
                let records =
                    records::Records::begin(container, &head.bytes, &mut summary).map_err(
                        |reason| FileError::UnknownVariant { name, reason, advice: magic::EDITCAP },
                    )?;
                (Parser::Records(records), summary)
            }
        };
        summary.compression = source.compression();
        Ok(Reader { source, limits, format, summary, carry: head.bytes, offset: 0, end: None })
    }

    /// Reads a chunk's worth, or one record that is larger, and parses it.
    fn fill(&mut self, chunk: &mut Chunk) {
        let bytes = &mut chunk.bytes;
        let mut filled = self.carry.len();
        // Shrinking and growing a recycled buffer costs only the few bytes that were cut off.
        bytes.resize(self.limits.chunk_bytes.max(filled), 0);
        if let Some(front) = bytes.get_mut(..filled) {
            front.copy_from_slice(&self.carry);
        }
        let parsed = loop {
            let state = self.source.fill(bytes, &mut filled);
            let read = bytes.get(..filled).unwrap_or_default();
            let parsed =
                self.format.parse(read, &self.limits, &mut chunk.frames, &mut self.summary);
            match state {
                Ok(true) if parsed.consumed == 0 && parsed.corrupt.is_none() => {
                    if filled < bytes.len() {
                        continue;
                    }
                    // Doubles the buffer, so that a false length costs no more than the file has
                    // bytes.
                    let room = (2 * bytes.len()).min(2 * self.limits.block_bytes);
                    bytes.resize(room.max(filled + 1), 0);
                    continue;
                }
                Ok(true) => {}
                Ok(false) => self.finish(filled, &parsed, None),
                Err(Cause::Damaged(reason)) => self.finish(filled, &parsed, Some(reason)),
                Err(Cause::System(error)) => self.end = Some(End::Failed(error)),
            }
            break parsed;
        };
        if let Some(reason) = parsed.corrupt {
            let at = self.offset + parsed.consumed as u64;
            self.cut_off(format!("{reason} at byte {at}"));
            self.end = Some(End::Reached);
        }
        self.carry.clear();
        self.carry.extend_from_slice(bytes.get(parsed.consumed..filled).unwrap_or_default());
        bytes.truncate(parsed.consumed);
        self.offset += parsed.consumed as u64;
        chunk.consumed = self.source.consumed();
    }

    /// Notes how the input ended.
    fn finish(&mut self, filled: usize, parsed: &Parsed, damage: Option<String>) {
        let end = self.offset + filled as u64;
        let record = self.offset + parsed.consumed as u64;
        if let Some(reason) = damage {
            self.cut_off(format!("{reason} after byte {end}"));
        } else if parsed.consumed < filled && parsed.corrupt.is_none() {
            self.cut_off(format!(
                "the file ends at byte {end}, inside the record at byte {record}"
            ));
        }
        self.end = Some(End::Reached);
    }

    /// The first reason is kept.
    fn cut_off(&mut self, reason: String) {
        let of = match self.summary.compression {
            Some(_) => " of the uncompressed data",
            None => "",
        };
        self.summary
            .cut_off
            .get_or_insert_with(|| format!("{reason}{of}; all frames before it were read"));
    }
}

/// Why reading ended.
enum End {
    Reached,
    /// Reported after everything read before has been returned.
    Failed(FileError),
}

/// The format's state.
enum Parser {
    Pcap(pcap::Pcap),
    PcapNg(pcapng::PcapNg),
    Records(records::Records),
}

/// The parser of a format of plain records.
fn container(kind: magic::RecordsKind) -> (Format, Box<dyn records::Container>) {
    match kind {
        magic::RecordsKind::Erf => (Format::Erf, Box::<erf::Erf>::default()),
        magic::RecordsKind::NetMon1 => (Format::NetMon1, Box::<netmon::NetMon>::default()),
        magic::RecordsKind::NetMon2 => (Format::NetMon2, Box::<netmon::NetMon>::default()),
        magic::RecordsKind::NetXRay => (Format::NetXRay, Box::<netxray::NetXRay>::default()),
        magic::RecordsKind::Sniffer => (Format::Sniffer, Box::<sniffer::Sniffer>::default()),
        magic::RecordsKind::Snoop => (Format::Snoop, Box::<snoop::Snoop>::default()),
    }
}

impl Parser {
    fn parse(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        frames: &mut Vec<FrameRef>,
        summary: &mut FileSummary,
    ) -> Parsed {
        let mut tally = Tally::new();
        let parsed = match self {
            Parser::Pcap(pcap) => pcap.parse(bytes, limits, frames, &mut tally, summary),
            Parser::PcapNg(ng) => ng.parse(bytes, limits, frames, &mut tally, summary),
            Parser::Records(records) => records.parse(bytes, limits, frames, &mut tally, summary),
        };
        summary.add(&tally);
        parsed
    }
}

/// Result of a parser.
struct Parsed {
    /// Bytes of whole records from the beginning.
    consumed: usize,
    /// What is wrong with the record after them, if it is more than incomplete.
    corrupt: Option<String>,
}

impl Parsed {
    fn until(consumed: usize) -> Parsed {
        Parsed { consumed, corrupt: None }
    }

    fn corrupt(consumed: usize, reason: String) -> Parsed {
        Parsed { consumed, corrupt: Some(reason) }
    }
}

#[cfg(test)]
mod tests;

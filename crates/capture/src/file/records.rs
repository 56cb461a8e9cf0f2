//! Containers of plain records: what their parsers share.
//!
//! Owns the loop over records, numbers and limits. Each container owns the layout of its header and
//! of one record: `netmon`, `snoop`, `erf`, `sniffer`, `netxray`. pcap and pcapng have loops of
//! their own, because most captures are in them.

use super::summary::{Interface, Tally};
use super::{FileSummary, FrameRef, Limits, LinkType, Parsed};

/// The layout of one container.
pub(super) trait Container: Send {
    /// Reads the file's header: its length, or `None` if more bytes are needed. An error names what is
    /// not known of it.
    fn header(&mut self, bytes: &[u8], summary: &mut FileSummary) -> Result<Option<usize>, String>;

    /// Reads the record at the beginning of `bytes`, which is at `position` of the file.
    fn record(&mut self, bytes: &[u8], position: u64) -> Record;

    /// Packets that the recorder reports as dropped.
    fn dropped(&self) -> Option<u64> {
        None
    }
}

/// What is at a place of a file.
pub(super) enum Record {
    /// More bytes are needed.
    Incomplete,
    /// A record of `length` bytes without a frame.
    Other { length: usize },
    /// A record of `length` bytes with a frame.
    Frame { length: usize, frame: Frame },
    /// Nothing that follows is a frame.
    End,
    /// The record contradicts itself.
    Corrupt(String),
}

/// A frame in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) time_ns: i64,
    /// Where its bytes begin in the record.
    pub(super) offset: usize,
    pub(super) captured: u32,
    pub(super) original: u32,
    pub(super) link: LinkType,
}

/// The state between two chunks.
pub(super) struct Records {
    container: Box<dyn Container>,
    /// The length of the file's header, until it was skipped.
    header_bytes: Option<usize>,
    has_ended: bool,
    frames: u64,
    /// Place of the next byte in the file.
    position: u64,
}

impl Records {
    /// Reads the header in the first bytes of the file.
    pub(super) fn begin(
        mut container: Box<dyn Container>,
        head: &[u8],
        summary: &mut FileSummary,
    ) -> Result<Records, String> {
        // A file that ends in its header has no record.
        let header_bytes = container.header(head, summary)?.unwrap_or(usize::MAX);
        summary.sections = 1;
        Ok(Records {
            container,
            header_bytes: Some(header_bytes),
            has_ended: false,
            frames: 0,
            position: 0,
        })
    }

    pub(super) fn parse(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        frames: &mut Vec<FrameRef>,
        tally: &mut Tally,
        summary: &mut FileSummary,
    ) -> Parsed {
        let before = self.frames;
        let parsed = self.records(bytes, limits, frames, tally, summary);
        self.position += parsed.consumed as u64;
        if let Some(interface) = summary.interfaces.first_mut() {
            interface.frames += self.frames - before;
            interface.dropped_os = self.container.dropped();
        }
        parsed
    }

    fn records(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        frames: &mut Vec<FrameRef>,
        tally: &mut Tally,
        summary: &mut FileSummary,
    ) -> Parsed {
        let mut at = 0;
        if let Some(header_bytes) = self.header_bytes {
            if bytes.len() < header_bytes {
                return Parsed::until(0);
            }
            at = header_bytes;
            self.header_bytes = None;
        }
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty() && !self.has_ended) {
            let length = match self.container.record(rest, self.position + at as u64) {
                Record::Incomplete => return Parsed::until(at),
                Record::End => {
                    self.has_ended = true;
                    break;
                }
                Record::Corrupt(reason) => return Parsed::corrupt(at, reason),
                Record::Other { length } | Record::Frame { length, .. }
                    if length == 0 || length > limits.block_bytes =>
                {
                    return Parsed::corrupt(at, format!("a record claims the length {length}"));
                }
                Record::Other { length } | Record::Frame { length, .. } if length > rest.len() => {
                    return Parsed::until(at);
                }
                Record::Other { length } => {
                    summary.blocks_skipped += 1;
                    length
                }
                Record::Frame { length, frame } => {
                    let end = frame.offset.saturating_add(frame.captured as usize);
                    if end > length {
                        let reason =
                            format!("a frame of {} bytes exceeds its record", frame.captured);
                        return Parsed::corrupt(at, reason);
                    }
                    self.frames += 1;
                    let frame = FrameRef {
                        number: self.frames,
                        time_ns: frame.time_ns,
                        offset: (at + frame.offset) as u32,
                        captured: frame.captured,
                        original: frame.original.max(frame.captured),
                        link: frame.link,
                    };
                    tally.frame(&frame);
                    frames.push(frame);
                    length
                }
            };
            at += length;
        }
        // What follows the last frame is an index.
        Parsed::until(if self.has_ended { bytes.len() } else { at })
    }
}

/// The only interface of a container that describes none.
pub(super) fn interface(link: LinkType, ticks_per_second: u64) -> Interface {
    Interface {
        name: None,
        link,
        snaplen: 0,
        ticks_per_second,
        frames: 0,
        received: None,
        dropped_interface: None,
        dropped_os: None,
    }
}

/// Little-endian 16 bits at a place.
pub(super) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Little-endian 32 bits at a place.
pub(super) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Little-endian 64 bits at a place.
pub(super) fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Big-endian 16 bits at a place.
pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Big-endian 32 bits at a place.
pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

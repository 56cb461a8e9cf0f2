//! One direction of a TCP connection: segments to an ordered stream, the stream to messages.
//!
//! Payload is skipped by length. Only the bytes of a message that a decoder needs are ever copied,
//! and only if they are not all in one segment.

pub mod framer;
pub mod order;
mod wanted_bytes;

pub use framer::{Framer, Message, MessageSink};
pub use order::{Order, Verdict};

/// A run of stream bytes in order.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The bytes as captured; can be fewer than `length` (snap length), never more.
    pub bytes: &'a [u8],
    /// Bytes on the wire.
    pub length: u32,
    /// When its packet was captured.
    pub time: i64,
    /// The packet's number in its file.
    pub frame: u64,
    /// TCP sequence number of the first byte.
    pub sequence: u32,
    /// The bytes were never captured: a hole in the stream.
    pub lost: bool,
}

impl<'a> Piece<'a> {
    /// Bytes that were never captured.
    pub fn lost(sequence: u32, length: u32, time: i64, frame: u64) -> Piece<'a> {
        Piece { bytes: &[], length, time, frame, sequence, lost: true }
    }

    /// The sequence number behind it.
    #[inline]
    pub fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.length)
    }

    /// The piece without its first `skip` bytes.
    pub fn skip(self, skip: u32) -> Piece<'a> {
        let skip = skip.min(self.length);
        Piece {
            bytes: self.bytes.get(skip as usize..).unwrap_or_default(),
            length: self.length - skip,
            sequence: self.sequence.wrapping_add(skip),
            ..self
        }
    }
}

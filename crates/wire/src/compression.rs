//! Decompression of SMB2 messages behind a COMPRESSION_TRANSFORM_HEADER.
//!
//! MS-SMB2 section 2.2.42 (unchained: one payload behind an uncompressed start; chained: payloads
//! with headers of their own), 3.1.4.4. The algorithms are in separate files: MS-XCA for LZNT1,
//! LZ77 and LZ77+Huffman, the LZ4 block format for LZ4; Pattern_V1 is here.
//!
//! Whatever the result, the output contains the bytes that could be produced: if the message was
//! cut by the capture, or the limit is low, the SMB2 headers at its start can still be read.

mod huffman;
mod lz4;
mod lz77;
mod lznt1;
mod output;

use crate::read::{u8_at, u16_at, u32_at};
use output::Output;
use std::fmt;

/// An algorithm of SMB2_COMPRESSION_CAPABILITIES (MS-SMB2 section 2.2.3.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm(pub u16);

#[allow(missing_docs)]
impl Algorithm {
    pub const NONE: Algorithm = Algorithm(0);
    pub const LZNT1: Algorithm = Algorithm(1);
    pub const LZ77: Algorithm = Algorithm(2);
    pub const LZ77_HUFFMAN: Algorithm = Algorithm(3);
    pub const PATTERN_V1: Algorithm = Algorithm(4);
    pub const LZ4: Algorithm = Algorithm(5);

    /// The name as MS-SMB2 has it.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Algorithm::NONE => "NONE",
            Algorithm::LZNT1 => "LZNT1",
            Algorithm::LZ77 => "LZ77",
            Algorithm::LZ77_HUFFMAN => "LZ77+Huffman",
            Algorithm::PATTERN_V1 => "Pattern_V1",
            Algorithm::LZ4 => "LZ4",
            _ => return None,
        })
    }
}

/// The header, as far as both forms share it (MS-SMB2 section 2.2.42).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the uncompressed segment: of all payloads together when chained, else of the one.
    pub original_size: u32,
    /// The algorithm of the (first) payload.
    pub algorithm: Algorithm,
    /// Whether payloads with headers of their own follow.
    pub is_chained: bool,
    /// Unchained: bytes before the payload that are not compressed. Zero when chained.
    pub offset: u32,
}

impl Header {
    /// Reads the header of a message from `FC 'SMB'` on.
    pub fn parse(message: &[u8]) -> Option<Header> {
        if !message.starts_with(PROTOCOL_ID) {
            return None;
        }
        let is_chained = u16_at(message, 10)? & CHAINED != 0;
        Some(Header {
            original_size: u32_at(message, 4)?,
            algorithm: Algorithm(u16_at(message, 8)?),
            is_chained,
            offset: if is_chained { 0 } else { u32_at(message, 12)? },
        })
    }

    /// Bytes of the whole message after decompression.
    pub fn message_bytes(&self) -> u64 {
        u64::from(self.original_size) + u64::from(self.offset)
    }
}

/// Why a message was not, or not all, decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionError {
    /// It does not start with `FC 'SMB'`.
    NotCompressed,
    /// The message ends before its data does.
    Truncated,
    /// The limit was reached before the data's end.
    Limit,
    /// A payload has an algorithm that is not known.
    UnknownAlgorithm(Algorithm),
    /// The data make no sense.
    Malformed(&'static str),
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressionError::NotCompressed => f.write_str("no COMPRESSION_TRANSFORM_HEADER"),
            CompressionError::Truncated => f.write_str("the compressed message is cut off"),
            CompressionError::Limit => f.write_str("the message is larger than allowed"),
            CompressionError::UnknownAlgorithm(algorithm) => {
                write!(f, "unknown compression algorithm {}", algorithm.0)
            }
            CompressionError::Malformed(what) => write!(f, "malformed compressed data: {what}"),
        }
    }
}

impl std::error::Error for CompressionError {}

/// Decompresses `message` (from `FC 'SMB'` on) into `out`, whose contents it replaces, writing at
/// most `limit` bytes. After an error `out` holds the start of the message as far as it is known.
pub fn decompress(message: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    out.clear();
    if !message.starts_with(PROTOCOL_ID) {
        return Err(CompressionError::NotCompressed);
    }
    let header = Header::parse(message).ok_or(CompressionError::Truncated)?;
    let size = usize::try_from(header.message_bytes()).unwrap_or(usize::MAX);
    // Four times the message is enough for most; a forged size takes no memory by itself.
    out.reserve(size.min(limit).min(message.len().saturating_mul(4)));
    if header.is_chained {
        return chained(message, size, limit, out);
    }
    let offset = usize::try_from(header.offset).unwrap_or(usize::MAX);
    let body = message.get(UNCHAINED_BYTES..).unwrap_or(&[]);
    copy(body, offset, &mut Output::new(out, offset, limit))?;
    let payload = body.get(offset..).unwrap_or(&[]);
    let length = size.saturating_sub(offset);
    if header.algorithm == Algorithm::NONE {
        return Err(CompressionError::Malformed("unchained without an algorithm"));
    }
    unpack(header.algorithm, payload, Output::new(out, length, limit))
}

/// Decompresses data without headers: `size` bytes, which replace the contents of `out`. After an
/// error `out` holds the beginning of them. `size` is trusted: the caller limits it.
pub fn decompress_block(
    algorithm: Algorithm,
    data: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    out.clear();
    out.reserve(size.min(data.len().saturating_mul(8)));
    unpack(algorithm, data, Output::new(out, size, size))
}

const PROTOCOL_ID: &[u8; 4] = b"\xfcSMB";
const CHAINED: u16 = 1;
const UNCHAINED_BYTES: usize = 16;
const CHAINED_BYTES: usize = 8;
const PAYLOAD_HEADER_BYTES: usize = 8;

/// The payloads of the chained form, each on its own: none refers back to the one before.
fn chained(
    message: &[u8],
    size: usize,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    let mut rest = message.get(CHAINED_BYTES..).unwrap_or(&[]);
    while out.len() < size {
        let fields = || Some((Algorithm(u16_at(rest, 0)?), u32_at(rest, 4)?));
        let (algorithm, length) = fields().ok_or(CompressionError::Truncated)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let body = rest.get(PAYLOAD_HEADER_BYTES..).unwrap_or(&[]);
        let (payload, after) = body.split_at_checked(length).unwrap_or((body, &[]));
        let left = size - out.len();
        let has_size = !matches!(algorithm, Algorithm::NONE | Algorithm::PATTERN_V1);
        if has_size {
            if length < 4 {
                return Err(CompressionError::Malformed("payload shorter than its size"));
            }
            let original = u32_at(payload, 0).ok_or(CompressionError::Truncated)?;
            let original = usize::try_from(original).unwrap_or(usize::MAX);
            if original > left {
                return Err(CompressionError::Malformed("payload larger than the message"));
            }
            let payload = payload.get(4..).unwrap_or(&[]);
            unpack(algorithm, payload, Output::new(out, original, limit))?;
        } else if algorithm == Algorithm::NONE {
            if length > left {
                return Err(CompressionError::Malformed("payload larger than the message"));
            }
            copy(payload, length, &mut Output::new(out, length, limit))?;
        } else {
            pattern(payload, left, limit, out)?;
        }
        rest = after;
    }
    Ok(())
}

/// Bytes without compression.
fn copy(bytes: &[u8], length: usize, out: &mut Output<'_>) -> Result<(), CompressionError> {
    out.extend(bytes.get(..length).unwrap_or(bytes))?;
    if bytes.len() < length && !out.is_full() {
        return Err(CompressionError::Truncated);
    }
    out.finish()
}

/// One byte many times (MS-SMB2 section 2.2.42.2.2).
fn pattern(
    payload: &[u8],
    left: usize,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    let fields = || Some((u8_at(payload, 0)?, u32_at(payload, 4)?));
    let (byte, count) = fields().ok_or(CompressionError::Truncated)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > left {
        return Err(CompressionError::Malformed("pattern longer than the message"));
    }
    let mut output = Output::new(out, count, limit);
    output.fill(byte);
    output.finish()
}

fn unpack(
    algorithm: Algorithm,
    payload: &[u8],
    mut out: Output<'_>,
) -> Result<(), CompressionError> {
    match algorithm {
        Algorithm::LZNT1 => lznt1::decompress(payload, &mut out)?,
        Algorithm::LZ77 => lz77::decompress(payload, &mut out)?,
        Algorithm::LZ77_HUFFMAN => huffman::decompress(payload, &mut out)?,
        Algorithm::LZ4 => lz4::decompress(payload, &mut out)?,
        other => return Err(CompressionError::UnknownAlgorithm(other)),
    }
    out.finish()
}

#[cfg(test)]
mod tests;

//! LZNT1: MS-XCA section 2.5 (format and processing), section 3.3 (example).
//!
//! Chunks of 4 KiB of output, each plain or compressed; matches do not leave their chunk. In a
//! compressed one a flag byte stands before 8 items, the lowest bit first. The split of a match's
//! 16 bits into distance and length moves with the position in the chunk.

use super::CompressionError::{self, Malformed, Truncated};
use super::output::Output;
use crate::read::{slice_at, u8_at, u16_at};

const CHUNK_BYTES: usize = 4096;

/// Decompresses until the output is full or the data's end mark.
pub(super) fn decompress(input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    let mut at = 0;
    while !out.is_full() {
        let header = u16_at(input, at).ok_or(Truncated)?;
        if header == 0 {
            return Ok(());
        }
        let length = usize::from(header & 0x0fff) + 1;
        let captured = input.get(at + 2..).unwrap_or(&[]);
        let data = captured.get(..length).unwrap_or(captured);
        if header & 0x8000 == 0 {
            out.extend(data)?;
        } else {
            chunk(data, out)?;
        }
        if slice_at(captured, 0, length).is_none() && !out.is_full() {
            return Err(Truncated);
        }
        at += 2 + length;
    }
    Ok(())
}

/// One compressed chunk; its data may end after any item.
fn chunk(data: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    let start = out.written();
    let mut at = 0;
    while let Some(flags) = u8_at(data, at) {
        at += 1;
        for bit in 0..8 {
            let written = out.written() - start;
            if at >= data.len() || out.is_full() {
                return Ok(());
            }
            if written >= CHUNK_BYTES {
                return Err(Malformed("chunk longer than 4096 bytes"));
            }
            if flags >> bit & 1 == 0 {
                out.push(u8_at(data, at).ok_or(Truncated)?);
                at += 1;
                continue;
            }
            let word = u16_at(data, at).ok_or(Truncated)?;
            at += 2;
            let length_bits = 16 - distance_bits(written);
            let distance = usize::from(word >> length_bits) + 1;
            let length = usize::from(word & ((1 << length_bits) - 1)) + 3;
            if distance > written {
                return Err(Malformed("match before the chunk"));
            }
            out.copy(distance, length)?;
        }
    }
    Ok(())
}

/// Bits of a distance when `written` bytes of the chunk are there: enough for them, at least 4.
fn distance_bits(written: usize) -> u32 {
    let needed = usize::BITS - written.saturating_sub(1).leading_zeros();
    needed.clamp(4, 12)
}

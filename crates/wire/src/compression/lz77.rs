//! Plain LZ77: MS-XCA section 2.4.4 (processing), section 3.1 (examples).
//!
//! Flags for 32 items in a little-endian word, the highest bit first: a literal, or a match whose
//! 16 bits hold 13 of distance and 3 of length; longer lengths follow in a nibble that two matches
//! share, then a byte, 16 bits, 32 bits.

use super::CompressionError::{self, Malformed, Truncated};
use super::output::Output;
use crate::read::{u8_at, u16_at, u32_at};

/// Decompresses until the output is full.
pub(super) fn decompress(input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    let mut at = 0;
    let mut flags = 0;
    let mut flags_left = 0;
    let mut shared_nibble = None;
    while !out.is_full() {
        if flags_left == 0 {
            flags = u32_at(input, at).ok_or(Truncated)?;
            flags_left = 32;
            at += 4;
        }
        // Literals up to the next match, or as many as there is room for.
        let literals = (flags << (32 - flags_left)).leading_zeros().min(flags_left);
        if literals > 0 {
            flags_left -= literals;
            let length = (literals as usize).min(out.room());
            let rest = input.get(at..).unwrap_or_default();
            match rest.first_chunk() {
                Some(bytes) => out.extend_of(bytes, length),
                None => {
                    out.extend(rest.get(..length).unwrap_or(rest))?;
                    rest.get(..length).ok_or(Truncated)?;
                }
            }
            at += length;
            continue;
        }
        flags_left -= 1;
        let word = usize::from(u16_at(input, at).ok_or(Truncated)?);
        at += 2;
        let length = match word & 7 {
            7 => 7 + long_length(input, &mut at, &mut shared_nibble)?,
            short => short,
        };
        out.copy((word >> 3) + 1, length.saturating_add(3))?;
    }
    Ok(())
}

/// The length beyond 7 of a match.
fn long_length(
    input: &[u8],
    at: &mut usize,
    shared_nibble: &mut Option<u8>,
) -> Result<usize, CompressionError> {
    let nibble = match shared_nibble.take() {
        Some(nibble) => nibble,
        None => {
            let byte = u8_at(input, *at).ok_or(Truncated)?;
            *at += 1;
            *shared_nibble = Some(byte >> 4);
            byte & 15
        }
    };
    if nibble != 15 {
        return Ok(usize::from(nibble));
    }
    let byte = u8_at(input, *at).ok_or(Truncated)?;
    *at += 1;
    if byte != 255 {
        return Ok(15 + usize::from(byte));
    }
    let mut length = u32::from(u16_at(input, *at).ok_or(Truncated)?);
    *at += 2;
    if length == 0 {
        length = u32_at(input, *at).ok_or(Truncated)?;
        *at += 4;
    }
    // From here on the field holds the whole length (less 3).
    let length = length.checked_sub(7).filter(|&length| length >= 15);
    let length = length.ok_or(Malformed("length of a match"))?;
    usize::try_from(length).map_err(|_| Malformed("length of a match"))
}

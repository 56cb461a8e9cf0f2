//! LZ4 blocks, as the LZ4 block format describes them (MS-SMB2 refers to it; no frame around).
//!
//! Sequences of literals and a match: a token with 4 bits for each length, where 15 means that
//! bytes are added until one is below 255. The last sequence has no match.

use super::CompressionError::{self, Truncated};
use super::output::Output;
use crate::read::{slice_at, u8_at, u16_at};

/// Decompresses until the output is full.
pub(super) fn decompress(input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    let mut at = 0;
    while !out.is_full() {
        let token = u8_at(input, at).ok_or(Truncated)?;
        at += 1;
        let literals = length(input, &mut at, token >> 4)?;
        let captured = input.get(at..).unwrap_or(&[]);
        out.extend(captured.get(..literals).unwrap_or(captured))?;
        if out.is_full() {
            break;
        }
        slice_at(captured, 0, literals).ok_or(Truncated)?;
        at = at.saturating_add(literals);
        let distance = u16_at(input, at).ok_or(Truncated)?;
        at += 2;
        let match_length = length(input, &mut at, token & 15)?;
        out.copy(usize::from(distance), match_length.saturating_add(4))?;
    }
    Ok(())
}

fn length(input: &[u8], at: &mut usize, nibble: u8) -> Result<usize, CompressionError> {
    let mut length = usize::from(nibble);
    if nibble != 15 {
        return Ok(length);
    }
    loop {
        let byte = u8_at(input, *at).ok_or(Truncated)?;
        *at += 1;
        length = length.saturating_add(usize::from(byte));
        if byte != 255 {
            return Ok(length);
        }
    }
}

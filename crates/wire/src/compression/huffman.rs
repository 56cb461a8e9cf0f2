//! LZ77+Huffman: MS-XCA section 2.2.4 (processing), section 3.2 (examples).
//!
//! Blocks of 64 KiB of output (the last match may run over), each with a table of 512 code lengths
//! of 4 bits: symbols below 256 are literals, the others hold 4 bits of length and the number of
//! bits of the distance. Bits come from little-endian 16-bit words, the highest first, read ahead
//! by 16 to 32 bits, while the bytes of long lengths lie between those words.

use super::CompressionError::{self, Malformed, Truncated};
use super::output::Output;
use crate::read::{slice_at, u8_at, u16_at, u32_at};

const TABLE_BYTES: usize = 256;
const CODE_BITS_MAX: u32 = 15;
const BLOCK_BYTES: usize = 65_536;

/// Decompresses until the output is full.
pub(super) fn decompress(input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    let mut codes = Codes(vec![0; 1 << CODE_BITS_MAX]);
    let mut at = 0;
    while !out.is_full() {
        codes.build(slice_at(input, at, TABLE_BYTES).ok_or(Truncated)?)?;
        let mut bits = Bits::new(input, at + TABLE_BYTES);
        let block_end = out.written() + BLOCK_BYTES;
        while out.written() < block_end && !out.is_full() {
            let symbol = bits.symbol(&codes)?;
            match u8::try_from(symbol) {
                Ok(literal) => out.push(literal),
                Err(_) => copy(symbol - 256, &mut bits, out)?,
            }
        }
        at = bits.at;
    }
    Ok(())
}

fn copy(symbol: u16, bits: &mut Bits<'_>, out: &mut Output<'_>) -> Result<(), CompressionError> {
    let distance_bits = u32::from(symbol >> 4);
    let length = match usize::from(symbol & 15) {
        15 => bits.long_length()?,
        short => short,
    };
    let distance = (1usize << distance_bits) + usize::from(bits.take(distance_bits)?);
    out.copy(distance, length.saturating_add(3))
}

/// For each 15 bits the symbol that they start with and the bits it takes: `symbol << 4 | bits`.
struct Codes(Vec<u16>);

impl Codes {
    /// Fills the table from 512 lengths: codes in the order of length, then symbol.
    fn build(&mut self, lengths: &[u8]) -> Result<(), CompressionError> {
        let mut next = 0;
        for bits in 1..=CODE_BITS_MAX as u8 {
            let span = 1usize << (CODE_BITS_MAX - u32::from(bits));
            for symbol in 0..512u16 {
                let pair = u8_at(lengths, usize::from(symbol >> 1)).ok_or(Truncated)?;
                let length = if symbol & 1 == 0 { pair & 15 } else { pair >> 4 };
                if length != bits {
                    continue;
                }
                let entries = self.0.get_mut(next..next + span);
                let entries = entries.ok_or(Malformed("too many Huffman codes"))?;
                entries.fill(symbol << 4 | u16::from(bits));
                next += span;
            }
        }
        if next != self.0.len() {
            return Err(Malformed("Huffman codes are incomplete"));
        }
        Ok(())
    }
}

/// The bits ahead, left-aligned, and how many of them are really there.
struct Bits<'a> {
    input: &'a [u8],
    at: usize,
    ahead: u32,
    count: u32,
}

impl<'a> Bits<'a> {
    fn new(input: &'a [u8], at: usize) -> Bits<'a> {
        let mut bits = Bits { input, at, ahead: 0, count: 0 };
        bits.refill();
        bits.refill();
        bits
    }

    /// Reads a word when fewer than 16 bits are ahead; at the end of the input there is none.
    fn refill(&mut self) {
        if self.count > 16 {
            return;
        }
        let Some(word) = u16_at(self.input, self.at) else {
            // A last odd byte is half a word, not the byte of a length.
            self.at = self.input.len();
            return;
        };
        self.ahead |= u32::from(word) << (16 - self.count);
        self.count += 16;
        self.at += 2;
    }

    fn skip(&mut self, bits: u32) -> Result<(), CompressionError> {
        self.count = self.count.checked_sub(bits).ok_or(Truncated)?;
        self.ahead <<= bits;
        if self.count < 16 {
            self.refill();
        }
        Ok(())
    }

    fn symbol(&mut self, codes: &Codes) -> Result<u16, CompressionError> {
        let index = (self.ahead >> (32 - CODE_BITS_MAX)) as usize;
        let entry = codes.0.get(index).ok_or(Malformed("Huffman code"))?;
        self.skip(u32::from(entry & 15))?;
        Ok(entry >> 4)
    }

    /// The next bits as a number, at most 15.
    fn take(&mut self, bits: u32) -> Result<u16, CompressionError> {
        let value = if bits == 0 { 0 } else { self.ahead >> (32 - bits) };
        self.skip(bits)?;
        Ok(value as u16)
    }

    /// A length (less 3) that does not fit the symbol, from the bytes between the words.
    fn long_length(&mut self) -> Result<usize, CompressionError> {
        let byte = u8_at(self.input, self.at).ok_or(Truncated)?;
        self.at += 1;
        if byte != 255 {
            return Ok(15 + usize::from(byte));
        }
        let mut length = u32::from(u16_at(self.input, self.at).ok_or(Truncated)?);
        self.at += 2;
        if length == 0 {
            length = u32_at(self.input, self.at).ok_or(Truncated)?;
            self.at += 4;
        }
        if length < 15 {
            return Err(Malformed("length of a match"));
        }
        usize::try_from(length).map_err(|_| Malformed("length of a match"))
    }
}

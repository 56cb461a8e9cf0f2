//! Names on the wire to text: UTF-16LE and the single-byte OEM strings of SMB1.
//!
//! MS-SMB2 section 2.2 (names are UTF-16LE, not terminated), MS-CIFS section 2.2.1.1.

use crate::read::u16_at;

/// Appends UTF-16LE as UTF-8; unpaired surrogates become U+FFFD, an odd last byte is ignored.
pub fn push_utf16le(out: &mut String, bytes: &[u8]) {
    let mut rest = bytes;
    while rest.len() >= 2 {
        // Most names are ASCII: piece by piece, without a branch for each character.
        let mut ascii = [0; 32];
        let mut high = 0;
        let mut count = 0;
        for (low, pair) in ascii.iter_mut().zip(rest.chunks_exact(2)) {
            *low = pair[0];
            high |= pair[0] & 0x80 | pair[1];
            count += 1;
        }
        let text = ascii.get(..count).and_then(|ascii| std::str::from_utf8(ascii).ok());
        let Some(text) = text.filter(|_| high == 0) else {
            let units = rest.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            let decoded = char::decode_utf16(units);
            out.extend(decoded.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
            return;
        };
        out.push_str(text);
        rest = rest.get(2 * count..).unwrap_or_default();
    }
}

/// UTF-16LE as text; unpaired surrogates become U+FFFD.
pub fn utf16le(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 2);
    push_utf16le(&mut out, bytes);
    out
}

/// The UTF-16LE string at the start of `bytes` up to (not including) its terminator, and the
/// bytes it takes with the terminator. Without a terminator all of `bytes` is the string.
pub fn utf16le_terminated(bytes: &[u8]) -> (&[u8], usize) {
    let mut at = 0;
    while let Some(unit) = u16_at(bytes, at) {
        if unit == 0 {
            return (bytes.get(..at).unwrap_or(bytes), at + 2);
        }
        at += 2;
    }
    (bytes.get(..at).unwrap_or(bytes), bytes.len())
}

/// Appends single-byte OEM text; ASCII unchanged, other bytes as ISO 8859-1 (the code page of an
/// SMB1 connection is not on the wire).
pub fn push_oem(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().map(|&byte| char::from(byte)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ascii_other_planes_and_broken_surrogates() {
        assert_eq!(utf16le(b"a\0b\0"), "ab");
        let long = "a name that is longer than one piece of characters, and then \u{fc}\u{1f600}";
        let bytes: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(utf16le(&bytes), long);
        assert_eq!(utf16le(&[0x3d, 0xd8, 0x00, 0xde]), "\u{1f600}");
        assert_eq!(utf16le(&[0x3d, 0xd8, 0x41, 0x00, 0x99]), "\u{fffd}A");
        assert_eq!(utf16le_terminated(b"a\0\0\0b\0"), (&b"a\0"[..], 4));
        assert_eq!(utf16le_terminated(b"a\0b"), (&b"a\0"[..], 3));
    }
}

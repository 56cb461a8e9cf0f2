//! Strings in SMB1 messages: UTF-16LE aligned to two bytes of the header, or single-byte OEM.
//!
//! MS-CIFS sections 2.2.1.1 and 3.2.4.1.2 (alignment). Conversion to text is `crate::text`.

use crate::read::{slice_at, u8_at};
use crate::text;

/// A string as it lies in the message, without its terminator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// UTF-16LE, otherwise OEM.
    pub unicode: bool,
}

impl Text<'_> {
    /// Appends the string as UTF-8.
    pub fn push_to(&self, out: &mut String) {
        if self.unicode {
            text::push_utf16le(out, self.bytes);
        } else {
            text::push_oem(out, self.bytes);
        }
    }

    /// The string as UTF-8.
    pub fn decode(&self) -> String {
        let mut out = String::with_capacity(self.bytes.len());
        self.push_to(&mut out);
        out
    }

    /// Whether it has no characters.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// The string at `at` of a message: UTF-16LE is first aligned to an even distance from the
/// header. It ends at its terminator or at `end`, where the field that holds it ends; the second
/// value is where the next field begins. `None` when it was not captured whole.
pub fn file_name(
    message: &[u8],
    at: usize,
    end: usize,
    unicode: bool,
) -> Option<(Text<'_>, usize)> {
    let aligned = if unicode { at.checked_add(at & 1)? } else { at };
    string(message, aligned, at, end, unicode)
}

/// Reads consecutive strings of one field.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    message: &'a [u8],
    at: usize,
    end: usize,
    unicode: bool,
}

impl<'a> Strings<'a> {
    /// Strings of `message` between the offsets `at` and `end`.
    pub fn new(message: &'a [u8], at: usize, end: usize, unicode: bool) -> Strings<'a> {
        Strings { message, at, end, unicode }
    }

    /// Where the next string begins (before alignment).
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Passes over `length` bytes.
    pub fn skip(&mut self, length: usize) {
        self.at = self.at.saturating_add(length);
    }

    /// The next string, UTF-16LE or OEM as the message says.
    pub fn text(&mut self) -> Option<Text<'a>> {
        let (text, next) = file_name(self.message, self.at, self.end, self.unicode)?;
        self.at = next;
        Some(text)
    }

    /// The next string, not aligned even if UTF-16LE (the names in a Negotiate response).
    pub fn unaligned(&mut self) -> Option<Text<'a>> {
        let (text, next) = string(self.message, self.at, self.at, self.end, self.unicode)?;
        self.at = next;
        Some(text)
    }

    /// The next string, OEM whatever the message says.
    pub fn oem(&mut self) -> Option<Text<'a>> {
        let (text, next) = string(self.message, self.at, self.at, self.end, false)?;
        self.at = next;
        Some(text)
    }

    /// The next string after its buffer format byte (0x02 dialect, 0x03 path, 0x04 string).
    pub fn formatted(&mut self) -> Option<Text<'a>> {
        self.buffer_format()?;
        self.text()
    }

    /// As [`Strings::formatted`], but OEM whatever the message says (dialects).
    pub fn oem_formatted(&mut self) -> Option<Text<'a>> {
        self.buffer_format()?;
        self.oem()
    }

    /// The next string, which has a given length in bytes; a terminator in it ends it. `None` when
    /// it would reach past the field.
    pub fn counted(&mut self, length: usize) -> Option<Text<'a>> {
        let unicode = self.unicode;
        let at = self.at + if unicode && length > 0 { self.at & 1 } else { 0 };
        // Bytes behind the field belong to another one, or are skipped as payload (`need`).
        let end = at.checked_add(length).filter(|&end| end <= self.end)?;
        let bytes = slice_at(self.message, at, length)?;
        self.at = end;
        Some(Text { bytes: until_terminator(bytes, unicode).0, unicode })
    }

    fn buffer_format(&mut self) -> Option<()> {
        if self.at >= self.end || !matches!(u8_at(self.message, self.at)?, 2..=4) {
            return None;
        }
        self.at += 1;
        Some(())
    }
}

fn string(
    message: &[u8],
    at: usize,
    unaligned: usize,
    end: usize,
    unicode: bool,
) -> Option<(Text<'_>, usize)> {
    if unaligned > end {
        return None;
    }
    if at >= end {
        let bytes = &[];
        return Some((Text { bytes, unicode }, end));
    }
    let captured = message.get(at..end.min(message.len()))?;
    let (bytes, taken, terminated) = until_terminator_taken(captured, unicode);
    if !terminated && end > message.len() {
        return None;
    }
    Some((Text { bytes, unicode }, at + taken))
}

fn until_terminator(bytes: &[u8], unicode: bool) -> (&[u8], bool) {
    let (text, _, terminated) = until_terminator_taken(bytes, unicode);
    (text, terminated)
}

fn until_terminator_taken(bytes: &[u8], unicode: bool) -> (&[u8], usize, bool) {
    if unicode {
        let (text, taken) = text::utf16le_terminated(bytes);
        (text, taken, taken == text.len() + 2)
    } else {
        match bytes.iter().position(|&byte| byte == 0) {
            Some(length) => (bytes.get(..length).unwrap_or(bytes), length + 1, true),
            None => (bytes, bytes.len(), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_utf16_to_the_header() {
        let message = b"x\0a\0b\0\0\0rest";
        let (name, next) = file_name(message, 1, message.len(), true).unwrap();
        assert_eq!((name.decode().as_str(), next), ("ab", 8));
        let (name, next) = file_name(b"xab\0y", 1, 5, false).unwrap();
        assert_eq!((name.decode().as_str(), next), ("ab", 4));
    }

    #[test]
    fn a_name_cut_by_the_capture_is_missing() {
        assert_eq!(file_name(b"abc", 0, 8, false), None);
        assert_eq!(file_name(b"a\0b\0", 0, 8, true), None);
        assert_eq!(file_name(b"abc", 0, 3, false).unwrap().0.decode(), "abc");
        assert_eq!(file_name(b"abc", 4, 3, false), None);
        assert!(file_name(b"abc", 3, 3, true).unwrap().0.is_empty());
        assert_eq!(file_name(b"abc", 5, 9, false), None);
        assert_eq!(file_name(b"abc", usize::MAX, usize::MAX, true), None);
    }

    #[test]
    fn walks_mixed_strings() {
        let message = b"\x04a\0\0\x04\x00c\0d\0\0\0IPC\0tail";
        let mut strings = Strings::new(message, 4, message.len(), true);
        assert_eq!(strings.formatted().unwrap().decode(), "cd");
        assert_eq!(strings.oem().unwrap().decode(), "IPC");
        assert_eq!(strings.offset(), 16);
        assert_eq!(strings.counted(4).unwrap().decode().chars().count(), 2);
        assert_eq!(strings.counted(1), None);
        let mut short = Strings::new(b"abcdef", 0, 4, false);
        assert_eq!(short.counted(5), None, "past the field, though captured");
        assert!(strings.counted(0).unwrap().is_empty());
    }
}

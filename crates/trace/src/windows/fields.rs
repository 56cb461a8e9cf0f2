//! Fields of an event, one after the other, as manifests list them: without padding, little endian,
//! texts in UTF-16.

use super::provider::Guid;

/// The fields that were not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// All fields of an event.
    pub fn new(payload: &'a [u8]) -> Fields<'a> {
        Fields { rest: payload }
    }

    /// Bytes that were not read.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    /// An integer of one byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// An integer of two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// An integer of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// An integer of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A GUID.
    pub fn guid(&mut self) -> Option<Guid> {
        self.array().map(Guid)
    }

    /// A text of `length` UTF-16 units, as bytes. `after` is how many bytes follow it in the event: if the
    /// event is longer or shorter by the difference, the length is one in bytes, which some providers write.
    pub fn utf16(&mut self, length: usize, after: usize) -> Option<&'a [u8]> {
        let room = self.rest.len().checked_sub(after)?;
        match 2 * length {
            units if units <= room => self.bytes(units),
            _ if length <= room && length.is_multiple_of(2) => self.bytes(length),
            _ => None,
        }
    }
}

/// Text in UTF-16. What is not text becomes U+FFFD.
pub fn text(utf16: &[u8]) -> String {
    let units = utf16.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
    char::decode_utf16(units).map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_and_end_with_the_event() {
        let mut fields = Fields::new(&[1, 2, 0, 3, 0, 0, 0, b'a', 0, 9]);
        assert_eq!((fields.u8(), fields.u16(), fields.u32()), (Some(1), Some(2), Some(3)));
        assert_eq!(fields.clone().utf16(1, 1).map(text).as_deref(), Some("a"));
        assert_eq!(fields.clone().utf16(2, 1).map(text).as_deref(), Some("a"), "in bytes");
        assert_eq!(fields.clone().utf16(3, 1), None);
        assert_eq!((fields.u64(), fields.left()), (None, 3));
        assert_eq!(text(&[0x00, 0xd8]), "\u{fffd}");
    }
}

//! Numbers and texts in bytes from outside, in the byte order of the trace.

use std::io::{self, Read, Seek, SeekFrom};

/// Order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    /// The order of this machine.
    #[cfg(all(feature = "record", target_os = "linux"))]
    pub const NATIVE: Order = if cfg!(target_endian = "big") { Order::Big } else { Order::Little };

    /// The number in up to eight bytes.
    pub fn number(self, bytes: &[u8]) -> Option<u64> {
        let mut whole = [0; 8];
        match self {
            Order::Little => whole.get_mut(..bytes.len())?.copy_from_slice(bytes),
            Order::Big => {
                whole.get_mut(8_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes)
            }
        }
        Some(match self {
            Order::Little => u64::from_le_bytes(whole),
            Order::Big => u64::from_be_bytes(whole),
        })
    }

    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        self.at(bytes, at, 2).map(|number| number as u16)
    }

    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.at(bytes, at, 4).map(|number| number as u32)
    }

    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.at(bytes, at, 8)
    }

    fn at(self, bytes: &[u8], at: usize, length: usize) -> Option<u64> {
        self.number(bytes.get(at..at.checked_add(length)?)?)
    }
}

/// What precedes the first zero byte.
pub fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

/// The next `length` bytes; `None` if there are fewer, or if they are more than `most`. Memory is
/// taken only for bytes that are there.
pub fn read_block(source: &mut impl Read, length: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
    if length > most {
        return Ok(None);
    }
    let mut block = Vec::new();
    source.by_ref().take(length).read_to_end(&mut block)?;
    Ok(Some(block).filter(|block| block.len() as u64 == length))
}

/// Goes to a place that a file names; false if the file ends before it.
pub fn seek_to(source: &mut impl Seek, at: u64) -> io::Result<bool> {
    let is_inside = at <= source.seek(SeekFrom::End(0))?;
    if is_inside {
        source.seek(SeekFrom::Start(at))?;
    }
    Ok(is_inside)
}

/// The text up to the next zero byte; `None` if it is longer than `most`, or not ended.
pub fn read_text(source: &mut impl Read, most: usize) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        if text.len() > most || source.read(&mut byte)? == 0 {
            return Ok(None);
        }
        match byte {
            [0] => return Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            [byte] => text.push(byte),
        }
    }
}

/// The next number of `LENGTH` bytes (at most eight).
pub fn read_number<const LENGTH: usize>(
    source: &mut impl Read,
    order: Order,
) -> io::Result<Option<u64>> {
    let block = read_block(source, LENGTH as u64, 8)?;
    Ok(block.and_then(|block| order.number(&block)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_an_order_and_end_with_the_bytes() {
        let bytes = [1, 2, 3, 4];
        assert_eq!(Order::Little.u16(&bytes, 1), Some(0x0302));
        assert_eq!(Order::Big.u32(&bytes, 0), Some(0x0102_0304));
        assert_eq!(Order::Big.u16(&bytes, 3), None);
        assert_eq!(Order::Little.u64(&bytes, usize::MAX), None);
        assert_eq!(Order::Little.number(&[0; 9]), None);
        assert_eq!(Order::Big.number(&[0; 9]), None);
        let mut source = &bytes[..];
        assert_eq!(read_block(&mut source, u64::MAX, 10).unwrap(), None);
        assert_eq!(read_number::<2>(&mut source, Order::Little).unwrap(), Some(0x0201));
        assert_eq!(read_block(&mut source, 3, 10).unwrap(), None);
        assert_eq!(read_text(&mut &b"a\0b"[..], 10).unwrap().as_deref(), Some("a"));
        assert_eq!(read_text(&mut &b"abc"[..], 10).unwrap(), None);
        assert_eq!(read_text(&mut &b"abc\0"[..], 1).unwrap(), None);
    }
}

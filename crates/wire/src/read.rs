//! Bounds-checked little-endian reads. Every decoder goes through these; none indexes by itself.

/// The byte at `offset`, if captured.
#[inline]
pub fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

/// The little-endian 16-bit integer at `offset`, if captured whole.
#[inline]
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*array_at(bytes, offset)?))
}

/// The little-endian 32-bit integer at `offset`, if captured whole.
#[inline]
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*array_at(bytes, offset)?))
}

/// The little-endian 64-bit integer at `offset`, if captured whole.
#[inline]
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*array_at(bytes, offset)?))
}

/// The `N` bytes at `offset`, if captured whole.
#[inline]
pub fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<&[u8; N]> {
    bytes.get(offset..)?.first_chunk()
}

/// The `length` bytes at `offset`, if captured whole.
#[inline]
pub fn slice_at(bytes: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    bytes.get(offset..)?.get(..length)
}

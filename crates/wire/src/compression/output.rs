//! Where a decompressor writes: one payload's part of the output, with its window and its limits.

use super::CompressionError;

/// Bytes that are copied at once; what is not wanted of them is overwritten.
pub(super) const AHEAD_BYTES: usize = 32;
/// Bytes by which the output grows.
const GROWTH_BYTES: usize = 4_096;

/// The part of the output that one payload fills.
pub(super) struct Output<'a> {
    /// What lies behind `at` is not part of the output.
    bytes: &'a mut Vec<u8>,
    /// Where the next byte is written.
    at: usize,
    /// Where the payload starts; matches reach back to here.
    start: usize,
    /// Where it ends by its header.
    end: usize,
    /// Where the caller's limit is.
    limit: usize,
}

impl<'a> Output<'a> {
    /// The next `length` bytes of `bytes`, which may have `limit` bytes in total.
    pub fn new(bytes: &'a mut Vec<u8>, length: usize, limit: usize) -> Output<'a> {
        let start = bytes.len();
        Output { bytes, at: start, start, end: start.saturating_add(length), limit }
    }

    /// Whether nothing more can be written: the payload is complete or the limit is reached.
    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Bytes of the payload that were written.
    pub fn written(&self) -> usize {
        self.at - self.start
    }

    /// The result when the decompressor has no more to do.
    pub fn finish(&self) -> Result<(), CompressionError> {
        if self.at >= self.end {
            Ok(())
        } else if self.at >= self.limit {
            Err(CompressionError::Limit)
        } else {
            Err(CompressionError::Malformed("less data than announced"))
        }
    }

    /// Appends bytes, as many as there is room for.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), CompressionError> {
        let fits = bytes.get(..self.room()).unwrap_or(bytes);
        self.grow(fits.len());
        if let Some(place) = self.bytes.get_mut(self.at..self.at + fits.len()) {
            place.copy_from_slice(fits);
        }
        self.at += fits.len();
        self.check(bytes.len() - fits.len())
    }

    /// Appends the first `length` bytes of these, at most as many as there is room for.
    #[inline(always)]
    pub fn extend_of(&mut self, bytes: &[u8; AHEAD_BYTES], length: usize) {
        self.grow(AHEAD_BYTES);
        if let Some(place) = self.bytes.get_mut(self.at..self.at + AHEAD_BYTES) {
            place.copy_from_slice(bytes);
        }
        self.at += length.min(AHEAD_BYTES).min(self.room());
    }

    /// Appends one byte; there is room when the output is not full.
    pub fn push(&mut self, byte: u8) {
        if !self.is_full() {
            self.grow(1);
            if let Some(place) = self.bytes.get_mut(self.at) {
                *place = byte;
            }
            self.at += 1;
        }
    }

    /// Fills the payload's part with one byte.
    pub fn fill(&mut self, byte: u8) {
        let end = self.at + self.room();
        self.bytes.resize(end.max(self.bytes.len()), byte);
        if let Some(place) = self.bytes.get_mut(self.at..end) {
            place.fill(byte);
        }
        self.at = end;
    }

    /// Appends `length` bytes from `distance` bytes back, which may run into what it appends.
    #[inline(always)]
    pub fn copy(&mut self, distance: usize, length: usize) -> Result<(), CompressionError> {
        if distance == 0 || distance > self.written() {
            return Err(CompressionError::Malformed("match before the start"));
        }
        let from = self.at - distance;
        if length <= AHEAD_BYTES && distance >= AHEAD_BYTES && length <= self.room() {
            let bytes = self.bytes.get(from..).and_then(|bytes| bytes.first_chunk().copied());
            if let Some(bytes) = bytes {
                self.extend_of(&bytes, length);
                return Ok(());
            }
        }
        self.copy_long(from, length)
    }

    /// The same for what is long or overlaps.
    #[inline(never)]
    fn copy_long(&mut self, from: usize, length: usize) -> Result<(), CompressionError> {
        let fits = length.min(self.room());
        self.grow(fits);
        let mut left = fits;
        while left != 0 {
            let step = left.min(self.at - from);
            self.bytes.copy_within(from..from + step, self.at);
            (self.at, left) = (self.at + step, left - step);
        }
        self.check(length - fits)
    }

    /// Bytes that can still be written.
    pub fn room(&self) -> usize {
        self.end.min(self.limit).saturating_sub(self.at)
    }

    /// Makes place for `length` bytes.
    #[inline(always)]
    fn grow(&mut self, length: usize) {
        if self.bytes.len() - self.at < length {
            self.grow_more(length);
        }
    }

    #[cold]
    fn grow_more(&mut self, length: usize) {
        self.bytes.resize(self.at + length + GROWTH_BYTES, 0);
    }

    /// What did not fit is the limit's doing, or more than the header announced.
    fn check(&self, excess: usize) -> Result<(), CompressionError> {
        if excess == 0 {
            Ok(())
        } else if self.limit < self.end {
            Err(CompressionError::Limit)
        } else {
            Err(CompressionError::Malformed("more data than announced"))
        }
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        self.bytes.truncate(self.at);
    }
}

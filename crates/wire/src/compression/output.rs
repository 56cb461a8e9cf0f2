//! Where a decompressor writes: one payload's part of the output, with its window and its limits.

use super::CompressionError;

/// The part of the output that one payload fills.
pub(super) struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    /// Where the payload starts; matches reach back to here.
    start: usize,
    /// Where it ends by its header.
    end: usize,
    /// Where the caller's limit is.
    limit: usize,
}

impl<'a> Output<'a> {
    /// The next `length` bytes of `bytes`, which may have `limit` bytes in all.
    pub fn new(bytes: &'a mut Vec<u8>, length: usize, limit: usize) -> Output<'a> {
        let start = bytes.len();
        Output { bytes, start, end: start.saturating_add(length), limit }
    }

    /// Whether nothing more can be written: the payload is complete or the limit is reached.
    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Bytes of the payload that were written.
    pub fn written(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The result when the decompressor has no more to do.
    pub fn finish(&self) -> Result<(), CompressionError> {
        if self.bytes.len() >= self.end {
            Ok(())
        } else if self.bytes.len() >= self.limit {
            Err(CompressionError::Limit)
        } else {
            Err(CompressionError::Malformed("less data than announced"))
        }
    }

    /// Appends bytes, as many as there is room for.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), CompressionError> {
        let fits = bytes.get(..self.room()).unwrap_or(bytes);
        self.bytes.extend_from_slice(fits);
        self.check(bytes.len() - fits.len())
    }

    /// Appends one byte; there is room when the output is not full.
    pub fn push(&mut self, byte: u8) {
        if !self.is_full() {
            self.bytes.push(byte);
        }
    }

    /// Fills the payload's part with one byte.
    pub fn fill(&mut self, byte: u8) {
        let length = self.bytes.len() + self.room();
        self.bytes.resize(length, byte);
    }

    /// Appends `length` bytes from `distance` bytes back, which may run into what it appends.
    pub fn copy(&mut self, distance: usize, length: usize) -> Result<(), CompressionError> {
        if distance == 0 || distance > self.written() {
            return Err(CompressionError::Malformed("match before the start"));
        }
        let from = self.bytes.len() - distance;
        let fits = length.min(self.room());
        let mut left = fits;
        while left != 0 {
            let step = left.min(self.bytes.len() - from);
            self.bytes.extend_from_within(from..from + step);
            left -= step;
        }
        self.check(length - fits)
    }

    fn room(&self) -> usize {
        self.end.min(self.limit).saturating_sub(self.bytes.len())
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

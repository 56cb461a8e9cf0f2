//! Read, LockAndRead, ReadAndX, ReadRaw, ReadMpx.
//!
//! MS-CIFS sections 2.2.4.11, .20, .22, .23, .42; MS-SMB section 2.2.4.2 (large reads).
//! The answer to ReadRaw has no view: it is a message of data without any SMB header, empty for
//! the end of the file as well as for an error.

use super::Block;
use super::block::view;

/// Highest count of 65,536 bytes in a message: the framing has 24 bits of length.
const COUNT_HIGH_LIMIT: u16 = 0xff;

view! {
    /// Request of Read and LockAndRead, 5 words.
    ReadRequest(Block.word) {
        /// The file.
        fid: u16 = 0,
        /// Bytes wanted.
        count: u16 = 2,
        /// Where to read.
        offset: u32 = 4,
        /// Bytes that the client means to read after these.
        remaining: u16 = 8,
    }
}

view! {
    /// Response of Read and LockAndRead, 5 words.
    ReadResponse(Block.word) {
        /// Bytes returned.
        count: u16 = 0,
    }
}

view! {
    /// Request of ReadAndX: 10 words, or 12 with a 64-bit offset.
    ReadAndXRequest(Block.word) {
        /// The file.
        fid: u16 = 4,
        /// The lower 16 bits of the bytes wanted.
        max_count_low: u16 = 10,
        /// Bytes below which a read of a pipe waits.
        min_count: u16 = 12,
        /// For a pipe or device, how long to wait in ms; for a file, the upper bits of the count.
        timeout: u32 = 14,
        /// Bytes that the client means to read after these.
        remaining: u16 = 18,
    }
    also { offset, max_count }
}

impl ReadAndXRequest<'_> {
    /// Where to read.
    pub fn offset(&self) -> Option<u64> {
        let low: u32 = self.base.word(6)?;
        let high: u32 = match self.base.word_count()? {
            12 => self.base.word(20)?,
            _ => 0,
        };
        Some(u64::from(high) << 32 | u64::from(low))
    }

    /// Bytes wanted. The words do not say whether the file is a pipe, so that `timeout` counts
    /// as upper bits only where a response could be as long; a pipe's usual timeouts (0xffffffff
    /// and thousands of milliseconds) are longer than that.
    pub fn max_count(&self) -> Option<u32> {
        let low = u32::from(self.max_count_low()?);
        match self.timeout()? {
            high if high <= u32::from(COUNT_HIGH_LIMIT) => Some(high << 16 | low),
            _ => Some(low),
        }
    }
}

view! {
    /// Response of ReadAndX, 12 words.
    ReadAndXResponse(Block.word) {
        /// Bytes left in a pipe; 0xffff for a file.
        available: u16 = 4,
        /// Where in the message the data begins.
        data_offset: u16 = 12,
    }
    also { data_length }
}

impl ReadAndXResponse<'_> {
    /// Bytes returned.
    pub fn data_length(&self) -> Option<u32> {
        self.base.data_length(10, 14)
    }
}

impl Block<'_> {
    /// A length whose lower and upper 16 bits stand apart. The upper field was reserved before
    /// large reads and writes, and what no message can hold is not a length.
    pub(super) fn data_length(&self, low: usize, high: usize) -> Option<u32> {
        let low: u16 = self.word(low)?;
        let high: u16 = self.word(high)?;
        let high = if high <= COUNT_HIGH_LIMIT { high } else { 0 };
        Some(u32::from(high) << 16 | u32::from(low))
    }
}

view! {
    /// Request of ReadRaw (8 words, or 10 with a 64-bit offset) and ReadMpx (8 words). The answer
    /// to ReadRaw is the next message of the server, whatever it begins with.
    ReadRawRequest(Block.word) {
        /// The file.
        fid: u16 = 0,
        /// Bytes wanted.
        max_count: u16 = 6,
        /// Bytes below which a read of a pipe waits.
        min_count: u16 = 8,
        /// How long to wait in ms.
        timeout: u32 = 10,
    }
    also { offset }
}

impl ReadRawRequest<'_> {
    /// Where to read.
    pub fn offset(&self) -> Option<u64> {
        let low: u32 = self.base.word(2)?;
        let high: u32 = match self.base.word_count()? {
            10 => self.base.word(16)?,
            _ => 0,
        };
        Some(u64::from(high) << 32 | u64::from(low))
    }
}

view! {
    /// Response of ReadMpx, 8 words; one of several.
    ReadMpxResponse(Block.word) {
        /// Where the data of this response belongs.
        offset: u32 = 0,
        /// Bytes that all responses together return.
        count: u16 = 4,
        /// Bytes in this response.
        data_length: u16 = 12,
        /// Where in the message the data begins.
        data_offset: u16 = 14,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, words};
    use super::*;

    #[test]
    fn reads_read_and_x() {
        let fixed = words(
            24,
            &[(0, &[0xff, 0, 0, 0, 7, 0, 0, 0x10, 0, 0, 0, 0xf0]), (14, &[1]), (20, &[2])],
        );
        let bytes = message(0x2e, 0xc001, &fixed, &[]);
        let request = ReadAndXRequest::new(block(&bytes));
        assert_eq!(request.fid(), Some(7));
        assert_eq!(request.offset(), Some(0x2_0000_1000));
        assert_eq!(request.max_count(), Some(0x1_f000));
        truncate(&bytes);

        let mut fixed = fixed;
        fixed.truncate(20);
        fixed[14..18].fill(0xff);
        let bytes = message(0x2e, 0xc001, &fixed, &[]);
        let request = ReadAndXRequest::new(block(&bytes));
        assert_eq!(request.offset(), Some(0x1000));
        assert_eq!(request.max_count(), Some(0xf000));
        truncate(&bytes);

        let fixed = words(24, &[(0, &[0xff]), (10, &[0, 0xf0, 60, 0, 1, 0])]);
        let bytes = reply(0x2e, 0xc001, &fixed, &[0]);
        let response = ReadAndXResponse::new(block(&bytes));
        assert_eq!(response.data_length(), Some(0x1_f000));
        assert_eq!(response.data_offset(), Some(60));
        truncate(&bytes);
    }

    #[test]
    fn reads_the_older_reads() {
        let bytes = message(0x0a, 0, &[7, 0, 0, 2, 0, 0, 1, 0, 9, 0], &[]);
        let request = ReadRequest::new(block(&bytes));
        assert_eq!((request.count(), request.offset()), (Some(512), Some(65536)));
        let bytes = reply(0x0a, 0, &words(10, &[(0, &[0, 1])]), &[1, 0, 1]);
        assert_eq!(ReadResponse::new(block(&bytes)).count(), Some(256));

        let fixed = words(20, &[(0, &[7, 0, 1]), (6, &[0xff, 0xff]), (16, &[1])]);
        let bytes = message(0x1a, 0, &fixed, &[]);
        let request = ReadRawRequest::new(block(&bytes));
        assert_eq!(request.offset(), Some(0x1_0000_0001));
        assert_eq!(request.max_count(), Some(0xffff));
        truncate(&bytes);
        let fixed = words(16, &[(0, &[7, 0, 1]), (6, &[0xff, 0x7f])]);
        let bytes = message(0x1b, 0, &fixed, &[]);
        assert_eq!(ReadRawRequest::new(block(&bytes)).offset(), Some(1));
        let bytes = reply(0x1b, 0, &words(16, &[(4, &[9]), (12, &[5])]), &[]);
        let response = ReadMpxResponse::new(block(&bytes));
        assert_eq!((response.count(), response.data_length()), (Some(9), Some(5)));
    }
}

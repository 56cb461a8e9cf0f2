//! Write, WriteAndUnlock, WriteAndClose, WriteAndX, WriteRaw, WriteMpx.
//!
//! MS-CIFS sections 2.2.4.12, .21, .25, .26, .40, .43; MS-SMB section 2.2.4.3 (large writes).
//!
//! The sequence of a WriteRaw: the request with the first data; an interim response (command
//! WriteRaw) that asks for the rest; a message of the remaining data without any SMB header; a
//! final response (command WriteComplete) if the request asked for write-through. An error replaces
//! the interim response by a WriteComplete, and no raw data follows.

use super::Block;
use super::block::view;

/// WriteMode of WriteAndX and WriteRaw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteMode(pub u16);

#[allow(missing_docs)]
impl WriteMode {
    pub const WRITE_THROUGH: WriteMode = WriteMode(0x0001);
    pub const READ_BYTES_AVAILABLE: WriteMode = WriteMode(0x0002);
    pub const RAW_MODE: WriteMode = WriteMode(0x0004);
    pub const MESSAGE_START: WriteMode = WriteMode(0x0008);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: WriteMode) -> bool {
        self.0 & flag.0 == flag.0
    }
}

view! {
    /// Request of Write and WriteAndUnlock (5 words) and WriteAndClose (6 or 12).
    WriteRequest(Block.word) {
        /// The file.
        fid: u16 = 0,
        /// Bytes to write; 0 sets the file's size to the offset (Write).
        count: u16 = 2,
        /// Where to write.
        offset: u32 = 4,
    }
}

view! {
    /// Response of Write, WriteAndUnlock, WriteAndClose and WriteComplete, 1 word.
    WriteResponse(Block.word) {
        /// Bytes written.
        count: u16 = 0,
    }
}

view! {
    /// Request of WriteAndX: 12 words, or 14 with a 64-bit offset.
    WriteAndXRequest(Block.word) {
        /// The file.
        fid: u16 = 4,
        /// For a pipe or device, how long to wait in ms.
        timeout: u32 = 10,
        /// Bytes that the client means to write after these; of a pipe the message's length.
        remaining: u16 = 16,
        /// Where in the message the data begins.
        data_offset: u16 = 22,
    }
    also { offset, write_mode, data_length }
}

impl WriteAndXRequest<'_> {
    /// Where to write.
    pub fn offset(&self) -> Option<u64> {
        let low: u32 = self.base.word(6)?;
        let high: u32 = match self.base.word_count()? {
            14 => self.base.word(24)?,
            _ => 0,
        };
        Some(u64::from(high) << 32 | u64::from(low))
    }

    /// Write-through and what concerns pipes.
    pub fn write_mode(&self) -> Option<WriteMode> {
        self.base.word(14).map(WriteMode)
    }

    /// Bytes to write.
    pub fn data_length(&self) -> Option<u32> {
        self.base.data_length(20, 18)
    }
}

view! {
    /// Response of WriteAndX, 6 words.
    WriteAndXResponse(Block.word) {
        /// Bytes left in a pipe; 0xffff for a file.
        available: u16 = 6,
    }
    also { count }
}

impl WriteAndXResponse<'_> {
    /// Bytes written.
    pub fn count(&self) -> Option<u32> {
        self.base.data_length(4, 8)
    }
}

view! {
    /// Request of WriteRaw (12 words, or 14 with a 64-bit offset) and WriteMpx (12 words).
    WriteRawRequest(Block.word) {
        /// The file.
        fid: u16 = 0,
        /// Bytes to write altogether, in this message and after it.
        total_count: u16 = 2,
        /// How long to wait in ms.
        timeout: u32 = 10,
        /// Bytes of data in this message; the raw message brings the rest.
        data_length: u16 = 20,
        /// Where in the message the data begins.
        data_offset: u16 = 22,
    }
    also { offset, write_mode }
}

impl WriteRawRequest<'_> {
    /// Where to write.
    pub fn offset(&self) -> Option<u64> {
        let low: u32 = self.base.word(6)?;
        let high: u32 = match self.base.word_count()? {
            14 => self.base.word(24)?,
            _ => 0,
        };
        Some(u64::from(high) << 32 | u64::from(low))
    }

    /// Write-through: whether a final response follows.
    pub fn write_mode(&self) -> Option<WriteMode> {
        self.base.word(14).map(WriteMode)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, words};
    use super::*;

    #[test]
    fn reads_write_and_x() {
        let fixed = words(
            28,
            &[(0, &[0xff, 0, 0, 0, 7, 0, 0, 0x10]), (14, &[1]), (18, &[1, 0, 0, 0xf0, 64, 0, 2])],
        );
        let bytes = message(0x2f, 0xc001, &fixed, &[0]);
        let request = WriteAndXRequest::new(block(&bytes));
        assert_eq!(request.fid(), Some(7));
        assert_eq!(request.offset(), Some(0x2_0000_1000));
        assert_eq!(request.data_length(), Some(0x1_f000));
        assert_eq!(request.data_offset(), Some(64));
        assert!(request.write_mode().unwrap().has(WriteMode::WRITE_THROUGH));
        truncate(&bytes);

        let bytes = message(0x2f, 0xc001, &fixed[..24], &[]);
        let request = WriteAndXRequest::new(block(&bytes));
        assert_eq!(request.offset(), Some(0x1000));
        truncate(&bytes);

        let fixed = words(12, &[(0, &[0xff]), (4, &[0, 0xf0, 0, 0, 1, 0])]);
        let bytes = reply(0x2f, 0xc001, &fixed, &[]);
        let response = WriteAndXResponse::new(block(&bytes));
        assert_eq!(response.count(), Some(0x1_f000));
        truncate(&bytes);
    }

    #[test]
    fn reads_the_older_writes() {
        let bytes = message(0x0b, 0, &[7, 0, 3, 0, 1, 0, 0, 0, 0, 0], b"\x01\x03\0abc");
        let request = WriteRequest::new(block(&bytes));
        assert_eq!(request.fid(), Some(7));
        assert_eq!((request.count(), request.offset()), (Some(3), Some(1)));
        let bytes = reply(0x20, 0, &[3, 0], &[]);
        assert_eq!(WriteResponse::new(block(&bytes)).count(), Some(3));

        let fixed =
            words(28, &[(0, &[7, 0, 0, 0x80]), (6, &[5]), (14, &[1]), (20, &[4, 0, 63, 0, 1])]);
        let bytes = message(0x1d, 0, &fixed, b"abcd");
        let request = WriteRawRequest::new(block(&bytes));
        assert_eq!(request.total_count(), Some(0x8000));
        assert_eq!(request.offset(), Some(0x1_0000_0005));
        assert_eq!(request.data_length(), Some(4));
        assert!(request.write_mode().unwrap().has(WriteMode::WRITE_THROUGH));
        truncate(&bytes);
    }
}

//! Commands that name only an open file - Close, Flush, CloseAndTreeDisconnect, Seek - and Echo,
//! which names nothing.
//!
//! MS-CIFS sections 2.2.4.5, 2.2.4.6, 2.2.4.45, 2.2.4.19, 2.2.4.31, 2.2.4.39.

use super::Block;
use super::block::view;

view! {
    /// Request that begins with a file id: Close, CloseAndTreeDisconnect, Flush,
    /// QueryInformation2, SetInformation2, WritePrintFile, ClosePrintFile.
    FileRequest(Block.word) {
        /// The file; 0xffff in a Flush for all files of the process.
        fid: u16 = 0,
    }
    also { last_time_modified }
}

impl FileRequest<'_> {
    /// Close: seconds since 1970 in the server's local time to set, 0 or 0xffffffff for none.
    pub fn last_time_modified(&self) -> Option<u32> {
        match self.base.word_count()? {
            3 => self.base.word(2),
            _ => None,
        }
    }
}

view! {
    /// Request of Seek.
    SeekRequest(Block.word) {
        /// The file.
        fid: u16 = 0,
        /// From where: 0 start, 1 current position, 2 end.
        mode: u16 = 2,
        /// Bytes to move by.
        offset: i32 = 4,
    }
}

view! {
    /// Request of Echo.
    EchoRequest(Block.word) {
        /// How many responses the client wants; with 0 there is none.
        echo_count: u16 = 0,
    }
}

view! {
    /// Response of Echo; one of several.
    EchoResponse(Block.word) {
        /// Counts from 1 to the request's count.
        sequence_number: u16 = 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate};
    use super::*;

    #[test]
    fn reads_close_seek_and_echo() {
        let bytes = message(0x04, 0, &[5, 0, 1, 2, 3, 4], &[]);
        let request = FileRequest::new(block(&bytes));
        assert_eq!(request.fid(), Some(5));
        assert_eq!(request.last_time_modified(), Some(0x0403_0201));
        truncate(&bytes);

        let bytes = message(0x12, 0, &[5, 0, 2, 0, 0xff, 0xff, 0xff, 0xff], &[]);
        let request = SeekRequest::new(block(&bytes));
        assert_eq!((request.mode(), request.offset()), (Some(2), Some(-1)));

        let bytes = message(0x2b, 0, &[3, 0], b"data");
        assert_eq!(EchoRequest::new(block(&bytes)).echo_count(), Some(3));
        let bytes = reply(0x2b, 0, &[2, 0], b"data");
        assert_eq!(EchoResponse::new(block(&bytes)).sequence_number(), Some(2));
    }
}

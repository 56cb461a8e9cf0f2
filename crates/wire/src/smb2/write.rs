//! WRITE request and response (MS-SMB2 sections 2.2.21 and 2.2.22).
//!
//! Owns the fixed fields and where the data stands; the data itself is never looked at.

use super::FileId;
use super::read::Channel;
use super::view::{flags, view};

flags! {
    /// Flags of a write request.
    WriteFlags(u32) {
        WRITE_THROUGH = 0x0000_0001,
        UNBUFFERED = 0x0000_0002,
    }
}

view! {
    /// A write request, from its SMB2 header.
    WriteRequest {
        /// Where the data stands, from the header.
        data_offset: u16 = 66;
        /// Bytes of data in the message.
        length: u32 = 68;
        /// Where in the file.
        offset: u64 = 72;
        /// The open file.
        file_id: FileId = 80;
        /// Whether the data goes by RDMA.
        channel: Channel = 96;
        /// Bytes that the client means to write after this; with RDMA the bytes of this write.
        remaining_bytes: u32 = 100;
        /// Where the RDMA descriptors stand, from the header.
        channel_info_offset: u16 = 104;
        /// Bytes of the RDMA descriptors.
        channel_info_length: u16 = 106;
        /// Write-through, unbuffered.
        flags: WriteFlags = 108;
    }
}

view! {
    /// A write response, from its SMB2 header.
    WriteResponse {
        /// Bytes written.
        count: u32 = 68;
        /// Reserved; zero.
        remaining: u32 = 72;
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_both_directions() {
        let mut bytes = message(&[49, 0, 0x70, 0]);
        put(&mut bytes, 68, &65536u32.to_le_bytes());
        put(&mut bytes, 72, &0x30000u64.to_le_bytes());
        put(&mut bytes, 80, &[7; 16]);
        put(&mut bytes, 100, &12u32.to_le_bytes());
        put(&mut bytes, 108, &3u32.to_le_bytes());
        let request = WriteRequest(&bytes);
        assert_eq!(request.data_offset(), Some(0x70));
        assert_eq!(request.length(), Some(65536));
        assert_eq!(request.offset(), Some(0x30000));
        assert_eq!(request.channel(), Some(Channel::NONE));
        assert_eq!(request.remaining_bytes(), Some(12));
        let flags = request.flags().unwrap();
        assert!(flags.contains(WriteFlags::WRITE_THROUGH));
        assert!(flags.contains(WriteFlags::UNBUFFERED));
        assert_eq!(WriteRequest(&bytes[..111]).flags(), None);
        abuse(&bytes, |bytes| WriteRequest(bytes).touch());

        let bytes = message(&[17, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(WriteResponse(&bytes).count(), Some(65536));
        abuse(&bytes, |bytes| WriteResponse(bytes).touch());
    }
}

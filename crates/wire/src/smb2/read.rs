//! READ request and response (MS-SMB2 sections 2.2.19 and 2.2.20).
//!
//! Owns the fixed fields and where the data stands; the data itself is never looked at.

use super::FileId;
use super::view::{codes, flags, view};

flags! {
    /// Flags of a read request.
    ReadFlags(u8) {
        UNBUFFERED = 0x01,
        REQUEST_COMPRESSED = 0x02,
    }
}

codes! {
    /// How the data of a read or write travels.
    Channel(u32) {
        NONE = 0 => "NONE",
        RDMA_V1 = 1 => "RDMA_V1",
        RDMA_V1_INVALIDATE = 2 => "RDMA_V1_INVALIDATE",
        RDMA_TRANSFORM = 3 => "RDMA_TRANSFORM",
    }
}

view! {
    /// A read request, from its SMB2 header.
    ReadRequest {
        /// Where in the response the client would like the data, from the header.
        padding: u8 = 66;
        /// Unbuffered, compressed; reserved before 3.0.2.
        flags: ReadFlags = 67;
        /// Bytes asked for.
        length: u32 = 68;
        /// Where in the file.
        offset: u64 = 72;
        /// The open file.
        file_id: FileId = 80;
        /// Fewer bytes than this are an error.
        minimum_count: u32 = 96;
        /// Whether the data goes by RDMA.
        channel: Channel = 100;
        /// Bytes that the client means to read after this.
        remaining_bytes: u32 = 104;
        /// Where the RDMA descriptors stand, from the header.
        channel_info_offset: u16 = 108;
        /// Bytes of the RDMA descriptors.
        channel_info_length: u16 = 110;
    }
}

view! {
    /// A read response, from its SMB2 header.
    ReadResponse {
        /// Where the data stands, from the header.
        data_offset: u8 = 66;
        /// Bytes of data in the message.
        data_length: u32 = 68;
        /// Bytes of data that went by RDMA.
        data_remaining: u32 = 72;
        /// RDMA transform flag (3.1.1), reserved before.
        flags: u32 = 76;
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_both_directions() {
        let mut bytes = message(&[49, 0, 0x50, 3]);
        put(&mut bytes, 68, &65536u32.to_le_bytes());
        put(&mut bytes, 72, &0x1_0000_0000u64.to_le_bytes());
        put(&mut bytes, 80, &[7; 16]);
        put(&mut bytes, 96, &1u32.to_le_bytes());
        put(&mut bytes, 100, &2u32.to_le_bytes());
        put(&mut bytes, 104, &4096u32.to_le_bytes());
        let request = ReadRequest(&bytes);
        assert_eq!(request.structure_size(), Some(49));
        assert_eq!(request.length(), Some(65536));
        assert_eq!(request.offset(), Some(0x1_0000_0000));
        assert_eq!(request.file_id().unwrap().volatile, 0x0707_0707_0707_0707);
        assert_eq!(request.minimum_count(), Some(1));
        assert_eq!(request.channel(), Some(Channel::RDMA_V1_INVALIDATE));
        assert_eq!(request.remaining_bytes(), Some(4096));
        assert!(request.flags().unwrap().contains(ReadFlags::UNBUFFERED));
        assert_eq!(ReadRequest(&bytes[..95]).file_id(), None);
        abuse(&bytes, |bytes| ReadRequest(bytes).touch());

        let mut bytes = message(&[17, 0, 0x50, 0, 0, 4, 0, 0]);
        put(&mut bytes, 72, &5u32.to_le_bytes());
        let response = ReadResponse(&bytes);
        assert_eq!(response.data_offset(), Some(0x50));
        assert_eq!(response.data_length(), Some(1024));
        assert_eq!(response.data_remaining(), Some(5));
        abuse(&bytes, |bytes| ReadResponse(bytes).touch());
    }
}

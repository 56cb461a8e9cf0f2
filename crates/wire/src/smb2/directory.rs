//! QUERY_DIRECTORY request and response (MS-SMB2 sections 2.2.33 and 2.2.34).
//!
//! The entries in the response's buffer are not decoded.

use super::FileId;
use super::info_class::FileInfoClass;
use super::view::{buffer, flags, view};

flags! {
    /// Flags of a directory query.
    QueryDirectoryFlags(u8) {
        RESTART_SCANS = 0x01,
        RETURN_SINGLE_ENTRY = 0x02,
        INDEX_SPECIFIED = 0x04,
        REOPEN = 0x10,
    }
}

view! {
    /// A directory query, from its SMB2 header.
    QueryDirectoryRequest {
        /// What is wanted of each entry.
        info_class: FileInfoClass = 66;
        /// Restart, single entry, index, reopen.
        flags: QueryDirectoryFlags = 67;
        /// Where to resume, with INDEX_SPECIFIED.
        file_index: u32 = 68;
        /// The open directory.
        file_id: FileId = 72;
        /// Where the pattern stands, from the header.
        pattern_offset: u16 = 88;
        /// Bytes of the pattern.
        pattern_length: u16 = 90;
        /// Longest answer in bytes.
        output_buffer_length: u32 = 92;
    }
}

impl<'a> QueryDirectoryRequest<'a> {
    /// The search pattern, UTF-16LE, if captured whole.
    pub fn pattern(self) -> Option<&'a [u8]> {
        let offset = usize::from(self.pattern_offset()?);
        let length = usize::from(self.pattern_length()?);
        buffer(self.0, offset, length)
    }
}

view! {
    /// A directory query's response, from its SMB2 header.
    QueryDirectoryResponse {
        /// Where the entries stand, from the header.
        output_buffer_offset: u16 = 66;
        /// Bytes of the entries.
        output_buffer_length: u32 = 68;
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_both_directions() {
        let mut bytes = message(&[33, 0, 37, 1]);
        put(&mut bytes, 72, &[4; 16]);
        put(&mut bytes, 88, &[96, 0, 2, 0, 0, 0, 1, 0]);
        put(&mut bytes, 96, b"*\0");
        let view = QueryDirectoryRequest(&bytes);
        assert_eq!(view.info_class().unwrap().name(), Some("FileIdBothDirectoryInformation"));
        assert_eq!(view.flags(), Some(QueryDirectoryFlags::RESTART_SCANS));
        assert_eq!(view.output_buffer_length(), Some(65536));
        assert_eq!(view.pattern(), Some(&b"*\0"[..]));
        assert_eq!(QueryDirectoryRequest(&bytes[..97]).pattern(), None);
        abuse(&bytes, |bytes| {
            QueryDirectoryRequest(bytes).touch();
            let _ = QueryDirectoryRequest(bytes).pattern();
        });

        let bytes = message(&[9, 0, 72, 0, 0, 2, 0, 0]);
        let view = QueryDirectoryResponse(&bytes);
        assert_eq!(view.output_buffer_offset(), Some(72));
        assert_eq!(view.output_buffer_length(), Some(512));
        abuse(&bytes, |bytes| QueryDirectoryResponse(bytes).touch());
    }
}

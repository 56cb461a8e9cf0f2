//! CLOSE request and response (MS-SMB2 sections 2.2.15 and 2.2.16).

use super::FileId;
use super::access::FileAttributes;
use super::view::{Field, flags, view};
use crate::read::u64_at;

flags! {
    /// Flags of both directions: the client wants, the response has the file's attributes.
    CloseFlags(u16) {
        POSTQUERY_ATTRIB = 0x0001,
    }
}

view! {
    /// A close request, from its SMB2 header.
    CloseRequest {
        /// Whether the client wants attributes back.
        flags: CloseFlags = 66;
        /// The open file.
        file_id: FileId = 72;
    }
}

view! {
    /// A close response, from its SMB2 header.
    CloseResponse {
        /// Whether the response has attributes.
        flags: CloseFlags = 66;
    }
}

/// What a close response says of the file; times in 100 ns since 1601.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CloseAttributes {
    pub creation_time: u64,
    pub last_access_time: u64,
    pub last_write_time: u64,
    pub change_time: u64,
    /// Bytes that the file takes.
    pub allocation_size: u64,
    /// Bytes of the file.
    pub end_of_file: u64,
    pub file_attributes: FileAttributes,
}

impl CloseResponse<'_> {
    /// The file's attributes; `None` where the server did not send them (the fields are then
    /// zero) or they are not captured whole.
    pub fn attributes(self) -> Option<CloseAttributes> {
        if !self.flags()?.contains(CloseFlags::POSTQUERY_ATTRIB) {
            return None;
        }
        Some(CloseAttributes {
            creation_time: u64_at(self.0, 72)?,
            last_access_time: u64_at(self.0, 80)?,
            last_write_time: u64_at(self.0, 88)?,
            change_time: u64_at(self.0, 96)?,
            allocation_size: u64_at(self.0, 104)?,
            end_of_file: u64_at(self.0, 112)?,
            file_attributes: FileAttributes::read(self.0, 120)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_both_directions() {
        let mut bytes = message(&[24, 0, 1, 0]);
        put(&mut bytes, 72, &[0xff; 16]);
        let view = CloseRequest(&bytes);
        assert_eq!(view.flags(), Some(CloseFlags::POSTQUERY_ATTRIB));
        assert_eq!(view.file_id(), Some(FileId::ANY));
        abuse(&bytes, |bytes| CloseRequest(bytes).touch());

        let mut bytes = message(&[60, 0, 1, 0]);
        for (index, offset) in (72..120).step_by(8).enumerate() {
            put(&mut bytes, offset, &(index as u64 + 1).to_le_bytes());
        }
        put(&mut bytes, 120, &0x20u32.to_le_bytes());
        let attributes = CloseResponse(&bytes).attributes().unwrap();
        assert_eq!(attributes.creation_time, 1);
        assert_eq!(attributes.change_time, 4);
        assert_eq!(attributes.allocation_size, 5);
        assert_eq!(attributes.end_of_file, 6);
        assert_eq!(attributes.file_attributes, FileAttributes::ARCHIVE);
        abuse(&bytes, |bytes| {
            CloseResponse(bytes).touch();
            let _ = CloseResponse(bytes).attributes();
        });
        bytes[66] = 0;
        assert_eq!(CloseResponse(&bytes).attributes(), None);
    }
}

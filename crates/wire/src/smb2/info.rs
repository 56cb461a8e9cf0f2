//! QUERY_INFO and SET_INFO (MS-SMB2 sections 2.2.37 to 2.2.40).
//!
//! Only values that change a file's name, size or existence are decoded when they are set
//! (MS-FSCC sections 2.4.4, 2.4.11, 2.4.14, 2.4.27 and 2.4.43).

use super::FileId;
use super::info_class::{FileInfoClass, InfoType, info_class_name};
use super::view::{buffer, view};
use crate::read::{slice_at, u8_at, u32_at, u64_at};

view! {
    /// A query, from its SMB2 header.
    QueryInfoRequest {
        /// File, file system, security, quota.
        info_type: InfoType = 66;
        /// The class within the type.
        info_class: u8 = 67;
        /// Longest answer in bytes.
        output_buffer_length: u32 = 68;
        /// Where the input stands, from the header.
        input_buffer_offset: u16 = 72;
        /// Bytes of the input (quota and extended attributes).
        input_buffer_length: u32 = 76;
        /// Security: the parts asked for; extended attributes: where to start.
        additional_information: u32 = 80;
        /// How to walk extended attributes.
        flags: u32 = 84;
        /// The open file.
        file_id: FileId = 88;
    }
}

impl QueryInfoRequest<'_> {
    /// The name of the class.
    pub fn class_name(self) -> Option<&'static str> {
        info_class_name(self.info_type()?, self.info_class()?)
    }
}

view! {
    /// A query's response, from its SMB2 header.
    QueryInfoResponse {
        /// Where the answer stands, from the header.
        output_buffer_offset: u16 = 66;
        /// Bytes of the answer.
        output_buffer_length: u32 = 68;
    }
}

view! {
    /// A set, from its SMB2 header.
    SetInfoRequest {
        /// File, file system, security, quota.
        info_type: InfoType = 66;
        /// The class within the type.
        info_class: u8 = 67;
        /// Bytes that are set.
        buffer_length: u32 = 68;
        /// Where they stand, from the header.
        buffer_offset: u16 = 72;
        /// Security: the parts set.
        additional_information: u32 = 76;
        /// The open file.
        file_id: FileId = 80;
    }
}

/// A set that changes a file's name, size or existence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The file gets a new name.
    Rename {
        /// The new path below the share, UTF-16LE.
        name: &'a [u8],
        /// Whether a file that has the name is replaced.
        replace: bool,
    },
    /// The file gets a second name.
    Link {
        /// The second path below the share, UTF-16LE.
        name: &'a [u8],
        /// Whether a file that has the name is replaced.
        replace: bool,
    },
    /// Whether the file is deleted when it is closed.
    Disposition {
        /// Delete on close, or no longer.
        delete: bool,
    },
    /// The file gets a size in bytes.
    EndOfFile(u64),
    /// The file gets an allocation in bytes.
    Allocation(u64),
}

impl<'a> SetInfoRequest<'a> {
    /// The name of the class.
    pub fn class_name(self) -> Option<&'static str> {
        info_class_name(self.info_type()?, self.info_class()?)
    }

    /// What is set, if captured whole.
    pub fn data(self) -> Option<&'a [u8]> {
        let offset = usize::from(self.buffer_offset()?);
        buffer(self.0, offset, self.buffer_length()? as usize)
    }

    /// Whether the class is one that [`SetInfoRequest::change`] decodes.
    pub(super) fn is_change(self) -> Option<bool> {
        let class = FileInfoClass(self.info_class()?);
        Some(
            self.info_type()? == InfoType::FILE
                && matches!(
                    class,
                    FileInfoClass::RENAME
                        | FileInfoClass::RENAME_EX
                        | FileInfoClass::LINK
                        | FileInfoClass::LINK_EX
                        | FileInfoClass::DISPOSITION
                        | FileInfoClass::DISPOSITION_EX
                        | FileInfoClass::END_OF_FILE
                        | FileInfoClass::ALLOCATION
                ),
        )
    }

    /// The requested change of name, size or existence; `None` for any other class.
    pub fn change(self) -> Option<Change<'a>> {
        if self.info_type()? != InfoType::FILE {
            return None;
        }
        let data = self.data()?;
        let name = || slice_at(data, 20, u32_at(data, 16)? as usize);
        // The Ex classes have flags of which bit 0 means what the older class's boolean does.
        let set = |mask: u8| u8_at(data, 0).map(|byte| byte & mask != 0);
        match FileInfoClass(self.info_class()?) {
            FileInfoClass::RENAME => Some(Change::Rename { name: name()?, replace: set(0xff)? }),
            FileInfoClass::RENAME_EX => Some(Change::Rename { name: name()?, replace: set(1)? }),
            FileInfoClass::LINK => Some(Change::Link { name: name()?, replace: set(0xff)? }),
            FileInfoClass::LINK_EX => Some(Change::Link { name: name()?, replace: set(1)? }),
            FileInfoClass::DISPOSITION => Some(Change::Disposition { delete: set(0xff)? }),
            FileInfoClass::DISPOSITION_EX => Some(Change::Disposition { delete: set(1)? }),
            FileInfoClass::END_OF_FILE => Some(Change::EndOfFile(u64_at(data, 0)?)),
            FileInfoClass::ALLOCATION => Some(Change::Allocation(u64_at(data, 0)?)),
            _ => None,
        }
    }
}

view! {
    /// A set's response, from its SMB2 header; it has no fields.
    SetInfoResponse {}
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_a_query() {
        let mut bytes = message(&[41, 0, 1, 18, 0, 16, 0, 0]);
        put(&mut bytes, 80, &7u32.to_le_bytes());
        put(&mut bytes, 88, &[0xff; 16]);
        let view = QueryInfoRequest(&bytes);
        assert_eq!(view.class_name(), Some("FileAllInformation"));
        assert_eq!(view.output_buffer_length(), Some(4096));
        assert_eq!(view.additional_information(), Some(7));
        assert_eq!(view.file_id(), Some(FileId::ANY));
        abuse(&bytes, |bytes| {
            QueryInfoRequest(bytes).touch();
            let _ = QueryInfoRequest(bytes).class_name();
        });
        let bytes = message(&[9, 0, 72, 0, 100, 0, 0, 0]);
        assert_eq!(QueryInfoResponse(&bytes).output_buffer_length(), Some(100));
        abuse(&bytes, |bytes| QueryInfoResponse(bytes).touch());
    }

    fn set(class: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = message(&[33, 0, 1, class]);
        put(&mut bytes, 68, &(data.len() as u32).to_le_bytes());
        put(&mut bytes, 72, &96u16.to_le_bytes());
        put(&mut bytes, 80, &[2; 16]);
        put(&mut bytes, 96, data);
        bytes
    }

    #[test]
    fn reads_set_fields() {
        let mut rename = vec![0; 20];
        rename[0] = 1;
        rename[16] = 4;
        rename.extend_from_slice(b"a\0b\0");
        let bytes = set(10, &rename);
        let change = Change::Rename { name: b"a\0b\0", replace: true };
        assert_eq!(SetInfoRequest(&bytes).change(), Some(change));
        assert_eq!(SetInfoRequest(&bytes).is_change(), Some(true));
        assert_eq!(SetInfoRequest(&bytes).class_name(), Some("FileRenameInformation"));
        abuse(&bytes, |bytes| {
            SetInfoRequest(bytes).touch();
            let _ = SetInfoRequest(bytes).change();
            SetInfoResponse(bytes).touch();
        });
        assert!(matches!(
            SetInfoRequest(&set(72, &rename)).change(),
            Some(Change::Link { replace: true, .. })
        ));
        let end_of_file = set(20, &5u64.to_le_bytes());
        assert_eq!(SetInfoRequest(&end_of_file).change(), Some(Change::EndOfFile(5)));
        let undelete = set(64, &2u32.to_le_bytes());
        assert_eq!(SetInfoRequest(&undelete).change(), Some(Change::Disposition { delete: false }));
        assert_eq!(SetInfoRequest(&set(4, &[0; 40])).change(), None);
        assert_eq!(SetInfoRequest(&set(4, &[0; 40])).is_change(), Some(false));
    }
}

//! NtCreateAndX: opening by the NT interface.
//!
//! MS-CIFS section 2.2.4.64, MS-SMB section 2.2.4.9 (extended response). The bits of access
//! masks, share access, dispositions and options are the same as in SMB2 (`crate::smb2`).

use super::Block;
use super::block::view;
use super::strings::Text;

/// Flags of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateFlags(pub u32);

#[allow(missing_docs)]
impl CreateFlags {
    pub const REQUEST_OPLOCK: CreateFlags = CreateFlags(0x02);
    pub const REQUEST_OPBATCH: CreateFlags = CreateFlags(0x04);
    pub const OPEN_TARGET_DIRECTORY: CreateFlags = CreateFlags(0x08);
    pub const REQUEST_EXTENDED_RESPONSE: CreateFlags = CreateFlags(0x10);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: CreateFlags) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// The oplock that a response grants or that a break leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OplockLevel(pub u8);

#[allow(missing_docs)]
impl OplockLevel {
    pub const NONE: OplockLevel = OplockLevel(0);
    pub const EXCLUSIVE: OplockLevel = OplockLevel(1);
    pub const BATCH: OplockLevel = OplockLevel(2);
    pub const LEVEL_II: OplockLevel = OplockLevel(3);

    /// The name, or `None` for a level that has none.
    pub fn name(self) -> Option<&'static str> {
        match self {
            OplockLevel::NONE => Some("None"),
            OplockLevel::EXCLUSIVE => Some("Exclusive"),
            OplockLevel::BATCH => Some("Batch"),
            OplockLevel::LEVEL_II => Some("LevelII"),
            _ => None,
        }
    }
}

/// What was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceType(pub u16);

#[allow(missing_docs)]
impl ResourceType {
    pub const DISK: ResourceType = ResourceType(0);
    pub const BYTE_MODE_PIPE: ResourceType = ResourceType(1);
    pub const MESSAGE_MODE_PIPE: ResourceType = ResourceType(2);
    pub const PRINTER: ResourceType = ResourceType(3);
    pub const COMM_DEVICE: ResourceType = ResourceType(4);
}

view! {
    /// Request, 24 words.
    NtCreateAndXRequest(Block.word) {
        /// Directory that the name is relative to, 0 for the share's root.
        root_directory_fid: u32 = 11,
        /// Access mask asked for.
        desired_access: u32 = 15,
        /// Bytes to allocate for a new file.
        allocation_size: u64 = 19,
        /// Attributes of a new file.
        ext_file_attributes: u32 = 27,
        /// What others may do meanwhile.
        share_access: u32 = 31,
        /// What to do when the file exists or not.
        create_disposition: u32 = 35,
        /// Options, write-through and no buffering among them.
        create_options: u32 = 39,
        /// Impersonation level.
        impersonation_level: u32 = 43,
    }
    also { flags, name, requested_oplock }
}

impl<'a> NtCreateAndXRequest<'a> {
    /// Flags.
    pub fn flags(&self) -> Option<CreateFlags> {
        self.base.word(7).map(CreateFlags)
    }

    /// The file name, relative to the share's root; empty for the root itself.
    pub fn name(&self) -> Option<Text<'a>> {
        let length: u16 = self.base.word(5)?;
        self.base.strings(0)?.counted(length.into())
    }

    /// The oplock asked for by the flags.
    pub fn requested_oplock(&self) -> Option<OplockLevel> {
        Some(requested_oplock(self.flags()?))
    }
}

/// The oplock that creation flags ask for; they cannot ask for level II.
pub(super) fn requested_oplock(flags: CreateFlags) -> OplockLevel {
    if flags.has(CreateFlags::REQUEST_OPBATCH) {
        OplockLevel::BATCH
    } else if flags.has(CreateFlags::REQUEST_OPLOCK) {
        OplockLevel::EXCLUSIVE
    } else {
        OplockLevel::NONE
    }
}

view! {
    /// Response: 34 words; 50 when extended, which servers announce as 42.
    NtCreateAndXResponse(Block.word) {
        /// The new file's id.
        fid: u16 = 5,
        /// What was done: 0 superseded, 1 opened, 2 created, 3 overwritten.
        create_action: u32 = 7,
        /// FILETIME.
        create_time: u64 = 11,
        /// FILETIME.
        last_access_time: u64 = 19,
        /// FILETIME.
        last_write_time: u64 = 27,
        /// FILETIME.
        last_change_time: u64 = 35,
        /// Attributes.
        ext_file_attributes: u32 = 43,
        /// Bytes allocated.
        allocation_size: u64 = 47,
        /// Size in bytes.
        end_of_file: u64 = 55,
        /// State of a named pipe.
        pipe_status: u16 = 65,
        /// Not 0 for a directory.
        directory: u8 = 67,
        /// Volume GUID (extended).
        volume_guid: [u8; 16] = 68,
        /// The file's id on its volume (extended).
        file_id: u64 = 84,
        /// The most that the user may be granted (extended).
        maximal_access: u32 = 92,
        /// The most that a guest may be granted (extended).
        guest_maximal_access: u32 = 96,
    }
    also { oplock_level, resource_type }
}

impl NtCreateAndXResponse<'_> {
    /// The oplock granted.
    pub fn oplock_level(&self) -> Option<OplockLevel> {
        self.base.word(4).map(OplockLevel)
    }

    /// What was opened.
    pub fn resource_type(&self) -> Option<ResourceType> {
        self.base.word(63).map(ResourceType)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn reads_the_request() {
        let fixed = words(
            48,
            &[
                (0, &[0xff]),
                (5, &[10, 0, 0x16]),
                (15, &0x0012_0089u32.to_le_bytes()),
                (31, &[3]),
                (35, &[1]),
                (39, &[0x42]),
            ],
        );
        let mut bytes = vec![0];
        bytes.extend(utf16("\\a.tx\0"));
        let bytes = message(0xa2, 0xc001, &fixed, &bytes);
        let request = NtCreateAndXRequest::new(block(&bytes));
        assert_eq!(request.name().unwrap().decode(), "\\a.tx");
        assert_eq!(request.desired_access(), Some(0x0012_0089));
        assert_eq!(request.share_access(), Some(3));
        assert_eq!(request.create_disposition(), Some(1));
        assert_eq!(request.create_options(), Some(0x42));
        assert_eq!(request.requested_oplock(), Some(OplockLevel::BATCH));
        truncate(&bytes);

        let mut fixed = fixed;
        fixed[5] = 4;
        let bytes = message(0xa2, 0x4001, &fixed, b"\\abc\0");
        let request = NtCreateAndXRequest::new(block(&bytes));
        assert_eq!(request.name().unwrap().decode(), "\\abc");
    }

    #[test]
    fn reads_the_response() {
        let fixed = words(
            68,
            &[
                (0, &[0xff]),
                (4, &[2, 0x34, 0x12, 1]),
                (55, &4321u64.to_le_bytes()),
                (63, &[2, 0, 0xff, 5, 1]),
            ],
        );
        let bytes = reply(0xa2, 0xc001, &fixed, &[]);
        let response = NtCreateAndXResponse::new(block(&bytes));
        assert_eq!(response.oplock_level(), Some(OplockLevel::BATCH));
        assert_eq!(response.fid(), Some(0x1234));
        assert_eq!(response.create_action(), Some(1));
        assert_eq!(response.end_of_file(), Some(4321));
        let pipe = Some(ResourceType::MESSAGE_MODE_PIPE);
        assert_eq!(response.resource_type(), pipe);
        assert_eq!(response.directory(), Some(1));
        assert_eq!(response.maximal_access(), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_the_extended_response_that_announces_42_words() {
        let fixed = words(100, &[(0, &[0xff]), (92, &0x001f_01ffu32.to_le_bytes())]);
        let mut bytes = reply(0xa2, 0xc001, &fixed, b"xy");
        bytes[32] = 42;
        let block = block(&bytes);
        assert_eq!(block.bytes(), Some(&b"xy"[..]));
        let response = NtCreateAndXResponse::new(block);
        assert_eq!(response.maximal_access(), Some(0x001f_01ff));
        truncate(&bytes);
    }
}

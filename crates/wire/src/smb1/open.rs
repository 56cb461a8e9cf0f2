//! OpenAndX and the core ways to open: Open, Create, CreateNew, CreateTemporary.
//!
//! MS-CIFS sections 2.2.4.41, 2.2.4.3, 2.2.4.4, 2.2.4.15 and 2.2.4.16; MS-SMB section 2.2.4.1
//! (extended response).

use super::Block;
use super::block::view;
use super::create::OplockLevel;
use super::strings::Text;
use super::{Flags, Message};

/// AccessMode of an open: what is wanted and what others may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessMode(pub u16);

impl AccessMode {
    /// Access: 0 read, 1 write, 2 read and write, 3 execute.
    pub fn access(self) -> u16 {
        self.0 & 0x0007
    }

    /// Sharing: 0 compatibility, 1 deny all, 2 deny write, 3 deny read, 4 deny none.
    pub fn sharing(self) -> u16 {
        self.0 >> 4 & 0x0007
    }

    /// Whether writes must reach the disk before they are answered.
    pub fn is_write_through(self) -> bool {
        self.0 & 0x4000 != 0
    }
}

view! {
    /// Request of OpenAndX, 15 words.
    OpenAndXRequest(Block.word) {
        /// Bit 0: return attributes; bit 1: exclusive oplock; bit 2: batch oplock.
        flags: u16 = 4,
        /// Attributes of a new file.
        file_attributes: u16 = 10,
        /// Seconds since 1970 in the server's local time.
        creation_time: u32 = 12,
        /// What to do when the file exists (bits 0-1) or not (bit 4: create).
        open_mode: u16 = 16,
        /// Bytes to allocate for a new file.
        allocation_size: u32 = 18,
    }
    also { access_mode, name, requested_oplock }
}

impl<'a> OpenAndXRequest<'a> {
    /// Access and sharing.
    pub fn access_mode(&self) -> Option<AccessMode> {
        self.base.word(6).map(AccessMode)
    }

    /// The file name.
    pub fn name(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.text()
    }

    /// The oplock asked for.
    pub fn requested_oplock(&self) -> Option<OplockLevel> {
        Some(oplock(self.flags()? & 0x02 != 0, self.flags()? & 0x04 != 0))
    }
}

view! {
    /// Response of OpenAndX: 15 words, or 19 when extended.
    OpenAndXResponse(Block.word) {
        /// The new file's id.
        fid: u16 = 4,
        /// Attributes.
        file_attributes: u16 = 6,
        /// Seconds since 1970 in the server's local time.
        last_write_time: u32 = 8,
        /// Size in bytes.
        file_data_size: u32 = 12,
        /// Access granted: 0 read, 1 write, 2 read and write.
        access_rights: u16 = 16,
        /// What was opened; see [`super::create::ResourceType`].
        resource_type: u16 = 18,
        /// Bits 0-1: 1 opened, 2 created, 3 truncated; bit 15: an oplock was granted.
        open_results: u16 = 22,
        /// The most that the user may be granted (extended).
        maximal_access: u32 = 30,
    }
    also { has_oplock }
}

impl OpenAndXResponse<'_> {
    /// Whether the requested oplock was granted.
    pub fn has_oplock(&self) -> Option<bool> {
        Some(self.open_results()? & 0x8000 != 0)
    }
}

view! {
    /// Request of Open, 2 words.
    OpenRequest(Block.word) {
        /// Attributes that the file may have.
        search_attributes: u16 = 2,
    }
    also { access_mode, name, requested_oplock }
}

impl<'a> OpenRequest<'a> {
    /// Access and sharing.
    pub fn access_mode(&self) -> Option<AccessMode> {
        self.base.word(0).map(AccessMode)
    }

    /// The file name.
    pub fn name(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }

    /// The requested oplock, which is in the header.
    pub fn requested_oplock(&self) -> Option<OplockLevel> {
        header_oplock(self.base.message())
    }
}

view! {
    /// Response of Open, 7 words.
    OpenResponse(Block.word) {
        /// The new file's id.
        fid: u16 = 0,
        /// Attributes.
        file_attributes: u16 = 2,
        /// Seconds since 1970 in the server's local time.
        last_modified: u32 = 4,
        /// Size in bytes.
        file_size: u32 = 8,
        /// Access granted.
        access_mode: u16 = 12,
    }
    also { granted_oplock }
}

impl OpenResponse<'_> {
    /// The granted oplock, which is in the header.
    pub fn granted_oplock(&self) -> Option<OplockLevel> {
        header_oplock(self.base.message())
    }
}

view! {
    /// Request of Create, CreateNew and CreateTemporary, 3 words.
    CreateRequest(Block.word) {
        /// Attributes of the new file.
        file_attributes: u16 = 0,
        /// Seconds since 1970 in the server's local time.
        creation_time: u32 = 2,
    }
    also { name, requested_oplock }
}

impl<'a> CreateRequest<'a> {
    /// The file name; for CreateTemporary the directory.
    pub fn name(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }

    /// The requested oplock, which is in the header.
    pub fn requested_oplock(&self) -> Option<OplockLevel> {
        header_oplock(self.base.message())
    }
}

view! {
    /// Response of Create, CreateNew and CreateTemporary, 1 word.
    CreateResponse(Block.word) {
        /// The new file's id.
        fid: u16 = 0,
    }
    also { granted_oplock, temporary_name }
}

impl<'a> CreateResponse<'a> {
    /// The granted oplock, which is in the header.
    pub fn granted_oplock(&self) -> Option<OplockLevel> {
        header_oplock(self.base.message())
    }

    /// The name that the server chose (CreateTemporary).
    pub fn temporary_name(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }
}

fn header_oplock(message: Message<'_>) -> Option<OplockLevel> {
    let flags = message.flags()?;
    Some(oplock(flags.has(Flags::OPLOCK), flags.has(Flags::OPBATCH)))
}

/// The batch bit only widens a request for an oplock, but some clients set it alone.
fn oplock(exclusive: bool, batch: bool) -> OplockLevel {
    match (exclusive, batch) {
        (_, true) => OplockLevel::BATCH,
        (true, false) => OplockLevel::EXCLUSIVE,
        (false, false) => OplockLevel::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn reads_open_and_x() {
        let fixed = words(30, &[(0, &[0xff, 0, 0, 0, 2, 0, 0x42, 0x40]), (16, &[0x11])]);
        // Bytes begin at 65: one byte of padding.
        let mut bytes = vec![0];
        bytes.extend(utf16("\\b\0"));
        let bytes = message(0x2d, 0x8000, &fixed, &bytes);
        let request = OpenAndXRequest::new(block(&bytes));
        let mode = request.access_mode().unwrap();
        assert_eq!((mode.access(), mode.sharing()), (2, 4));
        assert!(mode.is_write_through());
        assert_eq!(request.requested_oplock(), Some(OplockLevel::EXCLUSIVE));
        assert_eq!(request.open_mode(), Some(0x11));
        assert_eq!(request.name().unwrap().decode(), "\\b");
        truncate(&bytes);

        let fixed = words(30, &[(0, &[0xff]), (4, &[9, 0]), (12, &[7]), (22, &[1, 0x80])]);
        let bytes = reply(0x2d, 0x8000, &fixed, &[]);
        let response = OpenAndXResponse::new(block(&bytes));
        assert_eq!(response.fid(), Some(9));
        assert_eq!(response.file_data_size(), Some(7));
        assert_eq!(response.has_oplock(), Some(true));
        assert_eq!(response.maximal_access(), None);
        truncate(&bytes);
    }

    #[test]
    fn reads_the_core_opens() {
        let mut bytes = message(0x02, 0, &[0x42, 0, 6, 0], b"\x04\\a\0");
        bytes[9] = 0x60;
        let request = OpenRequest::new(block(&bytes));
        assert_eq!(request.name().unwrap().decode(), "\\a");
        assert_eq!(request.requested_oplock(), Some(OplockLevel::BATCH));
        truncate(&bytes);

        let fixed = words(14, &[(0, &[3, 0]), (8, &[0, 1])]);
        let bytes = reply(0x02, 0, &fixed, &[]);
        let response = OpenResponse::new(block(&bytes));
        assert_eq!((response.fid(), response.file_size()), (Some(3), Some(256)));
        assert_eq!(response.granted_oplock(), Some(OplockLevel::NONE));

        let bytes = message(0x0f, 0, &words(6, &[(0, &[0x20])]), b"\x04new\0");
        let request = CreateRequest::new(block(&bytes));
        assert_eq!(request.name().unwrap().decode(), "new");
        assert_eq!(request.file_attributes(), Some(0x20));
        truncate(&bytes);

        let bytes = reply(0x0e, 0, &[4, 0], b"\x04TMP1\0");
        let response = CreateResponse::new(block(&bytes));
        assert_eq!(response.fid(), Some(4));
        assert_eq!(response.temporary_name().unwrap().decode(), "TMP1");
        truncate(&bytes);
    }
}

//! TreeConnect and TreeConnectAndX: which share. TreeDisconnect has no fields.
//!
//! MS-CIFS sections 2.2.4.50 and 2.2.4.55, MS-SMB section 2.2.4.7 (extended response).

use super::Block;
use super::block::view;
use super::strings::Text;

/// Bits of OptionalSupport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionalSupport(pub u16);

#[allow(missing_docs)]
impl OptionalSupport {
    pub const SEARCH_BITS: OptionalSupport = OptionalSupport(0x0001);
    pub const SHARE_IS_IN_DFS: OptionalSupport = OptionalSupport(0x0002);
    pub const CSC_MASK: OptionalSupport = OptionalSupport(0x000c);
    pub const UNIQUE_FILE_NAME: OptionalSupport = OptionalSupport(0x0010);
    pub const EXTENDED_SIGNATURES: OptionalSupport = OptionalSupport(0x0020);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: OptionalSupport) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// Bit of the request's Flags: disconnect the tree in the header first.
pub const FLAG_DISCONNECT_TID: u16 = 0x0001;

view! {
    /// Request of TreeConnect.
    TreeConnectRequest(Block.word) {}
    also { path, service }
}

impl<'a> TreeConnectRequest<'a> {
    /// The share, as `\\server\share`.
    pub fn path(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }

    /// The kind of share that the client wants: `A:`, `LPT1:`, `IPC`, `COMM` or `?????`.
    pub fn service(&self) -> Option<Text<'a>> {
        let mut strings = self.base.strings(0)?;
        strings.formatted()?;
        strings.oem_formatted()?;
        strings.oem_formatted()
    }
}

view! {
    /// Response of TreeConnect.
    TreeConnectResponse(Block.word) {
        /// The largest message in bytes that the server receives.
        max_buffer_size: u16 = 0,
        /// The new tree id (the header's is not set).
        tid: u16 = 2,
    }
}

view! {
    /// Request of TreeConnectAndX.
    TreeConnectAndXRequest(Block.word) {
        /// Flags; see [`FLAG_DISCONNECT_TID`].
        flags: u16 = 4,
    }
    also { path, service }
}

impl<'a> TreeConnectAndXRequest<'a> {
    /// The share, as `\\server\share`.
    pub fn path(&self) -> Option<Text<'a>> {
        self.after_password()?.text()
    }

    /// The kind of share that the client wants: `A:`, `LPT1:`, `IPC`, `COMM` or `?????`.
    pub fn service(&self) -> Option<Text<'a>> {
        let mut strings = self.after_password()?;
        strings.text()?;
        strings.oem()
    }

    fn after_password(&self) -> Option<super::strings::Strings<'a>> {
        self.base.strings(self.base.word::<u16>(6)?.into())
    }
}

view! {
    /// Response of TreeConnectAndX: 2 words, 3, or 7 when extended. The header has the tree id.
    TreeConnectAndXResponse(Block.word) {
        /// The most that the user may be granted on the share (7 words).
        maximal_share_access: u32 = 6,
        /// The most that a guest may be granted on the share (7 words).
        guest_maximal_share_access: u32 = 10,
    }
    also { optional_support, service, native_file_system }
}

impl<'a> TreeConnectAndXResponse<'a> {
    /// What the share supports.
    pub fn optional_support(&self) -> Option<OptionalSupport> {
        self.base.word(4).map(OptionalSupport)
    }

    /// The kind of share: `A:`, `LPT1:`, `IPC` or `COMM`.
    pub fn service(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.oem()
    }

    /// The file system, for example `NTFS`.
    pub fn native_file_system(&self) -> Option<Text<'a>> {
        let mut strings = self.base.strings(0)?;
        strings.oem()?;
        strings.text()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn reads_tree_connect() {
        let bytes = message(0x70, 0, &[], b"\x04\\\\S\\X\0\x04pw\0\x04A:\0");
        let request = TreeConnectRequest::new(block(&bytes));
        assert_eq!(request.path().unwrap().decode(), r"\\S\X");
        assert_eq!(request.service().unwrap().decode(), "A:");
        truncate(&bytes);
        let bytes = reply(0x70, 0, &[0, 0x40, 7, 0], &[]);
        let response = TreeConnectResponse::new(block(&bytes));
        assert_eq!((response.max_buffer_size(), response.tid()), (Some(0x4000), Some(7)));
    }

    #[test]
    fn reads_tree_connect_and_x() {
        let fixed = words(8, &[(0, &[0xff]), (4, &[8, 0, 1, 0])]);
        // Bytes begin at 43: one byte of password, then even.
        let mut bytes = vec![0];
        bytes.extend(utf16("\\\\s\\x\0"));
        bytes.extend(b"?????\0");
        let bytes = message(0x75, 0xc001, &fixed, &bytes);
        let request = TreeConnectAndXRequest::new(block(&bytes));
        assert_eq!(request.path().unwrap().decode(), r"\\s\x");
        assert_eq!(request.service().unwrap().decode(), "?????");
        truncate(&bytes);
    }

    #[test]
    fn reads_the_extended_response() {
        let fixed = words(14, &[(0, &[0xff]), (4, &[3, 0]), (6, &[0xff, 1, 0x1f])]);
        // Bytes begin at 49: "A:\0" ends at 52.
        let mut bytes = b"A:\0".to_vec();
        bytes.extend(utf16("NTFS\0"));
        let bytes = reply(0x75, 0xc001, &fixed, &bytes);
        let response = TreeConnectAndXResponse::new(block(&bytes));
        let support = response.optional_support().unwrap();
        assert!(support.has(OptionalSupport::SHARE_IS_IN_DFS));
        assert_eq!(response.maximal_share_access(), Some(0x1f_01ff));
        assert_eq!(response.service().unwrap().decode(), "A:");
        assert_eq!(response.native_file_system().unwrap().decode(), "NTFS");
        truncate(&bytes);
        let old = reply(0x75, 0, &[0xff, 0, 0, 0], b"IPC\0");
        let response = TreeConnectAndXResponse::new(block(&old));
        assert_eq!(response.optional_support(), None);
        assert_eq!(response.service().unwrap().decode(), "IPC");
    }
}

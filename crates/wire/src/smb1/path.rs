//! Commands on a path: Delete, Rename, NtRename, CreateDirectory, DeleteDirectory,
//! CheckDirectory, Query/SetInformation, and the old answers about files and volumes.
//!
//! MS-CIFS sections 2.2.4.1, .2, .7-.10, .17, .30, .31, .57 and .66.

use super::Block;
use super::block::view;
use super::strings::Text;

view! {
    /// Request of Delete, Rename, CreateDirectory, DeleteDirectory, CheckDirectory,
    /// QueryInformation.
    PathRequest(Block.word) {
        /// Attributes that the file may have (Delete and Rename).
        search_attributes: u16 = 0,
    }
    also { path, new_path }
}

impl<'a> PathRequest<'a> {
    /// The path, the old one of a Rename.
    pub fn path(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }

    /// The new path of a Rename.
    pub fn new_path(&self) -> Option<Text<'a>> {
        second_path(self.base)
    }
}

view! {
    /// Request of NtRename, 4 words.
    NtRenameRequest(Block.word) {
        /// Attributes that the file may have.
        search_attributes: u16 = 0,
        /// 0x103 hard link, 0x104 rename, 0x105 move of clusters.
        information_level: u16 = 2,
    }
    also { path, new_path }
}

impl<'a> NtRenameRequest<'a> {
    /// The old path.
    pub fn path(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }

    /// The new path.
    pub fn new_path(&self) -> Option<Text<'a>> {
        second_path(self.base)
    }
}

view! {
    /// Request of SetInformation, 8 words.
    SetInformationRequest(Block.word) {
        /// Attributes to set.
        file_attributes: u16 = 0,
        /// Seconds since 1970 in the server's local time to set.
        last_write_time: u32 = 2,
    }
    also { path }
}

impl<'a> SetInformationRequest<'a> {
    /// The path.
    pub fn path(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }
}

view! {
    /// Response of QueryInformation, 10 words.
    QueryInformationResponse(Block.word) {
        /// Attributes.
        file_attributes: u16 = 0,
        /// Seconds since 1970 in the server's local time.
        last_write_time: u32 = 2,
        /// Size in bytes.
        file_size: u32 = 6,
    }
}

view! {
    /// Response of QueryInformation2, 11 words.
    QueryInformation2Response(Block.word) {
        /// Size in bytes.
        file_data_size: u32 = 12,
        /// Bytes allocated.
        file_allocation_size: u32 = 16,
        /// Attributes.
        file_attributes: u16 = 20,
    }
}

view! {
    /// Response of QueryInformationDisk, 5 words.
    QueryInformationDiskResponse(Block.word) {
        /// Allocation units of the volume.
        total_units: u16 = 0,
        /// Blocks in a unit.
        blocks_per_unit: u16 = 2,
        /// Bytes in a block.
        block_size: u16 = 4,
        /// Units that are free.
        free_units: u16 = 6,
    }
}

fn second_path(block: Block<'_>) -> Option<Text<'_>> {
    let mut strings = block.strings(0)?;
    strings.formatted()?;
    strings.formatted()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate, utf16, words};
    use super::*;

    #[test]
    fn reads_both_paths_of_a_rename() {
        // Bytes begin at 37; the format byte at 37 leaves the first name even, the second odd.
        let mut bytes = vec![4];
        bytes.extend(utf16("\\old\0"));
        bytes.extend([4, 0]);
        bytes.extend(utf16("\\new\0"));
        let bytes = message(0x07, 0xc001, &[0x16, 0], &bytes);
        let request = PathRequest::new(block(&bytes));
        assert_eq!(request.search_attributes(), Some(0x16));
        assert_eq!(request.path().unwrap().decode(), "\\old");
        assert_eq!(request.new_path().unwrap().decode(), "\\new");
        truncate(&bytes);

        let bytes = message(0xa5, 0, &words(8, &[(2, &[3, 1])]), b"\x04a\0\x04b\0");
        let request = NtRenameRequest::new(block(&bytes));
        assert_eq!(request.information_level(), Some(0x103));
        assert_eq!(request.new_path().unwrap().decode(), "b");
        truncate(&bytes);
    }

    #[test]
    fn reads_paths_and_old_information() {
        let bytes = message(0x10, 0, &[], b"\x04\\dir\0");
        assert_eq!(PathRequest::new(block(&bytes)).path().unwrap().decode(), "\\dir");
        assert_eq!(PathRequest::new(block(&bytes)).new_path(), None);
        let bytes = message(0x09, 0, &words(16, &[(0, &[1])]), b"\x04f\0\x04\0");
        let request = SetInformationRequest::new(block(&bytes));
        assert_eq!(request.path().unwrap().decode(), "f");
        assert_eq!(request.file_attributes(), Some(1));
        truncate(&bytes);

        let bytes = reply(0x08, 0, &words(20, &[(0, &[0x10]), (6, &[9])]), &[]);
        let response = QueryInformationResponse::new(block(&bytes));
        assert_eq!(response.file_size(), Some(9));
        let bytes = reply(0x23, 0, &words(22, &[(12, &[8]), (16, &[0, 2])]), &[]);
        let response = QueryInformation2Response::new(block(&bytes));
        assert_eq!(response.file_data_size(), Some(8));
        assert_eq!(response.file_allocation_size(), Some(512));
        let bytes = reply(0x80, 0, &[9, 0, 8, 0, 0, 2, 7, 0, 0, 0], &[]);
        let response = QueryInformationDiskResponse::new(block(&bytes));
        assert_eq!(response.block_size(), Some(512));
        assert_eq!(response.free_units(), Some(7));
    }
}

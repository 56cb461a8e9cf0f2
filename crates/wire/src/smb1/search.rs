//! Search, Find, FindUnique, FindClose: the old directory listing. FindClose2 and
//! FindNotifyClose, which end a listing of Transaction2, are `file::FileRequest`s whose id is the
//! search handle.
//!
//! MS-CIFS sections 2.2.4.58 to 2.2.4.61.

use super::Block;
use super::block::view;
use super::strings::Text;

view! {
    /// Request of Search, Find, FindUnique and FindClose, 2 words.
    SearchRequest(Block.word) {
        /// Entries wanted.
        max_count: u16 = 0,
        /// Attributes that entries may have.
        search_attributes: u16 = 2,
    }
    also { pattern }
}

impl<'a> SearchRequest<'a> {
    /// The pattern; empty when a listing is continued.
    pub fn pattern(&self) -> Option<Text<'a>> {
        self.base.strings(0)?.formatted()
    }
}

view! {
    /// Response of Search, Find and FindUnique, 1 word.
    SearchResponse(Block.word) {
        /// Entries returned, 43 bytes each.
        count: u16 = 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, reply, truncate};
    use super::*;

    #[test]
    fn reads_a_search() {
        let bytes = message(0x81, 0, &[10, 0, 0x16, 0], b"\x04\\*.*\0\x05\0\0");
        let request = SearchRequest::new(block(&bytes));
        assert_eq!(request.pattern().unwrap().decode(), "\\*.*");
        assert_eq!(request.max_count(), Some(10));
        truncate(&bytes);
        let bytes = reply(0x81, 0, &[2, 0], &[5, 0, 0]);
        assert_eq!(SearchResponse::new(block(&bytes)).count(), Some(2));
    }
}

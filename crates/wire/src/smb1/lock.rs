//! LockByteRange, UnlockByteRange and LockingAndX, which also carries oplock breaks.
//!
//! MS-CIFS sections 2.2.4.13, 2.2.4.14 and 2.2.4.32. An oplock break is a LockingAndX that the
//! server sends as a request with the MID 0xffff; the client acknowledges it by a LockingAndX of
//! its own, which is answered only if it also locks or unlocks something.

use super::Block;
use super::block::view;
use super::create::OplockLevel;
use crate::read::{u16_at, u32_at};

view! {
    /// Request of LockByteRange and UnlockByteRange, 5 words.
    LockByteRangeRequest(Block.word) {
        /// The file.
        fid: u16 = 0,
        /// Bytes in the range.
        count: u32 = 2,
        /// Where the range begins.
        offset: u32 = 6,
    }
}

/// TypeOfLock of LockingAndX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockType(pub u8);

#[allow(missing_docs)]
impl LockType {
    pub const SHARED_LOCK: LockType = LockType(0x01);
    pub const OPLOCK_RELEASE: LockType = LockType(0x02);
    pub const CHANGE_LOCKTYPE: LockType = LockType(0x04);
    pub const CANCEL_LOCK: LockType = LockType(0x08);
    pub const LARGE_FILES: LockType = LockType(0x10);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: LockType) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// A range of bytes to lock or unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRange {
    /// The process that holds it.
    pub pid: u16,
    /// Where it begins.
    pub offset: u64,
    /// Bytes in it.
    pub length: u64,
}

view! {
    /// Request of LockingAndX, 8 words.
    LockingAndXRequest(Block.word) {
        /// The file.
        fid: u16 = 4,
        /// Milliseconds to wait for the locks; 0 not at all, 0xffffffff for ever.
        timeout: u32 = 8,
        /// Ranges to unlock.
        unlock_count: u16 = 12,
        /// Ranges to lock.
        lock_count: u16 = 14,
    }
    also { type_of_lock, new_oplock_level, is_oplock_release, first_lock, first_unlock }
}

impl<'a> LockingAndXRequest<'a> {
    /// What is done.
    pub fn type_of_lock(&self) -> Option<LockType> {
        self.base.word(6).map(LockType)
    }

    /// The oplock that a break leaves: none or level II.
    pub fn new_oplock_level(&self) -> Option<OplockLevel> {
        self.base.word(7).map(OplockLevel)
    }

    /// Whether it is an oplock break or, from the client, its acknowledgement.
    pub fn is_oplock_release(&self) -> Option<bool> {
        Some(self.type_of_lock()?.has(LockType::OPLOCK_RELEASE))
    }

    /// The ranges to unlock, as far as captured.
    pub fn unlocks(&self) -> impl Iterator<Item = LockRange> + use<'a> {
        self.ranges(0, self.unlock_count().unwrap_or(0))
    }

    /// The ranges to lock, as far as captured.
    pub fn locks(&self) -> impl Iterator<Item = LockRange> + use<'a> {
        self.ranges(self.unlock_count().unwrap_or(0), self.lock_count().unwrap_or(0))
    }

    fn ranges(&self, first: u16, count: u16) -> impl Iterator<Item = LockRange> + use<'a> {
        let bytes = self.base.bytes().unwrap_or_default();
        let large = self.type_of_lock().is_some_and(|lock| lock.has(LockType::LARGE_FILES));
        let first = usize::from(first);
        (first..first + usize::from(count)).map_while(move |index| range(bytes, index, large))
    }

    #[cfg(test)]
    fn first_lock(&self) -> Option<LockRange> {
        self.locks().next()
    }

    #[cfg(test)]
    fn first_unlock(&self) -> Option<LockRange> {
        self.unlocks().next()
    }
}

fn range(bytes: &[u8], index: usize, large: bool) -> Option<LockRange> {
    if large {
        let at = index * 20;
        let pair =
            |at| Some(u64::from(u32_at(bytes, at)?) << 32 | u64::from(u32_at(bytes, at + 4)?));
        Some(LockRange { pid: u16_at(bytes, at)?, offset: pair(at + 4)?, length: pair(at + 12)? })
    } else {
        let at = index * 10;
        Some(LockRange {
            pid: u16_at(bytes, at)?,
            offset: u32_at(bytes, at + 2)?.into(),
            length: u32_at(bytes, at + 6)?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block, message, truncate, words};
    use super::*;

    #[test]
    fn reads_both_sizes_of_ranges() {
        let fixed = words(16, &[(0, &[0xff]), (4, &[7, 0, 1]), (8, &[9]), (12, &[1, 0, 1])]);
        let bytes = [1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 5, 0, 0, 0, 6, 0, 0, 0];
        let bytes = message(0x24, 0, &fixed, &bytes);
        let request = LockingAndXRequest::new(block(&bytes));
        let small = |pid, offset, length| LockRange { pid, offset, length };
        assert_eq!(request.unlocks().collect::<Vec<_>>(), [small(1, 2, 3)]);
        assert_eq!(request.locks().collect::<Vec<_>>(), [small(4, 5, 6)]);
        assert_eq!(request.timeout(), Some(9));
        truncate(&bytes);

        let fixed = words(16, &[(0, &[0xff]), (4, &[7, 0, 0x10]), (14, &[1])]);
        let bytes = [8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];
        let bytes = message(0x24, 0, &fixed, &bytes);
        let request = LockingAndXRequest::new(block(&bytes));
        let large = small(8, 0x1_0000_0002, 0x3_0000_0004);
        assert_eq!(request.locks().collect::<Vec<_>>(), [large]);
        assert_eq!(request.unlocks().count(), 0);
        truncate(&bytes);
    }

    #[test]
    fn reads_an_oplock_break() {
        let fixed = words(16, &[(0, &[0xff]), (4, &[7, 0, 2, 1])]);
        let bytes = message(0x24, 0, &fixed, &[]);
        let request = LockingAndXRequest::new(block(&bytes));
        assert_eq!(request.is_oplock_release(), Some(true));
        assert_eq!(request.new_oplock_level(), Some(OplockLevel(1)));
        let bytes = message(0x0c, 0, &[7, 0, 8, 0, 0, 0, 9, 0, 0, 0], &[]);
        let request = LockByteRangeRequest::new(block(&bytes));
        assert_eq!((request.count(), request.offset()), (Some(8), Some(9)));
    }
}

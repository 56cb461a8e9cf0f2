//! LOCK request and response (MS-SMB2 sections 2.2.26 and 2.2.27).

use super::FileId;
use super::view::{Field, buffer_part, flags, view};
use crate::read::u64_at;

flags! {
    /// What is done to one range.
    LockFlags(u32) {
        SHARED_LOCK = 0x0000_0001,
        EXCLUSIVE_LOCK = 0x0000_0002,
        UNLOCK = 0x0000_0004,
        FAIL_IMMEDIATELY = 0x0000_0010,
    }
}

view! {
    /// A lock request, from its SMB2 header.
    LockRequest {
        /// Number of ranges.
        lock_count: u16 = 66;
        /// Replay detection of durable opens (2.1 on): number in the low 4 bits, index above.
        lock_sequence: u32 = 68;
        /// The open file.
        file_id: FileId = 72;
    }
}

/// One range that is locked or unlocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Shared, exclusive, unlock, fail at once.
    pub flags: LockFlags,
}

/// Bytes of one range.
const LOCK_BYTES: usize = 24;

impl<'a> LockRequest<'a> {
    /// The ranges, as far as captured.
    pub fn locks(self) -> impl Iterator<Item = Lock> + use<'a> {
        let length = usize::from(self.lock_count().unwrap_or(0)) * LOCK_BYTES;
        buffer_part(self.0, 88, length).chunks_exact(LOCK_BYTES).filter_map(|lock| {
            Some(Lock {
                offset: u64_at(lock, 0)?,
                length: u64_at(lock, 8)?,
                flags: LockFlags::read(lock, 16)?,
            })
        })
    }

    /// Whether the request may wait for others to unlock: it locks, and not every range says
    /// that it fails at once. `None` when no range is captured.
    pub fn may_block(self) -> Option<bool> {
        self.locks()
            .map(|lock| {
                !lock.flags.contains(LockFlags::UNLOCK)
                    && !lock.flags.contains(LockFlags::FAIL_IMMEDIATELY)
            })
            .reduce(|any, this| any || this)
    }
}

view! {
    /// A lock response, from its SMB2 header; it has no fields.
    LockResponse {}
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    fn request(flags: &[u32]) -> Vec<u8> {
        let mut bytes = message(&[48, 0, flags.len() as u8, 0, 0x13, 0, 0, 0]);
        put(&mut bytes, 72, &[4; 16]);
        for (index, flags) in flags.iter().enumerate() {
            let at = 88 + 24 * index;
            put(&mut bytes, at, &(index as u64 * 10).to_le_bytes());
            put(&mut bytes, at + 8, &10u64.to_le_bytes());
            put(&mut bytes, at + 16, &flags.to_le_bytes());
            put(&mut bytes, at + 20, &[0; 4]);
        }
        bytes
    }

    #[test]
    fn lists_the_ranges() {
        let bytes = request(&[0x12, 0x02]);
        let view = LockRequest(&bytes);
        assert_eq!(view.lock_sequence(), Some(0x13));
        let locks: Vec<_> = view.locks().collect();
        assert_eq!(locks[1], Lock { offset: 10, length: 10, flags: LockFlags::EXCLUSIVE_LOCK });
        assert_eq!(view.may_block(), Some(true));
        assert_eq!(LockRequest(&request(&[0x12])).may_block(), Some(false));
        assert_eq!(LockRequest(&request(&[0x04])).may_block(), Some(false));
        assert_eq!(LockRequest(&bytes[..88]).may_block(), None);
        abuse(&bytes, |bytes| {
            let view = LockRequest(bytes);
            view.touch();
            let _ = view.may_block();
            assert!(view.locks().count() <= 2);
            LockResponse(bytes).touch();
        });
    }
}

//! OPLOCK_BREAK: oplock and lease breaks, their acknowledgements and the responses to those
//! (MS-SMB2 sections 2.2.23 to 2.2.25).
//!
//! All six share one command. The structure size distinguishes them (24 oplock, 44 lease break
//! notification, 36 lease acknowledgement and response), and the direction does the rest. A
//! notification is a response with a MessageId of all ones.

use super::FileId;
use super::create::OplockLevel;
use super::lease::LeaseState;
use super::view::{Field, flags};
use crate::read::{array_at, u16_at};

/// The MessageId of a break notification.
pub const NOTIFICATION_MESSAGE_ID: u64 = u64::MAX;

flags! {
    /// Flags of a lease break notification.
    LeaseBreakFlags(u32) {
        ACK_REQUIRED = 0x0000_0001,
    }
}

/// Any message of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OplockBreak {
    /// An oplock break notification, acknowledgement or response.
    Oplock {
        /// The level that remains.
        level: OplockLevel,
        /// The open file.
        file_id: FileId,
    },
    /// A lease break notification.
    LeaseNotification {
        /// Counts changes of the lease's state (3.x).
        new_epoch: u16,
        /// Whether the server waits for an acknowledgement.
        flags: LeaseBreakFlags,
        /// The lease.
        lease_key: [u8; 16],
        /// What the client holds.
        current_state: LeaseState,
        /// What remains of it.
        new_state: LeaseState,
    },
    /// A lease break acknowledgement or the response to it.
    LeaseAcknowledgement {
        /// The lease.
        lease_key: [u8; 16],
        /// The state that the client keeps.
        state: LeaseState,
    },
}

impl OplockBreak {
    /// Decodes a message from its SMB2 header; `None` when it is cut off or of another size.
    pub fn parse(message: &[u8]) -> Option<OplockBreak> {
        match u16_at(message, 64)? {
            24 => Some(OplockBreak::Oplock {
                level: OplockLevel::read(message, 66)?,
                file_id: FileId::read(message, 72)?,
            }),
            44 => Some(OplockBreak::LeaseNotification {
                new_epoch: u16_at(message, 66)?,
                flags: LeaseBreakFlags::read(message, 68)?,
                lease_key: *array_at(message, 72)?,
                current_state: LeaseState::read(message, 88)?,
                new_state: LeaseState::read(message, 92)?,
            }),
            36 => Some(OplockBreak::LeaseAcknowledgement {
                lease_key: *array_at(message, 72)?,
                state: LeaseState::read(message, 88)?,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn distinguishes_the_kinds_by_size() {
        let mut bytes = message(&[24, 0, 1, 0, 0, 0, 0, 0]);
        put(&mut bytes, 72, &[0xff; 16]);
        assert_eq!(
            OplockBreak::parse(&bytes),
            Some(OplockBreak::Oplock { level: OplockLevel::II, file_id: FileId::ANY })
        );

        let mut bytes = message(&[44, 0, 3, 0, 1, 0, 0, 0]);
        put(&mut bytes, 72, &[6; 16]);
        put(&mut bytes, 88, &[7, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(
            OplockBreak::parse(&bytes),
            Some(OplockBreak::LeaseNotification {
                new_epoch: 3,
                flags: LeaseBreakFlags::ACK_REQUIRED,
                lease_key: [6; 16],
                current_state: LeaseState(7),
                new_state: LeaseState(3)
            })
        );
        abuse(&bytes, |bytes| {
            let _ = OplockBreak::parse(bytes);
        });

        bytes[64] = 36;
        assert_eq!(
            OplockBreak::parse(&bytes),
            Some(OplockBreak::LeaseAcknowledgement { lease_key: [6; 16], state: LeaseState(7) })
        );
        bytes[64] = 9;
        assert_eq!(OplockBreak::parse(&bytes), None);
    }
}

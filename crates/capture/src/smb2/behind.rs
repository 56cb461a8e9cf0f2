//! Later members of compounds that lie behind what was captured.
//!
//! NextCommand says that a member follows (MS-SMB2 section 2.2.1), whether it was captured or not.
//! How many do, the client's next request tells: it numbers its requests one after the other, those
//! of a compound too (section 3.2.4.1.4). So a capture cut to headers counts every operation; of
//! those whose header it lacks on both ways the command stays unknown.
//!
//! Owns what is concluded, not the rows (`super`).

use smbscope_wire::smb2::HEADER_BYTES;
use smbscope_wire::smb2::header::{Header, Member};

use crate::link::Seen;
use crate::stream::Message;

/// Bytes of the least member before another one: a header and four bytes, padded to eight.
const MEMBER_BYTES: usize = 72;

/// The bytes of a member and of all behind it, of which not even a header was captured; none where no
/// member follows, or where its header is there.
#[inline]
pub fn after(member: &Member<'_>, message: &Message<'_>) -> Option<usize> {
    let next = member.header.next_command as usize;
    if next < HEADER_BYTES {
        return None;
    }
    let at = member.offset.checked_add(next)?;
    let rest = (message.length as usize).checked_sub(at)?;
    (rest > HEADER_BYTES && message.bytes.len() < at.checked_add(HEADER_BYTES)?).then_some(rest)
}

/// The MessageId behind those that a request takes.
pub fn next_id(header: &Header) -> u64 {
    header.message_id.wrapping_add(u64::from(header.credit_charge.max(1)))
}

/// The end of a compound of which one member at least was not captured.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The compound's number on the connection.
    pub chain: u64,
    /// MessageId of the first member that is not there, which is known to be.
    pub first_id: u64,
    /// Its place in the compound.
    pub index: u16,
    /// Frame of the message's first byte.
    pub frame: u64,
    /// TCP sequence number of that.
    pub sequence: u32,
    /// The reply that answers the compound's end, where that is not captured either.
    pub answered: Option<Seen>,
    /// TCP sequence number behind the message.
    behind: u32,
    /// How many members its bytes have room for.
    room: u64,
}

impl Tail {
    /// Of a message, `rest` bytes of which hold the members that are not there.
    pub fn new(chain: u64, first_id: u64, index: u16, rest: usize, message: &Message<'_>) -> Tail {
        Tail {
            chain,
            first_id,
            index,
            frame: message.frame,
            sequence: message.sequence,
            answered: None,
            behind: end(message),
            // The last one is not padded.
            room: ((rest + 4) / MEMBER_BYTES).max(1) as u64,
        }
    }

    /// Whether a message comes right behind, with no other between them.
    pub fn is_followed_by(&self, message: &Message<'_>) -> bool {
        self.behind == message.sequence
    }

    /// Passes over a message that has no number of its own.
    pub fn pass(&mut self, message: &Message<'_>) {
        self.behind = end(message);
    }

    /// How many members there are that were not captured, when the next request has this number; 1
    /// where numbers do not tell: one member can take several.
    pub fn members(&self, next_id: u64) -> u64 {
        let used = next_id.wrapping_sub(self.first_id);
        if used > self.room { 1 } else { used.max(1) }
    }
}

fn end(message: &Message<'_>) -> u32 {
    message.sequence.wrapping_add(4).wrapping_add(message.length)
}

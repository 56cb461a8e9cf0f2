//! The 64 bytes before every SMB2 body, in their synchronous and asynchronous form.
//!
//! Owns the header alone, not what follows it nor the transforms that wrap it (`transform`).
//! MS-SMB2 section 2.2.1. A header is decoded as soon as it is captured through the session id
//! (48 bytes); only the signature stands behind that. A related member of a compound has the
//! session and tree of the one before it, so that it is decoded from the MessageId on (32 bytes).

use super::Command;
use super::view::{Field, flags};
use crate::read::{array_at, slice_at, u16_at, u32_at, u64_at};
use crate::status::Status;

/// The first four bytes of an SMB2 message.
pub const MAGIC: [u8; 4] = [0xfe, b'S', b'M', b'B'];

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;

/// Bytes of the header that must be captured for it to count: through the session id.
pub const HEADER_BYTES_MIN: usize = 48;

/// Likewise for a related member of a compound: through the MessageId.
pub const RELATED_BYTES_MIN: usize = 32;

flags! {
    /// Flags of the header (MS-SMB2 section 2.2.1.2).
    Flags(u32) {
        SERVER_TO_REDIR = 0x0000_0001,
        ASYNC = 0x0000_0002,
        RELATED = 0x0000_0004,
        SIGNED = 0x0000_0008,
        PRIORITY_MASK = 0x0000_0070,
        DFS = 0x1000_0000,
        REPLAY = 0x2000_0000,
    }
}

impl Flags {
    /// Whether the message goes from the server to the client.
    #[inline]
    pub fn is_response(self) -> bool {
        self.contains(Flags::SERVER_TO_REDIR)
    }

    /// Whether the header carries an AsyncId instead of the TreeId.
    #[inline]
    pub fn is_async(self) -> bool {
        self.contains(Flags::ASYNC)
    }

    /// Whether the message is a later member of a compound and inherits session, tree and file.
    #[inline]
    pub fn is_related(self) -> bool {
        self.contains(Flags::RELATED)
    }

    /// Whether the message is signed.
    #[inline]
    pub fn is_signed(self) -> bool {
        self.contains(Flags::SIGNED)
    }

    /// The priority that a 3.1.1 client asks for (0 to 7).
    #[inline]
    pub fn priority(self) -> u8 {
        ((self.0 & Flags::PRIORITY_MASK.0) >> 4) as u8
    }
}

/// A header's fields through the session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size that the sender claims for the header: 64, not trusted.
    pub structure_size: u16,
    /// Credits that the request costs; 0 in dialect 2.0.2.
    pub credit_charge: u16,
    /// The raw 32 bits at offset 8: see [`Header::status`] and [`Header::channel_sequence`].
    pub status_or_channel_sequence: u32,
    /// The command of the request or response.
    pub command: Command,
    /// Credits requested (request) or granted (response).
    pub credits: u16,
    /// Direction, protection, chaining.
    pub flags: Flags,
    /// Bytes from this header to the next one of the compound; 0 in the last.
    pub next_command: u32,
    /// Unique on its connection only; all ones in a break notification.
    pub message_id: u64,
    /// The raw 64 bits at offset 32: see [`Header::tree_id`] and [`Header::async_id`].
    pub tree_or_async_id: u64,
    /// The session; 0 before the first session setup's reply, all ones in related requests.
    pub session_id: u64,
}

impl Header {
    /// Decodes a header that is captured through its session id; `None` when it is shorter or
    /// does not start with [`MAGIC`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        // One bounds check: the reads below are at constant offsets of an array.
        let head: &[u8; HEADER_BYTES_MIN] = array_at(bytes, 0)?;
        if slice_at(head, 0, 4)? != MAGIC {
            return None;
        }
        Some(Header {
            structure_size: u16_at(head, 4)?,
            credit_charge: u16_at(head, 6)?,
            status_or_channel_sequence: u32_at(head, 8)?,
            command: Command::read(head, 12)?,
            credits: u16_at(head, 14)?,
            flags: Flags::read(head, 16)?,
            next_command: u32_at(head, 20)?,
            message_id: u64_at(head, 24)?,
            tree_or_async_id: u64_at(head, 32)?,
            session_id: u64_at(head, 40)?,
        })
    }

    /// Decodes the header of a related member that is cut behind its MessageId; tree and session
    /// are those of the member before it. An AsyncId would be its own.
    #[cold]
    fn parse_related(bytes: &[u8], before: &Header) -> Option<Header> {
        let mut head = [0; HEADER_BYTES_MIN];
        head.get_mut(..RELATED_BYTES_MIN)?.copy_from_slice(bytes.get(..RELATED_BYTES_MIN)?);
        let header = Header::parse(&head)?;
        let inherits = header.flags.is_related() && !header.flags.is_async();
        (inherits && !before.flags.is_async()).then_some(Header {
            tree_or_async_id: before.tree_or_async_id,
            session_id: before.session_id,
            ..header
        })
    }

    /// Whether the message goes from the server to the client.
    #[inline]
    pub fn is_response(&self) -> bool {
        self.flags.is_response()
    }

    /// The status of a response; a request has none.
    #[inline]
    pub fn status(&self) -> Option<Status> {
        self.is_response().then_some(Status(self.status_or_channel_sequence))
    }

    /// The ChannelSequence of a request (0 before SMB 3.0); a response has none.
    #[inline]
    pub fn channel_sequence(&self) -> Option<u16> {
        (!self.is_response()).then_some(self.status_or_channel_sequence as u16)
    }

    /// The tree, which an asynchronous header does not carry.
    #[inline]
    pub fn tree_id(&self) -> Option<u32> {
        (!self.flags.is_async()).then_some((self.tree_or_async_id >> 32) as u32)
    }

    /// The AsyncId, which only an asynchronous header carries.
    #[inline]
    pub fn async_id(&self) -> Option<u64> {
        self.flags.is_async().then_some(self.tree_or_async_id)
    }

    /// Whether the response only says that the final one comes later.
    #[inline]
    pub fn is_interim(&self) -> bool {
        self.is_response()
            && self.flags.is_async()
            && self.status_or_channel_sequence == Status::PENDING.0
    }
}

/// The signature of a message, if captured: the 16 bytes behind the session id.
#[inline]
pub fn signature(message: &[u8]) -> Option<&[u8; 16]> {
    array_at(message, HEADER_BYTES_MIN)
}

/// The members of a compound in order, each from its header to the next one.
///
/// Follows NextCommand only. Ends at a header that is missing or has no magic, and at a NextCommand
/// that points into its own header.
pub fn members(message: &[u8]) -> Members<'_> {
    Members { message, at: Some(0), last: None }
}

/// Iterator of [`members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    message: &'a [u8],
    at: Option<usize>,
    last: Option<Header>,
}

/// One message of a compound.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Bytes from the first header of the compound to this one.
    pub offset: usize,
    /// The decoded header.
    pub header: Header,
    /// The bytes from this header up to the next one, as far as captured.
    pub bytes: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        let offset = self.at.take()?;
        let rest = self.message.get(offset..)?;
        let header = match (Header::parse(rest), &self.last) {
            (Some(header), _) => header,
            (None, Some(before)) => Header::parse_related(rest, before)?,
            (None, None) => return None,
        };
        let mut bytes = rest;
        if header.next_command != 0 {
            let length = header.next_command as usize;
            if length >= HEADER_BYTES {
                self.at = offset.checked_add(length);
                self.last = Some(header);
                bytes = rest.get(..length).unwrap_or(rest);
            }
        }
        Some(Member { offset, header, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    fn sample(flags: u32) -> Vec<u8> {
        let mut bytes = message(&[]);
        put(&mut bytes, 4, &64u16.to_le_bytes());
        put(&mut bytes, 6, &3u16.to_le_bytes());
        put(&mut bytes, 8, &0x0000_0103u32.to_le_bytes());
        put(&mut bytes, 12, &8u16.to_le_bytes());
        put(&mut bytes, 14, &31u16.to_le_bytes());
        put(&mut bytes, 16, &flags.to_le_bytes());
        put(&mut bytes, 24, &77u64.to_le_bytes());
        put(&mut bytes, 32, &0x0000_0005_0000_feffu64.to_le_bytes());
        put(&mut bytes, 40, &0x1234_5678_9abc_def0u64.to_le_bytes());
        put(&mut bytes, 48, &[9; 16]);
        bytes
    }

    #[test]
    fn reads_a_synchronous_request() {
        let bytes = sample(0x0000_0038);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.command, Command::READ);
        assert_eq!((header.credit_charge, header.credits), (3, 31));
        assert_eq!(header.status(), None);
        assert_eq!(header.channel_sequence(), Some(0x103));
        assert_eq!(header.tree_id(), Some(5));
        assert_eq!(header.async_id(), None);
        assert_eq!(header.message_id, 77);
        assert_eq!(header.session_id, 0x1234_5678_9abc_def0);
        assert!(header.flags.is_signed() && !header.is_response() && !header.is_interim());
        assert_eq!(header.flags.priority(), 3);
        assert_eq!(signature(&bytes), Some(&[9; 16]));
    }

    #[test]
    fn reads_an_interim_response() {
        let header = Header::parse(&sample(3)).unwrap();
        assert_eq!(header.status(), Some(Status::PENDING));
        assert_eq!(header.channel_sequence(), None);
        assert_eq!(header.tree_id(), None);
        assert_eq!(header.async_id(), Some(0x0000_0005_0000_feff));
        assert!(header.is_interim());
    }

    #[test]
    fn counts_from_the_session_id_on() {
        let bytes = sample(0);
        assert_eq!(Header::parse(&bytes[..47]), None);
        assert!(Header::parse(&bytes[..48]).is_some());
        assert_eq!(signature(&bytes[..63]), None);
        let mut other = bytes;
        other[0] = 0xff;
        assert_eq!(Header::parse(&other), None);
    }

    #[test]
    fn a_related_member_counts_from_its_message_id_on() {
        let compound = |first: u32, second: u32| {
            let mut bytes = sample(first);
            put(&mut bytes, 20, &72u32.to_le_bytes());
            put(&mut bytes, 72, &sample(second));
            put(&mut bytes, 72 + 24, &78u64.to_le_bytes());
            put(&mut bytes, 72 + 32, &[0xff; 16]);
            bytes
        };
        let bytes = compound(0, 4);
        let last = |bytes: &[u8]| members(bytes).last().unwrap().header;
        assert_eq!(members(&bytes[..72 + 31]).count(), 1);
        for captured in [32, 47] {
            let header = last(&bytes[..72 + captured]);
            assert_eq!((header.message_id, header.tree_id()), (78, Some(5)));
            assert_eq!(header.session_id, 0x1234_5678_9abc_def0);
        }
        assert_eq!(last(&bytes[..72 + 48]).session_id, u64::MAX);
        // Neither one that is not related, nor one with a number of its own instead of the tree.
        for bytes in [compound(0, 0), compound(0, 6), compound(2, 4)] {
            assert_eq!(members(&bytes[..72 + 47]).count(), 1);
        }
        assert_eq!(members(&compound(0, 4)[72..72 + 47]).count(), 0);
    }

    #[test]
    fn walks_a_compound_by_next_command_alone() {
        let mut bytes = sample(0);
        put(&mut bytes, 20, &72u32.to_le_bytes());
        put(&mut bytes, 72, &sample(4));
        let found: Vec<_> =
            members(&bytes).map(|member| (member.offset, member.bytes.len())).collect();
        assert_eq!(found, [(0, 72), (72, 64)]);
        put(&mut bytes, 20, &8u32.to_le_bytes());
        assert_eq!(members(&bytes).count(), 1);
        put(&mut bytes, 20, &u32::MAX.to_le_bytes());
        assert_eq!(members(&bytes).count(), 1);
        abuse(&bytes, |bytes| {
            assert!(members(bytes).count() <= 2);
        });
    }
}

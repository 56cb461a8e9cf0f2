//! What a client sends: SMB2 requests as bytes, alone or in compounds.
//!
//! Owns the frame (NetBIOS length, room for the encryption header, padding between members,
//! NextCommand) and the bodies of all requests, one file per group. It neither signs nor encrypts
//! (`crypto`), and knows no sessions. MS-SMB2 sections 2.1, 2.2.1 and 3.2.4.1.4.
//!
//! A view of this crate reads back what was written: the tests and the fuzz target `encode` check
//! it.

mod file;
mod query;
pub mod reply;
mod session;

pub use file::{
    Close, Create, DurableWish, Flush, LeaseWish, LockRange, Locks, OpenWish, Read, Write,
};
pub use query::{
    Cancel, ChangeNotify, Echo, Ioctl, LeaseBreakAck, OplockBreakAck, QueryDirectory, QueryInfo,
    Rename, SetInfo,
};
pub use session::{
    Logoff, Negotiate, NegotiateContexts, SessionSetup, TreeConnect, TreeDisconnect,
};

use super::header::{Flags, HEADER_BYTES, MAGIC};
use super::{Command, FileId};
use crate::nbss;
use crate::smb2::transform::TRANSFORM_HEADER_BYTES;

/// Where the SMB2 message begins in a frame: behind the NetBIOS header and the room for the
/// encryption header, which is left out of a plaintext message.
const MESSAGE: usize = nbss::HEADER_BYTES + TRANSFORM_HEADER_BYTES;

/// The fields of a header that a sender sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Credits that the request costs; 0 in dialect 2.0.2.
    pub credit_charge: u16,
    /// Status of a response; channel sequence of a request.
    pub status: u32,
    /// Credits asked for, or granted.
    pub credits: u16,
    /// Flags. [`Frame::member`] adds what being a related member needs.
    pub flags: Flags,
    /// Message id.
    pub message_id: u64,
    /// Tree id, or with [`Flags::ASYNC`] the async id.
    pub tree_or_async_id: u64,
    /// Session id.
    pub session_id: u64,
}

/// The body of one message.
pub trait Body {
    /// The command in its header.
    const COMMAND: Command;

    /// Writes the body, its variable part included.
    fn write(&self, out: &mut Writer<'_>);
}

/// Appends to a message whose offsets count from its header.
pub struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    header: usize,
}

impl Writer<'_> {
    /// Bytes since the header: the offset of what is written next.
    pub fn offset(&self) -> usize {
        self.bytes.len() - self.header
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends zeros.
    pub fn zeros(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    /// Appends a byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends 16 bits.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends 32 bits.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends 64 bits.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a file id.
    pub fn file_id(&mut self, id: FileId) {
        self.u64(id.persistent);
        self.u64(id.volatile);
    }

    /// Appends text as UTF-16LE and says how many bytes that were.
    pub fn utf16(&mut self, text: &str) -> usize {
        let before = self.bytes.len();
        if text.is_ascii() {
            self.bytes.extend(text.bytes().flat_map(|byte| [byte, 0]));
        } else {
            for unit in text.encode_utf16() {
                self.u16(unit);
            }
        }
        self.bytes.len() - before
    }

    /// Appends zeros up to a multiple of `step` bytes since the header.
    pub fn align(&mut self, step: usize) {
        self.zeros(self.offset().next_multiple_of(step) - self.offset());
    }

    /// Overwrites 16 bits at an offset since the header.
    pub fn set_u16(&mut self, offset: usize, value: u16) {
        self.set(offset, &value.to_le_bytes());
    }

    /// Overwrites 32 bits at an offset since the header.
    pub fn set_u32(&mut self, offset: usize, value: u32) {
        self.set(offset, &value.to_le_bytes());
    }

    fn set(&mut self, offset: usize, value: &[u8]) {
        let at = self.header + offset;
        if let Some(place) = self.bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    }
}

/// One message of the transport while it is written: a request, or a compound of several.
///
/// The buffer is kept from one frame to the next.
#[derive(Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    /// Offset of each member's header in `bytes`.
    members: Vec<usize>,
}

impl Frame {
    /// An empty frame.
    pub fn new() -> Frame {
        Frame::default()
    }

    /// Empties it; the memory is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.members.clear();
        self.bytes.resize(MESSAGE, 0);
    }

    /// Appends a member: the first one of the frame, or the next of a compound.
    pub fn member<B: Body>(&mut self, head: &Head, body: &B) {
        if self.members.is_empty() {
            self.clear();
        }
        self.end_member();
        let header = self.bytes.len();
        self.members.push(header);
        let mut out = Writer { bytes: &mut self.bytes, header };
        out.bytes(&MAGIC);
        out.u16(HEADER_BYTES as u16);
        out.u16(head.credit_charge);
        out.u32(head.status);
        out.u16(B::COMMAND.0);
        out.u16(head.credits);
        out.u32(head.flags.0);
        out.u32(0);
        out.u64(head.message_id);
        out.u64(head.tree_or_async_id);
        out.u64(head.session_id);
        out.zeros(16);
        body.write(&mut out);
    }

    /// Pads the last member to 8 bytes and makes its NextCommand point behind it.
    fn end_member(&mut self) {
        let Some(&header) = self.members.last() else { return };
        let mut out = Writer { bytes: &mut self.bytes, header };
        out.align(8);
        let length = out.offset() as u32;
        out.set_u32(20, length);
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Each member from its header on, the padding behind it included: what is signed.
    pub fn each_member(&mut self, mut sign: impl FnMut(&mut [u8])) {
        let end = self.bytes.len();
        let ends = self.members.iter().skip(1).copied().chain([end]);
        for (start, end) in self.members.iter().copied().zip(ends) {
            if let Some(member) = self.bytes.get_mut(start..end) {
                sign(member);
            }
        }
    }

    /// The SMB2 message: all members.
    pub fn message(&self) -> &[u8] {
        self.bytes.get(MESSAGE..).unwrap_or_default()
    }

    /// The bytes for the transport: NetBIOS header and plain message.
    pub fn plain(&mut self) -> &[u8] {
        self.framed(TRANSFORM_HEADER_BYTES)
    }

    /// The bytes for the transport when `encrypt` fills the encryption header and encrypts what
    /// follows it, in place.
    pub fn encrypted(&mut self, encrypt: impl FnOnce(&mut [u8])) -> &[u8] {
        if let Some(sealed) = self.bytes.get_mut(nbss::HEADER_BYTES..) {
            encrypt(sealed);
        }
        self.framed(0)
    }

    /// The frame from `skip` on, with its length in its first four bytes.
    fn framed(&mut self, skip: usize) -> &[u8] {
        let length = self.bytes.len().saturating_sub(skip + nbss::HEADER_BYTES);
        // 24 bits: a length that does not fit is the caller's mistake, and the server ends the
        // connection for it.
        let header = (length as u32 & 0x00ff_ffff).to_be_bytes();
        if let Some(place) = self.bytes.get_mut(skip..skip + nbss::HEADER_BYTES) {
            place.copy_from_slice(&header);
        }
        self.bytes.get(skip..).unwrap_or_default()
    }

    /// Gives memory back when the buffer has become larger than `keep` bytes.
    pub fn shrink(&mut self, keep: usize) {
        if self.bytes.capacity() > keep {
            self.bytes = Vec::new();
            self.members = Vec::new();
        }
    }
}

/// A message with one body, from its header on.
#[cfg(test)]
fn message(body: &impl Body) -> Vec<u8> {
    let mut frame = Frame::new();
    frame.member(&Head::default(), body);
    frame.message().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smb2::header::{Header, members};

    fn head(message_id: u64) -> Head {
        Head { message_id, credits: 3, credit_charge: 1, session_id: 7, ..Head::default() }
    }

    #[test]
    fn a_frame_has_its_length_and_header() {
        let mut frame = Frame::new();
        frame.member(&head(5), &Echo);
        let bytes = frame.plain().to_vec();
        assert_eq!(bytes.len(), 4 + 64 + 4);
        assert_eq!(nbss::Header::parse(&bytes).unwrap().length as usize, bytes.len() - 4);
        let header = Header::parse(&bytes[4..]).unwrap();
        assert_eq!((header.command, header.message_id), (Command::ECHO, 5));
        assert_eq!((header.credits, header.credit_charge, header.session_id), (3, 1, 7));
        assert_eq!(header.next_command, 0);
    }

    #[test]
    fn members_are_padded_and_chained() {
        let mut frame = Frame::new();
        frame.clear();
        for id in 0..3 {
            frame.member(&head(id), &Echo);
        }
        let mut lengths = Vec::new();
        frame.each_member(|member| lengths.push(member.len()));
        assert_eq!(lengths, [72, 72, 68]);
        let bytes = frame.plain().to_vec();
        let found: Vec<_> = members(&bytes[4..]).map(|member| member.header.message_id).collect();
        assert_eq!(found, [0, 1, 2]);
        frame.clear();
        frame.member(&head(9), &Echo);
        assert_eq!((frame.len(), frame.plain().len()), (1, 72));
    }

    #[test]
    fn an_encrypted_frame_has_room_for_its_header() {
        let mut frame = Frame::new();
        frame.member(&head(1), &Echo);
        let bytes = frame.encrypted(|sealed| sealed[..4].copy_from_slice(b"\xfdSMB")).to_vec();
        assert_eq!(bytes.len(), 4 + 52 + 68);
        assert_eq!(nbss::Header::parse(&bytes).unwrap().length, 120);
        assert!(bytes[4..].starts_with(b"\xfdSMB") && bytes[56..].starts_with(b"\xfeSMB"));
    }

    #[test]
    fn text_beyond_ascii_is_utf16() {
        let mut bytes = Vec::new();
        let mut out = Writer { bytes: &mut bytes, header: 0 };
        assert_eq!(out.utf16("aä😀"), 8);
        assert_eq!(bytes, [0x61, 0, 0xe4, 0, 0x3d, 0xd8, 0, 0xde]);
    }
}

//! Builds an SMB2 message from the fields of an event, as [MS-SMB2] section 2.2 lays it out, so that the
//! decoder of captures can read it. What events do not have is zero.

use smbscope_wire::smb2::Command;

use super::layout::Head;
use crate::windows::provider::Guid;

/// A message, or its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Its bytes without payload that the event does not have.
    pub bytes: Vec<u8>,
    /// Length of the whole message.
    pub length: usize,
}

const HEADER_BYTES: usize = 64;
const SERVER_TO_REDIR: u32 = 1;
/// Flags that are taken over: signed, DFS, replay.
const KNOWN_FLAGS: u32 = 0x3000_0008;

/// Writes a message field by field.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    /// The open in the message.
    pub file: Option<u64>,
}

impl Writer {
    /// A request.
    pub fn request(head: &Head) -> Writer {
        Writer::with_header(head, 0, 0)
    }

    /// A response.
    pub fn response(head: &Head, status: u32) -> Writer {
        Writer::with_header(head, SERVER_TO_REDIR, status)
    }

    fn with_header(head: &Head, flags: u32, status: u32) -> Writer {
        let mut writer = Writer { bytes: Vec::with_capacity(160), file: None };
        writer.put(b"\xfeSMB").u16(HEADER_BYTES as u16).u16(0).u32(status);
        writer.u16(head.command.0).u16(head.credits).u32(head.flags & KNOWN_FLAGS | flags).u32(0);
        writer.u64(head.message_id).u32(head.process_id).u32(head.tree_id).u64(head.session_id);
        writer.zeros(16);
        writer
    }

    /// Bytes.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Writer {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Zeros.
    pub fn zeros(&mut self, count: usize) -> &mut Writer {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    /// An integer of one byte.
    pub fn u8(&mut self, value: u8) -> &mut Writer {
        self.put(&[value])
    }

    /// An integer of two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Writer {
        self.put(&value.to_le_bytes())
    }

    /// An integer of four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Writer {
        self.put(&value.to_le_bytes())
    }

    /// An integer of eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Writer {
        self.put(&value.to_le_bytes())
    }

    /// A GUID.
    pub fn guid(&mut self, guid: Guid) -> &mut Writer {
        self.put(&guid.0)
    }

    /// A FileId: events have the part that identifies the open on its connection.
    pub fn file_id(&mut self, volatile: u64) -> &mut Writer {
        self.file = Some(volatile);
        self.u64(0).u64(volatile)
    }

    /// Position of the next byte in the message, as offsets count.
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    /// The message, which continues with `missing` bytes that are unknown.
    pub fn finish(self, missing: usize) -> Message {
        let length = self.bytes.len().saturating_add(missing);
        Message { bytes: self.bytes, length }
    }
}

/// A response with an error, or an interim one.
pub fn error(head: &Head, status: u32) -> Message {
    let mut writer = Writer::response(head, status);
    writer.u16(9).u16(0).u32(0).u8(0);
    writer.finish(0)
}

/// Whether a status is answered with an error's body.
pub fn is_error(command: Command, status: u32) -> bool {
    const MORE_PROCESSING_REQUIRED: u32 = 0xc000_0016;
    const BUFFER_OVERFLOW: u32 = 0x8000_0005;
    match status {
        0 | BUFFER_OVERFLOW => false,
        MORE_PROCESSING_REQUIRED => command != Command::SESSION_SETUP,
        _ => true,
    }
}

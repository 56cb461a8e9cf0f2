//! SMB1 (CIFS): the header, and one file per command family below.
//!
//! Owns the 32-byte header and the entry into a message (`Message`); the parts of a message that
//! every command shares are in `block`. Does not own the meaning of the status (`crate::status`),
//! SPNEGO and NTLM blobs (`crate::auth`) or DFS referrals (`crate::dfs`).
//!
//! MS-CIFS section 2.2.3.1, extended by MS-SMB section 2.2.3.1.

pub mod block;
#[cfg(test)]
mod captures;
mod command;
pub mod create;
pub mod extent;
pub mod file;
pub mod level;
pub mod lock;
pub mod names;
mod need;
pub mod negotiate;
pub mod nt_transact;
pub mod open;
pub mod path;
pub mod read;
pub mod search;
pub mod session;
pub mod strings;
#[cfg(test)]
mod testing;
pub mod trans2;
pub mod transaction;
pub mod tree;
pub mod write;

pub use block::{Block, Blocks};
pub use command::Command;
pub use need::{DECIDE_BYTES, need};
pub use strings::{Text, file_name};

use crate::read::{array_at, u8_at, u16_at, u32_at};

/// The first four bytes of every SMB1 message.
pub const MAGIC: [u8; 4] = *b"\xffSMB";

/// Bytes of the header; WordCount follows.
pub const HEADER_BYTES: usize = 32;

/// The MID of an oplock break that the server sends by itself.
pub const OPLOCK_BREAK_MID: u16 = 0xffff;

/// The header's Flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

#[allow(missing_docs)]
impl Flags {
    pub const LOCK_AND_READ_OK: Flags = Flags(0x01);
    pub const BUFFER_AVAILABLE: Flags = Flags(0x02);
    pub const CASE_INSENSITIVE: Flags = Flags(0x08);
    pub const CANONICALIZED_PATHS: Flags = Flags(0x10);
    pub const OPLOCK: Flags = Flags(0x20);
    pub const OPBATCH: Flags = Flags(0x40);
    pub const REPLY: Flags = Flags(0x80);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// The header's Flags2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags2(pub u16);

#[allow(missing_docs)]
impl Flags2 {
    pub const LONG_NAMES: Flags2 = Flags2(0x0001);
    pub const EXTENDED_ATTRIBUTES: Flags2 = Flags2(0x0002);
    pub const SECURITY_SIGNATURE: Flags2 = Flags2(0x0004);
    pub const COMPRESSED: Flags2 = Flags2(0x0008);
    pub const SECURITY_SIGNATURE_REQUIRED: Flags2 = Flags2(0x0010);
    pub const IS_LONG_NAME: Flags2 = Flags2(0x0040);
    pub const REPARSE_PATH: Flags2 = Flags2(0x0400);
    pub const EXTENDED_SECURITY: Flags2 = Flags2(0x0800);
    pub const DFS: Flags2 = Flags2(0x1000);
    pub const PAGING_IO: Flags2 = Flags2(0x2000);
    pub const NT_STATUS: Flags2 = Flags2(0x4000);
    pub const UNICODE: Flags2 = Flags2(0x8000);

    /// Whether all bits of `flag` are set.
    pub fn has(self, flag: Flags2) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// The whole header, decoded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The (first) command.
    pub command: Command,
    /// The four bytes of the status; see [`Header::dos_error`].
    pub status: u32,
    /// Flags.
    pub flags: Flags,
    /// Flags2.
    pub flags2: Flags2,
    /// Process id: PIDHigh and PIDLow.
    pub pid: u32,
    /// SecurityFeatures: the signature when [`Header::is_signed`].
    pub signature: [u8; 8],
    /// Tree id.
    pub tid: u16,
    /// User (session) id.
    pub uid: u16,
    /// Multiplex id.
    pub mid: u16,
}

impl Header {
    /// Decodes the header; `None` without the magic or when fewer than 32 bytes are there.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let header: &[u8; HEADER_BYTES] = array_at(bytes, 0)?;
        if array_at(header, 0) != Some(&MAGIC) {
            return None;
        }
        Some(Header {
            command: Command(u8_at(header, 4)?),
            status: u32_at(header, 5)?,
            flags: Flags(u8_at(header, 9)?),
            flags2: Flags2(u16_at(header, 10)?),
            pid: u32::from(u16_at(header, 12)?) << 16 | u32::from(u16_at(header, 26)?),
            signature: *array_at(header, 14)?,
            tid: u16_at(header, 24)?,
            uid: u16_at(header, 28)?,
            mid: u16_at(header, 30)?,
        })
    }

    /// Whether the message says that it is a reply. An oplock break is sent by the server
    /// without this bit.
    pub fn is_reply(&self) -> bool {
        self.flags.has(Flags::REPLY)
    }

    /// ErrorClass and ErrorCode, when the status is of that kind (Flags2 without NT_STATUS).
    pub fn dos_error(&self) -> Option<(u8, u16)> {
        if self.flags2.has(Flags2::NT_STATUS) {
            return None;
        }
        let [class, _, low, high] = self.status.to_le_bytes();
        Some((class, u16::from_le_bytes([low, high])))
    }

    /// Whether strings are UTF-16LE.
    pub fn is_unicode(&self) -> bool {
        self.flags2.has(Flags2::UNICODE)
    }

    /// Whether the sender says it signed, and the signature is not empty (clients set the flag
    /// before there is a key).
    pub fn is_signed(&self) -> bool {
        self.flags2.has(Flags2::SECURITY_SIGNATURE) && self.signature != [0; 8]
    }
}

/// One message from its magic on, as far as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl<'a> Message<'a> {
    /// A message of which `bytes` were captured and whose framing says `length` bytes; `None`
    /// when the magic is not there.
    pub fn new(bytes: &'a [u8], length: usize) -> Option<Message<'a>> {
        if array_at(bytes, 0) != Some(&MAGIC) {
            return None;
        }
        Some(Message { bytes: bytes.get(..length).unwrap_or(bytes), length })
    }

    /// The captured bytes from the magic on.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The length on the wire, which is more than `bytes` of a truncated message.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The header, when captured whole.
    pub fn header(&self) -> Option<Header> {
        Header::parse(self.bytes)
    }

    /// The (first) command.
    pub fn command(&self) -> Option<Command> {
        u8_at(self.bytes, 4).map(Command)
    }

    /// The four bytes of the status.
    pub fn status(&self) -> Option<u32> {
        u32_at(self.bytes, 5)
    }

    /// Flags.
    pub fn flags(&self) -> Option<Flags> {
        u8_at(self.bytes, 9).map(Flags)
    }

    /// Flags2.
    pub fn flags2(&self) -> Option<Flags2> {
        u16_at(self.bytes, 10).map(Flags2)
    }

    /// Tree id.
    pub fn tid(&self) -> Option<u16> {
        u16_at(self.bytes, 24)
    }

    /// Process id: PIDHigh and PIDLow.
    pub fn pid(&self) -> Option<u32> {
        let high = u32::from(u16_at(self.bytes, 12)?);
        Some(high << 16 | u32::from(u16_at(self.bytes, 26)?))
    }

    /// User (session) id.
    pub fn uid(&self) -> Option<u16> {
        u16_at(self.bytes, 28)
    }

    /// Multiplex id.
    pub fn mid(&self) -> Option<u16> {
        u16_at(self.bytes, 30)
    }

    /// Whether strings are UTF-16LE; false while Flags2 was not captured (nor any string then).
    pub fn is_unicode(&self) -> bool {
        self.flags2().is_some_and(|flags2| flags2.has(Flags2::UNICODE))
    }

    /// The commands of the message: one, or an AndX chain.
    pub fn blocks(&self) -> Blocks<'a> {
        Blocks::new(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::message;
    use super::*;

    #[test]
    fn decodes_every_field_of_the_header() {
        let mut bytes = message(0x2f, 0xc001, &[], &[]);
        bytes[5..9].copy_from_slice(&0xc000_0022u32.to_le_bytes());
        bytes[9] = 0x98;
        bytes[12..14].copy_from_slice(&[2, 0]);
        bytes[14] = 0xaa;
        bytes[24..32].copy_from_slice(&[1, 8, 3, 4, 5, 6, 7, 9]);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.command, Command::WRITE_AND_X);
        assert_eq!(header.status, 0xc000_0022);
        assert!(header.is_reply() && header.is_unicode() && !header.is_signed());
        assert_eq!(header.dos_error(), None);
        assert_eq!((header.tid, header.pid), (0x0801, 0x0002_0403));
        assert_eq!((header.uid, header.mid), (0x0605, 0x0907));
        assert_eq!(header.signature[0], 0xaa);

        let view = Message::new(&bytes, bytes.len()).unwrap();
        assert_eq!(view.header(), Some(header));
        assert_eq!(view.command(), Some(header.command));
        assert_eq!(view.status(), Some(header.status));
        assert_eq!(view.flags(), Some(header.flags));
        assert_eq!((view.tid(), view.uid()), (Some(header.tid), Some(header.uid)));
        assert_eq!((view.pid(), view.mid()), (Some(header.pid), Some(header.mid)));
    }

    #[test]
    fn a_truncated_header_gives_its_complete_fields() {
        let bytes = message(0x72, 0x8000, &[], &[]);
        let cut = Message::new(&bytes[..26], bytes.len()).unwrap();
        assert_eq!(cut.header(), None);
        assert_eq!(cut.tid(), Some(0));
        assert_eq!(cut.mid(), None);
        assert!(cut.is_unicode());
        assert_eq!(cut.length(), bytes.len());
        assert!(Message::new(b"\xfeSMB", 4).is_none());
        assert!(Message::new(b"\xffSM", 32).is_none());
    }

    #[test]
    fn a_dos_error_is_class_and_code() {
        let mut bytes = message(0x10, 0, &[], &[]);
        bytes[5..9].copy_from_slice(&[1, 0, 3, 0]);
        assert_eq!(Header::parse(&bytes).unwrap().dos_error(), Some((1, 3)));
    }
}

//! Replies, for servers that exist only in tests and benchmarks.
//!
//! Only what a client needs to log on, open, read, write and close: no compound replies with
//! padding of their own, no contexts except those of NEGOTIATE. MS-SMB2 sections 2.2.2, 2.2.4,
//! 2.2.6, 2.2.10, 2.2.14, 2.2.16, 2.2.20, 2.2.22,
//! 2.2.32.

use super::{Body, Writer};
use crate::smb2::create::OplockLevel;
use crate::smb2::fsctl::Fsctl;
use crate::smb2::negotiate::{Capabilities, SecurityMode};
use crate::smb2::negotiate_context::{NegotiateContextType, SigningId};
use crate::smb2::session::SessionFlags;
use crate::smb2::{Command, Dialect, FileId};

/// Declares bodies without fields: the bytes of the fixed part, which begin with its structure size.
macro_rules! fixed {
    ($bytes:expr; $($(#[$doc:meta])* $name:ident = $command:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Body for $name {
            const COMMAND: Command = Command::$command;

            fn write(&self, out: &mut Writer<'_>) {
                out.bytes(&$bytes);
            }
        }
    )*};
}

// An error response; the status is in the header.
fixed! { [9, 0, 0, 0, 0, 0, 0, 0, 0];
    /// CREATE failed.
    CreateError = CREATE;
    /// QUERY_DIRECTORY failed, or has no more entries.
    QueryDirectoryError = QUERY_DIRECTORY;
    /// CHANGE_NOTIFY waits (STATUS_PENDING), or failed.
    ChangeNotifyError = CHANGE_NOTIFY;
    /// READ failed.
    ReadError = READ;
    /// IOCTL failed.
    IoctlError = IOCTL;
}

fixed! { [2, 0];
    /// SET_INFO succeeded.
    SetInfoReply = SET_INFO;
}

fixed! { [4, 0, 0, 0];
    /// LOGOFF succeeded.
    LogoffReply = LOGOFF;
    /// TREE_DISCONNECT succeeded.
    TreeDisconnectReply = TREE_DISCONNECT;
    /// ECHO succeeded.
    EchoReply = ECHO;
    /// FLUSH succeeded.
    FlushReply = FLUSH;
}

/// NEGOTIATE succeeded.
#[derive(Clone, Copy, Debug)]
pub struct NegotiateReply<'a> {
    /// The dialect chosen.
    pub dialect: Dialect,
    /// Signing enabled, required.
    pub security_mode: SecurityMode,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// Largest read, write and transaction in bytes.
    pub max_bytes: u32,
    /// The token that begins SPNEGO; may be empty.
    pub blob: &'a [u8],
    /// The salt of the preauthentication integrity, in 3.1.1.
    pub salt: &'a [u8],
    /// The signing algorithm chosen, in 3.1.1.
    pub signing: Option<SigningId>,
}

impl Body for NegotiateReply<'_> {
    const COMMAND: Command = Command::NEGOTIATE;

    fn write(&self, out: &mut Writer<'_>) {
        let contexts = self.dialect == Dialect::SMB_3_1_1;
        out.u16(65);
        out.u16(self.security_mode.0);
        out.u16(self.dialect.0);
        out.u16(if contexts { 1 + u16::from(self.signing.is_some()) } else { 0 });
        out.bytes(&[0x53; 16]);
        out.u32(self.capabilities.0);
        (0..3).for_each(|_| out.u32(self.max_bytes));
        out.zeros(16);
        out.u16(128);
        out.u16(self.blob.len() as u16);
        let place = out.offset();
        out.u32(0);
        out.bytes(self.blob);
        if contexts {
            out.align(8);
            out.set_u32(place, out.offset() as u32);
            out.u16(1);
            out.u16(6 + self.salt.len() as u16);
            out.u32(0);
            out.u16(1);
            out.u16(self.salt.len() as u16);
            out.u16(1);
            out.bytes(self.salt);
            if let Some(signing) = self.signing {
                out.align(8);
                out.u16(NegotiateContextType::SIGNING_CAPABILITIES.0);
                out.u16(4);
                out.u32(0);
                out.u16(1);
                out.u16(signing.0);
            }
        }
    }
}

/// SESSION_SETUP succeeded, or continues.
#[derive(Clone, Copy, Debug)]
pub struct SessionSetupReply<'a> {
    /// Guest, encrypted.
    pub flags: SessionFlags,
    /// The mechanism's token.
    pub blob: &'a [u8],
}

impl Body for SessionSetupReply<'_> {
    const COMMAND: Command = Command::SESSION_SETUP;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(9);
        out.u16(self.flags.0);
        out.u16(72);
        out.u16(self.blob.len() as u16);
        out.bytes(self.blob);
    }
}

/// TREE_CONNECT succeeded: a disk.
#[derive(Clone, Copy, Debug)]
pub struct TreeConnectReply;

impl Body for TreeConnectReply {
    const COMMAND: Command = Command::TREE_CONNECT;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(16);
        out.u16(1);
        out.u64(0);
        out.u32(0x001f_01ff);
    }
}

/// CREATE succeeded: a file that was opened.
#[derive(Clone, Copy, Debug)]
pub struct CreateReply {
    /// The open.
    pub file_id: FileId,
    /// The oplock granted.
    pub oplock: OplockLevel,
    /// Bytes of the file.
    pub end_of_file: u64,
}

impl Body for CreateReply {
    const COMMAND: Command = Command::CREATE;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(89);
        out.u8(self.oplock.0);
        out.u8(0);
        out.u32(1);
        out.zeros(32);
        out.u64(self.end_of_file);
        out.u64(self.end_of_file);
        out.u32(0x80);
        out.u32(0);
        out.file_id(self.file_id);
        out.u64(0);
    }
}

/// CLOSE succeeded.
#[derive(Clone, Copy, Debug)]
pub struct CloseReply;

impl Body for CloseReply {
    const COMMAND: Command = Command::CLOSE;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(60);
        out.zeros(58);
    }
}

/// READ succeeded.
#[derive(Clone, Copy, Debug)]
pub struct ReadReply<'a> {
    /// What was read.
    pub data: &'a [u8],
}

impl Body for ReadReply<'_> {
    const COMMAND: Command = Command::READ;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(17);
        out.u16(80);
        out.u32(self.data.len() as u32);
        out.u64(0);
        out.bytes(self.data);
    }
}

/// WRITE succeeded.
#[derive(Clone, Copy, Debug)]
pub struct WriteReply {
    /// Bytes written.
    pub count: u32,
}

impl Body for WriteReply {
    const COMMAND: Command = Command::WRITE;

    fn write(&self, out: &mut Writer<'_>) {
        out.u32(17);
        out.u32(self.count);
        out.u64(0);
    }
}

/// QUERY_INFO succeeded.
#[derive(Clone, Copy, Debug)]
pub struct QueryInfoReply<'a> {
    /// The answer.
    pub data: &'a [u8],
}

impl Body for QueryInfoReply<'_> {
    const COMMAND: Command = Command::QUERY_INFO;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(9);
        out.u16(72);
        out.u32(self.data.len() as u32);
        out.bytes(self.data);
    }
}

/// IOCTL succeeded.
#[derive(Clone, Copy, Debug)]
pub struct IoctlReply<'a> {
    /// The function.
    pub code: Fsctl,
    /// Its output.
    pub output: &'a [u8],
}

impl Body for IoctlReply<'_> {
    const COMMAND: Command = Command::IOCTL;

    fn write(&self, out: &mut Writer<'_>) {
        out.u32(49);
        out.u32(self.code.0);
        out.file_id(FileId::ANY);
        out.u32(112);
        out.u32(0);
        out.u32(112);
        out.u32(self.output.len() as u32);
        out.u64(0);
        out.bytes(self.output);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;
    use crate::smb2::create::CreateResponse;
    use crate::smb2::ioctl::IoctlResponse;
    use crate::smb2::negotiate::NegotiateResponse;
    use crate::smb2::read::ReadResponse;
    use crate::smb2::session::SessionSetupResponse;

    #[test]
    fn replies_read_back() {
        let reply = NegotiateReply {
            dialect: Dialect::SMB_3_1_1,
            security_mode: SecurityMode(1),
            capabilities: Capabilities::LARGE_MTU,
            max_bytes: 1 << 20,
            blob: b"blob",
            salt: &[3; 32],
            signing: None,
        };
        let bytes = message(&reply);
        let view = NegotiateResponse(&bytes);
        assert_eq!(view.security_blob(), Some(&b"blob"[..]));
        assert_eq!(view.contexts().count(), 1);
        let reply = NegotiateReply { signing: Some(SigningId::AES_GMAC), ..reply };
        let bytes = message(&reply);
        assert_eq!(NegotiateResponse(&bytes).contexts().count(), 2);
        let bytes = message(&SessionSetupReply { flags: SessionFlags(0), blob: b"xy" });
        assert_eq!(SessionSetupResponse(&bytes).security_blob(), Some(&b"xy"[..]));
        let file_id = FileId { persistent: 1, volatile: 2 };
        let bytes = message(&CreateReply { file_id, oplock: OplockLevel::NONE, end_of_file: 9 });
        assert_eq!(CreateResponse(&bytes).file_id(), Some(file_id));
        assert_eq!(CreateResponse(&bytes).end_of_file(), Some(9));
        let bytes = message(&ReadReply { data: b"data" });
        assert_eq!(ReadResponse(&bytes).data_length(), Some(4));
        let code = Fsctl::QUERY_NETWORK_INTERFACE_INFO;
        let bytes = message(&IoctlReply { code, output: b"output" });
        let view = IoctlResponse(&bytes);
        assert_eq!((view.ctl_code(), view.output()), (Some(code), Some(&b"output"[..])));
    }
}

//! What every SMB2 family shares: commands, dialects, file ids (MS-SMB2 sections 2.2.1, 2.2.3.1.1
//! and 2.2.14.1).

use super::view::{Field, codes};
use crate::read::u64_at;

codes! {
    /// The command of a message. Names are those of the `command` column.
    Command(u16) {
        NEGOTIATE = 0x00 => "Negotiate",
        SESSION_SETUP = 0x01 => "SessionSetup",
        LOGOFF = 0x02 => "Logoff",
        TREE_CONNECT = 0x03 => "TreeConnect",
        TREE_DISCONNECT = 0x04 => "TreeDisconnect",
        CREATE = 0x05 => "Create",
        CLOSE = 0x06 => "Close",
        FLUSH = 0x07 => "Flush",
        READ = 0x08 => "Read",
        WRITE = 0x09 => "Write",
        LOCK = 0x0a => "Lock",
        IOCTL = 0x0b => "Ioctl",
        CANCEL = 0x0c => "Cancel",
        ECHO = 0x0d => "Echo",
        QUERY_DIRECTORY = 0x0e => "QueryDirectory",
        CHANGE_NOTIFY = 0x0f => "ChangeNotify",
        QUERY_INFO = 0x10 => "QueryInfo",
        SET_INFO = 0x11 => "SetInfo",
        OPLOCK_BREAK = 0x12 => "OplockBreak",
        SERVER_TO_CLIENT_NOTIFICATION = 0x13 => "ServerToClientNotification",
    }
}

codes! {
    /// A dialect revision.
    Dialect(u16) {
        SMB_2_0_2 = 0x0202 => "2.0.2",
        SMB_2_1 = 0x0210 => "2.1",
        SMB_3_0 = 0x0300 => "3.0",
        SMB_3_0_2 = 0x0302 => "3.0.2",
        SMB_3_1_1 = 0x0311 => "3.1.1",
        SMB_2_WILDCARD = 0x02ff => "2.???",
    }
}

/// The server's name for an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Survives a reconnect of a durable open.
    pub persistent: u64,
    /// Names the open on its session.
    pub volatile: u64,
}

impl FileId {
    /// Bytes on the wire.
    pub const BYTES: usize = 16;

    /// All ones: the file that the create before it in the compound opens, or no file (an ioctl
    /// on the tree).
    pub const ANY: FileId = FileId { persistent: u64::MAX, volatile: u64::MAX };
}

impl Field for FileId {
    #[inline]
    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        Some(FileId {
            persistent: u64_at(bytes, offset)?,
            volatile: u64_at(bytes, offset.checked_add(8)?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_survive_without_a_name() {
        assert_eq!(Command(0x12).name(), Some("OplockBreak"));
        assert_eq!(Command::SESSION_SETUP.name(), Some("SessionSetup"));
        assert_eq!(Command(0x14).name(), None);
        assert_eq!(Dialect(0x0311).name(), Some("3.1.1"));
        assert_eq!(Dialect(0x0312).name(), None);
    }

    #[test]
    fn a_file_id_is_sixteen_bytes() {
        assert_eq!(FileId::read(&[0xff; 16], 0), Some(FileId::ANY));
        assert_eq!(FileId::read(&[0xff; 15], 0), None);
        assert_eq!(FileId::read(&[0xff; 15], usize::MAX), None);
    }
}

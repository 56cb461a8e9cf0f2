//! QUERY_DIRECTORY, QUERY_INFO, SET_INFO, IOCTL, CHANGE_NOTIFY, CANCEL, ECHO requests and the
//! acknowledgements of breaks (MS-SMB2 sections 2.2.24, 2.2.28, 2.2.30, 2.2.31, 2.2.33, 2.2.35,
//! 2.2.37, 2.2.39).

use super::{Body, Writer};
use crate::smb2::create::OplockLevel;
use crate::smb2::directory::QueryDirectoryFlags;
use crate::smb2::fsctl::Fsctl;
use crate::smb2::info_class::{FileInfoClass, InfoType};
use crate::smb2::ioctl::IoctlFlags;
use crate::smb2::lease::LeaseState;
use crate::smb2::notify::{ChangeNotifyFlags, CompletionFilter};
use crate::smb2::{Command, FileId};

/// A directory query.
#[derive(Clone, Copy, Debug)]
pub struct QueryDirectory<'a> {
    /// The open directory.
    pub file_id: FileId,
    /// What is wanted of each entry.
    pub info_class: FileInfoClass,
    /// Restart, single entry.
    pub flags: QueryDirectoryFlags,
    /// The search pattern.
    pub pattern: &'a str,
    /// Longest answer in bytes.
    pub output_bytes: u32,
}

impl Body for QueryDirectory<'_> {
    const COMMAND: Command = Command::QUERY_DIRECTORY;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(33);
        out.u8(self.info_class.0);
        out.u8(self.flags.0);
        out.u32(0);
        out.file_id(self.file_id);
        out.u16(out.offset() as u16 + 8);
        let place = out.offset();
        out.u16(0);
        out.u32(self.output_bytes);
        let length = out.utf16(self.pattern);
        out.set_u16(place, length as u16);
        if length == 0 {
            out.u8(0);
        }
    }
}

/// A query of information.
#[derive(Clone, Copy, Debug)]
pub struct QueryInfo {
    /// The open file.
    pub file_id: FileId,
    /// File, file system, security, quota.
    pub info_type: InfoType,
    /// The class within the type.
    pub info_class: u8,
    /// Security: the parts asked for.
    pub additional_information: u32,
    /// Longest answer in bytes.
    pub output_bytes: u32,
}

impl Body for QueryInfo {
    const COMMAND: Command = Command::QUERY_INFO;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(41);
        out.u8(self.info_type.0);
        out.u8(self.info_class);
        out.u32(self.output_bytes);
        out.u64(0);
        out.u32(self.additional_information);
        out.u32(0);
        out.file_id(self.file_id);
    }
}

/// A set of information.
#[derive(Clone, Copy, Debug)]
pub struct SetInfo<'a> {
    /// The open file.
    pub file_id: FileId,
    /// File, file system, security, quota.
    pub info_type: InfoType,
    /// The class within the type.
    pub info_class: u8,
    /// Security: the parts that are set.
    pub additional_information: u32,
    /// The new value, as MS-FSCC lays it out.
    pub data: &'a [u8],
}

impl Body for SetInfo<'_> {
    const COMMAND: Command = Command::SET_INFO;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(33);
        out.u8(self.info_type.0);
        out.u8(self.info_class);
        out.u32(self.data.len() as u32);
        out.u16(96);
        out.u16(0);
        out.u32(self.additional_information);
        out.file_id(self.file_id);
        out.bytes(self.data);
    }
}

/// A rename: SET_INFO with FileRenameInformation (MS-FSCC section 2.4.43).
#[derive(Clone, Copy, Debug)]
pub struct Rename<'a> {
    /// The open file.
    pub file_id: FileId,
    /// The new path below the share.
    pub name: &'a str,
    /// Whether a file that has the name is replaced.
    pub replace: bool,
}

impl Body for Rename<'_> {
    const COMMAND: Command = Command::SET_INFO;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(33);
        out.u8(InfoType::FILE.0);
        out.u8(FileInfoClass::RENAME.0);
        let place = out.offset();
        out.u32(0);
        out.u16(96);
        out.u16(0);
        out.u32(0);
        out.file_id(self.file_id);
        let start = out.offset();
        out.u64(u64::from(self.replace));
        out.u64(0);
        out.u32(0);
        let length = out.utf16(self.name);
        out.set_u32(start + 16, length as u32);
        // The structure is a multiple of its alignment, at least 24 bytes.
        out.zeros(24usize.saturating_sub(out.offset() - start));
        out.set_u32(place, (out.offset() - start) as u32);
    }
}

/// An FSCTL.
#[derive(Clone, Copy, Debug)]
pub struct Ioctl<'a> {
    /// The open file, or [`FileId::ANY`] where the code needs none.
    pub file_id: FileId,
    /// The requested function.
    pub code: Fsctl,
    /// Its input.
    pub input: &'a [u8],
    /// Longest output in bytes.
    pub output_bytes: u32,
}

impl Body for Ioctl<'_> {
    const COMMAND: Command = Command::IOCTL;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(57);
        out.u16(0);
        out.u32(self.code.0);
        out.file_id(self.file_id);
        out.u32(120);
        out.u32(self.input.len() as u32);
        out.u32(0);
        out.u32(120);
        out.u32(0);
        out.u32(self.output_bytes);
        out.u32(IoctlFlags::IS_FSCTL.0);
        out.u32(0);
        out.bytes(self.input);
        if self.input.is_empty() {
            out.u8(0);
        }
    }
}

/// A wait for changes in a directory.
#[derive(Clone, Copy, Debug)]
pub struct ChangeNotify {
    /// The open directory.
    pub file_id: FileId,
    /// Whether changes further down count too.
    pub flags: ChangeNotifyFlags,
    /// Which changes.
    pub filter: CompletionFilter,
    /// Longest answer in bytes.
    pub output_bytes: u32,
}

impl Body for ChangeNotify {
    const COMMAND: Command = Command::CHANGE_NOTIFY;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(32);
        out.u16(self.flags.0);
        out.u32(self.output_bytes);
        out.file_id(self.file_id);
        out.u32(self.filter.0);
        out.u32(0);
    }
}

/// The end of a wait. Its header carries the AsyncId of the interim reply where there was one,
/// else the MessageId of the request; it has no reply.
#[derive(Clone, Copy, Debug)]
pub struct Cancel;

impl Body for Cancel {
    const COMMAND: Command = Command::CANCEL;

    fn write(&self, out: &mut Writer<'_>) {
        out.u32(4);
    }
}

/// An echo.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl Body for Echo {
    const COMMAND: Command = Command::ECHO;

    fn write(&self, out: &mut Writer<'_>) {
        out.u32(4);
    }
}

/// The acknowledgement of an oplock break.
#[derive(Clone, Copy, Debug)]
pub struct OplockBreakAck {
    /// The open file.
    pub file_id: FileId,
    /// The level that the client keeps.
    pub level: OplockLevel,
}

impl Body for OplockBreakAck {
    const COMMAND: Command = Command::OPLOCK_BREAK;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(24);
        out.u8(self.level.0);
        out.u8(0);
        out.u32(0);
        out.file_id(self.file_id);
    }
}

/// The acknowledgement of a lease break.
#[derive(Clone, Copy, Debug)]
pub struct LeaseBreakAck {
    /// The lease.
    pub key: [u8; 16],
    /// The state that the client keeps.
    pub state: LeaseState,
}

impl Body for LeaseBreakAck {
    const COMMAND: Command = Command::OPLOCK_BREAK;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(36);
        out.u16(0);
        out.u32(0);
        out.bytes(&self.key);
        out.u32(self.state.0);
        out.u64(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;
    use crate::smb2::directory::QueryDirectoryRequest;
    use crate::smb2::info::{Change, QueryInfoRequest, SetInfoRequest};
    use crate::smb2::ioctl::IoctlRequest;
    use crate::smb2::notify::ChangeNotifyRequest;
    use crate::smb2::oplock::OplockBreak;

    const FILE: FileId = FileId { persistent: 3, volatile: 4 };

    #[test]
    fn queries_read_back() {
        let bytes = message(&QueryDirectory {
            file_id: FILE,
            info_class: FileInfoClass::ID_BOTH_DIRECTORY,
            flags: QueryDirectoryFlags::RESTART_SCANS,
            pattern: "*",
            output_bytes: 4096,
        });
        let view = QueryDirectoryRequest(&bytes);
        assert_eq!((view.pattern(), view.file_id()), (Some(&b"*\0"[..]), Some(FILE)));
        assert_eq!(view.output_buffer_length(), Some(4096));
        let bytes = message(&QueryInfo {
            file_id: FILE,
            info_type: InfoType::SECURITY,
            info_class: 0,
            additional_information: 7,
            output_bytes: 65_536,
        });
        let view = QueryInfoRequest(&bytes);
        assert_eq!((view.file_id(), view.additional_information()), (Some(FILE), Some(7)));
    }

    #[test]
    fn sets_read_back() {
        for name in ["b", "dir\\longer name.txt"] {
            let bytes = message(&Rename { file_id: FILE, name, replace: true });
            let text: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let wanted = Change::Rename { name: &text, replace: true };
            assert_eq!(SetInfoRequest(&bytes).change(), Some(wanted));
            assert_eq!(SetInfoRequest(&bytes).file_id(), Some(FILE));
        }
        let bytes = message(&SetInfo {
            file_id: FILE,
            info_type: InfoType::FILE,
            info_class: FileInfoClass::DISPOSITION.0,
            additional_information: 0,
            data: &[1],
        });
        assert_eq!(SetInfoRequest(&bytes).change(), Some(Change::Disposition { delete: true }));
    }

    #[test]
    fn the_rest_reads_back() {
        let code = Fsctl(0x0009_00c0);
        let bytes = message(&Ioctl { file_id: FILE, code, input: b"in", output_bytes: 64 });
        let view = IoctlRequest(&bytes);
        assert_eq!((view.ctl_code(), view.input()), (Some(code), Some(&b"in"[..])));
        assert_eq!(view.max_output_response(), Some(64));
        let bytes = message(&ChangeNotify {
            file_id: FILE,
            flags: ChangeNotifyFlags::WATCH_TREE,
            filter: CompletionFilter(0x17),
            output_bytes: 2048,
        });
        let view = ChangeNotifyRequest(&bytes);
        assert_eq!(view.completion_filter(), Some(CompletionFilter(0x17)));
        let bytes = message(&OplockBreakAck { file_id: FILE, level: OplockLevel::II });
        let wanted = OplockBreak::Oplock { level: OplockLevel::II, file_id: FILE };
        assert_eq!(OplockBreak::parse(&bytes), Some(wanted));
        let bytes = message(&LeaseBreakAck { key: [5; 16], state: LeaseState::READ });
        let wanted =
            OplockBreak::LeaseAcknowledgement { lease_key: [5; 16], state: LeaseState::READ };
        assert_eq!(OplockBreak::parse(&bytes), Some(wanted));
    }
}

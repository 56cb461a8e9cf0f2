//! CREATE with its contexts, CLOSE, FLUSH, READ, WRITE and LOCK requests (MS-SMB2 sections 2.2.13,
//! 2.2.15, 2.2.17, 2.2.19, 2.2.21, 2.2.26).

use super::{Body, Writer};
use crate::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use crate::smb2::close::CloseFlags;
use crate::smb2::create::{CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel};
use crate::smb2::create_context::{DurableFlags, Lease, names};
use crate::smb2::lock::LockFlags;
use crate::smb2::read::ReadFlags;
use crate::smb2::write::WriteFlags;
use crate::smb2::{Command, FileId};

/// A create request.
#[derive(Clone, Copy, Debug)]
pub struct Create<'a> {
    /// Path below the share, with backslashes; empty for its root.
    pub name: &'a str,
    /// Requested rights.
    pub desired_access: AccessMask,
    /// Attributes of a file that is created.
    pub file_attributes: FileAttributes,
    /// What other opens may do meanwhile.
    pub share_access: ShareAccess,
    /// What to do when the file is or is not there.
    pub disposition: CreateDisposition,
    /// Options of the open.
    pub options: CreateOptions,
    /// The requested oplock; ignored if there is a lease.
    pub oplock: OplockLevel,
    /// Requested create contexts.
    pub wish: OpenWish,
}

/// Create contexts that a client can request.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenWish {
    /// A lease.
    pub lease: Option<LeaseWish>,
    /// An open that survives the connection, or the reconnect of one.
    pub durable: Option<DurableWish>,
    /// The rights that the user has.
    pub maximal_access: bool,
    /// The file's number on its volume.
    pub on_disk_id: bool,
    /// Bytes to reserve for a new file.
    pub allocation_size: Option<u64>,
}

/// A requested lease: version 1 without [`Lease::v2`].
pub type LeaseWish = Lease;

/// How an open is to survive its connection.
#[derive(Clone, Copy, Debug)]
pub enum DurableWish {
    /// Version 1 (2.1 and later), with an oplock or lease that allows handle caching.
    V1,
    /// Version 1: reconnects the open.
    V1Reconnect(FileId),
    /// Version 2 (3.x).
    V2 {
        /// Milliseconds to keep the open; 0 leaves it to the server.
        timeout_ms: u32,
        /// Persistent.
        flags: DurableFlags,
        /// Chosen by the client, unique to the open.
        create_guid: [u8; 16],
    },
    /// Version 2: reconnects the open.
    V2Reconnect {
        /// The open.
        file_id: FileId,
        /// As in the request that made it.
        create_guid: [u8; 16],
        /// Persistent.
        flags: DurableFlags,
    },
}

impl Body for Create<'_> {
    const COMMAND: Command = Command::CREATE;

    fn write(&self, out: &mut Writer<'_>) {
        let oplock = if self.wish.lease.is_some() { OplockLevel::LEASE } else { self.oplock };
        out.u16(57);
        out.u8(0);
        out.u8(oplock.0);
        out.u32(ImpersonationLevel::IMPERSONATION.0);
        out.zeros(16);
        out.u32(self.desired_access.0);
        out.u32(self.file_attributes.0);
        out.u32(self.share_access.0);
        out.u32(self.disposition.0);
        out.u32(self.options.0);
        out.u16(out.offset() as u16 + 12);
        let place = out.offset();
        out.zeros(10);
        let length = out.utf16(self.name);
        out.set_u16(place, length as u16);
        // The variable part is never empty.
        if length == 0 {
            out.zeros(8);
        }
        self.wish.write(out, place + 2);
    }
}

impl OpenWish {
    /// Writes the contexts, and their offset and length at `place`.
    fn write(&self, out: &mut Writer<'_>, place: usize) {
        let mut list = Contexts { out, first: None, last: 0 };
        if let Some(lease) = &self.lease {
            list.begin(names::LEASE, if lease.v2.is_some() { 52 } else { 32 });
            write_lease(list.out, lease);
        }
        match self.durable {
            None => {}
            Some(DurableWish::V1) => {
                list.begin(names::DURABLE_REQUEST, 16);
                list.out.zeros(16);
            }
            Some(DurableWish::V1Reconnect(file_id)) => {
                list.begin(names::DURABLE_RECONNECT, 16);
                list.out.file_id(file_id);
            }
            Some(DurableWish::V2 { timeout_ms, flags, create_guid }) => {
                list.begin(names::DURABLE_REQUEST_V2, 32);
                list.out.u32(timeout_ms);
                list.out.u32(flags.0);
                list.out.zeros(8);
                list.out.bytes(&create_guid);
            }
            Some(DurableWish::V2Reconnect { file_id, create_guid, flags }) => {
                list.begin(names::DURABLE_RECONNECT_V2, 36);
                list.out.file_id(file_id);
                list.out.bytes(&create_guid);
                list.out.u32(flags.0);
            }
        }
        if self.maximal_access {
            list.begin(names::QUERY_MAXIMAL_ACCESS, 0);
        }
        if self.on_disk_id {
            list.begin(names::QUERY_ON_DISK_ID, 0);
        }
        if let Some(bytes) = self.allocation_size {
            list.begin(names::ALLOCATION_SIZE, 8);
            list.out.u64(bytes);
        }
        if let Some(first) = list.first {
            let length = out.offset() - first;
            out.set_u32(place, first as u32);
            out.set_u32(place + 4, length as u32);
        }
    }
}

/// The list of contexts while it is written: each one's Next is set when the following begins.
struct Contexts<'a, 'b> {
    out: &'a mut Writer<'b>,
    first: Option<usize>,
    last: usize,
}

impl Contexts<'_, '_> {
    /// Writes the header of a context whose name has four bytes and whose `data` bytes follow.
    fn begin(&mut self, name: &[u8], data: u32) {
        self.out.align(8);
        let here = self.out.offset();
        match self.first {
            None => self.first = Some(here),
            Some(_) => self.out.set_u32(self.last, (here - self.last) as u32),
        }
        self.last = here;
        self.out.u32(0);
        self.out.u16(16);
        self.out.u16(name.len() as u16);
        self.out.u16(0);
        self.out.u16(if data == 0 { 0 } else { 24 });
        self.out.u32(data);
        self.out.bytes(name);
        self.out.align(8);
    }
}

pub(super) fn write_lease(out: &mut Writer<'_>, lease: &Lease) {
    out.bytes(&lease.key);
    out.u32(lease.state.0);
    out.u32(lease.flags.0);
    out.u64(0);
    if let Some(v2) = &lease.v2 {
        out.bytes(&v2.parent_key);
        out.u16(v2.epoch);
        out.u16(0);
    }
}

/// A close request.
#[derive(Clone, Copy, Debug)]
pub struct Close {
    /// The open file; [`FileId::ANY`] in a related member.
    pub file_id: FileId,
    /// Whether attributes are wanted back.
    pub flags: CloseFlags,
}

impl Body for Close {
    const COMMAND: Command = Command::CLOSE;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(24);
        out.u16(self.flags.0);
        out.u32(0);
        out.file_id(self.file_id);
    }
}

/// A flush request.
#[derive(Clone, Copy, Debug)]
pub struct Flush {
    /// The open file.
    pub file_id: FileId,
}

impl Body for Flush {
    const COMMAND: Command = Command::FLUSH;

    fn write(&self, out: &mut Writer<'_>) {
        out.u32(24);
        out.u32(0);
        out.file_id(self.file_id);
    }
}

/// A read request.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The open file.
    pub file_id: FileId,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes to read.
    pub length: u32,
    /// Unbuffered.
    pub flags: ReadFlags,
}

impl Body for Read {
    const COMMAND: Command = Command::READ;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(49);
        // Preferred offset of the data in the response: behind its header and fixed part.
        out.u8(80);
        out.u8(self.flags.0);
        out.u32(self.length);
        out.u64(self.offset);
        out.file_id(self.file_id);
        out.zeros(16);
        // The variable part is never empty.
        out.u8(0);
    }
}

/// A write request.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The open file.
    pub file_id: FileId,
    /// Offset in the file.
    pub offset: u64,
    /// Write-through, unbuffered.
    pub flags: WriteFlags,
    /// The bytes.
    pub data: &'a [u8],
}

impl Body for Write<'_> {
    const COMMAND: Command = Command::WRITE;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(49);
        out.u16(112);
        out.u32(self.data.len() as u32);
        out.u64(self.offset);
        out.file_id(self.file_id);
        out.zeros(12);
        out.u32(self.flags.0);
        out.bytes(self.data);
    }
}

/// A range that is locked or unlocked.
#[derive(Clone, Copy, Debug)]
pub struct LockRange {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Shared, exclusive, unlock; fail instead of wait.
    pub flags: LockFlags,
}

/// A lock request.
#[derive(Clone, Copy, Debug)]
pub struct Locks<'a> {
    /// The open file.
    pub file_id: FileId,
    /// Bucket and number of a lock that can be replayed; 0 for none.
    pub sequence: u32,
    /// The ranges, at least one.
    pub ranges: &'a [LockRange],
}

impl Body for Locks<'_> {
    const COMMAND: Command = Command::LOCK;

    fn write(&self, out: &mut Writer<'_>) {
        out.u16(48);
        out.u16(self.ranges.len() as u16);
        out.u32(self.sequence);
        out.file_id(self.file_id);
        for range in self.ranges {
            out.u64(range.offset);
            out.u64(range.length);
            out.u32(range.flags.0);
            out.u32(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;
    use crate::smb2::create::CreateRequest;
    use crate::smb2::create_context::{LeaseV2, RequestContext};
    use crate::smb2::lease::{LeaseFlags, LeaseState};
    use crate::smb2::lock::LockRequest;
    use crate::smb2::read::ReadRequest;
    use crate::smb2::write::WriteRequest;

    const FILE: FileId = FileId { persistent: 3, volatile: 4 };

    fn create(name: &str, wish: OpenWish) -> Vec<u8> {
        message(&Create {
            name,
            desired_access: AccessMask(0x0012_0089),
            file_attributes: FileAttributes(0x80),
            share_access: ShareAccess(7),
            disposition: CreateDisposition::OPEN_IF,
            options: CreateOptions::NON_DIRECTORY_FILE,
            oplock: OplockLevel::BATCH,
            wish,
        })
    }

    #[test]
    fn a_create_reads_back_with_all_contexts() {
        let lease = Lease {
            key: [1; 16],
            state: LeaseState(7),
            flags: LeaseFlags::PARENT_LEASE_KEY_SET,
            v2: Some(LeaseV2 { parent_key: [2; 16], epoch: 5 }),
        };
        let guid = [9; 16];
        let (timeout_ms, flags) = (30_000, DurableFlags(0));
        for name in ["dir\\a.txt", "", "x", "ünï"] {
            let bytes = create(
                name,
                OpenWish {
                    lease: Some(lease),
                    durable: Some(DurableWish::V2 { timeout_ms, flags, create_guid: guid }),
                    maximal_access: true,
                    on_disk_id: true,
                    allocation_size: Some(77),
                },
            );
            let view = CreateRequest(&bytes);
            let text: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(view.name(), Some(&text[..]));
            assert_eq!(view.oplock_level(), Some(OplockLevel::LEASE));
            assert_eq!(view.disposition(), Some(CreateDisposition::OPEN_IF));
            let found: Vec<_> = view.contexts().map(|context| context.request()).collect();
            let wanted = [
                RequestContext::Lease(lease),
                RequestContext::DurableV2 { timeout_ms, flags, create_guid: guid },
                RequestContext::QueryMaximalAccess(None),
                RequestContext::QueryOnDiskId,
                RequestContext::AllocationSize(77),
            ];
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn the_other_contexts_read_back() {
        let lease =
            Lease { key: [1; 16], state: LeaseState(3), flags: LeaseFlags::default(), v2: None };
        let wish = OpenWish {
            lease: Some(lease),
            durable: Some(DurableWish::V1Reconnect(FILE)),
            ..OpenWish::default()
        };
        let bytes = create("a", wish);
        let found: Vec<_> =
            CreateRequest(&bytes).contexts().map(|context| context.request()).collect();
        assert_eq!(found, [RequestContext::Lease(lease), RequestContext::DurableReconnect(FILE)]);
        let flags = DurableFlags::PERSISTENT;
        let durable = DurableWish::V2Reconnect { file_id: FILE, create_guid: [4; 16], flags };
        let bytes = create("a", OpenWish { durable: Some(durable), ..OpenWish::default() });
        let found: Vec<_> =
            CreateRequest(&bytes).contexts().map(|context| context.request()).collect();
        let wanted =
            RequestContext::DurableV2Reconnect { file_id: FILE, create_guid: [4; 16], flags };
        assert_eq!(found, [wanted]);
        let bytes = create("a", OpenWish::default());
        assert_eq!(CreateRequest(&bytes).contexts().count(), 0);
        assert_eq!(CreateRequest(&bytes).oplock_level(), Some(OplockLevel::BATCH));
    }

    #[test]
    fn reads_writes_and_locks_read_back() {
        let bytes = message(&Read { file_id: FILE, offset: 5, length: 6, flags: ReadFlags(0) });
        assert_eq!(bytes.len(), 64 + 49);
        let view = ReadRequest(&bytes);
        assert_eq!((view.offset(), view.length(), view.file_id()), (Some(5), Some(6), Some(FILE)));
        let flags = WriteFlags::WRITE_THROUGH;
        let bytes = message(&Write { file_id: FILE, offset: 8, flags, data: b"abc" });
        let view = WriteRequest(&bytes);
        assert_eq!((view.data_offset(), view.length()), (Some(112), Some(3)));
        assert_eq!((view.flags(), bytes.ends_with(b"abc")), (Some(flags), true));
        let flags = LockFlags::EXCLUSIVE_LOCK;
        let range = LockRange { offset: 1, length: 2, flags };
        let bytes = message(&Locks { file_id: FILE, sequence: 0, ranges: &[range] });
        let locks: Vec<_> = LockRequest(&bytes).locks().collect();
        assert_eq!((locks[0].offset, locks[0].length, locks[0].flags), (1, 2, flags));
    }
}

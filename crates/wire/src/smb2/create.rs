//! CREATE request and response (MS-SMB2 sections 2.2.13 and 2.2.14).
//!
//! The create contexts are decoded in `create_context`, access masks and file attributes named in
//! `access`.

use super::FileId;
use super::access::{AccessMask, FileAttributes, ShareAccess};
use super::create_context::CreateContexts;
use super::view::{buffer, buffer_part, codes, flags, view};

codes! {
    /// The cache right asked for or granted.
    OplockLevel(u8) {
        NONE = 0x00 => "None",
        II = 0x01 => "II",
        EXCLUSIVE = 0x08 => "Exclusive",
        BATCH = 0x09 => "Batch",
        LEASE = 0xff => "Lease",
    }
}

codes! {
    /// How far the server may act as the client.
    ImpersonationLevel(u32) {
        ANONYMOUS = 0 => "Anonymous",
        IDENTIFICATION = 1 => "Identification",
        IMPERSONATION = 2 => "Impersonation",
        DELEGATE = 3 => "Delegate",
    }
}

codes! {
    /// What to do when the file is or is not there.
    CreateDisposition(u32) {
        SUPERSEDE = 0 => "FILE_SUPERSEDE",
        OPEN = 1 => "FILE_OPEN",
        CREATE = 2 => "FILE_CREATE",
        OPEN_IF = 3 => "FILE_OPEN_IF",
        OVERWRITE = 4 => "FILE_OVERWRITE",
        OVERWRITE_IF = 5 => "FILE_OVERWRITE_IF",
    }
}

codes! {
    /// What the server did.
    CreateAction(u32) {
        SUPERSEDED = 0 => "FILE_SUPERSEDED",
        OPENED = 1 => "FILE_OPENED",
        CREATED = 2 => "FILE_CREATED",
        OVERWRITTEN = 3 => "FILE_OVERWRITTEN",
    }
}

flags! {
    /// Options of an open.
    CreateOptions(u32) {
        DIRECTORY_FILE = 0x0000_0001,
        WRITE_THROUGH = 0x0000_0002,
        SEQUENTIAL_ONLY = 0x0000_0004,
        NO_INTERMEDIATE_BUFFERING = 0x0000_0008,
        SYNCHRONOUS_IO_ALERT = 0x0000_0010,
        SYNCHRONOUS_IO_NONALERT = 0x0000_0020,
        NON_DIRECTORY_FILE = 0x0000_0040,
        COMPLETE_IF_OPLOCKED = 0x0000_0100,
        NO_EA_KNOWLEDGE = 0x0000_0200,
        OPEN_REMOTE_INSTANCE = 0x0000_0400,
        RANDOM_ACCESS = 0x0000_0800,
        DELETE_ON_CLOSE = 0x0000_1000,
        OPEN_BY_FILE_ID = 0x0000_2000,
        OPEN_FOR_BACKUP_INTENT = 0x0000_4000,
        NO_COMPRESSION = 0x0000_8000,
        OPEN_REQUIRING_OPLOCK = 0x0001_0000,
        RESERVE_OPFILTER = 0x0010_0000,
        OPEN_REPARSE_POINT = 0x0020_0000,
        OPEN_NO_RECALL = 0x0040_0000,
        OPEN_FOR_FREE_SPACE_QUERY = 0x0080_0000,
    }
}

flags! {
    /// Flags of a create response.
    CreateResponseFlags(u8) {
        REPARSEPOINT = 0x01,
    }
}

view! {
    /// A create request, from its SMB2 header.
    CreateRequest {
        /// The oplock asked for, or that a lease context is there.
        oplock_level: OplockLevel = 67;
        /// How far the server may act as the client.
        impersonation_level: ImpersonationLevel = 68;
        /// Rights asked for.
        desired_access: AccessMask = 88;
        /// Attributes of a file that is created.
        file_attributes: FileAttributes = 92;
        /// What others may do meanwhile.
        share_access: ShareAccess = 96;
        /// What to do when the file is or is not there.
        disposition: CreateDisposition = 100;
        /// Options of the open.
        options: CreateOptions = 104;
        /// Where the name stands, from the header.
        name_offset: u16 = 108;
        /// Bytes of the name.
        name_length: u16 = 110;
        /// Where the contexts stand, from the header.
        contexts_offset: u32 = 112;
        /// Bytes of the contexts.
        contexts_length: u32 = 116;
    }
}

impl<'a> CreateRequest<'a> {
    /// The path below the share, UTF-16LE; empty for its root, `None` unless captured whole.
    #[inline]
    pub fn name(self) -> Option<&'a [u8]> {
        let offset = usize::from(self.name_offset()?);
        let length = usize::from(self.name_length()?);
        buffer(self.0, offset, length)
    }

    /// The create contexts, as far as captured.
    #[inline]
    pub fn contexts(self) -> CreateContexts<'a> {
        let offset = self.contexts_offset().unwrap_or(0) as usize;
        let length = self.contexts_length().unwrap_or(0) as usize;
        CreateContexts::new(buffer_part(self.0, offset, length))
    }
}

view! {
    /// A create response, from its SMB2 header.
    CreateResponse {
        /// The oplock granted, or that a lease context is there.
        oplock_level: OplockLevel = 66;
        /// Whether the last component is a reparse point (3.x).
        flags: CreateResponseFlags = 67;
        /// What the server did.
        action: CreateAction = 68;
        /// Time of creation, 100 ns since 1601.
        creation_time: u64 = 72;
        /// Time of the last access, 100 ns since 1601.
        last_access_time: u64 = 80;
        /// Time of the last write, 100 ns since 1601.
        last_write_time: u64 = 88;
        /// Time of the last change, 100 ns since 1601.
        change_time: u64 = 96;
        /// Bytes that the file takes.
        allocation_size: u64 = 104;
        /// Bytes of the file.
        end_of_file: u64 = 112;
        /// Attributes of the file.
        file_attributes: FileAttributes = 120;
        /// The open file.
        file_id: FileId = 128;
        /// Where the contexts stand, from the header.
        contexts_offset: u32 = 144;
        /// Bytes of the contexts.
        contexts_length: u32 = 148;
    }
}

impl<'a> CreateResponse<'a> {
    /// The create contexts, as far as captured.
    #[inline]
    pub fn contexts(self) -> CreateContexts<'a> {
        let offset = self.contexts_offset().unwrap_or(0) as usize;
        let length = self.contexts_length().unwrap_or(0) as usize;
        CreateContexts::new(buffer_part(self.0, offset, length))
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    #[test]
    fn reads_a_request() {
        let mut bytes = message(&[57, 0, 0, 0xff]);
        put(&mut bytes, 68, &2u32.to_le_bytes());
        put(&mut bytes, 88, &0x0012_0089u32.to_le_bytes());
        put(&mut bytes, 92, &0x80u32.to_le_bytes());
        put(&mut bytes, 96, &7u32.to_le_bytes());
        put(&mut bytes, 100, &1u32.to_le_bytes());
        put(&mut bytes, 104, &0x40u32.to_le_bytes());
        put(&mut bytes, 108, &[120, 0, 4, 0, 128, 0, 0, 0, 16, 0, 0, 0]);
        put(&mut bytes, 120, b"a\0b\0");
        put(&mut bytes, 128, &[0, 0, 0, 0, 16, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        put(&mut bytes, 144, b"QFid");
        put(&mut bytes, 116, &20u32.to_le_bytes());
        let view = CreateRequest(&bytes);
        assert_eq!(view.oplock_level(), Some(OplockLevel::LEASE));
        assert_eq!(view.impersonation_level(), Some(ImpersonationLevel::IMPERSONATION));
        assert_eq!(view.desired_access(), Some(AccessMask(0x0012_0089)));
        assert_eq!(view.share_access(), Some(ShareAccess(7)));
        assert_eq!(view.disposition().unwrap().name(), Some("FILE_OPEN"));
        assert_eq!(view.options(), Some(CreateOptions::NON_DIRECTORY_FILE));
        assert_eq!(view.name(), Some(&b"a\0b\0"[..]));
        let contexts: Vec<_> = view.contexts().collect();
        assert_eq!(contexts.len(), 1);
        assert_eq!(contexts[0].name, b"QFid");
        assert_eq!(CreateRequest(&bytes[..123]).name(), None);
        abuse(&bytes, |bytes| {
            let view = CreateRequest(bytes);
            view.touch();
            let _ = view.name();
            assert!(view.contexts().count() <= 2);
        });
    }

    #[test]
    fn the_root_of_a_share_has_an_empty_name() {
        let mut bytes = message(&[57, 0]);
        put(&mut bytes, 108, &[0; 12]);
        assert_eq!(CreateRequest(&bytes).name(), Some(&b""[..]));
        assert_eq!(CreateRequest(&bytes).contexts().count(), 0);
        assert_eq!(CreateRequest(&bytes[..111]).name(), None);
    }

    #[test]
    fn reads_a_response() {
        let mut bytes = message(&[89, 0, 9, 1, 2, 0, 0, 0]);
        for (index, offset) in (72..120).step_by(8).enumerate() {
            put(&mut bytes, offset, &(index as u64 + 1).to_le_bytes());
        }
        put(&mut bytes, 120, &0x10u32.to_le_bytes());
        put(&mut bytes, 128, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        put(&mut bytes, 144, &[0; 8]);
        let view = CreateResponse(&bytes);
        assert_eq!(view.oplock_level(), Some(OplockLevel::BATCH));
        assert_eq!(view.flags(), Some(CreateResponseFlags::REPARSEPOINT));
        assert_eq!(view.action().unwrap().name(), Some("FILE_CREATED"));
        assert_eq!(view.creation_time(), Some(1));
        assert_eq!(view.change_time(), Some(4));
        assert_eq!(view.allocation_size(), Some(5));
        assert_eq!(view.end_of_file(), Some(6));
        assert_eq!(view.file_attributes(), Some(FileAttributes::DIRECTORY));
        let id = view.file_id().unwrap();
        assert_eq!((id.persistent, id.volatile), (1, 2));
        abuse(&bytes, |bytes| {
            let view = CreateResponse(bytes);
            view.touch();
            assert!(view.contexts().count() <= 8);
        });
    }
}

//! Columns of an operation that an SMB2 request determines (MS-SMB2 section 2.2).
//!
//! All sources use it (captures, the load client, the probe), so that the same operation has the
//! same columns. The source sets names (paths, shares), because it knows where text is stored, and
//! the columns that responses determine.

use smbscope_wire::smb2::close::CloseRequest;
use smbscope_wire::smb2::create::{CreateOptions, CreateRequest};
use smbscope_wire::smb2::create_context::RequestContext;
use smbscope_wire::smb2::directory::QueryDirectoryRequest;
use smbscope_wire::smb2::flush::FlushRequest;
use smbscope_wire::smb2::info::{QueryInfoRequest, SetInfoRequest};
use smbscope_wire::smb2::ioctl::{IoctlRequest, works_on_range};
use smbscope_wire::smb2::lock::{LockFlags, LockRequest};
use smbscope_wire::smb2::notify::ChangeNotifyRequest;
use smbscope_wire::smb2::oplock::OplockBreak;
use smbscope_wire::smb2::read::{Channel, ReadFlags, ReadRequest};
use smbscope_wire::smb2::session::SessionSetupRequest;
use smbscope_wire::smb2::write::{WriteFlags, WriteRequest};
use smbscope_wire::smb2::{Command, FileId};

use crate::operation::Operation;
use crate::operation::code::{self, Detail};

/// Fills the row from a request as far as its bytes are present; they begin with the SMB2 header.
/// Returns the snapshot that a Create opens (100 ns since 1601), which belongs to its path.
#[inline]
pub fn request(command: Command, bytes: &[u8], row: &mut Operation) -> Option<u64> {
    match command {
        Command::CREATE => return create(bytes, row),
        Command::CLOSE => set_file(row, CloseRequest(bytes).file_id()),
        Command::FLUSH => set_file(row, FlushRequest(bytes).file_id()),
        Command::READ => {
            let view = ReadRequest(bytes);
            set_file(row, view.file_id());
            set_range(row, view.offset(), view.length());
            if let Some(flags) = view.flags() {
                row.set_unbuffered(flags.contains(ReadFlags::UNBUFFERED));
            }
        }
        Command::WRITE => {
            let view = WriteRequest(bytes);
            set_file(row, view.file_id());
            // Data that the server fetches by RDMA is not in the message (MS-SMB2 section 2.2.21).
            let by_rdma = view.channel().is_some_and(|channel| channel != Channel::NONE);
            let length = if by_rdma { view.remaining_bytes() } else { view.length() };
            set_range(row, view.offset(), length);
            if let Some(flags) = view.flags() {
                row.set_write_through(flags.contains(WriteFlags::WRITE_THROUGH));
                row.set_unbuffered(flags.contains(WriteFlags::UNBUFFERED));
            }
        }
        Command::LOCK => lock(bytes, row),
        Command::IOCTL => {
            let view = IoctlRequest(bytes);
            set_file(row, view.file_id());
            let code = view.ctl_code();
            if let Some(code) = code {
                row.set_detail(code::detail(Detail::Fsctl, code.0));
            }
            if code.is_some_and(works_on_range) {
                if let Some((offset, bytes)) = view.range() {
                    row.set_offset_bytes(offset);
                    row.set_requested_bytes(bytes);
                }
            } else {
                set_requested(row, view.max_output_response());
            }
        }
        Command::QUERY_DIRECTORY => {
            let view = QueryDirectoryRequest(bytes);
            set_file(row, view.file_id());
            if let Some(class) = view.info_class() {
                set_information(row, 1, class.0);
            }
            set_requested(row, view.output_buffer_length());
        }
        Command::CHANGE_NOTIFY => {
            set_file(row, ChangeNotifyRequest(bytes).file_id());
            row.set_waits(true);
        }
        Command::QUERY_INFO => {
            let view = QueryInfoRequest(bytes);
            set_file(row, view.file_id());
            if let (Some(kind), Some(class)) = (view.info_type(), view.info_class()) {
                set_information(row, kind.0, class);
            }
            set_requested(row, view.output_buffer_length());
        }
        Command::SET_INFO => {
            let view = SetInfoRequest(bytes);
            set_file(row, view.file_id());
            if let (Some(kind), Some(class)) = (view.info_type(), view.info_class()) {
                set_information(row, kind.0, class);
            }
            set_requested(row, view.buffer_length());
        }
        Command::OPLOCK_BREAK => set_break(row, bytes, false),
        Command::SESSION_SETUP => {
            let binding = SessionSetupRequest(bytes).is_binding() == Some(true);
            row.set_detail(code::detail(Detail::SessionSetup, u32::from(binding)));
        }
        _ => {}
    }
    None
}

/// A file id as stored in the column `file_id`: its bytes on the wire.
pub fn file_bytes(file: FileId) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&file.persistent.to_le_bytes());
    bytes[8..].copy_from_slice(&file.volatile.to_le_bytes());
    bytes
}

#[inline]
fn set_file(row: &mut Operation, file: Option<FileId>) {
    if let Some(file) = file.filter(|&file| file != FileId::ANY) {
        row.set_file_id(file_bytes(file));
    }
}

#[inline]
fn set_range(row: &mut Operation, offset: Option<u64>, length: Option<u32>) {
    if let Some(offset) = offset {
        row.set_offset_bytes(offset);
    }
    set_requested(row, length);
}

#[inline]
fn set_requested(row: &mut Operation, bytes: Option<u32>) {
    if let Some(bytes) = bytes {
        row.set_requested_bytes(u64::from(bytes));
    }
}

fn set_information(row: &mut Operation, kind: u8, class: u8) {
    row.set_detail(code::detail(Detail::Information, u32::from(kind) << 16 | u32::from(class)));
}

fn create(bytes: &[u8], row: &mut Operation) -> Option<u64> {
    let mut snapshot = None;
    let view = CreateRequest(bytes);
    if let Some(level) = view.oplock_level() {
        row.set_oplock_requested(code::oplock(level.0));
    }
    if let Some(access) = view.desired_access() {
        row.set_desired_access(access.0);
    }
    if let Some(share) = view.share_access() {
        row.set_share_access(share.0);
    }
    if let Some(disposition) = view.disposition() {
        row.set_detail(code::detail(Detail::Disposition, disposition.0));
    }
    if let Some(options) = view.options() {
        row.set_create_options(options.0);
        row.set_write_through(options.contains(CreateOptions::WRITE_THROUGH));
    }
    for context in view.contexts() {
        match context.request() {
            RequestContext::Lease(lease) => {
                row.set_lease_key(lease.key);
                row.set_lease_requested(code::lease(lease.state.0));
                if let Some(parent) = lease.parent_key() {
                    row.set_parent_lease_key(parent);
                }
            }
            RequestContext::TimewarpToken(time) => snapshot = Some(time),
            _ => {}
        }
    }
    snapshot
}

fn lock(bytes: &[u8], row: &mut Operation) {
    let view = LockRequest(bytes);
    set_file(row, view.file_id());
    let (mut locks, mut unlocks, mut captured) = (false, false, 0);
    for lock in view.locks() {
        if captured == 0 {
            row.set_offset_bytes(lock.offset);
            // Several ranges have no common length.
            if view.lock_count() == Some(1) {
                row.set_requested_bytes(lock.length);
            }
        }
        captured += 1;
        let unlock = lock.flags.contains(LockFlags::UNLOCK);
        unlocks |= unlock;
        locks |= !unlock;
    }
    if locks || unlocks {
        let kind = if !unlocks { 0 } else { 1 + u32::from(locks) };
        let ranges = view.lock_count().unwrap_or(captured);
        row.set_detail(code::lock(kind, u32::from(ranges)));
    }
}

/// Fills the row from an oplock or lease break in either direction.
pub fn set_break(row: &mut Operation, bytes: &[u8], notification: bool) {
    let Some(message) = OplockBreak::parse(bytes) else { return };
    let mut kind = if notification { 0 } else { 2 };
    match message {
        OplockBreak::Oplock { level, file_id } => {
            set_file(row, Some(file_id));
            row.set_oplock_granted(code::oplock(level.0));
        }
        OplockBreak::LeaseNotification { lease_key, current_state, new_state, .. } => {
            kind += 1;
            row.set_lease_key(lease_key);
            row.set_lease_requested(code::lease(current_state.0));
            row.set_lease_granted(code::lease(new_state.0));
        }
        OplockBreak::LeaseAcknowledgement { lease_key, state } => {
            kind += 1;
            row.set_lease_key(lease_key);
            row.set_lease_granted(code::lease(state.0));
        }
    }
    row.set_detail(code::detail(Detail::Break, kind));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Column;

    #[test]
    fn several_ranges_have_no_length() {
        let mut bytes = vec![0; 88];
        bytes[66] = 2;
        for length in [10_u64, 20] {
            bytes.extend([0; 8]);
            bytes.extend(length.to_le_bytes());
            bytes.extend(2_u64.to_le_bytes());
        }
        let asked = |bytes: &[u8]| {
            let mut row = Operation::default();
            request(Command::LOCK, bytes, &mut row);
            let detail = row.detail().map(|code| code::text(Column::detail, code).into_owned());
            (row.requested_bytes(), row.offset_bytes(), detail)
        };
        let two = Some("Lock of 2 ranges".to_owned());
        assert_eq!(asked(&bytes), (None, Some(0), two.clone()));
        assert_eq!(asked(&bytes[..112]), (None, Some(0), two));
        assert_eq!(asked(&bytes[..88]), (None, None, None));
        bytes[66] = 1;
        assert_eq!(asked(&bytes), (Some(10), Some(0), Some("Lock".to_owned())));
    }
}

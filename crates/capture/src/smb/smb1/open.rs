//! What the commands that open a file have in common: FIDs, paths, oplocks and access.

use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_wire::smb1::create::OplockLevel;
use smbscope_wire::smb1::open::AccessMode;
use smbscope_wire::smb1::strings::Text;
use smbscope_wire::smb1::trans2::Open2Request;
use smbscope_wire::smb1::transaction::Part;
use smbscope_wire::smb1::{Command, nt_transact};
use smbscope_wire::smb2;
use smbscope_wire::smb2::create::CreateOptions;

use crate::smb::pending::Pending;

/// Whether the commands that follow in a chain work on the file that this one opens: their own
/// file id was not known when they were sent.
pub fn opens(command: Command) -> bool {
    matches!(command, Command::NT_CREATE_AND_X | Command::OPEN_AND_X)
}

/// A FID as the row keeps it.
pub fn file_bytes(fid: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    [bytes[0], bytes[1]] = fid.to_le_bytes();
    bytes
}

/// Keeps a path as SMB2 has it: from the share's root, without a backslash at its ends; the root
/// itself is one backslash. In a DFS request it begins with server and share.
pub fn set_path(pending: &mut Pending, path: Text<'_>, dfs: bool) {
    let name = &mut pending.name;
    name.clear();
    path.push_to(name);
    pending.has_name = true;
    if name.contains('/') {
        *name = name.replace('/', "\\");
    }
    let mut rest = name.trim_matches('\\');
    if dfs {
        rest = rest.splitn(3, '\\').nth(2).unwrap_or_default();
    }
    if rest.is_empty() {
        name.clear();
        name.push('\\');
    } else if rest.len() != name.len() {
        *name = rest.to_owned();
    }
}

/// SMB1's oplock level as the row's code, which is SMB2's.
pub fn oplock(level: OplockLevel) -> u64 {
    code::oplock(match level {
        OplockLevel::EXCLUSIVE => smb2::create::OplockLevel::EXCLUSIVE.0,
        OplockLevel::BATCH => smb2::create::OplockLevel::BATCH.0,
        OplockLevel::LEVEL_II => smb2::create::OplockLevel::II.0,
        OplockLevel(other) => other,
    })
}

/// Whether attributes (MS-CIFS section 2.2.1.2.4) are those of a directory.
pub fn is_directory(attributes: u16) -> bool {
    attributes & 0x0010 != 0
}

/// Parameters of Open2.
pub fn open2(part: Part<'_>, row: &mut Operation) {
    let view = Open2Request::new(part);
    set_access_mode(row, view.access_mode());
    let requested = view.flags().map(|flags| match (flags & 2 != 0, flags & 4 != 0) {
        (_, true) => OplockLevel::BATCH,
        (true, false) => OplockLevel::EXCLUSIVE,
        (false, false) => OplockLevel::NONE,
    });
    set_oplock_requested(row, requested);
}

/// Parameters of NtTransact Create.
pub fn nt_transact_create(part: Part<'_>, pending: &mut Pending, dfs: bool) {
    let view = nt_transact::CreateRequest::new(part);
    if let (Some(0), Some(name)) = (view.root_directory_fid(), view.name()) {
        set_path(pending, name, dfs);
    }
    let row = &mut pending.row;
    set_oplock_requested(row, view.requested_oplock());
    set_create(row, view.desired_access(), view.share_access(), view.create_options());
}

pub fn set_access_mode(row: &mut Operation, mode: Option<AccessMode>) {
    if let Some(mode) = mode {
        row.set_write_through(mode.is_write_through());
    }
}

pub fn set_oplock_requested(row: &mut Operation, level: Option<OplockLevel>) {
    if let Some(level) = level {
        row.set_oplock_requested(oplock(level));
    }
}

pub fn set_create(
    row: &mut Operation,
    access: Option<u32>,
    share: Option<u32>,
    options: Option<u32>,
) {
    if let Some(access) = access {
        row.set_desired_access(access);
    }
    if let Some(share) = share {
        row.set_share_access(share);
    }
    if let Some(options) = options {
        row.set_create_options(options);
        row.set_write_through(CreateOptions(options).contains(CreateOptions::WRITE_THROUGH));
    }
}

//! What a request's body adds to its row (MS-SMB2 section 2.2, the requests).

use smbscope_event::code::{self, Detail};
use smbscope_event::operation::Operation;
use smbscope_wire::smb2::close::CloseRequest;
use smbscope_wire::smb2::create::{CreateOptions, CreateRequest};
use smbscope_wire::smb2::create_context::RequestContext;
use smbscope_wire::smb2::directory::QueryDirectoryRequest;
use smbscope_wire::smb2::flush::FlushRequest;
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::header::Member;
use smbscope_wire::smb2::info::{Change, QueryInfoRequest, SetInfoRequest};
use smbscope_wire::smb2::ioctl::IoctlRequest;
use smbscope_wire::smb2::lock::{LockFlags, LockRequest};
use smbscope_wire::smb2::negotiate::NegotiateRequest;
use smbscope_wire::smb2::notify::ChangeNotifyRequest;
use smbscope_wire::smb2::oplock::OplockBreak;
use smbscope_wire::smb2::read::{ReadFlags, ReadRequest};
use smbscope_wire::smb2::session::SessionSetupRequest;
use smbscope_wire::smb2::tree::TreeConnectRequest;
use smbscope_wire::smb2::write::{WriteFlags, WriteRequest};
use smbscope_wire::smb2::{Command, FileId};
use smbscope_wire::{dfs, text};

use super::file_bytes;
use crate::link::{Link, Pending};
use crate::user;

/// Fills the row from the body, as far as captured.
#[inline]
pub fn decode(member: &Member<'_>, pending: &mut Pending, link: &mut Link) {
    let bytes = member.bytes;
    let row = &mut pending.row;
    match member.header.command {
        Command::CREATE => create(bytes, member.header.flags.0 & DFS != 0, pending),
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
            set_range(row, view.offset(), view.length());
            if let Some(flags) = view.flags() {
                row.set_write_through(flags.contains(WriteFlags::WRITE_THROUGH));
                row.set_unbuffered(flags.contains(WriteFlags::UNBUFFERED));
            }
        }
        Command::LOCK => lock(bytes, row),
        Command::IOCTL => {
            let view = IoctlRequest(bytes);
            set_file(row, view.file_id());
            if let Some(code) = view.ctl_code() {
                row.set_detail(code::detail(Detail::Fsctl, code.0));
                let asked = match code {
                    Fsctl::DFS_GET_REFERRALS => view.input().map(dfs::Request::new),
                    Fsctl::DFS_GET_REFERRALS_EX => view.input().map(dfs::Request::new_extended),
                    _ => None,
                };
                if let Some(path) = asked.and_then(|asked| asked.path()) {
                    pending.name = path;
                    pending.has_name = true;
                }
            }
            if let Some(bytes) = view.max_output_response() {
                row.set_requested_bytes(u64::from(bytes));
            }
        }
        Command::QUERY_DIRECTORY => {
            let view = QueryDirectoryRequest(bytes);
            set_file(row, view.file_id());
            if let Some(class) = view.info_class() {
                set_information(row, 1, class.0);
            }
            if let Some(bytes) = view.output_buffer_length() {
                row.set_requested_bytes(u64::from(bytes));
            }
        }
        Command::CHANGE_NOTIFY => {
            let view = ChangeNotifyRequest(bytes);
            set_file(row, view.file_id());
            row.set_waits(true);
        }
        Command::QUERY_INFO => {
            let view = QueryInfoRequest(bytes);
            set_file(row, view.file_id());
            if let (Some(kind), Some(class)) = (view.info_type(), view.info_class()) {
                set_information(row, kind.0, class);
            }
            if let Some(bytes) = view.output_buffer_length() {
                row.set_requested_bytes(u64::from(bytes));
            }
        }
        Command::SET_INFO => {
            let view = SetInfoRequest(bytes);
            set_file(row, view.file_id());
            if let (Some(kind), Some(class)) = (view.info_type(), view.info_class()) {
                set_information(row, kind.0, class);
            }
            if let Some(bytes) = view.buffer_length() {
                row.set_requested_bytes(u64::from(bytes));
            }
            if let Some(Change::Rename { name, .. }) = view.change() {
                pending.name.clear();
                text::push_utf16le(&mut pending.name, name);
            }
        }
        Command::OPLOCK_BREAK => set_break(row, bytes, false),
        Command::NEGOTIATE => negotiate(bytes, link),
        Command::SESSION_SETUP => session_setup(bytes, pending, link),
        Command::TREE_CONNECT => {
            if let Some(path) = TreeConnectRequest(bytes).path() {
                text::push_utf16le(&mut pending.name, path);
            }
        }
        _ => {}
    }
}

const DFS: u32 = 0x1000_0000;

#[inline]
fn set_file(row: &mut Operation, file: Option<FileId>) {
    if let Some(file) = file.filter(|&file| file != FileId::ANY) {
        row.set_file_id(file_bytes(file));
    }
}

#[inline]
fn set_range(row: &mut Operation, offset: Option<u64>, length: Option<u32>) {
    if let Some(offset) = offset {
        row.set_offset(offset);
    }
    if let Some(length) = length {
        row.set_requested_bytes(u64::from(length));
    }
}

fn set_information(row: &mut Operation, kind: u8, class: u8) {
    row.set_detail(code::detail(Detail::Information, u32::from(kind) << 16 | u32::from(class)));
}

fn create(bytes: &[u8], dfs: bool, pending: &mut Pending) {
    let view = CreateRequest(bytes);
    if let Some(name) = view.name() {
        text::push_utf16le(&mut pending.name, name);
        pending.has_name = true;
        if dfs {
            strip_dfs(&mut pending.name);
        }
        if pending.name.is_empty() {
            pending.name.push('\\');
        }
    }
    let row = &mut pending.row;
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
        if let RequestContext::Lease(lease) = context.request() {
            row.set_lease_key(lease.key);
            row.set_lease_requested(code::lease(lease.state.0));
            if let Some(parent) = lease.parent_key() {
                row.set_parent_lease_key(parent);
            }
        }
    }
}

/// In a DFS request the name begins with server and share (MS-SMB2 section 3.2.4.3).
fn strip_dfs(name: &mut String) {
    let rest = name.splitn(3, '\\').nth(2).map(str::to_owned);
    *name = rest.unwrap_or_default();
}

fn lock(bytes: &[u8], row: &mut Operation) {
    let view = LockRequest(bytes);
    set_file(row, view.file_id());
    let (mut locks, mut unlocks, mut length) = (false, false, 0_u64);
    for (index, lock) in view.locks().enumerate() {
        if index == 0 {
            row.set_offset(lock.offset);
        }
        length = length.saturating_add(lock.length);
        let unlock = lock.flags.contains(LockFlags::UNLOCK);
        unlocks |= unlock;
        locks |= !unlock;
    }
    if locks || unlocks {
        row.set_requested_bytes(length);
        let kind = if !unlocks { 0 } else { 1 + u32::from(locks) };
        row.set_detail(code::detail(Detail::Lock, kind));
    }
}

/// Fills the row of an oplock or lease break in either direction.
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

fn negotiate(bytes: &[u8], link: &mut Link) {
    let view = NegotiateRequest(bytes);
    if let Some(guid) = view.client_guid() {
        link.client_guid = Some(guid);
        link.table.client_guid = Some(user::guid(&guid));
    }
    link.table.client_capabilities = view.capabilities().map(|bits| u64::from(bits.0));
}

fn session_setup(bytes: &[u8], pending: &mut Pending, link: &Link) {
    let view = SessionSetupRequest(bytes);
    let binding = view.is_binding() == Some(true);
    pending.row.set_detail(code::detail(Detail::SessionSetup, u32::from(binding)));
    let mut session = view.security_blob().map(user::of_blob).unwrap_or_default();
    session.binding = binding;
    session.client_guid = link.client_guid;
    pending.session = Some(Box::new(session));
}

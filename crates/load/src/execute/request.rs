//! Turns a step's request into an SMB2 message.

use std::sync::Arc;

use smbscope_wire::smb2::access::AccessMask;
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateOptions, OplockLevel};
use smbscope_wire::smb2::create_context::DurableFlags;
use smbscope_wire::smb2::directory::QueryDirectoryFlags;
use smbscope_wire::smb2::encode::{self, DurableWish, LockRange, OpenWish};
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType};
use smbscope_wire::smb2::lease::LeaseState;
use smbscope_wire::smb2::lock::LockFlags;
use smbscope_wire::smb2::notify::ChangeNotifyFlags;
use smbscope_wire::smb2::{Dialect, FileId};

use super::{Claim, Handle, Opened, Performer, shown};
use crate::workload::{
    Create, Ioctl, Lock, LockKind, Op, Plan, QueryDirectory, Request, SetInfo, Slot, Times,
};
use smbscope_client::{Ask, Session};

/// FILE_LIST_DIRECTORY (MS-SMB2 section 2.2.13.1.2).
const LIST_DIRECTORY: u32 = 0x0000_0001;

impl Performer {
    /// Appends a request to the frame; `None` when its handle is not open.
    pub(super) fn add(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        request: &Request,
        related: bool,
        acquires: bool,
    ) -> Option<u64> {
        if let Op::Create(create) = &request.op {
            return Some(self.add_create(session, plan, request.slot, create, related, acquires));
        }
        let opened = match self.handles.get(usize::from(request.slot?.0))? {
            Handle::Open(opened) | Handle::Cached(Some(opened)) => opened,
            Handle::Closed | Handle::Cached(None) => return None,
        };
        let message = Message {
            file_id: if related { FileId::ANY } else { opened.file_id },
            related,
            ask: Ask {
                payload_bytes: payload(request),
                path: Some(shown(&opened.path)),
                handle: Some(opened.number),
                waits: matches!(request.op, Op::ChangeNotify(_)),
                ..Ask::default()
            },
        };
        let file_id = message.file_id;
        Some(match &request.op {
            Op::Close { post_query } => {
                let flags = if *post_query { CloseFlags::POSTQUERY_ATTRIB } else { CloseFlags(0) };
                message.send(session, &encode::Close { file_id, flags })
            }
            Op::Flush => message.send(session, &encode::Flush { file_id }),
            Op::Lock(lock) => {
                let ranges = &[lock_range(lock)];
                message.send(session, &encode::Locks { file_id, sequence: 0, ranges })
            }
            Op::Ioctl(ioctl) => message.add_ioctl(session, ioctl),
            Op::QueryDirectory(query) => {
                message.add_query_directory(session, query, plan.path(query.pattern))
            }
            Op::QueryInfo(query) => {
                let body = encode::QueryInfo {
                    file_id,
                    info_type: query.info_type,
                    info_class: query.class,
                    additional_information: query.security.0,
                    output_bytes: query.output_bytes,
                };
                message.send(session, &body)
            }
            Op::SetInfo(set) => message.add_set_info(session, plan, set),
            Op::ChangeNotify(notify) => {
                let flags =
                    if notify.tree { ChangeNotifyFlags::WATCH_TREE } else { ChangeNotifyFlags(0) };
                let body = encode::ChangeNotify {
                    file_id,
                    flags,
                    filter: notify.filter,
                    output_bytes: notify.output_bytes,
                };
                message.send(session, &body)
            }
            Op::Create(_) | Op::Read(_) | Op::Write(_) | Op::Cancel { .. } => return None,
        })
    }

    /// Appends an open. `acquires`: its handle stays open to cache the directory.
    fn add_create(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        slot: Option<Slot>,
        create: &Create,
        related: bool,
        acquires: bool,
    ) -> u64 {
        let path: Arc<str> = plan.path(create.path).into();
        let number = session.next_handle();
        let read_handle = LeaseState(LeaseState::READ.0 | LeaseState::HANDLE.0);
        let is_directory = create.options.contains(CreateOptions::DIRECTORY_FILE);
        let state = match create.lease {
            _ if acquires => read_handle,
            // Only an open with a lease carries its parent's lease key; without the key the client's
            // own changes would break the parent's lease.
            LeaseState::NONE if !is_directory && session.leases.holds_parent(&path) => read_handle,
            state => state,
        };
        // A cached handle serves all later listings and notifications, so it needs the right to list.
        let access = if acquires { create.access.0 | LIST_DIRECTORY } else { create.access.0 };
        let wish = wish(session, &path, state, create.oplock);
        let body = create_body(&path, create, AccessMask(access), wish);
        let ask = Ask { path: Some(shown(&path)), handle: Some(number), ..Ask::default() };
        let id = session.add(0, related, &body, ask);
        if let Some(handle) = self.handle_mut(slot) {
            // Related members of the compound refer to it before the reply arrives.
            let claim = Claim::if_durable(create, AccessMask(access), wish);
            *handle = Handle::Open(Opened { file_id: FileId::ANY, path, number, claim });
        }
        id
    }
}

/// The fields that the messages for an open file share.
struct Message {
    file_id: FileId,
    related: bool,
    ask: Ask,
}

impl Message {
    fn send<B: encode::Body>(self, session: &mut Session, body: &B) -> u64 {
        session.add(0, self.related, body, self.ask)
    }

    fn add_ioctl(self, session: &mut Session, ioctl: &Ioctl) -> u64 {
        // FILE_ALLOCATED_RANGE_BUFFER for the whole file (MS-FSCC section 2.3.52).
        let mut whole = [0; 16];
        whole[8..].copy_from_slice(&i64::MAX.to_le_bytes());
        let input: &[u8] = match ioctl.code {
            Fsctl::QUERY_ALLOCATED_RANGES => &whole,
            _ => &[],
        };
        let (code, output_bytes) = (ioctl.code, ioctl.output_bytes);
        let body = encode::Ioctl { file_id: self.file_id, code, input, output_bytes };
        self.send(session, &body)
    }

    fn add_query_directory(
        self,
        session: &mut Session,
        query: &QueryDirectory,
        pattern: &str,
    ) -> u64 {
        let mut flags = 0;
        if query.restart {
            flags |= QueryDirectoryFlags::RESTART_SCANS.0;
        }
        if query.single {
            flags |= QueryDirectoryFlags::RETURN_SINGLE_ENTRY.0;
        }
        let body = encode::QueryDirectory {
            file_id: self.file_id,
            info_class: query.class,
            flags: QueryDirectoryFlags(flags),
            pattern,
            output_bytes: query.output_bytes,
        };
        self.send(session, &body)
    }

    /// SET_INFO with the layout of its class (MS-FSCC sections 2.4.4, 2.4.7, 2.4.11, 2.4.13).
    fn add_set_info(self, session: &mut Session, plan: &Plan, set: &SetInfo) -> u64 {
        let file_id = self.file_id;
        let mut data = [0; 40];
        let (class, length) = match set {
            SetInfo::Rename { to, replace } => {
                let body = encode::Rename { file_id, name: plan.path(*to), replace: *replace };
                return self.send(session, &body);
            }
            SetInfo::Disposition { delete } => {
                data[0] = u8::from(*delete);
                (FileInfoClass::DISPOSITION, 1)
            }
            SetInfo::EndOfFile(length) => {
                data[..8].copy_from_slice(&plan.length(*length).to_le_bytes());
                (FileInfoClass::END_OF_FILE, 8)
            }
            SetInfo::Allocation(length) => {
                data[..8].copy_from_slice(&plan.length(*length).to_le_bytes());
                (FileInfoClass::ALLOCATION, 8)
            }
            SetInfo::Basic { times, attributes } => {
                match times {
                    Times::Keep => {}
                    Times::Freeze => data[..32].fill(0xff),
                    Times::Of(pick) => {
                        let time = plan.file(*pick).modified().to_le_bytes();
                        data[..8].copy_from_slice(&time);
                        data[16..24].copy_from_slice(&time);
                    }
                }
                data[32..36].copy_from_slice(&attributes.0.to_le_bytes());
                (FileInfoClass::BASIC, 40)
            }
        };
        let body = encode::SetInfo {
            file_id,
            info_type: InfoType::FILE,
            info_class: class.0,
            additional_information: 0,
            data: &data[..length],
        };
        self.send(session, &body)
    }
}

/// The message of an open.
pub(super) fn create_body<'a>(
    name: &'a str,
    create: &Create,
    desired_access: AccessMask,
    wish: OpenWish,
) -> encode::Create<'a> {
    encode::Create {
        name,
        desired_access,
        file_attributes: create.attributes,
        share_access: create.share,
        disposition: create.disposition,
        options: create.options,
        oplock: create.oplock,
        wish,
    }
}

/// Bytes that a request or its reply may carry, for the credits.
pub(super) fn payload(request: &Request) -> u32 {
    match &request.op {
        Op::QueryDirectory(query) => query.output_bytes,
        Op::QueryInfo(query) => query.output_bytes,
        Op::Ioctl(ioctl) => ioctl.output_bytes,
        Op::ChangeNotify(notify) => notify.output_bytes,
        _ => 0,
    }
}

/// What an open requests in addition to access: a lease if the session supports them, or an oplock.
fn wish(
    session: &mut Session,
    path: &Arc<str>,
    state: LeaseState,
    oplock: OplockLevel,
) -> OpenWish {
    let mut wish = OpenWish::default();
    let v2 = session.negotiated().dialect >= Dialect::SMB_3_0;
    if session.has_leases() && state != LeaseState::NONE {
        wish.lease = Some(session.leases.wish(session.client_guid(), path, state, v2));
    }
    let keeps_handle = if wish.lease.is_some() {
        state.contains(LeaseState::HANDLE)
    } else {
        oplock == OplockLevel::BATCH
    };
    if session.host().config.durable && keeps_handle {
        wish.durable = Some(if v2 {
            let mut create_guid = [0; 16];
            // Without random bytes the open is simply not durable.
            match getrandom::fill(&mut create_guid) {
                Ok(()) => DurableWish::V2 { timeout_ms: 0, flags: DurableFlags(0), create_guid },
                Err(_) => return wish,
            }
        } else {
            DurableWish::V1
        });
    }
    wish
}

/// The range of a lock or an unlock.
fn lock_range(lock: &Lock) -> LockRange {
    let kind = match lock.kind {
        LockKind::Shared => LockFlags::SHARED_LOCK,
        LockKind::Exclusive => LockFlags::EXCLUSIVE_LOCK,
        LockKind::Unlock => LockFlags::UNLOCK,
    };
    let at_once = if lock.fail_immediately { LockFlags::FAIL_IMMEDIATELY.0 } else { 0 };
    LockRange {
        offset: lock.offset_bytes,
        length: lock.length_bytes,
        flags: LockFlags(kind.0 | at_once),
    }
}

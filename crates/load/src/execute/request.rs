//! A step's request as a message: what the workload says in MS-SMB2's terms.

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
use crate::workload::{Create, LockKind, Op, Plan, Request, SetInfo, Times};
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
            let path: Arc<str> = plan.path(create.path).into();
            let number = session.next_handle();
            let state = if acquires {
                LeaseState(LeaseState::READ.0 | LeaseState::HANDLE.0)
            } else {
                create.lease
            };
            let directory = create.options.contains(CreateOptions::DIRECTORY_FILE);
            let state = match state {
                // Only an open with a lease carries the key of its folder's, without which the
                // client's own changes would break that.
                LeaseState::NONE if !directory && session.leases.holds_parent(&path) => {
                    LeaseState(LeaseState::READ.0 | LeaseState::HANDLE.0)
                }
                state => state,
            };
            // The handle that is kept serves listings and notifications, whoever opened it first.
            let access = if acquires { create.access.0 | LIST_DIRECTORY } else { create.access.0 };
            let wish = wish(session, &path, state, create.oplock);
            let body = create_body(&path, create, AccessMask(access), wish);
            let ask = Ask { path: Some(shown(&path)), handle: Some(number), ..Ask::default() };
            let id = session.add(0, related, &body, ask);
            if let Some(handle) = self.handle_mut(request.slot) {
                // Related members of the compound name it before the reply is there.
                let claim = Claim::of(create, AccessMask(access), wish);
                *handle = Handle::Open(Opened { file_id: FileId::ANY, path, number, claim });
            }
            return Some(id);
        }
        let opened = match self.handles.get(usize::from(request.slot?.0))? {
            Handle::Open(opened) | Handle::Cached(Some(opened)) => opened.clone(),
            Handle::Closed | Handle::Cached(None) => return None,
        };
        let file_id = if related { FileId::ANY } else { opened.file_id };
        let ask = Ask {
            payload_bytes: payload(request),
            path: Some(shown(&opened.path)),
            handle: Some(opened.number),
            waits: matches!(request.op, Op::ChangeNotify(_)),
            ..Ask::default()
        };
        Some(match &request.op {
            Op::Close { post_query } => {
                let flags = if *post_query { CloseFlags::POSTQUERY_ATTRIB } else { CloseFlags(0) };
                session.add(0, related, &encode::Close { file_id, flags }, ask)
            }
            Op::Flush => session.add(0, related, &encode::Flush { file_id }, ask),
            Op::Lock(lock) => {
                let kind = match lock.kind {
                    LockKind::Shared => LockFlags::SHARED_LOCK,
                    LockKind::Exclusive => LockFlags::EXCLUSIVE_LOCK,
                    LockKind::Unlock => LockFlags::UNLOCK,
                };
                let at_once = if lock.fail_immediately { LockFlags::FAIL_IMMEDIATELY.0 } else { 0 };
                let range = LockRange {
                    offset: lock.offset_bytes,
                    length: lock.length_bytes,
                    flags: LockFlags(kind.0 | at_once),
                };
                let body = encode::Locks { file_id, sequence: 0, ranges: &[range] };
                session.add(0, related, &body, ask)
            }
            Op::Ioctl(ioctl) => {
                let mut whole = [0; 16];
                whole[8..].copy_from_slice(&i64::MAX.to_le_bytes());
                let input: &[u8] = match ioctl.code {
                    Fsctl::QUERY_ALLOCATED_RANGES => &whole,
                    _ => &[],
                };
                let (code, output_bytes) = (ioctl.code, ioctl.output_bytes);
                session.add(0, related, &encode::Ioctl { file_id, code, input, output_bytes }, ask)
            }
            Op::QueryDirectory(query) => {
                let mut flags = 0;
                if query.restart {
                    flags |= QueryDirectoryFlags::RESTART_SCANS.0;
                }
                if query.single {
                    flags |= QueryDirectoryFlags::RETURN_SINGLE_ENTRY.0;
                }
                let body = encode::QueryDirectory {
                    file_id,
                    info_class: query.class,
                    flags: QueryDirectoryFlags(flags),
                    pattern: plan.path(query.pattern),
                    output_bytes: query.output_bytes,
                };
                session.add(0, related, &body, ask)
            }
            Op::QueryInfo(query) => {
                let body = encode::QueryInfo {
                    file_id,
                    info_type: query.info_type,
                    info_class: query.class,
                    additional_information: query.security.0,
                    output_bytes: query.output_bytes,
                };
                session.add(0, related, &body, ask)
            }
            Op::SetInfo(set) => add_set(session, plan, set, file_id, related, ask),
            Op::ChangeNotify(notify) => {
                let flags =
                    if notify.tree { ChangeNotifyFlags::WATCH_TREE } else { ChangeNotifyFlags(0) };
                let body = encode::ChangeNotify {
                    file_id,
                    flags,
                    filter: notify.filter,
                    output_bytes: notify.output_bytes,
                };
                session.add(0, related, &body, ask)
            }
            Op::Create(_) | Op::Read(_) | Op::Write(_) | Op::Cancel { .. } => return None,
        })
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

/// What an open asks for beside access: a lease where the session has them, else its oplock.
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

/// SET_INFO with what MS-FSCC lays out for its class (sections 2.4.4, 2.4.7, 2.4.11, 2.4.13).
fn add_set(
    session: &mut Session,
    plan: &Plan,
    set: &SetInfo,
    file_id: FileId,
    related: bool,
    ask: Ask,
) -> u64 {
    let mut data = [0; 40];
    let (class, length) = match set {
        SetInfo::Rename { to, replace } => {
            let body = encode::Rename { file_id, name: plan.path(*to), replace: *replace };
            return session.add(0, related, &body, ask);
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
    session.add(0, related, &body, ask)
}

//! Doing one planned execution of a scenario: the steps become messages, in order.
//!
//! Owns the open handles of an execution, the notifications that it left waiting, and the
//! directories that the client keeps open under a lease. What is sent says `workload`; how, says
//! `client`. After an unexpected answer the rest of the scenario is left out and what is open is
//! closed, so that the next one begins from a known state.

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
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::smb2::{Dialect, FileId};
use smbscope_wire::status::Status;

use crate::client::{Ask, ClientError, Reply, Session};
use crate::fileset::content;
use crate::stats::{self, Failure};
use crate::workload::{
    ClientCache, Expect, LockKind, Op, Plan, Request, SetInfo, Slot, Step, Times, Transfer,
};

/// FILE_LIST_DIRECTORY (MS-SMB2 section 2.2.13.1.2).
const LIST_DIRECTORY: u32 = 0x0000_0001;

/// How an execution ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Operations sent.
    pub operations: u64,
    /// Operations that the client's cache made needless.
    pub saved: u64,
    /// Operations that ended otherwise than the workload expects.
    pub errors: u64,
    /// The first unexpected status, and what was being done.
    pub trouble: Option<Trouble>,
}

/// An unexpected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The status, or what else was wrong.
    pub failure: Failure,
    /// The step.
    pub action: String,
    /// The path.
    pub path: String,
}

/// A file or directory that is open.
#[derive(Clone, Debug)]
struct Opened {
    file_id: FileId,
    path: Arc<str>,
    number: u64,
}

/// What a handle of the scenario stands for.
#[derive(Clone, Debug, Default)]
enum Handle {
    /// Not open.
    #[default]
    Closed,
    /// Opened by this execution.
    Open(Opened),
    /// The client's cache answers for it; queries go to the handle that it keeps, if any.
    Cached(Option<Opened>),
}

/// A notification that was left waiting.
#[derive(Clone, Debug)]
struct Waiting {
    id: u64,
    expect: Expect,
    path: Arc<str>,
    done: bool,
}

/// Does one user's executions, one after another.
#[derive(Debug, Default)]
pub struct Performer {
    cache: ClientCache,
    handles: Vec<Handle>,
    notifications: Vec<Option<Waiting>>,
    /// Directories that are kept open under their lease.
    kept: Vec<Opened>,
    outcome: Outcome,
}

/// A request that was sent and whose reply is due.
struct Sent {
    channel: usize,
    id: u64,
    /// Place in the step.
    place: usize,
}

impl Performer {
    /// A performer for one user.
    pub fn new(cache: ClientCache) -> Performer {
        Performer { cache, ..Performer::default() }
    }

    /// Directories that the client keeps open under a lease.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The session is another one now: nothing is open any more.
    pub fn forget(&mut self) {
        self.handles.clear();
        self.notifications.clear();
        self.kept.clear();
    }

    /// What an execution had done that was broken off.
    pub fn broken_off(&mut self) -> Outcome {
        std::mem::take(&mut self.outcome)
    }

    /// Closes directories whose lease was broken. To be called between executions.
    pub async fn maintain(&mut self, session: &mut Session) -> Result<(), ClientError> {
        session.answer_breaks().await?;
        let mut place = 0;
        while let Some(kept) = self.kept.get(place) {
            if session.leases.caches_directory(&kept.path) {
                place += 1;
                continue;
            }
            let kept = self.kept.swap_remove(place);
            close(session, &kept, false).await?;
            session.leases.released(&kept.path);
        }
        Ok(())
    }

    /// Does one execution. An error is the connection's; the session is of no use after it.
    pub async fn perform(
        &mut self,
        session: &mut Session,
        plan: &Plan,
    ) -> Result<Outcome, ClientError> {
        let scenario = plan.scenario();
        self.outcome = Outcome::default();
        self.handles.clear();
        self.handles.resize(scenario.handles.len(), Handle::Closed);
        self.notifications.clear();
        self.notifications.resize(scenario.notifications.len(), None);
        for step in &scenario.steps {
            self.step(session, plan, step).await?;
            if self.outcome.trouble.is_some() {
                break;
            }
        }
        self.tidy(session).await?;
        Ok(std::mem::take(&mut self.outcome))
    }

    async fn step(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        step: &Step,
    ) -> Result<(), ClientError> {
        for slot in &step.wait {
            self.await_notification(session, usize::from(slot.0), &step.action).await?;
        }
        match step.requests.as_slice() {
            [Request { op: Op::Read(transfer), slot, expect, .. }] => {
                self.transfer(session, plan, step, transfer, *slot, expect, false).await
            }
            [Request { op: Op::Write(transfer), slot, expect, .. }] => {
                self.transfer(session, plan, step, transfer, *slot, expect, true).await
            }
            [Request { op: Op::Cancel { notification }, .. }] => {
                self.cancel(session, usize::from(notification.0)).await
            }
            _ => self.chain(session, plan, step).await,
        }
    }

    /// Sends a single request or a compound, and takes the replies.
    async fn chain(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        step: &Step,
    ) -> Result<(), ClientError> {
        let acquires = self.cache == ClientCache::DirLease
            && session.directory_leases()
            && plan.scenario().may_acquire(step);
        let credits: u32 =
            step.requests.iter().map(|request| session.channel().charge(payload(request))).sum();
        session.channel().have_credits(credits).await?;
        let mut sent = Vec::with_capacity(step.requests.len());
        for (place, request) in step.requests.iter().enumerate() {
            if self.is_saved(session, plan, request) {
                self.outcome.saved += 1;
                continue;
            }
            let related = !sent.is_empty();
            let Some(id) = self.add(session, plan, request, related, acquires) else {
                self.trouble(Failure::Trouble(stats::Trouble::Client), step, plan, request);
                break;
            };
            self.outcome.operations += 1;
            if let Op::ChangeNotify(notify) = &request.op {
                let path = self.path_of(plan, request);
                let waiting = Waiting { id, expect: request.expect, path, done: false };
                if let Some(place) = self.notifications.get_mut(usize::from(notify.notification.0))
                {
                    *place = Some(waiting);
                }
            } else {
                sent.push(Sent { channel: 0, id, place });
                continue;
            }
            // A notification's reply is not waited for here, but what follows it is related to it.
            sent.push(Sent { channel: 0, id, place: usize::MAX });
        }
        if sent.is_empty() {
            return Ok(());
        }
        session.channel().send().await?;
        for sent in sent.into_iter().filter(|sent| sent.place != usize::MAX) {
            let reply = session.wait(sent.channel, sent.id).await?;
            let Some(request) = step.requests.get(sent.place) else { continue };
            if let Op::Create(_) = request.op {
                // Without its file id the rest of the scenario would work on nothing.
                let _ = reply.opened()?;
            }
            self.answered(session, plan, request, &reply, acquires);
            if !request.expect.holds(reply.status) {
                self.trouble(Failure::Status(reply.status.0), step, plan, request);
            }
        }
        Ok(())
    }

    /// Whether the client's cache answers a request, so that it is not sent.
    fn is_saved(&mut self, session: &Session, plan: &Plan, request: &Request) -> bool {
        let slot = request.slot.map(|slot| usize::from(slot.0));
        match self.cache {
            ClientCache::Published => false,
            ClientCache::Collapse => request.collapse,
            ClientCache::DirLease => {
                let Some(lease) = request.lease else { return false };
                let directory = plan.path(lease);
                if let Op::Create(create) = &request.op {
                    if !session.leases.caches_directory(directory) {
                        return false;
                    }
                    let path = plan.path(create.path);
                    let kept = self.kept.iter().find(|kept| same_path(&kept.path, path)).cloned();
                    if kept.is_none() && same_path(path, directory) {
                        return false;
                    }
                    if let Some(handle) = slot.and_then(|slot| self.handles.get_mut(slot)) {
                        *handle = Handle::Cached(kept);
                    }
                    return true;
                }
                match slot.and_then(|slot| self.handles.get_mut(slot)) {
                    Some(Handle::Cached(_)) => true,
                    // The handle that the lease was acquired with stays open instead.
                    Some(handle @ Handle::Open(_)) if matches!(request.op, Op::Close { .. }) => {
                        let Handle::Open(opened) = &*handle else { return false };
                        let file_id = opened.file_id;
                        let kept = self.kept.iter().any(|kept| kept.file_id == file_id);
                        if kept {
                            *handle = Handle::Closed;
                        }
                        kept
                    }
                    _ => false,
                }
            }
        }
    }

    /// Appends a request to the frame; `None` when its handle is not open.
    fn add(
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
            let body = encode::Create {
                name: &path,
                desired_access: AccessMask(access),
                file_attributes: create.attributes,
                share_access: create.share,
                disposition: create.disposition,
                options: create.options,
                oplock: create.oplock,
                wish,
            };
            let ask = Ask { path: Some(shown(&path)), handle: Some(number), ..Ask::default() };
            let id = session.add(0, related, &body, ask);
            if let Some(handle) = self.handle_mut(request.slot) {
                // Related members of the compound name it before the reply is there.
                *handle = Handle::Open(Opened { file_id: FileId::ANY, path, number });
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

    /// Takes what a reply changes.
    fn answered(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        request: &Request,
        reply: &Reply,
        acquires: bool,
    ) {
        match &request.op {
            Op::Create(create) => {
                let path: Arc<str> = plan.path(create.path).into();
                let Some(open) = reply.open else {
                    if let Some(handle) = self.handle_mut(request.slot) {
                        *handle = Handle::Closed;
                    }
                    return;
                };
                if let Some(lease) = &open.lease {
                    let kept = acquires && open.directory;
                    session.leases.granted(&path, lease, kept);
                }
                // A Create that was to fail and did not: it is closed with the rest.
                let place = match request.slot {
                    Some(slot) => usize::from(slot.0),
                    None => {
                        self.handles.push(Handle::Closed);
                        self.handles.len() - 1
                    }
                };
                let number = match self.handles.get(place) {
                    Some(Handle::Open(opened)) => opened.number,
                    _ => session.next_handle(),
                };
                let opened = Opened { file_id: open.file_id, path, number };
                if acquires && session.leases.caches_directory(&opened.path) {
                    self.kept.push(opened.clone());
                }
                if let Some(handle) = self.handles.get_mut(place) {
                    *handle = Handle::Open(opened);
                }
            }
            Op::SetInfo(SetInfo::Rename { to, .. }) if reply.status == Status::SUCCESS => {
                let path: Arc<str> = plan.path(*to).into();
                if let Some(Handle::Open(opened)) = self.handle_mut(request.slot) {
                    opened.path = path;
                }
            }
            Op::Close { .. } => {
                let Some(handle) = self.handle_mut(request.slot) else { return };
                if let Handle::Open(opened) = std::mem::take(handle) {
                    self.closed(session, &opened);
                }
            }
            _ => {}
        }
    }

    /// A handle was closed: with the last one of its path its lease ends.
    fn closed(&mut self, session: &mut Session, opened: &Opened) {
        let open = |handle: &Handle| match handle {
            Handle::Open(other) => same_path(&other.path, &opened.path),
            _ => false,
        };
        let kept = self.kept.iter().any(|kept| same_path(&kept.path, &opened.path));
        if !kept && !self.handles.iter().any(open) {
            session.leases.released(&opened.path);
        }
    }

    /// Reads or writes a file, several requests at a time, over all connections in turn.
    #[allow(clippy::too_many_arguments)]
    async fn transfer(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        step: &Step,
        transfer: &Transfer,
        slot: Option<Slot>,
        expect: &Expect,
        write: bool,
    ) -> Result<(), ClientError> {
        let opened = match self.handle_mut(slot) {
            Some(Handle::Open(opened)) => opened.clone(),
            _ => {
                if let Some(request) = step.requests.first() {
                    self.trouble(Failure::Trouble(stats::Trouble::Client), step, plan, request);
                }
                return Ok(());
            }
        };
        let negotiated = session.negotiated();
        let largest =
            if write { negotiated.max_write_bytes } else { negotiated.max_read_bytes }.max(1);
        // Without large MTU a message carries 64 KiB at most (MS-SMB2 section 3.2.4.6).
        let largest = if session.channel().large_mtu { largest } else { largest.min(65_536) };
        let block = transfer.block_bytes.min(largest);
        let dialect = session.negotiated().dialect;
        let amount = plan.amount(transfer);
        let amount =
            crate::workload::Amount { requests: amount.bytes.div_ceil(u64::from(block)), ..amount };
        let file = *plan.file(transfer.file);
        let path = shown(&opened.path);
        let mut data = Vec::new();
        let mut flying: std::collections::VecDeque<(usize, u64, u32)> = Default::default();
        let channels = session.channels().len();
        let depth = usize::from(transfer.depth.max(1)) * channels;
        let mut blocks = amount.blocks(block).enumerate();
        let mut trouble = None;
        loop {
            while flying.len() < depth
                && trouble.is_none()
                && let Some((number, (offset, length))) = blocks.next()
            {
                let channel = number % channels;
                let credits = session.channel().charge(length);
                if !flying.is_empty() && !session.has_credits(channel, credits) {
                    // Replies bring credits; this block is next after one came.
                    let Some((channel, id, length)) = flying.pop_front() else { break };
                    let reply = session.wait(channel, id).await?;
                    trouble = trouble.or(self.moved(&reply, length, expect));
                }
                session.have_credits(channel, credits).await?;
                let ask = Ask {
                    payload_bytes: length,
                    path: Some(path.clone()),
                    handle: Some(opened.number),
                    ..Ask::default()
                };
                let id = if write {
                    data.resize(length as usize, 0);
                    content(&file, offset, &mut data);
                    let mut flags = 0;
                    if transfer.write_through && dialect >= Dialect::SMB_2_1 {
                        flags |= WriteFlags::WRITE_THROUGH.0;
                    }
                    if transfer.unbuffered && dialect >= Dialect::SMB_3_0_2 {
                        flags |= WriteFlags::UNBUFFERED.0;
                    }
                    let (file_id, flags) = (opened.file_id, WriteFlags(flags));
                    let body = encode::Write { file_id, offset, flags, data: &data };
                    session.add(channel, false, &body, ask)
                } else {
                    let unbuffered = transfer.unbuffered && dialect >= Dialect::SMB_3_0_2;
                    let flags = if unbuffered { ReadFlags::UNBUFFERED } else { ReadFlags(0) };
                    let body = encode::Read { file_id: opened.file_id, offset, length, flags };
                    session.add(channel, false, &body, ask)
                };
                session.send(channel).await?;
                self.outcome.operations += 1;
                flying.push_back((channel, id, length));
            }
            let Some((channel, id, length)) = flying.pop_front() else { break };
            let reply = session.wait(channel, id).await?;
            trouble = trouble.or(self.moved(&reply, length, expect));
        }
        if let (Some(failure), Some(request)) = (trouble, step.requests.first()) {
            self.trouble(failure, step, plan, request);
        }
        Ok(())
    }

    /// What is wrong with the reply to a block.
    fn moved(&self, reply: &Reply, length: u32, expect: &Expect) -> Option<Failure> {
        if !expect.holds(reply.status) {
            return Some(Failure::Status(reply.status.0));
        }
        let short = reply.status == Status::SUCCESS && reply.transferred != length;
        short.then_some(Failure::Trouble(stats::Trouble::Short))
    }

    /// Cancels a notification, once the server has it.
    async fn cancel(&mut self, session: &mut Session, place: usize) -> Result<(), ClientError> {
        let Some(Some(waiting)) = self.notifications.get(place) else { return Ok(()) };
        let id = waiting.id;
        while !session.channel().is_pending_at_server(id) {
            session.receive().await?;
        }
        // Answered already: there is nothing to cancel, and the status tells.
        if session.cancel(id).await? {
            self.outcome.operations += 1;
        }
        Ok(())
    }

    async fn await_notification(
        &mut self,
        session: &mut Session,
        place: usize,
        action: &str,
    ) -> Result<(), ClientError> {
        let Some(Some(waiting)) = self.notifications.get_mut(place) else { return Ok(()) };
        if std::mem::replace(&mut waiting.done, true) {
            return Ok(());
        }
        let (id, expect, path) = (waiting.id, waiting.expect, waiting.path.clone());
        let reply = session.wait(0, id).await?;
        if !expect.holds(reply.status) {
            self.outcome.errors += 1;
            self.outcome.trouble.get_or_insert_with(|| Trouble {
                failure: Failure::Status(reply.status.0),
                action: action.to_owned(),
                path: path.to_string(),
            });
        }
        Ok(())
    }

    /// Ends what is left of an execution: handles of one that failed, and all notifications.
    async fn tidy(&mut self, session: &mut Session) -> Result<(), ClientError> {
        for place in 0..self.handles.len() {
            let handle = self.handles.get_mut(place).map(std::mem::take);
            if let Some(Handle::Open(opened)) = handle
                && opened.file_id != FileId::ANY
                && !self.kept.iter().any(|kept| kept.file_id == opened.file_id)
            {
                close(session, &opened, false).await?;
                self.outcome.operations += 1;
                self.closed(session, &opened);
            }
        }
        for place in 0..self.notifications.len() {
            let failed = self.outcome.trouble.is_some();
            if failed {
                self.cancel(session, place).await?;
                // How a notification of a failed execution ends is of no interest.
                if let Some(Some(waiting)) = self.notifications.get_mut(place)
                    && !std::mem::replace(&mut waiting.done, true)
                {
                    let id = waiting.id;
                    session.wait(0, id).await?;
                }
            } else {
                self.await_notification(session, place, "end of the scenario").await?;
            }
        }
        Ok(())
    }

    fn handle_mut(&mut self, slot: Option<Slot>) -> Option<&mut Handle> {
        self.handles.get_mut(usize::from(slot?.0))
    }

    fn path_of(&self, plan: &Plan, request: &Request) -> Arc<str> {
        if let Op::Create(create) = &request.op {
            return plan.path(create.path).into();
        }
        let handle = request.slot.and_then(|slot| self.handles.get(usize::from(slot.0)));
        match handle {
            Some(Handle::Open(opened) | Handle::Cached(Some(opened))) => opened.path.clone(),
            _ => "".into(),
        }
    }

    fn trouble(&mut self, failure: Failure, step: &Step, plan: &Plan, request: &Request) {
        self.outcome.errors += 1;
        if self.outcome.trouble.is_none() {
            let path = self.path_of(plan, request).to_string();
            self.outcome.trouble = Some(Trouble { failure, action: step.action.clone(), path });
        }
    }
}

/// Bytes that a request or its reply may carry, for the credits.
fn payload(request: &Request) -> u32 {
    match &request.op {
        Op::QueryDirectory(query) => query.output_bytes,
        Op::QueryInfo(query) => query.output_bytes,
        Op::Ioctl(ioctl) => ioctl.output_bytes,
        Op::ChangeNotify(notify) => notify.output_bytes,
        _ => 0,
    }
}

/// The path as rows have it: the share's root has a name too.
fn shown(path: &Arc<str>) -> Arc<str> {
    if path.is_empty() { "\\".into() } else { path.clone() }
}

fn same_path(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
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

async fn close(
    session: &mut Session,
    opened: &Opened,
    post_query: bool,
) -> Result<Reply, ClientError> {
    let flags = if post_query { CloseFlags::POSTQUERY_ATTRIB } else { CloseFlags(0) };
    let ask =
        Ask { path: Some(shown(&opened.path)), handle: Some(opened.number), ..Ask::default() };
    session.call(&encode::Close { file_id: opened.file_id, flags }, ask).await
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

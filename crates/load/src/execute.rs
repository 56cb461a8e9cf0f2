//! Executes a planned scenario: the steps become messages, in order.
//!
//! Owns the open handles of an execution, the notifications that it left waiting, and the directories
//! that the client keeps open under a lease. `workload` defines what is sent; `client` defines how.
//! After an unexpected answer the rest of the scenario is left out and open handles are closed, so that
//! the next one begins from a known state.

mod chain;
mod request;
mod resume;
mod transfer;

use std::sync::Arc;

use resume::Claim;
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::encode;
use smbscope_wire::status::Status;
use transfer::Job;

use crate::stats::Failure;
use crate::workload::{ClientCache, Expect, Op, Plan, Request, SetInfo, Slot, Step};
use smbscope_client::{Ask, ClientError, Reply, Session};

/// How an execution ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Operations sent.
    pub operations: u64,
    /// Operations that the client's cache made unnecessary.
    pub saved: u64,
    /// Operations with a result that the workload does not expect.
    pub errors: u64,
    /// Durable opens that were reclaimed after a lost connection.
    pub resumed: u64,
    /// The first unexpected status, and what was being done.
    pub failed: Option<FailedRequest>,
    /// Unexpected replies after which real clients continue, and so does the scenario.
    pub ignored: Vec<FailedRequest>,
}

/// An unexpected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRequest {
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
    /// How it can be reclaimed over another connection; `None` if it is not durable.
    claim: Option<Box<Claim>>,
}

/// What a handle of the scenario represents.
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
    /// Whether the client is done with it: its Cancel was sent, unless it was answered before.
    cancelled: bool,
    done: bool,
}

/// Executes one user's scenarios, one after another.
#[derive(Debug, Default)]
pub struct Performer {
    cache: ClientCache,
    handles: Vec<Handle>,
    notifications: Vec<Option<Waiting>>,
    /// Directories that are kept open under their lease.
    kept: Vec<Opened>,
    /// Index of the current step.
    at: usize,
    outcome: Outcome,
}

/// A request that was sent and whose reply is pending.
struct Sent {
    channel: usize,
    id: u64,
    /// Index in the step.
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

    /// The session is gone: nothing is open any more.
    pub fn forget(&mut self) {
        self.handles.clear();
        self.notifications.clear();
        self.kept.clear();
    }

    /// The outcome so far of an execution that was broken off.
    pub fn broken_off(&mut self) -> Outcome {
        std::mem::take(&mut self.outcome)
    }

    /// Closes directories whose lease was broken. Call it between executions.
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

    /// Does one execution. An error is the connection's; the session cannot be used after it, but the
    /// execution may continue in another one ([`Performer::may_resume`]).
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
        self.at = 0;
        self.continue_after(session, plan).await
    }

    async fn continue_after(
        &mut self,
        session: &mut Session,
        plan: &Plan,
    ) -> Result<Outcome, ClientError> {
        while let Some(step) = plan.scenario().steps.get(self.at)
            && self.outcome.failed.is_none()
        {
            self.step(session, plan, step).await?;
            self.at += 1;
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
                let job = Job { plan, step, transfer, expect, write: false };
                self.transfer(session, job, *slot).await
            }
            [Request { op: Op::Write(transfer), slot, expect, .. }] => {
                let job = Job { plan, step, transfer, expect, write: true };
                self.transfer(session, job, *slot).await
            }
            [Request { op: Op::Cancel { notification }, .. }] => {
                self.cancel(session, usize::from(notification.0)).await
            }
            _ => self.chain(session, plan, step).await,
        }
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

    /// Applies the changes that a reply brings.
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
                // A Create that should have failed succeeded: its handle is closed with the others.
                let place = match request.slot {
                    Some(slot) => usize::from(slot.0),
                    None => {
                        self.handles.push(Handle::Closed);
                        self.handles.len() - 1
                    }
                };
                let (number, claim) = match self.handles.get_mut(place) {
                    Some(Handle::Open(opened)) => (opened.number, opened.claim.take()),
                    _ => (session.next_handle(), None),
                };
                let claim = claim.filter(|_| open.durable);
                let opened = Opened { file_id: open.file_id, path, number, claim };
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

    /// A handle was closed: closing the last one of its path ends its lease.
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
            let failed = self.outcome.failed.is_some();
            if failed {
                self.cancel(session, place).await?;
                // How a notification of a failed execution ends does not matter.
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

    fn fail(&mut self, failure: Failure, step: &Step, plan: &Plan, request: &Request) {
        self.outcome.errors += 1;
        if self.outcome.failed.is_none() {
            let path = self.path_of(plan, request).to_string();
            self.outcome.failed =
                Some(FailedRequest { failure, action: step.action.clone(), path });
        }
    }
}

/// The path as in rows: the share's root has a name too.
fn shown(path: &Arc<str>) -> Arc<str> {
    if path.is_empty() { "\\".into() } else { path.clone() }
}

fn same_path(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
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

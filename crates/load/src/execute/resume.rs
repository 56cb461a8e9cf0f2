//! Resumes an execution after a lost connection: durable opens are reclaimed, and the interrupted step
//! is repeated.
//!
//! MS-SMB2 sections 3.2.4.4 and 3.2.5.7.2 to 3.2.5.7.4. Only opens survive: anything else that the
//! execution needs (a waiting notification, a directory that is held open) ends it as if there were no
//! durable handles.

use std::sync::Arc;

use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::AccessMask;
use smbscope_wire::smb2::create_context::DurableFlags;
use smbscope_wire::smb2::encode::{DurableWish, OpenWish};
use smbscope_wire::status::Status;

use super::request::create_body;
use super::{FailedRequest, Handle, Opened, Outcome, Performer, shown};
use crate::stats::Failure;
use crate::workload::{Create, Op, Plan, Request};
use smbscope_client::{Ask, ClientError, Session};

/// The data that reclaims a durable open.
#[derive(Clone, Debug)]
pub struct Claim {
    create: Create,
    access: AccessMask,
    wish: OpenWish,
}

impl Claim {
    /// For a Create that requests a durable open.
    pub(super) fn if_durable(
        create: &Create,
        access: AccessMask,
        wish: OpenWish,
    ) -> Option<Box<Claim>> {
        wish.durable.is_some().then(|| Box::new(Claim { create: *create, access, wish }))
    }

    /// The contexts that reclaim the open.
    fn reconnect(&self, file_id: FileId) -> OpenWish {
        let durable = match self.wish.durable {
            Some(DurableWish::V2 { create_guid, .. }) => {
                DurableWish::V2Reconnect { file_id, create_guid, flags: DurableFlags(0) }
            }
            _ => DurableWish::V1Reconnect(file_id),
        };
        OpenWish { lease: self.wish.lease, durable: Some(durable), ..OpenWish::default() }
    }
}

impl Performer {
    /// Whether the interrupted execution can continue over another connection.
    pub fn may_resume(&self) -> bool {
        let mut durable = 0;
        for handle in &self.handles {
            match handle {
                Handle::Closed => {}
                // Its Create was interrupted too, and is repeated.
                Handle::Open(opened) if opened.file_id == FileId::ANY => {}
                Handle::Open(Opened { claim: Some(_), .. }) => durable += 1,
                Handle::Open(_) | Handle::Cached(_) => return false,
            }
        }
        let waits = self.notifications.iter().flatten().any(|waiting| !waiting.done);
        durable > 0 && !waits && self.outcome.failed.is_none()
    }

    /// Reclaims the durable opens in a new session, and continues the execution from the interrupted step.
    pub async fn resume(
        &mut self,
        session: &mut Session,
        plan: &Plan,
    ) -> Result<Outcome, ClientError> {
        // A Close that was interrupted may have reached the server.
        let closing = match plan.scenario().steps.get(self.at).map(|step| &step.requests[..]) {
            Some([Request { op: Op::Close { .. }, slot: Some(slot), .. }]) => {
                Some(usize::from(slot.0))
            }
            _ => None,
        };
        for place in 0..self.handles.len() {
            // Reclaimed opens stay in their place if the connection is lost once more.
            let Some(Handle::Open(opened)) = self.handles.get(place).cloned() else { continue };
            let taken_up = self.take_up(session, opened, closing == Some(place)).await?;
            if taken_up.is_none() && closing == Some(place) {
                self.at += 1;
            }
            if let Some(handle) = self.handles.get_mut(place) {
                *handle = taken_up.map_or(Handle::Closed, Handle::Open);
            }
        }
        self.continue_after(session, plan).await
    }

    async fn take_up(
        &mut self,
        session: &mut Session,
        opened: Opened,
        closing: bool,
    ) -> Result<Option<Opened>, ClientError> {
        let Some(claim) = opened.claim.as_ref().filter(|_| opened.file_id != FileId::ANY) else {
            return Ok(None);
        };
        let path: &Arc<str> = &opened.path;
        let wish = claim.reconnect(opened.file_id);
        let body = create_body(path, &claim.create, claim.access, wish);
        let ask = Ask { path: Some(shown(path)), handle: Some(opened.number), ..Ask::default() };
        let reply = session.call(&body, ask).await?;
        self.outcome.operations += 1;
        if let (Status::SUCCESS, Some(open)) = (reply.status, reply.open) {
            self.outcome.resumed += 1;
            if let Some(lease) = &open.lease {
                session.leases.granted(path, lease, false);
            }
            return Ok(Some(Opened { file_id: open.file_id, ..opened }));
        }
        if closing && reply.status.is_absent() {
            return Ok(None);
        }
        self.outcome.errors += 1;
        self.outcome.failed.get_or_insert_with(|| FailedRequest {
            failure: Failure::Status(reply.status.0),
            action: "reconnect the durable open".into(),
            path: path.to_string(),
        });
        Ok(None)
    }
}

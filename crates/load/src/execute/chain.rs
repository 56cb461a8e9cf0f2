//! A step's requests on the wire: as a compound or one by one, and what their replies mean.
//!
//! Owns which unexpected replies a scenario survives: those after which Explorer, Word and cmd continue too.

use std::ops::Range;

use smbscope_client::{ClientError, Compounds, Session};
use smbscope_wire::smb2::create::CreateDisposition;
use smbscope_wire::status::Status;

use super::request::payload;
use super::{FailedRequest, Handle, Performer, Sent, Waiting};
use crate::stats::{self, Failure};
use crate::workload::{ClientCache, Op, Plan, Request, Step};

impl Performer {
    /// Sends a single request or a compound, and takes the replies.
    pub(super) async fn chain(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        step: &Step,
    ) -> Result<(), ClientError> {
        let acquires = self.cache == ClientCache::DirLease
            && session.directory_leases()
            && plan.scenario().may_acquire(step);
        let whole = match session.host().config.compounds {
            Compounds::All => true,
            // With a cache that may answer the Create, the compound might begin with something else.
            Compounds::Opening => {
                self.cache == ClientCache::Published
                    && matches!(step.requests.first(), Some(Request { op: Op::Create(_), .. }))
            }
            Compounds::Off => false,
        };
        if whole {
            return self.exchange(session, plan, step, 0..step.requests.len(), acquires).await;
        }
        for place in 0..step.requests.len() {
            // What follows a Create that failed is related to nothing.
            let related = step.requests.get(place).and_then(|request| request.slot);
            let without_open = place > 0
                && related.is_some_and(|slot| {
                    matches!(self.handles.get(usize::from(slot.0)), None | Some(Handle::Closed))
                });
            let creates =
                matches!(step.requests.get(place), Some(Request { op: Op::Create(_), .. }));
            if self.outcome.failed.is_some() || without_open && !creates {
                break;
            }
            self.exchange(session, plan, step, place..place + 1, acquires).await?;
        }
        Ok(())
    }

    /// Sends some of a step's requests, several as a compound, and takes the replies.
    async fn exchange(
        &mut self,
        session: &mut Session,
        plan: &Plan,
        step: &Step,
        places: Range<usize>,
        acquires: bool,
    ) -> Result<(), ClientError> {
        let requests = step.requests.get(places.clone()).unwrap_or_default();
        let credits: u32 =
            requests.iter().map(|request| session.channel().charge(payload(request))).sum();
        session.channel().have_credits(credits).await?;
        let mut sent = Vec::with_capacity(requests.len());
        for (place, request) in (places.start..).zip(requests) {
            if self.is_saved(session, plan, request) {
                self.outcome.saved += 1;
                continue;
            }
            let related = !sent.is_empty();
            let Some(id) = self.add(session, plan, request, related, acquires) else {
                self.fail(Failure::Other(stats::FailureKind::Client), step, plan, request);
                break;
            };
            self.outcome.operations += 1;
            if let Op::ChangeNotify(notify) = &request.op {
                let path = self.path_of(plan, request);
                let expect = request.expect;
                let waiting = Waiting { id, expect, path, cancelled: false, done: false };
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
            let failure = Failure::Status(reply.status.0);
            if request.expect.holds(reply.status) {
                continue;
            }
            if is_ignored(request, reply.status) {
                self.outcome.errors += 1;
                let path = self.path_of(plan, request).to_string();
                let action = step.action.clone();
                self.outcome.ignored.push(FailedRequest { failure, action, path });
            } else {
                self.fail(failure, step, plan, request);
            }
        }
        Ok(())
    }

    /// Cancels a notification, once the server has it.
    pub(super) async fn cancel(
        &mut self,
        session: &mut Session,
        place: usize,
    ) -> Result<(), ClientError> {
        let Some(Some(waiting)) = self.notifications.get(place) else { return Ok(()) };
        let id = waiting.id;
        while !session.channel().is_pending_at_server(id) {
            session.receive().await?;
        }
        // Answered already: there is nothing to cancel.
        let sent = session.cancel(id).await?;
        self.outcome.operations += u64::from(sent);
        if let Some(Some(waiting)) = self.notifications.get_mut(place) {
            waiting.cancelled = true;
        }
        Ok(())
    }

    pub(super) async fn await_notification(
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
        let cancelled = waiting.cancelled;
        let reply = session.wait(0, id).await?;
        let is_expected =
            expect.holds(reply.status) || (cancelled && ends_notification(reply.status));
        if !is_expected {
            self.outcome.errors += 1;
            if cancelled || is_unknown(reply.status) {
                let failure = Failure::Status(reply.status.0);
                let (action, path) = (action.to_owned(), path.to_string());
                self.outcome.ignored.push(FailedRequest { failure, action, path });
                return Ok(());
            }
            self.outcome.failed.get_or_insert_with(|| FailedRequest {
                failure: Failure::Status(reply.status.0),
                action: action.to_owned(),
                path: path.to_string(),
            });
        }
        Ok(())
    }
}

/// Whether Explorer, Word and cmd continue after this reply: a question that the server does not know, an
/// open of something that exists though it was thought not to, or an answer to a control code that other
/// servers refuse.
fn is_ignored(request: &Request, status: Status) -> bool {
    match &request.op {
        // Explorer shows the owner of a file, for example, only if it may read it.
        Op::QueryInfo(_) => is_unknown(status) || status == Status::ACCESS_DENIED,
        // ksmbd answers FSCTL_GET_REPARSE_POINT for plain files too, with the tag 0.
        Op::Ioctl(_) => is_unknown(status) || status == Status::SUCCESS,
        Op::Create(create) => {
            status == Status::SUCCESS && create.disposition == CreateDisposition::OPEN
        }
        _ => false,
    }
}

/// Whether a cancelled notification may end so: a Cancel is a request (MS-SMB2 section 3.3.5.16), so that a change
/// or the Close of the directory may be first.
fn ends_notification(status: Status) -> bool {
    matches!(
        status,
        Status::CANCELLED | Status::NOTIFY_CLEANUP | Status::NOTIFY_ENUM_DIR | Status::SUCCESS
    )
}

/// Whether the server does not know the request.
fn is_unknown(status: Status) -> bool {
    matches!(
        status,
        Status::NOT_SUPPORTED
            | Status::NOT_IMPLEMENTED
            | Status::INVALID_DEVICE_REQUEST
            | Status::INVALID_INFO_CLASS
    )
}

#[cfg(test)]
mod tests {
    use smbscope_wire::smb2::fsctl::Fsctl;

    use super::*;
    use crate::workload::{Expect, Ioctl, NotifySlot};

    #[test]
    fn a_close_or_a_change_may_end_a_cancelled_notification() {
        let ends = [Status::CANCELLED, Status::NOTIFY_CLEANUP, Status::NOTIFY_ENUM_DIR];
        assert!(ends.into_iter().all(ends_notification));
        assert!(!ends_notification(Status::ACCESS_DENIED));
    }

    #[test]
    fn a_control_code_that_succeeds_unexpectedly_is_survived() {
        let ioctl = Ioctl { code: Fsctl::GET_REPARSE_POINT, output_bytes: 16 };
        let expect = Expect::any_of(&[Status::NOT_FOUND]).unwrap_or(Expect::SUCCESS);
        let op = Op::Ioctl(ioctl);
        let request = Request { op, slot: None, expect, collapse: false, lease: None };
        for status in [Status::SUCCESS, Status::NOT_IMPLEMENTED] {
            assert!(is_ignored(&request, status), "{status:?}");
        }
        assert!(!is_ignored(&request, Status::ACCESS_DENIED));
        let cancelled = Request { op: Op::Cancel { notification: NotifySlot(0) }, ..request };
        assert!(!is_ignored(&cancelled, Status::SUCCESS));
    }
}

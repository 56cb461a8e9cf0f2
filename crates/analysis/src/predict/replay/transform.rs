//! Second stage of a replayed request: whether it is sent as it was, in other pieces, together with another or
//! not at all, and when.

use super::blocks::Resize;
use super::depth::Slot;
use super::protection::ProtectionChange;
use super::recorded::Recorded;
use super::request::Request;
use super::{PIECES, Replay};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    /// It is sent as it was.
    Unchanged,
    /// It is a part of the request before.
    Merged,
    /// It becomes this many requests.
    Split(u64),
    /// It joins the compound of the request before.
    Compounded,
    /// Its members are sent in this many messages, one after the other.
    Uncompounded(u64),
    /// It is sent and served at other times.
    Scheduled(Slot),
    /// It is not sent.
    Dropped,
}

impl Transform {
    /// Requests that it becomes; none where it is a part of another one or not sent.
    pub(super) fn requests(self) -> u64 {
        match self {
            Transform::Merged | Transform::Dropped => 0,
            Transform::Split(requests) => requests,
            _ => 1,
        }
    }
}

impl From<Resize> for Transform {
    fn from(resize: Resize) -> Transform {
        match resize {
            Resize::Unchanged => Transform::Unchanged,
            Resize::Merged => Transform::Merged,
            Resize::Split(requests) => Transform::Split(requests),
        }
    }
}

/// How and when a request is sent.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) transform: Transform,
    pub(super) at: i64,
    /// How much longer the client signs and encrypts before, and verifies and decrypts after, ns.
    pub(super) client_ns: (i64, i64),
}

impl Replay {
    #[inline]
    pub(super) fn send(
        &mut self,
        request: &Request,
        recorded: &Recorded,
        protection: Option<&ProtectionChange>,
    ) -> Option<Sent> {
        let (start, access) = (recorded.start, &recorded.access);
        let client = self.clients.get_mut(request.client as usize)?;
        let client_ns = protection.map_or((0, 0), ProtectionChange::client);
        let mut usual = client.send_time(start, client_ns.0);
        if let Some(link) = self.links.get_mut(request.link as usize)
            && let Some(at) = link.send_queued(request, start, usual)
        {
            usual = at;
        }
        let transform = match access {
            _ if request.answered >= request.members => Transform::Dropped,
            Some(access) if self.is_baseline || self.plan.is_other_blocks() => {
                self.blocks.resize(access, self.plan.block(access.kind)).into()
            }
            _ => Transform::Unchanged,
        };
        let transform = match (transform, self.plan.compound, access, self.plan.depth) {
            (Transform::Unchanged, _, Some(access), Some(depth)) => {
                self.depths.schedule(access, usual, depth).map_or(transform, Transform::Scheduled)
            }
            (Transform::Unchanged, Some(false), ..) if request.members > 1 => {
                self.chained += request.members - 1;
                Transform::Uncompounded(request.members.min(PIECES))
            }
            (Transform::Unchanged, Some(true), ..) if client.follows(request, start) => {
                self.chained += 1;
                Transform::Compounded
            }
            _ => transform,
        };
        let at = match transform {
            // At once after the pieces before.
            Transform::Merged | Transform::Compounded => client.last_then().unwrap_or(start),
            Transform::Scheduled(slot) => slot.sent,
            _ => usual,
        };
        Some(Sent { transform, at, client_ns })
    }
}

//! Third stage of a replayed request: what changes at the server, other than its slices. Waits for what is
//! shared, what must be stable, and signing and encryption.

use super::Replay;
use super::protection::ProtectionChange;
use super::recorded::Recorded;
use super::request::Request;
use super::transform::{Sent, Transform};

impl Replay {
    /// Another protection of its messages than in the recording.
    #[inline]
    pub(super) fn other_protection(&self, request: &Request) -> Option<ProtectionChange> {
        if !self.plan.is_other_protection() {
            return None;
        }
        let link = self.links.get(request.link as usize)?;
        ProtectionChange::from_plan(&self.plan, link.algorithms, request)
    }

    /// Gives what is saved, slices included, ns.
    #[inline]
    pub(super) fn change_server(
        &mut self,
        request: &Request,
        recorded: &mut Recorded,
        sent: &Sent,
        protection: Option<&ProtectionChange>,
    ) -> i64 {
        let Recorded { slices_ns, local_ns, time, protection_ns, serves_ns, .. } = recorded;
        let mut saved_ns = slices_ns.0 - slices_ns.1;
        if !self.plan.waits.is_empty() {
            // Each request has a number of its own, and each resource.
            let number = (request.start as u64).rotate_left(20) ^ u64::from(request.link);
            let waits = (0..).zip(&self.plan.waits);
            let more_ns = waits.map(|(place, wait)| wait.draw_ns(number.rotate_right(place))).sum();
            saved_ns += time.wait(more_ns);
        }
        if self.is_baseline || self.plan.is_other_durability() {
            let costs = &self.baseline.stable;
            let sent = (sent.at, sent.transform.requests());
            let change = self.durable.change(&self.plan, costs, request, *local_ns, sent);
            saved_ns += time.make_stable(&change);
        }
        if let Some(protection) = protection {
            let less_ns = protection.server(&self.plan, request, time, &mut self.protected);
            saved_ns += less_ns;
            *protection_ns = -less_ns;
            *serves_ns = protection.serves_ns(&self.plan, request);
            if request.execution.is_some() && sent.transform != Transform::Dropped {
                self.protected.add(-less_ns, sent.client_ns);
            }
        }
        saved_ns
    }
}

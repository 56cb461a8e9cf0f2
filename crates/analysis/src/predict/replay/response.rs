//! Last stages of a replayed request: what the network takes, when the reply comes, and where that is counted.

use super::Replay;
use super::data::Part;
use super::network::NetworkCost;
use super::recorded::Recorded;
use super::request::{DURATION_MAX_NS, Request, duration, point, times};
use super::role::Role;
use super::serial::Served;
use super::transform::{Sent, Transform};
use crate::predict::plan::Direction;

impl Replay {
    /// Gives how long it takes, ns.
    #[inline]
    pub(super) fn respond(
        &mut self,
        request: &Request,
        recorded: &mut Recorded,
        sent: &Sent,
        saved_ns: i64,
    ) -> Option<i64> {
        let transform = sent.transform;
        let request_ns = self.request_ns(request, recorded, transform);
        let network = self.network(request, recorded, sent, request_ns)?;
        let time = &mut recorded.time;
        let local_ns = (recorded.local_ns - saved_ns).max(0);
        time.requests += match transform {
            Transform::Merged | Transform::Dropped => -1,
            Transform::Split(requests) => requests as i64 - 1,
            _ => 0,
        };
        time.after_ns = match transform {
            Transform::Dropped => 0,
            // It waits for those that are served before it. What is saved is of its own.
            Transform::Scheduled(slot) => {
                let own_ns = local_ns.min(slot.own_ns.saturating_sub(saved_ns).max(0));
                let waits_ns = slot.served_from.saturating_sub(slot.sent) - network.sum();
                time.serve(own_ns, waits_ns.max(0));
                own_ns + network.sum() + waits_ns.max(0)
            }
            _ => {
                let more_ns = more_requests_ns(time.requests - 1, request_ns);
                time.stretch(local_ns, more_ns);
                local_ns + network.sum() + more_ns
            }
        };
        if transform == Transform::Dropped {
            time.parts.iter_mut().for_each(|part| part.1 = 0);
        } else {
            time.parts[Part::Network as usize].1 = network.rtt_ns;
            time.parts[Part::Windows as usize].1 = network.more_ns;
        }
        time.after_ns = (time.after_ns - duration(request.spared.ns)).max(0);
        // Where more than half of a request's time is the server's, others wait for it there.
        let of_server = request.server_ns.max(slices_ns(request));
        if recorded.protection_ns != 0
            && matches!(transform, Transform::Unchanged)
            && of_server > time.before_ns / 2
            && let Some(link) = self.links.get_mut(request.link as usize)
        {
            let is_read = request.role == Role::Move(Direction::Read);
            let more_ns = link.stage.wait_ns(&Served {
                sent: (recorded.start, sent.at),
                ends: (recorded.start + time.before_ns, sent.at.saturating_add(time.after_ns)),
                more_ns: recorded.protection_ns,
                serves_ns: recorded.serves_ns,
                least_ns: if is_read { request.sending_ns } else { 0 },
                rtt_ns: link.rtt_ns.1,
            });
            time.after_ns -= time.wait(more_ns);
        }
        time.set_rest();
        Some(time.after_ns)
    }

    /// What each request more costs, or each request less saves, ns.
    fn request_ns(&self, request: &Request, recorded: &Recorded, transform: Transform) -> i64 {
        let costs = || request.role.moves().map(|way| self.baseline.sizes[way as usize]);
        let request_ns = match transform {
            Transform::Merged => costs().and_then(|one| Some(one.cost?.0)),
            Transform::Split(_) => costs().and_then(|one| one.piece_ns),
            _ => None,
        };
        let Some(request_ns) = request_ns else { return 0 };
        let request_ns = (request_ns as i64).min(recorded.local_ns);
        // What is faster is so for requests more or fewer as for this one.
        let (before_ns, after_ns) = recorded.slices_ns;
        let left = 1.0 - (before_ns - after_ns) as f64 / recorded.local_ns.max(1) as f64;
        times(request_ns, left.max(0.0))
    }

    fn network(
        &mut self,
        request: &Request,
        recorded: &Recorded,
        sent: &Sent,
        request_ns: i64,
    ) -> Option<NetworkCost> {
        let link = self.links.get_mut(request.link as usize)?;
        let (links, at, bytes) = (&mut self.lines, sent.at, request.bytes);
        let mut network = match sent.transform {
            Transform::Dropped => NetworkCost::default(),
            Transform::Unchanged | Transform::Scheduled(_) if !link.is_other => recorded.network,
            Transform::Unchanged | Transform::Scheduled(_) => link.then(links, at, bytes, false),
            Transform::Merged | Transform::Compounded => link.then(links, at, bytes, true),
            Transform::Split(pieces) | Transform::Uncompounded(pieces) => {
                link.pieces(links, at, bytes, pieces, request_ns)
            }
        };
        let is_whole = matches!(sent.transform, Transform::Unchanged | Transform::Scheduled(_));
        if link.is_other && is_whole {
            network = network.absorbs(recorded.network, recorded.spread_ns);
        }
        Some(network)
    }

    /// Notes the reply for what follows, and counts the request.
    #[inline]
    pub(super) fn count(
        &mut self,
        request: &Request,
        recorded: &Recorded,
        sent: &Sent,
        after_ns: i64,
    ) {
        let Recorded { start, access, time, .. } = recorded;
        let (ended, ends_then) = (start + time.before_ns, point(sent.at.saturating_add(after_ns)));
        if let (Some(depth), Some(access)) = (self.plan.depth, access) {
            self.depths.ended(access.handle, ends_then, depth);
        }
        let has_rtt = self.links.get(request.link as usize).is_some_and(|link| link.is_known);
        let Some(client) = self.clients.get_mut(request.client as usize) else { return };
        let is_sent = sent.transform != Transform::Dropped;
        client.add_reply(ended, ends_then, sent.client_ns.1);
        client.set_previous(request, ended, is_sent);
        if request.is_counted {
            let busy_ns = request.spared.busy_ns;
            client.add_wait((*start, time.before_ns), (sent.at, after_ns), busy_ns);
            let scenario = request.execution.map(|one| one.scenario);
            self.tally.timed(request.command, scenario, time, has_rtt);
            if let Some(collector) = &mut self.gathering {
                collector.add(request, *start, time);
            }
            if let Some(collector) = &mut self.replicas {
                collector.add(request, time);
            }
            if request.lead_answered && is_sent {
                self.tally.more(request.command, -1);
            }
        }
    }
}

/// The server's slices of a request together, ns.
fn slices_ns(request: &Request) -> i64 {
    request.slices.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
}

/// What this many requests more cost, or fewer save, ns.
fn more_requests_ns(requests: i64, request_ns: i64) -> i64 {
    requests.saturating_mul(request_ns).clamp(-DURATION_MAX_NS, DURATION_MAX_NS)
}

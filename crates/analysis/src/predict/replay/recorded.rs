//! First stage of a replayed request: what it took in the recording, as the client saw it, and of what that
//! time is made. What a replay without changes learns of it is learnt here.

use super::Replay;
use super::blocks::Access;
use super::data::Part;
use super::network::NetworkCost;
use super::request::{OperationTime, Request};
use super::role::Role;
use crate::predict::plan::Direction;

/// A request as it was recorded.
pub(super) struct Recorded {
    /// When the client sent it, ns.
    pub(super) start: i64,
    /// Its time without that of the network, ns.
    pub(super) local_ns: i64,
    /// Time of the server's slices: recorded, and as they are changed, ns.
    pub(super) slices_ns: (i64, i64),
    pub(super) network: NetworkCost,
    /// How much longer its bytes took than the model of the recorded network has it, ns.
    pub(super) spread_ns: i64,
    /// What the server signs and encrypts longer with the changes, ns.
    pub(super) protection_ns: i64,
    /// The server's time for it as the calibration has it, recorded signing and encryption included, ns.
    pub(super) serves_ns: Option<i64>,
    /// The bytes of a file that it moves.
    pub(super) access: Option<Access>,
    pub(super) time: OperationTime,
}

impl Replay {
    /// None where its connection or its client is not known.
    #[inline]
    pub(super) fn recorded(&mut self, request: &Request) -> Option<Recorded> {
        let link = self.links.get_mut(request.link as usize)?;
        let client = self.clients.get_mut(request.client as usize)?;
        // As the client sees it.
        let start = request.start - link.to_client_ns / 2;
        let before_ns = request.elapsed_ns + link.to_client_ns;
        if let Some((ended, scenario)) =
            client.begin_scenario(request.run, request.execution.as_ref())
            && ended.is_counted
        {
            self.tally.scenario(scenario, &ended);
        }
        self.requests += u64::from(request.execution.is_some());
        let mut time = OperationTime { before_ns, requests: 1, ..OperationTime::default() };
        let slices_ns = if request.has_slices {
            let is_read = request.role == Role::Move(Direction::Read);
            let served = match (self.plan.cache_hit, &self.baseline.hits) {
                (Some(share), Some(hits)) if is_read => {
                    self.moving.factor(hits, share, &request.slices)
                }
                _ => 1.0,
            };
            if self.is_baseline && is_read {
                self.reads.add(&request.slices);
            }
            time.set_slices(&request.slices, &self.plan, served)
        } else {
            (0, 0)
        };
        // What the server is known to have taken is not the network's.
        let mut network = link.today(start, request.bytes, before_ns - slices_ns.0);
        let mut spread_ns = if link.is_other {
            link.spread_ns(request.bytes, &network, request.sending_ns)
        } else {
            0
        };
        spread_ns = spread_ns.min(before_ns - network.sum() - slices_ns.0).max(0);
        // On a link of another rate the bytes take what they take there, whether more or less.
        if self.plan.bandwidth_bits.is_some() {
            network.more_ns += std::mem::take(&mut spread_ns);
        }
        let local_ns = before_ns - network.sum();
        time.set(Part::Network, (network.rtt_ns, 0));
        time.set(Part::Windows, (network.more_ns, 0));
        // What was measured of the server as a whole and is in no slice.
        let server = (request.server_ns.min(local_ns) - slices_ns.0).max(0);
        time.set(Part::Server, (server, server));
        let access = request.access(start, before_ns);
        if let Some(access) = &access {
            self.tally.moves[access.kind as usize] += 1;
        }
        match request.role {
            Role::Move(direction) if self.is_baseline => {
                self.blocks.learn(direction, request.transferred, local_ns);
            }
            Role::Other if self.is_baseline && request.members == 1 => {
                self.blocks.learn_small(local_ns)
            }
            _ => {}
        }
        Some(Recorded {
            start,
            local_ns,
            slices_ns,
            network,
            spread_ns,
            protection_ns: 0,
            serves_ns: None,
            access,
            time,
        })
    }
}

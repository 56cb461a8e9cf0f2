//! RoCE's packets to the connections of queue pairs: the table of one shard, bounded.
//!
//! A packet names its receiver's queue pair only. Which two belong together shows the connection
//! manager; without it, mid-stream, an acknowledgement does, whose packet sequence number is one
//! that the other direction sent. Until that is known, packets wait. Owns the table; does not own
//! what becomes of a pair's packets (`pair`), nor layouts (`rdma`). InfiniBand Architecture
//! Specification volume 1 sections 9.7 and 12.6.

mod pair;
mod waiting;

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::frame::{Address, UdpDatagram};

use super::Env;
use crate::rdma::cm::Message;
use crate::rdma::infiniband::{Answer, MANAGEMENT_QUEUE_PAIR, Operation, PORT, Packet};
use crate::tcp::EndReason;
use pair::Pair;
use waiting::Arrival;

/// In the table: a queue pair that carries something else.
const OTHER: u32 = u32::MAX;
/// Queue pairs that are known to carry something else; beyond, they are examined again.
const FLOWS_MAX: usize = 1 << 17;
/// ConnectRequests without a reply.
const REQUESTS_MAX: usize = 1_024;
/// Pairs of which one direction is known; the oldest is then followed with that one alone.
const UNPAIRED_MAX: usize = 256;
/// Bytes that wait for lost packets in all pairs together.
const EARLY_BYTES_MAX: usize = 16 << 20;

/// One direction: packets to a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    source: Address,
    destination: Address,
    queue_pair: u32,
}

/// A ConnectRequest.
#[derive(Clone, Copy, Debug)]
struct Request {
    client: Address,
    server: Address,
    id: u32,
    queue_pair: u32,
    /// Of client and server.
    ports: [u16; 2],
    mtu_bytes: Option<u32>,
    time: i64,
}

/// The queue pairs of one shard.
#[derive(Clone, Default)]
pub struct QueuePairs {
    /// The place of a flow's pair, and which end sends.
    flows: HashMap<Flow, (u32, usize), foldhash::fast::RandomState>,
    slab: Vec<Option<Box<Pair>>>,
    free: Vec<u32>,
    /// Pairs of which one direction is known, oldest first.
    unpaired: VecDeque<u32>,
    requests: VecDeque<Request>,
    early_bytes: usize,
}

impl QueuePairs {
    /// Takes a datagram to RoCE's port.
    pub fn datagram(
        &mut self,
        datagram: &UdpDatagram<'_>,
        time: i64,
        frame: u64,
        env: &mut Env<'_>,
    ) {
        env.out.coverage.frames_roce += 1;
        let Some(packet) = Packet::parse(datagram.payload, datagram.payload_len) else {
            env.out.coverage.frames_roce_other += 1;
            return;
        };
        match packet.operation {
            Operation::Datagram if packet.queue_pair == MANAGEMENT_QUEUE_PAIR => {
                return self.manage(datagram, packet.payload, time, env);
            }
            Operation::Datagram | Operation::Other => {
                env.out.coverage.frames_roce_other += 1;
                return;
            }
            _ => {}
        }
        let (source, destination) = (datagram.source, datagram.destination);
        let flow = Flow { source, destination, queue_pair: packet.queue_pair };
        let (place, from) = match self.flows.get(&flow) {
            Some(&found) => found,
            None => (self.begin(flow, datagram.source_port, time, env), 0),
        };
        let Some(Some(pair)) = self.slab.get_mut(place as usize) else {
            env.out.coverage.frames_roce_other += 1;
            return;
        };
        let arrival = Arrival { packet, time, frame, order: env.out.order };
        let before = pair.early_bytes();
        let is_other = pair.arrive(&arrival, from, env);
        self.early_bytes = (self.early_bytes + pair.early_bytes()).saturating_sub(before);
        if self.early_bytes > EARLY_BYTES_MAX {
            self.early_bytes = self.early_bytes.saturating_sub(pair.early_bytes());
            pair.skip_holes(env);
        }
        if is_other {
            self.remove(place, EndReason::Idle, env);
            self.flows.insert(flow, (OTHER, 0));
        } else if packet.operation == Operation::Acknowledge(Answer::Positive) {
            self.find_other_direction(place, flow, packet.psn, env);
        }
    }

    /// The places in use, with the number of the packet with which SMB began.
    pub fn places(&self) -> impl Iterator<Item = (u64, u32)> {
        let pairs = self.slab.iter().zip(0..);
        pairs.filter_map(|(slot, place)| Some((slot.as_ref()?.began(), place)))
    }

    /// Ends a pair.
    pub fn remove(&mut self, place: u32, reason: EndReason, env: &mut Env<'_>) {
        let Some(mut pair) = self.slab.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        self.early_bytes = self.early_bytes.saturating_sub(pair.early_bytes());
        for flow in flows_of(&pair).into_iter().flatten() {
            self.flows.remove(&flow);
        }
        self.unpaired.retain(|&other| other != place);
        self.free.push(place);
        pair.end(reason, env);
    }

    /// Follows a new flow, of which the other direction is not known yet.
    fn begin(&mut self, flow: Flow, source_port: u16, time: i64, env: &mut Env<'_>) -> u32 {
        let addresses = [flow.source, flow.destination];
        let pair = Pair::unpaired(addresses, source_port, flow.queue_pair, time);
        let place = self.insert(pair, env);
        self.unpaired.push_back(place);
        if self.unpaired.len() > UNPAIRED_MAX
            && let Some(oldest) = self.unpaired.pop_front()
            && let Some(Some(pair)) = self.slab.get_mut(oldest as usize)
        {
            pair.start(env);
        }
        place
    }

    fn insert(&mut self, pair: Pair, env: &mut Env<'_>) -> u32 {
        if self.flows.len() >= FLOWS_MAX {
            self.flows.retain(|_, (place, _)| *place != OTHER);
        }
        if self.slab.len() - self.free.len() >= env.context.limits.connections {
            self.evict(env);
        }
        let flows = flows_of(&pair);
        let place = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            self.slab.len() as u32 - 1
        });
        for (flow, from) in flows.into_iter().zip(0..) {
            if let Some(flow) = flow {
                self.flows.insert(flow, (place, from));
            }
        }
        if let Some(slot) = self.slab.get_mut(place as usize) {
            *slot = Some(Box::new(pair));
        }
        place
    }

    /// Makes room: the eighth of the pairs that was idle longest ends.
    fn evict(&mut self, env: &mut Env<'_>) {
        let mut idle: Vec<(i64, u32)> = (self.slab.iter().zip(0..))
            .filter_map(|(slot, place)| Some((slot.as_ref()?.last, place)))
            .collect();
        idle.sort_unstable();
        for &(_, place) in idle.iter().take(idle.len() / 8 + 1) {
            let slot = self.slab.get(place as usize).and_then(Option::as_ref);
            let is_smb = slot.is_some_and(|pair| pair.is_smb());
            env.out.coverage.connections_evicted += u64::from(is_smb);
            self.remove(place, EndReason::Idle, env);
        }
    }

    /// A pair of one direction acknowledges a packet: if exactly one other has sent it, they belong
    /// together.
    fn find_other_direction(&mut self, place: u32, flow: Flow, psn: u32, env: &mut Env<'_>) {
        let Some(Some(pair)) = self.slab.get(place as usize) else { return };
        if !pair.is_waiting() {
            return;
        }
        let back = [flow.destination, flow.source];
        let mut found = self.unpaired.iter().copied().filter(|&other| {
            let slot = self.slab.get(other as usize).and_then(Option::as_ref);
            slot.is_some_and(|other| other.addresses == back && other.has_sent(psn))
        });
        let (Some(sender), None) = (found.next(), found.next()) else { return };
        let Some(receiver) = self.slab.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(place);
        self.unpaired.retain(|other| ![place, sender].contains(other));
        self.flows.insert(flow, (sender, 1));
        if let Some(Some(pair)) = self.slab.get_mut(sender as usize) {
            pair.join(*receiver, flow.queue_pair, env);
        }
    }

    /// Takes a message of the connection manager.
    fn manage(&mut self, datagram: &UdpDatagram<'_>, payload: &[u8], time: i64, env: &mut Env<'_>) {
        let (source, destination) = (datagram.source, datagram.destination);
        match Message::parse(payload) {
            Some(Message::ConnectRequest {
                own,
                queue_pair,
                service_port,
                source_port,
                mtu_bytes,
            }) => {
                self.requests.retain(|other| (other.client, other.id) != (source, own));
                self.requests.push_back(Request {
                    client: source,
                    server: destination,
                    id: own,
                    queue_pair,
                    ports: [
                        source_port.unwrap_or(datagram.source_port),
                        service_port.unwrap_or(PORT),
                    ],
                    mtu_bytes,
                    time,
                });
                if self.requests.len() > REQUESTS_MAX {
                    self.requests.pop_front();
                }
            }
            Some(Message::ConnectReply { peer, queue_pair, .. }) => {
                let is_it = |request: &Request| {
                    (request.client, request.server, request.id) == (destination, source, peer)
                };
                if let Some(at) = self.requests.iter().rposition(is_it)
                    && let Some(request) = self.requests.remove(at)
                {
                    self.connect(&request, queue_pair, env);
                }
            }
            Some(Message::ConnectReject { own, peer }) => {
                self.requests.retain(|request| {
                    let by_server = (request.client, request.id) == (destination, peer);
                    !by_server && (request.client, request.id) != (source, own)
                });
            }
            Some(Message::DisconnectRequest { queue_pair }) => {
                let flow = Flow { source, destination, queue_pair };
                if let Some(&(place, from)) = self.flows.get(&flow)
                    && let Some(Some(pair)) = self.slab.get_mut(place as usize)
                {
                    pair.disconnect(from);
                }
            }
            None => {}
        }
    }

    /// Both queue pairs of a connection are known.
    fn connect(&mut self, request: &Request, queue_pair: u32, env: &mut Env<'_>) {
        let Request { client, server, ports, mtu_bytes, time, .. } = *request;
        let pairs = [request.queue_pair, queue_pair];
        let pair = Pair::connected([client, server], ports, pairs, mtu_bytes, time);
        for flow in flows_of(&pair).into_iter().flatten() {
            match self.flows.get(&flow) {
                Some(&(OTHER, _)) | None => {}
                Some(&(place, _)) => self.remove(place, EndReason::Reused, env),
            }
        }
        self.insert(pair, env);
    }
}

/// The flows from both ends of a pair, as far as known.
fn flows_of(pair: &Pair) -> [Option<Flow>; 2] {
    let [low, high] = pair.addresses;
    let [of_low, of_high] = pair.queue_pairs;
    [
        of_high.map(|queue_pair| Flow { source: low, destination: high, queue_pair }),
        of_low.map(|queue_pair| Flow { source: high, destination: low, queue_pair }),
    ]
}

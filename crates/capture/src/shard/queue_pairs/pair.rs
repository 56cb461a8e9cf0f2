//! Two queue pairs that are connected: packets of both directions in order, to SMB messages.
//!
//! Owns loss, repetition and round trips of the reliable connection service, and when a pair is
//! known to carry SMB Direct. Does not own the messages (`tcp::Connection`). InfiniBand
//! Architecture Specification volume 1 sections 9.7.3 to 9.7.8.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::Env;
use super::waiting::{Arrival, Waiting};
use crate::frame::Address;
use crate::rdma::infiniband::{Answer, Operation, PORT};
use crate::rdma::{Moved, Order, Verdict, ahead, smb_direct};
use crate::stream::Piece;
use crate::tcp::{Carrier, CarrierBegin, CarrierHalf, Connection, EndReason, count};

/// Packets that wait until the other direction is known, and their bytes.
const WAITING_MAX: usize = 32;
const WAITING_BYTES_MAX: usize = 64 << 10;
/// Packets that wait for one that is missing.
const EARLY_MAX: usize = 512;
/// The same if no acknowledgement of the receiver was captured.
const EARLY_MAX_ONE_DIRECTION: usize = 64;
/// Time for which they wait, ns: a queue pair retransmits for seconds before it gives up.
const EARLY_NS_MAX: i64 = 10_000_000_000;
/// Packets that overtake each other are not further apart, ns.
const REORDERED_NS: i64 = 3_000_000;
/// The same packet within this time was recorded twice, ns.
const TWICE_NS: i64 = 1_000_000;
/// Sends without SMB Direct after which a pair carries something else.
const STRIKES: u32 = 16;
/// An acknowledgement is for one of the last packets sent.
const ACKNOWLEDGED_BEHIND: i32 = 64;
/// The smallest and the largest MTU (section 9.5).
const MTU_BYTES: [u32; 2] = [256, 4_096];

/// What one end sends.
#[derive(Clone, Debug, Default)]
struct Direction {
    order: Order,
    sends: smb_direct::Direction,
    /// Packets behind one that is missing, in the order of their numbers.
    early: VecDeque<Waiting>,
    hole_since: i64,
    /// The receiver refused a packet since the hole was noticed.
    is_refused: bool,
    /// Whether an acknowledgement of what it sends was captured.
    is_acknowledged: bool,
    /// A packet and its time, until it is acknowledged: one sample at a time.
    sample: Option<(u32, i64)>,
    /// The last request and its time.
    last: Option<(u32, i64)>,
    /// The number of the next Read response.
    next_response: Option<u32>,
    measured: CarrierHalf,
}

/// Two queue pairs, or the one that is known.
#[derive(Clone)]
pub struct Pair {
    pub addresses: [Address; 2],
    /// The number of each end's queue pair.
    pub queue_pairs: [Option<u32>; 2],
    /// Time of the last packet.
    pub last: i64,
    /// UDP source ports; the destination's if an end sent nothing.
    source_ports: [u16; 2],
    /// Ports according to the connection manager.
    ports: Option<[u16; 2]>,
    client: Option<usize>,
    mtu_bytes: Option<u32>,
    directions: [Direction; 2],
    early_bytes: usize,
    /// Packets that wait until the other direction is known.
    waiting: Option<Vec<Waiting>>,
    waiting_bytes: usize,
    connection: Option<Box<Connection>>,
    first: i64,
    strikes: u32,
    moved: Moved,
    is_disconnected: [bool; 2],
}

impl Pair {
    /// A pair of which the connection manager shows both queue pairs; the client is the first end.
    pub fn connected(
        addresses: [Address; 2],
        ports: [u16; 2],
        queue_pairs: [u32; 2],
        mtu_bytes: Option<u32>,
        time: i64,
    ) -> Pair {
        Pair {
            queue_pairs: queue_pairs.map(Some),
            client: Some(0),
            ports: Some(ports),
            mtu_bytes,
            waiting: None,
            ..Pair::unpaired(addresses, PORT, 0, time)
        }
    }

    /// A pair of which packets from the first end to a queue pair of the second are known.
    pub fn unpaired(addresses: [Address; 2], source_port: u16, queue_pair: u32, time: i64) -> Pair {
        Pair {
            addresses,
            queue_pairs: [None, Some(queue_pair)],
            last: time,
            source_ports: [source_port, PORT],
            ports: None,
            client: None,
            mtu_bytes: None,
            directions: [Direction::default(), Direction::default()],
            early_bytes: 0,
            waiting: Some(Vec::new()),
            waiting_bytes: 0,
            connection: None,
            first: time,
            strikes: 0,
            moved: Moved::default(),
            is_disconnected: [false; 2],
        }
    }

    /// Memory of packets that wait for one that is missing.
    pub fn early_bytes(&self) -> usize {
        self.early_bytes
    }

    /// Whether packets wait until the other direction is known.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether it is known to carry SMB.
    pub fn is_smb(&self) -> bool {
        self.connection.is_some()
    }

    /// Number of the packet with which SMB began, or of the first that waits.
    pub fn began(&self) -> u64 {
        match (&self.connection, &self.waiting) {
            (Some(connection), _) => connection.began,
            (None, Some(waiting)) => waiting.first().map_or(0, |packet| packet.order),
            (None, None) => 0,
        }
    }

    /// Whether the first end recently sent a packet with that number.
    pub fn has_sent(&self, psn: u32) -> bool {
        let last = self.directions[0].last;
        last.is_some_and(|(last, _)| (-ACKNOWLEDGED_BEHIND..=0).contains(&ahead(psn, last)))
    }

    /// Takes a packet from an end. Returns whether the pair carries something else than SMB.
    pub fn arrive(&mut self, arrival: &Arrival<'_>, from: usize, env: &mut Env<'_>) -> bool {
        if let Some(waiting) = &mut self.waiting {
            if arrival.packet.is_request() {
                self.directions[from].last = Some((arrival.packet.psn, arrival.time));
            }
            let packet = Waiting::from_arrival(arrival, from);
            self.waiting_bytes += packet.memory_bytes();
            waiting.push(packet);
            if waiting.len() > WAITING_MAX || self.waiting_bytes > WAITING_BYTES_MAX {
                self.start(env);
            }
        } else {
            self.take(arrival, from, env);
        }
        self.connection.is_none() && self.strikes >= STRIKES
    }

    /// Takes the packets that waited: nothing more will be known of the other direction.
    pub fn start(&mut self, env: &mut Env<'_>) {
        let mut waiting = self.waiting.take().unwrap_or_default();
        waiting.sort_by_key(|packet| packet.order);
        for packet in &waiting {
            self.directions[packet.from].last = None;
        }
        for packet in waiting {
            self.take(&packet.arrival(), packet.from, env);
        }
    }

    /// The other direction is known: packets to that queue pair of the first end.
    pub fn join(&mut self, other: Pair, queue_pair: u32, env: &mut Env<'_>) {
        self.queue_pairs[0] = Some(queue_pair);
        self.source_ports[1] = other.source_ports[0];
        self.first = self.first.min(other.first);
        let more = other.waiting.unwrap_or_default();
        let mut waiting = self.waiting.take().unwrap_or_default();
        waiting.extend(more.into_iter().map(|packet| Waiting { from: 1, ..packet }));
        self.waiting = Some(waiting);
        self.start(env);
    }

    /// One side ends the connection.
    pub fn disconnect(&mut self, from: usize) {
        self.is_disconnected[from] = true;
    }

    /// Gives up the packets that are missing.
    pub fn skip_holes(&mut self, env: &mut Env<'_>) {
        for from in 0..2 {
            while !self.directions[from].early.is_empty() {
                self.give_up_hole(from, env);
            }
        }
    }

    /// The pair ends, and with it its connection.
    pub fn end(&mut self, reason: EndReason, env: &mut Env<'_>) {
        self.start(env);
        self.skip_holes(env);
        let Some(mut connection) = self.connection.take() else {
            let packets: u64 = self.directions.iter().map(|one| one.measured.packets).sum();
            env.out.coverage.frames_roce_other += packets;
            return;
        };
        for direction in &self.directions {
            count(direction.sends.counters, &mut env.out.coverage);
        }
        for (from, &is_disconnected) in self.is_disconnected.iter().enumerate() {
            if is_disconnected {
                connection.disconnect(from);
            }
        }
        let summary = Carrier {
            transport: "roce",
            queue_pairs: self.queue_pairs,
            connect_seen: self.ports.is_some(),
            moved: Some(self.moved),
        };
        let halves = self.directions.each_ref().map(|direction| direction.measured);
        connection.end_without_tcp(summary, halves, self.last, reason, env.context, env.out);
    }

    fn take(&mut self, arrival: &Arrival<'_>, from: usize, env: &mut Env<'_>) {
        let Arrival { packet, time, .. } = *arrival;
        self.last = self.last.max(time);
        let direction = &mut self.directions[from];
        direction.measured.packets += 1;
        match packet.operation {
            Operation::Acknowledge(answer) => self.acknowledge(packet.psn, answer, time, from, env),
            Operation::ReadResponse
                if direction.next_response.is_none_or(|next| ahead(packet.psn, next) >= 0) =>
            {
                direction.next_response = Some(packet.psn.wrapping_add(1) & 0x00ff_ffff);
                direction.measured.bytes += u64::from(packet.payload_bytes);
                self.moved.bytes += u64::from(packet.payload_bytes);
            }
            _ if packet.is_request() => self.request(arrival, from, env),
            _ => {}
        }
    }

    /// End `from` acknowledges, or refuses, what the other sent.
    fn acknowledge(&mut self, psn: u32, answer: Answer, time: i64, from: usize, env: &mut Env<'_>) {
        let sender = 1 - from;
        let direction = &mut self.directions[sender];
        direction.is_acknowledged = true;
        if answer != Answer::Positive {
            self.moved.naks += 1;
            direction.is_refused = true;
            direction.sample = None;
            return;
        }
        if let Some((sent, at)) = direction.sample
            && ahead(psn, sent) >= 0
        {
            direction.sample = None;
            if let Some(connection) = &mut self.connection {
                connection.add_round_trip(sender, time - at);
            }
        }
        // The receiver has what is missing here.
        while let direction = &self.directions[sender]
            && !direction.early.is_empty()
            && direction.order.next().is_some_and(|next| ahead(psn, next) >= 0)
        {
            self.give_up_hole(sender, env);
        }
    }

    fn request(&mut self, arrival: &Arrival<'_>, from: usize, env: &mut Env<'_>) {
        let Arrival { packet, time, .. } = *arrival;
        let (least, most) = self.numbers(packet.operation);
        let direction = &mut self.directions[from];
        match direction.order.judge(packet.psn, least, most) {
            Verdict::Next => {
                if !direction.early.is_empty() {
                    let since = direction.hole_since;
                    if direction.is_refused || time - since >= REORDERED_NS {
                        direction.measured.retransmissions += 1;
                        direction.measured.recovery_ns += time.abs_diff(since);
                        if let Some(connection) = &mut self.connection {
                            connection.add_recovery(since, time);
                        }
                    } else {
                        direction.measured.out_of_order += 1;
                    }
                }
                self.accept(arrival, from, env);
                self.release(from, env);
            }
            Verdict::Old => {
                let is_copy = direction.last.is_some_and(|(psn, at)| {
                    psn == packet.psn && time - at < TWICE_NS && !direction.is_refused
                });
                if is_copy {
                    env.out.coverage.frames_repeated += 1;
                } else {
                    direction.measured.retransmissions += 1;
                    direction.sample = None;
                    // It can have a copy, too.
                    direction.last = Some((packet.psn, time));
                }
            }
            Verdict::Early => self.keep(arrival, from, env),
            Verdict::Jump => {
                for waiting in direction.early.drain(..) {
                    self.early_bytes = self.early_bytes.saturating_sub(waiting.memory_bytes());
                }
                direction.sends.lose();
                direction.measured.gaps += 1;
                direction.sample = None;
                direction.next_response = None;
                self.accept(arrival, from, env);
            }
        }
    }

    /// How many sequence numbers a request takes at least and at most.
    fn numbers(&self, operation: Operation) -> (u32, u32) {
        let Operation::ReadRequest(bytes) = operation else { return (1, 1) };
        let [least, most] = self.mtu_bytes.map_or(MTU_BYTES, |mtu| [mtu; 2]);
        // At most half of the numbers may be in flight.
        let packets = |mtu: u32| bytes.div_ceil(mtu).clamp(1, 1 << 23);
        (packets(most), packets(least))
    }

    /// Keeps a packet until those before it come.
    fn keep(&mut self, arrival: &Arrival<'_>, from: usize, env: &mut Env<'_>) {
        let psn = arrival.packet.psn;
        let direction = &mut self.directions[from];
        if direction.early.is_empty() {
            direction.hole_since = arrival.time;
            direction.is_refused = false;
        }
        // Mostly it belongs at the end.
        let place = (direction.early.iter())
            .rposition(|other| ahead(other.psn, psn) <= 0)
            .map_or(0, |place| place + 1);
        let before = place.checked_sub(1).and_then(|place| direction.early.get(place));
        if let Some(other) = before.filter(|other| other.psn == psn) {
            if arrival.time - other.time < TWICE_NS {
                env.out.coverage.frames_repeated += 1;
            } else {
                direction.measured.retransmissions += 1;
            }
            return;
        }
        let packet = Waiting::from_arrival(arrival, from);
        self.early_bytes += packet.memory_bytes();
        direction.early.insert(place, packet);
        let limit = if direction.is_acknowledged { EARLY_MAX } else { EARLY_MAX_ONE_DIRECTION };
        let is_late = arrival.time - direction.hole_since > EARLY_NS_MAX;
        if direction.early.len() > limit || is_late {
            self.give_up_hole(from, env);
        }
    }

    /// What comes before the first packet that waits is lost.
    fn give_up_hole(&mut self, from: usize, env: &mut Env<'_>) {
        let direction = &mut self.directions[from];
        let Some(first) = direction.early.front() else { return };
        direction.order.skip_to(first.psn);
        direction.sends.lose();
        direction.measured.gaps += 1;
        self.release(from, env);
    }

    /// Accepts the packets that waited and are next.
    fn release(&mut self, from: usize, env: &mut Env<'_>) {
        while let Some(first) = self.directions[from].early.pop_front() {
            let (least, most) = self.numbers(first.operation);
            let direction = &mut self.directions[from];
            match direction.order.judge(first.psn, least, most) {
                Verdict::Next | Verdict::Jump => {
                    self.early_bytes = self.early_bytes.saturating_sub(first.memory_bytes());
                    self.accept(&first.arrival(), from, env);
                }
                Verdict::Old => {
                    self.early_bytes = self.early_bytes.saturating_sub(first.memory_bytes());
                }
                Verdict::Early => {
                    direction.hole_since = first.time;
                    direction.early.push_front(first);
                    return;
                }
            }
        }
    }

    /// Takes a request that is next.
    fn accept(&mut self, arrival: &Arrival<'_>, from: usize, env: &mut Env<'_>) {
        let Arrival { packet, time, frame, .. } = *arrival;
        let direction = &mut self.directions[from];
        direction.last = Some((packet.psn, time));
        direction.measured.bytes += u64::from(packet.payload_bytes);
        match packet.operation {
            Operation::Send { first, last } => {
                if direction.sample.is_none() {
                    direction.sample = Some((packet.psn, time));
                }
                let length = packet.payload_bytes;
                let bytes = packet.payload;
                self.send(
                    first,
                    last,
                    Piece { bytes, length, time, frame, sequence: 0, lost: false },
                    from,
                    env,
                );
            }
            Operation::Write { first } => {
                self.moved.writes += u64::from(first);
                self.moved.bytes += u64::from(packet.payload_bytes);
            }
            Operation::ReadRequest(_) => self.moved.reads += 1,
            _ => {}
        }
    }

    fn send(&mut self, first: bool, last: bool, piece: Piece<'_>, from: usize, env: &mut Env<'_>) {
        if first && self.client.is_none() {
            let is_from_client = smb_direct::is_from_client(piece.bytes);
            self.client = is_from_client.map(|is| if is { from } else { 1 - from });
        }
        let client = self.client.unwrap_or(from);
        let ports = self.ports.unwrap_or_else(|| {
            // The server's is the one to which everything is sent.
            [0, 1].map(|end| if end == client { self.source_ports[end] } else { PORT })
        });
        let ends = [0, 1].map(|end| SocketAddr::new(self.addresses[end].ip(), ports[end]));
        let begin = CarrierBegin {
            first: self.first,
            transport: "roce",
            connect_seen: self.ports.is_some(),
        };
        let Pair { connection, directions, .. } = self;
        let Env { context, next_index, out } = env;
        let sends = &mut directions[from].sends;
        let unknown = sends.counters.unknown;
        if first {
            sends.begin();
        }
        sends.bytes(piece, &mut |inner| {
            let connection = connection.get_or_insert_with(|| {
                let index = **next_index;
                **next_index = index.wrapping_add(1);
                Box::new(Connection::without_tcp(index, ends, client, begin, context, out))
            });
            connection.deliver(inner, from, context, out);
        });
        if last {
            sends.end();
        }
        self.strikes += u32::from(sends.counters.unknown > unknown);
    }
}

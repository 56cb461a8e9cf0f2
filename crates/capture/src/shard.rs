//! Packets to connections: the flow table of one shard, bounded. That of RoCE is `queue_pairs`, that of
//! NetBEUI `netbeui`.

mod netbeui;
mod queue_pairs;

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::frame::{Direction, FlowKey, LlcFrame, TcpFlags, TcpSegment, UdpDatagram, Unreachable};
use crate::kdc::{self, Kdc};
use crate::outcome::Output;
use crate::quic::Quic;
use crate::rdma::infiniband;
use crate::tcp::{Connection, Context, EndReason, is_usual};
use crate::waits::Waits;
use netbeui::NetBeui;
use queue_pairs::QueuePairs;

/// In the flow table: a flow that carries something else.
const OTHER: u32 = u32::MAX;
/// In the flow table: a flow to a KDC.
const KDC: u32 = u32::MAX - 1;
/// Flows that carry something else that are remembered; beyond that they are examined again.
const OTHERS: usize = 1 << 18;

/// Directions that are found without the flow table, as a power of two: connections take turns.
const RECENT_BITS: u32 = 8;

/// What connections without TCP need of the shard.
struct Env<'a> {
    context: &'a Context,
    /// The index of the next connection.
    next_index: &'a mut u32,
    out: &'a mut Output,
}

/// The connection of a direction.
#[derive(Clone, Copy)]
struct Recent {
    direction: Direction,
    place: u32,
    /// Which end sends: 0 for the key's lower.
    from: u32,
}

/// The connections of one shard.
#[derive(Clone)]
pub struct Shard {
    context: Context,
    flows: HashMap<FlowKey, u32, foldhash::fast::RandomState>,
    slab: Vec<Option<(FlowKey, Box<Connection>)>>,
    free: Vec<u32>,
    /// Flows on unusual ports that may yet be SMB, oldest first.
    candidates: VecDeque<(u32, FlowKey)>,
    kdc: Kdc,
    recent: Vec<Option<Recent>>,
    live: usize,
    waiting_bytes: usize,
    next_index: u32,
    quic: Quic,
    queue_pairs: QueuePairs,
    netbeui: NetBeui,
    waits: Waits,
}

impl Shard {
    /// A shard without connections.
    pub fn new(context: Context) -> Shard {
        Shard {
            context,
            flows: HashMap::default(),
            slab: Vec::new(),
            free: Vec::new(),
            candidates: VecDeque::new(),
            kdc: Kdc::default(),
            recent: vec![None; 1 << RECENT_BITS],
            live: 0,
            waiting_bytes: 0,
            next_index: 0,
            quic: Quic::default(),
            queue_pairs: QueuePairs::default(),
            netbeui: NetBeui::default(),
            waits: Waits::default(),
        }
    }

    /// Takes one TCP segment; `out.order` is its global number. Inlined where packets are read, so
    /// that a segment stays in registers.
    #[inline(always)]
    pub fn packet(&mut self, segment: TcpSegment<'_>, time: i64, frame: u64, out: &mut Output) {
        let direction = Direction::from_segment(&segment);
        let (place, from) = match self.recent.get(direction.bucket(RECENT_BITS)) {
            Some(Some(recent)) if recent.direction == direction => {
                (recent.place, recent.from as usize)
            }
            _ => {
                // A value behind a pointer cannot stay in a register, so the rare paths get copies.
                let (direction, segment) = (direction, segment);
                self.look_up(&direction, &segment, time, out)
            }
        };
        if let Some(Some((_, connection))) = self.slab.get_mut(place as usize)
            && connection.follows(&segment, from)
        {
            if connection.follow(&segment, from, time, frame, &self.context, out) {
                self.count_waiting(0, place, out);
            }
            return;
        }
        let (found, segment) = (Recent { direction, place, from: from as u32 }, segment);
        self.unusual(&found, &segment, time, frame, out);
    }

    /// Takes a UDP datagram: RoCE, QUIC, or one from a KDC, which may name the account of a ticket.
    pub fn datagram(
        &mut self,
        datagram: &UdpDatagram<'_>,
        time: i64,
        frame: u64,
        out: &mut Output,
    ) {
        if datagram.destination_port == infiniband::PORT {
            let Shard { context, next_index, .. } = self;
            self.queue_pairs.datagram(datagram, time, frame, &mut Env { context, next_index, out });
        } else if self.quic.datagram(datagram, time, &mut self.next_index, out) {
        } else if [datagram.source_port, datagram.destination_port].contains(&kdc::PORT) {
            self.kdc.datagram(datagram, out);
            self.waits.datagram(datagram, time, frame, out);
        } else {
            self.waits.datagram(datagram, time, frame, out);
        }
    }

    /// Takes a frame of NetBEUI.
    pub fn netbeui(&mut self, llc: &LlcFrame<'_>, time: i64, frame: u64, out: &mut Output) {
        let Shard { context, next_index, .. } = self;
        self.netbeui.frame(llc, time, frame, &mut Env { context, next_index, out });
    }

    /// Takes a report that a packet was not delivered.
    pub fn unreachable(&mut self, report: &Unreachable, time: i64, frame: u64, out: &mut Output) {
        self.waits.unreachable(report, time, frame, out);
    }

    /// The index of the connection and the sending end.
    #[cold]
    fn look_up(
        &mut self,
        direction: &Direction,
        segment: &TcpSegment<'_>,
        time: i64,
        out: &mut Output,
    ) -> (u32, usize) {
        let (key, forward) = direction.flow();
        let place = match self.flows.get(&key) {
            Some(&place) => place,
            None => self.begin(key, segment, time, out),
        };
        let from = u32::from(!forward);
        if let Some(recent) = self.recent.get_mut(direction.bucket(RECENT_BITS)) {
            *recent = Some(Recent { direction: *direction, place, from });
        }
        (place, from as usize)
    }

    /// The index of a flow changes, so it has to be looked up again.
    fn forget_place(&mut self, key: FlowKey) {
        let direction = key.forward();
        for direction in [direction, direction.back()] {
            if let Some(recent) = self.recent.get_mut(direction.bucket(RECENT_BITS)) {
                *recent = None;
            }
        }
    }

    /// A segment that does not simply continue where the last one ended: of a connection that
    /// begins or ends, that is not known to carry SMB, or that has holes.
    #[cold]
    fn unusual(
        &mut self,
        found: &Recent,
        segment: &TcpSegment<'_>,
        time: i64,
        frame: u64,
        out: &mut Output,
    ) {
        let (key, place, from) = (found.direction.flow().0, found.place, found.from as usize);
        self.waits.segment(key, segment, time, frame, out);
        let Some(Some((_, connection))) = self.slab.get_mut(place as usize) else {
            out.coverage.frames_not_smb += 1;
            if place == KDC {
                self.kdc.segment(key, segment, time, out);
            } else if segment.flags.has(TcpFlags::SYN) {
                // The ports are used again, perhaps for SMB.
                self.flows.remove(&key);
                self.forget_place(key);
            }
            return;
        };
        if segment.flags.has(TcpFlags::SYN) && connection.is_reused_by(segment, from) {
            self.remove(place, EndReason::Reused, out);
            let place = self.begin(key, segment, time, out);
            if let Some(Some((_, connection))) = self.slab.get_mut(place as usize) {
                connection.packet(segment, from, time, frame, &self.context, out);
            }
            return;
        }
        let before = connection.waiting_bytes();
        connection.packet(segment, from, time, frame, &self.context, out);
        if !connection.is_smb {
            out.coverage.frames_not_smb += u64::from(segment.payload_len > 0);
            if connection.is_other() {
                self.forget(place, key);
                return;
            }
        }
        self.count_waiting(before, place, out);
    }

    /// Updates the total of bytes that wait behind holes; `before` is the value of this connection
    /// before the packet.
    fn count_waiting(&mut self, before: usize, place: u32, out: &mut Output) {
        let Some(Some((_, connection))) = self.slab.get(place as usize) else { return };
        let after = connection.waiting_bytes();
        if before != after {
            self.waiting_bytes = self.waiting_bytes + after - before;
            if self.waiting_bytes > self.context.limits.reorder_bytes_total {
                self.relieve(out);
            }
        }
    }

    fn begin(
        &mut self,
        key: FlowKey,
        segment: &TcpSegment<'_>,
        time: i64,
        out: &mut Output,
    ) -> u32 {
        if self.flows.len() >= OTHERS {
            self.flows.retain(|_, place| !matches!(*place, OTHER | KDC));
        }
        let ports = [segment.source_port, segment.destination_port];
        if ports.contains(&kdc::PORT) && !ports.into_iter().any(is_usual) {
            self.flows.insert(key, KDC);
            return KDC;
        }
        if self.live >= self.context.limits.connections {
            self.evict(out);
        }
        let index = self.next_index;
        self.next_index = self.next_index.wrapping_add(1);
        let ends = [key.lower(), key.higher()];
        let connection = Box::new(Connection::new(index, ends, time, &self.context));
        let place = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            self.slab.len() as u32 - 1
        });
        if let Some(slot) = self.slab.get_mut(place as usize) {
            *slot = Some((key, connection));
        }
        self.flows.insert(key, place);
        self.live += 1;
        if !ports.into_iter().any(is_usual) {
            self.candidates.push_back((place, key));
            if self.candidates.len() > self.context.limits.candidates
                && let Some((place, key)) = self.candidates.pop_front()
            {
                let slot = self.slab.get(place as usize).and_then(Option::as_ref);
                if slot.is_some_and(|(held, connection)| *held == key && !connection.is_smb) {
                    self.forget(place, key);
                }
            }
        }
        place
    }

    /// Remembers that a flow carries something else.
    fn forget(&mut self, place: u32, key: FlowKey) {
        if let Some(slot) = self.slab.get_mut(place as usize) {
            *slot = None;
            self.free.push(place);
            self.live -= 1;
        }
        self.flows.insert(key, OTHER);
        self.forget_place(key);
    }

    fn remove(&mut self, place: u32, reason: EndReason, out: &mut Output) {
        let Some((key, mut connection)) = self.slab.get_mut(place as usize).and_then(Option::take)
        else {
            return;
        };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(connection.waiting_bytes());
        connection.end(reason, &self.context, out);
        self.flows.remove(&key);
        self.free.push(place);
        self.live -= 1;
        self.forget_place(key);
    }

    /// Makes room: closed connections go first, which are kept only for late packets; if there are
    /// few, the eighth of the connections that was idle longest.
    fn evict(&mut self, out: &mut Output) {
        let mut idle: Vec<(bool, i64, u32)> = (self.slab.iter().zip(0..))
            .filter_map(|(slot, place)| {
                let connection = &slot.as_ref()?.1;
                Some((!connection.is_over(), connection.last, place))
            })
            .collect();
        idle.sort_unstable();
        let over = idle.partition_point(|&(is_live, ..)| !is_live);
        let eighth = idle.len() / 8 + 1;
        let count = if over > eighth / 8 { over.min(eighth) } else { eighth };
        for &(is_live, _, place) in idle.iter().take(count) {
            let slot = self.slab.get(place as usize).and_then(Option::as_ref);
            out.coverage.connections_evicted +=
                u64::from(is_live && slot.is_some_and(|(_, connection)| connection.is_smb));
            self.remove(place, EndReason::Idle, out);
        }
    }

    /// Too much waits behind holes in all connections together.
    fn relieve(&mut self, out: &mut Output) {
        for slot in self.slab.iter_mut().flatten() {
            slot.1.skip_holes(&self.context, out);
        }
        self.waiting_bytes = 0;
    }

    /// The capture ends: all connections end, in the order in which SMB began on them. Their last
    /// operations carry the number of that packet instead of one behind the end, so that the order
    /// does not depend on the number of shards.
    pub fn end(&mut self, out: &mut Output) {
        let mut places: Vec<(u64, u32)> = (self.slab.iter().zip(0..))
            .filter_map(|(slot, place)| Some((slot.as_ref()?.1.began, place)))
            .collect();
        // No table has that many places.
        const ROCE: u32 = 1 << 31;
        const NETBEUI: u32 = 1 << 30;
        places.extend(self.queue_pairs.places().map(|(began, place)| (began, place | ROCE)));
        places.extend(self.netbeui.places().map(|(began, place)| (began, place | NETBEUI)));
        places.sort_unstable();
        for (began, place) in places {
            out.order = began;
            if place & (ROCE | NETBEUI) == 0 {
                self.remove(place, EndReason::Capture, out);
                continue;
            }
            let Shard { context, next_index, .. } = self;
            let env = &mut Env { context, next_index, out };
            if place & ROCE != 0 {
                self.queue_pairs.remove(place & !ROCE, EndReason::Capture, env);
            } else {
                self.netbeui.end(place & !NETBEUI, env);
            }
        }
        self.quic.end(out);
        self.waits.end(out);
        self.flows.clear();
        self.candidates.clear();
    }
}

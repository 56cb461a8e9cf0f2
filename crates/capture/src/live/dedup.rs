//! Packets that pass several interfaces of one machine (a bridge and its members, a router), so
//! that a recording of all interfaces takes each once: where it came first.
//!
//! By sequence numbers, not by interface alone: a connection may change its interface.

use hashbrown::HashMap;

use crate::frame::{FlowKey, TcpFlags, TcpSegment};

/// Directions that are remembered; beyond that all are learned again.
const HALVES_MAX: usize = 1 << 15;

/// What was seen of every direction.
#[derive(Debug, Default)]
pub struct Dedup(HashMap<(FlowKey, bool), Half>);

#[derive(Clone, Copy, Debug)]
struct Half {
    /// The interface that showed something new last.
    interface: usize,
    /// Behind the highest sequence number.
    end: u32,
    acknowledgement: u32,
    syn: Option<u32>,
}

impl Dedup {
    /// Whether a segment was seen on another interface before.
    pub fn is(&mut self, interface: usize, segment: &TcpSegment<'_>) -> bool {
        let end = segment.sequence.wrapping_add(segment.payload_len);
        let end = end.wrapping_add(segment.flags.sequence_len());
        let syn = segment.flags.has(TcpFlags::SYN).then_some(segment.sequence);
        let new = Half { interface, end, acknowledgement: segment.acknowledgement, syn };
        let key = FlowKey::from_segment(segment);
        if self.0.len() >= HALVES_MAX && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let half = self.0.entry(key).or_insert(new);
        if syn.is_some() && syn != half.syn {
            // The ports are used again.
            *half = new;
            return false;
        }
        let is_ahead = |one: u32, other: u32| one.wrapping_sub(other) as i32 > 0;
        let is_new =
            is_ahead(end, half.end) || is_ahead(segment.acknowledgement, half.acknowledgement);
        if is_new {
            if is_ahead(end, half.end) {
                half.end = end;
            }
            if is_ahead(segment.acknowledgement, half.acknowledgement) {
                half.acknowledgement = segment.acknowledgement;
            }
            half.interface = interface;
        }
        half.interface != interface
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Address;

    fn segment(
        sequence: u32,
        length: u32,
        acknowledgement: u32,
        flags: TcpFlags,
    ) -> TcpSegment<'static> {
        TcpSegment {
            source: Address::v4([10, 0, 0, 1]),
            destination: Address::v4([10, 0, 0, 2]),
            source_port: 50_000,
            destination_port: 445,
            sequence,
            acknowledgement,
            flags,
            window: 1,
            ttl: 64,
            options: &[],
            payload: &[],
            payload_len: length,
        }
    }

    #[test]
    fn a_packet_counts_where_it_came_first() {
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        let mut again = Dedup::default();
        let mut seen = |interface, sequence, length, acknowledgement, flags| {
            !again.is(interface, &segment(sequence, length, acknowledgement, flags))
        };
        let start = u32::MAX - 10;
        assert!(seen(2, start, 0, 0, syn));
        assert!(!seen(3, start, 0, 0, syn));
        assert!(seen(2, start.wrapping_add(1), 100, 7, ack));
        assert!(seen(2, start.wrapping_add(101), 100, 7, ack));
        assert!(!seen(3, start.wrapping_add(1), 100, 7, ack), "late, over the wrap");
        assert!(!seen(3, start.wrapping_add(101), 100, 7, ack));
        assert!(seen(2, start.wrapping_add(1), 100, 7, ack), "really retransmitted");
        assert!(seen(2, start.wrapping_add(201), 0, 50, ack));
        assert!(!seen(3, start.wrapping_add(201), 0, 50, ack));
        assert!(seen(4, start.wrapping_add(201), 100, 50, ack), "goes another way now");
        assert!(!seen(2, start.wrapping_add(201), 100, 50, ack));
        assert!(seen(3, 5_000, 0, 0, syn), "the ports again, on another interface");
        assert!(!seen(2, 5_000, 0, 0, syn));
    }
}

//! Packets that were recorded twice: by a mirror port that shows a packet entering and leaving, or
//! by a recorder that listens at several points of its path. The copy may be split into pieces by
//! the network card (segmentation offload).
//!
//! Copies are looked for once one was found. A real retransmission comes after the minimum
//! retransmission timeout, or behind other packets; never this soon after the original.

use super::is_soon;
use crate::frame::TcpSegment;

/// At most this number of packets is between a packet and its copy.
const RECENT: usize = 32;

/// Packets without a copy after which copies are no longer looked for: the first one was a mistake.
const PACKETS_WITHOUT_COPY_MAX: u32 = 4_096;

/// What copies have in common, and the sending end.
type Key = (usize, u32, u32, u32, u16, u8);

/// A packet whose copy comes in pieces.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    from: usize,
    /// Sequence number of the next one.
    next: u32,
    /// Bytes that have not come yet.
    rest: u32,
    /// Time of the last one.
    at: i64,
}

/// The last packets.
#[derive(Clone, Debug)]
pub(super) struct MirrorFilter {
    recent: [(Key, i64); RECENT],
    next: usize,
    pieces: Option<Pieces>,
    /// Packets since the last copy.
    single: u32,
}

impl Default for MirrorFilter {
    fn default() -> MirrorFilter {
        MirrorFilter {
            recent: [(Key::default(), i64::MIN); RECENT],
            next: 0,
            pieces: None,
            single: 0,
        }
    }
}

impl MirrorFilter {
    /// Whether a packet was recorded before; it is remembered.
    pub(super) fn is_copy(&mut self, segment: &TcpSegment<'_>, from: usize, time: i64) -> bool {
        let TcpSegment { sequence, acknowledgement, payload_len, window, flags, .. } = *segment;
        let key = (from, sequence, acknowledgement, payload_len, window, flags.0);
        let is_it = |&(known, at): &(Key, i64)| known == key && is_soon(at, time);
        if self.recent.iter().any(is_it) || self.is_piece(segment, from, time) {
            self.single = 0;
            return true;
        }
        self.single += 1;
        self.recent[self.next] = (key, time);
        self.next = (self.next + 1) % RECENT;
        false
    }

    /// Whether a packet is the next piece of a longer one: they come from its first byte on, each
    /// behind the other.
    fn is_piece(&mut self, segment: &TcpSegment<'_>, from: usize, time: i64) -> bool {
        let TcpSegment { sequence, acknowledgement, payload_len, .. } = *segment;
        if payload_len == 0 {
            return false;
        }
        let begins = |&((end, start, answers, length, ..), at): &(Key, i64)| {
            (end, start, answers) == (from, sequence, acknowledgement)
                && length > payload_len
                && is_soon(at, time)
        };
        if let Some(&((.., length, _, _), at)) = self.recent.iter().find(|&one| begins(one)) {
            self.pieces = Some(Pieces { from, next: sequence, rest: length, at });
        }
        let is_next = |pieces: &&mut Pieces| {
            (pieces.from, pieces.next) == (from, sequence)
                && pieces.rest >= payload_len
                && is_soon(pieces.at, time)
        };
        let Some(pieces) = self.pieces.as_mut().filter(is_next) else { return false };
        pieces.next = sequence.wrapping_add(payload_len);
        pieces.rest -= payload_len;
        pieces.at = time;
        true
    }

    /// Whether there was none for long.
    pub(super) fn are_over(&self) -> bool {
        self.single > PACKETS_WITHOUT_COPY_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Address, TcpFlags};
    use crate::tcp::TWICE_NS;

    fn segment(sequence: u32) -> TcpSegment<'static> {
        TcpSegment {
            source: Address::v4([192, 0, 2, 1]),
            destination: Address::v4([192, 0, 2, 9]),
            source_port: 50_000,
            destination_port: 445,
            sequence,
            acknowledgement: 1,
            flags: TcpFlags::ACK,
            window: 100,
            ttl: 64,
            options: &[],
            payload: &[],
            payload_len: 10,
        }
    }

    #[test]
    fn a_copy_in_pieces_is_one() {
        let cut = |sequence, payload_len| TcpSegment { payload_len, ..segment(sequence) };
        let mut copies = MirrorFilter::default();
        assert!(!copies.is_copy(&cut(1_000, 3_000), 0, 0));
        assert!(copies.is_copy(&cut(1_000, 1_400), 0, 10));
        assert!(!copies.is_copy(&cut(2_400, 1_400), 1, 10));
        assert!(copies.is_copy(&cut(2_400, 1_400), 0, 20));
        // More than the original, or not continuing the last piece, is a retransmission.
        assert!(!copies.is_copy(&cut(3_800, 1_400), 0, 30));
        assert!(!copies.is_copy(&cut(2_400, 800), 0, 30));
        assert!(copies.is_copy(&cut(3_800, 200), 0, 30));
        assert!(!copies.is_copy(&cut(1_000, 1_400), 0, TWICE_NS as i64));
        let again = TcpSegment { acknowledgement: 2, ..cut(1_000, 1_400) };
        assert!(!copies.is_copy(&again, 0, 40));
    }

    #[test]
    fn copies_come_soon_and_are_looked_for_as_long_as_there_are_some() {
        let mut copies = MirrorFilter::default();
        assert!(!copies.is_copy(&segment(1), 0, 0) && !copies.is_copy(&segment(11), 0, 10));
        assert!(copies.is_copy(&segment(1), 0, 20) && !copies.is_copy(&segment(1), 1, 20));
        assert!(!copies.is_copy(&segment(11), 0, TWICE_NS as i64 + 10));
        for number in 0..=PACKETS_WITHOUT_COPY_MAX {
            assert!(!copies.are_over() || number > PACKETS_WITHOUT_COPY_MAX - 3);
            copies.is_copy(&segment(number * 10 + 1000), 0, 1 << 40);
        }
        assert!(copies.are_over());
    }
}

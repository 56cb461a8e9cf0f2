//! Segments of one direction in the order of their sequence numbers (RFC 9293 section 3.4).
//!
//! Segments that come early wait, bounded, until the hole before them is filled. If the receiver
//! acknowledged the hole, so that only the recorder missed it, the connection gives it up. It is
//! given up here if the receiver's acknowledgements are unknown, or if too much waits.

use std::collections::VecDeque;

use super::Piece;

/// Packets of the connection after which a hole is given up if the other direction is not captured
/// at all.
const HOLE_PACKETS_ONE_DIRECTION: u32 = 256;
/// Time after which such a hole is given up in any case.
const HOLE_WAIT_NS: i64 = 2_000_000_000;
/// Segments that may wait, however small: a window of 8 MiB has 6,000 of the usual size.
const WAITING_MAX: usize = 16_384;
/// Memory of a segment that waits, in addition to its bytes.
const WAITING_OVERHEAD: usize = size_of::<Waiting>() + 32;
/// A jump beyond any window: not a hole, but a stream that was lost track of.
const JUMP_BYTES: i32 = 64 << 20;

/// What to do with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Use it without its first bytes, which were seen before.
    Use {
        /// Bytes seen before.
        skip: u32,
    },
    /// Every byte came before.
    Old,
    /// It is behind a hole: keep it.
    Early,
    /// It is so far ahead that the bytes before it are lost.
    Jump,
}

#[derive(Clone, Debug)]
struct Waiting {
    bytes: Vec<u8>,
    length: u32,
    time: i64,
    frame: u64,
    sequence: u32,
}

/// The order of one direction.
#[derive(Clone, Debug, Default)]
pub struct Order {
    next: Option<u32>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    hole_since: i64,
    hole_packets: u32,
}

impl Order {
    /// The sequence number that comes next, once it is known.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        self.next
    }

    /// Sets the number that comes next: after a SYN, or behind a hole that is given up.
    pub fn set_next(&mut self, next: u32) {
        self.next = Some(next);
    }

    /// Whether segments wait behind a hole.
    #[inline]
    pub fn has_hole(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When the hole was first noticed.
    pub fn hole_since(&self) -> i64 {
        self.hole_since
    }

    /// Memory of the segments that wait.
    #[inline]
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Accepts a segment with payload if it is the next one.
    #[inline]
    pub fn follow(&mut self, sequence: u32, length: u32) -> bool {
        let follows = self.next == Some(sequence);
        if follows {
            self.next = Some(sequence.wrapping_add(length));
        }
        follows
    }

    /// Assesses a segment with payload, and accepts it if it is used.
    #[inline]
    pub fn judge(&mut self, sequence: u32, length: u32) -> Verdict {
        let Some(next) = self.next else {
            self.next = Some(sequence.wrapping_add(length));
            return Verdict::Use { skip: 0 };
        };
        let ahead = sequence.wrapping_sub(next) as i32;
        if ahead > 0 {
            return if ahead > JUMP_BYTES { Verdict::Jump } else { Verdict::Early };
        }
        let seen = ahead.unsigned_abs();
        if seen >= length {
            // A number far behind belongs to a stream that was lost track of.
            return if seen > JUMP_BYTES as u32 { Verdict::Jump } else { Verdict::Old };
        }
        self.next = Some(sequence.wrapping_add(length));
        Verdict::Use { skip: seen }
    }

    /// Keeps an early segment; returns whether it is a new one. If two start
    /// at the same place, the longer one stays.
    pub fn keep(&mut self, piece: &Piece<'_>) -> bool {
        if self.waiting.is_empty() {
            self.hole_since = piece.time;
            self.hole_packets = 0;
        }
        let next = self.next.unwrap_or(piece.sequence);
        let distance = |sequence: u32| sequence.wrapping_sub(next);
        // Mostly it belongs at the end.
        let place = self
            .waiting
            .iter()
            .rposition(|other| distance(other.sequence) <= distance(piece.sequence))
            .map_or(0, |place| place + 1);
        if let Some(same) = place.checked_sub(1).and_then(|place| self.waiting.get_mut(place))
            && same.sequence == piece.sequence
        {
            if same.length >= piece.length {
                return false;
            }
            self.waiting_bytes -= same.bytes.len();
            self.waiting_bytes += piece.bytes.len();
            same.bytes = piece.bytes.to_vec();
            same.length = piece.length;
            return true;
        }
        self.waiting_bytes += piece.bytes.len() + WAITING_OVERHEAD;
        let waiting = Waiting {
            bytes: piece.bytes.to_vec(),
            length: piece.length,
            time: piece.time,
            frame: piece.frame,
            sequence: piece.sequence,
        };
        self.waiting.insert(place, waiting);
        true
    }

    /// Whether to give up the hole; called once for every packet of the connection. `acknowledged`
    /// is the highest number that the receiver acknowledged, if any acknowledgement was captured.
    pub fn is_hopeless(
        &mut self,
        acknowledged: Option<u32>,
        time: i64,
        limit_bytes: usize,
    ) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        self.hole_packets = self.hole_packets.saturating_add(1);
        if self.waiting_bytes > limit_bytes || self.waiting.len() > WAITING_MAX {
            return true;
        }
        let age = time.saturating_sub(self.hole_since);
        match acknowledged {
            Some(_) => age > 30 * HOLE_WAIT_NS,
            None => self.hole_packets > HOLE_PACKETS_ONE_DIRECTION || age > 2 * HOLE_WAIT_NS,
        }
    }

    /// The hole before the first segment that waits: its start and its bytes.
    pub fn hole(&self) -> Option<(u32, u32)> {
        let next = self.next?;
        Some((next, self.waiting.front()?.sequence.wrapping_sub(next)))
    }

    /// Hands the next segment that waited and is now in order to `use_it`, without the bytes that
    /// came before. Returns whether there was one.
    pub fn release(&mut self, use_it: impl FnOnce(Piece<'_>)) -> bool {
        let Some(first) = self.waiting.front() else { return false };
        let verdict = match self.next {
            Some(next) if first.sequence.wrapping_sub(next) as i32 > 0 => return false,
            _ => {
                let (sequence, length) = (first.sequence, first.length);
                self.judge(sequence, length)
            }
        };
        let Some(waiting) = self.waiting.pop_front() else { return false };
        self.waiting_bytes -= waiting.bytes.len() + WAITING_OVERHEAD;
        self.hole_since = self.waiting.front().map_or(0, |next| next.time);
        self.hole_packets = 0;
        if let Verdict::Use { skip } = verdict {
            let piece = Piece {
                bytes: &waiting.bytes,
                length: waiting.length,
                time: waiting.time,
                frame: waiting.frame,
                sequence: waiting.sequence,
                lost: false,
            };
            use_it(piece.skip(skip));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(sequence: u32, bytes: &[u8]) -> Piece<'_> {
        let length = bytes.len() as u32;
        Piece { bytes, length, time: 0, frame: 1, sequence, lost: false }
    }

    #[test]
    fn judges_over_the_wrap_of_sequence_numbers() {
        let mut order = Order::default();
        order.set_next(u32::MAX - 1);
        assert_eq!(order.judge(u32::MAX - 1, 4), Verdict::Use { skip: 0 });
        assert_eq!(order.next(), Some(2));
        assert_eq!(order.judge(u32::MAX, 2), Verdict::Old);
        assert_eq!(order.judge(u32::MAX, 5), Verdict::Use { skip: 3 });
        assert_eq!(order.judge(9, 1), Verdict::Early);
        assert_eq!(order.judge(0x5000_0000, 1), Verdict::Jump);
    }

    #[test]
    fn releases_early_segments_in_order_and_once() {
        let mut order = Order::default();
        order.set_next(0);
        assert!(order.keep(&piece(6, b"gh")));
        assert!(order.keep(&piece(2, b"cde")));
        assert!(order.keep(&piece(4, b"efg")));
        assert!(!order.keep(&piece(6, b"gh")));
        assert_eq!(order.hole(), Some((0, 2)));
        assert_eq!(order.judge(0, 2), Verdict::Use { skip: 0 });
        let mut text = Vec::new();
        while order.release(|piece| text.extend_from_slice(piece.bytes)) {}
        assert_eq!(text, b"cdefgh");
        assert_eq!((order.waiting_bytes(), order.has_hole()), (0, false));
    }

    #[test]
    fn gives_up_a_hole_that_is_never_filled() {
        let mut order = Order::default();
        order.set_next(0);
        order.keep(&piece(10, b"x"));
        assert!(!(0..300).any(|_| order.is_hopeless(Some(5), 1_000_000, 1_000)));
        assert!(order.is_hopeless(Some(5), 61_000_000_000, 1_000));
        assert!(order.is_hopeless(None, 1_000_000, 1_000));
        assert!(order.is_hopeless(Some(5), 0, 0));
    }
}

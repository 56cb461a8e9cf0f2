//! Packets that wait because they acknowledge bytes that were not captured, or not yet.
//!
//! The end that acknowledges bytes has received them, so they came before: a recorder that shows
//! them later has reordered packets, and one that never shows them has lost them. Until it is known
//! which, the following packets are held. Otherwise requests would seem to be sent while replies
//! that wait behind a hole are still in flight. The times of an operation, the count in flight and
//! the busy clock follow the order of the packets.

use super::Context;
use super::connection::Connection;
use crate::frame::{TcpFlags, TcpSegment};
use crate::outcome::Output;
use crate::stream::Piece;

/// Packets that are held at most for one that comes late.
const HELD_PACKETS_MAX: usize = 16;
/// Time for which they are held at most, ns.
const HELD_NS_MAX: i64 = 2_000_000_000;
/// An acknowledgement beyond this belongs to a stream that was lost track of.
const AHEAD_BYTES: i32 = 64 << 20;

/// A packet that is held.
#[derive(Clone, Debug)]
pub(super) struct HeldPacket {
    segment: TcpSegment<'static>,
    options: Vec<u8>,
    payload: Vec<u8>,
    from: usize,
    time: i64,
    frame: u64,
}

impl HeldPacket {
    fn new(segment: &TcpSegment<'_>, from: usize, time: i64, frame: u64) -> HeldPacket {
        HeldPacket {
            segment: TcpSegment { options: &[], payload: &[], ..*segment },
            options: segment.options.to_vec(),
            payload: segment.payload.to_vec(),
            from,
            time,
            frame,
        }
    }

    fn segment(&self) -> TcpSegment<'_> {
        TcpSegment { options: &self.options, payload: &self.payload, ..self.segment }
    }

    /// Whether it brings bytes that one end sent before a number.
    fn brings(&self, side: usize, until: u32) -> bool {
        let segment = &self.segment;
        self.from == side && segment.payload_len > 0 && ahead(segment.sequence, until) < 0
    }

    fn bytes(&self) -> usize {
        size_of::<HeldPacket>() + self.options.len() + self.payload.len()
    }
}

/// How far a sequence number lies ahead of another; less than 0 behind it.
#[inline]
fn ahead(number: u32, of: u32) -> i32 {
    number.wrapping_sub(of) as i32
}

impl Connection {
    /// Whether a segment with ACK from end `from` acknowledges bytes behind all that was seen.
    #[inline]
    pub(super) fn acknowledges_unseen(&self, segment: &TcpSegment<'_>, from: usize) -> bool {
        let highest = self.halves[1 - from].highest;
        highest.is_some_and(|highest| ahead(segment.acknowledgement, highest) > 1)
    }

    /// Whether end `side` sent bytes before a number that were not seen. One alone is a FIN's.
    fn is_unseen(&self, side: usize, number: u32) -> bool {
        let next = self.halves[side].order.next();
        next.is_some_and(|next| (2..=AHEAD_BYTES).contains(&ahead(number, next)))
    }

    /// The bytes of one end before which a packet is held: up to what number.
    fn awaited(&self, segment: &TcpSegment<'_>, from: usize) -> Option<(usize, u32)> {
        let acknowledges = segment.flags.has(TcpFlags::ACK) && !segment.flags.has(TcpFlags::RST);
        if acknowledges && self.is_unseen(1 - from, segment.acknowledgement) {
            return Some((1 - from, segment.acknowledgement));
        }
        // It was acknowledged before the loss was noticed.
        (0..2).find_map(|side| {
            let half = &self.halves[side];
            let number = half.acknowledged.filter(|_| half.order.has_hole())?;
            self.is_unseen(side, number).then_some((side, number))
        })
    }

    /// Whether a packet is to wait behind others, or for what it acknowledges.
    pub(super) fn holds(&self, segment: &TcpSegment<'_>, from: usize) -> bool {
        self.is_smb && (!self.held.is_empty() || self.awaited(segment, from).is_some())
    }

    /// Holds a packet until what it acknowledges was seen.
    #[cold]
    pub(super) fn hold(
        &mut self,
        segment: &TcpSegment<'_>,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        let held = HeldPacket::new(segment, from, time, frame);
        self.held_bytes += held.bytes();
        self.held.push_back(held);
        self.settle(Some(time), context, out);
    }

    /// Takes packets that need not be held any longer at a time; without a time all of them.
    pub(super) fn settle(&mut self, now: Option<i64>, context: &Context, out: &mut Output) {
        while let Some(first) = self.held.front() {
            let latest = first.time;
            let is_over = now.is_none_or(|now| {
                self.held.len() > HELD_PACKETS_MAX
                    || now.saturating_sub(latest) > HELD_NS_MAX
                    || self.held_bytes > context.limits.reorder_bytes
            });
            let (place, awaited) = self.next_held();
            if let Some((side, until)) = awaited {
                if !is_over {
                    return;
                }
                if self.is_missing(side, until) {
                    let frame = first.frame;
                    self.give_up_until(side, until, latest, frame, context, out);
                    continue;
                }
            }
            let Some(held) = self.held.remove(place) else { return };
            self.held_bytes -= held.bytes();
            // A packet that another one acknowledges came no later than that one.
            let time = held.time.min(latest);
            self.take(&held.segment(), held.from, time, held.frame, context, out);
        }
    }

    /// The place of the packet that comes next, and what is awaited before it.
    fn next_held(&self) -> (usize, Option<(usize, u32)>) {
        let (mut place, mut passed) = (0, Vec::new());
        while let Some(held) = self.held.get(place)
            && let Some((side, until)) = self.awaited(&held.segment, held.from)
            && !held.brings(side, until)
        {
            passed.push(place);
            let cause = (0..self.held.len())
                .find(|other| !passed.contains(other) && self.held[*other].brings(side, until));
            let Some(cause) = cause else { return (place, Some((side, until))) };
            place = cause;
        }
        (place, None)
    }

    /// Whether bytes before a number are lost, and not only late: later bytes of the same end have
    /// arrived.
    fn is_missing(&self, side: usize, until: u32) -> bool {
        let is_later = |held: &HeldPacket| {
            held.from == side && held.segment.payload_len > 0 && !held.brings(side, until)
        };
        self.halves[side].order.has_hole() || self.held.iter().any(is_later)
    }

    /// Continues at a number, or behind what waits before it.
    fn give_up_until(
        &mut self,
        side: usize,
        until: u32,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        while let Some(next) = self.halves[side].order.next()
            && let left @ 1.. = ahead(until, next)
        {
            let left = left as u32;
            let length = self.halves[side].order.hole().map_or(left, |(_, hole)| hole.min(left));
            self.skip(side, &Piece::lost(next, length, time, frame), context, out);
        }
    }
}

//! State of one direction of a connection.

use super::interval::HalfInterval;
use super::waits::Resent;
use crate::limits::{Limits, WaitingBytes};
use crate::stream::{Framer, Order, Piece};

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Half {
    pub(super) order: Order,
    pub(super) framer: Framer,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) retransmissions: u64,
    pub(super) recovery_ns: u64,
    /// End of a retransmission that is not yet acknowledged.
    pub(super) recovering: Option<u32>,
    /// Since when the oldest unacknowledged data waits: when it was sent, or the last
    /// acknowledgement before it.
    pub(super) waits_since: i64,
    /// When the highest byte was sent.
    pub(super) highest_at: i64,
    pub(super) out_of_order: u64,
    pub(super) gaps: u64,
    pub(super) gap_bytes: u64,
    pub(super) zero_windows: u64,
    pub(super) window_is_zero: bool,
    pub(super) window_max: u64,
    pub(super) window_scale: Option<u8>,
    /// The scale that applies to its windows.
    pub(super) window_shift: u8,
    pub(super) mss: Option<u16>,
    /// The sequence number behind the highest byte sent.
    pub(super) highest: Option<u32>,
    /// The highest acknowledgement that the other side sent for this direction.
    pub(super) acknowledged: Option<u32>,
    pub(super) in_flight_max: u64,
    pub(super) interval: HalfInterval,
    /// End of a segment and its time, until it is acknowledged: one sample at a time.
    pub(super) sample: Option<(u32, i64)>,
    pub(super) ttl: u8,
    /// What was retransmitted last.
    pub(super) resent: Option<Resent>,
}

impl Half {
    pub(super) fn new(limits: &Limits, waiting: WaitingBytes) -> Half {
        Half {
            order: Order::default(),
            framer: Framer::new(limits, waiting),
            packets: 0,
            bytes: 0,
            retransmissions: 0,
            recovery_ns: 0,
            recovering: None,
            waits_since: 0,
            highest_at: 0,
            out_of_order: 0,
            gaps: 0,
            gap_bytes: 0,
            zero_windows: 0,
            window_is_zero: false,
            window_max: 0,
            window_scale: None,
            window_shift: 0,
            mss: None,
            highest: None,
            acknowledged: None,
            in_flight_max: 0,
            interval: HalfInterval::default(),
            sample: None,
            ttl: 0,
            resent: None,
        }
    }

    /// Notes the highest byte sent.
    #[inline]
    pub(super) fn send(&mut self, piece: &Piece<'_>) {
        let end = piece.end();
        if self.highest.is_none_or(|highest| end.wrapping_sub(highest) as i32 > 0) {
            if self.highest == self.acknowledged {
                self.waits_since = piece.time;
            }
            self.highest = Some(end);
            self.highest_at = piece.time;
            if let Some(acknowledged) = self.acknowledged {
                let in_flight = (end.wrapping_sub(acknowledged) as i32).max(0) as u64;
                self.in_flight_max = self.in_flight_max.max(in_flight);
                self.interval.in_flight_max = self.interval.in_flight_max.max(in_flight);
            }
        }
    }

    /// Notes what it sent in order, of which the first `skip` bytes are not new.
    #[inline]
    pub(super) fn take(&mut self, piece: &Piece<'_>, skip: u32) {
        if self.sample.is_none() {
            self.sample = Some((piece.end(), piece.time));
        }
        self.bytes += u64::from(piece.length - skip);
    }
}

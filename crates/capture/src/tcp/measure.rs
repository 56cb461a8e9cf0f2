//! Round trips, windows and acknowledgements, and where the capture was taken.

use smbscope_tables::code::Vantage;

use super::connection::Connection;
use super::is_soon;
use crate::frame::{TcpFlags, TcpSegment};
use crate::outcome::Output;

/// Progress of the TCP handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    pub(super) syn: Option<(i64, u32)>,
    /// More than one SYN: its time says nothing.
    pub(super) syn_repeated: bool,
    pub(super) syn_ack: Option<(i64, u32)>,
    pub(super) done: bool,
}

impl Connection {
    pub(super) fn control(
        &mut self,
        segment: &TcpSegment<'_>,
        from: usize,
        time: i64,
        out: &mut Output,
    ) {
        let flags = segment.flags;
        if flags.has(TcpFlags::RST) {
            self.reset = true;
            self.reset_by.get_or_insert(from);
            self.resets += 1;
            return;
        }
        let before = if flags.has(TcpFlags::ACK) {
            self.handshake.syn_ack.map(|(sent, next)| (sent, next.wrapping_sub(1)))
        } else {
            self.handshake.syn
        };
        if before.is_some_and(|(sent, number)| number == segment.sequence && is_soon(sent, time)) {
            self.is_copied(out);
            return;
        }
        let half = &mut self.halves[from];
        if half.order.next().is_none() {
            half.order.set_next(segment.sequence.wrapping_add(1));
        }
        half.mss = segment.mss().or(half.mss);
        half.window_scale = segment.window_scale();
        // Scaling holds when both sides announced it (RFC 7323 section 2.2).
        let holds = self.halves.iter().all(|half| half.window_scale.is_some());
        for half in &mut self.halves {
            half.window_shift = half.window_scale.filter(|_| holds).unwrap_or(0);
        }
        if flags.has(TcpFlags::ACK) {
            self.client = Some(1 - from);
            if let Some((sent, _)) = self.handshake.syn
                && self.handshake.syn_ack.is_none()
                && !self.handshake.syn_repeated
            {
                self.pairing.server_side.add_handshake(time.saturating_sub(sent));
            }
            if self.handshake.syn_ack.is_none() {
                self.handshake.syn_ack = Some((time, segment.sequence.wrapping_add(1)));
            } else {
                // A retransmission: the acknowledgement may answer either.
                self.handshake.done = true;
            }
        } else {
            self.client = Some(from);
            self.handshake.syn_repeated = self.handshake.syn.is_some();
            self.handshake.syn = Some((time, segment.sequence));
            self.smb2.begin_credits();
        }
    }

    /// Windows, acknowledgements and round trips.
    #[inline(always)]
    pub(super) fn measure(
        &mut self,
        segment: &TcpSegment<'_>,
        flags: TcpFlags,
        from: usize,
        is_client: bool,
        time: i64,
    ) {
        let [low, high] = &mut self.halves;
        let (own, other) = if from == 0 { (low, high) } else { (high, low) };
        own.packets += 1;
        own.ttl = segment.ttl;
        if !flags.has(TcpFlags::RST) {
            let is_zero = segment.window == 0 && !flags.has(TcpFlags::SYN);
            own.zero_windows += u64::from(is_zero && !own.window_is_zero);
            own.window_is_zero = is_zero;
            let shift = if flags.has(TcpFlags::SYN) { 0 } else { own.window_shift };
            own.window_max = own.window_max.max(u64::from(segment.window) << shift);
        }
        if !flags.has(TcpFlags::ACK) {
            return;
        }
        let number = segment.acknowledgement;
        if other.acknowledged.is_none_or(|before| number.wrapping_sub(before) as i32 > 0) {
            other.acknowledged = Some(number);
            if let Some(end) = other.recovering
                && number.wrapping_sub(end) as i32 >= 0
            {
                other.recovering = None;
                if let Some(resent) = &mut other.resent {
                    resent.acknowledged.get_or_insert(time);
                }
                self.pairing.recoveries.add(other.waits_since, time);
                other.recovery_ns += time.abs_diff(other.waits_since);
            }
            other.waits_since = time;
        }
        if let Some((end, sent)) = other.sample
            && number.wrapping_sub(end) as i32 >= 0
        {
            other.sample = None;
            // Of packets in another order than that of their times, none is a sample.
            let passed = time.saturating_sub(sent);
            if passed >= 0 {
                other.interval.round_trip_ns = other.interval.round_trip_ns.min(passed);
                // The end that acknowledges is on the far side of this round trip.
                let side = if is_client {
                    &mut self.pairing.client_side
                } else {
                    &mut self.pairing.server_side
                };
                // With data of its own, the acknowledgement may have waited for them.
                if segment.payload_len > 0 {
                    side.add_bound(passed);
                } else {
                    side.add_data(passed);
                }
            }
        }
        if is_client
            && !self.handshake.done
            && let Some((sent, end)) = self.handshake.syn_ack
            && number == end
            && !flags.has(TcpFlags::SYN)
        {
            self.handshake.done = true;
            self.pairing.client_side.add_handshake(time.saturating_sub(sent));
            self.judge_vantage();
        }
    }

    /// Whether the machine that records is an end of the connection.
    pub(super) fn is_of_host(&self) -> bool {
        self.host != [false; 2]
    }

    /// Where the capture was taken, according to the addresses or to the two round trips.
    pub(super) fn judge_vantage(&mut self) {
        const NEAR_NS: i64 = 500_000;
        let pairing = &mut self.pairing;
        if self.ends[0].ip() == self.ends[1].ip() || self.host == [true; 2] {
            pairing.vantage = Some(Vantage::Server);
            self.vantage_reason = "client and server are the same machine";
            return;
        }
        if let Some(end) = self.host.iter().position(|&is_host| is_host)
            && let Some(client) = self.client
        {
            (pairing.vantage, self.vantage_reason) = if end == client {
                (Some(Vantage::Client), "the client is the machine that recorded")
            } else {
                (Some(Vantage::Server), "the server is the machine that recorded")
            };
            return;
        }
        let sides = pairing.server_side.estimate().zip(pairing.client_side.estimate());
        let Some(((server, _), (client, _))) = sides else { return };
        let (vantage, reason) = if server < NEAR_NS && server.saturating_mul(3) < client {
            (
                Vantage::Server,
                "the round trip to the server is much shorter than that to the client",
            )
        } else if client < NEAR_NS && client.saturating_mul(3) < server {
            (
                Vantage::Client,
                "the round trip to the client is much shorter than that to the server",
            )
        } else {
            (Vantage::Between, "the round trips to both sides are of similar length")
        };
        pairing.vantage = Some(vantage);
        self.vantage_reason = reason;
    }

    /// Without a handshake the round trips of data are used.
    #[inline]
    pub(super) fn judge_by_data(&mut self) {
        if self.pairing.vantage.is_none()
            && self.pairing.server_side.samples.min(self.pairing.client_side.samples) == 4
        {
            self.judge_vantage();
        }
    }
}

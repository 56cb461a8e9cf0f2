//! Samples of the streams of a phase: `tcp_info` of those that this side sends, and, where the other
//! side reports nothing, the bytes that arrived.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::message::Interval;
use super::socket_option::tcp_info;
use super::spec::Direction;
use smbscope_client::tcp_info::TcpInfo;

/// One stream, as the sampler sees it.
pub(super) struct Sampled {
    pub(super) direction: Direction,
    pub(super) number: u32,
    pub(super) stream: TcpStream,
    pub(super) count: Arc<AtomicU64>,
    /// Whether this side sends.
    pub(super) sends: bool,
    last: Option<TcpInfo>,
    /// `bytes_acked` before the first byte.
    acked_before: u64,
    /// Payload that earlier intervals reported.
    reported: u64,
    last_ns: i64,
}

impl Sampled {
    pub(super) fn new(
        direction: Direction,
        number: u32,
        stream: TcpStream,
        count: Arc<AtomicU64>,
        sends: bool,
    ) -> Sampled {
        let last = if sends { tcp_info(&stream) } else { None };
        let acked_before = last.as_ref().and_then(|info| info.bytes_acked).unwrap_or(0);
        Sampled {
            direction,
            number,
            stream,
            count,
            sends,
            last,
            acked_before,
            reported: 0,
            last_ns: 0,
        }
    }

    /// Whether nothing is on the way.
    pub(super) fn is_drained(&self) -> bool {
        tcp_info(&self.stream).is_none_or(|info| info.is_drained())
    }

    /// The interval that ends `now_ns` after the start of the phase.
    pub(super) fn sample(&mut self, now_ns: i64) -> Interval {
        let count = self.count.load(Ordering::Relaxed);
        let mut interval = Interval {
            direction: self.direction,
            stream: self.number,
            end_ns: now_ns,
            duration_ns: now_ns - self.last_ns,
            ..Interval::default()
        };
        let mut bytes = count;
        if self.sends
            && let Some(info) = tcp_info(&self.stream)
        {
            // The end of the stream is acknowledged like a byte.
            let acked = info.bytes_acked.map(|acked| acked.saturating_sub(self.acked_before));
            bytes = acked.map_or(count, |acked| acked.min(count));
            let before = self.last.take().unwrap_or_default();
            fill(&mut interval, &before, &info);
            self.last = Some(info);
        }
        interval.bytes = bytes.saturating_sub(self.reported);
        self.reported = self.reported.max(bytes);
        self.last_ns = now_ns;
        interval
    }
}

/// What changed from one sample to the next.
fn fill(interval: &mut Interval, before: &TcpInfo, now: &TcpInfo) {
    let spent = |before: Option<u64>, now: Option<u64>| {
        let us = now?.saturating_sub(before.unwrap_or(0));
        Some(i64::try_from(us).unwrap_or(i64::MAX).saturating_mul(1000))
    };
    let segment = u64::from(now.snd_mss);
    interval.rtt_ns = Some(i64::from(now.rtt_us) * 1000);
    interval.rtt_min_ns = now.min_rtt_us.map(|us| i64::from(us) * 1000);
    interval.cwnd_bytes = Some(u64::from(now.snd_cwnd) * segment);
    interval.peer_window_bytes = now.snd_wnd.map(u64::from);
    interval.in_flight_bytes = Some(u64::from(now.unacked) * segment);
    interval.retransmissions =
        Some(u64::from(now.total_retrans.saturating_sub(before.total_retrans)));
    interval.busy_ns = spent(before.busy_us, now.busy_us);
    interval.rwnd_limited_ns = spent(before.rwnd_limited_us, now.rwnd_limited_us);
    interval.sndbuf_limited_ns = spent(before.sndbuf_limited_us, now.sndbuf_limited_us);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_differences_and_states_stay() {
        let before = TcpInfo { total_retrans: 2, busy_us: Some(50), ..TcpInfo::default() };
        let now = TcpInfo {
            total_retrans: 5,
            busy_us: Some(80),
            snd_mss: 10,
            snd_cwnd: 7,
            rtt_us: 9,
            ..TcpInfo::default()
        };
        let mut interval = Interval::default();
        fill(&mut interval, &before, &now);
        assert_eq!(interval.retransmissions, Some(3));
        assert_eq!((interval.busy_ns, interval.rwnd_limited_ns), (Some(30_000), None));
        assert_eq!((interval.cwnd_bytes, interval.rtt_ns), (Some(70), Some(9_000)));
    }
}

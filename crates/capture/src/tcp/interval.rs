//! What is measured of TCP within each interval of the table `channels`.

use smbscope_tables::channels::{INTERVAL_NS, Network};

use super::connection::Connection;
use super::half::Half;
use crate::outcome::{NetworkSample, Output};

/// One direction within the interval at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfInterval {
    /// Most unacknowledged bytes.
    pub(super) in_flight_max: u64,
    /// Least round trip between the capture point and the receiver; the maximum if there is none.
    pub(super) round_trip_ns: i64,
}

impl Default for HalfInterval {
    fn default() -> HalfInterval {
        HalfInterval { in_flight_max: 0, round_trip_ns: i64::MAX }
    }
}

/// The interval at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    /// Its end.
    end: i64,
    /// Retransmissions that earlier intervals had.
    retransmissions: u64,
}

impl Interval {
    /// Whether it is over at that time.
    #[inline(always)]
    pub(super) fn is_over(&self, time: i64) -> bool {
        time >= self.end
    }
}

impl Connection {
    /// Reports the interval that is over, and begins the one of that time.
    #[cold]
    pub(super) fn next_interval(&mut self, time: i64, out: &mut Output) {
        self.end_interval(out);
        let start = time.div_euclid(INTERVAL_NS).saturating_mul(INTERVAL_NS);
        self.interval.end = start.saturating_add(INTERVAL_NS);
    }

    /// Reports the interval at hand.
    pub(super) fn end_interval(&mut self, out: &mut Output) {
        let retransmissions = self.halves.iter().map(|half| half.retransmissions).sum::<u64>();
        let [low, high] = self.halves.each_mut().map(take);
        let trips = [low, high].map(|half| half.round_trip_ns).into_iter();
        // From the capture point to both ends: together the whole path.
        let round_trip_ns = trips
            .filter(|&trip| trip < i64::MAX)
            .fold(None, |sum: Option<i64>, trip| Some(sum.unwrap_or(0).saturating_add(trip)));
        let in_flight = low.in_flight_max.max(high.in_flight_max);
        let again = retransmissions - self.interval.retransmissions;
        if !self.is_smb || in_flight == 0 && round_trip_ns.is_none() && again == 0 {
            return;
        }
        self.interval.retransmissions = retransmissions;
        out.network.push(NetworkSample {
            connection: self.pairing.index,
            order: out.order,
            time: self.interval.end - INTERVAL_NS,
            state: Network {
                bytes_in_flight: (in_flight > 0).then_some(in_flight),
                round_trip_ns,
                retransmissions: Some(again),
            },
        });
    }
}

fn take(half: &mut Half) -> HalfInterval {
    std::mem::take(&mut half.interval)
}

//! What a second server that holds the same data would cost and need: the arithmetic of `smbscope plan replication`.
//!
//! [`load`] keeps how many bytes were written in each second, which is all that a recording of days becomes; from it
//! follow the log, an outage of the link and the initial copy. Waits and data at risk come from a replay
//! ([`crate::predict::replay`]), which also answers which round trip a [`goal`] allows ([`search`]).
//! [`forecast`] is what comes out. The same arithmetic holds for Windows' Storage Replica, DRBD and replication between file
//! systems: what differs is what a reply waits for.

mod bins;
pub mod forecast;
pub mod goal;
pub mod load;
pub mod search;

use smbscope_tables::tables::NetTest;

use crate::net::Net;

/// A link between both servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Round trip, ns.
    pub rtt_ns: i64,
    /// Rate, bit/s; `None` without a limit.
    pub bandwidth_bits: Option<f64>,
}

impl Link {
    /// The link that a test of the network measured, run from the first server to the second (`smbscope net send`): the
    /// median of its small round trips, else the smallest one under load; and the rate to the other side, alone and
    /// without a pace where there is such a phase. `None` without a round trip.
    pub fn measured(net: &Net) -> Option<Link> {
        let echoes = net.round_trips.iter().filter(|row| row.kind == "echo");
        let echo = echoes.min_by_key(|row| row.payload_bytes).map(|row| row.p50_ns);
        let rtt_ns = echo.or_else(|| net.tests.iter().filter_map(|test| test.rtt_min_ns).min());
        let is_free = |test: &&NetTest| test.pace_bits_per_second.is_none();
        let key = |test: &&NetTest| (test.direction == "send", !test.together);
        let best = net.tests.iter().filter(is_free).max_by(|a, b| {
            key(a).cmp(&key(b)).then(a.bits_per_second.total_cmp(&b.bits_per_second))
        });
        let bandwidth_bits = best.map(|test| test.bits_per_second).filter(|bits| *bits > 0.0);
        Some(Link { rtt_ns: rtt_ns.filter(|ns| *ns >= 0)?, bandwidth_bits })
    }

    /// Bytes that it carries in a second; none without a limit.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.bandwidth_bits.map(|bits| bits / 8.0)
    }
}

#[cfg(test)]
mod tests {
    use smbscope_tables::tables::NetRoundTrip;

    use super::*;

    #[test]
    fn a_measured_line_has_the_echo_and_the_rate_to_the_other_side() {
        let test = |direction: &str, together, bits_per_second, pace| NetTest {
            direction: direction.into(),
            together,
            bits_per_second,
            pace_bits_per_second: pace,
            rtt_min_ns: Some(900),
            ..NetTest::default()
        };
        let tests = vec![
            test("send", true, 9e9, None),
            test("send", false, 5e9, None),
            test("send", false, 6e9, Some(6_000_000_000)),
            test("receive", false, 8e9, None),
        ];
        let echo = NetRoundTrip { kind: "echo".into(), p50_ns: 2_000, ..NetRoundTrip::default() };
        let read = NetRoundTrip { kind: "read".into(), p50_ns: 1, ..NetRoundTrip::default() };
        let net = Net { tests, round_trips: vec![read, echo], ..Net::default() };
        assert_eq!(Link::measured(&net), Some(Link { rtt_ns: 2_000, bandwidth_bits: Some(5e9) }));
        let without = Net { round_trips: Vec::new(), ..net };
        assert_eq!(Link::measured(&without).map(|line| line.rtt_ns), Some(900));
        assert_eq!(Link::measured(&Net::default()), None);
    }
}

//! What a connection's path carries at most, from a capture alone: where no test of the network can run.
//!
//! Two bounds, of the direction with more payload. *Window*: the most bytes that were on their way, over the
//! round trip; TCP did not move more than that in any round trip. *Loss*: segment size over round trip times
//! sqrt(3 / (2 p)), M. Mathis, J. Semke, J. Mahdavi and T. Ott, "The macroscopic behavior of the TCP congestion
//! avoidance algorithm", 1997; other congestion controls (CUBIC, BBR) get more with the same loss, so that it is a
//! bound for Reno only.

use serde::Serialize;
use smbscope_tables::tables::Connection;

/// Fewest packets from which a share of loss is computed.
const PACKETS_MIN: u64 = 1_000;
/// Fewest retransmissions of the same.
const RETRANSMISSIONS_MIN: u64 = 3;
/// Segment size where the handshake was not captured (Ethernet, time stamps).
const SEGMENT_BYTES: u64 = 1_448;

/// Bounds of a connection, bits/s; null where the recording does not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PathBound {
    /// Most bytes in flight over the round trip.
    pub window_bound_bits_per_second: Option<f64>,
    /// By loss, for Reno's congestion control.
    pub loss_bound_bits_per_second: Option<f64>,
}

/// The bounds of a connection over TCP.
pub fn path_bound(row: &Connection) -> PathBound {
    let is_tcp = row.transport.as_deref().is_none_or(|transport| transport == "tcp");
    let trip = match (row.server_rtt_ns, row.client_rtt_ns, row.vantage.as_deref()) {
        (Some(server), Some(client), _) => server.checked_add(client),
        // At one end, the round trip to the other one is all of it.
        (Some(server), None, Some("client")) => Some(server),
        (None, Some(client), Some("server")) => Some(client),
        _ => None,
    };
    let Some(trip) = trip.filter(|ns| *ns > 0 && is_tcp) else { return PathBound::default() };
    let seconds = trip as f64 / 1e9;
    let (in_flight, packets, retransmissions, segment) =
        if row.bytes_to_client >= row.bytes_to_server {
            (
                row.in_flight_max_to_client,
                row.packets_to_client,
                row.retransmissions_to_client,
                row.client_mss,
            )
        } else {
            (
                row.in_flight_max_to_server,
                row.packets_to_server,
                row.retransmissions_to_server,
                row.server_mss,
            )
        };
    let window = (in_flight > 0).then(|| in_flight as f64 * 8.0 / seconds);
    let is_known = packets >= PACKETS_MIN && retransmissions >= RETRANSMISSIONS_MIN;
    let loss = is_known.then(|| {
        let share = (retransmissions as f64 / packets as f64).min(1.0);
        let segment = segment.unwrap_or(SEGMENT_BYTES) as f64;
        segment * 8.0 / seconds * (1.5 / share).sqrt()
    });
    PathBound { window_bound_bits_per_second: window, loss_bound_bits_per_second: loss }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Connection {
        Connection {
            vantage: Some("client".into()),
            server_rtt_ns: Some(10_000_000),
            bytes_to_client: 1 << 30,
            packets_to_client: 1_000_000,
            in_flight_max_to_client: 1_000_000,
            in_flight_max_to_server: 7,
            client_mss: Some(1_460),
            ..Connection::default()
        }
    }

    #[test]
    fn bytes_in_flight_over_the_round_trip_are_the_bound() {
        let bound = path_bound(&row());
        assert_eq!(bound.window_bound_bits_per_second, Some(8e8));
        assert_eq!(bound.loss_bound_bits_per_second, None);
        let both = path_bound(&Connection { client_rtt_ns: Some(10_000_000), ..row() });
        assert_eq!(both.window_bound_bits_per_second, Some(4e8));
    }

    #[test]
    fn loss_bounds_as_published() {
        // 1,460 bytes, 10 ms, 1 of 10,000: 1,460 * 8 / 0.01 * sqrt(15,000).
        let bound = path_bound(&Connection { retransmissions_to_client: 100, ..row() });
        let found = bound.loss_bound_bits_per_second.unwrap_or_default();
        assert!((found / 143.04e6 - 1.0).abs() < 0.001, "{found}");
        // Two segments can be chance.
        let bound = path_bound(&Connection { retransmissions_to_client: 2, ..row() });
        assert_eq!(bound.loss_bound_bits_per_second, None);
    }

    #[test]
    fn without_the_whole_round_trip_nothing_is_said() {
        let none = PathBound::default();
        assert_eq!(path_bound(&Connection { vantage: Some("between".into()), ..row() }), none);
        assert_eq!(path_bound(&Connection { transport: Some("quic".into()), ..row() }), none);
        assert_eq!(path_bound(&Connection { server_rtt_ns: Some(0), ..row() }), none);
    }
}

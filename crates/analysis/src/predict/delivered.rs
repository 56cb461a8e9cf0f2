//! What TCP delivered in one round trip, from the bytes of each interval.
//!
//! A capture at the receiver does not show how many bytes are on their way: they are acknowledged as they arrive. What
//! arrives in one round trip is as much. Where that is the receive window, the window limits the transfer, and more
//! channels or a larger window carry more.

use hashbrown::HashMap;
use smbscope_tables::tables::{Channel, Connection};

/// Connections that are followed.
const CONNECTIONS_MAX: usize = 65_536;

/// Most bytes of an interval, per second, to the server and to the client.
#[derive(Clone, Debug, Default)]
pub struct Delivered {
    rates: HashMap<(String, u64), [f64; 2]>,
}

impl Delivered {
    /// Adds what channels carried.
    pub fn channels(&mut self, rows: &[Channel]) {
        for row in rows.iter().filter(|row| row.interval_ns > 0) {
            let key = (row.recording.to_string(), row.connection);
            if self.rates.len() >= CONNECTIONS_MAX && !self.rates.contains_key(&key) {
                continue;
            }
            let rate = |bytes: u64| bytes as f64 * 1e9 / row.interval_ns as f64;
            let most = self.rates.entry(key).or_default();
            most[0] = most[0].max(rate(row.bytes_written));
            most[1] = most[1].max(rate(row.bytes_read));
        }
    }

    /// The connections, with no fewer bytes in flight than arrived in a round trip, at most the receive window.
    pub fn applied(&self, connections: &[Connection]) -> Vec<Connection> {
        let mut connections = connections.to_vec();
        for row in &mut connections {
            let key = (row.recording.clone(), row.connection);
            let Some([to_server, to_client]) = self.rates.get(&key) else { continue };
            let trip =
                row.server_rtt_ns.unwrap_or(0).saturating_add(row.client_rtt_ns.unwrap_or(0));
            let of = |rate: f64, window: Option<u64>| {
                let bytes = (rate * trip.max(0) as f64 / 1e9) as u64;
                window.map_or(0, |window| bytes.min(window))
            };
            let in_flight = &mut row.in_flight_max_to_server;
            *in_flight = (*in_flight).max(of(*to_server, row.server_window_max));
            let in_flight = &mut row.in_flight_max_to_client;
            *in_flight = (*in_flight).max(of(*to_client, row.client_window_max));
        }
        connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_in_a_round_trip_was_in_flight() {
        let row = |bytes_read| Channel {
            recording: "run".into(),
            connection: 3,
            interval_ns: 100_000_000,
            bytes_read,
            ..Channel::default()
        };
        let mut delivered = Delivered::default();
        delivered.channels(&[row(10), row(800_000), row(5)]);
        let connection = |window| Connection {
            recording: "run".into(),
            connection: 3,
            server_rtt_ns: Some(20_000_000),
            client_window_max: window,
            ..Connection::default()
        };
        let in_flight =
            |window| delivered.applied(&[connection(window)])[0].in_flight_max_to_client;
        assert_eq!(in_flight(Some(1 << 20)), 160_000);
        assert_eq!(in_flight(Some(150_000)), 150_000);
        // Without a window there is nothing to compare with.
        assert_eq!(in_flight(None), 0);
    }
}

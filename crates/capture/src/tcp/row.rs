//! A connection as a row of the connections table.

use smbscope_tables::tables::Connection as Row;

use super::EndReason;
use super::connection::Connection;

impl Connection {
    /// The connection's row, without number and recording.
    pub(super) fn row(&mut self, reason: EndReason) -> Row {
        let client = self.client.unwrap_or(0);
        let (to_server, to_client) = (&self.halves[client], &self.halves[1 - client]);
        let (server_side, client_side) = (self.pairing.server_side, self.pairing.client_side);
        let scaled = to_server.window_scale.is_some() && to_client.window_scale.is_some();
        // Without the handshake the scale is unknown.
        let known = scaled || self.handshake.syn.is_some() && self.handshake.syn_ack.is_some();
        let end_reason = match reason {
            _ if self.reset => "reset",
            _ if self.fins[0] || self.fins[1] => "fin",
            EndReason::Reused => "reused",
            EndReason::Idle => "idle",
            EndReason::Capture => "end of the capture",
        };
        let carrier = self.carrier.take();
        let moved = carrier.as_ref().and_then(|carrier| carrier.moved);
        let queue_pair = |end: usize| {
            let pairs = carrier.as_ref().map(|carrier| carrier.queue_pairs)?;
            pairs.get(end).copied().flatten().map(u64::from)
        };
        let begins = carrier.as_ref().is_some_and(|carrier| carrier.connect_seen);
        Row {
            client: self.ends[client].ip().to_string(),
            client_port: u64::from(self.ends[client].port()),
            server: self.ends[1 - client].ip().to_string(),
            server_port: u64::from(self.ends[1 - client].port()),
            start: self.first,
            end: self.last,
            handshake_seen: begins
                || self.handshake.syn.is_some() && self.handshake.syn_ack.is_some(),
            end_reason: end_reason.to_owned(),
            vantage: self.pairing.vantage.map(|vantage| vantage.name().to_owned()),
            vantage_reason: match self.pairing.vantage {
                Some(_) => self.vantage_reason.to_owned(),
                None => "no round trip was measured on both sides".to_owned(),
            },
            server_rtt_ns: server_side.estimate().map(|(least, _)| least),
            server_rtt_handshake_ns: server_side.handshake,
            server_rtt_data_ns: server_side.data,
            server_rtt_samples: server_side.samples,
            client_rtt_ns: client_side.estimate().map(|(least, _)| least),
            client_rtt_handshake_ns: client_side.handshake,
            client_rtt_data_ns: client_side.data,
            client_rtt_samples: client_side.samples,
            client_mss: to_server.mss.map(u64::from),
            server_mss: to_client.mss.map(u64::from),
            client_window_scale: to_server.window_scale.map(u64::from),
            server_window_scale: to_client.window_scale.map(u64::from),
            client_window_max: known.then_some(to_server.window_max),
            server_window_max: known.then_some(to_client.window_max),
            packets_to_server: to_server.packets,
            packets_to_client: to_client.packets,
            bytes_to_server: to_server.bytes,
            bytes_to_client: to_client.bytes,
            in_flight_max_to_server: to_server.in_flight_max,
            in_flight_max_to_client: to_client.in_flight_max,
            retransmissions_to_server: to_server.retransmissions,
            retransmissions_to_client: to_client.retransmissions,
            out_of_order_to_server: to_server.out_of_order,
            out_of_order_to_client: to_client.out_of_order,
            gaps_to_server: to_server.gaps,
            gaps_to_client: to_client.gaps,
            gap_bytes_to_server: to_server.gap_bytes,
            gap_bytes_to_client: to_client.gap_bytes,
            recovery_ns_to_server: to_server.recovery_ns,
            recovery_ns_to_client: to_client.recovery_ns,
            zero_windows_to_server: to_server.zero_windows,
            zero_windows_to_client: to_client.zero_windows,
            resets: self.resets,
            reset_by_client: self.reset_by.map(|end| end == client),
            transport: Some(carrier.as_ref().map_or("tcp", |carrier| carrier.transport).to_owned()),
            queue_pair_client: queue_pair(client),
            queue_pair_server: queue_pair(1 - client),
            rdma_reads: moved.map(|moved| moved.reads),
            rdma_writes: moved.map(|moved| moved.writes),
            rdma_bytes: moved.map(|moved| moved.bytes),
            naks: moved.map(|moved| moved.naks),
            ..std::mem::take(&mut *self.pairing.table)
        }
    }
}

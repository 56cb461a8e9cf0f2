//! Joins the probe's operations with what an interface showed of them at the same time.
//!
//! A row of the probe is matched to its row of the wire by the connection's addresses and the TCP
//! sequence number of the request's first byte, which also works in encrypted sessions and over several
//! channels. The row keeps the probe's content and slices and takes the wire's times and lengths. Those
//! of a compound are in the row of its first member, in both; the wire has no more about its later
//! members, and does not show them for an encrypted compound. Bounded; unmatched rows are counted.

use std::collections::VecDeque;

use smbscope_capture::Endpoints;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::assemble::HashMap;
use crate::operation::RequestKey;

/// Most rows of the wire that wait for the probe's.
const ROWS_MAX: usize = 1 << 17;
/// Most connections that wait.
const CONNECTIONS_MAX: usize = 1 << 16;

/// The values that a row of the wire has and one of the probe does not.
#[derive(Clone, Copy)]
struct WireTimes {
    request_start: Option<i64>,
    request_end: Option<i64>,
    pending_at: Option<i64>,
    response_start: Option<i64>,
    response_end: Option<i64>,
    client_gap_ns: Option<i64>,
    request_wire_bytes: Option<u64>,
    response_wire_bytes: Option<u64>,
    request_frame: Option<u64>,
    response_frame: Option<u64>,
    pending_frame: Option<u64>,
}

type Key = (String, u64, String, u64);

/// Rows of the wire that wait for their row of the probe.
#[derive(Clone, Default)]
pub struct WireRows {
    rows: HashMap<RequestKey, WireTimes>,
    order: VecDeque<RequestKey>,
    connections: HashMap<Key, VecDeque<Connection>>,
    connections_held: usize,
    has_frames: bool,
    /// Rows that were given up.
    unjoined: u64,
}

impl WireRows {
    /// No rows yet; `has_frames` says that packets are kept, so that their numbers are meaningful.
    pub fn new(has_frames: bool) -> WireRows {
        WireRows { has_frames, ..WireRows::default() }
    }

    /// Adds a row of the wire.
    pub fn row(&mut self, row: &Operation, ends: &Endpoints) {
        if row.compound_index().unwrap_or(0) > 0 {
            return;
        }
        // Unsolicited messages of the server (breaks) have no request to match; a reply whose request
        // was not captured is counted as that.
        let Some(sequence) = row.tcp_sequence() else { return };
        let place = RequestKey { client: ends.client, server: ends.server, sequence, index: 0 };
        let times = WireTimes {
            request_start: row.request_start(),
            request_end: row.request_end(),
            pending_at: row.pending_at(),
            response_start: row.response_start(),
            response_end: row.response_end(),
            client_gap_ns: row.client_gap_ns(),
            request_wire_bytes: row.request_wire_bytes(),
            response_wire_bytes: row.response_wire_bytes(),
            request_frame: row.request_frame(),
            response_frame: row.response_frame(),
            pending_frame: row.pending_frame(),
        };
        match self.rows.insert(place, times) {
            // The sequence numbers wrapped around, and the previous row will not be matched any more.
            Some(_) => self.unjoined += 1,
            None => self.order.push_back(place),
        }
        while self.order.len() > ROWS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.unjoined += u64::from(self.rows.remove(&oldest).is_some());
            }
        }
    }

    /// The probe records from now on: earlier rows match nothing.
    pub fn begin(&mut self) {
        self.rows.clear();
        self.order.clear();
        self.unjoined = 0;
    }

    /// Adds a connection of the wire.
    pub fn connection(&mut self, row: Connection) {
        if self.connections_held < CONNECTIONS_MAX {
            self.connections_held += 1;
            self.connections.entry(key(&row)).or_default().push_back(row);
        }
    }

    /// Adds the wire's values to a row of the probe; returns whether there were any.
    pub fn join(&mut self, place: &RequestKey, row: &mut Operation) -> bool {
        let Some(times) = self.rows.remove(place) else { return false };
        known(row, times.request_start, Operation::set_request_start);
        known(row, times.request_end, Operation::set_request_end);
        known(row, times.pending_at, Operation::set_pending_at);
        known(row, times.response_start, Operation::set_response_start);
        known(row, times.response_end, Operation::set_response_end);
        known(row, times.client_gap_ns, Operation::set_client_gap_ns);
        row.derive_durations();
        known(row, times.request_wire_bytes, Operation::set_request_wire_bytes);
        known(row, times.response_wire_bytes, Operation::set_response_wire_bytes);
        if self.has_frames {
            known(row, times.request_frame, Operation::set_request_frame);
            known(row, times.response_frame, Operation::set_response_frame);
            known(row, times.pending_frame, Operation::set_pending_frame);
        }
        true
    }

    /// A connection of the probe with the values of TCP from the wire.
    pub fn joined(&mut self, inside: Connection) -> Connection {
        let seen = self.connections.get_mut(&key(&inside)).and_then(VecDeque::pop_front);
        let Some(seen) = seen else { return inside };
        self.connections_held -= 1;
        // The probe knows the SMB values, in plaintext, with the numbers that the rows use.
        Connection {
            recording: inside.recording,
            connection: inside.connection,
            dialect: inside.dialect.or(seen.dialect),
            operations: inside.operations,
            unanswered: inside.unanswered,
            outstanding_max: inside.outstanding_max,
            signed: inside.signed,
            encrypted: inside.encrypted,
            compressed: inside.compressed,
            compounds: inside.compounds,
            breaks: inside.breaks,
            credits_max: inside.credits_max,
            credits_min: inside.credits_min,
            max_transact_bytes: inside.max_transact_bytes.or(seen.max_transact_bytes),
            max_read_bytes: inside.max_read_bytes.or(seen.max_read_bytes),
            max_write_bytes: inside.max_write_bytes.or(seen.max_write_bytes),
            signing_required: inside.signing_required.or(seen.signing_required),
            signing_algorithm: inside.signing_algorithm.or(seen.signing_algorithm),
            cipher: inside.cipher.or(seen.cipher),
            compression: inside.compression.or(seen.compression),
            server_capabilities: inside.server_capabilities.or(seen.server_capabilities),
            client_capabilities: inside.client_capabilities.or(seen.client_capabilities),
            client_guid: inside.client_guid.or(seen.client_guid),
            client_signing_required: inside
                .client_signing_required
                .or(seen.client_signing_required),
            server_interfaces: inside.server_interfaces.or(seen.server_interfaces),
            ..seen
        }
    }

    /// Rows of the wire without a row of the probe, including those that still wait.
    pub fn left(&self) -> u64 {
        self.unjoined + self.rows.len() as u64
    }
}

pub(crate) fn known<T>(row: &mut Operation, value: Option<T>, set: fn(&mut Operation, T)) {
    if let Some(value) = value {
        set(row, value);
    }
}

fn key(row: &Connection) -> Key {
    (row.client.clone(), row.client_port, row.server.clone(), row.server_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_before_the_probe_are_not_missing() {
        let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let ends = Endpoints { client: address(50_000), server: address(445) };
        let mut wire = WireRows::new(false);
        let row = |wire: &mut WireRows, sequence| {
            let mut row = Operation::default();
            row.set_tcp_sequence(sequence);
            wire.row(&row, &ends);
        };
        row(&mut wire, 1);
        wire.begin();
        row(&mut wire, 2);
        assert_eq!(wire.left(), 1);
    }
}

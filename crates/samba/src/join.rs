//! What an interface showed of the operations that the probe saw, recorded at the same time.
//!
//! A row of the probe finds its row of the wire by the connection's addresses and the TCP sequence
//! number of the request's first byte: so also in encrypted sessions and over several channels. The
//! row keeps the probe's content and slices and takes the wire's times and lengths. Those of a
//! compound are in the row of its first member, in both; of its later members the wire says nothing more, and of an
//! encrypted compound it does not show them. Bounded; what finds nothing is counted.

use std::collections::VecDeque;

use smbscope_capture::Endpoints;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::assemble::HashMap;
use crate::operation::RequestKey;

/// Rows of the wire that wait for the probe's.
const ROWS_MAX: usize = 1 << 17;
/// Connections that do.
const CONNECTIONS_MAX: usize = 1 << 16;

/// What a row of the wire has that one of the probe has not.
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
    /// None yet; `has_frames` says that packets are kept, so that their numbers mean something.
    pub fn new(has_frames: bool) -> WireRows {
        WireRows { has_frames, ..WireRows::default() }
    }

    /// Takes a row of the wire.
    pub fn row(&mut self, row: &Operation, ends: &Endpoints) {
        if row.compound_index().unwrap_or(0) > 0 {
            return;
        }
        // What the server sends unasked (breaks) has no request that it could be found by; a reply whose
        // request was not seen is counted as that.
        let Some(sequence) = row.tcp_sequence() else { return };
        let place = RequestKey { client: ends.client, server: ends.server, sequence, index: 0 };
        let seen = WireTimes {
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
        };
        match self.rows.insert(place, seen) {
            // The numbers came round, and the one before waits for nothing any more.
            Some(_) => self.unjoined += 1,
            None => self.order.push_back(place),
        }
        while self.order.len() > ROWS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.unjoined += u64::from(self.rows.remove(&oldest).is_some());
            }
        }
    }

    /// The probe sees what happens from now on: earlier rows match nothing.
    pub fn begin(&mut self) {
        self.rows.clear();
        self.order.clear();
        self.unjoined = 0;
    }

    /// Takes a connection of the wire.
    pub fn connection(&mut self, row: Connection) {
        if self.connections_held < CONNECTIONS_MAX {
            self.connections_held += 1;
            self.connections.entry(key(&row)).or_default().push_back(row);
        }
    }

    /// Adds what the wire showed to a row of the probe; whether it showed it.
    pub fn join(&mut self, place: &RequestKey, row: &mut Operation) -> bool {
        let Some(seen) = self.rows.remove(place) else { return false };
        known(row, seen.request_start, Operation::set_request_start);
        known(row, seen.request_end, Operation::set_request_end);
        known(row, seen.pending_at, Operation::set_pending_at);
        known(row, seen.response_start, Operation::set_response_start);
        known(row, seen.response_end, Operation::set_response_end);
        known(row, seen.client_gap_ns, Operation::set_client_gap_ns);
        row.derive_durations();
        known(row, seen.request_wire_bytes, Operation::set_request_wire_bytes);
        known(row, seen.response_wire_bytes, Operation::set_response_wire_bytes);
        if self.has_frames {
            known(row, seen.request_frame, Operation::set_request_frame);
            known(row, seen.response_frame, Operation::set_response_frame);
        }
        true
    }

    /// A connection of the probe with what TCP did on the wire.
    pub fn joined(&mut self, inside: Connection) -> Connection {
        let seen = self.connections.get_mut(&key(&inside)).and_then(VecDeque::pop_front);
        let Some(seen) = seen else { return inside };
        self.connections_held -= 1;
        // What SMB says is known from inside, in plaintext, with the numbers that the rows have.
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
            ..seen
        }
    }

    /// Rows of the wire that found none of the probe: all that still wait, too.
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
    fn what_passed_before_the_probe_came_is_not_missing() {
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

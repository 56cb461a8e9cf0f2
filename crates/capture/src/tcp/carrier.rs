//! Connections whose messages not TCP alone carries: iWARP on this TCP connection, RoCE or NetBEUI
//! without TCP.
//!
//! Owns how the streams of `rdma` and `netbeui` reach the framers, and what a connection's row has in
//! addition. Does not own the order of packets without TCP (`shard`), nor layouts. MS-SMBD section 2.1.

use std::net::SocketAddr;

use smbscope_tables::tables::Coverage;

use super::connection::Connection;
use super::{Context, EndReason};
use crate::outcome::Output;
use crate::rdma::iwarp::Iwarp;
use crate::rdma::{IWARP_PORT, Moved, smb_direct};
use crate::stream::Piece;

/// What a connection adds to its row that not TCP alone carries.
#[derive(Clone, Copy, Debug)]
pub struct Carrier {
    pub transport: &'static str,
    /// The queue pair of each end.
    pub queue_pairs: [Option<u32>; 2],
    /// Whether the exchange was captured that makes a connection without TCP.
    pub connect_seen: bool,
    /// By RDMA.
    pub moved: Option<Moved>,
}

/// What was measured of the packets that one end sent without TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct CarrierHalf {
    pub packets: u64,
    pub bytes: u64,
    pub retransmissions: u64,
    pub out_of_order: u64,
    pub gaps: u64,
    pub recovery_ns: u64,
}

/// How a connection without TCP began.
#[derive(Clone, Copy, Debug)]
pub struct CarrierBegin {
    /// Time of its first packet.
    pub first: i64,
    /// The carrier, as the table of connections names it.
    pub transport: &'static str,
    /// Whether the exchange that makes it was captured.
    pub connect_seen: bool,
}

impl Connection {
    /// Whether a port is that of SMB Direct over iWARP.
    pub(super) fn has_rdma_port(&self) -> bool {
        self.ends.iter().any(|end| end.port() == IWARP_PORT)
    }

    /// Whether iWARP begins here, or continues mid-stream; also finds out who is the client.
    pub(super) fn recognise_iwarp(&mut self, piece: &Piece<'_>, from: usize) -> bool {
        if !self.has_rdma_port() {
            return false;
        }
        let begins = self.handshake.syn.is_some();
        // A part of a startup frame that comes before the first one shows nothing itself.
        let is_early = |next: u32| piece.sequence.wrapping_sub(next) as i32 > 0;
        let is_early =
            begins && self.strikes == 0 && self.halves[from].order.next().is_some_and(is_early);
        let iwarp = match Iwarp::recognise(piece.bytes, begins) {
            Some(iwarp) => iwarp,
            None if is_early => Iwarp::begin(),
            None => return false,
        };
        let by_port = usize::from(self.ends[0].port() == IWARP_PORT);
        self.client = self.client.or(Some(by_port));
        self.iwarp = Some(Box::new(iwarp));
        self.carry_by(Carrier {
            transport: "iwarp",
            queue_pairs: [None; 2],
            connect_seen: false,
            moved: Some(Moved::default()),
        });
        true
    }

    fn carry_by(&mut self, summary: Carrier) {
        self.pairing.has_no_sequence = true;
        for half in &mut self.halves {
            half.framer.without_headers();
        }
        self.carrier = Some(Box::new(summary));
    }

    /// Completes what the row says of iWARP.
    pub(super) fn end_iwarp(&mut self, out: &mut Output) {
        let (Some(iwarp), Some(carrier)) = (&self.iwarp, &mut self.carrier) else { return };
        carrier.moved = Some(iwarp.moved());
        out.coverage.resynchronised += iwarp.searches();
        for counters in iwarp.counters() {
            count(counters, &mut out.coverage);
        }
    }

    /// A connection without TCP, of which the first SMB message is about to come. `client` is the
    /// index of the client's end.
    pub fn without_tcp(
        index: u32,
        ends: [SocketAddr; 2],
        client: usize,
        begin: CarrierBegin,
        context: &Context,
        out: &mut Output,
    ) -> Connection {
        let mut connection = Connection::new(index, ends, begin.first, context);
        connection.client = Some(client);
        if begin.connect_seen {
            connection.smb2.begin_credits();
        }
        connection.carry_by(Carrier {
            transport: begin.transport,
            queue_pairs: [None; 2],
            connect_seen: begin.connect_seen,
            moved: None,
        });
        connection.begin_smb(out);
        connection
    }

    /// Takes the next bytes of the stream of SMB messages that end `from` sends.
    pub fn deliver(&mut self, piece: Piece<'_>, from: usize, context: &Context, out: &mut Output) {
        self.last = self.last.max(piece.time);
        self.feed(&piece, from, context, out);
    }

    /// Packets that end `from` sent were acknowledged after that time.
    pub fn add_round_trip(&mut self, from: usize, sample_ns: i64) {
        if self.client == Some(from) {
            self.pairing.server_side.add_data(sample_ns)
        } else {
            self.pairing.client_side.add_data(sample_ns)
        }
        self.judge_by_data();
    }

    /// The transport waited for a packet that was lost.
    pub fn add_recovery(&mut self, begin: i64, end: i64) {
        self.pairing.recoveries.add(begin, end);
    }

    /// One side ended it.
    pub fn disconnect(&mut self, from: usize) {
        self.fins[from] = true;
    }

    /// Ends a connection without TCP, with what was measured of it up to `last`.
    pub fn end_without_tcp(
        &mut self,
        summary: Carrier,
        halves: [CarrierHalf; 2],
        last: i64,
        reason: EndReason,
        context: &Context,
        out: &mut Output,
    ) {
        self.last = self.last.max(last);
        self.carrier = Some(Box::new(summary));
        for (half, measured) in self.halves.iter_mut().zip(halves) {
            half.packets = measured.packets;
            half.bytes = measured.bytes;
            half.retransmissions = measured.retransmissions;
            half.out_of_order = measured.out_of_order;
            half.gaps = measured.gaps;
            half.recovery_ns = measured.recovery_ns;
        }
        self.end(reason, context, out);
    }
}

/// Adds the counters of a direction to the coverage.
pub fn count(counters: smb_direct::Counters, coverage: &mut Coverage) {
    coverage.smb_direct_messages += counters.messages;
    coverage.smb_direct_unknown += counters.unknown;
    coverage.smb_direct_given_up += counters.given_up;
}

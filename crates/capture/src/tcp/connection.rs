//! One TCP connection: what becomes of each of its segments, up to its row.

use std::collections::VecDeque;
use std::net::SocketAddr;

use smbscope_tables::busy::NOT_ON_CLOCK;
use smbscope_wire::nbss::{self, Kind};
use smbscope_wire::read::u8_at;

use super::carrier::Carrier;
use super::half::Half;
use super::interval::Interval;
use super::measure::Handshake;
use super::mirrored::MirrorFilter;
use super::reorder::HeldPacket;
use super::sink::Sink;
use super::waits::LateAck;
use super::{Context, EndReason, is_soon, is_usual};
use crate::frame::{TcpFlags, TcpSegment};
use crate::outcome::{ConnectionStart, Output};
use crate::rdma::iwarp::Iwarp;
use crate::smb::context::SmbContext;
use crate::smb::pairing::Pairing;
use crate::smb::secrets::Secrets;
use crate::smb::smb1::Smb1;
use crate::smb::smb2::{Smb2, Wrapping};
use crate::stream::framer::is_plausible;
use crate::stream::{Message, Piece, Verdict};

/// Segments that overtake each other on the network are not further apart, ns (the limit of
/// Wireshark).
const REORDERED_NS: i64 = 3_000_000;
/// Segments with payload but without SMB after which a connection on another port is not SMB.
const STRIKES: u8 = 8;
/// The same on the port of SMB Direct: mid-stream, RDMA may move data for long before a message.
const STRIKES_RDMA: u8 = u8::MAX;

/// The flags of segments that do more than carry data and acknowledge it, and ACK.
const CONTROL: u8 = TcpFlags::SYN.0 | TcpFlags::RST.0 | TcpFlags::FIN.0 | TcpFlags::ACK.0;

/// A TCP connection that carries SMB, or may.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) ends: [SocketAddr; 2],
    /// Which ends are on the machine that records.
    pub(super) host: [bool; 2],
    /// Which end is the client.
    pub(super) client: Option<usize>,
    pub(super) halves: [Half; 2],
    pub(super) interval: Interval,
    pub(super) handshake: Handshake,
    pub(super) first: i64,
    /// Time of the latest packet.
    pub last: i64,
    pub(super) fins: [bool; 2],
    pub(super) reset: bool,
    /// Which end reset it first.
    pub(super) reset_by: Option<usize>,
    /// Whether it is known to carry SMB.
    pub is_smb: bool,
    /// Global number of the packet with which SMB began.
    pub began: u64,
    pub(super) usual_port: bool,
    pub(super) strikes: u8,
    pub(super) resets: u64,
    pub(super) vantage_reason: &'static str,
    pub(super) pairing: Pairing,
    pub(super) smb1: Smb1,
    pub(super) smb2: Smb2,
    pub(super) secrets: Secrets,
    pub(super) opened: Vec<u8>,
    /// Packets that wait: see `reorder`.
    pub(super) held: VecDeque<HeldPacket>,
    pub(super) held_bytes: usize,
    /// Once a packet was recorded twice.
    pub(super) copies: Option<Box<MirrorFilter>>,
    /// What [`Connection::follows`] needs to know of the last packet that was not followed.
    pub(super) is_plain: bool,
    /// What is between TCP and SMB, if it is iWARP.
    pub(super) iwarp: Option<Box<Iwarp>>,
    /// What its row has in addition if not TCP alone carries it.
    pub(super) carrier: Option<Box<Carrier>>,
    pub(super) late_ack: Option<LateAck>,
}

impl Connection {
    /// A connection of which the first packet was seen; ends in the flow key's order.
    pub fn new(index: u32, ends: [SocketAddr; 2], time: i64, context: &Context) -> Connection {
        let limits = &context.limits;
        let client = match ends.map(|end| is_usual(end.port())) {
            [true, false] => Some(1),
            [false, true] => Some(0),
            _ => None,
        };
        Connection {
            ends,
            host: ends.map(|end| context.host.contains(&end.ip())),
            client,
            halves: [(), ()].map(|()| Half::new(limits, context.waiting.another())),
            interval: Interval::default(),
            handshake: Handshake::default(),
            first: time,
            last: time,
            fins: [false; 2],
            reset: false,
            reset_by: None,
            is_smb: false,
            began: 0,
            usual_port: client.is_some(),
            strikes: 0,
            resets: 0,
            vantage_reason: "",
            pairing: Pairing { index, waiting: context.waiting.another(), ..Pairing::default() },
            smb1: Smb1::default(),
            smb2: Smb2::default(),
            secrets: Secrets::default(),
            opened: Vec::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            copies: None,
            is_plain: false,
            iwarp: None,
            carrier: None,
            late_ack: None,
        }
    }

    /// Whether it turned out not to be SMB.
    pub fn is_other(&self) -> bool {
        let strikes = if self.has_rdma_port() { STRIKES_RDMA } else { STRIKES };
        !self.is_smb && !self.usual_port && self.strikes >= strikes
    }

    /// Whether one side ended it.
    pub fn is_over(&self) -> bool {
        self.reset || self.fins[0] || self.fins[1]
    }

    /// Whether a SYN starts a new connection with the same addresses and ports.
    pub fn is_reused_by(&self, segment: &TcpSegment<'_>, from: usize) -> bool {
        let flags = segment.flags;
        if !flags.has(TcpFlags::SYN) || flags.has(TcpFlags::ACK) {
            return false;
        }
        match (self.handshake.syn, self.halves[from].order.next()) {
            (Some((_, sequence)), _) => sequence != segment.sequence,
            (None, times) => times.is_some(),
        }
    }

    /// Bytes that wait for holes to be filled.
    #[inline]
    pub fn waiting_bytes(&self) -> usize {
        let [low, high] = &self.halves;
        low.order.waiting_bytes() + high.order.waiting_bytes() + self.held_bytes
    }

    /// Whether segments wait for a hole to be filled.
    #[inline]
    pub fn has_hole(&self) -> bool {
        self.halves[0].order.has_hole() || self.halves[1].order.has_hole()
    }

    /// Whether a segment is one of the many that simply continue a connection: see
    /// [`Connection::follow`].
    #[inline]
    pub fn follows(&self, segment: &TcpSegment<'_>, from: usize) -> bool {
        segment.flags.0 & CONTROL == TcpFlags::ACK.0
            && self.is_plain
            && !self.acknowledges_unseen(segment, from)
    }

    /// Takes a packet from end `from` that [`follows`](Connection::follows). Does what
    /// [`Connection::packet`] does, without checks for what it cannot be. Returns whether segments
    /// wait now.
    #[inline(always)]
    pub fn follow(
        &mut self,
        segment: &TcpSegment<'_>,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) -> bool {
        self.last = self.last.max(time);
        if self.interval.is_over(time) {
            self.next_interval(time, out);
        }
        let to_server = self.client == Some(from);
        self.measure(segment, TcpFlags::ACK, from, to_server, time);
        if segment.payload_len == 0 {
            self.note_bare(segment, from, time, frame);
            return false;
        }
        if self.late_ack.is_some() {
            self.after_late_ack(from, time, frame, out);
        }
        let piece = Piece {
            bytes: segment.payload,
            length: segment.payload_len,
            time,
            frame,
            sequence: segment.sequence,
            lost: false,
        };
        let half = &mut self.halves[from];
        if !half.order.follow(piece.sequence, piece.length) {
            // A copy, so that the piece of the common path need not be in memory.
            self.data(&Piece { ..piece }, from, context, out);
            self.give_up_holes(time, frame, context, out);
            self.review();
            return self.has_hole();
        }
        half.send(&piece);
        half.take(&piece, 0);
        if let Some(bytes) = half.framer.whole_smb2(&piece)
            && context.keys.is_empty()
            && !self.smb1.expects_negotiate()
        {
            // What nearly every segment is; as `feed` has it.
            out.coverage.messages += 1;
            let message = Message {
                bytes,
                length: bytes.len() as u32,
                kind: Kind::SESSION_MESSAGE,
                cut: false,
                start: time,
                end: Some(time),
                frame,
                sequence: piece.sequence,
                begun: if to_server { self.pairing.clock.begin(time) } else { NOT_ON_CLOCK },
                header_bytes: nbss::HEADER_BYTES as u32,
            };
            let mut cx = SmbContext { pairing: &mut self.pairing, out, limits: &context.limits };
            self.smb2.message(&message, Wrapping::default(), &mut cx);
            self.judge_by_data();
        } else {
            self.feed(&Piece { ..piece }, from, context, out);
        }
        false
    }

    /// Takes a packet that goes from end `from`, once what it acknowledges was seen.
    pub fn packet(
        &mut self,
        segment: &TcpSegment<'_>,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        if let Some(copies) = &mut self.copies {
            if copies.is_copy(segment, from, time) {
                out.coverage.frames_repeated += 1;
                return;
            }
            if copies.are_over() {
                self.copies = None;
            }
        }
        if self.holds(segment, from) {
            self.hold(segment, from, time, frame, context, out);
        } else {
            self.take(segment, from, time, frame, context, out);
        }
        self.review();
    }

    /// Notes whether the next packets may be followed.
    fn review(&mut self) {
        self.is_plain =
            self.is_smb && !self.has_hole() && self.held.is_empty() && self.copies.is_none();
        self.is_plain &= self.iwarp.is_none();
    }

    /// Takes the packet that is next.
    pub(super) fn take(
        &mut self,
        segment: &TcpSegment<'_>,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        self.last = self.last.max(time);
        if self.interval.is_over(time) {
            self.next_interval(time, out);
        }
        let flags = segment.flags;
        if flags.has(TcpFlags::SYN) || flags.has(TcpFlags::RST) {
            self.control(segment, from, time, out);
        }
        self.measure(segment, flags, from, self.client == Some(from), time);
        if segment.payload_len == 0 && flags.0 & CONTROL == TcpFlags::ACK.0 {
            self.note_bare(segment, from, time, frame);
        }
        if segment.payload_len > 0 {
            if self.late_ack.is_some() {
                self.after_late_ack(from, time, frame, out);
            }
            let piece = Piece {
                bytes: segment.payload,
                length: segment.payload_len,
                time,
                frame,
                // Data on a SYN (RFC 7413) follows the sequence number of the SYN itself.
                sequence: segment.sequence.wrapping_add(u32::from(flags.has(TcpFlags::SYN))),
                lost: false,
            };
            self.data(&piece, from, context, out);
        }
        if self.has_hole() {
            self.give_up_holes(time, frame, context, out);
        }
        if flags.has(TcpFlags::FIN) {
            self.fins[from] = true;
        }
    }

    fn data(&mut self, piece: &Piece<'_>, from: usize, context: &Context, out: &mut Output) {
        if !self.is_smb && !self.recognise(piece, from, out) {
            if self.halves[from].order.next().is_some() {
                let _ = self.halves[from].order.judge(piece.sequence, piece.length);
            }
            return;
        }
        let half = &mut self.halves[from];
        let end = piece.end();
        half.send(piece);
        match half.order.judge(piece.sequence, piece.length) {
            Verdict::Use { skip } => {
                let mut filled = None;
                if half.order.has_hole() {
                    // It fills the hole: it was late, or retransmitted.
                    let since = half.order.hole_since();
                    if piece.time.saturating_sub(since) < REORDERED_NS {
                        half.out_of_order += 1;
                    } else {
                        half.retransmissions += 1;
                        self.pairing.recoveries.add(since, piece.time);
                        half.recovery_ns += piece.time.abs_diff(since);
                        filled = Some(since);
                    }
                    half.bytes += u64::from(piece.length - skip);
                } else {
                    half.take(piece, skip);
                }
                if let Some(since) = filled {
                    self.note_filled(piece, since, from, out);
                }
                self.feed(&piece.skip(skip), from, context, out);
                self.release(from, context, out);
            }
            // The last byte alone again is a keep-alive (RFC 9293 section 3.8.4).
            Verdict::Old if piece.length == 1 && half.order.next() == Some(end) => {}
            Verdict::Old if half.highest == Some(end) && is_soon(half.highest_at, piece.time) => {
                self.is_copied(out);
            }
            Verdict::Old => {
                half.retransmissions += 1;
                half.sample = None;
                let is_acknowledged =
                    half.acknowledged.is_none_or(|number| number.wrapping_sub(end) as i32 >= 0);
                if !is_acknowledged {
                    half.recovering.get_or_insert(end);
                    self.note_resent(piece, from, out);
                }
            }
            Verdict::Early => {
                if !half.order.keep(piece) {
                    half.retransmissions += 1;
                }
            }
            Verdict::Jump => {
                let Some(next) = half.order.next() else { return };
                let lost = piece.sequence.wrapping_sub(next);
                let hole = Piece::lost(next, lost.min(1 << 30), piece.time, piece.frame);
                self.lose(from, &hole, context, out);
                self.halves[from].order.set_next(piece.sequence.wrapping_add(piece.length));
                self.feed(piece, from, context, out);
            }
        }
    }

    /// A packet was recorded twice: from now on copies are looked for.
    #[cold]
    pub(super) fn is_copied(&mut self, out: &mut Output) {
        out.coverage.frames_repeated += 1;
        self.copies.get_or_insert_default();
    }

    /// Whether SMB begins here; also finds out who is the client.
    fn recognise(&mut self, piece: &Piece<'_>, from: usize, out: &mut Output) -> bool {
        if self.recognise_iwarp(piece, from) {
            self.begin_smb(out);
            return true;
        }
        let smb = is_plausible(piece.bytes);
        if !smb && !self.usual_port {
            self.strikes = self.strikes.saturating_add(1);
            return false;
        }
        if self.client.is_none() {
            let message = piece.bytes.get(nbss::HEADER_BYTES..).unwrap_or_default();
            self.client = Some(match is_reply(message) {
                Some(true) => 1 - from,
                Some(false) => from,
                // The lower port is usually the server's.
                None => usize::from(self.ends[0].port() < self.ends[1].port()),
            });
        }
        self.begin_smb(out);
        true
    }

    /// SMB begins, and who is the client is known.
    pub(super) fn begin_smb(&mut self, out: &mut Output) {
        self.is_smb = true;
        self.began = out.order;
        let is_same = self.handshake.syn.is_some() && self.ends[0].ip() == self.ends[1].ip();
        if is_same || self.is_of_host() {
            self.judge_vantage();
        }
        let client = self.client.unwrap_or(0);
        let begins = self.carrier.as_ref().is_some_and(|carrier| carrier.connect_seen);
        let opened = begins.then_some(self.first);
        out.started.push(ConnectionStart {
            connection: self.pairing.index,
            order: out.order,
            client: self.ends[client],
            server: self.ends[1 - client],
            time: self.last,
            opened: self.handshake.syn.map(|(time, _)| time).or(opened),
            transport: self.carrier.as_ref().map_or("tcp", |carrier| carrier.transport),
        });
    }

    /// The sink for messages from end `from`, and the two directions.
    #[inline(always)]
    fn sink<'a>(
        &'a mut self,
        from: usize,
        context: &'a Context,
        out: &'a mut Output,
    ) -> (Sink<'a>, &'a mut [Half; 2]) {
        let sink = Sink {
            to_server: self.client == Some(from),
            cx: SmbContext { pairing: &mut self.pairing, out, limits: &context.limits },
            smb1: &mut self.smb1,
            smb2: &mut self.smb2,
            secrets: &mut self.secrets,
            opened: &mut self.opened,
            context,
        };
        (sink, &mut self.halves)
    }

    pub(super) fn feed(
        &mut self,
        piece: &Piece<'_>,
        from: usize,
        context: &Context,
        out: &mut Output,
    ) {
        let mut iwarp = self.iwarp.take();
        let (mut sink, halves) = self.sink(from, context, out);
        let framer = &mut halves[from].framer;
        match &mut iwarp {
            Some(iwarp) => iwarp.feed(from, *piece, &mut |inner| framer.feed(inner, &mut sink)),
            None => framer.feed(*piece, &mut sink),
        }
        sink.cx.pairing.has_losses |= piece.lost || framer.counters.searches > 0;
        let is_partial = (piece.bytes.len() as u32) < piece.length;
        if is_partial && framer.is_searching() && self.client == Some(1 - from) {
            self.miss_replies();
        }
        self.iwarp = iwarp;
        self.judge_by_data();
    }

    /// The connection ends: everything that waits becomes a row, and so does the connection.
    pub fn end(&mut self, reason: EndReason, context: &Context, out: &mut Output) {
        if !self.is_smb {
            return;
        }
        self.settle(None, context, out);
        let frame = 0;
        for from in 0..2 {
            while self.halves[from].order.has_hole() {
                self.skip_hole(from, self.last, frame, context, out);
            }
            let (mut sink, halves) = self.sink(from, context, out);
            halves[from].framer.end(&mut sink);
            self.emit_resent(from, out);
        }
        let mut cx = SmbContext { pairing: &mut self.pairing, out, limits: &context.limits };
        self.smb1.end(self.last, &mut cx);
        self.smb2.end(self.last, &mut cx);
        self.end_iwarp(out);
        self.end_interval(out);
        let row = self.row(reason);
        let coverage = &mut *out.coverage;
        coverage.connections += 1;
        coverage.connections_mid_stream += u64::from(!row.handshake_seen);
        coverage.connections_one_direction +=
            u64::from(row.packets_to_server == 0 || row.packets_to_client == 0);
        coverage.retransmissions += row.retransmissions_to_server + row.retransmissions_to_client;
        coverage.out_of_order += row.out_of_order_to_server + row.out_of_order_to_client;
        coverage.gaps += row.gaps_to_server + row.gaps_to_client;
        coverage.gap_bytes += row.gap_bytes_to_server + row.gap_bytes_to_client;
        for half in &self.halves {
            coverage.resynchronised += half.framer.counters.searches;
            coverage.skipped_bytes += half.framer.counters.skipped_bytes;
        }
        out.ended.push((self.pairing.index, out.order, Box::new(row)));
    }
}

/// Whether a server sends the message that begins here, if that shows.
pub fn is_reply(message: &[u8]) -> Option<bool> {
    match u8_at(message, 0)? {
        0xfe => u8_at(message, 16).map(|flags| flags & 1 != 0),
        0xff => u8_at(message, 9).map(|flags| flags & 0x80 != 0),
        _ => None,
    }
}

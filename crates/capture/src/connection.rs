//! One TCP connection: both directions' streams, round trips and windows, and the SMB in it.

use std::net::{IpAddr, SocketAddr};

use hashbrown::{HashMap, HashSet};
use smbscope_event::code::Vantage;
use smbscope_event::tables::Connection as Row;
use smbscope_wire::compression;
use smbscope_wire::crypto::{Cipher, KeyEntry};
use smbscope_wire::nbss::Kind;
use smbscope_wire::read::{u8_at, u16_at};
use smbscope_wire::smb2::negotiate::NegotiateResponse;
use smbscope_wire::smb2::negotiate_context::NegotiateContextData;
use smbscope_wire::smb2::transform::Transform;
use smbscope_wire::smb2::{Command, Header};

use crate::decoder::Options;
use crate::frame::{TcpFlags, TcpSegment};
use crate::limits::Limits;
use crate::link::{Link, Seen};
use crate::output::{Output, Started};
use crate::secrets::Secrets;
use crate::smb1::Smb1;
use crate::smb2::{Smb2, Wrapping};
use crate::stream::framer::is_plausible;
use crate::stream::{Framer, Message, MessageSink, Order, Piece, Verdict};

/// What [`MessageSink::begin`] returns for a message that is not on the busy clock.
pub const NOT_ON_CLOCK: i64 = i64::MIN;

/// Segments that overtake each other on the way are no further apart, ns (as Wireshark has it).
const REORDERED_NS: i64 = 3_000_000;
/// The same segment once more within this time was recorded twice, ns.
const TWICE_NS: i64 = 1_000_000;

/// Segments with payload without SMB after which a connection on an unusual port is none.
const STRIKES: u8 = 8;

/// The flags of segments that do more than carry data and acknowledge it, and ACK.
const CONTROL: u8 = TcpFlags::SYN.0 | TcpFlags::RST.0 | TcpFlags::FIN.0 | TcpFlags::ACK.0;

/// What is the same for all connections of a shard.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Limits.
    pub limits: Limits,
    /// Decryption keys by session.
    pub keys: HashMap<u64, KeyEntry>,
    /// Addresses of the machine where the packets are seen.
    pub host: HashSet<IpAddr>,
}

impl Context {
    /// As the options say.
    pub fn new(options: &Options) -> Context {
        Context {
            limits: options.limits,
            keys: options.keys.iter().map(|key| (key.session_id, key.clone())).collect(),
            host: options.host.iter().copied().collect(),
        }
    }
}

/// One direction.
#[derive(Clone, Debug)]
struct Half {
    order: Order,
    framer: Framer,
    packets: u64,
    bytes: u64,
    retransmissions: u64,
    recovery_ns: u64,
    /// What was sent again waits to be acknowledged: its end.
    recovering: Option<u32>,
    /// Since when what was sent first waits to be acknowledged: when it was sent, or the last
    /// acknowledgement before it.
    waits_since: i64,
    /// When the highest byte was sent.
    highest_at: i64,
    out_of_order: u64,
    gaps: u64,
    gap_bytes: u64,
    zero_windows: u64,
    window_is_zero: bool,
    window_max: u64,
    window_scale: Option<u8>,
    /// What its windows are really scaled by.
    window_shift: u8,
    mss: Option<u16>,
    /// Behind the highest byte sent.
    highest: Option<u32>,
    /// The highest acknowledgement that the other side sent for this direction.
    acknowledged: Option<u32>,
    in_flight_max: u64,
    /// End of a segment and its time, until it is acknowledged: one sample at a time.
    sample: Option<(u32, i64)>,
    ttl: u8,
}

impl Half {
    fn new(limits: &Limits) -> Half {
        Half {
            order: Order::default(),
            framer: Framer::new(limits.message_bytes),
            packets: 0,
            bytes: 0,
            retransmissions: 0,
            recovery_ns: 0,
            recovering: None,
            waits_since: 0,
            highest_at: 0,
            out_of_order: 0,
            gaps: 0,
            gap_bytes: 0,
            zero_windows: 0,
            window_is_zero: false,
            window_max: 0,
            window_scale: None,
            window_shift: 0,
            mss: None,
            highest: None,
            acknowledged: None,
            in_flight_max: 0,
            sample: None,
            ttl: 0,
        }
    }
}

impl Half {
    /// Notes how far it sent.
    #[inline]
    fn send(&mut self, piece: &Piece<'_>) {
        let end = piece.end();
        if self.highest.is_none_or(|highest| end.wrapping_sub(highest) as i32 > 0) {
            if self.highest == self.acknowledged {
                self.waits_since = piece.time;
            }
            self.highest = Some(end);
            self.highest_at = piece.time;
            if let Some(acknowledged) = self.acknowledged {
                let in_flight = end.wrapping_sub(acknowledged) as i32;
                self.in_flight_max = self.in_flight_max.max(in_flight.max(0) as u64);
            }
        }
    }

    /// Notes what it sent in order, for the first time but for `skip` bytes.
    #[inline]
    fn take(&mut self, piece: &Piece<'_>, skip: u32) {
        if self.sample.is_none() {
            self.sample = Some((piece.end(), piece.time));
        }
        self.bytes += u64::from(piece.length - skip);
    }
}

/// Progress of the TCP handshake.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    syn: Option<(i64, u32)>,
    /// More than one SYN: its time says nothing.
    syn_repeated: bool,
    syn_ack: Option<(i64, u32)>,
    done: bool,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Both sides sent FIN, or one did and the capture ends.
    Fin,
    /// RST.
    Reset,
    /// Forgotten for the limit on connections.
    Idle,
    /// The same addresses and ports began anew.
    Reused,
    /// The capture ends.
    Capture,
}

/// A TCP connection that carries SMB, or may.
#[derive(Clone, Debug)]
pub struct Connection {
    ends: [SocketAddr; 2],
    /// Which ends are on the machine where the packets are seen.
    host: [bool; 2],
    /// Which end is the client.
    client: Option<usize>,
    halves: [Half; 2],
    handshake: Handshake,
    first: i64,
    /// Time of the last packet.
    pub last: i64,
    fins: [bool; 2],
    reset: bool,
    /// Whether it is known to carry SMB.
    pub is_smb: bool,
    /// Global number of the packet with which SMB began.
    pub began: u64,
    usual_port: bool,
    strikes: u8,
    resets: u64,
    vantage_reason: &'static str,
    link: Link,
    smb1: Smb1,
    smb2: Smb2,
    secrets: Secrets,
    opened: Vec<u8>,
}

impl Connection {
    /// A connection of which the first packet was seen; ends in the flow key's order.
    pub fn new(index: u32, ends: [SocketAddr; 2], time: i64, context: &Context) -> Connection {
        let limits = &context.limits;
        let is_usual = |end: &SocketAddr| matches!(end.port(), 445 | 139);
        let client = match (is_usual(&ends[0]), is_usual(&ends[1])) {
            (true, false) => Some(1),
            (false, true) => Some(0),
            _ => None,
        };
        Connection {
            ends,
            host: ends.map(|end| context.host.contains(&end.ip())),
            client,
            halves: [Half::new(limits), Half::new(limits)],
            handshake: Handshake::default(),
            first: time,
            last: time,
            fins: [false; 2],
            reset: false,
            is_smb: false,
            began: 0,
            usual_port: client.is_some(),
            strikes: 0,
            resets: 0,
            vantage_reason: "",
            link: Link { index, ..Link::default() },
            smb1: Smb1::default(),
            smb2: Smb2::default(),
            secrets: Secrets::default(),
            opened: Vec::new(),
        }
    }

    /// Whether it turned out to carry something else.
    pub fn is_other(&self) -> bool {
        !self.is_smb && !self.usual_port && self.strikes >= STRIKES
    }

    /// Whether a SYN begins the same addresses and ports anew.
    pub fn is_reused_by(&self, segment: &TcpSegment<'_>, from: usize) -> bool {
        let flags = segment.flags;
        if !flags.has(TcpFlags::SYN) || flags.has(TcpFlags::ACK) {
            return false;
        }
        match (self.handshake.syn, self.halves[from].order.next()) {
            (Some((_, sequence)), _) => sequence != segment.sequence,
            (None, seen) => seen.is_some(),
        }
    }

    /// Bytes that wait for holes to be filled.
    #[inline]
    pub fn waiting_bytes(&self) -> usize {
        self.halves[0].order.waiting_bytes() + self.halves[1].order.waiting_bytes()
    }

    /// Whether segments wait for a hole to be filled.
    #[inline]
    pub fn has_hole(&self) -> bool {
        self.halves[0].order.has_hole() || self.halves[1].order.has_hole()
    }

    /// Whether a segment is one of the many in the midst of a connection: see
    /// [`Connection::follow`].
    #[inline]
    pub fn follows(&self, segment: &TcpSegment<'_>) -> bool {
        segment.flags.0 & CONTROL == TcpFlags::ACK.0 && self.is_smb && !self.has_hole()
    }

    /// Takes a packet that goes from end `from` and [`follows`](Connection::follows): what
    /// [`Connection::packet`] does with it, without asking for what it cannot be. Returns whether
    /// segments wait now.
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
        let time = time.max(self.last);
        self.last = time;
        let to_server = self.client == Some(from);
        self.measure(segment, TcpFlags::ACK, from, to_server, time);
        if segment.payload_len == 0 {
            return false;
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
            // A copy, so that the common way's need not be in memory.
            self.data(&Piece { ..piece }, from, context, out);
            self.give_up_holes(time, frame, context, out);
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
                begun: if to_server { self.link.clock.begin(time) } else { NOT_ON_CLOCK },
            };
            self.smb2.message(&message, Wrapping::default(), &mut self.link, out, &context.limits);
            self.judge_by_data();
        } else {
            self.feed(&Piece { ..piece }, from, context, out);
        }
        false
    }

    /// Takes a packet that goes from end `from`.
    pub fn packet(
        &mut self,
        segment: &TcpSegment<'_>,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        // A recorder's clock can step back; durations must not.
        let time = time.max(self.last);
        self.last = time;
        let flags = segment.flags;
        if flags.has(TcpFlags::SYN) || flags.has(TcpFlags::RST) {
            self.control(segment, from, time);
        }
        self.measure(segment, flags, from, self.client == Some(from), time);
        if segment.payload_len > 0 {
            let piece = Piece {
                bytes: segment.payload,
                length: segment.payload_len,
                time,
                frame,
                // Data on a SYN (RFC 7413) stands behind the SYN's own number.
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

    fn control(&mut self, segment: &TcpSegment<'_>, from: usize, time: i64) {
        let flags = segment.flags;
        if flags.has(TcpFlags::RST) {
            self.reset = true;
            self.resets += 1;
            return;
        }
        let half = &mut self.halves[from];
        if half.order.next().is_none() {
            half.order.set_next(segment.sequence.wrapping_add(1));
        }
        half.mss = segment.mss().or(half.mss);
        half.window_scale = segment.window_scale();
        // Scaling holds when both sides announced it (RFC 7323 section 2.2).
        let holds = self.halves.iter().all(|half| half.window_scale.is_some());
        for half in &mut self.halves {
            half.window_shift = half.window_scale.filter(|_| holds).unwrap_or(0);
        }
        if flags.has(TcpFlags::ACK) {
            self.client = Some(1 - from);
            if let Some((sent, _)) = self.handshake.syn
                && self.handshake.syn_ack.is_none()
                && !self.handshake.syn_repeated
            {
                self.link.server_side.add_handshake(time - sent);
            }
            if self.handshake.syn_ack.is_none() {
                self.handshake.syn_ack = Some((time, segment.sequence.wrapping_add(1)));
            } else {
                // Sent again: the acknowledgement may answer either.
                self.handshake.done = true;
            }
        } else {
            self.client = Some(from);
            self.handshake.syn_repeated = self.handshake.syn.is_some();
            self.handshake.syn = Some((time, segment.sequence));
            self.smb2.begin_credits();
        }
    }

    /// Windows, acknowledgements and round trips.
    #[inline(always)]
    fn measure(
        &mut self,
        segment: &TcpSegment<'_>,
        flags: TcpFlags,
        from: usize,
        is_client: bool,
        time: i64,
    ) {
        let [low, high] = &mut self.halves;
        let (own, other) = if from == 0 { (low, high) } else { (high, low) };
        own.packets += 1;
        own.ttl = segment.ttl;
        if !flags.has(TcpFlags::RST) {
            let is_zero = segment.window == 0 && !flags.has(TcpFlags::SYN);
            own.zero_windows += u64::from(is_zero && !own.window_is_zero);
            own.window_is_zero = is_zero;
            let shift = if flags.has(TcpFlags::SYN) { 0 } else { own.window_shift };
            own.window_max = own.window_max.max(u64::from(segment.window) << shift);
        }
        if !flags.has(TcpFlags::ACK) {
            return;
        }
        let number = segment.acknowledgement;
        if other.acknowledged.is_none_or(|before| number.wrapping_sub(before) as i32 > 0) {
            other.acknowledged = Some(number);
            if let Some(end) = other.recovering
                && number.wrapping_sub(end) as i32 >= 0
            {
                other.recovering = None;
                self.link.recoveries.add(other.waits_since, time);
                other.recovery_ns += time.abs_diff(other.waits_since);
            }
            other.waits_since = time;
        }
        if let Some((end, sent)) = other.sample
            && number.wrapping_sub(end) as i32 >= 0
        {
            other.sample = None;
            // Who acknowledges is on the far side of this round trip.
            if is_client {
                self.link.client_side.add_data(time - sent);
            } else {
                self.link.server_side.add_data(time - sent);
            }
        }
        if is_client
            && !self.handshake.done
            && let Some((sent, end)) = self.handshake.syn_ack
            && number == end
            && !flags.has(TcpFlags::SYN)
        {
            self.handshake.done = true;
            self.link.client_side.add_handshake(time - sent);
            self.judge_vantage();
        }
    }

    /// Whether the machine where the packets are seen is an end of it.
    fn is_of_host(&self) -> bool {
        self.host != [false; 2]
    }

    /// Where the capture was taken: as the addresses tell, or from the two round trips.
    fn judge_vantage(&mut self) {
        const NEAR_NS: i64 = 500_000;
        let link = &mut self.link;
        if self.ends[0].ip() == self.ends[1].ip() || self.host == [true; 2] {
            link.vantage = Some(Vantage::Server);
            self.vantage_reason = "client and server are the same machine";
            return;
        }
        if let Some(end) = self.host.iter().position(|&is_host| is_host)
            && let Some(client) = self.client
        {
            (link.vantage, self.vantage_reason) = match end == client {
                true => (Some(Vantage::Client), "the client is the machine that recorded"),
                false => (Some(Vantage::Server), "the server is the machine that recorded"),
            };
            return;
        }
        let sides = link.server_side.estimate().zip(link.client_side.estimate());
        let Some(((server, _), (client, _))) = sides else { return };
        let (vantage, reason) = if server < NEAR_NS && server.saturating_mul(3) < client {
            (
                Vantage::Server,
                "the round trip to the server is much shorter than that to the client",
            )
        } else if client < NEAR_NS && client.saturating_mul(3) < server {
            (
                Vantage::Client,
                "the round trip to the client is much shorter than that to the server",
            )
        } else {
            (Vantage::Between, "the round trips to both sides are of similar length")
        };
        link.vantage = Some(vantage);
        self.vantage_reason = reason;
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
                if half.order.has_hole() {
                    // It fills the hole: late on the way, or sent again.
                    let since = half.order.hole_since();
                    if piece.time - since < REORDERED_NS {
                        half.out_of_order += 1;
                    } else {
                        half.retransmissions += 1;
                        self.link.recoveries.add(since, piece.time);
                        half.recovery_ns += piece.time.abs_diff(since);
                    }
                    half.bytes += u64::from(piece.length - skip);
                } else {
                    half.take(piece, skip);
                }
                self.feed(&piece.skip(skip), from, context, out);
                self.release(from, context, out);
            }
            // The last byte alone once more: it only asks whether somebody is there (RFC 9293 section 3.8.4).
            Verdict::Old if piece.length == 1 && half.order.next() == Some(end) => {}
            Verdict::Old => {
                half.retransmissions += 1;
                half.sample = None;
                let is_acknowledged =
                    half.acknowledged.is_none_or(|number| number.wrapping_sub(end) as i32 >= 0);
                let is_twice = half.highest == Some(end) && piece.time - half.highest_at < TWICE_NS;
                if !is_acknowledged && !is_twice && half.recovering.is_none() {
                    half.recovering = Some(end);
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
                self.lose(from, next, lost.min(1 << 30), piece.time, piece.frame, context, out);
                self.halves[from].order.set_next(piece.sequence.wrapping_add(piece.length));
                self.feed(piece, from, context, out);
            }
        }
    }

    fn release(&mut self, from: usize, context: &Context, out: &mut Output) {
        while self.halves[from].order.has_hole() {
            // The order is taken out so that its segment can be fed without a copy.
            let mut order = std::mem::take(&mut self.halves[from].order);
            let released = order.release(|piece| {
                self.halves[from].bytes += u64::from(piece.length);
                self.feed(&piece, from, context, out);
            });
            self.halves[from].order = order;
            if !released {
                return;
            }
        }
    }

    fn give_up_holes(&mut self, time: i64, frame: u64, context: &Context, out: &mut Output) {
        for from in 0..2 {
            loop {
                let half = &mut self.halves[from];
                let limit = context.limits.reorder_bytes;
                if !half.order.is_hopeless(half.acknowledged, time, limit) {
                    break;
                }
                self.skip_hole(from, time, frame, context, out);
            }
        }
    }

    /// Gives up the hole in one direction and goes on behind it.
    fn skip_hole(
        &mut self,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        let Some((start, length)) = self.halves[from].order.hole() else { return };
        self.lose(from, start, length, time, frame, context, out);
        self.halves[from].order.set_next(start.wrapping_add(length));
        self.release(from, context, out);
    }

    /// Gives up all holes, for the limit on what waits in all connections together.
    pub fn skip_holes(&mut self, context: &Context, out: &mut Output) {
        for from in 0..2 {
            while self.halves[from].order.has_hole() {
                out.coverage.segments_discarded += 1;
                self.skip_hole(from, self.last, 0, context, out);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn lose(
        &mut self,
        from: usize,
        sequence: u32,
        length: u32,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        let half = &mut self.halves[from];
        half.gaps += 1;
        half.gap_bytes += u64::from(length);
        half.sample = None;
        let hole = Piece { bytes: &[], length, time, frame, sequence, lost: true };
        self.feed(&hole, from, context, out);
    }

    /// Whether SMB begins here; also finds out who is the client.
    fn recognise(&mut self, piece: &Piece<'_>, from: usize, out: &mut Output) -> bool {
        let smb = is_plausible(piece.bytes);
        if !smb && !self.usual_port {
            self.strikes = self.strikes.saturating_add(1);
            return false;
        }
        self.is_smb = true;
        self.began = out.order;
        if self.client.is_none() {
            let message = piece.bytes.get(4..).unwrap_or_default();
            let is_reply = match u8_at(message, 0) {
                Some(0xfe) => u8_at(message, 16).map(|flags| flags & 1 != 0),
                Some(0xff) => u8_at(message, 9).map(|flags| flags & 0x80 != 0),
                _ => None,
            };
            self.client = Some(match is_reply {
                Some(true) => 1 - from,
                Some(false) => from,
                // The lower port is mostly the server's.
                None => usize::from(self.ends[0].port() < self.ends[1].port()),
            });
        }
        let is_same = self.handshake.syn.is_some() && self.ends[0].ip() == self.ends[1].ip();
        if is_same || self.is_of_host() {
            self.judge_vantage();
        }
        let client = self.client.unwrap_or(0);
        out.started.push(Started {
            link: self.link.index,
            order: out.order,
            client: self.ends[client],
            server: self.ends[1 - client],
        });
        true
    }

    fn feed(&mut self, piece: &Piece<'_>, from: usize, context: &Context, out: &mut Output) {
        let mut sink = Sink {
            to_server: self.client == Some(from),
            link: &mut self.link,
            smb1: &mut self.smb1,
            smb2: &mut self.smb2,
            secrets: &mut self.secrets,
            opened: &mut self.opened,
            context,
            out,
        };
        let framer = &mut self.halves[from].framer;
        framer.feed(*piece, &mut sink);
        self.link.has_losses |= piece.lost || framer.counters.searches > 0;
        self.judge_by_data();
    }

    /// Without a handshake the round trips of data have to do.
    #[inline]
    fn judge_by_data(&mut self) {
        if self.link.vantage.is_none()
            && self.link.server_side.samples.min(self.link.client_side.samples) == 4
        {
            self.judge_vantage();
        }
    }

    /// The connection is over: everything that waits becomes a row, and the connection itself.
    pub fn end(&mut self, reason: EndReason, context: &Context, out: &mut Output) {
        if !self.is_smb {
            return;
        }
        let frame = 0;
        for from in 0..2 {
            while self.halves[from].order.has_hole() {
                self.skip_hole(from, self.last, frame, context, out);
            }
            let mut sink = Sink {
                to_server: self.client == Some(from),
                link: &mut self.link,
                smb1: &mut self.smb1,
                smb2: &mut self.smb2,
                secrets: &mut self.secrets,
                opened: &mut self.opened,
                context,
                out,
            };
            self.halves[from].framer.end(&mut sink);
        }
        self.smb1.end(self.last, &mut self.link, out);
        self.smb2.end(self.last, &mut self.link, out);
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
        out.ended.push((self.link.index, out.order, Box::new(row)));
    }

    /// The connection's row, without number and recording.
    fn row(&mut self, reason: EndReason) -> Row {
        let client = self.client.unwrap_or(0);
        let (to_server, to_client) = (&self.halves[client], &self.halves[1 - client]);
        let (server_side, client_side) = (self.link.server_side, self.link.client_side);
        let scaled = to_server.window_scale.is_some() && to_client.window_scale.is_some();
        // Without the handshake nobody knows the scale.
        let known = scaled || self.handshake.syn.is_some() && self.handshake.syn_ack.is_some();
        let end_reason = match reason {
            EndReason::Reused => "reused",
            EndReason::Idle => "idle",
            _ if self.reset || reason == EndReason::Reset => "reset",
            _ if self.fins[0] || self.fins[1] || reason == EndReason::Fin => "fin",
            _ => "end of the capture",
        };
        Row {
            client: self.ends[client].ip().to_string(),
            client_port: u64::from(self.ends[client].port()),
            server: self.ends[1 - client].ip().to_string(),
            server_port: u64::from(self.ends[1 - client].port()),
            start: self.first,
            end: self.last,
            handshake_seen: self.handshake.syn.is_some() && self.handshake.syn_ack.is_some(),
            end_reason: end_reason.to_owned(),
            vantage: self.link.vantage.map(|vantage| vantage.name().to_owned()),
            vantage_reason: match self.link.vantage {
                Some(_) => self.vantage_reason.to_owned(),
                None => "no round trip was seen on both sides".to_owned(),
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
            ..std::mem::take(&mut *self.link.table)
        }
    }
}

/// Takes the messages of one direction to the protocol that speaks there.
struct Sink<'a> {
    to_server: bool,
    link: &'a mut Link,
    smb1: &'a mut Smb1,
    smb2: &'a mut Smb2,
    secrets: &'a mut Secrets,
    opened: &'a mut Vec<u8>,
    context: &'a Context,
    out: &'a mut Output,
}

impl MessageSink for Sink<'_> {
    #[inline]
    fn begin(&mut self, time: i64) -> i64 {
        if self.to_server { self.link.clock.begin(time) } else { NOT_ON_CLOCK }
    }

    fn unbegin(&mut self, time: i64, begun: i64) {
        self.link.unbegin(time, begun);
    }

    fn expects_raw(&self) -> bool {
        self.smb1.expects_raw(self.to_server)
    }

    #[inline]
    fn decrypts(&self) -> bool {
        !self.context.keys.is_empty()
    }

    #[inline]
    fn message(&mut self, message: Message<'_>) {
        if message.kind != Kind::SESSION_MESSAGE {
            self.link.unbegin(message.start, message.begun);
            return;
        }
        self.out.coverage.messages += 1;
        self.out.coverage.messages_cut += u64::from(message.cut);
        if u8_at(message.bytes, 0) == Some(0xfe) {
            self.plain(&message, Wrapping::default());
        } else {
            self.other(message);
        }
    }
}

impl Sink<'_> {
    #[inline]
    fn plain(&mut self, message: &Message<'_>, wrapping: Wrapping) {
        if !self.context.keys.is_empty() {
            self.observe(message.bytes);
        }
        let limits = &self.context.limits;
        if self.smb1.expects_negotiate() && self.answers_smb1(message) {
            return;
        }
        self.smb2.message(message, wrapping, self.link, self.out, limits);
    }

    /// An SMB1 Negotiate that offers SMB2 is answered by SMB2 (MS-SMB2 section 3.3.5.3.1).
    fn answers_smb1(&mut self, message: &Message<'_>) -> bool {
        let Some(header) = Header::parse(message.bytes) else { return false };
        if header.command != Command::NEGOTIATE || !header.is_response() || header.message_id != 0 {
            return false;
        }
        crate::smb2::negotiated(message.bytes, self.link);
        let status = header.status_or_channel_sequence;
        self.smb2.grant(i64::from(header.credits) - 1, self.link);
        self.smb1.answered_by_smb2(&Seen::of(message), status, self.link, self.out)
    }

    #[cold]
    fn observe(&mut self, bytes: &[u8]) {
        let view = NegotiateResponse(bytes);
        let is_reply = Header::parse(bytes)
            .is_some_and(|header| header.is_response() && header.command == Command::NEGOTIATE);
        let mut cipher = None;
        if is_reply {
            for context in view.contexts() {
                if let NegotiateContextData::Encryption(mut ciphers) = context.decode() {
                    cipher = ciphers.next().map(Cipher);
                }
            }
        }
        self.secrets.observe(bytes, view.dialect().filter(|_| is_reply), cipher);
    }

    #[cold]
    fn other(&mut self, message: Message<'_>) {
        let limits = &self.context.limits;
        match u8_at(message.bytes, 0).filter(|_| u16_at(message.bytes, 1) == Some(0x4d53)) {
            Some(0xff) => {
                self.smb1.message(&message, self.to_server, self.link, self.out, limits);
            }
            Some(0xfd) => self.encrypted(&message),
            Some(0xfc) => self.compressed(&message, false),
            _ if self.smb1.expects_raw(self.to_server) => {
                self.smb1.raw(&message, self.to_server, self.link, self.out);
            }
            _ => {
                self.link.unbegin(message.start, message.begun);
                self.out.coverage.messages_unknown += u64::from(message.length > 0);
            }
        }
    }

    fn encrypted(&mut self, message: &Message<'_>) {
        self.out.coverage.messages_encrypted += 1;
        let session_id = Transform(message.bytes).session_id();
        let mut opened = std::mem::take(self.opened);
        let result = session_id.and_then(|id| {
            let keys = &self.context.keys;
            self.secrets.open(keys, id, self.to_server, message.bytes, &mut opened)
        });
        if result == Some(true) {
            self.out.coverage.messages_decrypted += 1;
            let inner = Message { bytes: &opened, ..*message };
            match u8_at(&opened, 0) {
                Some(0xfc) => self.compressed(&inner, true),
                _ => self.plain(&inner, Wrapping { encrypted: true, compressed: false }),
            }
        } else {
            self.out.coverage.decryption_failed += u64::from(result == Some(false));
            let limits = &self.context.limits;
            let to_server = self.to_server;
            self.smb2.sealed(message, session_id, to_server, self.link, self.out, limits);
        }
        *self.opened = opened;
    }

    fn compressed(&mut self, message: &Message<'_>, encrypted: bool) {
        self.out.coverage.messages_compressed += 1;
        let mut plain = Vec::new();
        let limit = 16 << 20;
        let result = compression::decompress(message.bytes, limit, &mut plain);
        self.out.coverage.decompression_failed += u64::from(result.is_err());
        let inner = Message { bytes: &plain, cut: result.is_err(), ..*message };
        if u8_at(&plain, 0) == Some(0xfe) {
            self.plain(&inner, Wrapping { encrypted, compressed: true });
        } else {
            self.link.unbegin(message.start, message.begun);
            self.out.coverage.messages_unknown += 1;
        }
    }
}

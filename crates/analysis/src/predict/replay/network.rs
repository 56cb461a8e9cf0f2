//! The network between one client and the server, recorded and changed.

use std::collections::VecDeque;

use smbscope_tables::code::Vantage;
use smbscope_tables::tables::Connection;

use super::super::plan::Plan;
use super::protection::Algorithms;
use super::request::{Request, duration};
use super::serial::SerialStage;
use super::tcp::{HEADERS_BYTES, Path, Sender, window_of_losses};
use super::{Map, PIECES};

/// Payload of a segment on Ethernet, with TCP's time stamps.
pub(super) const SEGMENT_BYTES: f64 = 1448.0;
/// TCP's time stamps, which an announced segment size does not account for.
const STAMPS_BYTES: u64 = 12;
/// Larger segments are those of a loopback device, which no real network carries.
const SEGMENT_MAX_BYTES: f64 = 9_000.0;

/// Most channels of a session: Windows opens at most 32, and Samba accepts that many.
pub const CHANNELS_MAX: usize = 32;

/// One TCP connection.
pub(super) struct TcpConnection {
    /// Its client, when it is known.
    pub(super) client: Option<u32>,
    /// Whether that is the client of a session.
    pub(super) has_session: bool,
    /// Whether the round trip is known.
    pub(super) is_known: bool,
    /// Round trip between the capture point and the client, ns.
    pub(super) to_client_ns: i64,
    pub(super) rtt_ns: (i64, i64),
    today: Route,
    then: Route,
    /// Whether the network changes.
    pub(super) is_other: bool,
    line: u32,
    pub(super) algorithms: Algorithms,
    /// Whether requests, and replies, were sent by the recording machine.
    sends: [bool; 2],
    /// Bytes of long messages that it received, and how much longer they took than the model of the recorded network, ns.
    spread: (u64, i64),
    /// Whether the server's receive window limits requests.
    is_window_filled: bool,
    /// End of sending of the last long request, recorded, and when it is sent with the changes.
    queue: Option<(i64, i64)>,
    /// Where requests whose protection changes wait for each other.
    pub(super) stage: SerialStage,
}

/// A request whose first byte follows the last one of the request before by at most this had waited for it, ns ...
const QUEUED_NS: i64 = 1_000_000;
/// ... or by this share of that request's transfer.
const QUEUED_SHARE: i64 = 20;

/// Messages of this many bytes show the rate of the network.
const LONG_BYTES: u64 = 12 << 10;

struct Route {
    paths: [Path; 2],
    /// One pair for each of its TCP connections.
    senders: Vec<[Sender; 2]>,
    turn: usize,
}

/// The network's part of one operation's time, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NetworkCost {
    pub(super) rtt_ns: i64,
    /// Additional round trips and the time of sending.
    pub(super) more_ns: i64,
    /// By how much the recorded network was faster than its model, for example because its window was open already.
    faster_ns: i64,
}

impl NetworkCost {
    pub(super) fn sum(&self) -> i64 {
        self.rtt_ns + self.more_ns
    }

    /// If bytes take longer with the changes, that includes the time by which the recorded network, or a sender, was
    /// slower than its model. Where the recorded network was faster than its model, the changed one is, too.
    pub(super) fn absorbs(mut self, today: NetworkCost, spread_ns: i64) -> NetworkCost {
        self.more_ns -= spread_ns.min((self.more_ns - today.more_ns).max(0));
        self.more_ns = (self.more_ns - today.faster_ns).max(0);
        self
    }

    pub(super) fn times(&self, count: u64) -> NetworkCost {
        let times = |ns: i64| duration(ns.saturating_mul(count as i64));
        NetworkCost { rtt_ns: times(self.rtt_ns), more_ns: times(self.more_ns), faster_ns: 0 }
    }

    pub(super) fn and(&self, other: NetworkCost) -> NetworkCost {
        NetworkCost {
            rtt_ns: duration(self.rtt_ns + other.rtt_ns),
            more_ns: duration(self.more_ns + other.more_ns),
            faster_ns: 0,
        }
    }
}

/// What is known about a connection before its first operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionFacts {
    /// Round trips between the capture point and the client, and the server, ns.
    to_client: Option<i64>,
    to_server: Option<i64>,
    segment_bytes: Option<u64>,
    /// Receive windows that senders filled, to the server and to the client, bytes.
    filled_windows: [Option<u64>; 2],
    algorithms: Algorithms,
}

/// A sender that had this share of the receive window on its way was limited by it.
const FILLED: f64 = 0.8;

impl ConnectionFacts {
    pub(super) fn from_row(one: &Connection) -> ConnectionFacts {
        let vantage = one.vantage.as_deref();
        let side = |ns: Option<i64>, here: &[Vantage]| {
            // A capture point at the end has no network behind it.
            let is_here = here.iter().any(|here| vantage == Some(here.name()));
            if is_here { Some(0) } else { ns.map(duration) }
        };
        let filled = |in_flight: u64, window: Option<u64>| {
            let is_filled = |window: &u64| in_flight as f64 >= FILLED * *window as f64;
            window.filter(|window| *window > 0).filter(is_filled)
        };
        ConnectionFacts {
            filled_windows: [
                filled(one.in_flight_max_to_server, one.server_window_max),
                filled(one.in_flight_max_to_client, one.client_window_max),
            ],
            algorithms: Algorithms::from_row(one),
            to_client: side(one.client_rtt_ns, &[Vantage::Client]),
            to_server: side(one.server_rtt_ns, &[Vantage::Server, Vantage::Inside]),
            segment_bytes: match (one.client_mss, one.server_mss) {
                (Some(client), Some(server)) => Some(client.min(server)),
                (one, other) => one.or(other),
            },
        }
    }
}

impl TcpConnection {
    pub(super) fn new(plan: &Plan, known: ConnectionFacts, line: u32) -> TcpConnection {
        let ConnectionFacts { to_client, to_server, segment_bytes, filled_windows, algorithms } =
            known;
        let rtt_ns = to_client.unwrap_or(0) + to_server.unwrap_or(0);
        let is_known = to_client.is_some() && to_server.is_some();
        let segment_bytes = segment_bytes
            .map_or(SEGMENT_BYTES, |mss| mss.saturating_sub(STAMPS_BYTES).max(500) as f64);
        let today =
            Path { rtt_ns, segment_bytes, segment_ns: 0.0, window: f64::INFINITY, loss: 0.0 };
        let mut then = today;
        if plan.is_other_network() {
            then.rtt_ns = if is_known { duration(plan.rtt_ns(rtt_ns)) } else { rtt_ns };
            if segment_bytes > SEGMENT_MAX_BYTES {
                then.segment_bytes = SEGMENT_BYTES;
            }
            if let Some(bits) = plan.bandwidth_bits {
                then.segment_ns = (then.segment_bytes + HEADERS_BYTES) * 8e9 / bits;
            }
            if let Some(window) = plan.window_bytes {
                then.window = (window / then.segment_bytes).max(1.0);
            }
            then.loss = plan.loss;
            if plan.loss > 0.0 {
                then.window = then.window.min(window_of_losses(plan.loss, then.rtt_ns)).max(1.0);
            }
        }
        let limited = |path: Path, bytes: Option<u64>| {
            let window = bytes.map_or(f64::INFINITY, |bytes| bytes as f64 / path.segment_bytes);
            Path { window: path.window.min(window.max(1.0)), ..path }
        };
        let way = |path: Path, connections: usize| Route {
            paths: filled_windows.map(|bytes| limited(path, bytes)),
            senders: vec![Default::default(); connections],
            turn: 0,
        };
        TcpConnection {
            client: None,
            has_session: false,
            is_known,
            to_client_ns: to_client.unwrap_or(0),
            rtt_ns: (rtt_ns, then.rtt_ns),
            is_other: then != today || plan.moves_requests(),
            today: way(today, 1),
            then: way(then, plan.channels.clamp(1, CHANNELS_MAX)),
            line,
            algorithms,
            sends: [to_client, to_server].map(|behind_ns| behind_ns == Some(0)),
            spread: (0, 0),
            is_window_filled: filled_windows[0].is_some(),
            queue: None,
            stage: SerialStage::default(),
        }
    }

    /// When a request is sent that waited for the request before it in the client's send queue: no reply made way for it, but
    /// the window. None for another one. `usual` is the time that follows from replies.
    pub(super) fn send_queued(&mut self, request: &Request, start: i64, usual: i64) -> Option<i64> {
        if !self.is_other || !self.is_window_filled || request.bytes.0 < LONG_BYTES {
            return None;
        }
        let near_ns = (request.sending_ns / QUEUED_SHARE).max(QUEUED_NS);
        let at = match self.queue {
            Some((ended, sent)) if start.saturating_sub(ended).abs() <= near_ns => {
                Some(usual.min(self.then.next_is_free_at().max(sent)))
            }
            _ => None,
        };
        self.queue = Some((start.saturating_add(request.sending_ns), at.unwrap_or(usual)));
        at
    }

    /// How much longer the bytes of a request and its reply took than the model of the recorded network, from their
    /// visible transfer time. Data sent by the recording machine is handed to the kernel, so its transfer time is not
    /// visible; the time per byte of received data is assumed, if that is longer.
    pub(super) fn spread_ns(
        &mut self,
        bytes: (u64, u64),
        today: &NetworkCost,
        seen_ns: i64,
    ) -> i64 {
        let seen_ns = (seen_ns - today.more_ns).max(0);
        let [up, down] = [bytes.0, bytes.1].map(|bytes| bytes >= LONG_BYTES);
        let (bytes, is_own) = match (up, down) {
            (true, false) => (bytes.0, self.sends[0]),
            (false, true) => (bytes.1, self.sends[1]),
            _ => return seen_ns,
        };
        if !is_own {
            let (known, known_ns) = self.spread;
            let known_ns = duration(known_ns.saturating_add(seen_ns));
            self.spread = (known.saturating_add(bytes), known_ns);
            return seen_ns;
        }
        let (known, known_ns) = self.spread;
        seen_ns.max((known_ns as f64 / known.max(1) as f64 * bytes as f64) as i64)
    }

    /// The recorded network's part for a request, sent at `at`, and its reply: at most the whole time.
    pub(super) fn today(&mut self, at: i64, bytes: (u64, u64), whole_ns: i64) -> NetworkCost {
        let mut today = self.today.carry(at, bytes, false);
        today.rtt_ns = today.rtt_ns.min(whole_ns.max(0));
        let model_ns = today.more_ns;
        today.more_ns = model_ns.min(whole_ns.max(0) - today.rtt_ns);
        today.faster_ns = model_ns - today.more_ns;
        today
    }

    /// The changed network's part for several messages one after the other, each of which takes `between_ns` in addition.
    pub(super) fn pieces(
        &mut self,
        lines: &mut ClientLinks,
        at: i64,
        bytes: (u64, u64),
        pieces: u64,
        between_ns: i64,
    ) -> NetworkCost {
        let piece = (bytes.0.div_ceil(pieces), bytes.1.div_ceil(pieces));
        let mut sum = NetworkCost::default();
        let mut last = sum;
        for place in 0..pieces.min(PIECES) as i64 {
            let at = at + sum.sum() + duration(place.saturating_mul(between_ns));
            last = self.then(lines, at, piece, false);
            sum = sum.and(last);
        }
        sum.and(last.times(pieces.saturating_sub(PIECES)))
    }

    /// The changed network's part. For a message that continues the previous one, only the sending counts.
    pub(super) fn then(
        &mut self,
        lines: &mut ClientLinks,
        at: i64,
        bytes: (u64, u64),
        is_more: bool,
    ) -> NetworkCost {
        let mut then = self.then.carry(at, bytes, is_more);
        then.more_ns = duration(then.more_ns.saturating_add(lines.wait(self.line, at, bytes)));
        then
    }
}

impl Route {
    /// When the connection that carries the next message has sent all before it.
    fn next_is_free_at(&self) -> i64 {
        let next = (self.turn + 1) % self.senders.len().max(1);
        self.senders.get(next).map_or(i64::MIN, |[client, _]| client.sent_at())
    }

    fn carry(&mut self, at: i64, bytes: (u64, u64), is_more: bool) -> NetworkCost {
        let [up, down] = &self.paths;
        if !is_more {
            self.turn = (self.turn + 1) % self.senders.len();
        }
        let Some([client, server]) = self.senders.get_mut(self.turn) else {
            return NetworkCost::default();
        };
        let request_ns = client.send(up, at, bytes.0, is_more);
        let at_server = at.saturating_add(request_ns).saturating_add(up.rtt_ns);
        let reply_ns = server.send(down, at_server, bytes.1, is_more);
        let rtt_ns = if is_more { 0 } else { up.rtt_ns };
        NetworkCost { rtt_ns, more_ns: duration(request_ns.saturating_add(reply_ns)), faster_ns: 0 }
    }
}

/// Links of limited rate, one for each client address, shared by its connections.
pub(super) struct ClientLinks {
    bits: Option<f64>,
    lines: Vec<[Calendar; 2]>,
    line_of: Map<String, u32>,
}

impl ClientLinks {
    pub(super) fn new(plan: &Plan) -> ClientLinks {
        ClientLinks { bits: plan.bandwidth_bits, lines: Vec::new(), line_of: Map::default() }
    }

    /// The link of a client.
    pub(super) fn of(&mut self, client: &str) -> u32 {
        if self.bits.is_none() {
            return 0;
        }
        if let Some(&line) = self.line_of.get(client) {
            return line;
        }
        let line = self.lines.len() as u32;
        self.lines.push([Calendar::default(), Calendar::default()]);
        self.line_of.insert(client.to_owned(), line);
        line
    }

    /// How long a request and its reply wait because others use the link, ns.
    fn wait(&mut self, line: u32, at: i64, bytes: (u64, u64)) -> i64 {
        let (Some(bits), Some([up, down])) = (self.bits, self.lines.get_mut(line as usize)) else {
            return 0;
        };
        let ns = |bytes: u64| {
            let headers = (bytes as f64 / SEGMENT_BYTES).ceil() * HEADERS_BYTES;
            ((bytes as f64 + headers) * 8e9 / bits) as i64
        };
        let waited = up.take(at, ns(bytes.0));
        waited + down.take(at.saturating_add(waited), ns(bytes.1))
    }
}

/// When a link is busy. Messages come roughly in the order of time; each takes the first free time after
/// its own.
#[derive(Default)]
pub(super) struct Calendar {
    /// Number of the first slot that is kept, and of the one after the last.
    first: i64,
    end: i64,
    /// Pieces of [`Calendar::PIECE`] slots, from `first_piece` on. A client that seldom sends has few, and there may be
    /// many links.
    pieces: VecDeque<Option<Box<Piece>>>,
    first_piece: i64,
}

/// Busy time in consecutive slots, ns, and how much time is free in all of them.
struct Piece {
    slots: [u32; Calendar::PIECE as usize],
    free_ns: i64,
}

impl Calendar {
    const SLOT_NS: i64 = 1_000_000;
    /// Slots that are kept: a minute.
    const SLOTS: i64 = 60_000;
    const PIECE: i64 = 64;

    /// Occupies the link for `ns` from `at` on; returns how long that has to wait.
    pub(super) fn take(&mut self, at: i64, ns: i64) -> i64 {
        if ns <= 0 {
            return 0;
        }
        let slot = at.div_euclid(Self::SLOT_NS);
        if self.pieces.is_empty() || slot - self.first >= 2 * Self::SLOTS {
            self.pieces.clear();
            (self.first, self.end) = (slot, slot);
            self.first_piece = slot.div_euclid(Self::PIECE);
        }
        // Time before the kept slots is over.
        let mut place = slot.max(self.first);
        let most = self.first + 2 * Self::SLOTS;
        let mut left = ns;
        let mut end = at;
        while left > 0 && place < most {
            let number = place.div_euclid(Self::PIECE);
            let next = (number + 1) * Self::PIECE;
            let piece = self.piece(number);
            if piece.free_ns == 0 {
                place = next;
                continue;
            }
            for slot in piece.slots.iter_mut().skip(place.rem_euclid(Self::PIECE) as usize) {
                let slot_at = place * Self::SLOT_NS;
                // In the first slot, only the time after `at`.
                let from = (at - slot_at).clamp(0, Self::SLOT_NS);
                let busy = i64::from(*slot);
                let taken = (Self::SLOT_NS - busy).min(Self::SLOT_NS - from).clamp(0, left);
                left -= taken;
                if taken > 0 {
                    end = slot_at + (from.max(busy) + taken).min(Self::SLOT_NS);
                }
                *slot += taken as u32;
                piece.free_ns -= taken;
                place += 1;
                if left == 0 || place >= most {
                    break;
                }
            }
            self.end = self.end.max(place);
        }
        self.first = self.first.max(self.end - Self::SLOTS);
        while self.first_piece < self.first.div_euclid(Self::PIECE)
            && self.pieces.pop_front().is_some()
        {
            self.first_piece += 1;
        }
        (end - at - ns).max(0)
    }

    fn piece(&mut self, number: i64) -> &mut Piece {
        let place = (number - self.first_piece).max(0) as usize;
        if self.pieces.len() <= place {
            self.pieces.resize_with(place + 1, || None);
        }
        self.pieces[place].get_or_insert_with(|| {
            Box::new(Piece {
                slots: [0; Self::PIECE as usize],
                free_ns: Self::PIECE * Self::SLOT_NS,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_one_message_after_the_other_in_any_order() {
        let ms = 1_000_000;
        let mut line = Calendar::default();
        assert_eq!(line.take(0, 10 * ms), 0);
        assert_eq!(line.take(2 * ms, 5 * ms), 8 * ms);
        assert_eq!(line.take(30 * ms, 5 * ms), 0);
        // Before the previous one, in free time.
        assert_eq!(line.take(20 * ms, 5 * ms), 0);
        assert_eq!(line.take(20 * ms, 10 * ms), 10 * ms);
    }

    #[test]
    fn a_calendar_does_not_grow() {
        let mut line = Calendar::default();
        for at in 0..200 {
            line.take(at * 1_000_000_000, 1_500_000);
        }
        // One minute, and only the pieces in which something was sent.
        let made = |line: &Calendar| line.pieces.iter().flatten().count();
        assert!(made(&line) <= 62, "{}", made(&line));
        line.take(200_000_000_000, 3_600_000_000_000);
        let most = (Calendar::SLOTS / Calendar::PIECE) as usize + 2;
        assert!(line.pieces.len() <= most, "{}", line.pieces.len());
        line.take(i64::MAX / 2, 1_000);
        assert_eq!(line.pieces.len(), 1);
    }
}

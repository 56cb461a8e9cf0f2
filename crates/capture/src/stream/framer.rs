//! An ordered stream to messages, by the length in the NetBIOS header (RFC 1002 section 4.3.1).
//!
//! A message is handed over when its last byte has passed, with as much of its beginning as the
//! decoder wants; the rest is skipped by length. After a hole that swallows a message's beginning
//! the next plausible one is searched for.

use memchr::memmem;
use smbscope_wire::nbss::{self, Kind};
use smbscope_wire::read::{array_at, u8_at, u16_at};

use super::Piece;
use super::wanted_bytes;
use crate::limits::{LONG_BYTES, Limits, WaitingBytes};

/// A message of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its beginning, from the protocol's magic: the bytes that are needed, as far as captured.
    pub bytes: &'a [u8],
    /// Its length without the NetBIOS header, according to that header.
    pub length: u32,
    /// Type in the NetBIOS header.
    pub kind: Kind,
    /// Whether a byte that is needed was not captured.
    pub cut: bool,
    /// First byte (of the NetBIOS header).
    pub start: i64,
    /// Last byte; none when it was lost or the capture ends before it.
    pub end: Option<i64>,
    /// Frame of the first byte.
    pub frame: u64,
    /// TCP sequence number of the first byte.
    pub sequence: u32,
    /// What [`MessageSink::begin`] returned for it.
    pub begun: i64,
    /// Bytes of the NetBIOS header that were sent before it; 0 over RDMA, which has none.
    pub header_bytes: u32,
}

/// Receives the messages of one direction.
pub trait MessageSink {
    /// A message begins: its length is known, nothing else.
    fn begin(&mut self, time: i64) -> i64;
    /// Cancels a begin whose message turned out not to be one.
    fn unbegin(&mut self, time: i64, begun: i64);
    /// Whether a message without magic is expected (SMB1 raw mode).
    fn expects_raw(&self) -> bool;
    /// Whether whole encrypted messages are wanted.
    fn decrypts(&self) -> bool;
    /// A message, complete or as far as it was captured.
    fn message(&mut self, message: Message<'_>);
}

/// Counters of a framer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Times the next message had to be searched for.
    pub searches: u64,
    /// Bytes skipped in searches.
    pub skipped_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Boundary,
    Message,
    Search,
}

/// How a message of SMB1 begins; the first byte of the other protocols is less by 1 to 3.
const SMB1: u32 = 0xff53_4d42;
/// How a plaintext message of SMB2 begins: 0xfe, 'S', 'M', 'B'.
const SMB2: u32 = 0xfe53_4d42;
/// Bytes that must be there to judge whether a message begins.
const PLAUSIBLE_BYTES: usize = 10;

/// Cuts one direction into messages.
#[derive(Clone, Debug)]
pub struct Framer {
    state: State,
    /// The beginning of the message with its NetBIOS header, or the carry of a search.
    buffer: Vec<u8>,
    want: usize,
    /// Where the last known member of the compound begins, behind the NetBIOS header.
    member: usize,
    /// Length with the NetBIOS header; 0 until known.
    total: u64,
    seen: u64,
    cut: bool,
    kind: Kind,
    start: i64,
    last: Option<i64>,
    frame: u64,
    sequence: u32,
    begun: Option<i64>,
    limit_bytes: usize,
    /// The capacity of a long buffer, among what waits in all connections, and the limit of all.
    waiting: WaitingBytes,
    waiting_max: usize,
    counted: usize,
    header_bytes: u32,
    /// Whether a message was ever found.
    pub synchronised: bool,
    /// What was searched and skipped.
    pub counters: Counters,
}

impl Framer {
    /// A framer that keeps at most [`Limits::message_bytes`] of a message, and little while all connections together keep
    /// too much.
    pub fn new(limits: &Limits, waiting: WaitingBytes) -> Framer {
        Framer {
            state: State::Boundary,
            buffer: Vec::new(),
            want: 0,
            member: 0,
            total: 0,
            seen: 0,
            cut: false,
            kind: Kind::SESSION_MESSAGE,
            start: 0,
            last: None,
            frame: 0,
            sequence: 0,
            begun: None,
            limit_bytes: limits.message_bytes,
            waiting,
            waiting_max: limits.waiting_bytes(),
            counted: 0,
            header_bytes: nbss::HEADER_BYTES as u32,
            synchronised: false,
            counters: Counters::default(),
        }
    }

    /// The NetBIOS headers were not sent: the transport knows where messages begin (SMB Direct),
    /// and they are added where its messages become a stream.
    pub fn without_headers(&mut self) {
        self.header_bytes = 0;
    }

    /// The SMB2 message in a piece, if the piece is exactly one message, as most are. It is taken
    /// without a [`MessageSink`]; any other piece still has to be fed.
    #[inline]
    pub fn whole_smb2<'a>(&mut self, piece: &Piece<'a>) -> Option<&'a [u8]> {
        let (header, bytes) = piece.bytes.split_first_chunk::<{ nbss::HEADER_BYTES }>()?;
        // The kind of session messages, in the length's first byte, is 0.
        let is_whole = u32::from_be_bytes(*header) as usize == bytes.len();
        let is_all = piece.bytes.len() == piece.length as usize;
        let is_smb2 = bytes.first_chunk().is_some_and(|magic| u32::from_be_bytes(*magic) == SMB2);
        (self.state == State::Boundary && is_whole && is_all && is_smb2).then(|| {
            self.synchronised = true;
            bytes
        })
    }

    /// Whether the next message has to be searched for.
    #[inline]
    pub fn is_searching(&self) -> bool {
        self.state == State::Search
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, mut piece: Piece<'_>, sink: &mut impl MessageSink) {
        while piece.length > 0 {
            let taken = match self.state {
                State::Boundary => self.boundary(&piece, sink),
                State::Message => self.collect(&piece, sink),
                State::Search => self.search(&piece),
            };
            piece = piece.skip(taken);
        }
    }

    /// The stream ends or is lost track of: hands over what there is of a message.
    pub fn end(&mut self, sink: &mut impl MessageSink) {
        if self.state == State::Message {
            if self.total > 0 && self.buffer.len() > nbss::HEADER_BYTES {
                self.cut |= self.buffer.len() < self.want;
                self.hand_over(None, sink);
            } else {
                self.abandon(self.start, sink);
            }
        }
        self.state = State::Search;
        self.buffer.clear();
    }

    /// A whole message in one piece is handed over in place; everything else is collected.
    #[inline]
    fn boundary(&mut self, piece: &Piece<'_>, sink: &mut impl MessageSink) -> u32 {
        if let Some(header) = nbss::Header::parse(piece.bytes) {
            let total = nbss::HEADER_BYTES + header.length as usize;
            if let Some(bytes) = piece.bytes.get(nbss::HEADER_BYTES..total)
                && self.is_message(header, bytes, sink)
            {
                self.synchronised = true;
                let begun = sink.begin(piece.time);
                sink.message(Message {
                    bytes,
                    length: header.length,
                    kind: header.kind,
                    cut: false,
                    start: piece.time,
                    end: Some(piece.time),
                    frame: piece.frame,
                    sequence: piece.sequence,
                    begun,
                    header_bytes: self.header_bytes,
                });
                return total as u32;
            }
        }
        self.state = State::Message;
        self.buffer.clear();
        self.want = nbss::HEADER_BYTES;
        self.member = 0;
        self.total = 0;
        self.seen = 0;
        self.cut = false;
        self.start = piece.time;
        self.last = None;
        self.frame = piece.frame;
        self.sequence = piece.sequence;
        self.begun = None;
        0
    }

    fn collect(&mut self, piece: &Piece<'_>, sink: &mut impl MessageSink) -> u32 {
        let mut taken = 0;
        let mut bytes = piece.bytes;
        if !piece.lost {
            self.last = Some(self.last.map_or(piece.time, |last| last.max(piece.time)));
        }
        while self.buffer.len() < self.want && !self.cut && !bytes.is_empty() {
            let count = (self.want - self.buffer.len()).min(bytes.len());
            let (now, later) = bytes.split_at(count);
            self.buffer.extend_from_slice(now);
            bytes = later;
            taken += count as u32;
            self.seen += count as u64;
            if self.buffer.len() == self.want && !self.extend_want(piece, sink) {
                // No message begins here: search from its first byte on.
                self.abandon(piece.time, sink);
                self.begin_search();
                return taken;
            }
        }
        if self.total > 0 {
            let rest = (self.total - self.seen).min(u64::from(piece.length - taken)) as u32;
            if rest > 0 {
                self.cut |= self.buffer.len() < self.want;
                self.seen += u64::from(rest);
                taken += rest;
            }
            if self.seen == self.total {
                let end = if piece.lost { None } else { self.last };
                self.hand_over(end, sink);
                self.state = State::Boundary;
            }
        } else if taken < piece.length {
            // The length itself is in a hole.
            self.abandon(piece.time, sink);
            self.buffer.clear();
            self.begin_search();
        }
        taken
    }

    /// Decides how much more is wanted; false if this is not a message.
    fn extend_want(&mut self, piece: &Piece<'_>, sink: &mut impl MessageSink) -> bool {
        let Some(header) = nbss::Header::parse(&self.buffer) else { return false };
        let message = self.buffer.get(nbss::HEADER_BYTES..).unwrap_or_default();
        let length = header.length as usize;
        if self.total == 0 {
            if !header.kind.is_known() {
                return false;
            }
            self.kind = header.kind;
            self.want = nbss::HEADER_BYTES + length.min(4);
            self.total = nbss::HEADER_BYTES as u64 + u64::from(header.length);
            return self.want > self.buffer.len() || self.is_message(header, message, sink);
        }
        if self.begun.is_none() {
            if !self.is_message(header, message, sink) {
                return false;
            }
            self.synchronised = true;
            self.begun = Some(sink.begin(self.start.min(piece.time)));
        }
        let decrypts = sink.decrypts();
        let want = wanted_bytes::of_message(message, length, decrypts, &mut self.member);
        let want = want.min(length);
        let limit = match self.count(want) {
            true if sink.decrypts() => usize::MAX,
            true => self.limit_bytes,
            false => self.buffer.len().saturating_sub(nbss::HEADER_BYTES).max(LONG_BYTES),
        };
        self.cut |= want > limit;
        self.want = nbss::HEADER_BYTES + want.min(limit);
        true
    }

    /// Counts a long message among what waits; false if there is no room for it.
    fn count(&mut self, want: usize) -> bool {
        if want <= LONG_BYTES || want <= self.counted {
            return true;
        }
        let more = want - self.counted;
        if self.waiting.all().saturating_add(more) > self.waiting_max {
            return false;
        }
        self.waiting.add(more);
        self.counted = want;
        true
    }

    fn hand_over(&mut self, end: Option<i64>, sink: &mut impl MessageSink) {
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => sink.begin(self.start),
        };
        let buffer = std::mem::take(&mut self.buffer);
        sink.message(Message {
            bytes: buffer.get(nbss::HEADER_BYTES..).unwrap_or_default(),
            length: (self.total - nbss::HEADER_BYTES as u64) as u32,
            kind: self.kind,
            cut: self.cut,
            start: self.start,
            end,
            frame: self.frame,
            sequence: self.sequence,
            begun,
            header_bytes: self.header_bytes,
        });
        self.buffer = buffer;
        self.buffer.clear();
        self.waiting.remove(std::mem::take(&mut self.counted));
        // A large message must not keep its memory for the life of the connection.
        self.buffer.shrink_to(LONG_BYTES);
    }

    fn abandon(&mut self, time: i64, sink: &mut impl MessageSink) {
        self.waiting.remove(std::mem::take(&mut self.counted));
        if let Some(begun) = self.begun.take() {
            sink.unbegin(time, begun);
        }
    }

    fn begin_search(&mut self) {
        self.state = State::Search;
        self.counters.searches += 1;
        // The first byte is known not to begin a message.
        if !self.buffer.is_empty() {
            self.buffer.remove(0);
            self.counters.skipped_bytes += 1;
        }
        self.keep_carry();
    }

    fn keep_carry(&mut self) {
        let surplus = self.buffer.len().saturating_sub(PLAUSIBLE_BYTES - 1);
        self.buffer.drain(..surplus);
        self.counters.skipped_bytes += surplus as u64;
    }

    /// Looks for a message that begins in what was carried over or in the piece.
    fn search(&mut self, piece: &Piece<'_>) -> u32 {
        let carried = self.buffer.len();
        if carried > 0 {
            // Candidates that begin in the carry: a window of both, small.
            let more = piece.bytes.get(..PLAUSIBLE_BYTES - 1).unwrap_or(piece.bytes);
            self.buffer.extend_from_slice(more);
            if let Some(at) = find(&self.buffer).filter(|&at| at < carried) {
                self.counters.skipped_bytes += at as u64;
                self.buffer.truncate(carried);
                self.buffer.drain(..at);
                self.resume(piece, self.buffer.len() as u32);
                return 0;
            }
            self.buffer.truncate(carried);
        }
        if let Some(at) = find(piece.bytes) {
            self.counters.skipped_bytes += (carried + at) as u64;
            self.buffer.clear();
            self.state = State::Boundary;
            return at as u32;
        }
        if piece.bytes.len() < piece.length as usize {
            self.counters.skipped_bytes += carried as u64 + u64::from(piece.length);
            self.buffer.clear();
        } else {
            let tail = piece.bytes.len().saturating_sub(PLAUSIBLE_BYTES - 1);
            self.counters.skipped_bytes += tail as u64;
            self.buffer.extend_from_slice(piece.bytes.get(tail..).unwrap_or_default());
            self.keep_carry();
        }
        piece.length
    }

    /// Whether a framed message is SMB. A synchronised stream may contain messages without magic
    /// (raw mode) or without content; before that, zeros are more likely the rest of file data.
    #[inline]
    fn is_message(&self, header: nbss::Header, message: &[u8], sink: &impl MessageSink) -> bool {
        match header.kind {
            Kind::SESSION_MESSAGE => {
                has_magic(message)
                    || (header.length == 0 && self.synchronised)
                    || sink.expects_raw()
            }
            kind => kind.is_known() && header.length <= 1024,
        }
    }

    /// Continues with a message whose first `carried` bytes are in the buffer.
    fn resume(&mut self, piece: &Piece<'_>, carried: u32) {
        self.state = State::Message;
        self.member = 0;
        self.total = 0;
        self.cut = false;
        self.start = piece.time;
        self.last = None;
        self.frame = piece.frame;
        self.sequence = piece.sequence.wrapping_sub(carried);
        self.begun = None;
        self.seen = u64::from(carried);
        if let Some(header) = nbss::Header::parse(&self.buffer) {
            self.kind = header.kind;
            self.total = nbss::HEADER_BYTES as u64 + u64::from(header.length);
            self.want = PLAUSIBLE_BYTES;
        } else {
            self.want = nbss::HEADER_BYTES;
        }
    }
}

#[inline]
fn has_magic(message: &[u8]) -> bool {
    array_at(message, 0).is_some_and(|magic| u32::from_be_bytes(*magic) | 0x0300_0000 == SMB1)
}

/// Where the first plausible message begins.
fn find(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, b"SMB")
        .filter_map(|at| at.checked_sub(5))
        .find(|&at| is_plausible(bytes.get(at..).unwrap_or_default()))
}

/// Whether an SMB message begins here: type, length, magic and the header's own size agree.
pub fn is_plausible(bytes: &[u8]) -> bool {
    let Some(header) = nbss::Header::parse(bytes) else { return false };
    let message = bytes.get(nbss::HEADER_BYTES..).unwrap_or_default();
    if header.kind != Kind::SESSION_MESSAGE || !has_magic(message) {
        return false;
    }
    match u8_at(message, 0) {
        Some(0xfe) => header.length >= 64 && u16_at(message, 4).is_some_and(|size| size == 64),
        Some(0xff) => header.length >= 35 && message.len() >= 6,
        Some(0xfd) => header.length > 52 && message.len() >= 6,
        _ => header.length > 16 && message.len() >= 6,
    }
}

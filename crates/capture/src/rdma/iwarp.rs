//! iWARP: one TCP connection's two streams to the Sends in them.
//!
//! Owns DDP's segments and the messages of RDMAP. A stream whose beginning was lost is found again
//! where a TCP segment begins with a frame, as MPA's senders align them. RFC 5041 section 4
//! (headers of DDP), RFC 5040 section 4 (RDMAP).

use smbscope_wire::read::array_at;

use super::Moved;
use super::mpa::{self, Startup};
use super::smb_direct;
use crate::stream::Piece;

/// Header of a tagged and of an untagged segment.
const TAGGED_BYTES: usize = 14;
const UNTAGGED_BYTES: usize = 18;
/// Bytes that tell which it is, with the length in front.
const CONTROL_BYTES: usize = mpa::LENGTH_BYTES + 2;

/// Opcodes of RDMAP.
const WRITE: u8 = 0;
const READ_REQUEST: u8 = 1;
const READ_RESPONSE: u8 = 2;
/// Send, with Invalidate, with Solicited Event, with both.
const SENDS: [u8; 4] = [3, 4, 5, 6];
const TERMINATE: u8 = 7;

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    opcode: u8,
    is_last: bool,
    /// Where in its message it is; tagged segments do not say.
    offset: Option<u32>,
    header_bytes: usize,
}

impl Segment {
    /// Reads a header; None if it contradicts the protocols, or is not there.
    fn parse(bytes: &[u8], length: u32) -> Option<Segment> {
        let [ddp, rdmap] = *array_at(bytes, 0)?;
        // Both versions are 1; four bits of DDP's and two of RDMAP's are reserved.
        if ddp & 0x3f != 1 || rdmap & 0xf0 != 0x40 {
            return None;
        }
        let opcode = rdmap & 0x0f;
        let is_tagged = ddp & 0x80 != 0;
        let header_bytes = if is_tagged { TAGGED_BYTES } else { UNTAGGED_BYTES };
        let offset = match is_tagged {
            true if opcode == WRITE || opcode == READ_RESPONSE => None,
            false => {
                let queue = u32::from_be_bytes(*array_at(bytes, 6)?);
                let is_right = match opcode {
                    READ_REQUEST => queue == 1,
                    TERMINATE => queue == 2,
                    opcode => queue == 0 && SENDS.contains(&opcode),
                };
                if !is_right {
                    return None;
                }
                Some(u32::from_be_bytes(*array_at(bytes, 14)?))
            }
            true => return None,
        };
        (length as usize >= header_bytes).then_some(Segment {
            opcode,
            is_last: ddp & 0x40 != 0,
            offset,
            header_bytes,
        })
    }
}

/// Whether a frame begins here: for streams of which the beginning is not known.
fn is_frame(bytes: &[u8]) -> bool {
    let Some((length, content)) = bytes.split_first_chunk::<{ mpa::LENGTH_BYTES }>() else {
        return false;
    };
    Segment::parse(content, u16::from_be_bytes(*length).into()).is_some()
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The startup frame.
    Startup,
    /// A frame's length and the header of its segment.
    Header,
    /// The payload of a segment.
    Payload { segment: Segment, left: u32, trailer: u32 },
    /// Padding and CRC.
    Trailer { left: u32 },
    /// The next frame has to be found.
    Search,
}

/// One direction.
#[derive(Clone, Debug)]
struct Direction {
    state: State,
    /// The startup frame or header, as far as it came: bounded by their lengths.
    buffer: Vec<u8>,
    has_markers: bool,
    /// Bytes since the startup frame.
    position: u64,
    startup: Option<Startup>,
    sends: smb_direct::Direction,
    moved: Moved,
    /// Times that the next frame had to be searched for.
    searches: u64,
}

impl Direction {
    fn new(state: State) -> Direction {
        Direction {
            state,
            buffer: Vec::new(),
            has_markers: false,
            position: 0,
            startup: None,
            sends: smb_direct::Direction::default(),
            moved: Moved::default(),
            searches: 0,
        }
    }

    fn feed(&mut self, mut piece: Piece<'_>, to: &mut impl FnMut(Piece<'_>)) {
        let is_missed = matches!(self.state, State::Startup) && self.buffer.is_empty();
        if (is_missed || matches!(self.state, State::Search)) && is_frame(piece.bytes) {
            self.state = State::Header;
        }
        while piece.length > 0 {
            let mut run = piece;
            if self.has_markers && !matches!(self.state, State::Startup) {
                let (is_marker, until) = mpa::marker(self.position);
                let count = until.min(piece.length);
                if is_marker {
                    self.position += u64::from(count);
                    piece = piece.skip(count);
                    continue;
                }
                let bytes = piece.bytes.get(..count as usize).unwrap_or(piece.bytes);
                run = Piece { bytes, length: count, ..piece };
            }
            let is_startup = matches!(self.state, State::Startup);
            let taken = self.step(&run, to).clamp(1, run.length);
            self.position += if is_startup { 0 } else { u64::from(taken) };
            piece = piece.skip(taken);
        }
    }

    /// Takes bytes of one kind; returns how many.
    fn step(&mut self, piece: &Piece<'_>, to: &mut impl FnMut(Piece<'_>)) -> u32 {
        match self.state {
            State::Startup => self.startup(piece),
            State::Header => self.header(piece),
            State::Payload { segment, left, trailer } => {
                let taken = left.min(piece.length);
                let bytes = piece.bytes.get(..taken as usize).unwrap_or(piece.bytes);
                if SENDS.contains(&segment.opcode) {
                    self.sends.bytes(Piece { bytes, length: taken, ..*piece }, to);
                }
                match left - taken {
                    0 => self.end_segment(segment, trailer),
                    left => self.state = State::Payload { segment, left, trailer },
                }
                taken
            }
            State::Trailer { left } => {
                let taken = left.min(piece.length);
                self.state = match left - taken {
                    0 => State::Header,
                    left => State::Trailer { left },
                };
                taken
            }
            State::Search => piece.length,
        }
    }

    /// Moves bytes into the buffer until it has `want`; None if they were not captured.
    fn collect(&mut self, piece: &Piece<'_>, want: usize) -> Option<u32> {
        let count = want.saturating_sub(self.buffer.len()).min(piece.length as usize);
        self.buffer.extend_from_slice(piece.bytes.get(..count)?);
        Some(count as u32)
    }

    fn search(&mut self) {
        self.buffer.clear();
        self.sends.lose();
        self.searches += 1;
        self.state = State::Search;
    }

    fn startup(&mut self, piece: &Piece<'_>) -> u32 {
        let want = self.startup.map_or(mpa::STARTUP_BYTES, |startup| startup.bytes);
        let Some(taken) = self.collect(piece, want) else {
            self.search();
            return piece.length;
        };
        if self.buffer.len() == mpa::STARTUP_BYTES && self.startup.is_none() {
            self.startup = Startup::parse(&self.buffer);
            if self.startup.is_none() {
                self.search();
            }
        }
        if self.startup.is_some_and(|startup| self.buffer.len() >= startup.bytes) {
            self.buffer.clear();
            self.state = State::Header;
        }
        taken
    }

    fn header(&mut self, piece: &Piece<'_>) -> u32 {
        let want = match self.buffer.get(mpa::LENGTH_BYTES) {
            Some(ddp) if self.buffer.len() >= CONTROL_BYTES => {
                let is_tagged = ddp & 0x80 != 0;
                mpa::LENGTH_BYTES + if is_tagged { TAGGED_BYTES } else { UNTAGGED_BYTES }
            }
            _ => CONTROL_BYTES,
        };
        let Some(taken) = self.collect(piece, want) else {
            self.search();
            return piece.length;
        };
        if self.buffer.len() < want || want == CONTROL_BYTES {
            return taken;
        }
        let length = self.buffer.first_chunk().map_or(0, |length| u16::from_be_bytes(*length));
        let content = self.buffer.get(mpa::LENGTH_BYTES..).unwrap_or_default();
        let Some(segment) = Segment::parse(content, length.into()) else {
            self.search();
            return taken;
        };
        self.buffer.clear();
        let left = u32::from(length) - segment.header_bytes as u32;
        let trailer = mpa::trailer(length.into());
        if SENDS.contains(&segment.opcode) && segment.offset == Some(0) {
            self.sends.begin();
        }
        let moved = &mut self.moved;
        match segment.opcode {
            WRITE | READ_RESPONSE => moved.bytes += u64::from(left),
            READ_REQUEST => moved.reads += 1,
            TERMINATE => moved.naks += 1,
            _ => {}
        }
        moved.writes += u64::from(segment.opcode == WRITE && segment.is_last);
        match left {
            0 => self.end_segment(segment, trailer),
            left => self.state = State::Payload { segment, left, trailer },
        }
        taken
    }

    fn end_segment(&mut self, segment: Segment, trailer: u32) {
        if SENDS.contains(&segment.opcode) && segment.is_last {
            self.sends.end();
        }
        self.state = State::Trailer { left: trailer };
    }
}

/// Both directions of a TCP connection that carries iWARP.
#[derive(Clone, Debug)]
pub struct Iwarp {
    directions: [Direction; 2],
}

impl Iwarp {
    /// Recognises iWARP by the bytes that one end sends: its startup frame or, mid-stream, the
    /// frame of a Send with an SMB message. `begins` says that they are the first of the
    /// connection.
    pub fn recognise(bytes: &[u8], begins: bool) -> Option<Iwarp> {
        let state = match Startup::parse(bytes) {
            Some(_) => State::Startup,
            None if begins && mpa::may_be_startup(bytes) => State::Startup,
            None if is_smb_frame(bytes) => State::Search,
            None => return None,
        };
        Some(Iwarp::in_state(state))
    }

    /// A connection that begins with startup frames.
    pub fn begin() -> Iwarp {
        Iwarp::in_state(State::Startup)
    }

    fn in_state(state: State) -> Iwarp {
        Iwarp { directions: [Direction::new(state), Direction::new(state)] }
    }

    /// Takes the next bytes of end `from`, and hands on the SMB messages as a stream.
    pub fn feed(&mut self, from: usize, piece: Piece<'_>, to: &mut impl FnMut(Piece<'_>)) {
        let [low, high] = &mut self.directions;
        let (own, other) = if from == 0 { (low, high) } else { (high, low) };
        let knew = own.startup.is_some();
        own.feed(piece, to);
        if !knew && let Some(startup) = own.startup {
            other.has_markers = startup.wants_markers;
        }
    }

    /// What RDMA moved in both directions.
    pub fn moved(&self) -> Moved {
        self.directions.iter().fold(Moved::default(), |sum, direction| Moved {
            reads: sum.reads + direction.moved.reads,
            writes: sum.writes + direction.moved.writes,
            bytes: sum.bytes + direction.moved.bytes,
            naks: sum.naks + direction.moved.naks,
        })
    }

    /// Times that a frame had to be searched for.
    pub fn searches(&self) -> u64 {
        self.directions.iter().map(|direction| direction.searches).sum()
    }

    /// The counters of SMB Direct in both directions.
    pub fn counters(&self) -> [smb_direct::Counters; 2] {
        self.directions.each_ref().map(|direction| direction.sends.counters)
    }
}

/// Whether a frame begins here that is a Send with the beginning of an SMB message.
fn is_smb_frame(bytes: &[u8]) -> bool {
    const DATA_AT: usize = mpa::LENGTH_BYTES + UNTAGGED_BYTES + 24;
    let is_smb = bytes
        .get(DATA_AT..)
        .is_some_and(|data| matches!(data, [0xfc..=0xfe, b'S', b'M', b'B', ..]));
    is_smb && is_frame(bytes)
}

#[cfg(test)]
mod tests;

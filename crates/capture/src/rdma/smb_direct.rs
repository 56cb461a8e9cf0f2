//! SMB Direct in the Sends of one direction: fragments to whole SMB messages.
//!
//! Owns the negotiation and data transfer messages. The payload is not copied: a fragment's bytes
//! are handed on as they come, behind a NetBIOS header with the length of the whole message, which
//! the first fragment names. Does not own the transport of Sends (`iwarp`, `shard`). MS-SMBD
//! sections 2.2.1 to 2.2.3 (layouts) and 3.1.5 (what the lengths of fragments add up to).

use smbscope_wire::nbss;
use smbscope_wire::read::{u16_at, u32_at};

use crate::stream::Piece;

/// Bytes of a data transfer message without padding and data, and of a negotiate request.
const HEADER_BYTES: usize = 20;
/// The only version.
const VERSION: u16 = 0x0100;
/// Where data begins, which is a multiple of 8 behind the header; every implementation uses 24. A
/// negotiate request has a buffer size of at least 128 in this place.
const DATA_OFFSET_MAX: u32 = 64;
/// Bytes by which an SMB message is recognised.
const MAGIC_BYTES: usize = 4;
/// A message that a NetBIOS header can describe.
const MESSAGE_BYTES_MAX: u32 = 0x00ff_ffff;

/// A message, from its first 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NegotiateRequest,
    NegotiateResponse,
    /// A data transfer without data: credits, or a keep-alive.
    Empty,
    /// A fragment of an SMB message.
    Data {
        /// Bytes of later fragments.
        remaining: u32,
        /// Where its data begins.
        offset: u32,
        /// Bytes of its data.
        length: u32,
    },
    Unknown,
}

impl Kind {
    fn from_header(header: &[u8; HEADER_BYTES]) -> Kind {
        let field16 = |at| u16_at(header, at).unwrap_or(0);
        let field32 = |at| u32_at(header, at).unwrap_or(0);
        let (remaining, offset, length) = (field32(8), field32(12), field32(16));
        let is_versions = field16(0) == VERSION && field16(2) == VERSION;
        match (field16(4), field16(6)) {
            (0, _) if is_versions && offset > DATA_OFFSET_MAX => Kind::NegotiateRequest,
            (VERSION, 0) if is_versions => Kind::NegotiateResponse,
            // The request for a response is the only flag that is defined.
            (0 | 1, 0) if length == 0 && remaining == 0 && offset <= DATA_OFFSET_MAX => Kind::Empty,
            (0 | 1, 0)
                if length > 0
                    && (HEADER_BYTES as u32..=DATA_OFFSET_MAX).contains(&offset)
                    && offset % 8 == 0
                    && u64::from(remaining) + u64::from(length) <= MESSAGE_BYTES_MAX.into() =>
            {
                Kind::Data { remaining, offset, length }
            }
            _ => Kind::Unknown,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// Bytes of no interest: between Sends, behind the data, or of an unknown message.
    #[default]
    Skip,
    /// That many bytes of the header are there.
    Header(usize),
    /// Between header and data.
    Padding { left: u32, remaining: u32, length: u32 },
    /// At the data, of which that many bytes are in `first`.
    Begin { have: usize, remaining: u32, length: u32 },
    /// In the data.
    Data { left: u32 },
}

/// Counters of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages of SMB Direct.
    pub messages: u64,
    /// Sends that are not SMB Direct.
    pub unknown: u64,
    /// SMB messages whose fragments do not fit together, or were lost.
    pub given_up: u64,
}

/// Whether the client sends the message that begins here, if that shows.
pub fn is_from_client(message: &[u8]) -> Option<bool> {
    match Kind::from_header(message.first_chunk()?) {
        Kind::NegotiateRequest => Some(true),
        Kind::NegotiateResponse => Some(false),
        Kind::Data { offset, .. } => {
            let data = message.get(offset as usize..)?;
            let flags = u32_at(data, 16).filter(|_| data.starts_with(b"\xfeSMB"))?;
            Some(flags & 1 == 0)
        }
        Kind::Empty | Kind::Unknown => None,
    }
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    state: State,
    header: [u8; HEADER_BYTES],
    /// How the data begins, if that is not in one piece.
    first: [u8; MAGIC_BYTES],
    /// Bytes of the current SMB message that are still to come.
    expected: u32,
    /// Something was lost since the last fragment.
    has_loss: bool,
    /// Bytes handed on: the sequence number of the next one in the stream of messages.
    position: u32,
    pub counters: Counters,
}

impl Direction {
    /// A Send begins.
    pub fn begin(&mut self) {
        if !matches!(self.state, State::Skip) {
            self.has_loss = true;
        }
        self.state = State::Header(0);
    }

    /// The Send ends.
    pub fn end(&mut self) {
        match self.state {
            State::Header(_) => self.counters.unknown += 1,
            State::Padding { .. } | State::Begin { .. } | State::Data { .. } => {
                self.has_loss = true;
            }
            State::Skip => {}
        }
        self.state = State::Skip;
    }

    /// Packets were lost: the rest of a Send, whole ones, or something else.
    pub fn lose(&mut self) {
        self.state = State::Skip;
        self.has_loss = true;
    }

    /// Takes the next bytes of a Send, and hands on those of SMB messages.
    pub fn bytes(&mut self, mut piece: Piece<'_>, to: &mut impl FnMut(Piece<'_>)) {
        while piece.length > 0 {
            let taken = match self.state {
                State::Skip => return,
                State::Header(have) => self.read_header(have, &piece),
                State::Padding { left, remaining, length } => {
                    let taken = left.min(piece.length);
                    self.state = match left - taken {
                        0 => State::Begin { have: 0, remaining, length },
                        left => State::Padding { left, remaining, length },
                    };
                    taken
                }
                State::Begin { have, remaining, length } => {
                    self.read_first(have, [remaining, length], &piece, to)
                }
                State::Data { left } => {
                    let taken = left.min(piece.length);
                    let bytes = piece.bytes.get(..taken as usize).unwrap_or(piece.bytes);
                    self.hand_on(Piece { bytes, length: taken, ..piece }, to);
                    self.expected = self.expected.saturating_sub(taken);
                    self.state = match left - taken {
                        0 => State::Skip,
                        left => State::Data { left },
                    };
                    taken
                }
            };
            piece = piece.skip(taken);
        }
    }

    /// Hands on a piece of the stream of messages.
    fn hand_on(&mut self, piece: Piece<'_>, to: &mut impl FnMut(Piece<'_>)) {
        to(Piece { sequence: self.position, ..piece });
        self.position = self.position.wrapping_add(piece.length);
    }

    /// Returns the bytes taken; the state changes when the header is complete.
    fn read_header(&mut self, have: usize, piece: &Piece<'_>) -> u32 {
        let count = (HEADER_BYTES - have).min(piece.length as usize);
        let (Some(now), Some(room)) =
            (piece.bytes.get(..count), self.header.get_mut(have..have + count))
        else {
            // Not captured, or lost.
            self.counters.unknown += 1;
            self.lose();
            return piece.length;
        };
        room.copy_from_slice(now);
        if have + count < HEADER_BYTES {
            self.state = State::Header(have + count);
            return count as u32;
        }
        let kind = Kind::from_header(&self.header);
        if kind == Kind::Unknown {
            self.counters.unknown += 1;
        } else {
            self.counters.messages += 1;
        }
        self.state = match kind {
            Kind::Data { remaining, offset, length } => {
                State::Padding { left: offset - HEADER_BYTES as u32, remaining, length }
            }
            _ => State::Skip,
        };
        count as u32
    }

    /// Returns the bytes taken; none if the data continues in the piece.
    fn read_first(
        &mut self,
        have: usize,
        lengths: [u32; 2],
        piece: &Piece<'_>,
        to: &mut impl FnMut(Piece<'_>),
    ) -> u32 {
        let [remaining, length] = lengths;
        let want = MAGIC_BYTES.min(length as usize);
        if have == 0 && piece.length as usize >= want {
            let is_begin = is_smb(piece.bytes);
            self.begin_data(is_begin, lengths, piece, to);
            return 0;
        }
        let count = (want - have).min(piece.length as usize);
        let (Some(now), Some(room)) =
            (piece.bytes.get(..count), self.first.get_mut(have..have + count))
        else {
            self.lose();
            return piece.length;
        };
        room.copy_from_slice(now);
        if have + count < want {
            self.state = State::Begin { have: have + count, remaining, length };
            return count as u32;
        }
        let first = self.first;
        let bytes = first.get(..want).unwrap_or_default();
        self.begin_data(is_smb(bytes), lengths, piece, to);
        if let State::Data { left } = self.state {
            self.hand_on(Piece { bytes, length: want as u32, ..*piece }, to);
            self.expected = self.expected.saturating_sub(want as u32);
            self.state = match left.saturating_sub(want as u32) {
                0 => State::Skip,
                left => State::Data { left },
            };
        }
        count as u32
    }

    /// The data of a fragment begins: it continues a message, or begins one.
    fn begin_data(
        &mut self,
        is_begin: bool,
        [remaining, length]: [u32; 2],
        piece: &Piece<'_>,
        to: &mut impl FnMut(Piece<'_>),
    ) {
        let total = remaining + length;
        let had_loss = std::mem::take(&mut self.has_loss);
        let is_next =
            self.expected == total || had_loss && !is_begin && (1..self.expected).contains(&total);
        let lost = if is_next { self.expected - total } else { self.expected };
        if lost > 0 {
            self.counters.given_up += 1;
            self.hand_on(Piece::lost(0, lost, piece.time, piece.frame), to);
            self.expected -= lost;
        }
        if !is_next {
            if !is_begin {
                // The rest of a message whose beginning was lost, or not SMB at all.
                self.counters.given_up += u64::from(had_loss);
                self.counters.unknown += u64::from(!had_loss);
                self.has_loss = had_loss;
                self.state = State::Skip;
                return;
            }
            let header = total.to_be_bytes();
            let length = nbss::HEADER_BYTES as u32;
            self.hand_on(Piece { bytes: &header, length, lost: false, ..*piece }, to);
            self.expected = total;
        }
        self.state = State::Data { left: length };
    }
}

/// Whether a message of SMB2 begins: plaintext, encrypted or compressed.
fn is_smb(bytes: &[u8]) -> bool {
    matches!(bytes, [0xfc..=0xfe, b'S', b'M', b'B', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data transfer message (MS-SMBD section 2.2.3).
    fn transfer(remaining: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xff, 0, 1, 0, 0, 0, 0, 0];
        bytes.extend(remaining.to_le_bytes());
        bytes.extend(24_u32.to_le_bytes());
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(data);
        bytes
    }

    fn piece(bytes: &[u8]) -> Piece<'_> {
        Piece { bytes, length: bytes.len() as u32, time: 1, frame: 2, sequence: 0, lost: false }
    }

    /// What comes out: bytes, with `.` for one that is lost.
    fn put(direction: &mut Direction, sends: &[Vec<u8>], cut: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for send in sends {
            direction.begin();
            for part in send.chunks(cut) {
                direction.bytes(piece(part), &mut |piece| {
                    out.extend_from_slice(piece.bytes);
                    out.resize(out.len() + piece.length as usize - piece.bytes.len(), b'.');
                });
            }
            direction.end();
        }
        out
    }

    #[test]
    fn fragments_become_one_message() {
        for cut in [1, 7, 24, 1_000] {
            let mut direction = Direction::default();
            let sends = [transfer(6, b"\xfeSMBabc"), transfer(4, b"de"), transfer(0, b"fghi")];
            assert_eq!(put(&mut direction, &sends, cut), b"\0\0\0\x0d\xfeSMBabcdefghi");
            assert_eq!(direction.counters, Counters { messages: 3, ..Counters::default() });
        }
    }

    #[test]
    fn negotiation_and_credits_carry_no_message() {
        let mut direction = Direction::default();
        let request = vec![0, 1, 0, 1, 0, 0, 255, 0, 84, 5, 0, 0, 84, 5, 0, 0, 0, 0, 16, 0];
        let mut response = vec![0, 1, 0, 1, 0, 1, 0, 0, 255, 0, 254, 0, 0, 0, 0, 0];
        response.extend([0, 192, 255, 7, 84, 5, 0, 0, 84, 5, 0, 0, 86, 167, 2, 0]);
        let empty = vec![255, 0, 255, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(is_from_client(&request), Some(true));
        assert_eq!(is_from_client(&response), Some(false));
        assert_eq!(is_from_client(&empty), None);
        assert!(put(&mut direction, &[request, empty, response], 50).is_empty());
        assert_eq!(direction.counters, Counters { messages: 3, ..Counters::default() });
    }

    #[test]
    fn a_lost_fragment_is_a_hole_in_its_message() {
        let mut direction = Direction::default();
        let mut out = put(&mut direction, &[transfer(6, b"\xfeSMBabc")], 50);
        direction.lose();
        out.extend(put(&mut direction, &[transfer(0, b"fghi"), transfer(0, b"\xfeSMBx")], 50));
        assert_eq!(out, b"\0\0\0\x0d\xfeSMBabc..fghi\0\0\0\x05\xfeSMBx");
        assert_eq!(direction.counters.given_up, 1);
    }

    #[test]
    fn a_message_without_its_end_or_beginning_does_not_hide_the_next() {
        let mut direction = Direction::default();
        let mut out = put(&mut direction, &[transfer(2, b"\xfeSMBabc")], 50);
        direction.lose();
        out.extend(put(&mut direction, &[transfer(0, b"rest"), transfer(0, b"\xfeSMBx")], 50));
        assert_eq!(out, b"\0\0\0\x09\xfeSMBabc..\0\0\0\x05\xfeSMBx");
        assert_eq!(direction.counters.given_up, 2);
        assert!(put(&mut direction, &[b"no SMB Direct at all".to_vec()], 50).is_empty());
        assert_eq!(direction.counters.unknown, 1);
    }
}

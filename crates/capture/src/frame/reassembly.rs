//! IP fragments put together: pieces wait until their packet is whole.
//!
//! Owns the waiting pieces and their limits; it does not own the layout of a fragment (`fragment`).
//! RFC 791 section 3.2, RFC 8200 section 4.5; packets whose pieces overlap are discarded (RFC 5722).
//! A piece of which not everything was captured ends the captured bytes of its packet.

use hashbrown::HashMap;

use super::fragment::{Fragment, Key, Piece, whole_header};
use crate::file::LinkType;

/// Packets that wait for pieces; beyond that the oldest is discarded.
const PACKETS_MAX: usize = 1_024;
/// Pieces of one packet; the smallest usual MTU of 576 bytes gives 119.
const PIECES_MAX: usize = 256;
/// Bytes of all waiting pieces.
const BYTES_MAX: usize = 16 << 20;
/// The largest payload that a header can announce.
const PAYLOAD_MAX: usize = 65_535;
/// Pieces that are farther apart belong to different packets with the same identification.
const AGE_NS: u64 = 30_000_000_000;
/// Packets whose late copies are recognised, and for how long.
const FINISHED: usize = 16;
const FINISHED_NS: u64 = 100_000_000;

/// A packet that was put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassembled {
    /// [`LinkType::IPV4`] or [`LinkType::IPV6`].
    pub link: LinkType,
    /// From the IP header on, as far as captured.
    pub bytes: Vec<u8>,
    /// Its bytes on the wire.
    pub original: u32,
}

/// What became of fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentCounts {
    /// Put together.
    pub reassembled: u64,
    /// Recorded a second time.
    pub repeated: u64,
    /// Discarded: pieces are missing, overlap or contradict each other.
    pub lost: u64,
}

/// Puts fragments together.
#[derive(Clone, Default)]
pub struct Reassembler {
    waiting: HashMap<Key, Waiting, foldhash::fast::RandomState>,
    waiting_bytes: usize,
    finished: [Option<(Key, i64)>; FINISHED],
    next_finished: usize,
    counts: FragmentCounts,
}

/// The pieces of one packet.
#[derive(Clone)]
struct Waiting {
    /// Time of the first of them.
    time_ns: i64,
    /// Sorted, without overlap.
    pieces: Vec<Kept>,
    /// Bytes of the pieces on the wire.
    length: usize,
    /// The payload's length, when the last piece is known.
    total: Option<usize>,
}

#[derive(Clone)]
struct Kept {
    offset: usize,
    length: usize,
    bytes: Vec<u8>,
    /// Header of the first piece; the packet's header is made from it.
    header: Vec<u8>,
}

impl Reassembler {
    /// Takes a fragment of `frame`; returns the packet that it completes.
    pub fn take(&mut self, fragment: Fragment, frame: &[u8], time_ns: i64) -> Option<Reassembled> {
        let is_well_formed = |piece: &Piece<'_>| {
            let end = piece.offset + piece.length;
            piece.length > 0 && end <= PAYLOAD_MAX && (piece.is_last || end.is_multiple_of(8))
        };
        let Some(piece) = fragment.piece(frame).ok().filter(is_well_formed) else {
            self.counts.lost += 1;
            return None;
        };
        let is_late =
            |&(key, at): &(Key, i64)| key == piece.key && time_ns.abs_diff(at) < FINISHED_NS;
        if self.finished.iter().flatten().any(is_late) {
            self.counts.repeated += 1;
            return None;
        }
        let is_old = |waiting: &Waiting| waiting.time_ns.abs_diff(time_ns) > AGE_NS;
        if self.waiting.get(&piece.key).is_some_and(is_old) {
            self.discard(&piece.key);
        }
        while self.waiting_bytes > BYTES_MAX
            || (self.waiting.len() >= PACKETS_MAX && !self.waiting.contains_key(&piece.key))
        {
            let oldest = self.waiting.iter().min_by_key(|(_, waiting)| waiting.time_ns);
            let Some(key) = oldest.map(|(key, _)| *key) else { break };
            self.discard(&key);
        }
        let waiting = self.waiting.entry(piece.key).or_insert_with(|| Waiting::new(time_ns));
        match waiting.add(&piece) {
            Added::Kept => {
                self.waiting_bytes += piece.bytes.len();
                let total = waiting.total.filter(|total| *total == waiting.length)?;
                self.finish(&piece, total, time_ns)
            }
            Added::Repeated => {
                self.counts.repeated += 1;
                None
            }
            Added::Contradiction => {
                self.counts.lost += 1;
                self.discard(&piece.key);
                None
            }
        }
    }

    /// What became of the fragments since the last call.
    pub fn counts(&mut self) -> FragmentCounts {
        std::mem::take(&mut self.counts)
    }

    /// The recording ends: what waits is lost.
    pub fn end(&mut self) {
        let lost: usize = self.waiting.values().map(|waiting| waiting.pieces.len()).sum();
        self.counts.lost += lost as u64;
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.finished = [None; FINISHED];
    }

    fn finish(&mut self, last: &Piece<'_>, total: usize, time_ns: i64) -> Option<Reassembled> {
        let waiting = self.waiting.remove(&last.key)?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.captured());
        let pieces = waiting.pieces.len() as u64;
        let first = waiting.pieces.first()?;
        let Some(mut bytes) = whole_header(&Piece { header: &first.header, ..*last }, total) else {
            self.counts.lost += pieces;
            return None;
        };
        let original = (bytes.len() + total) as u32;
        for piece in &waiting.pieces {
            bytes.extend_from_slice(&piece.bytes);
            if piece.bytes.len() < piece.length {
                break;
            }
        }
        self.counts.reassembled += pieces;
        if let Some(place) = self.finished.get_mut(self.next_finished) {
            *place = Some((last.key, time_ns));
        }
        self.next_finished = (self.next_finished + 1) % FINISHED;
        Some(Reassembled { link: last.link, bytes, original })
    }

    fn discard(&mut self, key: &Key) {
        if let Some(waiting) = self.waiting.remove(key) {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.captured());
            self.counts.lost += waiting.pieces.len() as u64;
        }
    }
}

/// What became of a piece.
enum Added {
    Kept,
    /// It is known.
    Repeated,
    /// It overlaps another, or lies behind the end.
    Contradiction,
}

impl Waiting {
    fn new(time_ns: i64) -> Waiting {
        Waiting { time_ns, pieces: Vec::new(), length: 0, total: None }
    }

    fn captured(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }

    fn add(&mut self, piece: &Piece<'_>) -> Added {
        let end = piece.offset + piece.length;
        let place = self.pieces.partition_point(|known| known.offset < piece.offset);
        if let Some(known) = self.pieces.get(place)
            && (known.offset, known.length) == (piece.offset, piece.length)
        {
            return if known.bytes == piece.bytes { Added::Repeated } else { Added::Contradiction };
        }
        let before = place.checked_sub(1).and_then(|before| self.pieces.get(before));
        let is_contradictory = before
            .is_some_and(|known| known.offset + known.length > piece.offset)
            || self.pieces.get(place).is_some_and(|known| known.offset < end)
            || self.total.is_some_and(|total| end > total || piece.is_last)
            || (piece.is_last && place < self.pieces.len())
            || self.pieces.len() >= PIECES_MAX;
        if is_contradictory {
            return Added::Contradiction;
        }
        if piece.is_last {
            self.total = Some(end);
        }
        self.length += piece.length;
        let header = match piece.offset {
            0 => piece.header.to_vec(),
            _ => Vec::new(),
        };
        let kept = Kept {
            offset: piece.offset,
            length: piece.length,
            bytes: piece.bytes.to_vec(),
            header,
        };
        self.pieces.insert(place, kept);
        Added::Kept
    }
}

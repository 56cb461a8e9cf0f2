//! A record of the journal: one thing that the server acknowledged, or that happened to the run.

use crate::durability::block::hash;
use crate::durability::plan::{Lane, Pattern};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 64;

/// What a record says. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A file was created or opened; `sequence` is 1 if the handle is persistent.
    Open = 1,
    /// A Write was acknowledged.
    Write = 2,
    /// A Flush was acknowledged: it covers Writes of the file that were acknowledged before it was sent.
    Flush = 3,
    /// A Close was acknowledged.
    Close = 4,
    /// A rename was acknowledged: `file` is its version.
    Rename = 5,
    /// A round begins; `sequence` is the server's start time (100 ns since 1601; 0: it does not say).
    Round = 6,
    /// A writer's way is not offered by the server or the share.
    NotOffered = 7,
    /// The connection was lost, at `acked_ns`.
    Lost = 8,
    /// A writer ended because the server refused something: `sequence` is the status.
    Refused = 9,
    /// The server answers again; `sequence` as in `Round`.
    Back = 10,
    /// The round was verified; `sequence` is the number of faults.
    Verified = 11,
    /// The files of a verified round are being removed: what is missing from now on was not lost.
    Cleaning = 12,
}

impl Kind {
    /// The kind with this number.
    pub fn parse(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Open,
            2 => Kind::Write,
            3 => Kind::Flush,
            4 => Kind::Close,
            5 => Kind::Rename,
            6 => Kind::Round,
            7 => Kind::NotOffered,
            8 => Kind::Lost,
            9 => Kind::Refused,
            10 => Kind::Back,
            11 => Kind::Verified,
            12 => Kind::Cleaning,
            _ => return None,
        })
    }

    /// Whether it is about the run, not about a file.
    pub fn is_event(self) -> bool {
        matches!(
            self,
            Kind::Round
                | Kind::NotOffered
                | Kind::Lost
                | Kind::Refused
                | Kind::Back
                | Kind::Verified
                | Kind::Cleaning
        )
    }
}

/// One record; fields that a kind does not have are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened.
    pub kind: Kind,
    /// Number of the writer.
    pub lane: u16,
    /// The round.
    pub round: u32,
    /// The file among the writer's; the version of a file that is renamed.
    pub file: u32,
    /// The block of the file.
    pub block: u32,
    /// Number of the write among the writer's, from 1.
    pub sequence: u64,
    /// How often the block has been written.
    pub generation: u32,
    /// When the request was sent, ns since 1970.
    pub sent_ns: i64,
    /// When the reply was read.
    pub acked_ns: i64,
}

impl Record {
    /// An event of the run.
    pub fn event(kind: Kind, round: u32, sequence: u64, time_ns: i64) -> Record {
        Record {
            kind,
            lane: 0,
            round,
            file: 0,
            block: 0,
            sequence,
            generation: 0,
            sent_ns: time_ns,
            acked_ns: time_ns,
        }
    }

    /// Whether the writer has this file and block.
    pub(super) fn is_inside(&self, lane: &Lane) -> bool {
        let has_file = lane.pattern == Pattern::Rename || self.file < lane.files;
        self.kind.is_event() || has_file && self.block < lane.blocks
    }

    /// As in the file.
    pub fn bytes(&self, number: u64, run: &[u8; 16]) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.kind as u8;
        bytes[2..4].copy_from_slice(&self.lane.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.round.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.file.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.block.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.acked_ns.to_le_bytes());
        bytes[48..56].copy_from_slice(&number.to_le_bytes());
        let check = check(&bytes, run);
        bytes[56..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads one; the error says what is wrong with it.
    pub(super) fn read(
        bytes: &[u8; RECORD_BYTES],
        number: u64,
        run: &[u8; 16],
    ) -> Result<Record, &'static str> {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if u64_at(56) != check(bytes, run) {
            return Err("has a wrong checksum");
        }
        if u64_at(48) != number {
            return Err("has the number of another record");
        }
        Ok(Record {
            kind: Kind::parse(bytes[0]).ok_or("has a kind that this version does not know")?,
            lane: u16::from_le_bytes([bytes[2], bytes[3]]),
            round: u32_at(4),
            file: u32_at(8),
            block: u32_at(12),
            sequence: u64_at(16),
            generation: u32_at(24),
            sent_ns: u64_at(32) as i64,
            acked_ns: u64_at(40) as i64,
        })
    }
}

fn check(bytes: &[u8; RECORD_BYTES], run: &[u8; 16]) -> u64 {
    hash(hash(0, run), &bytes[..56])
}

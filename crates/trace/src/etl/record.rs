//! Headers of events: which event of which provider it is, when it was written, and where its fields
//! are.
//!
//! The third byte is the type of the header. The kernel logger uses SYSTEM_TRACE_HEADER (types 1 to
//! 4) and PERFINFO_TRACE_HEADER (16, 17); providers use EVENT_TRACE_HEADER (10, 20),
//! EVENT_INSTANCE_HEADER (11, 21) and EVENT_HEADER (18, 19). The lower number of each pair is of a
//! 32-bit writer: its pointers have 4 bytes.

use smbscope_wire::read::{array_at, u8_at, u16_at, u32_at, u64_at};

/// Which event of which provider a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The kernel logger.
    Kernel { group: u8, opcode: u8 },
    /// A provider with classic (MOF) events; the GUID has the order of bytes of the file.
    Classic { guid: [u8; 16], opcode: u8 },
    /// A provider with a manifest or self-describing events.
    Manifest { guid: [u8; 16], id: u16 },
    /// A record that is not an event: a message of WPP, an error, or an unknown type.
    Other { kind: u8 },
    /// Another provider, when there are too many to count each.
    Further,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub origin: Origin,
    pub version: u16,
    pub cpu: u32,
    /// By the clock of the log. Zero for records without a time.
    pub ticks: i64,
    /// 4 or 8.
    pub pointer_bytes: usize,
    /// The event's fields.
    pub payload: &'a [u8],
    /// Thread that wrote an event of a provider with a manifest.
    pub thread: u32,
    /// Keyword of such an event.
    pub keyword: u64,
    /// Bytes from this record to the next one.
    pub stride_bytes: usize,
}

const FLAG_TRACE_HEADER: u8 = 0x80;
const EVENT_HEADER_BYTES: usize = 80;
/// EVENT_HEADER_FLAG_EXTENDED_INFO: items of extended data follow the header.
const FLAG_EXTENDED_INFO: u16 = 1;
/// Windows has less than twenty types of items.
const EXTENDED_ITEMS_MAX: usize = 32;
/// Set in the version of PERFINFO_TRACE_HEADER if 8 bytes follow the header.
const EXTENDED: u16 = 0x8000;

impl<'a> Record<'a> {
    /// Reads the record at the start of `bytes`. `None` if it is damaged or cut off.
    #[inline]
    pub fn parse(bytes: &'a [u8], cpu: u32) -> Option<Record<'a>> {
        let head: &[u8; 8] = bytes.first_chunk()?;
        let [low, high, kind, flags, ..] = *head;
        if flags & FLAG_TRACE_HEADER == 0 {
            return None;
        }
        let word = u16::from_le_bytes([low, high]);
        let size = match kind {
            1..=4 | 16 | 17 => u16::from_le_bytes([head[4], head[5]]),
            _ => word,
        };
        let size = usize::from(size);
        let whole = bytes.get(..size)?;
        let stride_bytes = size.checked_add(7)? & !7;
        let signed = |at| u64_at(whole, at).map(|value| value as i64);
        let record = match kind {
            1..=4 => Record {
                origin: Origin::Kernel { group: head[7], opcode: head[6] },
                version: word,
                cpu,
                ticks: signed(16)?,
                pointer_bytes: if kind & 1 == 0 { 8 } else { 4 },
                payload: whole.get(if kind <= 2 { 32 } else { 24 }..)?,
                thread: 0,
                keyword: 0,
                stride_bytes,
            },
            16 | 17 => {
                let extra = if word & EXTENDED != 0 { 8 } else { 0 };
                let extra = extra + 8 * usize::from(word >> 8 & 7);
                Record {
                    origin: Origin::Kernel { group: head[7], opcode: head[6] },
                    version: word & 0x78ff,
                    cpu,
                    ticks: signed(8)?,
                    pointer_bytes: if kind == 17 { 8 } else { 4 },
                    payload: whole.get(16 + extra..)?,
                    thread: 0,
                    keyword: 0,
                    stride_bytes,
                }
            }
            10 | 11 | 20 | 21 => Record {
                origin: Origin::Classic { guid: *array_at(whole, 24)?, opcode: head[4] },
                version: u16::from_le_bytes([head[6], head[7]]),
                cpu,
                ticks: signed(16)?,
                pointer_bytes: if kind >= 20 { 8 } else { 4 },
                payload: whole.get(if kind & 1 == 0 { 48 } else { 56 }..)?,
                thread: 0,
                keyword: 0,
                stride_bytes,
            },
            18 | 19 => Record {
                origin: Origin::Manifest { guid: *array_at(whole, 24)?, id: u16_at(whole, 40)? },
                version: u16::from(u8_at(whole, 42)?),
                cpu,
                ticks: signed(16)?,
                pointer_bytes: if kind == 19 { 8 } else { 4 },
                payload: after_extended_data(whole)?,
                thread: u32_at(whole, 8)?,
                keyword: u64_at(whole, 48)?,
                stride_bytes,
            },
            _ if size < 8 => return None,
            _ => Record {
                origin: Origin::Other { kind },
                version: 0,
                cpu,
                ticks: 0,
                pointer_bytes: 8,
                payload: &[],
                thread: 0,
                keyword: 0,
                stride_bytes,
            },
        };
        Some(record)
    }
}

/// The fields of an event with EVENT_HEADER: they follow the header, or the items of extended data
/// after it. An item has its size, which is a multiple of eight, its type, a bit that says whether another
/// one follows, and the size of its data.
#[inline]
fn after_extended_data(whole: &[u8]) -> Option<&[u8]> {
    let mut at = EVENT_HEADER_BYTES;
    let mut has_more = u16_at(whole, 4)? & FLAG_EXTENDED_INFO != 0;
    for _ in 0..EXTENDED_ITEMS_MAX {
        if !has_more {
            break;
        }
        let size = usize::from(u16_at(whole, at)?);
        has_more = u16_at(whole, at + 4)? & 1 != 0;
        if size < 8 {
            return None;
        }
        at += size;
    }
    whole.get(at..)
}

/// The time of the record at the start of `bytes`; `None` if it has none or there is no record.
#[inline]
pub fn ticks(bytes: &[u8]) -> Option<i64> {
    let kind = u8_at(bytes, 2)?;
    let at = match kind {
        16 | 17 => 8,
        1..=4 | 10 | 11 | 18..=21 => 16,
        _ => return None,
    };
    u64_at(bytes, at).map(|ticks| ticks as i64).filter(|&ticks| ticks != 0)
}

/// Bytes from the record at the start of `bytes` to the next one.
#[inline]
pub fn stride_bytes(bytes: &[u8]) -> Option<usize> {
    let at = if matches!(u8_at(bytes, 2)?, 1..=4 | 16 | 17) { 4 } else { 0 };
    Some((usize::from(u16_at(bytes, at)?) + 7) & !7).filter(|&stride| stride > 0)
}

/// The records of one buffer, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    at: usize,
}

/// What comes next in a buffer.
pub enum Next<'a> {
    Record(Record<'a>),
    End,
    /// What follows is not a record; the rest of the buffer is given up.
    Damaged,
}

impl Position {
    /// What was not read yet.
    pub fn rest<'a>(&self, records: &'a [u8]) -> &'a [u8] {
        records.get(self.at..).unwrap_or(&[])
    }

    /// The record at the position, which moves behind it.
    #[inline]
    pub fn next<'a>(&mut self, records: &'a [u8], cpu: u32) -> Next<'a> {
        let rest = self.rest(records);
        // The writer fills what it does not need with ones.
        if rest.len() < 8 || rest.starts_with(&[0xff; 4]) {
            return Next::End;
        }
        match Record::parse(rest, cpu) {
            Some(record) => {
                self.at += record.stride_bytes;
                Next::Record(record)
            }
            None => {
                self.at = records.len();
                Next::Damaged
            }
        }
    }
}

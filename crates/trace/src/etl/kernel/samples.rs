//! Sampled profile: group 15, opcode 46 (class SampledProfile), and its interval (opcodes 72 to 74,
//! class SampledProfileInterval).

use super::super::record::Record;
use super::pointer_at;
use crate::event::Kind;
use smbscope_wire::read::{u8_at, u32_at};

/// Opcode of a sample.
pub const SAMPLE: u8 = 46;
/// Opcodes of the interval: changed, at the start, at the end of the recording.
pub const INTERVALS: std::ops::RangeInclusive<u8> = 72..=74;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawSample {
    pub address: u64,
    pub thread: u32,
    /// The CPU ran a DPC or an ISR (the inner one of both).
    pub during: Option<Kind>,
}

const IN_DPC: u8 = 1;
const IN_ISR: u8 = 2;
/// Source of the samples that a timer makes; others count events of the CPU.
const SOURCE_TIMER: u32 = 0;

/// Reads the fields: InstructionPointer, ThreadId, Count (16 bits), flags.
#[inline]
pub fn parse(record: &Record<'_>) -> Option<RawSample> {
    let pointer_bytes = record.pointer_bytes;
    let address = pointer_at(record.payload, 0, pointer_bytes)?;
    let thread = u32_at(record.payload, pointer_bytes)?;
    let flags = u8_at(record.payload, pointer_bytes + 6)?;
    let during = if flags & IN_ISR != 0 {
        Some(Kind::Isr)
    } else if flags & IN_DPC != 0 {
        Some(Kind::Dpc)
    } else {
        None
    };
    Some(RawSample { address, thread, during })
}

/// The new interval of the timer's samples, in nanoseconds. `None` for other sources.
pub fn interval_ns(record: &Record<'_>) -> Option<i64> {
    let source = u32_at(record.payload, 0)?;
    let interval = i64::from(u32_at(record.payload, 4)?);
    (source == SOURCE_TIMER && interval > 0).then_some(interval * 100)
}

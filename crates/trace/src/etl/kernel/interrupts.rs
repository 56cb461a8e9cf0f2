//! DPCs and ISRs: group 15 (classes DPC, ISR). One event for each run, written at its end: its field
//! InitialTime is the beginning, the time in its header the end.

use super::super::record::Record;
use super::pointer_at;
use crate::event::Kind;
use smbscope_wire::read::{u8_at, u64_at};

/// One run of a DPC or an ISR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub kind: Kind,
    pub start_ticks: i64,
    pub routine: u64,
    pub vector: Option<u8>,
}

/// The kind by the opcode of group 15.
#[inline]
pub fn kind(opcode: u8) -> Option<Kind> {
    match opcode {
        50 => Some(Kind::IsrMsi),
        66 => Some(Kind::ThreadedDpc),
        67 => Some(Kind::Isr),
        68 => Some(Kind::Dpc),
        69 => Some(Kind::TimerDpc),
        _ => None,
    }
}

/// Reads the fields: InitialTime, Routine, and of an ISR ReturnValue and Vector (a byte each).
#[inline]
pub fn parse(kind: Kind, record: &Record<'_>) -> Option<Run> {
    let pointer_bytes = record.pointer_bytes;
    let start_ticks = u64_at(record.payload, 0)? as i64;
    let routine = pointer_at(record.payload, 8, pointer_bytes)?;
    let vector = match kind {
        Kind::Isr | Kind::IsrMsi => Some(u8_at(record.payload, 8 + pointer_bytes + 1)?),
        _ => None,
    };
    Some(Run { kind, start_ticks, routine, vector })
}

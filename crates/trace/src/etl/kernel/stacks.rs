//! Stacks: group 24. Either with its frames (opcode 32, class StackWalk_Event), or with a key
//! (37 kernel, 38 user) whose frames are in the dictionary: 34 when the key is made, 35 when it is
//! deleted and may be used again, 36 at the end of the recording.

use super::super::record::Record;
use super::pointer_at;
use smbscope_wire::read::{u32_at, u64_at};

pub const WITH_FRAMES: u8 = 32;
pub const WITH_KEY: std::ops::RangeInclusive<u8> = 37..=38;
pub const DICTIONARY: std::ops::RangeInclusive<u8> = 34..=36;
/// The key is deleted after this event.
pub const KEY_DELETED: u8 = 35;

/// The event whose stack this is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Owner {
    pub ticks: i64,
    pub thread: u32,
}

/// Reads the owner and returns what follows: frames, or a key.
pub fn owner<'a>(record: &Record<'a>) -> Option<(Owner, &'a [u8])> {
    let ticks = u64_at(record.payload, 0)? as i64;
    let thread = u32_at(record.payload, 12)?;
    Some((Owner { ticks, thread }, record.payload.get(16..)?))
}

/// The key at the start of `bytes`.
pub fn key(bytes: &[u8], pointer_bytes: usize) -> Option<u64> {
    pointer_at(bytes, 0, pointer_bytes)
}

/// The addresses in `bytes`, from the innermost outwards. Windows writes at most 192 of them.
pub fn frames(bytes: &[u8], pointer_bytes: usize) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(pointer_bytes).filter_map(move |frame| pointer_at(frame, 0, pointer_bytes))
}

/// An entry of the dictionary: its key and the bytes of its frames.
pub fn entry<'a>(record: &Record<'a>) -> Option<(u64, &'a [u8])> {
    let key = key(record.payload, record.pointer_bytes)?;
    Some((key, record.payload.get(record.pointer_bytes..)?))
}

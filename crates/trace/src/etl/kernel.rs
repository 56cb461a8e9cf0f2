//! Layouts of the events of the kernel logger, by group and opcode (MOF classes of
//! MSNT_SystemTrace; the numbers are those of `evntrace.h` and of traces).

pub mod config;
pub mod images;
pub mod interrupts;
pub mod power;
pub mod samples;
pub mod stacks;
pub mod threads;

/// Groups: the high byte of an event's number.
pub mod group {
    pub const PROCESS: u8 = 3;
    pub const THREAD: u8 = 5;
    pub const CONFIG: u8 = 11;
    pub const PERFINFO: u8 = 15;
    pub const IMAGE: u8 = 20;
    pub const STACK_WALK: u8 = 24;
}

use smbscope_wire::read::{u32_at, u64_at};

/// Whether the second reading needs the event: it becomes an [`Event`](crate::event::Event), or
/// changes what later ones mean.
#[inline]
pub fn is_event(group_number: u8, opcode: u8) -> bool {
    match group_number {
        group::PERFINFO => {
            opcode == samples::SAMPLE
                || samples::INTERVALS.contains(&opcode)
                || interrupts::kind(opcode).is_some()
        }
        group::STACK_WALK => opcode == stacks::WITH_FRAMES || stacks::WITH_KEY.contains(&opcode),
        group::THREAD => opcode == threads::SWITCH || opcode == threads::START,
        _ => false,
    }
}

/// Whether an event that the second reading needs says something to the first one, too.
#[inline]
pub fn is_context(group_number: u8, opcode: u8) -> bool {
    match group_number {
        group::PERFINFO => samples::INTERVALS.contains(&opcode),
        group::THREAD => opcode == threads::START,
        _ => false,
    }
}

/// A pointer of 4 or 8 bytes.
pub fn pointer_at(bytes: &[u8], offset: usize, pointer_bytes: usize) -> Option<u64> {
    match pointer_bytes {
        4 => u32_at(bytes, offset).map(u64::from),
        _ => u64_at(bytes, offset),
    }
}

/// The UTF-16 string at `offset` up to its terminator, and where the next field starts.
pub fn text_at(bytes: &[u8], offset: usize) -> Option<(String, usize)> {
    let rest = bytes.get(offset..)?;
    let units = rest.chunks_exact(2).take_while(|unit| *unit != [0, 0]).count();
    let text = smbscope_wire::text::utf16le(rest.get(..2 * units)?);
    Some((text, offset + 2 * units + 2))
}

/// The single-byte string at `offset` up to its terminator, as UTF-8 with replacements.
pub fn narrow_text_at(bytes: &[u8], offset: usize) -> Option<String> {
    let rest = bytes.get(offset..)?;
    let text = rest.split(|&byte| byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// A GUID as text: hexadecimal digits in groups, with its first three fields in the order of people.
pub fn guid_text(guid: &[u8; 16]) -> String {
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::new();
    for (place, at) in order.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let byte = guid.get::<usize>(*at).copied().unwrap_or_default();
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The last component of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

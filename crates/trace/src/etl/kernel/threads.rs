//! Processes (group 3, class Process_TypeGroup1), threads (group 5, class Thread_TypeGroup1) and
//! context switches (opcode 36 of group 5, class CSwitch).

use super::super::record::Record;
use super::{narrow_text_at, pointer_at};
use smbscope_wire::read::{u8_at, u32_at};

/// Opcodes of processes and threads: start, end, and both rundowns.
pub const START: u8 = 1;
pub const LIFE: std::ops::RangeInclusive<u8> = START..=4;
/// A process that ended, but is still referenced.
pub const PROCESS_DEFUNCT: u8 = 39;
pub const SWITCH: u8 = 36;

/// Number and file name of a process.
pub fn process(record: &Record<'_>) -> Option<(u32, String)> {
    let (fields, pointer_bytes) = (record.payload, record.pointer_bytes);
    let number = u32_at(fields, pointer_bytes)?;
    // UniqueProcessKey, ProcessId, ParentId, SessionId, ExitStatus, DirectoryTableBase, in version
    // 4 and later Flags; then the user's SID: 4 bytes of zero, or two pointers and the SID.
    let flags_bytes = match record.version {
        0..=2 => return None,
        3 => 0,
        _ => 4,
    };
    let sid = 2 * pointer_bytes + 16 + flags_bytes;
    let name = if u32_at(fields, sid)? == 0 && pointer_at(fields, sid, pointer_bytes).is_some() {
        sid + 4
    } else {
        let authorities = usize::from(u8_at(fields, sid + 2 * pointer_bytes + 1)?);
        sid + 2 * pointer_bytes + 8 + 4 * authorities
    };
    Some((number, narrow_text_at(fields, name)?))
}

/// Process and thread of a thread's event.
pub fn thread(record: &Record<'_>) -> Option<(u32, u32)> {
    Some((u32_at(record.payload, 0)?, u32_at(record.payload, 4)?))
}

/// A context switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawSwitch {
    pub new_thread: u32,
    pub old_thread: u32,
    pub old_state: u8,
    /// The last idle state of the CPU; has a meaning if the old thread is the idle thread.
    pub idle_state: u8,
}

/// Reads the fields: NewThreadId, OldThreadId, two priorities, PreviousCState, a spare byte,
/// OldThreadWaitReason, OldThreadWaitMode, OldThreadState.
#[inline]
pub fn switch(record: &Record<'_>) -> Option<RawSwitch> {
    Some(RawSwitch {
        new_thread: u32_at(record.payload, 0)?,
        old_thread: u32_at(record.payload, 4)?,
        old_state: u8_at(record.payload, 14)?,
        idle_state: u8_at(record.payload, 10)?,
    })
}

/// Names of KTHREAD_STATE, in the order of their numbers.
pub const STATES: [&str; 10] = [
    "initialized",
    "ready",
    "running",
    "standby",
    "terminated",
    "waiting",
    "transition",
    "deferred ready",
    "gate wait",
    "waiting for process in swap",
];

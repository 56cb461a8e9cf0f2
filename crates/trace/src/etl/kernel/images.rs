//! Images: group 20 and opcode 10 of group 3 (class Image_Load), and the events of
//! KernelTraceControl that name their PDB files.

use super::super::record::{Origin, Record};
use super::{group, narrow_text_at, pointer_at, text_at};
use smbscope_wire::read::{array_at, u32_at};

/// Provider of the images' symbols: {b3e675d7-2554-4f18-830b-2762732560de}.
const KERNEL_TRACE_CONTROL: [u8; 16] = [
    0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde,
];
/// Opcode of its event DbgID_RSDS.
const DBG_ID: u8 = 36;

/// Why an image is in the log; the most certain about its time first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It was there when the recording began.
    RundownAtStart,
    /// It was loaded.
    Load,
    /// It was there when the recording ended, or was unloaded.
    RundownAtEnd,
}

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub struct RawImage {
    pub reason: Reason,
    pub base: u64,
    pub size_bytes: u64,
    pub process: u32,
    pub path: String,
}

/// The PDB file of an image, as `NAME/GUID+AGE` of a symbol store.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbols {
    pub base: u64,
    pub process: u32,
    pub pdb: String,
}

/// Why the record names an image, if it does.
#[inline]
pub fn reason(group_number: u8, opcode: u8) -> Option<Reason> {
    match (group_number, opcode) {
        (group::PROCESS, 10) => Some(Reason::Load),
        (group::IMAGE, 3) => Some(Reason::RundownAtStart),
        (group::IMAGE, 2 | 4) => Some(Reason::RundownAtEnd),
        _ => None,
    }
}

/// Reads the fields: ImageBase, ImageSize, ProcessId, ImageChecksum, TimeDateStamp, 4 bytes,
/// DefaultBase, 16 bytes, FileName. Version 0 had the name after the size, version 1 after the
/// process.
pub fn image(reason: Reason, record: &Record<'_>) -> Option<RawImage> {
    let (fields, pointer_bytes) = (record.payload, record.pointer_bytes);
    let process = match record.version {
        0 => 0,
        _ => u32_at(fields, 2 * pointer_bytes)?,
    };
    let name = match record.version {
        0 => 2 * pointer_bytes,
        1 => 2 * pointer_bytes + 4,
        _ => 3 * pointer_bytes + 32,
    };
    let base = pointer_at(fields, 0, pointer_bytes)?;
    Some(RawImage {
        reason,
        base,
        size_bytes: pointer_at(fields, pointer_bytes, pointer_bytes)?,
        process: owner(base, process, pointer_bytes),
        path: text_at(fields, name)?.0,
    })
}

/// Whether the record names the PDB file of an image.
pub fn has_symbols(origin: &Origin) -> bool {
    *origin == (Origin::Classic { guid: KERNEL_TRACE_CONTROL, opcode: DBG_ID })
}

/// Reads the fields: ImageBase, ProcessId, the GUID of the PDB file, its age and name.
pub fn symbols(record: &Record<'_>) -> Option<Symbols> {
    let (fields, pointer_bytes) = (record.payload, record.pointer_bytes);
    let base = pointer_at(fields, 0, pointer_bytes)?;
    let process = u32_at(fields, pointer_bytes)?;
    let guid: &[u8; 16] = array_at(fields, pointer_bytes + 4)?;
    let age = u32_at(fields, pointer_bytes + 20)?;
    let name = narrow_text_at(fields, pointer_bytes + 24)?;
    let name = super::file_name(&name);
    // The first three fields of a GUID are little-endian numbers.
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let guid: String = order.iter().map(|&at: &usize| format!("{:02X}", guid[at])).collect();
    let pdb = format!("{name}/{guid}{age:X}");
    Some(Symbols { base, process: owner(base, process, pointer_bytes), pdb })
}

/// The process of an image: 0 for code in the kernel's half of the address space.
fn owner(base: u64, process: u32, pointer_bytes: usize) -> u32 {
    let kernel = if pointer_bytes == 8 { 1 << 63 } else { 1 << 31 };
    if base >= kernel { 0 } else { process }
}

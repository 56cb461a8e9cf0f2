//! The system's configuration: group 11 (classes SystemConfig_CPU, _NIC, _IRQ, and the events on
//! NUMA nodes and processor numbers, which no MOF class describes).

use super::super::record::Record;
use super::{pointer_at, text_at};
use smbscope_wire::read::{u8_at, u16_at, u32_at, u64_at};

pub const CPU: u8 = 10;
pub const ADAPTER: u8 = 13;
pub const INTERRUPT_LINE: u8 = 21;
pub const NUMA_NODES: u8 = 24;
pub const PROCESSOR_NUMBERS: u8 = 27;

/// A network adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkAdapter {
    /// MAC address.
    pub address: [u8; 6],
    pub description: String,
}

/// The interrupt of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    /// Negative for message-signalled interrupts.
    pub irq: i32,
    /// Processors that it may interrupt; zero if not known.
    pub affinity: u64,
    /// Device instance id.
    pub device: String,
}

/// A processor: its group and its number in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorNumber {
    pub group: u16,
    pub number: u8,
}

/// A NUMA node: its processors in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumaNode {
    pub mask: u64,
    pub group: u16,
}

/// MHz of the processors.
pub fn mhz(record: &Record<'_>) -> Option<u32> {
    u32_at(record.payload, 0).filter(|&mhz| mhz > 0)
}

/// Version 2: PhysicalAddr, its length, two indexes, description.
pub fn adapter(record: &Record<'_>) -> Option<NetworkAdapter> {
    let bytes = u64_at(record.payload, 0)?.to_le_bytes();
    let [a, b, c, d, e, f, ..] = bytes;
    let (description, _) = text_at(record.payload, 20)?;
    Some(NetworkAdapter { address: [a, b, c, d, e, f], description })
}

/// Version 3: IRQAffinity, 4 bytes, IRQNum, length of the description, the device's id.
pub fn interrupt_line(record: &Record<'_>) -> Option<InterruptLine> {
    if record.version < 3 {
        return None;
    }
    Some(InterruptLine {
        affinity: pointer_at(record.payload, 0, 8)?,
        irq: u32_at(record.payload, 12)? as i32,
        device: text_at(record.payload, 20)?.0,
    })
}

/// A count, and for each processor its group and number.
pub fn processor_numbers(record: &Record<'_>) -> impl Iterator<Item = ProcessorNumber> {
    let fields = record.payload;
    let count = u32_at(fields, 0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    (0..count).map_while(move |index| {
        let at = index.checked_mul(4)?.checked_add(4)?;
        Some(ProcessorNumber { group: u16_at(fields, at)?, number: u8_at(fields, at + 2)? })
    })
}

/// A count, and for each node GROUP_AFFINITY (mask, group, 6 bytes).
pub fn numa_nodes(record: &Record<'_>) -> impl Iterator<Item = NumaNode> {
    let fields = record.payload;
    let count = u32_at(fields, 0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    (0..count).map_while(move |index| {
        let at = index.checked_mul(16)?.checked_add(4)?;
        Some(NumaNode { mask: u64_at(fields, at)?, group: u16_at(fields, at + 8)? })
    })
}
